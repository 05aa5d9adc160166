// Package queuetest holds the tests that every backend of a queue must pass. A
// backend's own test calls [Run] with a way to make an empty store. No program links
// it; it owns no file and takes no lock.
package queuetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"reprise/internal/queue"
)

// Clock is a clock that tests set.
type Clock struct {
	mu sync.Mutex
	at time.Time
}

// NewClock is a clock that stands at a time of no meaning.
func NewClock() *Clock { return &Clock{at: time.Date(2026, 3, 1, 22, 0, 0, 0, time.UTC)} }

// Now is the time by the clock.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

// Add moves the clock, also back.
func (c *Clock) Add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

// Store is one empty store of a backend. Each call of Open is what another process
// would do: it shares nothing with the others but the store.
type Store struct {
	Open func(t testing.TB, now func() time.Time, record func(context.Context, queue.Change)) queue.Queue
	// Vanish takes the item away, wherever it is, as a hand does that removes it from the
	// store.
	Vanish func(t testing.TB, id string)
	// Damage puts those bytes in the place of the item's, as a hand or a disk does.
	Damage func(t testing.TB, id string, data []byte)
	// Away opens the store where it cannot be written for the moment: its disk is full, its
	// servers do not answer. What needs no writing may go on.
	Away func(t testing.TB, now func() time.Time) queue.Queue
}

// Run runs all tests on stores that fresh makes.
func Run(t *testing.T, fresh func(t testing.TB) Store) {
	for _, test := range []struct {
		name string
		run  func(*env)
	}{
		{"Order", order}, {"Empty", empty}, {"IdempotentAdd", idempotentAdd}, {"AddRefuses", addRefuses},
		{"Fields", fields}, {"Dependencies", dependencies}, {"Cycles", cycles}, {"NotBefore", notBefore},
		{"Filters", filters}, {"LateWords", lateWords}, {"Extend", extend}, {"Failures", failures}, {"Lost", lost},
		{"Release", release}, {"Progress", progress}, {"SaidTwice", saidTwice}, {"Park", park}, {"Drop", drop},
		{"Edit", edit}, {"EditCycles", editCycles}, {"Retention", retention}, {"Changes", changes}, {"CountAndCheck", countAndCheck},
		{"Wait", wait}, {"WaitForNothing", waitForNothing}, {"WaitForTime", waitForTime}, {"Together", together}, {"SameKeyTogether", sameKeyTogether},
		{"Model", model}, {"Vanished", vanished}, {"TakeOut", takeOut}, {"Away", away}, {"WaitsForDead", waitsForDead}, {"OtherWord", otherWord},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			e := &env{T: t, clock: NewClock(), store: fresh(t)}
			e.Queue = e.open()
			test.run(e)
		})
	}
}

// env is a queue with what tests ask of it.
type env struct {
	*testing.T
	queue.Queue
	clock *Clock
	store Store
}

func (e *env) open() queue.Queue {
	q := e.store.Open(e.T, e.clock.Now, nil)
	e.Cleanup(func() { q.Close() })
	return q
}

func (e *env) ok(err error) {
	e.Helper()
	if err != nil {
		e.Fatal(err)
	}
}

func (e *env) is(err, want error) {
	e.Helper()
	if !errors.Is(err, want) {
		e.Fatalf("error %v, want one that is %q", err, want)
	}
}

func (e *env) eq(what string, got, want any) {
	e.Helper()
	if g, w := fmt.Sprint(got), fmt.Sprint(want); g != w {
		e.Fatalf("%s: got %s, want %s", what, g, w)
	}
}

func (e *env) add(items ...queue.Item) []string {
	e.Helper()
	added, err := e.Queue.Add(e.Context(), items...)
	e.ok(err)
	ids := make([]string, len(added))
	for i, a := range added {
		ids[i] = a.Item.ID
	}
	return ids
}

func (e *env) one(title string) string {
	e.Helper()
	return e.add(queue.Item{Title: title})[0]
}

func (e *env) claim(opt queue.ClaimOptions) queue.Claim {
	e.Helper()
	c, err := e.Claim(e.Context(), opt)
	e.ok(err)
	return c
}

func (e *env) none() {
	e.Helper()
	c, err := e.Claim(e.Context(), queue.ClaimOptions{})
	if !errors.Is(err, queue.ErrEmpty) {
		e.Fatalf("claimed %s (%v), want nothing", c.Item.ID, err)
	}
}

func (e *env) get(id string) queue.Item {
	e.Helper()
	it, err := e.Get(e.Context(), id)
	e.ok(err)
	return it
}

func (e *env) state(id string, want queue.State) queue.Item {
	e.Helper()
	it := e.get(id)
	if it.State != want {
		e.Fatalf("%s is %s, want %s", id, it.State, want)
	}
	return it
}

func (e *env) list(f queue.Filter) []string {
	e.Helper()
	l, err := e.List(e.Context(), f)
	e.ok(err)
	if len(l.Trouble) > 0 {
		e.Fatalf("trouble: %v", l.Trouble)
	}
	var ids []string
	for _, it := range l.Items {
		ids = append(ids, it.ID)
	}
	return ids
}

