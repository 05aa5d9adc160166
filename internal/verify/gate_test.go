package verify

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"reprise/internal/config"
)

// gated is a world whose one check is that there is no file named broken.
func gated(t *testing.T) (*world, *Gate) {
	w := newWorld(t, sh("whole", `if test -e broken; then echo "error: broken is there" >&2; exit 1; fi`))
	return w, &Gate{Verifier: w.o, When: "changed", MaxBlocks: 2, Timeout: 30 * time.Second, Off: []string{"review"}}
}

// settle waits until the file system's clock tells what was written last from
// what is written next.
func settle(w *world) {
	w.t.Helper()
	v, err := newVerifier(context.Background(), w.o)
	if err != nil {
		w.t.Fatal(err)
	}
	for {
		l, err := v.tree.List(context.Background(), time.Now())
		if err != nil {
			w.t.Fatal(err)
		}
		if l.Settled {
			return
		}
	}
}

func turn(text string) Turn { return Turn{Client: "claude", Session: "s1", Text: text} }

func (g *Gate) end(t *testing.T, tn Turn) Verdict {
	t.Helper()
	v, err := g.End(context.Background(), tn)
	if err != nil {
		t.Fatal(err)
	}
	if v.Block && (v.Reason == "" || len([]rune(v.Reason)) > maxReason) || v.Block == (v.Why != "") {
		t.Fatalf("%+v", v)
	}
	return v
}

func (g *Gate) begin(t *testing.T, w *world, tn Turn) {
	t.Helper()
	settle(w)
	if err := g.Begin(context.Background(), tn); err != nil {
		t.Fatal(err)
	}
}

// The life of a session: nothing changed, broken, told twice and no more, mended.
func TestGateOfASession(t *testing.T) {
	t.Parallel()
	w, g := gated(t)
	w.commit()
	g.begin(t, w, turn(""))
	if v := g.end(t, turn("I read it all. All done.")); v.Block || v.Result != nil {
		t.Errorf("nothing changed: %+v", v)
	}
	w.put("broken", "x")
	first := g.end(t, turn("All done."))
	for _, want := range []string{`Check "whole"`, "| error: broken is there", "Command: if test -e broken", "told 1 of at most 2", first.Result.ID} {
		if !strings.Contains(first.Reason, want) {
			t.Errorf("the reason lacks %q:\n%s", want, first.Reason)
		}
	}
	if !first.Result.Blocked || first.Result.Claim != "done" || first.Result.Issues[0].Gate != "regressions" {
		t.Errorf("%+v", first.Result)
	}
	active := turn("All done.")
	active.Active = true
	if v := g.end(t, active); !v.Block || !strings.Contains(v.Reason, "told 2 of") {
		t.Errorf("the second time: %+v", v)
	}
	loose := func() string {
		t.Helper()
		e, err := w.o.Store.Ends()
		if err != nil {
			t.Fatal(err)
		}
		if e.Loose == nil {
			return ""
		}
		return e.Loose.Loose()
	}
	if got := loose(); got != "" {
		t.Errorf("the turn goes on: %q", got)
	}
	for i := range 3 {
		v := g.end(t, active)
		if v.Block || v.Result.Status != Failed || !strings.Contains(v.Why, "already") {
			t.Errorf("more than twice: %+v", v)
		}
		// Nothing comes of it, so the checks do not run again in the very same tree.
		if v.Result.Reused == "" || len(v.Result.Checks) != 1 || len(v.Result.Blocking()) != 1 {
			t.Errorf("time %d: %+v", i, v.Result)
		}
		if got := loose(); !strings.HasPrefix(got, "ended although its work is not done: whole: ended with exit code 1") {
			t.Errorf("it ended: %q", got)
		}
	}
	w.put("more", "x")
	if v := g.end(t, active); v.Block || v.Result.Status != Failed || v.Result.Reused != "" {
		t.Errorf("something changed, and may have mended it: %+v", v.Result)
	}
	if err := os.Remove(filepath.Join(w.work, "broken")); err != nil {
		t.Fatal(err)
	}
	w.put("made", "x")
	if v := g.end(t, active); v.Block || v.Result.Status != Passed || loose() != "" {
		t.Errorf("mended: %+v", v)
	}
	settle(w)
	if v := g.end(t, turn("All done.")); v.Block {
		t.Errorf("green: %+v", v)
	}
	if v := g.end(t, turn("All done.")); v.Block || v.Result != nil && v.Result.Reused == "" {
		t.Errorf("nothing changed since it was green: %+v", v.Why)
	}
	w.put("broken", "x")
	if v := g.end(t, turn("All done.")); !v.Block || !strings.Contains(v.Reason, "told 1 of") {
		t.Errorf("another turn counts anew: %+v", v)
	}
}

