package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"reprise/internal/durable"
	"reprise/internal/event"
	"reprise/internal/learn/scopes"
	"reprise/internal/term"
)

// purgeLog takes events out of one log for good. What waits in the outbox is
// logged first, for it may tell what is to go.
func (a *App) purgeLog(ctx context.Context, broker *event.Broker, p scopes.Purging) (scopes.Purged, error) {
	var done scopes.Purged
	home, err := a.Home()
	if err != nil {
		return done, err
	}
	if r, err := broker.Replay(ctx, 0); p.Project == "" { // said once
		switch n := r.Left + len(r.Aside); {
		case err != nil:
			done.Warnings = append(done.Warnings, "what waits in the outbox was not looked through: "+err.Error())
		case n > 0:
			done.Warnings = append(done.Warnings, fmt.Sprintf("%s in the outbox %s could not be logged and may tell it still; `reprise doctor` says why", count(n, "event"), home.Paths.Outbox()))
		}
	}
	dir := home.Paths.Events(p.Project)
	out, err := event.Purge(ctx, event.PurgeOptions{
		Dir: dir, Host: a.Hostname, Now: a.Env.Now, Reason: p.Reason, Item: p.Item, Raw: p.Raw,
		Match: func(e event.Event) bool { return p.Gone(&e) }, Event: event.Event{Project: p.Project},
	})
	if done.Events = out.Events; err != nil {
		return done, err
	}
	kept, err := keptCopies(dir, p.Raw)
	for _, k := range kept {
		done.Warnings = append(done.Warnings, k+", which `reprise events migrate` kept of the log as it was, tells it still: remove it when you do not need it")
	}
	return done, err
}

// keptCopies are the files beside a log that hold what is to go: what a migration
// put aside, before-<time>/.
func keptCopies(dir string, holds func([]byte) bool) ([]string, error) {
	old, err := filepath.Glob(filepath.Join(dir, "before-*", "*"))
	if err != nil {
		return nil, err
	}
	var out []string
	for _, f := range old {
		if i, err := os.Lstat(f); err != nil || !i.Mode().IsRegular() {
			continue
		}
		data, err := durable.Read(f)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return out, err
		}
		if holds(data) {
			out = append(out, f)
		}
	}
	return out, nil
}

// showPurged tells what a purge took out of the logs, and what of it stays.
func showPurged(app *App, c scopes.Change) {
	if c.Purged > 0 {
		var of []string
		for _, t := range c.Taken {
			of = append(of, fmt.Sprintf("%d %s", t.Events, t.Type))
		}
		fmt.Fprintf(app.Out, "  %s taken out of the logs: %s\n", count(c.Purged, "event"), strings.Join(of, ", "))
	}
	for _, l := range c.Left {
		where := count(l.Events, "event")
		if l.Count > 0 {
			items := strings.Join(l.Items, ", ")
			if more := l.Count - len(l.Items); more > 0 {
				items += fmt.Sprintf(" and %d more", more)
			}
			where = items + ", " + where
		}
		fmt.Fprintf(app.Out, "  stays: `%s` (%s): %s\n", term.SafeLine(clipText(l.Words, 100)), where, l.Why)
	}
	if c.Purged > 0 {
		fmt.Fprintf(app.Out, "  %s\n", app.Style().Dim("the clients' own transcripts are not touched"))
	}
}

// finishForgetting does what a forgetting that was killed has left, before anything
// is read of memory or logs. A hook sees to it that nothing is served, and leaves
// rewriting logs to a process that nobody waits for.
func (a *App) finishForgetting(ctx context.Context) error {
	home, err := a.Home()
	if err != nil || a.forgetting || !scopes.Unfinished(home.Paths.Forgetting()) {
		return err
	}
	access, err := a.memoryAccess()
	if err != nil || access.MayWrite() != nil {
		return err // a run may not; whoever started it may
	}
	a.forgetting = true
	defer func() { a.forgetting = false }()
	all, err := a.scopesFor(true)
	if err != nil {
		return err
	}
	done, more, err := all.Finish(ctx, a.hurried)
	for _, c := range done {
		if a.hurried {
			continue
		}
		fmt.Fprintf(a.Err, "note: finished forgetting %s, which had been cut short\n", c.ID)
	}
	if more {
		err = errors.Join(err, a.finishLater())
	}
	if err != nil {
		// What is asked for is answered all the same: it is not served, or this says why.
		if log, lerr := a.Logger(); lerr == nil {
			log.Warn("a forgetting that was cut short is not finished", slog.Any("error", err))
		}
		if !a.hurried {
			fmt.Fprintf(a.Err, "note: %v\n", err)
		}
	}
	return nil
}

// finishLater has the rest done by a process of its own.
func (a *App) finishLater() error {
	home, err := a.Home()
	if err != nil {
		return err
	}
	return a.later(home.Paths.Data, "memory", "forget", "--finish")
}
