package worker

import (
	"slices"
	"strings"

	"reprise/internal/queue"
)

// Needs begins a label that says what a machine must have to work on an item.
const Needs = "needs-"

// Can is what a worker can do.
type Can struct {
	// Clients are those that work here. Of says which one would work on an item.
	Clients []string
	Of      func(*queue.Item) string
	Has     []string // for labels needs-X
}

// Fits says whether an item is one for the worker. The steps of a task are for the loop of
// the checkout in which the task is: only there can they begin and end.
func (c *Can) Fits(it *queue.Item) bool {
	if it.Task != "" {
		return false
	}
	for _, l := range it.Labels {
		if what, ok := strings.CutPrefix(l, Needs); ok && !slices.Contains(c.Has, what) {
			return false
		}
	}
	return slices.Contains(c.Clients, c.Of(it))
}
