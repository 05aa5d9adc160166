package scopes

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"reprise/internal/event"
	"reprise/internal/learn"
	"reprise/internal/mdfile"
	"reprise/internal/memory"
	"reprise/internal/recall"
)

// idsOf are the ids of the active documents of a kind, in order of time.
func (e *estate) idsOf(kind string) []string {
	e.t.Helper()
	var out []string
	active := recall.Active
	err := e.index.View(context.Background(), func(tx *recall.Tx) error {
		return tx.Each(recall.Filter{Status: &active}, func(d recall.Doc) bool {
			if data, ok := learn.DataOf(d); ok && data.Kind == kind {
				out = append(out, d.ID)
			}
			return true
		})
	})
	if err != nil {
		e.t.Fatal(err)
	}
	return out
}

func (e *estate) knownFix() []recall.Result {
	e.t.Helper()
	o := learn.New(learn.Options{Index: e.index, Logs: e.logs(), Now: e.clock})
	k := must[learn.Known](e.t)(o.KnownFix(context.Background(), recall.Reader{Project: "shop"}, event.ToolData{
		Tool: "shell", Name: "Bash", Error: "Error: Cannot find module 'left-pad'\n    at x.js:1", Input: []byte(`{"command":"npm test"}`), Cwd: "/w/shop",
	}))
	return k.Fixes
}

// A correction takes the place of everything that says the same: of an episode,
// of a pattern and of what was promoted from it, whichever of them is corrected.
func TestCorrectionTakesThePlaceOfAllThatSaysIt(t *testing.T) {
	ctx := context.Background()
	const right = "left-pad must never be installed; delete the import."
	for _, which := range []string{"episode", "pattern", "entry"} {
		t.Run(which, func(t *testing.T) {
			e := newEstate(t)
			for _, session := range []string{"a1", "a2"} {
				e.fails("shop", session)
				e.at = e.at.Add(24 * time.Hour)
			}
			e.served()
			s := e.person("shop")
			p := must[Promotion](t)(s.Promote(ctx, 0))
			if len(p.Promoted) != 1 {
				t.Fatalf("%+v", p)
			}
			up := must[Change](t)(s.PromoteItem(ctx, p.Promoted[0].ID, "global"))
			e.served()
			if fixes := e.knownFix(); len(fixes) == 0 || !strings.Contains(fixes[0].Snippet, "npm install left-pad") {
				t.Fatalf("no fix to begin with: %+v", fixes)
			}
			id := map[string]string{"episode": e.idsOf(learn.KindFailure)[0], "pattern": e.idsOf(learn.KindPattern)[0], "entry": p.Promoted[0].ID}[which]
			c := must[Change](t)(s.Correct(ctx, id, "", right))
			check := func(when string) {
				t.Helper()
				served := e.served()
				if !strings.Contains(served, right) {
					t.Errorf("%s: the correction is not served", when)
				}
				if ids := append(e.idsOf(learn.KindFailure), e.idsOf(learn.KindPattern)...); len(ids) > 0 {
					t.Errorf("%s: still served: %v", when, ids)
				}
				for _, old := range []string{p.Promoted[0].ID, up.ID} {
					if strings.Contains(served, old+" ") {
						t.Errorf("%s: %s is still served", when, old)
					}
				}
				if which == "entry" {
					return // what was a person's word about an entry need not be about the failure
				}
				fixes := e.knownFix()
				if len(fixes) != 1 || fixes[0].ID != c.ID || fixes[0].Snippet != right {
					t.Errorf("%s: known fixes %+v", when, fixes)
				}
			}
			check("after the correction")
			must[recall.Stats](t)(e.index.Rebuild(ctx))
			check("after a rebuild")
			if p := must[Promotion](t)(s.Promote(ctx, 0)); len(p.Promoted) > 0 {
				t.Errorf("the gates brought it back: %+v", p.Promoted)
			}
			if which == "entry" {
				return
			}
			again := must[Change](t)(s.Correct(ctx, c.ID, "", "Vendor left-pad."))
			e.served()
			if fixes := e.knownFix(); len(fixes) != 1 || fixes[0].ID != again.ID {
				t.Errorf("corrected again: %+v", fixes)
			}
		})
	}
}

