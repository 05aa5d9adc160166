package queuetest

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"time"

	"reprise/internal/queue"
)

// model compares a queue with the simplest thing that could be one: a table in memory.
// Several workers on handles of their own do what comes by chance, and the clock jumps
// both ways. After each step both say the same, and nothing is lost or there twice.
//
// REPRISE_QUEUE_SEED=N does again what a failure was reported with;
// REPRISE_LONG_TESTS makes it longer, and other nights each time: the short form has the
// same ones always, so that a failure says something about a change and not about luck.
func model(e *env) {
	nights, steps, seed := 2, 120, uint64(20261129)
	if os.Getenv("REPRISE_LONG_TESTS") != "" {
		nights, steps, seed = 60, 400, uint64(time.Now().UnixNano())
	}
	if s := os.Getenv("REPRISE_QUEUE_SEED"); s != "" {
		nights = 1
		if _, err := fmt.Sscan(s, &seed); err != nil {
			e.Fatal(err)
		}
	}
	for n := range nights {
		w := &world{env: e, seed: seed + uint64(n), items: map[string]*entry{}}
		w.rand = rand.New(rand.NewPCG(w.seed, 1))
		w.prefix = fmt.Sprintf("n%d-", n)
		for range 3 {
			w.handles = append(w.handles, e.open())
		}
		for range steps {
			w.step()
			w.compare()
		}
		for _, id := range w.ids() { // the next night begins with nothing to do
			if it := w.items[id]; it.state == queue.Ready || it.state == queue.Blocked {
				_, err := e.Drop(e.Context(), id, "")
				e.ok(err)
			} else if it.state == queue.Claimed {
				_, err := e.Done(e.Context(), it.token, queue.Outcome{})
				e.ok(err)
			}
		}
		for _, it := range e.items() {
			if it.State == queue.Blocked || it.State == queue.Ready { // unblocked by the above
				_, err := e.Drop(e.Context(), it.ID, "")
				e.ok(err)
			}
		}
	}
}

// entry is an item of the model.
type entry struct {
	id        string
	priority  int
	created   int
	deps      []string
	notBefore time.Time
	limit     int

	state    queue.State
	parked   bool
	fence    uint64
	attempts int
	lost     int
	until    time.Time
	lease    time.Duration
	token    queue.Token
	steps    int
}

type world struct {
	*env
	seed    uint64
	rand    *rand.Rand
	prefix  string
	handles []queue.Queue
	items   map[string]*entry
	order   int
	trail   []string
	old     []old // claims that are over
}

type old struct {
	id    string
	token queue.Token
	how   string
}

func (e *env) items() []queue.Item {
	e.Helper()
	l, err := e.List(e.Context(), queue.Filter{})
	e.ok(err)
	if len(l.Trouble) > 0 {
		e.Fatalf("trouble: %v", l.Trouble)
	}
	return l.Items
}

