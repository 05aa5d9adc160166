package loop

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"reprise/internal/agent"
	"reprise/internal/durable"
	"reprise/internal/loop/core"
	"reprise/internal/loop/tell"
	"reprise/internal/queue"
	"reprise/internal/run"
)

// night is a loop with a real queue, and with runs and places that do what a test says.
type night struct {
	t     *testing.T
	dir   string
	queue *queue.Files
	runs  *fakeRuns
	place *fakePlaces
	check func(item string) Checked
	opt   Options

	mu      sync.Mutex
	notices []tell.Notice
	loop    *Loop
	done    chan error
	stop    chan string
}

// play is what a run does, from the start to its end.
type play struct {
	start  error                      // it cannot be started
	status run.Status                 // how it ends; "" is completed
	reason string                     // of the status
	result *agent.Result              // nil with a status of "" is a good one
	hang   bool                       // it goes on until it is stopped
	change bool                       // something in its place
	do     func(req run.Request)      // while it runs
	after  func(q *queue.Files) error // once it runs, from outside
}

func newNight(t *testing.T, plays ...play) *night {
	t.Helper()
	return nightIn(t, t.TempDir(), durable.Disk{}, plays...)
}

// nightIn is a night in a directory in which there may have been others.
func nightIn(t *testing.T, dir string, disk durable.Disk, plays ...play) *night {
	t.Helper()
	n := &night{t: t, dir: dir, stop: make(chan string, 2)}
	n.queue = queue.Open(queue.Options{Dir: filepath.Join(n.dir, "queue"), Now: time.Now, Disk: disk})
	n.place = &fakePlaces{dir: filepath.Join(n.dir, "places"), changed: map[string]bool{}}
	n.runs = &fakeRuns{t: t, Manager: run.New(run.Options{Dir: filepath.Join(n.dir, "runs"), Now: time.Now}), dir: filepath.Join(n.dir, "runs"),
		plays: plays, place: n.place, queue: n.queue, keys: map[string]string{}, over: map[string]chan struct{}{}}
	n.runs.find()
	l := core.DefaultLimits()
	l.UntilEmpty, l.Delay, l.IdleWait, l.BackoffUnit, l.BackoffMax = true, 0, 20*time.Millisecond, time.Millisecond, 5*time.Millisecond
	n.opt = Options{
		Dir: filepath.Join(n.dir, "loop"), Project: "shop", Queue: n.queue, Runs: n.runs, Places: n.place, Client: "claude", Actor: "a", Limits: l, Now: time.Now, Disk: disk,
		Check: func(_ context.Context, p Place, _ run.Record) (Checked, error) {
			if n.check == nil {
				return Checked{Gate: core.GateNone}, nil
			}
			return n.check(strings.TrimPrefix(p.Name, "loop-")), nil
		},
		Notify: func(_ context.Context, x tell.Notice) error {
			n.mu.Lock()
			defer n.mu.Unlock()
			n.notices = append(n.notices, x)
			return nil
		},
	}
	return n
}

// add puts items into the queue; a title of its own for each.
func (n *night) add(ids ...string) {
	n.t.Helper()
	for _, id := range ids {
		if _, err := n.queue.Add(n.t.Context(), queue.Item{ID: id, Title: "Do " + id, MaxAttempts: 9}); err != nil {
			n.t.Fatal(err)
		}
	}
}

// begin runs the loop beside the test.
func (n *night) begin() {
	n.loop, n.done = New(n.opt), make(chan error, 1)
	go func() {
		_, err := n.loop.Run(context.Background(), n.stop)
		n.done <- err
	}()
}

// end waits until the loop has ended.
func (n *night) end() core.State {
	n.t.Helper()
	select {
	case err := <-n.done:
		if err != nil {
			n.t.Fatal(err)
		}
	case <-time.After(3 * time.Minute):
		n.t.Fatalf("the loop has not ended: %+v", n.loop.State())
	}
	return n.loop.State()
}

