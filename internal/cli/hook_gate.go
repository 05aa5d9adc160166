package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"reprise/internal/agent/dialect"
	"reprise/internal/config"
	"reprise/internal/durable"
	"reprise/internal/hook"
	"reprise/internal/hook/compile"
	"reprise/internal/proc"
	"reprise/internal/task"
	"reprise/internal/verify"
)

// gatekeeper decides at the end of turns; see docs/gates.md for what each event
// may bring about.
type gatekeeper struct {
	app  *App
	home *config.Home
	dir  string       // where the session works
	lost *config.Lost // the project's file is gone or broken; nil where it is there
	warn func(what string, err error)
}

// beginTime bounds the look at the tree when a session begins: its client waits.
const beginTime = time.Second

// Gate deals with one event. It never fails: what goes wrong is a line in the
// log, and the turn ends.
func (k *gatekeeper) Gate(ctx context.Context, ev dialect.Event) dialect.Decision {
	home := k.home
	if home == nil || home.Project == nil {
		return dialect.Decision{}
	}
	if k.lost != nil {
		return k.lapsed(ctx, home, k.lost.Trust, ev)
	}
	trust, err := home.Paths.Trust(home.Project)
	switch {
	case err != nil:
		k.warn("no gate: what was approved cannot be read", err)
		return dialect.Decision{}
	case trust.Lapsed():
		return k.lapsed(ctx, home, trust, ev)
	case !trust.Approved || trust.Says.Verify == nil:
		return dialect.Decision{} // the plan was made before the approval was taken back
	}
	g, err := k.gate(home, trust, ev.Kind == dialect.SubagentFinished)
	if err != nil {
		k.warn("no gate", err)
		return dialect.Decision{}
	}
	list := ownList{events: home.EventsDir(), client: ev.Client, now: k.app.Env.Now}
	g.Tasks = gateTasks{own: list, load: k.app.tasksOf(home), delegation: k.app.Env.Get(task.DelegationVar)}
	t := verify.Turn{Client: ev.Client, Session: ev.Session, Run: k.app.Env.Get(hook.RunVar), Text: ev.Text, Active: ev.StopActive, Busy: ev.Busy}
	switch ev.Kind {
	case dialect.SessionStart, dialect.SubagentStarted:
		if ev.Kind == dialect.SubagentStarted {
			t.Subagent, t.Agent = true, ev.Agent
		}
		bctx, cancel := context.WithTimeout(ctx, beginTime)
		defer cancel()
		if err := g.Begin(bctx, t); err != nil {
			k.warn("what the tree was when the session began is not known", err)
		}
	case dialect.SubagentFinished:
		if home.Settings.Gates.Subagent == "off" {
			break
		}
		t.Subagent, t.Agent, t.Prompt = true, ev.Agent, list.prompt(t.Session)
		return k.end(ctx, g, t, ev)
	case dialect.Response:
		if home.Settings.Gates.Stop == "off" {
			break
		}
		if t.Text == "" && ev.Client == "copilot" {
			t.Text = lastWords(ev.Transcript)
		}
		t.Prompt = list.prompt(t.Session)
		return k.end(ctx, g, t, ev)
	case dialect.ToolFailed:
		return dialect.Decision{Context: k.afterFailure(ctx, g, t)}
	case dialect.Prompt:
		return dialect.Decision{Context: k.told(ctx, g, t)}
	}
	return dialect.Decision{}
}

