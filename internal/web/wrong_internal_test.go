package web

import (
	"strings"
	"testing"

	"reprise/internal/loop"
	"reprise/internal/loop/core"
)

// What a loop says to an answer for which there is no question names no command on a page.
func TestNoQuestionInWordsOfThePage(t *testing.T) {
	for kind, want := range map[string]string{core.ByFailing: "without an answer it goes on", core.ByBudget: "a higher ceiling, and no answer, lets it go on"} {
		for _, tokens := range []int64{0, 1} {
			s := core.New("loop-1", core.DefaultLimits(), core.Time{})
			s.Limits.MaxTokens = tokens
			s.Phase, s.Interrupt = core.Waiting, &core.Interrupt{Kind: kind, Why: "why"}
			_, err := loop.Requests(&s, nil, loop.Said{Answer: "yes"})
			if err == nil {
				t.Fatal("an answer to nothing was taken")
			}
			if got := inOurWords(err).Error(); !strings.Contains(got, want) || strings.Contains(got, "reprise ") {
				t.Errorf("%s, at most %d tokens: %s", kind, tokens, got)
			}
		}
	}
}
