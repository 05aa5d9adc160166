package event_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"reprise/internal/durable"
	"reprise/internal/durable/durabletest"
	"reprise/internal/event"
	"reprise/internal/event/quick"
)

// noSpace is a disk on which nothing new has room while on is set: what is
// written over what is there still goes.
func noSpace(on *atomic.Bool, steps map[durable.Op]int, mu *sync.Mutex) durable.Disk {
	return durable.NewDisk(func(s durable.Step) *durable.Fault {
		mu.Lock()
		defer mu.Unlock()
		steps[s.Op]++
		if on.Load() && s.Op == durable.OpWrite && !strings.HasSuffix(s.Path, quick.ReserveName) {
			return &durable.Fault{Err: syscall.ENOSPC}
		}
		return nil
	})
}

type outboxWorld struct {
	data  string
	full  atomic.Bool
	steps map[durable.Op]int
	mu    sync.Mutex
	opt   event.BrokerOptions
	b     *event.Broker
	hook  *quick.Broker // as the hook program has it
}

func newOutboxWorld(t *testing.T) *outboxWorld {
	t.Helper()
	w := &outboxWorld{data: t.TempDir(), steps: map[durable.Op]int{}}
	w.opt = options(w.data)
	w.opt.Now = time.Now
	w.opt.Disk = noSpace(&w.full, w.steps, &w.mu)
	w.b = event.NewBroker(w.opt)
	w.hook = &quick.Broker{Events: w.opt.Events, Outbox: w.opt.Outbox, Host: "h", Now: time.Now, Disk: w.opt.Disk}
	return w
}

// What was acknowledged on a disk that is full is in the log once there is room.
func TestReserveHoldsWhatTheDiskCannot(t *testing.T) {
	w := newOutboxWorld(t)
	if err := w.b.Reserve(); err != nil {
		t.Fatal(err)
	}
	record(t, w.b, event.Event{Type: event.ToolCalled})
	w.full.Store(true)
	want := map[string]bool{}
	var mu sync.Mutex
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for i := range 20 {
				w.full.Store(i%3 != 0) // it flaps
				e := quick.Event{Type: "tool.called", Session: "s", Data: []byte(`{"tool":"shell","name":"Bash"}`)}
				_, err := w.hook.Record(context.Background(), &e, false)
				for errors.Is(err, context.DeadlineExceeded) { // a busy machine: a hook waits for the reserve only so long, and is refused
					_, err = w.hook.Record(context.Background(), &e, false)
				}
				mu.Lock()
				if err == nil {
					want[e.ID] = true
				} else {
					t.Error(err)
				}
				mu.Unlock()
			}
		})
	}
	all.Wait()
	w.full.Store(true)
	e := quick.Event{Type: "tool.called", Session: "s"}
	if pending, err := w.hook.Record(context.Background(), &e, false); err != nil || !pending {
		t.Fatal(pending, err)
	}
	want[e.ID] = true
	if !w.hook.Pending() {
		t.Error("nothing waits")
	}
	waiting, err := w.b.Outbox()
	if err != nil || len(waiting) == 0 || waiting[len(waiting)-1].ID != e.ID || waiting[len(waiting)-1].Bad != "" {
		t.Errorf("%+v %v", waiting, err)
	}
	w.full.Store(false)
	if r, err := w.b.Replay(context.Background(), 0); err != nil || r.Left > 0 || len(r.Aside) > 0 {
		t.Errorf("%+v %v", r, err)
	}
	events, errs := read(filepath.Join(w.data, "events"))
	seen := map[string]int{}
	for _, e := range events {
		seen[e.ID]++
	}
	for id := range want {
		if seen[id] != 1 {
			t.Errorf("%s is there %d times", id, seen[id])
		}
	}
	if r := verify(t, filepath.Join(w.data, "events")); !r.OK() || len(errs) > 0 || len(want) != 81 {
		t.Errorf("%+v %v, %d wanted", r, errs, len(want))
	}
	if w.hook.Pending() {
		t.Error("something still waits")
	}
}

