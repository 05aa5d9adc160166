package mcpserver

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"reprise/internal/run"
)

// inTime runs a test whose clock moves by itself, with the sweep going.
func inTime(t *testing.T, change func(*Deps), do func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		w := newWorld(t, change)
		w.server.background(ctx)
		synctest.Wait()
		do(t, w)
		cancel()
		w.server.shutdown("end of test")
		w.server.jobs.watch.Wait()
		synctest.Wait()
	})
}

// Tables 8.1.2 and 8.1.3 of the first design, on the job table alone. The
// end-to-end tests run the same rows with processes.
func TestSpawnSyncCompletion(t *testing.T) {
	inTime(t, nil, func(t *testing.T, w *world) {
		a := w.good(t.Context(), "spawn_agent", map[string]any{"task": "now all done"})
		if a["status"] != "complete" || a["result"] != "all done" || a["error"] != nil {
			t.Errorf("got %v", a)
		}
		// The table wants null for a run that completed in the window. The
		// ruling that gives a job_id is about a run that died in it: see
		// TestSpawnDeadInWindow. The run is named in both cases.
		if id, there := a["job_id"]; id != nil || !there {
			t.Errorf("job_id %v", id)
		}
		id, _ := a["run_id"].(string)
		if !strings.HasPrefix(id, "run-") {
			t.Errorf("run_id %v", a["run_id"])
		}
		if msg := w.bad(t.Context(), "check_agent", map[string]any{"job_id": id}); !strings.HasPrefix(msg, "Unknown job_id") {
			t.Errorf("a delivered result was still in the table: %s", msg)
		}
	})
}

func TestSpawnDeadInWindow(t *testing.T) {
	inTime(t, nil, func(t *testing.T, w *world) {
		a := w.good(t.Context(), "spawn_agent", map[string]any{"task": "fail half an answer"})
		if a["status"] != "failed" || a["result"] != "half an answer" || !strings.Contains(a["error"].(string), "exit code 1") || a["job_id"] != a["run_id"] {
			t.Errorf("got %v", a)
		}
		b := w.good(t.Context(), "check_agent", map[string]any{"job_id": a["job_id"]})
		if b["status"] != "failed" || b["result"] != "half an answer" {
			t.Errorf("its result must be there in case the reply was lost: %v", b)
		}
	})
}

func TestSpawnAsyncHandoff(t *testing.T) {
	inTime(t, nil, func(t *testing.T, w *world) {
		began := time.Now()
		a := w.good(t.Context(), "spawn_agent", map[string]any{"task": "long"})
		if took := time.Since(began); took != 25*time.Second {
			t.Errorf("answered after %s, want the window of 25 s", took)
		}
		id, _ := a["job_id"].(string)
		if a["status"] != "running" || id == "" || a["result"] != nil {
			t.Fatalf("got %v", a)
		}
		time.Sleep(5 * time.Second)
		b := w.good(t.Context(), "check_agent", map[string]any{"job_id": id})
		if b["status"] != "running" || b["elapsed_seconds"] != 30.0 || b["result"] != nil || b["error"] != nil {
			t.Errorf("got %v", b)
		}
		go func() { time.Sleep(7 * time.Second); w.runs.finish(t, id, run.Completed, "", "at last") }()
		began = time.Now()
		b = w.good(t.Context(), "check_agent", map[string]any{"job_id": id, "wait_seconds": 50})
		if b["status"] != "complete" || b["result"] != "at last" || time.Since(began) != 7*time.Second {
			t.Errorf("got %v after %s", b, time.Since(began))
		}
		msg := w.bad(t.Context(), "check_agent", map[string]any{"job_id": id})
		if !strings.HasPrefix(msg, "Unknown job_id: "+id) || !strings.Contains(msg, "run.json") || !strings.Contains(msg, "complete") {
			t.Errorf("second poll: %s", msg)
		}
	})
}

