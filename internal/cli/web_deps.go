package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"reprise/internal/config"
	"reprise/internal/event"
	"reprise/internal/git"
	"reprise/internal/learn"
	"reprise/internal/learn/scopes"
	"reprise/internal/loop"
	"reprise/internal/memory"
	"reprise/internal/proc"
	"reprise/internal/queue"
	"reprise/internal/recall"
	"reprise/internal/session"
	"reprise/internal/setup"
	"reprise/internal/staterepo"
	"reprise/internal/web"
)

// webDeps is what the dashboard shows and changes.
func (a *App) webDeps(home *config.Home) (web.Deps, error) {
	d := web.Deps{Version: Version(), Now: a.Env.Now}
	d.Events = &web.Log{Dir: home.EventsDir(), What: func(e event.Event) string { return eventWhat(e, 200) }}
	var err error
	if d.Log, err = a.Logger(); err != nil {
		return d, err
	}
	if d.Runs, err = a.Runs(); err != nil {
		return d, err
	}
	d.RunDirs = func() []string { return a.otherRuns(home) }
	a.patience = web.FleetPatience
	if d.Queue, err = a.Queue(proc.ID{}); err != nil {
		return d, err
	}
	d.Waits = func(context.Context) ([]web.Wait, error) { return a.webWaits(home) }
	d.Client = func() bool {
		su := setupFor(a, home)
		return slices.ContainsFunc(setup.Clients(), func(c string) bool { return su.Found(c, a.lookPath) })
	}
	if d.Fleet, err = a.elsewhere(context.Background(), "dashboard"); err != nil {
		return d, err
	}
	if d.Fleet != nil { // requests come side by side, and share one queue
		own, others := d.Fleet.Project, d.Fleet.Queue
		d.Fleet.Queue = func(project string) (queue.Queue, error) {
			if project == own {
				return d.Queue, nil
			}
			return others(project)
		}
	}
	if d.Memory, err = a.webMemory(home); err != nil {
		return d, err
	}
	if d.Guard, err = a.webGuard(home); err != nil {
		return d, err
	}
	if d.Policy, err = a.webPolicy(home); err != nil {
		return d, err
	}
	if p := home.Project; p != nil {
		d.Project, d.Root = p.Name, p.Root
		d.LoopDir = filepath.Join(home.Paths.ProjectDir(p.Name), "loop")
		d.Unmerged = func(ctx context.Context) ([]loop.Iteration, error) { return a.toMerge(ctx, d.LoopDir, "") }
		store, _, err := a.Tasks()
		if err != nil {
			return d, err
		}
		d.Tasks = store
		d.Checks = &web.Checks{Files: []string{p.File(), home.Paths.TrustFile(p)}, State: func(context.Context) (web.CheckState, error) { return checkState(home) }}
		if d.State, err = a.webState(home); err != nil {
			return d, err
		}
		d.Claim = func(ctx context.Context) error { return conflict(a.claim(ctx)) }
	}
	return d, nil
}

// webWaits is what settings wait for: that a person connects a client, approves what a
// project's ask for, and the hooks in a client's. Both are read anew, for they are changed beside the dashboard.
func (a *App) webWaits(home *config.Home) (out []web.Wait, err error) {
	now := *home
	if p := home.Project; p != nil {
		env := a.Env
		env.Dir = p.Root
		if now.Project, err = config.FindProject(env, p.Root); err != nil {
			return nil, err
		}
	}
	var s standing
	err = errors.Join(a.standClients(&s, &now), a.standTrust(&s, &now))
	out = nobodyConnected(s.Clients)
	for _, w := range s.Waits {
		out = append(out, web.Wait(w))
	}
	return out, err
}

