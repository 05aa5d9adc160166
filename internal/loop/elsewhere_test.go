package loop

import (
	"strings"
	"testing"

	"reprise/internal/loop/said"
	"reprise/internal/queue"
)

// What a person has answered reaches the item's next session also where the loop that asked
// is not the one that begins it: the item's own history has it.
func TestAnswerIsPartOfTheItem(t *testing.T) {
	asked := queue.Entry{Op: queue.OpPark, Note: "asks: Keep the old endpoint?"}
	claimed := queue.Entry{Op: queue.OpClaim}
	for name, c := range map[string]struct {
		history       []queue.Entry
		asked, answer string
	}{
		"nothing":            {},
		"answered":           {[]queue.Entry{claimed, asked, {Op: queue.OpUnpark, Note: said.AnsweredNote + "Drop it."}, claimed}, "Keep the old endpoint?", "Drop it."},
		"let go on":          {[]queue.Entry{asked, {Op: queue.OpUnpark, Note: "a person lets it go on"}, claimed}, "", ""},
		"failed since":       {[]queue.Entry{asked, {Op: queue.OpUnpark, Note: said.AnsweredNote + "Drop it."}, claimed, {Op: queue.OpFail, Note: "checks"}, claimed}, "Keep the old endpoint?", "Drop it."},
		"the last counts":    {[]queue.Entry{asked, {Op: queue.OpUnpark, Note: said.AnsweredNote + "Drop it."}, claimed, {Op: queue.OpPark, Note: "asks: And the test?"}, {Op: queue.OpUnpark, Note: said.AnsweredNote + "Keep it."}, claimed}, "And the test?", "Keep it."},
		"silence counts too": {[]queue.Entry{asked, {Op: queue.OpUnpark, Note: said.AnsweredNote + "Drop it."}, claimed, asked, {Op: queue.OpUnpark, Note: "tidied"}, claimed}, "", ""},
	} {
		got := said.Answered(queue.Item{History: c.history})
		switch {
		case c.answer == "" && got != nil:
			t.Errorf("%s: told %q", name, got.Answer)
		case c.answer == "":
		case got == nil || got.Answer != c.answer || got.Asked != c.asked:
			t.Errorf("%s: got %+v", name, got)
		default:
			words := firstWords(queue.Item{ID: "x", Title: "X"}, got, false)
			if !strings.Contains(words, c.answer) || !strings.Contains(words, c.asked) {
				t.Errorf("%s: the session is not told:\n%s", name, words)
			}
		}
	}
}
