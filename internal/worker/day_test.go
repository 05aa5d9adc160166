package worker_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime/metrics"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/fsnotify/fsnotify"

	"reprise/internal/durable"
	"reprise/internal/loop"
	"reprise/internal/loop/core"
	"reprise/internal/proc"
	"reprise/internal/queue"
)

const (
	dayWorkers = 20
	dayLease   = loop.Lease
	// overdue is how long after its lease an item of somebody dead may still be held while a
	// worker has nothing to do: whoever waits looks every thirty seconds.
	overdue = 45 * time.Second
	// looks are how often anybody may ask what time it is in an hour in which there is nothing
	// to do: the queue and the loop are looked at every 30 to 60 seconds, which comes to 1,140.
	// Twenty workers that each look for themselves come to more, and so does a look every
	// second at anything.
	looks = 2500
	// writes are the changes of files in such an hour: the loop writes down that it looks and
	// what it has found, once a minute.
	writes = 15 * 60
)

// TestDay has the real loop with twenty workers go through a day and a night by a clock of
// the test's own, over the real file queue: items come through the day and none at night;
// agents fail, hang, take too long, ask, change nothing and are refused by a service with
// limits; the loop is killed and begun anew, another machine dies with an item, clocks are
// set, a person stops and lets go on, and money runs out until there is more.
func TestDay(t *testing.T) {
	items, seeds := 100, []uint64{1}
	if os.Getenv("REPRISE_LONG_TESTS") != "" {
		// These are some 110 hours of runs. Twenty workers have 340 before night, less what
		// limits, pauses, dead loops and those that end for want of a login take. With 1,500
		// items they still have work then, or are at the last of a loop that ends, which is a
		// queue that is too long and nothing that is wrong: what is counted of hours without
		// work would be counted of hours with it.
		items, seeds = 600, []uint64{1, 2, 3, 4, 5}
	}
	for _, seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			began := time.Now()
			var said string
			synctest.Test(t, func(t *testing.T) {
				d := newDay(t, began, seed, items)
				d.queue = func() queue.Queue {
					return queue.Open(queue.Options{Dir: filepath.Join(d.dir, "queue"), Now: d.now, Disk: d.disk, Host: "here", Process: d.self, Watch: d.told.watch,
						Alive: func(id proc.ID) bool { return id == d.self }})
				}
				d.far = func() queue.Queue {
					return queue.Open(queue.Options{Dir: filepath.Join(d.dir, "queue"), Now: d.now, Disk: d.disk, Host: "there", Watch: d.told.watch})
				}
				d.live()
				said = d.judge()
			})
			t.Logf("seed %d: %s; in %s", seed, said, time.Since(began).Round(100*time.Millisecond))
		})
	}
}

// day is a world in which a loop lives for 24 hours.
type day struct {
	t      *testing.T
	dir    string
	rand   *rand.Rand
	n      int // items
	disk   durable.Disk
	told   *told
	queue  func() queue.Queue // of the loop that is begun next
	far    func() queue.Queue // of another machine
	self   proc.ID            // of the loop
	agents *agents
	begin  time.Time // of the day, by the test's clock
	real   time.Time // the same by the machine's, which has a monotonic reading

	ahead  atomic.Int64 // by how much the clock was set
	steps  atomic.Int64 // of changes of files
	asked  atomic.Int64 // how often somebody asked what time it is
	mu     sync.Mutex
	notes  map[string]int
	loop   *loop.Loop
	stop   chan string
	done   chan error
	cancel context.CancelFunc
	calm   time.Time // since when nothing stands in the way of whoever waits for work
	added  map[string]time.Time
	parked map[string]string // answers that were given, by item
	extra  int               // items beside those that come through the day
}

func newDay(t *testing.T, real time.Time, seed uint64, n int) *day {
	d := &day{t: t, real: real, dir: t.TempDir(), n: n, rand: rand.New(rand.NewPCG(seed, 24)), begin: time.Now(), notes: map[string]int{}, added: map[string]time.Time{}, parked: map[string]string{},
		told: &told{dirs: map[string][]chan fsnotify.Event{}}, self: proc.ID{PID: 1000, Start: 1, Boot: "boot"}}
	d.disk = durable.NewDisk(func(s durable.Step) *durable.Fault {
		d.steps.Add(1)
		d.told.step(s)
		if s.Op == durable.OpSync || s.Op == durable.OpSyncDir {
			return &durable.Fault{Skip: true} // nobody cuts the power
		}
		return nil
	})
	d.agents = newAgents(d)
	return d
}

