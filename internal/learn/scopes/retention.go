package scopes

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"reprise/internal/event"
	"reprise/internal/learn"
	"reprise/internal/recall"
)

// Retention is how long what was worked out is kept, by class, in days; a class
// that is not named is kept for ever. What people wrote is never deleted.
type Retention map[recall.Class]int

// expiring are the classes that can expire.
func expiring() []recall.Class {
	return []recall.Class{recall.ClassEpisode, recall.ClassSummary, recall.ClassPattern, recall.ClassAntiPattern}
}

// cutoff is the time before which is too old, to the second. Hooks look once a day,
// so that a log holds at most one event a day about a class.
func cutoff(now time.Time, days int) time.Time {
	return now.UTC().AddDate(0, 0, -days).Truncate(time.Second)
}

// ParseRetention reads the setting: days by class, such as "episode" → 90. A
// class that people write is refused: their words are not deleted by a clock.
func ParseRetention(days map[string]int) (Retention, error) {
	r := Retention{}
	for class, n := range days {
		c := recall.Class(class)
		if !slices.Contains(expiring(), c) {
			var names []string
			for _, e := range expiring() {
				names = append(names, string(e))
			}
			return nil, fmt.Errorf("retention: %q cannot expire; there are %s", class, strings.Join(names, ", "))
		}
		if n < 0 || n > 36500 {
			return nil, fmt.Errorf("retention: %s is kept %d days; use 1 to 36500, or 0 for ever", class, n)
		}
		if n > 0 {
			r[c] = n
		}
	}
	return r, nil
}

// Expired is what Expire recorded.
type Expired struct {
	Class   recall.Class `json:"class"`
	Project string       `json:"project,omitempty"`
	Before  time.Time    `json:"before"`
	Docs    int          `json:"docs"`
	Event   string       `json:"event"`
}

// Expire takes out what is older than its class is kept. Each is an event, so
// that a rebuild and another machine come to the same; it is recorded only
// where something is too old, and nothing is done twice. Nothing goes before its
// time, and what was too old at one look is gone at its end. Before that it finishes
// what a forgetting that was killed has left.
func (s *Scopes) Expire(ctx context.Context) ([]Expired, error) {
	out := []Expired{}
	if err := s.finishForgetting(ctx); err != nil {
		return out, err
	}
	for _, class := range expiring() {
		days, ok := s.o.Retention[class]
		if !ok || days <= 0 {
			continue
		}
		before := cutoff(s.o.Now(), days)
		old := map[string]int{}
		err := s.o.Index.View(ctx, func(tx *recall.Tx) error {
			clear(old)
			count := func(d recall.Doc) bool {
				if !d.Time.Before(before) {
					return false // they come in the order of time
				}
				if learn.ExpiresAs(d) == class && !strings.HasPrefix(d.ID, "file-") && !strings.HasPrefix(d.ID, "e-") {
					if _, place := recall.PlaceDir(d.Project); place {
						d.Project = ""
					}
					old[d.Project]++
				}
				return true
			}
			if class == recall.ClassEpisode { // corrections go with them
				if err := tx.Each(recall.Filter{Class: recall.ClassProfile}, count); err != nil {
					return err
				}
			}
			return tx.Each(recall.Filter{Class: class}, count)
		})
		if err != nil {
			return out, fmt.Errorf("expire: %w", err)
		}
		for _, project := range sortedKeysOf(old) {
			id, err := s.note(ctx, event.MemoryRetired, project, event.MemoryData{
				Op: learn.OpExpire, ID: learn.ExpiryID(class, project), From: scopeOf(project), To: before.Format(time.RFC3339), By: byGate,
				Reason: "kept " + strconv.Itoa(days) + " days",
			}, nil, nil)
			if err != nil {
				return out, err
			}
			out = append(out, Expired{Class: class, Project: project, Before: before, Docs: old[project], Event: id})
		}
	}
	if len(out) > 0 && s.o.Organize != nil {
		if err := s.o.Organize(ctx); err != nil {
			return out, err
		}
	}
	return out, nil
}

func sortedKeysOf[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
