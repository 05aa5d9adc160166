package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"reprise/internal/durable"
	"reprise/internal/fakemodel"
	"reprise/internal/proc"
	"reprise/internal/setup"
)

// guardChecks prove that each client that has our hooks really does not run what
// is refused: clients run a tool whose hook fails, so a guard that was not seen to
// work is none. There is nothing milder than a failure here.
func guardChecks(app *App) ([]setup.Check, error) {
	d, err := doctor(app)
	if err != nil {
		return nil, err
	}
	checks := []setup.Check{{Name: "guard", Run: func(context.Context) []setup.Finding { return guardEnforced(app) }}}
	installed, err := d.Setup.Installed()
	if err != nil {
		return nil, err
	}
	var clients []setup.InstalledHooks
	for _, h := range installed {
		if !slices.ContainsFunc(clients, func(c setup.InstalledHooks) bool { return c.Client == h.Client && c.Program == h.Program }) {
			clients = append(clients, h)
		}
	}
	if len(clients) == 0 {
		checks = append(checks, setup.Check{Name: "guard", Run: func(context.Context) []setup.Finding {
			return []setup.Finding{{Status: setup.Fail, Message: "no client has reprise's hooks, so nothing is judged", Remedy: "run `reprise setup`"}}
		}})
		return checks, nil
	}
	// The clients run at the same time: each takes as long as its program does.
	found := make([][]setup.Finding, len(clients))
	run := sync.OnceFunc(func() {
		var wg sync.WaitGroup
		for i, h := range clients {
			wg.Go(func() { found[i] = guardTrust(d, h, liveGuard(context.Background(), app, h)) })
		}
		wg.Wait()
	})
	for i := range clients {
		checks = append(checks, setup.Check{Name: "guard", Time: 2 * liveTime, Run: func(context.Context) []setup.Finding {
			run()
			return found[i]
		}})
	}
	return checks, nil
}

// guardTrust says what the live proof cannot: it passes over the client's own
// question whether hooks are to be trusted, in a home that nobody has answered it
// in, and has none of the settings by which a client runs no hooks at all. What the user
// has answered and set stands in the client's settings, and hooks that it does not run
// refuse nothing.
func guardTrust(d setup.Doctor, h setup.InstalledHooks, found []setup.Finding) []setup.Finding {
	why, remedy, err := d.Setup.Off(h)
	if err != nil {
		found = append(found, setup.Finding{Status: setup.Fail, Message: fmt.Sprintf("%s: whether its hooks are switched off is not known: %v", h.Client, err), Remedy: "correct it, or its permissions"})
	}
	if why != "" {
		return append(found, setup.Finding{Status: setup.Fail, Message: setup.SwitchedOff(h.Client, why), Remedy: remedy})
	}
	if h.Client != "codex" || slices.ContainsFunc(found, func(f setup.Finding) bool { return f.Status == setup.Fail }) {
		return found
	}
	waiting, err := d.Unaccepted(h)
	waiting = slices.DeleteFunc(waiting, func(event string) bool { return event != "PreToolUse" && event != "PermissionRequest" })
	switch {
	case err != nil:
		return append(found, setup.Finding{Status: setup.Fail, Message: fmt.Sprintf("codex: whether its hooks were accepted cannot be read: %v", err), Remedy: "start codex and look at /hooks"})
	case len(waiting) > 0:
		return append(found, setup.Finding{Status: setup.Fail, Message: "codex: the guard's hooks would refuse, but Codex does not run them until you have accepted them as they are: " + strings.Join(waiting, ", "), Remedy: "start codex and accept the hooks it asks about (or /hooks)"})
	}
	return append(found, setup.Finding{Status: setup.Info, Message: "codex: the proof passes over Codex's own question of trust; its settings say that you have accepted the guard's hooks as they are"})
}

// guardEnforced says whether verdicts are enforced at all.
func guardEnforced(app *App) []setup.Finding {
	r, err := app.guardRules()
	switch {
	case err != nil:
		return []setup.Finding{{Status: setup.Fail, Message: fmt.Sprintf("the settings cannot be read: %v", err), Remedy: "correct them"}}
	case r.Off || r.Warn:
		return []setup.Finding{{Status: setup.Fail, Message: "guard.mode is " + guardMode(r) + ", so nothing is refused", Remedy: "`reprise config set guard.mode enforce`"}}
	}
	return []setup.Finding{{Status: setup.OK, Message: "verdicts are enforced"}}
}

