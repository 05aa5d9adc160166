// Package delegation holds sessions that should delegate to doing so: a
// conductor hands work to others and does little of it alone, a section leader
// does some, a musician does the work and is never counted.
//
// What is counted is a session's own work tools since it last delegated. The
// rules and the counting are pure; [Store] keeps the counts.
//
// It owns the files <state>/delegation/<key>.count of a project (<data>/projects/
// <name>/delegation, or <data>/delegation outside any), one a session, each
// written as a whole under its lock <file>.lock. It is linked into the hook
// program and so links next to nothing.
package delegation

import (
	"path"
	"path/filepath"
	"strings"

	"reprise/internal/agent/dialect"
	"reprise/internal/event/quick"
)

// Roles of sessions, as AGENT_ROLE names them.
const (
	Conductor     = "conductor"
	SectionLeader = "section-leader"
	Musician      = "musician"
)

// Limits are numbers of a session's own work calls since it last delegated; 0
// is no limit.
type Limits struct {
	Warn  int // from this call on the session is told
	Block int // so many are let through; further ones are refused
}

// Rules say who is held to what.
type Rules struct {
	// Tiers is 2 (conductor, musician) or 3 (with section leaders between them).
	Tiers         int
	Conductor     Limits
	SectionLeader Limits
	// Free are paths that anybody may write: a directory with a slash at its end,
	// or a file, relative to the project's root or absolute.
	Free []string
}

// Default is what holds where nobody says otherwise.
func Default() Rules {
	return Rules{
		Tiers: 2, Conductor: Limits{Warn: 3, Block: 6}, SectionLeader: Limits{Warn: 10, Block: 20},
		Free: []string{
			".claude/", ".codex/", ".gemini/", ".copilot/", ".github/hooks/", ".reprise/", "docs/", "specs/", "memory/",
			"CLAUDE.md", "AGENTS.md", "GEMINI.md", ".github/copilot-instructions.md",
		},
	}
}

// Of are the limits of a role. ok is false for a role that has none. Where
// there are two tiers nobody stands between conductor and musicians, so who says
// that he does is held to what a conductor is.
func (r Rules) Of(role string) (l Limits, ok bool) {
	switch {
	case role == Conductor, role == SectionLeader && r.Tiers < 3:
		l = r.Conductor
	case role == SectionLeader:
		l = r.SectionLeader
	}
	return l, l.Warn > 0 || l.Block > 0
}

// Below is the role of what a session of the role starts.
func (r Rules) Below(role string) string {
	if role == Conductor && r.Tiers >= 3 {
		return SectionLeader
	}
	return Musician
}

// Kind is what a tool call is to the counter.
type Kind int

// The kinds of calls.
const (
	Free      Kind = iota // neither
	Work                  // work that could have been delegated
	Delegated             // it delegates
)

// KindOf says what a call is. root is the project's root, "" outside any. quiet
// says that a shell command is known only to read; else it counts as work.
func (r Rules) KindOf(ev *dialect.Event, root string, quiet bool) Kind {
	if ev.Agent != "" { // a subagent does what was delegated to it
		return Free
	}
	switch ev.Tool {
	case "agent":
		return Delegated
	case "shell":
		if quiet {
			return Free
		}
		return Work
	case "write", "edit":
		if r.allFree(paths(ev.Input), ev.Cwd, root) {
			return Free
		}
		return Work
	case "mcp":
		server, tool := mcpName(ev.ToolName)
		switch {
		case server == "reprise" && tool == "spawn_agent":
			return Delegated
		case server == "reprise":
			return Free
		}
		return Work
	}
	return Free
}

// mcpName takes a client's name of an MCP tool apart: mcp__server__tool in
// Claude Code and Codex, mcp_server_tool in Gemini CLI.
func mcpName(name string) (server, tool string) {
	if rest, ok := strings.CutPrefix(name, "mcp__"); ok {
		server, tool, _ = strings.Cut(rest, "__")
		return server, tool
	}
	rest, _ := strings.CutPrefix(name, "mcp_")
	server, tool, _ = strings.Cut(rest, "_")
	return server, tool
}

// allFree reports whether all paths are free, and there is one.
func (r Rules) allFree(list []string, cwd, root string) bool {
	for _, p := range list {
		if !r.free(p, cwd, root) {
			return false
		}
	}
	return len(list) > 0
}

func (r Rules) free(p, cwd, root string) bool {
	if root == "" {
		root = cwd
	}
	if !filepath.IsAbs(p) {
		if cwd == "" {
			cwd = root
		}
		if !filepath.IsAbs(cwd) {
			return false
		}
		p = filepath.Join(cwd, p)
	}
	p = slash(p)
	for _, f := range r.Free {
		dir := strings.HasSuffix(f, "/")
		if !filepath.IsAbs(f) {
			if !filepath.IsAbs(root) {
				continue
			}
			f = filepath.Join(root, f)
		}
		if f = slash(f); p == f && !dir || dir && strings.HasPrefix(p, f+"/") {
			return true
		}
	}
	return false
}

func slash(p string) string { return path.Clean(filepath.ToSlash(p)) }

// paths are the files that a write or an edit names: in a member of the input
// or, for a patch, in its headers.
func paths(input []byte) []string {
	var out []string
	_ = quick.Members(string(input), func(name, raw string) error {
		s, err := quick.Unquote(raw)
		if err != nil {
			return nil
		}
		switch name {
		case "file_path", "path", "notebook_path", "filePath", "absolute_path":
			out = append(out, s)
		case "input", "patch", "command":
			out = append(out, patched(s)...)
		}
		return nil
	})
	return out
}

// patched are the files in the headers of a patch as Codex writes it.
func patched(text string) []string {
	var out []string
	for line := range strings.Lines(text) {
		for _, head := range [...]string{"*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: "} {
			if p, ok := strings.CutPrefix(line, head); ok {
				out = append(out, strings.TrimRight(p, " \r\n"))
			}
		}
	}
	return out
}

// Count is what a session did itself.
type Count struct {
	Client, Session, Role string
	Work                  int // own work calls since it last delegated
	Total                 int // of them since it began
	Delegated             int // times that it delegated
	Refused               int // own work calls that were refused
	// Before is what Work was when it last delegated, for as long as that may still
	// fail; 0 afterwards.
	Before int
}

// Verdict is what becomes of a call.
type Verdict int

// The verdicts.
const (
	Pass Verdict = iota
	Warn
	Refuse
)

// Next counts one call. What is refused is not work that was done, so a
// session that was refused once stays where it was until it delegates.
func (c Count) Next(k Kind, l Limits) (Count, Verdict) {
	switch {
	case k == Delegated:
		c.Delegated++
		// Of two that begin at once the second finds nothing to keep; what the first kept stays.
		c.Before = max(c.Before, c.Work)
		c.Work = 0
	case k == Work && l.Block > 0 && c.Work >= l.Block:
		c.Refused++
		return c, Refuse
	case k == Work:
		c.Work++
		c.Total++
		if l.Warn > 0 && c.Work >= l.Warn {
			return c, Warn
		}
	}
	return c, Pass
}

// Ended is the count after a call that delegated came to its end. One that failed
// handed nothing over: what was counted before it is counted on.
func (c Count) Ended(failed bool) Count {
	if failed {
		c.Work += c.Before
		c.Delegated = max(c.Delegated-1, 0)
	}
	c.Before = 0
	return c
}
