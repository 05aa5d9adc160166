package scopes

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"reprise/internal/durable"
	"reprise/internal/durable/durabletest"
	"reprise/internal/event"
	"reprise/internal/learn"
	"reprise/internal/mdfile"
	"reprise/internal/memory"
	"reprise/internal/recall"
)

// nowhere fails where a text is served, found, or listed.
func (e *estate) nowhere(when, words string) {
	e.t.Helper()
	ctx := context.Background()
	if got := e.served(); strings.Contains(got, words) {
		e.t.Errorf("%s: %q is served:\n%s", when, words, got)
	}
	ans, err := e.index.Recall(ctx, recall.Question{Text: words, Reader: recall.Reader{All: true}, AsOf: e.now.Add(time.Hour), Explain: true})
	if err != nil {
		e.t.Fatal(err)
	}
	for _, r := range ans.Results {
		if strings.Contains(r.Title+r.Text+r.Snippet, words) {
			e.t.Errorf("%s: %q is recalled: %+v", when, words, r.Doc)
		}
	}
	hits, err := e.index.Search(ctx, recall.Query{Text: words, Max: recall.MaxHits})
	if err != nil {
		e.t.Fatal(err)
	}
	for _, h := range hits {
		if strings.Contains(h.Snippet, words) {
			e.t.Errorf("%s: %q is found by a search: %+v", when, words, h)
		}
	}
}