// Demoting takes back what was promoted from an item, too, and says so.
func TestDemoteFollowsTheChain(t *testing.T) {
	ctx := context.Background()
	e := newEstate(t)
	for _, session := range []string{"a1", "a2"} {
		e.fails("shop", session)
		e.at = e.at.Add(24 * time.Hour)
	}
	e.served()
	s := e.person("shop")
	low := must[Promotion](t)(s.Promote(ctx, 0)).Promoted[0]
	up := must[Change](t)(s.PromoteItem(ctx, low.ID, "global"))
	c := must[Change](t)(s.Demote(ctx, low.ID, "wrong"))
	if c.ID != low.ID || len(c.Also) != 1 || c.Also[0] != up.ID || !strings.HasPrefix(c.Stays, "pt-") {
		t.Errorf("%+v", c)
	}
	if served := e.served(); strings.Contains(served, low.ID+" ") || strings.Contains(served, up.ID+" ") {
		t.Errorf("still served:\n%s", served)
	}

	// What somebody wrote stays; only its promotion is taken back.
	own := must[Change](t)(s.Learn(ctx, Note{Project: "shop", Text: "Cache the fixtures"}))
	up = must[Change](t)(s.PromoteItem(ctx, own.ID, "global"))
	c = must[Change](t)(s.Demote(ctx, own.ID, ""))
	served := e.served()
	if c.ID != up.ID || c.Stays != own.ID || strings.Contains(served, up.ID+" ") || !strings.Contains(served, own.ID+" ") {
		t.Errorf("%+v\n%s", c, served)
	}
	if _, err := s.Demote(ctx, own.ID, ""); !errors.Is(err, memory.ErrContent) {
		t.Errorf("nothing is promoted any more: %v", err)
	}
}

// What happened in one turn is no sentence to go by; what was of no use rises
// with less confidence.
func TestPromoteByHandAsksForASentence(t *testing.T) {
	ctx := context.Background()
	e := newEstate(t)
	e.fails("shop", "a1")
	e.served()
	s := e.person("shop")
	if _, err := s.PromoteItem(ctx, e.idsOf(learn.KindTurn)[0], ""); !errors.Is(err, memory.ErrContent) || !strings.Contains(err.Error(), "reprise memory learn") {
		t.Errorf("%v", err)
	}
	id := e.idsOf(learn.KindFailure)[0]
	must[Change](t)(s.Used(ctx, id, false))
	e.served()
	c := must[Change](t)(s.PromoteItem(ctx, id, ""))
	if f := must[Found](t)(s.Find(ctx, c.ID)); f.Doc.Confidence > 0.5 || len(c.Warnings) == 0 {
		t.Errorf("%v %+v", f.Doc.Confidence, c)
	}
}

func TestLearntPreferenceIsInTheProfile(t *testing.T) {
	ctx := context.Background()
	e := newEstate(t)
	s := e.person("shop")
	c := must[Change](t)(s.Learn(ctx, Note{Project: "shop", Text: "I prefer answers in German"}))
	must[Change](t)(s.Learn(ctx, Note{Project: "shop", Text: "The cart is slow"}))
	list := must[[]Preference](t)(s.Profile(ctx))
	if len(list) != 1 || list[0].ID != c.ID || !list[0].Kept {
		t.Fatalf("%+v", list)
	}
	must[Change](t)(s.DropPreference(ctx, c.ID))
	if list := must[[]Preference](t)(s.Profile(ctx)); len(list) != 0 {
		t.Errorf("%+v", list)
	}
}