func TestCheckWaitIsCapped(t *testing.T) {
	inTime(t, nil, func(t *testing.T, w *world) {
		id := w.good(t.Context(), "spawn_agent", map[string]any{"task": "long"})["job_id"]
		began := time.Now()
		w.good(t.Context(), "check_agent", map[string]any{"job_id": id, "wait_seconds": 50})
		if took := time.Since(began); took != 50*time.Second {
			t.Errorf("waited %s", took)
		}
		msg := w.bad(t.Context(), "check_agent", map[string]any{"job_id": id, "wait_seconds": 51})
		if !strings.Contains(msg, `"wait_seconds"`) || !strings.Contains(msg, "50") {
			t.Errorf("got %s", msg)
		}
	})
}

func TestTimeoutIsReported(t *testing.T) {
	inTime(t, nil, func(t *testing.T, w *world) {
		id := w.good(t.Context(), "spawn_agent", map[string]any{"task": "long", "timeout_seconds": 40})["job_id"].(string)
		w.runs.finish(t, id, run.TimedOut, "timeout of 40s", "some")
		a := w.good(t.Context(), "check_agent", map[string]any{"job_id": id})
		if a["status"] != "timed_out" || a["result"] != "some" || !strings.Contains(a["error"].(string), "40") {
			t.Errorf("got %v", a)
		}
		synctest.Wait()
		if n := len(w.log.find(t, LogTimeout)); n != 1 {
			t.Errorf("%d log entries of the timeout", n)
		}
	})
}

// Expiry counts from the end of the run, however long it ran.
func TestExpiry(t *testing.T) {
	inTime(t, nil, func(t *testing.T, w *world) {
		id := w.good(t.Context(), "spawn_agent", map[string]any{"task": "long"})["job_id"].(string)
		time.Sleep(2 * time.Hour)
		if a := w.good(t.Context(), "check_agent", map[string]any{"job_id": id}); a["status"] != "running" {
			t.Fatalf("a running job expired: %v", a)
		}
		w.runs.finish(t, id, run.Completed, "", "x")
		time.Sleep(599 * time.Second)
		if _, ok := w.server.jobs.get(id); !ok {
			t.Fatal("expired before 600 s")
		}
		time.Sleep(31 * time.Second) // one sweep
		w.server.jobs.mu.Lock()
		n := len(w.server.jobs.jobs)
		w.server.jobs.mu.Unlock()
		if n != 0 {
			t.Errorf("%d jobs after the sweep", n)
		}
		if e := w.log.find(t, LogExpired); len(e) != 1 || e[0]["job_id"] != id || e[0]["level"] != "WARN" {
			t.Errorf("log: %v", e)
		}
		if msg := w.bad(t.Context(), "check_agent", map[string]any{"job_id": id}); !strings.HasPrefix(msg, "Unknown job_id") {
			t.Errorf("got %s", msg)
		}
	})
}

func TestExpiryWithoutSweep(t *testing.T) {
	inTime(t, func(d *Deps) { d.SweepEvery = 1000 * time.Hour }, func(t *testing.T, w *world) {
		id := w.good(t.Context(), "spawn_agent", map[string]any{"task": "long"})["job_id"].(string)
		w.runs.finish(t, id, run.Completed, "", "x")
		time.Sleep(600 * time.Second)
		if msg := w.bad(t.Context(), "check_agent", map[string]any{"job_id": id}); !strings.HasPrefix(msg, "Unknown job_id") {
			t.Errorf("got %s", msg)
		}
	})
}

func TestConcurrentAgentCap(t *testing.T) {
	inTime(t, nil, func(t *testing.T, w *world) {
		var all sync.WaitGroup
		var mu sync.Mutex
		var refused, running int
		var id string
		for range 20 {
			all.Go(func() {
				res := w.call(t.Context(), "spawn_agent", map[string]any{"task": "long"})
				mu.Lock()
				defer mu.Unlock()
				if res.IsError {
					refused++
					if msg := textOf(t, res); !strings.Contains(msg, "Maximum concurrent sub-agents reached (5)") || !strings.Contains(msg, "check_agent") {
						t.Errorf("got %s", msg)
					}
					return
				}
				running++
				var a struct {
					JobID string `json:"job_id"`
				}
				if err := json.Unmarshal([]byte(textOf(t, res)), &a); err != nil {
					t.Error(err)
				}
				id = a.JobID
			})
		}
		all.Wait()
		if running != 5 || refused != 15 || w.runs.count() != 5 {
			t.Fatalf("%d run, %d refused, %d started", running, refused, w.runs.count())
		}
		if a := w.good(t.Context(), "cancel_agent", map[string]any{"job_id": id, "reason": "make room"}); a["status"] != "cancelled" || a["result"] != "so far" {
			t.Errorf("cancel: %v", a)
		}
		synctest.Wait()
		w.good(t.Context(), "spawn_agent", map[string]any{"task": "now there is room"})
	})
}

