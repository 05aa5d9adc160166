package agent

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"reprise/internal/guard"

	"reprise/internal/proc"
)

// claude is the adapter for Claude Code (measured with 2.1.332).
//
// What a spawned run loads, and why (each measured; docs/sandbox.md has the
// table):
//
//   - --setting-sources=user: the user's own settings, hooks, skills, agents
//     and ~/.claude/CLAUDE.md load. The repository's .claude/settings.json,
//     settings.local.json, hooks, skills, agents, .mcp.json and CLAUDE.md do
//     not: without this, `claude -p` runs a repository's hooks and servers
//     without asking anybody.
//   - The working directory as an --add-dir of itself, with
//     CLAUDE_CODE_ADDITIONAL_DIRECTORIES_CLAUDE_MD: brings back the
//     repository's CLAUDE.md and nothing else of it. That is text, its
//     imports stay inside the directory, and an agent that does not know a
//     project's conventions does worse work.
//   - CLAUDE_CODE_DISABLE_AUTO_MEMORY: the client's own memory of that
//     directory is the user's conversation partner's; a worker neither gets
//     it (it did, in -p too) nor adds to it.
//   - --strict-mcp-config: no tool server at all, not even the user's own
//     from ~/.claude.json: a worker does not need them, each is a process,
//     and one that hangs costs the run its start.
//   - --settings=FILE comes on top of both and its deny rules and hooks hold
//     whatever the other sources say; disableAllHooks is set to false in it
//     because the user's settings could switch our hook off with it, and so
//     could two variables, in those settings or in the environment.
type claude struct{}

func (claude) Name() string { return KindClaude }

func (claude) NewStream() Stream { return newClaudeStream() }

func (claude) Command(t Task) (Command, error) {
	if err := t.check(); err != nil {
		return Command{}, err
	}
	if t.Program == "" {
		return Command{}, bad("program", "is empty; set claude_cli.path")
	}
	if !isUUID(t.SessionID) {
		return Command{}, bad("session id", fmt.Sprintf("%q is not a UUID, which Claude Code insists on", t.SessionID))
	}
	if t.Isolated != nil {
		return isolatedClaude(t)
	}
	// Every flag in its = form: several flags take a list and would swallow
	// whatever follows.
	args := append([]string{"-p", "--output-format=stream-json", "--verbose"}, t.claudeKind()...)
	args = append(args, claudeLimits(t)...)
	for _, d := range append([]string{t.WorkDir}, t.openDirs()...) {
		args = append(args, "--add-dir="+d)
	}
	// The guard's hook finds there what the run may use beside its directory. One
	// whose name the list cannot hold is asked about.
	var open []string
	for _, d := range t.openDirs() {
		if !strings.ContainsRune(d, os.PathListSeparator) {
			open = append(open, d)
		}
	}
	var dirs []string
	if len(open) > 0 {
		dirs = append(dirs, AddDirsVar+"="+strings.Join(open, string(os.PathListSeparator)))
	}
	env, err := t.environ(append(dirs, "CLAUDE_CODE_MAX_RETRIES="+strconv.Itoa(claudeRetries(t)), "CLAUDE_CODE_DISABLE_AUTO_MEMORY=1", "DISABLE_AUTOUPDATER=1",
		"CLAUDE_CODE_ADDITIONAL_DIRECTORIES_CLAUDE_MD=1")...)
	if t.Work != nil {
		env = append(env, t.Work.Vars...)
	}
	if err != nil {
		return Command{}, err
	}
	pol := t.Policy()
	policy, err := json.MarshalIndent(pol, "", "  ")
	if err != nil {
		return Command{}, fmt.Errorf("encode policy: %w", err)
	}
	settings, err := claudeSettings(t, pol)
	if err != nil {
		return Command{}, err
	}
	files := map[string][]byte{
		SystemFile:   []byte(t.SystemPrompt),
		settingsFile: settings,
		policyFile:   append(policy, '\n'),
	}
	if t.Work != nil && len(t.Work.Servers) > 0 {
		files[serversFile] = t.Work.Servers
	}
	return Command{Path: t.Program, Args: args, Env: env, Dir: t.WorkDir, Files: files}, nil
}

