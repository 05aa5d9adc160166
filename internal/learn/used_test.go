package learn

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"reprise/internal/event"
	"reprise/internal/learn/sign"
	"reprise/internal/recall"
)

// used runs the job and returns what it recorded.
func (s *story) used(st *fakeStore, at string) []event.Event {
	s.t.Helper()
	var out []event.Event
	o := New(Options{Store: st, Logs: s.logs(), Now: clock(at)})
	_, err := o.Do(context.Background(), Job{At: "response", Budget: time.Hour, Append: func(_ context.Context, e event.Event) error {
		if e.Type == event.RecallUsed {
			out = append(out, e)
			e.V = event.Version
			s.write(e)
		}
		return nil
	}})
	if err != nil {
		s.t.Fatal(err)
	}
	return out
}

func (s *story) serve(ids ...string) {
	d := event.ServedData{At: "prompt", Query: "q"}
	for _, id := range ids {
		d.Items = append(d.Items, event.ServedItem{ID: id, Class: "learning", Tokens: 20})
	}
	s.add(event.RecallServed, d)
}

func TestWhatWasUsed(t *testing.T) {
	note := func(text string) recall.Doc {
		return recall.Doc{ID: "n-12345678", Class: recall.ClassLearning, Text: text}
	}
	command := func(c string) func(*story) { return func(s *story) { s.shell(c, "") } }
	answer := func(c string) func(*story) { return func(s *story) { s.answer(c) } }
	turn := recall.Doc{ID: "tn-1", Class: recall.ClassEpisode, Text: "Edited: internal/cart/cart.go, internal/cart/total.go", Data: Data{Kind: KindTurn}.encode()}
	for name, c := range map[string]struct {
		doc    recall.Doc
		prompt string
		then   []func(*story)
		want   bool
	}{
		"a command of it is run":              {note("Run `docker compose up -d db` before the tests."), "run the tests", []func(*story){command("docker compose up -d db && go test ./...")}, true},
		"another command is run":              {note("Run `docker compose up -d db` before the tests."), "run the tests", []func(*story){command("go test ./...")}, false},
		"a number is told":                    {note("Billing listens on port 6543."), "where does billing listen?", []func(*story){answer("It listens on 6543.")}, true},
		"the number is part of another":       {note("Billing listens on port 6543."), "where does billing listen?", []func(*story){answer("It listens on 16543.")}, false},
		"a year is no name":                   {note("Billing was written in 2026."), "when?", []func(*story){answer("That was in 2026.")}, false},
		"the user said it first":              {note("Billing listens on port 6543."), "billing listens on 6543, check it", []func(*story){answer("It listens on 6543.")}, false},
		"the user says it later":              {note("Billing listens on port 6543."), "where?", []func(*story){func(s *story) { s.prompt("on 6543!") }, answer("It listens on 6543.")}, false},
		"the user says it after":              {note("Billing listens on port 6543."), "where?", []func(*story){answer("It listens on 6543."), func(s *story) { s.prompt("6543, thanks") }}, true},
		"it is said in ordinary words":        {note("Deploys happen every Tuesday after the release meeting, announced beforehand."), "when do we ship?", []func(*story){answer("Deploys happen on Tuesday, after the release meeting.")}, true},
		"one ordinary word is chance":         {note("Deploys happen every Tuesday after the release meeting, announced beforehand."), "when do we ship?", []func(*story){answer("I planned a meeting.")}, false},
		"an identifier":                       {note("retryPolicy must be set to none."), "fix the client", []func(*story){command("grep -rn retryPolicy .")}, true},
		"its id":                              {note("x"), "why?", []func(*story){answer("By n-12345678 it is so.")}, true},
		"Japanese words":                      {note("配送サービスは火曜日に再起動する。担当は倉庫チーム。"), "いつですか", []func(*story){answer("配送サービスは火曜日に再起動します。")}, true},
		"one Japanese word":                   {note("配送サービスは火曜日に再起動する。担当は倉庫チーム。"), "いつですか", []func(*story){answer("火曜日までに直します。")}, false},
		"one file of many that a turn edited": {turn, "go on", []func(*story){func(s *story) { s.edit("internal/cart/cart.go") }}, false},
		"two files that a turn edited":        {turn, "go on", []func(*story){answer("I changed internal/cart/cart.go and internal/cart/total.go.")}, true},
		"what did not help is done again": {
			recall.Doc{ID: "ap-1", Class: recall.ClassAntiPattern, Text: "`npm rebuild sharp` did not help."}, "go on", []func(*story){command("npm rebuild sharp")}, false,
		},
		"nothing follows": {note("Billing listens on port 6543."), "where?", nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStory(t)
			st := newFake()
			st.docs[c.doc.ID] = c.doc
			s.start()
			s.prompt(c.prompt)
			s.serve(c.doc.ID)
			for _, f := range c.then {
				f(s)
			}
			got := s.used(st, "2026-11-02")
			if (len(got) == 1) != c.want || len(got) > 1 {
				t.Fatalf("%d uses were found, want %v", len(got), c.want)
			}
			if !c.want {
				return
			}
			var d event.UsedData
			if err := json.Unmarshal(got[0].Data, &d); err != nil || d.ID != c.doc.ID || d.How != "mentioned" || got[0].Session != s.session || got[0].Project != s.project || len(got[0].Evidence) != 2 {
				t.Errorf("%+v, %v", got[0], err)
			}
			if more := s.used(st, "2026-11-02"); len(more) != 0 {
				t.Errorf("found a second time: %+v", more)
			}
		})
	}
}