// Where the commit at which the session began is gone, the session's own commit does not
// excuse what it broke.
func TestGateWhoseBaseIsGone(t *testing.T) {
	t.Parallel()
	w, g := gated(t)
	w.commit()
	g.begin(t, w, turn(""))
	w.put("broken", "x")
	w.git("add", "-A")
	w.git("commit", "-q", "--amend", "-m", "two")
	w.git("reflog", "expire", "--expire=now", "--all")
	w.git("gc", "-q", "--prune=now")
	v := g.end(t, turn("All done."))
	if !v.Block || v.Result.Checks[0].Excused || !slices.ContainsFunc(v.Result.Issues, func(i Issue) bool { return strings.Contains(i.Message, "not there any more, so nothing is excused") }) {
		t.Errorf("%+v", v.Result)
	}
}

// What somebody verified against another base, under a smaller profile or without the
// gates that are on says nothing of what the session did.
func TestGateTakesNoLesserAnswer(t *testing.T) {
	t.Parallel()
	w, g := gated(t)
	w.commit()
	g.begin(t, w, turn(""))
	w.put("broken", "x")
	w.commit()
	if v := g.end(t, turn("All done.")); !v.Block {
		t.Errorf("committed, and broken: %+v", v)
	}
	w.put("a.txt", "changed\n")
	// Its own failure, seen from its own commit, is excused there.
	if r := w.run(Request{Trigger: Manual, Base: "HEAD", Regressions: true}); r.Status != Passed || !r.Checks[0].Excused {
		t.Fatalf("%s %+v", r.Status, r.Checks)
	}
	settle(w)
	if v := g.end(t, turn("All done.")); !v.Block {
		t.Errorf("it passed against another base: %+v", v)
	}
	if base, err := g.BaseOf(context.Background(), turn("")); err != nil || base != w.git("rev-parse", "HEAD~1") {
		t.Errorf("the session's base: %q, %v", base, err)
	}
	w.put("small", "x")
	if err := os.Remove(filepath.Join(w.work, "broken")); err != nil {
		t.Fatal(err)
	}
	// What passes soundly passes against any base, but for no larger profile.
	w.o.Checks.Checks[1] = []config.Check{{Name: "more", Shell: "! test -e small", Dir: ".", TimeoutSeconds: 20}}
	w.o.Checks.Risk[1] = config.Risk{Files: 2}
	settle(w)
	if r := w.run(Request{Trigger: Manual, Base: "HEAD", Wishes: []Wish{{By: "x", Profile: "quick"}}}); r.Status != Passed {
		t.Fatalf("%s %+v", r.Status, r.Checks)
	}
	g.Verifier = w.o
	if v := g.end(t, turn("All done.")); !v.Block || !strings.Contains(v.Reason, `"more"`) {
		t.Errorf("the change asks for more than what passed: %+v", v)
	}
	w.put("small2", "x")
	if err := os.Remove(filepath.Join(w.work, "small")); err != nil {
		t.Fatal(err)
	}
	settle(w)
	if r := w.run(Request{Trigger: Manual, Base: "HEAD", Wishes: []Wish{{By: "x", Profile: "deep"}}}); r.Status != Passed {
		t.Fatalf("%s %+v", r.Status, r.Checks)
	}
	if v := g.end(t, turn("All done.")); v.Block || v.Result != nil {
		t.Errorf("all of it passed: %+v", v)
	}
	// Nobody reviewed it yet.
	w.put("made", "x")
	settle(w)
	if r := w.run(Request{Trigger: Manual, Wishes: []Wish{{By: "x", Profile: "deep"}}}); r.Status != Passed {
		t.Fatalf("%s %+v", r.Status, r.Checks)
	}
	g.Off, g.Reviewers, g.Reviews = nil, []Reviewer{{"cheap", 1, "deep"}}, fakeReviews{"cheap": {Verdict: "reject", Findings: []string{"a placeholder"}}}
	if v := g.end(t, turn("All done.")); !v.Block || v.Result.Reused == "" {
		t.Errorf("it was not reviewed: %+v", v)
	}
	g.Reviews = fakeReviews{"cheap": {Verdict: "approve"}}
	if v := g.end(t, turn("All done.")); v.Block || v.Result == nil || !slices.Equal(v.Result.Gates, []string{"review"}) {
		t.Errorf("it is approved: %+v", v)
	}
	if v := g.end(t, turn("All done.")); v.Block || v.Result != nil {
		t.Errorf("nothing changed since: %+v", v)
	}
}

