package scopes

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"reprise/internal/durable"
	"reprise/internal/durable/durabletest"
	"reprise/internal/event"
	"reprise/internal/memory"
	"reprise/internal/recall"
)

// unforgetting is a forgetting taken back, killed at each step: the same command goes on,
// and after it all is back, once, and can be forgotten again.
func unforgetting(words string) durabletest.Scenario {
	ctx := context.Background()
	base, was, gone := "", "", ""
	return durabletest.Scenario{
		Prepare: func(t *testing.T, dir string) {
			if base == "" {
				base = t.TempDir()
				e := estateIn(t, base, durable.Disk{})
				s := e.person("shop")
				must[Change](t)(s.Learn(ctx, Note{Project: "shop", Text: "The zanzibar cluster is in Oslo."}))
				must[Change](t)(s.Learn(ctx, Note{Project: "shop", Text: "It stays."}))
				e.leftPad("a1", nil)
				was = e.served()
				id, err := theItem(ctx, s, words)
				if err != nil {
					t.Fatal(err)
				}
				must[Change](t)(s.Forget(ctx, id, Forgetting{}))
				if gone = e.served(); plain(gone) == plain(was) {
					t.Fatal("nothing is forgotten")
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
			id, err := firstForgotten(e)
			if err == nil {
				_, err = e.person("shop").Unforget(ctx, id, "a slip")
			}
			return err
		},
		Check: func(t *testing.T, dir string, err error, at string) {
			e := estateIn(t, dir, durable.Disk{})
			defer e.index.Close()
			s := e.person("shop")
			id := forgotten(t, e)
			if _, again := s.Unforget(ctx, id, "a slip"); err == nil && !errors.Is(again, memory.ErrExists) {
				t.Errorf("%s: acknowledged, and taken back once more: %v", at, again)
			} else if err != nil && again != nil && !errors.Is(again, memory.ErrExists) {
				t.Errorf("%s: the same command does not go on: %v", at, again)
			}
			for _, when := range []string{"", ", rebuilt"} {
				got := e.served()
				if a, b := plain(got), plain(was); a != b {
					t.Errorf("%s%s: what is served is\n%s\nand was\n%s", at, when, a, b)
				}
				must[recall.Stats](t)(e.index.Rebuild(ctx))
			}
			report, verr := event.Verify(e.events("shop"))
			if verr != nil || len(report.Problems) > 0 {
				t.Errorf("%s: the log is not sound: %+v, %v", at, report.Problems, verr)
			}
			if id, err = theItem(ctx, s, words); err == nil {
				_, err = s.Forget(ctx, id, Forgetting{})
			}
			if err != nil {
				t.Errorf("%s: to forget it again: %v", at, err)
			}
			if a, b := plain(e.served()), plain(gone); a != b {
				t.Errorf("%s: forgotten again, what is served is\n%s\nand was\n%s", at, a, b)
			}
		},
	}
}

// plain are the lines of what is served, in order, without the ids of entries: one that
// comes back has another.
func plain(served string) string {
	var lines []string
	for line := range strings.Lines(served) {
		if head, rest, ok := strings.Cut(line, " "); ok && strings.HasPrefix(head, "e-") {
			line = rest
		}
		lines = append(lines, line)
	}
	slices.Sort(lines)
	return strings.Join(lines, "")
}

func TestUnforgetKilledAtEachStep(t *testing.T) {
	unforgetting(episodeWords).CrashAtEachStep(t)
}

func TestUnforgetOfAnEntryKilledAtEachStep(t *testing.T) {
	unforgetting(entryWords).CrashAtEachStep(t)
}
