package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pelletier/go-toml/v2"

	"reprise/internal/agent"
	"reprise/internal/agent/scripted"
	"reprise/internal/config"
	"reprise/internal/durable"
	"reprise/internal/loop"
	"reprise/internal/loop/outcome"
	"reprise/internal/queue"
	"reprise/internal/run"
	"reprise/internal/setup"
)

// worker gives runs of the loop what stands in place of their user's settings: our hooks,
// our tool server, and how the client gets at its key.
type worker struct {
	app *App
	env config.Env // where the user's settings are, and reprise's own
	// model are settings of a client by which it asks its model, in place of the
	// user's; nil: the user's.
	model  func(client, home string) error
	tools  []string // of the settings
	script string   // file of steps of the script client, by the settings

	mu    sync.Mutex
	homes map[string]map[string][]byte // files of a client's home, by client
}

func (a *App) newWorker(home *config.Home) *worker {
	return &worker{app: a, env: a.Env, model: a.ownModel, tools: home.Settings.Loop.AllowedTools, script: home.Settings.SubAgent.ScriptFile, homes: map[string]map[string][]byte{}}
}

// configure is for one run.
func (w *worker) configure(r *run.Request) error {
	switch r.Client {
	case agent.KindScript: // else each run would fail by it, and use up an attempt of its item
		if err := checkSteps(cmp.Or(r.ScriptFile, w.script)); err != nil {
			return &outcome.StepsError{Err: err}
		}
		return nil
	case agent.KindClaude:
		return w.claude(r)
	case agent.KindCodex, agent.KindGemini, agent.KindCopilot:
		// Those of the settings are spelt as Claude Code's; a route's are the client's own.
		if slices.Equal(r.Work.AllowedTools, w.tools) {
			r.Work.AllowedTools = nil
		}
		files, err := w.home(r.Client)
		r.Work.HomeFiles = files
		return err
	}
	return nil
}

// checkSteps says what is wrong with a file of steps; "" is the steps that there are without one.
func checkSteps(file string) error {
	if file == "" {
		return nil
	}
	data, err := durable.ReadFile(file, maxSteps)
	if err == nil {
		_, err = scripted.Parse(file, data)
	}
	if err != nil {
		return fmt.Errorf("the steps of the script client cannot be played: %w", err)
	}
	return nil
}

// maxSteps bounds a file of steps, in bytes.
const maxSteps = 16 << 20

func (w *worker) hookProgram() (program string, own bool) {
	program = setup.Beside(w.app.Program, setup.HookProgram)
	info, err := os.Stat(program)
	return program, err == nil && info.Mode().IsRegular()
}

func (w *worker) claude(r *run.Request) error {
	s := setup.Setup{Where: setup.Where{Env: w.env}}
	program, own := w.hookProgram()
	word := "claude-code"
	if !own {
		program, word = w.app.Program, "hook claude-code"
	}
	r.Work.Hooks = map[string]string{}
	for _, event := range setup.HookEvents("claude-code") {
		r.Work.Hooks[event] = s.HookCommand(program, word, event)
	}
	r.Work.Settings = claudeKeys(w.env)
	args := []string{"mcp", "--toolsets", "state,loop"}
	if w.app.ConfigFlag != "" {
		args = append(args, "--config", w.app.abs(w.app.ConfigFlag))
	}
	servers, err := json.Marshal(map[string]any{"mcpServers": map[string]any{setup.Name: map[string]any{"type": "stdio", "command": w.app.Program, "args": args}}})
	if err != nil {
		return err
	}
	r.Work.Servers = servers
	if tool := "mcp__" + setup.Name; !slices.Contains(r.Work.AllowedTools, tool) {
		r.Work.AllowedTools = append(slices.Clone(r.Work.AllowedTools), tool)
	}
	return nil
}

// claudeKeys are the settings of the user's client without which it cannot ask its model.
func claudeKeys(env config.Env) map[string]json.RawMessage {
	path, err := setup.Where{Env: env}.HookFile("claude-code", setup.User)
	if err != nil {
		return nil
	}
	data, err := durable.Read(path)
	if err != nil {
		return nil
	}
	var all map[string]json.RawMessage
	if json.Unmarshal(data, &all) != nil {
		return nil
	}
	out := map[string]json.RawMessage{}
	for _, key := range []string{"apiKeyHelper", "env", "awsAuthRefresh", "awsCredentialExport", "gcpAuthRefresh", "forceLoginMethod"} {
		if v, ok := all[key]; ok {
			out[key] = v
		}
	}
	return out
}

// codexKeys are the settings of the user's Codex without which it cannot ask its model.
var codexKeys = [...]string{"model", "model_provider", "model_providers", "openai_base_url", "model_reasoning_effort", "model_context_window", "preferred_auth_method", "forced_login_method"}

// home are the files of the home that a client gets for the loop's runs: our hooks,
// installed as they are into the user's own, and what it needs to ask its model. They are
// the same for all of its runs.
func (w *worker) home(client string) (map[string][]byte, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if files := w.homes[client]; files != nil {
		return files, nil
	}
	files, err := w.makeHome(client)
	if err != nil {
		return nil, fmt.Errorf("make a home for %s: %w", client, err)
	}
	w.homes[client] = files
	return files, nil
}

