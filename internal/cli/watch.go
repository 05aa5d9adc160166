package cli

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"reprise/internal/loop"
)

func newWatchCmd(app *App) *cobra.Command {
	var every time.Duration
	var once bool
	cmd := &cobra.Command{
		Use: "watch", Args: cobra.NoArgs, Short: "Look on: where things stand and what the loop does, shown anew until Ctrl-C",
		Long: `Show where things stand, as ` + "`reprise status`" + ` does, and the workers of the loop where
one runs, and show it anew every two seconds until Ctrl-C. Looking changes nothing.
Where the output is no terminal, each view follows the one before; --once shows one.`,
		Example: `  reprise watch
  reprise watch --once`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if every < 100*time.Millisecond {
				return usagef("--every %v: give 100ms or more", every)
			}
			return app.watch(cmd.Context(), every, once)
		},
	}
	cmd.Flags().DurationVar(&every, "every", loop.WatchEvery, "how often it is shown anew")
	cmd.Flags().BoolVar(&once, "once", false, "show it once")
	return cmd
}

// watch draws the page over the last one, in one write, as large as the terminal is by
// then.
func (a *App) watch(ctx context.Context, every time.Duration, once bool) error {
	for first := true; ; first = false {
		columns, rows := a.Columns, 0
		if a.OutIsTerminal && a.Size != nil {
			columns, rows = a.Size()
		}
		text, err := a.watchText(ctx, columns)
		if ctx.Err() != nil {
			return nil // Ctrl-C is how one stops looking
		}
		if err != nil {
			return err
		}
		if a.OutIsTerminal && !once {
			text = overdraw(fitRows(text, columns, rows), first)
		}
		if _, err := fmt.Fprint(a.Out, text); err != nil || once {
			return err
		}
		if pause(ctx, every) != nil {
			if a.OutIsTerminal {
				fmt.Fprintln(a.Out) // after the ^C that the terminal shows
			}
			return nil
		}
		a.home, a.runs = nil, nil // settings may have changed, and a project been made
	}
}

// watchText is one view: the time, where things stand, and the loop's workers.
func (a *App) watchText(ctx context.Context, columns int) (string, error) {
	s, err := a.standing(ctx)
	if err != nil {
		return "", err
	}
	s.Next = slices.DeleteFunc(s.Next, func(n standNext) bool { return n.Command == "reprise watch" }) // it is what one looks at
	text := a.Style().Dim(a.Now().Local().Format("15:04:05")) + "\n" + a.standingText(&s, columns)
	if s.Loop == nil || !s.Loop.Running {
		return text, nil
	}
	v, err := a.view()
	if err != nil {
		return text, nil // it was said above, as a note
	}
	return text + "\n" + a.viewText(&v, columns), nil
}
