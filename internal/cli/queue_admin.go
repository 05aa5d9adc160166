package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"reprise/internal/config"
	"reprise/internal/durable"
	"reprise/internal/proc"
	"reprise/internal/queue"
	"reprise/internal/term"
	"reprise/internal/worker/elsewhere"
)

// itemsCommand is a command that does one thing to each of the items given.
func itemsCommand(app *App, use, short string, do func(ctx context.Context, q queue.Queue, id, reason string) (queue.Item, error)) *cobra.Command {
	var reason string
	var asJSON bool
	cmd := &cobra.Command{
		Use: use + " ITEM...", Args: cobra.MinimumNArgs(1), Short: short, ValidArgsFunction: completeItems(app),
		RunE: func(cmd *cobra.Command, args []string) error {
			q, err := app.writableQueue(cmd.Context(), proc.ID{})
			if err != nil {
				return err
			}
			docs := []any{}
			var failed error
			for _, id := range args {
				it, err := do(cmd.Context(), q, id, reason)
				if err != nil {
					failed = errors.Join(failed, app.notThere(cmd.Context(), id, err))
					continue
				}
				doc, said := app.settled(it)
				docs = append(docs, doc)
				if !asJSON {
					fmt.Fprintln(app.Out, said)
				}
			}
			if asJSON {
				if err := printJSON(app.Out, docs); err != nil {
					return err
				}
			}
			return queueError(failed)
		},
	}
	cmd.Flags().StringVarP(&reason, "reason", "m", "", "why, for the item's history")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the items for programs")
	return cmd
}

func newQueueParkCmd(app *App) *cobra.Command {
	cmd := itemsCommand(app, "park", "Keep items from being claimed until they are unparked", func(ctx context.Context, q queue.Queue, id, reason string) (queue.Item, error) {
		if queue.IsToken(id) { // one's own claim
			q, err := app.holdersQueue(ctx, q, id, proc.ID{})
			if err != nil {
				return queue.Item{}, err
			}
			return q.Park(ctx, itemOf(id), queue.Token(id), reason)
		}
		it, err := q.Park(ctx, id, "", reason)
		return it, notToken(id, err)
	})
	cmd.Long = `Keep items from being claimed until they are unparked. One that is claimed is parked
by the token of its claim, given in place of its id.`
	return cmd
}

func newQueueUnparkCmd(app *App) *cobra.Command {
	cmd := itemsCommand(app, "unpark", "Put parked items back", func(ctx context.Context, q queue.Queue, id, reason string) (queue.Item, error) {
		home, err := app.Home()
		if err != nil {
			return queue.Item{}, err
		}
		dir := "" // outside any project no loop sets items aside
		if home.Project != nil {
			if _, dir, err = app.loopDir(); err != nil {
				return queue.Item{}, err
			}
		}
		f, there, err := app.statesElsewhere(ctx)
		if err != nil {
			return queue.Item{}, err
		}
		return elsewhere.PutBack(ctx, f, dir, there, q, id, reason)
	})
	cmd.Long = `Put parked items back, so that they can be claimed. One of which an agent has asked
something stays where it is while that is open (exit code 2): "reprise loop resume --item
ITEM" lets it go on, with --answer or with --no-answer.`
	return cmd
}

func newQueueRetryCmd(app *App) *cobra.Command {
	return itemsCommand(app, "retry", "Give dead items all their attempts again", func(ctx context.Context, q queue.Queue, id, reason string) (queue.Item, error) {
		return q.Retry(ctx, id, reason)
	})
}

func newQueueDropCmd(app *App) *cobra.Command {
	return itemsCommand(app, "drop", "End items that need not be done any more", func(ctx context.Context, q queue.Queue, id, reason string) (queue.Item, error) {
		it, err := q.Drop(ctx, id, reason)
		if err == nil {
			app.sayStranded(ctx, q, it.ID)
		}
		return it, err
	})
}

// sayStranded names what waits for an item that was dropped, and can never begin by that.
func (a *App) sayStranded(ctx context.Context, q queue.Queue, id string) {
	l, err := q.List(ctx, queue.Filter{States: []queue.State{queue.Blocked}})
	if err != nil {
		return // it was dropped, and the list says it as well
	}
	for _, it := range l.Items {
		if slices.Contains(it.DependsOn, id) {
			fmt.Fprintf(a.Err, "note: %s (%s) depends on %s, and does not begin without it: `reprise queue edit %s --depends-on ''` has it begin all the same, `reprise queue drop %s` ends it, too\n",
				it.ID, term.SafeLine(term.Cut(it.Title, 60)), id, it.ID, it.ID)
		}
	}
}

