package recall

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"reprise/internal/fact"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func update(t testing.TB, x *Index, fn func(*Tx) error) {
	t.Helper()
	if err := x.Update(t.Context(), fn); err != nil {
		t.Fatal(err)
	}
}

func view(t testing.TB, x *Index, fn func(*Tx) error) {
	t.Helper()
	if err := x.View(t.Context(), fn); err != nil {
		t.Fatal(err)
	}
}

func fullDoc() Doc {
	return Doc{ID: "ep-1", Class: ClassEpisode, Scope: "project", Project: "shop", Session: "s1", Client: "claude", Author: "ada", ACL: []string{"agent:ada", "role:dev"},
		Source: "event-1", Title: "go test", Text: "the build fails with a wombat", Group: "s1", Ord: 3, Keys: []string{"k1", "k2"}, Facts: []fact.Fact{{Subject: "port", Attribute: "is", Value: "5432"}},
		Time: noon, Until: noon.Add(time.Hour), Review: noon.Add(48 * time.Hour), Status: Candidate, Importance: .5, Confidence: .25, Tier: "hot", Data: []byte{0, 1, 0xff}}
}

// TestPutGet: what is put comes back, and is found by all its handles.
func TestPutGet(t *testing.T) {
	x, _ := newIndex(t)
	d := fullDoc()
	update(t, x, func(tx *Tx) error {
		if err := tx.Put(d); err != nil {
			return err
		}
		if got, ok, err := tx.Get("ep-1"); err != nil || !ok || cmp.Diff(d, got) != "" { // its own writes are seen
			t.Errorf("in the transaction: %v %v %s", ok, err, cmp.Diff(d, got))
		}
		return nil
	})
	x.Close()
	view(t, x, func(tx *Tx) error {
		got, ok, err := tx.Get("ep-1")
		if err != nil || !ok || cmp.Diff(d, got) != "" {
			t.Errorf("%v %v %s", ok, err, cmp.Diff(d, got))
		}
		for _, k := range []string{"k1", "k2", "k3"} {
			docs, err := tx.ByKey(k)
			if want := map[bool]int{true: 1}[k != "k3"]; err != nil || len(docs) != want {
				t.Errorf("%s: %d documents, %v", k, len(docs), err)
			}
		}
		if docs, err := tx.ByFact("port|is"); err != nil || len(docs) != 1 {
			t.Errorf("by fact: %v %v", docs, err)
		}
		if err := tx.Put(d); !errors.Is(err, errReadOnly) {
			t.Errorf("put in View: %v", err)
		}
		return nil
	})
	d.Keys, d.Facts, d.Text = []string{"k3"}, nil, "now an ocelot"
	update(t, x, func(tx *Tx) error { return tx.Put(d) })
	view(t, x, func(tx *Tx) error {
		if docs, _ := tx.ByKey("k1"); len(docs) != 0 {
			t.Error("the old key is still there")
		}
		if docs, _ := tx.ByKey("k3"); len(docs) != 1 || docs[0].Text != "now an ocelot" {
			t.Errorf("%v", docs)
		}
		if docs, _ := tx.ByFact("port|is"); len(docs) != 0 {
			t.Error("the old fact is still there")
		}
		return nil
	})
	update(t, x, func(tx *Tx) error { return errors.Join(tx.Delete("ep-1"), tx.Delete("nobody")) })
	view(t, x, func(tx *Tx) error {
		if _, ok, _ := tx.Get("ep-1"); ok {
			t.Error("still there")
		}
		if docs, _ := tx.ByKey("k3"); len(docs) != 0 {
			t.Error("the key of a deleted document is still there")
		}
		return nil
	})
}

func TestUpdateIsAllOrNothing(t *testing.T) {
	x, _ := newIndex(t)
	stop := errors.New("stop")
	err := x.Update(t.Context(), func(tx *Tx) error {
		if err := errors.Join(tx.Put(Doc{ID: "a", Text: "wombat"}), tx.Store("b", "k", []byte("v"))); err != nil {
			return err
		}
		return stop
	})
	if !errors.Is(err, stop) {
		t.Fatal(err)
	}
	func() {
		defer func() { recover() }()
		x.Update(t.Context(), func(tx *Tx) error { tx.Put(Doc{ID: "a", Text: "wombat"}); panic("in the middle") })
	}()
	view(t, x, func(tx *Tx) error {
		_, found, _ := tx.Get("a")
		_, stored, _ := tx.Load("b", "k")
		if found || stored {
			t.Errorf("kept: document %v, value %v", found, stored)
		}
		return nil
	})
	for _, d := range []Doc{{Text: "no id"}, {ID: fileID("", "core.md", "Core", 1)}} {
		search(t, x, "warm up")
		if err := x.Update(t.Context(), func(tx *Tx) error { return tx.Put(d) }); err == nil {
			t.Errorf("%+v was put", d)
		}
	}
}

