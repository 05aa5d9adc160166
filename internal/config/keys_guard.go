package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// Guard says how tool calls are judged. Only the user's own settings loosen
// anything; what a project says of it is in [ProjectGuard].
type Guard struct {
	Mode        string // "enforce", "warn" (verdicts are only noted) or "off"
	Profile     string // "auto" (unattended in runs that reprise started), "attended" or "unattended"
	ProjectCode string // "ask" or "allow": tests, builds, scripts of the project
	Writes      string // "ask" or "allow": commands that write files in the roots
	MCP         string // "ask" or "allow": tools of MCP servers, where nobody is there to be asked
	Judge       string // "off", "deny" (a judge may turn asking into refusing) or "both"
	Pending     string // "on" or "off": what would be asked waits for the user, in unattended runs
	PendingMS   int    // that such a call waits at most
	Roots       []string
	Hosts       []string
	Branches    []string // that are not pushed over; empty: the usual ones
	Loosen      []string // built-in rules that are one step milder
	Allow       []string // shapes of commands and tools
	Ask         []string
	Deny        []string
}

// DefaultGuard is what holds without settings.
func DefaultGuard() Guard {
	return Guard{Mode: "enforce", Profile: "auto", ProjectCode: "ask", Writes: "ask", MCP: "ask", Judge: "off", Pending: "off", PendingMS: 600_000}
}

func guardKeys() []key {
	return []key{
		enumKey("guard.mode", "judge tool calls before they run: enforce, warn (verdicts are only noted) or off", func(s *Settings) *string { return &s.Guard.Mode }, "enforce", "warn", "off"),
		enumKey("guard.profile", "who is there to be asked: auto (nobody in runs that reprise started), attended or unattended; unattended, asking is refusing",
			func(s *Settings) *string { return &s.Guard.Profile }, "auto", "attended", "unattended"),
		enumKey("guard.project_code", "whether the project's own code may be run without asking (tests, builds, its scripts): ask or allow; what such code does is not looked at",
			func(s *Settings) *string { return &s.Guard.ProjectCode }, "ask", "allow"),
		enumKey("guard.writes", "whether commands may write files in the project without asking: ask or allow", func(s *Settings) *string { return &s.Guard.Writes }, "ask", "allow"),
		enumKey("guard.mcp", "whether tools of MCP servers that no rule names are used where nobody is there to be asked: ask or allow", func(s *Settings) *string { return &s.Guard.MCP }, "ask", "allow"),
		enumKey("guard.judge", "what the judge may make of asking: off (it is not asked), deny, or both (allow, too)", func(s *Settings) *string { return &s.Guard.Judge }, "off", "deny", "both"),
		onOff("guard.pending", "in unattended runs, let what would be asked wait for `reprise guard approve` or deny", func(s *Settings) *string { return &s.Guard.Pending }),
		intKey("guard.pending_ms", "the longest that such a call waits, in milliseconds; never longer than the client waits for a hook", func(s *Settings) *int { return &s.Guard.PendingMS }, 1000, 3_600_000),
		listKey("guard.roots", "directories beside the project's that agents may work in", func(s *Settings) *[]string { return &s.Guard.Roots }, checkRoot),
		listKey("guard.hosts", "hosts that may be read from without asking: example.org, *.example.org", func(s *Settings) *[]string { return &s.Guard.Hosts }, checkHost),
		listKey("guard.protected_branches", "branches that are not pushed over: names, or patterns with *; [] leaves the usual ones", func(s *Settings) *[]string { return &s.Guard.Branches }, checkShapeWord),
		listKey("guard.loosen", "built-in rules that are one step milder (refused becomes asked, asked becomes allowed), by their names in verdicts", func(s *Settings) *[]string { return &s.Guard.Loosen }, checkLoosen),
		listKey("guard.allow", "shapes of commands that are allowed, such as \"npm run lint\" or \"make ...\"", func(s *Settings) *[]string { return &s.Guard.Allow }, checkShape),
		listKey("guard.ask", "shapes of commands that are asked about", func(s *Settings) *[]string { return &s.Guard.Ask }, checkShape),
		listKey("guard.deny", "shapes of commands that are refused", func(s *Settings) *[]string { return &s.Guard.Deny }, checkShape),
	}
}

// guardRules are the names of the guard's built-in rules, with ! after those that
// cannot be loosened. The guard is above this package; a test there compares.
var guardRules = [...]string{
	"abbreviated-option", "cdpath", "changes-settings", "changes-shell", "command-as-address", "coproc", "data-evaluated", "declare-option",
	"destructive", "dynamic-command!", "dynamic-name", "dynamic-option", "dynamic-path", "dynamic-program", "ends-supervisor", "environment",
	"environment-loads", "function-name", "git-settings", "guard-failed!", "hidden-character", "limits-dropped", "loads-code", "memory!", "nameref",
	"needs-a-person", "network", "network-to-shell", "never-ends", "odd-bytes!", "option-config", "option-runs", "other-shell", "program-runs", "project-code",
	"prompt-expansion", "protected-file", "push-over-protected", "read-two-ways!", "reads-outside", "reads-secret", "recursion!", "refused-option", "removes",
	"removes-repository", "repository-config", "rule!", "secret-leaves", "shows-environment", "syntax!", "too-deep!", "too-large!", "too-many-words!",
	"too-much!", "types-into-program", "unknown-directory", "unknown-operand", "unknown-option", "unknown-program", "unknown-subcommand",
	"unknown-syntax!", "unknown-tool", "unset-path", "workspace-gone!", "writes", "writes-outside",
	"wrong-checkout!",
}

