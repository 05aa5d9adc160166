package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/aymanbagabas/go-udiff"
	"github.com/spf13/cobra"

	"reprise/internal/config"
	"reprise/internal/event"
	"reprise/internal/hook/compile"
	"reprise/internal/term"
)

func newTrustCmd(app *App) *cobra.Command {
	var show, revoke, yes, asJSON bool
	cmd := &cobra.Command{
		Use: "trust", Args: cobra.NoArgs, Short: "Approve what this project's settings ask for",
		Long: `A repository brings its .reprise/project.yaml along. What that file asks for under
hooks, tools, profiles, verify and routes (to run something, or to switch something
off) does nothing until you have approved the file, exactly as it is. When it
changes, the difference is shown and it has to be approved again. What it says under
guard only makes the guard stricter, and needs no approval.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			home, err := app.Home()
			if err != nil || home.Project == nil {
				if done, rerr := revokeLost(cmd.Context(), app, revoke); done || rerr != nil {
					return rerr
				}
			}
			if err != nil {
				return err
			}
			if home.Project == nil {
				return exitWith(ExitNotFound, fmt.Errorf("%s is in no project", app.Env.Dir))
			}
			trust, err := home.Paths.Trust(home.Project)
			if err != nil && trust.Hash == "" {
				return err
			}
			switch {
			case revoke:
				return revokeTrust(cmd.Context(), app, home, trust)
			case asJSON:
				return printJSON(app.Out, trust)
			}
			done := showTrust(app, home, trust, err)
			if show || done {
				return nil
			}
			return approve(cmd.Context(), app, home, trust, yes)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&show, "show", false, "only show what there is to approve")
	f.BoolVar(&revoke, "revoke", false, "take the approval back")
	f.BoolVarP(&yes, "yes", "y", false, "approve without asking")
	f.BoolVar(&asJSON, "json", false, "print how it stands for programs")
	return cmd
}

// showTrust says how it stands, and whether there is nothing to approve.
func showTrust(app *App, home *config.Home, t config.Trust, trouble error) (done bool) {
	file := term.SafeLine(home.Project.File())
	switch {
	case len(t.Asks) == 0:
		fmt.Fprintf(app.Out, "%s asks for nothing that needs an approval.\n", file)
		if t.Lapsed() {
			fmt.Fprint(app.Out, "The text that you approved has checks, and this one has none, so gates are off. `reprise trust --revoke` has them off for good.\n",
				app.Style().Diff(term.SafeText(udiff.Unified("approved", "now", t.Before, t.Text))))
		}
		return true
	case t.Approved:
		fmt.Fprintf(app.Out, "%s was approved on %s (%s).\n", file, t.At.Local().Format("2006-01-02 15:04"), strings.Join(t.Asks, ", "))
		return true
	}
	if trouble != nil {
		fmt.Fprintf(app.Err, "%s %s\n", app.Style().Yellow("warning:"), term.SafeLine(trouble.Error()))
	}
	fmt.Fprintf(app.Out, "%s asks for: %s. Not approved, so it does nothing.\n", file, strings.Join(t.Asks, ", "))
	if t.Before != "" {
		fmt.Fprint(app.Out, app.Style().Diff(term.SafeText(udiff.Unified("approved", "now", t.Before, t.Text))))
	} else {
		fmt.Fprint(app.Out, term.SafeText(t.Text))
	}
	return false
}

func approve(ctx context.Context, app *App, home *config.Home, t config.Trust, yes bool) error {
	if !yes {
		if !app.InIsTerminal || !app.OutIsTerminal {
			return usagef("nobody can be asked here: pass --yes to approve what is shown above")
		}
		sure, err := app.confirm(ctx, "Approve it?", false)
		if err != nil {
			return err
		}
		if !sure {
			return exitWith(ExitConflict, errors.New("not approved"))
		}
	}
	if err := home.Paths.Approve(ctx, home.Project, t, app.Now()); err != nil {
		return conflict(err)
	}
	if err := trustChanged(ctx, app, home, "approve", t); err != nil {
		return err
	}
	fmt.Fprintln(app.Out, "Approved.")
	return nil
}

// revokeLost takes the approval of a project back whose file is gone or cannot be read,
// or says that it is so. done is false where there is none.
func revokeLost(ctx context.Context, app *App, revoke bool) (done bool, err error) {
	home, lost := compile.LostHome(app.Env, app.ConfigFlag)
	switch {
	case lost == nil || !revoke && lost.Broken:
		return false, nil // what is broken is said by the error itself
	case !revoke:
		return true, exitWith(ExitNotFound, fmt.Errorf("%s %s, and you approved its checks, so gates are off: bring it back, or take the approval back with `reprise trust --revoke`", lost.Project.File(), lost.Why()))
	}
	app.home = home
	return true, revokeTrust(ctx, app, home, lost.Trust)
}

func revokeTrust(ctx context.Context, app *App, home *config.Home, t config.Trust) error {
	if err := home.Paths.Revoke(home.Project); err != nil {
		return err
	}
	if err := trustChanged(ctx, app, home, "revoke", t); err != nil {
		return err
	}
	fmt.Fprintln(app.Out, "Taken back: what the project's settings ask for does nothing until you approve it again.")
	return nil
}

func trustChanged(ctx context.Context, app *App, home *config.Home, op string, t config.Trust) error {
	data, err := jsonData(map[string]any{"op": op, "file": home.Project.File(), "hash": t.Hash, "asks": t.Asks})
	if err != nil {
		return err
	}
	broker, err := app.Broker()
	if err != nil {
		return err
	}
	_, err = broker.Record(ctx, event.Event{
		Scope: event.ScopeProject, Project: home.Project.Name, Type: event.TrustChanged, Data: data, Outcome: "success",
	})
	return err
}
