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
	return Has(c.Has, it.Labels) && slices.Contains(c.Clients, c.Of(it))
}

// Has says whether a machine that has these things has what labels of an item ask for.
func Has(things, labels []string) bool {
	for _, l := range labels {
		if what, ok := strings.CutPrefix(l, Needs); ok && !slices.Contains(things, what) {
			return false
		}
	}
	return true
}
