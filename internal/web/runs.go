package web

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"reprise/internal/agent"
	"reprise/internal/durable"
	"reprise/internal/loop"
	"reprise/internal/run"
	"reprise/internal/web/output"
)

// runsPerPage is how many runs a page of the list has.
const runsPerPage = 50

// followEvery is how often a run's output is looked at while a page of it is open.
const followEvery = 250 * time.Millisecond

// maxPrompt is how much of what a run was asked is shown, in bytes.
const maxPrompt = 64 << 10

func (s *Server) runRoutes() {
	s.mux.HandleFunc("GET /runs", s.runList)
	s.mux.HandleFunc("GET /runs/{id}", s.runShow)
	s.mux.HandleFunc("GET /runs/{id}/stream", s.runStream)
	s.mux.HandleFunc("POST /runs/{id}/stop", s.runStop)
	s.mux.HandleFunc("POST /runs/{id}/extend", s.runExtend)
	s.mux.HandleFunc("POST /runs/{id}/resume", s.runResume)
}

// runRow is a run in a list.
type runRow struct {
	run.Record
	Task    string
	Elapsed time.Duration
	Cost    float64
	Tokens  int64
	Class   string // of its colour
	// Refused says that its work was not taken, by the project's checks or by the loop: that
	// its client ended without an error says nothing of that.
	Refused bool
	// Elsewhere says that the run is of another project than the dashboard's, or of none.
	Elsewhere bool
}

// Scope is the name of the run's project, or a word for where it has none.
func (r runRow) Scope() string {
	if r.Project == "" {
		return noProject
	}
	return r.Project
}

// noProject stands where the name of a project does, for what belongs to none. It is
// no name that a project can have.
const noProject = "(none)"

// runRow is made of a run's record; refused are the runs whose work was not taken.
func (s *Server) runRow(r run.Record, refused map[string]bool) runRow {
	row := runRow{Record: r, Elapsed: r.Elapsed(s.deps.Now()), Class: runClass(r.Status), Tokens: r.Heartbeat.Tokens, Elsewhere: r.Project != s.deps.Project}
	if r.Status == run.Completed && refused[r.ID] {
		row.Refused, row.Class = true, "warn"
	}
	if task, err := r.About(); err == nil {
		row.Task = output.Hide(task)
	} else {
		row.Task = "(its task cannot be read)"
	}
	switch {
	case r.Result != nil:
		usd, tokens := r.Spent()
		row.Cost, row.Tokens = usd, max(row.Tokens, tokens)
	case r.Status.Settled(): // a list has no results
		u := s.usedBy(r)
		row.Cost, row.Tokens = u.USD, max(row.Tokens, u.Tokens)
	}
	return row
}

// refused are the runs whose work was not taken. What cannot be read of the log, the pages
// that show it say.
func (s *Server) refused() (runs map[string]bool) {
	if s.deps.Events != nil {
		_ = s.tail.look(s.deps.Events.Dir, func(t *tail) { runs = maps.Clone(t.hooks.refused) })
	}
	return runs
}

// runClass is the tone of a state: good, bad, busy or still.
func runClass(s run.Status) string {
	switch s {
	case run.Completed:
		return "good"
	case run.Failed, run.TimedOut, run.Killed:
		return "bad"
	case run.Interrupted:
		return "warn"
	case run.Spawning, run.Running, run.Completing:
	}
	return "busy"
}

type runListPage struct {
	Rows        []runRow
	Status      string
	Statuses    []string
	Project     string   // whose runs alone are listed, "" for all
	Projects    []string // that have runs, where there is more than one
	Total, Kept int
	From        int
	Next, Prev  int // first row of the page after and before, -1 without one
	Trouble     string
}

func (s *Server) runList(w http.ResponseWriter, r *http.Request) {
	list, err := s.allRuns(r.Context())
	q := r.URL.Query()
	p := runListPage{Total: len(list), Status: q.Get("status"), Project: q.Get("project"), Next: -1, Prev: -1}
	for _, st := range []run.Status{run.Running, run.Completed, run.Failed, run.Interrupted, run.TimedOut, run.Killed} {
		p.Statuses = append(p.Statuses, string(st))
	}
	if err != nil {
		p.Trouble = err.Error() // what cannot be read does not hide the others
	}
	if p.Projects = projectsOf(list); len(p.Projects) < 2 {
		p.Projects = nil
	}
	list = slices.DeleteFunc(slices.Clone(list), func(r run.Record) bool {
		return p.Status != "" && string(r.Status) != p.Status || p.Project != "" && (runRow{Record: r}).Scope() != p.Project
	})
	p.Kept = len(list)
	p.From = max(0, min(number(r, "from"), len(list)))
	if p.From > 0 {
		p.Prev = max(0, p.From-runsPerPage)
	}
	if p.From+runsPerPage < len(list) {
		p.Next = p.From + runsPerPage
	}
	refused := s.refused()
	for _, rec := range list[p.From:min(len(list), p.From+runsPerPage)] {
		p.Rows = append(p.Rows, s.runRow(rec, refused))
	}
	s.show(w, r, "runs", s.view(r, "runs", "Runs", p))
}

