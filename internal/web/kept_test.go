package web

import (
	"strings"
	"testing"

	"reprise/internal/queue"
	"reprise/internal/run"
)

// What is kept of runs and items between pages is what is on disk.
func TestWhatIsKeptIsReadAgainWhenItChanged(t *testing.T) {
	h := open(t, nil)
	for i, id := range []string{"run-aaaaaaaaaa", "run-bbbbbbbbbb"} {
		h.runRecord(id, nil, "")
		if n := strings.Count(h.page("/runs"), ">completed</span>"); n != i+1 {
			t.Errorf("%d runs are shown, want %d", n, i+1)
		}
	}
	h.runRecord("run-aaaaaaaaaa", func(r *run.Record) { r.Status, r.StatusReason = run.Failed, "it was changed" }, "")
	if !strings.Contains(h.page("/runs"), "it was changed") || !strings.Contains(h.page("/runs?status=failed"), "1 in all") && !strings.Contains(h.page("/runs?status=failed"), "it was changed") {
		t.Error("a record that was changed is shown as it was")
	}
	if n := strings.Count(h.page("/runs"), "/runs/run-"); n != 2 {
		t.Errorf("after a filter the list has %d runs", n)
	}
	for _, title := range []string{"The first", "The second"} {
		h.add(queue.Item{Title: title})
		if !strings.Contains(h.page("/work"), title) {
			t.Errorf("%q is not shown", title)
		}
	}
}
