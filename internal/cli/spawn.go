package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"reprise/internal/agent"
	"reprise/internal/config"
	"reprise/internal/run"
	"reprise/internal/term"
)

// SpawnOptions are the flags of `reprise spawn`.
type SpawnOptions struct {
	Task            string
	Agent           string
	Script          string
	SystemPrompt    string
	Model           string
	WorkDir         string
	AddDirs         []string
	Timeout         time.Duration
	MaxOutputTokens int
	AllowMemoryRead bool
	AllowStateWrite bool
	Key             string
	Detach          bool
	JSON            bool
}

func newSpawnCmd(app *App) *cobra.Command {
	var o SpawnOptions
	cmd := &cobra.Command{
		Use:   "spawn TASK",
		Short: "Start an agent as a background run and wait for its answer",
		Long: `Start an agent on TASK and wait for its answer. TASK "-" is read from standard
input. With --detach the run lives on by itself and its id is printed at once;
without it, the run ends when this command does.

The agent cannot write the memory directory, and cannot read it without
--allow-memory-read.

The script client needs no account. Without --agent-script it writes one file,
reprise-script-RUN.txt, into its working directory; --dir names another one.`,
		Example: `  reprise spawn "Summarise the open TODO comments in this directory"
  reprise spawn --agent script "Try it without an account"
  reprise spawn --detach --timeout 30m - < task.md`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Task = args[0]
			return runSpawn(cmd.Context(), app, o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.Agent, "agent", "", "`CLIENT` to start: claude, codex, gemini, copilot, script or generic (default: sub_agent.agent of the settings)")
	f.StringVar(&o.Script, "agent-script", "", "`FILE` of steps for the script client")
	f.StringVar(&o.SystemPrompt, "system-prompt", "", "`TEXT` of instructions, added to the default ones")
	f.StringVar(&o.Model, "model", "", "`MODEL`, as the client spells it")
	f.StringVarP(&o.WorkDir, "dir", "C", "", "working `DIR` (default: this one)")
	f.StringArrayVar(&o.AddDirs, "add-dir", nil, "a further `DIR` that the agent may use; may be repeated")
	f.DurationVar(&o.Timeout, "timeout", 0, "longest `TIME` the run may take, as 90s or 30m (default: sub_agent.default_timeout_seconds)")
	f.IntVar(&o.MaxOutputTokens, "max-output-tokens", 0, "cut the answer after `N` tokens (default: sub_agent.default_max_output_tokens)")
	f.BoolVar(&o.AllowMemoryRead, "allow-memory-read", false, "let the agent read the memory directory")
	f.BoolVar(&o.AllowStateWrite, "allow-state-write", false, "let the agent log, learn and decide in the state of its own; what it keeps is promoted by others")
	f.StringVar(&o.Key, "idempotency-key", "", "a second spawn with the same `KEY` returns the first one's run")
	f.BoolVarP(&o.Detach, "detach", "d", false, "print the run's id and return; the run lives on")
	f.BoolVar(&o.JSON, "json", false, "print the result for programs")
	offer(cmd, "agent", append(config.RouteClients(), agent.KindGeneric)...)
	return cmd
}

func runSpawn(ctx context.Context, app *App, o SpawnOptions) error {
	if o.Task == "-" {
		task, err := readInput(ctx, app, "the task", 16<<20)
		if err != nil {
			return err
		}
		o.Task = task
	}
	req := run.Request{
		Task: o.Task, SystemPrompt: o.SystemPrompt, Model: o.Model, WorkDir: app.abs(o.WorkDir),
		Timeout: o.Timeout, MaxOutputTokens: o.MaxOutputTokens, AllowMemoryRead: o.AllowMemoryRead, AllowStateWrite: o.AllowStateWrite,
		Client: o.Agent, IdempotencyKey: o.Key, Detach: o.Detach, Origin: "cli",
	}
	for _, dir := range o.AddDirs {
		req.AddDirs = append(req.AddDirs, app.abs(dir))
	}
	if o.Script != "" {
		if req.Client == "" {
			req.Client = "script"
		}
		req.ScriptFile = app.abs(o.Script)
	}
	runs, err := app.Runs()
	if err != nil {
		return err
	}
	r, err := runs.Start(ctx, req)
	if errors.Is(err, agent.ErrUnknownClient) {
		return usagef("--agent %q: there is no such client; agents are started with %s or %s", clipText(o.Agent, 40), strings.Join(config.RouteClients(), ", "), agent.KindGeneric)
	}
	return app.began(ctx, runs, r, err, o.Detach, o.JSON)
}

// began tells of a run that was started, or why it was not; one that is not detached is
// waited for.
func (a *App) began(ctx context.Context, runs *run.Manager, r run.Record, err error, detach, asJSON bool) error {
	switch {
	case errors.Is(err, run.ErrBadRequest):
		return exitWith(ExitUsage, err)
	case errors.Is(err, run.ErrKeyReused), errors.Is(err, run.ErrRefused):
		return exitWith(ExitConflict, err)
	case err != nil:
		return err
	case !detach:
		return awaitSpawn(ctx, a, runs, r, asJSON)
	case asJSON:
		return printJSON(a.Out, runDoc(a, r, nil))
	}
	fmt.Fprintln(a.Out, r.ID)
	return nil
}

// awaitSpawn waits for the run and prints what it said. An interrupted wait
// stops the run, for it is attached to this command.
func awaitSpawn(ctx context.Context, app *App, runs *run.Manager, r run.Record, asJSON bool) error {
	if !asJSON {
		for _, note := range r.Notes {
			fmt.Fprintf(app.Err, "reprise: note: %s\n", note)
		}
		fmt.Fprintf(app.Err, "%s started (%s in %s); its record is in %s\n", r.ID, r.Client, r.WorkDir, r.Dir())
	}
	ended, err := runs.Wait(ctx, r.ID)
	if ctx.Err() != nil {
		stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
		defer cancel()
		if !asJSON {
			fmt.Fprintf(app.Err, "Stopping %s and every process it started …\n", r.ID)
		}
		if ended, err = runs.Cancel(stop, r.ID, "the spawn command was stopped"); err != nil {
			return err
		}
		if !asJSON && runs.WhyNotResume(ended) == "" {
			fmt.Fprintf(app.Err, "Go on with it: reprise runs resume %s\n", r.ID)
		}
		return fmt.Errorf("%s is %s: %w", r.ID, ended.Status, context.Cause(ctx))
	}
	if err != nil {
		return err
	}
	out, err := runs.Output(r.ID, 0)
	if err != nil {
		return err
	}
	if asJSON {
		if err := printJSON(app.Out, runDoc(app, ended, &out)); err != nil {
			return err
		}
		return spawnExit(ended, nil)
	}
	if out.Text != "" {
		fmt.Fprintln(app.Out, app.answer(out.Text))
	}
	return spawnExit(ended, fmt.Errorf("%s %s: %s (its output is in %s)", r.ID, ended.Status, ended.StatusReason, ended.Dir()))
}

// answer is what an agent said, to be printed alone. At a terminal it is text and no
// command for that; what reads it from a pipe or a file gets each byte.
func (a *App) answer(text string) string {
	if text = strings.TrimRight(text, "\n"); a.OutIsTerminal {
		return term.SafeText(text)
	}
	return text
}

// spawnExit is the exit code of a run that has ended, with err as its message.
func spawnExit(r run.Record, err error) error {
	switch r.Status {
	case run.Completed:
		return nil
	case run.TimedOut:
		return &ExitError{Code: ExitTimeout, Err: err}
	}
	return &ExitError{Code: ExitFailure, Err: err}
}

// abs makes a path of the command line absolute. "" stays the working
// directory.
func (a *App) abs(path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(a.Env.Dir, path)
}
