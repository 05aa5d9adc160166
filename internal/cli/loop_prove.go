package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"reprise/internal/agent"
	"reprise/internal/config"
	"reprise/internal/durable"
	"reprise/internal/fakemodel"
	"reprise/internal/proc"
	"reprise/internal/run"
	"reprise/internal/setup"
)

// proveGuard wants it seen that a client, started as the loop starts it, is kept by our
// hooks from what is refused. The script client has no hooks, and does what its author
// wrote.
func (a *App) proveGuard(ctx context.Context, client string) error {
	if client == agent.KindScript || client == agent.KindGeneric {
		return nil
	}
	for _, found := range guardEnforced(a) {
		if found.Status == setup.Fail {
			return exitWith(ExitConflict, fmt.Errorf("no loop without a person while the guard is off: %s; %s", found.Message, found.Remedy))
		}
	}
	fmt.Fprintf(a.Err, "Proving that the guard keeps %s from what is refused …\n", client)
	ctx, cancel := context.WithTimeout(ctx, liveTime)
	defer cancel()
	why, err := a.workRefuses(ctx, client)
	switch {
	case ctx.Err() != nil:
		err = fmt.Errorf("it did not end within %s", liveTime)
	case err == nil && why != "":
		err = errors.New(why)
	}
	if err != nil {
		return exitWith(ExitConflict, fmt.Errorf("no loop without a person: it could not be proved that the guard keeps %s from what is refused: %w; start %s by hand and see whether it works, or `reprise doctor --guard`", client, err, client))
	}
	return nil
}

// workRefuses runs a client as the loop would, and says why it is not kept from what is
// refused, "" where it is.
func (a *App) workRefuses(ctx context.Context, client string) (why string, err error) {
	return refusalTrial("reprise-prove-", a.Env.Now, func(dir string, server *fakemodel.Server) (string, error) {
		at := func(elem ...string) string { return filepath.Join(append([]string{dir}, elem...)...) }
		if err := durable.MkdirAll(at("runs"), 0o700); err != nil {
			return "", err
		}
		r, err := a.proofRun(ctx, client, at, server)
		return firstLine(r.StatusReason, 300), err
	})
}

// proofRun is the client's run for the proof.
func (a *App) proofRun(ctx context.Context, client string, at func(...string) string, server *fakemodel.Server) (run.Record, error) {
	home, err := a.Home()
	if err != nil {
		return run.Record{}, err
	}
	trial, err := server.Trial(client, at("work"))
	if err != nil {
		return run.Record{}, err
	}
	vars, err := trialVars(a, trial, at())
	if err != nil {
		return run.Record{}, err
	}
	lines := varLines(vars)
	env := config.Env{Vars: vars, Dir: at("work"), GOOS: a.Env.GOOS, Now: a.Env.Now}
	w := &worker{app: a, env: env, tools: home.Settings.Loop.AllowedTools, homes: map[string]map[string][]byte{}, model: func(client, home string) error {
		if client == agent.KindCodex {
			return writeIn(filepath.Join(home, ".codex"), "config.toml", []byte(fmt.Sprintf("model = \"fake-model\"\nmodel_provider = \"fake\"\n\n[model_providers.fake]\nname = \"fake\"\nbase_url = %q\nenv_key = \"REPRISE_FAKE_KEY\"\nwire_api = \"responses\"\nrequest_max_retries = 0\nstream_max_retries = 0\n", server.URL+"/v1")))
		}
		return a.ownModel(client, home)
	}}
	req := run.Request{
		Task: "Say where you are.", SystemPrompt: "This is a check.", WorkDir: at("work"), Timeout: liveTime, Client: client, Env: lines, Origin: "check",
		Work: &run.Work{Work: agent.Work{AllowedTools: home.Settings.Loop.AllowedTools}, MaxTurns: 10, MaxBudgetUSD: 1},
	}
	if client == agent.KindGemini {
		req.Model = "gemini-2.5-pro" // without one it asks a model which to use
	}
	if err := w.configure(&req); err != nil {
		return run.Record{}, err
	}
	program, own := w.hookProgram()
	guardHook := ""
	if own {
		guardHook = setup.Setup{Where: setup.Where{Env: env}}.HookCommand(program, "claude-code", "PreToolUse")
	}
	m := run.New(run.Options{
		Dir: at("runs"), Env: lines, Home: at("home"), Hostname: a.Hostname, ClaudePath: home.Settings.ClaudeCLI.Path, MemoryDir: at("data", "memory"),
		Sandbox: "off", Program: a.Program, Helper: helperProgram(a.Program), GuardHook: guardHook, Now: a.Env.Now,
		LookPath: func(name string) (string, error) { return proc.LookPath(name, a.Env.Vars, a.Env.GOOS) },
	})
	r, err := m.Start(ctx, req)
	if err != nil {
		return r, err
	}
	defer func() { _, _ = m.StopAll(context.WithoutCancel(ctx)) }()
	return m.Wait(ctx, r.ID)
}
