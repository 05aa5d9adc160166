package loop

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"reprise/internal/agent"
	"reprise/internal/loop/core"
	"reprise/internal/queue"
	"reprise/internal/run"
)

// TestAnchor: a directory that is gone, or that is another one by now, is away, and back when it is
// there again.
func TestAnchor(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct{ repository, root string }{
		"a repository":                  {"shop", "shop"},
		"a project within a repository": {"shop", "shop/part"},
		"a repository within another":   {"shop/part", "shop/part"},
		"no repository":                 {"", "shop"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			root := filepath.Join(dir, filepath.FromSlash(c.root))
			mkdir := func(path string) {
				if err := os.MkdirAll(path, 0o755); err != nil {
					t.Fatal(err)
				}
			}
			rename := func(from, to string) {
				if err := os.Rename(from, to); err != nil {
					t.Fatal(err)
				}
			}
			mkdir(root)
			mkdir(filepath.Join(dir, "shop", ".git")) // of which those of part know nothing
			if c.repository == "" {
				rename(filepath.Join(dir, "shop", ".git"), filepath.Join(dir, "other"))
			} else {
				mkdir(filepath.Join(dir, filepath.FromSlash(c.repository), ".git"))
			}
			away := Anchor(root)
			if err := away(); err != nil {
				t.Fatal(err)
			}
			rename(root, root+".moved")
			if err := away(); !errors.Is(err, ErrAway) || !passing(err) || !strings.Contains(err.Error(), root) {
				t.Errorf("moved: %v", err)
			}
			mkdir(root) // the place where a disk was
			if err := away(); (err != nil) != (c.repository == c.root) {
				t.Errorf("an empty directory: %v", err)
			}
			if err := os.Remove(root); err != nil {
				t.Fatal(err)
			}
			rename(root+".moved", root)
			if err := away(); err != nil {
				t.Errorf("back again: %v", err)
			}
		})
	}
}

// away has a night's project be away while it is said to.
func (n *night) away() *atomic.Bool {
	var gone atomic.Bool
	n.opt.Away = func() error {
		if gone.Load() {
			return ErrAway
		}
		return nil
	}
	return &gone
}

// lines are what the audit has of a kind.
func (n *night) lines(op string) (out []string) {
	n.t.Helper()
	all, _, err := Audit(n.opt.Dir, n.loop.State().Loop)
	if err != nil {
		n.t.Fatal(err)
	}
	for _, l := range all {
		if l.Op == op {
			out = append(out, l.Text)
		}
	}
	return out
}

// whole wants that nothing was counted against any item. An item that one of the loop's places
// gives back may be claimed by another before the first has quite ended with it, and is given
// back once more.
func (n *night) whole(ids ...string) {
	n.t.Helper()
	for _, id := range ids {
		it, err := n.queue.Get(n.t.Context(), id)
		if err != nil || it.Attempts > 0 {
			n.t.Errorf("%s: %d attempts are used up: %+v, %v", id, it.Attempts, it.History, err)
		}
		for _, e := range it.History {
			if e.Op == queue.OpFail && !strings.HasPrefix(e.Note, string(core.SameItem)) {
				n.t.Errorf("%s: %+v", id, e)
			}
		}
	}
}

// A loop whose project is away claims nothing, says so once, and goes on when it is back.
func TestNightAwayBeforeItBegins(t *testing.T) {
	t.Parallel()
	n := newNight(t)
	n.opt.Limits.Workers = 3
	gone := n.away()
	gone.Store(true)
	n.add("a", "b", "c", "d")
	n.begin()
	n.until("put off", func(s core.State) bool {
		return len(s.Slots) == 3 && s.Slots[0].Retries > ToldStuck && s.Slots[2].Retries > ToldStuck
	})
	n.want("a ready, b ready, c ready, d ready")
	gone.Store(false)
	s := n.end()
	n.want("a done, b done, c done, d done")
	n.whole("a", "b", "c", "d")
	if told := n.lines("away"); len(told) != 2 || !strings.Contains(told[0], "no item has an attempt less") || !strings.Contains(told[1], "is back") {
		t.Errorf("told: %q", told)
	}
	if told := n.told(); len(told) != 1 || told[0] != "directory away" {
		t.Errorf("a person is told %q", told)
	}
	if again := n.lines("put off"); len(again) > 0 || s.Tally != (core.Tally{Done: 4}) {
		t.Errorf("%q %+v", again, s.Tally)
	}
}

// What an agent could not do while it was away, and what could not be seen of its work, is
// nobody's failure; what it did is done.
func TestNightAwayWhileItWorks(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		end  play
		runs int
	}{
		"its git failed":           {play{status: run.Failed, result: &agent.Result{NumTurns: 2, Text: "fatal: not a git repository"}}, 2},
		"it changed nothing":       {play{}, 2},
		"it crashed":               {play{status: run.Failed, reason: "killed"}, 2},
		"it was done all the same": {play{change: true}, 1},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			n := newNight(t, c.end, play{change: true})
			gone := n.away()
			first := true
			n.opt.Check = nil
			n.runs.plays[0].do = func(run.Request) {
				gone.Store(first)
				first = false
			}
			n.add("a")
			n.begin()
			n.until("put off", func(s core.State) bool {
				return len(s.Slots) > 0 && s.Slots[0].Step == core.Running && s.Slots[0].Retries > 2
			})
			gone.Store(false)
			s := n.end()
			n.want("a done")
			n.whole("a")
			if got := len(n.runs.requests()); got != c.runs || s.Tally.Done != 1 || s.Tally.Failed != 0 || s.Row+s.Spawning != 0 {
				t.Errorf("%d runs, %+v", got, s.Tally)
			}
		})
	}
}
