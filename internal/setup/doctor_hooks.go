package setup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"reprise/internal/config"
	"reprise/internal/pathname"
)

// hookProgramOf is the program that a hook's command runs: it stands in quotes or
// bare, with settings of variables before it.
func hookProgramOf(command string) string {
	rest := strings.TrimSpace(command)
	for {
		word, after := firstWord(rest)
		if !isVariable(word) || after == "" {
			return word
		}
		rest = after
	}
}

// firstWord takes a shell word apart as shellword.Quote makes it, or as Windows has
// it in double quotes.
func firstWord(s string) (word, rest string) {
	var b strings.Builder
	for i := 0; i < len(s); {
		switch c := s[i]; c {
		case ' ':
			return b.String(), strings.TrimLeft(s[i:], " ")
		case '\'', '"':
			end := strings.IndexByte(s[i+1:], c)
			if end < 0 {
				return b.String() + s[i+1:], ""
			}
			b.WriteString(s[i+1 : i+1+end])
			i += end + 2
		case '\\':
			if i+1 < len(s) {
				b.WriteByte(s[i+1])
			}
			i += 2
		default:
			b.WriteByte(c)
			i++
		}
	}
	return b.String(), ""
}

// InstalledHooks is what is set up of a client's hooks in one scope.
type InstalledHooks struct {
	Client  string
	Scope   string
	File    string
	Hooks   []Hook
	Program string // what the hooks run
}

// Installed lists the clients and scopes that have hooks of ours. Its error tells of the files
// that cannot be read; what the others hold is listed all the same.
func (s Setup) Installed() ([]InstalledHooks, error) {
	var out []InstalledHooks
	var bad []error
	for _, client := range HookClients() {
		for _, scope := range []string{User, Project} {
			file, err := s.HookFile(client, scope)
			if err != nil {
				return out, err
			}
			hooks, err := FindHooks(file, client)
			if err != nil {
				bad = append(bad, fmt.Errorf("%s: %s: %w", client, file, err))
			}
			if len(hooks) > 0 {
				out = append(out, InstalledHooks{client, scope, file, hooks, hookProgramOf(hooks[0].Command)})
			}
		}
	}
	return out, errors.Join(bad...)
}

// hooks checks that the hooks that are set up are whole, and lead to a program.
func (d Doctor) hooks(context.Context) []Finding {
	installed, err := d.Setup.Installed()
	var out []Finding
	if err != nil {
		out = one(Warn, "correct the file; until then neither the client nor reprise can use it", "%v", err)
	}
	for i, h := range installed {
		out = append(out, d.hooksOf(h)...)
		if i > 0 && installed[i-1].Client == h.Client {
			level, what := Warn, "whatever happens here is recorded twice"
			if h.Client == "claude-code" { // it runs the same command once
				level, what = Info, "one of them is enough, and it runs the same command once"
			}
			out = append(out, one(level, fmt.Sprintf("run `reprise setup %s --scope %s --remove`", h.Client, h.Scope),
				"%s has hooks for you and for this project: %s", h.Client, what)...)
		}
		if h.Client == "copilot" && h.Scope == Project && slices.ContainsFunc(installed, func(x InstalledHooks) bool { return x.Client == "claude-code" && x.Scope == Project }) {
			out = append(out, one(Warn, "run `reprise setup copilot --scope project --remove`",
				"copilot: it is said to read .claude/settings.json, too: its sessions here may be recorded twice")...)
		}
	}
	var imposed []string
	for _, dir := range d.Setup.dirs() {
		for _, i := range config.Imposing(d.Setup.Env, dir) {
			if text := i.File + " sets " + i.Name; !slices.Contains(imposed, text) {
				imposed = append(imposed, text)
			}
		}
	}
	for _, text := range imposed {
		out = append(out, one(Warn, "take it out of the file, or ask who put it there", "%s for hooks, by which a repository could switch the guard off: it is not heeded", text)...)
	}
	if name, file := d.Setup.Plugin("claude-code"); name != "" {
		why, remedy, err := d.Setup.HooksOff("claude-code", true)
		out = append(out, unread("claude-code", err)...)
		if why != "" {
			out = append(out, one(Fail, remedy, "%s", SwitchedOff("claude-code", why))...)
		} else {
			out = append(out, one(OK, "", "claude-code: by its plugin %s (%s)", name, file)...)
		}
	}
	if len(out) == 0 {
		return one(Info, "run `reprise setup`", "reprise is behind no client's hooks: sessions are neither recorded nor told anything")
	}
	return out
}

