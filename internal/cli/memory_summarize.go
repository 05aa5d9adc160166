package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"reprise/internal/durable"
	"reprise/internal/event"
	"reprise/internal/hook"
	"reprise/internal/judge"
	"reprise/internal/learn"
	"reprise/internal/term"
)

// What is summarised without anybody asking, when a session ends: that one, and
// what earlier ones left.
const (
	laterSummaries = 3
	laterWithin    = 48 * time.Hour
)

func memorySummarize(app *App) *cobra.Command {
	var most int
	var within time.Duration
	var unlessBusy bool
	cmd := &cobra.Command{
		Use: "summarize [SESSION]", Aliases: []string{"summarise"}, Args: cobra.MaximumNArgs(1), Short: "Have a model write the summaries of sessions",
		Long: `Have a model write the summaries of sessions that have ended, in place of those
that are put together by rules. Which model is set by judge.client, and without one
this does nothing. A summary that was written is an event: it stays, whatever
becomes of the index, and nobody is asked for it twice. Where the model fails, the
summary by rules stands.

With a judge for summaries this runs by itself, in the background, when a session
ends.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if most < 1 {
				return usagef("--limit %d is not a number of sessions", most)
			}
			var since time.Time
			if within > 0 {
				since = app.Now().Add(-within)
			}
			session := ""
			if len(args) == 1 {
				session = args[0]
			}
			return app.summarize(cmd.Context(), session, since, most, unlessBusy)
		},
	}
	cmd.Flags().IntVarP(&most, "limit", "n", 10, "at most `N` sessions, the newest first")
	cmd.Flags().DurationVar(&within, "within", 0, "only sessions that ended within this time; 0 is all")
	cmd.Flags().BoolVar(&unlessBusy, "unless-busy", false, "do nothing where another process writes summaries")
	_ = cmd.Flags().MarkHidden("unless-busy") // it was defined just above
	return cmd
}

// summarize has summaries written, one process at a time. A person is told that
// another is at it, and then of what is left: only after a session is that one's
// business.
func (a *App) summarize(ctx context.Context, session string, since time.Time, most int, unlessBusy bool) error {
	j, err := a.Judge()
	if err != nil {
		return err
	}
	if !j.Enabled(judge.Summary) {
		return exitWith(ExitConflict, fmt.Errorf("summarise: %w: set judge.client in the settings, and have judge.purposes name %s", judge.ErrOff, judge.Summary))
	}
	organizer, err := a.Organizer()
	if err != nil {
		return memoryError(err)
	}
	home, err := a.Home()
	if err != nil {
		return err
	}
	dir := filepath.Join(home.Paths.State, "judge")
	if err := durable.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("summarise: %w", err)
	}
	lock := filepath.Join(dir, "summaries.lock")
	unlock, err := durable.TryLock(lock)
	if errors.Is(err, durable.ErrLocked) {
		if unlessBusy {
			return nil
		}
		fmt.Fprintln(a.Err, "Summaries are being written by another process: waiting for it.")
		unlock, err = durable.Lock(ctx, lock)
	}
	if err != nil {
		return fmt.Errorf("summarise: %w", err)
	}
	defer unlock()
	if _, err := organizer.Run(ctx, 0); err != nil {
		return err
	}
	list, err := a.unwritten(ctx, organizer, session, since, most)
	if err != nil {
		return err
	}
	written, failed := a.writeSummaries(ctx, organizer, j, list)
	if written > 0 {
		if _, err := organizer.Run(ctx, 0); err != nil {
			return err
		}
	}
	if len(list) == 0 {
		fmt.Fprintln(a.Out, "Every session that has ended has a written summary, or there is none to summarise.")
	}
	return judgeError(failed)
}

// unwritten are the sessions to summarise.
func (a *App) unwritten(ctx context.Context, organizer *learn.Organizer, session string, since time.Time, most int) ([]learn.Stats, error) {
	if session == "" {
		return organizer.Unwritten(ctx, since, most)
	}
	var list []learn.Stats
	err := organizer.SessionStats(ctx, func(st learn.Stats) bool {
		if st.Session == session {
			list = append(list, st)
		}
		return true
	})
	if err == nil && len(list) == 0 {
		err = exitWith(ExitNotFound, fmt.Errorf("summarise: no session %q is known", session))
	}
	return list, err
}

// writeSummaries goes on after a summary that failed, but not where the next must
// fail, too.
func (a *App) writeSummaries(ctx context.Context, organizer *learn.Organizer, j *judge.Judge, list []learn.Stats) (written int, failed error) {
	for _, st := range list {
		broker, err := a.Broker(event.Event{Session: st.Session, Client: st.Client, Project: st.Project})
		if err != nil {
			return written, err
		}
		by, err := organizer.Summarize(ctx, judge.Summaries{Judge: j}, st, func(ctx context.Context, e event.Event) error {
			_, err := broker.Record(ctx, e)
			return err
		})
		if err != nil {
			failed = err
			if errors.Is(err, judge.ErrOpen) || errors.Is(err, judge.ErrBudget) || errors.Is(err, judge.ErrState) || errors.Is(err, judge.ErrNested) || ctx.Err() != nil {
				return written, failed
			}
			continue
		}
		written++
		fmt.Fprintf(a.Out, "%s  %s  summary written by %s\n", st.End.Local().Format(time.DateTime), term.SafeLine(strings.TrimSpace(st.Client+" "+st.Session)), term.SafeLine(by))
	}
	return written, failed
}

// summarizeLater has the summaries written by a process of its own, which the
// client does not wait for: a model takes longer than a hook may.
func (a *App) summarizeLater() error {
	home, err := a.Home()
	if err != nil {
		return err
	}
	j, err := a.Judge()
	if err != nil || !j.Enabled(judge.Summary) || a.Env.Get(hook.RunVar) != "" {
		return err
	}
	dir := home.Dir // the session's, which may be gone by now
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		dir = home.Paths.Data
	}
	return a.later(dir, "memory", "summarize", fmt.Sprintf("--limit=%d", laterSummaries), "--within="+laterWithin.String(), "--unless-busy")
}