func TestIdempotencyKeyStartsNothingTwice(t *testing.T) {
	inTime(t, nil, func(t *testing.T, w *world) {
		spawn := map[string]any{"task": "long", "idempotency_key": "k1"}
		var all sync.WaitGroup
		ids := make([]any, 8)
		for i := range ids {
			all.Go(func() { ids[i] = w.good(t.Context(), "spawn_agent", spawn)["job_id"] })
		}
		all.Wait()
		for _, id := range ids {
			if id != ids[0] || id == nil {
				t.Fatalf("jobs %v", ids)
			}
		}
		if w.runs.count() != 1 {
			t.Fatalf("%d runs started", w.runs.count())
		}
		// Fill the cap: a key that has a run is not held up by it.
		for i := range 4 {
			w.good(t.Context(), "spawn_agent", map[string]any{"task": fmt.Sprint("long ", i)})
		}
		w.runs.finish(t, ids[0].(string), run.Completed, "", "x")
		w.good(t.Context(), "check_agent", map[string]any{"job_id": ids[0]})
		w.good(t.Context(), "spawn_agent", map[string]any{"task": "long 5"})
		if a := w.good(t.Context(), "spawn_agent", spawn); a["status"] != "complete" || a["run_id"] != ids[0] {
			t.Errorf("the key's own result, with the cap reached: %v", a)
		}
	})
}

// The manager keeps the keys; a second server asks it and gets the same run.
func TestIdempotencyKeyOverRestart(t *testing.T) {
	inTime(t, nil, func(t *testing.T, w *world) {
		spawn := map[string]any{"task": "now once", "idempotency_key": "k"}
		first := w.good(t.Context(), "spawn_agent", spawn)
		second := newWorld(t, func(d *Deps) { d.Runs = w.runs })
		if again := second.good(t.Context(), "spawn_agent", spawn); again["run_id"] != first["run_id"] || again["result"] != "once" || w.runs.count() != 1 {
			t.Errorf("got %v after %v", again, first)
		}
	})
}

// Cancelling the call never cancels the run, and its result stays to be had.
func TestCancelledCallLosesNothing(t *testing.T) {
	inTime(t, nil, func(t *testing.T, w *world) {
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		w.call(ctx, "spawn_agent", map[string]any{"task": "long"})
		recs, _ := w.runs.List(t.Context())
		if len(recs) != 1 || recs[0].Status != run.Running {
			t.Fatalf("records %v", recs)
		}
		id := recs[0].ID
		w.runs.finish(t, id, run.Completed, "", "still here")
		synctest.Wait()
		// A poll whose caller is gone does not use up the result.
		gone, stop := context.WithCancel(t.Context())
		stop()
		w.call(gone, "check_agent", map[string]any{"job_id": id})
		if a := w.good(t.Context(), "check_agent", map[string]any{"job_id": id}); a["result"] != "still here" {
			t.Errorf("got %v", a)
		}
	})
}

func TestTwoPollsOneResult(t *testing.T) {
	inTime(t, nil, func(t *testing.T, w *world) {
		id := w.good(t.Context(), "spawn_agent", map[string]any{"task": "long"})["job_id"].(string)
		got := make(chan bool, 2)
		for range 2 {
			go func() {
				res := w.call(t.Context(), "check_agent", map[string]any{"job_id": id, "wait_seconds": 10})
				got <- res.IsError
			}()
		}
		time.Sleep(time.Second)
		w.runs.finish(t, id, run.Completed, "", "x")
		if a, b := <-got, <-got; a == b {
			t.Errorf("both polls ended the same way (error: %v)", a)
		}
	})
}

