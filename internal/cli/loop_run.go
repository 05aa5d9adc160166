package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"reprise/internal/durable"
	"reprise/internal/queue"
)

// inLoop is how a session that the loop started speaks to the loop: by the files that its
// environment names.
type inLoop struct{ ask, broken, progress string }

// loopSession is the loop's end of this session; nil where the loop did not start it.
func (a *App) loopSession() *inLoop {
	s := &inLoop{a.Env.Get("INTERRUPT_FILE"), a.Env.Get("ERROR_FILE"), a.Env.Get("PROGRESS_FILE")}
	if a.Env.Get("HARNESS_SESSION") != "true" || !filepath.IsAbs(s.ask) || !filepath.IsAbs(s.broken) || !filepath.IsAbs(s.progress) {
		return nil
	}
	return s
}

var errNoLoop = errors.New("the loop did not start this session (INTERRUPT_FILE, ERROR_FILE and PROGRESS_FILE are not set): these commands are for the agents that it starts")

// Ask asks for a person, or says that something is broken.
func (s *inLoop) Ask(text string, broken bool) error {
	if strings.TrimSpace(text) == "" {
		return errors.New("say what a person should decide")
	}
	file := s.ask
	if broken {
		file = s.broken
	}
	return durable.WriteFile(file, []byte(strings.TrimSpace(text)+"\n"), 0o600)
}

// Progress says how far the work is.
func (s *inLoop) Progress(done, total int, step string) error {
	p := queue.Progress{StepsCompleted: done, StepsTotal: total, CurrentStep: step}
	data, err := json.Marshal(p)
	if err != nil {
		return err
	}
	if _, err := queue.ParseProgress(string(data)); err != nil {
		return err
	}
	return durable.WriteFile(s.progress, append(data, '\n'), 0o600)
}

func newLoopAskCmd(app *App) *cobra.Command {
	var broken bool
	cmd := &cobra.Command{
		Use: "ask QUESTION", Args: cobra.ExactArgs(1), Short: "For an agent of the loop: ask a person",
		Long: `For an agent that the loop started: ask a person what only a person can decide. The
session is stopped, what it has is kept, and it goes on with the answer. The same can be
done by writing the file that INTERRUPT_FILE names, or by the tool loop_ask.`,
		Example: `  reprise loop ask "Keep the old endpoint for a release, or drop it now? I would keep it."`,
		RunE: func(_ *cobra.Command, args []string) error {
			s := app.loopSession()
			if s == nil {
				return exitWith(ExitNotFound, errNoLoop)
			}
			if err := s.Ask(args[0], broken); err != nil {
				return err
			}
			fmt.Fprintln(app.Out, "asked: end your turn now, you go on when a person has answered")
			return nil
		},
	}
	cmd.Flags().BoolVar(&broken, "broken", false, "no question: something is broken that the agent cannot mend")
	return cmd
}

func newLoopProgressCmd(app *App) *cobra.Command {
	return &cobra.Command{
		Use: "progress DONE/TOTAL [STEP]", Args: cobra.RangeArgs(1, 2), Short: "For an agent of the loop: say how far it is",
		Long: `For an agent that the loop started: say how far the work on its item is. "reprise loop
status" and "reprise queue show" have it. The same can be done by writing that line into
the file that PROGRESS_FILE names, or by the tool loop_progress.`,
		Example: `  reprise loop progress 3/10 "Implementing the login"`,
		RunE: func(_ *cobra.Command, args []string) error {
			s := app.loopSession()
			if s == nil {
				return exitWith(ExitNotFound, errNoLoop)
			}
			p, err := queue.ParseProgress(strings.Join(args, " "))
			if err != nil {
				return exitWith(ExitUsage, err)
			}
			return s.Progress(p.StepsCompleted, p.StepsTotal, p.CurrentStep)
		},
	}
}
