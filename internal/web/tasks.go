package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"reprise/internal/task"
	"reprise/internal/web/watch"
)

const (
	tilesPerColumn = 30
	tasksPerPage   = 100
)

// TaskService is what the pages need of task.Store.
type TaskService interface {
	Load(ctx context.Context) (*task.Board, error)
	Dir() string // specs/
}

func (s *Server) taskRoutes() {
	s.mux.HandleFunc("GET /tasks", s.taskList)
	s.mux.HandleFunc("GET /tasks/{n}", s.taskShow)
	s.mux.HandleFunc("GET /tasks/{n}/files/{i}", s.taskFile)
}

// boards keeps the list of tasks: a long one takes a quarter of a second to read.
type boards struct {
	mu   sync.Mutex // held while the board is used: it is not safe for several at once
	last kept[*task.Board]
}

func taskLook(dir string) func(*watch.Look) {
	return func(l *watch.Look) {
		for _, name := range []string{"TODO.md", "state.json"} {
			l.File(filepath.Join(dir, name))
		}
	}
}

// withBoard calls fn with the list of tasks as it is on disk.
func (s *Server) withBoard(ctx context.Context, fn func(*task.Board) error) error {
	c := &s.boards
	c.mu.Lock()
	defer c.mu.Unlock()
	b, err := c.last.get(taskLook(s.deps.Tasks.Dir()), func() (*task.Board, bool, error) {
		b, err := s.deps.Tasks.Load(ctx)
		return b, true, err
	})
	if err != nil {
		return err
	}
	return fn(b)
}

type taskRow struct {
	Number                    int
	Title, Priority, Language string
	Reason                    string
	Status                    string
	Class                     string
	Waits                     []int
	At                        []string // what is being done to it
	Updated                   time.Time
}

func taskClass(s task.Status) string {
	switch s {
	case task.Completed:
		return "good"
	case task.InProgress:
		return "busy"
	case task.Blocked, task.Partial:
		return "warn"
	case task.Abandoned, task.NotStarted, task.Researched, task.Planned:
	}
	return ""
}

func rowOfTask(b *task.Board, t *task.Task) taskRow {
	row := taskRow{Number: t.Number, Title: t.Title, Priority: t.Priority, Language: t.Language, Reason: t.Reason, Status: t.Status.Words(), Class: taskClass(t.Status), Waits: b.Waits(t)}
	for _, o := range t.Operations {
		text := o.Name
		if o.Phase > 0 {
			text = fmt.Sprintf("%s phase %d", text, o.Phase)
		}
		row.At = append(row.At, text+", "+o.Session)
	}
	if t.Updated != nil {
		row.Updated = *t.Updated
	}
	return row
}

type column struct {
	Name, Status string
	Count        int
	Tiles        []taskRow
}

type taskListPage struct {
	View     string // board or list
	Status   string
	Statuses []task.Status
	Columns  []column
	Rows     []taskRow
	Total    int
	Kept     int
	Prev     int
	Next     int
	Problems []string
}

func (s *Server) taskList(w http.ResponseWriter, r *http.Request) {
	p := taskListPage{View: "board", Statuses: task.Statuses(), Prev: -1, Next: -1}
	if r.URL.Query().Get("view") == "list" {
		p.View = "list"
	}
	want, only := task.ParseStatus(r.URL.Query().Get("status"))
	if only {
		p.Status = string(want)
	}
	err := s.withBoard(r.Context(), func(b *task.Board) error {
		p.Total = len(b.State.Tasks)
		for _, f := range b.Problems {
			p.Problems = append(p.Problems, f.String())
		}
		var list []*task.Task
		for _, n := range b.State.Numbers() {
			if t := b.State.Tasks[n]; !only || t.Status == want {
				list = append(list, t)
			}
		}
		task.SortByWork(list)
		p.Kept = len(list)
		if p.View == "list" {
			from := max(0, min(number(r, "from"), len(list)))
			if from > 0 {
				p.Prev = max(0, from-tasksPerPage)
			}
			if from+tasksPerPage < len(list) {
				p.Next = from + tasksPerPage
			}
			for _, t := range list[from:min(len(list), from+tasksPerPage)] {
				p.Rows = append(p.Rows, rowOfTask(b, t))
			}
			return nil
		}
		p.Columns = columns(b, list)
		return nil
	})
	if err != nil {
		s.fail(w, r, http.StatusInternalServerError, err)
		return
	}
	s.show(w, r, "tasks", s.view(r, "tasks", "Tasks", p))
}

// columns are the statuses of a board from left to right; those that stand for the way
// from an idea to the end are always there.
func columns(b *task.Board, list []*task.Task) []column {
	var out []column
	for _, st := range []task.Status{task.NotStarted, task.Researched, task.Planned, task.InProgress, task.Partial, task.Blocked, task.Completed, task.Abandoned} {
		c := column{Name: st.Words(), Status: string(st)}
		for _, t := range list {
			if t.Status != st {
				continue
			}
			if c.Count++; len(c.Tiles) < tilesPerColumn {
				c.Tiles = append(c.Tiles, rowOfTask(b, t))
			}
		}
		always := slices.Contains([]task.Status{task.NotStarted, task.Planned, task.InProgress, task.Completed}, st)
		if always || c.Count > 0 {
			out = append(out, c)
		}
	}
	return out
}

