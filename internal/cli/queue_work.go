package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"reprise/internal/proc"
	"reprise/internal/queue"
	"reprise/internal/term"
)

func newQueueClaimCmd(app *App) *cobra.Command {
	var opt queue.ClaimOptions
	var pid int
	var wait time.Duration
	var asJSON bool
	cmd := &cobra.Command{
		Use: "claim [ITEM]", Args: cobra.MaximumNArgs(1), Short: "Take the next item, or a given one, for oneself", ValidArgsFunction: completeItems(app),
		Long: `Take the next item that is ready. It is one's own until its lease ends; extend it
before (` + "`reprise queue extend`" + `), and settle the item by the token that is printed. With
--pid the claim also ends at once when that process does, as seen from this
machine. Nothing ready ends with 3, and with --wait, when time runs out, with 5.`,
		Example: `  token=$(reprise queue claim --pid $$ --json | jq -r .token)
  reprise queue done "$token" --summary "logged in again"`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				opt.ID = args[0]
			}
			if err := checkWanted(cmd, &opt); err != nil {
				return err
			}
			bound, err := boundTo(pid)
			if err != nil {
				return err
			}
			opt.Bound = pid != 0
			q, err := app.writableQueue(cmd.Context(), bound)
			if err != nil {
				return err
			}
			if opt.ID != "" { // it may be a key
				it, err := q.Get(cmd.Context(), opt.ID)
				if err != nil {
					return queueError(app.notThere(cmd.Context(), opt.ID, err))
				}
				opt.ID = it.ID
			}
			opt.Worker = cmp.Or(opt.Worker, app.actor())
			c, err := claimOrWait(cmd.Context(), q, opt, wait)
			if err != nil {
				return err
			}
			doc := workDoc(c.Item)
			doc.Token = c.Token
			return app.showItem(doc, asJSON)
		},
	}
	wanted(cmd, &opt)
	f := cmd.Flags()
	f.StringVar(&opt.Worker, "worker", "", "a `NAME` for who has it")
	f.DurationVar(&opt.Lease, "lease", queue.DefaultLease, "how long it is one's own unless it is extended")
	f.IntVar(&pid, "pid", 0, "the claim ends with this process, such as the shell ($$)")
	f.DurationVar(&wait, "wait", 0, "wait so long for an item to be ready")
	f.BoolVar(&asJSON, "json", false, "print the item for programs")
	return cmd
}

// boundTo is the process that a claim is to end with, the zero ID for none.
func boundTo(pid int) (proc.ID, error) {
	if pid == 0 {
		return proc.ID{}, nil
	}
	id, err := proc.Identify(pid)
	if err != nil {
		return id, usagef("--pid %d: %w", pid, err)
	}
	return id, nil
}

func claimOrWait(ctx context.Context, q queue.Queue, opt queue.ClaimOptions, wait time.Duration) (queue.Claim, error) {
	limited, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	for {
		c, err := q.Claim(ctx, opt)
		if !errors.Is(err, queue.ErrEmpty) || wait == 0 {
			return c, queueError(err)
		}
		if err := q.Wait(limited, opt); err != nil {
			if ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
				return queue.Claim{}, exitWith(ExitTimeout, fmt.Errorf("nothing became ready within %s", wait))
			}
			return queue.Claim{}, queueError(err)
		}
	}
}

// tokenArg is the token that an argument is. A claim is spoken of by its number, so
// an item's id alone will not do.
func (a *App) tokenArg(ctx context.Context, q queue.Queue, arg string) (queue.Token, error) {
	if queue.IsToken(arg) {
		return queue.Token(arg), nil
	}
	it, err := q.Get(ctx, arg)
	if err = notToken(arg, err); err != nil {
		return "", queueError(err)
	}
	if it.State != queue.Claimed {
		return "", exitWith(ExitConflict, a.unclaimed(&it))
	}
	return "", exitWith(ExitConflict, fmt.Errorf("%s is claimed by %s under number %d: whose claim that is says so with the token that the claim gave", it.ID, cmp.Or(it.Claim.Worker, "somebody"), it.Claim.Fence))
}

