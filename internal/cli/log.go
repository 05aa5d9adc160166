package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"reprise/internal/mdfile"
	"reprise/internal/staterepo"
	"reprise/internal/term"
)

type logOptions struct {
	all, graph, asJSON bool
	types              []string
	since              string
	limit              int
}

// statusSaid is a status as people say it; in files and for programs it is one word.
func statusSaid(s string) string { return strings.ReplaceAll(s, "_", " ") }

func newLogCmd(app *App) *cobra.Command {
	var o logOptions
	cmd := &cobra.Command{
		Use: "log [AGENT]", Args: cobra.MaximumNArgs(1), Short: "Show what agents did, decided and learnt, or add to it",
		Long: `Show the log of the agent that works here, of another AGENT, or with --all of
all of them, with what they share and who is at what. Agents of other machines
are shown as they were when ` + "`reprise state pull`" + ` last looked.`,
		Example: `  reprise log --all --since 2d
  reprise log tidy --type decision --type handoff
  reprise log add "Validate the token's expiry" --status completed`,
		RunE: func(cmd *cobra.Command, args []string) error { return showLog(cmd, app, o, args) },
	}
	f := cmd.Flags()
	f.BoolVar(&o.all, "all", false, "of all agents")
	f.StringArrayVar(&o.types, "type", nil, "only entries of this `TYPE`; may be given several times")
	f.StringVar(&o.since, "since", "", "only since then: a duration such as 2d or 3h, or a date")
	f.IntVar(&o.limit, "limit", 0, "only the last `N`")
	f.BoolVar(&o.graph, "graph", false, "draw who goes on from what")
	f.BoolVar(&o.asJSON, "json", false, "print them for programs")
	offer(cmd, "type", staterepo.Types()...)
	cmd.AddCommand(newLogAddCmd(app), newLogShowCmd(app), newLogCopyCmd(app))
	return cmd
}

func showLog(cmd *cobra.Command, app *App, o logOptions, args []string) error {
	ctx := cmd.Context()
	repo, err := app.State()
	if err != nil {
		return err
	}
	from, err := pastTime(app, "--since", o.since)
	if err != nil {
		return err
	}
	for _, typ := range o.types {
		if !slices.Contains(staterepo.Types(), typ) {
			return usagef("--type %q: there are %s", clipText(typ, 40), strings.Join(staterepo.Types(), ", "))
		}
	}
	agent := staterepo.Everyone
	switch {
	case o.all && len(args) == 1:
		return usagef("--all is of all agents: leave out %s", args[0])
	case len(args) == 1:
		agent = args[0]
	case !o.all:
		t, err := app.readTree(ctx, repo)
		if err != nil {
			return err
		}
		if t == nil {
			fmt.Fprintln(app.Err, "no agent has state here yet; `reprise log --all` shows those elsewhere")
			return emptyLog(app, o)
		}
		agent = t.Agent()
	}
	all, err := repo.Log(ctx, agent)
	if err != nil {
		return stateError(err)
	}
	may := app.may()
	list := slices.DeleteFunc(slices.Clone(all), func(e staterepo.LogEntry) bool {
		return e.Time.Before(from) && !from.IsZero() || len(o.types) > 0 && !slices.Contains(o.types, e.Type) || may != nil && !may(e.ACL)
	})
	if o.limit > 0 && len(list) > o.limit {
		list = list[len(list)-o.limit:]
	}
	shown, err := withClaims(ctx, repo, list)
	if err != nil {
		return stateError(err)
	}
	if o.asJSON {
		for i := range shown {
			shown[i].LogEntry = shown[i].Shown()
		}
		return printJSON(app.Out, shown)
	}
	if o.all {
		showActive(app, all)
	}
	if len(list) == 0 {
		return emptyLog(app, o)
	}
	printLog(app, shown, o.graph)
	return nil
}

func emptyLog(app *App, o logOptions) error {
	if o.asJSON {
		return printJSON(app.Out, []staterepo.LogEntry{})
	}
	fmt.Fprintln(app.Err, "no entries")
	return nil
}

// withClaims are the entries with who has accepted what: a handoff's own status is
// that of the moment when it was left.
func withClaims(ctx context.Context, repo *staterepo.Repo, list []staterepo.LogEntry) ([]staterepo.Handoff, error) {
	taken := map[string]string{}
	if slices.ContainsFunc(list, func(e staterepo.LogEntry) bool { return e.Type == mdfile.TypeHandoff }) {
		handoffs, err := repo.Handoffs(ctx, "")
		if err != nil {
			return nil, err
		}
		for _, h := range handoffs {
			taken[h.ID] = h.AcceptedBy
		}
	}
	out := []staterepo.Handoff{}
	for _, e := range list {
		if taken[e.ID] != "" && e.Status == "pending" {
			e.Status = "in_progress"
		}
		out = append(out, staterepo.Handoff{LogEntry: e, AcceptedBy: taken[e.ID]})
	}
	return out, nil
}

// showActive is the table of agents: what each was last at.
func showActive(app *App, list []staterepo.LogEntry) {
	last := map[string]staterepo.LogEntry{}
	for _, e := range list {
		if e.Branch != staterepo.GlobalBranch {
			last[agentOf(e)] = e
		}
	}
	var names []string
	for n := range last {
		names = append(names, n)
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(last[b].Time.Compare(last[a].Time), cmp.Compare(a, b)) })
	for _, n := range names {
		e := last[n]
		fmt.Fprintf(app.Out, "%s  %s  %s  %s\n", app.Style().Bold(term.SafeLine(n)), statusSaid(staterepo.StatusOf(e.Entry)), term.Ago(app.Now().Sub(e.Time)), term.SafeLine(clipText(e.Title(), 60)))
	}
	if len(names) > 0 {
		fmt.Fprintln(app.Out)
	}
}

