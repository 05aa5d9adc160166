package task

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"reprise/internal/config"
	"reprise/internal/event"
)

// What an agent may answer, and what is amiss with what it may not.
func TestParseReturn(t *testing.T) {
	root := t.TempDir()
	if err := os.WriteFile(filepath.Join(root, "a.go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(root, "out")); err != nil {
		t.Skip(err)
	}
	d := Delegation{Session: "sess_1795898563_chnqes"}
	good := `{"status":"completed","summary":"Done.","artifacts":["a.go"],"metadata":{"session_id":"sess_1795898563_chnqes"},"errors":[]}`
	for _, c := range []struct{ answer, want string }{
		{good, ""},
		{"Here it is:\n```json\n" + good + "\n```\n", ""},
		{"{not this} but " + good + " thanks", ""},
		{strings.Replace(good, "[]}", `["no key"]}`, 1), ""},
		{"", "no JSON object"},
		{"All is well.", "no JSON object"},
		{`{"status":`, "not in the form"},
		{`{"status":7}`, "not in the form"},
		{strings.Replace(good, "completed", "done", 1), `status is "done"`},
		{strings.Replace(good, "Done.", " ", 1), "summary is empty"},
		{strings.Replace(good, "Done.", strings.Repeat("é", 1001), 1), "summary has 1001 characters"},
		{strings.Replace(good, "Done.", strings.Repeat("é", 1000), 1), ""},
		{strings.Replace(good, "chnqes", "abcdef", 1), "another session's"},
		{strings.Replace(good, "sess_1795898563_chnqes", "me", 1), `metadata.session_id is "me"`},
		{strings.Replace(good, "a.go", "b.go", 1), "b.go does not exist"},
		{strings.Replace(good, "a.go", "../../etc/passwd", 1), "etc/passwd"},
		{strings.Replace(good, "a.go", "out", 1), "outside of the project"},
		{strings.Replace(good, "a.go", ".", 1), "is a directory"},
	} {
		_, err := ParseReturn(c.answer, d, root)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.80q: %v, want %q", c.answer, err, c.want)
		}
	}
	// A file of the main checkout may be named from a place of its own, by its whole path.
	place := t.TempDir()
	if _, err := ParseReturn(strings.Replace(good, "a.go", filepath.ToSlash(filepath.Join(root, "a.go")), 1), d, place, root); err != nil {
		t.Error(err)
	}
	if _, err := ParseReturn(good, d, place, root); err == nil {
		t.Error("a relative name is the place's own")
	}
}

// Delegations stand three deep at most, and never in a circle; timeouts are by operation.
func TestDelegate(t *testing.T) {
	for _, c := range []struct {
		from []string
		to   string
		kind string
	}{
		{nil, "researcher", ""}, {[]string{"orchestrator", "a", "b"}, "c", ""},
		{[]string{"orchestrator", "a", "b", "c"}, "d", MaxDepthExceeded}, {[]string{"orchestrator", "a", "b"}, "a", CycleDetected},
	} {
		d, err := Delegate(c.from, c.to, "sess_1_abcdef", time.Hour)
		var de *DelegationError
		if errors.As(err, &de) != (c.kind != "") || de != nil && de.Type != c.kind || d.Path[len(d.Path)-1] != c.to {
			t.Errorf("%v → %s: %+v, %v", c.from, c.to, d, err)
		}
	}
	if got := fmt.Sprint(Timeouts(OpResearch).Seconds(), Timeouts(OpPlan).Seconds(), Timeouts(OpImplement).Seconds(), Timeouts("").Seconds()); got != "3600 1800 7200 300" {
		t.Error(got)
	}
}

func flowIn(t *testing.T, routes map[string]Route) *Flow {
	root := t.TempDir()
	return &Flow{Store: New(root, Options{Disk: unsynced(), Now: clock}), Root: root, Now: clock, Routes: routes,
		Changed: func(context.Context, *Board) {}, Say: func(string, ...any) {}}
}

