package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"reprise/internal/learn/scopes"
	"reprise/internal/mdfile"
	"reprise/internal/staterepo"
	"reprise/internal/term"
)

func newContextSetCmd(app *App) *cobra.Command {
	cmd := newTextCmd(app, "set [TEXT]", "context.md", "Show what the agent that works here is at, or set it")
	cmd.Long = `Show context.md of the agent that works here, or put TEXT in its place: what it
is at, for who comes next. TEXT of - reads standard input.`
	return cmd
}

func newContextPromoteCmd(app *App) *cobra.Command {
	var agent string
	var all, drop, asJSON bool
	cmd := &cobra.Command{
		Use: "promote [ID ...]", Short: "Give an agent's learnings and decisions to the whole project",
		Long: `Without an ID: list the learnings and decisions of an agent that are not the
project's yet. With IDs, or --all: make entries of the project of them. What the
project says already is not said twice, and what says otherwise is shown.

--done says that what is left is not worth keeping. An agent of whom nothing is
left is marked as consolidated: once it works nowhere any more,
` + "`reprise state gc`" + ` takes its branch away.

--json prints what became of one ID; of several, or with --all, a list of these.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if all && len(args) > 0 {
				return usagef("--all is all of them: leave the IDs out")
			}
			if len(args) == 1 && agent == "" && !drop {
				return promoteOne(cmd.Context(), app, args[0], "", asJSON)
			}
			return promoteOwn(cmd.Context(), app, agent, args, all, drop, asJSON)
		},
	}
	cmd.Flags().StringVar(&agent, "agent", "", "of this `AGENT` (default: the one that works here)")
	cmd.Flags().BoolVar(&all, "all", false, "all that are listed")
	cmd.Flags().BoolVar(&drop, "done", false, "the rest is not to be kept")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print it for programs")
	return cmd
}

func promoteOwn(ctx context.Context, app *App, agent string, ids []string, all, drop, asJSON bool) error {
	repo, err := app.State()
	if err != nil {
		return err
	}
	named := agent
	if agent == "" {
		t, err := app.agentTree(ctx, repo, false)
		if err != nil {
			return err
		}
		if t == nil {
			return stateError(fmt.Errorf("promote: %w works here; --agent names another", staterepo.ErrNoAgent))
		}
		if err := app.saysSo(t); err != nil {
			return err
		}
		agent = t.Agent()
	}
	list, err := repo.Unpromoted(ctx, agent)
	if err != nil {
		return stateError(err)
	}
	if !all && len(ids) == 0 && !drop {
		return listUnpromoted(ctx, app, named, list, asJSON)
	}
	if _, err := app.mayWriteState(); err != nil {
		return err
	}
	chosen, err := chosenEntries(list, ids, all)
	if err != nil {
		return err
	}
	s, err := app.Scopes()
	if err != nil {
		return err
	}
	home, err := app.Home()
	if err != nil {
		return err
	}
	left := len(list)
	done := []scopes.Change{}
	for _, e := range chosen {
		c, err := s.Adopt(ctx, home.Project.Name, e.Entry)
		if err != nil { // what was done before it is told all the same
			return errors.Join(promotedSay(app, done, len(ids) == 1, asJSON), memoryError(err))
		}
		left--
		done = append(done, c)
	}
	if err := promotedSay(app, done, len(ids) == 1, asJSON); err != nil {
		return err
	}
	sayDoubts(app, chosen, done)
	app.saveGlobal(ctx, home.Project.Name, fmt.Sprintf("Promote %d of agent %s", len(chosen), agent))
	if left > 0 && !drop {
		fmt.Fprintf(app.Err, "note: %d left; --done says that the rest is not to be kept\n", left)
		return nil
	}
	if err := repo.Consolidate(ctx, agent); err != nil {
		return stateError(err)
	}
	if !asJSON {
		fmt.Fprintf(app.Err, "agent %s is consolidated: once it works nowhere any more, `reprise state gc` takes its branch away\n", agent)
	}
	return nil
}

// sayDoubts names what was promoted although it may be no learning, with how it is taken
// back.
func sayDoubts(app *App, own []staterepo.LogEntry, done []scopes.Change) {
	for i, e := range own {
		if e.Type != mdfile.TypeLearning {
			continue
		}
		if why := staterepo.CheckLearning(e.Text).Why; why != "" {
			fmt.Fprintf(app.Err, "note: %s is the project's now, though of it: %s; `reprise memory forget %s` takes it out\n", done[i].ID, why, done[i].ID)
		}
	}
}

// promotedSay tells what was promoted: for programs one value, a list unless one item
// alone was asked for.
func promotedSay(app *App, done []scopes.Change, one, asJSON bool) error {
	if asJSON && (!one || len(done) == 0) {
		return printJSON(app.Out, done)
	}
	for _, c := range done {
		if err := changed(app, c, asJSON); err != nil {
			return err
		}
	}
	return nil
}

// toPromote is an entry with what it would meet among what the project says.
type toPromote struct {
	staterepo.LogEntry
	Doubt string `json:"doubt,omitempty"` // why it may be no learning
	scopes.Prospect
}

// listUnpromoted shows what of an agent's is not the project's, with what the project
// says already and what says otherwise, and what next. The agent is "" where none was named.
func listUnpromoted(ctx context.Context, app *App, agent string, list []staterepo.LogEntry, asJSON bool) error {
	home, err := app.Home()
	if err != nil {
		return err
	}
	s, err := app.Scopes()
	if err != nil {
		return err
	}
	own := make([]mdfile.Entry, len(list))
	for i, e := range list {
		own[i] = e.Entry
	}
	meets, err := s.Prospects(ctx, home.Project.Name, own)
	if err != nil {
		return memoryError(err)
	}
	out := make([]toPromote, len(list))
	for i, e := range list {
		out[i] = toPromote{LogEntry: e.Shown(), Prospect: meets[i]}
		if e.Type == mdfile.TypeLearning {
			out[i].Doubt = staterepo.CheckLearning(e.Text).Why
		}
	}
	if asJSON {
		return printJSON(app.Out, out)
	}
	for _, p := range out {
		fmt.Fprintf(app.Out, "%s  %s  %s\n", p.ID, p.Type, term.SafeLine(p.Title()))
		if p.Doubt != "" {
			fmt.Fprintf(app.Out, "  %s\n", app.Style().Dim(p.Doubt))
		}
		if p.Same != "" {
			fmt.Fprintf(app.Out, "  %s\n", app.Style().Dim("the project says this already: "+p.Same))
		}
		for _, c := range p.Conflicts {
			for _, o := range append([]scopes.Statement{c.Winner}, c.Losers...) {
				if o.ID == p.ID {
					continue
				}
				then := "it would hold and this would not"
				if c.Winner.ID == p.ID {
					then = "this would hold in its place"
				}
				fmt.Fprintf(app.Out, "  %s %s %s: %s (%s, %s); %s\n", app.Style().Yellow("says otherwise:"), term.SafeLine(c.Subject), term.SafeLine(c.Attribute), term.SafeLine(o.Value), o.ID, term.SafeLine(o.Source), then)
			}
		}
	}
	if len(out) == 0 {
		fmt.Fprintln(app.Err, "nothing is left to promote")
		return nil
	}
	of := ""
	if agent != "" {
		of = " --agent " + agent
	}
	fmt.Fprintf(app.Err, "Next: `reprise context promote%s ID` gives one of them to the project, --all all of them; --done says that the rest is not to be kept.\n", of)
	return nil
}

func chosenEntries(list []staterepo.LogEntry, ids []string, all bool) ([]staterepo.LogEntry, error) {
	if all {
		return list, nil
	}
	var out []staterepo.LogEntry
	for _, id := range ids {
		var found []staterepo.LogEntry
		for _, e := range list {
			if e.ID == id || len(id) >= 4 && strings.HasPrefix(e.ID, id) {
				found = append(found, e)
			}
		}
		if len(found) != 1 {
			return nil, stateError(fmt.Errorf("promote: %w: %s; without an ID they are listed", staterepo.ErrUnknown, id))
		}
		if !slices.ContainsFunc(out, func(e staterepo.LogEntry) bool { return e.ID == found[0].ID }) {
			out = append(out, found[0])
		}
	}
	return out, nil
}
