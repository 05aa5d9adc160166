// Package compile makes plans for the hook program: it reads the settings and
// the project and writes down what they come to, with the stamps of all that
// was read. It is part of the full program, for it needs what the hook program
// must not link.
//
// It writes <cache>/hooks/<key>.plan, through package durable, and removes
// plans that have not been made anew for a month; it takes no lock.
package compile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"reprise/internal/config"
	"reprise/internal/config/place"
	"reprise/internal/delegation"
	"reprise/internal/durable"
	"reprise/internal/event/quick"
	"reprise/internal/hook/plan"
	"reprise/internal/redact/suspect"
)

// Options say what a plan is made for.
type Options struct {
	Env     config.Env // Dir is where the session lives
	Flag    string     // --config; a plan made with it is not written
	Host    string
	Program string // the full program, absolute
	Hand    []string
	Tell    []string // of Hand, what the recall program deals with where it can
}

// Made is what came out.
type Made struct {
	Plan *plan.Plan
	Home *config.Home
	// Lasting says that the plan's stamps tell every later change, so that it
	// may be written; Why says what keeps it from that.
	Lasting bool
	Why     string
	// Lost is the project whose approved file is gone.
	Lost *config.Lost
}

// Make works out the plan. Where the settings or the project cannot be read,
// the plan that held before is used if there is one: whose the events are does
// not change because a file is broken. The error says what is broken; Made is
// nil where nothing is known.
func Make(o Options) (*Made, error) {
	key := plan.Key{Dir: o.Env.Dir, Vars: plan.Vars(place.Vars(), o.Env.Get)}
	paths, err := config.FindPaths(o.Env)
	if err != nil {
		return nil, err
	}
	o.Env.Dir = nearest(o.Env.Dir)
	at := o.Env.Now()
	before := see(inputs(o, paths, nil))
	home, err := config.Open(o.Env, o.Flag)
	var taken *config.NameTakenError
	if errors.As(err, &taken) {
		// Whose the project's name is decides where its events go; until a person has said
		// that, they are kept as those of a directory without a project are, and told to
		// sessions in the same directory later on.
		if m := nobodys(o, paths, key); m != nil {
			return m, err
		}
	}
	if err != nil {
		if old := last(paths.Cache, key, quick.HostName(o.Host)); old != nil {
			return &Made{Plan: old, Why: "the settings or the project cannot be read"}, err
		}
		return nil, err
	}
	m := &Made{Home: home, Lasting: true}
	list := inputs(o, paths, home)
	if home.Project == nil {
		if m.Lost, err = paths.Lost(o.Env, o.Env.Dir); err != nil {
			return nil, err
		}
		if m.Lost != nil {
			list = append(list, paths.TrustFile(m.Lost.Project))
		}
	}
	if home.Project != nil {
		if t, err := paths.Trust(home.Project); err == nil && t.Was != "" {
			list = append(list, paths.TrustFile(&config.Project{Name: t.Was}))
		}
	}
	after := see(list)
	for _, s := range after {
		i := slices.IndexFunc(before, func(b plan.Stamp) bool { return b.Path == s.Path })
		switch {
		case i >= 0 && before[i] != s:
			m.Lasting, m.Why = false, s.Path+" changed meanwhile"
		case !s.Settled(at):
			m.Lasting, m.Why = false, s.Path+" has only just changed"
		}
	}
	if o.Flag != "" {
		m.Lasting, m.Why = false, "the settings were named on the command line"
	}
	p := &plan.Plan{
		Key: key, Host: quick.HostName(o.Host), Program: o.Program, Events: home.EventsDir(), Data: paths.Data,
		Log: home.LogFile(), LogMax: int64(home.Settings.Logging.MaxSizeMB) << 20,
		Rules: rules(home, m.Lost != nil), Hand: o.Hand, Stamps: after,
	}
	guarding := Guard(home, home.Env, o.Program)
	p.Rules.Guard = guarding.Lines()
	if home.Project != nil {
		p.Project, p.Root = home.Project.Name, home.Project.Root
	}
	for _, k := range p.Rules.GateKinds {
		if !slices.Contains(p.Hand, k) {
			p.Hand = append(slices.Clone(p.Hand), k)
		}
	}
	if p.Home, err = encodeHome(home); err != nil {
		return nil, err
	}
	if home.Settings.Recall.Embeddings.URL == "" { // what asks an endpoint is not in that program
		p.Tell = slices.DeleteFunc(slices.Clone(o.Tell), p.Rules.Gates)
	}
	m.Plan = p
	return m, nil
}

// nobodys is the plan for a directory whose project has no name of its own; nil where the
// user's settings cannot be read.
func nobodys(o Options, paths config.Paths, key plan.Key) *Made {
	settings, source, err := config.Load(o.Env, paths, o.Flag)
	if err != nil {
		return nil
	}
	home := &config.Home{Env: o.Env, Paths: paths, Settings: settings, Source: source}
	p := &plan.Plan{
		Key: key, Host: quick.HostName(o.Host), Program: o.Program, Events: home.EventsDir(), Data: paths.Data,
		Log: home.LogFile(), LogMax: int64(home.Settings.Logging.MaxSizeMB) << 20, Rules: rules(home, false),
	}
	guarding := Guard(home, home.Env, o.Program)
	p.Rules.Guard = guarding.Lines()
	return &Made{Plan: p, Why: "the project's name is another's"}
}