// What the agent says of itself decides whether there is something to look at.
func TestGateAndClaims(t *testing.T) {
	t.Parallel()
	w, g := gated(t)
	g.begin(t, w, turn(""))
	w.put("broken", "x")
	for _, tc := range []struct {
		when, text string
		look       bool
	}{
		{"changed", "All done.", true},
		{"changed", "I changed the file.", true},
		{"changed", "", true},
		{"changed", "Not done yet.", false},
		{"changed", "Should I delete the table?", false},
		{"claimed", "All done.", true},
		{"claimed", "I changed the file.", false},
		{"always", "Not done yet.", true},
	} {
		g.When = tc.when
		tn := turn(tc.text)
		tn.Session = tc.when + tc.text
		if v := g.end(t, tn); v.Block != tc.look {
			t.Errorf("%+v: %+v", tc, v)
		}
	}
}

// A session cannot be kept for ever, whatever the client says of its turns and
// whatever becomes of what is noted about it.
func TestGateNeverLoops(t *testing.T) {
	for _, tc := range []struct {
		name   string
		active bool // the client tells that the turn goes on
		spoil  func(file string) error
		most   int
	}{
		{"nothing is told", false, func(string) error { return nil }, sessionBlocks},
		{"lost", true, os.Remove, 1},
		{"lost, nothing is told", false, os.Remove, sessionBlocks},
		{"damaged", true, func(f string) error { return os.WriteFile(f, []byte("{"), 0o600) }, 1},
		{"set back", true, func(f string) error { return edit(f, `"blocks": 1`, `"blocks": 0`) }, 1},
		{"a directory in its place", true, func(f string) error { return errors.Join(os.Remove(f), os.Mkdir(f, 0o700)) }, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			w, g := gated(t)
			g.MaxBlocks = 1
			w.put("broken", "x")
			tn := turn("All done.")
			file := filepath.Join(w.o.Store.gates(), gateKey(tn)+".json")
			blocks := 0
			ends := sessionBlocks + 2
			if tc.active {
				ends = 3
			}
			for i := range ends {
				tn.Active = tc.active && i > 0
				v, err := g.End(context.Background(), tn)
				if err != nil && v.Block {
					t.Fatal("an error, and a block")
				}
				if v.Block {
					blocks++
				}
				if fi, err := os.Lstat(file); err == nil && fi.Mode().IsRegular() {
					if err := tc.spoil(file); err != nil {
						t.Fatal(err)
					}
				}
			}
			if blocks > tc.most || blocks == 0 {
				t.Errorf("kept %d times, at most %d", blocks, tc.most)
			}
		})
	}
}

