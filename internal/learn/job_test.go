package learn

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"reprise/internal/event"
	"reprise/internal/learn/sign"
)

// The event that says that organising is done is written once for a state: it
// is not the cause of another.
func TestJobWritesItsEventOnce(t *testing.T) {
	s := newStory(t)
	s.failFix("s1", "shop", "npm ci", d(11, 1))
	st := newFake()
	o := New(Options{Store: st, Logs: s.logs(), Now: clock("2026-11-03")})
	written := 0
	job := Job{At: "session_end", Session: "s1", Client: "claude", Project: "shop", Append: func(_ context.Context, e event.Event) error {
		written++
		s.session = e.Session
		s.add(e.Type, e.Data)
		return nil
	}}
	for range 3 {
		if _, err := o.Do(context.Background(), job); err != nil {
			t.Fatal(err)
		}
	}
	if written != 1 {
		t.Errorf("%d events for one state", written)
	}
	// another process, with an index that was made anew
	o = New(Options{Store: newFake(), Logs: s.logs(), Now: clock("2026-11-03")})
	finish(t, o)
	if r, err := o.Do(context.Background(), job); err != nil || r.Compacted {
		t.Errorf("after a rebuild: %+v, %v", r, err)
	}
	s.failFix("s2", "shop", "npm ci", d(11, 2))
	if r, err := o.Do(context.Background(), job); err != nil || !r.Compacted || written != 2 {
		t.Errorf("after another session: %+v, %v, %d", r, err, written)
	}
}

type summarizer struct {
	asked int
	err   error
	in    SummaryInput
}

func (s *summarizer) Summarize(_ context.Context, in SummaryInput) (string, string, error) {
	s.asked++
	s.in = in
	return "They ran the tests.", "a-model", s.err
}

// What waits in the outbox goes on waiting, and what is in the log is organised.
func TestJobWithoutTheOutbox(t *testing.T) {
	s := newStory(t)
	s.failFix("s1", "shop", "npm ci", d(11, 1))
	o := New(Options{Store: newFake(), Logs: s.logs(), Now: clock("2026-11-03")})
	r, err := o.Do(context.Background(), Job{At: "session_end", Session: "s1", Client: "claude", Project: "shop",
		Append: func(context.Context, event.Event) error { return nil },
		Replay: func(context.Context) error { return errors.New("the outbox is locked") }})
	if err != nil || r.Outbox != "the outbox is locked" || !r.Compacted || r.Docs == 0 {
		t.Errorf("%+v, %v", r, err)
	}
}

