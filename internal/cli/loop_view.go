package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"reprise/internal/loop"
	"reprise/internal/loop/core"
	"reprise/internal/loop/tell"
	"reprise/internal/term"
)

// watchLoop shows a loop until it has ended. At a terminal each view is drawn over the
// last one, line by line and in one write, so that nothing flickers, and as large as the
// terminal is by then.
func (a *App) watchLoop(ctx context.Context) error {
	for first := true; ; first = false {
		v, err := a.view()
		if err != nil {
			return err
		}
		columns, rows := a.Columns, 0
		if a.OutIsTerminal && a.Size != nil {
			columns, rows = a.Size()
		}
		text := a.viewText(&v, columns)
		if a.OutIsTerminal {
			text = overdraw(fitRows(text, columns, rows), first)
		}
		if _, err := fmt.Fprint(a.Out, text); err != nil {
			return err
		}
		if !v.Running {
			return nil
		}
		if err := pause(ctx, loop.WatchEvery); err != nil {
			if a.OutIsTerminal {
				fmt.Fprintln(a.Out) // after the ^C that the terminal shows
			}
			return nil // Ctrl-C is how one stops looking
		}
	}
}

// overdraw is a view that is drawn over the one before: each line and the rest of the
// screen is cleared after it is written, and not before.
func overdraw(view string, first bool) string {
	var b strings.Builder
	if first {
		b.WriteString("\x1b[2J")
	}
	b.WriteString("\x1b[H")
	for line := range strings.Lines(view) {
		b.WriteString(strings.TrimSuffix(line, "\n") + "\x1b[K\n")
	}
	b.WriteString("\x1b[J")
	return b.String()
}

// fitRows leaves out what would scroll the view away; 0 rows leave out nothing. The
// cursor has a row of its own.
func fitRows(view string, columns, rows int) string {
	lines := strings.SplitAfter(strings.TrimSuffix(view, "\n"), "\n")
	if rows < 2 || len(lines) < rows {
		return view
	}
	keep := max(rows-2, 0)
	return strings.Join(lines[:keep], "") + term.Cut("… and "+count(len(lines)-keep, "line")+" more", max(columns, 1)) + "\n"
}

// wrapLine breaks a line between words so that none is wider than the terminal; 0
// columns break nothing. What continues is indented.
func wrapLine(line string, columns int) string {
	if columns <= 0 || term.Width(line) <= columns {
		return line + "\n"
	}
	var b strings.Builder
	for l := range strings.SplitSeq(term.Wrap("", line, "  ", columns), "\n") {
		b.WriteString(term.Cut(l, columns) + "\n")
	}
	return b.String()
}

// viewText is a view for people, no wider than so many columns; 0 is as wide as it gets.
func (a *App) viewText(v *loopView, columns int) string {
	style, m := a.Style(), v.Metrics
	if m.Loop == "" && len(v.Elsewhere) > 0 { // none has run here
		return a.loopsThereText(v.Elsewhere, columns)
	}
	var b strings.Builder
	say := func(format string, args ...any) { b.WriteString(wrapLine(fmt.Sprintf(format, args...), columns)) }
	state := string(m.Phase)
	switch {
	case m.Phase == core.Finished:
		state = style.Dim(state)
	case !v.Running:
		state = style.Red(state + ", and nobody runs it: `reprise loop run` goes on with it")
	case m.Phase == core.Waiting || m.Phase == core.Paused:
		state = style.Yellow(state)
	default:
		state = style.Green(state)
	}
	why := ""
	if v.Reason != "" && v.Interrupt == nil { // which says it better
		why = fmt.Sprintf(" (%s)", firstLine(v.Reason, 200))
	}
	say("%s %s%s", style.Bold(m.Loop), state, why)
	if v.Unsaved != "" {
		say("%s: %s", style.Red("cannot go on"), firstLine(v.Unsaved, 700))
	}
	say("%d of %d attempts begun, %s of %s, %.2f of %.2f USD, %s of %s tokens", m.Iterations, m.MaxIterations,
		term.Took(time.Duration(m.WorkedSeconds*float64(time.Second))), term.Took(time.Duration(m.MaxSeconds*float64(time.Second))), m.CostUSD, m.MaxUSD, term.Num(m.Tokens), term.Num(m.MaxTokens))
	if m.EstimatedUSD > 0 {
		say("of the money, %.2f USD is an estimate: runs that ended before they could say it", m.EstimatedUSD)
	}
	if m.Untold > 0 {
		say("what %s cost is not known: their client did not say it", count(m.Untold, "attempt"))
	}
	if len(v.Works) > 0 {
		say("%s", term.SafeLine(strings.Join(v.Works, "; ")))
	}
	say("done %d, tried again %d, given up %d, set aside %s, given back %d", m.Done, m.Failed, m.GivenUp, term.Plural(m.Parked, "time"), m.Released)
	if v.HoldUntil != nil {
		say("%s nothing is begun until %s: %s", style.Yellow("holding"), v.HoldUntil.Local().Format("15:04:05"), firstLine(v.HoldWhy, 200))
	}
	if v.Left != "" {
		say("nothing is ready: %s", firstLine(v.Left, 200))
	}
	if i := v.Interrupt; i != nil {
		if slices.ContainsFunc(v.Questions, func(q loop.Question) bool { return q.Kind == i.Kind && q.Why == i.Why && q.Open() }) {
			say("%s about %s", style.Yellow("waits for a person"), strings.Join(i.Items, ", "))
		} else {
			say("%s: %s: %s", style.Yellow("waits for a person"), core.KindWords(i.Kind), firstLine(i.Why, 400))
		}
		if len(i.Items) == 0 || i.Halt {
			say("  let it go on with `%s`", tell.GoOn(i.Kind, m))
		}
	}
	if len(v.Parked) > 0 {
		say("set aside: %s", strings.Join(v.Parked, ", "))
	}
	for _, q := range v.Questions {
		switch {
		case q.Open():
			say("  %s, %s: %s", q.Item, core.KindWords(q.Kind), firstLine(strings.ReplaceAll(q.Why, "\r\n", "\n"), maxAsked))
			for _, line := range moreLines(q.Why) { // what can be chosen from stands at the end
				say("    %s", line)
			}
			how := "answer"
			if core.Wordless(q.Kind) {
				how = "go on"
			}
			b.WriteString("    " + how + " with `" + q.Command() + "`\n")
		case q.Answer != "":
			say("%s is answered: %s", q.Item, firstLine(q.Answer, 200))
		}
	}
	for _, what := range v.Asked {
		say("%s was asked for, and is not done yet", style.Yellow(what))
	}
	if v.Trouble != "" {
		say("%s what was set aside cannot be put back, and is tried again: %s", style.Yellow("put off"), firstLine(v.Trouble, 300))
	}
	for _, line := range v.Rests {
		say("%s", firstLine(line, 300))
	}
	for _, w := range v.Workers {
		if w.Trouble != "" {
			say("%s worker %d could not do this, and tries again: %s", style.Yellow("put off"), w.Worker, strings.TrimSpace(w.Item+" "+firstLine(w.Trouble, 300)))
		}
	}
	if m.Phase != core.Finished || v.Running { // of a loop that has ended nobody works
		b.WriteString(a.workersText(v.Workers, columns))
	}
	b.WriteString(a.loopsThereText(v.Elsewhere, columns))
	return b.String()
}

