package memory

import (
	"errors"
	"os"
	"testing"
	"time"

	"reprise/internal/durable"
)

// A reprise inside a run does no more than the run may, whatever is asked of it.
func TestAccess(t *testing.T) {
	whole := newStore(t)
	if _, err := whole.Create(t.Context(), CreateBlock{Name: "project-x", Content: "# X\n\nThe fact.\n"}); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadDir(whole.Dir())
	if err != nil {
		t.Fatal(err)
	}
	for _, access := range []Access{ReadAccess, NoAccess} {
		s := New(Options{Dir: whole.Dir(), Now: time.Now, Access: access, Disk: durable.Disk{}})
		_, _, readErr := s.Read(t.Context(), "project-x", 0, 0)
		_, listErr := s.List(t.Context())
		_, checkErr := s.Check(t.Context())
		for what, err := range map[string]error{"read": readErr, "list": listErr, "check": checkErr} {
			if errors.Is(err, ErrDenied) != (access == NoAccess) || access == ReadAccess && err != nil {
				t.Errorf("access %d: %s: %v", access, what, err)
			}
		}
		_, createErr := s.Create(t.Context(), CreateBlock{Name: "project-y", Content: "# Y\n"})
		_, updateErr := s.Update(t.Context(), UpdateBlock{Name: "project-x", Content: "# Gone\n"})
		_, episodeErr := s.AppendEpisode(t.Context(), Episode{Title: "t", Entry: "e"})
		_, fileErr := s.AppendFile(t.Context(), "blocks/project-x.md", "more\n")
		_, syncErr := s.Sync(t.Context(), SyncOptions{})
		for what, err := range map[string]error{"create": createErr, "update": updateErr, "episode": episodeErr, "append": fileErr, "sync": syncErr, "ensure": s.Ensure(t.Context())} {
			if !errors.Is(err, ErrDenied) {
				t.Errorf("access %d: %s was not refused: %v", access, what, err)
			}
		}
	}
	if got := get(t, whole, "blocks/project-x.md"); len(got) == 0 {
		t.Error("the block is gone")
	}
	after, err := os.ReadDir(whole.Dir())
	if err != nil || len(after) != len(before) {
		t.Errorf("refused calls left something: %d entries, then %d", len(before), len(after))
	}
}