func TestEachAndCount(t *testing.T) {
	x, _ := newIndex(t)
	update(t, x, func(tx *Tx) error {
		for i := range 20 {
			d := Doc{ID: fmt.Sprintf("d%02d", i), Class: ClassEpisode, Project: "p", Session: fmt.Sprint("s", i%4), Text: "x", Time: noon.Add(time.Duration(20-i) * time.Minute), Tier: "hot"}
			if i%2 == 1 {
				d.Class, d.Status, d.Project, d.Group = ClassPattern, Superseded, "", "g"
			}
			if err := tx.Put(d); err != nil {
				return err
			}
		}
		return nil
	})
	ids := func(f Filter) (out []string) {
		view(t, x, func(tx *Tx) error {
			if err := tx.Each(f, func(d Doc) bool { out = append(out, d.ID); return true }); err != nil {
				return err
			}
			if n, err := tx.Count(f); err != nil || n != len(out) {
				t.Errorf("%+v: counted %d, visited %d, %v", f, n, len(out), err)
			}
			return nil
		})
		return out
	}
	active := Active
	for want, f := range map[string]Filter{
		"[d16 d12 d08 d04 d00]": {Session: "s0"},
		"[]":                    {Session: "s0", Class: ClassPattern},
		"[d18 d16 d14 d12 d10 d08 d06 d04 d02 d00]": {Status: &active, Tier: "hot"},
		"[d19 d17 d15 d13 d11 d09 d07 d05 d03 d01]": {Group: "g"},
		"[d18 d14 d10 d06 d02]":                     {Class: ClassEpisode, Project: "p", Scope: "project", Session: "s2"},
	} {
		if got := fmt.Sprint(ids(f)); got != want {
			t.Errorf("%+v: got %s, want %s", f, got, want)
		}
	}
	n := 0
	update(t, x, func(tx *Tx) error { // deleting ahead and putting behind, while visiting
		return tx.Each(Filter{Class: ClassEpisode}, func(d Doc) bool {
			n++
			if err := errors.Join(tx.Delete("d08"), tx.Put(Doc{ID: "new" + d.ID, Class: ClassEpisode, Text: "y", Time: noon})); err != nil {
				t.Error(err)
			}
			return d.ID != "d06"
		})
	})
	if n != 6 { // 18 16 14 12 10 06
		t.Errorf("%d visited", n)
	}
}

func TestKV(t *testing.T) {
	x, _ := newIndex(t)
	update(t, x, func(tx *Tx) error {
		for i := range 1203 {
			if err := tx.Store("cursors", fmt.Sprintf("a/%04d", i), []byte{byte(i)}); err != nil {
				return err
			}
		}
		return errors.Join(tx.Store("cursors", "b", nil), tx.Store("other", "a/1", []byte("x")), tx.Drop("cursors", "a/0007"), tx.Store("cursors", "a/0008", []byte("new")))
	})
	view(t, x, func(tx *Tx) error {
		var keys []string
		err := tx.EachKV("cursors", "a/", func(k string, _ []byte) bool { keys = append(keys, k); return true })
		if err != nil || len(keys) != 1202 || !slices.IsSorted(keys) {
			t.Errorf("%d keys, %v", len(keys), err)
		}
		if v, ok, err := tx.Load("cursors", "b"); err != nil || !ok || len(v) != 0 {
			t.Errorf("%q %v %v", v, ok, err)
		}
		if v, ok, _ := tx.Load("cursors", "a/0008"); !ok || string(v) != "new" {
			t.Errorf("%q %v", v, ok)
		}
		if _, ok, _ := tx.Load("cursors", "a/0007"); ok {
			t.Error("dropped and still there")
		}
		return nil
	})
}