// workersText is a table of the workers, with how far each says that it is below it. What
// matters least is left out where the terminal is narrow.
func (a *App) workersText(workers []workerView, columns int) string {
	roomy := columns == 0 || columns >= wideEnough
	narrow := columns > 0 && columns < 70
	head := []string{"WORKER", "STEP", "ITEM"}
	if roomy {
		head = append(head, "RUN")
	}
	head = append(head, "TIME")
	if !narrow {
		head = append(head, "TOKENS")
	}
	if roomy {
		head = append(head, "TOOLS")
	}
	head = append(head, "LAST TOOL")
	var rows [][]string
	for _, w := range workers {
		step := w.Step
		if w.Stop != "" {
			step = "stopping"
		}
		took := ""
		if w.Seconds > 0 {
			took = ago(time.Duration(w.Seconds * float64(time.Second)))
		}
		item := w.Item
		if columns > 0 {
			item = term.Cut(item, max(columns/4, 8))
		}
		row := []string{fmt.Sprint(w.Worker), step, item}
		if roomy {
			row = append(row, w.Run)
		}
		row = append(row, took)
		if !narrow {
			row = append(row, zeroEmpty(w.Tokens))
		}
		if roomy {
			row = append(row, zeroEmpty(int64(w.ToolCalls)))
		}
		rows = append(rows, append(row, firstLine(strings.TrimSpace(w.LastTool+" "+w.Waiting), 60)))
	}
	table := term.NewTable(a.Style(), head...).MaxWidth(columns)
	for _, r := range rows {
		table.Text(r...)
	}
	var lines strings.Builder
	_ = table.Write(&lines) // into memory
	var b strings.Builder
	for i, line := range strings.SplitAfter(strings.TrimSuffix(lines.String(), "\n"), "\n") {
		line = strings.TrimSuffix(line, "\n")
		if columns > 0 {
			line = term.Cut(line, columns)
		}
		b.WriteString(line + "\n")
		if i == 0 || i > len(workers) {
			continue
		}
		if p := workers[i-1].Progress; p != nil {
			told := "        " + term.SafeLine(strings.TrimSpace(fmt.Sprintf("%d/%d %s", p.StepsCompleted, p.StepsTotal, firstLine(p.CurrentStep, 200))))
			if columns > 0 {
				told = term.Cut(told, columns)
			}
			b.WriteString(told + "\n")
		}
	}
	return b.String()
}

func zeroEmpty(n int64) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprint(n)
}

// maxAsked is how many bytes of a question a person is shown, as many as are kept of one.
const maxAsked = 2000

// moreLines are the lines of a text after its first.
func moreLines(text string) (out []string) {
	_, rest, _ := strings.Cut(strings.TrimSpace(text), "\n")
	for line := range strings.Lines(rest) {
		if line = term.SafeLine(strings.TrimRight(line, "\r\n\t ")); line != "" {
			out = append(out, line)
		}
	}
	return out
}
