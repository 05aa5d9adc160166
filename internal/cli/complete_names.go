package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"reprise/internal/recall"
	"reprise/internal/task"
)

// argNames says what completes the first argument of commands by its name in their usage lines;
// the first that fits counts. Of a group's commands all take the same, so that none is forgotten
// (TestWhatNamesAThingIsCompleted).
func argNames(app *App) []argName {
	return []argName{
		{"reprise task context", "NAME", completeTaskContext},
		{"reprise task", "N", completeTasks(app)},
		{"reprise task", "SESSION", completeSteps(app)},
		{"reprise memory profile", "ID", completePreferences(app)},
		{"reprise memory", "SESSION", completeSessions(app)},
		{"reprise memory", "ID", completeRemembered(app)},
		{"reprise context", "ID", completeUnpromoted(app)},
		{"reprise guard", "ID", completePending(app)},
		{"reprise runs", "RUN", completeRuns(app, anyRun)},
		{"reprise queue", "TOKEN", completeTokensOfClaims(app)},
		{"reprise log", "AGENT", completeAgents(app)},
		{"reprise state archive", "AGENT", completeAgents(app)},
		{"reprise state branch show", "NAME", completeBranches(app)},
		{"reprise log", "ID", completeEntries(app)},
		{"reprise handoff", "ID", completeHandoffs(app)},
		{"reprise events", "ID", completeEvents(app)},
		{"reprise policy", "ID", completePolicies(app)},
		{"reprise policy", "A", completePolicies(app)},
		{"reprise qa", "ID", completeAnswers(app)},
		{"reprise verify", "ID", completeVerifications(app)},
		{"reprise delegation", "SESSION", completeCounted(app)},
		{"reprise gates", "SESSION", completeGated(app)},
		{"reprise workspace saved", "NAME", completeSaved(app)},
		{"reprise workspace restore", "NAME", completeSaved(app)},
		{"reprise worker", "PROJECT", completeWorkerProjects(app)},
		{"reprise hook schema", "NAME", completeSchemas},
		{"reprise hook", "CLIENT", completeHookClients},
	}
}

type argName struct {
	path, arg string
	offer     completer
}

// flagNames says what completes a flag by what its help calls its value.
func flagNames(app *App) map[string]completer {
	return map[string]completer{
		"RUN": completeRuns(app, anyRun), "ITEM": completeItems(app), "ITEMS": completeItems(app),
		"AGENT": completeAgents(app), "PROJECT": completeProjects(app), "SESSION": completeSessions(app),
		"TASK": completeTasks(app), "NUMBERS": completeTasks(app), "LABEL": completeLabels(app), "LABELS": completeLabels(app),
		"LOOP": completeLoops(app), "LANGUAGE": completeLanguages,
	}
}

// offerNames completes what names something that is there.
func offerNames(app *App, root *cobra.Command) {
	args, flags := argNames(app), flagNames(app)
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		if cmd.ValidArgsFunction == nil && len(cmd.ValidArgs) == 0 {
			path, arg := cmd.CommandPath()+" ", firstArg(cmd.Use)
			if i := slices.IndexFunc(args, func(n argName) bool { return n.arg == arg && strings.HasPrefix(path, n.path+" ") }); i >= 0 {
				cmd.ValidArgsFunction = args[i].offer
			}
		}
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if _, is := cmd.GetFlagCompletionFunc(f.Name); is {
				return
			}
			called, _ := pflag.UnquoteUsage(f)
			offer := flags[called]
			if offer == nil {
				switch f.Value.Type() {
				case "int", "int64", "uint", "float64", "duration": // no file's name is one
					_ = cmd.RegisterFlagCompletionFunc(f.Name, cobra.NoFileCompletions)
				}
				return
			}
			_ = cmd.RegisterFlagCompletionFunc(f.Name, func(cmd *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
				return offer(cmd, nil, begun) // what its command was given says nothing of it
			})
		})
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
	}
	walk(root)
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
