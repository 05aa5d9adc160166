package learn

import (
	"context"
	"slices"
	"strings"
	"testing"

	"reprise/internal/event"
	"reprise/internal/recall"
)

func (s *story) asks(question, answer, by string, options ...string) event.Event {
	s.add(event.QuestionAsked, event.QuestionData{Question: question, Options: options, UseID: "u"})
	return s.add(event.QuestionAnswered, event.QuestionData{Question: question, Options: options, Answer: answer, By: by, UseID: "u"})
}

func (st *fakeStore) answers() []recall.Doc {
	var out []recall.Doc
	for _, d := range st.docs {
		if d.Class == recall.ClassAnswer {
			out = append(out, d)
		}
	}
	slices.SortFunc(out, func(a, b recall.Doc) int { return a.Time.Compare(b.Time) })
	return out
}

func TestQuestionKey(t *testing.T) {
	same := [][2]string{{"Which database?", "which  DATABASE"}, {"Use `pnpm`?", "Use pnpm"}, {"どのデータベースですか？", "どのデータベースですか"}, {"Ｗｈｉｃｈ　one？", "which one?"}}
	for _, c := range same {
		if QuestionKey(c[0], []string{"a", "B"}) != QuestionKey(c[1], []string{"b", "A (Recommended)"}) {
			t.Errorf("%q and %q are two questions", c[0], c[1])
		}
	}
	if QuestionKey("Which one?", []string{"a", "b"}) == QuestionKey("Which one?", []string{"a", "c"}) || QuestionKey("Which one?", nil) == QuestionKey("Which two?", nil) {
		t.Error("different questions have one key")
	}
}

// What the user says is kept by question; another answer takes its place, and
// what memory said is no second word of the user.
func TestAnswers(t *testing.T) {
	s := newStory(t)
	for i, c := range []struct{ answer, by string }{{"pnpm", "user"}, {"pnpm", "memory"}, {"pnpm", "user"}, {"npm", "user"}} {
		s.session = "s" + string(rune('1'+i))
		s.start()
		s.asks("Which package manager?", c.answer, c.by, "pnpm", "npm")
		s.end()
	}
	st, _ := s.fold("2026-11-03")
	got := st.answers()
	if len(got) != 2 {
		t.Fatalf("%+v", got)
	}
	old, now := got[0], got[1]
	a, _ := AskedOf(old)
	if old.Status != recall.Superseded || !old.Until.Equal(now.Time) || a.Answer != "pnpm" || a.Times != 2 || a.Memory != 1 || !slices.Equal(a.Sessions, []string{"s1", "s3"}) || old.Confidence != 0.92 {
		t.Errorf("%+v %+v", old, a)
	}
	b, _ := AskedOf(now)
	if now.Status != recall.Active || b.Answer != "npm" || b.Before != "pnpm" || now.Confidence > 0.5 || now.Project != "shop" || now.Scope != "project" || !strings.Contains(now.Text, "Before that the answer was: pnpm") {
		t.Errorf("%+v %+v", now, b)
	}
	var st4 Stats
	o := New(Options{Store: st, Logs: s.logs(), Now: clock("2026-11-03")})
	if err := o.SessionStats(context.Background(), func(x Stats) bool { st4.Answered += x.Answered; st4.FromMemory += x.FromMemory; return true }); err != nil || st4.Answered != 3 || st4.FromMemory != 1 {
		t.Errorf("%+v, %v", st4, err)
	}
}

// Forgotten is forgotten, in a rebuild too; what is said after that is new.
func TestForgottenAnswers(t *testing.T) {
	s := newStory(t)
	s.start()
	s.asks("Which port?", "5432", "user")
	st, _ := s.fold("2026-11-03")
	id := st.answers()[0].ID
	s.add(event.MemoryRetired, event.MemoryData{Op: "forget", ID: id})
	for range 2 {
		if st, _ = s.fold("2026-11-03"); len(st.answers()) != 0 {
			t.Fatalf("%+v", st.answers())
		}
	}
	s.session = "s2"
	s.asks("Which port?", "5432", "user")
	st, _ = s.fold("2026-11-03")
	got := st.answers()
	if len(got) != 1 || got[0].ID == id {
		t.Fatalf("%+v", got)
	}
	if a, _ := AskedOf(got[0]); a.Times != 1 {
		t.Errorf("%+v", a)
	}
}

// Secrets in answers are taken out, lists of readers kept, and projects and
// readers apart.
func TestAnswersAreApart(t *testing.T) {
	s := newStory(t)
	s.asks("Which token?", "it is ghp_012345678901234567890123456789abcdef", "user")
	s.project = "site"
	s.asks("Which token?", "none", "user")
	e := s.event(event.QuestionAnswered, event.QuestionData{Question: "Which token?", Answer: "mine", By: "user"})
	e.ACL = []string{"agent:ann"}
	s.write(e)
	for _, bad := range []string{`{"question":"","answer":"x"}`, `{"question":"Which?","answer":" "}`, `{"question":5,"answer":"x"}`, `[]`} {
		e := s.event(event.QuestionAnswered, nil)
		e.Data = []byte(bad)
		s.write(e)
	}
	st, _ := s.fold("2026-11-03")
	got := st.answers()
	if len(got) != 3 {
		t.Fatalf("%+v", got)
	}
	for _, d := range got {
		if strings.Contains(d.Text+string(d.Data), "ghp_0123") {
			t.Errorf("a secret is kept: %s", d.Text)
		}
	}
	if got[0].Project != "shop" || got[1].Project != "site" || !slices.Equal(got[2].ACL, []string{"agent:ann"}) {
		t.Errorf("%+v", got)
	}
}