// claudeKind are the flags that tell a loop's run from one that another agent
// started. The first is the client as it is, with a little more in its system prompt
// and nobody's settings: a server or hook of the user's that hangs would stall it. The
// second answers a question for its caller, who may have set it up for that.
func (t Task) claudeKind() []string {
	prompt, settings := filepath.Join(t.RunDir, SystemFile), "--settings="+filepath.Join(t.RunDir, settingsFile)
	session := "--session-id=" + t.SessionID
	if r := t.resume(); r != "" {
		session = "--resume=" + r
	}
	w := t.Work
	if w == nil {
		return []string{session, "--system-prompt-file=" + prompt, settings, "--setting-sources=user", "--strict-mcp-config"}
	}
	args := []string{session, "--append-system-prompt-file=" + prompt, settings, "--setting-sources=", "--strict-mcp-config"}
	if len(w.Servers) > 0 {
		args = append(args, "--mcp-config="+filepath.Join(t.RunDir, serversFile))
	}
	if len(w.AllowedTools) > 0 {
		args = append(args, "--allowedTools="+strings.Join(w.AllowedTools, ","))
	}
	if len(w.Schema) > 0 {
		args = append(args, "--json-schema="+string(w.Schema))
	}
	return args
}

// claudeLimits are the flags of model, turns and money.
func claudeLimits(t Task) []string {
	var args []string
	if t.Model != "" {
		args = append(args, "--model="+t.Model)
	}
	if t.MaxTurns > 0 {
		args = append(args, "--max-turns="+strconv.Itoa(t.MaxTurns))
	}
	if t.MaxBudgetUSD > 0 {
		args = append(args, "--max-budget-usd="+strconv.FormatFloat(t.MaxBudgetUSD, 'f', -1, 64))
	}
	return args
}

// isUUID accepts the one form that Claude Code accepts, 8-4-4-4-12 hexadecimal
// digits.
func isUUID(s string) bool {
	if len(s) != 36 {
		return false
	}
	for i := range len(s) {
		c := s[i]
		switch i {
		case 8, 13, 18, 23:
			if c != '-' {
				return false
			}
		default:
			if (c < '0' || c > '9') && (c < 'a' || c > 'f') && (c < 'A' || c > 'F') {
				return false
			}
		}
	}
	return true
}

// openDirs are the directories beside the working directory that the client
// may use.
func (t Task) openDirs() []string {
	dirs := append([]string(nil), t.AddDirs...)
	if t.AllowMemoryRead && t.MemoryDir != "" {
		dirs = append(dirs, t.MemoryDir)
	}
	return dirs
}

// retryTotal[n] is about how long n retries of one request take together: the
// sums of the delays that Claude Code announced in a run of ten (0.6, 1.2,
// 2.5, 5, 9.5, 16, 35, 34, 38 and 35 s).
var retryTotal = [...]time.Duration{0, 600 * time.Millisecond, 1800 * time.Millisecond, 4300 * time.Millisecond,
	9200 * time.Millisecond, 19 * time.Second, 35 * time.Second, 70 * time.Second, 104 * time.Second, 142 * time.Second, 178 * time.Second}

// claudeRetries bounds how often the client asks its model again. Its own ten
// retries mean three silent minutes for each request, more than most runs
// have. A quarter of the run's time is the most that one request may spend on
// waiting: then a model that is down makes the run fail with the API's own
// words instead of a timeout, and a short hiccup is still ridden out. Never
// less than one retry; without a timeout 6 (35 s). A smaller number that the
// user has set stays.
func claudeRetries(t Task) int {
	n := 6
	if t.Timeout > 0 {
		for n = len(retryTotal) - 1; n > 1 && retryTotal[n] > t.Timeout/4; n-- {
		}
	}
	if own, err := strconv.Atoi(proc.EnvValue(t.Env, "CLAUDE_CODE_MAX_RETRIES")); err == nil && own >= 0 && own < n {
		n = own
	}
	return n
}

type claudeHook struct {
	Type    string `json:"type"`
	Command string `json:"command"`
	Timeout int    `json:"timeout"` // seconds
}

type claudeMatcher struct {
	Matcher string       `json:"matcher"`
	Hooks   []claudeHook `json:"hooks"`
}

// hookTimeout is generous because a PreToolUse hook that runs into it does
// not stop the tool.
const hookTimeout = 60

