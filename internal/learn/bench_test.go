package learn

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"reprise/internal/event"
	"reprise/internal/recall"
)

// writeMany writes a log of n events that look like a year of work: sessions of
// fifty calls, one in ten of which fails.
func writeMany(t testing.TB, dir string, n int) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var f *os.File
	month := ""
	for i := range n {
		at = at.Add(3 * time.Minute)
		if m := at.Format("2006-01"); m != month {
			if f != nil {
				f.Close()
			}
			var err error
			if f, err = os.OpenFile(filepath.Join(dir, m+".desk.jsonl"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600); err != nil {
				t.Fatal(err)
			}
			month = m
		}
		e := event.Event{V: 1, ID: fmt.Sprintf("%08x-0000-7000-8000-%012x", i, i), TS: at, Scope: event.ScopeSession, Project: "shop", Session: fmt.Sprintf("s%d", i/60), Client: "claude"}
		var data any
		switch i % 60 {
		case 0:
			e.Type, data = event.SessionStarted, event.SessionData{Cwd: "/w/shop"}
		case 1, 20, 40:
			e.Type, data = event.PromptSubmitted, event.PromptData{Text: fmt.Sprintf("Add the feature number %d to the cart, with a test for it", i)}
		case 19, 39, 58:
			e.Type, data = event.ResponseCompleted, event.ResponseData{Text: "The feature is there, and its tests pass. I changed the cart and the page."}
		case 59:
			e.Type, data = event.SessionEnded, event.SessionData{}
		case 5, 25, 45, 50, 53:
			code := 1
			e.Type, data = event.ToolFailed, shellData(fmt.Sprintf("go test ./internal/p%d", i/60%40), fmt.Sprintf("./x%d.go:%d:3: undefined: name%d\nFAIL\tshop/x [build failed]", i, i%300, i/600%50), &code)
		case 7, 27, 47, 52, 55:
			e.Type, data = event.ToolSucceeded, shellData(fmt.Sprintf("go test ./internal/p%d", i/60%40), "", nil)
		case 6, 26, 46, 51, 54:
			in, _ := json.Marshal(map[string]string{"file_path": fmt.Sprintf("/w/shop/internal/p%d/x.go", i/60%40), "old_string": "some text that is not long", "new_string": "another text that is about as long"})
			e.Type, data = event.ToolSucceeded, event.ToolData{Tool: "edit", Name: "Edit", Input: in, Cwd: "/w/shop", Output: "The file was updated."}
		default:
			in, _ := json.Marshal(map[string]string{"command": fmt.Sprintf("grep -rn 'name%d' internal | head -20", i)})
			e.Type, data = event.ToolSucceeded, event.ToolData{Tool: "shell", Name: "Bash", Input: in, Cwd: "/w/shop", Output: "internal/cart/cart.go:12: the line that was looked for\ninternal/page/page.go:40: and another one\n"}
		}
		e.Data, _ = json.Marshal(data)
		line, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write(append(line, '\n')); err != nil {
			t.Fatal(err)
		}
	}
	f.Close()
}

// BenchmarkFold is a fold from zero into a real index; events/s is what counts.
func BenchmarkFold(b *testing.B) {
	dir := b.TempDir()
	const n = 30_000
	writeMany(b, filepath.Join(dir, "events"), n)
	for i := 0; b.Loop(); i++ {
		x := recall.Open(recall.Options{IndexFile: filepath.Join(dir, fmt.Sprintf("index%d.db", i)), MemoryDir: dir})
		o := New(Options{Index: x, Logs: []Log{{Project: "shop", Dir: filepath.Join(dir, "events")}}, Now: clock("2026-12-01"), Batch: 10_000})
		if _, err := o.Run(context.Background(), 0); err != nil {
			b.Fatal(err)
		}
		x.Close()
	}
	b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "events/s")
}
