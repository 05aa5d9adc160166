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

	"reprise/internal/clip"
	"reprise/internal/config"
	"reprise/internal/durable"
	"reprise/internal/loop"
	"reprise/internal/loop/core"
	"reprise/internal/loop/tell"
	"reprise/internal/proc"
	"reprise/internal/term"
)

// ask leaves a request for the project's loop. needed says that one must run.
func (a *App) askLoop(r loop.Request, needed bool) (running bool, err error) {
	dir, err := a.loopPlace()
	if err != nil {
		return false, err
	}
	return a.askLoopIn(dir, r, needed)
}

// askLoopIn is that for the loop in a directory.
func (a *App) askLoopIn(dir string, r loop.Request, needed bool) (running bool, err error) {
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

// loopPlace is the loop's directory, for what is said to a loop that runs. It was begun by settings
// that could be read: that they cannot be by now must not keep anybody from ending it.
func (a *App) loopPlace() (string, error) {
	_, dir, err := a.loopDir()
	if err == nil {
		return dir, nil
	}
	paths, perr := config.FindPaths(a.Env)
	if perr != nil {
		return "", err
	}
	project, perr := config.FindProject(a.Env, a.Env.Dir)
	_, _, serr := config.Load(a.Env, paths, a.ConfigFlag)
	switch {
	case perr != nil: // of which project it is, is not known
		return "", withLoops(paths, err)
	case serr == nil || project == nil || config.CheckName(paths, project) != nil:
		return "", err
	}
	fmt.Fprintf(a.Err, "note: the settings cannot be read, and what is said reaches the loop all the same: %s\n", term.SafeLine(clip.Line(serr.Error())))
	return filepath.Join(paths.ProjectDir(project.Name), "loop"), nil
}

// withLoops adds to an error which loops run, and how they are ended without what is broken.
func withLoops(paths config.Paths, err error) error {
	names, _ := durable.ReadDir(paths.ProjectDir("")) // what cannot be read has no loop that could be named
	for _, n := range names {
		if running, owner, rerr := loop.Running(durable.Disk{}, filepath.Join(paths.ProjectDir(n.Name()), "loop")); rerr == nil && running {
			err = fmt.Errorf("%w\nThe loop of %s runs as process %d: Ctrl-C in its terminal, or SIGINT to that process, ends it", err, n.Name(), owner.Process.PID)
		}
	}
	return err
}

func newLoopInterruptCmd(app *App) *cobra.Command {
	return &cobra.Command{
		Use: "interrupt WHY", Args: cobra.ExactArgs(1), Short: "Stop everything and wait for your answer",
		Long: `Stop everything that the loop does, keep what the agents have, and wait. "reprise loop
resume" goes on in the same sessions, with your answer. The file interrupt.txt in the
loop's directory is there as long as it waits: making it by hand interrupts, too, and
removing it resumes.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if strings.TrimSpace(args[0]) == "" {
				return usagef("say why: it is what the agents and the report are told")
			}
			if _, err := app.Home(); err == nil { // else the loop here can be reached all the same
				if done, err := app.askLoopsElsewhere(cmd.Context(), loop.Request{Kind: "interrupt", Why: args[0]}); done || err != nil {
					return err
				}
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
	var say loop.Said
	var more loop.More
	var hours float64
	cmd := &cobra.Command{
		Use: "resume", Args: cobra.NoArgs, Short: "Answer what the loop waits for, and let it go on",
		Long: `Let a loop go on that waits for a person or was paused. What was set aside is taken up
again, in the same session where the client can do that, else in a new one that is told
what was kept; --answer is told to it, beside the question. "reprise loop status" lists
the questions that are open.

An answer is for one question: where more than one is open, --item says which. One that
comes before the item's next session has begun still reaches it, and the last counts, also
where that is --item with --no-answer. What an agent asks goes without an answer only with
--no-answer.

A pause ends without --answer and --item only, and so does "reprise loop interrupt", unless
--item is one that it stopped; what agents ask stays open then. Where nothing else waits, what a service's
rate limit holds back is tried at once.

--more-usd, --more-tokens, --more-iterations and --more-hours raise the ceilings of this
loop. Where no loop runs, what you say waits for the next one.

Ends with 2 when it is not clear which question is meant, one would go without an answer,
or the loop waits at a ceiling that nobody raises, and with 3 when nothing waits for it.`,
		Example: `  reprise loop resume --answer "Use the second; the first is deprecated."
  reprise loop resume --item login --answer "Yes."
  reprise loop resume --more-usd 20`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			more.Time = time.Duration(hours * float64(time.Hour))
			if more != (loop.More{}) {
				say.More = &more
			}
			if cmd.Flags().Changed("answer") && strings.TrimSpace(say.Answer) == "" {
				return usagef("the answer is empty; to let the work go on without one, say --no-answer")
			}
			if say.Answer != "" && say.NoAnswer {
				return usagef("--answer and --no-answer contradict each other")
			}
			return app.resumeLoop(cmd.Context(), say)
		},
	}
	f := cmd.Flags()
	f.StringVar(&say.Answer, "answer", "", "`TEXT` for the agent that asked")
	f.StringArrayVar(&say.Items, "item", nil, "only this `ITEM`; may be repeated")
	f.BoolVar(&say.NoAnswer, "no-answer", false, "what agents ask goes on without an answer, and they are told so")
	f.Float64Var(&more.USD, "more-usd", 0, "US dollars more that the loop may cost")
	f.Int64Var(&more.Tokens, "more-tokens", 0, "tokens more that it may use")
	f.IntVar(&more.Iterations, "more-iterations", 0, "attempts more that it may begin")
	f.Float64Var(&hours, "more-hours", 0, "hours more that it may work")
	return cmd
}

// resumeLoop leaves what a person says for the loop that runs, or for the next one.
func (a *App) resumeLoop(ctx context.Context, say loop.Said) error {
	if done, err := a.resumeElsewhere(ctx, say); done || err != nil {
		return err
	}
	dir, s, err := a.loopState()
	if err != nil {
		return err
	}
	list, err := a.questions(ctx, dir, &s)
	if err != nil {
		return err
	}
	running, owner, err := loop.Running(durable.Disk{}, dir)
	if err != nil {
		return err
	}
	if !running && s.Phase == core.Finished && len(list) == 0 {
		if say.More != nil {
			return exitWith(ExitNotFound, errors.New("the loop has ended, so there is no ceiling to raise: `reprise loop run` begins a new one, with the ceilings that its flags give, such as --max-iterations or --budget-usd"))
		}
		return exitWith(ExitNotFound, errors.New("no loop of this project runs, and nothing waits for an answer"))
	}
	raised, err := loop.Raised(dir, &s)
	if err != nil {
		return err
	}
	requests, err := loop.Requests(&raised, list, say)
	switch {
	case errors.Is(err, loop.ErrWhich), errors.Is(err, loop.ErrUnanswered), errors.Is(err, loop.ErrCeiling):
		return exitWith(ExitUsage, err)
	case errors.Is(err, loop.ErrNothingWaits):
		return exitWith(ExitNotFound, err)
	case err != nil:
		return err
	}
	if say.Answer == "" && say.More == nil && !say.TakesBack(list) && !loop.Waits(dir, &s, list) {
		return exitWith(ExitNotFound, errors.New("nothing waits for a person here; `reprise loop status` shows how the loop stands, `reprise loop run` goes on with one that was stopped"))
	}
	ending := false
	if running {
		if ending, err = loop.Ending(dir, &s); err != nil {
			return err
		}
		running = !ending // what it does not do any more is for the next
	}
	for _, r := range requests {
		if running && r.Answer == "" {
			r.Loop = owner.Loop // a loop that begins meanwhile is not meant; an answer is for its question
		}
		r.At = a.Now()
		if err := loop.Ask(durable.Disk{}, dir, r); err != nil {
			return err
		}
		a.resumeSaid(&r, list, running, ending)
		switch beside := r.Answer != "" || len(r.Items) > 0; {
		case beside && (s.Phase == core.Paused || s.Paused):
			fmt.Fprintln(a.Out, "but it is paused, and begins nothing before `reprise loop resume`")
		case s.HaltStays(r.Items):
			fmt.Fprintln(a.Out, "but a person has stopped it, and it begins nothing before `reprise loop resume`")
		case !beside && !r.NoAnswer && slices.ContainsFunc(list, func(q loop.Question) bool { return q.Open() && q.Asked() }):
			fmt.Fprintln(a.Out, "what agents ask stays open, and waits for an answer")
		}
	}
	return nil
}

// resumeSaid tells what becomes of what a person has said.
func (a *App) resumeSaid(r *loop.Request, list []loop.Question, running, ending bool) {
	to, now := "", "no loop runs"
	if ending {
		now = "the loop is ending"
	}
	if r.Answer != "" && len(r.Items) > 0 {
		to = " to " + r.Items[0]
		if i := slices.IndexFunc(list, func(q loop.Question) bool { return q.Item == r.Items[0] }); i >= 0 && list[i].Why != "" {
			to += " (" + term.SafeLine(firstLine(list[i].Why, 100)) + ")"
		}
	}
	switch {
	case running && r.Answer == "" && r.NoAnswer && len(r.Items) > 0:
		fmt.Fprintf(a.Out, "asked: %s goes on without an answer\n", strings.Join(r.Items, ", "))
	case running && r.Answer != "":
		fmt.Fprintf(a.Out, "asked: the loop goes on with this answer%s\n", to)
	case running:
		fmt.Fprintln(a.Out, "asked: the loop goes on")
	case r.Answer != "":
		fmt.Fprintf(a.Out, "%s: the next `reprise loop run` begins with this answer%s\n", now, to)
	default:
		fmt.Fprintf(a.Out, "%s: the next `reprise loop run` goes on so\n", now)
	}
}

// questions are what waits for a person, and what was answered and not told yet.
func (a *App) questions(ctx context.Context, dir string, s *core.State) ([]loop.Question, error) {
	q, err := a.Queue(proc.ID{})
	if err != nil {
		return nil, err
	}
	return loop.Questions(ctx, dir, s, q)
}

func newLoopPauseCmd(app *App) *cobra.Command {
	return &cobra.Command{
		Use: "pause", Args: cobra.NoArgs, Short: "Begin nothing new; what is being done is finished",
		RunE: func(*cobra.Command, []string) error {
			dir, err := app.loopPlace()
			if err != nil {
				return err
			}
			s, err := loop.ReadState(dir)
			if err != nil {
				return err
			}
			if s == nil {
				return exitWith(ExitNotFound, errNoLoopYet)
			}
			if _, err = app.askLoopIn(dir, loop.Request{Kind: "pause"}, true); err != nil {
				return err
			}
			switch s.Phase { // in some of which a pause changes nothing now
			case core.Waiting:
				fmt.Fprintf(app.Out, "the loop waits for a person: nothing new is begun until `%s`, also when that was answered\n", tell.GoOn(s.Interrupt.Kind, loop.MetricsOf(*s)))
			case core.Draining, core.Stopping:
				fmt.Fprintln(app.Out, "the loop is ending, and begins nothing new")
			default:
				fmt.Fprintln(app.Out, "asked: nothing new is begun until `reprise loop resume`")
			}
			return nil
		},
	}
}

func newLoopStopCmd(app *App) *cobra.Command {
	r := loop.Request{Kind: "stop", Why: "a person stopped it"}
	var wait bool
	cmd := &cobra.Command{
		Use: "stop", Args: cobra.NoArgs, Short: "End the loop: agents are stopped, what they have is kept",
		RunE: func(cmd *cobra.Command, _ []string) error {
			dir, err := app.loopPlace()
			if err != nil {
				return err
			}
			if _, err := app.askLoopIn(dir, r, true); err != nil {
				return err
			}
			if !wait {
				if r.Drain {
					fmt.Fprintln(app.Out, "asked: the loop ends when what is being done is done, and begins nothing new")
				} else {
					fmt.Fprintln(app.Out, "asked: the agents are being stopped (up to 30 s), and the loop ends as soon as they have")
				}
				return nil
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
		return dir, core.State{}, exitWith(ExitNotFound, errNoLoopYet)
	}
	return dir, *s, nil
}

// errNoLoopYet says that no loop has left anything here.
var errNoLoopYet = errors.New("there has been no loop for this project yet; `reprise loop run` starts one")
