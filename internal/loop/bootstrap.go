package loop

import (
	"cmp"
	"context"
	_ "embed" // the bootstrap
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"reprise/internal/agent"
	"reprise/internal/loop/checkout"
	"reprise/internal/loop/core"
	"reprise/internal/loop/said"
	"reprise/internal/queue"
	"reprise/internal/run"
)

//go:embed bootstrap.md
var bootstrap string

// Bootstrap is the template that holds where a project has none of its own.
func Bootstrap() string { return bootstrap }

// Variables are the names that a template may use, in order.
func Variables() []string {
	return slices.Sorted(maps.Keys(values(facts{})))
}

// facts are what a session is told.
type facts struct {
	project, actor, session string
	iteration               int
	item                    queue.Item
	place                   Place
	asks                    string // directory
	previous                string
	minutes, turns          int
	usd                     float64
	gates                   string
	answer                  string
	rig                     string
	program                 string // reprise
}

func values(f facts) map[string]string {
	return map[string]string{
		"SESSION_ID": f.session, "ITERATION": strconv.Itoa(f.iteration), "WORK_ITEM": f.item.ID, "RIG": cmp.Or(f.rig, f.project),
		"PROJECT": f.project, "ACTOR": f.actor, "TITLE": f.item.Title, "BODY": core.Indent(cmp.Or(f.item.Body, f.item.Title)),
		"LABELS":  cmp.Or(strings.Join(f.item.Labels, ", "), "none"),
		"ATTEMPT": strconv.Itoa(f.item.Attempts + 1), "MAX_ATTEMPTS": strconv.Itoa(f.item.Limit()),
		"SOURCE": cmp.Or(f.item.Source, "none"), "TASK": cmp.Or(f.item.Task, "none"),
		"WORKSPACE": f.place.Dir, "BRANCH": cmp.Or(f.place.Branch, "none"), "BASE": cmp.Or(f.place.Base, "none"),
		"INTERRUPT_FILE": filepath.Join(f.asks, askFile), "ERROR_FILE": filepath.Join(f.asks, errorFile),
		"PROGRESS_FILE": filepath.Join(f.asks, progressFile),
		"PREVIOUS":      strings.TrimSpace(cmp.Or(f.previous, "Nobody has worked on this item before.") + "\n\n" + buildsOn(f.item, f.place)),
		"ANSWER":        f.answer, "GATES": cmp.Or(f.gates, "The project's own checks, where it has any."),
		"MINUTES": strconv.Itoa(f.minutes), "TURNS": strconv.Itoa(f.turns), "REPRISE": cmp.Or(f.program, "reprise"), "BUDGET_USD": strconv.FormatFloat(f.usd, 'f', 2, 64),
	}
}

// CheckTemplate says what is wrong with a template, before anything is begun by it.
func CheckTemplate(template string) error {
	_, err := core.Render(template, values(facts{}))
	return err
}

// request is what a claim's run is started with.
func (l *Loop) request(ctx context.Context, a core.Action) (run.Request, error) {
	it, err := l.opt.Queue.Get(ctx, a.Claim.Item.ID)
	if err != nil {
		return run.Request{}, err
	}
	p, err := l.place(ctx, a.Claim, false)
	if err != nil {
		return run.Request{}, err
	}
	if a.From == nil {
		a.From = said.Answered(it)
	}
	l.mu.Lock()
	loopID, iteration := l.s.Loop, l.s.Slots[a.Slot].Iteration
	l.mu.Unlock()
	r := l.route(it)
	if r.USD > 0 {
		a.USD = min(a.USD, r.USD)
	}
	if r.Timeout > 0 {
		a.Time = min(a.Time, r.Timeout)
	}
	f := facts{
		project: l.opt.Project, actor: l.opt.Actor, session: sessionOf(loopID, a.Claim), iteration: iteration, item: it, place: p,
		asks: l.asks(a.Claim), turns: r.Turns, minutes: int(a.Time / time.Minute), usd: a.USD, rig: lookEnv(l.opt.Env, "BD_RIG"), program: l.opt.Program,
	}
	resume, home, after := "", "", ""
	if c := a.From; c != nil { // a client finds a session by the directory in which it was
		f.answer, f.previous = c.Answer, l.previous(c)
		if !c.Fresh && c.Session != "" {
			if before, err := l.opt.Runs.Get(c.Run); err == nil && before.Client == clientOf(r.Client) && homeIsThere(before) && before.WorkDir == p.Dir {
				resume, f.session, home, after = c.Session, c.Session, before.Command.Home, before.ID
			}
		}
	}
	vars := values(f)
	for name, v := range vars {
		vars[name] = core.Plain(v)
	}
	prompt, err := core.Render(cmp.Or(l.opt.Template, bootstrap), vars)
	if err != nil {
		return run.Request{}, err
	}
	req := run.Request{
		Task: core.Plain(firstWords(it, a.From, resume != "")), SystemPrompt: prompt, Model: r.Model, WorkDir: p.Dir, AddDirs: []string{l.asks(a.Claim)},
		Timeout: a.Time, Client: r.Client, ScriptFile: l.opt.ScriptFile, IdempotencyKey: runKey(a.Claim), Detach: true,
		Env: l.opt.Env, Origin: "loop",
		// What it logs, learns and decides are proposals, on the branch of its own agent.
		AllowStateWrite: true,
		Work: &run.Work{
			Work:     agent.Work{AllowedTools: r.Tools, Resume: resume, Home: home, Vars: l.vars(f)},
			MaxTurns: r.Turns, MaxBudgetUSD: a.USD, Grace: StopGrace, Session: f.session, After: after,
		},
	}
	if l.opt.Configure != nil {
		if err := l.opt.Configure(&req); err != nil {
			return req, err
		}
	}
	return req, nil
}

