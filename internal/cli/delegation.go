package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"reprise/internal/agent/dialect"
	"reprise/internal/config"
	"reprise/internal/delegation"
	"reprise/internal/event"
	"reprise/internal/hook"
	"reprise/internal/hook/compile"
	"reprise/internal/run"
	"reprise/internal/term"
)

// delegationRules are the rules that the settings come to.
func delegationRules(s config.Delegation) delegation.Rules {
	r := compile.Delegation(s)
	r.Free = append(delegation.Default().Free, r.Free...)
	return r
}

func newDelegationCmd(app *App) *cobra.Command {
	cmd := &cobra.Command{
		Use: "delegation", Short: "See how much sessions do themselves that should delegate",
		Long: `A session says by the variable AGENT_ROLE how much it should do itself: a conductor
next to nothing, a section leader some, a musician everything. Without a role
nothing is counted. Calls of tools that do work are counted from one delegation to
the next (a subagent, or a run); from delegation.conductor.warn on the session is
told, after delegation.conductor.block its work is refused until it delegates.
Reading, searching, documents and the clients' own files are free.`,
	}
	cmd.AddCommand(delegationStatus(app), delegationReset(app))
	return cmd
}

// delegationView is what `delegation status` shows.
type delegationView struct {
	Dir      string                  `json:"dir"`
	Tiers    int                     `json:"tiers"`
	Depth    int                     `json:"max_depth"` // of runs that start runs
	Roles    []delegationRole        `json:"roles"`
	Free     []string                `json:"free"`
	Sessions []delegationSession     `json:"sessions"`
	Damaged  []delegationDamagedFile `json:"damaged"`
	Runs     []delegationRun         `json:"runs"`
	// Unknown is what AGENT_ROLE says here where that is no role.
	Unknown string `json:"unknown_role,omitempty"`
}

type delegationRole struct {
	Role   string `json:"role"`
	Warn   int    `json:"warn"`
	Block  int    `json:"block"`
	Starts string `json:"starts"`
}

type delegationSession struct {
	Client    string `json:"client"`
	Session   string `json:"session"`
	Role      string `json:"role"`
	Work      int    `json:"work"`
	Block     int    `json:"block"`
	Total     int    `json:"total"`
	Delegated int    `json:"delegated"`
	Refused   int    `json:"refused"`

	logged bool // it is known from the event log, and there is no count of it
}

type delegationDamagedFile struct {
	File    string `json:"file"`
	Problem string `json:"problem"`
}

type delegationRun struct {
	ID     string     `json:"id"`
	Status run.Status `json:"status"`
	Path   []string   `json:"path"`
}

