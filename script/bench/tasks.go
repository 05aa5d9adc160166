package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"reprise/internal/durable"
	"reprise/internal/task"
)

// taskLong and taskFew are how many tasks the lists have that are measured.
const (
	taskLong = 5000
	taskFew  = 100
)

// tasks is what a long list costs beside the program's own start, and what a change of
// a status costs beside the waiting for the disk.
func (r *rig) tasks() ([]row, error) {
	s, err := r.newShop("tasks")
	if err != nil {
		return nil, err
	}
	if err := writeList(filepath.Join(s.dir, "specs"), taskLong); err != nil {
		return nil, err
	}
	if _, err := s.run(r.reprise, "task", "check", "--fix"); err != nil {
		return nil, err
	}
	timed := func(args ...string) (time.Duration, error) {
		began := time.Now()
		_, err := s.run(append([]string{r.reprise}, args...)...)
		return time.Since(began), err
	}
	var list, start, more []time.Duration
	for range r.n + 1 {
		a, err := timed("task", "list", "--json")
		if err != nil {
			return nil, err
		}
		b, err := timed("--version")
		if err != nil {
			return nil, err
		}
		list, start, more = append(list, a), append(start, b), append(more, a-b)
	}
	rows := []row{{
		fmt.Sprintf("`reprise task list` over %d tasks", taskLong), ms(median(list[1:])),
		fmt.Sprintf("`reprise --version`: %s, so %s more", ms(median(start[1:])), ms(median(more[1:]))), "≤ 50 ms more",
	}}
	for _, n := range []int{taskFew, taskLong} {
		dir := filepath.Join(r.dir, fmt.Sprint("list-", n))
		if err := writeList(filepath.Join(dir, "specs"), n); err != nil {
			return nil, err
		}
		st := task.New(dir, task.Options{Now: time.Now})
		var change, bare, more []time.Duration
		for i := range r.n + 1 {
			to := []task.Status{task.Planned, task.InProgress}[i%2]
			began := time.Now()
			if _, err := st.Change(context.Background(), func(b *task.Board) error { return b.SetStatus(n/2, to, "") }); err != nil {
				return nil, err
			}
			a := time.Since(began)
			began = time.Now()
			for _, name := range []string{"journal", "TODO.md", "state.json"} {
				if err := durable.WriteFile(filepath.Join(dir, name), []byte("x"), 0o600); err != nil {
					return nil, err
				}
			}
			b := time.Since(began)
			change, bare, more = append(change, a), append(bare, b), append(more, a-b)
		}
		rows = append(rows, row{
			fmt.Sprintf("a status change in a list of %d", n), ms(median(change[1:])),
			fmt.Sprintf("three small files written and synced: %s, so %s more", ms(median(bare[1:])), ms(median(more[1:]))), map[int]string{taskFew: "≤ 10 ms more"}[n],
		})
	}
	return rows, nil
}

// writeList writes a TODO.md of n tasks, as a person has it.
func writeList(dir string, n int) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	var b strings.Builder
	b.WriteString("# TODO\n")
	for i := range n {
		fmt.Fprintf(&b, "\n### %d. Task number %d of a long list\n\n- **Effort**: 3 hours\n- **Status**: [NOT STARTED]\n- **Priority**: medium\n- **Language**: go\n\nWhat it is about, in a sentence or two, as people write it.\n", i+1, i+1)
	}
	return os.WriteFile(filepath.Join(dir, "TODO.md"), []byte(b.String()), 0o644)
}
