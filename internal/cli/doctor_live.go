package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"reprise/internal/agent/dialect"
	"reprise/internal/config"
	"reprise/internal/durable"
	"reprise/internal/event"
	"reprise/internal/fakemodel"
	"reprise/internal/proc"
	"reprise/internal/setup"
)

// liveTime is how long one client may take to a turn of work in the live check.
const liveTime = 80 * time.Second

// liveWord is in the memory that the live check gives a session: a model that
// is told of it was told by the hooks.
const liveWord = "The word of this check is aubergine-4471."

// livePrompt is what the session is asked, and so what must be recorded.
const livePrompt = "Say the word of the check."

// liveHooks looks at each hook of a client that is set up: its program is run as
// the client would run it, and then the client itself, headless, in a home and
// project that are made for it and removed again, against the built-in stand-in
// for its model. No account, key, network or file of the user's takes part, but
// for the client's and the hooks' own programs.
func liveHooks(ctx context.Context, app *App, h setup.InstalledHooks) []setup.Finding {
	proofs, err := probeHooks(ctx, app, h)
	if err != nil {
		return []setup.Finding{{Status: setup.Warn, Message: fmt.Sprintf("%s: its hooks could not be tried: %v", h.Client, err), Remedy: "check the directory for temporary files"}}
	}
	broken := slices.ContainsFunc(proofs, func(p setup.HookProof) bool { return p.Proof == setup.Failed })
	if broken || h.Scope == setup.Project { // the client runs a project's where that is trusted
		return setup.ProofFindings(h, proofs)
	}
	name := strings.TrimSuffix(h.Client, "-code")
	program, err := proc.LookPath(name, app.Env.Vars, app.Env.GOOS)
	if err != nil {
		return append(setup.ProofFindings(h, proofs), setup.Finding{Status: setup.Info, Message: fmt.Sprintf("%s: not run itself, %s is not in PATH", h.Client, name)})
	}
	ctx, cancel := context.WithTimeout(ctx, liveTime)
	defer cancel()
	began := app.Now()
	l := &live{app: app, h: h, name: name, program: program, proofs: proofs}
	found, err := l.run(ctx)
	if err != nil {
		if ctx.Err() != nil {
			err = fmt.Errorf("it did not end within %s", liveTime)
		}
		return append(setup.ProofFindings(h, proofs), setup.Finding{Status: setup.Warn, Message: fmt.Sprintf("%s: no live session could be had: %v", h.Client, err),
			Remedy: fmt.Sprintf("start %s by hand and see whether it works", name)})
	}
	for i := range found {
		found[i].Message = fmt.Sprintf("%s: %s (%s)", h.Client, found[i].Message, app.Now().Sub(began).Round(100*time.Millisecond))
	}
	return append(setup.ProofFindings(h, l.proofs), found...)
}

// probeHooks runs the programs of a client's hooks.
func probeHooks(ctx context.Context, app *App, h setup.InstalledHooks) ([]setup.HookProof, error) {
	dir, drop, err := throwaway("reprise-doctor-")
	if err != nil {
		return nil, err
	}
	defer drop()
	p := setup.Prober{Dir: dir}
	for k, v := range plainVars(app) {
		p.Env = append(p.Env, k+"="+v)
	}
	return p.Probe(ctx, h)
}

// plainVars are the variables that programs need to start at all.
func plainVars(app *App) map[string]string {
	vars := map[string]string{}
	for _, keep := range []string{"PATH", "SYSTEMROOT", "COMSPEC", "PATHEXT", "TEMP", "TMP", "TMPDIR", "LANG"} {
		if v := app.Env.Get(keep); v != "" {
			vars[keep] = v
		}
	}
	return vars
}

