package learn

import (
	"context"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"reprise/internal/recall"
)

// The index holds what the store in memory holds, is found by words and by
// signature, and makes it anew when its file is lost.
func TestRealIndex(t *testing.T) {
	s := newStory(t)
	r := rand.New(rand.NewPCG(3, 3))
	for _, w := range world(t, r, 6) {
		s.host = w.host
		s.write(w.e)
	}
	s.host = "desk"
	s.failFix("f1", "shop", "npm ci", d(12, 1))
	s.failFix("f2", "shop", "npm ci", d(12, 2))
	want, _ := s.fold("2026-12-24")

	options := Options{Logs: s.logs(), Now: clock("2026-12-24"), Batch: 7}
	file := filepath.Join(t.TempDir(), "index.db")
	for range 2 {
		x := recall.Open(recall.Options{IndexFile: file, MemoryDir: t.TempDir(), Now: options.Now})
		o := options
		o.Index = x
		finish(t, New(o))
		got := newFake()
		err := x.View(context.Background(), func(tx *recall.Tx) error {
			for _, b := range []string{bucketStats, bucketRow, bucketDue, bucketPolicy, bucketTold} {
				got.kv[b] = map[string][]byte{}
				if err := tx.EachKV(b, "", func(k string, v []byte) bool { got.kv[b][k] = v; return true }); err != nil {
					return err
				}
			}
			return tx.Each(recall.Filter{}, func(d recall.Doc) bool { got.docs[d.ID] = d; return true })
		})
		if err != nil {
			t.Fatal(err)
		}
		if got.dump() != want.dump() {
			t.Fatalf("the index differs from the store in memory:\n%s", firstDifference(got.dump(), want.dump()))
		}
		k, err := New(o).KnownFix(context.Background(), recall.Reader{Project: "shop"}, shellData("npm test", moduleMissing, nil))
		if err != nil || len(k.Fixes) == 0 || k.Fixes[0].Class != recall.ClassPattern {
			t.Errorf("%+v, %v", k, err)
		}
		a, err := x.Recall(context.Background(), recall.Question{Text: "npm test cannot find module left-pad", Reader: recall.Reader{Project: "shop"}})
		if err != nil || len(a.Results) == 0 {
			t.Errorf("not found by its words: %+v, %v", a, err)
		}
		x.Close()
	}
}
