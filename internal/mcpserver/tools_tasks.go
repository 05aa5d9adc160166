package mcpserver

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"reprise/internal/task"
)

// TaskService is what the server needs of the project's tasks. Change commits what fn
// changed under the message, "" for none.
type TaskService interface {
	Load(ctx context.Context) (*task.Board, error)
	Change(ctx context.Context, message func(*task.Board) string, fn func(*task.Board) error) (*task.Board, error)
	Begin(ctx context.Context, w task.Want) (task.Brief, error)
	Finish(ctx context.Context, session, answer string) (task.StepResult, error)
	Cancel(ctx context.Context, session, status, reason string) (task.StepResult, error)
	Failures(ctx context.Context) (*task.Failures, error)
}

// maxTasks is how many tasks one answer names.
const maxTasks = 200

// taskTools are the tools of the tasks toolset.
func taskTools() []tool {
	about := "The project's list of tasks (specs/TODO.md). "
	return []tool{
		{
			name: "task_list", title: "List tasks", toolset: ToolsetTasks, more: true, reads: true, repeatable: true,
			about:  about + "Numbers, titles and statuses, what is being worked on first. Without status: those that have not ended.",
			params: taskListParams(), do: (*Server).taskList,
		},
		{
			name: "task_show", title: "Show a task", toolset: ToolsetTasks, more: true, reads: true, repeatable: true,
			about:  "A task whole: its text, its files, the phases of its plan and what was done so far.",
			params: []param{numberParam(true)}, do: (*Server).taskShow,
		},
		{
			name: "task_new", title: "Make a task", toolset: ToolsetTasks, more: true,
			about:  "Put a task on the project's list; it gets the next number and is committed. Look with task_list whether it is there already.",
			params: taskNewParams(), do: (*Server).taskNew,
		},
		{
			name: "task_set", title: "Set a task's status", toolset: ToolsetTasks, more: true, repeatable: true,
			about:  "Say how far a task is, or a phase of its plan, where the user said so. The steps of a task (task_begin, task_finish) set it by themselves.",
			params: taskSetParams(), do: (*Server).taskSet,
		},
		{
			name: "task_begin", title: "Begin a step of a task", toolset: ToolsetTasks, more: true, repeatable: true,
			about: "Begin to research, plan, revise or implement a task, or to review the project, in this session. Returns the prompt for the one who does it: give it, unchanged, to a subagent of the type agent_type where you have it, else follow it yourself. " +
				"Then call task_finish with its last message. Statuses, files and commits are made there: touch none of them yourself.",
			params: taskBeginParams(), do: (*Server).taskBegin,
		},
		{
			name: "task_finish", title: "Finish a step of a task", toolset: ToolsetTasks, more: true, repeatable: true,
			about:  "End a step that task_begin began: give the last message of the one who did it, word for word. It is checked, what was written is filed, statuses move, and all of it is committed. An answer that is not in order is refused once, with what is amiss.",
			params: taskFinishParams(), do: (*Server).taskFinish,
		},
		{
			name: "task_cancel", title: "Give up a step of a task", toolset: ToolsetTasks, more: true, destructive: true, repeatable: true,
			about:  "Give up a step that task_begin began, when it cannot be done or the user says so.",
			params: taskCancelParams(), do: (*Server).taskCancel,
		},
		{
			name: "task_todo", title: "Archive ended tasks", toolset: ToolsetTasks, more: true, destructive: true, repeatable: true,
			about:  "Take completed and abandoned tasks off the list: their sections and folders go to specs/archive/.",
			params: []param{{name: "numbers", kind: list, entries: maxTasks, bytes: 10, about: "Numbers of the tasks. Default: all that have ended.", remedy: "give numbers as task_list has them, or leave it out"}},
			do:     (*Server).taskTodo,
		},
		{
			name: "task_errors", title: "What went wrong", toolset: ToolsetTasks, more: true,
			about:  "What went wrong in this project, by kind and cause: how often, since when, whether earlier fixes held. With fix: make a task whose plan ends what is not fixed.",
			params: taskErrorsParams(), do: (*Server).taskErrors,
		},
	}
}

