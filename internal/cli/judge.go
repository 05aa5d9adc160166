package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"reprise/internal/judge"
	"reprise/internal/redact"
	"reprise/internal/setup"
	"reprise/internal/term"
)

// Judge answers what reprise itself has to ask a model, where the settings name
// one. It is made even where they do not: it then says so.
func (a *App) Judge() (*judge.Judge, error) {
	home, err := a.Home()
	if err != nil {
		return nil, err
	}
	runs, err := a.Runs()
	if err != nil {
		return nil, err
	}
	log, err := a.Logger()
	if err != nil {
		return nil, err
	}
	redactor := redact.New()
	return judge.New(judge.Options{
		Settings: home.Settings.Judge, Dir: filepath.Join(home.Paths.State, "judge"), Runs: runs,
		Environ: a.Environ, Get: a.Env.Get,
		Redact: func(s string) string { s, _ = redactor.String(s); return s },
		Now:    a.Env.Now, Log: log,
	}), nil
}

func newJudgeCmd(app *App) *cobra.Command {
	cmd := &cobra.Command{
		Use: "judge", Short: "The model that reprise asks where it has a question of its own",
		Long: `Where the settings name one (judge.client), a model is asked for what rules cannot
tell: the summary of a session, a command that the guard is unsure about, a review.
Each question is a run of its own without settings, hooks, tools or servers, with
secrets taken out of what is sent; it is bounded in time and money, and after
failures in a row nobody is asked for a while. Whatever goes wrong, the one who
asked does without.`,
	}
	cmd.AddCommand(judgeStatus(app), judgeAsk(app), judgeReset(app))
	return cmd
}

// checkJudge is the doctor's look at a judge that is configured.
func (a *App) checkJudge(ctx context.Context) []setup.Finding {
	j, err := a.Judge()
	if err != nil {
		return finding(setup.Warn, "mend the settings", "the judge cannot be made: %v", err)
	}
	if err := j.Ready(ctx); errors.Is(err, judge.ErrState) {
		return finding(setup.Warn, "look at it, then run `reprise judge reset`", "%v", err)
	} else if err != nil {
		return finding(setup.Warn, "set judge.client to a client that can be, or remove the section", "%v", err)
	}
	s, err := j.Status()
	if err != nil {
		return finding(setup.Warn, "see `reprise judge status`", "%v", err)
	}
	for _, c := range s.Circuits {
		if c.State != "closed" {
			return finding(setup.Warn, "see `reprise judge status`; `reprise judge reset` asks again at once", "%s had no answer to %s in a row; its circuit is %s", c.Name, count(c.Failures, "question"), c.State)
		}
	}
	calls, usd := 0, 0.0
	for _, p := range s.Purposes {
		calls, usd = calls+p.Calls, usd+p.USD
	}
	return finding(setup.OK, "", "%s, asked %s today for %.4f US dollars", strings.TrimSpace(s.Client+" "+s.Model), times(calls), usd)
}

// judgeError gives the judge's errors their exit code.
func judgeError(err error) error {
	switch {
	case errors.Is(err, judge.ErrTimeout):
		return exitWith(ExitTimeout, err)
	case errors.Is(err, judge.ErrOff), errors.Is(err, judge.ErrOpen), errors.Is(err, judge.ErrBudget), errors.Is(err, judge.ErrNested):
		return exitWith(ExitConflict, err)
	}
	return err
}

