//go:build unix

package run_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"reprise/internal/agent"
	"reprise/internal/run"
)

// script writes steps for the script client.
func script(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "steps.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// A run that was stopped is gone on with in its session, as it was: the same client,
// directories, limits and permissions, and what it was told of itself. The old record names
// the new one, the event log has it, and it is the new one that is gone on with then.
func TestGoesOnWithARun(t *testing.T) {
	m := newManager(t, nil)
	more := t.TempDir()
	file := script(t, "steps:\n  - when: \"^build\"\n  - say: \"half of it\"\n  - hang: true\n  - when: \"Go on\"\n  - shell: {command: \"echo session $REPRISE_RESUME_SESSION; cat $REPRISE_SYSTEM_PROMPT_FILE; echo dirs $REPRISE_ADD_DIRS\"}\n  - say: \"the rest\"\n")
	first := start(t, m, run.Request{Task: "build the shed", Client: agent.KindScript, ScriptFile: file, SystemPrompt: "Say it in verse.", AddDirs: []string{more}, Timeout: 5 * time.Minute, MaxOutputTokens: 99, AllowStateWrite: true})
	until(t, "its first words", func() bool {
		r, err := m.Get(first.ID)
		data, _ := os.ReadFile(r.Logs.Stdout)
		return err == nil && strings.Contains(string(data), "half of it")
	})
	if _, err := m.Start(ctx(t), run.Request{Resume: first.ID}); !errors.Is(err, run.ErrRefused) || !strings.Contains(err.Error(), "reprise runs cancel "+first.ID) {
		t.Errorf("a run that goes on: %v", err)
	}
	first, err := m.Cancel(ctx(t), first.ID, "enough")
	if err != nil || m.WhyNotResume(first) != "" {
		t.Fatalf("%s: %v, %s", first.Status, err, m.WhyNotResume(first))
	}
	next := wait(t, m, start(t, m, run.Request{Task: " ", Resume: first.ID, Origin: "cli"}).ID)
	if next.Status != run.Completed || next.SessionID != first.SessionID || next.Resumes != first.ID || next.WorkDir != first.WorkDir ||
		next.TimeoutSeconds != 300 || next.MaxOutputTokens != 99 || !next.AllowStateWrite || !slices.Equal(next.AddDirs, []string{more}) {
		t.Errorf("%+v", next)
	}
	out, err := os.ReadFile(next.Logs.Stdout)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"session " + first.SessionID, "Say it in verse.", "dirs " + more} {
		if !strings.Contains(string(out), want) {
			t.Errorf("the session lacks %q: %s", want, out)
		}
	}
	if about, err := next.About(); err != nil || about != "Go on: build the shed" {
		t.Errorf("it is about %q, %v", about, err)
	}
	if first, err = m.Get(first.ID); err != nil || first.ResumedBy != next.ID || first.Status != run.Killed {
		t.Errorf("the old record: %s by %q, %v", first.Status, first.ResumedBy, err)
	}
	if _, err := m.Start(ctx(t), run.Request{Resume: first.ID}); !errors.Is(err, run.ErrRefused) || !strings.Contains(err.Error(), next.ID+" has gone on with it already") {
		t.Errorf("a second time: %v", err)
	}
	// One that has ended well is told something more, in the same session.
	third := wait(t, m, start(t, m, run.Request{Task: "Go on: paint it", Resume: next.ID}).ID)
	if third.Status != run.Completed || third.SessionID != first.SessionID || third.Resumes != next.ID {
		t.Errorf("%+v", third)
	}
	var said []string
	files, err := filepath.Glob(filepath.Join(filepath.Dir(m.Dir()), "events", "*.jsonl"))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	data, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		var e struct {
			Run  string
			Data struct{ Status, Resumes string }
		}
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatal(err)
		}
		if e.Run == next.ID {
			said = append(said, e.Data.Status+" of "+e.Data.Resumes)
		}
	}
	// The first is said by this process, the other by the supervisor: whichever comes first.
	slices.Sort(said)
	if want := []string{"completed of " + first.ID, "spawning of " + first.ID}; !slices.Equal(said, want) {
		t.Errorf("the log says %q, want %q", said, want)
	}
}

// Two who go on with a run at once: one does, and a key that is used again gets its run.
func TestOneGoesOn(t *testing.T) {
	m := newManager(t, nil)
	first := wait(t, m, start(t, m, run.Request{Client: agent.KindScript, ScriptFile: script(t, "steps:\n  - say: ok\n")}).ID)
	var wg sync.WaitGroup
	ids, errs := make([]string, 4), make([]error, 4)
	for i := range ids {
		wg.Go(func() {
			r, err := m.Start(ctx(t), run.Request{Task: "more", Resume: first.ID, IdempotencyKey: []string{"", "", "k", "k"}[i]})
			ids[i], errs[i] = r.ID, err
		})
	}
	wg.Wait()
	began := map[string]bool{}
	for i, err := range errs {
		switch {
		case err == nil:
			began[ids[i]] = true
		case !errors.Is(err, run.ErrRefused):
			t.Error(err)
		}
	}
	if len(began) != 1 {
		t.Fatalf("%d runs went on with one: %v %v", len(began), ids, errs)
	}
	for id := range began {
		wait(t, m, id)
	}
}