func prio(n int) *int { return &n }

func ptr[T any](v T) *T { return &v }

func order(e *env) {
	ids := e.add(
		queue.Item{ID: "b5", Title: "later, usual"}, queue.Item{ID: "c9", Title: "no hurry", Priority: prio(9)},
		queue.Item{ID: "a5", Title: "usual"}, queue.Item{ID: "d0", Title: "at once", Priority: prio(0)},
	)
	e.eq("order of what was added", ids, []string{"b5", "c9", "a5", "d0"})
	e.clock.Add(-time.Hour) // an older one by the clock, though it was added later
	e.add(queue.Item{ID: "e5", Title: "old"})
	e.clock.Add(time.Hour)
	e.eq("listing", e.list(queue.Filter{}), []string{"d0", "e5", "b5", "a5", "c9"})
	next, err := e.Next(e.Context(), queue.ClaimOptions{})
	e.ok(err)
	e.eq("next", next.ID, "d0")
	other := e.open()
	for i, want := range []string{"d0", "e5", "b5", "a5", "c9"} {
		q := []queue.Queue{e.Queue, other}[i%2]
		c, err := q.Claim(e.Context(), queue.ClaimOptions{Worker: "w"})
		e.ok(err)
		e.eq("claimed", c.Item.ID, want)
		e.eq("number", c.Fence, 1)
		e.eq("state", c.Item.State, queue.Claimed)
		if !c.Until.Equal(e.clock.Now().Add(queue.DefaultLease)) {
			e.Fatalf("the lease ends at %s", c.Until)
		}
	}
	e.none()
	// One that is more urgent comes first, though another process has looked before.
	e.add(queue.Item{ID: "f5", Title: "x"})
	_, err = other.Next(e.Context(), queue.ClaimOptions{})
	e.ok(err)
	e.add(queue.Item{ID: "g1", Title: "x", Priority: prio(1)})
	c, err := other.Claim(e.Context(), queue.ClaimOptions{})
	e.ok(err)
	e.eq("claimed", c.Item.ID, "g1")
}

func empty(e *env) {
	e.none()
	_, err := e.Next(e.Context(), queue.ClaimOptions{})
	e.is(err, queue.ErrEmpty)
	_, err = e.Get(e.Context(), "nothing")
	e.is(err, queue.ErrNotFound)
	_, err = e.Claim(e.Context(), queue.ClaimOptions{ID: "nothing"})
	e.is(err, queue.ErrNotFound)
	_, err = e.Done(e.Context(), "nonsense", queue.Outcome{})
	e.is(err, queue.ErrLost)
	e.eq("listing", len(e.list(queue.Filter{})), 0)
	added, err := e.Queue.Add(e.Context())
	e.ok(err)
	e.eq("added", len(added), 0)
	_, err = e.Claim(e.Context(), queue.ClaimOptions{Lease: time.Millisecond})
	e.is(err, queue.ErrInvalid)
}

func idempotentAdd(e *env) {
	first, err := e.Queue.Add(e.Context(), queue.Item{Key: "gh:o/r#1", Title: "one"})
	e.ok(err)
	if !first[0].New {
		e.Fatal("the first is not new")
	}
	again, err := e.open().Add(e.Context(), queue.Item{Key: "gh:o/r#1", Title: "another title"}, queue.Item{Key: "k2", Title: "two"}, queue.Item{Key: "k2", Title: "two again"})
	e.ok(err)
	if again[0].New || !again[1].New || again[2].New {
		e.Fatalf("new: %v %v %v", again[0].New, again[1].New, again[2].New)
	}
	e.eq("title", again[0].Item.Title, "one")
	e.eq("id", again[0].Item.ID, first[0].Item.ID)
	e.eq("by key", e.get("gh:o/r#1").ID, first[0].Item.ID)
	for range 2 {
		c := e.claim(queue.ClaimOptions{})
		_, err = e.Done(e.Context(), c.Token, queue.Outcome{})
		e.ok(err)
	}
	again, err = e.Queue.Add(e.Context(), queue.Item{Key: "gh:o/r#1", Title: "one"}) // done things stay done
	e.ok(err)
	if again[0].New || again[0].Item.State != queue.Done {
		e.Fatalf("added again: %+v", again[0])
	}
	e.none()
}