func numberParam(required bool) param {
	return param{name: "number", kind: integer, required: required, min: 1, max: 1 << 30, about: "Number of the task.", remedy: "give a number as task_list has it"}
}

func statusNames() []string {
	var out []string
	for _, s := range task.Statuses() {
		out = append(out, string(s))
	}
	return out
}

func (s *Server) tasks() (TaskService, error) {
	if s.deps.Tasks == nil {
		return nil, errors.New("there are no tasks here: this server was started outside any project; `reprise init` makes one")
	}
	return s.deps.Tasks, nil
}

func taskError(tool string, err error) error {
	return fmt.Errorf("%s: %w", tool, err)
}

// taskLine is a task in short.
type taskLine struct {
	Number   int    `json:"number"`
	Title    string `json:"title"`
	Status   string `json:"status"`
	Priority string `json:"priority,omitempty"`
	Language string `json:"language,omitempty"`
	Waits    []int  `json:"waits_for,omitempty"`
	Reason   string `json:"reason,omitempty"`
	Working  string `json:"working,omitempty"` // who works at it
	Archived bool   `json:"archived,omitempty"`
}

func lineOf(b *task.Board, t *task.Task) taskLine {
	l := taskLine{Number: t.Number, Title: shorten(t.Title, 200), Status: string(t.Status), Priority: t.Priority, Language: t.Language, Waits: b.Waits(t), Reason: shorten(t.Reason, 200)}
	if len(t.Operations) > 0 {
		l.Working = t.Operations[0].Name + " " + t.Operations[0].Session
	}
	return l
}

func taskListParams() []param {
	return []param{
		{name: "status", kind: list, entries: 8, bytes: 20, about: "Only tasks of these statuses: " + strings.Join(statusNames(), ", ") + ".", remedy: "leave it out for those that have not ended"},
		{name: "all", kind: boolean, about: "Those that have ended, too, and those of the archive. Default false.", remedy: "leave it out"},
	}
}

func (s *Server) taskList(c *call) (any, error) {
	d, err := s.tasks()
	if err != nil {
		return nil, err
	}
	want := map[task.Status]bool{}
	for _, word := range c.args.list("status") {
		st, ok := task.ParseStatus(word)
		if !ok {
			return nil, fmt.Errorf("task_list: parameter \"status\": %q is none of %s", shorten(word, 40), strings.Join(statusNames(), ", "))
		}
		want[st] = true
	}
	b, err := d.Load(c.ctx)
	if err != nil {
		return nil, taskError("task_list", err)
	}
	out := struct {
		Tasks []taskLine `json:"tasks"`
		More  int        `json:"more,omitempty"`
		Notes []string   `json:"notes,omitempty"`
	}{Tasks: []taskLine{}}
	var list []*task.Task
	for _, n := range b.State.Numbers() {
		t := b.State.Tasks[n]
		if len(want) > 0 && want[t.Status] || len(want) == 0 && (c.args.flag("all") || !t.Status.Ended()) {
			list = append(list, t)
		}
	}
	task.SortByWork(list)
	onList := len(list)
	if c.args.flag("all") {
		archived, err := b.Archived(want)
		if err != nil {
			return nil, taskError("task_list", err)
		}
		for _, a := range archived {
			list = append(list, a.Task)
		}
	}
	left := maxSearchTokens
	for i, t := range list {
		l := lineOf(b, t)
		l.Archived = i >= onList
		if left -= tokens(l.Title) + tokens(l.Reason) + 40; left < 0 || i == maxTasks {
			out.More = len(list) - i
			break
		}
		out.Tasks = append(out.Tasks, l)
	}
	for _, p := range b.Problems[:min(len(b.Problems), 5)] {
		out.Notes = append(out.Notes, shorten(p.String(), 300))
	}
	return out, nil
}