// What cannot be gone on with says why, and what to do; nothing is begun, and what failed to
// begin leaves the session free.
func TestWhatIsNotGoneOnWith(t *testing.T) {
	m := newManager(t, nil)
	file := script(t, "steps:\n  - say: ok\n")
	plain := wait(t, m, start(t, m, run.Request{Program: shell(t, "echo done")}).ID)
	of := func(req run.Request) string {
		req.Client, req.ScriptFile = agent.KindScript, file
		return wait(t, m, start(t, m, req).ID).ID
	}
	ours := of(run.Request{})
	for name, c := range map[string]struct {
		req  run.Request
		want string
	}{
		"nothing":       {run.Request{Resume: "run-aaaaaaaaaa"}, "no such run"},
		"no sessions":   {run.Request{Resume: plain.ID}, "begin anew with `reprise spawn`"},
		"a loop's":      {run.Request{Resume: of(run.Request{Origin: "loop"})}, "reprise loop resume"},
		"a task's":      {run.Request{Resume: of(run.Request{Origin: "task"})}, "reprise task run"},
		"another place": {run.Request{Resume: ours, WorkDir: t.TempDir()}, "leave it out"},
		"another one":   {run.Request{Resume: ours, Client: "codex"}, "leave it out"},
		"a new prompt":  {run.Request{Resume: ours, SystemPrompt: "x"}, "say it in the task"},
	} {
		if _, err := m.Start(ctx(t), c.req); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := os.Rename(file, file+".away"); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Start(ctx(t), run.Request{Resume: ours}); !errors.Is(err, run.ErrBadRequest) {
		t.Errorf("its steps are gone: %v", err)
	}
	r, err := m.Get(ours)
	if err != nil || r.ResumedBy != "" {
		t.Fatalf("taken by %q, %v", r.ResumedBy, err)
	}
	if err := os.Rename(file+".away", file); err != nil {
		t.Fatal(err)
	}
	wait(t, m, start(t, m, run.Request{Task: "more", Resume: ours}).ID)
}

// A client counts what its whole session cost: what a run cost itself is without the runs
// that the session had before.
func TestSpentIsTheRunsOwn(t *testing.T) {
	r := run.Record{Before: &run.Before{CostUSD: 0.5, Tokens: 100}, Result: &agent.Result{CostUSD: 0.75, Usage: agent.Usage{InputTokens: 130}}}
	if usd, tokens := r.Spent(); usd != 0.25 || tokens != 30 {
		t.Errorf("%v USD, %d tokens", usd, tokens)
	}
	if usd, tokens := (run.Record{}).Spent(); usd != 0 || tokens != 0 {
		t.Errorf("without a result: %v, %d", usd, tokens)
	}
}

// The directory of a run stays while the home in it has a session that is gone on with; a
// run that was interrupted goes once another has gone on with it.
func TestHomesStay(t *testing.T) {
	now := time.Now()
	long, just := now.Add(-100*time.Hour), now
	dir := t.TempDir()
	m := run.New(run.Options{Dir: dir, Now: func() time.Time { return now }})
	home := filepath.Join(dir, "run-aaaaaaaaaa", "home")
	for _, r := range []run.Record{
		{ID: "run-aaaaaaaaaa", Status: run.Completed, EndedAt: &long, Command: run.Launch{Home: home}},
		{ID: "run-bbbbbbbbbb", Status: run.Completed, EndedAt: &just, Command: run.Launch{Home: home}},
		{ID: "run-cccccccccc", Status: run.Interrupted, StatusUpdatedAt: long, ResumedBy: "run-dddddddddd"},
		{ID: "run-eeeeeeeeee", Status: run.Interrupted, StatusUpdatedAt: long},
		{ID: "run-ffffffffff", Status: run.Completed, EndedAt: &long},
	} {
		r.V, r.StartedAt = 1, long
		data, err := json.Marshal(r)
		if err == nil {
			err = os.MkdirAll(filepath.Join(dir, r.ID), 0o700)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, r.ID, "run.json"), data, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	gone, err := m.GC(ctx(t), time.Hour)
	slices.Sort(gone)
	if want := []string{"run-cccccccccc", "run-ffffffffff"}; err != nil || !slices.Equal(gone, want) {
		t.Errorf("removed %v (%v), want %v", gone, err, want)
	}
}
