//go:build unix

package e2e

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"reprise/internal/fakemodel"
)

// Claude Code in -p runs a repository's hooks and starts its tool servers
// without asking anybody. What reprise starts must not: whoever may commit to a
// repository could otherwise run commands on the machine of whoever has an
// agent look at it.
func TestRepositoryRunsNothingInAgents(t *testing.T) {
	inItsOwnStep(t)
	t.Parallel()
	m := model(t,
		rule("work", fakemodel.When{Task: "Agent", Turn: 1}, call("Bash", map[string]any{"command": "echo fine > mine.txt", "description": "work"})),
		rule("report", fakemodel.When{Task: "Agent", Turn: 2}, say("It is done.")),
	)
	h := newClaudeHome(t, m, nil)
	// Not in the home directory: the memory is there, and the sandbox lets an agent
	// make nothing beside it.
	sprung := filepath.Join(filepath.Dir(h.dir), "sprung")
	if err := os.Mkdir(sprung, 0o700); err != nil {
		t.Fatal(err)
	}
	// The same thing in the user's own settings shows that the trap would spring.
	touch := func(name string) map[string]any {
		hook := []any{map[string]any{"hooks": []any{map[string]any{"type": "command", "command": "touch '" + filepath.Join(sprung, name) + "'"}}}}
		return map[string]any{"SessionStart": hook, "PreToolUse": hook, "Stop": hook, "SessionEnd": hook}
	}
	put := func(path string, v any) {
		data, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		h.write(path, string(data))
	}
	put(filepath.Join(h.dir, ".claude", "settings.json"), map[string]any{
		"permissions": map[string]any{"allow": []string{"Bash"}}, "hooks": touch("hook-of-the-user"),
	})
	put(filepath.Join(h.work, ".claude", "settings.json"), map[string]any{"hooks": touch("hook-of-the-repository")})
	put(filepath.Join(h.work, ".claude", "settings.local.json"), map[string]any{
		"hooks": touch("local-hook-of-the-repository"), "enableAllProjectMcpServers": true,
	})
	put(filepath.Join(h.work, ".mcp.json"), map[string]any{"mcpServers": map[string]any{
		"trap": map[string]any{"command": "/bin/sh", "args": []string{"-c", "touch '" + filepath.Join(sprung, "server-of-the-repository") + "'; cat"}},
	}})
	s := h.serve()
	free := turn(t)
	defer free()
	a := s.spawn("Agent: do your work", map[string]any{"working_directory": h.work})
	if a.str("status") == "running" {
		a = s.settle(a.str("job_id"))
	}
	if a.str("status") != "complete" {
		t.Fatalf("got %s", a.text)
	}
	allUsed(t, m)
	if _, err := os.Stat(filepath.Join(h.work, "mine.txt")); err != nil {
		t.Errorf("the agent could not work: %v", err)
	}
	if !exists(filepath.Join(sprung, "hook-of-the-user")) {
		t.Error("the user's own hook did not run, so this test would not see a hook that runs")
	}
	for _, name := range []string{"hook-of-the-repository", "local-hook-of-the-repository", "server-of-the-repository"} {
		if exists(filepath.Join(sprung, name)) {
			t.Errorf("the %s was run", name)
		}
	}
}

// The environment that clients and agents are started with holds keys. It
// reaches the agent and no file: no record, log or event, however a run ends.
func TestEnvironmentReachesNoFile(t *testing.T) {
	t.Parallel()
	const key = "canary-7f3a9c51"
	mine := newHome(t, settings{"logging": map[string]any{"level": "debug"}})
	h := mine.with("ANTHROPIC_API_KEY="+key, "SOME_PASSWORD="+key)
	h.write(filepath.Join(filepath.Dir(h.dir), "mock-agent.sh"), "#!/bin/sh\n"+
		"case \"$1\" in --version) echo 'mock 1'; exit 0;; esac\n"+
		"[ ${#ANTHROPIC_API_KEY} = 15 ] && echo the agent has its key\n"+
		"read -r task\nexit ${task#exit }\n")
	s := h.serve()
	for task, want := range map[string]string{"exit 0": "complete", "exit 3": "failed"} {
		if a := s.spawn(task); a.str("status") != want || !strings.Contains(a.str("result"), "the agent has its key") {
			t.Errorf("%s: got %s", task, a.text)
		}
	}
	s.good("append_episodic_log", map[string]any{"entry": "Ran two agents."})
	h.must("spawn", "exit 0")
	h.must("memory", "sync")
	if err := s.in.Close(); err != nil {
		t.Fatal(err)
	}
	<-s.gone
	files := 0
	err := filepath.WalkDir(h.dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		files++
		if strings.Contains(h.read(p), key) {
			t.Errorf("the key is in %s", p)
		}
		return nil
	})
	if err != nil || files < 20 {
		t.Errorf("%d files looked at, %v", files, err)
	}
}