// unread says that it is not known whether a client's hooks are switched off.
func unread(client string, err error) []Finding {
	if err == nil {
		return nil
	}
	return one(Warn, "correct it, or its permissions", "%s: whether its hooks are switched off is not known: %v", client, err)
}

func (d Doctor) hooksOf(h InstalledHooks) []Finding {
	again := fmt.Sprintf("run `reprise setup %s --scope %s`", h.Client, h.Scope)
	where := fmt.Sprintf("%s (%s, %s)", h.Client, h.Scope, h.File)
	if info, err := os.Stat(h.Program); err != nil || !info.Mode().IsRegular() {
		return one(Fail, again, "%s: its hook program %s is not there", where, h.Program)
	} else if info.Mode().Perm()&0o111 == 0 && d.Setup.Env.GOOS != "windows" {
		return one(Fail, "make it executable", "%s: its hook program %s is not executable", where, h.Program)
	}
	var missing []string
	for _, event := range HookEvents(h.Client) {
		if !slices.ContainsFunc(h.Hooks, func(x Hook) bool { return x.Event == event }) {
			missing = append(missing, event)
		}
	}
	off, remedy, err := d.Setup.Off(h)
	out := unread(h.Client, err)
	switch {
	case off != "":
		return append(out, one(Fail, remedy, "%s: %d hooks, but %s", where, len(h.Hooks), SwitchedOff(h.Client, off))...)
	case len(missing) > 0:
		out = append(out, one(Warn, again, "%s: without %s", where, strings.Join(missing, ", "))...)
	case !pathname.Same(filepath.Dir(h.Program), filepath.Dir(d.Program)) && !strings.Contains(filepath.ToSlash(d.Program), "/go-build"):
		out = append(out, one(Warn, again, "%s: its hooks run %s, and this is %s", where, h.Program, d.Program)...)
	default:
		out = append(out, one(OK, "", "%s: %d hooks", where, len(h.Hooks))...)
	}
	var short []string
	for _, x := range h.Hooks {
		if x.short(h.Client) {
			short = append(short, fmt.Sprintf("%s after %g s in place of %d", x.Event, x.Seconds, hookTimeout(h.Client, x.Event)))
		}
	}
	if len(short) > 0 {
		out = append(out, one(Warn, again, "%s: the client gives up too early on %s, and then does what it would do without the hook", where, strings.Join(short, ", "))...)
	}
	if h.Client == "codex" {
		out = append(out, d.codexTrust(h)...)
	}
	return out
}

// snake is PreToolUse as pre_tool_use.
func snake(name string) string {
	var b strings.Builder
	for i, r := range name {
		if r >= 'A' && r <= 'Z' {
			if i > 0 {
				b.WriteByte('_')
			}
			r += 'a' - 'A'
		}
		b.WriteRune(r)
	}
	return b.String()
}

// trust says whether something waits for the user's approval.
func (d Doctor) trust(context.Context) []Finding {
	h, err := d.Load()
	if err != nil || h.Project == nil {
		return nil
	}
	t, err := h.Paths.Trust(h.Project)
	if err != nil {
		return one(Warn, "run `reprise trust`", "%v", err)
	}
	if len(t.Asks) == 0 || t.Approved {
		return nil
	}
	return one(Warn, "look at it with `reprise trust`", "%s asks for %s and is not approved, so that does nothing", h.Project.File(), strings.Join(t.Asks, ", "))
}

// live proves each hook by running its program, and each client that has them,
// all at once.
func (d Doctor) live(ctx context.Context) []Finding {
	if d.Live == nil {
		return nil
	}
	installed, err := d.Setup.Installed()
	if err != nil && len(installed) == 0 {
		return nil // what cannot be read is said by the hooks' own check
	}
	found := make([][]Finding, len(installed))
	var all sync.WaitGroup
	for i, h := range installed {
		if why, _, _ := d.Setup.Off(h); why != "" {
			found[i] = one(Info, "", "%s: not tried, for its hooks are off, by %s", h.Client, why)
			continue
		}
		all.Go(func() { found[i] = d.Live(ctx, h) })
	}
	all.Wait()
	return slices.Concat(found...)
}