// holding are the files below a directory that hold the words.
func holding(t *testing.T, dir, words string) []string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(p)
		if bytes.Contains(data, []byte(words)) {
			out = append(out, p)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestForgetAnEntry(t *testing.T) {
	ctx := context.Background()
	e := newEstate(t)
	s := e.person("shop")
	a := must[Change](t)(s.Learn(ctx, Note{Project: "shop", Text: "The zanzibar cluster is in Oslo."}))
	g := must[Change](t)(s.PromoteItem(ctx, a.ID, ""))
	if g.Scope != "global" {
		t.Fatalf("%+v", g)
	}
	e.served()
	c := must[Change](t)(s.Forget(ctx, a.ID, Forgetting{Reason: "wrong"}))
	if len(c.Also) != 1 || c.Also[0] != g.ID {
		t.Errorf("what was promoted from it stays: %+v", c)
	}
	e.nowhere("after forget", "zanzibar")
	must[recall.Stats](t)(e.index.Rebuild(ctx))
	e.nowhere("after a rebuild", "zanzibar")
	if c := must[Change](t)(s.Forget(ctx, a.ID, Forgetting{})); !c.Existing {
		t.Errorf("again: %+v", c)
	}
	for _, dir := range []string{"memory", "shop-global"} {
		if got := holding(t, filepath.Join(e.dir, dir), "zanzibar"); len(got) != 0 {
			t.Errorf("%v", got)
		}
	}
	if w := must[Account](t)(s.Why(ctx, a.ID)); w.Status != "forgotten" || len(w.History) < 2 {
		t.Errorf("%+v", w)
	}
	// Another machine's copy of the file does not bring it back.
	other := memory.NewEntries(memory.EntriesOptions{Dir: t.TempDir(), Now: e.clock})
	must[memory.Added](t)(other.Add(ctx, mdfile.Entry{Agent: "user", Type: "learning", Source: "hand", Confidence: 0.95, Time: e.now, Text: "The zanzibar cluster is in Oslo."}))
	data, err := os.ReadFile(other.Path("learnings.md"))
	if err != nil || !bytes.Contains(data, []byte(a.ID)) {
		t.Fatalf("%v\n%s", err, data)
	}
	must[bool](t)(s.o.Entries("shop").Merge(ctx, "learnings.md", data))
	e.nowhere("after a merge", "zanzibar")
	if _, err := s.Forget(ctx, "nothing-of-it", Forgetting{}); !errors.Is(err, memory.ErrNotFound) {
		t.Errorf("%v", err)
	}
}

// A pattern goes with its episodes and entries; neither a rebuild, nor the same
// failure again, nor the same session imported from its transcript brings back
// what was said.
func TestForgetWhatWasWorkedOut(t *testing.T) {
	ctx := context.Background()
	e := newEstate(t)
	e.fails("shop", "a1")
	e.at = e.at.Add(24 * time.Hour)
	e.fails("shop", "a2")
	e.served()
	s := e.person("shop")
	p := must[Promotion](t)(s.Promote(ctx, 0))
	if len(p.Promoted) != 1 {
		t.Fatalf("%+v", p)
	}
	c := must[Change](t)(s.Forget(ctx, p.Promoted[0].ID, Forgetting{}))
	if len(c.Also) < 3 { // the pattern, two episodes
		t.Errorf("%+v", c)
	}
	e.fixGone("after forget")
	must[recall.Stats](t)(e.index.Rebuild(ctx))
	e.fixGone("after a rebuild")
	for i := range 3 { // the transcript of the same session, with other ids of events
		e.at = e.at.Add(time.Hour)
		e.host = fmt.Sprintf("desk-import%d", i)
		e.fails("shop", "a1")
	}
	e.fixGone("after an import")
	must[recall.Stats](t)(e.index.Rebuild(ctx))
	e.fixGone("after an import and a rebuild")
	if p := must[Promotion](t)(s.Promote(ctx, 0)); len(p.Promoted) != 0 {
		t.Errorf("it was promoted again: %+v", p)
	}
}

// fixGone fails where the fix is told as an episode of the sessions it was
// forgotten of, a pattern, an entry or in a session's summary.
func (e *estate) fixGone(when string) {
	e.t.Helper()
	e.served()
	active := recall.Active
	err := e.index.View(context.Background(), func(tx *recall.Tx) error {
		return tx.Each(recall.Filter{Status: &active}, func(d recall.Doc) bool {
			data, _ := learn.DataOf(d)
			if data.Kind == learn.KindFailure || data.Kind == learn.KindPattern || strings.HasPrefix(d.ID, "e-") ||
				data.Kind == learn.KindSession && strings.Contains(d.Text, "Failed and fixed") {
				e.t.Errorf("%s: %s says %q", when, d.ID, d.Text)
			}
			return true
		})
	})
	if err != nil {
		e.t.Fatal(err)
	}
}

func TestCorrectingWhatWasWorkedOut(t *testing.T) {
	ctx := context.Background()
	e := newEstate(t)
	e.fails("shop", "a1")
	e.served()
	s := e.person("shop")
	var id string
	_ = e.index.View(ctx, func(tx *recall.Tx) error {
		return tx.Each(recall.Filter{Class: recall.ClassEpisode}, func(d recall.Doc) bool {
			if data, _ := learn.DataOf(d); data.Kind == learn.KindFailure {
				id = d.ID
			}
			return true
		})
	})
	c := must[Change](t)(s.Correct(ctx, id, "", "left-pad must never be installed; delete the import."))
	check := func(when string) {
		t.Helper()
		got := e.served()
		if strings.Contains(got, id+" ") || !strings.Contains(got, "delete the import") {
			t.Errorf("%s:\n%s", when, got)
		}
		w := must[Account](t)(s.Why(ctx, id))
		if w.Superseded != c.ID || w.Status != "superseded" {
			t.Errorf("%s: %+v", when, w)
		}
	}
	check("after the correction")
	must[recall.Stats](t)(e.index.Rebuild(ctx))
	check("after a rebuild")
}

func TestPurgeLeavesNothing(t *testing.T) {
	ctx := context.Background()
	e := newEstate(t)
	s := e.person("shop")
	e.fails("shop", "a1")
	must[memory.Written](t)(s.o.Global.Create(ctx, memory.CreateBlock{Name: "reference-places", Content: "# Places\n\n## Cluster\n\nThe xylophone cluster is in Oslo.\n\n## Other\n\nStays.\n"}))
	a := must[Change](t)(s.Learn(ctx, Note{Project: "shop", Text: "The wombat queue is drained by hand."}))
	e.session, e.project = "a9", "shop"
	e.start()
	e.prompt("No, never use quokka in this repository")
	e.shell("ls", "")
	e.end()
	e.served()
	for _, words := range []string{"xylophone", "wombat", "quokka"} {
		if len(holding(t, e.dir, words)) == 0 {
			t.Fatalf("%s is nowhere to begin with", words)
		}
	}
	// The index that a program of another version keeps beside ours tells it, too.
	data, err := os.ReadFile(e.path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(recall.FileFor(e.path, "1"), data, 0o600); err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, words := range []string{"xylophone cluster", "wombat queue", "never use quokka"} {
		for {
			found := must[[]Found](t)(s.WithText(ctx, words))
			if len(found) == 0 {
				break
			}
			ids = append(ids, found[0].Doc.ID)
			if c := must[Change](t)(s.Forget(ctx, found[0].Doc.ID, Forgetting{Purge: true, Reason: "private"})); c.Existing {
				t.Fatalf("%+v", c)
			}
		}
	}
	if len(ids) < 3 || ids[1] != a.ID {
		t.Errorf("%v", ids)
	}
	for _, words := range []string{"xylophone", "wombat", "quokka"} {
		e.nowhere("after a purge", words)
		if got := holding(t, e.dir, words); len(got) != 0 {
			t.Errorf("%s is still in %v", words, got)
		}
	}
	purged := 0
	for _, p := range []string{"shop", ""} {
		for ev, err := range event.Read(e.events(p)) {
			if err != nil {
				t.Error(err)
			}
			if ev.Type == event.MemoryPurged {
				purged++
			}
		}
		if r := must[event.Report](t)(event.Verify(e.events(p))); !r.OK() {
			t.Errorf("%s: %+v", p, r.Problems)
		}
	}
	if purged == 0 {
		t.Error("no record of the purge")
	}
	if got := e.served(); !strings.Contains(got, "Stays.") {
		t.Errorf("more went than was asked for:\n%s", got)
	}
}

// What was forgotten without a purge can be purged later, with all that went
// with it: the pattern, its episodes, the entry; and said again it is no error.
func TestPurgeAfterForgetting(t *testing.T) {
	ctx := context.Background()
	e := newEstate(t)
	e.fails("shop", "a1")
	e.at = e.at.Add(24 * time.Hour)
	e.fails("shop", "a2")
	e.served()
	s := e.person("shop")
	p := must[Promotion](t)(s.Promote(ctx, 0))
	if len(p.Promoted) != 1 {
		t.Fatalf("%+v", p)
	}
	id := p.Promoted[0].ID
	note := must[Change](t)(s.Learn(ctx, Note{Project: "shop", Text: "The wombat queue is drained by hand."}))
	must[Change](t)(s.Forget(ctx, id, Forgetting{}))
	must[Change](t)(s.Forget(ctx, note.ID, Forgetting{}))
	failed := func() (n int) {
		for ev, err := range event.Read(e.events("shop")) {
			if err == nil && ev.Type == event.ToolFailed {
				n++
			}
		}
		return n
	}
	if failed() == 0 || len(holding(t, e.events("shop"), "wombat")) == 0 {
		t.Fatal("no evidence in the log to begin with")
	}
	for _, x := range []string{id, note.ID} {
		if c := must[Change](t)(s.Forget(ctx, x, Forgetting{Purge: true})); !c.Existing || c.Purged == 0 || len(c.Warnings) > 0 {
			t.Errorf("%s: %+v", x, c)
		}
	}
	if n := failed(); n != 0 {
		t.Errorf("%d failed calls that it was worked out from are still in the log", n)
	}
	if got := holding(t, e.dir, "wombat"); len(got) != 0 {
		t.Errorf("still in %v", got)
	}
	e.fixGone("after the purge")
	if r := must[event.Report](t)(event.Verify(e.events("shop"))); !r.OK() {
		t.Errorf("%+v", r.Problems)
	}
	if c := must[Change](t)(s.Forget(ctx, id, Forgetting{Purge: true})); !c.Existing || c.Purged != 0 || len(c.Warnings) != 1 {
		t.Errorf("again: %+v", c)
	}
	if _, err := s.Forget(ctx, "e-0000000000000000", Forgetting{Purge: true}); !errors.Is(err, memory.ErrNotFound) {
		t.Errorf("what never was: %v", err)
	}
}

// Whatever is learnt, corrected, promoted and forgotten in any order: what was
// forgotten is served by nothing, what was not is, and a rebuild changes nothing.
func TestForgettingInAnyOrder(t *testing.T) {
	ctx := context.Background()
	for seed := range seeds() {
		r := rand.New(rand.NewSource(int64(seed)))
		e := newEstate(t)
		s := e.person("shop")
		words := map[string]string{} // id → word
		alive := map[string]bool{}   // word → served
		next := 0
		pickID := func() string {
			list := sortedKeysOf(words)
			if len(list) == 0 {
				return ""
			}
			return list[r.Intn(len(list))]
		}
		for range 14 {
			e.now = e.now.Add(time.Minute)
			id := pickID()
			switch op := r.Intn(5); {
			case op < 2 || id == "":
				next++
				w := fmt.Sprintf("qwx%dz", next)
				project := []string{"shop", "site", ""}[r.Intn(3)]
				c := must[Change](t)(s.Learn(ctx, Note{Project: project, Text: "It is about " + w + " here."}))
				words[c.ID], alive[w] = w, true
			case op == 2:
				c, err := s.Forget(ctx, id, Forgetting{})
				if err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
				alive[words[id]] = false
				for _, also := range c.Also {
					if words[also] != words[id] {
						t.Fatalf("seed %d: %s went with %s", seed, words[also], words[id])
					}
				}
			case op == 3 && alive[words[id]]:
				next++
				w := fmt.Sprintf("qwx%dz", next)
				c, err := s.Correct(ctx, id, "", "It is about "+w+" now.")
				if errors.Is(err, memory.ErrRetired) || errors.Is(err, memory.ErrNotFound) {
					continue
				}
				if err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
				// A correction of the old is one of what took its place, and of the
				// copies that were made of it only of the one that was named.
				old := must[Found](t)(s.Find(ctx, c.Old))
				if old.Doc.Status != recall.Superseded {
					t.Fatalf("seed %d: %+v is served", seed, old.Doc)
				}
				words[c.ID], alive[w] = w, true
				alive[words[c.Old]] = s.activeWith(t, words[c.Old])
			case op == 4 && alive[words[id]]:
				c, err := s.PromoteItem(ctx, id, "global")
				if err == nil {
					words[c.ID] = words[id]
				}
				if f, ferr := s.Find(ctx, id); ferr == nil && f.Doc.Status != recall.Active && err == nil {
					alive[words[id]] = true // what was superseded was promoted by hand
				}
			}
		}
		for _, when := range []string{"before", "after"} {
			got := e.served()
			for w, on := range alive {
				if strings.Contains(got, w) != on {
					t.Fatalf("seed %d, %s a rebuild: %s served is %v, want %v", seed, when, w, !on, on)
				}
			}
			must[recall.Stats](t)(e.index.Rebuild(ctx))
		}
		e.index.Close()
	}
}

// seeds is how many random histories are played: few, unless the tests may take
// long.
func seeds() int {
	if os.Getenv("REPRISE_LONG_TESTS") != "" {
		return 40
	}
	return 2
}

func (s *Scopes) activeWith(t *testing.T, w string) bool {
	t.Helper()
	for _, p := range s.places() {
		for _, i := range must[[]memory.Item](t)(s.o.Entries(p).List(context.Background())) {
			if i.Active() && strings.Contains(i.Text, w) {
				return true
			}
		}
	}
	return false
}

// A process that dies between the event and the file has forgotten: the item is
// served by nothing once it is done again, and nothing else is lost.
func TestForgetThatWasCutShort(t *testing.T) {
	ctx := context.Background()
	e := newEstate(t)
	s := e.person("shop")
	a := must[Change](t)(s.Learn(ctx, Note{Project: "shop", Text: "The zanzibar cluster is in Oslo."}))
	must[Change](t)(s.Learn(ctx, Note{Project: "shop", Text: "It stays."}))
	record := s.o.Record
	s.o.Record = func(ctx context.Context, ev event.Event) (event.Event, error) {
		if ev.Type == event.MemoryRetired {
			return ev, errors.New("the disk is full")
		}
		return record(ctx, ev)
	}
	if _, err := s.Forget(ctx, a.ID, Forgetting{}); err == nil {
		t.Fatal("acknowledged without a tombstone")
	}
	s.o.Record = record
	must[Change](t)(s.Forget(ctx, a.ID, Forgetting{}))
	e.nowhere("after it was done again", "zanzibar")
	if !strings.Contains(e.served(), "It stays.") {
		t.Error("something else went, too")
	}
}

// Forgetting a passage of a block, killed at each step of the disk: the file is
// the old or the new one, and done again it is the new one.
func TestForgetPassageCrash(t *testing.T) {
	open := func(dir string) *memory.Store {
		return memory.New(memory.Options{Dir: dir, Now: clock("2026-11-20"), Git: memory.GitOptions{Off: true}})
	}
	p := memory.Passage{File: "blocks/reference-a.md", Headings: "A > B", Text: "Secret."}
	durabletest.Scenario{
		Prepare: func(t *testing.T, dir string) {
			_, err := open(dir).Create(context.Background(), memory.CreateBlock{Name: "reference-a", Summary: "A", Content: "# A\n\nStays.\n\n## B\n\nSecret.\n"})
			if err != nil {
				t.Fatal(err)
			}
		},
		Act: func(disk durable.Disk, dir string) error {
			st := memory.New(memory.Options{Dir: dir, Now: clock("2026-11-21"), Disk: disk, Git: memory.GitOptions{Off: true}})
			_, _, err := st.ReplacePassage(context.Background(), p, "")
			return err
		},
		Check: func(t *testing.T, dir string, err error, at string) {
			st := open(dir)
			text, n, rerr := st.Section(context.Background(), "reference-a", "A > B")
			if rerr != nil || n == 1 && (strings.TrimSpace(text) != "Secret." || err == nil) {
				t.Errorf("%s: %q %d %v", at, text, n, rerr)
			}
			if _, _, err := st.ReplacePassage(context.Background(), p, ""); err != nil && !errors.Is(err, memory.ErrNotFound) {
				t.Errorf("%s: again: %v", at, err)
			}
			doc, _, rerr := st.Read(context.Background(), "reference-a", 0, 0)
			if rerr != nil || strings.Contains(doc.Content, "Secret") || !strings.Contains(doc.Content, "Stays.") {
				t.Errorf("%s: %q %v", at, doc.Content, rerr)
			}
		},
	}.CrashAtEachStep(t)
}