func (w *worker) makeHome(client string) (map[string][]byte, error) {
	program, own := w.hookProgram()
	if !own {
		return nil, fmt.Errorf("its hooks run the program %s, and that is not there: install reprise whole", program)
	}
	tmp, err := os.MkdirTemp("", "reprise-loop-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = durable.RemoveAll(tmp) }()
	home := filepath.Join(tmp, "home")
	if err := durable.MkdirAll(home, 0o700); err != nil {
		return nil, err
	}
	if err := w.model(client, home); err != nil {
		return nil, err
	}
	env := w.env.WithoutClientDirs()
	env.Vars["HOME"], env.Vars["USERPROFILE"] = home, home
	s := setup.Setup{Where: setup.Where{Env: env, Dir: home, Root: home}, Paths: config.Paths{Data: filepath.Join(tmp, "notes")}, Now: env.Now}
	if _, err := s.InstallAll(context.Background(), setup.All{
		Request: setup.Request{Client: client, Scope: setup.User, Program: w.app.Program}, HookProgram: program, NoMCP: true,
	}); err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	err = filepath.WalkDir(home, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(home, path)
		if err != nil {
			return err
		}
		files[rel], err = durable.Read(path)
		return err
	})
	return files, err
}

// ownModel writes into a client's new home how it asks its model, taken from the user's
// settings: nothing else of them counts in a loop.
func (a *App) ownModel(client, home string) error {
	userHome, err := a.Env.Home()
	if err != nil {
		return err
	}
	switch client {
	case agent.KindCodex:
		dir := cmp.Or(a.Env.Get("CODEX_HOME"), filepath.Join(userHome, ".codex"))
		data, err := durable.Read(filepath.Join(dir, "config.toml"))
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		var all, kept map[string]any
		if err := toml.Unmarshal(data, &all); err != nil {
			return fmt.Errorf("read %s: %w", filepath.Join(dir, "config.toml"), err)
		}
		kept = map[string]any{}
		for _, key := range codexKeys {
			if v, ok := all[key]; ok {
				kept[key] = v
			}
		}
		if data, err = toml.Marshal(kept); err != nil {
			return err
		}
		return writeIn(filepath.Join(home, ".codex"), "config.toml", data)
	case agent.KindGemini:
		return writeIn(filepath.Join(home, ".gemini"), "settings.json", []byte(geminiWork))
	}
	return nil
}

// geminiWork are Gemini CLI's settings in a loop: the key comes from the environment. With
// folder trust on, what a repository brings (settings, hooks, servers) is left out, for
// nobody has trusted its folder in this home.
const geminiWork = `{
  "security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": true}},
  "mcp": {"allowed": ["none"]},
  "privacy": {"usageStatisticsEnabled": false},
  "telemetry": {"enabled": false},
  "general": {"enableAutoUpdate": false, "enableAutoUpdateNotification": false}
}
`

func writeIn(dir, name string, data []byte) error {
	if err := durable.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return durable.WriteFile(filepath.Join(dir, name), data, 0o600)
}

// projectRoutes are the routes of the project, once its file is approved; before, they
// are said not to count.
func (a *App) projectRoutes(home *config.Home, trust config.Trust) []config.Route {
	if trust.Approved {
		return trust.Says.Routes
	}
	if len(trust.Says.Routes) > 0 {
		fmt.Fprintf(a.Err, "note: the routes of %s are not approved, so they do not count; `reprise trust` approves them\n", home.Project.File())
	}
	return nil
}

// loopRoute says how the runs of an item go, by the routes of the settings and, once its
// file is approved, of the project.
func (a *App) loopRoute(home *config.Home, f *loopFlags) (func(queue.Item) loop.Route, []string, error) {
	set := home.Settings
	all := config.Route{Model: f.model, Tools: set.Loop.AllowedTools, Turns: cmp.Or(f.turns, set.Loop.Turns)}
	trust, err := home.Paths.Trust(home.Project)
	if err != nil {
		return nil, nil, err
	}
	project := a.projectRoutes(home, trust)
	var clients []string
	for _, r := range slices.Concat(set.Routes, project) {
		if r.Client != "" && !slices.Contains(clients, r.Client) {
			clients = append(clients, r.Client)
		}
	}
	return func(it queue.Item) loop.Route {
		r := config.RouteOf(all, set.Routes, project, it.Labels)
		out := loop.Route{Client: r.Client, Model: r.Model, Tools: r.Tools, Turns: r.Turns, USD: r.BudgetUSD, Timeout: time.Duration(r.TimeoutSeconds) * time.Second}
		if f.turns > 0 {
			out.Turns = f.turns
		}
		return out
	}, clients, nil
}

// loopClient checks that a client can work in a loop.
func loopClient(name string) error {
	if slices.Contains(config.RouteClients(), name) || name == agent.KindGeneric {
		return nil
	}
	return usagef("--agent %q is none of %s", clipText(name, 40), strings.Join(config.RouteClients(), ", "))
}