func (s *Server) taskShow(c *call) (any, error) {
	d, err := s.tasks()
	if err != nil {
		return nil, err
	}
	b, err := d.Load(c.ctx)
	if err != nil {
		return nil, taskError("task_show", err)
	}
	at, t, err := b.Listed(c.args.number("number", 0))
	if err != nil {
		return nil, taskError("task_show", err)
	}
	out := showTask(at, t)
	out.Archived = at != b
	return out, nil
}

// phaseLine is a phase in short.
type phaseLine struct {
	Number    int     `json:"number"`
	Title     string  `json:"title"`
	Status    string  `json:"status"`
	DependsOn []int   `json:"depends_on,omitempty"`
	Seconds   float64 `json:"seconds,omitempty"`
}

type taskWhole struct {
	taskLine
	Text       string         `json:"text,omitempty"`
	Files      []string       `json:"files,omitempty"`
	Phases     []phaseLine    `json:"phases,omitempty"`
	Operations []task.Outcome `json:"operations,omitempty"`
	Note       string         `json:"note,omitempty"`
}

func showTask(b *task.Board, t *task.Task) taskWhole {
	out := taskWhole{taskLine: lineOf(b, t)}
	if sec := b.Todo.Find(t.Number); sec != nil {
		out.Text, _ = cutText(b.Todo.Body(sec), maxPayloadTokens/2, "read specs/TODO.md")
	}
	for _, f := range slices.Concat(t.Research, t.Plans, []string{t.Summary}) {
		if f != "" {
			out.Files = append(out.Files, path.Join("specs", f))
		}
	}
	own, err := b.Own(t)
	if err != nil {
		out.Note = err.Error()
	}
	times := task.PhaseTimes(own)
	if p, _, perr := b.Plan(t); perr == nil {
		for _, ph := range p.Phases {
			out.Phases = append(out.Phases, phaseLine{ph.Number, shorten(ph.Title, 200), string(ph.Status), ph.DependsOn, times[ph.Number].Seconds()})
		}
	} else if len(t.Plans) > 0 {
		out.Note = perr.Error()
	}
	out.Operations = own[max(0, len(own)-20):]
	return out
}

func taskNewParams() []param {
	return []param{
		{name: "title", kind: text, required: true, bytes: 300, about: "What is to be done, in one line.", remedy: "give one line"},
		{name: "body", kind: text, bytes: 20_000, lines: true, about: "What else is to be said, in markdown without headings.", remedy: "leave it out"},
		{name: "priority", kind: text, bytes: 20, enum: task.Priorities, about: "Default medium.", remedy: "leave it out for medium"},
		{name: "language", kind: text, bytes: 40, about: "Language that decides who works at it, such as go or markdown. Default general.", remedy: "leave it out for general"},
		{name: "effort", kind: text, bytes: 40, about: "How long it may take, such as 3 hours.", remedy: "leave it out"},
		{name: "depends_on", kind: list, entries: 50, bytes: 10, about: "Numbers of tasks that come before it.", remedy: "leave it out"},
	}
}

func numbersOf(tool, name string, words []string) ([]int, error) {
	var out []int
	for _, w := range words {
		var n int
		if _, err := fmt.Sscanf(strings.TrimPrefix(strings.TrimSpace(w), "#"), "%d", &n); err != nil || n < 1 {
			return nil, fmt.Errorf("%s: parameter %q: %q is no number of a task", tool, name, shorten(w, 20))
		}
		out = append(out, n)
	}
	return out, nil
}

func (s *Server) taskNew(c *call) (any, error) {
	d, err := s.tasks()
	if err != nil {
		return nil, err
	}
	opt := func(name string) *string {
		if !c.args.has(name) {
			return nil
		}
		v := c.args.text(name)
		return &v
	}
	draft := task.Draft{Title: opt("title"), Priority: opt("priority"), Language: opt("language"), Effort: opt("effort"), Body: c.args.text("body")}
	if c.args.has("depends_on") {
		on, err := numbersOf("task_new", "depends_on", c.args.list("depends_on"))
		if err != nil {
			return nil, err
		}
		draft.DependsOn = &on
	}
	var made *task.Task
	b, err := d.Change(c.ctx, func(*task.Board) string { return fmt.Sprintf("task %d: create %s", made.Number, made.Title) },
		func(b *task.Board) (err error) { made, err = b.Add(draft); return err })
	if err != nil {
		return nil, taskError("task_new", err)
	}
	return lineOf(b, made), nil
}

