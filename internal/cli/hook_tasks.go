package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"reprise/internal/event"
	"reprise/internal/task"
	"reprise/internal/verify"
)

// gateTasks is what a session works at: the step of a task of the project that was begun
// for it, else the list that its agent keeps itself.
type gateTasks struct {
	own        ownList
	load       func(context.Context) (*task.Board, error)
	delegation string // sess_… of the step that this run does, "" outside one
}

// Current is the step with what it takes to be done. A step that was begun inside the
// session and not finished is open; the acceptance criteria of a task count with its
// last phase. A list that cannot be read is said by the gate, and keeps nobody.
func (g gateTasks) Current(ctx context.Context, session string) (verify.Task, bool, error) {
	out, ok, err := g.own.Current(ctx, session)
	b, berr := g.load(ctx)
	if berr != nil {
		return out, ok, errors.Join(err, berr)
	}
	if b == nil {
		return out, ok, err
	}
	for _, n := range b.State.Numbers() {
		t := b.State.Tasks[n]
		for _, o := range t.Operations {
			inside := o.By == "client:"+session
			if !inside && (g.delegation == "" || o.Session != g.delegation) {
				continue
			}
			out.ID, out.Title = strconv.Itoa(n), t.Title
			if inside {
				out.Open = append(out.Open, fmt.Sprintf("%s was begun in this session and is not ended: end it with task_finish (session_id %s), or with task_cancel", o.Name, o.Session))
			}
			if o.Name == task.OpImplement && o.Place == "" && b.LastPhase(t, o.Phase) {
				for _, c := range b.Criteria(t) {
					out.Criteria = append(out.Criteria, verify.Criterion{Text: clipText(c.Text, 200), Met: c.Met})
				}
			}
			return out, true, err
		}
	}
	return out, ok, err
}

// ownList is the list of things to do that an agent keeps with its client's own
// tool, as the event log has it: what it wrote down in this very turn is what it
// means to do before the turn ends. An older list may be about something else.
type ownList struct {
	events string
	client string
	now    func() time.Time
}

// listAge bounds how far back a turn is looked for.
const listAge = 24 * time.Hour

// Current is the list, where there is one with something open.
func (l ownList) Current(_ context.Context, session string) (verify.Task, bool, error) {
	var open []string
	for e, err := range event.ReadSince(l.events, l.now().Add(-listAge)) {
		if err != nil || e.Session != session || e.Client != l.client {
			continue // a line that cannot be read is said elsewhere
		}
		switch e.Type {
		case event.PromptSubmitted:
			open = nil
		case event.ToolCalled:
			var t event.ToolData
			if json.Unmarshal(e.Data, &t) != nil || hasSubagent(e.Evidence) {
				continue
			}
			if steps, ok := openSteps(t.Name, t.Input); ok {
				open = steps
			}
		}
	}
	return verify.Task{Open: open}, len(open) > 0, nil
}

// prompt is the id of the session's last prompt, "" where there is none.
func (l ownList) prompt(session string) (id string) {
	for e, err := range event.ReadSince(l.events, l.now().Add(-listAge)) {
		if err == nil && e.Type == event.PromptSubmitted && e.Session == session && e.Client == l.client {
			id = e.ID
		}
	}
	return id
}

// openSteps are the steps that a call of a client's own tool leaves open; ok says
// whether it is such a call. The forms are those of TodoWrite (Claude Code),
// update_plan (Codex), write_todos (Gemini CLI) and update_todo (Copilot CLI).
func openSteps(tool string, input json.RawMessage) (open []string, ok bool) {
	type step struct {
		Content     string `json:"content"`
		Description string `json:"description"`
		Step        string `json:"step"`
		Status      string `json:"status"`
	}
	var in struct {
		Todos json.RawMessage `json:"todos"`
		Plan  []step          `json:"plan"`
	}
	switch tool {
	case "TodoWrite", "update_plan", "write_todos", "update_todo":
	default:
		return nil, false
	}
	if json.Unmarshal(input, &in) != nil {
		return nil, false
	}
	var text string
	if json.Unmarshal(in.Todos, &text) == nil {
		for line := range strings.Lines(text) {
			if rest, found := strings.CutPrefix(strings.TrimLeft(line, " \t-*"), "[ ]"); found {
				open = append(open, clipText(strings.TrimSpace(rest), 120))
			}
		}
		return first(open), true
	}
	steps := in.Plan
	if in.Todos != nil && json.Unmarshal(in.Todos, &steps) != nil {
		return nil, false
	}
	for _, s := range steps {
		if s.Status == "pending" || s.Status == "in_progress" {
			open = append(open, clipText(s.Content+s.Description+s.Step, 120))
		}
	}
	return first(open), true
}

// first are the first few of them, and how many more there are.
func first(list []string) []string {
	const most = 4
	if len(list) <= most+1 {
		return list
	}
	return append(list[:most:most], fmt.Sprintf("and %d more", len(list)-most))
}