// all is a whole night.
func (n *night) all() core.State {
	n.t.Helper()
	n.begin()
	return n.end()
}

// until waits for a state.
func (n *night) until(what string, ok func(core.State) bool) core.State {
	n.t.Helper()
	deadline := time.Now().Add(3 * time.Minute)
	for time.Now().Before(deadline) {
		if s := n.loop.State(); ok(s) {
			return s
		}
		time.Sleep(time.Millisecond)
	}
	n.t.Fatalf("not %s: %+v", what, n.loop.State())
	return core.State{}
}

// waits says that the loop waits for a person, for what and about which items.
func (n *night) waits(kind string, items ...string) core.Interrupt {
	n.t.Helper()
	s := n.until("waiting for a person about "+kind, func(s core.State) bool {
		return s.Phase == core.Waiting && s.Busy() == 0 && len(s.Interrupt.Items) >= len(items)
	})
	if s.Interrupt.Kind != kind || fmt.Sprint(s.Interrupt.Items) != fmt.Sprint(items) {
		n.t.Fatalf("it waits about %s, items %v (%s); want %s, %v", s.Interrupt.Kind, s.Interrupt.Items, s.Interrupt.Why, kind, items)
	}
	n.until("shown to people", func(core.State) bool {
		text, err := os.ReadFile(filepath.Join(n.opt.Dir, interruptFile))
		told := n.told()
		return err == nil && strings.HasPrefix(string(text), kind) && len(told) > 0 && told[len(told)-1] == kind
	})
	return *s.Interrupt
}

func (n *night) told() (kinds []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, x := range n.notices {
		kinds = append(kinds, x.Kind)
	}
	return kinds
}

func (n *night) ask(r Request) {
	n.t.Helper()
	r.At = time.Now()
	if err := Ask(durable.Disk{}, n.opt.Dir, r); err != nil {
		n.t.Fatal(err)
	}
}

// over stops a loop that waits.
func (n *night) over() core.State {
	n.stop <- "the test is over"
	return n.end()
}

