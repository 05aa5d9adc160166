package setup

import (
	"path/filepath"
	"strings"
	"testing"

	"reprise/internal/config"
)

// What a client reads elsewhere than in the home directory, because its own variable says
// so, is written there: server, hooks, commands and skill. A path that is not absolute is
// another place in each directory, and none.
func TestClientsOwnVariables(t *testing.T) {
	root := filepath.FromSlash("/r")
	home, own := filepath.Join(root, "home"), filepath.Join(root, "own")
	for client, name := range map[string]string{"claude-code": "CLAUDE_CONFIG_DIR", "codex": "CODEX_HOME", "gemini": "GEMINI_CLI_HOME", "copilot": "COPILOT_HOME"} {
		for value, want := range map[string]string{own: own, "own": home, "": home} {
			w := Where{Env: config.Env{GOOS: "linux", Vars: map[string]string{"HOME": home, "REPRISE_HOME": home, name: value}}, Dir: root, Root: root}
			target, err := Locate(w, client, User)
			if err != nil {
				t.Fatal(err)
			}
			hooks, err := w.HookFile(client, User)
			if err != nil {
				t.Fatal(err)
			}
			commands, _, err := w.CommandFiles(client)
			if err != nil {
				t.Fatal(err)
			}
			skill, err := w.SkillFile(client)
			if err != nil {
				t.Fatal(err)
			}
			for _, file := range []string{target.File, hooks, commands, skill} {
				below := want
				if file == skill && (client == "codex" || client == "copilot") {
					below = home // all agents' skills: no client's own variable says where
				}
				if !strings.HasPrefix(file, below+string(filepath.Separator)) {
					t.Errorf("%s with %s=%q: %s is not below %s", client, name, value, file, below)
				}
			}
			if client == "gemini" && !strings.HasPrefix(hooks, filepath.Join(want, ".gemini")) {
				t.Errorf("its variable is in the place of the home directory: %s", hooks)
			}
		}
	}
}