// A client that says of every end of a turn that it was not kept before gains no
// blocks by it: the user's prompts are what turns begin with.
func TestGateCountsByPrompts(t *testing.T) {
	t.Parallel()
	w, g := gated(t)
	w.put("broken", "x")
	end := func(prompt string, active bool) bool {
		tn := turn("All done.")
		tn.Prompt, tn.Active = prompt, active
		return g.end(t, tn).Block
	}
	for i, tc := range []struct {
		prompt string
		active bool
		want   bool
	}{
		{"p1", false, true}, {"p1", false, true}, {"p1", false, false}, {"p1", true, false}, {"p1", false, false},
		{"", false, false},                                            // the log cannot be read just now
		{"p2", false, true}, {"p2", true, true}, {"p2", false, false}, // another turn
		{"p3", true, false}, {"p3", false, false}, // what the client made of the block is no turn of the user's
		{"p4", false, true},
	} {
		if got := end(tc.prompt, tc.active); got != tc.want {
			t.Errorf("%d: %+v: kept %t", i, tc, got)
		}
	}
	// Lost: what was said before counts until the user says something.
	if err := os.Remove(filepath.Join(w.o.Store.gates(), gateKey(turn(""))+".json")); err != nil {
		t.Fatal(err)
	}
	if end("p4", false) || !end("p5", false) {
		t.Error("after the count was lost")
	}
}

func edit(file, old, new string) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	return os.WriteFile(file, []byte(strings.ReplaceAll(string(data), old, new)), 0o600)
}

type fakeTasks struct {
	task Task
	ok   bool
	err  error
}

func (f fakeTasks) Current(context.Context, string) (Task, bool, error) { return f.task, f.ok, f.err }

// The current task keeps a turn, too, checks or none.
func TestGateOfTasks(t *testing.T) {
	t.Parallel()
	w, g := gated(t)
	g.begin(t, w, turn(""))
	w.put("made", "x")
	g.Tasks = fakeTasks{ok: true, task: Task{ID: "12", Criteria: []Criterion{{Text: "it runs", Met: true}, {Text: "it is documented"}}, Open: []string{"write the test"}}}
	v := g.end(t, turn("All done."))
	if !v.Block || !strings.Contains(v.Reason, "task 12: acceptance criterion not met: it is documented") || !strings.Contains(v.Reason, "open: write the test") || strings.Contains(v.Reason, "it runs") {
		t.Errorf("%+v", v)
	}
	g.Off = append(g.Off, "tasks")
	if v := g.end(t, turn("All done.")); v.Block {
		t.Errorf("the gate is off: %+v", v)
	}
	g.Off = nil
	g.Tasks = fakeTasks{err: errors.New("unreadable")}
	if v := g.end(t, turn("All done.")); v.Block {
		t.Errorf("it cannot be told: %+v", v)
	}
	g.Tasks = fakeTasks{}
	if v := g.end(t, turn("All done.")); v.Block {
		t.Errorf("no task: %+v", v)
	}
	g.Verifier.Checks = nil
	g.Tasks = fakeTasks{ok: true, task: Task{ID: "12", Open: []string{"x"}}}
	tn := turn("All done.")
	tn.Session = "s2"
	if v := g.end(t, tn); !v.Block {
		t.Errorf("no checks, an open task: %+v", v)
	}
}

type fakeReviews map[string]Review

func (f fakeReviews) Review(_ context.Context, who Reviewer, req ReviewRequest) (Review, error) {
	if !strings.Contains(req.Diff, "new file made") {
		return Review{}, fmt.Errorf("the change is not shown: %q", req.Diff)
	}
	r, ok := f[who.Name]
	if !ok {
		return Review{}, errors.New("not there")
	}
	return r, nil
}

