package lexicon

import (
	_ "embed"
	"strings"
)

// relatedTable is made of related.txt by this package's tests with -update: a
// line a stem, sorted, with the stems that it may stand for or be stood for by;
// ">" before those that are members of the kind that it names. It is searched as
// it stands: a program that asks one question shall not pay for reading it all.
//
//go:embed related.tab
var relatedTable string

// Relation leads from a word to another, with the weight that a match of the
// other has against one of the word itself.
type Relation struct {
	Term   string
	Member bool // of the kind that the word names
}

// Related are the words that a stem may stand for or be stood for by.
func Related(term string) []Relation {
	from, to := 0, len(relatedTable) // beginnings of lines
	for from < to {
		mid := from + strings.LastIndexByte(relatedTable[from:(from+to)/2], '\n') + 1
		line, _, _ := strings.Cut(relatedTable[mid:], "\n")
		stem, others, _ := strings.Cut(line, " ")
		switch {
		case stem == term:
			var out []Relation
			for o := range strings.FieldsSeq(others) {
				t, member := strings.CutPrefix(o, ">")
				out = append(out, Relation{t, member})
			}
			return out
		case stem < term:
			from = mid + len(line) + 1
		default:
			to = mid
		}
	}
	return nil
}