// lapsed says to whom it may concern that gates are off, for the project's file is not
// what was approved: to the session's agent, which may have changed it, and by a result
// to the person who counts on gates.
func (k *gatekeeper) lapsed(ctx context.Context, home *config.Home, trust config.Trust, ev dialect.Event) dialect.Decision {
	file := filepath.Join(".reprise", filepath.Base(home.Project.File()))
	why := file + " changed since it was approved, so its checks are not run"
	switch {
	case k.lost != nil:
		why = file + " " + k.lost.Why() + ", and the checks that were approved are not run"
		trust.Hash = k.lost.Why() // what the session is told of, once
	case trust.Was != "":
		why = fmt.Sprintf("%s names the project %s, which was %s when it was approved (memory and queue are those of that name, too), so its checks are not run", file, home.Project.Name, trust.Was)
	case trust.Says.Verify.Empty():
		why = file + " has no checks any more, and those that were approved are not run"
	}
	said := why + "; `reprise trust` shows what changed"
	if k.lost != nil {
		said = why + "; bring it back, or `reprise trust --revoke` has gates off for good"
	}
	g := &verify.Gate{Verifier: k.app.verifyOptions(home, trust, k.dir)}
	t := verify.Turn{Client: ev.Client, Session: ev.Session, Run: k.app.Env.Get(hook.RunVar), Text: ev.Text}
	if ev.Kind == dialect.Response {
		k.warn("the turn was not judged", errors.New(said))
		if err := g.Lapsed(ctx, t, said); err != nil {
			k.warn("that the turn was not judged is not kept", err)
		}
		return dialect.Decision{}
	}
	tell, err := g.TellLapsed(ctx, t)
	if err != nil {
		k.warn("what the session was told is not known", err)
	}
	if !tell {
		return dialect.Decision{}
	}
	if k.lost != nil {
		return dialect.Decision{Context: "reprise: " + why + " at the end of turns. Tell the user. If that is your doing and nobody asked for it, take it back."}
	}
	return dialect.Decision{Context: "reprise: " + why + " at the end of turns. Only the user can approve it (`reprise trust`): tell them. If the change is yours and nobody asked for it, take it back."}
}

// lostGate is the gate of an event in a project that is lost; nil where it is none, or
// nothing is to be said then.
func (h *hookRun) lostGate(ev *dialect.Event, env config.Env) *gatekeeper {
	if !compile.LostAt(string(ev.Kind)) {
		return nil
	}
	home, lost := compile.LostHome(env, h.app.ConfigFlag)
	if lost == nil {
		return nil
	}
	if h.made == nil || h.made.Home == nil {
		h.app.home = home // for the event of the result
	}
	return &gatekeeper{app: h.app, home: home, dir: env.Dir, lost: lost, warn: h.warn}
}

func (k *gatekeeper) gate(home *config.Home, trust config.Trust, subagent bool) (*verify.Gate, error) {
	s := home.Settings.Gates
	wishes, err := k.app.verifyWishes(home, trust, "")
	if err != nil {
		return nil, err
	}
	if subagent {
		// Its work is a part, and others are at work: a quick look, unless somebody
		// wants more.
		wishes = append(wishes, verify.Wish{By: "a subagent's part", Profile: "quick"})
	}
	o := k.app.verifyOptions(home, trust, k.dir)
	o.Warn = k.warn
	g := &verify.Gate{
		Verifier: o, When: s.When, MaxBlocks: s.MaxBlocks, Timeout: time.Duration(s.TimeoutSeconds) * time.Second, Wishes: wishes,
	}
	for _, name := range config.GateNames() {
		if s.Off(name, trust.Says.Verify) != "" {
			g.Off = append(g.Off, name)
		}
	}
	g.Reviews, g.Reviewers = &modelReviews{k.app}, []verify.Reviewer{{Name: "judge", Strength: "deep"}}
	return g, nil
}

// end looks whether the turn may end.
func (k *gatekeeper) end(ctx context.Context, g *verify.Gate, t verify.Turn, ev dialect.Event) dialect.Decision {
	// Whatever checks leave behind comes to this process, which looks after
	// nothing else any more.
	g.Verifier.Subreaper = k.app.inherits()
	ctx, stop := whileParentLives(ctx)
	defer stop()
	v, err := g.End(ctx, t)
	if err != nil {
		k.warn("the turn ends, for it could not be found out whether its work is done", err)
	}
	if v.Result != nil && v.Result.Status == verify.Error {
		for _, i := range v.Result.Issues {
			k.warn("the turn was not judged: "+v.Result.ID, errors.New(i.Message))
		}
	}
	if !v.Block {
		if v.Result != nil && v.Result.Status == verify.Failed {
			k.warn("the turn ends although its work is not done", errors.New(v.Why))
		}
		return dialect.Decision{}
	}
	return dialect.Decision{Block: true, Reason: v.Reason}
}

