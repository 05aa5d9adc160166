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
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"reprise/internal/durable"
	"reprise/internal/durable/durabletest"
	"reprise/internal/event"
	"reprise/internal/event/quick"
	"reprise/internal/redact"
)

func numbered(n int) event.Event {
	return event.Event{Session: "s", Data: json.RawMessage(fmt.Sprintf(`{"n":%d,"word":"secret-%d"}`, n, n))}
}

func purgeOf(disk durable.Disk, dir, word string) (event.Purged, error) {
	return event.Purge(context.Background(), event.PurgeOptions{
		Dir: dir, Host: "h", Now: clock(time.Minute), Disk: disk, Reason: "asked for", Item: "m-1",
		Match: func(e event.Event) bool { return bytes.Contains(e.Data, []byte(word)) },
		Raw:   func(b []byte) bool { return bytes.Contains(b, []byte(word)) },
	})
}

func TestPurge(t *testing.T) {
	dir := t.TempDir()
	l := event.Open(dir, "h", clock(100*time.Millisecond))
	for i := range 9 {
		add(t, l, numbered(i))
	}
	other := event.Open(dir, "other", clock(time.Millisecond))
	add(t, other, event.Event{})
	file := filepath.Join(dir, "2026-11.h.jsonl")
	for path, text := range map[string]string{file: `{"v":1,"n":"secret-4` + "\n" + `no event` + "\n", file + ".torn": "half of secret-4\nhalf of another\n"} {
		f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprint(f, text)
		f.Close()
	}
	before := verify(t, dir)
	at := map[string]event.Cursor{}
	readFrom(dir, at, 0)

	got, err := purgeOf(durable.Disk{}, dir, "secret-4")
	if err != nil {
		t.Fatal(err)
	}
	want := event.Purged{Files: []string{"2026-11.h.jsonl"}, Events: 2, Torn: []string{"2026-11.h.jsonl.torn"}, Unread: 1}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	for path, text := range tree(t, dir) {
		if strings.Contains(text, "secret-4") {
			t.Errorf("it is still in %s", path)
		}
	}
	events, errs := read(dir)
	if len(events) != 10 || len(errs) != 1 {
		t.Fatalf("%d events, %v", len(events), errs)
	}
	first := events[0]
	var data event.MemoryData
	if err := json.Unmarshal(first.Data, &data); err != nil || first.Type != event.MemoryPurged || data.Count != 2 || data.Reason != "asked for" || data.ID != "m-1" || data.Chain != before.Last["2026-11.h.jsonl"] || first.Prev != data.Chain {
		t.Errorf("%+v, data %s", first, first.Data)
	}
	if r := verify(t, dir); len(r.Problems) != 1 || !strings.Contains(r.Problems[0].What, "invalid") {
		t.Errorf("%v", r.Problems)
	}
	if _, errs := readFrom(dir, at, 0); len(errs) != 1 || !errors.Is(errs[0], event.ErrChanged) {
		t.Errorf("a reader is not told: %v", errs)
	}
	// Nothing more to purge: nothing is written. And the log goes on, is purged again, and goes on.
	was := tree(t, dir)
	if got, err := purgeOf(durable.Disk{}, dir, "secret-4"); err != nil || len(got.Files) > 0 {
		t.Errorf("%+v %v", got, err)
	}
	if d := cmp.Diff(was, tree(t, dir)); d != "" {
		t.Error(d)
	}
	add(t, l, event.Event{})
	if _, err := purgeOf(durable.Disk{}, dir, "secret-7"); err != nil {
		t.Fatal(err)
	}
	add(t, l, event.Event{})
	if r := verify(t, dir); len(r.Problems) != 1 {
		t.Errorf("%v", r.Problems)
	}
}

// foreign lines of version 1 whose prev stands in front keep all they have.
func TestPurgeKeepsWhatItDoesNotKnow(t *testing.T) {
	dir := t.TempDir()
	text := `{"prev":"","v":1,"id":"a","ts":"2026-11-01T00:00:00Z","scope":"global","type":"tool.called","of_tomorrow":{"x":[1.50]},"data":{"k":"gone"}}
{"prev":"xx","v":1,"id":"b","ts":"2026-11-01T00:00:00Z","scope":"global","type":"tool.called","of_tomorrow":{"x":[1.50]},"data":{"k":"kept"}}
`
	file := filepath.Join(dir, "2026-11.h.jsonl")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := purgeOf(durable.Disk{}, dir, "gone"); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(raw, []byte(`"of_tomorrow":{"x":[1.50]},"data":{"k":"kept"},"prev":"`)) {
		t.Errorf("%s", raw)
	}
	if r := verify(t, dir); !r.OK() || r.Events != 2 {
		t.Errorf("%+v", r)
	}
}