// unclaimed says of an item that nobody has claimed what comes before what was asked for:
// a claim, or what stands in the way of one.
func (a *App) unclaimed(it *queue.Item) error {
	first, id := "claim it first", it.ID
	switch {
	case it.State == queue.Ready && it.NotBefore.After(a.queueTime()):
		first = fmt.Sprintf("it can be claimed from %s on; `reprise queue edit %s --not-before ''` lets it be at once", it.NotBefore.Local().Format(time.RFC3339), id)
	case it.State == queue.Blocked && it.WaitsForDead:
		first = fmt.Sprintf("it waits for %[2]s, which is dead: `reprise queue retry %[2]s`, or `reprise queue edit %[1]s --depends-on ''` has it wait no longer", id, it.Waits)
	case it.State == queue.Blocked && a.waitsForStayed(it):
		first = fmt.Sprintf("it waits for %s, which is in files of this machine: `reprise queue migrate` moves that to the servers", it.Waits)
	case it.State == queue.Blocked && it.WaitsForNone:
		first = fmt.Sprintf("it waits for %[2]s, which is not there: add that, or `reprise queue edit %[1]s --depends-on ''` has it wait no longer", id, it.Waits)
	case it.State == queue.Blocked && it.Waits != "":
		first = fmt.Sprintf("it waits for %s; `reprise queue edit %s --depends-on ''` has it wait no longer", it.Waits, id)
	case it.State == queue.Blocked:
		first = fmt.Sprintf("it is parked (%s); `reprise queue unpark %s` puts it back", term.SafeLine(firstLine(cmp.Or(it.Reason, "no reason given"), 200)), id)
	case it.State == queue.Dead:
		first = fmt.Sprintf("`reprise queue retry %s` gives it its attempts again", id)
	case it.State == queue.Done:
		first = "nobody has it any more"
	}
	return fmt.Errorf("%s is %s: %s", id, it.State, first)
}

// tokenCommand is a command about a claim. pid, where there is one, is the process that
// the claim ends with from then on.
func tokenCommand(app *App, use, short string, pid *int, do func(ctx context.Context, q queue.Queue, t queue.Token) (any, string, error)) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: use, Args: cobra.ExactArgs(1), Short: short,
		RunE: func(cmd *cobra.Command, args []string) error {
			var bound proc.ID
			if pid != nil {
				var err error
				if bound, err = boundTo(*pid); err != nil {
					return err
				}
			}
			q, err := app.writableQueue(cmd.Context(), bound)
			if err != nil {
				return err
			}
			if q, err = app.holdersQueue(cmd.Context(), q, args[0], bound); err != nil {
				return err
			}
			t, err := app.tokenArg(cmd.Context(), q, args[0])
			if err != nil {
				return err
			}
			doc, said, err := do(cmd.Context(), q, t)
			if err != nil {
				return queueError(err)
			}
			if asJSON {
				return printJSON(app.Out, doc)
			}
			fmt.Fprintln(app.Out, said)
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the answer for programs")
	return cmd
}

func newQueueExtendCmd(app *App) *cobra.Command {
	var lease time.Duration
	var pid int
	cmd := tokenCommand(app, "extend TOKEN", "Keep a claim for longer", &pid, func(ctx context.Context, q queue.Queue, t queue.Token) (any, string, error) {
		until, err := q.Extend(ctx, t, lease)
		return struct {
			Until time.Time `json:"until"`
		}{until}, "until " + until.Format(time.RFC3339), err
	})
	cmd.Flags().DurationVar(&lease, "lease", 0, "how long from now (default: as long as the claim had)")
	cmd.Flags().IntVar(&pid, "pid", 0, "a claim that ends with a process ends with this one from now on")
	return cmd
}

func newQueueProgressCmd(app *App) *cobra.Command {
	var p queue.Progress
	cmd := tokenCommand(app, "progress TOKEN", "Say how far the work on an item is", nil, func(ctx context.Context, q queue.Queue, t queue.Token) (any, string, error) {
		return p, progressText(&p), q.Progress(ctx, t, p)
	})
	cmd.Flags().IntVar(&p.StepsCompleted, "completed", 0, "steps that are done")
	cmd.Flags().IntVar(&p.StepsTotal, "total", 0, "steps in all, 0 if that is not known")
	cmd.Flags().StringVar(&p.CurrentStep, "step", "", "what is being done")
	return cmd
}

// outcomeFlags adds the flags that say what work came to.
func outcomeFlags(cmd *cobra.Command, o *queue.Outcome, data *string, letter string) {
	cmd.Flags().StringVarP(&o.Summary, "summary", letter, "", "what it came to, in a few words")
	cmd.Flags().StringVar(&o.Run, "run", "", "the `RUN` that did it")
	cmd.Flags().StringVar(&o.Session, "session", "", "the client's `SESSION`")
	cmd.Flags().StringArrayVar(&o.Artifacts, "artifact", nil, "a `FILE` that was made, can be repeated")
	cmd.Flags().StringVar(data, "data", "", "more to keep with it, as `JSON`")
}

