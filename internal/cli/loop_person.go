package cli

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"reprise/internal/durable"
	"reprise/internal/loop"
	"reprise/internal/loop/core"
)

// ask leaves a request for the project's loop. needed says that one must run.
func (a *App) askLoop(r loop.Request, needed bool) (running bool, err error) {
	_, dir, err := a.loopDir()
	if err != nil {
		return false, err
	}
	running, owner, err := loop.Running(durable.Disk{}, dir)
	if err != nil {
		return false, err
	}
	if !running && needed {
		return false, exitWith(ExitNotFound, fmt.Errorf("no loop of this project runs; `reprise loop run` starts one"))
	}
	if running {
		r.Loop = owner.Loop // a loop that begins meanwhile is not meant
	}
	r.At = a.Now()
	return running, loop.Ask(durable.Disk{}, dir, r)
}

func newLoopInterruptCmd(app *App) *cobra.Command {
	return &cobra.Command{
		Use: "interrupt WHY", Args: cobra.ExactArgs(1), Short: "Stop everything and wait for your answer",
		Long: `Stop everything that the loop does, keep what the agents have, and wait. "reprise loop
resume" goes on in the same sessions, with your answer. The file interrupt.txt in the
loop's directory is there as long as it waits: making it by hand interrupts, too, and
removing it resumes.`,
		RunE: func(_ *cobra.Command, args []string) error {
			if strings.TrimSpace(args[0]) == "" {
				return usagef("say why: it is what the agents and the report are told")
			}
			_, err := app.askLoop(loop.Request{Kind: "interrupt", Why: args[0]}, true)
			if err == nil {
				fmt.Fprintln(app.Out, "asked: the agents are being stopped (up to 30 s), and the loop waits then")
			}
			return err
		},
	}
}

func newLoopResumeCmd(app *App) *cobra.Command {
	var r loop.Request
	var more loop.More
	var hours float64
	cmd := &cobra.Command{
		Use: "resume", Args: cobra.NoArgs, Short: "Answer what the loop waits for, and let it go on",
		Long: `Let a loop go on that waits for a person or was paused. What was set aside is taken up
again, in the same session where the client can do that, else in a new one that is told
what was kept; --answer is told to it. With --item only that item is taken up.

--more-usd, --more-tokens, --more-iterations and --more-hours raise the ceilings of this
loop. Where no loop runs, the answer waits for the next one.`,
		Example: `  reprise loop resume --answer "Use the second; the first is deprecated."
  reprise loop resume --more-usd 20`,
		RunE: func(_ *cobra.Command, _ []string) error {
			if more.USD < 0 || more.Tokens < 0 || more.Iterations < 0 || hours < 0 {
				return usagef("a ceiling can be raised only")
			}
			more.Time = time.Duration(hours * float64(time.Hour))
			if more != (loop.More{}) {
				r.More = &more
			}
			r.Kind = "resume"
			if err := app.awaited(&r); err != nil {
				return err
			}
			running, err := app.askLoop(r, false)
			if err != nil {
				return err
			}
			if running {
				fmt.Fprintln(app.Out, "asked: the loop goes on")
			} else {
				fmt.Fprintln(app.Out, "no loop runs: the next `reprise loop run` begins with this answer")
			}
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&r.Answer, "answer", "", "`TEXT` for the agents that go on")
	f.StringArrayVar(&r.Items, "item", nil, "only this `ITEM`; may be repeated")
	f.Float64Var(&more.USD, "more-usd", 0, "US dollars more that the loop may cost")
	f.Int64Var(&more.Tokens, "more-tokens", 0, "tokens more that it may use")
	f.IntVar(&more.Iterations, "more-iterations", 0, "items more that it may begin")
	f.Float64Var(&hours, "more-hours", 0, "hours more that it may work")
	return cmd
}

// awaited wants something to be there that a resume is for, where no loop runs.
func (a *App) awaited(r *loop.Request) error {
	v, err := a.view()
	if err != nil {
		return err
	}
	waits := v.Running || v.Interrupt != nil || len(v.Parked) > 0 || v.Metrics.Phase != core.Finished
	if !waits {
		return exitWith(ExitNotFound, fmt.Errorf("no loop of this project runs, and nothing waits for an answer"))
	}
	return nil
}

func newLoopPauseCmd(app *App) *cobra.Command {
	return &cobra.Command{
		Use: "pause", Args: cobra.NoArgs, Short: "Begin nothing new; what is being done is finished",
		RunE: func(*cobra.Command, []string) error {
			_, err := app.askLoop(loop.Request{Kind: "pause"}, true)
			if err == nil {
				fmt.Fprintln(app.Out, "asked: nothing new is begun until `reprise loop resume`")
			}
			return err
		},
	}
}

func newLoopStopCmd(app *App) *cobra.Command {
	r := loop.Request{Kind: "stop", Why: "a person stopped it"}
	var wait bool
	cmd := &cobra.Command{
		Use: "stop", Args: cobra.NoArgs, Short: "End the loop: agents are stopped, what they have is kept",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if _, err := app.askLoop(r, true); err != nil {
				return err
			}
			if !wait {
				fmt.Fprintln(app.Out, "asked: the loop ends as soon as its agents have")
				return nil
			}
			_, dir, err := app.loopDir()
			if err != nil {
				return err
			}
			for {
				running, _, err := loop.Running(durable.Disk{}, dir)
				if err != nil || !running {
					return err
				}
				if err := pause(cmd.Context(), 100*time.Millisecond); err != nil {
					return err
				}
			}
		},
	}
	cmd.Flags().BoolVar(&r.Drain, "drain", false, "let what is being done be finished")
	cmd.Flags().StringVar(&r.Why, "reason", r.Why, "`TEXT` for the report")
	cmd.Flags().BoolVar(&wait, "wait", false, "return when it has ended")
	return cmd
}

// loopState is the state of the project's loop; an error where there never was one.
func (a *App) loopState() (string, core.State, error) {
	_, dir, err := a.loopDir()
	if err != nil {
		return "", core.State{}, err
	}
	s, err := loop.ReadState(dir)
	if err != nil {
		return dir, core.State{}, err
	}
	if s == nil {
		return dir, core.State{}, exitWith(ExitNotFound, fmt.Errorf("there has been no loop for this project yet; `reprise loop run` starts one"))
	}
	return dir, *s, nil
}