func (w *world) ids() []string {
	var ids []string
	for id := range w.items {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

func (w *world) fail(format string, args ...any) {
	w.Helper()
	tail := w.trail[max(0, len(w.trail)-40):]
	w.Fatalf("seed %d, after %d steps: %s\nlast steps:\n%s", w.seed, len(w.trail), fmt.Sprintf(format, args...), strings.Join(tail, "\n"))
}

func (w *world) note(format string, args ...any) {
	w.trail = append(w.trail, fmt.Sprintf(format, args...))
}

func (w *world) handle() queue.Queue { return w.handles[w.rand.IntN(len(w.handles))] }

// some is one of the items that match, nil for none.
func (w *world) some(match func(*entry) bool) *entry {
	var list []*entry
	for _, id := range w.ids() {
		if match(w.items[id]) {
			list = append(list, w.items[id])
		}
	}
	if len(list) == 0 {
		return nil
	}
	return list[w.rand.IntN(len(list))]
}

func in(states ...queue.State) func(*entry) bool {
	return func(e *entry) bool { return slices.Contains(states, e.state) }
}

func anyItem(*entry) bool { return true }

// want checks an error: nil asks for success.
func (w *world) want(what string, err, want error) {
	w.Helper()
	if want == nil && err != nil || want != nil && !errors.Is(err, want) {
		w.fail("%s: error %v, want %v", what, err, want)
	}
}

func (w *world) step() {
	ops := []func(){
		w.doAdd, w.doAdd, w.doAdd, w.doClaim, w.doClaim, w.doClaim, w.doClaim, w.doDone, w.doDone, w.doFail, w.doFail, w.doRelease,
		w.doExtend, w.doProgress, w.doLate, w.doLate, w.doPark, w.doUnpark, w.doRetry, w.doDrop, w.doEdit, w.doCycle, w.doTime, w.doTime,
	}
	ops[w.rand.IntN(len(ops))]()
}

func (w *world) doTime() {
	d := []time.Duration{time.Second, 5 * time.Second, 30 * time.Second, 2 * time.Minute, time.Hour, -time.Second, -time.Minute}[w.rand.IntN(7)]
	w.note("clock %s", d)
	w.clock.Add(d)
}

// belongs is where an item goes that is neither claimed nor settled nor parked.
func (w *world) belongs(it *entry) {
	it.state = queue.Ready
	for _, d := range it.deps {
		if w.items[d].state != queue.Done {
			it.state = queue.Blocked
		}
	}
}

func (w *world) doAdd() {
	n := 1 + w.rand.IntN(3)
	var items []queue.Item
	var fresh []*entry
	for range n {
		w.order++
		it := &entry{id: fmt.Sprintf("%s%d", w.prefix, w.order), priority: w.rand.IntN(10), limit: 1 + w.rand.IntN(4), created: w.order}
		for w.rand.IntN(3) == 0 {
			var dep *entry
			if len(fresh) > 0 && w.rand.IntN(2) == 0 {
				dep = fresh[w.rand.IntN(len(fresh))]
			} else if dep = w.some(anyItem); dep == nil {
				break
			}
			if !slices.Contains(it.deps, dep.id) {
				it.deps = append(it.deps, dep.id)
			}
		}
		if w.rand.IntN(4) == 0 {
			it.notBefore = w.clock.Now().Add(time.Duration(w.rand.IntN(120)) * time.Second)
		}
		fresh = append(fresh, it)
		items = append(items, queue.Item{
			ID: it.id, Title: it.id, Priority: prio(it.priority), DependsOn: it.deps, NotBefore: it.notBefore, MaxAttempts: it.limit,
		})
	}
	if w.rand.IntN(4) == 0 {
		if was := w.some(anyItem); was != nil { // one that is there
			items = append(items, queue.Item{ID: was.id, Title: "again"})
		}
	}
	w.rand.Shuffle(len(items), func(i, j int) { items[i], items[j] = items[j], items[i] })
	w.note("add %d", len(items))
	added, err := w.handle().Add(w.Context(), items...)
	w.want("add", err, nil)
	for _, it := range fresh {
		w.items[it.id] = it
	}
	for i, a := range added {
		for _, it := range fresh {
			if it.id == items[i].ID {
				it.created = w.order*10 + i
				if !a.New {
					w.fail("%s is not new", it.id)
				}
			}
		}
	}
	for _, it := range fresh {
		w.belongs(it)
	}
	w.order++
}

// reclaim takes back what has run out, in both.
func (w *world) reclaim(q queue.Queue) {
	got, err := q.Reclaim(w.Context())
	w.want("reclaim", err, nil)
	gone := map[string]bool{}
	for _, it := range got {
		gone[it.ID] = true
	}
	for _, id := range w.ids() {
		it := w.items[id]
		left := it.until.Sub(w.clock.Now())
		if it.state != queue.Claimed {
			if gone[id] {
				w.fail("%s was given back, and was %s", id, it.state)
			}
			continue
		}
		if gone[id] != (left <= 0) && left <= it.lease { // a clock that went back further leaves it open
			w.fail("%s, whose lease has %s left: given back is %v", id, left, gone[id])
		}
		if gone[id] {
			w.over(it, "")
			it.lost++
			w.belongs(it)
			if it.lost >= queue.MaxLost {
				it.state = queue.Dead
			}
		}
	}
}

func (w *world) doClaim() {
	q := w.handle()
	w.reclaim(q)
	lease := []time.Duration{0, time.Second, 10 * time.Second, time.Hour}[w.rand.IntN(4)]
	c, err := q.Claim(w.Context(), queue.ClaimOptions{Worker: "w", Lease: lease})
	if lease == 0 {
		lease = queue.DefaultLease
	}
	var first *entry
	for _, it := range w.items {
		if it.state == queue.Ready && !it.notBefore.After(w.clock.Now()) && (first == nil || w.before(it, first)) {
			first = it
		}
	}
	if first == nil {
		w.note("claim: nothing")
		w.want("claim of nothing", err, queue.ErrEmpty)
		return
	}
	w.want("claim", err, nil)
	w.note("claim %s#%d for %s", c.Item.ID, c.Fence, lease)
	it := w.items[c.Item.ID]
	if it == nil || it.state != queue.Ready || it.priority != first.priority || it.notBefore.After(w.clock.Now()) {
		w.fail("claimed %s, want %s", c.Item.ID, first.id)
	}
	if c.Fence <= it.fence {
		w.fail("%s: number %d after %d", it.id, c.Fence, it.fence)
	}
	it.state, it.fence, it.token, it.lease, it.until, it.steps = queue.Claimed, c.Fence, c.Token, lease, w.clock.Now().Add(lease), 0
}

func (w *world) before(a, b *entry) bool { return a.priority < b.priority }

// over notes that a claim is over, and how it ended: saying that again is no error.
func (w *world) over(it *entry, how string) { w.old = append(w.old, old{it.id, it.token, how}) }

func (w *world) doDone() {
	it := w.some(in(queue.Claimed))
	if it == nil {
		return
	}
	w.note("done %s", it.id)
	_, err := w.handle().Done(w.Context(), it.token, queue.Outcome{Summary: it.id})
	w.want("done", err, nil)
	it.state = queue.Done
	w.over(it, "done")
	for _, o := range w.items {
		if o.state == queue.Blocked && !o.parked {
			w.belongs(o)
		}
	}
}

// failure is the word by which an item failed.
func failure(f queue.Failure) string {
	switch {
	case f.Permanent:
		return "fail for good"
	case f.Free:
		return "fail free"
	}
	return "fail"
}

func (w *world) doFail() {
	it := w.some(in(queue.Claimed))
	if it == nil {
		return
	}
	f := queue.Failure{Error: "no", Permanent: w.rand.IntN(5) == 0, Free: w.rand.IntN(5) == 0}
	if w.rand.IntN(3) == 0 {
		f.RetryAfter = time.Minute
	}
	w.note("fail %s %+v", it.id, f)
	_, err := w.handle().Fail(w.Context(), it.token, f)
	w.want("fail", err, nil)
	w.over(it, failure(f))
	if !f.Free {
		it.attempts++
	}
	w.belongs(it)
	it.notBefore = w.clock.Now().Add(cmp.Or(f.RetryAfter, queue.Backoff(it.attempts)))
	if f.Permanent || it.attempts >= it.limit {
		it.state = queue.Dead
	}
}

func (w *world) doRelease() {
	if it := w.some(in(queue.Claimed)); it != nil {
		w.note("release %s", it.id)
		_, err := w.handle().Release(w.Context(), it.token, "")
		w.want("release", err, nil)
		w.over(it, "release")
		w.belongs(it)
	}
}

func (w *world) doExtend() {
	if it := w.some(in(queue.Claimed)); it != nil {
		it.lease = time.Duration(1+w.rand.IntN(200)) * time.Second
		w.note("extend %s by %s", it.id, it.lease)
		until, err := w.handle().Extend(w.Context(), it.token, it.lease)
		w.want("extend", err, nil)
		it.until = w.clock.Now().Add(it.lease)
		if !until.Equal(it.until) {
			w.fail("extended until %s, want %s", until, it.until)
		}
	}
}

func (w *world) doProgress() {
	if it := w.some(in(queue.Claimed)); it != nil {
		it.steps++
		w.note("progress %s", it.id)
		w.want("progress", w.handle().Progress(w.Context(), it.token, queue.Progress{StepsCompleted: it.steps}), nil)
	}
}

// doLate says something under a claim that is over.
func (w *world) doLate() {
	if len(w.old) == 0 {
		return
	}
	o := w.old[w.rand.IntN(len(w.old))]
	q, ctx := w.handle(), w.Context()
	w.note("late word for %s", o.token)
	what := []string{"done", "fail", "release", "extend", "progress", "park"}[w.rand.IntN(6)]
	var err error
	failed := queue.Failure{Error: "late", Permanent: w.rand.IntN(3) == 0, Free: w.rand.IntN(3) == 0}
	switch what {
	case "done":
		_, err = q.Done(ctx, o.token, queue.Outcome{Summary: "late"})
	case "fail":
		what = failure(failed)
		_, err = q.Fail(ctx, o.token, failed)
	case "release":
		_, err = q.Release(ctx, o.token, "late")
	case "extend":
		_, err = q.Extend(ctx, o.token, time.Hour)
	case "progress":
		err = q.Progress(ctx, o.token, queue.Progress{StepsCompleted: 99})
	case "park":
		_, err = q.Park(ctx, o.id, o.token, "late")
	}
	if what == o.how {
		w.want("the same word again", err, nil)
		return
	}
	w.want("late word: "+what, err, queue.ErrLost)
}

func (w *world) doPark() {
	it := w.some(anyItem)
	if it == nil {
		return
	}
	w.note("park %s", it.id)
	if it.state == queue.Claimed && w.rand.IntN(2) == 0 {
		_, err := w.handle().Park(w.Context(), it.id, it.token, "")
		w.want("park", err, nil)
		w.over(it, "park")
		it.state, it.parked = queue.Blocked, true
		return
	}
	_, err := w.handle().Park(w.Context(), it.id, "", "")
	if it.state != queue.Ready && it.state != queue.Blocked {
		w.want("park", err, queue.ErrState)
		return
	}
	w.want("park", err, nil)
	it.state, it.parked = queue.Blocked, true
}

func (w *world) doUnpark() {
	it := w.some(func(e *entry) bool { return e.parked || w.rand.IntN(10) == 0 })
	if it == nil {
		return
	}
	w.note("unpark %s", it.id)
	_, err := w.handle().Unpark(w.Context(), it.id, "")
	if !it.parked {
		w.want("unpark", err, queue.ErrState)
		return
	}
	w.want("unpark", err, nil)
	it.parked = false
	w.belongs(it)
}

func (w *world) doRetry() {
	it := w.some(func(e *entry) bool { return e.state == queue.Dead || w.rand.IntN(10) == 0 })
	if it == nil {
		return
	}
	w.note("retry %s", it.id)
	_, err := w.handle().Retry(w.Context(), it.id, "")
	if it.state != queue.Dead {
		w.want("retry", err, queue.ErrState)
		return
	}
	w.want("retry", err, nil)
	it.attempts, it.lost, it.notBefore = 0, 0, time.Time{}
	w.belongs(it)
}

func (w *world) doDrop() {
	it := w.some(anyItem)
	if it == nil || w.rand.IntN(3) > 0 {
		return
	}
	w.note("drop %s", it.id)
	_, err := w.handle().Drop(w.Context(), it.id, "")
	if it.state == queue.Claimed || it.state == queue.Done {
		w.want("drop", err, queue.ErrState)
		return
	}
	w.want("drop", err, nil)
	it.state, it.parked = queue.Dead, false
}

// reaches reports whether from depends on to, over things that are not done.
func (w *world) reaches(from, to string) bool {
	if from == to {
		return true
	}
	if w.items[from].state == queue.Done {
		return false
	}
	return slices.ContainsFunc(w.items[from].deps, func(d string) bool { return w.reaches(d, to) })
}

func (w *world) doEdit() {
	it, dep := w.some(anyItem), w.some(anyItem)
	if it == nil {
		return
	}
	e := queue.Edit{Priority: prio(w.rand.IntN(10))}
	if w.rand.IntN(2) == 0 {
		e.DependsOn = ptr([]string{dep.id})
	}
	w.note("edit %s %v", it.id, e.DependsOn)
	_, err := w.handle().Edit(w.Context(), it.id, e)
	switch {
	case it.state == queue.Claimed || it.state == queue.Done:
		w.want("edit", err, queue.ErrState)
		return
	case e.DependsOn != nil && w.reaches(dep.id, it.id):
		w.want("edit to a cycle", err, queue.ErrCycle)
		return
	}
	w.want("edit", err, nil)
	it.priority = *e.Priority
	if e.DependsOn != nil {
		it.deps = *e.DependsOn
	}
	if it.state != queue.Dead && !it.parked {
		w.belongs(it)
	}
}

func (w *world) doCycle() {
	_, err := w.handle().Add(w.Context(), queue.Item{ID: "cy-a", Title: "a", DependsOn: []string{"cy-b"}}, queue.Item{ID: "cy-b", Title: "b", DependsOn: []string{"cy-a"}})
	w.want("a cycle", err, queue.ErrCycle)
}

// compare looks at everything there is.
func (w *world) compare() {
	seen := map[string]bool{}
	for _, got := range w.env.items() {
		if !strings.HasPrefix(got.ID, w.prefix) {
			continue
		}
		it := w.items[got.ID]
		if it == nil || seen[got.ID] {
			w.fail("%s is there twice, or was never added", got.ID)
		}
		seen[got.ID] = true
		have := fmt.Sprint(got.State, got.Fence, got.Attempts, got.Lost, got.Urgency(), got.DependsOn, got.State == queue.Blocked && got.Waits == "")
		want := fmt.Sprint(it.state, it.fence, it.attempts, it.lost, it.priority, it.deps, it.parked)
		if have != want {
			w.fail("%s is %s, want %s", got.ID, have, want)
		}
		if got.State == queue.Claimed && it.steps > 0 && (got.Progress == nil || got.Progress.StepsCompleted != it.steps) {
			w.fail("%s: progress %v, want %d", got.ID, got.Progress, it.steps)
		}
	}
	if len(seen) != len(w.items) {
		w.fail("%d items, want %d", len(seen), len(w.items))
	}
}
