package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"reprise/internal/run"
)

func newRunsResumeCmd(app *App) *cobra.Command {
	var timeout time.Duration
	var key string
	var detach, asJSON bool
	cmd := &cobra.Command{
		Use: "resume RUN [TEXT]", Args: cobra.RangeArgs(1, 2), ValidArgsFunction: completeRuns(app, resumableRun),
		Short: "Go on with a run that has ended or was stopped, in its session",
		Long: `Go on with a run that has ended or was stopped: a new run in the same session of its client,
which knows all that was said and done there. TEXT is what it is told, "-" reads that from
standard input; without one it does the rest of its work. Client, directories, limits and
permissions are those of the run before.

What a loop began is the loop's to go on with (reprise loop resume), a step of a task
that of reprise task run. The generic client has no sessions.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			req := run.Request{Resume: args[0], Timeout: timeout, IdempotencyKey: key, Detach: detach, Origin: "cli"}
			if len(args) > 1 {
				req.Task = args[1]
			}
			if req.Task == "-" {
				text, err := readInput(ctx, app, "what it is told", 16<<20)
				if err != nil {
					return err
				}
				req.Task = text
			}
			runs, err := app.Runs()
			if err != nil {
				return err
			}
			if err := app.isHere(ctx, runs, args[0]); err != nil {
				return err
			}
			r, err := runs.Start(ctx, req)
			return app.began(ctx, runs, r, err, detach, asJSON)
		},
	}
	f := cmd.Flags()
	f.DurationVar(&timeout, "timeout", 0, "longest `TIME` the run may take, as 90s or 30m (default: that of the run before)")
	f.StringVar(&key, "idempotency-key", "", "a second resume with the same `KEY` returns the first one's run")
	f.BoolVarP(&detach, "detach", "d", false, "print the new run's id and return; it lives on")
	f.BoolVar(&asJSON, "json", false, "print the result for programs")
	return cmd
}

// isHere says of a run that is on another machine of the fleet where it can be gone on with.
func (a *App) isHere(ctx context.Context, runs *run.Manager, id string) error {
	_, err := runs.Settle(ctx, id)
	if errors.Is(err, run.ErrNotFound) {
		if _, t, ok, away := a.runThere(ctx, id); ok && away == nil {
			return exitWith(ExitConflict, fmt.Errorf("go on with %s: it is a run of the worker %s on another machine, whose loop goes on with it: `reprise loop resume` answers what it asks", id, t.Worker))
		}
	}
	return notFound(err)
}

// resumableRun is a run that a person may want to go on with.
func resumableRun(r run.Record) bool {
	return r.Status.Settled() && r.Origin != "loop" && r.Origin != "task" && r.Purpose == "" && r.ResumedBy == ""
}
