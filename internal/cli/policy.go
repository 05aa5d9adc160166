package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"reprise/internal/learn"
	"reprise/internal/learn/improve"
	"reprise/internal/recall"
	"reprise/internal/session"
	"reprise/internal/term"
)

func newPolicyCmd(app *App) *cobra.Command {
	cmd := &cobra.Command{
		Use: "policy", Short: "See, judge and take back what recall ranks by",
		Long: `A policy is the weights, thresholds and budgets that recall ranks by. Memory learns
it, for each project and role, from what was served and then used: now and then it
replays past recalls with policies that differ a little, at most 10 % a step, and
takes one that would have done better. Each change is an event of the log, and
every earlier policy can be had back. The setting recall.learn switches it off.

The narrowest policy holds: that of a role in a project, of the project, of the
role, of all.`,
	}
	cmd.AddCommand(policyShow(app), policyHistory(app), policyDiff(app), policyRollback(app), policyEvaluate(app))
	return cmd
}

// policyScope are the flags that say whose policy is meant.
type policyScope struct {
	project, role string
	global        bool
}

func (p *policyScope) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&p.project, "project", "", "of this project (default: the one around the working directory)")
	cmd.Flags().BoolVar(&p.global, "global", false, "of all projects")
	cmd.Flags().StringVar(&p.role, "role", "", "of this role (default: of every role)")
	cmd.MarkFlagsMutuallyExclusive("project", "global")
	offer(cmd, "role", "conductor", "section-leader", "musician")
}

func (p *policyScope) of(app *App) (learn.PolicyScope, error) {
	s := learn.PolicyScope{Project: p.project, Role: p.role}
	if strings.ContainsAny(p.project+p.role, "\t\n") {
		return s, usagef("a project or role has no tabs or line ends in its name")
	}
	home, err := app.Home()
	if err != nil {
		return s, err
	}
	switch {
	case p.global:
	case p.project == "" && home.Project != nil:
		s.Project = home.Project.Name
	case p.project != "" && !slices.Contains(session.Projects(home), p.project):
		return s, exitWith(ExitNotFound, fmt.Errorf("there is no project %q; `reprise paths` shows where projects are", clipText(p.project, 60)))
	}
	return s, nil
}

// learnt is the organizer, with everything in the logs taken in.
func learnt(ctx context.Context, app *App) (*learn.Organizer, error) {
	organizer, err := app.Organizer()
	if err != nil {
		return nil, memoryError(err)
	}
	_, err = organizer.Run(ctx, 0)
	return organizer, err
}

func policyError(err error) error {
	switch {
	case improve.NotFound(err):
		return exitWith(ExitNotFound, err)
	case errors.Is(err, improve.ErrPolicy):
		return exitWith(ExitFailure, err)
	}
	return err
}

func policyShow(app *App) *cobra.Command {
	var scope policyScope
	var asOf string
	var asJSON bool
	cmd := &cobra.Command{
		Use: "show [ID]", Args: cobra.MaximumNArgs(1), Short: "Show the policy in force, or the one with an ID",
		RunE: func(cmd *cobra.Command, args []string) error {
			at, err := app.asOf(asOf)
			if err != nil {
				return err
			}
			s, err := scope.of(app)
			if err != nil {
				return err
			}
			organizer, err := learnt(cmd.Context(), app)
			if err != nil {
				return err
			}
			all, err := organizer.Policies(cmd.Context())
			if err != nil {
				return err
			}
			var v learn.PolicyVersion
			if len(args) == 1 {
				if v, err = namedPolicy(all, args[0]); err != nil {
					return policyError(err)
				}
			} else {
				p, err := organizer.PolicyFor(cmd.Context(), s, at)
				if err != nil {
					return err
				}
				if v, err = namedPolicy(all, p.ID); err != nil {
					return err
				}
			}
			if asJSON {
				return printJSON(app.Out, v)
			}
			showPolicy(app, v, s)
			return nil
		},
	}
	scope.flags(cmd)
	cmd.Flags().StringVar(&asOf, "as-of", "", "the one that was in force at this `DATE`")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print it for programs")
	return cmd
}

// namedPolicy is a version by its id; "default" is what holds without any.
func namedPolicy(all []learn.PolicyVersion, id string) (learn.PolicyVersion, error) {
	if id == "default" {
		p := recall.DefaultPolicy()
		return learn.PolicyVersion{ID: "default", PolicyChange: learn.PolicyChange{Op: "default", Policy: &p}}, nil
	}
	return improve.Find(all, id)
}

