package mcpserver

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"reprise/internal/mdfile"
	"reprise/internal/memory"
	"reprise/internal/session"
	"reprise/internal/staterepo"
)

// fakeState stands in for session.Desk.
type fakeState struct {
	mu      sync.Mutex
	added   []mdfile.Entry
	written []string // name, text
	err     error    // what every call answers
	state   session.State
	found   session.Found
	wanted  session.Wanted
}

func (f *fakeState) changes() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.added) + len(f.written)
}

func (f *fakeState) wrote(file string) session.Wrote {
	return session.Wrote{Agent: "ann", File: file, Path: "/work/.reprise/agent/" + file, Commit: "c0ffee", Notes: []string{}}
}

func (f *fakeState) State(context.Context) (session.State, error) { return f.state, f.err }

func (f *fakeState) Add(_ context.Context, e mdfile.Entry) (session.Wrote, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err != nil {
		return session.Wrote{}, f.err
	}
	f.added = append(f.added, e)
	w := f.wrote("changelog.md")
	w.ID, w.Type = fmt.Sprintf("e-%016d", len(f.added)), e.Type
	return w, nil
}

func (f *fakeState) Learn(ctx context.Context, insight, about string, sure bool) (session.Wrote, error) {
	if d := staterepo.CheckLearning(insight); d.Why != "" && !sure {
		return session.Wrote{}, fmt.Errorf("%w: %s", session.ErrDoubt, d.Why)
	}
	return f.Add(ctx, mdfile.Entry{Type: mdfile.TypeLearning, Text: insight + "\n\n" + about})
}

func (f *fakeState) Write(_ context.Context, name, text string, add bool) (session.Wrote, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err != nil {
		return session.Wrote{}, f.err
	}
	f.written = append(f.written, fmt.Sprintf("%s add=%t: %s", name, add, text))
	return f.wrote(name), nil
}

func (f *fakeState) Checkpoint(ctx context.Context, name, message string, _ time.Time) (session.Wrote, error) {
	return f.Write(ctx, "checkpoints/"+name+".md", message, false)
}

func (f *fakeState) Accept(ctx context.Context, id string) (session.Accepted, error) {
	w, err := f.Add(ctx, mdfile.Entry{Type: mdfile.TypeStart, DependsOn: []string{id}})
	return session.Accepted{Wrote: w, Handoff: session.Noted{ID: id, Agent: "ben", Type: mdfile.TypeHandoff, Text: "Go on with the tests."}}, err
}

func (f *fakeState) Search(_ context.Context, w session.Wanted) (session.Found, error) {
	f.wanted = w
	return f.found, f.err
}

func inProject(f *fakeState) func(*Deps) {
	return func(d *Deps) { d.InProject, d.State = true, f }
}

