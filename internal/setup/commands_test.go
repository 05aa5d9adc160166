package setup

import (
	"bytes"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pelletier/go-toml/v2"

	"reprise/internal/config"
	"reprise/plugin"
)

var update = flag.Bool("update", false, "write the plugin's hooks file anew")

// The plugin's hooks are those that setup writes.
func TestPluginHooks(t *testing.T) {
	file := filepath.Join("..", "..", "plugin", "hooks", "hooks.json")
	want, err := PluginHooks()
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(file, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s is not what setup writes (go test ./internal/setup -run TestPluginHooks -update):\n%s", file, want)
	}
	if n := len(HookEvents("claude-code")); bytes.Count(got, []byte("reprise-hook claude ")) != n {
		t.Errorf("it has not each of the %d events once", n)
	}
}

func commandsSetup(t *testing.T) (Setup, string) {
	t.Helper()
	home, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	env := config.Env{Vars: map[string]string{"HOME": home, "USERPROFILE": home}, Dir: home, GOOS: "linux", Now: time.Now}
	return Setup{Where: Where{Env: env, Dir: home, Root: home}, Paths: config.Paths{Data: filepath.Join(home, "data")}, Now: time.Now}, home
}

// filesBelow is what is below a directory, without reprise's own notes.
func filesBelow(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || strings.HasPrefix(p, filepath.Join(dir, "data")) {
			return err
		}
		rel, _ := filepath.Rel(dir, p)
		if d.IsDir() {
			out[rel] = "(directory)"
			return nil
		}
		data, err := os.ReadFile(p)
		out[rel] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Commands go in and out again without a trace, and twice is once.
func TestCommandsInAndOut(t *testing.T) {
	for client, one := range map[string]string{
		"claude-code": ".claude/skills/reprise/skills/research/SKILL.md",
		"codex":       ".codex/skills/reprise-research/SKILL.md",
		"gemini":      ".gemini/commands/reprise/research.toml",
		"copilot":     ".copilot/skills/reprise-research/SKILL.md",
	} {
		t.Run(client, func(t *testing.T) {
			s, home := commandsSetup(t)
			before := filesBelow(t, home)
			a := All{Request: Request{Client: client, Scope: User, Program: "/bin/reprise"}, NoMCP: true, NoHooks: true, Commands: true}
			changes, err := s.InstallAll(t.Context(), a)
			if err != nil || len(changes) != 1 || changes[0].Action != "created" || changes[0].What != commandsWord {
				t.Fatalf("%+v, %v", changes, err)
			}
			text := filesBelow(t, home)[filepath.FromSlash(one)]
			if !strings.Contains(text, "reprise task begin NUMBER research") {
				t.Errorf("%s holds %q", one, text)
			}
			if client != "claude-code" && (strings.Contains(text, "$ARGUMENTS") || !strings.Contains(text, "agent/researcher")) {
				t.Errorf("%s speaks of what %s has not: %q", one, client, text)
			}
			if client == "gemini" {
				var doc struct{ Description, Prompt string }
				if err := toml.Unmarshal([]byte(text), &doc); err != nil || !strings.Contains(doc.Prompt, "{{args}}") || doc.Description == "" {
					t.Errorf("%s: %+v, %v", one, doc, err)
				}
			}
			if changes, err = s.InstallAll(t.Context(), a); err != nil || changes[0].Action != "unchanged" {
				t.Errorf("again: %+v, %v", changes, err)
			}
			if _, err = s.RemoveAll(t.Context(), a); err != nil {
				t.Fatal(err)
			}
			after := filesBelow(t, home)
			for name := range after {
				if _, ok := before[name]; !ok {
					t.Errorf("%s is left", name)
				}
			}
		})
	}
}

// A command that a person has changed, or wrote under the same name, is theirs.
func TestCommandsOfAPersonStay(t *testing.T) {
	s, home := commandsSetup(t)
	a := All{Request: Request{Client: "gemini", Scope: User, Program: "/bin/reprise"}, NoMCP: true, NoHooks: true, Commands: true}
	mine := filepath.Join(home, ".gemini", "commands", "reprise", "plan.toml")
	if err := os.MkdirAll(filepath.Dir(mine), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(mine, []byte("prompt = \"mine\"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	changes, err := s.InstallAll(t.Context(), a)
	if err != nil || len(changes) != 2 || len(changes[1].Warnings) != 1 {
		t.Fatalf("%+v, %v", changes, err)
	}
	changed := filepath.Join(home, ".gemini", "commands", "reprise", "todo.toml")
	if err := os.WriteFile(changed, []byte("prompt = \"changed\"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := s.RemoveAll(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	left := filesBelow(t, filepath.Dir(mine))
	if len(left) != 3 || left["plan.toml"] != "prompt = \"mine\"\n" || left["todo.toml"] != "prompt = \"changed\"\n" {
		t.Errorf("left: %q", left)
	}
}

// The plugin from a marketplace brings everything; both would count twice.
func TestPluginFromAMarketplace(t *testing.T) {
	s, home := commandsSetup(t)
	settings := filepath.Join(home, ".claude", "settings.json")
	if err := os.MkdirAll(filepath.Dir(settings), 0o755); err != nil {
		t.Fatal(err)
	}
	a := All{Request: Request{Client: "claude-code", Scope: User, Program: "/bin/reprise"}, HookProgram: "/bin/reprise-hook", Skill: "x", Commands: true}
	for text, there := range map[string]bool{
		`{"enabledPlugins": {"` + plugin.Name + `@reprise": true}}`:  true,
		`{"enabledPlugins": {"` + plugin.Name + `@reprise": false}}`: false,
		`{"enabledPlugins": {"other@reprise": true}}`:                false,
		`{"enabledPlugins": 3}`:                                      false,
	} {
		if err := os.WriteFile(settings, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		changes, err := s.InstallAll(t.Context(), a)
		if err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(settings)
		if err != nil {
			t.Fatal(err)
		}
		if hooks := strings.Contains(string(data), "reprise-hook"); hooks == there {
			t.Errorf("%s: hooks were written: %v (%+v)", text, hooks, changes)
		}
		if name, _ := s.Plugin("claude-code"); (name != "") != there {
			t.Errorf("%s: the plugin is %q", text, name)
		}
		if there { // what is connected by it is not said to be in no client
			d := Doctor{Setup: s}
			for _, list := range [][]Finding{d.hooks(t.Context()), d.entries(t.Context())} {
				if !slices.ContainsFunc(list, func(f Finding) bool { return f.Status == OK && strings.Contains(f.Message, "by its plugin") }) {
					t.Errorf("the doctor says %+v", list)
				}
			}
		}
	}
}

// Aliases go into the shell's file and out again.
func TestAliases(t *testing.T) {
	s, home := commandsSetup(t)
	s.Env.Vars["SHELL"] = "/bin/zsh"
	rc := filepath.Join(home, ".zshrc")
	const before = "export A=1" // no newline at its end
	if err := os.WriteFile(rc, []byte(before), 0o644); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := s.Aliases(t.Context(), "/opt/my tools/reprise", false, false); err != nil {
			t.Fatal(err)
		}
	}
	data, _ := os.ReadFile(rc)
	if n := strings.Count(string(data), "alias claude-refresh="); n != 1 || !strings.HasPrefix(string(data), before+"\n") || !strings.Contains(string(data), `/opt/my tools/reprise`) {
		t.Errorf("%s holds %q", rc, data)
	}
	if _, err := s.Aliases(t.Context(), "/opt/my tools/reprise", true, false); err != nil {
		t.Fatal(err)
	}
	if data, _ = os.ReadFile(rc); string(data) != before {
		t.Errorf("after the removal it holds %q", data)
	}
	s.Env.Vars["SHELL"] = "/bin/tcsh"
	if _, err := s.Aliases(t.Context(), "/bin/reprise", false, false); err == nil {
		t.Error("a shell that is not known was taken")
	}
}
