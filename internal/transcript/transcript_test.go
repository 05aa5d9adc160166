package transcript

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"reprise/internal/clip"
	"reprise/internal/event"
)

var update = flag.Bool("update", false, "write golden files anew")

// later is when the samples are read: their sessions are over.
func later() time.Time { return time.Date(2099, 1, 1, 0, 0, 0, 0, time.UTC) }

func samplePlaces() Places { return placesIn(filepath.Join("testdata", "home")) }

func placesIn(home string) Places {
	p := Places{}
	for _, c := range Clients() {
		p[c] = filepath.Join(home, "."+c)
	}
	return p
}

// told is an event in a line that people can read.
func told(cwd string, e event.Event) string {
	var d map[string]any
	if err := json.Unmarshal(e.Data, &d); err != nil {
		return err.Error()
	}
	delete(d, "transcript")
	for k, v := range d {
		if s, ok := v.(string); ok && len(s) > 160 {
			d[k] = fmt.Sprintf("%s… (%d bytes) …%s", clip.Head(s, 60), len(s), s[len(s)-20:])
		}
	}
	data, err := json.Marshal(d)
	if err != nil {
		return err.Error()
	}
	agent := ""
	if e.Agent != "" {
		agent = " agent=" + e.Agent
	}
	return fmt.Sprintf("%s %-18s%s in %s %s", e.TS.Format("01-02T15:04:05.000"), e.Type, agent, cwd, data)
}