func TestGateOfReviews(t *testing.T) {
	t.Parallel()
	w, g := gated(t)
	w.commit()
	g.begin(t, w, turn(""))
	w.put("made", "x")
	g.Off = nil
	g.Reviewers = []Reviewer{{"strong", 9, "deep"}, {"cheap", 1, "quick"}}
	for i, tc := range []struct {
		reviews fakeReviews
		block   bool
		in      string
	}{
		{fakeReviews{"cheap": {Verdict: "approve"}}, false, ""},
		{fakeReviews{"cheap": {Verdict: "reject", Findings: []string{"a placeholder"}}}, true, "cheap: a placeholder"},
		{fakeReviews{"cheap": {Verdict: "unsure"}, "strong": {Verdict: "reject", Findings: []string{"wrong"}}}, true, "strong: wrong"},
		{fakeReviews{"strong": {Verdict: "approve"}}, false, ""},
		{fakeReviews{}, false, ""},
	} {
		g.Reviews = tc.reviews
		w.put("made", fmt.Sprint("x", i))
		tn := turn("All done.")
		tn.Session = fmt.Sprint("r", i)
		if v := g.end(t, tn); v.Block != tc.block || !strings.Contains(v.Reason, tc.in) {
			t.Errorf("%d: %+v %+v", i, v, v.Result.Issues)
		}
	}
}

// No time, no tree, no session, inside a verification: no opinion.
func TestGateWithoutAnOpinion(t *testing.T) {
	t.Parallel()
	w, g := gated(t)
	w.put("broken", "x")
	short := *g
	short.Timeout = time.Nanosecond
	if v, _ := short.End(context.Background(), turn("All done.")); v.Block {
		t.Error("no time")
	}
	if v, err := g.End(context.Background(), Turn{Client: "claude", Text: "All done."}); v.Block || err == nil {
		t.Error("no session")
	}
	nested := *g
	nested.Verifier.Env.Vars = map[string]string{NestedVar: "1", "PATH": os.Getenv("PATH")}
	if v := nested.end(t, turn("All done.")); v.Block {
		t.Error("inside a verification")
	}
	slow := *g
	v := *w.o.Checks
	slow.Verifier.Checks = &v
	slow.Verifier.Checks.Checks[0] = []config.Check{{Name: "slow", Shell: "sleep 600", Dir: ".", TimeoutSeconds: 900}}
	for slow.Timeout = time.Second; ; slow.Timeout *= 4 { // a busy machine may take that for the snapshot alone
		v, err := slow.End(context.Background(), turn("All done."))
		if v.Block || err != nil || v.Result == nil || v.Result.Status != Error {
			t.Errorf("the time was over: %+v %v", v, err)
		} else if len(v.Result.Checks) == 0 && slow.Timeout < time.Minute {
			continue
		} else if len(v.Result.Checks) == 0 || v.Result.Checks[0].Status != Error {
			t.Errorf("the check was not cut off: %+v", v.Result)
		}
		break
	}
	never := *g
	never.MaxBlocks = 0
	if v := never.end(t, turn("All done.")); v.Block || v.Result.Status != Failed {
		t.Errorf("no blocks at all: %+v", v)
	}
}