type phaseRow struct {
	Number        int
	Title, Status string
	Class         string
	Took          time.Duration
}

type stepRow struct {
	What, Status, Class, Reason string
	Run                         string
	Started                     time.Time
	Took                        time.Duration
}

type taskPage struct {
	Task    taskRow
	Effort  string
	Depends []int
	Body    string
	Phases  []phaseRow
	Steps   []stepRow
	Files   []string
	Next    string
	Trouble []string
}

// taskFiles are the files of a task, as they are numbered in addresses.
func taskFiles(t *task.Task) []string {
	files := slices.Concat(t.Research, t.Plans, []string{t.Summary})
	return slices.DeleteFunc(files, func(f string) bool { return f == "" })
}

func (s *Server) taskShow(w http.ResponseWriter, r *http.Request) {
	n, err := strconv.Atoi(r.PathValue("n"))
	if err != nil {
		s.fail(w, r, http.StatusNotFound, errors.New("a task is named by its number"))
		return
	}
	var p taskPage
	err = s.withBoard(r.Context(), func(b *task.Board) error {
		t, err := b.Task(n)
		if err != nil {
			return err
		}
		p = taskPage{Task: rowOfTask(b, t), Effort: t.Effort, Depends: t.DependsOn, Files: taskFiles(t), Next: b.NextOp(t)}
		if sec := b.Todo.Find(n); sec != nil {
			p.Body = b.Todo.Body(sec)
		}
		own, err := b.Own(t)
		if err != nil {
			p.Trouble = append(p.Trouble, err.Error())
		}
		times := task.PhaseTimes(own)
		if plan, _, err := b.Plan(t); err == nil {
			for _, ph := range plan.Phases {
				p.Phases = append(p.Phases, phaseRow{ph.Number, ph.Title, ph.Status.Words(), taskClass(ph.Status), times[ph.Number]})
			}
		} else if len(t.Plans) > 0 {
			p.Trouble = append(p.Trouble, err.Error())
		}
		for _, o := range own {
			p.Steps = append(p.Steps, rowOfStep(o))
		}
		return nil
	})
	if err != nil {
		s.taskFail(w, r, err)
		return
	}
	for i := range p.Steps { // a step's times are in whole seconds, its run's are not
		if rec, err := s.deps.Runs.Get(p.Steps[i].Run); err == nil && rec.Status.Settled() {
			p.Steps[i].Took = rec.Elapsed(s.deps.Now())
		}
	}
	s.show(w, r, "task", s.view(r, "tasks", fmt.Sprintf("%d. %s", n, p.Task.Title), p))
}

func rowOfStep(o task.Outcome) stepRow {
	row := stepRow{What: o.Op, Status: o.Status, Reason: o.Reason, Run: o.Run, Started: o.Started, Took: o.Ended.Sub(o.Started)}
	if o.Phase > 0 {
		row.What = fmt.Sprintf("%s phase %d", o.Op, o.Phase)
	}
	switch o.Status {
	case "completed":
		row.Class = "good"
	case "failed":
		row.Class = "bad"
	default:
		row.Class = "warn"
	}
	return row
}

func (s *Server) taskFail(w http.ResponseWriter, r *http.Request, err error) {
	if errors.Is(err, task.ErrNoTask) {
		s.fail(w, r, http.StatusNotFound, err)
		return
	}
	s.fail(w, r, http.StatusInternalServerError, err)
}

type taskFilePage struct {
	Number     int
	Title      string
	Name, Text string
}

// taskFile shows a report, a plan or a summary, which is named by its place in the
// task's own list: no address names a file.
func (s *Server) taskFile(w http.ResponseWriter, r *http.Request) {
	n, err := strconv.Atoi(r.PathValue("n"))
	i, ierr := strconv.Atoi(r.PathValue("i"))
	if err != nil || ierr != nil {
		s.fail(w, r, http.StatusNotFound, errors.New("a task and its files are named by numbers"))
		return
	}
	var p taskFilePage
	err = s.withBoard(r.Context(), func(b *task.Board) error {
		t, err := b.Task(n)
		if err != nil {
			return err
		}
		files := taskFiles(t)
		if i < 0 || i >= len(files) {
			return fmt.Errorf("task %d: %w with that file", n, task.ErrNoTask)
		}
		data, err := b.Read(files[i])
		if err != nil {
			return err
		}
		p = taskFilePage{n, t.Title, files[i], strings.ToValidUTF8(string(data), "\uFFFD")}
		return nil
	})
	if err != nil {
		s.taskFail(w, r, err)
		return
	}
	s.show(w, r, "taskfile", s.view(r, "tasks", filepath.Base(p.Name), p))
}
