package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tailscale/hujson"
	"mvdan.cc/sh/v3/syntax"

	"reprise/internal/durable"
	"reprise/internal/guard"
	"reprise/internal/guard/know"
	"reprise/internal/pathname"
	"reprise/internal/term"
)

// toldClaude is what the user told Claude Code to run without a question, in the user's
// own settings of it. The guard asks before Claude Code looks there.
type toldClaude struct {
	file  string
	since time.Time
	ours  bool // file lies in the work, where a repository may have brought it: it was not read
	rules []proposal
	hosts []string    // that it may read from, and guard.hosts does not have
	left  [][2]string // rules that nothing is proposed for, and why
}

// claudePermissions is what of Claude Code's settings is looked at.
type claudePermissions struct {
	Permissions struct {
		Allow []string `json:"allow"`
		Ask   []string `json:"ask"`
		Deny  []string `json:"deny"`
	} `json:"permissions"`
}

// toldClaude reads the user's own settings of Claude Code, never a project's.
func (a *App) toldClaude(r *guard.Rules) (toldClaude, error) {
	t := toldClaude{}
	dir, err := a.Env.ClientDir("claude-code")
	if err != nil {
		return t, nil //nolint:nilerr // without a home there is nothing in it
	}
	t.file = filepath.Join(dir, "settings.json")
	for _, root := range r.Roots {
		if pathname.Within(guard.Resolve(root), guard.Resolve(t.file)) {
			_, err := os.Lstat(t.file)
			t.ours = err == nil
			return t, nil
		}
	}
	if info, err := os.Stat(t.file); err == nil {
		t.since = info.ModTime()
	}
	data, err := durable.Read(t.file)
	if errors.Is(err, fs.ErrNotExist) {
		return t, nil
	}
	var in claudePermissions
	if err == nil {
		data, err = hujson.Standardize(data)
	}
	if err == nil {
		err = json.Unmarshal(data, &in)
	}
	if err != nil {
		return t, fmt.Errorf("read what Claude Code may run, in %s: %w", t.file, err)
	}
	held := map[string]bool{} // programs of which Claude Code is to ask about or refuse something
	for _, rule := range slices.Concat(in.Permissions.Ask, in.Permissions.Deny) {
		if words, _, ok := claudeCommand(rule); ok {
			held[words[0]] = true
		}
	}
	for _, rule := range in.Permissions.Allow {
		t.add(rule, held, r, a.Env.Dir)
	}
	return t, nil
}

// add takes one of Claude Code's rules over, or says why not. Nothing is said of those
// of its own tools, about which the guard asks nothing either.
func (t *toldClaude) add(rule string, held map[string]bool, r *guard.Rules, cwd string) {
	if host, ok := strings.CutPrefix(rule, "WebFetch(domain:"); ok {
		if host = strings.TrimSuffix(host, ")"); host != "" && !slices.Contains(r.Hosts, host) && !slices.Contains(t.hosts, host) {
			t.hosts = append(t.hosts, host)
		}
		return
	}
	name, inside, ok := strings.Cut(rule, "(")
	switch {
	case strings.HasPrefix(name, "mcp__"):
		t.addServer(rule, r)
		return
	case ok && name != "Bash" && (strings.HasPrefix(inside, "//") || strings.HasPrefix(inside, "~")):
		t.left = append(t.left, [2]string{rule, "for files outside the project there is guard.roots"})
		return
	case name == "WebFetch":
		t.left = append(t.left, [2]string{rule, "it would allow whatever host there is; name the hosts that are meant"})
		return
	case name != "Bash":
		return
	}
	words, open, ok := claudeCommand(rule)
	why := "it is not written in plain words"
	switch {
	case rule == "Bash", rule == "Bash(*)", rule == "Bash(:*)":
		why = "it would allow whatever is not refused"
	case ok:
		why = notTaken(words, open, held, r, cwd)
	}
	if why != "" {
		t.left = append(t.left, [2]string{rule, why})
		return
	}
	shape := strings.Join(words, " ")
	if open {
		shape += " ..."
	}
	if unlisted(shape, r) != "" && !slices.ContainsFunc(t.rules, func(p proposal) bool { return p.Shape == shape }) {
		t.rules = append(t.rules, proposal{Shape: shape, From: t.file, Example: rule, Rules: []string{}, Last: t.since})
	}
}

// addServer takes a rule for a tool of a server over. Its arguments are judged all the
// same, and what is refused stays so.
func (t *toldClaude) addServer(rule string, r *guard.Rules) {
	_, tool, named := strings.Cut(strings.TrimPrefix(rule, "mcp__"), "__")
	switch {
	case !named || strings.Contains(tool, "*"):
		t.left = append(t.left, [2]string{rule, "it would allow whatever the server has; name its tools, or set guard.mcp"})
	case tool == "" || strings.ContainsAny(tool, "() \t"):
		t.left = append(t.left, [2]string{rule, "it is no name of a tool"})
	case unlisted(rule, r) != "" && !slices.ContainsFunc(t.rules, func(p proposal) bool { return p.Shape == rule }):
		t.rules = append(t.rules, proposal{Shape: rule, From: t.file, Example: rule, Rules: []string{}, Last: t.since})
	}
}

