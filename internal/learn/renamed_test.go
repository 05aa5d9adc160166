package learn

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"reprise/internal/event"
	"reprise/internal/recall"
)

// renamed is the story's project by another name, as `reprise project rename` leaves it:
// logs are those that a process sees which looks then, stale those of one that looked before.
func (s *story) renamed(from, to string) (logs, stale []Log) {
	s.t.Helper()
	old, next := filepath.Join(s.dir, from), filepath.Join(s.dir, to)
	for _, step := range []error{os.Mkdir(next, 0o700), os.Rename(old, filepath.Join(next, "events")), os.Symlink(to, old)} {
		if step != nil {
			s.t.Fatal(step)
		}
	}
	logs = s.logs()
	stale = slices.Clone(logs)
	i := slices.IndexFunc(logs, func(l Log) bool { return l.Project == from })
	stale[i].Dir = filepath.Join(old, "events")
	logs[i] = Log{Project: to, Dir: filepath.Join(next, "events"), Names: []string{from, to}}
	return logs, stale
}

// A renamed project has what it had, under the same ids, and what was said of these holds:
// that one is forgotten, how long its class is kept, which policy is in force. What is seen
// under the one name and the other is of one project. Its log stays as it is.
func TestRenamedProject(t *testing.T) {
	s := newStory(t)
	s.failFix("s1", "shop", "npm ci", d(11, 1))
	s.failFix("s2", "shop", "npm ci", d(11, 2))
	s.failFix("s3", "shop", "make db", d(11, 1))
	s.failFix("s4", "shop", "make db", d(11, 2))
	before, _ := s.fold("2026-11-03")
	patterns := before.ofKind(KindPattern)
	if len(patterns) != 2 {
		t.Fatalf("%+v", patterns)
	}
	s.session, s.host, s.project = "", "laptop", "shop"
	s.add(event.MemoryRetired, event.MemoryData{Op: OpForget, ID: patterns[0].ID})
	s.add(event.PolicyChanged, PolicyChange{V: 1, Op: "adopted", For: PolicyScope{Project: "shop"}, Version: 1, Parent: "default", Policy: &recall.Policy{Threshold: 0.5}})
	s.add(event.MemoryRetired, event.MemoryData{Op: OpExpire, ID: ExpiryID(recall.ClassSummary, "shop"), To: "2026-11-02T00:00:00Z"})
	store, _ := s.fold("2026-11-03")
	want := slices.Sorted(maps.Keys(store.docs))

	logs, stale := s.renamed("shop", "bakery")
	// A process that does not know of it leaves all to those that do.
	o := New(Options{Store: store, Logs: stale, Now: clock("2026-11-03")})
	if r, err := o.Run(t.Context(), 0); err != nil || r.Events > 0 || r.Deleted > 0 {
		t.Errorf("%+v, %v", r, err)
	}
	next := New(Options{Store: store, Logs: logs, Now: clock("2026-11-03")})
	if _, err := next.Run(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	if got := slices.Sorted(maps.Keys(store.docs)); !slices.Equal(got, want) {
		t.Errorf("it had\n%q, and has\n%q", want, got)
	}
	for _, doc := range store.docs {
		if doc.Project != "bakery" && doc.Project != "" {
			t.Errorf("%s is of %q", doc.ID, doc.Project)
		}
	}
	policy, err := next.PolicyFor(t.Context(), PolicyScope{Project: "bakery"}, clock("2026-11-04")())
	if err != nil || policy.Threshold != 0.5 {
		t.Errorf("%+v, %v", policy, err)
	}
}
