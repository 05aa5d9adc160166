package recall

import (
	"context"
	"slices"

	"github.com/ncruces/go-sqlite3"

	"reprise/internal/mdfile"
)

// Latest lists without a question: what the reader may see, of the classes of q or of all
// but the index file's, by when it became known, the newest first. Nothing is weighed, and
// none is left out for another that says the same, but for what was promoted: the same words
// for one project and for all are listed once. There are q.Max documents at most, or
// 0 = DefaultMax, in q.MaxTokens tokens, or 0 = as many as it takes; more says that others
// follow.
func (x *Index) Latest(ctx context.Context, q Question) (a Answer, more bool, err error) {
	q.Text, q.Keys, q.Vector = "", nil, nil
	a, err = x.withDerived(ctx, q, func(d *db) (a Answer, err error) {
		a, more, err = d.latest(q, x)
		return a, err
	})
	return a, more, err
}

func (d *db) latest(q Question, x *Index) (Answer, bool, error) {
	a, v, err := d.ask(q, x)
	if err != nil {
		return Answer{}, false, err
	}
	if q.Max <= 0 {
		q.Max = DefaultMax
	}
	out := Answer{Policy: a.policy.ID}
	var rows []int64
	err = d.rows(`SELECT row FROM docs ORDER BY time DESC, id`, func(s *sqlite3.Stmt) {
		if row := s.ColumnInt64(0); v.maybe(row) {
			rows = append(rows, row)
		}
	})
	g := &ledge{d: d, a: &a, v: v}
	told := saidOf{}
	for _, row := range rows {
		c, lerr := g.load(row)
		if lerr != nil {
			return out, false, lerr
		}
		if c == nil {
			continue // not for the reader's eyes
		}
		if told.again(&c.Doc) {
			continue
		}
		room := 1 << 30
		if q.MaxTokens > 0 {
			room = q.MaxTokens - out.Tokens
		}
		res := newestResult(&c.Doc, room)
		if len(out.Results) == q.Max || res.Tokens > room {
			return out, true, nil
		}
		out.Tokens += res.Tokens
		out.Results = append(out.Results, res)
	}
	return out, false, err
}

// newestResult is a document as a list shows it, in so many tokens where that can be.
func newestResult(d *Doc, room int) Result {
	head := overhead + mdfile.Tokens(d.Title)
	text, cost := cutTo(d.Text, nil, room-head)
	return Result{Doc: *d, Snippet: text, Tokens: cost + head}
}

// saidOf are the scopes of the learnings and decisions that a list has, by what they say.
type saidOf map[[3]string][]string

// again says that a learning or a decision was listed in the same words for another scope, of
// which one is wider: what was promoted is listed once, and not with what it was made from.
func (s saidOf) again(d *Doc) bool {
	if d.Class != ClassLearning && d.Class != ClassDecision {
		return false
	}
	words := [3]string{string(d.Class), d.Title, d.Text}
	if slices.ContainsFunc(s[words], func(project string) bool { return project != d.Project && (project == "" || d.Project == "") }) {
		return true
	}
	s[words] = append(s[words], d.Project)
	return false
}