func taskSetParams() []param {
	return []param{
		numberParam(true),
		{name: "status", kind: text, required: true, bytes: 20, enum: append(statusNames(), "recover"), about: "The status; recover makes of a task that has ended or is blocked what it was before.", remedy: "give one of the list"},
		{name: "phase", kind: integer, min: 1, max: 9999, about: "Phase of the plan that it is about. Default: the task as a whole.", remedy: "leave it out for the task"},
		{name: "reason", kind: text, bytes: 500, about: "Why it is blocked, partial or abandoned.", remedy: "leave it out"},
	}
}

func (s *Server) taskSet(c *call) (any, error) {
	d, err := s.tasks()
	if err != nil {
		return nil, err
	}
	n, phase, reason := c.args.number("number", 0), c.args.number("phase", 0), c.args.text("reason")
	to := task.Status(c.args.text("status"))
	message := func(b *task.Board) string {
		t := b.State.Tasks[n]
		switch {
		case t == nil || phase > 0 && to != task.Completed:
			return ""
		case phase > 0:
			title := ""
			if p, _, err := b.Plan(t); err == nil && p.Phase(phase) != nil {
				title = p.Phase(phase).Title
			}
			return task.Message(t, task.OpImplement, phase, title)
		}
		return fmt.Sprintf("task %d: %s", n, t.Status.Words())
	}
	b, err := d.Change(c.ctx, message, func(b *task.Board) error {
		switch {
		case c.args.text("status") == "recover":
			return b.Recover(n)
		case phase > 0:
			_, err := b.SetPhase(n, phase, to, reason)
			return err
		}
		return b.SetStatus(n, to, reason)
	})
	if err != nil {
		return nil, taskError("task_set", err)
	}
	return showTask(b, b.State.Tasks[n]), nil
}

func taskBeginParams() []param {
	return []param{
		{name: "operation", kind: text, required: true, bytes: 20, enum: append(task.Operations(), task.OpReview), about: "The step. review is of the project, the others are of a task.", remedy: "give one of the list"},
		numberParam(false),
		{name: "phase", kind: integer, min: 1, max: 9999, about: "Phase to implement. Default: the first that is not completed.", remedy: "leave it out"},
		{name: "focus", kind: text, bytes: 4000, lines: true, about: "What the step is to look at above all, as the user said it; of a review, what of the project.", remedy: "leave it out"},
	}
}

func (s *Server) taskBegin(c *call) (any, error) {
	d, err := s.tasks()
	if err != nil {
		return nil, err
	}
	w := task.Want{Op: c.args.text("operation"), Number: c.args.number("number", 0), Phase: c.args.number("phase", 0), Focus: c.args.text("focus")}
	if w.Number == 0 && w.Op != task.OpReview {
		return nil, fmt.Errorf("task_begin: parameter \"number\" is missing: %s is a step of a task", w.Op)
	}
	if w.Op == task.OpReview {
		w.Number = 0
	}
	b, err := d.Begin(c.ctx, w)
	if err != nil {
		return nil, taskError("task_begin", err)
	}
	b.Prompt, _ = cutText(b.Prompt, maxPayloadTokens, "read the task's files in specs/")
	return b, nil
}

func taskFinishParams() []param {
	return []param{
		{name: "session_id", kind: text, required: true, bytes: 60, about: "As task_begin returned it.", remedy: "give the session_id of task_begin"},
		{name: "answer", kind: text, required: true, bytes: 100_000, lines: true, about: "The last message of the one who did the step: the JSON object that its prompt asked for.", remedy: "give the message word for word"},
	}
}

