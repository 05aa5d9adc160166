package learn

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"reprise/internal/event"
	"reprise/internal/recall"
)

// What the logs say of an item holds whether it is read before or after the
// item's own session, in whatever batches: forgotten, also under the other ids
// that a transcript of the same session has; corrected; and expired.
func TestRetirementsDoNotDependOnOrder(t *testing.T) {
	s := newStory(t)
	fails := func(session string) {
		s.session = session
		s.start()
		s.prompt("Get the suite green")
		s.shell("npm test", "Error: Cannot find module 'left-pad'\n    at x.js:1")
		s.shell("npm install left-pad", "")
		s.shell("npm test", "")
		s.end()
	}
	fails("old")
	s.at = s.at.Add(100 * 24 * time.Hour)
	fails("told")
	fails("wrong")
	st, _ := s.fold("2027-02-20")
	episode := func(docs map[string]recall.Doc, session string) recall.Doc {
		for _, d := range docs {
			if data, _ := DataOf(d); d.Session == session && data.Kind == KindFailure {
				return d
			}
		}
		return recall.Doc{}
	}
	told, wrong := episode(st.docs, "told"), episode(st.docs, "wrong")
	if told.ID == "" || wrong.ID == "" || episode(st.docs, "old").ID == "" {
		t.Fatal("no episodes to begin with")
	}
	s.session, s.host = "", "laptop"
	s.add(event.MemoryRetired, event.MemoryData{Op: OpForget, ID: told.ID, Hash: ContentKey(told)})
	s.add(event.MemoryRetired, event.MemoryData{Op: OpCorrect, ID: wrong.ID, Supersedes: "e-0000000000000000"})
	s.add(event.MemoryRetired, event.MemoryData{Op: OpExpire, ID: ExpiryID(recall.ClassEpisode, "shop"), To: "2027-01-01T00:00:00Z"})
	s.add(event.MemoryRetired, event.MemoryData{Op: OpDemote, ID: wrong.ID})
	s.host = "desk-import"
	fails("told") // the transcript of the session, with other ids of events
	logs := s.logs()
	var first string
	for _, order := range [][]Log{{logs[0], logs[1], logs[2]}, {logs[2], logs[1], logs[0]}} {
		for _, batch := range []int{1, 5, 2000} {
			st := newFake()
			finish(t, New(Options{Store: st, Logs: order, Now: clock("2027-02-20"), Batch: batch}))
			if d := episode(st.docs, "told"); d.ID != "" {
				t.Errorf("batch %d: forgotten and there: %s", batch, d.ID)
			}
			if d := episode(st.docs, "old"); d.ID != "" {
				t.Errorf("batch %d: expired and there: %s", batch, d.ID)
			}
			if d := episode(st.docs, "wrong"); d.ID != wrong.ID || d.Status != recall.Superseded || d.Until.IsZero() {
				t.Errorf("batch %d: corrected: %+v", batch, d)
			}
			var ids []string
			for id, d := range st.docs {
				ids = append(ids, fmt.Sprintf("%s %s", id, d.Status))
			}
			slices.Sort(ids)
			got := strings.Join(ids, "\n")
			if first == "" {
				first = got
			}
			if got != first {
				t.Errorf("batch %d: other documents:\n%s\nwant\n%s", batch, got, first)
			}
		}
	}
}