func agentOf(e staterepo.LogEntry) string { return strings.TrimPrefix(e.Branch, "agent-") }

func printLog(app *App, list []staterepo.Handoff, graph bool) {
	style := app.Style()
	var lanes []string
	for _, e := range list {
		if !slices.Contains(lanes, e.Branch) {
			lanes = append(lanes, e.Branch)
		}
	}
	before := map[string]string{} // branch → its last entry
	for _, e := range list {
		prefix, links := "", ""
		if graph {
			for _, l := range lanes {
				switch {
				case l == e.Branch:
					prefix += "* "
				case before[l] != "":
					prefix += "| "
				default:
					prefix += "  "
				}
			}
			if e.Parent != "" && e.Parent != before[e.Branch] {
				links += " ← " + e.Parent
			}
			for _, d := range e.DependsOn {
				links += " ⇠ " + d
			}
			before[e.Branch] = e.ID
		}
		status := ""
		switch {
		case e.AcceptedBy != "":
			status = " accepted by " + term.SafeLine(e.AcceptedBy)
		case slices.Contains(staterepo.Statuses(), e.Status):
			status = " " + statusSaid(e.Status)
		}
		if e.State.Status != mdfile.StatusActive {
			status += " " + e.State.Status
		}
		if e.To != "" {
			status += " → " + term.SafeLine(e.To)
		}
		head := fmt.Sprintf("%s%s  %s  %s  %s%s  ", prefix, e.Time.Local().Format("2006-01-02 15:04"), style.Dim(e.ID), term.SafeLine(cmp.Or(e.Agent, agentOf(e.LogEntry))),
			style.Cyan(term.SafeLine(e.Type)), term.SafeLine(status))
		fmt.Fprintln(app.Out, term.Wrap(head, term.SafeLine(e.Title())+style.Dim(term.SafeLine(links)), strings.Repeat(" ", len(prefix))+"    ", app.Columns))
	}
}

func newLogAddCmd(app *App) *cobra.Command {
	e := mdfile.Entry{Type: mdfile.TypeImplement}
	cmd := journalCommand(app, "add MESSAGE", "Add an entry to the log of the agent that works here", func(text string) mdfile.Entry {
		n := e
		n.Text = text
		return n
	})
	cmd.Long = `Add an entry to changelog.md of the agent that works here (a decision to
decisions.md, a learning to learnings.md), and commit it. Its parent is the
agent's last entry. MESSAGE of - reads standard input.`
	f := cmd.Flags()
	f.StringVar(&e.Type, "type", e.Type, strings.Join(staterepo.Types(), ", "))
	f.StringVar(&e.Status, "status", "", strings.Join(staterepo.Statuses(), ", "))
	f.StringVar(&e.Parent, "parent", "", "the entry that this one goes on from")
	f.StringArrayVar(&e.DependsOn, "depends-on", nil, "an entry that this one needs; may be given several times")
	offer(cmd, "type", staterepo.Types()...)
	offer(cmd, "status", staterepo.Statuses()...)
	return cmd
}

func newLogShowCmd(app *App) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "show ID", Args: cobra.ExactArgs(1), Short: "Show one entry, of what all share or of any agent",
		RunE: func(cmd *cobra.Command, args []string) error {
			repo, err := app.State()
			if err != nil {
				return err
			}
			e, err := repo.Entry(cmd.Context(), args[0])
			if err == nil && app.may() != nil && !app.may()(e.ACL) {
				err = fmt.Errorf("%w: %s", staterepo.ErrUnknown, args[0])
			}
			if err != nil {
				return stateError(err)
			}
			shown, err := withClaims(cmd.Context(), repo, []staterepo.LogEntry{e})
			if err != nil {
				return stateError(err)
			}
			e, by := shown[0].LogEntry, shown[0].AcceptedBy
			if asJSON {
				shown[0].LogEntry = e.Shown()
				return printJSON(app.Out, shown[0])
			}
			_, text := e.Render()
			fmt.Fprintf(app.Out, "%s\n%s", app.Style().Dim(e.Branch+":"+e.File), term.SafeText(string(text)))
			if by != "" {
				fmt.Fprintf(app.Out, "%s\n", app.Style().Dim("accepted by "+term.SafeLine(by)))
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print it for programs")
	return cmd
}

func newLogCopyCmd(app *App) *cobra.Command {
	return &cobra.Command{
		Use: "copy ID", Args: cobra.ExactArgs(1), Short: "Copy an entry of all, or of another agent, into this agent's log",
		Long: `Copy an entry, of what all share or of another agent, into the files of the
agent that works here. It keeps its id, and so is one entry still.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			j, err := app.journal(cmd.Context())
			if err != nil {
				return err
			}
			e, err := j.repo.Entry(cmd.Context(), args[0])
			if err == nil && app.may() != nil && !app.may()(e.ACL) {
				err = fmt.Errorf("%w: %s", staterepo.ErrUnknown, args[0])
			}
			if err != nil {
				return stateError(err)
			}
			e, s, err := j.tree.Copy(cmd.Context(), j.access, e.ID)
			if err != nil {
				return stateError(err)
			}
			app.noteState(s.Notes)
			done := "copied"
			if len(s.Changed) == 0 {
				done = "already there"
			}
			fmt.Fprintf(app.Out, "%s %s  %s\n", done, e.ID, app.Style().Dim("(agent "+j.tree.Agent()+", "+e.File+")"))
			return nil
		},
	}
}
