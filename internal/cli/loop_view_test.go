package cli

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"reprise/internal/loop"
	"reprise/internal/loop/core"
	"reprise/internal/queue"
	"reprise/internal/term"
)

func busyView(workers int) *loopView {
	v := &loopView{Running: true, Metrics: loop.Metrics{Loop: "loop-aaaaaaaaaa", Phase: core.Waiting, MaxSeconds: 28800, MaxUSD: 50, MaxTokens: 50_000_000, MaxIterations: 500},
		Interrupt: &core.Interrupt{Kind: core.ByAgent, Why: "Keep the old endpoint for a release, or drop it now? Eine Frage mit Umläuten: größer, schöner, 中文字符 und ein sehrlangesWortohneeineinzigesLeerzeichenwasesauchgibtundnochmehr"},
		Parked:    []string{"item-with-a-long-name-1", "item-with-a-long-name-2", "item-with-a-long-name-3", "item-with-a-long-name-4"}}
	for i := range workers {
		v.Workers = append(v.Workers, workerView{Worker: i + 1, Step: "preparing", Stop: "stall", Item: fmt.Sprintf("item-with-a-long-name-%d", i), Run: "run-aaaaaaaaaa", Seconds: 12345, ToolCalls: 1234,
			Tokens: 12_345_678, LastTool: "mcp__reprise__state_context", Progress: &queue.Progress{StepsCompleted: 3, StepsTotal: 10, CurrentStep: "Implementing the \x1b[31mlogin of users, and their \x07logout"}})
	}
	return v
}

// The view of a loop fits the terminal, however narrow, and nothing that an agent says
// reaches it as more than text.
func TestLoopViewFits(t *testing.T) {
	for _, columns := range []int{0, 30, 40, 59, 60, 80, 109, 110, 200} {
		app := &App{}
		text := app.viewText(busyView(3), columns)
		for line := range strings.Lines(text) {
			if w := term.Width(strings.TrimSuffix(line, "\n")); columns > 0 && w > columns {
				if !strings.Contains(line, "reprise loop resume") { // what is to be typed is never cut
					t.Errorf("%d of %d columns: %q", w, columns, line)
				}
			}
		}
		for _, want := range []string{"waits for a person", "3/10 Implementing", "set aside", "LAST TOOL"} {
			if !strings.Contains(text, want) && (columns == 0 || columns >= 59) {
				t.Errorf("at %d columns it lacks %q:\n%s", columns, want, text)
			}
		}
		if strings.ContainsAny(text, "\x1b\x07") {
			t.Errorf("control characters: %q", text)
		}
		if has := strings.Contains(text, "run-aaaaaaaaaa"); has != (columns == 0 || columns >= wideEnough) {
			t.Errorf("at %d columns, names of runs: %v", columns, has)
		}
	}
	app := &App{}
	if text := app.viewText(busyView(50), 100); strings.Count(fitRows(text, 100, 24), "\n") != 23 || !strings.Contains(fitRows(text, 100, 24), "lines more") {
		t.Errorf("50 workers on 24 rows:\n%s", fitRows(text, 100, 24))
	}
	short := app.viewText(busyView(1), 100)
	if got := fitRows(short, 100, 40); got != short {
		t.Errorf("it is cut although there is room:\n%s", got)
	}
}

// A view is drawn over the one before in one write, and nothing is cleared before what
// takes its place is there.
func TestLoopViewOverdraws(t *testing.T) {
	first, next := overdraw("a\nb\n", true), overdraw("a\n", false)
	if first != "\x1b[2J\x1b[Ha\x1b[K\nb\x1b[K\n\x1b[J" || next != "\x1b[Ha\x1b[K\n\x1b[J" {
		t.Errorf("%q\n%q", first, next)
	}
	var out bytes.Buffer
	app := &App{Out: &out}
	if text := app.viewText(&loopView{Metrics: loop.Metrics{Loop: "loop-x", Phase: core.Finished}}, 0); strings.Contains(text, "\x1b") {
		t.Errorf("%q", text)
	}
}