// claudeCommand is the command of one of Claude Code's rules, by its words: Bash(words),
// with :* or a star behind them for further ones.
func claudeCommand(rule string) (words []string, open, ok bool) {
	text, ok := strings.CutPrefix(rule, "Bash(")
	text, closed := strings.CutSuffix(text, ")")
	if !ok || !closed {
		return nil, false, false
	}
	for _, end := range []string{":*", " *"} {
		if before, cut := strings.CutSuffix(text, end); cut {
			text, open = before, true
			break
		}
	}
	words = strings.Fields(text)
	ok = len(words) > 0 && strings.Join(words, " ") == text && !strings.ContainsAny(text, "'\"`$;&|<>(){}[]\\?~#!…\t\n") && !strings.ContainsAny(words[0], "*=") && !slices.Contains(words, "...")
	return words, open, ok
}

// notTaken is why no rule of the guard is made of a command that Claude Code may run,
// "" where one is: by what is looked at for other proposals, and by what the guard says
// of these words.
func notTaken(words []string, open bool, held map[string]bool, r *guard.Rules, cwd string) string {
	plain := strings.ReplaceAll(strings.Join(words, " "), "*", "x")
	v := r.Command(plain, cwd)
	if open && v.Decision == guard.Allow {
		v = r.Command(plain+" x", cwd)
	}
	switch {
	case held[words[0]]:
		return "of this program you have Claude Code ask about or refuse something, and the guard would answer first"
	case wordsDiffer(words[0]) || open && startsAnother(words):
		return "what it does stands in its further words"
	case v.Decision == guard.Deny:
		return "the guard refuses it: " + v.Rule
	case v.Decision == guard.Allow && open:
		return "the guard knows which of its uses are harmless"
	case v.Decision == guard.Allow:
		return "the guard does not ask about it"
	case open && strings.HasPrefix(words[len(words)-1], "-"):
		return "what stands behind that option may be anything"
	}
	vague := open && len(words) == 1
	if p := know.Find(words[0]); p != nil && len(p.Subs) > 0 && len(words) > 1 {
		vague = vague || strings.Contains(words[1], "*")
	}
	for _, part := range v.Parts {
		switch {
		case part.Decision != guard.Ask:
		case part.Rule != "network" && aboutReading(part.Rule):
			return "the next of its kind would read something else: " + part.Rule
		case vague && part.Rule != "writes":
			return "so few words may do anything; name more of them"
		}
	}
	return ""
}

// startsAnother reports whether the words behind these are another command.
func startsAnother(words []string) bool {
	p := know.Find(words[0])
	if p != nil && p.Wraps {
		return true
	}
	if len(words) != 2 {
		return false
	}
	if p != nil {
		if sub := p.Sub(words[1]); sub != nil && sub.Wraps {
			return true
		}
	}
	switch words[1] {
	case "exec", "x", "dlx", "shell", "develop":
		return true
	case "run":
		// Of these it starts what the project has, by name.
		return !slices.Contains([]string{"npm", "pnpm", "yarn", "bun", "go", "cargo", "dotnet"}, words[0])
	}
	return false
}

// say prints what is not proposed as a rule of commands.
func (t toldClaude) say(out io.Writer, r *guard.Rules) {
	if t.ours {
		fmt.Fprintf(out, "\n%s lies in the project, whose settings never allow anything: it was not read.\n", term.SafeLine(t.file))
	}
	if len(t.left) > 0 {
		fmt.Fprintf(out, "\nOf %s, these are not taken over:\n", term.SafeLine(t.file))
		for _, l := range t.left {
			fmt.Fprintf(out, "  %s: %s\n", term.SafeLine(l[0]), l[1])
		}
	}
	if len(t.hosts) > 0 {
		var words []string
		for _, h := range slices.Concat(r.Hosts, t.hosts) {
			if q, err := syntax.Quote(h, syntax.LangBash); err == nil {
				words = append(words, q)
			}
		}
		fmt.Fprintf(out, "\nClaude Code may read from hosts that the guard asks about; to let it:\n  reprise config set guard.hosts %s\n", term.SafeLine(strings.Join(words, " ")))
	}
}

// sayToldClaude says that the guard asks about what the user had allowed, where that is
// so. What keeps it from being told is said by `guard learn`.
func (a *App) sayToldClaude() {
	r, err := a.guardRules()
	if err != nil || r.Off || r.Warn {
		return
	}
	told, err := a.toldClaude(r)
	if n := len(told.rules) + len(told.hosts); err == nil && n > 0 {
		fmt.Fprint(a.Out, wrapLine(fmt.Sprintf("The guard asks before Claude Code looks at its permissions.allow; %s of yours it would ask about. `reprise guard learn` proposes the same for the guard.", count(n, "rule")), a.Columns))
	}
}

// reason is what speaks for a proposal.
func (p proposal) reason() string {
	if p.From != "" {
		return "you told Claude Code so: " + p.Example
	}
	return fmt.Sprintf("approved %s, last %s; such as: %s [%s]", times(p.Approved), p.Last.Format("2006-01-02"), p.Example, strings.Join(p.Rules, ", "))
}