// trialVars are the variables of a client that is tried in dir: home, data and tmp, which
// is made, are there.
func trialVars(app *App, trial fakemodel.Trial, dir string) (map[string]string, error) {
	vars, home := plainVars(app), filepath.Join(dir, "home")
	vars["HOME"], vars["USERPROFILE"], vars["REPRISE_HOME"] = home, home, filepath.Join(dir, "data")
	for _, line := range trial.Env {
		k, v, _ := strings.Cut(line, "=")
		vars[k] = v
	}
	// Clients leave things in the directory for temporary files: sockets, caches of
	// compiled code, logs. They go with the rest.
	tmp := filepath.Join(dir, "tmp")
	for _, v := range []string{"TMPDIR", "TEMP", "TMP", "CLAUDE_CODE_TMPDIR"} {
		vars[v] = tmp
	}
	return vars, durable.MkdirAll(tmp, 0o700)
}

// varLines are variables as a process takes them, in order.
func varLines(vars map[string]string) []string {
	var lines []string
	for _, k := range slices.Sorted(maps.Keys(vars)) {
		lines = append(lines, k+"="+vars[k])
	}
	return lines
}

type live struct {
	app           *App
	h             setup.InstalledHooks
	name, program string
	dir           string
	proofs        []setup.HookProof
}

// throwaway makes a directory for a trial, by its path without links, that goes with drop.
func throwaway(pattern string) (dir string, drop func(), err error) {
	made, err := os.MkdirTemp("", pattern)
	if err != nil {
		return "", nil, err
	}
	drop = func() { _ = durable.RemoveAll(made) }
	if dir, err = filepath.EvalSymlinks(made); err != nil {
		drop()
		return "", nil, err
	}
	return dir, drop, nil
}

func (l *live) path(elem ...string) string { return filepath.Join(append([]string{l.dir}, elem...)...) }

func (l *live) run(ctx context.Context) ([]setup.Finding, error) {
	dir, drop, err := throwaway("reprise-doctor-")
	if err != nil {
		return nil, err
	}
	defer drop()
	l.dir = dir
	for _, d := range []string{"home", "work", "data/memory/blocks"} {
		if err := durable.MkdirAll(l.path(d), 0o700); err != nil {
			return nil, err
		}
	}
	if err := durable.WriteFile(l.path("data", "memory", "core.md"), []byte("# Core\n\n"+liveWord+"\n"), 0o600); err != nil {
		return nil, err
	}
	server, err := fakemodel.Start(fakemodel.Script{Rules: []fakemodel.Rule{
		calling("work", fakemodel.When{Turn: 1}, fakemodel.Shell("echo reprise-doctor")),
		calling("fail", fakemodel.When{Turn: 2}, fakemodel.Shell("exit 3")),
		// What nobody allowed is asked about; where it is allowed, it is a file of the check's own.
		calling("ask", fakemodel.When{Turn: 3, Offers: []string{"Write"}}, fakemodel.Call{Tool: "Write", Input: map[string]any{"file_path": l.path("work", "asked.txt"), "content": "x"}}),
		calling("delegate", fakemodel.When{Turn: 4, Offers: []string{"Agent"}}, subagent("Agent")),
		calling("delegate", fakemodel.When{Turn: 4, Offers: []string{"Task"}}, subagent("Task")),
	}, Otherwise: &fakemodel.Answer{Text: "done"}}, l.app.Env.Now)
	if err != nil {
		return nil, err
	}
	defer server.Close()
	if err := l.client(ctx, server); err != nil {
		return nil, err
	}
	return l.judge(server)
}

// client installs the same hooks into the home that was made and runs a turn.
func (l *live) client(ctx context.Context, server *fakemodel.Server) error {
	trial, err := server.Trial(l.name, l.path("work"))
	if err != nil {
		return err
	}
	vars, err := trialVars(l.app, trial, l.dir)
	if err != nil {
		return err
	}
	env := config.Env{Vars: map[string]string{"HOME": vars["HOME"], "USERPROFILE": vars["USERPROFILE"]}, Dir: l.path("work"), GOOS: l.app.Env.GOOS, Now: l.app.Env.Now}
	s := setup.Setup{
		Where: setup.Where{Env: env, Dir: l.path("work"), Root: l.path("work")},
		Paths: config.Paths{Data: l.path("setup")}, Now: l.app.Env.Now,
	}
	if _, err := s.InstallAll(ctx, setup.All{
		Request: setup.Request{Client: l.h.Client, Scope: setup.User, Program: l.app.Program}, HookProgram: l.h.Program, NoMCP: true,
	}); err != nil {
		return err
	}
	for file, text := range trial.Files {
		if err := durable.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			return err
		}
		if err := durable.WriteFile(file, []byte(text), 0o600); err != nil {
			return err
		}
	}
	out, err := proc.Run(ctx, proc.Cmd{Path: l.program, Args: trial.Argv(livePrompt, trial.Trust...), Env: varLines(vars), Dir: l.path("work"), NewSession: true}, 256<<10)
	if err != nil {
		return err
	}
	if out.Exit.Code != 0 {
		return fmt.Errorf("%s ended with %d: %s", l.name, out.Exit.Code, firstLine(string(out.Stderr)+string(out.Stdout), 200))
	}
	return nil
}

