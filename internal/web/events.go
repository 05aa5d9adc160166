package web

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"reprise/internal/event"
)

const (
	eventsPerPage = 100
	// keptEvents and keptBytes bound what is kept of the log between pages: the latest.
	keptEvents = 50_000
	keptBytes  = 48 << 20
)

// Log is the event log as the pages use it.
type Log struct {
	Dir string
	// What is what an event is about, in one line.
	What func(event.Event) string
}

func (s *Server) eventRoutes() {
	s.mux.HandleFunc("GET /events", s.eventList)
	s.mux.HandleFunc("GET /events/{id}", s.eventShow)
	s.mux.HandleFunc("GET /events/verify", s.eventVerify)
}

// logged is an event with its place, "file:line".
type logged struct {
	event.Event
	place string
}

// tail is the end of the log, as far as it was read: each look reads what is new.
type tail struct {
	mu     sync.Mutex
	at     map[string]event.Cursor
	events []logged // by time
	bytes  int
	gone   int // that are kept no more
	bad    int // lines that cannot be used
	hooks  hookTimes
}

// look reads what has come into the log, and calls fn with what is kept. The events
// must not be changed, nor be used after fn.
func (t *tail) look(dir string, fn func(*tail)) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.read(dir); err != nil {
		return err
	}
	fn(t)
	return nil
}

// each are the events that are kept, by time.
func (t *tail) each() iter.Seq[*event.Event] {
	return func(yield func(*event.Event) bool) {
		for i := range t.events {
			if !yield(&t.events[i].Event) {
				return
			}
		}
	}
}

func (t *tail) read(dir string) error {
	if t.at == nil {
		t.at = map[string]event.Cursor{}
	}
	sorted := true // the files of hosts come one after the other
	for item, err := range event.ReadFrom(dir, t.at) {
		if errors.Is(err, event.ErrChanged) { // it was purged: what is kept may be of what is gone
			t.at, t.events, t.bytes, t.gone, t.bad, t.hooks = nil, nil, 0, 0, 0, hookTimes{}
			return t.read(dir)
		}
		if line := (*event.LineError)(nil); err != nil && !errors.As(err, &line) {
			return err
		}
		t.at[item.File] = item.Next
		if err != nil {
			t.bad++
			continue
		}
		if n := len(t.events); n > 0 && item.TS.Before(t.events[n-1].TS) {
			sorted = false
		}
		t.events = append(t.events, logged{item.Event, fmt.Sprintf("%s:%d", item.File, item.Line)})
		t.bytes += len(item.Data)
		t.hooks.add(&item.Event)
	}
	if !sorted {
		slices.SortStableFunc(t.events, func(a, b logged) int { return a.TS.Compare(b.TS) })
	}
	drop, size := max(0, len(t.events)-keptEvents), t.bytes
	for i := range t.events {
		if i >= drop && size <= keptBytes {
			break
		}
		size -= len(t.events[i].Data)
		drop = max(drop, i+1)
	}
	if drop > 0 {
		t.events = slices.Clone(t.events[drop:])
		t.bytes, t.gone = size, t.gone+drop
	}
	return nil
}

// eventFilter is which events a page is about.
type eventFilter struct {
	Type, Client, Session, Run, Outcome, Text string
	words                                     []byte // Text in small letters
	from, to                                  time.Time
	Since, Until                              string
}

func filterOf(q url.Values) (eventFilter, error) {
	f := eventFilter{Type: q.Get("type"), Client: q.Get("client"), Session: q.Get("session"), Run: q.Get("run"), Outcome: q.Get("outcome"), Text: strings.TrimSpace(q.Get("text")), Since: q.Get("since"), Until: q.Get("until")}
	f.words = bytes.ToLower([]byte(f.Text))
	var err error
	for _, d := range []struct {
		text string
		to   *time.Time
		day  time.Duration
	}{{f.Since, &f.from, 0}, {f.Until, &f.to, 24 * time.Hour}} {
		if d.text == "" {
			continue
		}
		day, perr := time.ParseInLocation(time.DateOnly, d.text, time.Local)
		if perr != nil {
			err = fmt.Errorf("%.40q is no day: write 2026-11-28", d.text)
			continue
		}
		*d.to = day.Add(d.day)
	}
	return f, err
}

func (f *eventFilter) keeps(e *event.Event) bool {
	switch {
	case f.Type != "" && string(e.Type) != f.Type && !strings.HasPrefix(string(e.Type), f.Type+"."),
		f.Client != "" && e.Client != f.Client,
		f.Session != "" && !strings.HasPrefix(e.Session, f.Session),
		f.Run != "" && e.Run != f.Run,
		f.Outcome != "" && e.Outcome != f.Outcome,
		!f.from.IsZero() && e.TS.Before(f.from),
		!f.to.IsZero() && !e.TS.Before(f.to):
		return false
	}
	return f.Text == "" || bytes.Contains(bytes.ToLower(e.Data), f.words)
}