// A use is one event however often it is found: by two processes that know
// nothing of each other, and after a rebuild.
func TestAUseIsOneEvent(t *testing.T) {
	s := newStory(t)
	s.start()
	s.prompt("where?")
	s.serve("n-1", "n-2")
	s.answer("It listens on 6543, as the retryPolicy says.")
	doc := func(st *fakeStore) *fakeStore {
		st.docs["n-1"] = recall.Doc{ID: "n-1", Class: recall.ClassLearning, Text: "Billing listens on port 6543."}
		return st
	}
	find := func() []event.Event {
		var out []event.Event
		o := New(Options{Store: doc(newFake()), Logs: s.logs(), Now: clock("2026-11-02")})
		_, err := o.Do(context.Background(), Job{At: "response", Budget: time.Hour, Append: func(_ context.Context, e event.Event) error {
			if e.Type == event.RecallUsed {
				out = append(out, e)
			}
			return nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	a, b := find(), find()
	if len(a) != 1 || len(b) != 1 || a[0].ID != b[0].ID || !a[0].TS.Equal(b[0].TS) || !sign.IsUUID(a[0].ID) {
		t.Fatalf("%+v\n%+v", a, b)
	}
	for _, e := range append(a, b...) { // both were written
		e.V = event.Version
		s.write(e)
	}
	st := doc(newFake())
	o := New(Options{Store: st, Logs: s.logs(), Now: clock("2026-11-03")})
	if _, err := o.Run(context.Background(), 0); err != nil {
		t.Fatal(err)
	}
	if u, err := o.UsageOf(context.Background(), "n-1"); err != nil || u.Mentioned != 1 || u.Served != 1 {
		t.Errorf("%+v, %v", u, err)
	}
	list, err := o.Recalls(context.Background(), 10, func(Recalled) bool { return true })
	if err != nil || len(list) != 1 || fmt.Sprint(list[0].Used) != "[n-1]" {
		t.Errorf("%+v, %v", list, err)
	}
	// An old session is not looked at again.
	late := doc(newFake())
	late.docs["n-2"] = recall.Doc{ID: "n-2", Class: recall.ClassLearning, Text: "See retryPolicy."}
	if got := s.used(late, "2026-12-24"); len(got) != 0 {
		t.Errorf("a session of last month: %+v", got)
	}
}

// A crash between the note and its event loses nothing: the next job finds it.
func TestUsesAreFoundAfterACrash(t *testing.T) {
	s := newStory(t)
	s.start()
	s.prompt("where?")
	s.serve("n-1")
	s.answer("It listens on 6543.")
	st := newFake()
	st.docs["n-1"] = recall.Doc{ID: "n-1", Class: recall.ClassLearning, Text: "Billing listens on port 6543."}
	o := New(Options{Store: st, Logs: s.logs(), Now: clock("2026-11-02")})
	_, err := o.Do(context.Background(), Job{At: "response", Budget: time.Hour, Append: func(context.Context, event.Event) error { return errFake }})
	if err == nil {
		t.Fatal("the event could not be written, and nobody said so")
	}
	if got := s.used(st, "2026-11-02"); len(got) != 1 {
		t.Errorf("%+v", got)
	}
}

// What a running session was told is known from the log alone, so that it is not
// told again where nothing else remembers it; a client that forgets starts anew,
// and a session that has ended is told nothing more.
func TestToldIsKnownFromTheLog(t *testing.T) {
	s := newStory(t)
	s.start()
	served := func(at string, held bool, ids ...string) {
		d := event.ServedData{At: at, HeldOut: held}
		for _, id := range ids {
			d.Items = append(d.Items, event.ServedItem{ID: id})
		}
		s.add(event.RecallServed, d)
	}
	told := func() string {
		t.Helper()
		_, o := s.fold("2026-12-24")
		ids, err := o.Told(context.Background(), s.client, s.session)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(ids, " ")
	}
	served("session_start", false, "a")
	served("prompt", false, "b", "c")
	served("tool_failure", false, "d")
	if got := told(); got != "a b c d" {
		t.Errorf("told %q", got)
	}
	served("compact", false, "e")
	served("prompt", true, "f") // held out: found, and not told
	if got := told(); got != "e" {
		t.Errorf("after a compaction: %q", got)
	}
	s.end()
	if got := told(); got != "" {
		t.Errorf("after its end: %q", got)
	}
}