func showPolicy(app *App, v learn.PolicyVersion, asked learn.PolicyScope) {
	style := app.Style()
	if v.ID == "default" {
		fmt.Fprintf(app.Out, "%s  nothing was learnt yet for %s\n", style.Bold("default"), asked)
	} else {
		app.said(style.Bold(v.ID)+"  ", fmt.Sprintf("version %d for %s, %s, %s", v.Version, v.For, v.Op, v.Time.Local().Format(time.DateTime)))
		if v.Reason != "" {
			app.said("  ", shown(v.Reason))
		}
		fmt.Fprintf(app.Out, "  before it: %s\n", v.Parent)
		showPolicyReplay(app, v.Replay)
	}
	if v.Policy == nil {
		fmt.Fprintln(app.Out, "  has no value of its own: a wider policy holds")
		return
	}
	p, std := *v.Policy, recall.DefaultPolicy()
	line := func(name string, value, standard float64) {
		mark := ""
		if value != standard {
			mark = style.Dim(fmt.Sprintf("  (%g without a policy)", standard))
		}
		fmt.Fprintf(app.Out, "  %-22s %g%s\n", name, value, mark)
	}
	line("threshold", p.Threshold, std.Threshold)
	line("diversity", p.Diversity, std.Diversity)
	for _, k := range slices.Sorted(maps.Keys(p.TopK)) {
		line("top_k."+k, float64(p.TopK[k]), float64(std.TopK[k]))
	}
	for _, k := range slices.Sorted(maps.Keys(p.Budget)) {
		line("budget."+string(k), float64(p.Budget[k]), float64(std.Budget[k]))
	}
	for _, name := range recall.WeightNames() {
		s, _ := recall.StandardWeight(name)
		w, ok := p.Weights[name]
		if !ok {
			w = s
		}
		line("weights."+name, w, s)
	}
}

func showPolicyReplay(app *App, r *learn.Replay) {
	if r == nil || r.Recalls == 0 {
		return
	}
	app.said("  ", fmt.Sprintf("replay of %s with %s: score %.4f → %.4f (place %.4f → %.4f, unused tokens %.0f → %.0f)",
		count(r.Recalls, "recall"), count(r.Uses, "use"), r.Before.Total, r.After.Total, r.Before.Gain, r.After.Gain, r.Before.Tokens, r.After.Tokens))
}

func policyHistory(app *App) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "history", Args: cobra.NoArgs, Short: "List every change of a policy, the newest first",
		RunE: func(cmd *cobra.Command, _ []string) error {
			organizer, err := learnt(cmd.Context(), app)
			if err != nil {
				return err
			}
			all, err := organizer.Policies(cmd.Context())
			if err != nil {
				return err
			}
			slices.Reverse(all)
			if asJSON {
				if all == nil {
					all = []learn.PolicyVersion{}
				}
				return printJSON(app.Out, all)
			}
			for _, v := range all {
				app.said(v.ID+"  ", fmt.Sprintf("%s  %s, version %d, %s", v.Time.Local().Format(time.DateTime), v.For, v.Version, v.Op))
				if v.Reason != "" {
					app.said("  ", shown(v.Reason))
				}
				showPolicyReplay(app, v.Replay)
			}
			if len(all) == 0 {
				fmt.Fprintln(app.Err, "no policy was changed yet: the default holds everywhere")
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print them for programs")
	return cmd
}

func policyDiff(app *App) *cobra.Command {
	var scope policyScope
	var asJSON bool
	cmd := &cobra.Command{
		Use: "diff [A [B]]", Args: cobra.MaximumNArgs(2), Short: "Show what differs between two policies",
		Long: `Show what differs between two policies. Without arguments: between the default and
the policy in force; with one: between that and the policy in force. "default" is
what holds where nothing was learnt.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := scope.of(app)
			if err != nil {
				return err
			}
			organizer, err := learnt(cmd.Context(), app)
			if err != nil {
				return err
			}
			all, err := organizer.Policies(cmd.Context())
			if err != nil {
				return err
			}
			names := args
			if len(names) == 0 {
				names = []string{"default"}
			}
			if len(names) == 1 {
				p, err := organizer.PolicyFor(cmd.Context(), s, time.Time{})
				if err != nil {
					return err
				}
				names = append(slices.Clone(names), p.ID)
			}
			var two [2]recall.Policy
			for i, name := range names {
				v, err := namedPolicy(all, name)
				if err != nil {
					return policyError(err)
				}
				two[i], names[i] = recall.DefaultPolicy(), v.ID
				if v.Policy != nil {
					two[i] = *v.Policy
				}
			}
			list := improve.Differences(two[0], two[1])
			if asJSON {
				return printJSON(app.Out, map[string]any{"from": names[0], "to": names[1], "changes": list})
			}
			fmt.Fprintf(app.Out, "%s → %s\n", names[0], names[1])
			for _, d := range list {
				change := ""
				if d.From != 0 {
					change = fmt.Sprintf("  (%+.0f %%)", 100*(d.To/d.From-1))
				}
				fmt.Fprintf(app.Out, "  %-22s %g → %g%s\n", d.Name, d.From, d.To, change)
			}
			if len(list) == 0 {
				fmt.Fprintln(app.Err, "they do not differ")
			}
			return nil
		},
	}
	scope.flags(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print it for programs")
	return cmd
}

func policyRollback(app *App) *cobra.Command {
	var scope policyScope
	var reason string
	var asJSON bool
	cmd := &cobra.Command{
		Use: "rollback ID", Args: cobra.ExactArgs(1), Short: "Go back to an earlier policy",
		Long: `The policy with that ID is in force again for whom it was, by a new change; what was
gone back from is not learnt again. With "default", the scope that the flags name
has no policy of its own any more.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := scope.of(app)
			if err != nil {
				return err
			}
			if _, err := learnt(cmd.Context(), app); err != nil {
				return err
			}
			tuner, err := app.tuner(nil)
			if err != nil {
				return err
			}
			v, err := tuner.Rollback(cmd.Context(), s, args[0], clipText(reason, 400))
			if err != nil {
				return policyError(err)
			}
			if asJSON {
				return printJSON(app.Out, v)
			}
			fmt.Fprintf(app.Out, "%s is in force for %s, as version %d: %s\n", v.Restored, v.For, v.Version, v.ID)
			return nil
		},
	}
	scope.flags(cmd)
	cmd.Flags().StringVar(&reason, "reason", "", "why; kept in the log")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print it for programs")
	return cmd
}

