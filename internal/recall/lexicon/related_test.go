package lexicon

import (
	"flag"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "make related.tab of related.txt")

// tableOf reads related.txt. A line of words that are used for one another: each
// leads to all the others. "kind > members": the kind leads to its members.
func tableOf(source string) string {
	m := map[string][]string{}
	add := func(from, to, mark string) {
		if from != to && !slices.Contains(m[from], to) && !slices.Contains(m[from], ">"+to) {
			m[from] = append(m[from], mark+to)
		}
	}
	stemmed := func(w string) string { return normal([]byte(w), true) }
	for line := range strings.Lines(source) {
		if kind, members, ok := strings.Cut(line, " > "); ok {
			for w := range strings.FieldsSeq(members) {
				add(stemmed(kind), stemmed(w), ">")
			}
			continue
		}
		words := strings.Fields(line)
		for _, a := range words {
			for _, b := range words {
				add(stemmed(a), stemmed(b), "")
			}
		}
	}
	var b strings.Builder
	for _, k := range slices.Sorted(maps.Keys(m)) {
		b.WriteString(k + " " + strings.Join(m[k], " ") + "\n")
	}
	return b.String()
}

// TestRelatedTable: the table is what its source gives, and every stem of it is
// found, with what stands on its line.
func TestRelatedTable(t *testing.T) {
	source, err := os.ReadFile("related.txt")
	if err != nil {
		t.Fatal(err)
	}
	want := tableOf(string(source))
	if *update {
		if err := os.WriteFile("related.tab", []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		relatedTable = want
	}
	if relatedTable != want {
		t.Fatal("related.tab is not what related.txt gives: run go test ./internal/recall/lexicon -update")
	}
	for line := range strings.Lines(want) {
		stem, others, _ := strings.Cut(strings.TrimSpace(line), " ")
		var got []string
		for _, r := range Related(stem) {
			if r.Member {
				r.Term = ">" + r.Term
			}
			got = append(got, r.Term)
		}
		if strings.Join(got, " ") != others {
			t.Errorf("%s: got %q, want %q", stem, got, others)
		}
	}
	for _, w := range []string{"", "zzz", "a", "kitt", "kittenz", "\xff"} {
		if r := Related(w); r != nil {
			t.Errorf("%q is related to %v", w, r)
		}
	}
}

func BenchmarkRelated(b *testing.B) {
	for b.Loop() {
		Related("kitten")
	}
}
