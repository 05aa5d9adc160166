package recall

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestAliases: who is asked for by what they are is found by their name, and the other
// way round.
func TestAliases(t *testing.T) {
	docs := filler(30)
	for i, text := range []string{
		"We had dinner with my sister Ines yesterday.",
		"I had a bad row with Ines, she wants to sell the mill.",
		"Grandpa Farid moved into the flat above.",
		"My grandpa had a stroke on Sunday, he is in hospital.",
		"A cluster called Phoenix is there for rehearsals.",
		"Phoenix was upgraded on a rainy weekend by Lea.",
		"My brother is Ana's best customer.",
	} {
		docs = append(docs, Doc{ID: fmt.Sprint("t", i), Class: ClassEpisode, Author: "Ana", Text: text, Group: fmt.Sprint("g", i)})
	}
	docs = append(docs, Doc{ID: "ben", Class: ClassEpisode, Author: "Ben", Text: "Hello my dear sister Ana!"})
	x := memoryOf(t, docs...)
	for q, want := range map[string]string{
		"What did Ana and her sister have a row about?": "t1",
		"When did Farid have the stroke?":               "t3",
		"When was the cluster upgraded?":                "t5",
	} {
		if got, _, _ := strings.Cut(answerIDs(recallFrom(t, x, Question{Text: q, Policy: loose()})), " "); got != want {
			t.Errorf("%q: %q comes first, want %q", q, got, want)
		}
	}
	view(t, x, func(tx *Tx) error {
		for q, want := range map[string]string{
			"her sister": "sister=ines", "Who is this Ines?": "ines=sister", "the brother": "", "the cluster": "cluster=phoenix", "the mill": "",
		} {
			a, v, err := tx.d.ask(Question{Text: q, Reader: Reader{Project: "p"}}, x)
			if err != nil {
				return err
			}
			g := &ledge{d: tx.d, a: &a, v: v}
			cs, err := g.candidates(t.Context())
			if err != nil {
				return err
			}
			r, err := order(a, cs, g)
			if err != nil {
				return err
			}
			var got []string
			for _, s := range r.aliases() {
				got = append(got, s.of+"="+s.term)
			}
			slices.Sort(got)
			if s := strings.Join(got, " "); s != want {
				t.Errorf("%q: got %q, want %q", q, s, want)
			}
		}
		return nil
	})
}

func FuzzCalled(f *testing.F) {
	for _, s := range []string{"my sister Ines", "日本語のテスト sister Ines", "dog, Rex. dog\nMax", "ｻｰﾊﾞｰ server \xff Rex", "sister called is Ines"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		r := &ranking{}
		for _, of := range []string{"sister", "ines", "dog"} {
			for _, a := range r.called(s, &concept{text: of}) {
				if a.of != of || a.term == "" || a.term == of {
					t.Fatalf("%q: %+v", s, a)
				}
			}
		}
	})
}