func policyEvaluate(app *App) *cobra.Command {
	var scope policyScope
	var file string
	var adopt, asJSON bool
	cmd := &cobra.Command{
		Use: "evaluate", Args: cobra.NoArgs, Short: "Replay past recalls with other policies, or with one of yours",
		Long: `Replay past recalls, each as of its time and as its reader, and judge by what was
used then: how near the top it would have stood, less what is paid for tokens of
what was not used.

Without --candidate, policies one step from the one in force are tried. A
candidate is a JSON file like the "policy" of ` + "`reprise policy show --json`" + `. With
--adopt the better one is taken; one that does worse is not.`,
		Example: `  reprise policy evaluate
  reprise policy evaluate --candidate mine.json --adopt`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := scope.of(app)
			if err != nil {
				return err
			}
			var candidate recall.Policy
			if file != "" {
				if candidate, err = readPolicy(cmd.Context(), app, file); err != nil {
					return err
				}
			}
			if _, err := learnt(cmd.Context(), app); err != nil {
				return err
			}
			line := app.progress(asJSON)
			tuner, err := app.tuner(func(n, of int) { line.Show("replay %d of %d", n, of) })
			if err != nil {
				return err
			}
			if file == "" {
				out, err := tuner.Try(cmd.Context(), s, adopt)
				line.Clear()
				if err != nil {
					return policyError(err)
				}
				return showTry(app, out, asJSON)
			}
			j, err := tuner.Judge(cmd.Context(), s, candidate, adopt, "by hand, from a file")
			line.Clear()
			if err != nil {
				return policyError(err)
			}
			if asJSON {
				return printJSON(app.Out, j)
			}
			fmt.Fprintf(app.Out, "%s: %s\n", j.Scope, j.Why)
			showPolicyReplay(app, &j.Replay)
			if j.Adopted != "" {
				fmt.Fprintf(app.Out, "in force as %s\n", j.Adopted)
			}
			return nil
		},
	}
	scope.flags(cmd)
	cmd.Flags().StringVar(&file, "candidate", "", "a policy in this `FILE`; - is standard input")
	cmd.Flags().BoolVar(&adopt, "adopt", false, "take what does better; a candidate, unless it does worse")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print it for programs")
	return cmd
}

// maxPolicy is longer than any policy, in bytes.
const maxPolicy = 1 << 20

// readPolicy reads a policy as a person wrote it: what it leaves out is as
// without a policy, what it has too much is an error.
func readPolicy(ctx context.Context, app *App, file string) (recall.Policy, error) {
	p := recall.DefaultPolicy()
	var data []byte
	var err error
	if file == "-" {
		var text string
		text, err = readInput(ctx, app, "the candidate", maxPolicy)
		data = []byte(text)
	} else {
		data, err = readNamed(ctx, app.abs(file), maxPolicy)
	}
	if err != nil {
		return p, fmt.Errorf("read the candidate: %w", err)
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&p); err != nil {
		var wrong *json.UnmarshalTypeError
		switch {
		case errors.Is(err, io.EOF):
			err = errors.New("it is empty")
		case errors.As(err, &wrong): // without the words of Go
			err = fmt.Errorf("%s cannot be %s", cmp.Or(wrong.Field, "a policy"), wrong.Value)
		}
		return p, fmt.Errorf("the candidate %s is no policy: %w; `reprise policy show --json` shows what one looks like", file, err)
	}
	if dec.More() {
		return p, fmt.Errorf("the candidate %s holds more than one JSON value", file)
	}
	p.ID = "candidate"
	return p, nil
}

func showTry(app *App, out improve.Outcome, asJSON bool) error {
	if asJSON {
		return printJSON(app.Out, out)
	}
	fmt.Fprintf(app.Out, "%s: %s\n", out.Scope, out.Why)
	for _, t := range out.Tried {
		mark := ""
		if t.Worse {
			mark = "  worse"
		}
		fmt.Fprintf(app.Out, "  %-28s score %.4f  place %.4f  unused tokens %5.0f  margin %+.4f%s\n", term.SafeLine(t.Name), t.Score.Total, t.Score.Gain, t.Score.Tokens, t.Score.Margin, mark)
	}
	if out.Adopted != "" {
		fmt.Fprintf(app.Out, "in force as %s\n", out.Adopted)
	}
	return nil
}
