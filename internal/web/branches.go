package web

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"reprise/internal/loop"
	"reprise/internal/loop/report"
	"reprise/internal/web/watch"
)

// branchesNamed is how many branches a sentence names.
const branchesNamed = 4

// branchRow is a branch with work that is done, and not merged.
type branchRow struct {
	Name string
	Why  string // nobody is to merge it before this is seen to
}

func (s *Server) unmerged(ctx context.Context) ([]loop.Iteration, error) {
	if s.deps.Unmerged == nil {
		return nil, nil
	}
	return s.deps.Unmerged(ctx)
}

func branch(it loop.Iteration) branchRow {
	b := branchRow{Name: it.Branch}
	switch it.Put {
	case report.Owed:
		b.Why = "a loop has tried that, and could not"
	case report.Personal:
		b.Why = "a person has to see to something first"
	}
	return b
}

// branchOf is the branch in which an item's work waits to be merged, nil where there is none,
// or nobody can say: the overview tells why.
func (s *Server) branchOf(ctx context.Context, item string) *branchRow {
	list, _ := s.unmerged(ctx)
	for _, it := range list {
		if it.Item == item {
			b := branch(it)
			return &b
		}
	}
	return nil
}

// mergeable tells, on the overview, of work that waits to be merged.
func (s *Server) mergeable(ctx context.Context, p *overviewPage) {
	done, err := s.unmerged(ctx)
	if err != nil {
		p.Trouble = append(p.Trouble, err.Error())
	}
	if len(done) > 0 {
		p.Matters = append(p.Matters, toMerge(done))
	}
}

// toMerge says how work that lies in branches comes to where a person works.
func toMerge(list []loop.Iteration) matter {
	var names []string
	for _, it := range list[:min(len(list), branchesNamed)] {
		names = append(names, it.Branch)
	}
	if more := len(list) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	where := fmt.Sprintf("%d branches", len(list))
	if len(list) == 1 {
		where = "a branch"
	}
	m := matter{Tone: "warn", Text: "Work that is done is in " + where + ", not merged: " + strings.Join(names, ", "), Command: "reprise loop report"}
	if b := branch(list[0]); len(list) == 1 {
		m.Path, m.Act = "/work/items/"+list[0].Item, "Look at it"
		if b.Why == "" {
			m.Command = "git merge " + b.Name
		}
	}
	return m
}

// loopLook is what is shown of the loop: its files, and what was merged or checked out last,
// which is told to git and not to the loop.
func (s *Server) loopLook(l *watch.Look) {
	l.Dir(s.deps.LoopDir, true)
	if s.deps.Root != "" {
		l.File(filepath.Join(s.deps.Root, ".git", "logs", "HEAD"))
	}
}

// boxOf is the part of a page at which a question is answered: the field, so that the keyboard
// is in it at once, and the box around it where there is none.
func (s *Server) boxOf(q *loop.Question) string {
	if q.Stopped() || s.deps.ReadOnly {
		return "answer-" + q.Item
	}
	return "reply-" + q.Item
}

// boxes are the places where what agents have asked is answered, by the item that it is
// about: until then the item stays set aside, and cannot be put back.
func (s *Server) boxes(ctx context.Context, v loopView) map[string]string {
	out := map[string]string{}
	if s.deps.Fleet != nil {
		state, _ := s.fleetNow(ctx) // the overview says where nothing is known of it
		for _, l := range state.Loops {
			row, ok := loopAfar(s.deps.Fleet.Project, l, state.Workers)
			if !ok {
				continue
			}
			for _, q := range row.Open {
				if q.Asked() {
					out[q.Item] = "/fleet#" + s.boxOf(&q.Question)
				}
			}
		}
	}
	for _, q := range v.Open {
		if q.Asked() {
			out[q.Item] = "/work#" + s.boxOf(&q.Question)
		}
	}
	return out
}

// answerable gives rows of items that are set aside the place where they are answered.
func (s *Server) answerable(ctx context.Context, rows []itemRow, v loopView) {
	if len(rows) == 0 {
		return
	}
	boxes := s.boxes(ctx, v)
	for i := range rows {
		rows[i].Answer = boxes[rows[i].ID]
	}
}