func calling(name string, when fakemodel.When, c fakemodel.Call) fakemodel.Rule {
	return fakemodel.Rule{Name: name, When: when, Say: fakemodel.Answer{Calls: []fakemodel.Call{c}}}
}

// subagent is a call of Claude Code's tool that starts one.
func subagent(tool string) fakemodel.Call {
	return fakemodel.Call{Tool: tool, Input: map[string]any{"description": "a check", "prompt": "Say done.", "subagent_type": "general-purpose"}}
}

func (l *live) judge(server *fakemodel.Server) ([]setup.Finding, error) {
	var events []event.Event
	var prompts []string
	for e, err := range event.Read(l.path("data", "events")) {
		if err != nil {
			return nil, err
		}
		events = append(events, e)
		if e.Type == event.PromptSubmitted {
			var d event.PromptData
			if err := json.Unmarshal(e.Data, &d); err != nil {
				return nil, fmt.Errorf("its prompt.submitted: %w", err)
			}
			prompts = append(prompts, strings.TrimSpace(d.Text))
		}
	}
	l.proofs = setup.Seen(l.h.Client, l.proofs, func(name string) bool { return recordedBy(l.name, name, events) })
	told := slices.ContainsFunc(server.Requests(), func(q *fakemodel.Request) bool { return strings.Contains(q.Text(), liveWord) })
	switch again := fmt.Sprintf("run `reprise setup %s`, then `reprise doctor` again; the log (`reprise paths`) says what went wrong", l.h.Client); {
	case len(events) == 0:
		return []setup.Finding{{Status: setup.Fail, Message: "its hooks did not run", Remedy: again}}, nil
	case !slices.Equal(prompts, []string{livePrompt}):
		return []setup.Finding{{Status: setup.Warn, Message: fmt.Sprintf("a live session was recorded, but not its prompt as it was given: %s was recorded for %q", quoted(prompts, 120), livePrompt),
			Remedy: "this version of the client may hand prompts to hooks in another form: `reprise hook record` shows it"}}, nil
	case !told:
		return []setup.Finding{{Status: setup.Warn, Message: "a live session was recorded, but memory did not reach the model", Remedy: again}}, nil
	}
	return []setup.Finding{{Status: setup.OK, Message: "a live session was recorded and told of memory"}}, nil
}

// recordedBy reports whether an event is in the log that only the client's hook
// of that name can have put there.
func recordedBy(client, name string, events []event.Event) bool {
	spec := dialect.ManifestOf(client).Event(name)
	if spec == nil {
		return false
	}
	return slices.ContainsFunc(events, func(e event.Event) bool {
		if string(e.Type) != dialect.EventType(spec.Kind) {
			return false
		}
		switch spec.Kind {
		case dialect.Response:
			return e.Outcome != "failure"
		case dialect.ResponseFailed:
			return e.Outcome == "failure"
		case dialect.CompactBefore:
			return strings.Contains(string(e.Data), `"phase":"before"`)
		case dialect.CompactAfter:
			return strings.Contains(string(e.Data), `"phase":"after"`)
		}
		return true
	})
}

// quoted are texts, each on one line and cut to that many bytes.
func quoted(texts []string, most int) string {
	var out []string
	for _, t := range texts {
		out = append(out, fmt.Sprintf("%q", firstLine(t, most)))
	}
	return strings.Join(out, ", ")
}