// state is where the items are.
func (n *night) states() string {
	n.t.Helper()
	list, err := n.queue.List(n.t.Context(), queue.Filter{})
	if err != nil {
		n.t.Fatal(err)
	}
	var out []string
	for _, it := range list.Items {
		out = append(out, it.ID+" "+string(it.State))
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

func (n *night) want(states string) {
	n.t.Helper()
	if got := n.states(); got != states {
		n.t.Errorf("the queue has %q, want %q", got, states)
	}
}

// fakeRuns are runs that play what they are told. Their records are real files.
type fakeRuns struct {
	*run.Manager
	t     *testing.T
	dir   string
	place *fakePlaces
	queue *queue.Files

	mu      sync.Mutex
	plays   []play
	started []run.Request
	stops   []string
	keys    map[string]string
	over    map[string]chan struct{}
}

// find takes over the runs of an earlier process, which are dead where they have not ended.
func (f *fakeRuns) find() {
	dirs, err := filepath.Glob(filepath.Join(f.dir, "run-*"))
	if err != nil {
		f.t.Fatal(err)
	}
	for _, dir := range dirs { // by name, which is their order
		id := filepath.Base(dir)
		var req run.Request
		if data, err := os.ReadFile(filepath.Join(dir, "request.json")); err == nil {
			if err := json.Unmarshal(data, &req); err != nil {
				f.t.Fatal(err)
			}
		}
		f.started = append(f.started, req)
		f.over[id] = make(chan struct{})
		r, err := f.Get(id)
		if err != nil { // it died before it was on record
			continue
		}
		f.keys[r.Key] = id
		if !r.Status.Settled() {
			f.finish(id, run.Failed, "its supervisor died", nil)
			continue
		}
		close(f.over[id])
	}
}

func (f *fakeRuns) id(n int) string {
	return "run-aaaaaaa" + string([]byte{'a' + byte(n/676), 'a' + byte(n/26%26), 'a' + byte(n%26)})
}

func (f *fakeRuns) write(r run.Record, res *agent.Result) {
	dir := filepath.Join(f.dir, r.ID)
	if res != nil {
		data, _ := json.Marshal(res)
		f.put(filepath.Join(dir, "result.json"), data)
	}
	data, _ := json.Marshal(r)
	f.put(filepath.Join(dir, "run.json"), data)
}

func (f *fakeRuns) put(path string, data []byte) {
	if err := durable.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		f.t.Error(err)
	}
	if err := durable.WriteFileHot(path, data, 0o600); err != nil {
		f.t.Error(err)
	}
}

func (f *fakeRuns) ByKey(key string) (run.Record, error) {
	f.mu.Lock()
	id := f.keys[key]
	f.mu.Unlock()
	if id == "" {
		return run.Record{}, run.ErrNotFound
	}
	return f.Get(id)
}

func (f *fakeRuns) Start(_ context.Context, req run.Request) (run.Record, error) {
	f.mu.Lock()
	p := play{change: true}
	if len(f.plays) > 0 {
		p, f.plays = f.plays[0], f.plays[1:]
	}
	if p.start != nil {
		f.mu.Unlock()
		return run.Record{}, p.start
	}
	n := len(f.started)
	f.started = append(f.started, req)
	id := f.id(n)
	f.keys[req.IdempotencyKey] = id
	over := make(chan struct{})
	f.over[id] = over
	f.mu.Unlock()
	r := run.Record{V: 1, ID: id, Status: run.Running, Client: "claude", SessionID: req.Work.Session, StartedAt: time.Now(), StatusUpdatedAt: time.Now(), Origin: "loop", Key: req.IdempotencyKey, WorkDir: req.WorkDir,
		Heartbeat: run.Heartbeat{MessageCount: 2, ToolCalls: 1, OutputBytes: 10}, Logs: run.Logs{Stdout: filepath.Join(f.dir, id, "stdout.jsonl")}}
	if req.Work.Resume != "" {
		r.SessionID = req.Work.Resume
	}
	data, _ := json.Marshal(run.Request{Task: req.Task, SystemPrompt: req.SystemPrompt})
	f.put(filepath.Join(f.dir, id, "request.json"), data)
	f.write(r, nil)
	if p.do != nil {
		p.do(req)
	}
	if p.change {
		f.place.change(filepath.Base(req.WorkDir))
	}
	if p.after != nil {
		if err := p.after(f.queue); err != nil {
			f.t.Error(err)
		}
	}
	if !p.hang {
		res := p.result
		if res == nil && p.status == "" {
			res = &agent.Result{OK: true, NumTurns: 2, Text: "done", CostUSD: 0.1, Usage: agent.Usage{InputTokens: 100}}
		}
		if p.status == "" {
			p.status = run.Completed
		}
		f.finish(id, p.status, p.reason, res)
	}
	return f.Get(id)
}

func (f *fakeRuns) finish(id string, s run.Status, why string, res *agent.Result) {
	r, err := f.Get(id)
	if err != nil {
		f.t.Error(err)
		return
	}
	now := time.Now()
	r.Status, r.StatusReason, r.EndedAt, r.StatusUpdatedAt = s, why, &now, now
	f.write(r, res)
	f.mu.Lock()
	defer f.mu.Unlock()
	close(f.over[id])
}

func (f *fakeRuns) Settle(_ context.Context, id string) (run.Record, error) { return f.Get(id) }

func (f *fakeRuns) Wait(ctx context.Context, id string) (run.Record, error) {
	f.mu.Lock()
	over := f.over[id]
	f.mu.Unlock()
	select {
	case <-over:
	case <-ctx.Done():
		return run.Record{}, ctx.Err()
	}
	return f.Get(id)
}

func (f *fakeRuns) end(id, why string, s run.Status) (run.Record, error) {
	f.mu.Lock()
	f.stops = append(f.stops, string(s)+" "+why)
	f.mu.Unlock()
	if r, err := f.Get(id); err != nil || r.Status.Settled() {
		return r, err
	}
	f.finish(id, s, why, nil)
	return f.Get(id)
}

func (f *fakeRuns) Cancel(_ context.Context, id, why string) (run.Record, error) {
	return f.end(id, why, run.Killed)
}

func (f *fakeRuns) Interrupt(_ context.Context, id, why string) (run.Record, error) {
	return f.end(id, why, run.Interrupted)
}

// requests are the runs that were started.
func (f *fakeRuns) requests() []run.Request {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]run.Request(nil), f.started...)
}