// Write puts the plan where the hook program looks for it.
func (m *Made) Write(cache string, now time.Time) error {
	if !m.Lasting {
		return nil
	}
	data, ok := m.Plan.Encode()
	if !ok || suspect.String(string(data)) {
		// A name that a plan cannot hold, or one that may hold a secret, which
		// nothing of ours repeats on disk: each event is then done in full.
		return nil
	}
	file := m.Plan.Key.File(cache)
	if err := durable.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return fmt.Errorf("write the hooks' plan: %w", err)
	}
	if err := durable.WriteFile(file, data, 0o600); err != nil {
		return fmt.Errorf("write the hooks' plan: %w", err)
	}
	return sweep(filepath.Dir(file), now)
}

const (
	keepPlans = 30 * 24 * time.Hour
	manyPlans = 200
)

// sweep removes old plans where there are many. One that is still wanted is
// made again.
func sweep(dir string, now time.Time) error {
	entries, err := durable.ReadDir(dir)
	if err != nil || len(entries) < manyPlans {
		return err
	}
	for _, e := range entries {
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() && now.Sub(info.ModTime()) > keepPlans {
			if err := durable.Remove(filepath.Join(dir, e.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	return nil
}

// last is the plan of the key that held before, whatever has changed since.
func last(cache string, key plan.Key, host string) *plan.Plan {
	data, err := plan.ReadFile(key.File(cache), 1<<20)
	if err != nil {
		return nil
	}
	p, err := plan.Parse(data)
	if err != nil || p.Key != key || p.Host != host {
		return nil
	}
	return p
}

// nearest is the directory, or what is left of the way to it: a session whose
// directory was removed goes on in its project.
func nearest(dir string) string {
	for d := dir; filepath.IsAbs(d); d = filepath.Dir(d) {
		if info, err := os.Stat(d); err == nil && info.IsDir() || d == filepath.Dir(d) {
			return d
		}
	}
	return dir
}

func see(paths []string) []plan.Stamp {
	out := make([]plan.Stamp, len(paths))
	for i, p := range paths {
		out[i] = plan.See(p)
	}
	return out
}

// inputs are the paths that decide what config.Open comes to: more than it
// reads is fine, less is not. A file that is not there counts too, for it may
// come. home is nil before it was read; then what only the project tells is
// left out.
func inputs(o Options, paths config.Paths, home *config.Home) []string {
	var list []string
	add := func(path string) {
		if !slices.Contains(list, path) {
			list = append(list, path)
		}
	}
	dir := o.Env.Dir
	add(dir)
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		real = dir
	}
	add(real)
	add(settingsFile(o, paths))
	add(o.Program)
	var rels []string // the directories on the way, from the nearest one
	for d := real; ; d = filepath.Dir(d) {
		rels = append(rels, d)
		add(config.ProjectFile(d))
		dot := filepath.Join(d, ".git")
		add(dot)
		worktree(dot, rels, add)
		if d == filepath.Dir(d) {
			break
		}
	}
	if h, err := o.Env.Home(); err == nil {
		add(h)
	}
	if home != nil && home.Project != nil {
		add(home.Project.File())
		add(filepath.Join(paths.ProjectDir(home.Project.Name), "project.json"))
		add(filepath.Join(paths.ProjectDir(home.Project.Name), "trust.json"))
		add(config.GitConfigOf(home.Project.Main))
		add(filepath.Join(home.Project.Main, ".git"))
	}
	return list
}

// worktree adds what the .git file of a linked worktree leads to: git's own pointers,
// and what makes a project of a directory of the main checkout, there and in a
// repository within it.
func worktree(dot string, below []string, add func(string)) {
	gitdir, ok := config.GitPointer(dot, "gitdir: ")
	if !ok {
		return
	}
	add(filepath.Join(gitdir, "commondir"))
	add(filepath.Join(gitdir, "gitdir"))
	if back, ok := config.GitPointer(filepath.Join(gitdir, "gitdir"), ""); ok {
		add(back)
	}
	common := filepath.Dir(filepath.Dir(gitdir)) // <main>/.git/worktrees/<name>
	main := config.MainCheckout(common)
	if filepath.Base(common) != ".git" { // a submodule's says where that is checked out
		add(filepath.Join(common, "config"))
		add(filepath.Join(common, "config.worktree"))
	}
	if main == "" {
		return
	}
	for _, d := range below {
		rel, err := filepath.Rel(filepath.Dir(dot), d)
		if err != nil {
			continue
		}
		there := filepath.Join(main, rel)
		add(config.ProjectFile(there))
		inner := filepath.Join(there, ".git")
		add(inner)
		worktree(inner, nil, add)
	}
}

// settingsFile is the file that config.Load reads, or would read if it came.
func settingsFile(o Options, paths config.Paths) string {
	for _, name := range []string{"REPRISE_CONFIG", "MCP_BRIDGE_CONFIG"} {
		if v := o.Env.Get(name); v != "" {
			if file, err := o.Env.Expand(v); err == nil {
				return file
			}
			return paths.ConfigFile // config.Load fails, and no plan is made
		}
	}
	return paths.ConfigFile
}

// Delegation is what the settings say of delegation; its free paths are those
// beside the built-in ones.
func Delegation(s config.Delegation) delegation.Rules {
	return delegation.Rules{
		Tiers: s.Tiers, Free: s.Free,
		Conductor:     delegation.Limits{Warn: s.ConductorWarn, Block: s.ConductorBlock},
		SectionLeader: delegation.Limits{Warn: s.SectionLeaderWarn, Block: s.SectionLeaderBlock},
	}
}

// rules are what settings and project say of hooks: what the project says of a
// tool or a role holds in place of what the settings say of it, once the user
// approved the project's file.
func rules(home *config.Home, lost bool) plan.Rules {
	s := home.Settings
	var project config.Project
	trusted, lapsed := false, lost
	if home.Project != nil {
		if len(home.Project.Asks) > 0 {
			project = *home.Project
		}
		// The file may be another one than that which was read before: what is
		// approved counts as it stands in the text that was approved.
		if t, err := home.Paths.Trust(home.Project); err == nil && t.Approved {
			project, trusted = *t.Says, true
		} else {
			lapsed = err == nil && t.Lapsed()
		}
	}
	r := plan.Rules{
		Record: s.Hooks.Record == "on", Recall: s.Hooks.Recall == "on", Jobs: s.Hooks.Jobs == "on",
		DeadlineMS: s.Hooks.DeadlineMS, Off: slices.Clone(s.Hooks.Off),
	}
	for i, c := range config.HookClients() {
		for _, k := range s.Hooks.Clients[i].Off {
			r.Off = append(r.Off, c+":"+k)
		}
	}
	for i, role := range config.Roles() {
		kinds := s.Profiles[i].HooksOff
		if of, ok := project.RoleHooksOff[role]; ok && trusted {
			kinds = of
		}
		for _, k := range kinds {
			r.Off = append(r.Off, role+":"+k)
		}
	}
	for i, t := range config.ToolKinds() {
		how := s.Tools[i].Record
		if of, ok := project.ToolRecords[t]; ok && trusted {
			how = of
		}
		if how != "all" {
			r.Tools = append(r.Tools, t+":"+how)
		}
	}
	r.Delegation = Delegation(s.Delegation)
	r.RepoOff, r.Trusted = project.HooksOff, trusted && len(project.HooksOff) > 0
	if trusted {
		gates(&r, s.Gates, project.Verify)
	}
	if lapsed && s.Gates.Stop != "off" {
		// It says that nothing is checked any more, and needs no time for checks.
		r.GateMS, r.GateKinds = int(gateReserve/time.Millisecond), lapsedKinds()
	}
	return r
}

// lapsedKinds are the events at which it is said that gates are off.
func lapsedKinds() []string { return []string{"session_start", "prompt", "response"} }

// LostHome is the installation as it is without the project's file, and the project that
// is lost by that; nil, nil where there is none, or gates are off in any case.
func LostHome(env config.Env, flag string) (*config.Home, *config.Lost) {
	env.Dir = nearest(env.Dir)
	paths, err := config.FindPaths(env)
	if err != nil {
		return nil, nil
	}
	settings, source, err := config.Load(env, paths, flag)
	if err != nil || settings.Gates.Stop == "off" {
		return nil, nil
	}
	lost, err := paths.Lost(env, env.Dir)
	if err != nil || lost == nil {
		return nil, nil
	}
	return &config.Home{Env: env, Paths: paths, Settings: settings, Source: source, Project: lost.Project}, lost
}

// LostAt reports whether a lost project has something said at events of the kind.
func LostAt(kind string) bool { return slices.Contains(lapsedKinds(), kind) }

// gateReserve is what the gate needs beside the time for its checks: to look at
// the tree, to copy it, to end what is left and to clear up.
const gateReserve = 15 * time.Second

// gates are the rules for the end of turns, where the project's checks are
// trusted and the user has gates on.
func gates(r *plan.Rules, s config.Gates, v *config.Verify) {
	if v == nil || s.Stop == "off" && s.Subagent == "off" {
		return
	}
	r.GateMS = int(time.Duration(s.TimeoutSeconds)*time.Second/time.Millisecond) + int(gateReserve/time.Millisecond)
	r.GateKinds = []string{"session_start"}
	if s.Stop != "off" {
		r.GateKinds = append(r.GateKinds, "response")
	}
	if s.Subagent != "off" {
		r.GateKinds = append(r.GateKinds, "subagent_started", "subagent_finished")
	}
	if v.OnFailure {
		r.GateKinds = append(r.GateKinds, "tool_failed", "prompt")
	}
}