// whileParentLives is a context that ends when the process that started this one
// is gone: a client that gave up, or whose user did, wants no answer any more.
func whileParentLives(ctx context.Context) (context.Context, func()) {
	parent := os.Getppid()
	ctx, cancel := context.WithCancelCause(ctx)
	done := make(chan struct{})
	go func() {
		tick := time.NewTicker(200 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
				if os.Getppid() != parent {
					cancel(errors.New("the client ended the hook before the checks were through"))
					return
				}
			}
		}
	}()
	return ctx, func() { close(done); cancel(nil) }
}

// afterFailure starts a quick verification that nobody waits for, and says what
// an earlier one found.
func (k *gatekeeper) afterFailure(ctx context.Context, g *verify.Gate, t verify.Turn) string {
	told := k.told(ctx, g, t)
	args := []string{
		"verify", "--if-free", "--trigger", verify.ToolFailure, "--profile", "quick", "--session", t.Session, "--client", t.Client,
		"--timeout-seconds", fmt.Sprint(int(g.Timeout / time.Second)),
	}
	// What the session committed is its own work, too.
	if base, err := g.BaseOf(ctx, t); err != nil {
		k.warn("what was there when the session began is not known", err)
	} else if base != "" {
		args = append(args, "--base", base)
	}
	_, err := proc.Start(proc.Cmd{Path: k.app.Program, Dir: k.dir, Env: k.app.Environ, NewSession: true, Args: args})
	if err != nil {
		k.warn("nothing is verified after the failure", err)
	}
	return told
}

// told is what a verification after a failure found, once.
func (k *gatekeeper) told(ctx context.Context, g *verify.Gate, t verify.Turn) string {
	text, err := g.Tell(ctx, t)
	if err != nil {
		k.warn("what was verified after a failure is not told", err)
	}
	return text
}

// lastWords are the agent's last message, from the end of a transcript of Copilot
// CLI: its hooks are not told. "" where there is none to be found.
func lastWords(transcript string) string {
	const end = 256 << 10
	f, err := durable.Open(transcript)
	if err != nil {
		return ""
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return ""
	}
	if fi.Size() > end {
		if _, err := f.Seek(-end, io.SeekEnd); err != nil {
			return ""
		}
	}
	data, err := io.ReadAll(io.LimitReader(f, end))
	if err != nil {
		return ""
	}
	lines := bytes.Split(data, []byte{'\n'})
	for i := len(lines) - 1; i >= 0; i-- {
		var l struct {
			Type string `json:"type"`
			Data struct {
				Content string `json:"content"`
			} `json:"data"`
		}
		if json.Unmarshal(lines[i], &l) != nil {
			continue // cut at the beginning, or not written to its end
		}
		if l.Type == "assistant.message" && l.Data.Content != "" {
			return l.Data.Content
		}
	}
	return ""
}

// notified is the handler of notifications, and has no policy: what a client only
// tells of decides nothing, is no event, and is never answered. It is a line in
// the log for who looks for it.
func (h *hookRun) notified(ev *dialect.Event) {
	if log, err := h.app.Logger(); err == nil {
		log.Debug("hook: notification", "client", ev.Client, "session", ev.Session, "type", ev.Reason)
	}
}

// sayUntrusted says in the log, at the end of a turn, that a project has checks
// and that they were not run, for nobody approved them.
func (h *hookRun) sayUntrusted() {
	home := h.made.Home
	if home == nil || home.Project == nil || home.Project.Verify.Empty() {
		return
	}
	if t, err := home.Paths.Trust(home.Project); err == nil && t.Approved {
		return // the gates are off
	}
	if log, err := h.app.Logger(); err == nil {
		log.Info("hook: the project's checks were not run, for they are not approved; `reprise trust` shows them and asks", "project", home.Project.Name)
	}
}
