package web

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"reprise/internal/loop"
	"reprise/internal/loop/core"
	"reprise/internal/loop/tell"
)

// Every way out has words of a terminal and words of the page, which name no command and no
// flag; what happened, and what is asked, stands on both.
func TestEachWayHasWordsOfThePage(t *testing.T) {
	for way := tell.WayWhich; way <= tell.WayCeiling; way++ {
		err := error(&tell.Unsaid{Kind: loop.ErrWhich, What: "it is late", Way: way, Command: "reprise loop resume --more-usd N",
			Open: []tell.OpenQuestion{{Item: "db", Why: "Which?", Worker: "w-1", Commands: []string{"reprise loop resume --item db"}}}})
		if text := err.Error(); !strings.Contains(text, "it is late") || !strings.Contains(text, "reprise loop resume") || !strings.Contains(text, "db, of the worker w-1: Which?") {
			t.Errorf("way %d in a terminal: %s", way, text)
		}
		page := inOurWords(fmt.Errorf("resume: %w", err)).Error()
		if !errors.Is(err, loop.ErrWhich) || ways[way] == "" || !strings.Contains(page, "; "+ways[way]+"\n") || !strings.Contains(page, "it is late") || !strings.Contains(page, "db, of the worker w-1: Which?") {
			t.Errorf("way %d on a page: %s", way, page)
		}
		if strings.Contains(page, "reprise ") || strings.Contains(page, "--") {
			t.Errorf("way %d names a command on a page: %s", way, page)
		}
	}
}

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

// What has more lines than the one that is shown says so, within the room that there is.
func TestOneLine(t *testing.T) {
	for text, want := range map[string]string{"": "", " one ": "one", "one\n": "one", "one\n\nA) red": "one …", "a long line of words\nand more": "a long li…"} {
		if got := oneLine(10, text); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
}