var purging = durabletest.Scenario{
	Prepare: func(t *testing.T, dir string) {
		l := event.Open(dir, "h", clock(100*time.Millisecond))
		for i := range 4 {
			add(t, l, numbered(i))
		}
		add(t, event.Open(dir, "i", clock(100*time.Millisecond)), numbered(2))
	},
	Act: func(disk durable.Disk, dir string) error {
		_, err := purgeOf(disk, dir, "secret-2")
		return err
	},
	Check: func(t *testing.T, dir string, err error, at string) {
		t.Helper()
		if r := verify(t, dir); !r.OK() || r.Events != 5 { // of each file one goes and one comes
			t.Errorf("%s: purge said %v, then %d events: %v", at, err, r.Events, r.Problems)
		}
		if _, err := purgeOf(durable.Disk{}, dir, "secret-2"); err != nil {
			t.Errorf("%s: again: %v", at, err)
		}
		for path, text := range tree(t, dir) {
			if strings.Contains(text, "secret-2") && durable.IsTemp(filepath.Base(path)) {
				continue // of the killed one; removed as any temporary file
			} else if strings.Contains(text, "secret-2") {
				t.Errorf("%s: it is still in %s", at, path)
			}
		}
		add(t, event.Open(dir, "h", clock(time.Hour)), event.Event{})
		if r := verify(t, dir); !r.OK() {
			t.Errorf("%s: %v", at, r.Problems)
		}
	},
}

func TestPurgeKilledAtEachStep(t *testing.T) { purging.CrashAtEachStep(t) }

func TestPurgeFailsAtEachStep(t *testing.T) { purging.FailAtEachStep(t, syscall.ENOSPC) }

// TestPurgeBesideWriters: others write on while a purge replaces the file.
func TestPurgeBesideWriters(t *testing.T) {
	dir := t.TempDir()
	var wg sync.WaitGroup
	const writers, each = 4, 25
	for w := range writers {
		wg.Go(func() {
			l := event.Open(dir, "h", func() time.Time { return start.Add(-time.Hour) })
			for i := range each {
				if _, err := l.Append(context.Background(), numbered2(w, i)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	purged := 0
	for range 10 {
		got, err := purgeOf(durable.Disk{}, dir, "secret-3-")
		if err != nil {
			t.Fatal(err)
		}
		purged += got.Events
	}
	wg.Wait()
	got, err := purgeOf(durable.Disk{}, dir, "secret-3-")
	if err != nil {
		t.Fatal(err)
	}
	if purged += got.Events; purged != each {
		t.Errorf("%d purged of %d", purged, each)
	}
	kept := map[string]bool{}
	events, errs := read(dir)
	for _, e := range events {
		if e.Type != event.MemoryPurged {
			kept[string(e.Data)] = true
		}
	}
	if len(kept) != (writers-1)*each || len(errs) > 0 {
		t.Errorf("%d events are left, %v", len(kept), errs)
	}
	if r := verify(t, dir); !r.OK() {
		t.Error(r.Problems)
	}
}

func numbered2(w, i int) event.Event {
	return event.Event{Type: event.ToolCalled, Data: json.RawMessage(fmt.Sprintf(`{"word":"secret-%d-%d"}`, w, i))}
}

// TestPurgeKeepsAHashThatLooksLikeASecret: one hash in a few hundred does, and
// the chain of a file that was purged begins with one.
func TestPurgeKeepsAHashThatLooksLikeASecret(t *testing.T) {
	red := redact.New()
	var line string
	for n := 0; ; n++ {
		if n > 100_000 {
			t.Fatal("no hash looks like a secret: this cannot be shown")
		}
		line = fmt.Sprintf(`{"v":1,"id":"01a2227d-db40-76cf-93c0-bba9f3d210f0","ts":"2026-11-28T14:10:03Z","scope":"session","session":"s","type":"tool.called","data":{"n":%d,"word":"secret-2"},"prev":""}`, n)
		text := `{"chain":"` + quick.Hash([]byte(line)) + `"}`
		if clean, _ := red.String(text); clean != text {
			break
		}
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "2026-11.h.jsonl"), []byte(line+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := purgeOf(durable.Disk{}, dir, "secret-2"); err != nil || got.Events != 1 {
		t.Fatalf("%+v, %v", got, err)
	}
	if r := verify(t, dir); !r.OK() || r.Events != 1 {
		t.Errorf("%+v", r)
	}
}
