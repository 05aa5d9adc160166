package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"reprise/internal/recall"
	"reprise/internal/term"
)

type recallOptions struct {
	asOf    string
	project string
	all     bool
	explain bool
	asJSON  bool
	most    int
	tokens  int
	classes []string
}

func newRecallCmd(app *App) *cobra.Command {
	var o recallOptions
	cmd := &cobra.Command{
		Use:   "recall [QUESTION...]",
		Short: "Ask what is remembered, or without a question list the newest of it",
		Long: `Ask what is remembered: notes, decisions, learnings, what failed and how it was
fixed, and what sessions were about; of this project and of all projects together.
Nothing is printed when nothing fits, and the exit code is then 3, as that of
"memory search" is. What of the files cannot be read is named.

Without a question it lists what sessions and people have left, the newest first, each with
the id by which ` + "`reprise memory why`, `correct` and `forget`" + ` know it; --class chooses, and
the notes, which ` + "`reprise memory list`" + ` has, are listed with --class block alone.

--as-of answers what was known then. --explain shows what each score is made of,
and why other candidates were left out.`,
		Example: `  reprise recall "which port does staging use?"
  reprise recall --class learning,decision
  reprise recall --as-of 2026-09-01 deploy day
  reprise recall --all --explain "connection refused"`,
		RunE: func(cmd *cobra.Command, args []string) error {
			question := strings.TrimSpace(strings.Join(args, " "))
			if question == "" && len(args) > 0 {
				return usagef("the question is empty: ask something, or leave it out and the newest is listed")
			}
			return runRecall(cmd.Context(), app, o, question)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.asOf, "as-of", "", "answer as of this `DATE` (2026-09-01, with or without a time, or 7d ago)")
	f.StringVar(&o.project, "project", "", "as if in this project (default: the one around the working directory)")
	f.BoolVar(&o.all, "all", false, "search every project")
	f.BoolVar(&o.explain, "explain", false, "show what the scores are made of and what was left out")
	f.BoolVar(&o.asJSON, "json", false, "print the answer for programs")
	f.IntVarP(&o.most, "max", "n", 0, "at most so many results (0: as many as fit)")
	f.IntVar(&o.tokens, "max-tokens", 2000, "at most so many tokens in all")
	f.StringSliceVar(&o.classes, "class", nil, "only these kinds: "+strings.Join(recallClasses, ", "))
	offer(cmd, "class", recallClasses...)
	return cmd
}

// recallClasses are the kinds that --class takes.
var recallClasses = []string{"block", "decision", "learning", "episode", "pattern", "anti_pattern", "summary", "answer", "state", "profile", "core", "index"}

func runRecall(ctx context.Context, app *App, o recallOptions, text string) error {
	for i, c := range o.classes {
		o.classes[i] = strings.ReplaceAll(c, "-", "_")
		if !slices.Contains(recallClasses, o.classes[i]) {
			return usagef("--class %q is not a kind of what is remembered: %s", clipText(c, 40), strings.Join(recallClasses, ", "))
		}
	}
	q := recall.Question{Text: text, Max: o.most, MaxTokens: o.tokens, Explain: o.explain, Elsewhere: true}
	var err error
	if q.AsOf, err = app.asOf(o.asOf); err != nil {
		return err
	}
	if q.Reader, err = app.reader(); err != nil {
		return err
	}
	if o.project != "" {
		q.Project, q.Places = o.project, nil
	}
	// An agent that asks for every project stays who it is.
	q.All, q.Wide = o.all && app.person(), o.all
	for _, c := range o.classes {
		q.Classes = append(q.Classes, recall.Class(c))
	}
	m, err := app.Remembered()
	if err != nil {
		return err
	}
	if _, err := m.Organizer.Run(ctx, 0); err != nil {
		return err
	}
	if q.Policy, err = m.Policy(ctx, q.Reader, q.AsOf); err != nil {
		return err
	}
	answer, more, err := answerTo(ctx, m.Index, q)
	if err != nil {
		return err
	}
	if err := warnDamage(ctx, app, q.Reader); err != nil {
		return err
	}
	if o.asJSON {
		if answer.Results == nil {
			answer.Results = []recall.Result{}
		}
		if err := printJSON(app.Out, answer); err != nil {
			return err
		}
	} else {
		showAnswer(app, answer, q)
	}
	if more && !o.asJSON {
		fmt.Fprintf(app.Err, "There is more: these are the newest %d; --max and --max-tokens show more.\n", len(answer.Results))
	}
	if len(answer.Results) == 0 {
		return exitWithCode(ExitNotFound)
	}
	return nil
}

// answerTo is the answer to a question, or where there is none what is newest; more says
// that of this there is more.
func answerTo(ctx context.Context, x *recall.Index, q recall.Question) (a recall.Answer, more bool, err error) {
	if q.Text != "" {
		a, err = x.Recall(ctx, q)
		return a, false, err
	}
	if len(q.Classes) == 0 {
		q.Classes = leftClasses()
	}
	return x.Latest(ctx, q)
}

// leftClasses are the kinds that sessions and people leave one by one; the others are files,
// which have a list of their own.
func leftClasses() []recall.Class {
	var out []recall.Class
	for _, c := range recallClasses {
		if c != "block" && c != "core" && c != "index" {
			out = append(out, recall.Class(c))
		}
	}
	return out
}

// asOf reads the time that --as-of is given: a date alone is the end of that day, by UTC;
// yesterday is the person's own.
func (a *App) asOf(s string) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	if t, err := time.Parse(time.DateOnly, s); err == nil {
		return t.Add(24*time.Hour - time.Nanosecond), nil
	}
	for _, layout := range []string{time.RFC3339, "2006-01-02 15:04", "2006-01-02T15:04"} {
		if t, err := time.Parse(layout, s); err == nil {
			return t, nil
		}
	}
	now := a.Now()
	if strings.EqualFold(s, "yesterday") {
		y, m, d := now.Date()
		return time.Date(y, m, d, 0, 0, 0, 0, now.Location()).Add(-time.Nanosecond), nil
	}
	if d, ok := lengthOfTime(s); ok {
		return now.Add(-d.Abs()), nil
	}
	return time.Time{}, usagef("--as-of %q is no time: give a day (yesterday, 2026-09-01), a moment (2026-09-01T15:04) or how long ago (36h, 7d)", clipText(s, 40))
}