func TestJobIDUniqueness(t *testing.T) {
	inTime(t, func(d *Deps) {
		d.Settings.SubAgent.MaxConcurrentAgents = 2000
		d.Settings.SubAgent.SyncWindowSeconds = 0
	}, func(t *testing.T, w *world) {
		seen := map[any]bool{}
		for range 1000 {
			seen[w.good(t.Context(), "spawn_agent", map[string]any{"task": "long"})["job_id"]] = true
		}
		if len(seen) != 1000 || seen[nil] {
			t.Errorf("%d ids", len(seen))
		}
	})
}

func TestListAgentsPages(t *testing.T) {
	inTime(t, func(d *Deps) {
		d.Settings.SubAgent.MaxConcurrentAgents = 100
		d.Settings.SubAgent.SyncWindowSeconds = 0
	}, func(t *testing.T, w *world) {
		for i := range 7 {
			task := "long"
			if i%2 == 0 {
				task = "now x"
			}
			w.good(t.Context(), "spawn_agent", map[string]any{"task": task})
		}
		seen := map[string]bool{}
		cursor := ""
		for pages := 0; ; pages++ {
			args := map[string]any{"limit": 3}
			if cursor != "" {
				args["cursor"] = cursor
			}
			a := w.good(t.Context(), "list_agents", args)
			for _, l := range a["agents"].([]any) {
				seen[l.(map[string]any)["job_id"].(string)] = true
			}
			cursor, _ = a["next_cursor"].(string)
			if cursor == "" {
				if pages != 2 {
					t.Errorf("%d pages more", pages)
				}
				break
			}
		}
		if len(seen) != 7 {
			t.Errorf("%d runs listed", len(seen))
		}
		if a := w.good(t.Context(), "list_agents", map[string]any{"status": "running"}); len(a["agents"].([]any)) != 3 || a["active"] != 3.0 {
			t.Errorf("running: %v", a)
		}
		if a := w.good(t.Context(), "list_agents", map[string]any{"status": "ended"}); len(a["agents"].([]any)) != 4 {
			t.Errorf("ended: %v", a)
		}
		if msg := w.bad(t.Context(), "list_agents", map[string]any{"cursor": "nonsense"}); !strings.Contains(msg, `"cursor"`) {
			t.Errorf("got %s", msg)
		}
	})
}

// A server that goes stops its runs and does not wait for them.
func TestShutdownStopsRuns(t *testing.T) {
	inTime(t, nil, func(t *testing.T, w *world) {
		w.good(t.Context(), "spawn_agent", map[string]any{"task": "long"})
		began := time.Now()
		w.server.shutdown("SIGTERM")
		if w.runs.stopped != 1 || time.Since(began) > time.Second {
			t.Errorf("%d stopped in %s", w.runs.stopped, time.Since(began))
		}
		if e := w.log.find(t, LogShutdown); len(e) != 1 || e[0]["active_jobs_killed"] != 1.0 || e[0]["reason"] != "SIGTERM" {
			t.Errorf("log: %v", e)
		}
	})
}

// A run that has ended is gone on with by its id, as it was; over HTTP only by who began it.
func TestGoesOnWithARun(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	first := w.good(t.Context(), "spawn_agent", map[string]any{"task": "now done", "max_output_tokens": 77})["run_id"].(string)
	w.good(t.Context(), "spawn_agent", map[string]any{"task": "now more", "resume": first})
	if req := w.runs.started[1]; req.Resume != first || req.WorkDir != "" || req.Timeout != 0 || req.MaxOutputTokens != 77 || req.Task != "now more" {
		t.Errorf("asked for %+v", req)
	}
	if msg := w.bad(t.Context(), "spawn_agent", map[string]any{"task": "now more", "resume": "run-zzzzzzzzzz"}); !strings.Contains(msg, "there is no run run-zzzzzzzzzz") {
		t.Error(msg)
	}
	for principal, want := range map[string]bool{"": true, "token:mine": false} {
		if _, err := w.server.spawnRequest(args{"task": "x", "resume": first}, principal); (err == nil) != want {
			t.Errorf("for %q: %v", principal, err)
		}
	}
}
