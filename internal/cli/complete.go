package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"reprise/internal/run"
	"reprise/internal/session"
)

// completer offers words for an argument. Completion never fails and never
// writes (but completeRemembered): where something cannot be read, there is nothing to offer.
type completer = func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective)

// completeRuns offers the ids of runs that keep says yes to, each with its
// status and what it was about. Those already given are left out.
func completeRuns(app *App, keep func(run.Record) bool) completer {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 && !strings.Contains(cmd.Use, "...") {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		runs, err := app.Runs()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		list, _ := runs.List(cmd.Context()) // what can be read is offered
		var words []string
		for _, r := range list {
			if !slices.Contains(args, r.ID) && keep(r) {
				words = append(words, cobra.CompletionWithDesc(r.ID, string(r.Status)+": "+taskCell(r, 50)))
			}
		}
		return words, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
	}
}

func anyRun(run.Record) bool { return true }

func unsettledRun(r run.Record) bool { return !r.Status.Settled() }

// completeMemory offers core, index and the blocks.
func completeMemory(app *App) completer {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		words := []string{"core", "index"}
		if m, err := app.Layers(); err == nil {
			blocks, _ := m.List(cmd.Context(), "") // none where there is no memory
			for _, b := range blocks {
				if b.Shadowed {
					continue
				}
				words = append(words, cobra.CompletionWithDesc(strings.TrimSuffix(b.Name, ".md"), firstLine(b.Summary, 50)))
			}
		}
		return words, cobra.ShellCompDirectiveNoFileComp
	}
}

// completePlaces offers the names of places.
func completePlaces(app *App) completer {
	return func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var words []string
		list, _ := places(app) // with wrong settings, those that are known
		for _, p := range list {
			words = append(words, cobra.CompletionWithDesc(p.Name, p.Path))
		}
		return words, cobra.ShellCompDirectiveNoFileComp
	}
}

// completeTokens offers the names of the bearer tokens.
func completeTokens(app *App) completer {
	return func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		home, err := app.Home()
		if len(args) > 0 || err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var words []string
		list, _ := app.tokens(home).List()
		for _, t := range list {
			words = append(words, t.Name)
		}
		return words, cobra.ShellCompDirectiveNoFileComp
	}
}

// completeProjects offers the names of the projects that have data here.
func completeProjects(app *App) completer {
	return func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		home, err := app.Home()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return session.Projects(home), cobra.ShellCompDirectiveNoFileComp
	}
}

// offer makes words the completions of a flag.
func offer(cmd *cobra.Command, flag string, words ...string) {
	err := cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
	if err != nil {
		panic(err) // the flag is not there: a slip in this package
	}
}