// fakePlaces are directories.
type fakePlaces struct {
	dir string

	mu       sync.Mutex
	fail     []error // of the next preparations
	changed  map[string]bool
	finished []string
	hold     map[string]chan struct{} // items whose end waits for it

	conflicts map[string]bool // items whose work cannot be merged
}

func (f *fakePlaces) Prepare(_ context.Context, it queue.Item, _ int64) (Place, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.fail) > 0 {
		err := f.fail[0]
		f.fail = f.fail[1:]
		return Place{}, err
	}
	f.finished = append(f.finished, it.ID+" prepared")
	dir := filepath.Join(f.dir, it.ID)
	return Place{Name: "loop-" + it.ID, Dir: dir, Top: dir, Branch: "loop-" + it.ID}, os.MkdirAll(dir, 0o700)
}

func (f *fakePlaces) Began(context.Context, Place, string) error { return nil }

func (f *fakePlaces) change(item string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.changed[item] = true
	_ = os.WriteFile(filepath.Join(f.dir, item, "changed"), nil, 0o600) // for the process after this one
}

func (f *fakePlaces) Look(_ context.Context, p Place, _ bool) (Work, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, err := os.Stat(filepath.Join(p.Dir, "changed"))
	return Work{Changed: f.changed[filepath.Base(p.Dir)] || err == nil, Files: []string{"a.go"}}, nil
}

func (f *fakePlaces) Finish(_ context.Context, p Place, it queue.Item, fate core.Fate) (string, bool, error) {
	if hold := f.hold[it.ID]; hold != nil {
		<-hold
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.finished = append(f.finished, it.ID+" "+string(fate))
	return "", fate == core.Done && f.conflicts[it.ID], nil
}

// ended is a play of a run that failed with what its client says.
func failedWith(res agent.Result) play { return play{status: run.Failed, result: &res, change: true} }

// asks writes the file by which a run asks.
func asks(name, text string) func(run.Request) {
	return func(req run.Request) {
		for _, kv := range req.Work.Vars {
			if v, ok := strings.CutPrefix(kv, name+"="); ok {
				_ = os.WriteFile(v, []byte(text), 0o600) // seen by what follows, or not
			}
		}
	}
}

var errNoProgram = errors.New("failed to start agent: claude was not found")

// Where the state cannot be kept nothing begins, and who asks twice for the end is let go.
func TestLeftAtOnceWhereNothingCanBeKept(t *testing.T) {
	n := newNight(t)
	n.add("a")
	tried := make(chan struct{}, 100)
	n.opt.Disk = durable.NewDisk(func(s durable.Step) *durable.Fault {
		if s.Op != durable.OpWrite || !strings.Contains(filepath.Base(s.Path), stateFile) {
			return nil
		}
		select {
		case tried <- struct{}{}:
		default:
		}
		return &durable.Fault{Err: syscall.ENOSPC}
	})
	n.begin()
	<-tried
	n.stop <- "once"
	n.stop <- "twice"
	select {
	case err := <-n.done:
		if err == nil || !strings.Contains(err.Error(), "left at once: twice") || !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("it was left with %v", err)
		}
	case <-time.After(time.Minute):
		t.Fatal("the loop is not left")
	}
}