// now is the machine's clock: its wall may be set, and its monotonic reading goes on.
func (d *day) now() time.Time {
	d.asked.Add(1)
	return setWall(d.real.Add(time.Since(d.begin)), time.Duration(d.ahead.Load()))
}

// setWall is a moment as a clock tells it that was set, which no function of package time
// makes: what Add gives is another moment.
func setWall(now time.Time, by time.Duration) time.Time {
	t := (*struct {
		wall uint64
		ext  int64
		loc  *time.Location
	})(unsafe.Pointer(&now))
	const has, nanos = 1 << 63, 1<<30 - 1
	if t.wall&has == 0 {
		panic("no monotonic reading")
	}
	at := int64(t.wall&^has>>30)*int64(time.Second) + int64(t.wall&nanos) + int64(by)
	t.wall = has | uint64(at/int64(time.Second))<<30 | uint64(at%int64(time.Second))
	return now
}

func TestSetWall(t *testing.T) {
	now := time.Now()
	for _, by := range []time.Duration{90*time.Minute + 7, -25 * time.Hour} {
		set := setWall(now, by)
		if got := set.Round(0).Sub(now.Round(0)); got != by {
			t.Errorf("the wall was set by %s, want %s", got, by)
		}
		if got := set.Sub(now); got != 0 {
			t.Errorf("the clock itself went on by %s", got)
		}
	}
}

// note counts something that happened.
func (d *day) note(what string, n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.notes[what] += n
}

// at sleeps until a time of the day.
func (d *day) at(hour float64) {
	time.Sleep(time.Until(d.begin.Add(time.Duration(hour * float64(time.Hour)))))
}

// up begins a loop.
func (d *day) up() {
	d.self.PID++
	l := core.DefaultLimits()
	l.Workers, l.MaxTime, l.MaxIterations, l.MaxUSD, l.ItemUSD, l.OnInterrupt = dayWorkers, 40*time.Hour, 100*d.n, 0.14*float64(d.n), 0.6, core.Skip
	opt := loop.Options{
		Dir: filepath.Join(d.dir, "loop"), Project: "shop", Queue: d.queue(), Runs: d.agents, Places: d.agents, Check: d.agents.check,
		Client: "claude", Actor: "a", Limits: l, Now: d.now, Disk: d.disk, Watch: d.told.watch,
	}
	if s, err := loop.ReadState(opt.Dir); err != nil {
		d.t.Error(err)
	} else if s != nil && s.Phase != core.Finished {
		opt.Limits.MaxUSD = s.Limits.MaxUSD // what a person gave stays given
	} else {
		d.agents.anew()
	}
	ctx, cancel := context.WithCancel(context.Background())
	one, stop, done := loop.New(opt), make(chan string, 2), make(chan error, 1)
	d.mu.Lock()
	d.loop, d.stop, d.done, d.cancel, d.calm = one, stop, done, cancel, time.Now()
	d.mu.Unlock()
	go func() {
		s, err := one.Run(ctx, stop)
		if err != nil && ctx.Err() == nil {
			d.t.Errorf("a loop ended with %v", err)
		}
		done <- err
		if err == nil && ctx.Err() == nil && time.Since(d.begin) < 24*time.Hour {
			d.again(one, s)
		}
	}()
	d.note("loops", 1)
}

// again begins another loop a while after one has ended by itself, as a timer does.
func (d *day) again(ended *loop.Loop, s core.State) {
	why, _, _ := strings.Cut(s.Reason, ":")
	d.note("loops that ended ("+why+")", 1)
	time.Sleep(7 * time.Minute)
	d.mu.Lock()
	mine := d.loop == ended // nobody has begun one meanwhile
	d.mu.Unlock()
	if mine {
		d.up()
	}
}

// kill leaves all as it is, at any moment, and begins another loop after a while.
func (d *day) kill(dead time.Duration) {
	d.mu.Lock()
	cancel, done := d.cancel, d.done
	d.loop = nil
	d.mu.Unlock()
	cancel()
	<-done       // with an error, or it had ended before
	d.self.PID++ // who asks now is told that the process is gone
	d.note("killed", 1)
	time.Sleep(dead)
	d.up()
}

// set sets the clock.
func (d *day) set(by time.Duration) {
	d.ahead.Add(int64(by))
	d.mu.Lock()
	d.calm = time.Now()
	d.mu.Unlock()
	d.note("clock set", 1)
}

