package web

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"reprise/internal/run"
	"reprise/internal/task"
)

func (h *house) tasks(fn func(*task.Board) error) {
	h.t.Helper()
	if _, err := h.deps.Tasks.(*task.Store).Change(context.Background(), fn); err != nil {
		h.t.Fatal(err)
	}
}

func TestTasks(t *testing.T) {
	h := open(t, nil)
	if !strings.Contains(h.page("/tasks"), "reprise task new") {
		t.Error("an empty list does not say how a task is made")
	}
	title, other := "Make the port a setting", strings.ReplaceAll(hostile, "\n", " ")[:60]
	h.tasks(func(b *task.Board) error {
		if _, err := b.Add(task.Draft{Title: &title, Body: "Read it from **one** place.\n\n" + hostile}); err != nil {
			return err
		}
		if _, err := b.AddReport(1, []byte("# What I found\n\n"+hostile)); err != nil {
			return err
		}
		if _, err := b.AddPlan(1, []byte("# Plan\n\n### Phase 1: Look [NOT STARTED]\n\nDo it.\n\n### Phase 2: Change <b>all</b> [NOT STARTED]\n\nDo it.\n")); err != nil {
			return err
		}
		_, err := b.Add(task.Draft{Title: &other, DependsOn: &[]int{1}})
		return err
	})
	board := h.page("/tasks")
	for _, want := range []string{"1. Make the port a setting", "waits for", `aria-label="planned"`} {
		if !strings.Contains(strings.ToLower(board), strings.ToLower(want)) {
			t.Errorf("the board lacks %q", want)
		}
	}
	list := h.page("/tasks?view=list&status=planned")
	if !strings.Contains(list, title) || strings.Contains(list, `/tasks/2"`) {
		t.Error("the list of what is planned is not that")
	}
	one := h.page("/tasks/1")
	for _, want := range []string{"<strong>one</strong>", "Change &lt;b&gt;all&lt;/b&gt;", "reprise task implement 1", "research-001.md", "implementation-001.md"} {
		if !strings.Contains(one, want) {
			t.Errorf("the task's page lacks %q", want)
		}
	}
	report := h.page("/tasks/1/files/0")
	if !strings.Contains(report, "<h3>What I found</h3>") {
		t.Error("the report is not rendered")
	}
	for path, body := range map[string]string{"/tasks": board, "list": h.page("/tasks?view=list"), "/tasks/1": one, "report": report} {
		checkHarmless(t, path, body)
	}
	for _, path := range []string{"/tasks/3", "/tasks/x", "/tasks/1/files/9", "/tasks/1/files/-1", "/tasks/1/files/state.json"} {
		if code, _ := h.get(path); code != http.StatusNotFound {
			t.Errorf("GET %s: %d, want 404", path, code)
		}
	}
	// What a person writes into TODO.md is there at the next look.
	todo := filepath.Join(h.deps.Tasks.Dir(), "TODO.md")
	data, err := os.ReadFile(todo)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(todo, []byte(strings.Replace(string(data), title, "Make every port a setting", 1)), 0o644); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(h.page("/tasks"), "Make every port a setting") {
		t.Error("an edit by hand is not shown")
	}
}

// A step's times are noted in whole seconds: what took less is said so, and where there is a
// run the time is that of the run.
func TestStepsTookWhatTheyTook(t *testing.T) {
	h := open(t, nil)
	h.runRecord("run-aaaaaaaaaa", func(r *run.Record) {
		at := r.StartedAt.Add(182 * time.Millisecond)
		r.EndedAt = &at
	}, "")
	title := "Measure it"
	h.tasks(func(b *task.Board) error {
		if _, err := b.Add(task.Draft{Title: &title}); err != nil {
			return err
		}
		o, err := b.Begin(1, task.Operation{Name: task.OpResearch, Session: "sess_1_aaaaaa"}, nil)
		if err != nil {
			return err
		}
		o.Run = "run-aaaaaaaaaa"
		if _, err = b.AddReport(1, []byte("# Found\n")); err != nil {
			return err
		}
		if _, err = b.Begin(1, task.Operation{Name: task.OpPlan, Session: "sess_2_bbbbbb"}, nil); err != nil {
			return err
		}
		_, err = b.AddPlan(1, []byte("# Plan\n\n### Phase 1: Look [NOT STARTED]\n"))
		return err
	})
	page := h.page("/tasks/1")
	for step, took := range map[string]string{task.OpResearch: "182 ms", task.OpPlan: "under 1 s"} {
		_, row, _ := strings.Cut(page, "<tr><td>"+step+"</td>")
		if row, _, _ = strings.Cut(row, "</tr>"); !strings.Contains(row, `<td class="n">`+took+`</td>`) {
			t.Errorf("%s took %s:\n%s", step, took, row)
		}
	}
}

func TestManyTasksAreDivided(t *testing.T) {
	h := open(t, nil)
	h.tasks(func(b *task.Board) error {
		for i := range tasksPerPage + 5 {
			title := fmt.Sprintf("Task of many %d", i+1)
			if _, err := b.Add(task.Draft{Title: &title}); err != nil {
				return err
			}
		}
		return nil
	})
	if n := strings.Count(h.page("/tasks"), "Task of many"); n != tilesPerColumn {
		t.Errorf("the board has %d tiles, want %d and a link to all", n, tilesPerColumn)
	}
	first, second := h.page("/tasks?view=list"), h.page(fmt.Sprintf("/tasks?view=list&from=%d", tasksPerPage))
	if a, b := strings.Count(first, "Task of many"), strings.Count(second, "Task of many"); a != tasksPerPage || b != 5 {
		t.Errorf("the pages have %d and %d tasks, want %d and 5", a, b, tasksPerPage)
	}
	if h.page("/tasks?view=list&from=99999999"); !strings.Contains(h.page("/tasks?view=list&from=-5"), "Task of many 1<") {
		t.Error("a page before the first is not the first")
	}
}
