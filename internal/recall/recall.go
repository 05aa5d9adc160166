package recall

import (
	"context"
	"fmt"
	"slices"

	"github.com/ncruces/go-sqlite3"
)

// maxElsewhere is how many other projects an empty answer names.
const maxElsewhere = 5

// Recall brings the index up to date, as far as that is quick, and answers a
// question with what fits best, or with nothing. Where another process holds
// the index's lock and ctx has a deadline, the answer comes from the index as
// it is. What every file says, files written in place in a large memory
// included, is in it after Refresh.
func (x *Index) Recall(ctx context.Context, q Question) (Answer, error) {
	q = x.withVector(ctx, q)
	return x.withDerived(ctx, q, func(d *db) (Answer, error) { return d.recall(ctx, q, x) })
}

// withDerived answers from an index whose derived part is there, unless this
// program leaves making it to others.
func (x *Index) withDerived(ctx context.Context, q Question, answer func(*db) (Answer, error)) (Answer, error) {
	if !x.o.NoBuild {
		if err := x.derive(ctx); err != nil {
			return Answer{}, err
		}
	}
	out, err := x.upToDate(ctx, q.Reader, false, answer)
	if err != nil {
		return Answer{}, fmt.Errorf("recall: %w", err)
	}
	return out, nil
}

// upToDate answers from one state of the index, after what the reader's files
// say was taken in; all is refresh's.
func (x *Index) upToDate(ctx context.Context, r Reader, all bool, answer func(*db) (Answer, error)) (out Answer, err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	err = x.mended(ctx, func() error {
		if err := x.refresh(ctx, r.Project, r.All || r.Wide, all); err != nil {
			return err
		}
		return x.db.reading(ctx, func() (err error) {
			out, err = answer(x.db)
			return err
		})
	})
	return out, err
}

// Recall answers from this transaction's state, without a look at files.
func (tx *Tx) Recall(ctx context.Context, x *Index, q Question) (Answer, error) {
	if tx.w != nil {
		return Answer{}, fmt.Errorf("recall: in Update the words of what was put are not searchable yet: use View")
	}
	return tx.d.recall(ctx, q, x)
}

func (d *db) recall(ctx context.Context, q Question, x *Index) (Answer, error) {
	a, v, err := d.ask(q, x)
	if err != nil {
		return Answer{}, err
	}
	out, err := d.answer(ctx, a, v)
	if err != nil || !q.Elsewhere || len(out.Results) > 0 || q.All || q.Wide || len(a.terms) == 0 {
		return out, err
	}
	out.Elsewhere, err = d.elsewhere(ctx, a)
	return out, err
}

func (d *db) ask(q Question, x *Index) (asked, *sight, error) {
	now := x.o.Now()
	v := newSight(q, now)
	a := asked{Question: q, policy: DefaultPolicy(), now: v.now, corpus: d.corpus}
	if q.Policy != nil {
		a.policy = *q.Policy
	}
	var err error
	a.terms, err = d.terms(q.Text, weightsOf(a.policy), nil)
	return a, v, err
}

func (d *db) answer(ctx context.Context, a asked, v *sight) (Answer, error) {
	r, err := d.ordered(ctx, a, v)
	if err != nil {
		return Answer{Policy: a.policy.ID}, err
	}
	for _, text := range clauses(a.Text) {
		b := a
		b.Text, b.Keys, b.Vector = text, nil, nil
		if b.terms, err = d.terms(text, r.w, nil); err != nil {
			return Answer{}, err
		}
		p, err := d.ordered(ctx, b, v)
		if err != nil {
			return Answer{}, err
		}
		r.join(p)
	}
	return r.answer()
}

// ordered are the documents that match a question, the best first.
func (d *db) ordered(ctx context.Context, a asked, v *sight) (*ranking, error) {
	g := &ledge{d: d, a: &a, v: v}
	cs, err := g.candidates(ctx)
	if err != nil {
		return nil, err
	}
	r, err := order(a, cs, g)
	if err != nil || a.also != nil {
		return r, err
	}
	also := r.aliases()
	if len(also) == 0 {
		return r, nil
	}
	a.also = also
	if a.terms, err = d.terms(a.Text, r.w, also); err != nil {
		return nil, err
	}
	return d.ordered(ctx, a, v)
}

// elsewhere names the other projects and places that have an answer that everyone in them
// may see, the best first.
func (d *db) elsewhere(ctx context.Context, a asked) ([]string, error) {
	others, err := d.number(`SELECT EXISTS(SELECT 1 FROM projects WHERE name<>?)`, a.Project)
	if err != nil || others == 0 {
		return nil, err
	}
	who := a.Reader
	a.Reader, a.Keys, a.Exclude, a.Explain, a.Max = Reader{All: true}, nil, nil, false, 0
	out, err := d.answer(ctx, a, &sight{Reader: Reader{All: true}, classes: a.Classes, asOf: a.AsOf, now: a.now, classBits: newSight(a.Question, a.now).classBits, open: true})
	if err != nil {
		return nil, err
	}
	var names []string
	for _, r := range out.Results {
		if !who.Sees(r.Project) && !slices.Contains(names, r.Project) && len(names) < maxElsewhere {
			names = append(names, r.Project)
		}
	}
	return names, nil
}

// Projects lists the projects that have documents, in order of name.
func (tx *Tx) Projects() ([]string, error) {
	var out []string
	err := tx.d.rows(`SELECT name FROM projects ORDER BY name`, func(s *sqlite3.Stmt) { out = append(out, s.ColumnText(0)) })
	return out, err
}
