package task

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func refused(t *testing.T, s *Store, want string, fn func(*Board) error) {
	t.Helper()
	before := text(t, s, "TODO.md") + text(t, s, "state.json")
	if _, err := s.Change(context.Background(), fn); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("want an error that says %q, got %v", want, err)
	}
	if text(t, s, "TODO.md")+text(t, s, "state.json") != before {
		t.Errorf("%s: refused, and written", want)
	}
}

func TestResearchPlanImplement(t *testing.T) {
	s := storeIn(t.TempDir(), unsynced())
	change(t, s, add("Fix the login", "Later"))
	begin := func(n int, op, session string) func(*Board) error {
		return func(b *Board) error {
			want := Operation{Name: op, Session: session}
			if op == OpImplement {
				if p, _, err := b.Plan(b.State.Tasks[n]); err == nil {
					want.Phase = p.Next().Number
				}
			}
			_, err := b.Begin(n, want, nil)
			return err
		}
	}
	phase := func(n int, to Status) func(*Board) error {
		return func(b *Board) error { _, err := b.SetPhase(1, n, to, "why"); return err }
	}
	change(t, s, begin(1, OpResearch, "sess_1_aaaaaa"))
	change(t, s, begin(1, OpResearch, "sess_1_aaaaaa"))
	refused(t, s, "sess_1_aaaaaa", begin(1, OpPlan, "sess_2_bbbbbb"))
	change(t, s, func(b *Board) error { _, err := b.AddReport(1, []byte("# Found\n")); return err })
	change(t, s, begin(1, OpPlan, "sess_2_bbbbbb"))
	refused(t, s, "has no phase", func(b *Board) error { _, err := b.AddPlan(1, []byte("# Plan\n")); return err })
	change(t, s, func(b *Board) error {
		_, err := b.AddPlan(1, []byte("# Plan\n\n### Phase 1: Read [NOT STARTED]\n\n### Phase 2: Mend [NOT STARTED]\n"))
		return err
	})
	change(t, s, func(b *Board) error { return b.Edit(2, Draft{DependsOn: &[]int{1}}) })
	refused(t, s, "waits for task 1", begin(2, OpImplement, "sess_3_cccccc"))
	change(t, s, begin(1, OpImplement, "sess_3_cccccc"))
	change(t, s, phase(1, InProgress))
	change(t, s, phase(1, Completed))
	change(t, s, begin(1, OpImplement, "sess_3_cccccc"))
	change(t, s, phase(2, InProgress))
	refused(t, s, "no phase 3", phase(3, Completed))

	// Interrupted, taken away from who is dead, and gone on with at phase 2.
	change(t, s, func(b *Board) error { return b.Stop(1, "sess_3_cccccc", "partial", "timeout of 2 h") })
	if got := text(t, s, "TODO.md"); !strings.Contains(got, "[PARTIAL]") {
		t.Error(got)
	}
	b := change(t, s, begin(1, OpImplement, "sess_4_dddddd"))
	p, name, err := b.Plan(b.State.Tasks[1])
	if err != nil || p.Next().Number != 2 || name != "001_fix_the_login/plans/implementation-001.md" {
		t.Fatalf("%v, %s", err, name)
	}
	change(t, s, phase(2, Completed))
	want := `### 1. Fix the login

- **Status**: [COMPLETED]
- **Priority**: medium
- **Language**: general
- **Started**: 2026-11-28T12:00:00Z
- **Completed**: 2026-11-28T12:00:00Z
- **Research**: [research-001.md](001_fix_the_login/reports/research-001.md)
- **Plan**: [implementation-001.md](001_fix_the_login/plans/implementation-001.md)
`
	if got := text(t, s, "TODO.md"); !strings.Contains(got, want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got := text(t, s, name); strings.Count(got, "[COMPLETED]") != 2 {
		t.Error(got)
	}
	b, err = s.Load(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	own, err := b.Own(b.State.Tasks[1])
	if err != nil || len(own) != 5 || own[0].Op != OpResearch || own[3].Status != "partial" || own[3].Reason != "timeout of 2 h" || own[4].Session != "sess_4_dddddd" {
		t.Errorf("%+v, %v", own, err)
	}
	if len(b.State.Tasks[1].Operations) > 0 {
		t.Error("nobody works at it")
	}
	refused(t, s, "take it up again first", begin(1, OpPlan, "sess_5_eeeeee"))
	change(t, s, begin(2, OpImplement, "sess_5_eeeeee"))
	change(t, s, func(b *Board) error { return b.Stop(2, "sess_5_eeeeee", "failed", "no") })
	if b := change(t, s, func(b *Board) error { return nil }); b.State.Tasks[2].Status != NotStarted {
		t.Error(b.State.Tasks[2].Status)
	}
}

func TestArchive(t *testing.T) {
	s := storeIn(t.TempDir(), unsynced())
	change(t, s, add("One", "Two", "Three"))
	write(t, s, "TODO.md", strings.Replace(text(t, s, "TODO.md"), "### 2. Two", "A remark on One.\n\n### 2. Two", 1))
	change(t, s, func(b *Board) error { _, err := b.AddReport(1, []byte("# Found\n")); return err })
	change(t, s, status(1, Completed, ""))
	change(t, s, status(3, Abandoned, "no need"))
	refused(t, s, "only what is completed", func(b *Board) error { _, err := b.Archive(2); return err })
	change(t, s, func(b *Board) error {
		gone, err := b.Archive()
		if len(gone) != 2 {
			t.Errorf("%d", len(gone))
		}
		return err
	})
	if got := text(t, s, "TODO.md"); strings.Contains(got, "One") || !strings.Contains(got, "### 2. Two") {
		t.Error(got)
	}
	if got := text(t, s, "archive/TODO.md"); !containsAll(got, []string{"### 1. One", "A remark on One.", "### 3. Three"}) {
		t.Error(got)
	}
	if got := text(t, s, "archive/001_one/reports/research-001.md"); got != "# Found\n" {
		t.Error(got)
	}
	if _, err := os.Stat(filepath.Join(s.Dir(), "001_one/reports/research-001.md")); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	b := change(t, s, add("Four")) // no number comes again
	if b.State.Tasks[4] == nil || len(b.State.Tasks) != 2 {
		t.Error(b.State.Numbers())
	}
	if r, err := s.Check(context.Background()); err != nil || !r.Agrees() {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestFailures(t *testing.T) {
	s := storeIn(t.TempDir(), unsynced())
	change(t, s, add("One"))
	day := func(n int) time.Time { return clock().AddDate(0, 0, n) }
	record := func(kind, message string, n int) func(*Board) error {
		return func(b *Board) error {
			l, err := b.Failures()
			if err == nil {
				l.Record(Failure{Type: kind, Message: message, Context: Context{Command: "implement", Task: 1}, Timestamp: day(n)}, b.now)
			}
			return err
		}
	}
	change(t, s, record(BuildError, "/home/a/x.go:12: undefined: foo", 1))
	change(t, s, record(BuildError, "/home/b/x.go:99: undefined: foo", 2))
	change(t, s, record(Timeout, "research took longer than 1h0m0s", 3))
	groups := func() []Group {
		b, err := s.Load(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		l, err := b.Failures()
		if err != nil {
			t.Fatal(err)
		}
		return l.Groups()
	}
	g := groups()
	if len(g) != 2 || g[0].Type != BuildError || g[0].Count != 2 || !g[0].FirstSeen.Equal(day(1)) || !g[0].LastSeen.Equal(day(2)) {
		t.Fatalf("%+v", g)
	}
	b := change(t, s, func(b *Board) error { _, err := b.FixPlan(g[:1]); return err })
	if fix := b.State.Tasks[2]; fix.Status != Planned || fix.Title != "Fix build_error errors" || fix.Priority != "high" {
		t.Errorf("%+v", b.State.Tasks[2])
	}
	if got := text(t, s, "002_fix_build_error_errors/plans/implementation-001.md"); !containsAll(got, []string{"### Phase 1: End build_error", "undefined: foo", "seen 2 times"}) {
		t.Error(got)
	}
	change(t, s, func(b *Board) error { _, err := b.SetPhase(2, 1, InProgress, ""); return err })
	change(t, s, func(b *Board) error { _, err := b.SetPhase(2, 1, Completed, ""); return err })
	if g = groups(); g[1].FixStatus != Fixed || g[1].FixTask != 2 || g[1].Failed != 0 {
		t.Errorf("%+v", g)
	}
	change(t, s, record(BuildError, "/home/c/x.go:1: undefined: foo", 5))
	if g = groups(); g[0].FixStatus != Recurred || g[0].Failed != 1 || g[0].Count != 3 {
		t.Errorf("%+v", g)
	}

	write(t, s, "errors.json", `{"mine":1,"errors":[{"id":"x","type":"odd","message":"m","theirs":[1]}]}`)
	change(t, s, record(Timeout, "t", 6))
	if got := strings.Join(strings.Fields(text(t, s, "errors.json")), ""); !containsAll(got, []string{`"mine":1`, `"theirs":[1]`, `"type":"timeout"`}) {
		t.Error(got)
	}
	write(t, s, "errors.json", `{"errors":7}`)
	if _, err := s.Change(context.Background(), record(Timeout, "t", 7)); !errors.Is(err, ErrErrorsDamaged) {
		t.Error(err)
	}
	change(t, s, status(1, Completed, "")) // goes on without
}

func TestMessages(t *testing.T) {
	task := &Task{Number: 191, Title: "Fix subagent delegation hang"}
	for want, got := range map[string]string{
		"task 191 phase 1: add return handling":  Message(task, OpImplement, 1, "Add return handling"),
		"task 191: fix subagent delegation hang": Message(task, OpImplement, 0, ""),
		"task 191 phase 2: HTTP first":           Message(task, OpImplement, 2, "HTTP first"),
		"task 191: complete research":            Message(task, OpResearch, 0, ""),
		"task 191: create implementation plan":   Message(task, OpPlan, 0, ""),
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// A task's own state.json is committed, so another program may be a newer one: what it wrote
// there stays, and a version that is newer is neither read nor written over.
func TestOwnStateKeepsWhatItDoesNotKnow(t *testing.T) {
	s := storeIn(t.TempDir(), unsynced())
	change(t, s, add("One"))
	work := func(session string) {
		t.Helper()
		change(t, s, func(b *Board) error {
			_, err := b.Begin(1, Operation{Name: OpResearch, Session: session}, nil)
			return err
		})
		change(t, s, func(b *Board) error { return b.Stop(1, session, "failed", "no") })
	}
	work("sess_1_aaaaaa")
	const name = "001_one/state.json"
	file := text(t, s, name)
	write(t, s, name, strings.NewReplacer("{\n  \"v\"", "{\n  \"future\": {\"a\": 1},\n  \"v\"", `"status": "failed"`, `"status": "failed", "cost": 1.50`).Replace(file))
	work("sess_2_bbbbbb")
	file = text(t, s, name)
	for _, want := range []string{`"a": 1`, `"cost": 1.50`, "sess_1_aaaaaa", "sess_2_bbbbbb"} {
		if !strings.Contains(file, want) {
			t.Errorf("%s is gone:\n%s", want, file)
		}
	}
	newer := strings.Replace(file, `"v": 1`, `"v": 99`, 1)
	write(t, s, name, newer)
	work("sess_3_cccccc")
	if got := text(t, s, name); got != newer {
		t.Errorf("what a newer program wrote is changed:\n%s", got)
	}
	b, err := s.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if own, err := b.Own(b.State.Tasks[1]); !errors.Is(err, ErrNewer) || own != nil {
		t.Errorf("%v, %v", own, err)
	}
}