// What the tools write, and what they refuse and why.
func TestStateTools(t *testing.T) {
	f := &fakeState{}
	w := newWorld(t, func(d *Deps) { inProject(f)(d); d.Toolsets = []string{"all"} })
	ctx := t.Context()
	last := func() mdfile.Entry { t.Helper(); return f.added[len(f.added)-1] }

	w.good(ctx, "state_log", map[string]any{"message": "Validate the expiry of tokens.", "status": "completed", "depends_on": []string{"e-1"}})
	if e := last(); e.Type != mdfile.TypeImplement || e.Status != "completed" || e.Text != "Validate the expiry of tokens." || e.DependsOn[0] != "e-1" {
		t.Errorf("%+v", e)
	}
	if msg := w.bad(ctx, "state_log", map[string]any{"message": "m", "type": "handoff"}); !strings.Contains(msg, "state_handoff") {
		t.Error(msg)
	}
	w.good(ctx, "state_learn", map[string]any{"insight": "Always run the linter before a commit.", "context": "The hook rejected it."})
	if e := last(); !strings.Contains(e.Text, "The hook rejected it.") {
		t.Errorf("%+v", e)
	}
	before := f.changes()
	if msg := w.bad(ctx, "state_learn", map[string]any{"insight": "Added function X"}); !strings.Contains(msg, "state_log") || !strings.Contains(msg, "keep true") || f.changes() != before {
		t.Error(msg)
	}
	w.good(ctx, "state_learn", map[string]any{"insight": "Added function X", "keep": true})
	w.good(ctx, "state_decide", map[string]any{"decision": "Use RS256\nfor tokens", "over": []string{"HS256", "sessions"}, "because": "the public key is enough\nto check it"})
	if e := last(); e.Decision != "Use RS256 for tokens" || len(e.Alternatives) != 2 || e.Rationale != "the public key is enough to check it" || e.Source != "agent" {
		t.Errorf("%+v", e)
	}
	w.good(ctx, "state_handoff", map[string]any{"text": "Go on with the tests.", "to": "ben"})
	if e := last(); e.Type != mdfile.TypeHandoff || e.To != "ben" || e.Status != "pending" {
		t.Errorf("%+v", e)
	}
	if got := w.good(ctx, "state_handoff", map[string]any{"accept": "e-9"}); !strings.Contains(mustJSON(t, got), "Go on with the tests.") {
		t.Error(mustJSON(t, got))
	}
	for _, args := range []map[string]any{{"accept": "e-9", "text": "x"}, {"accept": "e-9", "to": "ben"}, {}, {"to": "ben"}} {
		if msg := w.bad(ctx, "state_handoff", args); !strings.Contains(msg, `"text"`) {
			t.Errorf("%v: %s", args, msg)
		}
	}
	w.good(ctx, "state_scratch", map[string]any{"text": "try the cache", "append": true})
	w.good(ctx, "state_focus", map[string]any{"text": ""})
	w.good(ctx, "state_note", map[string]any{"name": "cache.md", "text": "It is cold."})
	w.good(ctx, "state_artifact", map[string]any{"name": "report.md", "text": "# R"})
	w.good(ctx, "state_checkpoint", map[string]any{"name": "before-refactor"})
	want := "scratch.md add=true: try the cache|context.md add=false: |notes/cache.md add=false: It is cold.|artifacts/report.md add=false: # R|checkpoints/before-refactor.md add=false: "
	if got := strings.Join(f.written, "|"); got != want {
		t.Errorf("written %q", got)
	}
	for _, name := range []string{"../x.md", "a/b", "Report.md", ".md"} {
		w.bad(ctx, "state_artifact", map[string]any{"name": name, "text": "x"})
	}
	for err, remedy := range map[error]string{
		staterepo.ErrTaken: "take another one", staterepo.ErrCheckpoint: "another name", memory.ErrDenied: "was not given", memory.ErrRetired: "forgotten on purpose", errors.New("disk full"): "disk full",
	} {
		f.err = fmt.Errorf("x: %w", err)
		if msg := w.bad(ctx, "state_log", map[string]any{"message": "m"}); !strings.HasPrefix(msg, "state_log: ") || !strings.Contains(msg, remedy) {
			t.Errorf("%v: %s", err, msg)
		}
	}
}