func delegationStatus(app *App) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "status [SESSION]", Args: cobra.MaximumNArgs(1), Short: "Show limits, counts of sessions, and runs that runs started",
		RunE: func(cmd *cobra.Command, args []string) error {
			prefix := ""
			if len(args) == 1 {
				prefix = args[0]
			}
			v, err := app.delegation(cmd.Context(), prefix)
			if err != nil {
				return err
			}
			if prefix != "" && len(v.Sessions) == 0 {
				return exitWith(ExitNotFound, fmt.Errorf("no session that begins with %q is counted here: only those of a conductor or section leader are", prefix))
			}
			if asJSON {
				err = printJSON(app.Out, v)
			} else {
				err = showDelegation(app, v)
			}
			if err == nil && len(v.Damaged) > 0 {
				return exitWithCode(ExitFailure)
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print it for programs")
	return cmd
}

func (a *App) delegation(ctx context.Context, prefix string) (delegationView, error) {
	home, err := a.Home()
	if err != nil {
		return delegationView{}, err
	}
	rules := delegationRules(home.Settings.Delegation)
	v := delegationView{Dir: delegation.Beside(home.EventsDir()).Dir, Tiers: rules.Tiers, Depth: run.MaxDepth, Free: rules.Free}
	if role := a.Env.Get(hook.RoleVar); role != "" && !slices.Contains(config.Roles(), role) {
		v.Unknown = role
	}
	for _, role := range config.Roles() {
		l, _ := rules.Of(role)
		v.Roles = append(v.Roles, delegationRole{role, l.Warn, l.Block, rules.Below(role)})
	}
	counts, damaged, err := delegation.Store{Dir: v.Dir}.List()
	if err != nil {
		return v, fmt.Errorf("list what sessions did themselves: %w", err)
	}
	for _, c := range counts {
		if strings.HasPrefix(c.Session, prefix) {
			l, _ := rules.Of(c.Role)
			v.Sessions = append(v.Sessions, delegationSession{
				Client: c.Client, Session: c.Session, Role: c.Role, Work: c.Work, Block: l.Block, Total: c.Total, Delegated: c.Delegated, Refused: c.Refused,
			})
		}
	}
	slices.SortFunc(v.Sessions, func(a, b delegationSession) int {
		return strings.Compare(a.Client+"\n"+a.Session, b.Client+"\n"+b.Session)
	})
	for file, problem := range damaged {
		v.Damaged = append(v.Damaged, delegationDamagedFile{file, problem.Error()})
	}
	slices.SortFunc(v.Damaged, func(a, b delegationDamagedFile) int { return strings.Compare(a.File, b.File) })
	runs, err := a.Runs()
	if err != nil {
		return v, err
	}
	list, err := runs.List(ctx)
	for _, r := range list {
		if len(r.DelegationPath) > 0 && prefix == "" {
			v.Runs = append(v.Runs, delegationRun{r.ID, r.Status, r.DelegationPath})
		}
	}
	return v, err
}

func showDelegation(app *App, v delegationView) error {
	style := app.Style()
	if v.Unknown != "" {
		fmt.Fprintf(app.Err, "%s %s is %q here, which is no role: nothing of such a session is counted; there are %s\n",
			style.Yellow("warning:"), hook.RoleVar, clipText(v.Unknown, 40), strings.Join(config.Roles(), ", "))
	}
	limit := func(n int) string { return ifKnown(n > 0, fmt.Sprint(n), "none") }
	table := term.NewTable(style, "ROLE", "TOLD FROM", "REFUSED AFTER", "STARTS").MaxWidth(app.Columns)
	for _, r := range v.Roles {
		table.Row(r.Role, limit(r.Warn), limit(r.Block), r.Starts)
	}
	if err := table.Write(app.Out); err != nil {
		return err
	}
	fmt.Fprintf(app.Out, "%d tiers. Runs may stand %d deep.\n%s\n\n", v.Tiers, v.Depth, wrapList("Free for all: ", v.Free, " ", app.Columns))
	if len(v.Sessions) == 0 {
		fmt.Fprintln(app.Out, "No session of a conductor or section leader is counted here.")
	} else {
		table = term.NewTable(style, "SESSION", "CLIENT", "ROLE", "OWN WORK", "IN ALL", "DELEGATED", "REFUSED").MaxWidth(app.Columns)
		for _, s := range v.Sessions {
			own := fmt.Sprint(s.Work)
			if s.Block > 0 {
				own += fmt.Sprintf(" of %d", s.Block)
			}
			table.Row(app.sessionCell(s.Session), s.Client, s.Role, own, fmt.Sprint(s.Total), fmt.Sprint(s.Delegated), fmt.Sprint(s.Refused))
		}
		if err := table.Write(app.Out); err != nil {
			return err
		}
	}
	for _, d := range v.Damaged {
		fmt.Fprintf(app.Out, "%s %s: %s; it is counted anew from the event log at the session's next call\n", style.Red("damaged:"), term.SafeLine(d.File), d.Problem)
	}
	for _, r := range v.Runs {
		fmt.Fprintf(app.Out, "%s (%s) was started by %s\n", r.ID, r.Status, strings.Join(r.Path, " → "))
	}
	return nil
}

// sessionCell is a session's id as a table has room for it: the beginning is enough to
// name one.
func (a *App) sessionCell(id string) string {
	if a.Columns > 0 && a.Columns < wideEnough {
		return id[:min(len(id), 8)]
	}
	return id
}

// delegationLogged are the sessions whose id begins so and that the event log has in a
// role that is held to delegating.
func (a *App) delegationLogged(prefix string) (list []delegationSession, err error) {
	home, err := a.Home()
	if err != nil {
		return nil, err
	}
	rules := delegationRules(home.Settings.Delegation)
	for e, err := range event.Read(home.EventsDir()) {
		if err != nil {
			return nil, fmt.Errorf("look for the session in the event log: %w", err)
		}
		l, known := rules.Of(e.Role)
		if !known || l.Warn+l.Block == 0 || !strings.HasPrefix(e.Session, prefix) ||
			slices.ContainsFunc(list, func(s delegationSession) bool { return s.Client == e.Client && s.Session == e.Session }) {
			continue
		}
		list = append(list, delegationSession{Client: e.Client, Session: e.Session, Role: e.Role, Block: l.Block, logged: true})
	}
	return list, nil
}

func delegationReset(app *App) *cobra.Command {
	return &cobra.Command{
		Use: "reset SESSION", Args: cobra.ExactArgs(1), Short: "Let a session begin to count anew",
		Long: `Let a session begin to count anew, as if it had delegated. That is for the person
whose session it is; it is an event of the log like any other.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if !app.person() {
				return exitWith(ExitConflict, fmt.Errorf("an agent does not set its own count back: delegate, or ask the person whose session it is"))
			}
			v, err := app.delegation(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if len(v.Sessions) == 0 {
				// A count that is displaced or lost is made from the log, which has the session.
				if v.Sessions, err = app.delegationLogged(args[0]); err != nil {
					return err
				}
			}
			if len(v.Sessions) == 0 {
				return exitWith(ExitNotFound, fmt.Errorf("no session that begins with %q is counted here: `reprise delegation status` lists those that are", args[0]))
			}
			if len(v.Sessions) > 1 {
				return exitWith(ExitNotFound, fmt.Errorf("%d sessions begin with %q: write more of the id, as `reprise delegation status` lists them", len(v.Sessions), args[0]))
			}
			s := v.Sessions[0]
			if !s.logged { // else the event alone counts, at the next call
				err = delegation.Store{Dir: v.Dir}.Update(cmd.Context(), s.Client, s.Session, func(c delegation.Count, err error) (delegation.Count, error) {
					c.Work, c.Before = 0, 0
					return c, err
				})
			}
			if err != nil {
				return fmt.Errorf("set the count of session %s back: %w", s.Session, err)
			}
			data, err := json.Marshal(event.DelegationData{What: event.DelegationReset, Total: s.Total, Delegated: s.Delegated, Limit: s.Block})
			if err != nil {
				return err
			}
			broker, err := app.Broker(event.Event{Client: s.Client, Session: s.Session, Role: s.Role})
			if err != nil {
				return err
			}
			if _, err := broker.Record(cmd.Context(), event.Event{Type: event.DelegationCounted, Data: data}); err != nil {
				return fmt.Errorf("record that the count was set back: %w", err)
			}
			fmt.Fprintf(app.Out, "Session %s may do %s of its own again.\n", term.SafeLine(s.Session), ifKnown(s.Block > 0, count(s.Block, "call"), "what it wants"))
			return nil
		},
	}
}

// recount counts a session's own work again from the event log in a directory. g
// knows which commands only read; nil: nobody does.
func recount(events string, d *hook.Delegation, g *hook.Guarding, of *dialect.Event, role string) (delegation.Count, error) {
	limits, _ := d.Rules.Of(role)
	c := delegation.Count{Client: of.Client, Session: of.Session, Role: role}
	for e, err := range event.Read(events) {
		if err != nil {
			return c, fmt.Errorf("count the session's own work again: %w", err)
		}
		if e.Client != of.Client || e.Session != of.Session {
			continue
		}
		switch e.Type {
		case event.ToolCalled:
			var t event.ToolData
			if json.Unmarshal(e.Data, &t) != nil || hasSubagent(e.Evidence) {
				continue
			}
			ev := dialect.Event{Kind: of.Kind, Client: of.Client, ToolID: t.ID, Tool: t.Tool, ToolName: t.Name, Input: t.Input, Cwd: t.Cwd}
			c, _ = c.Next(d.Rules.KindOf(&ev, d.Root, g != nil && t.Tool == "shell" && g.Quiet(ev)), limits)
		case event.ToolSucceeded, event.ToolFailed:
			var t event.ToolData
			if json.Unmarshal(e.Data, &t) != nil || hasSubagent(e.Evidence) {
				continue
			}
			if ev := (dialect.Event{Client: of.Client, Tool: t.Tool, ToolName: t.Name}); d.Rules.KindOf(&ev, d.Root, false) == delegation.Delegated {
				c = c.Ended(e.Type == event.ToolFailed)
			}
		case event.DelegationCounted:
			var t event.DelegationData
			if json.Unmarshal(e.Data, &t) == nil && t.What == event.DelegationReset {
				c.Work, c.Before = 0, 0
			}
		}
	}
	return c, nil
}

func hasSubagent(evidence []string) bool {
	return slices.ContainsFunc(evidence, func(s string) bool { return strings.HasPrefix(s, "subagent:") })
}
