package web

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"reprise/internal/event"
	"reprise/internal/event/quick"
	"reprise/internal/queue"
	"reprise/internal/run"
	"reprise/internal/task"
)

// large is a house with so many events and tasks, and with a tenth as many items and
// runs as tasks.
func large(t testing.TB, events, tasks int) *house {
	h, add, dir := logging(t)
	add(event.Event{Type: event.ToolSucceeded, Outcome: "success", Session: "s1",
		Data: quick.WithHookTime(data(event.ToolData{Tool: "shell", Name: "Bash", Output: strings.Repeat("some output ", 20)}), 3*time.Millisecond)})
	names, err := event.FileNames(dir)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, names[0])
	line, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, bytes.Repeat(line, events), 0o600); err != nil {
		t.Fatal(err)
	}
	h.tasks(func(b *task.Board) error {
		for i := range tasks {
			title := fmt.Sprintf("Task of many %d", i+1)
			if _, err := b.Add(task.Draft{Title: &title}); err != nil {
				return err
			}
		}
		return nil
	})
	var items []queue.Item
	for i := range tasks / 10 {
		items = append(items, queue.Item{Title: fmt.Sprintf("Item of many %d", i)})
		h.runRecord(fmt.Sprintf("run-%s", fmt.Sprintf("aaaaaaaaaa%s", letters(i))[len(letters(i)):]), func(r *run.Record) { r.Origin = "loop" }, "")
	}
	h.add(items...)
	return h
}

// letters is a number in the letters that ids of runs have.
func letters(n int) string {
	const all = "abcdefghijklmnopqrstuvwxyz234567"
	return string([]byte{all[n/1024%32], all[n/32%32], all[n%32]})
}

// What a page of a long log, list and queue costs the server, the connection and the
// reading of the answer included; docs/benchmarks.md has the figures.
func BenchmarkPages(b *testing.B) {
	for _, size := range []struct {
		name          string
		events, tasks int
	}{{"few", 100, 50}, {"many", 10_000, 5_000}} {
		h := large(b, size.events, size.tasks)
		for _, path := range []string{"/", "/runs", "/work", "/work/items", "/tasks", "/tasks?view=list", "/events", "/events?text=nothing+like+it", "/figures"} {
			h.page(path) // the first one reads what is new
			b.Run(size.name+path, func(b *testing.B) {
				before := processorTime()
				for b.Loop() {
					h.page(path)
				}
				// On a busy machine this, and not the time that went by, is what a page takes.
				b.ReportMetric(float64(processorTime()-before)/float64(time.Millisecond)/float64(b.N), "cpu-ms/op")
			})
		}
	}
}
