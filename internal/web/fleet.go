package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"reprise/internal/fleet"
	"reprise/internal/loop"
	"reprise/internal/loop/core"
	"reprise/internal/relay"
	"reprise/internal/worker/elsewhere"
)

// Times of what is asked of a fleet's servers for pages.
const (
	// FleetPatience is how long a page waits for them; what it opens Queue with.
	FleetPatience = 5 * time.Second
	// fleetFresh is how long what they said is shown again, and fleetAway how long a page
	// says that they are away without asking them anew.
	fleetFresh = time.Second
	fleetAway  = 3 * time.Second
	// endedFresh is the same for the runs that have ended, of which there may be many.
	endedFresh = 10 * time.Second
	// fleetAsk is how often they are asked what has changed while a page is open, and
	// fleetDraw how often a page is drawn anew where nothing has: a worker that says
	// nothing any more changes nothing.
	fleetAsk  = 2 * time.Second
	fleetDraw = 15 * time.Second
)

func (s *Server) fleetRoutes() {
	s.mux.HandleFunc("GET /fleet", s.fleetShow)
	s.mux.HandleFunc("POST /fleet/loops/{worker}/{op}", s.fleetLoopAsk)
	s.mux.HandleFunc("GET /fleet/runs/{id}", s.fleetRunShow)
	s.mux.HandleFunc("GET /fleet/runs/{id}/stream", s.fleetRunStream)
	s.mux.HandleFunc("POST /fleet/runs/{id}/stop", s.fleetRunStop)
}

// fleetState is what workers say.
type fleetState struct {
	Workers []relay.Worker // of the project, or outside any of all
	Loops   []elsewhere.Loop
	Trouble []string
}

// afar is what was heard of the fleet's servers.
type afar struct {
	mu    sync.Mutex
	at    time.Time
	state fleetState
	err   error

	endedMu sync.Mutex
	endedAt time.Time
	ended   []elsewhere.Run

	// What the watcher knows of changes; it never waits for servers.
	signMu         sync.Mutex
	asking         bool
	asked          time.Time
	drawn          time.Time
	workers, items uint64 // numbers of the servers
	sign           uint64 // grows with what a page should be drawn anew for
}

// fleetNow is what workers say, asked for anew where that was a while ago. The error is of
// servers that are away.
func (s *Server) fleetNow(ctx context.Context) (fleetState, error) {
	a := &s.afar
	a.mu.Lock()
	defer a.mu.Unlock()
	keep := fleetFresh
	if a.err != nil {
		keep = fleetAway
	}
	if now := s.deps.Now(); !a.at.IsZero() && now.Sub(a.at) < keep {
		return a.state, a.err
	}
	ctx, cancel := context.WithTimeout(ctx, FleetPatience)
	defer cancel()
	state, err := s.askFleet(ctx)
	if errors.Is(err, context.Canceled) {
		return state, err // the page was closed, which says nothing of the servers
	}
	a.at, a.state, a.err = s.deps.Now(), state, err
	return state, err
}

func (s *Server) askFleet(ctx context.Context) (st fleetState, err error) {
	f := s.deps.Fleet
	if st.Workers, err = f.Workers(ctx); err != nil || f.Project == "" {
		return st, err
	}
	st.Workers = slices.DeleteFunc(st.Workers, func(w relay.Worker) bool { return !slices.Contains(w.Projects, f.Project) })
	st.Loops, err = f.Loops(ctx, func(worker string, err error) {
		st.Trouble = append(st.Trouble, fmt.Sprintf("The worker %s: %v", worker, err))
	})
	if err != nil {
		return st, err
	}
	// A loop that runs here is told of on a page of its own.
	if others, err := elsewhere.Others(s.deps.LoopDir, st.Loops); err == nil {
		st.Loops = others
	}
	return st, nil
}

// forgetFleet has the next page ask anew: somebody has asked something of the fleet.
func (s *Server) forgetFleet() {
	s.afar.mu.Lock()
	s.afar.at = time.Time{}
	s.afar.mu.Unlock()
}

// endedAfar are the runs of workers that have ended, the newest first.
func (s *Server) endedAfar(ctx context.Context) ([]elsewhere.Run, error) {
	a, f := &s.afar, s.deps.Fleet
	a.endedMu.Lock()
	defer a.endedMu.Unlock()
	if !a.endedAt.IsZero() && s.deps.Now().Sub(a.endedAt) < endedFresh {
		return a.ended, nil
	}
	ctx, cancel := context.WithTimeout(ctx, FleetPatience)
	defer cancel()
	list, err := f.RunsOf(ctx, nil, f.Project)
	if err == nil {
		a.ended, a.endedAt = list, s.deps.Now()
	}
	return list, err
}