// The samples are what the real clients wrote (see testdata), shortened, beside
// older forms written by hand.
func TestSamples(t *testing.T) {
	f := Find(samplePlaces(), nil)
	defer f.Close()
	if len(f.Bad) > 0 {
		t.Error(f.Bad)
	}
	var out strings.Builder
	ids := map[string]string{}
	byPath := map[string]Source{}
	for _, s := range f.Sources { // modification times are the checkout's
		byPath[s.Path] = s
	}
	for _, path := range sortedKeys(byPath) {
		s := byPath[path]
		s.Mod = time.Time{}
		fmt.Fprintf(&out, "\n# %s %s\n", s.Client, filepath.ToSlash(strings.TrimPrefix(path, filepath.Join("testdata", "home"))))
		st, err := s.Read(t.Context(), later(), 0, func(cwd string, e event.Event) error {
			line := told(cwd, e)
			if before, ok := ids[e.ID]; ok {
				t.Errorf("one id for two events:\n%s\n%s", before, line)
			}
			if e.Session != s.Session && s.Session != "" {
				t.Errorf("session %q in %s", e.Session, path)
			}
			ids[e.ID] = line
			out.WriteString(line + "\n")
			return nil
		})
		if err != nil {
			t.Error(err)
		}
		fmt.Fprintf(&out, "= session %s, %d bad\n", st.Session, st.Bad)
	}
	golden := filepath.Join("testdata", "events.golden")
	if *update {
		if err := os.WriteFile(golden, []byte(out.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), out.String()); d != "" {
		t.Errorf("after looking at it: go test ./internal/transcript -update\n%s", d)
	}
}

// readAll reads lines as a client's transcript.
func readAll(t testing.TB, client string, data []byte) ([]event.Event, Stats) {
	t.Helper()
	src := Source{Client: client, Path: "f", Session: "s-1", name: "x.jsonl"}
	var events []event.Event
	st, err := src.read(context.Background(), bytes.NewReader(data), later(), 0, func(_ string, e event.Event) error {
		events = append(events, e)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return events, st
}

func TestBadLinesAreToldOfAndReadAround(t *testing.T) {
	prompt := func(n int) string {
		return fmt.Sprintf(`{"type":"user","uuid":"u-%d","sessionId":"s-1","cwd":"/w","timestamp":"2026-05-01T10:00:%02dZ","message":{"role":"user","content":"prompt %d"}}`, n, n, n)
	}
	long := `{"type":"user","x":"` + strings.Repeat("y", maxLine) + `"}`
	text := strings.Join([]string{
		prompt(1), "{nonsense", "", "   ", `{"type":"user","message":{"content":7}}`, long, prompt(2), "[]", "null", prompt(3), `{"type":"user","torn`,
	}, "\n")
	events, st := readAll(t, "claude", []byte(text))
	var prompts []string
	for _, e := range events {
		if e.Type == event.PromptSubmitted {
			prompts = append(prompts, string(e.Data))
		}
	}
	want := []string{`{"text":"prompt 1","cwd":"/w"}`, `{"text":"prompt 2","cwd":"/w"}`, `{"text":"prompt 3","cwd":"/w"}`}
	if d := cmp.Diff(want, prompts); d != "" {
		t.Error(d)
	}
	var lines []int
	for _, b := range st.Places {
		lines = append(lines, b.Line)
	}
	if d := cmp.Diff([]int{2, 5, 6, 8}, lines); d != "" || st.Bad != 4 {
		t.Errorf("bad lines %v: %s", st.Places, d)
	}
	if st.Places[0].Offset != int64(len(prompt(1))+1) || st.Bytes != int64(len(text)) {
		t.Errorf("offset %d, bytes %d of %d", st.Places[0].Offset, st.Bytes, len(text))
	}
}

func TestTimesAreKeptSane(t *testing.T) {
	line := func(id, ts string) string {
		return fmt.Sprintf(`{"type":"user","uuid":"%s","timestamp":"%s","message":{"content":"x"}}`, id, ts)
	}
	events, st := readAll(t, "claude", []byte(strings.Join([]string{
		line("a", "yesterday"), line("b", "2026-05-01T10:00:00+02:00"), line("c", "9999-01-01T00:00:00Z"), line("d", "1970-01-01T00:00:00Z"),
	}, "\n")+"\n"))
	if st.Bad != 1 || len(events) != 5 {
		t.Fatalf("%d bad, %d events", st.Bad, len(events))
	}
	for _, e := range events {
		if !e.TS.Equal(time.Date(2026, 5, 1, 8, 0, 0, 0, time.UTC)) {
			t.Errorf("%s at %v", e.Type, e.TS)
		}
	}
}

// The same bytes make the same events wherever and whenever they are read, in
// whatever pieces.
func TestSameBytesSameEvents(t *testing.T) {
	f := Find(samplePlaces(), nil)
	defer f.Close()
	for _, s := range f.Sources {
		data, err := os.ReadFile(s.Path)
		if err != nil {
			t.Fatal(err)
		}
		s.Mod = time.Time{}
		var whole, half []event.Event
		collect := func(to *[]event.Event) func(string, event.Event) error {
			return func(_ string, e event.Event) error { *to = append(*to, e); return nil }
		}
		if _, err := s.read(t.Context(), bytes.NewReader(data), later(), 0, collect(&whole)); err != nil {
			t.Fatal(err)
		}
		// A session that was read while it went on.
		s.Mod = later()
		if _, err := s.read(t.Context(), bytes.NewReader(data[:len(data)/2]), later(), 0, collect(&half)); err != nil {
			t.Fatal(err)
		}
		ids := map[string]bool{}
		for _, e := range whole {
			ids[e.ID] = true
		}
		for _, e := range half {
			// The last words so far may turn out not to be an answer.
			if !ids[e.ID] && e.Type != event.ResponseCompleted && e.Type != event.SubagentFinished {
				t.Errorf("%s: %s of the first half is another event in the whole", s.Path, e.Type)
			}
		}
	}
}

func FuzzRead(f *testing.F) {
	found := Find(samplePlaces(), nil)
	defer found.Close()
	for _, s := range found.Sources {
		data, err := os.ReadFile(s.Path)
		if err != nil {
			f.Fatal(err)
		}
		if len(data) > 4000 {
			data = data[:4000]
		}
		f.Add(data)
	}
	f.Add([]byte(`{"type":"response_item","timestamp":"2026-01-01T00:00:00Z","payload":{"type":"function_call_output","output":{"content":[]}}}` + "\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, client := range Clients() {
			events, _ := readAll(t, client, data)
			for _, e := range events {
				if e.ID == "" || e.TS.IsZero() || !json.Valid(e.Data) || e.Data[0] != '{' {
					t.Fatalf("event %+v", e)
				}
			}
		}
		g := Source{Client: "gemini", Path: "f", name: "session-x.json"}
		if _, err := g.read(context.Background(), bytes.NewReader(data), later(), 0, func(string, event.Event) error { return nil }); err != nil {
			t.Fatal(err)
		}
	})
}
