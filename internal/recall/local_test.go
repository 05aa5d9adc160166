package recall

import (
	"fmt"
	"testing"
)

// TestFrequencies: a word counts by how rare it is among what the reader may see,
// too, which is a small part of this index.
func TestFrequencies(t *testing.T) {
	x, _ := newIndex(t)
	update(t, x, func(tx *Tx) error {
		for i := range 40 {
			d := Doc{ID: fmt.Sprint("p", i), Class: ClassEpisode, Scope: "project", Project: "p", Text: "the kiln again"}
			if i%2 == 0 {
				d.Text = "the glaze cracked"
			}
			if err := tx.Put(d); err != nil {
				return err
			}
			if err := tx.Put(Doc{ID: fmt.Sprint("q", i), Class: ClassEpisode, Scope: "project", Project: "q", Text: "a boiler"}); err != nil {
				return err
			}
		}
		return nil
	})
	view(t, x, func(tx *Tx) error {
		q := Question{Text: "kiln boiler", Reader: Reader{Project: "p"}}
		a, v, err := tx.d.ask(q, x)
		if err != nil {
			return err
		}
		if _, err := (&ledge{d: tx.d, a: &a, v: v}).candidates(t.Context()); err != nil {
			return err
		}
		if a.visible < 40 || a.visible >= 80 || len(a.local) != len(a.terms) {
			t.Fatalf("%d visible, counts %v of %v", a.visible, a.local, a.terms)
		}
		for i, term := range a.terms {
			want := map[string]int64{"kiln": 20}[term.text] // nobody speaks of boilers here
			if term.own && a.local[i] != want {
				t.Errorf("%s: %d, want %d", term.text, a.local[i], want)
			}
		}
		return nil
	})
}
