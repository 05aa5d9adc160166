package learn

import (
	"strings"
	"testing"

	"reprise/internal/event"
	"reprise/internal/recall"
)

func corrects(t *testing.T, word string) (*story, *fakeStore) {
	t.Helper()
	s := newStory(t)
	s.start()
	s.prompt("Install lodash for the cart")
	s.shell("npm install lodash", "")
	s.answer("Done.")
	s.prompt(word)
	s.shell("pnpm add lodash", "")
	s.answer("Installed with pnpm.")
	s.end()
	st, _ := s.fold("2026-11-03")
	return s, st
}

// What the user said should be instead is told and found; what was done before
// is no precedent any more.
func TestCorrectionKeepsItsPointAndMarksTheTurn(t *testing.T) {
	const word = "No, not npm. We use pnpm in this repository."
	s, st := corrects(t, word+" Try again?")
	docs := st.ofKind(KindCorrection)
	if len(docs) != 1 {
		t.Fatalf("%+v", docs)
	}
	d := docs[0]
	if d.Title != "The user corrected: "+word || !strings.HasSuffix(d.Text, "the user said: "+word) {
		t.Errorf("%q / %q", d.Title, d.Text)
	}
	if d.Class != recall.ClassProfile || d.Importance < 0.6 || len(d.Facts) != 1 || d.Facts[0].Attribute != "package manager" || d.Facts[0].Value != "pnpm" {
		t.Errorf("it does not stand for what holds: %+v", d)
	}
	turns := st.ofKind(KindTurn)
	if len(turns) != 2 {
		t.Fatalf("%+v", turns)
	}
	wrong, right := turns[0], turns[1]
	data, _ := DataOf(wrong)
	if data.Outcome != Corrected || wrong.Confidence >= right.Confidence || wrong.Importance >= right.Importance ||
		!strings.HasPrefix(wrong.Title, "Corrected by the user ("+word+")") || !strings.HasPrefix(wrong.Text, "The user corrected what was done: "+word) {
		t.Errorf("it is still a precedent: %+v", wrong)
	}
	if data, _ := DataOf(right); data.Outcome != Done || strings.Contains(right.Title, "Corrected") {
		t.Errorf("the turn after it is marked: %+v", right)
	}
	if sum := st.ofKind(KindSession)[0].Text; !strings.Contains(sum, "The user said: "+word) {
		t.Errorf("summary\n%s", sum)
	}

	// Forgotten, nothing goes on saying it.
	s.session, s.host = "", "laptop"
	s.add(event.MemoryRetired, event.MemoryData{Op: OpForget, ID: d.ID, Hash: ContentKey(d)})
	st, _ = s.fold("2026-11-03")
	for _, x := range append(st.ofKind(KindTurn)[:1], st.ofKind(KindSession)...) {
		if strings.Contains(x.Title+x.Text, "not npm") {
			t.Errorf("it still says it: %+v", x)
		}
	}
}

// In Japanese likewise; and what only says that it failed again does not hold
// beyond its session.
func TestCorrectionsThatStand(t *testing.T) {
	_, st := corrects(t, "違う。pnpmを使って。")
	if d := st.ofKind(KindCorrection)[0]; d.Title != "The user corrected: 違う。pnpmを使って。" || d.Class != recall.ClassProfile {
		t.Errorf("%+v", d)
	}
	_, st = corrects(t, "It still fails with the same error.")
	if d := st.ofKind(KindCorrection)[0]; d.Class != recall.ClassEpisode {
		t.Errorf("%+v", d)
	}
}

// A correction is kept as long as the episodes of its session.
func TestCorrectionsExpireAsEpisodes(t *testing.T) {
	s, _ := corrects(t, "No, use pnpm.")
	s.session, s.host = "", "laptop"
	s.add(event.MemoryRetired, event.MemoryData{Op: OpExpire, ID: ExpiryID(recall.ClassEpisode, "shop"), To: "2027-01-01T00:00:00Z"})
	st, _ := s.fold("2027-01-02")
	if docs := st.ofKind(KindCorrection); len(docs) != 0 {
		t.Errorf("%+v", docs)
	}
}

// What people say is of no use counts less than before.
func TestUselessLowers(t *testing.T) {
	s, st := corrects(t, "No, use pnpm.")
	before := st.ofKind(KindTurn)[1]
	s.add(event.RecallUsed, event.UsedData{ID: before.ID, How: "useless"})
	st, _ = s.fold("2026-11-03")
	if after := st.ofKind(KindTurn)[1]; after.ID != before.ID || after.Importance >= before.Importance {
		t.Errorf("%v, before %v", after.Importance, before.Importance)
	}
}
