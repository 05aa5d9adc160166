package scopes

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"reprise/internal/memory"
	"reprise/internal/recall"
)

// both has the same failure fixed in the same way in two sessions each of both projects,
// so that there is a pattern and an entry of it in each, and one for everywhere.
func both(e *estate) (everywhere string) {
	for i, p := range []string{"shop", "shop", "site", "site"} {
		e.fails(p, "b"+string(rune('0'+i)))
		e.at = e.at.Add(24 * time.Hour)
	}
	e.served()
	s := e.person("shop")
	must[Promotion](e.t)(s.Promote(context.Background(), 0))
	e.served()
	err := e.index.View(context.Background(), func(tx *recall.Tx) error {
		return tx.Each(recall.Filter{Class: recall.ClassPattern}, func(d recall.Doc) bool {
			if d.Project == "" {
				everywhere = d.ID
			}
			return true
		})
	})
	if err != nil || everywhere == "" {
		e.t.Fatal(everywhere, err)
	}
	return everywhere
}

// What was forgotten in one place goes from others, too: that is known before, and all of
// it comes back by one command, also after a rebuild, and can be forgotten again.
func TestUnforgetAPatternOfAllProjects(t *testing.T) {
	ctx := context.Background()
	e := newEstate(t)
	id := both(e)
	s := e.person("")
	before := e.served()
	list := must[[]Found](t)(s.WouldForget(ctx, id, Forgetting{}))
	in := map[string]int{}
	for _, f := range s.Beyond(list) {
		in[f.Doc.Project]++
	}
	if in["shop"] < 4 || in["site"] < 4 || in[""] > 0 { // pattern, entry, two episodes
		t.Errorf("beyond: %v", in)
	}
	if e.served() != before {
		t.Error("to ask what would go has changed something")
	}
	if list := must[[]Found](t)(s.WouldForget(ctx, id, Forgetting{Only: true})); len(list) != 1 || len(s.Beyond(list)) != 0 {
		t.Errorf("only: %+v", list)
	}
	for round := range 2 {
		must[Change](t)(s.Forget(ctx, id, Forgetting{Reason: "not here"}))
		e.fixGone("after forget")
		c := must[Change](t)(s.Unforget(ctx, id, "a slip"))
		if c.ID != id || len(c.Also) < 8 || len(c.Warnings) != 0 || c.Text == "" {
			t.Errorf("round %d: %+v", round, c)
		}
		check := func(when string) {
			got := e.served()
			for line := range strings.Lines(before) {
				head, rest, _ := strings.Cut(line, " ")
				if strings.HasPrefix(head, "e-") { // it has another id now
					line = rest
				}
				if !strings.Contains(got, strings.TrimSpace(line)) {
					t.Errorf("round %d, %s: %q is not back in\n%s", round, when, line, got)
				}
			}
		}
		check("after undo")
		must[recall.Stats](t)(e.index.Rebuild(ctx))
		check("after a rebuild")
		if _, err := s.Unforget(ctx, id, ""); !errors.Is(err, memory.ErrExists) {
			t.Errorf("a second time: %v", err)
		}
		if p := must[Promotion](t)(s.Promote(ctx, 0)); len(p.Promoted)+len(p.Held) != 0 {
			t.Errorf("the gates: %+v", p)
		}
	}
	if w := must[Account](t)(s.Why(ctx, id)); w.Status != "active" || w.Forgotten {
		t.Errorf("%+v", w)
	}
}

