package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"reprise/internal/event"
	"reprise/internal/learn/scopes"
	"reprise/internal/recall"
	"reprise/internal/term"
)

func memoryForget(app *App) *cobra.Command {
	var o scopes.Forgetting
	var finish, dry, undo, yes bool
	cmd := scopesCommand(app, "forget ID", "Take something out, so that nothing serves it any more", cobra.ExactArgs(1), func(ctx context.Context, s *scopes.Scopes, args []string) (scopes.Change, error) {
		if undo {
			return s.Unforget(ctx, args[0], o.Reason)
		}
		c, err := s.Would(ctx, args[0], o)
		switch {
		case err != nil && dry:
			return c, err
		case err != nil: // it may be forgotten already, which is no error
			return s.Forget(ctx, args[0], o)
		case dry:
			return c, nil
		}
		if err := mayForget(ctx, app, c, yes); err != nil {
			return c, err
		}
		return s.Forget(ctx, args[0], o)
	})
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if finish {
			return cobra.NoArgs(cmd, args)
		}
		return cobra.ExactArgs(1)(cmd, args)
	}
	one := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if finish { // it is done before every command that reads
			return nil
		}
		return one(cmd, args)
	}
	cmd.Long = `An entry or a section leaves its file; what was worked out from the log is not
made again, by no rebuild, no import and no later session that does the same: only
what that session did itself is remembered of it. What says the same goes with it: the
pattern that an entry was made from and its episodes, what was promoted from it.
--only leaves those; --dry-run shows what would go. Where more than what you named
goes from another scope than this project's, it is shown and asked first. What is only
wrong for all projects is taken back by ` + "`reprise memory demote`" + `.

The event log keeps what happened, and by it --undo ID brings all of it back that went
with that ID. With --purge the events that it was worked out
from, or that tell its words, are taken out of the logs for good, with a record
that something was: of a failure its calls, what was tried and what helped, the
answer that tells of it, the turn where that did nothing else, summaries of the
session that say it. What another episode shares stays, and is named with the reason,
as is what the memory's git history still has.

Killed at any moment, it is finished by the next hook, or the next command that shows
something of memory, logs or state, or how things stand.`
	f := cmd.Flags()
	f.StringVar(&o.Reason, "reason", "", "why; kept in the log")
	f.BoolVar(&o.Purge, "purge", false, "take the evidence out of the event logs, too; this cannot be undone")
	f.BoolVar(&o.Only, "only", false, "leave what says the same elsewhere")
	f.BoolVar(&finish, "finish", false, "only finish what was cut short")
	f.BoolVar(&undo, "undo", false, "take back that ID was forgotten, and what went with it")
	f.BoolVar(&dry, "dry-run", false, "only show what would go")
	f.BoolVar(&yes, "yes", false, "do not ask")
	for _, other := range []string{"purge", "only", "undo", "dry-run"} {
		cmd.MarkFlagsMutuallyExclusive("finish", other)
	}
	for _, other := range []string{"purge", "only", "dry-run"} {
		cmd.MarkFlagsMutuallyExclusive("undo", other)
	}
	return cmd
}

// mayForget asks where more than what was named goes from other scopes than this project's:
// whoever names one thing that is wrong here seldom means what is right elsewhere.
func mayForget(ctx context.Context, app *App, c scopes.Change, yes bool) error {
	far := slices.DeleteFunc(slices.Clone(c.Items), func(g scopes.Going) bool { return !g.Beyond })
	if yes || len(far) == 0 {
		return nil
	}
	ways := "`--only` takes out that alone"
	if c.Scope == string(event.ScopeGlobal) {
		ways += ", `reprise memory demote " + c.ID + "` what holds for all projects"
	}
	if !app.InIsTerminal || !app.OutIsTerminal {
		return usagef("not forgotten: with %s goes what other places are told (%s), and nobody can be asked here: `--dry-run` shows it, `--yes` takes it, too, %s", c.ID, toldIn(far), ways)
	}
	if err := showGoing(app, c); err != nil {
		return err
	}
	fmt.Fprintln(app.Out)
	sure, err := app.confirm(ctx, fmt.Sprintf("Of these, %s are told elsewhere, too (%s). Forget all of it? %s.", count(len(far), "item"), toldIn(far), strings.ToUpper(ways[:1])+ways[1:]), false)
	if err != nil {
		return err
	}
	if !sure {
		return exitWith(ExitConflict, errors.New("not forgotten: you said no"))
	}
	return nil
}

// toldIn are the places in which items are told, each once.
func toldIn(list []scopes.Going) string {
	var out []string
	for _, g := range list {
		where := "all projects"
		if g.Project != "" {
			where = recall.Where(g.Project)
		}
		if !slices.Contains(out, where) {
			out = append(out, where)
		}
	}
	const most = 5
	if n := len(out); n > most {
		out = append(out[:most], fmt.Sprintf("%d more", n-most))
	}
	return term.SafeLine(strings.Join(out, ", "))
}

// showGoing says what a forgetting takes out, and where from.
func showGoing(app *App, c scopes.Change) error {
	fmt.Fprintln(app.Out, "would be forgotten:")
	for _, g := range c.Items {
		app.said("  ", goingLine(g))
	}
	return nil
}

func goingLine(g scopes.Going) string {
	where := g.Scope
	if g.Project != "" {
		where = recall.Where(g.Project)
	}
	return term.SafeText(strings.TrimSpace(fmt.Sprintf("%s  (%s, %s)  %s", g.ID, g.Class, where, clipText(g.Title, 100))))
}