func addRefuses(e *env) {
	for name, it := range map[string]queue.Item{
		"no title": {}, "id and key": {Title: "a", ID: "a", Key: "a"}, "blank title": {Title: " "}, "two lines": {Title: "a\nb"}, "id": {Title: "a", ID: "A/../b"},
		"long id": {Title: "a", ID: strings.Repeat("a", 61)}, "id longer than a workspace's name": {Title: "a", ID: strings.Repeat("a", 59)}, "priority": {Title: "a", Priority: prio(10)}, "negative priority": {Title: "a", Priority: prio(-1)},
		"two dots": {Title: "a", ID: "a..b"}, "lock": {Title: "a", ID: "a.lock"}, "dot at the end": {Title: "a", ID: "a."}, "agent": {Title: "a", Agent: "cluade"},
		"unknown dependency": {Title: "a", DependsOn: []string{"nothing"}}, "empty label": {Title: "a", Labels: []string{""}},
		"attempts": {Title: "a", MaxAttempts: -1}, "data": {Title: "a", Data: json.RawMessage("{")}, "not UTF-8": {Title: "a\xff"},
		"huge": {Title: "a", Body: strings.Repeat("x", queue.MaxItemBytes+1)}, "year": {Title: "a", NotBefore: time.Date(12000, 1, 1, 0, 0, 0, 0, time.UTC)},
	} {
		if _, err := e.Queue.Add(e.Context(), queue.Item{Title: "good"}, it); !errors.Is(err, queue.ErrInvalid) {
			e.Errorf("%s: error %v", name, err)
		}
	}
	e.eq("after refusals", len(e.list(queue.Filter{})), 0)
	e.add(queue.Item{ID: "a", Title: "a"})
	for name, edit := range map[string]queue.Edit{
		"no title": {Title: ptr("")}, "empty label": {Labels: ptr([]string{" "})}, "agent": {Agent: ptr("cluade")}, "priority": {Priority: prio(10)},
		"unknown dependency": {DependsOn: ptr([]string{"nothing"})}, "attempts": {MaxAttempts: ptr(-1)},
	} {
		if _, err := e.Queue.Edit(e.Context(), "a", edit); !errors.Is(err, queue.ErrInvalid) {
			e.Errorf("edit, %s: error %v", name, err)
		}
	}
	e.eq("edits", len(e.get("a").History), 1)
	if _, err := e.Drop(e.Context(), "a", ""); err != nil {
		e.Fatal(err)
	}
	e.add(queue.Item{Title: "huge", Body: strings.Repeat("x", queue.MaxItemBytes/2)})
	c := e.claim(queue.ClaimOptions{})
	e.eq("length", len(c.Item.Body), queue.MaxItemBytes/2)
}

func fields(e *env) {
	in := queue.Item{
		Key: "ключ-鍵", Title: "Добавить 認証 🎉", Body: "Line one\n\n```go\nfmt.Println(\"<&>\")\n```\n", Priority: prio(3), Labels: []string{"ui", "ui", "größe"},
		MaxAttempts: 7, Source: "jsonl", Task: "012/2", Agent: "codex", NoChangeOK: true, Data: json.RawMessage(`{"turns":5}`),
	}
	id := e.add(in)[0]
	for _, it := range []queue.Item{e.get(id), e.claim(queue.ClaimOptions{}).Item, e.get(in.Key)} {
		e.eq("texts", []string{it.Key, it.Title, it.Body, it.Source, it.Task, it.Agent}, []string{in.Key, in.Title, in.Body, in.Source, in.Task, in.Agent})
		e.eq("rest", []any{it.Urgency(), it.Labels, it.MaxAttempts, it.NoChangeOK}, []any{3, []string{"ui", "größe"}, 7, true})
		var data struct{ Turns int }
		e.ok(json.Unmarshal(it.Data, &data))
		e.eq("data", data.Turns, 5)
		e.eq("history", it.History[0].Op, queue.OpAdd)
	}
}

func dependencies(e *env) {
	ids := e.add(
		queue.Item{ID: "last", Title: "needs both", DependsOn: []string{"a", "key of b"}, Priority: prio(0)},
		queue.Item{ID: "a", Title: "a"}, queue.Item{Key: "key of b", Title: "b", DependsOn: []string{"a"}},
	)
	b := ids[2]
	e.state("last", queue.Blocked)
	e.state(b, queue.Blocked)
	a := e.claim(queue.ClaimOptions{})
	e.eq("claimed", a.Item.ID, "a")
	e.none()
	if _, err := e.Fail(e.Context(), a.Token, queue.Failure{Error: "x", Permanent: true}); err != nil {
		e.Fatal(err)
	}
	e.none()
	e.state(b, queue.Blocked)
	_, err := e.Retry(e.Context(), "a", "")
	e.ok(err)
	a = e.claim(queue.ClaimOptions{})
	_, err = e.Done(e.Context(), a.Token, queue.Outcome{Summary: "done"})
	e.ok(err)
	e.state("last", queue.Blocked)
	e.eq("waits for", e.get("last").Waits, b)
	second := e.claim(queue.ClaimOptions{})
	e.eq("claimed", second.Item.ID, b)
	_, err = e.Done(e.Context(), second.Token, queue.Outcome{})
	e.ok(err)
	last := e.claim(queue.ClaimOptions{})
	e.eq("claimed", last.Item.ID, "last")
	e.eq("depends on", last.Item.DependsOn, []string{"a", b})
	// On what is done already nothing waits.
	e.add(queue.Item{ID: "new", Title: "new", DependsOn: []string{"a", b}})
	e.state("new", queue.Ready)
}