// What finds no room anywhere is refused, and counted.
func TestReserveCountsWhatIsLost(t *testing.T) {
	w := newOutboxWorld(t)
	if err := w.b.Reserve(); err != nil {
		t.Fatal(err)
	}
	if err := w.b.Reserve(); err != nil {
		t.Fatal(err)
	}
	w.full.Store(true)
	kept, refused := 0, 0
	for range 500 {
		e := quick.Event{Type: "tool.called", Session: "s", Data: []byte(`{"output":"` + strings.Repeat("words ", 2500) + `"}`)}
		if _, err := w.hook.Record(context.Background(), &e, false); err == nil {
			kept++
		} else if refused++; !errors.Is(err, syscall.ENOSPC) {
			t.Fatal(err)
		}
	}
	if lost, err := w.b.Lost(); err != nil || lost != refused || kept < 100 || refused < 10 {
		t.Errorf("%d kept, %d refused, %d counted: %v", kept, refused, lost, err)
	}
	w.full.Store(false)
	if r, err := w.b.Replay(context.Background(), 0); err != nil || r.Added != kept {
		t.Errorf("%d kept: %+v %v", kept, r, err)
	}
	if lost, _ := w.b.Lost(); lost != refused {
		t.Errorf("%d are counted after a replay, %d were refused", lost, refused)
	}
}

