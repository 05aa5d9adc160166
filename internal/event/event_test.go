package event_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"reprise/internal/durable"
	"reprise/internal/event"
)

var start = time.Date(2026, 11, 30, 23, 59, 58, 123456789, time.UTC)

// clock goes on by a step with each look.
func clock(step time.Duration) func() time.Time {
	var mu sync.Mutex
	at := start
	return func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		at = at.Add(step)
		return at
	}
}

func add(t *testing.T, l *event.Log, e event.Event) event.Event {
	t.Helper()
	if e.Type == "" {
		e.Type = event.ToolCalled
	}
	got, err := l.Append(context.Background(), e)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// read returns the events and the errors of a directory.
func read(dir string) (events []event.Event, errs []error) {
	for e, err := range event.Read(dir) {
		if err != nil {
			errs = append(errs, err)
		} else {
			events = append(events, e)
		}
	}
	return events, errs
}

func verify(t *testing.T, dir string) event.Report {
	t.Helper()
	r, err := event.Verify(dir)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestAppendThenRead(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "made", "events")
	l := event.Open(dir, "My Höst.local", clock(time.Second))
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("opening made the directory: %v", err)
	}
	var want []event.Event
	for i, typ := range event.Types() {
		want = append(want, add(t, l, event.Event{
			Type: typ, Project: "p", Session: "s", Run: "run-1", Client: "claude", Agent: "a", Role: "musician",
			Task: "12", Data: json.RawMessage(fmt.Sprintf(`{"n":%d,"big":12345678901234567890,"html":"<&>"}`, i)),
			Outcome: "success", Importance: 0.42, Evidence: []string{"e"}, ACL: []string{"agent:x", "*"},
		}))
	}
	got, errs := read(dir)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("read (-written +read):\n%s", d)
	}
	if want[0].Scope != event.ScopeSession || want[0].V != 1 {
		t.Errorf("scope %q, version %d", want[0].Scope, want[0].V)
	}
	uuid := regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
	for i, e := range got {
		if !uuid.MatchString(e.ID) || i > 0 && e.ID <= got[i-1].ID {
			t.Errorf("id %s after %s", e.ID, got[max(i-1, 0)].ID)
		}
	}
	files, _ := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	for i := range files {
		files[i] = filepath.Base(files[i])
	}
	if d := cmp.Diff([]string{"2026-11.my-h-st-local.jsonl", "2026-12.my-h-st-local.jsonl"}, files); d != "" {
		t.Error(d)
	}
	if r := verify(t, dir); !r.OK() || r.Events != len(want) || r.Files != 2 {
		t.Errorf("verify: %+v", r)
	}
}

func TestHostsAreMergedByTime(t *testing.T) {
	dir, now := t.TempDir(), clock(time.Millisecond)
	a, b := event.Open(dir, "a", now), event.Open(dir, "b", now)
	var want []string
	for i := range 9 {
		l := a
		if i%3 == 0 {
			l = b
		}
		want = append(want, add(t, l, event.Event{}).ID)
	}
	got, errs := read(dir)
	var ids []string
	for _, e := range got {
		ids = append(ids, e.ID)
	}
	if d := cmp.Diff(want, ids); d != "" || len(errs) > 0 {
		t.Errorf("%s %v", d, errs)
	}
	for range event.Read(dir) {
		break // stopping early must not fail
	}
}

func TestNothingThere(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "none")
	if got, errs := read(dir); len(got)+len(errs) > 0 {
		t.Error(got, errs)
	}
	if r := verify(t, dir); !r.OK() || r.Files != 0 {
		t.Errorf("%+v", r)
	}
}