func cycles(e *env) {
	_, err := e.Queue.Add(e.Context(), queue.Item{ID: "a", Title: "a", DependsOn: []string{"c"}}, queue.Item{ID: "b", Title: "b", DependsOn: []string{"a"}}, queue.Item{ID: "c", Title: "c", DependsOn: []string{"b"}})
	e.is(err, queue.ErrCycle)
	_, err = e.Queue.Add(e.Context(), queue.Item{ID: "a", Title: "a", DependsOn: []string{"a"}})
	e.is(err, queue.ErrCycle)
	e.eq("after refusals", len(e.list(queue.Filter{})), 0)
	long := make([]queue.Item, 60)
	for i := range long {
		long[i] = queue.Item{ID: fmt.Sprintf("an-item-with-a-long-name-%02d", i), Title: "x", DependsOn: []string{fmt.Sprintf("an-item-with-a-long-name-%02d", (i+1)%len(long))}}
	}
	_, err = e.Queue.Add(e.Context(), long...)
	e.shortCycle(err)
	first := long[0].DependsOn
	long[0].DependsOn = nil
	slices.Reverse(long)
	e.add(long...)
	_, err = e.Edit(e.Context(), long[len(long)-1].ID, queue.Edit{DependsOn: &first})
	e.shortCycle(err)
}

// shortCycle: a cycle is told, a long one in short.
func (e *env) shortCycle(err error) {
	e.Helper()
	e.is(err, queue.ErrCycle)
	if n := len(err.Error()); n > 600 || !strings.Contains(err.Error(), " more) ") {
		e.Fatalf("%d bytes: %v", n, err)
	}
}

func notBefore(e *env) {
	at := e.clock.Now().Add(time.Hour)
	e.add(queue.Item{ID: "later", Title: "later", NotBefore: at, Priority: prio(0)}, queue.Item{ID: "now", Title: "now"})
	e.eq("claimed", e.claim(queue.ClaimOptions{Lease: 24 * time.Hour}).Item.ID, "now")
	e.none()
	_, err := e.Claim(e.Context(), queue.ClaimOptions{ID: "later"})
	e.is(err, queue.ErrEmpty)
	e.clock.Add(time.Hour - time.Second)
	e.none()
	e.clock.Add(time.Second)
	next, err := e.Next(e.Context(), queue.ClaimOptions{})
	e.ok(err)
	e.eq("next", next.ID, "later")
	e.clock.Add(-time.Hour) // the clock is set back
	e.none()
	e.clock.Add(2 * time.Hour)
	e.eq("claimed", e.claim(queue.ClaimOptions{}).Item.ID, "later")
}

func filters(e *env) {
	e.add(
		queue.Item{ID: "plain", Title: "x"}, queue.Item{ID: "ui", Title: "x", Labels: []string{"ui"}},
		queue.Item{ID: "both", Title: "x", Labels: []string{"ui", "big"}}, queue.Item{ID: "codex", Title: "x", Agent: "codex", Priority: prio(0)},
	)
	e.eq("by label", e.list(queue.Filter{Labels: []string{"ui"}}), []string{"ui", "both"})
	e.eq("by state", len(e.list(queue.Filter{States: []queue.State{queue.Done, queue.Claimed}})), 0)
	e.eq("claimed", e.claim(queue.ClaimOptions{Labels: []string{"ui", "big"}}).Item.ID, "both")
	_, err := e.Claim(e.Context(), queue.ClaimOptions{Labels: []string{"ui", "big"}})
	e.is(err, queue.ErrEmpty)
	e.eq("claimed", e.claim(queue.ClaimOptions{Agent: "claude"}).Item.ID, "plain")
	e.eq("claimed", e.claim(queue.ClaimOptions{ID: "ui"}).Item.ID, "ui")
	_, err = e.Claim(e.Context(), queue.ClaimOptions{ID: "ui"})
	e.is(err, queue.ErrState)
	_, err = e.Claim(e.Context(), queue.ClaimOptions{Agent: "claude"})
	e.is(err, queue.ErrEmpty)
	e.eq("claimed", e.claim(queue.ClaimOptions{Agent: "codex"}).Item.ID, "codex")
	e.eq("by state", e.list(queue.Filter{States: []queue.State{queue.Claimed}}), []string{"codex", "plain", "ui", "both"})
	e.add(queue.Item{ID: "gpu", Title: "x", Labels: []string{"needs-gpu"}, Task: "012/2", Agent: "codex", Priority: prio(0)}, queue.Item{ID: "late", Title: "x"})
	only := queue.ClaimOptions{Fits: func(it *queue.Item) bool {
		return it.Task == "" && it.Agent == "" && len(it.Labels) == 0 && it.ID == "late"
	}}
	next, err := e.Next(e.Context(), only)
	e.ok(err)
	e.eq("next that fits", next.ID, "late")
	e.eq("claimed that fits", e.claim(only).Item.ID, "late")
	_, err = e.Claim(e.Context(), only)
	e.is(err, queue.ErrEmpty)
}

// expire lets all leases run out. A clock that only went on is enough for holders that
// are not bound to a process.
func (e *env) expire() { e.clock.Add(queue.DefaultLease + time.Second) }

