package elsewhere_test

import (
	"context"
	"testing"
	"time"

	"reprise/internal/config"
	"reprise/internal/fleet"
	"reprise/internal/fleet/fleettest"
	"reprise/internal/proc"
	"reprise/internal/queue"
	"reprise/internal/relay"
	"reprise/internal/run"
	"reprise/internal/worker/elsewhere"
)

// noRuns are those of a machine that has none.
type noRuns struct{}

func (noRuns) Get(string) (run.Record, error) { return run.Record{}, run.ErrNotFound }

// held is a queue of one item that a worker called w6 has claimed.
func held(t *testing.T) (*queue.Files, queue.Claim) {
	t.Helper()
	q := queue.Open(queue.Options{Dir: t.TempDir(), Now: time.Now, Host: "here", Process: proc.ID{}})
	t.Cleanup(func() { q.Close() })
	if _, err := q.Add(t.Context(), queue.Item{ID: "many52", Title: "One of many"}); err != nil {
		t.Fatal(err)
	}
	c, err := q.Claim(t.Context(), queue.ClaimOptions{Worker: "w6/1", Lease: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	return q, c
}

// A run of a worker that is quiet is at work for as long as its claim holds; then it is lost,
// whatever the worker said last. Of a worker that lives nothing is asked but itself.
func TestRunsOfTheDeadAreLost(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	const id = "run-kxnv5ujjdm"
	for name, c := range map[string]struct {
		do   func(t *testing.T, q *queue.Files, c queue.Claim)
		live bool // the worker is
		old  bool // it is of a version that told no number
		at   time.Duration
		want string // why it is lost, "" where it goes on
	}{
		"it has it":             {},
		"it has it, as it said": {old: true},
		"its lease ran out":     {at: 2 * time.Hour, want: "its worker w6 is quiet, and many52 is nobody's since its lease ran out"},
		"it lives":              {live: true, at: 2 * time.Hour},
		"another one has it": {want: "its worker w6 is quiet, and many52 is worked on by w19", do: func(t *testing.T, q *queue.Files, c queue.Claim) {
			again(t, q, c, "w19/1")
		}},
		"another one has it, as was said": {old: true, want: "its worker w6 is quiet, and many52 is worked on by w19", do: func(t *testing.T, q *queue.Files, c queue.Claim) {
			again(t, q, c, "w19/1")
		}},
		"another one did it": {want: "its worker w6 is quiet, and many52 was done by w19", do: func(t *testing.T, q *queue.Files, c queue.Claim) {
			if _, err := q.Done(t.Context(), again(t, q, c, "w19/1").Token, queue.Outcome{}); err != nil {
				t.Fatal(err)
			}
		}},
		"it is ready": {want: "its worker w6 is quiet, and many52 is ready again", do: func(t *testing.T, q *queue.Files, c queue.Claim) {
			if _, err := q.Release(t.Context(), c.Token, ""); err != nil {
				t.Fatal(err)
			}
		}},
		"it has begun it anew": {want: "its worker w6 is quiet, and many52 is worked on by w6", do: func(t *testing.T, q *queue.Files, c queue.Claim) {
			again(t, q, c, "w6/1")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			q, claim := held(t)
			if c.do != nil {
				c.do(t, q, claim)
			}
			asked := claim.Until.Add(-time.Hour + c.at)
			w := relay.Worker{Name: "w6", Projects: []string{"shop"}, Heard: now, Asked: asked, Quiet: !c.live, Doing: []relay.Doing{{Project: "shop", Item: "many52", Fence: int64(claim.Fence), Run: id, Since: now.Add(-time.Minute)}}}
			if c.old {
				w.Doing[0].Fence = 0
			}
			f := elsewhere.Fleet{Project: "shop", Runs: noRuns{}, Queue: func(string) (queue.Queue, error) { return q, nil }, Now: time.Now}
			going, lost := f.Going(t.Context(), []relay.Worker{w}, "shop")
			if c.want == "" {
				if len(going) != 1 || len(lost) != 0 || going[0].Over() {
					t.Fatalf("goes on %+v, lost %+v", going, lost)
				}
				return
			}
			if len(going) != 0 || len(lost) != 1 || !lost[0].Over() || lost[0].StatusReason != c.want {
				t.Fatalf("goes on %+v, lost %+v", going, lost)
			}
			if took := lost[0].Elapsed(now.Add(time.Hour)); took != time.Minute {
				t.Errorf("it took %s, and was heard of for a minute", took)
			}
		})
	}
}

// again has somebody else claim what was given back.
func again(t *testing.T, q *queue.Files, c queue.Claim, worker string) queue.Claim {
	t.Helper()
	_, err := q.Release(t.Context(), c.Token, "")
	if err == nil {
		c, err = q.Claim(t.Context(), queue.ClaimOptions{Worker: worker, Lease: time.Hour})
	}
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Machines whose clocks are off tell of their runs by these: what is shown of them is by the
// servers' time, so that of several machines the newest is the first, and a run takes as long
// as it takes.
func TestTimesAreTheServers(t *testing.T) {
	t.Parallel()
	s := fleettest.Server(t)
	conn, err := fleet.Connect(t.Context(), fleet.Options{Servers: s.ClientURL(), Settings: config.Fleet{Namespace: "t"}, Name: "test", Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	q, _ := held(t)
	f := elsewhere.Fleet{Conn: conn, Project: "shop", Runs: noRuns{}, Queue: func(string) (queue.Queue, error) { return q, nil }, Now: time.Now}
	off := map[string]time.Duration{"right": 0, "ahead": 2 * time.Hour, "behind": -20 * 24 * time.Hour}
	for name, off := range off {
		now := time.Now().Add(off)
		if err := relay.Beat(t.Context(), conn, relay.Worker{Name: name, Projects: []string{"shop"}, At: now, Doing: []relay.Doing{{Project: "shop", Item: name, Run: "run-going" + name[:5], Since: now.Add(-time.Minute)}}}); err != nil {
			t.Fatal(err)
		}
		ended := now.Add(-time.Hour)
		r := run.Record{V: 1, ID: "run-ended" + name[:5], Status: run.Completed, StartedAt: ended.Add(-time.Minute), EndedAt: &ended, Project: "shop", Origin: "loop"}
		doc := elsewhere.EndedDoc(r, name, now)
		if err := f.Relay().Mirror(context.WithoutCancel(t.Context()), r.ID, t.TempDir()+"/none", func() []byte { return doc }); err != nil {
			t.Fatal(err)
		}
	}
	workers, err := f.Workers(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range workers {
		if got := time.Duration(w.ClockOff * float64(time.Second)); (got - off[w.Name]).Abs() > 10*time.Second {
			t.Errorf("the clock of %s is said to be off by %s, it is by %s", w.Name, got, off[w.Name])
		}
	}
	runs, err := f.RunsOf(t.Context(), workers, "shop")
	if err != nil || len(runs) != 6 {
		t.Fatalf("%+v, %v", runs, err)
	}
	for i, r := range runs {
		if going := i < 3; going == r.Over() {
			t.Errorf("at %d of the list, the newest first: %s %s", i, r.ID, r.Status)
		}
		if took := r.Elapsed(time.Now()); (took - time.Minute).Abs() > 20*time.Second {
			t.Errorf("%s of %s took %s, it was a minute", r.ID, r.Worker, took)
		}
	}
}
