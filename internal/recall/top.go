package recall

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/ncruces/go-sqlite3"
)

// topClasses are what a session is told without having asked: knowledge, and
// where the last sessions left off. Single episodes wait for a question.
func topClasses() []Class {
	return []Class{ClassSummary, ClassProfile, ClassDecision, ClassLearning, ClassPattern, ClassAntiPattern}
}

const (
	topSummaries = 2  // newest sessions that are told of
	topMost      = 40 // documents of another class that are looked at
	topHalfLife  = 30 * 24 * time.Hour
	topThreshold = 0.2 // prominence below which nothing is said
)

// Top answers without a question: what matters most to the reader now. It obeys
// the same budgets, scopes and rules about contradictions as Recall.
func (x *Index) Top(ctx context.Context, q Question) (Answer, error) {
	q.Text, q.Keys = "", nil
	if !x.o.NoBuild {
		if err := x.derive(ctx); err != nil {
			return Answer{}, err
		}
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	var out Answer
	err := x.mended(ctx, func() error {
		if err := x.refresh(ctx, q.Project, q.All || q.Wide, false); err != nil {
			return err
		}
		return x.db.reading(ctx, func() (err error) {
			out, err = x.db.top(q, x)
			return err
		})
	})
	if err != nil {
		return Answer{}, fmt.Errorf("recall: %w", err)
	}
	return out, nil
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
	everywhere := 0
	if q.All || q.Wide {
		everywhere = 1
	}
	for _, class := range classes {
		order, most := `d.importance DESC, d.time DESC, d.id`, topMost
		if class == ClassSummary {
			order, most = `d.time DESC, d.id`, topSummaries
		}
		taken := 0
		// The reader may not be allowed to see some: more are read than are wanted.
		err := d.rows(`SELECT `+head+`, `+tail+` FROM docs d WHERE d.class=? AND (? OR d.project IN (?, '')) ORDER BY `+order+` LIMIT 400`, func(s *sqlite3.Stmt) {
			if taken == most {
				return
			}
			var st stored
			scanHead(s, &st)
			scanTail(s, headColumns, &st.Doc)
			c := g.whole(&st)
			if c == nil {
				return
			}
			taken++
			sd := &scoredDoc{candidate: c}
			sd.score, sd.signals = prominence(&c.Doc, a.now)
			sd.quality = 1
			if sd.score >= topThreshold {
				r.docs = append(r.docs, sd)
				r.byID[c.ID] = sd
			}
		}, string(class), everywhere, q.Project)
		if err != nil {
			return Answer{}, err
		}
	}
	r.sort(func(d *scoredDoc) float64 { return d.score })
	return r.answer()
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
