package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"reprise/internal/staterepo"
)

// noCommand refuses a text that is a single word of those that commands are called: who
// types `reprise scratch list` wants to see something, and not to put "list" in its place.
func noCommand(cmd *cobra.Command, text string) error {
	word := strings.ToLower(strings.TrimSpace(text))
	if !slices.Contains([]string{"show", "list", "ls", "view", "cat", "print", "get", "read", "edit", "open", "status", "help", "add", "new", "create", "accept", "take", "clear", "reset", "rm", "remove", "delete", "undo"}, word) {
		return nil
	}
	return usagef("%q alone is more likely a command than a text, so nothing was written: `%s` shows what is there, and `echo %s | %s -` writes the word", word, cmd.CommandPath(), word, cmd.CommandPath())
}

// addShow gives a command that shows what there is where it has no text the same under a
// name of its own, as other commands have it.
func addShow(cmd *cobra.Command, name, short string) {
	run := cmd.RunE
	show := &cobra.Command{
		Use: name, Args: cobra.NoArgs, Short: short,
		RunE: func(show *cobra.Command, _ []string) error { return run(show, nil) },
	}
	if f := cmd.Flags().Lookup("json"); f != nil {
		show.Flags().AddFlag(f)
	}
	cmd.AddCommand(show)
}

// sayReplaced names the command that gives the text back that another took the place of.
func (a *App) sayReplaced(s staterepo.Saved, dir, file, old, text string) {
	if strings.TrimSpace(old) == "" || old == text || s.Commit == "" {
		return
	}
	fmt.Fprintf(a.Err, "what stood there: git -C %s show %.12s~1:%s\n", shellWords([]string{dir}), s.Commit, shellWords([]string{file}))
}