// live is the day, which begins at nine in the morning.
func (d *day) live() {
	d.up()
	var all sync.WaitGroup
	night := []float64{17, 20} // from two to five
	all.Go(func() { d.arrive() })
	all.Go(func() { d.oversee(night) })
	all.Go(func() { d.look(night) })
	all.Go(func() {
		d.at(0.7)
		d.kill(20 * time.Second)
		d.at(1.25)
		d.set(45 * time.Minute)
		d.at(3.5)
		d.person(30 * time.Minute)
		d.at(5.3)
		d.kill(4 * time.Minute)
		d.at(6)
		d.set(-30 * time.Minute)
		d.at(9.1)
		d.kill(70 * time.Second)
		d.at(9.4)
		d.set(3 * time.Hour)
		d.at(16)
		d.set(-40 * time.Second)
		d.at(20.2)
		d.kill(10 * time.Minute)
	})
	all.Go(func() {
		for _, h := range []float64{1.4, 6.5, 12.9, 22} {
			d.at(h)
			d.vanish()
		}
	})
	all.Go(func() {
		d.at(night[0])
		d.idle(night[1] - night[0])
	})
	all.Wait()
	d.at(24)
	d.settle()
	d.mu.Lock()
	stop, done := d.stop, d.done
	d.mu.Unlock()
	stop <- "the day is over" // which one that has ended does not read
	if err := <-done; err != nil {
		d.t.Error(err)
	}
	d.agents.wait()
}

// arrive has items come, most of them from nine to seven, and none at night.
func (d *day) arrive() {
	var when []float64
	for range d.n {
		switch n := d.rand.IntN(100); {
		case n < 15: // at once, at the beginning
			when = append(when, 0)
		case n < 75:
			when = append(when, d.rand.Float64()*10)
		case n < 90:
			when = append(when, 10+d.rand.Float64()*2.5)
		default: // in the morning after
			when = append(when, 21.5+d.rand.Float64())
		}
	}
	slices.Sort(when)
	q := d.far()
	defer q.Close()
	var before []string
	for i, h := range when {
		it := queue.Item{ID: fmt.Sprintf("i%04d", i), MaxAttempts: 5}
		it.Title = d.agents.plan(it.ID, d.rand)
		if i > 0 && d.rand.IntN(12) == 0 {
			it.DependsOn = []string{before[d.rand.IntN(len(before))]}
		}
		if p := d.rand.IntN(10); p < 3 {
			it.Priority = &p
		}
		d.at(h)
		d.mu.Lock()
		d.added[it.ID] = time.Now()
		d.mu.Unlock()
		if _, err := q.Add(context.Background(), it); err != nil {
			d.t.Error(err)
		}
		before = append(before, it.ID)
	}
}

// vanish has another machine claim an item and die.
func (d *day) vanish() {
	q := d.far()
	defer q.Close()
	it := queue.Item{ID: fmt.Sprintf("far-%d", int(time.Since(d.begin).Minutes()))}
	it.Title = d.agents.well(it.ID)
	d.mu.Lock()
	d.extra++
	d.mu.Unlock()
	_, err := q.Add(context.Background(), it)
	if err == nil { // before anybody is told of it, for no time has passed
		_, err = q.Claim(context.Background(), queue.ClaimOptions{ID: it.ID, Worker: "there", Lease: dayLease})
	}
	if err != nil {
		d.t.Error(err)
		return
	}
	d.note("items of a machine that died", 1)
}

// person has nothing begun for a while.
func (d *day) person(pause time.Duration) {
	d.ask(loop.Request{Kind: "pause"})
	time.Sleep(time.Minute)
	d.agents.paused.Store(true)
	time.Sleep(pause - time.Minute)
	d.agents.paused.Store(false)
	d.mu.Lock()
	d.calm = time.Now()
	d.mu.Unlock()
	d.ask(loop.Request{Kind: "resume"})
	d.note("pauses", 1)
}

func (d *day) ask(r loop.Request) {
	r.At = d.now()
	if err := loop.Ask(d.disk, filepath.Join(d.dir, "loop"), r); err != nil {
		d.t.Error(err)
	}
}

// awake sleeps a little, and passes over the hours in which nobody looks, so that what is
// counted then is the loop alone; it says whether the day goes on.
func (d *day) awake(step time.Duration, night []float64) bool {
	time.Sleep(step)
	if h := time.Since(d.begin).Hours(); h > night[0]-0.1 && h < night[1]+0.1 {
		d.at(night[1] + 0.1)
	}
	return time.Since(d.begin) < 24*time.Hour
}