func lateWords(e *env) {
	id := e.one("x")
	old := e.claim(queue.ClaimOptions{Worker: "slow"})
	e.expire()
	// Its lease ran out, and nobody has the item yet: it is still its worker's.
	_, err := e.Extend(e.Context(), old.Token, 0)
	e.ok(err)
	e.expire()
	c, err := e.open().Claim(e.Context(), queue.ClaimOptions{Worker: "quick"})
	e.ok(err)
	e.eq("claimed", c.Item.ID, id)
	if c.Fence <= old.Fence {
		e.Fatalf("number %d after %d", c.Fence, old.Fence)
	}
	_, err = e.Done(e.Context(), old.Token, queue.Outcome{Summary: "late"})
	e.is(err, queue.ErrLost)
	_, err = e.Fail(e.Context(), old.Token, queue.Failure{Error: "late"})
	e.is(err, queue.ErrLost)
	_, err = e.Release(e.Context(), old.Token, "late")
	e.is(err, queue.ErrLost)
	_, err = e.Extend(e.Context(), old.Token, 0)
	e.is(err, queue.ErrLost)
	e.is(e.Queue.Progress(e.Context(), old.Token, queue.Progress{StepsTotal: 1}), queue.ErrLost)
	_, err = e.Park(e.Context(), id, old.Token, "late")
	e.is(err, queue.ErrLost)
	it := e.state(id, queue.Claimed)
	e.eq("holder", it.Claim.Worker, "quick")
	_, err = e.Done(e.Context(), c.Token, queue.Outcome{Summary: "right"})
	e.ok(err)
	_, err = e.Done(e.Context(), old.Token, queue.Outcome{Summary: "late"})
	e.is(err, queue.ErrLost)
	e.eq("summary", e.state(id, queue.Done).Result.Summary, "right")
}

func extend(e *env) {
	id := e.one("x")
	c := e.claim(queue.ClaimOptions{Lease: 10 * time.Second})
	other := e.open()
	for n := range 5 {
		e.clock.Add(9 * time.Second)
		_, err := other.Claim(e.Context(), queue.ClaimOptions{})
		e.is(err, queue.ErrEmpty)
		as := 10 * time.Second
		if n%2 == 0 {
			as = 0 // as long as before
		}
		until, err := e.Extend(e.Context(), c.Token, as)
		e.ok(err)
		if !until.Equal(e.clock.Now().Add(10 * time.Second)) {
			e.Fatalf("extended until %s at %s", until, e.clock.Now())
		}
	}
	e.eq("until", e.state(id, queue.Claimed).Claim.Until, e.clock.Now().Add(10*time.Second))
	e.clock.Add(11 * time.Second)
	_, err := other.Claim(e.Context(), queue.ClaimOptions{})
	e.ok(err)
}

func failures(e *env) {
	id := e.add(queue.Item{Title: "x", MaxAttempts: 4})[0]
	for n, wait := range []time.Duration{2 * time.Second, 4 * time.Second, 8 * time.Second} {
		c := e.claim(queue.ClaimOptions{})
		it, err := e.Fail(e.Context(), c.Token, queue.Failure{Error: fmt.Sprint("no ", n)})
		e.ok(err)
		e.eq("attempts", it.Attempts, n+1)
		e.none()
		e.clock.Add(wait - time.Millisecond)
		e.none()
		e.clock.Add(time.Millisecond)
	}
	c := e.claim(queue.ClaimOptions{})
	e.eq("number", c.Fence, 4)
	_, err := e.Fail(e.Context(), c.Token, queue.Failure{Error: "the last"})
	e.ok(err)
	it := e.state(id, queue.Dead)
	e.eq("last error", it.LastError, "the last")
	e.none()
	it, err = e.Retry(e.Context(), id, "fixed the cause")
	e.ok(err)
	e.eq("attempts", it.Attempts, 0)
	c = e.claim(queue.ClaimOptions{})
	if c.Fence <= 4 {
		e.Fatalf("number %d after a retry", c.Fence)
	}
	_, err = e.Fail(e.Context(), c.Token, queue.Failure{Error: "limit", RetryAfter: time.Hour, Free: true})
	e.ok(err)
	it = e.state(id, queue.Ready)
	e.eq("attempts", it.Attempts, 0)
	e.clock.Add(time.Hour - time.Second)
	e.none()
	e.clock.Add(time.Second)
	c = e.claim(queue.ClaimOptions{})
	_, err = e.Fail(e.Context(), c.Token, queue.Failure{Error: "hopeless", Permanent: true, Outcome: queue.Outcome{Run: "run-1"}})
	e.ok(err)
	e.eq("run", e.state(id, queue.Dead).Result.Run, "run-1")
	_, err = e.Retry(e.Context(), "nothing", "")
	e.is(err, queue.ErrNotFound)
}

