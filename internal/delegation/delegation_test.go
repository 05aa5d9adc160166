package delegation

import (
	"encoding/json"
	"math/rand/v2"
	"testing"

	"reprise/internal/agent/dialect"
)

func input(t *testing.T, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestKindOf(t *testing.T) {
	type m map[string]string
	const yes, no = true, false
	for _, c := range []struct {
		name  string
		tool  string
		as    string
		in    any
		agent string
		quiet bool
		want  Kind
	}{
		{"a subagent of Claude Code", "agent", "Task", m{"prompt": "x"}, "", no, Delegated},
		{"a run of ours, in Claude Code", "mcp", "mcp__reprise__spawn_agent", m{"task": "x"}, "", no, Delegated},
		{"a run of ours, in Gemini CLI", "mcp", "mcp_reprise_spawn_agent", m{"task": "x"}, "", no, Delegated},
		{"our memory", "mcp", "mcp__reprise__memory_search", m{"query": "x"}, "", no, Free},
		{"somebody's server", "mcp", "mcp__db__spawn_agent", m{"x": "y"}, "", no, Work},
		{"a server whose name begins as ours", "mcp", "mcp__reprise2__spawn_agent", m{"x": "y"}, "", no, Work},
		{"reading", "read", "Read", m{"file_path": "/p/a.go"}, "", no, Free},
		{"searching", "search", "Grep", m{"pattern": "x"}, "", no, Free},
		{"asking", "ask", "AskUserQuestion", m{}, "", no, Free},
		{"a list of things to do", "other", "TodoWrite", m{}, "", no, Free},
		{"a command", "shell", "Bash", m{"command": "go test"}, "", no, Work},
		{"a command that writes", "shell", "Bash", m{"command": "go test"}, "", no, Work},
		{"a command that only reads", "shell", "Bash", m{"command": "ls"}, "", yes, Free},
		{"code", "edit", "Edit", m{"file_path": "/p/a.go"}, "", no, Work},
		{"code of a subagent", "edit", "Edit", m{"file_path": "/p/a.go"}, "sub-1", no, Free},
		{"documents", "write", "Write", m{"file_path": "/p/docs/a.md"}, "", no, Free},
		{"documents, relative", "write", "write_file", m{"file_path": "docs/a.md"}, "", no, Free},
		{"documents by a way around", "write", "Write", m{"file_path": "/p/docs/../a.go"}, "", no, Work},
		{"what only begins alike", "write", "Write", m{"file_path": "/p/docs-old/a.md"}, "", no, Work},
		{"a directory of that name further down", "write", "Write", m{"file_path": "/p/src/docs/a.md"}, "", no, Work},
		{"a file of the clients", "edit", "Edit", m{"file_path": "/p/.claude/agents/x.md"}, "", no, Free},
		{"CLAUDE.md", "edit", "Edit", m{"file_path": "/p/CLAUDE.md"}, "", no, Free},
		{"a directory called CLAUDE.md", "edit", "Edit", m{"file_path": "/p/CLAUDE.md/a.go"}, "", no, Work},
		{"another project's documents", "write", "Write", m{"file_path": "/q/docs/a.md"}, "", no, Work},
		{"a notebook", "edit", "NotebookEdit", m{"notebook_path": "/p/a.ipynb"}, "", no, Work},
		{"no path at all", "write", "Write", m{"content": "x"}, "", no, Work},
		{"a patch of documents", "edit", "apply_patch", m{"input": "*** Begin Patch\n*** Update File: docs/a.md\n+x\n*** End Patch"}, "", no, Free},
		{"a patch of documents and code", "edit", "apply_patch", m{"input": "*** Begin Patch\n*** Update File: docs/a.md\n+x\n*** Add File: a.go\n+y\n*** End Patch"}, "", no, Work},
		{"a patch that moves out", "edit", "apply_patch", m{"input": "*** Begin Patch\n*** Update File: docs/a.md\n*** Move to: a.go\n*** End Patch"}, "", no, Work},
		{"two paths, one free", "write", "Write", m{"path": "docs/a", "file_path": "/p/a.go"}, "", no, Work},
	} {
		ev := dialect.Event{Tool: c.tool, ToolName: c.as, Input: input(t, c.in), Cwd: "/p", Agent: c.agent}
		if got := Default().KindOf(&ev, "/p", c.quiet); got != c.want {
			t.Errorf("%s: kind %d, want %d", c.name, got, c.want)
		}
	}
	ev := dialect.Event{Tool: "write", ToolName: "Write", Input: []byte("no JSON"), Cwd: "/p"}
	if got := Default().KindOf(&ev, "/p", false); got != Work {
		t.Errorf("an input that cannot be read: kind %d, want work", got)
	}
	ev = dialect.Event{Tool: "write", ToolName: "Write", Input: input(t, m{"file_path": "/p/sub/docs/a"}), Cwd: "/p/sub"}
	if got := Default().KindOf(&ev, "", false); got != Free {
		t.Errorf("outside any project the working directory is the root: kind %d, want free", got)
	}
}

func TestLimitsOfRoles(t *testing.T) {
	two := Default()
	three := two
	three.Tiers = 3
	for _, c := range []struct {
		rules Rules
		role  string
		want  Limits
		held  bool
		below string
	}{
		{two, Conductor, two.Conductor, true, Musician},
		{two, SectionLeader, two.Conductor, true, Musician},
		{three, Conductor, three.Conductor, true, SectionLeader},
		{three, SectionLeader, three.SectionLeader, true, Musician},
		{three, Musician, Limits{}, false, Musician},
		{two, "", Limits{}, false, Musician},
		{two, "composer", Limits{}, false, Musician},
		{Rules{Tiers: 2}, Conductor, Limits{}, false, Musician},
	} {
		got, held := c.rules.Of(c.role)
		if got != c.want || held != c.held || c.rules.Below(c.role) != c.below {
			t.Errorf("%d tiers, %q: limits %v held %v, starts %s; want %v %v %s", c.rules.Tiers, c.role, got, held, c.rules.Below(c.role), c.want, c.held, c.below)
		}
	}
}

func TestCounting(t *testing.T) {
	l := Limits{Warn: 2, Block: 3}
	c := Count{}
	var v Verdict
	for i, step := range []struct {
		kind                   Kind
		want                   Verdict
		work, total, delegated int
	}{
		{Work, Pass, 1, 1, 0}, {Free, Pass, 1, 1, 0}, {Work, Warn, 2, 2, 0}, {Work, Warn, 3, 3, 0},
		{Work, Refuse, 3, 3, 0}, {Free, Pass, 3, 3, 0}, {Work, Refuse, 3, 3, 0},
		{Delegated, Pass, 0, 3, 1}, {Work, Pass, 1, 4, 1},
	} {
		if c, v = c.Next(step.kind, l); v != step.want || c.Work != step.work || c.Total != step.total || c.Delegated != step.delegated {
			t.Fatalf("step %d: verdict %d, %+v; want %+v", i, v, c, step)
		}
	}
	if c.Refused != 2 {
		t.Errorf("refused %d times, want 2", c.Refused)
	}
}

// Whatever a session does, no more than Block of its own calls pass between two
// delegations, and none is refused before.
func TestNeverMoreThanTheLimit(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 2))
	for range 500 {
		l := Limits{Warn: r.IntN(4), Block: 1 + r.IntN(6)}
		c, passed := Count{}, 0
		for range 60 {
			k := Kind(r.IntN(3))
			var v Verdict
			c, v = c.Next(k, l)
			switch {
			case k == Delegated:
				passed = 0
			case k == Work && v != Refuse:
				passed++
			case k == Work && passed != l.Block:
				t.Fatalf("%+v: refused after %d", l, passed)
			}
			if passed > l.Block {
				t.Fatalf("%+v: %d passed", l, passed)
			}
		}
	}
}
