package cli

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"reprise/internal/config"
	"reprise/internal/term"
	"reprise/internal/verify"
)

func newGatesCmd(app *App) *cobra.Command {
	cmd := &cobra.Command{
		Use: "gates", Short: "See what keeps agents from ending before their work is done",
		Long: `Before an agent's turn ends, the project's checks are run on a copy of the tree, and
the agent goes on when they fail: at most gates.max_blocks times, never when nothing
changed, and only with checks that you approved. docs/gates.md says how it works.`,
	}
	cmd.AddCommand(gatesStatus(app), gatesReset(app))
	return cmd
}

type gatesView struct {
	Project  string             `json:"project"`
	Trusted  bool               `json:"trusted"`
	Checks   bool               `json:"checks"` // the project defines some
	Stop     string             `json:"stop"`
	Subagent string             `json:"subagent"`
	When     string             `json:"when"`
	Blocks   int                `json:"max_blocks"`
	Timeout  int                `json:"timeout_seconds"`
	Off      []string           `json:"off"`    // gates that are not looked at
	Latest   *verify.Result     `json:"latest"` // null where there is none
	Sessions []verify.GateState `json:"sessions"`
	// Ends is how the last turns ended; programs see it by latest.
	Ends verify.Ends `json:"-"`
	// Works is what comes of all this, in a sentence.
	Works string `json:"works"`
}

func gatesStatus(app *App) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "status", Args: cobra.NoArgs, Short: "Show which gates are on, and which sessions were kept",
		RunE: func(*cobra.Command, []string) error {
			home, trust, err := verifyHome(app)
			if err != nil {
				return err
			}
			v, err := gatesOf(app, home, trust)
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(app.Out, v)
			}
			printGates(app, v)
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print it for programs")
	return cmd
}

func gatesOf(app *App, home *config.Home, trust config.Trust) (gatesView, error) {
	s := home.Settings.Gates
	v := gatesView{
		Project: home.Project.Name, Trusted: trust.Approved, Checks: !trust.Says.Verify.Empty(),
		Stop: s.Stop, Subagent: s.Subagent, When: s.When, Blocks: s.MaxBlocks, Timeout: s.TimeoutSeconds, Off: []string{}, Sessions: []verify.GateState{},
	}
	for _, g := range config.GateNames() {
		if why := s.Off(g, trust.Says.Verify); why != "" {
			v.Off = append(v.Off, g+" ("+why+")")
		}
	}
	store := app.verifyStore(home)
	if list, _, err := store.List(1); err == nil && len(list) == 1 {
		v.Latest = list[0]
	}
	var err error
	if v.Ends, err = store.Ends(); err != nil {
		return v, err
	}
	sessions, err := store.Sessions()
	if err != nil {
		return v, err
	}
	slices.SortFunc(sessions, func(a, b verify.GateState) int { return b.Modified.Compare(a.Modified) })
	v.Sessions = append(v.Sessions, sessions[:min(len(sessions), 20)]...)
	switch {
	case s.Stop == "off" && s.Subagent == "off":
		v.Works = "off: the settings gates.stop and gates.subagent say so"
	case trust.Lapsed():
		v.Works = "off: " + home.Project.File() + " changed since it was approved; `reprise trust` shows the difference"
	case !v.Checks:
		v.Works = "off: the project defines no checks (verify.profiles in " + home.Project.File() + ")"
	case !v.Trusted:
		v.Works = "off: the checks are not approved; `reprise trust` shows them and asks"
	default:
		v.Works = fmt.Sprintf("on: a turn is kept from ending at most %d times", s.MaxBlocks)
	}
	return v, nil
}

func printGates(app *App, v gatesView) {
	fmt.Fprint(app.Out, wrapLine(term.SafeLine(v.Works), app.Columns))
	line := func(name, value string) {
		fmt.Fprintln(app.Out, wrapList(fmt.Sprintf("  %-16s ", name), strings.Fields(value), " ", app.Columns))
	}
	line("end of turn", v.Stop)
	line("end of subagent", v.Subagent)
	line("when", v.When)
	line("time", (time.Duration(v.Timeout) * time.Second).String())
	if len(v.Off) > 0 {
		line("not looked at", strings.Join(v.Off, ", "))
	}
	if v.Latest != nil {
		but := ""
		if is := v.Latest.Excused(); is != "" && v.Latest.Status == verify.Passed {
			but = ", but " + term.SafeLine(is)
		}
		line("latest", fmt.Sprintf("%s %s%s, %s", v.Latest.ID, v.Latest.Status, but, v.Latest.Started.Local().Format("2006-01-02 15:04")))
	}
	if r := v.Ends.Loose; r != nil && r.Unjudged() != "" {
		line("not judged", "the last turn: "+term.SafeLine(r.Unjudged()))
	} else if r != nil {
		line("not done", "the last turn "+term.SafeLine(r.Loose()))
	}
	for _, s := range v.Sessions {
		if s.Total == 0 && s.Problem == "" {
			continue
		}
		whose := app.sessionCell(s.Session)
		if s.Agent != "" {
			whose += ", its subagent " + clipText(s.Agent, 12)
		}
		what := fmt.Sprintf("%s %s: kept %s, %d in this turn", s.Client, whose, count(s.Total, "time"), s.Blocks)
		if s.Problem != "" {
			what = "its note was " + s.Problem
		}
		line("session", what)
	}
}

// standGates says that the last turn ended without being judged, or although its work is
// not done.
func (a *App) standGates(s *standing, home *config.Home) error {
	if home.Project == nil {
		return nil
	}
	store := a.verifyStore(home)
	ends, err := store.Ends()
	if list, _, err := store.List(1); err == nil && len(list) == 1 && list[0].Status == verify.Passed && list[0].Excused() != "" {
		s.Waits = append(s.Waits, standWait{"the checks hold less than they say: they passed, but " + list[0].Excused(), "reprise verify show " + list[0].ID})
	}
	if r := ends.Loose; r != nil {
		whose := ""
		if r.Client != "" && r.Session != "" {
			whose = " of " + r.Client + " " + clipText(r.Session, 12)
		}
		s.Waits = append(s.Waits, standWait{"the last turn" + whose + " " + firstLine(r.Loose(), 300), "reprise verify show " + r.ID})
	}
	return err
}

func gatesReset(app *App) *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use: "reset [SESSION]", Args: cobra.MaximumNArgs(1), Short: "Forget how often a session was kept from ending",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 != all {
				return usagef("name a session (the beginning of its id is enough), or pass --all")
			}
			home, _, err := verifyHome(app)
			if err != nil {
				return err
			}
			session := ""
			if len(args) == 1 {
				session = args[0]
			}
			n, err := app.verifyStore(home).Reset(cmd.Context(), session)
			if err != nil {
				return err
			}
			if n == 0 && session != "" {
				return exitWith(ExitNotFound, fmt.Errorf("nothing is known of a session %q; `reprise gates status` shows them", clipText(session, 60)))
			}
			fmt.Fprintf(app.Out, "reset %s\n", count(n, "session"))
			return nil
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "of every session of the project")
	return cmd
}
