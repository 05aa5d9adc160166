package scopes

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"reprise/internal/durable"
	"reprise/internal/durable/durabletest"
	"reprise/internal/event"
	"reprise/internal/memory"
)

// estateIn is an estate in a directory that another process works in, too.
func estateIn(t testing.TB, dir string, disk durable.Disk) *estate {
	s := &story{t: t, dir: dir, at: time.Date(2026, 11, 2, 9, 0, 0, 0, time.UTC), last: map[string]string{}, host: "desk", project: "shop", session: "s1", client: "claude"}
	e := &estate{story: s, now: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC), path: filepath.Join(dir, "cache", "index.db"), disk: disk}
	e.open()
	return e
}

// What the scenarios forget: an entry, or what a session met.
const (
	entryWords   = "zanzibar"
	episodeWords = "left-pad"
)

// theItem is the id of the one item that says words; it is looked for without
// writing anything.
func theItem(ctx context.Context, s *Scopes, words string) (string, error) {
	if words == entryWords {
		list, err := s.o.Entries("shop").List(ctx)
		for _, i := range list {
			if strings.Contains(i.Text, words) {
				return i.ID, nil
			}
		}
		return "", errors.Join(err, memory.ErrNotFound)
	}
	list, err := s.WithText(ctx, words)
	for _, f := range list {
		if strings.HasPrefix(f.Doc.ID, "ep-") {
			return f.Doc.ID, nil
		}
	}
	return "", errors.Join(err, memory.ErrNotFound)
}

// forgetting, with a purge or without one, killed at each step of its own note, the
// log, the entries and the files that a purge replaces: whoever comes next and
// organises finishes it. So either nothing was done, or all of it is; nothing else is
// gone, and the log is sound.
func forgetting(words string, purge bool) durabletest.Scenario {
	ctx := context.Background()
	base := ""
	return durabletest.Scenario{
		Prepare: func(t *testing.T, dir string) {
			if base == "" {
				base = t.TempDir()
				e := estateIn(t, base, durable.Disk{})
				s := e.person("shop")
				must[Change](t)(s.Learn(ctx, Note{Project: "shop", Text: "The zanzibar cluster is in Oslo."}))
				must[Change](t)(s.Learn(ctx, Note{Project: "shop", Text: "It stays."}))
				e.leftPad("a1", nil)
				if got := e.served(); !strings.Contains(got, "zanzibar") || !strings.Contains(got, "It stays.") || !strings.Contains(got, "left-pad") {
					t.Fatal(got)
				}
				if err := e.index.Close(); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.CopyFS(dir, os.DirFS(base)); err != nil {
				t.Fatal(err)
			}
		},
		Act: func(disk durable.Disk, dir string) error {
			e := estateIn(nil, dir, disk)
			defer e.index.Close()
			s := e.person("shop")
			id, err := theItem(ctx, s, words)
			if err != nil {
				return err
			}
			_, err = s.Forget(ctx, id, Forgetting{Purge: purge})
			return err
		},
		Check: func(t *testing.T, dir string, err error, at string) {
			e := estateIn(t, dir, durable.Disk{})
			defer e.index.Close()
			s := e.person("shop")
			begun := Unfinished(s.o.Pending)
			if begun && err == nil {
				t.Errorf("%s: acknowledged, and the note of it is left", at)
			}
			if begun { // a hook has time for this alone
				if _, _, err := s.Finish(ctx, true); err != nil {
					t.Errorf("%s: %v", at, err)
				}
				e.nowhere(at+", by a hook", words)
			}
			if _, more, err := s.Finish(ctx, false); err != nil || more || Unfinished(s.o.Pending) {
				t.Errorf("%s: not finished: %v", at, err)
			}
			tomb := forgotten(t, e)
			if !begun && err != nil {
				// Killed before it was noted, or after all was done.
				if id, ferr := theItem(ctx, s, words); ferr == nil {
					if tomb != "" {
						t.Errorf("%s: nothing was begun, and the log says that %s is forgotten", at, tomb)
					}
					if !purge {
						return
					}
					// What the first left of a note goes with the second.
					if _, err := s.Forget(ctx, id, Forgetting{Purge: true}); err != nil {
						t.Errorf("%s: again: %v", at, err)
					}
					tomb = forgotten(t, e)
				}
			}
			if tomb == "" {
				t.Errorf("%s: it is gone, and the log does not say so", at)
			}
			e.nowhere(at+", finished", words)
			got := e.served()
			if !strings.Contains(got, "It stays.") || !strings.Contains(got, "The handbook is written.") {
				t.Errorf("%s: something else went, too:\n%s", at, got)
			}
			if purge {
				for _, f := range holding(t, dir, words) {
					t.Errorf("%s: the words are in %s", at, f)
				}
			}
			report, verr := event.Verify(e.events("shop"))
			if verr != nil || len(report.Problems) > 0 {
				t.Errorf("%s: the log is not sound: %+v, %v", at, report.Problems, verr)
			}
		},
	}
}

// forgotten is the item that the first tombstone of the log names.
func forgotten(t *testing.T, e *estate) (id string) {
	t.Helper()
	id, err := firstForgotten(e)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func firstForgotten(e *estate) (id string, err error) {
	for ev, err := range event.Read(e.events("shop")) {
		if err != nil {
			return "", err
		}
		if ev.Type == event.MemoryRetired && id == "" {
			_, rest, _ := strings.Cut(string(ev.Data), `"id":"`)
			id, _, _ = strings.Cut(rest, `"`)
		}
	}
	return id, nil
}

func TestForgetAndPurgeKilledAtEachStep(t *testing.T) {
	forgetting(episodeWords, true).CrashAtEachStep(t)
}

// What an entry's forgetting has beside the steps above is a change of its file, which
// is killed at each step where it is made.
func TestForgettingOfAnEntryKilledAtEachStep(t *testing.T) {
	if os.Getenv("REPRISE_LONG_TESTS") == "" {
		t.Skip("half a minute; set REPRISE_LONG_TESTS")
	}
	for name, purge := range map[string]bool{"forget": false, "purge": true} {
		t.Run(name, func(t *testing.T) { forgetting(entryWords, purge).CrashAtEachStep(t) })
	}
}
