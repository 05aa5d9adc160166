package mcpserver

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"reprise/internal/run"
)

// job is a run whose result a client may still collect. The run itself lives
// in its record; a job is only the claim to it.
type job struct {
	id      string
	key     string // idempotency key, or empty
	task    string // beginning of the task, for list_agents
	started time.Time
	tokens  int // most tokens of the result

	settled chan struct{} // closed when the run has ended or was interrupted
	ended   time.Time     // set before settled is closed
}

func (j *job) done() bool {
	select {
	case <-j.settled:
		return true
	default:
		return false
	}
}

// jobTable holds the jobs of one server, whatever client asked for them.
//
// A job enters when its run starts. It leaves when its result is collected, or
// when expiry has passed since the run's end without anybody asking. The run's
// record stays in both cases.
type jobTable struct {
	runs   RunService
	log    *slog.Logger
	now    func() time.Time
	max    int // runs at once
	expiry time.Duration

	mu      sync.Mutex
	jobs    map[string]*job
	starts  int                      // runs about to be started
	pending map[string]chan struct{} // idempotency keys about to be used
	used    map[string]bool          // idempotency keys that have a run
	ctx     context.Context          // of the watchers; nil until serve
	watch   sync.WaitGroup
}

func newJobTable(d Deps) *jobTable {
	return &jobTable{
		runs: d.Runs, log: d.Log, now: d.Now,
		max:     max(1, d.Settings.SubAgent.MaxConcurrentAgents),
		expiry:  time.Duration(d.Settings.SubAgent.JobExpirySeconds) * time.Second,
		jobs:    map[string]*job{},
		pending: map[string]chan struct{}{},
		used:    map[string]bool{},
		ctx:     context.Background(),
	}
}

// start starts a run and returns its job. With an idempotency key that has a
// job already it returns that one, and nothing is started.
func (t *jobTable) start(ctx context.Context, req run.Request) (*job, run.Record, error) {
	j, err := t.reserve(ctx, req.IdempotencyKey)
	if err != nil {
		return nil, run.Record{}, err
	}
	if j != nil {
		// The manager compares the requests, so that a key cannot bring back
		// the answer to another task.
		rec, err := t.runs.Start(ctx, req)
		return j, rec, err
	}
	rec, err := t.runs.Start(ctx, req)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.starts--
	if c := t.pending[req.IdempotencyKey]; c != nil {
		close(c)
		delete(t.pending, req.IdempotencyKey)
	}
	if err != nil {
		return nil, rec, err
	}
	if req.IdempotencyKey != "" {
		t.used[req.IdempotencyKey] = true
	}
	if j := t.jobs[rec.ID]; j != nil {
		return j, rec, nil
	}
	j = &job{
		id: rec.ID, key: req.IdempotencyKey, task: shorten(req.Task, 100), started: rec.StartedAt,
		tokens: req.MaxOutputTokens, settled: make(chan struct{}),
	}
	t.jobs[j.id] = j
	if rec.Status.Settled() {
		t.settle(j, rec)
	} else {
		t.watch.Add(1)
		go t.follow(t.ctx, j)
	}
	return j, rec, nil
}

// reserve takes a place under the cap, or finds the job that has the key.
func (t *jobTable) reserve(ctx context.Context, key string) (*job, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for key != "" {
		for _, j := range t.jobs {
			if j.key == key {
				return j, nil
			}
		}
		c := t.pending[key]
		if c == nil {
			break
		}
		t.mu.Unlock()
		select {
		case <-c:
		case <-ctx.Done():
		}
		t.mu.Lock()
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
	// A key that has a run starts nothing, so the cap is not for it.
	if t.active()+t.starts >= t.max && !t.used[key] {
		//lint:ignore ST1005 the words that the first design gives this answer, shown to a model
		return nil, fmt.Errorf("Maximum concurrent sub-agents reached (%d). Wait for a running one with check_agent, or stop one with cancel_agent; list_agents shows them", t.max)
	}
	t.starts++
	if key != "" {
		t.pending[key] = make(chan struct{})
	}
	return nil, nil
}

// active counts the runs that have not ended. The caller holds the lock.
func (t *jobTable) active() int {
	n := 0
	for _, j := range t.jobs {
		if !j.done() {
			n++
		}
	}
	return n
}

func (t *jobTable) running() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.active()
}

// follow waits for the end of a run, so that its job knows when it was.
func (t *jobTable) follow(ctx context.Context, j *job) {
	defer t.watch.Done()
	defer func() {
		if p := recover(); p != nil {
			t.log.Error(LogError, "tool", "spawn_agent", "job_id", j.id, "error", fmt.Sprintf("panic while following the run: %v", p))
			t.mu.Lock()
			t.settle(j, run.Record{})
			t.mu.Unlock()
		}
	}()
	rec, err := t.runs.Wait(ctx, j.id)
	if ctx.Err() != nil {
		return // the server is going; the run's supervisor settles it
	}
	if err != nil {
		t.log.Error(LogError, "tool", "spawn_agent", "job_id", j.id, "error", err.Error())
	}
	if rec.Status == run.TimedOut {
		t.log.Warn(LogTimeout, "job_id", j.id, "elapsed", seconds(rec.Elapsed(t.now())))
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.settle(j, rec)
}

// settle notes the end of a job's run. The caller holds the lock.
func (t *jobTable) settle(j *job, rec run.Record) {
	if j.done() {
		return
	}
	j.ended = t.now()
	if rec.EndedAt != nil {
		j.ended = *rec.EndedAt
	}
	close(j.settled)
}

// get finds a job that may still be collected.
func (t *jobTable) get(id string) (*job, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	j, ok := t.jobs[id]
	if ok && t.expired(j) {
		t.drop(j)
		return nil, false
	}
	return j, ok
}

func (t *jobTable) expired(j *job) bool {
	return j.done() && !t.now().Before(j.ended.Add(t.expiry))
}

func (t *jobTable) drop(j *job) {
	delete(t.jobs, j.id)
	t.log.Warn(LogExpired, "job_id", j.id, "reason", fmt.Sprintf("not collected within %s of the run's end; its record stays", t.expiry))
}

// collect takes a job out of the table. It reports whether it was there: of
// two polls at once only one gets the result.
func (t *jobTable) collect(id string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, ok := t.jobs[id]
	delete(t.jobs, id)
	return ok
}

// sweep drops jobs that expired.
func (t *jobTable) sweep() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, id := range slices.Sorted(maps.Keys(t.jobs)) {
		if j := t.jobs[id]; t.expired(j) {
			t.drop(j)
		}
	}
}

// serve sweeps until ctx ends, and lets the watchers of runs end with it.
func (t *jobTable) serve(ctx context.Context, every time.Duration) {
	t.mu.Lock()
	t.ctx = ctx
	t.mu.Unlock()
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			t.sweep()
		}
	}
}

func seconds(d time.Duration) float64 {
	return float64(d.Round(time.Millisecond)) / float64(time.Second)
}