// checkState is how the checks of a project stand by which a loop judges what is done.
func checkState(home *config.Home) (s web.CheckState, err error) {
	trust, err := home.Paths.Trust(home.Project)
	if err != nil && trust.Hash == "" {
		return s, err
	}
	var names []string
	profiles := config.VerifyProfiles()
	for _, c := range trust.Says.Verify.ChecksOf(profiles[len(profiles)-1]) {
		names = append(names, c.Name)
	}
	switch {
	case len(names) == 0:
		s.Text = "This project has no checks: an item is done when its run ended well and something came of it. Checks of your own stand under verify in .reprise/project.yaml."
	case !trust.Approved:
		s = web.CheckState{Warn: true, Command: "reprise trust", Text: "The checks of this project are not approved, so none of them runs: what is done was not checked. A loop that runs takes an approval up when it is started anew."}
		if trust.Before != "" {
			s.Text = "The settings of this project have changed since you approved them, so none of its checks runs: what is done was not checked. A loop that runs takes an approval up when it is started anew."
		}
	default:
		s.Text = "An item is done when these checks pass, as far as the risk of its change asks for them: " + strings.Join(names, ", ")
	}
	return s, nil
}

// webMemory is the memory for the dashboard. What of it is opened late in a command is
// opened here, before requests come side by side.
func (a *App) webMemory(home *config.Home) (*web.Remembering, error) {
	files, err := a.Layers()
	if err != nil {
		return nil, err
	}
	known, err := a.Remembered()
	if err != nil {
		return nil, err
	}
	knowledge, err := a.Scopes()
	if err != nil {
		return nil, err
	}
	m := &web.Remembering{Files: files, Knowledge: knowledge, Ready: a.finishForgetting, Saved: func(ctx context.Context, c scopes.Change) {
		a.saveGlobal(ctx, c.Project, savedAs(c))
	}}
	m.Sessions = func(ctx context.Context, fn func(learn.Stats) bool) error {
		return known.Organizer.SessionStats(ctx, func(s learn.Stats) bool {
			return home.Project != nil && s.Project != home.Project.Name || fn(s)
		})
	}
	m.WorkOut = func(ctx context.Context, budget time.Duration) (bool, error) {
		r, err := known.Organizer.Run(ctx, budget)
		return r.More, err
	}
	m.Logs = []string{home.Paths.Events("")}
	for _, name := range session.Projects(home) {
		m.Logs = append(m.Logs, home.Paths.Events(name))
	}
	asked := func(ctx context.Context, q recall.Question) (recall.Question, error) {
		reader, err := a.reader()
		if err != nil {
			return q, err
		}
		reader.All, reader.Wide = q.All, q.Wide
		q.Reader = reader
		q.Policy, err = known.Policy(ctx, q.Reader, q.AsOf)
		return q, err
	}
	m.Recall = func(ctx context.Context, q recall.Question) (recall.Answer, error) {
		if _, err := known.Organizer.Run(ctx, 0); err != nil {
			return recall.Answer{}, err
		}
		q, err := asked(ctx, q)
		if err != nil {
			return recall.Answer{}, err
		}
		return known.Index.Recall(ctx, q)
	}
	if files[0].Scope() == memory.ScopeProject {
		m.CreateHere = files[0].Store.Create
	}
	m.Classes = leftClasses()
	m.Latest = func(ctx context.Context, q recall.Question) (recall.Answer, bool, error) {
		q, err := asked(ctx, q)
		if err != nil {
			return recall.Answer{}, false, err
		}
		return answerTo(ctx, known.Index, q)
	}
	for _, l := range files {
		m.Dirs = append(m.Dirs, l.Store.Dir(), filepath.Join(l.Store.Dir(), "blocks"))
		if l.Entries != nil {
			m.Dirs = append(m.Dirs, l.Entries.Dir())
		}
	}
	return m, nil
}