// query is the filter as part of an address.
func (f *eventFilter) query() url.Values {
	q := url.Values{}
	for name, value := range map[string]string{"type": f.Type, "client": f.Client, "session": f.Session, "run": f.Run, "outcome": f.Outcome, "text": f.Text, "since": f.Since, "until": f.Until} {
		if value != "" {
			q.Set(name, value)
		}
	}
	return q
}

type eventRow struct {
	event.Event
	What  string
	Class string
}

type eventListPage struct {
	Filter   eventFilter
	Types    []string
	Clients  []string
	Outcomes []string
	Rows     []eventRow
	Kept     int // that the filter keeps
	Total    int
	Gone     int
	Bad      int
	Newer    string // address of the page with newer ones, "" without one
	Older    string
	Trouble  string
}

func outcomeClass(outcome string) string {
	switch outcome {
	case "success":
		return "good"
	case "failure", "error", "denied", "deny":
		return "bad"
	case "":
		return ""
	}
	return "warn"
}

func (s *Server) eventList(w http.ResponseWriter, r *http.Request) {
	f, err := filterOf(r.URL.Query())
	p := eventListPage{Filter: f}
	if err != nil {
		p.Trouble = err.Error()
	}
	skip := max(0, number(r, "from"))
	clients, outcomes, types := map[string]bool{}, map[string]bool{}, map[string]bool{}
	err = s.tail.look(s.deps.Events.Dir, func(t *tail) {
		p.Total, p.Gone, p.Bad = len(t.events)+t.gone, t.gone, t.bad
		for i := len(t.events) - 1; i >= 0; i-- {
			e := &t.events[i].Event
			clients[e.Client], outcomes[e.Outcome], types[string(e.Type)] = true, true, true
			if !f.keeps(e) {
				continue
			}
			if p.Kept >= skip && len(p.Rows) < eventsPerPage {
				p.Rows = append(p.Rows, eventRow{*e, s.deps.Events.What(*e), outcomeClass(e.Outcome)})
			}
			p.Kept++
		}
	})
	if err != nil {
		p.Trouble = err.Error()
	}
	delete(clients, "")
	delete(outcomes, "")
	p.Clients, p.Outcomes, p.Types = slices.Sorted(maps.Keys(clients)), slices.Sorted(maps.Keys(outcomes)), slices.Sorted(maps.Keys(types))
	page := func(from int) string {
		q := f.query()
		q.Set("from", fmt.Sprint(from))
		return "?" + q.Encode()
	}
	if skip > 0 {
		p.Newer = page(max(0, skip-eventsPerPage))
	}
	if skip+eventsPerPage < p.Kept {
		p.Older = page(skip + eventsPerPage)
	}
	s.show(w, r, "events", s.view(r, "events", "Events", p))
}

type eventField struct {
	Name, Text string
}

type eventPage struct {
	Event  event.Event
	Place  string
	What   string
	Class  string
	Fields []eventField
}

func (s *Server) eventShow(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	var p eventPage
	err := s.tail.look(s.deps.Events.Dir, func(t *tail) {
		if i := slices.IndexFunc(t.events, func(e logged) bool { return e.ID == id }); i >= 0 {
			p.Event, p.Place = t.events[i].Event, t.events[i].place
		}
	})
	if err != nil {
		s.fail(w, r, http.StatusInternalServerError, err)
		return
	}
	if p.Event.ID == "" {
		s.fail(w, r, http.StatusNotFound, errors.New("there is no such event in the last of this project's log; `reprise events show ID` looks at all of every log"))
		return
	}
	p.What, p.Class = s.deps.Events.What(p.Event), outcomeClass(p.Event.Outcome)
	fields := map[string]json.RawMessage{}
	if json.Unmarshal(p.Event.Data, &fields) != nil && len(p.Event.Data) > 0 {
		fields = map[string]json.RawMessage{"data": p.Event.Data}
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		p.Fields = append(p.Fields, eventField{name, fieldText(fields[name])})
	}
	s.show(w, r, "event", s.view(r, "events", string(p.Event.Type), p))
}

func fieldText(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	var b bytes.Buffer
	if json.Indent(&b, raw, "", "  ") == nil {
		return b.String()
	}
	return string(raw)
}

type verifyPage struct {
	Report event.Report
	Took   time.Duration
}

func (s *Server) eventVerify(w http.ResponseWriter, r *http.Request) {
	began := s.deps.Now()
	report, err := event.Verify(s.deps.Events.Dir)
	if err != nil {
		s.fail(w, r, http.StatusInternalServerError, err)
		return
	}
	s.show(w, r, "verify", s.view(r, "events", "Verify the log", verifyPage{report, s.deps.Now().Sub(began)}))
}