// claudeSettings builds the file given by --settings: deny rules for the
// client's own path checks, a hook that asks internal/guard whether a tool call
// touches what is closed to the run, and one that judges the call as it judges
// those of any session.
func claudeSettings(t Task, pol guard.Policy) ([]byte, error) {
	if t.Self == "" || !filepath.IsAbs(t.Self) {
		return nil, bad("reprise program", fmt.Sprintf("%q is not an absolute path, and without it nothing guards the memory directory", t.Self))
	}
	var s struct {
		DisableAllHooks bool              `json:"disableAllHooks"`
		Env             map[string]string `json:"env"`
		Permissions     struct {
			Deny []string `json:"deny"`
		} `json:"permissions"`
		Hooks map[string][]claudeMatcher `json:"hooks"`
	}
	s.Permissions.Deny = claudeDeny(pol)
	s.Env = map[string]string{"CLAUDE_CODE_SIMPLE": "0", "CLAUDE_CODE_SAFE_MODE": "0"} // no hook would run
	cmd := shellWord(filepath.ToSlash(t.Self)) + " protect " + shellWord(filepath.ToSlash(filepath.Join(t.RunDir, policyFile)))
	hooks := []claudeHook{{Type: "command", Command: cmd, Timeout: hookTimeout}}
	if t.GuardHook != "" {
		// The user's own settings may have it, too; the client starts the same
		// command once.
		hooks = append(hooks, claudeHook{Type: "command", Command: t.GuardHook, Timeout: hookTimeout})
	}
	s.Hooks = map[string][]claudeMatcher{"PreToolUse": {{Matcher: "*", Hooks: hooks}}}
	var doc any = s
	if t.Work != nil {
		for event, command := range t.Work.Hooks {
			if event == "PreToolUse" && command == t.GuardHook {
				continue // it stands there already
			}
			s.Hooks[event] = append(s.Hooks[event], claudeMatcher{Matcher: "*", Hooks: []claudeHook{{Type: "command", Command: command, Timeout: hookTimeout}}})
		}
		var env map[string]any
		if given := t.Work.Settings["env"]; len(given) > 0 {
			if err := json.Unmarshal(given, &env); err != nil {
				return nil, bad("env of the client's settings", fmt.Sprintf("it is no object: %v", err))
			}
		}
		if env == nil {
			env = map[string]any{}
		}
		for name, value := range s.Env {
			env[name] = value
		}
		all := map[string]any{"disableAllHooks": false, "env": env, "permissions": s.Permissions, "hooks": s.Hooks}
		for key, value := range t.Work.Settings {
			if _, ours := all[key]; !ours {
				all[key] = value
			}
		}
		doc = all
	}
	out, err := json.MarshalIndent(doc, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode settings: %w", err)
	}
	return append(out, '\n'), nil
}

// claudeDeny writes the policy as the client's permission rules. Each
// directory is named as given and as resolved, because a rule is compared
// with both forms of a path but is itself taken literally.
func claudeDeny(pol guard.Policy) []string {
	var out []string
	seen := map[string]bool{}
	add := func(tools []string, dir string) {
		for _, d := range []string{dir, guard.Resolve(dir)} {
			for _, tool := range tools {
				if rule := tool + "(" + rulePath(d) + "/**)"; !seen[rule] {
					seen[rule] = true
					out = append(out, rule)
				}
			}
		}
	}
	for _, d := range pol.DenyAll {
		add([]string{"Read", "Edit", "Write", "NotebookEdit", "Glob", "Grep"}, d)
	}
	for _, d := range pol.DenyWrite {
		add([]string{"Edit", "Write", "NotebookEdit"}, d)
	}
	return out
}

// rulePath spells an absolute path as Claude Code's permission rules want it:
// a leading // means the root of the file system (a single / would be the
// settings file's directory), drive letters become /c, and characters that
// its gitignore-like patterns treat specially are escaped.
func rulePath(dir string) string {
	p := filepath.ToSlash(filepath.Clean(dir))
	if len(p) >= 2 && p[1] == ':' {
		p = "/" + strings.ToLower(p[:1]) + p[2:]
	}
	var b strings.Builder
	b.WriteByte('/')
	for _, r := range strings.TrimSuffix(p, "/") {
		if strings.ContainsRune(`*?[]!#\`, r) {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}

// shellWord quotes one word for a POSIX shell, which is what runs a hook's
// command.
func shellWord(s string) string {
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