// TestVectors: a vector lives as long as the text that it was made of.
func TestVectors(t *testing.T) {
	x, _ := newIndex(t)
	put := func(text string, importance float64) {
		update(t, x, func(tx *Tx) error { return tx.Put(Doc{ID: "a", Text: text, Importance: importance}) })
	}
	list := func() (out []string) {
		view(t, x, func(tx *Tx) error {
			return tx.Vectors("m", func(id string, v []float32) bool { out = append(out, fmt.Sprint(id, v)); return true })
		})
		return out
	}
	missing := func() (n int) {
		view(t, x, func(tx *Tx) error { return tx.WithoutVector("m", 100, func(d Doc) bool { n++; return true }) })
		return n
	}
	put("wombat", 0)
	before := missing()
	update(t, x, func(tx *Tx) error { return tx.PutVector("a", "m", []float32{1, -.5}) })
	if got := fmt.Sprint(list()); got != "[a[1 -0.5]]" || missing() != before-1 {
		t.Error(got, missing(), before)
	}
	put("wombat", .5)
	if len(list()) != 1 {
		t.Error("a change of importance lost the vector")
	}
	put("ocelot", .5)
	if len(list()) != 0 || missing() != before {
		t.Error("the vector outlived its text")
	}
	put("wombat", .5)
	if len(list()) != 0 {
		t.Error("the vector came back")
	}
}

// TestViewIsOneState: what is committed while a View runs is not seen in it.
func TestViewIsOneState(t *testing.T) {
	x, _ := newIndex(t)
	y := Open(x.o)
	defer y.Close()
	update(t, x, func(tx *Tx) error { return tx.Put(Doc{ID: "a", Text: "one"}) })
	done := make(chan error, 1)
	view(t, x, func(tx *Tx) error {
		a, _, _ := tx.Get("a")
		started := make(chan struct{})
		go func() {
			done <- y.Update(context.Background(), func(tx *Tx) error {
				defer close(started)
				return tx.Put(Doc{ID: "a", Text: "two"})
			})
		}()
		<-started
		b, _, err := tx.Get("a")
		if a.Text != "one" || b.Text != "one" {
			t.Errorf("%q then %q", a.Text, b.Text)
		}
		return err
	})
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	view(t, x, func(tx *Tx) error {
		if a, _, _ := tx.Get("a"); a.Text != "two" {
			t.Error(a.Text)
		}
		return nil
	})
}