func newQueueEditCmd(app *App) *cobra.Command {
	var title, body, agent, notBefore string
	var priority string
	var attempts int
	var asJSON bool
	var labels, addLabels, removeLabels, depends []string
	var e queue.Edit
	cmd := &cobra.Command{
		Use: "edit ITEM", Args: cobra.ExactArgs(1), Short: "Change an item that nobody is at", ValidArgsFunction: completeItems(app),
		Long: `Change an item that is ready, blocked or dead. What a flag is not given for stays.
The file itself may be edited, too; ` + "`reprise queue check --repair`" + ` then files it anew.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			q, err := app.writableQueue(ctx, proc.ID{})
			if err != nil {
				return err
			}
			given := cmd.Flags().Changed
			if given("title") {
				e.Title = &title
			}
			if given("body") {
				if body, err = textArg(ctx, app, body); err != nil {
					return err
				}
				e.Body = &body
			}
			if given("priority") {
				n, err := queue.ParsePriority(priority)
				if err != nil {
					return queueError(err)
				}
				e.Priority = &n
			}
			if given("max-attempts") {
				e.MaxAttempts = &attempts
			}
			if given("agent") {
				e.Agent = &agent
			}
			if given("depends-on") {
				e.DependsOn = nonEmpty(depends)
			}
			if given("not-before") {
				at := time.Time{}
				if notBefore != "" {
					if at, err = comingTime(app, "--not-before", notBefore); err != nil {
						return err
					}
				}
				e.NotBefore = &at
			}
			if err := labelsGiven(cmd, "add-label", addLabels); err != nil {
				return err
			}
			if given("label") || given("add-label") || given("remove-label") {
				it, err := q.Get(ctx, args[0])
				if err != nil {
					return queueError(app.notThere(ctx, args[0], err))
				}
				if !given("label") {
					labels = it.Labels
				}
				e.Labels = nonEmpty(without(append(labels[:len(labels):len(labels)], addLabels...), removeLabels))
			}
			if e == (queue.Edit{Note: e.Note}) {
				return usagef("nothing to change: give a flag")
			}
			it, err := q.Edit(ctx, args[0], e)
			err = app.inAnother(ctx, err)
			if err != nil {
				return queueError(err)
			}
			doc, said := app.settled(it)
			if asJSON {
				return printJSON(app.Out, doc)
			}
			fmt.Fprintln(app.Out, "changed: "+said)
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&title, "title", "", "another title")
	f.StringVar(&body, "body", "", "another body; - reads standard input")
	f.StringVarP(&priority, "priority", "p", "", priorityHelp)
	f.StringArrayVarP(&labels, "label", "l", nil, "these `LABELS` in place of those it has; empty for none")
	f.StringArrayVar(&addLabels, "add-label", nil, "a `LABEL` more")
	f.StringArrayVar(&removeLabels, "remove-label", nil, "this `LABEL` no more")
	f.StringSliceVar(&depends, "depends-on", nil, "depend on these `ITEMS` alone, with commas or repeated; empty on none")
	f.StringVar(&notBefore, "not-before", "", "not before this `TIME`; empty takes it away")
	f.IntVar(&attempts, "max-attempts", 0, "how often it may fail")
	f.StringVar(&agent, "agent", "", "the `CLIENT` that it is meant for; empty for any")
	offer(cmd, "agent", config.RouteClients()...)
	f.StringVarP(&e.Note, "reason", "m", "", "why, for the item's history")
	f.BoolVar(&asJSON, "json", false, "print the item for programs")
	return cmd
}

func nonEmpty(list []string) *[]string {
	list = without(list, []string{""})
	return &list
}

func without(list, gone []string) []string {
	out := []string{}
	for _, s := range list {
		keep := true
		for _, g := range gone {
			keep = keep && s != g
		}
		if keep {
			out = append(out, s)
		}
	}
	return out
}

func newQueueGCCmd(app *App) *cobra.Command {
	r := queue.Retention{}
	var asJSON bool
	cmd := &cobra.Command{
		Use: "gc", Args: cobra.NoArgs, Short: "Remove items that were settled long ago",
		Long: `Remove items that were done, or died, long ago. One that another item still depends
on stays. A key is forgotten with its item: adding that again adds it anew.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			open := app.writableQueue
			if r.DryRun {
				open = func(context.Context, proc.ID) (queue.Queue, error) { return app.Queue(proc.ID{}) }
			}
			q, err := open(cmd.Context(), proc.ID{})
			if err != nil {
				return err
			}
			gone, err := q.GC(cmd.Context(), r)
			if err != nil {
				return queueError(err)
			}
			if asJSON {
				docs := make([]workItem, len(gone))
				for i, it := range gone {
					docs[i] = workDoc(it)
				}
				return printJSON(app.Out, docs)
			}
			for _, it := range gone {
				fmt.Fprintf(app.Out, "%s %s: %s\n", it.ID, it.State, term.SafeLine(it.Title))
			}
			would := "removed"
			if r.DryRun {
				would = "would be removed"
			}
			fmt.Fprintf(app.Err, "%s %s.\n", count(len(gone), "item"), would)
			return nil
		},
	}
	f := cmd.Flags()
	f.DurationVar(&r.DoneAfter, "older", 30*24*time.Hour, "items that have been done for longer than this; 0 keeps them all")
	f.DurationVar(&r.DeadAfter, "dead-older", 0, "items that have been dead for longer than this; 0 keeps them all")
	f.IntVar(&r.Keep, "keep", 0, "keep the newest `N` of each, however old they are")
	f.BoolVarP(&r.DryRun, "dry-run", "n", false, "say what would be removed, and remove nothing")
	f.BoolVar(&asJSON, "json", false, "print what was removed, or would be, for programs")
	return cmd
}