// signs are the numbers of the watcher's two sources on the servers. Where the last answer
// is old, it is asked for beside: a look at files must not wait for a network.
func (s *Server) fleetSigns() (sign, items uint64) {
	a, now := &s.afar, s.deps.Now()
	a.signMu.Lock()
	defer a.signMu.Unlock()
	if now.Sub(a.drawn) >= fleetDraw {
		a.drawn = now
		a.sign++
	}
	if !a.asking && now.Sub(a.asked) >= fleetAsk {
		a.asking, a.asked = true, now
		go s.askSigns()
	}
	return a.sign, a.items
}

func (s *Server) askSigns() {
	ctx, cancel := context.WithTimeout(context.Background(), FleetPatience)
	defer cancel()
	workers, items, err := s.deps.Fleet.Changes(ctx)
	a := &s.afar
	a.signMu.Lock()
	defer a.signMu.Unlock()
	a.asking = false
	if err != nil {
		return // the page says so, when it is drawn
	}
	if workers != a.workers || items != a.items {
		a.drawn = s.deps.Now()
		a.sign++
	}
	a.workers, a.items = workers, items
}

// afarRow is a run of another machine in a list.
type afarRow struct {
	elsewhere.Run
	Title   string // of its item
	Elapsed time.Duration
	Tokens  int64
	Cost    float64
	Class   string
	Linked  bool // there is a page of it
}

// afarRow is made of what the worker has told alone: the files that its record names are on
// another machine, and what lies here under their names is something else.
func (s *Server) afarRow(r elsewhere.Run, titles map[string]string) afarRow {
	row := afarRow{Run: r, Title: titles[r.Item], Elapsed: r.Elapsed(s.deps.Now()), Tokens: r.Heartbeat.Tokens, Class: runClass(r.Status), Linked: r.Project == s.deps.Fleet.Project && r.Project != ""}
	if row.Title == "" {
		row.Title = r.Item
	}
	if row.Title == "" {
		row.Title = r.ID
	}
	if r.Quiet {
		row.Class = "warn"
	}
	if r.Status == elsewhere.Lost {
		row.Class = "bad"
	}
	if r.Result != nil {
		row.Cost, row.Tokens = r.Result.CostUSD, max(row.Tokens, r.Result.Usage.Sum())
	}
	return row
}

// titles are the items of the queue by id.
func (s *Server) titles(ctx context.Context) (map[string]string, error) {
	out := map[string]string{}
	if s.deps.Queue == nil {
		return out, nil
	}
	list, err := s.allItems(ctx)
	for _, it := range list.Items {
		out[it.ID] = it.Title
	}
	return out, err
}

// afarLoop is how the loop of a worker stands.
type afarLoop struct {
	Worker  string
	Quiet   bool
	Ended   bool // its worker has
	Metrics loop.Metrics
	Reason  string
	Unsaved string // why what is told is from before
	Open    []*ask // what waits for a person
	// Interrupt is what it waits for that is about no item.
	Interrupt *core.Interrupt
	Budget    []gauge
	Going     bool   // its worker lives and it has not ended
	Idle      string // why nobody works in it, although nothing keeps it from that
	Reached   string // field of the ceiling at which it waits
}

type fleetPage struct {
	Servers     string
	Workers     []workerAfar
	Live, Room  int
	Going       []afarRow
	Loops       []afarLoop
	Waits       bool // one of them does, for a person
	Ended       []afarRow
	Total, From int
	Next, Prev  int // first row of the page after and before, -1 without one
	Trouble     []string
	Away        string // why nothing is known
}

// workerAfar is a worker with what it does.
type workerAfar struct {
	relay.Worker
	Does []doesAfar
}

type doesAfar struct {
	relay.Doing
	Linked bool
}