// Without a reserve, a full disk is an error that says so.
func TestNoReserve(t *testing.T) {
	w := newOutboxWorld(t)
	w.full.Store(true)
	if _, err := w.hook.Record(context.Background(), &quick.Event{Type: "tool.called"}, false); !errors.Is(err, syscall.ENOSPC) {
		t.Error(err)
	}
	for _, text := range []string{"", "short", strings.Repeat("x", quick.ReserveSize)} {
		if err := os.WriteFile(filepath.Join(w.data, "outbox", quick.ReserveName), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := w.hook.Record(context.Background(), &quick.Event{Type: "tool.called"}, false); err == nil {
			t.Errorf("%.10q took an event", text)
		}
	}
}

// Thousands that wait are logged with few waits for the disk.
func TestReplayOfMany(t *testing.T) {
	w := newOutboxWorld(t)
	const many = 1500
	plain := &quick.Broker{Events: w.opt.Events, Outbox: w.opt.Outbox, Host: "h", Now: time.Now, Disk: durable.NewDisk(func(s durable.Step) *durable.Fault {
		if s.Op == durable.OpSync || s.Op == durable.OpSyncDir {
			return &durable.Fault{Skip: true}
		}
		return nil
	})}
	for i := range many {
		e := quick.Event{Type: "tool.called", Session: "s", Project: []string{"", "p"}[i/1000], Data: []byte(`{"name":"Bash"}`)}
		if err := w.hook.Prepare(&e); err != nil {
			t.Fatal(err)
		}
		l := w.hook.Log(&e)
		line, err := l.Line(&e)
		if err != nil {
			t.Fatal(err)
		}
		if err := plain.Put(l, &e, line, errors.New("test")); err != nil {
			t.Fatal(err)
		}
	}
	clear(w.steps)
	if r, err := w.b.Replay(context.Background(), 0); err != nil || r.Added != many {
		t.Errorf("%+v %v", r, err)
	}
	if n := w.steps[durable.OpSync] + w.steps[durable.OpSyncDir]; n > 40 {
		t.Errorf("the disk was waited for %d times", n)
	}
	for _, dir := range []string{"events", "projects/p/events"} {
		if r := verify(t, filepath.Join(w.data, dir)); !r.OK() {
			t.Error(r)
		}
	}
}

// What is no event and cannot become one keeps no hook from its quick way.
func TestForeignFilesInTheOutbox(t *testing.T) {
	w := newOutboxWorld(t)
	box := filepath.Join(w.data, "outbox")
	const id = "019a1b2c-3d4e-7f50-8a9b-0c1d2e3f4a5b"
	for _, dir := range []string{"x.json", id + ".json", "sub"} {
		if err := os.MkdirAll(filepath.Join(box, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 40 {
		if err := os.WriteFile(filepath.Join(box, fmt.Sprintf("note%d.txt", i)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if w.hook.Pending() {
		t.Error("directories and notes are taken for events")
	}
	for i, perm := range []os.FileMode{0, 0o600} {
		name := strings.Replace(id, "019a", fmt.Sprintf("019%d", i), 1) + ".json"
		if err := os.WriteFile(filepath.Join(box, name), []byte("what"), perm); err != nil {
			t.Fatal(err)
		}
	}
	if !w.hook.Pending() {
		t.Error("files of that name may be events")
	}
	if r, err := w.b.Replay(context.Background(), 0); err != nil || len(r.Aside) != 2 || r.Left != 0 {
		t.Errorf("%+v %v", r, err)
	}
	if w.hook.Pending() {
		t.Error("what cannot be an event still waits")
	}
}

// As long as nothing can be done, hooks are not all sent the long way.
func TestReplayInVainHolds(t *testing.T) {
	w := newOutboxWorld(t)
	now := time.Now()
	w.opt.Now = func() time.Time { return now }
	w.b = event.NewBroker(w.opt)
	w.hook.Now = w.opt.Now
	bad := filepath.Join(w.data, "events")
	if err := os.WriteFile(bad, nil, 0o600); err != nil { // a file where the log's directory should be
		t.Fatal(err)
	}
	record(t, w.b, event.Event{})
	if !w.hook.Pending() {
		t.Fatal("nothing waits")
	}
	if r, err := w.b.Replay(context.Background(), 0); err != nil || r.Left != 1 {
		t.Fatalf("%+v %v", r, err)
	}
	if w.hook.Pending() {
		t.Error("the next hook tries again at once")
	}
	now = now.Add(quick.MaxHold + time.Second)
	if !w.hook.Pending() {
		t.Error("nobody tries again, ever")
	}
	now = now.Add(-time.Hour) // the clock jumped back
	if !w.hook.Pending() {
		t.Error("a clock that jumps back holds for an hour")
	}
	if err := os.Remove(bad); err != nil {
		t.Fatal(err)
	}
	if r, err := w.b.Replay(context.Background(), 0); err != nil || r.Added != 1 {
		t.Errorf("%+v %v", r, err)
	}
}

// emptying is a replay of a file and of the reserve, on a disk that may fail or
// on which the process may die.
var emptying = durabletest.Scenario{
	Prepare: func(t *testing.T, dir string) {
		var full atomic.Bool
		var mu sync.Mutex
		opt := options(dir)
		opt.Disk = noSpace(&full, map[durable.Op]int{}, &mu)
		b := event.NewBroker(opt)
		if err := b.Reserve(); err != nil {
			t.Fatal(err)
		}
		record(t, b, event.Event{})
		q := &quick.Broker{Events: opt.Events, Outbox: opt.Outbox, Host: "h", Now: opt.Now, Disk: opt.Disk}
		for i := range 4 {
			e := quick.Event{Type: "tool.called", Session: "s"}
			if err := q.Prepare(&e); err != nil {
				t.Fatal(err)
			}
			l := q.Log(&e)
			line, err := l.Line(&e)
			if err != nil {
				t.Fatal(err)
			}
			full.Store(i > 1)
			if err := q.Put(l, &e, line, errors.New("test")); err != nil {
				t.Fatal(err)
			}
		}
	},
	Act: func(disk durable.Disk, dir string) error {
		opt := options(dir)
		opt.Disk = disk
		r, err := event.NewBroker(opt).Replay(context.Background(), 0)
		if err == nil && len(r.Trouble) > 0 {
			err = errors.New(strings.Join(r.Trouble, "; "))
		}
		return err
	},
	Check: func(t *testing.T, dir string, _ error, at string) {
		t.Helper()
		b := event.NewBroker(options(dir))
		if r, err := b.Replay(context.Background(), 0); err != nil || r.Left > 0 || len(r.Aside) > 0 {
			t.Errorf("%s: then %+v %v", at, r, err)
		}
		if r := verify(t, filepath.Join(dir, "events")); !r.OK() || r.Events != 5 {
			t.Errorf("%s: %+v", at, r)
		}
		if waiting, err := b.Outbox(); err != nil || len(waiting) > 0 {
			t.Errorf("%s: %+v %v", at, waiting, err)
		}
	},
}

func TestReserveReplayKilledAtEachStep(t *testing.T) { emptying.CrashAtEachStep(t) }

func TestReserveReplayFailsAtEachStep(t *testing.T) { emptying.FailAtEachStep(t, syscall.ENOSPC) }