// Which tools there are inside a project, and for a run what it was given.
func TestStateToolset(t *testing.T) {
	const always = "spawn_agent check_agent cancel_agent list_agents memory_search memory_read append_file"
	const five = "state_context state_log state_learn state_decide state_handoff"
	const more = "state_search state_scratch state_focus state_checkpoint state_note state_artifact"
	for _, c := range []struct {
		sets          string
		read          bool
		memory, state memory.Access
		want          string
	}{
		{"", false, memory.FullAccess, memory.FullAccess, always + " " + five},
		{"default,state", false, memory.FullAccess, memory.FullAccess, always + " " + five + " " + more},
		{"state", true, memory.FullAccess, memory.FullAccess, "state_context state_search"},
		{"default,memory", false, memory.FullAccess, memory.FullAccess, always + " create_memory_block update_memory_block append_episodic_log " + five},
		{"", false, memory.NoAccess, memory.NoAccess, "spawn_agent check_agent cancel_agent list_agents"},
		{"", false, memory.NoAccess, memory.FullAccess, "spawn_agent check_agent cancel_agent list_agents " + five},
		{"", false, memory.ReadAccess, memory.ReadAccess, "spawn_agent check_agent cancel_agent list_agents memory_search memory_read state_context"},
	} {
		tools, err := choose(Deps{Toolsets: ParseToolsets(c.sets), ReadOnly: c.read, MemoryAccess: c.memory, StateAccess: c.state, InProject: true})
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, tl := range tools {
			names = append(names, tl.name)
		}
		if got := strings.Join(names, " "); got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
	w := newWorld(t, func(d *Deps) { d.Toolsets = []string{"state"} })
	if msg := w.bad(t.Context(), "state_context", map[string]any{}); !strings.Contains(msg, "reprise init") {
		t.Errorf("outside any project: %s", msg)
	}
	// The default list inside a project is small, too.
	w = newWorld(t, inProject(&fakeState{}))
	p := w.serve(t.Context()).hands()
	p.send(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
	if line := p.next(); len(w.server.tools) > 12 || len(line) >= 12_000 {
		t.Errorf("%d tools, %d bytes", len(w.server.tools), len(line))
	}
	if err := p.end(); err != nil {
		t.Error(err)
	}
	if n := len([]rune(instructions(w.server.tools))); n > maxInstructions {
		t.Errorf("instructions of %d characters", n)
	}
}

// A search that finds nothing says where else it might be, and whose the rest is;
// answers are bounded.
func TestStateSearch(t *testing.T) {
	f := &fakeState{}
	w := newWorld(t, func(d *Deps) { inProject(f)(d); d.Toolsets = []string{"state"} })
	ctx := t.Context()
	said := func(args map[string]any) string { t.Helper(); return mustJSON(t, w.good(ctx, "state_search", args)) }
	f.found = session.Found{Projects: []string{"blog", "shop-old"}}
	if got := said(map[string]any{"query": "kiln", "type": "decision", "since": "2026-02-21", "max_results": 3}); !strings.Contains(got, "other projects are blog, shop-old") || !strings.Contains(got, `"results":[]`) {
		t.Error(got)
	}
	if f.wanted.Query != "kiln" || f.wanted.Type != "decision" || f.wanted.Max != 3 || f.wanted.Since.Format(time.DateOnly) != "2026-02-21" {
		t.Errorf("%+v", f.wanted)
	}
	f.found = session.Found{Elsewhere: []string{"shop-old"}, Own: map[string]int{"ben": 2}}
	if got := said(map[string]any{"since": "2026-02-21T10:00:00Z"}); !strings.Contains(got, "in shop-old: is this the right project?") || !strings.Contains(got, "2 more fit that are the own of ben") {
		t.Error(got)
	}
	if f.wanted.Max != 10 || f.wanted.Since.Hour() != 10 {
		t.Errorf("%+v", f.wanted)
	}
	f.found = session.Found{}
	for range 200 {
		f.found.Results = append(f.found.Results, session.FoundEntry{ID: "e-1", Text: strings.Repeat("word ", 5000)})
		f.found.Elsewhere = append(f.found.Elsewhere, strings.Repeat("p", 60))
		f.found.Projects = append(f.found.Projects, strings.Repeat("p", 60))
	}
	long := session.Noted{ID: "e-1", Text: strings.Repeat("漢字 word ", 5000)}
	for range 10 {
		f.state.Log, f.state.Decisions, f.state.Learnings, f.state.Open, f.state.Handoffs = append(f.state.Log, long), append(f.state.Decisions, long), append(f.state.Learnings, long), append(f.state.Open, long), append(f.state.Handoffs, long)
	}
	f.state.Focus, f.state.Scratch, f.state.About = long.Text, long.Text, long.Text
	for name, args := range map[string]map[string]any{"state_search": {"query": "x"}, "state_context": {}} {
		res := w.call(ctx, name, args)
		if n := tokens(textOf(t, res) + mustJSON(t, res.StructuredContent)); n > maxAnswerTokens {
			t.Errorf("%s: %d tokens", name, n)
		}
	}
}