func TestUseForEverythingContradictsADecision(t *testing.T) {
	ctx := context.Background()
	e := newEstate(t)
	s := e.person("shop")
	d := must[Change](t)(s.Learn(ctx, Note{Project: "shop", Type: "decision", Decision: "We use pnpm, not npm"}))
	e.now = e.now.Add(time.Hour)
	c := must[Change](t)(s.Learn(ctx, Note{Project: "shop", Text: "Use npm for everything in this project"}))
	if len(c.Conflicts) != 1 || c.Conflicts[0].Losers[0].ID != d.ID {
		t.Errorf("%+v", c.Conflicts)
	}
	if list := must[[]Conflict](t)(s.Conflicts(ctx)); len(list) != 1 {
		t.Errorf("%+v", list)
	}
}

// TestBlocksOfProjectsAreNotCompared: the user's own memory has a block for each
// project, and each says "we" of another.
func TestBlocksOfProjectsAreNotCompared(t *testing.T) {
	doc := func(source, project string) recall.Doc { return recall.Doc{Source: source, Project: project} }
	for _, c := range []struct {
		a, b recall.Doc
		want bool
	}{
		{doc("blocks/project-shop.md:3", ""), doc("blocks/project-blog.md:3", ""), false},
		{doc("blocks/project-shop.md:3", ""), doc("shop:learnings.md:3", "shop"), true},
		{doc("blocks/project-shop.md:3", ""), doc("blog:learnings.md:3", "blog"), false},
		{doc("blocks/reference-x.md:3", ""), doc("blocks/project-blog.md:3", ""), true},
	} {
		if got := meet(c.a, c.b); got != c.want {
			t.Errorf("%s and %s: %v", c.a.Source, c.b.Source, got)
		}
	}
}

// Two machines correct the same entry and meet: the newer one is served, on both, and it is
// named, until a person has looked at it.
func TestTwoCorrectionsOfOneEntry(t *testing.T) {
	ctx := context.Background()
	e := newEstate(t)
	s := e.person("shop")
	a := must[Change](t)(s.Learn(ctx, Note{Project: "shop", Text: "Start the database with make db."}))
	here := s.o.Entries("shop")
	there := memory.NewEntries(memory.EntriesOptions{Dir: t.TempDir(), Now: func() time.Time { return e.now.Add(time.Minute) }})
	exchange := func() {
		t.Helper()
		for _, x := range [][2]*memory.Entries{{here, there}, {there, here}} {
			data, err := os.ReadFile(x[0].Path("learnings.md"))
			if err != nil {
				t.Fatal(err)
			}
			must[bool](t)(x[1].Merge(ctx, "learnings.md", data))
		}
	}
	exchange()
	newer := must[memory.Added](t)(there.Correct(ctx, a.ID, mdfile.Entry{Agent: "user", Source: "hand", Confidence: 0.95, Text: "Start the database with just db-up."}))
	older := must[Change](t)(s.Correct(ctx, a.ID, "", "Start the database with make db-start."))
	exchange()
	if got := e.served(); strings.Contains(got, "make db") || !strings.Contains(got, "just db-up") {
		t.Errorf("served:\n%s", got)
	}
	list := must[[]Conflict](t)(s.Conflicts(ctx))
	if len(list) != 1 || list[0].Winner.ID != newer.ID || len(list[0].Losers) != 1 || list[0].Losers[0].ID != older.ID || list[0].Why != "newer" || list[0].Attribute != AttributeCorrections {
		t.Fatalf("%+v", list)
	}
	for _, id := range []string{newer.ID, older.ID} {
		if w := must[Account](t)(s.Why(ctx, id)); len(w.Conflicts) != 1 {
			t.Errorf("why %s: %+v", id, w.Conflicts)
		}
	}
	// Whoever corrects any of them corrects the one that is served, and that settles it.
	e.now = e.now.Add(time.Hour)
	last := must[Change](t)(s.Correct(ctx, older.ID, "", "Start the database with either."))
	if last.Old != newer.ID {
		t.Errorf("%+v", last)
	}
	exchange()
	if list := must[[]Conflict](t)(s.Conflicts(ctx)); len(list) != 0 {
		t.Errorf("%+v", list)
	}
	if got := e.served(); strings.Contains(got, "db-") || !strings.Contains(got, "with either") {
		t.Errorf("served:\n%s", got)
	}
}
