package cli

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"reprise/internal/config"
	"reprise/internal/durable"
	"reprise/internal/proc"
	"reprise/internal/term"
)

// demoScript is what the scripted agent of the demo does, by its task.
//
//go:embed demo_agent.yaml
var demoScript []byte

// DemoOptions are the flags of `reprise demo`.
type DemoOptions struct {
	Agent string
	Keep  bool
}

func newDemoCmd(app *App) *cobra.Command {
	var o DemoOptions
	cmd := &cobra.Command{
		Use: "demo", Args: cobra.NoArgs,
		Short: "Show the main job step by step in a throwaway project (no account needed)",
		Long: `Make a throwaway project and home, start the MCP server as a client would, and
show what it does: agents that answer at once, that take their time, that are
stopped and that run out of time; and a memory that outlives them all.

Nothing outside the throwaway directory is touched. --agent claude does it with
the real Claude Code of this machine, which needs an account and costs a little.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.Agent != "script" && o.Agent != "claude" {
				return usagef("--agent %q: the demo knows script and claude", o.Agent)
			}
			return runDemo(cmd.Context(), app, o)
		},
	}
	cmd.Flags().StringVar(&o.Agent, "agent", "script", "`CLIENT` to start: script or claude")
	cmd.Flags().BoolVar(&o.Keep, "keep", false, "leave the files and say where they are")
	offer(cmd, "agent", "script", "claude")
	return cmd
}

// demo is one showing.
type demo struct {
	app   *App
	opt   DemoOptions
	steps *term.Steps
	root  string // of everything the demo makes
	peer  *mcpPeer
	ids   []string // of the runs that were started
}

// agentAnswer is the part of spawn_agent's and check_agent's answers that the
// demo looks at.
type agentAnswer struct {
	Status         string  `json:"status"`
	RunID          string  `json:"run_id"` // the job_id too, where there still is a job
	Result         string  `json:"result"`
	Error          string  `json:"error"`
	ElapsedSeconds float64 `json:"elapsed_seconds"`
}

func runDemo(ctx context.Context, app *App, o DemoOptions) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	root, err := os.MkdirTemp("", "reprise-demo-")
	if err != nil {
		return fmt.Errorf("make a throwaway directory: %w", err)
	}
	if root, err = filepath.EvalSymlinks(root); err != nil {
		return fmt.Errorf("make a throwaway directory: %w", err)
	}
	d := &demo{app: app, opt: o, root: root, steps: term.NewSteps(app.Out, app.Style())}
	fmt.Fprint(app.Out, "It takes about a quarter of a minute; Ctrl-C ends it and clears up.\n\n")
	began := app.Now()
	err = d.play(ctx)
	if d.peer != nil {
		if _, stopErr := d.peer.stop(10 * time.Second); err == nil {
			err = stopErr
		}
	}
	if errors.Is(ctx.Err(), context.Canceled) {
		return d.clearUp(ctx)
	}
	if err != nil {
		return fmt.Errorf("demo: %w (its files are in %s)", err, root)
	}
	fmt.Fprintf(app.Out, "\nDone in %s.", ago(app.Now().Sub(began)))
	if o.Keep {
		fmt.Fprintf(app.Out, " The files are in %s.\n", root)
	} else if err := durable.RemoveAll(root); err != nil {
		return fmt.Errorf("remove the throwaway directory: %w", err)
	} else {
		fmt.Fprint(app.Out, " The throwaway directory is gone; --keep would have left it.\n")
	}
	style := app.Style()
	fmt.Fprintf(app.Out, "Next: %s, in a repository of yours, connects your own clients;\n      %s says what is missing.\n",
		style.Cyan("reprise init"), style.Cyan("reprise doctor"))
	return nil
}

// clearUp ends a demo that was broken off: its runs first, for they write where
// the demo's files are.
func (d *demo) clearUp(ctx context.Context) error {
	why := context.Cause(ctx)
	fmt.Fprintln(d.app.Err, "Stopping what the demo started …")
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
	defer cancel()
	sub := d.installation()
	defer sub.Close()
	err := stopRuns(ctx, sub)
	if err == nil && d.opt.Keep {
		return fmt.Errorf("demo: %w (its files are in %s)", why, d.root)
	}
	if err == nil {
		err = durable.RemoveAll(d.root)
	}
	if err != nil {
		return fmt.Errorf("demo: %w; clearing up: %w (its files are in %s)", why, err, d.root)
	}
	return fmt.Errorf("demo: %w; the throwaway directory is gone", why)
}

// stopRuns cancels every run of an installation and waits for its end.
func stopRuns(ctx context.Context, app *App) error {
	runs, err := app.Runs()
	if err != nil {
		return err
	}
	list, err := runs.List(ctx)
	if err != nil {
		return err
	}
	for _, r := range list {
		if r.Status.Settled() {
			continue
		}
		if _, err := runs.Cancel(ctx, r.ID, "the demo was stopped"); err != nil {
			return err
		}
	}
	return nil
}

func (d *demo) play(ctx context.Context) error {
	for _, part := range []func(context.Context) error{
		d.prepare, d.connect, d.fast, d.slow, d.cancel, d.timeout, d.remember, d.restart, d.sessions, d.account,
	} {
		if err := part(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (d *demo) path(name string) string { return filepath.Join(d.root, name) }

// prepare makes the throwaway project and an installation of its own.
func (d *demo) prepare(context.Context) error {
	d.steps.Step("A throwaway project, with a home of its own")
	for _, dir := range []string{"project", "home"} {
		if err := durable.MkdirAll(d.path(dir), 0o755); err != nil {
			return err
		}
	}
	if err := durable.WriteFile(d.path("project/main.go"), []byte("package main\n\n// TODO: say hello\nfunc main() {}\n"), 0o644); err != nil {
		return err
	}
	if _, err := config.InitProject(d.path("project"), "demo"); err != nil {
		return err
	}
	if err := durable.WriteFile(d.path("agent.yaml"), demoScript, 0o644); err != nil {
		return err
	}
	// A window of 2 s instead of 25 s, so that the slow agent is handed off
	// while you watch.
	settings := "sub_agent:\n  sync_window_seconds: 2\n  agent: " + d.opt.Agent + "\n"
	if d.opt.Agent == "script" {
		settings += fmt.Sprintf("  script_file: %q\n", d.path("agent.yaml"))
	} else {
		settings = strings.Replace(settings, ": 2\n", ": 25\n", 1)
	}
	settings += "recall:\n  hold_out_percent: 0\n" // nothing of the demo is left to chance
	if err := durable.WriteFile(d.path("home/config.yaml"), []byte(settings), 0o600); err != nil {
		return err
	}
	d.steps.OK("project  %s", d.path("project"))
	d.steps.OK("home     %s  (REPRISE_HOME)", d.path("home"))
	return nil
}

// environ is the environment of the demo's server.
func (d *demo) environ() []string {
	env := make([]string, 0, len(d.app.Environ)+1)
	for _, kv := range d.app.Environ {
		name, _, _ := strings.Cut(kv, "=")
		switch name {
		case "REPRISE_HOME", "REPRISE_CONFIG", "MCP_BRIDGE_CONFIG", "AI_MEMORY_PATH", proc.RunIDVar:
		default:
			env = append(env, kv)
		}
	}
	return append(env, "REPRISE_HOME="+d.path("home"))
}

func (d *demo) connect(ctx context.Context) error {
	d.steps.Step("Start the MCP server, as a client would")
	d.steps.Command("reprise mcp")
	peer, err := startPeer(ctx, d.app, d.app.Program, []string{"mcp", "--toolsets", "all"}, d.environ(), d.path("project"))
	if err != nil {
		return err
	}
	d.peer = peer
	raw, err := peer.call("tools/list", map[string]any{})
	if err != nil {
		return err
	}
	names, err := toolNames(raw)
	if err != nil {
		return err
	}
	d.steps.OK("%d tools:", len(names))
	for some := range slices.Chunk(names, 5) {
		d.steps.Quote(strings.Join(some, "  "))
	}
	return nil
}

// spawn calls spawn_agent and remembers the run.
func (d *demo) spawn(task string, more map[string]any) (agentAnswer, error) {
	args := map[string]any{"task": task, "working_directory": d.path("project")}
	for k, v := range more {
		args[k] = v
	}
	d.steps.Info("spawn_agent  %q", task)
	var a agentAnswer
	if err := d.peer.tool("spawn_agent", args, &a); err != nil {
		return a, err
	}
	d.ids = append(d.ids, a.RunID)
	return a, nil
}

func (d *demo) fast(context.Context) error {
	d.steps.Step("An agent that answers at once comes back complete")
	a, err := d.spawn("Say in one sentence what this directory holds.", nil)
	if err != nil {
		return err
	}
	if a.Status != "complete" {
		return fmt.Errorf("the fast agent is %s: %s %s", a.Status, a.Error, a.Result)
	}
	d.steps.OK("status complete, run %s", a.RunID)
	d.steps.Quote(a.Result)
	return nil
}

func (d *demo) slow(context.Context) error {
	d.steps.Step("One that takes its time is handed off, then polled")
	a, err := d.spawn("Take your time: wait a few seconds, then say that you are done.", nil)
	if err != nil {
		return err
	}
	if a.Status == "running" {
		d.steps.OK("status running after the sync window; job %s goes on by itself", a.RunID)
	}
	if a, err = d.poll(a); err != nil {
		return err
	}
	if a.Status != "complete" {
		return fmt.Errorf("the slow agent is %s: %s %s", a.Status, a.Error, a.Result)
	}
	d.steps.OK("collected:")
	d.steps.Quote(a.Result)
	return nil
}

// poll asks for a job until it has ended.
func (d *demo) poll(a agentAnswer) (agentAnswer, error) {
	for a.Status == "running" {
		id := a.RunID
		a = agentAnswer{}
		if err := d.peer.tool("check_agent", map[string]any{"job_id": id, "wait_seconds": 20}, &a); err != nil {
			return a, err
		}
		d.steps.Info("check_agent  %s: %s after %.1f s", id, a.Status, a.ElapsedSeconds)
	}
	return a, nil
}

func (d *demo) cancel(context.Context) error {
	d.steps.Step("One that hangs is cancelled, with everything it started")
	a, err := d.spawn("Hang for ever, and leave children behind.", nil)
	if err != nil {
		return err
	}
	if a.Status != "running" {
		return fmt.Errorf("the hanging agent is %s: %s", a.Status, a.Error)
	}
	var c agentAnswer
	d.steps.Info("cancel_agent %s", a.RunID)
	if err := d.peer.tool("cancel_agent", map[string]any{"job_id": a.RunID}, &c); err != nil {
		return err
	}
	// Its children ignore the polite signal, so stopping takes the grace of
	// five seconds, longer than this demo's window.
	if c, err = d.poll(c); err != nil {
		return err
	}
	if c.Status != "cancelled" {
		return fmt.Errorf("the cancelled agent is %s", c.Status)
	}
	d.steps.OK("status cancelled")
	return d.noneLeft(a.RunID)
}

func (d *demo) timeout(context.Context) error {
	d.steps.Step("One that runs out of time is stopped")
	a, err := d.spawn("Hang for ever again.", map[string]any{"timeout_seconds": 1})
	if err != nil {
		return err
	}
	if a, err = d.poll(a); err != nil {
		return err
	}
	if a.Status != "timed_out" {
		return fmt.Errorf("the agent without time is %s: %s", a.Status, a.Error)
	}
	d.steps.OK("status timed_out, run %s: %s", a.RunID, a.Error)
	return d.noneLeft(a.RunID)
}

// noneLeft looks for processes of a run in the process table.
func (d *demo) noneLeft(id string) error {
	left, err := proc.Sweep(id)
	if err != nil {
		return err
	}
	if len(left) > 0 {
		return fmt.Errorf("%d processes of %s are left", len(left), id)
	}
	d.steps.OK("no process of it is left")
	return nil
}

const demoFact = "The staging database is called heron and listens on port 6543."

func (d *demo) remember(context.Context) error {
	d.steps.Step("Write something to memory, and find it")
	if err := d.peer.tool("create_memory_block", map[string]any{
		"name": "project-demo", "summary": "The demo project: where its staging database is",
		"content": "# Demo project\n\n## Staging\n\n" + demoFact + "\n",
	}, nil); err != nil {
		return err
	}
	d.steps.OK("create_memory_block  blocks/project-demo.md, with its row in index.md")
	if err := d.peer.tool("append_episodic_log", map[string]any{
		"title": "The demo ran", "entry": "Showed runs that end, linger, hang and time out; then wrote this.",
	}, nil); err != nil {
		return err
	}
	d.steps.OK("append_episodic_log  this month's log")
	return d.search("which port does staging use?")
}

func (d *demo) search(query string) error {
	var found struct {
		Results []struct {
			File    string `json:"file"`
			Heading string `json:"heading"`
			Snippet string `json:"snippet"`
		} `json:"results"`
	}
	if err := d.peer.tool("memory_search", map[string]any{"query": query}, &found); err != nil {
		return err
	}
	for _, hit := range found.Results {
		if strings.Contains(hit.Snippet, "6543") {
			d.steps.OK("memory_search %q → %s, %s", query, hit.File, hit.Heading)
			d.steps.Quote(hit.Snippet)
			return nil
		}
	}
	return fmt.Errorf("memory_search %q did not find what was written: %+v", query, found.Results)
}

func (d *demo) restart(ctx context.Context) error {
	d.steps.Step("End everything and start again: the memory is still there")
	took, err := d.peer.stop(10 * time.Second)
	d.peer = nil
	if err != nil {
		return err
	}
	d.steps.OK("the server was gone %s after the end of its input", ago(took))
	if d.peer, err = startPeer(ctx, d.app, d.app.Program, []string{"mcp"}, d.environ(), d.path("project")); err != nil {
		return err
	}
	d.steps.OK("a new server, a new session")
	return d.search("port of the staging database")
}

// installation is the App of the demo's own home and project.
func (d *demo) installation() *App {
	env := d.app.Env
	env.Dir = d.path("project")
	env.Vars = config.ParseVars(d.environ(), env.GOOS)
	return &App{
		Out: d.app.Out, Err: d.app.Err, OutIsTerminal: d.app.OutIsTerminal, Columns: d.app.Columns,
		Env: env, Environ: d.environ(), Program: d.app.Program, Hostname: d.app.Hostname,
	}
}

// account shows where everything is.
func (d *demo) account(ctx context.Context) error {
	d.steps.Step("Where it all is: plain files")
	sub := d.installation()
	defer sub.Close()
	home, err := sub.Home()
	if err != nil {
		return err
	}
	runs, err := sub.Runs()
	if err != nil {
		return err
	}
	list, err := runs.List(ctx)
	if err != nil {
		return err
	}
	if len(list) != len(d.ids) {
		return errors.Join(fmt.Errorf("%d runs are on record, %d were started", len(list), len(d.ids)))
	}
	d.steps.OK("memory  %s", home.MemoryDir())
	d.steps.OK("runs    %s", home.RunsDir())
	d.steps.OK("events  %s", home.EventsDir())
	d.steps.OK("log     %s", home.LogFile())
	d.steps.Command("reprise runs list")
	if err := printRuns(sub, list, false); err != nil {
		return err
	}
	d.steps.Info("what MCP calls timed_out and cancelled, a run's record calls timeout and killed")
	return nil
}