// Phases that do not wait for each other may be worked at side by side, others not, and
// no more of a language than its route says; the status is what the worst of them is.
func TestPhasesBesideEachOther(t *testing.T) {
	routes := Routed(nil, []config.Route{{Label: "go", Work: config.RouteWork{Concurrent: 2}}}, nil)
	f := flowIn(t, routes)
	ctx := context.Background()
	change(t, f.Store, add("One"))
	change(t, f.Store, func(b *Board) error {
		if err := b.Edit(1, Draft{Language: ptr("go")}); err != nil {
			return err
		}
		_, err := b.AddPlan(1, []byte("### Phase 1: a\n### Phase 2: b\n**Depends on**: none\n### Phase 3: c\n**Depends on**: none\n### Phase 4: d\n**Depends on**: 1, 2\n"))
		return err
	})
	begin := func(phase int) (Brief, error) {
		return f.Begin(ctx, Want{Op: OpImplement, Number: 1, Phase: phase, By: fmt.Sprint("item:", phase)})
	}
	one, err := begin(1)
	if err != nil {
		t.Fatal(err)
	}
	two, err := begin(2)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := begin(2); err != nil || again.Session != two.Session {
		t.Errorf("begun again: %v, %v", again.Session, err)
	}
	if _, err := begin(3); !errors.Is(err, ErrLimit) {
		t.Errorf("a third one: %v", err)
	}
	if _, err := begin(4); !errors.Is(err, ErrWaits) {
		t.Errorf("one that waits: %v", err)
	}
	if err := f.Could(ctx, Want{Op: OpImplement, Number: 1, Phase: 4}); !errors.Is(err, ErrWaits) {
		t.Error(err)
	}
	answer := func(b Brief, status string) string {
		return fmt.Sprintf(`{"status":%q,"summary":"So.","artifacts":[],"metadata":{"session_id":%q}}`, status, b.Session)
	}
	if r, err := f.Finish(ctx, one.Session, answer(one, "partial")); err != nil || r.Task != InProgress {
		t.Errorf("while another is at work: %+v, %v", r, err)
	}
	if r, err := f.Finish(ctx, two.Session, answer(two, "completed")); err != nil || r.Task != Partial {
		t.Errorf("then: %+v, %v", r, err)
	}
	if r, err := f.Finish(ctx, two.Session, answer(two, "failed")); err != nil || r.Status != "completed" {
		t.Errorf("what has ended stays: %+v, %v", r, err)
	}
	if _, err := f.Finish(ctx, "sess_1_nobody", "{}"); !errors.Is(err, ErrNoStep) {
		t.Error(err)
	}
	// Who is out of time, and cannot be looked for, is taken for gone.
	three, err := begin(3)
	if err != nil {
		t.Fatal(err)
	}
	f.Now = func() time.Time { return clock().Add(3 * time.Hour) }
	f.Store.o.Now = f.Now
	other, err := f.Begin(ctx, Want{Op: OpImplement, Number: 1, Phase: 3, By: "client:x"})
	if err != nil || other.Session == three.Session {
		t.Errorf("%v, %v", other, err)
	}
	if r, err := f.TimedOut(ctx, other.Session, "too long"); err != nil || r.Task != InProgress || !strings.Contains(r.Recovery(), "goes on at phase 3") {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestProposals(t *testing.T) {
	s := storeIn(t.TempDir(), unsynced())
	change(t, s, add("One", "Two", "Three", "Four"))
	b := change(t, s, func(b *Board) error {
		for n, files := range map[int]string{1: "a.go, b.go", 2: "b.go", 3: "b.go", 4: "specs/TODO.md, c.go"} {
			if _, err := b.AddPlan(n, []byte("### Phase 1: x\n- **Files**: "+files+"\n")); err != nil {
				return err
			}
		}
		return errors.Join(b.Edit(3, Draft{Priority: ptr("critical")}), b.Edit(2, Draft{DependsOn: &[]int{1}}))
	})
	if got := fmt.Sprint(b.Proposals()); got != "[{1 3 [b.go]} {2 3 [b.go]}]" {
		t.Error(got)
	}
	order, err := b.Order([]int{4, 2, 1})
	if err != nil || !slices.Equal(order, []int{1, 2, 4}) {
		t.Error(order, err)
	}
}

// Each event counts once; those that are how work goes do not count.
func TestDraw(t *testing.T) {
	at := clock().Add(-time.Hour)
	n := 0
	ev := func(kind event.Type, data any) event.Event {
		n++
		raw, _ := json.Marshal(data)
		return event.Event{ID: fmt.Sprint("e", n), TS: at.Add(time.Duration(n) * time.Second), Type: kind, Run: fmt.Sprint("run-", n), Data: raw}
	}
	code := 127
	list := []event.Event{
		ev(event.RunChanged, map[string]any{"status": "failed", "reason": "it died"}),
		ev(event.RunChanged, map[string]any{"status": "timeout"}),
		ev(event.RunChanged, map[string]any{"status": "killed", "reason": "stopped"}),
		ev(event.VerificationFinished, event.VerificationData{Status: "failed", Checks: []event.CheckData{{Name: "unit", Status: "failed"}}}),
		ev(event.VerificationFinished, event.VerificationData{Status: "passed"}),
		ev(event.WorkChanged, event.WorkData{Title: "x", From: "claimed", To: "dead", Note: "no"}),
		ev(event.WorkChanged, event.WorkData{Title: "dropped by a person", From: "ready", To: "dead", Op: "dropped"}),
		ev(event.WorkChanged, event.WorkData{Title: "dropped while it was tried", From: "claimed", To: "dead", Op: "dropped", Note: "not wanted"}),
		ev(event.ToolFailed, event.ToolData{Tool: "shell", Name: "Bash", Error: "exit 1: a test fails"}),
		ev(event.ToolFailed, event.ToolData{Tool: "shell", Name: "Bash", ExitCode: &code, Error: "lake: not found"}),
		ev(event.ToolFailed, event.ToolData{Tool: "mcp", Name: "mcp__lean-lsp__goal", Error: "closed"}),
	}
	events := func(list []event.Event) func(func(event.Event, error) bool) {
		return func(yield func(event.Event, error) bool) {
			for _, e := range list {
				if !yield(e, nil) {
					return
				}
			}
		}
	}
	l := &Failures{}
	if n, err := l.Draw(events(list), clock()); err != nil || n != 6 {
		t.Errorf("%d, %v", n, err)
	}
	data, err := l.Bytes(clock())
	if err != nil {
		t.Fatal(err)
	}
	again, err := ParseFailures(data)
	if err != nil {
		t.Fatal(err)
	}
	list = append(list, ev(event.RunChanged, map[string]any{"status": "failed", "reason": "it died"}))
	if n, err := again.Draw(events(list), clock()); err != nil || n != 1 {
		t.Errorf("again: %d, %v", n, err)
	}
	for _, g := range again.Groups() {
		if want := map[bool]int{true: 2, false: 1}[g.Message == "it died"]; g.Count != want {
			t.Errorf("%s: %d", g.Message, g.Count)
		}
	}
}

// TestEndedBadly: that an agent hung is for one that gave nothing back; reasons are those
// that runs and the loop give.
func TestEndedBadly(t *testing.T) {
	for _, c := range []struct{ reason, want string }{
		{"the agent ended with an error: 429, timeout of the proxy", ToolFailure},
		{"the agent ended with an error: it failed", ToolFailure},
		{"the agent ended with an error", ToolFailure},
		{"the model's API failed with status 529: overloaded", ToolFailure},
		{"reported success, but the process ended with exit code 1", ToolFailure},
		{"the agent stopped early: refusal", ToolFailure},
		{"failed 2 of 2: result: the agent ended with an error: it failed", ToolFailure},
		{"failed 2 of 2: crash: ended without a result (signal SIGKILL)", ToolFailure},
		{"ended without a result (exit code 1): no login", ToolFailure},
		{"failed to start: no such program", ToolFailure},
		{"stopped at its time limit", Timeout},
		{"ended without a result (exit code 0)", DelegationHang},
		{"the agent ended without an answer", DelegationHang},
		{"failed 2 of 2: no change", DelegationHang},
		{"", DelegationHang},
	} {
		if got := endedBadly(c.reason); got != c.want {
			t.Errorf("%q: %s, not %s", c.reason, got, c.want)
		}
	}
}

func TestFindings(t *testing.T) {
	got, err := ParseFindings([]byte("# Review\n\n### Finding: low one\n- **Severity**: low\n\n### Finding 2: Keys [x] are logged\n- **Severity**: `critical`\n- **Language**: Go\n- **Files**: `a.go`, b.go\n\nSeen.\n#### 5. no task\n## Other\n### Finding\n"))
	if err != nil || len(got) != 2 || got[0].Title != "Keys [x] are logged" || got[0].Severity != "critical" || got[0].Language != "go" || len(got[0].Files) != 2 || !strings.Contains(got[0].Text, "    #### 5. no task") {
		t.Errorf("%+v, %v", got, err)
	}
}

// The user's routes and an approved project's change what is shipped; a project cannot
// widen what the user allows.
func TestRouted(t *testing.T) {
	routes := Routed([]string{"Read", "Bash"}, []config.Route{{Label: "go", Client: "codex", Turns: 10}},
		[]config.Route{{Label: "go", Client: "claude", Turns: 99, Tools: []string{"Read", "WebFetch"}, Work: config.RouteWork{Prompt: "Mind it.", Agents: map[string]string{OpPlan: "go-planner"}}}, {Label: "zig"}})
	r := RouteOf(routes, "go")
	if r.Client != "codex" || r.Turns != 10 || !slices.Equal(r.Tools, []string{"Read"}) || r.Agent(OpPlan) != "go-planner" || r.Agent(OpResearch) != "researcher" || !strings.HasSuffix(r.Guidance, "Mind it.") {
		t.Errorf("%+v", r)
	}
	for language, want := range map[string]string{"lean": "lean-implementation-agent", "latex": "latex-implementation-agent", "markdown": "implementer", "zig": "implementer", "cobol": "implementer", "": "implementer"} {
		if got := RouteOf(routes, language).Agent(OpImplement); got != want {
			t.Errorf("%s: %s", language, got)
		}
	}
	if r := RouteOf(routes, "python"); r.Agent(OpPlan) != "planner" || !slices.Equal(RouteOf(routes, "lean").Servers, []string{"lean-lsp"}) {
		t.Errorf("%+v", r)
	}
}

// The form that clients hold their models to is the one that is read: the same fields, the
// same statuses; and an answer that fills it is in order.
func TestReturnSchema(t *testing.T) {
	type node struct {
		Properties map[string]node `json:"properties"`
		Items      *node           `json:"items"`
		Required   []string        `json:"required"`
		Enum       []string        `json:"enum"`
		More       *bool           `json:"additionalProperties"`
	}
	var schema node
	if err := json.Unmarshal(returnSchema(), &schema); err != nil {
		t.Fatal(err)
	}
	d := Delegation{Session: "sess_1_abcdef"}
	for _, status := range schema.Properties["status"].Enum {
		r := Return{Status: status, Summary: "So.", Artifacts: []string{}, Metadata: ReturnAbout{Session: d.Session, Path: []string{"orchestrator", "a"}}, Errors: []ReturnErr{{"timeout", "late"}}}
		data, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := ParseReturn(string(data), d, t.TempDir()); err != nil {
			t.Errorf("%s: %v", status, err)
		}
		var all map[string]any
		if err := json.Unmarshal(data, &all); err != nil {
			t.Fatal(err)
		}
		var compare func(where string, n node, v any)
		compare = func(where string, n node, v any) {
			switch v := v.(type) {
			case map[string]any:
				if n.More == nil || *n.More || len(n.Required) != len(n.Properties) {
					t.Errorf("%s: further fields are let in, or some may be left out", where)
				}
				for name, below := range v {
					if _, ok := n.Properties[name]; !ok {
						t.Errorf("%s: %s is read, and is not in the schema", where, name)
					}
					compare(where+"."+name, n.Properties[name], below)
				}
				for name := range n.Properties {
					if _, ok := v[name]; !ok {
						t.Errorf("%s: %s is in the schema, and is not read", where, name)
					}
				}
			case []any:
				if n.Items == nil {
					t.Errorf("%s: no form of its items", where)
					return
				}
				for _, item := range v {
					compare(where, *n.Items, item)
				}
			}
		}
		compare("answer", schema, all)
	}
	if got := len(schema.Properties["status"].Enum); got != 4 {
		t.Errorf("%d statuses", got)
	}
}

// A task whose last phase is completed, and whose end nobody lived to write down, is ended by
// whatever comes to it next; until then the check says what it lacks.
func TestEndLeft(t *testing.T) {
	ctx := context.Background()
	for name, ends := range map[string]func(f *Flow) error{
		"implement": func(f *Flow) error {
			list, err := f.Implement(ctx, 1, 0, false)
			if err == nil && (len(list) != 1 || list[0].Status != "completed" || list[0].Task != Completed || list[0].Run != "") {
				err = fmt.Errorf("%+v", list)
			}
			return err
		},
		"side by side": func(f *Flow) error { _, err := f.Phases(ctx, 1, 2); return err },
		"drive":        func(f *Flow) error { _, err := f.Drive(ctx, []int{1}, 1); return err },
		"begin": func(f *Flow) error {
			if _, err := f.Begin(ctx, Want{Op: OpImplement, Number: 1}); !errors.Is(err, ErrNothingLeft) || !strings.Contains(err.Error(), "is now") {
				return fmt.Errorf("begun: %w", err)
			}
			return nil
		},
		"recover": func(f *Flow) error {
			_, err := f.Store.Change(ctx, func(b *Board) error { return b.Recover(1) })
			return err
		},
	} {
		f := flowIn(t, nil)
		f.Places = nil
		change(t, f.Store, add("One"))
		change(t, f.Store, func(b *Board) error {
			_, err := b.AddPlan(1, []byte("### Phase 1: a\n"))
			return err
		})
		s, err := f.Begin(ctx, Want{Op: OpImplement, Number: 1})
		if err != nil {
			t.Fatal(err)
		}
		change(t, f.Store, func(b *Board) error { // and there it is killed
			o, err := b.operation(s.Session, 1)
			if err != nil {
				return err
			}
			return b.endPhase(b.State.Tasks[1], o, "completed", "")
		})
		if r, err := f.Store.Check(ctx); err != nil || len(r.Left) != 1 || !strings.Contains(r.Left[0].What, "`reprise task implement 1`") {
			t.Errorf("%s: %+v, %v", name, r.Left, err)
		}
		if err := ends(f); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		b, err := f.Store.Load(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if task := b.State.Tasks[1]; task.Status != Completed || task.Summary == "" {
			t.Errorf("%s: %+v", name, task)
		}
		if r, err := f.Store.Check(ctx); err != nil || len(r.Left) != 0 {
			t.Errorf("%s: %+v, %v", name, r.Left, err)
		}
		if _, done, err := f.EndLeft(ctx, 1); done || err != nil {
			t.Errorf("%s: ended twice: %v", name, err)
		}
	}
}
