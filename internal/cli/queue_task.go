package cli

import (
	"context"
	"fmt"
	"slices"

	"reprise/internal/queue"
	"reprise/internal/task"
)

// phaseKey names the item of a task's phase: the phase is in the queue once.
func phaseKey(number, phase int) string { return fmt.Sprintf("task:%03d/%d", number, phase) }

// phaseItem is a phase of a task's plan as an item of the queue. It waits for the phases
// of which the plan says so, or in a plan that says nothing of that for the one before.
func phaseItem(t *task.Task, p *task.Plan, phase int) queue.Item {
	ph := p.Phase(phase)
	it := queue.Item{
		Key: phaseKey(t.Number, phase), Title: oneTitle(fmt.Sprintf("Task %d, phase %d: %s", t.Number, phase, ph.Title)), Body: ph.Text,
		Task: fmt.Sprintf("%03d/%d", t.Number, phase), Source: fmt.Sprintf("task:%03d", t.Number), Labels: []string{"task"},
	}
	if n, err := queue.ParsePriority(t.Priority); err == nil {
		it.Priority = &n
	}
	if t.Language != "" && t.Language != task.DefaultLanguage {
		it.Labels = append(it.Labels, t.Language)
	}
	before := ph.DependsOn
	if !slices.ContainsFunc(p.Phases, func(ph task.Phase) bool { return len(ph.DependsOn) > 0 }) {
		before = nil
		for i := range p.Phases {
			if p.Phases[i].Number == phase {
				break
			}
			before = []int{p.Phases[i].Number}
		}
	}
	for _, n := range before {
		if other := p.Phase(n); other != nil && !other.Status.Ended() {
			it.DependsOn = append(it.DependsOn, phaseKey(t.Number, n))
		}
	}
	return it
}

// oneTitle is a title that the queue takes.
func oneTitle(s string) string { return firstLine(s, 400) }

// phaseItems are the phases of a task that are not completed, or only the one asked for.
func (a *App) phaseItems(ctx context.Context, number, only int) ([]queue.Item, error) {
	b, err := a.loadTasks(ctx)
	if err != nil {
		return nil, err
	}
	t, err := b.Task(number)
	if err != nil {
		return nil, taskError(err)
	}
	if t.Status.Ended() {
		return nil, exitWith(ExitConflict, fmt.Errorf("task %d is %s", number, t.Status.Words()))
	}
	if waits := b.Waits(t); len(waits) > 0 {
		return nil, exitWith(ExitConflict, fmt.Errorf("task %d waits for task %d: add that first, or change what it depends on with `reprise task edit`", number, waits[0]))
	}
	p, name, err := b.Plan(t)
	if err != nil {
		return nil, err
	}
	if only != 0 && p.Phase(only) == nil {
		return nil, exitWith(ExitNotFound, fmt.Errorf("%s has no phase %d", name, only))
	}
	var items []queue.Item
	for i := range p.Phases {
		if ph := &p.Phases[i]; !ph.Status.Ended() && (only == 0 || only == ph.Number) {
			items = append(items, phaseItem(t, p, ph.Number))
		}
	}
	if len(items) == 0 {
		return nil, exitWith(ExitConflict, fmt.Errorf("%s has no phase that is left to do", name))
	}
	return items, nil
}
