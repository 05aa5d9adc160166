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

// A session's summary does not go on saying what of the session was forgotten
// or corrected, however it was written, and whether the word of it is read
// before or after the session.
func TestSummaryLeavesOutWhatWasRetracted(t *testing.T) {
	tell := func() *story {
		s := newStory(t)
		s.start()
		s.prompt("Get the suite green")
		s.shell("npm test", "Error: Cannot find module 'left-pad'\n    at x.js:1")
		s.shell("npm install left-pad", "")
		s.shell("npm test", "")
		s.answer("I decided to pin left-pad.")
		s.prompt("no, never use npm here")
		s.shell("pnpm test", "")
		s.answer("Done with pnpm.")
		s.end()
		return s
	}
	s := tell()
	st, _ := s.fold("2026-11-03")
	said := map[string]string{KindFailure: "Failed and fixed: npm test", KindCorrection: "The user said: no, never use npm", KindTurn: "Task: Get the suite green"}
	whole := st.ofKind(KindSession)[0].Text
	for kind, words := range said {
		if !strings.Contains(whole, words) {
			t.Fatalf("no %q to begin with in\n%s", words, whole)
		}
		id := st.ofKind(kind)[0].ID
		for _, op := range []string{OpForget, OpCorrect} {
			for _, model := range []bool{false, true} {
				s := tell()
				if model {
					s.add(event.EpisodeRecorded, Recorded{Kind: "summary", Text: "By a model: " + words, By: "m"})
				}
				s.session, s.host = "", "laptop"
				s.add(event.MemoryRetired, event.MemoryData{Op: op, ID: id, Supersedes: "e-0000000000000000"})
				logs := s.logs()
				for _, batch := range []int{1, 2000} {
					st := newFake()
					finish(t, New(Options{Store: st, Logs: logs, Now: clock("2026-11-03"), Batch: batch}))
					got := st.ofKind(KindSession)[0].Text
					if strings.Contains(got, words) {
						t.Errorf("%s of a %s: the summary still says it:\n%s", op, kind, got)
					}
					if !strings.Contains(got, "Last answer: Done with pnpm.") {
						t.Errorf("%s of a %s: more went than that:\n%s", op, kind, got)
					}
				}
			}
		}
	}
	if !strings.Contains(whole, "Decided: I decided to pin left-pad.") {
		t.Errorf("no decision to begin with in\n%s", whole)
	}
}

// What was corrected stays superseded since the correction when it goes cold
// later, and no digest tells it.
func TestCorrectedStaysSupersededWhenCold(t *testing.T) {
	s := newStory(t)
	s.failFix("s1", "shop", "npm ci", d(3, 1))
	st, _ := s.fold("2026-03-02")
	id := st.ofKind(KindFailure)[0].ID
	s.session, s.at = "", d(3, 3)
	s.add(event.MemoryRetired, event.MemoryData{Op: OpCorrect, ID: id, Supersedes: "e-0000000000000000"})
	st, _ = s.fold("2026-11-01")
	if e := st.docs[id]; e.Status != recall.Superseded || e.Until.After(d(3, 4)) {
		t.Errorf("%s until %s", e.Status, e.Until)
	}
	for _, dg := range st.ofKind(KindDigest) {
		if strings.Contains(dg.Text, "npm test") {
			t.Errorf("the digest tells it:\n%s", dg.Text)
		}
	}
}
