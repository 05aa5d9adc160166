package web

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"reprise/internal/learn"
)

// laboured is a house whose sessions are worked out by steps that a test lets go on.
func laboured(t *testing.T, step func(ctx context.Context, n int) (more bool, err error)) (h *house, steps *atomic.Int32, grow func()) {
	steps = new(atomic.Int32)
	log := t.TempDir()
	h = open(t, func(d *Deps) {
		d.Memory = &Remembering{
			Logs:    []string{log},
			WorkOut: func(ctx context.Context, _ time.Duration) (bool, error) { return step(ctx, int(steps.Add(1))) },
			Sessions: func(_ context.Context, fn func(learn.Stats) bool) error {
				for i := range steps.Load() {
					fn(learn.Stats{Session: fmt.Sprint(i), Client: "claude", Outcome: "good", Start: testNow().Add(-time.Hour)})
				}
				return nil
			},
		}
	})
	return h, steps, func() {
		t.Helper()
		f, err := os.OpenFile(filepath.Join(log, "2026-11.host.jsonl"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteString("a line\n"); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// What is being worked out does not keep a page waiting, nor ends with it, and the pages
// that are open are told when it is done.
func TestFiguresDoNotWaitForALongNight(t *testing.T) {
	goOn := make(chan struct{})
	h, steps, _ := laboured(t, func(ctx context.Context, n int) (bool, error) {
		if n == 1 {
			return true, nil
		}
		select {
		case <-goOn:
		case <-ctx.Done():
		}
		return n < 3, ctx.Err()
	})
	const note = "as far as they are worked out"
	got := h.events("/live", func(e []string) bool { return strings.Contains(strings.Join(e, ""), "data: "+figuresTopic) }, func(n int) {
		if n != 1 { // hello
			return
		}
		if body := h.page("/figures?days=7"); !strings.Contains(body, note) {
			t.Error("the page does not say that something is missing")
		}
		close(goOn)
	})
	if len(got) != 2 {
		t.Errorf("told: %q", got)
	}
	body := h.page("/figures?days=7")
	if strings.Contains(body, note) || !strings.Contains(body, "100 % (n = 3)") {
		t.Errorf("what was worked out is not shown:\n%s", body)
	}
	if n := steps.Load(); n != 3 {
		t.Errorf("%d steps", n)
	}
}

// What has been worked out is kept until a log has grown; what went wrong is said, and
// tried again.
func TestFiguresAreKept(t *testing.T) {
	broken := errors.New("the index is locked")
	h, steps, grow := laboured(t, func(_ context.Context, n int) (bool, error) {
		if n == 2 {
			return false, broken
		}
		return false, nil
	})
	for i, c := range []struct {
		grow        bool
		steps       int32
		want, never string
	}{
		{false, 1, "100 % (n = 1)", broken.Error()},
		{false, 1, "100 % (n = 1)", broken.Error()},
		{true, 2, broken.Error(), "worked out"}, // with what there was before
		{false, 3, "100 % (n = 3)", broken.Error()},
		{false, 3, "100 % (n = 3)", broken.Error()},
	} {
		if c.grow {
			grow()
		}
		// The step may take longer than a page waits, on a busy machine.
		var body string
		for end := time.Now().Add(time.Minute); ; {
			if body = h.page("/figures?days=7"); !strings.Contains(body, "as far as they are worked out") {
				break
			}
			if time.Now().After(end) {
				t.Fatal("it is never worked out")
			}
		}
		if !strings.Contains(body, c.want) || strings.Contains(body, c.never) || steps.Load() != c.steps {
			t.Errorf("page %d after %d steps is not %q:\n%s", i+1, steps.Load(), c.want, body)
		}
	}
}

// A dashboard that ends does not wait for the work, and the work does not outlive it.
func TestWorkEndsWithTheDashboard(t *testing.T) {
	ended := make(chan struct{})
	t.Cleanup(func() { // after the dashboard's own
		select {
		case <-ended:
		default:
			t.Error("the dashboard has ended, and the work goes on")
		}
	})
	h, _, _ := laboured(t, func(ctx context.Context, _ int) (bool, error) {
		<-ctx.Done()
		close(ended)
		return true, nil
	})
	h.page("/figures")
}