func lost(e *env) {
	id := e.one("x")
	for n := range queue.MaxLost {
		e.claim(queue.ClaimOptions{Worker: "w"})
		e.expire()
		items, err := e.Reclaim(e.Context())
		e.ok(err)
		e.eq("given back", len(items), 1)
		e.eq("lost", items[0].Lost, n+1)
	}
	it := e.state(id, queue.Dead)
	e.eq("attempts", it.Attempts, 0)
	if it.Reason == "" {
		e.Fatal("it does not say why it is dead")
	}
	items, err := e.Reclaim(e.Context())
	e.ok(err)
	e.eq("given back", len(items), 0)
}

func release(e *env) {
	id := e.one("x")
	c := e.claim(queue.ClaimOptions{})
	it, err := e.Release(e.Context(), c.Token, "stopped")
	e.ok(err)
	e.eq("attempts", it.Attempts, 0)
	e.state(id, queue.Ready)
	_, err = e.Done(e.Context(), c.Token, queue.Outcome{})
	e.is(err, queue.ErrLost)
	e.eq("number", e.claim(queue.ClaimOptions{}).Fence, 2)
}

func progress(e *env) {
	id := e.one("x")
	c := e.claim(queue.ClaimOptions{})
	e.ok(e.Queue.Progress(e.Context(), c.Token, queue.Progress{StepsCompleted: 3, StepsTotal: 10, CurrentStep: "Implementing"}))
	p := e.state(id, queue.Claimed).Progress
	e.eq("progress", []any{p.StepsCompleted, p.StepsTotal, p.CurrentStep}, []any{3, 10, "Implementing"})
	e.is(e.Queue.Progress(e.Context(), c.Token, queue.Progress{StepsCompleted: 11, StepsTotal: 10}), queue.ErrInvalid)
	_, err := e.Done(e.Context(), c.Token, queue.Outcome{})
	e.ok(err)
	e.is(e.Queue.Progress(e.Context(), c.Token, queue.Progress{}), queue.ErrLost)
}

func saidTwice(e *env) {
	a, b := e.one("a"), e.one("b")
	c := e.claim(queue.ClaimOptions{ID: a})
	for range 2 {
		it, err := e.open().Done(e.Context(), c.Token, queue.Outcome{Summary: "yes"})
		e.ok(err)
		e.eq("state", it.State, queue.Done)
	}
	c = e.claim(queue.ClaimOptions{ID: b})
	for range 2 {
		it, err := e.Fail(e.Context(), c.Token, queue.Failure{Error: "no"})
		e.ok(err)
		e.eq("attempts", it.Attempts, 1)
	}
	_, err := e.Done(e.Context(), c.Token, queue.Outcome{})
	e.is(err, queue.ErrLost)
	e.eq("history", len(e.get(a).History), 3)
}

func park(e *env) {
	id := e.one("x")
	it, err := e.Park(e.Context(), id, "", "ask Ann")
	e.ok(err)
	e.eq("state", it.State, queue.Blocked)
	e.eq("reason", e.get(id).Reason, "ask Ann")
	_, err = e.Park(e.Context(), id, "", "") // who has no other reason takes none away
	e.ok(err)
	e.eq("reason of one parked again", e.state(id, queue.Blocked).Reason, "ask Ann")
	_, err = e.Park(e.Context(), id, "", "ask Bea")
	e.ok(err)
	e.eq("another reason", e.get(id).Reason, "ask Bea")
	e.none()
	_, err = e.Claim(e.Context(), queue.ClaimOptions{ID: id})
	e.is(err, queue.ErrState)
	it, err = e.Unpark(e.Context(), id, "")
	e.ok(err)
	e.eq("state", it.State, queue.Ready)
	_, err = e.Unpark(e.Context(), id, "")
	e.is(err, queue.ErrState)
	c := e.claim(queue.ClaimOptions{})
	_, err = e.Park(e.Context(), id, "", "not mine")
	e.is(err, queue.ErrState)
	_, err = e.Park(e.Context(), id, c.Token, "interrupted")
	e.ok(err)
	e.eq("reason", e.state(id, queue.Blocked).Reason, "interrupted")
	_, err = e.Done(e.Context(), c.Token, queue.Outcome{})
	e.is(err, queue.ErrLost)
	// One that also waits for another goes on waiting.
	e.add(queue.Item{ID: "dep", Title: "dep"}, queue.Item{ID: "waits", Title: "waits", DependsOn: []string{"dep"}})
	_, err = e.Park(e.Context(), "waits", "", "")
	e.ok(err)
	e.eq("waits for", e.get("waits").Waits, "")
	_, err = e.Unpark(e.Context(), "waits", "")
	e.ok(err)
	e.eq("waits for", e.state("waits", queue.Blocked).Waits, "dep")
	_, err = e.Park(e.Context(), "waits", "", "")
	e.ok(err)
	_, err = e.Done(e.Context(), e.claim(queue.ClaimOptions{}).Token, queue.Outcome{})
	e.ok(err)
	e.state("waits", queue.Blocked) // what it waited for is done, and it is still parked
	_, err = e.Unpark(e.Context(), "waits", "")
	e.ok(err)
	// Why it was released, or failed, is not why it is parked.
	_, err = e.Release(e.Context(), e.claim(queue.ClaimOptions{ID: "waits"}).Token, "too late for today")
	e.ok(err)
	_, err = e.Park(e.Context(), "waits", "", "")
	e.ok(err)
	e.eq("reason", e.state("waits", queue.Blocked).Reason, "")
	_, err = e.Unpark(e.Context(), "waits", "")
	e.ok(err)
	e.state("waits", queue.Ready)
}