// Where the tree cannot be copied, or not even found, a result says so, and the agent is
// told once, if it could be looked at when its session began.
func TestGateThatCannotFindOut(t *testing.T) {
	t.Parallel()
	w, g := gated(t)
	w.commit()
	g.begin(t, w, turn(""))
	w.put("broken", "x")
	w.put("core.1", strings.Repeat("0123456789abcdef", 4096))
	limited := *w.o.Checks
	limited.MaxMB = 1
	g.Verifier.Checks = &limited
	if err := os.Truncate(filepath.Join(w.work, "core.1"), 8<<20); err != nil {
		t.Fatal(err)
	}
	v := g.end(t, turn("All done."))
	for _, want := range []string{"could not be run", "too large to be copied", "core.1 is the largest, of 8 MiB", "git ignore it", "told once"} {
		if !strings.Contains(v.Reason, want) {
			t.Errorf("the agent is not told %q:\n%s", want, v.Reason)
		}
	}
	if !v.Block || v.Result.Status != Error || !v.Result.Blocked || v.Result.Trigger != Stop {
		t.Errorf("%+v", v.Result)
	}
	kept, err := w.o.Store.Get("latest")
	if err != nil || kept.ID != v.Result.ID || !strings.Contains(kept.Unjudged(), "too large") || len(w.recs) != 1 {
		t.Errorf("%+v %v, %d recorded", kept, err, len(w.recs))
	}
	active := turn("All done.")
	active.Active = true
	for _, tn := range []Turn{active, turn("All done.")} {
		if v := g.end(t, tn); v.Block || v.Result == nil || v.Result.Status != Error || !strings.Contains(v.Why, "told already") {
			t.Errorf("told again: %+v", v)
		}
	}
	// One whose session began in such a tree can do nothing about it.
	other := turn("All done.")
	other.Session = "s2"
	if v := g.end(t, other); v.Block || v.Result == nil || v.Result.Unjudged() == "" {
		t.Errorf("another session: %+v", v)
	}
	if e, err := w.o.Store.Ends(); err != nil || e.Loose == nil || e.Loose.Session != "s2" || e.Unjudged != 4 || e.Newest != nil && e.Newest.ID != e.Loose.ID {
		t.Errorf("%+v %v", e, err)
	}
	if err := os.Remove(filepath.Join(w.work, "core.1")); err != nil {
		t.Fatal(err)
	}
	if v := g.end(t, active); !v.Block || v.Result.Status != Failed {
		t.Errorf("out of the way: %+v", v)
	}
	if e, err := w.o.Store.Ends(); err != nil || e.Loose != nil {
		t.Errorf("it was judged since: %+v %v", e, err)
	}
	if v, err := g.End(context.Background(), Turn{Client: "claude", Text: "All done."}); v.Block || err == nil || v.Result.Unjudged() == "" {
		t.Errorf("no session: %+v %v", v, err)
	}
	w.run(Request{Trigger: Manual})
	gone := *g
	gone.Verifier.Env.Dir = filepath.Join(w.work, "nowhere")
	if v, err := gone.End(context.Background(), turn("All done.")); v.Block || err == nil || v.Result.Unjudged() == "" {
		t.Errorf("no tree: %+v %v", v, err)
	}
}

func TestTellAfterFailure(t *testing.T) {
	w, g := gated(t)
	w.put("broken", "x")
	r := w.run(Request{Trigger: ToolFailure, Session: "s1", Client: "claude"})
	text, err := g.Tell(context.Background(), turn(""))
	if err != nil || !strings.Contains(text, "broken is there") || !strings.Contains(text, r.ID) {
		t.Errorf("%q %v", text, err)
	}
	if text, _ := g.Tell(context.Background(), turn("")); text != "" {
		t.Errorf("told twice: %q", text)
	}
	other := turn("")
	other.Session = "s2"
	if text, _ := g.Tell(context.Background(), other); text != "" {
		t.Errorf("another session is told %q", text)
	}
}

func TestSessionsAndReset(t *testing.T) {
	w, g := gated(t)
	w.put("broken", "x")
	if v := g.end(t, turn("All done.")); !v.Block {
		t.Fatal(v)
	}
	list, err := w.o.Store.Sessions()
	if err != nil || len(list) != 1 || list[0].Total != 1 || list[0].Problem != "" {
		t.Fatalf("%+v %v", list, err)
	}
	if n, err := w.o.Store.Reset(context.Background(), "s"); n != 1 || err != nil {
		t.Errorf("reset %d, %v", n, err)
	}
	if list, _ := w.o.Store.Sessions(); list[0].Total != 0 {
		t.Errorf("%+v", list)
	}
}