func (s *Server) fleetShow(w http.ResponseWriter, r *http.Request) {
	f := s.deps.Fleet
	p := fleetPage{Servers: f.Conn.Servers(), Next: -1, Prev: -1}
	state, err := s.fleetNow(r.Context())
	if err != nil {
		p.Away = sentence(err)
		s.show(w, r, "fleet", s.view(r, "fleet", "Fleet", p))
		return
	}
	p.Trouble = state.Trouble
	titles, err := s.titles(r.Context())
	if err != nil {
		p.Trouble = append(p.Trouble, sentence(err))
	}
	for _, one := range state.Workers {
		row := workerAfar{Worker: one}
		for _, d := range one.Doing {
			row.Does = append(row.Does, doesAfar{d, d.Project == f.Project && f.Project != "" && d.Run != ""})
		}
		if !one.Quiet {
			p.Live, p.Room = p.Live+1, p.Room+one.Room
		}
		p.Workers = append(p.Workers, row)
	}
	going, lost := f.Going(r.Context(), state.Workers, f.Project)
	for _, l := range state.Loops {
		if row, ok := loopAfar(s.deps.Fleet.Project, l, state.Workers); ok {
			p.Loops = append(p.Loops, row)
			p.Waits = p.Waits || len(row.Open) > 0 || row.Interrupt != nil
		}
	}
	ended, err := s.endedAfar(r.Context())
	if err != nil {
		p.Trouble = append(p.Trouble, sentence(err))
	}
	ended = withLost(ended, lost)
	for _, one := range going {
		if !slices.ContainsFunc(ended, func(e elsewhere.Run) bool { return e.ID == one.ID }) { // it has ended, and its worker has not said more
			p.Going = append(p.Going, s.afarRow(one, titles))
		}
	}
	p.Total, p.From = len(ended), max(0, min(number(r, "from"), len(ended)))
	if p.From > 0 {
		p.Prev = max(0, p.From-runsPerPage)
	}
	if p.From+runsPerPage < len(ended) {
		p.Next = p.From + runsPerPage
	}
	for _, one := range ended[p.From:min(len(ended), p.From+runsPerPage)] {
		p.Ended = append(p.Ended, s.afarRow(one, titles))
	}
	s.show(w, r, "fleet", s.view(r, "fleet", "Fleet", p))
}

// withLost are the runs that have ended with those that are lost, the newest first. How a run
// ended counts, where its worker has told it.
func withLost(ended, lost []elsewhere.Run) []elsewhere.Run {
	out := slices.Clone(ended)
	for _, one := range lost {
		if !slices.ContainsFunc(ended, func(e elsewhere.Run) bool { return e.ID == one.ID }) {
			out = append(out, one)
		}
	}
	slices.SortStableFunc(out, func(a, b elsewhere.Run) int { return b.StartedAt.Compare(a.StartedAt) })
	return out
}

// loopAfar is a loop as a page shows it; false for one whose worker has ended and that
// waits for nobody.
func loopAfar(project string, l elsewhere.Loop, workers []relay.Worker) (afarLoop, bool) {
	row := afarLoop{Worker: l.Worker, Metrics: loop.MetricsOf(l.State), Reason: l.State.Reason}
	row.Budget = gaugesOf(row.Metrics)
	i := slices.IndexFunc(workers, func(w relay.Worker) bool { return w.Name == l.Worker })
	row.Ended = i < 0
	if i >= 0 {
		row.Quiet, row.Unsaved = workers[i].Quiet, workers[i].UnsavedOf(project)
		row.Going = l.State.Phase != core.Finished
		if !row.Quiet && l.State.HoldUntil <= l.State.Now.Loop {
			row.Idle = idle(&l.State)
		}
	}
	for _, q := range l.Questions {
		if q.Open() {
			row.Open = append(row.Open, &ask{q, "/fleet/loops/" + l.Worker + "/resume", l.Worker})
		}
	}
	if in := l.State.Interrupt; in != nil && len(in.Items) == 0 && l.State.Phase != core.Finished {
		row.Interrupt, row.Reached = in, reached(in, row.Metrics)
	}
	return row, i >= 0 || len(row.Open) > 0
}