// A summary is asked for once, after the session has ended, and fails without a
// trace. What was written is an event: a rebuild asks nobody.
func TestSummarize(t *testing.T) {
	ctx := context.Background()
	s := newStory(t)
	s.failFix("s1", "shop", "npm ci", d(11, 1))
	s.failFix("s2", "shop", "npm i", d(11, 2))
	o := New(Options{Store: newFake(), Logs: s.logs(), Now: clock("2026-11-04")})
	run := func(o *Organizer) []Stats {
		t.Helper()
		if _, err := o.Run(ctx, 0); err != nil {
			t.Fatal(err)
		}
		list, err := o.Unwritten(ctx, time.Time{}, 10)
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	list := run(o)
	if len(list) != 2 || list[0].Session != "s2" || list[1].Session != "s1" {
		t.Fatalf("%+v", list)
	}
	if one, err := o.Unwritten(ctx, d(11, 2), 10); err != nil || len(one) != 1 {
		t.Errorf("%+v, %v", one, err)
	}
	if one, err := o.Unwritten(ctx, time.Time{}, 1); err != nil || len(one) != 1 {
		t.Errorf("%+v, %v", one, err)
	}
	var last event.Event
	add := func(_ context.Context, e event.Event) error {
		last = e
		s.session = e.Session
		s.at = e.TS
		s.add(e.Type, e.Data)
		return nil
	}
	m := &summarizer{err: errors.New("no model")}
	if _, err := o.Summarize(ctx, m, list[1], add); !errors.Is(err, m.err) || last.ID != "" {
		t.Fatalf("%v, %+v", err, last)
	}
	m.err = nil
	by, err := o.Summarize(ctx, m, list[1], add)
	if err != nil || by != "a-model" || last.Session != "s1" || !last.TS.Equal(list[1].End) {
		t.Fatalf("%q, %v, %+v", by, err, last)
	}
	if !strings.Contains(m.in.Extract, "Failed and fixed: npm test") || len(m.in.Episodes) == 0 {
		t.Errorf("%+v", m.in)
	}
	first := last.ID
	if _, err := o.Summarize(ctx, m, list[1], add); err != nil || last.ID != first {
		t.Errorf("two who do it at once record %s and %s", first, last.ID) // before either is taken in
	}
	for _, o := range []*Organizer{o, New(Options{Store: newFake(), Logs: s.logs(), Now: clock("2026-11-04")})} {
		if list := run(o); len(list) != 1 || list[0].Session != "s2" {
			t.Errorf("%+v", list)
		}
		if _, err := o.Summarize(ctx, m, list[1], add); !errors.Is(err, ErrHasSummary) {
			t.Error(err)
		}
	}
	if m.asked != 3 {
		t.Errorf("asked %d times", m.asked)
	}
	if _, err := o.Summarize(ctx, m, Stats{Session: "nobody's"}, add); !errors.Is(err, ErrNoSummary) {
		t.Error(err)
	}
}

// A run without time still deals with something, so that many of them come to
// an end.
func TestBudget(t *testing.T) {
	s := newStory(t)
	r := rand.New(rand.NewPCG(1, 1))
	for _, w := range world(t, r, 6) {
		s.host = w.host
		s.write(w.e)
	}
	now := clock("2026-12-24")()
	st := newFake()
	o := New(Options{Store: st, Logs: s.logs(), Now: func() time.Time { now = now.Add(time.Second); return now }})
	runs := 0
	for more := true; more; runs++ {
		rep, err := o.Run(context.Background(), time.Millisecond)
		if err != nil {
			t.Fatal(err)
		}
		if runs > 5000 {
			t.Fatal("does not come to an end")
		}
		more = rep.More
	}
	zero, _ := s.fold("2026-12-24")
	if got, want := st.dump(), zero.dump(); got != want {
		t.Errorf("differs:\n%s", firstDifference(got, want))
	}
	if runs < 20 {
		t.Errorf("only %d runs: the budget was not kept", runs)
	}
}

// What another version made goes in steps that fit a hook, each of which the next
// one goes on from, in whichever process; then all is made anew. A session that
// starts is not kept waiting for it.
func TestOtherVersionIsTakenOutByPieces(t *testing.T) {
	s := newStory(t)
	r := rand.New(rand.NewPCG(1, 1))
	for _, w := range world(t, r, 6) {
		s.host = w.host
		s.write(w.e)
	}
	st, _ := s.fold("2026-12-24")
	want := st.dump()
	err := st.Update(t.Context(), func(tx Tx) error { return tx.Store(bucketMeta, "version", []byte("0")) })
	if err != nil {
		t.Fatal(err)
	}
	now := clock("2026-12-24")()
	runs, wiping := 0, 0
	for more := true; more; runs++ {
		o := New(Options{Store: st, Logs: s.logs(), Now: func() time.Time { now = now.Add(time.Second); return now }})
		var version []byte
		if err := st.View(t.Context(), func(tx Tx) error { version, _, err = tx.Load(bucketMeta, "version"); return err }); err != nil {
			t.Fatal(err)
		}
		if string(version) != foldVersion {
			wiping++
			if news, err := o.News(t.Context(), "shop"); err != nil || news {
				t.Fatalf("a start is to organise what another version made: %v, %v", news, err)
			}
		}
		rep, err := o.Run(context.Background(), time.Millisecond)
		if err != nil {
			t.Fatal(err)
		}
		if runs > 20_000 {
			t.Fatal("does not come to an end")
		}
		more = rep.More
	}
	if wiping < 20 {
		t.Errorf("taken out in only %d runs: the budget was not kept", wiping)
	}
	// The number of transactions is another.
	again := New(Options{Store: st, Logs: s.logs(), Now: clock("2026-12-24")})
	finish(t, again)
	if got := st.dump(); got != want {
		t.Errorf("differs:\n%s", firstDifference(got, want))
	}
}

// A line that cannot be used is skipped and reported, and keeps nothing else
// back.
func TestBadLinesAreSkipped(t *testing.T) {
	s := newStory(t)
	s.failFix("s1", "shop", "npm ci", d(11, 1))
	file := filepath.Join(s.dir, "shop", "2026-11.desk.jsonl")
	f, err := os.OpenFile(file, os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString("no json\n{\"v\":99}\n\n{\"v\":1,\"id\":\"x\"}\n"); err != nil {
		t.Fatal(err)
	}
	f.Close()
	s.failFix("s2", "shop", "npm ci", d(11, 2))
	st := newFake()
	o := New(Options{Store: st, Logs: s.logs(), Now: clock("2026-11-03")})
	r, err := o.Run(context.Background(), 0)
	if err != nil || r.Bad != 4 || len(r.Skipped) != 4 || !strings.Contains(r.Skipped[0], "2026-11.desk.jsonl") {
		t.Fatalf("%+v, %v", r, err)
	}
	if len(st.ofKind(KindPattern)) != 1 {
		t.Error("what stands after the bad lines was not taken in")
	}
	if r, err = o.Run(context.Background(), 0); err != nil || r.Bad != 0 {
		t.Errorf("reported again: %+v, %v", r, err)
	}
}

// Events may have any fields at all: nothing panics, and what is made can be
// made again.
func FuzzRecord(f *testing.F) {
	f.Add("tool.failed", `{"tool":"shell","input":{"command":"npm test"},"error":"x","exit_code":1}`, "s1")
	f.Add("tool.failed", `{"tool":7,"input":[1,2],"error":{"a":1},"exit_code":"1"}`, "")
	f.Add("tool.succeeded", `{"tool":"edit","input":{"file_path":["a"],"patch":"*** Update File: x"}}`, "s1")
	f.Add("prompt.submitted", `{"text":"no, 違う"}`, "s1")
	f.Add("recall.served", `{"items":[{"id":"a"},{}]}`, "s1")
	f.Add("memory.retired", `{"op":"forget","id":"a\tb"}`, "")
	f.Add("episode.recorded", `null`, "s\t1")
	f.Add("verification.finished", `{"passed":false}`, "s1")
	f.Add("tool.failed", `{"tool":"shell","input":{"command":"'\"<<\\"},"error":"`+"`"+`'x「"}`, "s1")
	f.Fuzz(func(t *testing.T, typ, data, session string) {
		e := event.Event{ID: "id-" + sign.Hash(data), TS: d(11, 1), Project: "shop", Session: session, Client: "claude", Type: event.Type(typ), Data: json.RawMessage(data)}
		r, ok := newRecord(&e, "src/x", func(s string) string { return s })
		if !ok {
			return
		}
		back, err := readRecords(appendRecord(nil, &r))
		if err != nil || len(back) != 1 || string(appendRecord(nil, back[0])) != string(appendRecord(nil, &r)) {
			t.Fatalf("not read as it was written: %v", err)
		}
		key, name := sessionKey(&e)
		out, err := compose(key, name, back, ground{
			asOf: 1 << 20, tiers: Tiers{}.withDefaults(), usage: func(string) (Usage, error) { return Usage{}, nil }, gone: func(string) (bool, error) { return false, nil },
			hide:    func(string) {},
			earlier: func(string, string, int64, string) (int, error) { return 0, nil },
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range out.docs {
			if d.ID == "" || !own(d.ID) || len(d.Title) > 400 || len(d.Text) > 8000 {
				t.Fatalf("%+v", d)
			}
		}
	})
}

// Records that were cut or changed are an error and no panic.
func FuzzReadRecords(f *testing.F) {
	f.Add(appendRecord(appendRecord(nil, &record{id: "a", acl: []string{"x"}}), &record{id: "b", extra: []byte("{}")}))
	f.Fuzz(func(t *testing.T, b []byte) {
		if recs, err := readRecords(b); err == nil && len(b) > 0 && len(recs) == 0 {
			t.Fatal("nothing was read, and no error")
		}
	})
}

// own reports whether a document's id is one of those that organising makes.
func own(id string) bool {
	for _, p := range []string{"ep-", "co-", "tn-", "sm-", "dg-", "pt-", "ap-", "sd-", "qa-"} {
		if strings.HasPrefix(id, p) {
			return true
		}
	}
	return false
}
