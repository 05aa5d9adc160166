package web

import (
	"context"
	"net/http"

	"reprise/internal/loop/core"
	"reprise/internal/loop/tell"
	"reprise/internal/queue"
	"reprise/internal/run"
	"reprise/internal/task"
	"reprise/internal/term"
)

// recentRuns is how many runs the overview lists.
const recentRuns = 8

func (s *Server) overviewRoutes() { s.mux.HandleFunc("GET /{$}", s.overview) }

// matter is something that waits for a person.
type matter struct {
	Tone, Text, Path, Act string
	Command               string // what a person gives in a terminal, where no page does it
}

type overviewPage struct {
	Matters []matter
	Active  []runRow
	Recent  []runRow
	Runs    int // of this project
	Others  int // of other projects, or of none
	Loop    loopView
	Queue   map[string]int
	// QueueAway says that nothing is known of the queue, which is not that nothing is there.
	QueueAway bool
	HasWork   bool
	Next      string // the item that would be claimed
	Tasks     *taskCard
	Fleet     *fleetCard // nil where the queue is on this machine
	Trouble   []string
	NoClient  bool // none is on this machine that could be started
}

// taskCard is how the list of tasks stands.
type taskCard struct {
	At, Open, Waiting, Done int
}

func (s *Server) overview(w http.ResponseWriter, r *http.Request) {
	p := overviewPage{Queue: map[string]int{}, HasWork: s.deps.Queue != nil, Loop: s.loopView()}
	list, err := s.allRuns(r.Context())
	if err != nil {
		p.Trouble = append(p.Trouble, err.Error())
	}
	refused := s.refused()
	for _, rec := range list {
		where := ""
		if rec.Project == s.deps.Project {
			p.Runs++
		} else {
			p.Others++
			if where = " outside any project"; rec.Project != "" {
				where = " of project " + rec.Project
			}
		}
		switch {
		case !rec.Status.Settled():
			p.Active = append(p.Active, s.runRow(rec, refused))
		case len(p.Recent) < recentRuns:
			p.Recent = append(p.Recent, s.runRow(rec, refused))
		}
		// Of a loop's runs the loop tells below, for as long as somebody is waited for.
		if rec.Status == run.Interrupted && rec.Origin != "loop" && rec.ResumedBy == "" {
			p.Matters = append(p.Matters, matter{Tone: "warn", Text: "Run " + rec.ID + where + " was interrupted: " + oneLine(160, rec.StatusReason), Path: "/runs/" + rec.ID, Act: "Look at it"})
		}
	}
	var asks []matter
	var asked []string
	for _, q := range p.Loop.Open {
		asked = append(asked, q.Item)
		if q.Stopped() {
			asks = append(asks, matter{Tone: "warn", Text: q.Words(), Path: "/work#" + s.boxOf(&q.Question), Act: "Let it go on"})
			continue
		}
		asks = append(asks, matter{Tone: "warn", Text: "The loop waits for your answer about " + q.Item + ": " + oneLine(200, q.Why), Path: "/work#" + s.boxOf(&q.Question), Act: "Answer"})
	}
	if i := p.Loop.Interrupt; tell.Beside(i, asked) && p.Loop.State.Phase != core.Finished {
		asks = append(asks, matter{Tone: "warn", Text: "The loop waits for you: " + oneLine(200, i.Why), Path: "/work#answer", Act: "Look at it"})
	}
	if s.deps.Fleet != nil {
		state, err := s.fleetNow(r.Context())
		p.Fleet = s.fleetCard(r.Context(), state, err)
		asks = append(asks, s.waitsAfar(state)...)
	}
	p.Matters = append(asks, p.Matters...)
	s.mergeable(r.Context(), &p)
	if p.Loop.Trouble != "" {
		p.Trouble = append(p.Trouble, p.Loop.Trouble)
	}
	s.callsWait(&p)
	if s.deps.Waits != nil {
		waits, err := s.deps.Waits(r.Context())
		if err != nil {
			p.Trouble = append(p.Trouble, err.Error())
		}
		for _, w := range waits {
			p.Matters = append(p.Matters, matter{Tone: "warn", Text: w.Text, Command: w.Command})
		}
	}
	if s.deps.Queue != nil {
		items, err := s.allItems(r.Context())
		if err != nil {
			p.Trouble = append(p.Trouble, err.Error())
			p.QueueAway = true
		}
		given := 0
		for _, it := range items.Items {
			p.Queue[string(it.State)]++
			if it.State == queue.Dead && !it.Dropped() {
				given++
			}
			if p.Next == "" && it.State == queue.Ready {
				p.Next = it.Title
			}
		}
		if given > 0 {
			p.Matters = append(p.Matters, matter{Tone: "bad", Text: term.Plural(given, "item") + " given up", Path: "/work#dead", Act: "See why"})
		}
	}
	p.NoClient = len(p.Active) == 0 && s.deps.Client != nil && !s.deps.Client()
	if s.deps.Tasks != nil {
		if p.Tasks, err = s.taskCard(r.Context()); err != nil {
			p.Trouble = append(p.Trouble, err.Error())
		}
	}
	s.show(w, r, "overview", s.view(r, "overview", "Overview", p))
}

// callsWait tells of calls that wait for a person's word, before all else.
func (s *Server) callsWait(p *overviewPage) {
	if s.deps.Guard == nil {
		return
	}
	waiting, err := s.deps.Guard.Waiting()
	if err != nil {
		p.Trouble = append(p.Trouble, err.Error())
	}
	if n := len(waiting); n > 0 {
		text := "A call of an agent waits for your word"
		if n > 1 {
			text = term.Plural(n, "call") + " of agents wait for your word"
		}
		p.Matters = append([]matter{{Tone: "warn", Text: text, Path: "/guard", Act: "Look"}}, p.Matters...)
	}
}

// taskCard counts the list of tasks.
func (s *Server) taskCard(ctx context.Context) (card *taskCard, err error) {
	err = s.withBoard(ctx, func(b *task.Board) error {
		card = &taskCard{}
		for _, t := range b.State.Tasks {
			switch t.Status {
			case task.InProgress:
				card.At++
			case task.Blocked, task.Partial:
				card.Waiting++
			case task.Completed:
				card.Done++
			case task.NotStarted, task.Researched, task.Planned:
				card.Open++
			case task.Abandoned:
			}
		}
		return nil
	})
	return card, err
}