// TestReaderDoesNotWait: a reader with a deadline answers while another holds
// the lock, and a writer gives up at its deadline.
func TestReaderDoesNotWait(t *testing.T) {
	x, dir := newIndex(t)
	search(t, x, "sourdough")
	y := Open(x.o)
	defer y.Close()
	update(t, y, func(tx *Tx) error {
		if err := tx.Put(Doc{ID: "a", Text: "one"}); err != nil {
			return err
		}
		write(t, dir, "blocks/reference-new.md", "okapi\n")
		var hits []Hit
		var err error
		// It waits for half of its time, and a busy machine may need more than the other half.
		for limit := 2 * time.Second; limit < time.Minute; limit *= 4 {
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			hits, err = x.Search(ctx, Query{Text: "massachusetts okapi"})
			cancel()
			if !errors.Is(err, context.DeadlineExceeded) {
				break
			}
		}
		if err != nil || len(hits) != 1 {
			t.Errorf("%d hits, %v", len(hits), err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
		defer cancel()
		if err := x.Update(ctx, func(tx *Tx) error { return nil }); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("update: %v", err)
		}
		return nil
	})
	if len(search(t, x, "okapi")) != 1 {
		t.Error("not found after the other has ended")
	}
}

// randomDoc is a document of one of few ids, so that puts replace.
func randomDoc(r *rand.Rand) Doc {
	pick := func(v ...string) string { return v[r.IntN(len(v))] }
	d := Doc{ID: fmt.Sprint("doc", r.IntN(30)), Class: []Class{ClassEpisode, ClassPattern, ClassLearning}[r.IntN(3)], Project: pick("", "p", "q"), Session: pick("", "s1", "s2"),
		Author: pick("", "ada", "bob"), Source: "e", Title: vocabulary[r.IntN(6)], Text: randomText(r), Time: noon.Add(time.Duration(r.IntN(50)) * time.Hour), Status: Status(pick("", "", "superseded")),
		Group: pick("", "g"), Ord: r.IntN(5), Importance: r.Float64()}
	if r.IntN(4) == 0 {
		d.Scope = "session"
	}
	if r.IntN(4) == 0 {
		d.ACL = []string{pick("agent:ada", "role:dev", "*")}
	}
	if r.IntN(2) == 0 {
		d.Keys = []string{fmt.Sprint("k", r.IntN(5))}
	}
	if d.Status == Superseded {
		d.Until = d.Time.Add(5 * time.Hour)
	}
	return d
}

// dump is all that the index holds, with what it is searched by.
func dump(t testing.TB, x *Index) map[string]string {
	out := map[string]string{}
	view(t, x, func(tx *Tx) error {
		if err := tx.Each(Filter{}, func(d Doc) bool { out["doc "+d.ID] = fmt.Sprintf("%+v", d); return true }); err != nil {
			return err
		}
		err := tx.d.rows(`SELECT term, df FROM terms`, func(s stmt) { out["term "+s.ColumnText(0)] = s.ColumnText(1) })
		out["corpus"] = fmt.Sprint(tx.d.corpus)
		return err
	})
	return out
}

// TestIncrementalIsRebuild: after any puts, deletes and edits the index is the
// one that is made of what is left.
func TestIncrementalIsRebuild(t *testing.T) {
	for seed := range uint64(3) {
		r := rand.New(rand.NewPCG(seed, 11))
		x, dir := newIndex(t)
		left := map[string]Doc{}
		for range 25 {
			if r.IntN(3) == 0 {
				write(t, dir, fmt.Sprintf("blocks/reference-%d.md", r.IntN(6)), randomText(r))
				search(t, x, "amber")
			}
			update(t, x, func(tx *Tx) error {
				for range r.IntN(6) {
					if r.IntN(4) == 0 {
						id := fmt.Sprint("doc", r.IntN(30))
						delete(left, id)
						if err := tx.Delete(id); err != nil {
							return err
						}
						continue
					}
					d := randomDoc(r)
					left[d.ID] = d
					if err := tx.Put(d); err != nil {
						return err
					}
				}
				return nil
			})
		}
		ask := func(x *Index) (out [][]string) {
			for i := range 30 {
				q := Question{Text: vocabulary[i%len(vocabulary)] + " " + vocabulary[(i*7)%len(vocabulary)], Reader: Reader{Project: "p", Session: "s1", Agent: "ada"}, Keys: []string{"k1"}}
				if i%3 == 0 {
					q.AsOf = noon.Add(time.Duration(i) * time.Hour)
				}
				var ids []string
				view(t, x, func(tx *Tx) error {
					a, v, err := tx.d.ask(q, x)
					if err != nil {
						return err
					}
					cs, err := (&ledge{d: tx.d, a: &a, v: v}).candidates(t.Context())
					if err != nil {
						return err
					}
					for _, c := range cs {
						ids = append(ids, fmt.Sprint(c.ID, c.tf, c.length, c.exact))
					}
					answer, err := tx.Recall(t.Context(), x, q)
					for _, r := range answer.Results {
						ids = append(ids, fmt.Sprint(r.ID, r.Score))
					}
					return err
				})
				out = append(out, ids)
			}
			return out
		}
		search(t, x, "warm up")
		fresh := Open(Options{MemoryDir: dir, IndexFile: filepath.Join(t.TempDir(), "index.db")})
		defer fresh.Close()
		fresh.o.Derive = func(ctx context.Context, x *Index) error {
			return x.Update(ctx, func(tx *Tx) error {
				for _, id := range sortedKeys(left) {
					if err := tx.Put(left[id]); err != nil {
						return err
					}
				}
				return nil
			})
		}
		if st, err := fresh.Rebuild(t.Context()); err != nil || st.Derived != len(left) {
			t.Fatalf("%+v %v", st, err)
		}
		if diff := cmp.Diff(dump(t, fresh), dump(t, x)); diff != "" {
			t.Fatalf("seed %d: %s", seed, diff)
		}
		if diff := cmp.Diff(ask(fresh), ask(x)); diff != "" {
			t.Fatalf("seed %d: %s", seed, diff)
		}
	}
}