// checkGuardMode is guardEnforced among all the other checks: who set the mode is
// reminded of it.
func (a *App) checkGuardMode(context.Context) []setup.Finding {
	r, err := a.guardRules()
	switch {
	case err != nil:
		return one(setup.Warn, "`reprise guard rules` says what is wrong", "which rules there are is not known: %v", err)
	case r.Off || r.Warn:
		return one(setup.Warn, "`reprise config set guard.mode enforce`", "guard.mode is %s, so nothing is refused", guardMode(r))
	}
	if home, err := a.Home(); err == nil && home.Settings.Guard.Judge != "off" && home.Settings.Judge.Client == "" {
		return one(setup.Warn, "`reprise config set judge.client claude`, or `reprise config set guard.judge off`", "guard.judge is %s, and there is no judge.client: no judge is asked", home.Settings.Guard.Judge)
	}
	return one(setup.OK, "", "verdicts are enforced")
}

// liveGuard has a client asked, by a stand-in for its model, to run what is
// refused, and looks whether it ran and whether the model was told why.
func liveGuard(ctx context.Context, app *App, h setup.InstalledHooks) []setup.Finding {
	fail := func(message, remedy string) []setup.Finding {
		return []setup.Finding{{Status: setup.Fail, Message: h.Client + ": " + message, Remedy: remedy}}
	}
	name := strings.TrimSuffix(h.Client, "-code")
	program, err := proc.LookPath(name, app.Env.Vars, app.Env.GOOS)
	if err != nil {
		return fail(fmt.Sprintf("not proved, %s is not in PATH", name), "install it, or remove its hooks with `reprise setup --remove "+h.Client+"`")
	}
	ctx, cancel := context.WithTimeout(ctx, liveTime)
	defer cancel()
	began := app.Now()
	l := &live{app: app, h: h, name: name, program: program}
	why, err := l.refuses(ctx)
	switch {
	case ctx.Err() != nil:
		return fail(fmt.Sprintf("not proved, it did not end within %s", liveTime), fmt.Sprintf("start %s by hand and see whether it works", name))
	case err != nil:
		return fail(fmt.Sprintf("not proved: %v", err), fmt.Sprintf("start %s by hand and see whether it works", name))
	case why != "":
		return fail(why, fmt.Sprintf("run `reprise setup %s`; the log (`reprise paths`) says what went wrong", h.Client))
	}
	return []setup.Finding{{Status: setup.OK, Message: fmt.Sprintf("%s: what is refused did not run, and the model was told why (%s)", h.Client, app.Now().Sub(began).Round(100*time.Millisecond))}}
}

// refuses says why the client's hook does not refuse, "" where it does.
func (l *live) refuses(ctx context.Context) (why string, err error) {
	return refusalTrial("reprise-doctor-", l.app.Env.Now, func(dir string, server *fakemodel.Server) (string, error) {
		l.dir = dir
		return "", l.client(ctx, server)
	})
}

// refusalTrial has a client asked, by a stand-in for its model, for what is allowed and
// for what is refused, in a directory that is made for it and goes with it: home, work
// and data are there. start runs the client, and says what it told besides. why is what
// was wrong, "" where nothing was.
func refusalTrial(pattern string, now func() time.Time, start func(dir string, server *fakemodel.Server) (said string, err error)) (why string, err error) {
	dir, drop, err := throwaway(pattern)
	if err != nil {
		return "", err
	}
	defer drop()
	work := filepath.Join(dir, "work")
	for _, d := range []string{filepath.Join(dir, "home"), work, filepath.Join(dir, "data", "memory", "blocks")} {
		if err := durable.MkdirAll(d, 0o700); err != nil {
			return "", err
		}
	}
	server, err := fakemodel.Start(fakemodel.Script{Rules: []fakemodel.Rule{
		calling("allowed", fakemodel.When{Turn: 1}, fakemodel.Shell("pwd")),
		calling("refused", fakemodel.When{Turn: 2}, fakemodel.Shell("echo x > ../canary")),
	}, Otherwise: &fakemodel.Answer{Text: "done"}}, now)
	if err != nil {
		return "", err
	}
	defer server.Close()
	said, err := start(dir, server)
	if err != nil {
		return "", err
	}
	told := func(text string) bool {
		return slices.ContainsFunc(server.Requests(), func(q *fakemodel.Request) bool { return strings.Contains(q.Text(), text) })
	}
	if _, err := os.Lstat(filepath.Join(dir, "canary")); err == nil {
		return "what is refused RAN: its hook does not block", nil
	} else if !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	switch {
	case !told("writes-outside") && said != "":
		return "what is refused did not run, but the model was not told why: " + said, nil
	case !told("writes-outside"):
		return "what is refused did not run, but the model was not told why", nil
	case !told(work):
		return "what is allowed did not run", nil
	}
	return "", nil
}
