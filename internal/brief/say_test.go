package brief

import (
	"context"
	"strings"
	"testing"

	"reprise/internal/event"
	"reprise/internal/recall"
)

func TestOneThingOneLine(t *testing.T) {
	const fix = "go test ./orders: connection refused — worked after running docker compose up"
	of := func(id string, class recall.Class, title, text string) recall.Result {
		r := doc(id, text)
		r.Class, r.Title, r.Confidence = class, title, 0.8
		return r
	}
	pattern := of("pt-1", recall.ClassPattern, fix, "`go test ./orders` fails with: connection refused It worked after running docker compose up.")
	said := of("ep-1", recall.ClassEpisode, "The user corrected: no, pnpm", "After `npm i` the user said: no, pnpm")
	said.Author = "user"
	turn := of("ep-2", recall.ClassEpisode, "Fix the tax", "Asked: Fix the tax\nAnswered: The rate is read from the table now.")
	full := of("sm-1", recall.ClassSummary, "Session of 2026-11-27: Fix the tax", "Task: Fix the tax / Run it\nFailed and fixed: go test ./orders: connection refused — after running docker compose up\nDecided: rates come from the table\nLast answer: Done.\n2 prompts, 3 tool calls, 0 failed, outcome good.")
	empty := of("sm-2", recall.ClassSummary, "Session of 2026-11-26: Say hi", "Task: Say hi\nLast answer: Done.\n1 prompt, 1 tool call, 0 failed, outcome good.")
	o := Options{Budgets: usual(), Top: answers(full, empty, pattern, said, turn), Recall: answers(pattern)}
	b, err := Make(t.Context(), o, Request{At: SessionStart})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"- " + fix + " [pattern", "- The user corrected: no, pnpm [episode", "- Asked: Fix the tax ⏎ Answered: The rate",
		"- Session of 2026-11-27: Fix the tax / Run it. Decided: rates come from the table [summary", label,
	} {
		if strings.Count(b.Text, want) != 1 {
			t.Errorf("%q is not there once:\n%s", want, b.Text)
		}
	}
	if strings.Contains(b.Text, "outcome good") || strings.Contains(b.Text, "Done.") || strings.Contains(b.Text, "sm-2") || b.Dropped["sm-2"] != "empty" {
		t.Errorf("noise in\n%s\n%v", b.Text, b.Dropped)
	}
	// The learning of it has other marks around its words, and no values.
	learnt := of("e-1", recall.ClassLearning, "", "`go test ./orders` fails with `connection refused: port <n>`; it worked after running `docker compose up`.")
	o.Top = answers(full, learnt)
	if b, err = Make(t.Context(), o, Request{At: SessionStart}); err != nil || strings.Contains(b.Text, "Failed and fixed") || !strings.Contains(b.Text, "Decided: rates") {
		t.Errorf("%v: the summary says what the learning says:\n%s", err, b.Text)
	}
	for _, r := range []Request{{At: Prompt, Text: "x"}, {At: ToolFailure}} {
		o.KnownFix = func(context.Context, recall.Reader, event.ToolData) (recall.Answer, error) {
			return recall.Answer{Results: []recall.Result{pattern}}, nil
		}
		b, err := Make(t.Context(), o, r)
		if err != nil || !strings.HasPrefix(b.Text, opening+shortLabel+"## ") {
			t.Errorf("%s: %q, %v", r.At, b.Text, err)
		}
	}
}

// What was asked alone is no memory: a prompt is answered with what came of
// earlier ones. The key is the one that every episode has.
func TestBarePrompts(t *testing.T) {
	turn := func(id, text string) recall.Result {
		r := doc(id, "Asked: tidy the cart\n"+text)
		r.Class, r.Title, r.Confidence, r.Keys, r.Author = recall.ClassEpisode, "tidy the cart", 0.4, []string{"c-1"}, "user"
		return r
	}
	none := turn("ep-none", "")
	none.Text = "Asked: tidy the cart"
	o := Options{Budgets: usual(), Recall: answers(none, turn("ep-done", "Answered: Done."), turn("ep-ran", "Ran: `ls`"),
		turn("ep-told", "Answered: The sum is kept in cents now."), turn("ep-edit", "Edited: cart.py"), turn("ep-broke", "The turn ended by an error: rate limit"))}
	b, err := Make(t.Context(), o, Request{At: Prompt, Text: "tidy the cart please"})
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"ep-none", "ep-done", "ep-ran"} {
		if strings.Contains(b.Text, id) || b.Dropped[id] != "empty" {
			t.Errorf("%s is told:\n%s", id, b.Text)
		}
	}
	for _, want := range []string{"⏎ Answered: The sum", "⏎ Edited: cart.py", "⏎ The turn ended"} {
		if !strings.Contains(b.Text, want) {
			t.Errorf("%q is not told:\n%s", want, b.Text)
		}
	}
}
