package scopes

import (
	"context"
	"errors"
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

// the item of a scenario: the one entry that is about the cluster.
func clusterEntry(ctx context.Context, s *Scopes) (string, error) {
	list, err := s.o.Entries("shop").List(ctx)
	for _, i := range list {
		if strings.Contains(i.Text, "zanzibar") {
			return i.ID, nil
		}
	}
	return "", errors.Join(err, memory.ErrNotFound)
}

// forgetting, with a purge or without one, killed at each step of the log, the
// entries and the files that a purge replaces: the process that comes after finds
// sound files, nothing else is gone, and the same command, which nobody was told is
// done, leaves the words nowhere.
func forgetting(purge bool) durabletest.Scenario {
	ctx := context.Background()
	return durabletest.Scenario{
		Prepare: func(t *testing.T, dir string) {
			e := estateIn(t, dir, durable.Disk{})
			s := e.person("shop")
			must[Change](t)(s.Learn(ctx, Note{Project: "shop", Text: "The zanzibar cluster is in Oslo."}))
			must[Change](t)(s.Learn(ctx, Note{Project: "shop", Text: "It stays."}))
			if got := e.served(); !strings.Contains(got, "zanzibar") || !strings.Contains(got, "It stays.") {
				t.Fatal(got)
			}
			if err := e.index.Close(); err != nil {
				t.Fatal(err)
			}
		},
		Act: func(disk durable.Disk, dir string) error {
			e := estateIn(nil, dir, disk)
			defer e.index.Close()
			s := e.person("shop")
			id, err := clusterEntry(ctx, s)
			if err != nil {
				return err
			}
			_, err = s.Forget(ctx, id, Forgetting{Purge: purge})
			return err
		},
		Check: func(t *testing.T, dir string, err error, at string) {
			e := estateIn(t, dir, durable.Disk{})
			defer e.index.Close()
			if err == nil {
				e.nowhere(at+", acknowledged", "zanzibar")
			}
			s := e.person("shop")
			if tomb := forgotten(t, e); tomb != "" && err != nil {
				// The log says that it is forgotten: the daily job at a session's end
				// sees to it that it is, also where nobody gives the command again.
				must[[]Expired](t)(s.Expire(ctx))
				e.nowhere(at+", said by the log", "zanzibar")
			}
			if id, ferr := clusterEntry(ctx, s); ferr == nil {
				if err == nil {
					t.Errorf("%s: acknowledged, and the entry is there", at)
				}
				must[Change](t)(s.Forget(ctx, id, Forgetting{Purge: purge}))
			} else if !errors.Is(ferr, memory.ErrNotFound) {
				t.Fatalf("%s: %v", at, ferr)
			} else if purge { // the entry went; what else tells its words goes by the tombstone
				if id := forgotten(t, e); id != "" {
					must[Change](t)(s.Forget(ctx, id, Forgetting{Purge: true}))
				}
			}
			e.nowhere(at+", done again", "zanzibar")
			if got := e.served(); !strings.Contains(got, "It stays.") {
				t.Errorf("%s: something else went, too:\n%s", at, got)
			}
			if purge {
				for _, f := range append(holding(t, e.events("shop"), "zanzibar"), holding(t, filepath.Join(dir, "shop-global"), "zanzibar")...) {
					if !strings.HasSuffix(f, ".tmp") { // what a kill leaves of a write is swept by age
						t.Errorf("%s: the words are in %s", at, f)
					}
				}
			}
			report, verr := event.Verify(e.events("shop"))
			if verr != nil || len(report.Problems) > 0 {
				t.Errorf("%s: the log is not sound: %+v, %v", at, report.Problems, verr)
			}
		},
	}
}

// forgotten is the item that a tombstone of the log names.
func forgotten(t *testing.T, e *estate) (id string) {
	t.Helper()
	for ev, err := range event.Read(e.events("shop")) {
		if err != nil {
			t.Fatal(err)
		}
		if ev.Type == event.MemoryRetired {
			_, rest, _ := strings.Cut(string(ev.Data), `"id":"`)
			id, _, _ = strings.Cut(rest, `"`)
		}
	}
	return id
}

func TestForgetKilledAtEachStep(t *testing.T) { forgetting(false).CrashAtEachStep(t) }

func TestForgetAndPurgeKilledAtEachStep(t *testing.T) { forgetting(true).CrashAtEachStep(t) }