func TestInvalidEventsAreRefused(t *testing.T) {
	dir := t.TempDir()
	l := event.Open(dir, "h", clock(1))
	for name, e := range map[string]event.Event{
		"type":            {Type: "tool.exploded"},
		"no type":         {},
		"scope":           {Type: event.ToolCalled, Scope: "galaxy"},
		"importance":      {Type: event.ToolCalled, Importance: 1.5},
		"data is a list":  {Type: event.ToolCalled, Data: json.RawMessage(`[1]`)},
		"data is no JSON": {Type: event.ToolCalled, Data: json.RawMessage(`{"a":`)},
		"more than data":  {Type: event.ToolCalled, Data: json.RawMessage(`{} {}`)},
		"acl":             {Type: event.ToolCalled, ACL: []string{"everyone"}},
		"acl name":        {Type: event.ToolCalled, ACL: []string{"agent:"}},
	} {
		if _, err := l.Append(context.Background(), e); !errors.Is(err, event.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if list, _ := os.ReadDir(dir); len(list) > 0 {
		t.Errorf("something was written: %v", list)
	}
}

func TestLongFieldsAreCut(t *testing.T) {
	dir := t.TempDir()
	l := event.Open(dir, "h", clock(1))
	long := strings.Repeat("ü", event.MaxField) // two bytes each
	data, err := json.Marshal(map[string]any{"short": "x", "a/b": []any{map[string]any{"out~put": "o" + long}}})
	if err != nil {
		t.Fatal(err)
	}
	got := add(t, l, event.Event{Data: data, Evidence: []string{"e", long}})
	if w := got.Cut["/data/a~1b/0/out~0put"]; w.Len != 1+2*event.MaxField || len(w.SHA256) != 64 {
		t.Errorf("cut %+v", got.Cut)
	}
	if w := got.Cut["/evidence/1"]; w.Len != 2*event.MaxField || got.Evidence[1] != long[:event.MaxField] {
		t.Errorf("cut %+v, evidence of %d bytes", got.Cut, len(got.Evidence[1]))
	}
	if len(got.Data) > event.MaxField+100 || !bytes.Contains(got.Data, []byte(`"short":"x"`)) || bytes.Contains(got.Data, []byte("\uFFFD")) {
		t.Errorf("data of %d bytes: %.60s", len(got.Data), got.Data)
	}

	many := map[string]string{}
	for i := range 200 {
		many[fmt.Sprint(i)] = strings.Repeat("x ", event.MaxField/2)
	}
	if data, err = json.Marshal(many); err != nil {
		t.Fatal(err)
	}
	got = add(t, l, event.Event{Data: data, Evidence: []string{"kept"}})
	if w := got.Cut["/data"]; w.Len != len(data) || got.Data != nil || len(got.Evidence) != 1 {
		t.Errorf("cut %+v", got.Cut)
	}
	if r := verify(t, dir); !r.OK() || r.Events != 2 {
		t.Errorf("%+v", r)
	}
}

func TestSecretsAreNotWritten(t *testing.T) {
	dir := t.TempDir()
	token := "ghp" + "_aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5"
	word := "kT9" + "xQ2mZ7wV4bN8s"
	data, err := json.Marshal(map[string]any{"command": "curl " + token, "list": []string{token}, "password": word, token: 1, "max_tokens": "4000"})
	if err != nil {
		t.Fatal(err)
	}
	got := add(t, event.Open(dir, "h", clock(1)), event.Event{Data: data, Evidence: []string{"saw " + token}, Outcome: token})
	raw, err := os.ReadFile(filepath.Join(dir, "2026-11.h.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(raw, []byte(token)) || bytes.Contains(raw, []byte(word)) {
		t.Errorf("a secret was written: %s", raw)
	}
	if !bytes.Contains(got.Data, []byte(`"curl [redacted:github-pat]"`)) || !bytes.Contains(got.Data, []byte(`"max_tokens":"4000"`)) {
		t.Errorf("data %s", got.Data)
	}
}

func TestDamageIsFoundAndReadAround(t *testing.T) {
	tests := []struct {
		name     string
		damage   func(lines []string) []string
		problems []int // lines
		events   int
	}{
		{"none", func(l []string) []string { return l }, nil, 5},
		{"edited", func(l []string) []string {
			l[1] = strings.Replace(l[1], `"data":{"n":1}`, `"data":{"n":7}`, 1)
			return l
		}, []int{3}, 5},
		{"removed", func(l []string) []string { return slices.Delete(l, 2, 3) }, []int{3}, 4},
		{"first removed", func(l []string) []string { return l[1:] }, []int{1}, 4},
		{"swapped", func(l []string) []string { l[1], l[2] = l[2], l[1]; return l }, []int{2, 3, 4}, 5},
		{"garbage", func(l []string) []string { l[1] = "\x00\xff{"; return l }, []int{2, 3}, 4},
		{"blank line", func(l []string) []string { return slices.Insert(l, 1, "") }, []int{2, 3}, 5},
		{"other version", func(l []string) []string { l[4] = strings.Replace(l[4], `"v":1`, `"v":2`, 1); return l }, []int{5}, 4},
		{"far too long", func(l []string) []string { return append(l, strings.Repeat("x", 5<<20)) }, []int{6}, 5},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			l := event.Open(dir, "h", clock(1))
			for i := range 5 {
				add(t, l, event.Event{Data: json.RawMessage(fmt.Sprintf(`{"n":%d}`, i))})
			}
			file := filepath.Join(dir, "2026-11.h.jsonl")
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			lines := tt.damage(strings.Split(strings.TrimSuffix(string(raw), "\n"), "\n"))
			if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			r := verify(t, dir)
			var at []int
			for _, p := range r.Problems {
				at = append(at, p.Line)
			}
			if d := cmp.Diff(tt.problems, at); d != "" {
				t.Errorf("problems: %v", r.Problems)
			}
			events, errs := read(dir)
			if len(events) != tt.events || r.Events != tt.events {
				t.Errorf("%d events, verify says %d, want %d (%v)", len(events), r.Events, tt.events, errs)
			}
			for _, err := range errs {
				if le := (*event.LineError)(nil); !errors.As(err, &le) || le.File != file || le.Line == 0 {
					t.Errorf("error without its place: %v", err)
				}
			}
			add(t, l, event.Event{}) // the log goes on after any damage
			if after := verify(t, dir); len(after.Problems) != len(r.Problems) {
				t.Errorf("after another event: %v", after.Problems)
			}
		})
	}
}

func TestTornLineIsSetAside(t *testing.T) {
	dir := t.TempDir()
	l := event.Open(dir, "h", clock(1))
	add(t, l, event.Event{})
	file := filepath.Join(dir, "2026-11.h.jsonl")
	f, err := os.OpenFile(file, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(`{"v":1,"id":"torn`); err != nil {
		t.Fatal(err)
	}
	f.Close()
	if events, errs := read(dir); len(events) != 1 || len(errs) > 0 {
		t.Errorf("%d events, %v", len(events), errs)
	}
	if r := verify(t, dir); !r.OK() || len(r.Unfinished) != 1 {
		t.Errorf("%+v", r)
	}
	add(t, l, event.Event{})
	if r := verify(t, dir); !r.OK() || len(r.Unfinished) != 0 || r.Events != 2 {
		t.Errorf("%+v", r)
	}
	if torn, err := os.ReadFile(file + ".torn"); err != nil || string(torn) != `{"v":1,"id":"torn`+"\n" {
		t.Errorf("%q %v", torn, err)
	}
}

func TestPurgeStartsAChain(t *testing.T) {
	dir := t.TempDir()
	l := event.Open(dir, "h", clock(1))
	old := strings.Repeat("ab", 32)
	got := add(t, l, event.Event{Type: event.MemoryPurged, Data: json.RawMessage(`{"chain":"` + old + `"}`)})
	add(t, l, event.Event{})
	if r := verify(t, dir); got.Prev != old || !r.OK() {
		t.Errorf("prev %s, %+v", got.Prev, r)
	}
}

func TestManyWriters(t *testing.T) {
	dir, now := t.TempDir(), clock(time.Microsecond)
	const writers, each = 8, 15
	var wg sync.WaitGroup
	for range writers {
		l := event.Open(dir, "h", now)
		wg.Go(func() {
			for range each {
				if _, err := l.Append(context.Background(), event.Event{Type: event.ToolCalled}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if r := verify(t, dir); !r.OK() || r.Events != writers*each {
		t.Errorf("%d events, %v", r.Events, r.Problems)
	}
}

func TestGivesUpWithTheContext(t *testing.T) {
	dir := t.TempDir()
	l := event.Open(dir, "h", clock(1))
	add(t, l, event.Event{})
	unlock, err := durable.Lock(context.Background(), filepath.Join(dir, "2026-11.h.jsonl.lock"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	if _, err := l.Append(ctx, event.Event{Type: event.ToolCalled}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v", err)
	}
	if err := unlock(); err != nil {
		t.Fatal(err)
	}
	add(t, l, event.Event{})
}

func TestFullDiskLosesNothing(t *testing.T) {
	dir := t.TempDir()
	full := false
	disk := durable.NewDisk(func(s durable.Step) *durable.Fault {
		if full && s.Op == durable.OpWrite {
			return &durable.Fault{Err: syscall.ENOSPC, Write: s.Size / 2}
		}
		return nil
	})
	l := event.OpenOn(disk, dir, "h", clock(1))
	add(t, l, event.Event{})
	full = true
	if _, err := l.Append(context.Background(), event.Event{Type: event.ToolCalled}); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("error %v", err)
	}
	if r := verify(t, dir); !r.OK() || r.Events != 1 || len(r.Unfinished) > 0 {
		t.Errorf("%+v", r)
	}
	full = false
	add(t, l, event.Event{})
	if r := verify(t, dir); !r.OK() || r.Events != 2 {
		t.Errorf("%+v", r)
	}
}

func FuzzRead(f *testing.F) {
	dir := f.TempDir()
	l := event.Open(dir, "h", clock(1))
	for range 2 {
		if _, err := l.Append(context.Background(), event.Event{Type: event.ToolCalled, Data: json.RawMessage(`{"a":["b"]}`)}); err != nil {
			f.Fatal(err)
		}
	}
	good, err := os.ReadFile(filepath.Join(dir, "2026-11.h.jsonl"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add(good[:len(good)-9])
	f.Add([]byte("\n\n{}\n[]\nnull\n\x00\n"))
	f.Add([]byte(`{"v":1,"id":"x","ts":"2026-11-01T00:00:00Z","scope":"global","type":"tool.called","prev":""}` + "\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "2026-11.h.jsonl"), data, 0o600); err != nil {
			t.Fatal(err)
		}
		events, errs := read(dir)
		if got, want := len(events)+len(errs), bytes.Count(data, []byte("\n")); got != want {
			t.Fatalf("%d lines were told of, of %d", got, want)
		}
		if r := verify(t, dir); r.Events != len(events) || len(r.Problems) < len(errs) {
			t.Fatalf("verify disagrees: %+v, %d events, %v", r, len(events), errs)
		}
	})
}

func BenchmarkAppend(b *testing.B) {
	dir := b.TempDir()
	l := event.Open(dir, "h", clock(time.Microsecond))
	data := json.RawMessage(`{"tool":"Bash","command":"go test ./...","duration_ms":1234}`)
	for b.Loop() {
		if _, err := l.Append(context.Background(), event.Event{Type: event.ToolSucceeded, Session: "s", Data: data}); err != nil {
			b.Fatal(err)
		}
	}
}

// A line of a newer version is told as that, and as no damage.
func TestVerifyTellsNewerLines(t *testing.T) {
	dir := t.TempDir()
	l := event.Open(dir, "vm", clock(time.Second))
	for range 3 {
		add(t, l, event.Event{Type: event.PromptSubmitted, Session: "s"})
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	file := files[len(files)-1] // the clock goes over a month's end
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	i := bytes.LastIndex(data, []byte(`"v":1`))
	data[i+4] = '7'
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	if r := verify(t, dir); r.Newer != 1 || len(r.Problems) != 1 || !strings.Contains(r.Problems[0].What, "version 7 is newer than this program") {
		t.Errorf("%+v", r)
	}
	data[i+4] = '0'
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	if r := verify(t, dir); r.Newer != 0 || len(r.Problems) != 1 {
		t.Errorf("an unknown old one: %+v", r)
	}
}

// The events of a run are found without the lines of others, whatever is in these, and those of a
// month before it are not looked at.
func TestOfRun(t *testing.T) {
	dir := t.TempDir()
	log := event.Open(dir, "host", clock(time.Second)) // goes over into the next month
	for _, run := range []string{"run-aaaaaaaaaa", "run-bbbbbbbbbb", "", "run-aaaaaaaaaa"} {
		add(t, log, event.Event{Run: run, Data: json.RawMessage(`{"tool":"shell","name":"Bash","input":{"command":"reprise runs show run-aaaaaaaaaa"}}`)})
	}
	other := event.Open(dir, "other", clock(time.Hour))
	add(t, other, event.Event{Run: "run-aaaaaaaaaa"})
	if err := os.WriteFile(filepath.Join(dir, "2026-12.damaged.jsonl"), []byte("{run-aaaaaaaaaa\n{\"run\":\"run-aaaaaaaaaa\""), 0o600); err != nil {
		t.Fatal(err)
	}
	find := func(dir, run string, since time.Time) (n int) {
		for e, err := range event.OfRun(dir, run, since) {
			if err != nil || e.Run != run {
				t.Errorf("%+v, %v", e, err)
			}
			n++
		}
		return n
	}
	if n := find(dir, "run-aaaaaaaaaa", start); n != 3 {
		t.Errorf("%d events of the run, want 3", n)
	}
	if n := find(dir, "run-aaaaaaaaaa", start.AddDate(0, 1, 0)); n != 2 {
		t.Errorf("%d events since December, want 2", n)
	}
	if n := find(dir, "", start) + find(filepath.Join(dir, "none"), "run-aaaaaaaaaa", start); n != 0 {
		t.Errorf("%d events of nothing", n)
	}
}
