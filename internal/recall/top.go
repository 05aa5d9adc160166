package recall

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/ncruces/go-sqlite3"
)

// topClasses are what a session is told without having asked: knowledge, and
// where the last sessions left off. Single episodes wait for a question.
func topClasses() []Class {
	return []Class{ClassSummary, ClassProfile, ClassDecision, ClassLearning, ClassPattern, ClassAntiPattern}
}

const (
	topSummaries = 2   // newest sessions that are told of
	topMost      = 40  // documents of another class that are looked at
	topLooked    = 400 // of which the reader may not be allowed to see some
	topHalfLife  = 30 * 24 * time.Hour
	topThreshold = 0.2 // prominence below which nothing is said
)

// Top answers without a question: what matters most to the reader now. It obeys
// the same budgets, scopes and rules about contradictions as Recall. Single
// episodes are not told unasked, even where Classes names them.
func (x *Index) Top(ctx context.Context, q Question) (Answer, error) {
	q.Text, q.Keys = "", nil
	return x.withDerived(ctx, q, func(d *db) (Answer, error) { return d.top(q, x) })
}

func (d *db) top(q Question, x *Index) (Answer, error) {
	a, v, err := d.ask(q, x)
	if err != nil {
		return Answer{}, err
	}
	g := &ledge{d: d, a: &a, v: v}
	r := &ranking{asked: a, w: weightsOf(a.policy), g: g, byID: map[string]*scoredDoc{}, groups: map[string][]*scoredDoc{}}
	classes := q.Classes
	if len(classes) == 0 {
		classes = topClasses()
	}
	for _, class := range classes {
		rows, most, err := d.prominent(class, q.Reader)
		if err != nil {
			return Answer{}, err
		}
		for taken := 0; len(rows) > 0 && taken < most; rows = rows[1:] {
			c, err := g.load(rows[0])
			if err != nil {
				return Answer{}, err
			}
			if c == nil {
				continue // not for the reader's eyes
			}
			taken++
			sd := &scoredDoc{candidate: c}
			sd.score, sd.signals = prominence(&c.Doc, a.now)
			sd.quality = 1
			if sd.score >= topThreshold {
				r.docs = append(r.docs, sd)
				r.byID[c.ID] = sd
			}
		}
	}
	r.sort(func(d *scoredDoc) float64 { return d.score })
	return r.answer()
}

// prominent are rows of a class, the first ones first: at most topLooked, of
// which most are wanted. Only an index is read, for a class may have a hundred
// thousand documents.
func (d *db) prominent(class Class, reader Reader) (rows []int64, most int, err error) {
	type entry struct {
		row        int64
		importance float64
		time       int64
		id         string
	}
	var all []entry
	where, order, importance := `d.class=? AND d.class<>'episode'`, `d.importance DESC, d.time DESC, d.id`, `d.importance`
	args := []any{string(class)}
	most = topMost
	if class == ClassSummary {
		where, order, importance, args, most = `d.class='summary'`, `d.time DESC, d.id`, `0.0`, nil, topSummaries
	}
	each := func(where string, args ...any) error {
		return d.rows(`SELECT d.row, `+importance+`, d.time, d.id FROM docs d WHERE `+where+` ORDER BY `+order+` LIMIT ?`, func(s *sqlite3.Stmt) {
			all = append(all, entry{s.ColumnInt64(0), s.ColumnFloat(1), s.ColumnInt64(2), s.ColumnText(3)})
		}, append(slices.Clone(args), topLooked)...)
	}
	if reader.All || reader.Wide {
		err = each(where, args...)
	} else {
		// One after the other, each in the order of the index: with an IN they
		// would all be sorted.
		var of []string
		for _, p := range append([]string{"", reader.Project}, reader.Places...) {
			if err == nil && !slices.Contains(of, p) {
				of = append(of, p)
				err = each(where+` AND d.project=?`, append(args, p)...)
			}
		}
	}
	slices.SortFunc(all, func(a, b entry) int {
		return cmp.Or(cmp.Compare(b.importance, a.importance), cmp.Compare(b.time, a.time), strings.Compare(a.id, b.id))
	})
	for _, e := range all[:min(len(all), topLooked)] {
		rows = append(rows, e.row)
	}
	return rows, most, err
}

// prominence is how much a document deserves to be told unasked, in [0,1].
func prominence(d *Doc, now time.Time) (float64, map[string]float64) {
	age := max(now.Sub(d.Time), 0)
	s := map[string]float64{
		"importance": 0.4 * d.Importance,
		"confidence": 0.2 * d.Confidence,
		"recency":    0.3 * math.Pow(0.5, float64(age)/float64(topHalfLife)),
	}
	switch d.Class {
	case ClassDecision, ClassLearning, ClassProfile:
		s["class"] = 0.1 // a person or a gate stands for it
	case ClassSummary:
		s["class"] = 0.05
	}
	sum := 0.0
	for _, k := range []string{"importance", "confidence", "recency", "class"} { // in order: sums of floats depend on it
		sum += s[k]
	}
	return round(sum), s
}