// projectsOf are the projects of runs, by name, and noProject at the end where some have
// none.
func projectsOf(list []run.Record) []string {
	names := map[string]bool{}
	for _, r := range list {
		names[runRow{Record: r}.Scope()] = true
	}
	none := names[noProject]
	delete(names, noProject)
	out := slices.Sorted(maps.Keys(names))
	if none {
		out = append(out, noProject)
	}
	return out
}

// number is a whole number of the query, 0 where it has none.
func number(r *http.Request, name string) int {
	n, err := strconv.Atoi(r.URL.Query().Get(name))
	if err != nil {
		return 0
	}
	return n
}

type runPage struct {
	Run      runRow
	Prompt   string
	Output   output.Piece
	Earlier  int64 // where the page before begins, -1 without one
	Latest   bool  // the output's end is shown, and is followed
	Answer   string
	Cut      bool
	Errors   string // end of standard error
	Settled  bool
	Trouble  []string
	Tools    []toolCount
	Item     string // of the loop's queue, which it worked at
	Next     string // run that has gone on with it
	CanReply bool   // its item waits for a person at the loop
	Over     bool   // its item does not wait any more for what it has stopped for
	CanGoOn  bool
	WhyNot   string // of a run that has not ended well, and cannot be gone on with
}

type toolCount struct {
	Name  string
	Calls int
}

// toolCounts are the tools that a run has called, the most called first.
func toolCounts(res *agent.Result) (out []toolCount) {
	if res == nil {
		return nil
	}
	for name, n := range res.Tools {
		out = append(out, toolCount{name, n})
	}
	slices.SortFunc(out, func(a, b toolCount) int { return cmp.Or(b.Calls-a.Calls, strings.Compare(a.Name, b.Name)) })
	return out
}

func (s *Server) runShow(w http.ResponseWriter, r *http.Request) {
	rec, err := s.deps.Runs.Settle(r.Context(), r.PathValue("id"))
	if err != nil {
		s.runFail(w, r, err)
		return
	}
	p := runPage{Run: s.runRow(rec, s.refused()), Earlier: -1, Latest: true, Settled: rec.Status.Settled()}
	s.itsItem(r.Context(), &p)
	from := int64(-1)
	if text := r.URL.Query().Get("from"); text != "" {
		if n, err := strconv.ParseInt(text, 10, 64); err == nil && n >= 0 {
			from = n
		}
	}
	if p.Output, err = output.Read(rec, from, p.Settled); err != nil {
		p.Trouble = append(p.Trouble, err.Error())
	}
	p.Latest = !p.Output.Later() || from < 0
	if p.Output.From > 0 {
		p.Earlier = 0
		if p.Output.From > output.Window {
			p.Earlier = p.Output.From - output.Window
		}
	}
	p.Prompt = output.Hide(headOf(rec, "prompt.md", maxPrompt))
	p.Errors = output.Hide(tailOf(rec, filepath.Base(rec.Logs.Stderr)))
	if p.Settled {
		if out, err := s.deps.Runs.Output(rec.ID, 0); err == nil {
			p.Answer, p.Cut = output.Hide(out.Text), out.Truncated
		} else {
			p.Trouble = append(p.Trouble, err.Error())
		}
	}
	p.Tools = toolCounts(rec.Result)
	if p.Settled && !p.CanReply {
		p.WhyNot = s.deps.Runs.WhyNotResume(rec)
		p.CanGoOn = p.WhyNot == ""
		if rec.Status == run.Completed || p.Next != "" || p.Over { // nobody misses it, or it is said already
			p.WhyNot = ""
		}
	}
	s.show(w, r, "run", s.view(r, "runs", oneLine(80, p.Run.Task), p))
}

// itsItem tells of a run what became of it and of the item that it worked at: which run has
// gone on with it, and whether what it has stopped for still waits for a person.
func (s *Server) itsItem(ctx context.Context, p *runPage) {
	rec := &p.Run.Record
	list, _ := s.allRuns(ctx) // of what cannot be read the list of runs says so
	p.Next = run.GoneOnBy(list, *rec)
	if rec.Origin != "loop" || s.deps.LoopDir == "" || s.deps.Queue == nil || rec.Project != s.deps.Project {
		return
	}
	p.Item = loop.ItemOf(*rec)
	if !rec.Status.Settled() {
		return
	}
	v := s.loopView()
	if v.Trouble != "" { // who cannot tell leads there, where the reason stands
		p.CanReply = rec.Status == run.Interrupted
		return
	}
	later := func(r run.Record) bool {
		return loop.ItemOf(r) == p.Item && r.StartedAt.After(rec.StartedAt) && r.Project == rec.Project
	}
	p.CanReply = p.Next == "" && !slices.ContainsFunc(list, later) && slices.ContainsFunc(v.Open, func(q *ask) bool { return q.Item == p.Item })
	p.Over = !p.CanReply && rec.Status == run.Interrupted
}