// route is how the runs of an item go.
func (l *Loop) route(it queue.Item) Route {
	var r Route
	if l.opt.Route != nil {
		r = l.opt.Route(it)
	}
	r.Client = cmp.Or(l.opt.Only, it.Agent, r.Client, l.opt.Client)
	return r
}

// homeIsThere reports whether the home is there in which the session of a run is. It is
// in the directory of the first run of the session, unless that was removed.
func homeIsThere(r run.Record) bool {
	if r.Command.Home == "" {
		return true
	}
	info, err := os.Stat(r.Command.Home)
	return err == nil && info.IsDir()
}

// clientOf is the client as the record of a run has it.
func clientOf(name string) string { return cmp.Or(name, agent.KindClaude) }

// firstWords are what a session begins with: short, for the rest is in its system
// prompt. A session that is gone on with has that already.
func firstWords(it queue.Item, from *core.Continuation, resumed bool) string {
	var b strings.Builder
	if resumed {
		fmt.Fprintf(&b, "Go on with the item %s: %s\n", it.ID, it.Title)
	} else {
		// The title first: by their first words sessions are found and summed up later.
		fmt.Fprintf(&b, "%s\n\nYou were started by the loop. Read what you were told of this session, and begin the work on the item %s: %s\n", it.Title, it.ID, it.Title)
	}
	switch {
	case from == nil:
	case from.Answer != "":
		asked, answered := core.Exchange(from)
		if from.Asked != "" {
			fmt.Fprintf(&b, "\n%s:\n%s\n", asked, core.Indent(clip(from.Asked, maxAsk)))
		}
		fmt.Fprintf(&b, "\n%s:\n%s\n", answered, from.Answer)
	case from.Why == string(core.Asked) || from.Why == string(core.Reported):
		b.WriteString("\n" + core.Unanswered + "\n")
	}
	if resumed && it.LastError != "" {
		fmt.Fprintf(&b, "\nWhy it was not done the last time:\n%s\n", it.LastError)
	}
	return b.String()
}

// vars are the variables of a session's environment: those of the spawning design, our
// own, and the names that older harnesses read.
func (l *Loop) vars(f facts) []string {
	ask := filepath.Join(f.asks, askFile)
	out := []string{
		"SESSION_ID=" + f.session, "HARNESS_SESSION=true", "INTERRUPT_FILE=" + ask, "ERROR_FILE=" + filepath.Join(f.asks, errorFile),
		"PROGRESS_FILE=" + filepath.Join(f.asks, progressFile), "ITERATION=" + strconv.Itoa(f.iteration), "WORK_ITEM=" + f.item.ID, "REPRISE_ACTOR=" + f.actor,
		"BD_ACTOR=" + cmp.Or(lookEnv(l.opt.Env, "BD_ACTOR"), f.actor), "BD_RIG=" + cmp.Or(f.rig, f.project),
	}
	for _, name := range slices.Sorted(maps.Keys(f.place.Vars)) {
		out = append(out, name+"="+f.place.Vars[name])
	}
	return out
}

func lookEnv(env []string, name string) string {
	for i := len(env) - 1; i >= 0; i-- {
		if v, ok := strings.CutPrefix(env[i], name+"="); ok {
			return v
		}
	}
	return ""
}

// previous is what a new session is told of the one before.
func (l *Loop) previous(c *core.Continuation) string {
	var b strings.Builder
	if c.Run != "" {
		fmt.Fprintf(&b, "Another session has worked on this item before you (%s); it ended so: %s.\nIts changes are in your workspace.\n", c.Run, cmp.Or(c.Why, "unknown"))
	}
	if c.Asked != "" {
		asked, _ := core.Exchange(c)
		fmt.Fprintf(&b, "\n%s:\n\n%s\n", asked, core.Indent(clip(c.Asked, maxAsk)))
	}
	if c.Answer != "" {
		fmt.Fprintf(&b, "\nA person has said to it:\n\n%s\n", core.Indent(c.Answer))
	}
	if c.Answer == "" && (c.Why == string(core.Asked) || c.Why == string(core.Reported)) {
		b.WriteString("\n" + core.Unanswered + "\n")
	}
	if r, err := l.opt.Runs.Get(c.Run); err == nil {
		if text, err := checkout.ReadStart(filepath.Join(r.Dir(), summaryFile), 8<<10); err == nil {
			fmt.Fprintf(&b, "\nWhat was kept of it, for you to judge:\n\n%s\n", core.Indent(text))
		}
	}
	return b.String()
}