func TestChoose(t *testing.T) {
	v := &config.Verify{}
	v.Risk[1], v.Risk[2] = config.Risk{Files: 3, Lines: 50}, config.Risk{Files: 20}
	for _, tc := range []struct {
		risk   RiskSeen
		wishes []Wish
		want   string
	}{
		{RiskSeen{Known: true, Files: 1, Lines: 2}, nil, "quick"},
		{RiskSeen{Known: true, Files: 3}, nil, "standard"},
		{RiskSeen{Known: true, Files: 1, Lines: 50}, nil, "standard"},
		{RiskSeen{Known: true, Files: 1, Lines: 50_000}, nil, "standard"},
		{RiskSeen{Known: true, Files: 20}, nil, "deep"},
		{RiskSeen{Known: true, Files: 1, Protected: []string{"x.sql"}}, nil, "deep"},
		{RiskSeen{}, nil, "standard"},
		{RiskSeen{Known: true, Files: 20}, []Wish{{"a", ""}, {"b", "auto"}, {"c", "quick"}, {"d", "deep"}}, "quick"},
	} {
		if got, why := Choose(v, tc.risk, tc.wishes...); got != tc.want || why == "" {
			t.Errorf("%+v: %s (%s)", tc, got, why)
		}
	}
	for _, tc := range []struct {
		pattern, path string
		want          bool
	}{
		{"*.sql", "a/b/x.sql", true}, {"migrations/", "db/migrations/1.txt", true}, {"migrations/", "migrations", false},
		{"db/**", "db/a/b", true}, {"/db", "db", false}, {".github", ".github/workflows/x.yml", true}, {"go.mod", "go.mod", true}, {"go.mod", "go.module", false},
	} {
		if got := protected([]string{tc.pattern}, tc.path); got != tc.want {
			t.Errorf("%+v: %v", tc, got)
		}
	}
}

// A result says which checks ran, not which would have if there were any.
func TestChooseWhatIsDefined(t *testing.T) {
	v := &config.Verify{}
	v.Checks[1] = []config.Check{{Name: "x"}}
	for wish, want := range map[string]string{"quick": "standard", "standard": "standard", "deep": "deep", "": "standard"} {
		if got, why := Choose(v, RiskSeen{Known: true, Files: 1, Lines: 1}, Wish{"they say so", wish}); got != want || strings.Contains(why, "no check is") != (wish == "quick" || wish == "") {
			t.Errorf("%q: %s, %s", wish, got, why)
		}
	}
	if got, why := Choose(v, RiskSeen{Known: true, Files: 1, Lines: 1}); why != "a small change: 1 file, 1 line; no check is quick, so it is standard" {
		t.Errorf("%s, %s", got, why)
	}
}

func TestChooseReviewers(t *testing.T) {
	all := []Reviewer{{"strong", 9, "deep"}, {"cheap", 1, "quick"}, {"middle", 5, "standard"}}
	names := func(list []Reviewer) (out []string) {
		for _, r := range list {
			out = append(out, r.Name)
		}
		return out
	}
	for _, tc := range []struct {
		profile, wish string
		want          []string
	}{
		{"quick", "", []string{"cheap", "middle", "strong"}},
		{"standard", "", []string{"middle", "strong"}},
		{"deep", "", []string{"strong"}},
		{"deep", "cheap", []string{"cheap"}},
		{"deep", "nobody", nil},
	} {
		if got := names(ChooseReviewers(all, tc.profile, tc.wish)); !slices.Equal(got, tc.want) {
			t.Errorf("%+v: %v", tc, got)
		}
	}
	if got := names(ChooseReviewers(all[1:2], "deep", "")); !slices.Equal(got, []string{"cheap"}) {
		t.Errorf("only a weak one: %v", got)
	}
}

