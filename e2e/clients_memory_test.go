//go:build unix

package e2e

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"reprise/internal/event"
	"reprise/internal/fakemodel"
)

// TestOneMemoryFourClients is the promise of the memory: what a session of one
// client found out, a session of another is told, in the request that reaches
// its model. Everything is as a person would have it: the hooks are put there
// by `reprise setup`, the clients are the real ones, and in the end `setup
// --remove` leaves no trace.
func TestOneMemoryFourClients(t *testing.T) {
	inItsOwnStep(t)
	t.Parallel()
	h := newHome(t, nil)
	h.write(filepath.Join(h.work, "Makefile"), makefile())
	h.must("init", "--yes", "--name", "shop")
	// Settings of the user's own, in each client's file, have to survive.
	h.write(filepath.Join(h.dir, ".claude", "settings.json"), `{"permissions":{"allow":["Bash"]}}`+"\n")
	h.write(filepath.Join(h.dir, ".codex", "config.toml"), "# mine\nmodel_reasoning_summary = \"none\"\n")
	h.write(filepath.Join(h.dir, ".gemini", "settings.json"), `{"ui":{"hideTips":true}}`+"\n")
	before := h.clientFiles()
	h.must("setup", "--yes", "claude-code", "codex", "gemini", "copilot")
	if d := cmp.Diff(before, h.clientFiles()); d == "" {
		t.Fatal("setup changed nothing")
	}

	// Each client fails a command of its own and finds out how it works.
	clients := fakemodel.TrialClients()
	var wg sync.WaitGroup
	for _, name := range clients {
		wg.Go(func() {
			h.agent(name, "Ship "+name+".", nil, failAndFix("make ship-"+name, "make ship-"+name+" KEY="+keyOf(name))...)
		})
	}
	wg.Wait()
	if t.Failed() {
		return
	}
	h.recorded(clients)

	// The next session of another client is told, before or when it fails.
	for i, name := range clients {
		wg.Go(func() {
			other := clients[(i+1)%len(clients)]
			r := h.agent(name, "Run make ship-"+other+" again.", nil,
				rule("fail", fakemodel.When{Turn: 1}, shell("make ship-"+other)),
				rule("end", fakemodel.When{Turn: 2}, say("I see.")))
			if !r.told("KEY=" + keyOf(other)) {
				var all []string
				for _, q := range r.requests {
					all = append(all, fmt.Sprintf("--- request %d\n%s", q.N, tail(q.Text(), 3000)))
				}
				t.Errorf("%s was not told what %s found out; its model read\n%s\n%s", name, other, strings.Join(all, "\n"), r.err)
			}
		})
	}
	wg.Wait()

	h.must("setup", "--remove", "--yes", "claude-code", "codex", "gemini", "copilot")
	left := h.clientFiles()
	for path, text := range left {
		if _, ok := before[path]; ok {
			continue
		}
		// Claude Code counts by itself how often each plugin was used, ours beside its own.
		if strings.Contains(strings.ReplaceAll(text, "\"reprise@skills-dir\": {", ""), "reprise") {
			t.Errorf("setup --remove left %s:\n%s", path, text)
		}
		delete(left, path) // the client's own
	}
	if d := cmp.Diff(before, left); d != "" {
		t.Errorf("setup --remove left traces (-before +after):\n%s", d)
	}
}

// makefile has a target for each client that needs a key nobody would guess.
func makefile() string {
	var b strings.Builder
	for _, name := range fakemodel.TrialClients() {
		fmt.Fprintf(&b, "ship-%s:\n\t@test \"$(KEY)\" = %s || { echo 'error: the key of %s is wrong' >&2; exit 3; }\n\t@echo shipped %s\n", name, keyOf(name), name, name)
	}
	return b.String()
}

func keyOf(name string) string { return "amber" + fmt.Sprint(len(name)) + name[:1] }

func tail(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return "…" + s[len(s)-n:]
}

// clientFiles are the files that setup may write into, by path, with their text.
func (h *home) clientFiles() map[string]string {
	h.t.Helper()
	out := map[string]string{}
	add := func(path string) {
		if data, err := os.ReadFile(path); err == nil {
			out[strings.TrimPrefix(path, h.dir)] = string(data)
		}
	}
	add(filepath.Join(h.dir, ".claude.json"))
	add(filepath.Join(h.dir, ".claude", "settings.json"))
	for _, name := range []string{"config.toml", "hooks.json", "AGENTS.md"} {
		add(filepath.Join(h.dir, ".codex", name))
	}
	add(filepath.Join(h.dir, ".gemini", "settings.json"))
	add(filepath.Join(h.dir, ".copilot", "mcp-config.json"))
	for _, dir := range []string{".claude/skills", ".claude/hooks", ".codex/skills", ".gemini/skills", ".gemini/extensions", ".copilot/hooks", ".copilot/skills", ".agents"} {
		err := filepath.WalkDir(filepath.Join(h.dir, dir), func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() {
				add(path)
			}
			return nil
		})
		if err != nil {
			h.t.Fatal(err)
		}
	}
	return out
}

// recorded wants a whole session of each client in the log of the project.
func (h *home) recorded(clients []string) {
	h.t.Helper()
	seen := map[string]map[event.Type]int{}
	for e, err := range event.Read(filepath.Join(h.dir, ".local", "share", "reprise", "projects", "shop", "events")) {
		if err != nil {
			h.t.Fatal(err)
		}
		if seen[e.Client] == nil {
			seen[e.Client] = map[event.Type]int{}
		}
		seen[e.Client][e.Type]++
		// Not every client tells its hooks of it, and still it is known.
		if e.Type == event.ToolFailed && !strings.Contains(string(e.Data), `"exit_code":2`) {
			h.t.Errorf("%s: a failure without its exit code: %s", e.Client, e.Data)
		}
	}
	for _, name := range clients {
		for _, kind := range []event.Type{event.SessionStarted, event.PromptSubmitted, event.ToolFailed, event.ToolSucceeded, event.ResponseCompleted, event.SessionEnded} {
			if seen[name][kind] == 0 {
				h.t.Errorf("%s recorded no %s: %v", name, kind, seen[name])
			}
		}
	}
}
