package run

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"reprise/internal/durable"
)

// taskStart is how many bytes of a task TaskStart reads.
const taskStart = 1 << 10

// TaskStart is the beginning of what the run was asked to do, for lists in
// which people look for it. The whole is in the run's directory.
func (r Record) TaskStart() (string, error) {
	f, err := durable.Open(filepath.Join(r.dir, promptFile))
	if err != nil {
		return "", fmt.Errorf("read task of %s: %w", r.ID, err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, taskStart))
	if err != nil {
		return "", fmt.Errorf("read task of %s: %w", r.ID, err)
	}
	return string(data), nil
}

// About is what a run is about, in one line, for lists: where it was started for an item
// of the queue or for a step of a task, that one's title, since what such runs are told
// begins alike; else the first line of what it was asked to do.
func (r Record) About() (string, error) {
	text, err := r.TaskStart()
	if err != nil {
		return "", err
	}
	text = strings.TrimSpace(text)
	first, rest, _ := strings.Cut(text, "\n")
	switch r.Origin {
	case "loop": // "… the item ID: TITLE"
		if _, item, ok := strings.Cut(first, " the item "); ok {
			if _, title, ok := strings.Cut(item, ": "); ok && strings.TrimSpace(title) != "" {
				return strings.TrimSpace(title), nil
			}
		}
	case "task": // the second paragraph: what it is, and which step of it
		if _, what, ok := strings.Cut(rest, "\n\n"); ok {
			what, more, _ := strings.Cut(what, "\n")
			if step, ok := strings.CutPrefix(more, "Step: "); ok {
				step, _, _ = strings.Cut(step, "\n")
				return strings.TrimSpace(what) + " (" + strings.TrimSpace(step) + ")", nil
			}
		}
	}
	return strings.TrimSpace(first), nil
}
