package mcpserver

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"reprise/internal/durable"
	"reprise/internal/memory"
	"reprise/internal/task"
)

// desk is the list of tasks of a directory, without events and commits.
type desk struct {
	*task.Flow
	said []string // messages of commits
}

func newDesk(t *testing.T) *desk {
	root := t.TempDir()
	now := func() time.Time { return time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC) }
	d := &desk{}
	d.Flow = &task.Flow{
		Store: task.New(root, task.Options{Disk: durable.Disk{}, Now: now}), Root: root, Now: now, Routes: task.Routes(),
		Changed: func(context.Context, *task.Board) {}, Say: func(string, ...any) {},
		Commit: func(_ context.Context, _, message string, _ []string) {
			line, _, _ := strings.Cut(message, "\n")
			d.said = append(d.said, line)
		},
	}
	return d
}

func (d *desk) Load(ctx context.Context) (*task.Board, error) { return d.Store.Load(ctx) }

func (d *desk) Change(ctx context.Context, message func(*task.Board) string, fn func(*task.Board) error) (*task.Board, error) {
	b, err := d.Store.Change(ctx, fn)
	if err == nil {
		d.said = append(d.said, message(b))
	}
	return b, err
}

func (d *desk) Failures(ctx context.Context) (*task.Failures, error) {
	b, err := d.Load(ctx)
	if err != nil {
		return nil, err
	}
	return b.Failures()
}

func withTasks(d *desk) func(*Deps) {
	return func(o *Deps) {
		o.InProject, o.Tasks, o.TaskAccess, o.Toolsets = true, d, memory.FullAccess, []string{"tasks"}
	}
}

