package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"reprise/internal/config"
	"reprise/internal/git"
	"reprise/internal/staterepo"
	"reprise/internal/staterepo/codehooks"
	"reprise/internal/term"
)

func newStateHooksCmd(app *App) *cobra.Command {
	var asJSON bool
	show := func(list []codehooks.State) error {
		if asJSON {
			return printJSON(app.Out, list)
		}
		for _, h := range list {
			state := "not installed"
			if h.Installed {
				state = h.File
			}
			fmt.Fprintf(app.Out, "%s  %s\n", h.Name, term.SafeLine(state))
			if h.Chained != "" {
				fmt.Fprintf(app.Out, "  and then %s\n", term.SafeLine(h.Chained))
			}
			if h.Problem != "" {
				fmt.Fprintf(app.Err, "warning: %s: %s\n", h.Name, term.SafeLine(h.Problem))
			}
		}
		return nil
	}
	repo := func() codehooks.Repo {
		return codehooks.Repo{Dir: app.Env.Dir, Git: git.Options{Vars: app.Env.Vars}}
	}
	cmd := &cobra.Command{
		Use: "hooks", Args: cobra.NoArgs, Short: "Show git's hooks in the code's repository, put them in or out",
		Long: `Show which of git's hooks in the code's repository start reprise. None does
unless it was installed: post-checkout notes which branch of the code is worked
on, and post-commit that something was committed. They start reprise in the
background, so that git waits for nothing, and then give the user's hook of that
name its turn, whose word counts; also where core.hooksPath names another
directory.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			list, err := repo().Look(cmd.Context())
			if err != nil {
				return stateError(err)
			}
			return show(list)
		},
	}
	cmd.PersistentFlags().BoolVar(&asJSON, "json", false, "print them for programs")
	var commits bool
	install := &cobra.Command{
		Use: "install", Args: cobra.NoArgs, Short: "Put them in; once more brings them up to date",
		Long: `Put post-checkout into the code's repository, and post-commit where the setting
hooks.post_commit is on, or with --post-commit.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			home, err := app.Home()
			if err != nil {
				return err
			}
			names := []string{"post-checkout"}
			if commits || home.StateHooks().PostCommit == "on" {
				names = append(names, "post-commit")
			}
			list, err := repo().Install(cmd.Context(), app.Program, names)
			if err != nil {
				return stateError(err)
			}
			return show(list)
		},
	}
	install.Flags().BoolVar(&commits, "post-commit", false, "post-commit, too")
	remove := &cobra.Command{
		Use: "remove", Args: cobra.NoArgs, Short: "Take them out, and leave all as it was before",
		RunE: func(cmd *cobra.Command, _ []string) error {
			list, err := repo().Remove(cmd.Context())
			if err != nil {
				return stateError(err)
			}
			return show(list)
		},
	}
	run := &cobra.Command{
		Use: "run HOOK [ARG ...]", Hidden: true, Args: cobra.MinimumNArgs(1), Short: "Do what a hook is for (started by git)",
		RunE: func(cmd *cobra.Command, args []string) error { return runCodeHook(cmd, app, args) },
	}
	cmd.AddCommand(install, remove, run)
	return cmd
}

// runCodeHook is what a hook of the code's git starts in the background. Where
// there is no project, or the switch is off, it does nothing.
func runCodeHook(cmd *cobra.Command, app *App, args []string) error {
	home, err := app.Home()
	if err != nil || home.Project == nil {
		return err
	}
	branch := config.CodeBranch(app.Env.Dir)
	switches := home.StateHooks()
	switch args[0] {
	case "post-checkout":
		if switches.BranchSwitch == "off" || branch == "" || len(args) == 4 && args[3] != "1" {
			return nil
		}
		_, err := app.onBranch(cmd.Context(), branch)
		return stateError(err)
	case "post-commit":
		_, commit := app.codeHead(cmd.Context())
		if switches.PostCommit != "on" || commit == "" {
			return nil
		}
		app.stateChanged(cmd.Context(), home.Project.Name, staterepo.Change{Op: "code_commit", Commit: commit, Title: branch})
		return nil
	}
	return usagef("there is no use for hook %q", clipText(args[0], 40))
}