func drop(e *env) {
	id := e.one("x")
	e.add(queue.Item{ID: "waits", Title: "waits", DependsOn: []string{id}})
	for _, id := range []string{id, "waits"} {
		_, err := e.Drop(e.Context(), id, "not needed")
		e.ok(err)
		e.eq("reason", e.state(id, queue.Dead).Reason, "not needed")
	}
	e.none()
	_, err := e.Drop(e.Context(), id, "nor wanted")
	e.ok(err)
	_, err = e.Edit(e.Context(), id, queue.Edit{Title: ptr("X")})
	e.ok(err)
	gone := e.state(id, queue.Dead)
	e.eq("dropped again", []any{gone.Reason, gone.Dropped()}, []any{"nor wanted", true})
	id = e.add(queue.Item{ID: "fails", Title: "fails", MaxAttempts: 1})[0]
	_, err = e.Fail(e.Context(), e.claim(queue.ClaimOptions{}).Token, queue.Failure{Error: "no"})
	e.ok(err)
	gone = e.state(id, queue.Dead)
	e.eq("given up", gone.Dropped(), false)
	_, err = e.Drop(e.Context(), id, "then not")
	e.ok(err)
	gone = e.state(id, queue.Dead)
	e.eq("given up, and not needed", []any{gone.Reason, gone.Dropped(), gone.Attempts}, []any{"then not", true, 1})
	id = e.one("y")
	e.claim(queue.ClaimOptions{})
	_, err = e.Drop(e.Context(), id, "")
	e.is(err, queue.ErrState)
	it, err := e.Retry(e.Context(), "waits", "")
	e.ok(err)
	e.eq("state", it.State, queue.Blocked)
}

func edit(e *env) {
	e.add(queue.Item{ID: "a", Title: "a"}, queue.Item{ID: "b", Title: "b"})
	it, err := e.Edit(e.Context(), "b", queue.Edit{Priority: prio(0), Labels: ptr([]string{"hot"}), Title: ptr("b!"), Body: ptr("more"), MaxAttempts: ptr(9), Agent: ptr("codex")})
	e.ok(err)
	e.eq("edited", []any{it.Urgency(), it.Labels, it.Title, it.Body, it.MaxAttempts, it.Agent, it.State}, []any{0, []string{"hot"}, "b!", "more", 9, "codex", queue.Ready})
	e.eq("listing", e.list(queue.Filter{}), []string{"b", "a"})
	_, err = e.open().Claim(e.Context(), queue.ClaimOptions{Labels: []string{"cold"}})
	e.is(err, queue.ErrEmpty)
	_, err = e.Edit(e.Context(), "b", queue.Edit{Labels: ptr([]string{"cold"})})
	e.ok(err)
	c := e.claim(queue.ClaimOptions{Labels: []string{"cold"}})
	e.eq("claimed", c.Item.ID, "b")
	_, err = e.Edit(e.Context(), "b", queue.Edit{Priority: prio(1)})
	e.is(err, queue.ErrState)
	_, err = e.Edit(e.Context(), "a", queue.Edit{Priority: prio(10)})
	e.is(err, queue.ErrInvalid)
	_, err = e.Edit(e.Context(), "a", queue.Edit{DependsOn: ptr([]string{"nothing"})})
	e.is(err, queue.ErrInvalid)
	e.state("a", queue.Ready)
	_, err = e.Edit(e.Context(), "a", queue.Edit{DependsOn: ptr([]string{"b"})})
	e.ok(err)
	e.state("a", queue.Blocked)
	_, err = e.Edit(e.Context(), "a", queue.Edit{DependsOn: ptr([]string(nil)), NotBefore: ptr(e.clock.Now().Add(time.Minute))})
	e.ok(err)
	e.state("a", queue.Ready)
	e.none()
	_, err = e.Edit(e.Context(), "a", queue.Edit{NotBefore: ptr(time.Time{})})
	e.ok(err)
	e.eq("claimed", e.claim(queue.ClaimOptions{}).Item.ID, "a")
}

func editCycles(e *env) {
	e.add(queue.Item{ID: "a", Title: "a"}, queue.Item{ID: "b", Title: "b", DependsOn: []string{"a"}}, queue.Item{ID: "c", Title: "c", DependsOn: []string{"b"}})
	_, err := e.Edit(e.Context(), "a", queue.Edit{DependsOn: ptr([]string{"c"})})
	e.is(err, queue.ErrCycle)
	_, err = e.Edit(e.Context(), "a", queue.Edit{DependsOn: ptr([]string{"a"})})
	e.is(err, queue.ErrCycle)
	e.state("a", queue.Ready)
}

