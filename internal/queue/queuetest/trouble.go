package queuetest

import (
	"errors"
	"fmt"

	"reprise/internal/queue"
)

// settlings are all that can be said under a token, each by its name.
func settlings(q queue.Queue, e *env, c queue.Claim) map[string]func() error {
	ctx := e.Context()
	return map[string]func() error{
		"progress": func() error { return q.Progress(ctx, c.Token, queue.Progress{StepsCompleted: 1}) },
		"done":     func() error { _, err := q.Done(ctx, c.Token, queue.Outcome{Summary: "yes"}); return err },
		"fail":     func() error { _, err := q.Fail(ctx, c.Token, queue.Failure{Error: "no"}); return err },
		"die":      func() error { _, err := q.Fail(ctx, c.Token, queue.Failure{Error: "no", Permanent: true}); return err },
		"release":  func() error { _, err := q.Release(ctx, c.Token, ""); return err },
		"park":     func() error { _, err := q.Park(ctx, c.Item.ID, c.Token, "why"); return err },
	}
}

// vanished: who holds an item that is not there any more is told that the claim is over,
// whatever they say, and the item does not come back by it. Others go on.
func vanished(e *env) {
	ctx := e.Context()
	ids := e.add(queue.Item{ID: "a", Title: "a", Priority: prio(0)}, queue.Item{ID: "b", Title: "b"}, queue.Item{ID: "c", Title: "c", Priority: prio(9)})
	c := e.claim(queue.ClaimOptions{})
	e.eq("claimed", c.Item.ID, ids[0])
	other := e.open()
	_, err := other.Next(ctx, queue.ClaimOptions{}) // it knows what is ready
	e.ok(err)
	e.store.Vanish(e.T, "a")
	said := settlings(e.Queue, e, c)
	said["extend"] = func() error { _, err := e.Extend(ctx, c.Token, 0); return err }
	for what, say := range said {
		err := say()
		if !queue.Over(err) || queue.ForNow(err) {
			e.Fatalf("%s of an item that vanished: %v; it is over, and not for the moment", what, err)
		}
		e.is(err, queue.ErrLost)
		e.is(err, queue.ErrNotFound)
	}
	_, err = e.Get(ctx, "a")
	e.is(err, queue.ErrNotFound)
	// One that vanishes when others know that it is ready is passed over, too.
	e.store.Vanish(e.T, "b")
	got, err := other.Claim(ctx, queue.ClaimOptions{})
	e.ok(err)
	e.eq("claimed", got.Item.ID, "c")
	_, err = other.Done(ctx, got.Token, queue.Outcome{})
	e.ok(err)
	e.none()
	e.eq("listing", e.list(queue.Filter{}), []string{"c"})
}

// away: what cannot be written is said to be for the moment, and changes nothing; said
// again when it can, it counts.
func away(e *env) {
	ctx := e.Context()
	e.add(queue.Item{ID: "held", Title: "held", Priority: prio(0)}, queue.Item{ID: "free", Title: "free"}, queue.Item{ID: "aside", Title: "aside", Parked: true})
	c := e.claim(queue.ClaimOptions{})
	q := e.store.Away(e.T, e.clock.Now)
	before := fmt.Sprint(e.list(queue.Filter{}))
	said := settlings(q, e, c)
	for what, ask := range map[string]func() error{
		"add":            func() error { _, err := q.Add(ctx, queue.Item{ID: "new", Title: "new"}); return err },
		"park one ready": func() error { _, err := q.Park(ctx, "free", "", "why"); return err },
		"drop":           func() error { _, err := q.Drop(ctx, "free", "why"); return err },
		"edit":           func() error { _, err := q.Edit(ctx, "free", queue.Edit{Title: ptr("other")}); return err },
		"edit aside":     func() error { _, err := q.Edit(ctx, "aside", queue.Edit{Priority: prio(1)}); return err },
		"drop aside":     func() error { _, err := q.Drop(ctx, "aside", "why"); return err },
		"unpark":         func() error { _, err := q.Unpark(ctx, "aside", "why"); return err },
	} {
		said[what] = ask
	}
	for what, ask := range said {
		err := ask()
		if !queue.ForNow(err) || queue.Over(err) {
			e.Fatalf("%s: %v; it is for the moment, and not over", what, err)
		}
		e.is(err, queue.ErrAway)
		e.state("held", queue.Claimed)
		e.state("aside", queue.Blocked)
		free := e.state("free", queue.Ready)
		e.eq("title after "+what, free.Title, "free")
		e.eq("listing after "+what, e.list(queue.Filter{}), before)
	}
	// Leases and claims may go on, where they need no writing; if not, it is for the moment.
	if _, err := q.Extend(ctx, c.Token, 0); err != nil {
		e.is(err, queue.ErrAway)
	}
	if got, err := q.Claim(ctx, queue.ClaimOptions{}); err != nil {
		e.is(err, queue.ErrAway)
		e.state("free", queue.Ready)
	} else {
		e.eq("claimed", got.Item.ID, "free")
		_, err := e.Release(ctx, got.Token, "")
		e.ok(err)
	}
	it, err := e.Fail(ctx, c.Token, queue.Failure{Error: "no"})
	e.ok(err)
	e.eq("attempts", it.Attempts, 1)
	_, err = e.Drop(ctx, "free", "why")
	e.ok(err)
	e.state("free", queue.Dead)
}