func showAnswer(app *App, a recall.Answer, q recall.Question) {
	style, explain := app.Style(), q.Explain
	for _, r := range a.Results {
		title := term.SafeLine(r.Title)
		if title == "" {
			title = term.SafeLine(clipText(strings.TrimSpace(r.Snippet), 60))
		}
		head := style.Bold(title)
		if q.Text != "" {
			head += "  " + style.Dim(fmt.Sprintf("%.2f", r.Score))
		}
		app.said("", head)
		for line := range strings.SplitSeq(strings.TrimSpace(r.Snippet), "\n") {
			if line = strings.TrimSpace(term.SafeLine(line)); line != "" && line != title {
				fmt.Fprintln(app.Out, term.Wrap("  ", line, "    ", app.Columns))
			}
		}
		about := []string{strings.ReplaceAll(string(r.Class), "_", "-")}
		if !r.Time.IsZero() {
			about = append(about, r.Time.UTC().Format(time.DateOnly))
		}
		if r.Project != "" {
			about = append(about, recall.Where(r.Project))
		}
		if r.Confidence > 0 {
			about = append(about, fmt.Sprintf("confidence %.2f", r.Confidence))
		}
		about = append(about, r.Source, r.ID)
		fmt.Fprintln(app.Out, term.Wrap("  ", style.Dim(term.SafeLine(strings.Join(about, " · "))), "  ", app.Columns))
		if len(r.Conflicts) > 0 {
			fmt.Fprintf(app.Out, "  %s %s\n", style.Yellow("says otherwise:"), term.SafeLine(strings.Join(r.Conflicts, ", ")))
		}
		if explain && len(r.Signals) > 0 {
			var parts []string
			for _, k := range slices.Sorted(maps.Keys(r.Signals)) {
				parts = append(parts, fmt.Sprintf("%s %.3f", k, r.Signals[k]))
			}
			fmt.Fprintf(app.Out, "  %s\n", style.Dim(strings.Join(parts, "  ")))
		}
	}
	if explain && len(a.Dropped) > 0 {
		reasons := map[string]int{}
		for _, why := range a.Dropped {
			reasons[why]++
		}
		var parts []string
		for _, why := range slices.Sorted(maps.Keys(reasons)) {
			parts = append(parts, fmt.Sprintf("%s %d", why, reasons[why]))
		}
		fmt.Fprintf(app.Out, "left out: %s\n", strings.Join(parts, ", "))
	}
	if explain {
		fmt.Fprintf(app.Out, "%s, policy %s\n", count(a.Tokens, "token"), a.Policy)
	}
	if len(a.Results) == 0 && q.Text == "" {
		fmt.Fprintln(app.Err, "Nothing is remembered of that yet.")
	} else if len(a.Results) == 0 {
		fmt.Fprintln(app.Err, "Nothing that is remembered fits.")
		var projects, dirs []string
		for _, name := range a.Elsewhere {
			if dir, ok := recall.PlaceDir(name); ok {
				dirs = append(dirs, dir)
			} else {
				projects = append(projects, name)
			}
		}
		if len(projects) > 0 {
			fmt.Fprintf(app.Err, "Other projects have something: %s (--project NAME, or --all).\n", term.SafeLine(strings.Join(projects, ", ")))
		}
		if len(dirs) > 0 {
			fmt.Fprintf(app.Err, "Sessions outside any project saw something in %s (ask there, or with --all).\n", term.SafeLine(strings.Join(dirs, ", ")))
		}
	}
}