// headOf is the beginning of a file of a run, "" where it cannot be read.
func headOf(rec run.Record, name string, most int) string {
	d, err := durable.OpenDir(rec.Dir())
	if err != nil {
		return ""
	}
	defer d.Close()
	f, err := d.Open(name)
	if err != nil {
		return ""
	}
	defer f.Close()
	buf := make([]byte, most)
	n, _ := f.Read(buf) // an empty file has no beginning
	return string(buf[:n])
}

// tailOf is the end of a file of a run, "" where it cannot be read.
func tailOf(rec run.Record, name string) string {
	d, err := durable.OpenDir(rec.Dir())
	if err != nil {
		return ""
	}
	defer d.Close()
	f, err := d.Open(name)
	if err != nil {
		return ""
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return ""
	}
	const most = 8 << 10
	buf := make([]byte, most)
	n, _ := f.ReadAt(buf, max(0, info.Size()-most)) // the end of the file comes with an error
	return string(buf[:n])
}

func (s *Server) runFail(w http.ResponseWriter, r *http.Request, err error) {
	switch {
	case errors.Is(err, run.ErrNotFound):
		s.fail(w, r, http.StatusNotFound, err)
	case errors.Is(err, run.ErrBadRequest), errors.Is(err, run.ErrRefused), errors.Is(err, run.ErrTransition):
		s.fail(w, r, http.StatusConflict, err)
	default:
		s.fail(w, r, http.StatusInternalServerError, err)
	}
}

// runStream sends what a run's client writes, as it comes, from the offset that the
// page or the last event had, until the run has ended.
func (s *Server) runStream(w http.ResponseWriter, r *http.Request) {
	rec, err := s.deps.Runs.Get(r.PathValue("id"))
	if err != nil {
		s.runFail(w, r, err)
		return
	}
	from, err := strconv.ParseInt(r.URL.Query().Get("from"), 10, 64)
	if last, lerr := strconv.ParseInt(r.Header.Get("Last-Event-ID"), 10, 64); lerr == nil {
		from, err = last, nil
	}
	if err != nil || from < 0 {
		s.fail(w, r, http.StatusBadRequest, fmt.Errorf("from %.40q is no place in an output", r.URL.Query().Get("from")))
		return
	}
	out, closed, err := openStream(w, &s.streams)
	if err != nil {
		s.fail(w, r, http.StatusServiceUnavailable, err)
		return
	}
	defer closed()
	tick := time.NewTicker(followEvery)
	defer tick.Stop()
	idle := time.Duration(0)
	for {
		// Asked before the output is read: what was written before the end is read after it.
		if rec, err = s.deps.Runs.Get(rec.ID); err != nil {
			return
		}
		settled := rec.Status.Settled()
		p, err := output.Read(rec, from, settled)
		if err != nil {
			return
		}
		if p.To > from {
			if from, idle = p.To, 0; len(p.Said) > 0 {
				body, err := s.pages.execute("run", "said", p.Said)
				if err != nil || out.event("output", strconv.FormatInt(from, 10), string(body)) != nil {
					return
				}
			}
			if p.Later() {
				continue
			}
		}
		if settled {
			_ = out.event("ended", strconv.FormatInt(from, 10), string(rec.Status)) // the page may be closed
			return
		}
		if idle += followEvery; idle >= beatEvery {
			if idle = 0; out.beat() != nil {
				return
			}
		}
		select {
		case <-r.Context().Done():
			return
		case <-tick.C:
		}
	}
}

func (s *Server) runStop(w http.ResponseWriter, r *http.Request) {
	rec, err := s.deps.Runs.Cancel(r.Context(), r.PathValue("id"), "stopped on the dashboard")
	if err != nil {
		s.runFail(w, r, err)
		return
	}
	s.done(w, r, "/runs/"+rec.ID, "stopped")
}

// runResume goes on with a run in a new one, which outlives the dashboard.
func (s *Server) runResume(w http.ResponseWriter, r *http.Request) {
	next, err := s.deps.Runs.Start(r.Context(), run.Request{Resume: r.PathValue("id"), Task: strings.TrimSpace(r.PostForm.Get("say")), Detach: true, Origin: "web"})
	if err != nil {
		s.runFail(w, r, err)
		return
	}
	s.done(w, r, "/runs/"+next.ID, "gone-on")
}

func (s *Server) runExtend(w http.ResponseWriter, r *http.Request) {
	minutes, err := strconv.Atoi(r.PostForm.Get("minutes"))
	if err != nil || minutes < 1 || minutes > 24*60 {
		s.fail(w, r, http.StatusBadRequest, errors.New("give the minutes as a number from 1 to 1440"))
		return
	}
	id := r.PathValue("id")
	if err := s.deps.Runs.Extend(r.Context(), id, time.Duration(minutes)*time.Minute); err != nil {
		s.runFail(w, r, err)
		return
	}
	s.done(w, r, "/runs/"+id, "extended")
}
