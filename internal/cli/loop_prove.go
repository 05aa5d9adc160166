package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

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

// workRefuses runs a client as the loop would, in a home and a directory that are made
// for it, against a stand-in for its model that asks for what is allowed and for what is
// refused. why is what was wrong, "" where nothing was.
func (a *App) workRefuses(ctx context.Context, client string) (why string, err error) {
	dir, err := os.MkdirTemp("", "reprise-prove-")
	if err != nil {
		return "", err
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return "", err
	}
	defer func() { _ = durable.RemoveAll(dir) }()
	at := func(elem ...string) string { return filepath.Join(append([]string{dir}, elem...)...) }
	for _, d := range []string{at("home"), at("work"), at("data", "memory", "blocks"), at("runs")} {
		if err := durable.MkdirAll(d, 0o700); err != nil {
			return "", err
		}
	}
	server, err := fakemodel.Start(fakemodel.Script{Rules: []fakemodel.Rule{
		calling("allowed", fakemodel.When{Turn: 1}, fakemodel.Shell("pwd")),
		calling("refused", fakemodel.When{Turn: 2}, fakemodel.Shell("echo x > ../canary")),
	}, Otherwise: &fakemodel.Answer{Text: "done"}}, a.Env.Now)
	if err != nil {
		return "", err
	}
	defer server.Close()
	r, err := a.proofRun(ctx, client, at, server)
	if err != nil {
		return "", err
	}
	told := func(text string) bool {
		return slices.ContainsFunc(server.Requests(), func(q *fakemodel.Request) bool { return strings.Contains(q.Text(), text) })
	}
	if _, err := os.Lstat(at("canary")); err == nil {
		return "what is refused RAN: its hook does not block", nil
	} else if !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	switch {
	case !told("writes-outside"):
		return "what is refused did not run, but the model was not told why: " + firstLine(r.StatusReason, 300), nil
	case !told(at("work")):
		return "what is allowed did not run", nil
	}
	return "", nil
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
	vars := plainVars(a)
	vars["HOME"], vars["USERPROFILE"], vars["REPRISE_HOME"] = at("home"), at("home"), at("data")
	for _, line := range trial.Env {
		k, v, _ := strings.Cut(line, "=")
		vars[k] = v
	}
	var lines []string
	for _, k := range slices.Sorted(maps.Keys(vars)) {
		lines = append(lines, k+"="+vars[k])
	}
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
