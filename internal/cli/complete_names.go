package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"reprise/internal/recall"
	"reprise/internal/task"
)

// offerNames has every command whose first argument names something that is there offer
// what there is: of a group's commands all take the same, so that none is forgotten.
func offerNames(app *App, root *cobra.Command) {
	for _, of := range [...]struct {
		path, arg string
		offer     completer
	}{
		{"reprise task", "N", completeTasks(app)},
		{"reprise memory", "ID", completeRemembered(app)},
		{"reprise guard", "ID", completePending(app)},
	} {
		group, rest, err := root.Find(strings.Fields(of.path)[1:])
		if err != nil || len(rest) > 0 {
			continue // this program has that command alone which was asked for
		}
		for _, cmd := range group.Commands() {
			if cmd.ValidArgsFunction == nil && firstArg(cmd.Use) == of.arg {
				cmd.ValidArgsFunction = of.offer
			}
		}
	}
}

// firstArg is what a usage line calls its first argument: N of "show N", "run N ..." and
// "begin N|review [OPERATION]".
func firstArg(use string) string {
	words := strings.Fields(use)
	if len(words) < 2 {
		return ""
	}
	arg, _, _ := strings.Cut(strings.Trim(words[1], "[]."), "|")
	return arg
}

// completeTasks offers the numbers of the project's tasks, those that are worked on first.
func completeTasks(app *App) completer {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 && !strings.Contains(cmd.Use, "...") {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		b, err := app.loadTasks(cmd.Context())
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var list []*task.Task
		for _, n := range b.State.Numbers() {
			list = append(list, b.State.Tasks[n])
		}
		task.SortByWork(list)
		var words []string
		for _, t := range list {
			if n := fmt.Sprint(t.Number); !slices.Contains(args, n) {
				words = append(words, cobra.CompletionWithDesc(n, t.Status.Words()+": "+firstLine(t.Title, 60)))
			}
		}
		return words, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
	}
}

const (
	// completeMost is how many things that are remembered are offered, the newest.
	completeMost = 50
	// completeTime is how long a shell waits for them, where the index has to be made first.
	completeTime = 2 * time.Second
)

// completeRemembered offers the ids of what sessions and people have left, the newest first.
// Of all completions it alone may write, what the index does not have yet.
func completeRemembered(app *App) completer {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), completeTime)
		defer cancel()
		reader, err := app.reader()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		m, err := app.Remembered()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		list, _, err := m.Index.Latest(ctx, recall.Question{Reader: reader, Classes: leftClasses(), Max: completeMost})
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var words []string
		for _, r := range list.Results {
			title := r.Title
			if title == "" {
				title = r.Snippet
			}
			words = append(words, cobra.CompletionWithDesc(r.ID, strings.ReplaceAll(string(r.Class), "_", "-")+": "+firstLine(title, 60)))
		}
		return words, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
	}
}

// completePending offers the calls that wait for an answer.
func completePending(app *App) completer {
	return func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		q, err := app.pendingQueue()
		if len(args) > 0 || err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		list, _ := q.list() // what can be read is offered
		var words []string
		for _, c := range list {
			words = append(words, cobra.CompletionWithDesc(shortID(c.ID), c.Client+" "+firstLine(c.Input, 60)))
		}
		return words, cobra.ShellCompDirectiveNoFileComp
	}
}