// GuardRules are the names of the guard's built-in rules, sorted, each with whether
// guard.loosen may name it.
func GuardRules() (names []string, loosened []bool) {
	for _, r := range guardRules {
		name, fixed := strings.CutSuffix(r, "!")
		names, loosened = append(names, name), append(loosened, !fixed)
	}
	return names, loosened
}

// checkLoosen wants the name of a built-in rule that can be loosened.
func checkLoosen(e Env, text string) (string, string, string) {
	v, problem, remedy := checkShapeWord(e, text)
	if problem != "" {
		return v, problem, remedy
	}
	var near string
	for _, r := range guardRules {
		name, fixed := strings.CutSuffix(r, "!")
		switch {
		case name == text && fixed:
			return "", fmt.Sprintf("%q is a rule that cannot be loosened", shown(text)), "leave it out; `reprise guard rules` shows which can"
		case name == text:
			return text, "", ""
		case near == "" && (strings.HasPrefix(name, text) || strings.HasPrefix(text, name) || strings.ReplaceAll(text, "_", "-") == name || distance(name, text) <= 2):
			near = name
		}
	}
	remedy = "`reprise guard rules` lists them"
	if near != "" {
		remedy = fmt.Sprintf("did you mean %s? %s", near, remedy)
	}
	return "", fmt.Sprintf("%q is no built-in rule", shown(text)), remedy
}

func checkHost(_ Env, text string) (string, string, string) {
	name := strings.TrimPrefix(text, "*.")
	if name == "" || strings.ContainsAny(name, "*/:@ \t\n?#") || strings.ContainsFunc(name, func(r rune) bool { return r <= 0x20 || r == 0x7f }) {
		return "", fmt.Sprintf("%q is not a host", shown(text)), "write a name such as example.org, or *.example.org for all below it"
	}
	return strings.ToLower(text), "", ""
}

func checkShapeWord(e Env, text string) (string, string, string) {
	if strings.ContainsAny(text, " \t\n") {
		return "", fmt.Sprintf("%q is more than one word", shown(text)), "write one word"
	}
	return checkWord(e, text)
}

// checkShape wants words; a shape that fits everything would be no rule.
func checkShape(e Env, text string) (string, string, string) {
	v, problem, remedy := checkWord(e, text)
	if problem != "" {
		return v, problem, remedy
	}
	words := strings.Fields(text)
	switch {
	case strings.Trim(words[0], "*.") == "":
		return "", fmt.Sprintf("%q begins with a word that fits every program", shown(text)), "begin with the program's name"
	case slices.Contains(words[:len(words)-1], "..."):
		return "", fmt.Sprintf("%q has ... before its end", shown(text)), "write ... as the last word only, for any further words"
	case strings.ContainsAny(text, "\"'`$;|&<>()"):
		return "", fmt.Sprintf("%q has characters of a shell's grammar", shown(text)), "write the words as the program gets them, with * for any text in a word"
	}
	return strings.Join(words, " "), "", ""
}

// ProjectGuard is what a project's file says under guard. It only tightens: what
// it would loosen is kept to be shown, and never counts.
type ProjectGuard struct {
	Ask, Deny, Branches []string
	Inert               []string // keys that would loosen
}

// projectGuard reads what a project says of judging.
func (d *document) projectGuard(n ast.Node) *ProjectGuard {
	entries, ok := d.mapping("guard", n)
	if !ok {
		return nil
	}
	g := &ProjectGuard{}
	for _, e := range entries {
		name := strings.TrimPrefix(e.key, "guard.")
		var into *[]string
		c := checkShape
		switch name {
		case "ask":
			into = &g.Ask
		case "deny":
			into = &g.Deny
		case "protected_branches":
			into, c = &g.Branches, checkShapeWord
		case "allow", "loosen", "hosts", "roots", "mode", "project_code", "writes", "mcp", "judge", "profile":
			g.Inert = append(g.Inert, name)
			continue
		default:
			d.add(e.node, e.key, "is not a setting of a project", thereAre(name, "ask", "deny", "protected_branches"))
			continue
		}
		items, nodes, ok := d.list(e.key, e.value)
		for i, item := range items {
			v, problem, remedy := c(Env{}, item)
			if problem != "" && ok {
				d.add(nodes[i], fmt.Sprintf("%s[%d]", e.key, i), problem, remedy)
				continue
			}
			*into = append(*into, v)
		}
	}
	return g
}

// checkRoot refuses what would open a whole disk or home directory to agents.
func checkRoot(e Env, text string) (string, string, string) {
	if path, problem, remedy := checkAnyPath(e, text); problem != "" {
		return path, problem, remedy
	}
	path, problem, remedy := checkDir(e, text)
	if problem != "" {
		remedy = "name the directory in it that agents may work in"
	}
	return path, problem, remedy
}
