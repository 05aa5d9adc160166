package web

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"reprise/internal/event"
)

// logging is a house with a log of its project.
func logging(t testing.TB) (*house, func(...event.Event), string) { return loggingWith(t, nil) }

// loggingWith is logging with more of what the dashboard is made of.
func loggingWith(t testing.TB, change func(*Deps)) (*house, func(...event.Event), string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "events")
	log := event.Open(dir, "host", testNow)
	h := open(t, func(d *Deps) {
		d.Events = &Log{Dir: dir, What: func(e event.Event) string { return string(e.Data) }}
		if change != nil {
			change(d)
		}
	})
	return h, func(events ...event.Event) {
		t.Helper()
		for _, e := range events {
			e.Scope, e.Project = event.ScopeProject, "shop"
			if _, err := log.Append(context.Background(), e); err != nil {
				t.Fatal(err)
			}
		}
	}, dir
}

func data(v any) json.RawMessage { b, _ := json.Marshal(v); return b }

func TestEvents(t *testing.T) {
	h, add, dir := logging(t)
	if !strings.Contains(h.page("/events"), "reprise setup") {
		t.Error("an empty log does not say how something comes into it")
	}
	add(event.Event{Type: event.PromptSubmitted, Client: "claude", Session: "s-one", Data: data(map[string]string{"text": "Needle " + hostile})},
		event.Event{Type: event.ToolFailed, Client: "codex", Session: "s-two", Outcome: "failure", Data: data(map[string]string{"name": "Bash", "error": "no such file"})})
	all := h.page("/events")
	checkHarmless(t, "/events", all)
	if strings.Index(all, ">tool.failed<") > strings.Index(all, ">prompt.submitted</a>") {
		t.Error("the newest does not stand first")
	}
	for query, want := range map[string][2]bool{
		"type=tool": {false, true}, "type=prompt.submitted": {true, false}, "client=codex": {false, true}, "session=s-one": {true, false}, "outcome=failure": {false, true},
		"text=nEEdle": {true, false}, "since=2100-01-01": {false, false}, "until=2000-01-01": {false, false}, "since=" + time.Now().Format(time.DateOnly): {true, true}, "type=<script>": {false, false},
	} {
		q, _ := url.ParseQuery(query)
		body := h.page("/events?" + q.Encode())
		if got := [2]bool{strings.Contains(body, ">prompt.submitted</a>"), strings.Contains(body, ">tool.failed</a>")}; got != want {
			t.Errorf("%s: prompt and tool are shown: %v, want %v", query, got, want)
		}
	}
	var id string
	for e, err := range event.Read(dir) {
		if err != nil {
			t.Fatal(err)
		}
		if id == "" {
			id = e.ID
		}
	}
	one := h.page("/events/" + id)
	checkHarmless(t, "an event", one)
	if !strings.Contains(one, "Needle") || !strings.Contains(one, "host") {
		t.Error("the event's page has neither its data nor its place")
	}
	if code, _ := h.get("/events/nothing"); code != http.StatusNotFound {
		t.Errorf("an event that is not there: %d", code)
	}
	if body := h.page("/events/verify"); !strings.Contains(body, "none is missing or changed") {
		t.Error("a whole log is not said to be")
	}
	// A line that somebody changed shows.
	names, err := event.FileNames(dir)
	if err != nil || len(names) != 1 {
		t.Fatal(names, err)
	}
	file := filepath.Join(dir, names[0])
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(strings.Replace(string(raw), "Needle", "Nettle", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if body := h.page("/events/verify"); !strings.Contains(body, "1 problem") {
		t.Error("a log that was changed is said to be whole")
	}
}

func TestManyEventsAreDividedAndQuick(t *testing.T) {
	h, add, dir := logging(t)
	add(event.Event{Type: event.PromptSubmitted, Data: data(map[string]string{"text": "first"})})
	names, err := event.FileNames(dir)
	if err != nil {
		t.Fatal(err)
	}
	line, err := os.ReadFile(filepath.Join(dir, names[0]))
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for i := range 10_000 {
		b.WriteString(strings.Replace(string(line), `"first"`, fmt.Sprintf(`"number %d."`, i), 1))
	}
	if err := os.WriteFile(filepath.Join(dir, names[0]), []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	body := h.page("/events?from=9900")
	if n := strings.Count(body, "number "); n != eventsPerPage || !strings.Contains(body, "number 0.") || strings.Contains(body, ">Older</a>") {
		t.Errorf("the last page has %d events, want %d and the oldest", n, eventsPerPage)
	}
	// Of what was read before, nothing is read again: a page of a long log costs what one of
	// a short log does. The bound is a floor for a slow machine, the figure is in the documents.
	began := time.Now()
	for range 5 {
		h.page("/events")
	}
	if took := time.Since(began) / 5; took > 5*time.Second {
		t.Errorf("a page of a log of 10,000 takes %s", took)
	}
}

// What is kept of a log between pages is bounded, and forgets with the log.
func TestTailIsBoundedAndForgets(t *testing.T) {
	_, add, dir := logging(t)
	add(event.Event{Type: event.PromptSubmitted, Data: data(map[string]string{"text": "secret"})}, event.Event{Type: event.PromptSubmitted, Data: data(map[string]string{"text": "rest"})})
	var tl tail
	if err := tl.look(dir, func(t *tail) {}); err != nil || len(tl.events) != 2 {
		t.Fatalf("%d events, %v", len(tl.events), err)
	}
	_, err := event.Purge(context.Background(), event.PurgeOptions{Dir: dir, Now: testNow, Host: "host", Reason: "test", Match: func(e event.Event) bool { return strings.Contains(string(e.Data), "secret") }})
	if err != nil {
		t.Fatal(err)
	}
	if err := tl.look(dir, func(tl *tail) {
		for _, e := range tl.events {
			if strings.Contains(string(e.Data), "secret") {
				t.Error("what was purged from the log is still shown")
			}
		}
	}); err != nil {
		t.Fatal(err)
	}
	tl.events = make([]logged, keptEvents+10)
	tl.bytes = 0
	if err := tl.look(dir, func(tl *tail) {
		if len(tl.events) != keptEvents || tl.gone < 10 {
			t.Errorf("%d events are kept and %d gone, want %d kept", len(tl.events), tl.gone, keptEvents)
		}
	}); err != nil {
		t.Fatal(err)
	}
}