// waitsForDead: what waits for a dead item says so, to whoever looks, until that is retried.
func waitsForDead(e *env) {
	ctx := e.Context()
	e.add(queue.Item{ID: "a", Title: "a"}, queue.Item{ID: "b", Title: "b", DependsOn: []string{"a"}}, queue.Item{ID: "c", Title: "c", Parked: true})
	says := func(want bool) {
		e.Helper()
		for _, q := range []queue.Queue{e.Queue, e.open()} {
			l, err := q.List(ctx, queue.Filter{States: []queue.State{queue.Blocked}})
			e.ok(err)
			e.eq("blocked items", len(l.Items), 2)
			for _, it := range l.Items {
				got, err := q.Get(ctx, it.ID)
				e.ok(err)
				e.eq(it.ID+" waits for a dead one", fmt.Sprint(it.WaitsForDead, got.WaitsForDead), fmt.Sprint(want && it.ID == "b", want && it.ID == "b"))
			}
		}
	}
	says(false)
	c := e.claim(queue.ClaimOptions{})
	says(false)
	_, err := e.Fail(ctx, c.Token, queue.Failure{Error: "no", Permanent: true})
	e.ok(err)
	says(true)
	_, err = e.Retry(ctx, "a", "")
	e.ok(err)
	says(false)
}

// otherWord: what was said of a claim and counts is not silently another thing by what is
// said afterwards; the same once more is no error.
func otherWord(e *env) {
	ctx := e.Context()
	for _, way := range []struct {
		id            string
		first, second queue.Failure
	}{
		{"a", queue.Failure{Error: "no"}, queue.Failure{Error: "no", Permanent: true}},
		{"b", queue.Failure{Error: "no", Permanent: true}, queue.Failure{Error: "no"}},
		{"c", queue.Failure{Error: "no", Free: true}, queue.Failure{Error: "no"}},
		{"d", queue.Failure{Error: "no"}, queue.Failure{Error: "no", Free: true}},
	} {
		e.add(queue.Item{ID: way.id, Title: "x"})
		c := e.claim(queue.ClaimOptions{ID: way.id})
		_, err := e.Fail(ctx, c.Token, way.first)
		e.ok(err)
		before := fmt.Sprintf("%+v", e.get(way.id).History)
		_, err = e.open().Fail(ctx, c.Token, way.first)
		e.ok(err)
		_, err = e.open().Fail(ctx, c.Token, way.second)
		e.is(err, queue.ErrLost)
		e.eq("history", fmt.Sprintf("%+v", e.get(way.id).History), before)
	}
}

// takeOut: an item that is damaged is given up by a person's word alone, once what it holds is
// kept; it stays where that fails, and one that can be read is not to be had so.
func takeOut(e *env) {
	e.add(queue.Item{ID: "a", Title: "a"}, queue.Item{ID: "b", Title: "b"})
	broken := []byte("{\"v\":1,\"id\":\"a\", broken")
	e.store.Damage(e.T, "a", broken)
	var kept []byte
	keep := func(data []byte) error { kept = data; return nil }
	e.is(e.TakeOut(e.Context(), "b", keep), queue.ErrState)
	e.is(e.TakeOut(e.Context(), "c", keep), queue.ErrNotFound)
	full := errors.New("full")
	e.is(e.TakeOut(e.Context(), "a", func([]byte) error { return full }), full)
	_, err := e.Get(e.Context(), "a")
	e.is(err, queue.ErrDamaged)
	e.eq("kept so far", kept == nil, true)
	e.ok(e.TakeOut(e.Context(), "a", keep))
	e.eq("kept", string(kept), string(broken))
	_, err = e.Get(e.Context(), "a")
	e.is(err, queue.ErrNotFound)
	rep, err := e.Check(e.Context(), true)
	e.ok(err)
	e.eq("problems", len(rep.Problems), 0)
	e.add(queue.Item{ID: "a", Title: "again"})
	e.eq("anew", e.claim(queue.ClaimOptions{ID: "a"}).Item.Title, "again")
}
