package durable_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"reprise/internal/durable"
)

func open(t *testing.T, dir string) *durable.Dir {
	t.Helper()
	d, err := durable.OpenDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

func begin(t *testing.T, d *durable.Dir) *durable.Change {
	t.Helper()
	c, err := d.Begin(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestChangeAborted(t *testing.T) {
	dir := t.TempDir()
	d := open(t, dir)
	c := begin(t, d)
	c.Write("f", []byte("x"), 0o600)
	if err := errors.Join(c.Abort(), c.Abort()); err != nil {
		t.Error(err)
	}
	if err := c.Commit(); !errors.Is(err, durable.ErrDone) || get(t, filepath.Join(dir, "f")) != "-" {
		t.Errorf("commit after abort: %v", err)
	}
	c = begin(t, d)
	if err := errors.Join(c.Commit(), c.Abort()); err != nil {
		t.Errorf("an empty change: %v", err)
	}
	c = begin(t, d)
	c.Write("f", []byte("1"), 0o600)
	c.Remove("f")
	c.Write("f", []byte("2"), 0o600)
	if err := c.Commit(); err != nil || get(t, filepath.Join(dir, "f")) != "2" {
		t.Errorf("the last word does not count: %v", err)
	}
}

func TestChangesExcludeEachOther(t *testing.T) {
	dir := t.TempDir()
	d := open(t, dir)
	c := begin(t, d)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	if _, err := open(t, dir).Begin(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a second change began: %v", err)
	}
	if err := c.Abort(); err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(dir, "n"), "")
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 5 {
				c, err := d.Begin(context.Background())
				if err != nil {
					t.Error(err)
					return
				}
				old, err := d.ReadFile("n")
				if err != nil {
					t.Error(err)
				}
				c.Write("n", append(old, 'x'), 0o600)
				if err := c.Commit(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if got := get(t, filepath.Join(dir, "n")); got != strings.Repeat("x", 20) {
		t.Errorf("%q: a change was lost", got)
	}
}

func TestStrangeJournals(t *testing.T) {
	for name, tt := range map[string]struct {
		journal string
		fails   bool
	}{
		"garbage":       {"{", true},
		"empty":         {"", true},
		"other version": {`{"v":9,"edits":[]}`, true},
		"leads out":     {`{"v":1,"edits":[{"name":"../out","staged":"a.new"}]}`, true},
		"staged out":    {`{"v":1,"edits":[{"name":"f","staged":"../../out.new"}]}`, true},
		"damaged":       {`{"v":1,"edits":[{"name":"f","staged":"a.new","sha256":"00"}]}`, true},
		"all arrived":   {`{"v":1,"edits":[{"name":"f","staged":"gone.new","sha256":"00"}]}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			base := t.TempDir()
			dir := filepath.Join(base, "dir")
			put(t, filepath.Join(dir, "f"), oldText)
			put(t, filepath.Join(base, "out.new"), oldText)
			journal := filepath.Join(dir, ".reprise-journal", "journal.json")
			put(t, journal, tt.journal)
			put(t, filepath.Join(dir, ".reprise-journal", "a.new"), newText)
			d, err := durable.OpenDir(dir)
			if err == nil {
				d.Close()
			}
			if (err != nil) != tt.fails || err != nil && !strings.Contains(err.Error(), journal) {
				t.Errorf("open: %v", err)
			}
			if get(t, filepath.Join(dir, "f")) != oldText || get(t, filepath.Join(base, "out")) != "-" || get(t, filepath.Join(base, "out.new")) != oldText {
				t.Error("something was changed")
			}
			if _, err := os.Stat(journal); tt.fails != (err == nil) {
				t.Errorf("the journal: %v", err)
			}
		})
	}
}
