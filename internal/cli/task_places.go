package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"reprise/internal/config"
	"reprise/internal/durable"
	"reprise/internal/git"
	"reprise/internal/loop"
	"reprise/internal/loop/core"
	"reprise/internal/proc"
	"reprise/internal/queue"
	"reprise/internal/run"
	"reprise/internal/task"
	"reprise/internal/verify"
)

// phasePlaces are worktrees for phases that are worked at side by side. They are made,
// merged and removed as the loop's are.
type phasePlaces struct {
	trees  *loop.Worktrees
	merges mergeChecks

	mu     sync.Mutex
	opened map[string]loop.Place
}

// mergeChecks keeps why the checks on merges failed, which the places only tell as a
// conflict. The zero value is ready.
type mergeChecks struct {
	mu     sync.Mutex
	failed map[string]string // what they said, by the place's name
}

// kept is check with what it says kept.
func (m *mergeChecks) kept(check func(context.Context, loop.Place) (loop.Checked, error)) func(context.Context, loop.Place) (loop.Checked, error) {
	return func(ctx context.Context, p loop.Place) (loop.Checked, error) {
		got, err := check(ctx, p)
		m.mu.Lock()
		defer m.mu.Unlock()
		if delete(m.failed, p.Name); err == nil && got.Gate == core.GateFailed {
			if m.failed == nil {
				m.failed = map[string]string{}
			}
			m.failed[p.Name] = got.Text
		}
		return got, err
	}
}

// conflict says why what was done in a place is not in the main checkout.
func (m *mergeChecks) conflict(p loop.Place) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if text := m.failed[p.Name]; text != "" {
		return "the checks fail on the merge: " + text
	}
	return fmt.Sprintf("what was done conflicts with the main checkout; it is on the branch %s, in %s", p.Branch, p.Dir)
}

// taskPlaces are the places of phases of the project around the working directory.
func (a *App) taskPlaces(ctx context.Context, home *config.Home, noVerify bool) (*phasePlaces, error) {
	root := home.Project.Main
	a.programs = git.KnownPrograms(nil) // what phases make of it has no say in what git runs
	opts := git.Options{Vars: a.Env.Vars, Programs: a.programs}
	if git.Top(root) == "" {
		return nil, usagef("--parallel needs worktrees, and the project is in no git repository")
	}
	if err := a.programs.Learn(ctx, git.New(root, opts).AsUser()); err != nil {
		return nil, err
	}
	if _, err := git.New(root, opts).Run(ctx, "rev-parse", "--verify", "--quiet", "HEAD"); err != nil {
		return nil, usagef("--parallel needs worktrees, and the project's repository has no commit yet")
	}
	if _, _, err := a.ensureState(ctx); err != nil {
		return nil, err
	}
	ws, err := a.Workspaces()
	if err != nil {
		return nil, err
	}
	p := &phasePlaces{opened: map[string]loop.Place{}}
	p.trees = &loop.Worktrees{Workspaces: ws, Git: opts, Root: root, Now: a.Env.Now, Carry: carried(home), Integrate: loop.MergeBranch, KeepConflicting: true}
	if p.trees.Sweep, err = a.sweepRuns(); err != nil {
		return nil, err
	}
	if noVerify {
		return p, nil
	}
	check, _, err := a.loopCheck()
	if err != nil {
		return nil, err
	}
	if check != nil {
		p.trees.Check = p.merges.kept(func(ctx context.Context, pl loop.Place) (loop.Checked, error) {
			c, err := check(ctx, pl, run.Record{})
			if err == nil && c.ID != "" {
				fmt.Fprintf(a.Err, "checks of the merge: %s (`reprise verify show %s`)\n", c.Gate, c.ID)
			}
			return c, err
		})
	}
	return p, nil
}

// Open makes the worktree of a phase, or goes on with the one that an earlier try left.
func (p *phasePlaces) Open(ctx context.Context, name string) (task.Place, error) {
	pl, err := p.trees.Prepare(ctx, queue.Item{ID: name}, 0)
	if err != nil {
		return task.Place{}, err
	}
	p.mu.Lock()
	p.opened[name] = pl
	p.mu.Unlock()
	out := task.Place{Name: name, Dir: pl.Dir}
	for _, v := range slices.Sorted(maps.Keys(pl.Vars)) {
		out.Vars = append(out.Vars, v+"="+pl.Vars[v])
	}
	return out, nil
}

// Close ends the work in a place.
func (p *phasePlaces) Close(ctx context.Context, place task.Place, done bool, message string) (string, error) {
	p.mu.Lock()
	pl := p.opened[place.Name]
	p.mu.Unlock()
	fate := core.Retry
	if done {
		fate = core.Done
	}
	_, conflict, err := p.trees.Finish(ctx, pl, queue.Item{ID: place.Name, Title: message}, fate)
	p.trees.Wait() // the command may end right after this
	if err != nil || !conflict {
		return "", err
	}
	return p.merges.conflict(pl), nil
}