// From an idea to the end of a task through the tools alone, a malformed answer, a
// step given up, a review, what went wrong, and the archive.
func TestTaskTools(t *testing.T) {
	d := newDesk(t)
	w := newWorld(t, withTasks(d))
	ctx := t.Context()
	get := func(tool string, in map[string]any, into any) {
		t.Helper()
		data, err := json.Marshal(w.good(ctx, tool, in))
		if err == nil {
			err = json.Unmarshal(data, into)
		}
		if err != nil {
			t.Fatalf("%s: %v", tool, err)
		}
	}
	var line taskLine
	get("task_new", map[string]any{"title": "Fix the login", "language": "go", "priority": "high", "body": "Users are thrown out."}, &line)
	if line.Number != 1 || line.Status != "not_started" || d.said[0] != "task 1: create Fix the login" {
		t.Fatalf("%+v, %q", line, d.said)
	}
	answer := func(b task.Brief, status string, files ...string) string {
		list, _ := json.Marshal(append([]string{}, files...))
		return fmt.Sprintf(`{"status":%q,"summary":"Done so far.","artifacts":%s,"metadata":{"session_id":%q}}`, status, list, b.Session)
	}
	write := func(b task.Brief, text string) {
		t.Helper()
		file := filepath.Join(b.Dir, filepath.FromSlash(b.Artifact))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	var b task.Brief
	var r task.StepResult
	get("task_begin", map[string]any{"operation": "research", "number": 1, "focus": "sessions"}, &b)
	if b.Agent != "researcher" || b.Depth != 1 || !strings.Contains(b.Prompt, "Users are thrown out.") || !strings.Contains(b.Prompt, "sessions") {
		t.Fatalf("%+v", b)
	}
	if msg := w.bad(ctx, "task_begin", map[string]any{"operation": "plan", "number": 1}); !strings.Contains(msg, "somebody works at it") {
		t.Error(msg)
	}
	if msg := w.bad(ctx, "task_finish", map[string]any{"session_id": b.Session, "answer": "Done!"}); !strings.Contains(msg, "no JSON object") || !strings.Contains(msg, "give it again") {
		t.Error(msg)
	}
	write(b, "# Found\n")
	get("task_finish", map[string]any{"session_id": b.Session, "answer": "Here it is:\n" + answer(b, "completed", b.Artifact)}, &r)
	if r.Status != "completed" || r.Task != task.Researched {
		t.Fatalf("%+v", r)
	}
	get("task_begin", map[string]any{"operation": "plan", "number": 1}, &b)
	write(b, "# Plan\n\n### Phase 1: Read the log [NOT STARTED]\n\n### Phase 2: Mend it [NOT STARTED]\n")
	get("task_finish", map[string]any{"session_id": b.Session, "answer": answer(b, "completed")}, &r)
	get("task_begin", map[string]any{"operation": "implement", "number": 1}, &b)
	get("task_cancel", map[string]any{"session_id": b.Session, "reason": "no time", "status": "partial"}, &r)
	if r.Task != task.Partial {
		t.Errorf("%+v", r)
	}
	for phase := 1; phase <= 2; phase++ {
		get("task_begin", map[string]any{"operation": "implement", "number": 1}, &b)
		if b.Phase != phase {
			t.Fatalf("phase %d: %+v", phase, b)
		}
		get("task_finish", map[string]any{"session_id": b.Session, "answer": answer(b, "completed")}, &r)
	}
	if r.Task != task.Completed {
		t.Errorf("%+v", r)
	}
	var whole taskWhole
	get("task_show", map[string]any{"number": 1}, &whole)
	if whole.Status != "completed" || len(whole.Phases) != 2 || whole.Phases[1].Status != "completed" || len(whole.Operations) != 5 || len(whole.Files) != 3 {
		t.Errorf("%+v", whole)
	}
	get("task_begin", map[string]any{"operation": "review", "focus": "internal"}, &b)
	write(b, "# Review\n\n### Finding: Keys are logged\n- **Severity**: critical\n")
	get("task_finish", map[string]any{"session_id": b.Session, "answer": answer(b, "completed")}, &r)
	if len(r.Made) != 1 || r.Made[0] != 2 {
		t.Errorf("%+v", r)
	}
	get("task_set", map[string]any{"number": 2, "status": "blocked", "reason": "no access"}, &whole)
	if whole.Status != "blocked" || whole.Reason != "no access" {
		t.Errorf("%+v", whole)
	}
	if msg := w.bad(ctx, "task_set", map[string]any{"number": 1, "status": "planned"}); !strings.Contains(msg, "take it up again") {
		t.Error(msg)
	}
	var list struct{ Tasks []taskLine }
	get("task_list", map[string]any{}, &list)
	if len(list.Tasks) != 1 || list.Tasks[0].Number != 2 {
		t.Errorf("%+v", list)
	}
	var gone struct{ Archived []taskLine }
	get("task_todo", map[string]any{}, &gone)
	if len(gone.Archived) != 1 || gone.Archived[0].Number != 1 {
		t.Errorf("%+v", gone)
	}
	get("task_list", map[string]any{"all": true}, &list)
	if len(list.Tasks) != 2 || list.Tasks[0].Archived || !list.Tasks[1].Archived || list.Tasks[1].Number != 1 {
		t.Errorf("all: %+v", list)
	}
	get("task_list", map[string]any{"all": true, "status": []string{"blocked"}}, &list)
	if len(list.Tasks) != 1 || list.Tasks[0].Number != 2 {
		t.Errorf("all that are blocked: %+v", list)
	}
	if get("task_show", map[string]any{"number": 1}, &whole); !whole.Archived || whole.Title != "Fix the login" || !strings.Contains(whole.Text, "thrown out") {
		t.Errorf("a task of the archive: %+v", whole)
	}
	_, err := d.Store.Change(ctx, func(b *task.Board) error {
		l, err := b.Failures()
		l.Record(task.Failure{Type: task.BuildError, Message: "a.go:1: undefined"}, d.Now())
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	var failed struct {
		Groups []task.Group
		Task   *taskWhole
	}
	get("task_errors", map[string]any{"fix": true}, &failed)
	if failed.Task == nil || failed.Task.Number != 3 || len(failed.Task.Phases) != 1 {
		t.Errorf("%+v", failed)
	}
	want := []string{"task 1: create Fix the login", "task 1: complete research", "task 1: create implementation plan", "task 1: implement phase 1 partial",
		"task 1 phase 1: read the log", "task 1 phase 2: mend it", "task 1: fix the login", "review: update registries and create tasks", "task 2: blocked",
		"todo: clean 1 completed task", "errors: create fix plan for 1 build_error errors (task 3)"}
	if got := strings.Join(d.said, "\n"); got != strings.Join(want, "\n") {
		t.Errorf("committed:\n%s", got)
	}
}

// A run may look at tasks and moves none; outside a project there are none.
func TestTaskToolsOffered(t *testing.T) {
	for _, c := range []struct {
		access memory.Access
		want   string
	}{
		{memory.FullAccess, "task_list task_show task_new task_set task_begin task_finish task_cancel task_todo task_errors"},
		{memory.ReadAccess, "task_list task_show"},
		{memory.NoAccess, ""},
	} {
		tools, err := choose(Deps{Toolsets: []string{"tasks"}, TaskAccess: c.access, InProject: true})
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, tl := range tools {
			names = append(names, tl.name)
		}
		if got := strings.Join(names, " "); got != c.want {
			t.Errorf("%v: %s", c.access, got)
		}
	}
	w := newWorld(t, func(o *Deps) { o.Toolsets, o.TaskAccess = []string{"tasks"}, memory.FullAccess })
	if msg := w.bad(t.Context(), "task_list", map[string]any{}); !strings.Contains(msg, "reprise init") {
		t.Error(msg)
	}
}