func newQueueCheckCmd(app *App) *cobra.Command {
	var repair, asJSON bool
	var out []string
	cmd := &cobra.Command{
		Use: "check", Args: cobra.NoArgs, Short: "Look at every file of the queue, and mend what can be mended",
		Long: `Look at every file of the queue. With --repair changes that a crash left half done
are finished, items whose file was edited by hand are filed by what it says, and
what killed processes left half written is removed. Foreign and damaged files are
named and left alone. Ends with 1 when something is not as it should be.

--take-out gives up an item that is damaged, and nothing else: what it holds is kept in
a file first, in the directory damaged/ beside the queue's.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			open := app.writableQueue
			if !repair && len(out) == 0 {
				open = func(context.Context, proc.ID) (queue.Queue, error) { return app.Queue(proc.ID{}) }
			}
			q, err := open(cmd.Context(), proc.ID{})
			if err != nil {
				return err
			}
			for _, id := range out {
				if err := app.takeOut(cmd.Context(), q, id); err != nil {
					return queueError(err)
				}
			}
			rep, err := q.Check(cmd.Context(), repair)
			if err != nil {
				return queueError(err)
			}
			left := 0
			for _, p := range rep.Problems {
				if !p.Mended {
					left++
				}
			}
			if asJSON {
				rep.Problems = append([]queue.Problem{}, rep.Problems...)
				if err := printJSON(app.Out, rep); err != nil {
					return err
				}
			} else {
				for _, p := range rep.Problems {
					mended := ""
					if p.Mended {
						mended = " (mended)"
					}
					fmt.Fprintf(app.Out, "%s: %s%s\n", term.SafeLine(p.Where), term.SafeLine(p.What), mended)
				}
				var parts []string
				for _, s := range queue.States() {
					parts = append(parts, fmt.Sprintf("%d %s", rep.States[s], s))
				}
				fmt.Fprintf(app.Out, "%s: %s; %s left.\n", count(rep.Items, "item"), strings.Join(parts, ", "), count(left, "problem"))
			}
			if left > 0 {
				return exitWithCode(ExitFailure)
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&repair, "repair", false, "mend what can be mended")
	cmd.Flags().StringSliceVar(&out, "take-out", nil, "give up the damaged `ITEM` of this id, and keep what it holds; with commas or repeated")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the report for programs")
	return cmd
}

// takeOut gives up a damaged item. What it holds is kept in a file on this machine.
func (a *App) takeOut(ctx context.Context, q queue.Queue, id string) error {
	project, err := a.queueProject()
	if err != nil {
		return err
	}
	dir := filepath.Join(filepath.Dir(a.home.Paths.Queue(project)), "damaged")
	file := filepath.Join(dir, fmt.Sprintf("%s-%d.json", id, a.Now().UnixMilli()))
	err = q.TakeOut(ctx, id, func(data []byte) error {
		if err := durable.MkdirAll(dir, 0o700); err != nil {
			return fmt.Errorf("keep what %s holds: %w", id, err)
		}
		if err := durable.WriteFile(file, data, 0o600); err != nil {
			return fmt.Errorf("keep what %s holds: %w", id, err)
		}
		return nil
	})
	if err == nil {
		fmt.Fprintf(a.Err, "%s is out of the queue; what it held is in %s\n", id, term.SafeLine(file))
	}
	return err
}