func (s *Server) taskFinish(c *call) (any, error) {
	d, err := s.tasks()
	if err != nil {
		return nil, err
	}
	r, err := d.Finish(c.ctx, c.args.text("session_id"), c.args.text("answer"))
	if err != nil {
		return nil, taskError("task_finish", err)
	}
	return r, nil
}

func taskCancelParams() []param {
	return []param{
		{name: "session_id", kind: text, required: true, bytes: 60, about: "As task_begin returned it.", remedy: "give the session_id of task_begin"},
		{name: "reason", kind: text, required: true, bytes: 500, about: "Why.", remedy: "say why in one line"},
		{name: "status", kind: text, bytes: 20, enum: []string{"failed", "partial", "blocked"}, about: "How far it came: failed (nothing of it counts), partial, or blocked (somebody else has to do something first). Default failed.", remedy: "leave it out for failed"},
	}
}

func (s *Server) taskCancel(c *call) (any, error) {
	d, err := s.tasks()
	if err != nil {
		return nil, err
	}
	r, err := d.Cancel(c.ctx, c.args.text("session_id"), c.args.text("status"), c.args.text("reason"))
	if err != nil {
		return nil, taskError("task_cancel", err)
	}
	return r, nil
}

func (s *Server) taskTodo(c *call) (any, error) {
	d, err := s.tasks()
	if err != nil {
		return nil, err
	}
	only, err := numbersOf("task_todo", "numbers", c.args.list("numbers"))
	if err != nil {
		return nil, err
	}
	var gone []*task.Task
	b, err := d.Change(c.ctx, func(*task.Board) string { return task.TodoMessage(gone) },
		func(b *task.Board) (err error) { gone, err = b.Archive(only...); return err })
	if err != nil {
		return nil, taskError("task_todo", err)
	}
	out := struct {
		Archived []taskLine `json:"archived"`
		More     int        `json:"more,omitempty"`
	}{Archived: []taskLine{}}
	for i, t := range gone {
		if i == maxTasks/2 {
			out.More = len(gone) - i
			break
		}
		out.Archived = append(out.Archived, lineOf(b, t))
	}
	return out, nil
}

func taskErrorsParams() []param {
	return []param{
		{name: "types", kind: list, entries: 20, bytes: 60, about: "Only these kinds, such as build_error.", remedy: "leave it out for all"},
		{name: "fix", kind: boolean, about: "Make a task, with a plan, for what is not fixed. Default false.", remedy: "leave it out to look only"},
	}
}

func (s *Server) taskErrors(c *call) (any, error) {
	d, err := s.tasks()
	if err != nil {
		return nil, err
	}
	l, err := d.Failures(c.ctx)
	if err != nil {
		return nil, taskError("task_errors", err)
	}
	kinds := c.args.list("types")
	groups := slices.DeleteFunc(l.Groups(), func(g task.Group) bool { return len(kinds) > 0 && !slices.Contains(kinds, g.Type) })
	out := struct {
		Groups []task.Group `json:"groups"`
		More   int          `json:"more,omitempty"`
		Task   *taskWhole   `json:"task,omitempty"`
	}{Groups: []task.Group{}}
	if c.args.flag("fix") {
		open := task.OpenGroups(groups)
		if len(open) > 0 {
			var made *task.Task
			b, err := d.Change(c.ctx, func(*task.Board) string { return task.FixMessage(open, made.Number) },
				func(b *task.Board) (err error) { made, err = b.FixPlan(open); return err })
			if err != nil {
				return nil, taskError("task_errors", err)
			}
			whole := showTask(b, made)
			out.Task = &whole
		}
	}
	left := maxSearchTokens
	for i, g := range groups {
		g.Message, g.IDs = shorten(g.Message, 300), g.IDs[:min(len(g.IDs), 5)]
		if left -= tokens(g.Message) + 120; left < 0 {
			out.More = len(groups) - i
			break
		}
		out.Groups = append(out.Groups, g)
	}
	return out, nil
}
