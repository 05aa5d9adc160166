package cli_test

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"reprise/internal/agent"
	"reprise/internal/agent/dialect"
	"reprise/internal/config"
	"reprise/internal/setup"
	"reprise/internal/transcript"
)

// What docs/clients.md says of each client is what the program has: its table is made here
// from what setup writes, what is known of each client's hooks, and the adapters.
func TestClientsTable(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("..", "..", "docs", "clients.md"))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for line := range strings.Lines(string(data)) {
		if strings.HasPrefix(line, "|") {
			got = append(got, strings.TrimSpace(line))
		}
	}
	if want := clientsTable(t); !slices.Equal(got, want) {
		t.Errorf("docs/clients.md should have this table:\n%s", strings.Join(want, "\n"))
	}
}

const (
	yes  = "yes"
	told = "yes, by its documentation"
	none = "–"
)

// clientsTable is the table, line by line.
func clientsTable(t *testing.T) []string {
	t.Helper()
	dir := t.TempDir()
	where := setup.Where{Env: config.Env{Vars: map[string]string{"HOME": dir, "USERPROFILE": dir}, Dir: dir, GOOS: "linux"}, Dir: dir, Root: dir}
	names := map[string]string{"claude-desktop": "Claude Desktop", "cursor": "Cursor", "vscode": "VS Code"}
	kind := func(client string) string { return strings.TrimSuffix(client, "-code") }
	can := func(cap dialect.Caps, kinds ...dialect.Kind) func(string) string {
		return func(client string) string { return canInHooks(dialect.ManifestOf(kind(client)), cap, kinds...) }
	}
	rows := []struct {
		name string
		cell func(client string) string
	}{
		{"records sessions, by hooks", func(c string) string {
			n := 0
			if m := dialect.ManifestOf(kind(c)); m != nil && slices.Contains(setup.HookClients(), c) {
				for _, e := range m.Events {
					if e.Install {
						n++
					}
				}
			}
			return cmp.Or(map[bool]string{true: fmt.Sprintf("%d events", n)}[n > 0], none)
		}},
		{"its past sessions can be taken in", listed(transcript.Clients(), kind)},
		{"is told at its start what is remembered", can(dialect.CapContext, dialect.SessionStart)},
		{"is told at a prompt", can(dialect.CapContext, dialect.Prompt)},
		{"is told after a failure what helped before", can(dialect.CapContext, dialect.ToolFailed, dialect.ToolAfter)},
		{"guard: a call is refused", can(dialect.CapDeny, dialect.ToolBefore)},
		{"guard: you are asked about a call", func(c string) string {
			if m := dialect.ManifestOf(kind(c)); m != nil && canInHooks(m, dialect.CapAsk, dialect.ToolBefore) == none {
				return "by its own approval"
			}
			return can(dialect.CapAsk, dialect.ToolBefore)(c)
		}},
		{"gates: a turn goes on while checks fail", can(dialect.CapBlock, dialect.Response)},
		{"gates: a subagent does", can(dialect.CapBlock, dialect.SubagentFinished)},
		{"MCP server", func(c string) string {
			target, err := setup.Locate(where, c, "")
			if err != nil {
				t.Fatal(err)
			}
			return map[bool]string{true: yes, false: told}[target.Tried]
		}},
		{"MCP server for everybody in a project", func(c string) string {
			return listed(setup.Scopes(c), func(string) string { return setup.Project })(c)
		}},
		{"skill", func(c string) string {
			file, err := where.SkillFile(c)
			if err != nil {
				t.Fatal(err)
			}
			return map[bool]string{true: yes, false: none}[file != ""]
		}},
		{"slash commands for the list of tasks", func(c string) string {
			dir, _, err := where.CommandFiles(c)
			if err != nil {
				t.Fatal(err)
			}
			return map[bool]string{true: yes, false: none}[dir != ""]
		}},
		{"works in runs, the loop and tasks", func(c string) string { return works(t, kind(c), dir) }},
		{"answers as the judge", func(c string) string { return judges(kind(c), dir) }},
	}
	clients := setup.HookClients() // which have most of it
	for _, c := range setup.Clients() {
		if !slices.Contains(clients, c) {
			clients = append(clients, c)
		}
	}
	head, rule := "|", "|---|"
	for _, c := range clients {
		name := names[c]
		if m := dialect.ManifestOf(kind(c)); m != nil {
			name = m.Program
		}
		head, rule = head+" | "+name, rule+"---|"
	}
	out := []string{head + " |", rule}
	for _, r := range rows {
		line := "| " + r.name
		for _, c := range clients {
			line += " | " + r.cell(c)
		}
		out = append(out, line+" |")
	}
	return out
}

// listed says yes for clients that a list names.
func listed(list []string, name func(string) string) func(string) string {
	return func(client string) string {
		return map[bool]string{true: yes, false: none}[slices.Contains(list, name(client))]
	}
}

// canInHooks is whether an answer to an event of one of the kinds, for which setup installs a
// hook, can do something.
func canInHooks(m *dialect.Manifest, cap dialect.Caps, kinds ...dialect.Kind) string {
	said := none
	if m == nil {
		return said
	}
	for _, e := range m.Events {
		switch {
		case !e.Install || e.Caps&cap == 0 || !slices.Contains(kinds, e.Kind):
		case e.Told&cap == 0:
			return yes
		default:
			said = told
		}
	}
	return said
}

// works is how a client works by itself: with its user's settings, or with a home of its own.
func works(t *testing.T, kind, dir string) string {
	t.Helper()
	if !slices.Contains(config.RouteClients(), kind) {
		return none
	}
	cmd, err := clientCommand(kind, agent.Task{Work: &agent.Work{}}, dir)
	if err != nil {
		t.Fatal(err)
	}
	return map[bool]string{true: "with your settings", false: "in a home of its own"}[cmd.Home == ""]
}

// judges is whether a client can be asked a bare question, with nobody's tools and hooks.
func judges(kind, dir string) string {
	_, err := clientCommand(kind, agent.Task{Isolated: &agent.Isolation{}}, dir)
	return map[bool]string{true: yes, false: none}[err == nil]
}

func clientCommand(kind string, task agent.Task, dir string) (agent.Command, error) {
	adapter, err := agent.For(kind)
	if err != nil {
		return agent.Command{}, err
	}
	task.RunID, task.SessionID, task.Prompt = "run-aaaaaaaaaa", "00000000-0000-4000-8000-000000000000", "Say hello"
	task.RunDir, task.WorkDir, task.Program = filepath.Join(dir, "run"), filepath.Join(dir, "work"), filepath.Join(dir, kind)
	task.Self = filepath.Join(dir, "reprise")
	task.Env = []string{"CODEX_API_KEY=k", "GEMINI_API_KEY=k", "COPILOT_GITHUB_TOKEN=k"}
	cmd, err := adapter.Command(task)
	if errors.Is(err, agent.ErrBadTask) {
		panic(err) // a slip of this test
	}
	return cmd, err
}
