package quick_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"reprise/internal/durable"
	"reprise/internal/event/quick"
)

func broker(data string, at time.Time) *quick.Broker {
	return &quick.Broker{
		Events: func(string) string { return filepath.Join(data, "events") }, Outbox: filepath.Join(data, "outbox"), Host: "vm",
		Now: func() time.Time { return at },
	}
}

func pair(what string) []quick.Event {
	return []quick.Event{
		{Type: "tool.called", Session: "s", Client: "claude", Data: []byte(`{"tool":"shell","name":"Bash","input":{"command":"` + what + `"}}`)},
		{Type: "permission.decided", Session: "s", Client: "claude", Data: []byte(`{"tool":"shell","verdict":"ask","by":"guard"}`)},
	}
}

// Lines that are recorded together are chained as if each had come alone.
func TestRecordAllIsOneChain(t *testing.T) {
	data, at := t.TempDir(), time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)
	b := broker(data, at)
	for range 2 {
		if pending, err := b.RecordAll(context.Background(), pair("ls"), false); err != nil || pending {
			t.Fatal(pending, err)
		}
	}
	log, err := os.ReadFile(filepath.Join(data, "events", "2026-05.vm.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.Split(bytes.TrimSuffix(log, []byte("\n")), []byte("\n"))
	prev := ""
	for i, line := range lines {
		var e struct{ Prev, Type string }
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if e.Prev != prev || (e.Type == "tool.called") != (i%2 == 0) {
			t.Errorf("line %d: %s", i, line)
		}
		prev = quick.Hash(line)
	}
	if len(lines) != 4 {
		t.Errorf("%d lines", len(lines))
	}
}

// What may hold a secret goes to the full program with all that belongs to it: half
// of it would be recorded twice.
func TestRecordAllRefusesAll(t *testing.T) {
	data := t.TempDir()
	events := pair("ls")
	events[1].Data = []byte(`{"tool":"shell","reason":"ghp_x7Kd93mQpLw2Zr8VbN4tYc6HjF1sGa5EuR0T"}`)
	if pending, err := broker(data, time.Now()).RecordAll(context.Background(), events, false); !errors.Is(err, quick.ErrNeedsFull) || pending {
		t.Error(pending, err)
	}
	if list, err := os.ReadDir(data); err != nil || len(list) > 0 {
		t.Error(list, err)
	}
}

// Where the log cannot be had, each line waits in a file of its own.
func TestRecordAllPutsAside(t *testing.T) {
	data, at := t.TempDir(), time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)
	if err := os.Mkdir(filepath.Join(data, "events"), 0o700); err != nil {
		t.Fatal(err)
	}
	unlock, err := durable.TryLock(filepath.Join(data, "events", "2026-05.vm.jsonl.lock"))
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	events := pair("ls")
	if pending, err := broker(data, at).RecordAll(ctx, events, false); err != nil || !pending {
		t.Fatal(pending, err)
	}
	for _, e := range events {
		if _, err := os.Stat(filepath.Join(data, "outbox", e.ID+".json")); err != nil {
			t.Error(err)
		}
	}
}

// Lines of two months go to two files.
func TestRecordAllAtTheTurnOfAMonth(t *testing.T) {
	data, at := t.TempDir(), time.Date(2026, 5, 31, 23, 59, 59, 0, time.UTC)
	events := pair("ls")
	events[0].TS, events[1].TS = at, at.Add(2*time.Second)
	if _, err := broker(data, at).RecordAll(context.Background(), events, false); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"2026-05.vm.jsonl", "2026-06.vm.jsonl"} {
		if log, err := os.ReadFile(filepath.Join(data, "events", name)); err != nil || bytes.Count(log, []byte("\n")) != 1 {
			t.Errorf("%s: %q, %v", name, log, err)
		}
	}
}