// settled says how an item stands after it was settled.
func (a *App) settled(it queue.Item) (any, string) {
	said := fmt.Sprintf("%s is %s", it.ID, it.State)
	if d := a.detail(&it); len(d) > 0 {
		said += " (" + strings.Join(d, "; ") + ")"
	}
	return workDoc(it), said
}

func newQueueDoneCmd(app *App) *cobra.Command {
	var o queue.Outcome
	var data string
	var asJSON bool
	cmd := &cobra.Command{
		Use: "done TOKEN|ITEM", Args: cobra.ExactArgs(1), Short: "Say that an item is done", ValidArgsFunction: completeItems(app),
		Long: `Say that an item is done: by the token of its claim, or by its id where it is ready
and nobody is at it. What waited for it and nothing else is then ready.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			o.Data = json.RawMessage(data)
			q, err := app.writableQueue(ctx, proc.ID{})
			if err != nil {
				return err
			}
			if q, err = app.holdersQueue(ctx, q, args[0], proc.ID{}); err != nil {
				return err
			}
			t, err := doneToken(ctx, app, q, args[0])
			if err != nil {
				return err
			}
			it, err := q.Done(ctx, t, o)
			if err != nil {
				return queueError(err)
			}
			doc, said := app.settled(it)
			if asJSON {
				return printJSON(app.Out, doc)
			}
			fmt.Fprintln(app.Out, said)
			return nil
		},
	}
	outcomeFlags(cmd, &o, &data, "m")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the item for programs")
	return cmd
}

// notToken says of what was meant as a token, and is the id or key of no item, what a token
// is; other errors are as they were.
func notToken(arg string, err error) error {
	if id, _, ok := strings.Cut(arg, "@"); ok && errors.Is(err, queue.ErrNotFound) && queue.CheckID(id) == nil {
		return usagef("%s is no token: that is ITEM@NUMBER, as `reprise queue claim` prints it", clipText(arg, 100))
	}
	return err
}

func doneToken(ctx context.Context, app *App, q queue.Queue, arg string) (queue.Token, error) {
	if !queue.IsToken(arg) {
		it, err := q.Get(ctx, arg)
		if err = notToken(arg, err); err != nil {
			return "", queueError(err)
		}
		if it.State == queue.Ready {
			c, err := q.Claim(ctx, queue.ClaimOptions{ID: it.ID, Worker: app.actor()})
			return c.Token, queueError(err)
		}
		if it.State == queue.Done {
			return "", exitWith(ExitConflict, fmt.Errorf("%s is done already", it.ID))
		}
	}
	return app.tokenArg(ctx, q, arg)
}

func newQueueFailCmd(app *App) *cobra.Command {
	var f queue.Failure
	var data string
	cmd := tokenCommand(app, "fail TOKEN", "Say that the work on an item failed", nil, func(ctx context.Context, q queue.Queue, t queue.Token) (any, string, error) {
		f.Outcome.Data = json.RawMessage(data)
		it, err := q.Fail(ctx, t, f)
		if err != nil {
			return nil, "", err
		}
		doc, said := app.settled(it)
		return doc, said, nil
	})
	cmd.Long = fmt.Sprintf(`Say that the work on an item failed. It is tried again after 2, 4, 8 … seconds, at
most %s, until it has failed as often as it may (--max-attempts of the item, %d by
default); then it is dead until somebody retries it.`, queue.MaxBackoff, queue.DefaultMaxAttempts)
	cmd.Flags().StringVarP(&f.Error, "reason", "m", "", "why")
	cmd.Flags().StringVar(&f.Error, "error", "", "")
	_ = cmd.Flags().MarkHidden("error") // the same, by another name; it was defined just above
	cmd.Flags().BoolVar(&f.Permanent, "permanent", false, "trying again is of no use: it is dead at once")
	cmd.Flags().DurationVar(&f.RetryAfter, "retry-after", 0, "try again after so long")
	cmd.Flags().BoolVar(&f.Free, "free", false, "it was not the item's fault, and does not count")
	outcomeFlags(cmd, &f.Outcome, &data, "")
	return cmd
}

func newQueueReleaseCmd(app *App) *cobra.Command {
	var reason string
	cmd := tokenCommand(app, "release TOKEN", "Give an item back as if it had not been claimed", nil, func(ctx context.Context, q queue.Queue, t queue.Token) (any, string, error) {
		it, err := q.Release(ctx, t, reason)
		if err != nil {
			return nil, "", err
		}
		doc, said := app.settled(it)
		return doc, said, nil
	})
	cmd.Flags().StringVarP(&reason, "reason", "m", "", "why")
	return cmd
}
