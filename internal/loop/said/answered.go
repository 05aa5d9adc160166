package said

import (
	"slices"
	"strings"

	"reprise/internal/loop/core"
	"reprise/internal/queue"
)

// AnsweredNote begins the reason for which an item is put back that a person has answered
// a question of. With it the answer is part of the item, so that it reaches the item's next
// session also where another machine begins that.
const AnsweredNote = "a person has answered: "

// GoesOnNote is the reason where a person has let it go on without an answer.
const GoesOnNote = core.GoesOn

// Answered is what a person has answered by the item's own history, nil for
// nothing. What has failed since knew it, and may have failed because of it: it is told
// again all the same, for the next session knows nothing of the one before.
func Answered(it queue.Item) *core.Continuation {
	for i, e := range slices.Backward(it.History) {
		if e.Op != queue.OpUnpark {
			continue
		}
		answer, ok := strings.CutPrefix(e.Note, AnsweredNote)
		if !ok {
			return nil
		}
		c := core.Continuation{Answer: answer, Why: string(core.Asked), Fresh: true}
		for _, before := range slices.Backward(it.History[:i]) {
			if before.Op == queue.OpPark {
				c.Number = int64(before.Fence)
				c.Asked = strings.TrimPrefix(before.Note, string(core.Asked)+": ")
				break
			}
		}
		return &c
	}
	return nil
}
