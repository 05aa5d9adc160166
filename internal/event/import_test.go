package event_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"reprise/internal/event"
)

// What is imported keeps its ids and times, goes to the files of its months and
// holds to the rules that all lines hold to.
func TestImport(t *testing.T) {
	dir := t.TempDir()
	l := event.Open(dir, event.ImportHost("My.Host"), clock(time.Second))
	var in []event.Event
	for i := range 6 {
		in = append(in, event.Event{
			ID: fmt.Sprintf("id-%d", i), TS: time.Date(2026, time.Month(8+i/2), 3, 4, 5, i, 0, time.UTC),
			Type: event.PromptSubmitted, Session: "s", Data: json.RawMessage(`{"text":"token ghp` + `_aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5"}`),
		})
	}
	if err := l.Import(context.Background(), in[:5]); err != nil {
		t.Fatal(err)
	}
	if err := l.Import(context.Background(), in[5:]); err != nil {
		t.Fatal(err)
	}
	add(t, event.Open(dir, "My.Host", clock(time.Second)), event.Event{})
	events, errs := read(dir)
	if len(events) != 7 || len(errs) > 0 {
		t.Fatalf("%d events, %v", len(events), errs)
	}
	for i, e := range events[:6] {
		if e.ID != in[i].ID || !e.TS.Equal(in[i].TS) || strings.Contains(string(e.Data), "ghp_") || e.Scope != event.ScopeSession {
			t.Errorf("event %d: %+v", i, e)
		}
	}
	if r := verify(t, dir); !r.OK() || r.Files != 4 {
		t.Errorf("%+v", r)
	}
	names, err := event.FileNames(dir)
	if err != nil {
		t.Fatal(err)
	}
	imported := 0
	for _, n := range names {
		if event.IsImport(n) {
			imported++
		}
	}
	if imported != 3 {
		t.Errorf("files %q", names)
	}
	for _, bad := range []event.Event{{TS: in[0].TS, Type: event.ToolCalled}, {ID: "x", Type: event.ToolCalled}, {ID: "x", TS: in[0].TS, Type: "nonsense"}} {
		if err := l.Import(context.Background(), []event.Event{bad}); !errors.Is(err, event.ErrInvalid) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
	if long := event.ImportHost(strings.Repeat("h", 100)); len(long) != 64 || !event.IsImport("2026-11."+long+".jsonl") {
		t.Errorf("host %q", long)
	}
	if _, err := os.Stat(filepath.Join(dir, "2026-08.my-host-import.jsonl")); err != nil {
		t.Error(err)
	}
}