// What waits for a person is said once, in words, and with what can be done.
func TestLoopViewWaits(t *testing.T) {
	v := func(i core.Interrupt, tokens int64, q ...loop.Question) string {
		m := loop.Metrics{Loop: "loop-x", Phase: core.Waiting, MaxTokens: 50_000_000, Tokens: tokens, MaxUSD: 50}
		return (&App{}).viewText(&loopView{Running: true, Metrics: m, Reason: i.Kind + ": " + i.Why, Interrupt: &i, Questions: q}, 0)
	}
	text := v(core.Interrupt{Kind: core.ByAgent, Why: "Which of the two?", Items: []string{"a"}}, 0, loop.Question{Item: "a", Kind: core.ByAgent, Why: "Which of the two?"})
	if strings.Count(text, "Which of the two?") != 1 || !strings.Contains(text, "waits for a person about a\n  a, an agent asks: Which of the two?\n    answer with `"+core.AnswerCommand("a")+"`") {
		t.Errorf("a question:\n%s", text)
	}
	if text := v(core.Interrupt{Kind: core.ByBudget, Why: "all tokens are used"}, 50_000_001); !strings.Contains(text, "a ceiling is reached: all tokens are used\n  let it go on with `reprise loop resume --more-tokens N`") ||
		!strings.Contains(text, term.Num(50_000_001)+" of "+term.Num(50_000_000)+" tokens") {
		t.Errorf("at a ceiling:\n%s", text)
	}
	if text := v(core.Interrupt{Kind: core.ByBudget, Why: "the money is used up"}, 1); !strings.Contains(text, "reprise loop resume --more-usd N`") {
		t.Errorf("at the other:\n%s", text)
	}
	if text := v(core.Interrupt{Kind: core.ByAuth, Why: "Please run /login"}, 1); !strings.Contains(text, "waits for a person: not logged in: Please run /login\n  let it go on with `reprise loop resume`") {
		t.Errorf("without a login:\n%s", text)
	}
}

// What was asked of a loop and it has not done yet is shown in every phase: whoever has asked
// sees that it was heard, also while the loop waits or stops.
func TestLoopViewAsked(t *testing.T) {
	for _, phase := range []core.Phase{core.Working, core.Waiting, core.Stopping} {
		text := (&App{}).viewText(&loopView{Running: true, Metrics: loop.Metrics{Loop: "loop-x", Phase: phase}, Asked: []string{"pause", "stop"}}, 0)
		for _, want := range []string{"\npause was asked for, and is not done yet\n", "\nstop was asked for, and is not done yet\n"} {
			if !strings.Contains(text, want) {
				t.Errorf("%s: it lacks %q:\n%s", phase, want, text)
			}
		}
	}
	if text := (&App{}).viewText(&loopView{Running: true, Metrics: loop.Metrics{Loop: "loop-x", Phase: core.Working}}, 0); strings.Contains(text, "asked for") {
		t.Errorf("nothing was asked:\n%s", text)
	}
}

// What an agent answers is text at a terminal, and each byte of it for a program.
func TestAnswerIsText(t *testing.T) {
	const said = "done\x1b]0;owned\x07 \x1b[2Jnow\n\n"
	if got := (&App{}).answer(said); got != "done\x1b]0;owned\x07 \x1b[2Jnow" {
		t.Errorf("for a program: %q", got)
	}
	if got := (&App{OutIsTerminal: true}).answer(said); strings.ContainsAny(got, "\x1b\x07") || !strings.HasPrefix(got, "done") || !strings.Contains(got, "now") {
		t.Errorf("at a terminal: %q", got)
	}
}

// Of a loop that has ended nobody works, and times are told as everywhere else.
func TestLoopViewEnded(t *testing.T) {
	v := loopView{Metrics: loop.Metrics{Loop: "loop-x", Phase: core.Finished, WorkedSeconds: 4.5, MaxSeconds: 8 * 3600}, Workers: []workerView{{Worker: 1, Step: "idle"}}}
	text := (&App{}).viewText(&v, 0)
	if strings.Contains(text, "idle") || strings.Contains(text, "WORKER") || !strings.Contains(text, "4.5 s of 8 h,") {
		t.Errorf("%s", text)
	}
	v.Metrics.Phase = core.Paused
	if text := (&App{}).viewText(&v, 0); !strings.Contains(text, "idle") {
		t.Errorf("%s", text)
	}
}

// A question of several lines is shown whole: what can be chosen from stands at its end.
func TestLoopViewQuestion(t *testing.T) {
	v := busyView(1)
	v.Questions = []loop.Question{{Item: "a", Kind: core.ByAgent, Why: "Which of them?\r\n\r\n  A) keep " + strings.Repeat("x", 500) + "\n  B) drop\x1b[31m\n"}}
	text := (&App{}).viewText(v, 0)
	for _, want := range []string{"Which of them?\n      A) keep " + strings.Repeat("x", 500) + "\n      B) drop"} {
		if !strings.Contains(text, want) || strings.Contains(text, "\x1b") {
			t.Errorf("it lacks %q:\n%s", want, text)
		}
	}
}