// webGuard is what waits for the person's word, for the dashboard.
func (a *App) webGuard(home *config.Home) (*web.Guard, error) {
	q, err := a.pendingQueue()
	if err != nil {
		return nil, err
	}
	g := &web.Guard{Mode: home.Settings.Guard.Mode, Dir: q.dir}
	g.Waiting = func() ([]web.Waiting, error) {
		list, err := q.list()
		var out []web.Waiting
		for _, c := range list {
			out = append(out, web.Waiting{ID: c.ID, Client: c.Client, Tool: c.Tool, Input: c.Input, Cwd: c.Cwd, Rule: c.Rule, Reason: c.Reason,
				Session: c.Session, Run: c.Run, Since: c.At, Until: c.Until})
		}
		return out, err
	}
	g.Answer = func(id string, allow bool, why string) error {
		list, err := q.list()
		if err != nil {
			return err
		}
		// The whole id: what was shown is what is answered.
		if !slices.ContainsFunc(list, func(c pendingCall) bool { return c.ID == id }) {
			return errors.New("this call does not wait any more: it was answered, or its time was over")
		}
		answer := "deny"
		if allow {
			answer = "allow"
		}
		return q.answer(id, answer, why)
	}
	rules, err := a.guardRules()
	if err != nil {
		return nil, err
	}
	var mu sync.Mutex
	var allowed []string // since the settings were read
	g.Proposals = func() ([]web.Proposal, error) {
		name := ""
		if home.Project != nil {
			name = home.Project.Name
		}
		list, err := proposals([]eventLog{{name, home.EventsDir()}}, rules, 2)
		mu.Lock()
		defer mu.Unlock()
		var out []web.Proposal
		for _, p := range list {
			if !slices.Contains(allowed, p.Shape) {
				out = append(out, web.Proposal{Shape: p.Shape, Approved: p.Approved, Example: p.Example, Rules: p.Rules, Last: p.Last})
			}
		}
		return out, err
	}
	g.Allow = func(shapes []string) error {
		mu.Lock()
		defer mu.Unlock()
		err := allowShapes(home, cmp.Or(home.Source, home.Paths.ConfigFile), shapes)
		if err == nil {
			allowed = append(allowed, shapes...)
		}
		return err
	}
	return g, nil
}

// webState is what the project's agents know, for the dashboard.
func (a *App) webState(home *config.Home) (*web.State, error) {
	repo, err := a.State()
	if err != nil {
		return nil, err
	}
	keeper, err := a.Scopes()
	if err != nil {
		return nil, err
	}
	name := home.Project.Name
	s := &web.State{Repo: repo, Shared: home.Paths.ProjectGlobal(name)}
	s.Keep = func(ctx context.Context, n scopes.Note) (scopes.Change, error) {
		if _, _, err := a.ensureState(ctx); err != nil && !errors.Is(err, git.ErrNotInstalled) {
			return scopes.Change{}, err
		}
		n.Project = name
		c, err := keeper.Learn(ctx, n)
		if err == nil {
			a.saveGlobal(ctx, name, savedAs(c))
		}
		return c, err
	}
	s.Promote = func(ctx context.Context, agent, id string) (scopes.Change, error) {
		list, err := repo.Unpromoted(ctx, agent)
		if err != nil {
			return scopes.Change{}, err
		}
		i := slices.IndexFunc(list, func(e staterepo.LogEntry) bool { return e.ID == id })
		if i < 0 {
			return scopes.Change{}, fmt.Errorf("%w: agent %s has no such entry that is not the project's already", staterepo.ErrUnknown, agent)
		}
		c, err := keeper.Adopt(ctx, name, list[i].Entry)
		if err == nil {
			a.saveGlobal(ctx, name, "Promote 1 of agent "+agent)
		}
		return c, err
	}
	return s, nil
}

// webPolicy is what recall ranks by, for the dashboard.
func (a *App) webPolicy(home *config.Home) (*web.Policies, error) {
	known, err := a.Remembered()
	if err != nil {
		return nil, err
	}
	tuner, err := a.tuner(nil)
	if err != nil {
		return nil, err
	}
	var scope learn.PolicyScope
	if home.Project != nil {
		scope.Project = home.Project.Name
	}
	return &web.Policies{
		All: known.Organizer.Policies,
		InForce: func(ctx context.Context) (recall.Policy, error) {
			return known.Organizer.PolicyFor(ctx, scope, time.Time{})
		},
		Rollback: tuner.Rollback,
	}, nil
}