// fleetLoopAsk asks something of the loop of a worker, as `reprise loop` does.
func (s *Server) fleetLoopAsk(w http.ResponseWriter, r *http.Request) {
	f, worker := s.deps.Fleet, r.PathValue("worker")
	ctx, cancel := context.WithTimeout(r.Context(), 2*FleetPatience)
	defer cancel()
	state, err := s.askFleet(ctx)
	if err != nil {
		s.fleetFail(w, r, err)
		return
	}
	i := slices.IndexFunc(state.Loops, func(l elsewhere.Loop) bool { return l.Worker == worker })
	if i < 0 {
		s.fail(w, r, http.StatusNotFound, fmt.Errorf("no worker called %.80q has told of a loop of this project", worker))
		return
	}
	l := state.Loops[i]
	req, note := loop.Request{Loop: l.State.Loop}, ""
	switch r.PathValue("op") {
	case "pause":
		req.Kind, note = "pause", "paused"
	case "stop":
		req.Kind, req.Why, req.Drain, note = "stop", "a person stopped it on the dashboard", r.PostForm.Get("drain") != "", "stopping"
	case "resume":
	default:
		s.fail(w, r, http.StatusNotFound, errors.New("there is no such request of a loop"))
		return
	}
	if err := s.deps.Claim(ctx); err != nil {
		s.fail(w, r, http.StatusConflict, err)
		return
	}
	if req.Kind != "" {
		err = f.Ask(ctx, worker, req)
	} else {
		note, err = s.resumeAfar(ctx, r, l)
	}
	if err != nil {
		s.fleetFail(w, r, err)
		return
	}
	s.forgetFleet()
	s.done(w, r, "/fleet", note)
}

// resumeAfar leaves what a person says for a worker's loop; note is what is shown of it.
func (s *Server) resumeAfar(ctx context.Context, r *http.Request, l elsewhere.Loop) (note string, err error) {
	say, err := saidIn(r)
	if err != nil {
		return "", err
	}
	to, err := s.deps.Fleet.Resume(ctx, []elsewhere.Loop{l}, say)
	note = "asked"
	switch {
	case err == nil && len(to) > 0 && len(to[0].Back) > 0:
		note = "backthere"
	case err == nil && len(to) > 0 && (to[0].Away || to[0].Silent):
		note = "askedaway"
	}
	if err == nil && len(to) == 0 {
		err = fmt.Errorf("%w: the worker %s has gone on already, or its question was answered", loop.ErrNothingWaits, l.Worker)
	}
	return note, err
}

func (s *Server) fleetFail(w http.ResponseWriter, r *http.Request, err error) {
	code := http.StatusInternalServerError
	switch {
	case errors.Is(err, relay.ErrNotFound):
		code = http.StatusNotFound
	case errors.Is(err, errForm):
		code = http.StatusBadRequest
	case errors.Is(err, loop.ErrWhich), errors.Is(err, loop.ErrUnanswered), errors.Is(err, loop.ErrCeiling), errors.Is(err, loop.ErrNothingWaits):
		code = http.StatusConflict
	case errors.Is(err, fleet.ErrUnreachable), fleet.Away(err):
		code = http.StatusServiceUnavailable
	}
	s.fail(w, r, code, err)
}

// waitsAfar is what of the fleet waits for a person.
func (s *Server) waitsAfar(state fleetState) []matter {
	var out []matter
	for _, l := range state.Loops {
		row, ok := loopAfar(s.deps.Fleet.Project, l, state.Workers)
		if !ok {
			continue
		}
		for _, q := range row.Open {
			text, do := "The worker "+l.Worker+" waits for your answer about "+q.Item+": "+oneLine(200, q.Why), "Answer"
			if q.Stopped() {
				text, do = "On the worker "+l.Worker+", "+q.Words(), "Let it go on"
			}
			out = append(out, matter{Tone: "warn", Text: text, Path: "/fleet#" + s.boxOf(&q.Question), Act: do})
		}
		if row.Interrupt != nil && len(row.Open) == 0 {
			out = append(out, matter{Tone: "warn", Text: "The worker " + l.Worker + " waits for you: " + oneLine(200, row.Interrupt.Why), Path: "/fleet", Act: "Look at it"})
		}
	}
	return out
}

// fleetCard is the fleet on the page of where things stand.
type fleetCard struct {
	Live, Room, Going int
	Quiet             string // who is
	Away              string
}

func (s *Server) fleetCard(ctx context.Context, state fleetState, err error) *fleetCard {
	if err != nil {
		return &fleetCard{Away: sentence(err)}
	}
	going, _ := s.deps.Fleet.Going(ctx, state.Workers, s.deps.Fleet.Project)
	c := &fleetCard{Going: len(going)}
	var quiet []string
	for _, w := range state.Workers {
		if w.Quiet {
			quiet = append(quiet, w.Name)
			continue
		}
		c.Live, c.Room = c.Live+1, c.Room+w.Room
	}
	c.Quiet = strings.Join(quiet, ", ")
	return c
}