// An entry that a person wrote comes back with all that it had; the id that it had still
// finds it, another machine's tombstone does not take it away, and its words can be purged.
func TestUnforgetAnEntry(t *testing.T) {
	ctx := context.Background()
	e := newEstate(t)
	s := e.person("shop")
	a := must[Change](t)(s.Learn(ctx, Note{Project: "shop", Type: "decision", Decision: "Use \"quagga\" for builds", Rationale: "one tool", Alternatives: []string{"zebra"}}))
	was := must[memory.Item](t)(s.o.Entries("shop").Get(ctx, a.ID))
	must[Change](t)(s.Forget(ctx, a.ID, Forgetting{}))
	e.nowhere("after forget", "quagga")
	c := must[Change](t)(s.Unforget(ctx, a.ID, ""))
	now := must[memory.Item](t)(s.o.Entries("shop").Get(ctx, a.ID))
	if now.ID == a.ID || now.ID != c.ID || now.Decision != was.Decision || now.Rationale != was.Rationale || len(now.Alternatives) != 1 || !now.Time.Equal(was.Time) || now.Source != was.Source {
		t.Errorf("%+v\n%+v", now, was)
	}
	copied, err := os.ReadFile(s.o.Entries("shop").Path("decisions.md"))
	if err != nil {
		t.Fatal(err)
	}
	must[bool](t)(s.o.Entries("shop").Merge(ctx, "decisions.md", copied))
	if got := e.served(); strings.Count(got, "quagga") == 0 {
		t.Errorf("after a merge:\n%s", got)
	}
	if _, err := s.Unforget(ctx, "e-ffffffffffffffff", ""); !errors.Is(err, memory.ErrNotFound) {
		t.Errorf("%v", err)
	}
	must[Change](t)(s.Forget(ctx, a.ID, Forgetting{Purge: true})) // by the id that it had
	for _, dir := range []string{"shop", "shop-global", "forgetting"} {
		if got := holding(t, filepath.Join(e.dir, dir), "quagga"); len(got) != 0 {
			t.Errorf("after a purge: %v", got)
		}
	}
	if _, err := s.Unforget(ctx, c.ID, ""); !errors.Is(err, memory.ErrContent) {
		t.Errorf("purged: %v", err)
	}
}

// A section that was cut out of a block stands in it again.
func TestUnforgetASection(t *testing.T) {
	ctx := context.Background()
	e := newEstate(t)
	s := e.person("shop")
	must[memory.Written](t)(s.o.Global.Create(ctx, memory.CreateBlock{Name: "reference-places", Content: "# Places\n\n## Cluster\n\nThe xylophone cluster is in Oslo.\n\n## Other\n\nStays.\n"}))
	e.served()
	found := must[[]Found](t)(s.WithText(ctx, "xylophone"))
	must[Change](t)(s.Forget(ctx, found[0].Doc.ID, Forgetting{}))
	e.nowhere("after forget", "xylophone")
	must[Change](t)(s.Unforget(ctx, found[0].Doc.ID, ""))
	if got := e.served(); !strings.Contains(got, "xylophone") {
		t.Errorf("%s", got)
	}
	data, err := os.ReadFile(filepath.Join(e.dir, "memory", "blocks", "reference-places.md"))
	if err != nil || !strings.Contains(string(data), "## Other\n\nStays.\n\n## Cluster\n\nThe xylophone cluster is in Oslo.\n") {
		t.Errorf("%v\n%s", err, data)
	}
}

// What a person forgot stays so, though later sessions do the same: only what they did
// themselves is remembered, and its reasons say since when, and how it comes back.
func TestAForgottenPatternStaysForgotten(t *testing.T) {
	ctx := context.Background()
	e := newEstate(t)
	fail := func(sessions ...string) {
		for _, name := range sessions {
			e.fails("shop", name)
			e.at = e.at.Add(24 * time.Hour)
		}
		e.served()
	}
	fail("a1", "a2")
	s := e.person("shop")
	find := func(class recall.Class) (id string) {
		active := recall.Active
		err := e.index.View(ctx, func(tx *recall.Tx) error {
			return tx.Each(recall.Filter{Class: class, Status: &active}, func(d recall.Doc) bool {
				if class == recall.ClassPattern || strings.HasPrefix(d.ID, "ep-") {
					id = d.ID
				}
				return true
			})
		})
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	pattern := find(recall.ClassPattern)
	if w := must[Account](t)(s.Why(ctx, find(recall.ClassEpisode))); len(w.Gates) != 3 || w.Gates[1].Have != 2 || !w.Gates[1].Passed {
		t.Errorf("an episode of two: %+v", w.Gates)
	}
	must[Change](t)(s.Forget(ctx, pattern, Forgetting{}))
	fail("a3", "a4", "a5")
	if got := find(recall.ClassPattern); got != "" {
		t.Errorf("%s is made again", got)
	}
	episode := find(recall.ClassEpisode)
	w := must[Account](t)(s.Why(ctx, episode))
	if len(w.Gates) != 3 || w.Gates[1].Forgotten != pattern || w.Gates[1].Since.IsZero() || w.Gates[1].Passed {
		t.Errorf("%+v", w.Gates)
	}
	must[Change](t)(s.Unforget(ctx, pattern, ""))
	e.served()
	if got := find(recall.ClassPattern); got != pattern {
		t.Errorf("%q is back", got)
	}
	if w := must[Account](t)(s.Why(ctx, episode)); w.Gates[1].Forgotten != "" || w.Gates[1].Have != 5 {
		t.Errorf("%+v", w.Gates)
	}
}