// oversee answers what is asked, some minutes later.
func (d *day) oversee(night []float64) {
	r := rand.New(rand.NewPCG(d.rand.Uint64(), 7))
	for d.awake(2*time.Minute+time.Duration(r.Int64N(int64(10*time.Minute))), night) {
		d.answer()
	}
}

func (d *day) answer() {
	d.mu.Lock()
	one := d.loop
	d.mu.Unlock()
	if one == nil { // nobody is there who would answer
		return
	}
	s := one.State()
	if i := s.Interrupt; s.Phase == core.Waiting && i != nil && len(i.Items) == 0 {
		r := loop.Request{Kind: "resume"}
		if i.Kind == core.ByBudget {
			r.More = &loop.More{USD: 10}
		}
		d.ask(r)
		d.note("the loop was let go on ("+i.Kind+")", 1)
		return
	}
	q := d.far()
	defer q.Close()
	list, err := loop.Questions(context.Background(), filepath.Join(d.dir, "loop"), &s, q)
	if err != nil {
		d.t.Error(err)
	}
	for _, one := range list {
		if !one.Open() {
			continue
		}
		answer := fmt.Sprintf("do it, says answer%d of %s", one.Number, one.Item)
		d.mu.Lock()
		d.parked[one.Item] = answer
		d.mu.Unlock()
		d.ask(loop.Request{Kind: "resume", Items: []string{one.Item}, Number: one.Number, Answer: answer})
		d.note("answers ("+one.Kind+")", 1)
	}
}

// look looks every half minute that nothing is held by the dead for longer than a lease
// while somebody waits for work.
func (d *day) look(night []float64) {
	q := d.far()
	defer q.Close()
	for d.awake(30*time.Second, night) {
		d.mu.Lock()
		one := d.loop
		d.mu.Unlock()
		if one != nil {
			s := one.State()
			free := s.Busy() < len(s.Slots) && s.Phase == core.Working && s.HoldUntil <= s.Now.Loop && s.LookAt > s.Now.Loop
			if !free {
				one = nil
			}
		}
		d.mu.Lock()
		if one == nil {
			d.calm = time.Now()
		}
		calm := time.Since(d.calm)
		d.mu.Unlock()
		if calm < overdue {
			continue
		}
		list, err := q.List(context.Background(), queue.Filter{States: []queue.State{queue.Claimed}})
		if err != nil {
			d.t.Error(err)
		}
		for _, it := range list.Items {
			if late := d.now().Sub(it.Claim.Until); late > overdue && it.Claim.Until.Sub(it.Claim.Since) < dayLease+time.Second {
				d.t.Errorf("%s was claimed by %s, whose lease is over since %s, and nobody has taken it", it.ID, it.Claim.Worker, late)
			}
		}
		d.note("looks at leases", 1)
	}
}

// idle counts what the loop does in hours without work.
func (d *day) idle(hours float64) {
	d.mu.Lock()
	one := d.loop
	d.mu.Unlock()
	if s := one.State(); s.Phase != core.Working || s.Busy() > 0 {
		d.t.Errorf("at night the loop is %s, and %d workers have something to do", s.Phase, s.Busy())
	}
	runs, steps, asked := scheduled(), d.steps.Load(), d.asked.Load()
	d.at(17 + hours)
	each := func(n int64) int { return int(float64(n) / hours) }
	d.note("goroutines run an idle hour (the runtime measures one of eight, and its own are among them)", each(scheduled()-runs))
	d.note("looks at the clock an idle hour", each(d.asked.Load()-asked))
	d.note("changes of files an idle hour", each(d.steps.Load()-steps))
	if n := each(d.asked.Load() - asked); n > looks {
		d.t.Errorf("the clock is looked at %d times an hour in which there is nothing to do", n)
	}
	if n := each(d.steps.Load() - steps); n > writes {
		d.t.Errorf("files are changed %d times an hour in which nothing happens", n)
	}
}

// scheduled is how often goroutines have been run so far: the runtime measures one of
// eight.
func scheduled() int64 {
	s := []metrics.Sample{{Name: "/sched/latencies:seconds"}}
	metrics.Read(s)
	var n uint64
	for _, c := range s[0].Value.Float64Histogram().Counts {
		n += c
	}
	return int64(8 * n)
}

