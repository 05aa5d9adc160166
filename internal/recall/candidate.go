package recall

import "time"

// The fields of a document that are searched, each with a weight of its own in
// the ranking.
const (
	fieldTitle  = iota // title, and for a file's section its name and headings
	fieldAuthor        // who said it
	fieldText
	fieldCount
)

// queryTerm is one word of a question that occurs in the index.
type queryTerm struct {
	text string // as it is indexed: cut and stemmed
	df   int64  // documents that have it, whoever may see them
	stop bool   // a word that says nothing; used only where there is no other
	own  bool   // the question's, not one that is related to it
	// weight is 1 for the question's own word, less for a part of an
	// identifier and for a word that is related to one of the question.
	weight float64
}

// corpus is what BM25 needs to know of all documents together.
type corpus struct {
	docs   int64
	tokens [fieldCount]int64 // words in all documents, by field
}

// average is the mean number of words of a field, at least one.
func (c corpus) average(field int) float64 {
	if c.docs == 0 {
		return 1
	}
	return max(1, float64(c.tokens[field])/float64(c.docs))
}

// candidate is a document that matches a question and that the reader may see.
// Its Doc has everything but Text, Facts, Keys and Data, which fill brings.
type candidate struct {
	Doc
	row int64
	// tf are the counts of the question's words, in the order of the terms, by
	// field; at 255 counting stops.
	tf     [][fieldCount]uint8
	length [fieldCount]int // words
	// exact: it has one of the question's keys, and is an answer whatever its
	// words are.
	exact  bool
	filled bool
	file   int64 // of the section; 0 = no file's
	line   int
}

// ground is where a ranking gets what it needs beyond the candidates. All
// answers come from the same state of the index as the candidates, and hold
// only what the reader may see at the question's time.
type ground interface {
	// around returns the documents of a group with from ≤ Ord ≤ to, in their
	// order, with tf counted.
	around(group string, from, to int) ([]*candidate, error)
	// fill reads Text, Facts, Keys and Data of candidates.
	fill(...*candidate) error
	// byID returns the candidates that exist and may be seen, with tf counted
	// and filled: documents that were found some other way, such as by vectors.
	byID(ids ...string) ([]*candidate, error)
	// byFact returns ids of the documents that state something about a fact's
	// key (fact.Fact.Key), in order of Time and ID.
	byFact(key string) ([]string, error)
	// vectors calls each for every stored vector of a model that belongs to a
	// document of the reader's. The slice is each's only until it returns.
	vectors(model string, each func(id string, v []float32)) error
}

// asked is a question made ready: what a ranking is a function of, beside the
// candidates.
type asked struct {
	Question
	policy Policy
	now    time.Time   // Question.AsOf, or the clock's
	terms  []queryTerm // the rarest first
	also   []alias     // other words for some of the question's
	// visible is how many documents the reader may see, and local how many of
	// them each of terms has; nil where that is not known.
	visible int64
	local   []int64
	corpus  corpus
}
