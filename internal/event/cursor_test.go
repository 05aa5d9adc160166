package event_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"reprise/internal/event"
)

// readFrom reads on from the cursors, which it moves, and returns ids and errors.
func readFrom(dir string, at map[string]event.Cursor, limit int) (ids []string, errs []error) {
	for item, err := range event.ReadFrom(dir, at) {
		if err != nil {
			errs = append(errs, err)
			if item.Line == 0 {
				continue
			}
		} else {
			ids = append(ids, item.ID)
		}
		at[item.File] = item.Next
		if limit--; limit == 0 {
			break
		}
	}
	return ids, errs
}

func TestReadFromGoesOnWhereItStopped(t *testing.T) {
	dir := t.TempDir()
	a, b := event.Open(dir, "a", clock(time.Second)), event.Open(dir, "b", clock(2*time.Second))
	at := map[string]event.Cursor{}
	seen := map[string]bool{}
	total := 0
	for round := range 8 {
		for i := range round {
			l := a
			if i%2 == 1 {
				l = b
			}
			add(t, l, event.Event{})
			total++
		}
		for range 2 { // in two bites, over any file's border
			ids, errs := readFrom(dir, at, 1+round/2)
			if len(errs) > 0 {
				t.Fatal(errs)
			}
			for _, id := range ids {
				if seen[id] {
					t.Errorf("%s was read twice", id)
				}
				seen[id] = true
			}
		}
	}
	ids, errs := readFrom(dir, at, 0)
	if len(errs) > 0 || len(seen)+len(ids) != total {
		t.Errorf("%d and %d read of %d, %v", len(seen), len(ids), total, errs)
	}
	if ids, errs := readFrom(dir, at, 0); len(ids)+len(errs) > 0 {
		t.Errorf("more at the end: %v %v", ids, errs)
	}
}

func TestReadFromIsWhatReadReads(t *testing.T) {
	dir := t.TempDir()
	l := event.Open(dir, "h", clock(time.Second))
	for i := range 20 {
		add(t, l, event.Event{Session: "s", Data: json.RawMessage(fmt.Sprintf(`{"n":%d,"t":"a\"b\n<&>"}`, i)), Evidence: []string{"x", "y"}, ACL: []string{"*"}, Importance: .25})
	}
	want, _ := read(dir)
	var got []event.Event
	for item, err := range event.ReadFrom(dir, nil) {
		if err != nil {
			t.Fatal(err)
		}
		raw, err := os.ReadFile(filepath.Join(dir, item.File))
		if err != nil {
			t.Fatal(err)
		}
		line := raw[item.Start:item.Next.Offset]
		if !bytes.Contains(line, []byte(item.ID)) || bytes.IndexByte(line, '\n') != len(line)-1 {
			t.Errorf("item %d is not the line at its offsets: %q", item.Line, line)
		}
		got = append(got, item.Event)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestReadFromTellsThatTheLogChanged(t *testing.T) {
	for name, change := range map[string]func(file string, raw []byte) error{
		"gone":    func(file string, raw []byte) error { return os.Remove(file) },
		"shorter": func(file string, raw []byte) error { return os.WriteFile(file, raw[:len(raw)-40], 0o600) },
		"other last line": func(file string, raw []byte) error {
			return os.WriteFile(file, bytes.Replace(raw, []byte(`"n":2`), []byte(`"n":3`), 1), 0o600)
		},
		"longer, and another line there": func(file string, raw []byte) error {
			return os.WriteFile(file, append([]byte("{}\n"), raw...), 0o600)
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			l := event.Open(dir, "h", clock(1))
			for i := range 3 {
				add(t, l, event.Event{Data: json.RawMessage(fmt.Sprintf(`{"n":%d}`, i))})
			}
			add(t, event.Open(dir, "other", clock(1)), event.Event{})
			at := map[string]event.Cursor{}
			readFrom(dir, at, 0)
			file := filepath.Join(dir, "2026-11.h.jsonl")
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if err := change(file, raw); err != nil {
				t.Fatal(err)
			}
			ids, errs := readFrom(dir, at, 0)
			if len(ids) > 0 || len(errs) != 1 || !errors.Is(errs[0], event.ErrChanged) {
				t.Errorf("%d events, errors %v", len(ids), errs)
			}
			if ids, errs := readFrom(dir, map[string]event.Cursor{}, 0); len(ids) == 0 || errors.Is(errors.Join(errs...), event.ErrChanged) {
				t.Errorf("from the beginning: %d events, %v", len(ids), errs)
			}
		})
	}
}

func TestReadFromPassesBadLines(t *testing.T) {
	dir := t.TempDir()
	l := event.Open(dir, "h", clock(1))
	add(t, l, event.Event{})
	file := filepath.Join(dir, "2026-11.h.jsonl")
	f, err := os.OpenFile(file, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(f, "no event\n%s\n", strings.Repeat("x", 5<<20))
	f.Close()
	at := map[string]event.Cursor{}
	ids, errs := readFrom(dir, at, 0)
	if len(ids) != 1 || len(errs) != 2 {
		t.Errorf("%d events, %v", len(ids), errs)
	}
	if ids, errs := readFrom(dir, at, 0); len(ids)+len(errs) > 0 {
		t.Errorf("told twice: %v %v", ids, errs)
	}
	add(t, l, event.Event{})
	if f, err = os.OpenFile(file, os.O_APPEND|os.O_WRONLY, 0); err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(f, `{"v":1,"id":"half`)
	f.Close()
	if ids, errs := readFrom(dir, at, 0); len(ids) != 1 || len(errs) > 0 {
		t.Errorf("after a bad line: %d events, %v", len(ids), errs)
	}
	add(t, l, event.Event{}) // sets the half line aside
	if ids, errs := readFrom(dir, at, 0); len(ids) != 1 || len(errs) > 0 {
		t.Errorf("after a torn line: %d events, %v", len(ids), errs)
	}
}

func BenchmarkReadFrom(b *testing.B) {
	dir := b.TempDir()
	l := event.Open(dir, "h", clock(time.Microsecond))
	first, err := l.Append(context.Background(), event.Event{Type: event.ToolSucceeded, Session: "5a13438d-5a8e-41c4-808c-4bfdd26a2a8d", Client: "claude",
		Data: json.RawMessage(`{"tool":"shell","name":"Bash","input":{"command":"go test ./internal/event -run TestX"},"output":"` + strings.Repeat("ok  reprise/internal/event 0.5s\\n", 10) + `","use_id":"toolu_01","duration_ms":1234}`)})
	if err != nil {
		b.Fatal(err)
	}
	file := filepath.Join(dir, first.TS.Format("2006-01")+".h.jsonl")
	line, err := os.ReadFile(file)
	if err != nil {
		b.Fatal(err)
	}
	const n = 20000
	if err := os.WriteFile(file, bytes.Repeat(line, n), 0o600); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(n * len(line)))
	for b.Loop() {
		got := 0
		for _, err := range event.ReadFrom(dir, nil) {
			if err != nil {
				b.Fatal(err)
			}
			got++
		}
		if got != n {
			b.Fatal(got)
		}
	}
	b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "events/s")
}