func TestFailuresAndLines(t *testing.T) {
	text := "=== RUN\n--- FAIL: TestA (0.01s)\n    a_test.go:3: got 1\nFAIL\treprise/x\t0.1s\nFAILED t.py::test_b - assert\ntest c::d ... FAILED\nnot ok 3 - e # time=3ms\nnot ok 4 - h # TODO\n ● f › g (3 ms)\nok\n"
	if got, want := heard(text).names, []string{"TestA", "reprise/x", "t.py::test_b", "c::d", "e", "f › g"}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	if got := tellingLines("one\n12 passed, 0 failed\nx.go:1: undefined: y\ntwo\n", 3); !slices.Equal(got, []string{"x.go:1: undefined: y"}) {
		t.Errorf("%q", got)
	}
	// What is wrong stands below a test's name, and need not say so by its words.
	for text, want := range map[string][]string{
		"--- FAIL: TestA (0.00s)\n    main_test.go:5: boom\nFAIL\nFAIL\tshop\t0.006s\nFAIL\n":                                              {"--- FAIL: TestA (0.00s)", "main_test.go:5: boom", "FAIL", "FAIL shop 0.006s", "FAIL"},
		"ok a\nok b\nok c\n--- FAIL: TestA (0.00s)\n    a_test.go:5: boom\n    a_test.go:6: got 1\nok d\nFAIL\nFAIL\tshop\t0.006s\nFAIL\n": {"--- FAIL: TestA (0.00s)", "a_test.go:5: boom", "a_test.go:6: got 1", "FAIL shop 0.006s"},
		"PASS x\n  ● adds › two (3 ms)\n\n    Received: 3\n    at y\n\n  ✓ other\n  more\n  more\n":                                        {"● adds › two (3 ms)", "Received: 3", "at y"},
		"collected 3\na.py ..F\n____ test_a ____\n    def test_a():\n>       one()\nE       Boom: 1\na.py:3: Boom\n1 failed, 2 passed\n":   {"E       Boom: 1", "1 failed, 2 passed"},
	} {
		if got := tellingLines(text, 6); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	if got := tellingLines("one\ntwo\nthree\n", 2); !slices.Equal(got, []string{"two", "three"}) {
		t.Errorf("%q", got)
	}
}

func TestStoreKeepsTheNewest(t *testing.T) {
	s := Store{Dir: filepath.Join(t.TempDir(), "verify")}
	now := time.Date(2026, 11, 28, 9, 0, 0, 0, time.UTC)
	var ids []string
	for i := range keepResults + 5 {
		id := newID(now.Add(time.Duration(i) * time.Second))
		ids = append(ids, id)
		if !isID(id) {
			t.Fatal(id)
		}
		if i < 95 {
			continue // what is older than the first hundred
		}
		if err := s.Save(&Result{V: ResultVersion, ID: id}); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.IsSorted(ids) {
		t.Error("ids do not sort by time")
	}
	list, bad, err := s.List(3)
	if err != nil || bad != 0 || len(list) != 3 || list[0].ID != ids[len(ids)-1] {
		t.Fatalf("%v %d %v", list, bad, err)
	}
	if r, err := s.Get(ids[len(ids)-1][:18]); err != nil && !strings.Contains(err.Error(), "give more of it") {
		t.Errorf("%v %v", r, err)
	}
	for _, id := range []string{"../x", "ver-", "ver-0000000000000000", ""} {
		if _, err := s.Get(id); id != "" && !errors.Is(err, ErrNoResult) {
			t.Errorf("%q: %v", id, err)
		}
	}
	if err := os.WriteFile(filepath.Join(s.Dir, ids[len(ids)-1]+".json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if list, bad, _ := s.List(3); bad != 1 || len(list) != 3 {
		t.Errorf("%d bad, %d", bad, len(list))
	}
}