func judgeStatus(app *App) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "status", Args: cobra.NoArgs, Short: "Say whether it may be asked, what it has cost today, and what went wrong",
		RunE: func(*cobra.Command, []string) error {
			j, err := app.Judge()
			if err != nil {
				return err
			}
			s, err := j.Status()
			if err != nil {
				return err
			}
			if asJSON {
				err = printJSON(app.Out, s)
			} else {
				err = showJudge(app, s)
			}
			if err == nil && s.Trouble != "" {
				return exitWithCode(ExitFailure)
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print it for programs")
	return cmd
}

func showJudge(app *App, s judge.Status) error {
	style := app.Style()
	if s.Client == "" {
		fmt.Fprintln(app.Out, "No model is asked: judge.client is not set.")
	} else {
		fmt.Fprintf(app.Out, "Asked is %s.\n", term.SafeLine(strings.TrimSpace(s.Client+" "+s.Model)))
	}
	if s.Trouble != "" {
		fmt.Fprintf(app.Out, "%s %s\n", style.Red("Nothing is asked:"), term.SafeText(s.Trouble))
	}
	for _, c := range s.Circuits {
		line := fmt.Sprintf("circuit of %s: %s", term.SafeLine(c.Name), c.State)
		if c.Failures > 0 {
			line += fmt.Sprintf(", %s in a row", count(c.Failures, "failure"))
		}
		if !c.Until.IsZero() {
			line += ", until " + c.Until.Local().Format(time.DateTime)
		}
		fmt.Fprintln(app.Out, line)
	}
	table := term.NewTable(style, "FOR", "ON", "QUESTIONS TODAY", "US DOLLARS TODAY", "FAILED", "FROM CACHE").MaxWidth(app.Columns)
	for _, p := range s.Purposes {
		table.Row(p.Purpose, ifKnown(p.On, "yes", "no"), fmt.Sprintf("%d of %d", p.Calls, p.MostCalls), fmt.Sprintf("%.4f of %.2f", p.USD, p.MostUSD), fmt.Sprint(p.Failed), fmt.Sprint(p.Cached))
	}
	if err := table.Write(app.Out); err != nil {
		return err
	}
	fmt.Fprintf(app.Out, "%s in the cache, kept for %d h.\n", count(s.Cache.Answers, "answer"), s.Cache.Hours)
	if s.Asking > 0 {
		fmt.Fprintf(app.Out, "%s being asked.\n", count(s.Asking, "question"))
	}
	for _, f := range s.Failures {
		fmt.Fprintf(app.Out, "%s  %s  %s\n", f.At.Local().Format(time.DateTime), f.Purpose, term.SafeLine(f.Text))
	}
	return nil
}

// maxQuestion bounds what is read of standard input, in bytes.
const maxQuestion = 1 << 20

func judgeAsk(app *App) *cobra.Command {
	var purpose, schema, system string
	var timeout time.Duration
	var fresh, asJSON bool
	cmd := &cobra.Command{
		Use: "ask [TEXT]", Args: cobra.MaximumNArgs(1), Short: "Ask it something, to see what it makes of it",
		Long: `Ask it something, to see what it makes of it. It counts as any question does. The
text is read from standard input where it is not given; the answer is printed as
JSON.`,
		Example: `  echo '{"type":"object","properties":{"word":{"type":"string"}},"required":["word"]}' >word.json
  reprise judge ask --purpose review --schema word.json "The first word of the Odyssey, in English"`,
		RunE: func(cmd *cobra.Command, args []string) error {
			q := judge.Question{Purpose: purpose, System: system, Timeout: timeout, Fresh: fresh, Dir: app.Env.Dir}
			if !slices.Contains(judge.Purposes(), purpose) {
				return usagef("--purpose %q is none: use one of %s", purpose, strings.Join(judge.Purposes(), ", "))
			}
			if !filepath.IsAbs(schema) {
				schema = filepath.Join(app.Env.Dir, schema)
			}
			var err error
			if q.Schema, err = readNamed(cmd.Context(), schema, maxQuestion); err != nil {
				return fmt.Errorf("read the schema: %w", err)
			}
			if len(args) == 1 {
				q.Prompt = args[0]
			} else if q.Prompt, err = readInput(cmd.Context(), app, "what is to be judged", maxQuestion); err != nil {
				return err
			}
			j, err := app.Judge()
			if err != nil {
				return err
			}
			a, err := j.Ask(cmd.Context(), q)
			if err != nil {
				return judgeError(err)
			}
			if !asJSON {
				_, err := fmt.Fprintf(app.Out, "%s\n", a.JSON)
				return err
			}
			return printJSON(app.Out, judgeAnswer{Answer: a.JSON, By: a.By, Run: a.Run, CostUSD: a.CostUSD, Cached: a.Cached, TookMS: a.Took.Milliseconds()})
		},
	}
	cmd.Flags().StringVar(&purpose, "purpose", judge.Review, "what it counts as: "+strings.Join(judge.Purposes(), ", "))
	cmd.Flags().StringVar(&schema, "schema", "", "`FILE` with the JSON Schema of the answer")
	cmd.Flags().StringVar(&system, "system", "You answer one question, briefly and exactly.", "system prompt")
	cmd.Flags().DurationVar(&timeout, "timeout", 0, "the longest it may take; 0 is what the settings say, which bound it in any case")
	cmd.Flags().BoolVar(&fresh, "fresh", false, "ask although there is an answer in the cache")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the answer with who gave it and what it cost")
	offer(cmd, "purpose", judge.Purposes()...)
	_ = cmd.MarkFlagRequired("schema") // it was defined just above
	return cmd
}

// judgeAnswer is an answer for programs.
type judgeAnswer struct {
	Answer  json.RawMessage `json:"answer"`
	By      string          `json:"by"`
	Run     string          `json:"run"`
	CostUSD float64         `json:"cost_usd"`
	Cached  bool            `json:"cached"`
	TookMS  int64           `json:"took_ms"`
}

func judgeReset(app *App) *cobra.Command {
	var what judge.Reset
	cmd := &cobra.Command{
		Use: "reset", Args: cobra.NoArgs, Short: "Ask again after failures; start anew where its state cannot be used",
		Long: `Close the circuits and forget the failures. Where the state cannot be used it is
put aside, and what was spent today goes with it. Only a person may do this, and no
agent's run.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !app.person() {
				return exitWith(ExitConflict, errors.New("reset judge: an agent may not do this: ask the user to run `reprise judge reset`"))
			}
			j, err := app.Judge()
			if err != nil {
				return err
			}
			aside, err := j.Reset(cmd.Context(), what)
			if err != nil {
				return err
			}
			fmt.Fprintln(app.Out, "It may be asked again.")
			if aside != "" {
				fmt.Fprintf(app.Out, "The state that could not be used is in %s.\n", aside)
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&what.Budget, "budget", false, "forget what was spent today, too")
	cmd.Flags().BoolVar(&what.Cache, "cache", false, "forget the answers that are kept, too")
	return cmd
}