// settle waits until nothing is left that could be done.
func (d *day) settle() {
	q := d.far()
	defer q.Close()
	for range 600 {
		list, err := q.List(context.Background(), queue.Filter{})
		if err != nil {
			d.t.Error(err)
			return
		}
		if len(list.Items) > 0 && !slices.ContainsFunc(list.Items, func(it queue.Item) bool {
			return it.State != queue.Done && it.State != queue.Dead && !waitsForDead(&it, list.Items)
		}) {
			return
		}
		d.answer()
		time.Sleep(time.Minute)
		d.mu.Lock()
		one := d.loop
		d.mu.Unlock()
		if s := one.State(); s.Phase == core.Finished {
			<-d.done
			d.up()
		}
	}
	s := d.loop.State()
	d.t.Errorf("items are neither done nor dead ten hours after the day; the loop is %s (%s), holds until %s of %s because of %s, waits for %+v", s.Phase, s.Reason, s.HoldUntil, s.Now.Loop, s.HoldWhy, s.Interrupt)
}

func waitsForDead(it *queue.Item, all []queue.Item) bool {
	return slices.ContainsFunc(all, func(o queue.Item) bool {
		return slices.Contains(it.DependsOn, o.ID) && (o.State == queue.Dead || o.State == queue.Blocked && waitsForDead(&o, all))
	})
}

// judge looks at everything at the end, and says what there was.
func (d *day) judge() string {
	q := d.far()
	defer q.Close()
	list, err := q.List(context.Background(), queue.Filter{})
	if err != nil {
		d.t.Fatal(err)
	}
	if len(list.Trouble) > 0 || len(list.Items) != d.n+d.extra {
		d.t.Errorf("%d items of %d, and %v", len(list.Items), d.n+d.extra, list.Trouble)
	}
	its, bad, err := loop.Iterations(filepath.Join(d.dir, "loop"), "")
	if err != nil || bad > 0 {
		d.t.Errorf("iterations: %d bad, %v", bad, err)
	}
	said := map[string]int{}
	for _, it := range its {
		if it.Fate == core.Done {
			said[it.Item]++
		}
	}
	for _, it := range list.Items {
		d.note(string(it.State), 1)
		ends, fences := 0, map[uint64]bool{}
		for _, e := range it.History {
			if e.Op == queue.OpDone {
				ends++
			}
			if e.Op == queue.OpClaim {
				if fences[e.Fence] {
					d.t.Errorf("%s was claimed twice under the number %d", it.ID, e.Fence)
				}
				fences[e.Fence] = true
				d.note("claims", 1)
			}
		}
		if want := it.State == queue.Done; (ends == 1) != want || ends > 1 || (said[it.ID] == 1) != want {
			d.t.Errorf("%s is %s: done %d times by its history, %d by the loops", it.ID, it.State, ends, said[it.ID])
		}
		if good := d.agents.canBeDone(it.ID); good != (it.State == queue.Done) && !waitsForDead(&it, list.Items) {
			d.t.Errorf("%s (%s) is %s: %s", it.ID, it.Title, it.State, it.LastError)
		}
	}
	d.agents.judge()
	d.mu.Lock()
	defer d.mu.Unlock()
	var out []string
	for what, n := range d.notes {
		out = append(out, fmt.Sprintf("%s %d", what, n))
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

// told tells of new files, as the system would.
type told struct {
	mu   sync.Mutex
	dirs map[string][]chan fsnotify.Event
}

func (w *told) watch(dirs ...string) (queue.Watched, error) {
	events := make(chan fsnotify.Event, 1024)
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, dir := range dirs {
		w.dirs[dir] = append(w.dirs[dir], events)
	}
	return queue.Watched{Events: events, Close: func() error {
		w.mu.Lock()
		defer w.mu.Unlock()
		for _, dir := range dirs {
			w.dirs[dir] = slices.DeleteFunc(w.dirs[dir], func(c chan fsnotify.Event) bool { return c == events })
		}
		return nil
	}}, nil
}

// step is told before a change of a file, which is over when time goes on.
func (w *told) step(s durable.Step) {
	op := fsnotify.Create
	switch s.Op {
	case durable.OpRename, durable.OpCreate:
	case durable.OpRemove:
		op = fsnotify.Remove
	default:
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.dirs[filepath.Dir(s.Path)] {
		time.AfterFunc(time.Millisecond, func() {
			select {
			case c <- fsnotify.Event{Name: s.Path, Op: op}:
			default: // nobody reads it any more
			}
		})
	}
}