// taskRoutes are who works at what, and how MCP servers that they name are started.
func (a *App) taskRoutes(home *config.Home) (map[string]task.Route, func(string) (json.RawMessage, error), error) {
	trust, err := home.Paths.Trust(home.Project)
	if err != nil && trust.Hash == "" {
		return nil, nil, err
	}
	project := a.projectRoutes(home, trust)
	user := home.Settings.Routes
	named := map[string]json.RawMessage{}
	for _, list := range [][]config.Route{project, user} {
		for _, r := range list {
			for _, s := range r.Work.Servers {
				if def := serverDef(s); def != nil {
					named[s.Name] = def
				}
			}
		}
	}
	find := func(name string) (json.RawMessage, error) {
		def, ok := named[name]
		if !ok {
			var err error
			if def, err = a.userServer(home, name); err != nil {
				return nil, err
			}
		}
		return def, a.serverThere(def)
	}
	return task.Routed(home.Settings.Loop.AllowedTools, user, project), find, nil
}

func serverDef(s config.Server) json.RawMessage {
	if len(s.Command) == 0 {
		return nil
	}
	env := map[string]string{}
	for _, kv := range s.Env {
		name, value, _ := strings.Cut(kv, "=")
		env[name] = value
	}
	def, err := json.Marshal(map[string]any{"type": "stdio", "command": s.Command[0], "args": append([]string{}, s.Command[1:]...), "env": env})
	if err != nil {
		return nil
	}
	return def
}

// userServer is how the user's Claude Code starts a server: in its own scope, or in the
// local one of this project. What the repository brings along in .mcp.json is not
// started unasked.
func (a *App) userServer(home *config.Home, name string) (json.RawMessage, error) {
	type servers struct {
		MCP map[string]json.RawMessage `json:"mcpServers"`
	}
	var all struct {
		servers
		Projects map[string]servers `json:"projects"`
	}
	dir, err := a.Env.Home()
	if err != nil {
		return nil, err
	}
	file := filepath.Join(cmp.Or(a.Env.Get("CLAUDE_CONFIG_DIR"), dir), ".claude.json")
	data, err := durable.Read(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, err
	default:
		if err := json.Unmarshal(data, &all); err != nil {
			return nil, fmt.Errorf("read %s: %w", file, err)
		}
	}
	for _, root := range []string{home.Project.Root, home.Project.Main} {
		if def, ok := all.Projects[root].MCP[name]; ok {
			return def, nil
		}
	}
	if def, ok := all.MCP[name]; ok {
		return def, nil
	}
	var project servers
	if data, err := durable.Read(filepath.Join(home.Project.Root, ".mcp.json")); err == nil && json.Unmarshal(data, &project) == nil {
		if _, ok := project.MCP[name]; ok {
			return nil, fmt.Errorf("it stands in .mcp.json only, which the repository brings along: add it to your own scope (`claude mcp add %s --scope user -- …`), or with its command to the servers of a route in .reprise/project.yaml, and approve that", name)
		}
	}
	return nil, fmt.Errorf("no settings name it: `claude mcp add %s --scope user -- …` does", name)
}

// serverThere says whether the program of a server is there.
func (a *App) serverThere(def json.RawMessage) error {
	var d struct {
		Command string `json:"command"`
		URL     string `json:"url"`
	}
	if err := json.Unmarshal(def, &d); err != nil {
		return fmt.Errorf("how it is started cannot be read: %w", err)
	}
	if d.Command == "" {
		if d.URL != "" {
			return nil // whether it answers is for the client to find out
		}
		return errors.New("how it is started is not said")
	}
	if _, err := proc.LookPath(d.Command, a.Env.Vars, runtime.GOOS); err != nil {
		return fmt.Errorf("its program %s was not found", d.Command)
	}
	return nil
}

// maxPrebuild bounds what is kept of what a prebuild said.
const maxPrebuild = 64 << 10

// prebuild runs what a route wants run before a phase, started as a check of the
// project is.
func (a *App) prebuild(ctx context.Context, dir string, r task.Route) error {
	c := r.Prebuild
	ctx, cancel := context.WithTimeout(ctx, time.Duration(c.TimeoutSeconds)*time.Second)
	defer cancel()
	env := append(slices.Clone(a.Environ), r.Env...)
	program, args, err := verify.Argv(c, dir, env, a.Env.GOOS)
	if err != nil {
		return err
	}
	out, err := proc.Run(ctx, proc.Cmd{Path: program, Args: args, Dir: dir, Env: env}, maxPrebuild)
	if err == nil && out.Exit.Code != 0 {
		err = fmt.Errorf("%s ended with %d: %s", c.Command(), out.Exit.Code, clipText(lastLine(string(out.Stderr)+string(out.Stdout)), 300))
	}
	return err
}

func lastLine(text string) string {
	text = strings.TrimSpace(text)
	return text[strings.LastIndexByte(text, '\n')+1:]
}