func retention(e *env) {
	for _, id := range []string{"old", "needed", "dead"} {
		e.add(queue.Item{ID: id, Title: id})
		c := e.claim(queue.ClaimOptions{ID: id})
		var err error
		if id == "dead" {
			_, err = e.Fail(e.Context(), c.Token, queue.Failure{Permanent: true})
		} else {
			_, err = e.Done(e.Context(), c.Token, queue.Outcome{})
		}
		e.ok(err)
	}
	e.add(queue.Item{ID: "open", Title: "open", DependsOn: []string{"needed", "dead"}})
	e.clock.Add(48 * time.Hour)
	e.add(queue.Item{ID: "young", Title: "young"})
	_, err := e.Done(e.Context(), e.claim(queue.ClaimOptions{ID: "young"}).Token, queue.Outcome{})
	e.ok(err)
	r := queue.Retention{DoneAfter: 24 * time.Hour, DryRun: true}
	gone, err := e.GC(e.Context(), r)
	e.ok(err)
	e.eq("dry run", len(gone), 1)
	e.state("old", queue.Done)
	r.DryRun, r.Keep = false, 3
	gone, err = e.GC(e.Context(), r)
	e.ok(err)
	e.eq("kept by number", len(gone), 0)
	r.Keep = 0
	r.DeadAfter = 24 * time.Hour
	gone, err = e.GC(e.Context(), r)
	e.ok(err)
	e.eq("removed", len(gone), 1)
	e.eq("removed", gone[0].ID, "old")
	_, err = e.Get(e.Context(), "old")
	e.is(err, queue.ErrNotFound)
	e.eq("left", len(e.list(queue.Filter{})), 4)
	_, err = e.GC(e.Context(), queue.Retention{DoneAfter: -1})
	e.is(err, queue.ErrInvalid)
}

// countAndCheck: both see what is there, from any handle, and change nothing.
func countAndCheck(e *env) {
	n, err := e.Count(e.Context())
	e.ok(err)
	e.eq("items", len(n), 0)
	e.add(queue.Item{ID: "a", Title: "a"}, queue.Item{ID: "b", Title: "b", DependsOn: []string{"a"}}, queue.Item{ID: "c", Title: "c", Parked: true}, queue.Item{ID: "d", Title: "d"})
	e.claim(queue.ClaimOptions{ID: "a"})
	_, err = e.Drop(e.Context(), "d", "")
	e.ok(err)
	want := map[queue.State]int{queue.Claimed: 1, queue.Blocked: 2, queue.Dead: 1}
	other := e.open()
	n, err = other.Count(e.Context())
	e.ok(err)
	e.eq("items", n, want)
	for _, mend := range []bool{false, true} {
		rep, err := other.Check(e.Context(), mend)
		e.ok(err)
		e.eq("report", []any{rep.Items, rep.States, rep.Problems}, []any{4, want, []queue.Problem(nil)})
	}
	e.state("a", queue.Claimed)
}

func changes(e *env) {
	var mu sync.Mutex
	var got []string
	q := e.store.Open(e.T, e.clock.Now, func(_ context.Context, c queue.Change) {
		mu.Lock()
		defer mu.Unlock()
		got = append(got, fmt.Sprintf("%s %s %s→%s %d", c.Item.ID, c.Op, c.From, c.To, c.Fence))
	})
	defer q.Close()
	ctx := e.Context()
	_, err := q.Add(ctx, queue.Item{ID: "a", Title: "a", MaxAttempts: 1}, queue.Item{ID: "b", Title: "b", DependsOn: []string{"a"}})
	e.ok(err)
	c, err := q.Claim(ctx, queue.ClaimOptions{Worker: "w"})
	e.ok(err)
	e.ok(q.Progress(ctx, c.Token, queue.Progress{StepsTotal: 2}))
	_, err = q.Fail(ctx, c.Token, queue.Failure{Error: "no"})
	e.ok(err)
	_, err = q.Retry(ctx, "a", "")
	e.ok(err)
	c, err = q.Claim(ctx, queue.ClaimOptions{Worker: "w"})
	e.ok(err)
	e.expire()
	_, err = q.Reclaim(ctx)
	e.ok(err)
	c, err = q.Claim(ctx, queue.ClaimOptions{Worker: "w"})
	e.ok(err)
	_, err = q.Done(ctx, c.Token, queue.Outcome{})
	e.ok(err)
	want := []string{
		"a added →ready 0", "b added →blocked 0", "a claimed ready→claimed 1", "a progress claimed→claimed 1", "a failed claimed→dead 1",
		"a retried dead→ready 1", "a claimed ready→claimed 2", "a lost claimed→ready 2", "a claimed ready→claimed 3", "a done claimed→done 3",
		"b unblocked blocked→ready 0",
	}
	if !slices.Equal(got, want) {
		e.Fatalf("changes:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	var ops []string
	for _, h := range e.get("a").History {
		ops = append(ops, h.Op)
	}
	e.eq("history", ops, []string{"added", "claimed", "failed", "retried", "claimed", "lost", "claimed", "done"})
}
