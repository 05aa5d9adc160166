package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"reprise/internal/config"
)

// At a terminal init offers to go on with the clients that are here, shows what
// it would change, and changes it only after a second yes. No answer is a no.
func TestInitOffersSetup(t *testing.T) {
	for name, test := range map[string]struct {
		answers string
		project bool // made
		hooks   bool // set up
	}{
		"all":             {"y\ny\ny\n", true, true},
		"differences":     {"y\ny\nd\ny\n", true, true},
		"empty line":      {"y\ny\n\ny\n", true, true},
		"not the clients": {"\nn\n", true, false},
		"shown, then not": {"y\ny\nn\n", true, false},
		"no answer":       {"y\n", true, false},
		"nothing":         {"n\n", false, false},
		"unclear, then y": {"xyz\ny\nn\n", true, false},
		"unclear, then n": {"xyz\nno\ny\n", false, false},
	} {
		t.Run(name, func(t *testing.T) {
			root, err := filepath.EvalSymlinks(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			home, work := filepath.Join(root, "home"), filepath.Join(root, "work")
			for _, d := range []string{filepath.Join(home, ".codex"), work} {
				if err := os.MkdirAll(d, 0o755); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.WriteFile(filepath.Join(home, ".codex", "history.jsonl"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			var out bytes.Buffer
			app := &App{
				In: strings.NewReader(test.answers), Out: &out, Err: &out, InIsTerminal: true, OutIsTerminal: true, Program: "/opt/bin/reprise", Hostname: "h",
				Env: config.Env{Vars: map[string]string{"HOME": home, "USERPROFILE": home, "NO_COLOR": "1"}, Dir: work, GOOS: runtime.GOOS, Now: time.Now},
			}
			Main(t.Context(), []string{"init", "--name", "shop"}, app)
			_, err = os.Stat(filepath.Join(work, ".reprise", "project.yaml"))
			if made := err == nil; made != test.project {
				t.Errorf("project made: %v\n%s", made, out.String())
			}
			_, err = os.Stat(filepath.Join(home, ".codex", "hooks.json"))
			if set := err == nil; set != test.hooks {
				t.Errorf("hooks set up: %v\n%s", set, out.String())
			}
			if test.project && strings.Contains(out.String(), "Proceed? [y]es") && !strings.Contains(out.String(), "hooks.json: would be created") {
				t.Errorf("it was not said what would be changed:\n%s", out.String())
			}
			if shown := strings.Count(out.String(), "+++") > 2; shown != (name == "differences") {
				t.Errorf("differences shown: %v\n%s", shown, out.String())
			}
		})
	}
}

// Where there are past sessions, init offers to take them in; they are read and stay as
// they are. On a project that is there already it offers the same again.
func TestInitOffersImport(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	home, work := filepath.Join(root, "home"), filepath.Join(root, "work")
	sessions := filepath.Join(home, ".claude", "projects", "-work")
	for _, d := range []string{sessions, work} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	line := `{"type":"user","sessionId":"5a13438d-5a8e-41c4-808c-000000000001","cwd":"` + filepath.ToSlash(work) + `","timestamp":"2026-11-01T10:00:00Z","uuid":"u1","message":{"role":"user","content":"which port does billing use?"}}` + "\n"
	file := filepath.Join(sessions, "5a13438d-5a8e-41c4-808c-000000000001.jsonl")
	if err := os.WriteFile(file, []byte(line), 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(answers string) string {
		var out bytes.Buffer
		app := &App{
			In: strings.NewReader(answers), Out: &out, Err: &out, InIsTerminal: true, OutIsTerminal: true, Columns: 100, Program: "/opt/bin/reprise", Hostname: "h",
			Env: config.Env{Vars: map[string]string{"HOME": home, "USERPROFILE": home, "NO_COLOR": "1"}, Dir: work, GOOS: runtime.GOOS, Now: time.Now},
		}
		if code := Main(t.Context(), []string{"init", "--name", "shop"}, app); code != 0 {
			t.Errorf("exit code %d", code)
		}
		return out.String()
	}
	logs := func() []string {
		list, err := filepath.Glob(filepath.Join(home, "*", "*", "reprise", "projects", "shop", "events", "*.jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	out := run("y\nn\nn\n") // the project, not the client, not the sessions
	for _, want := range []string{"+name: shop", "+.reprise/agent", "1 of claude", "Later: reprise import transcripts"} {
		if !strings.Contains(out, want) {
			t.Errorf("it does not say %q:\n%s", want, out)
		}
	}
	if runtime.GOOS == "linux" && len(logs()) > 0 {
		t.Errorf("a no took sessions in: %v", logs())
	}
	out = run("n\ny\n")
	if runtime.GOOS == "linux" && len(logs()) == 0 {
		t.Errorf("a yes took nothing in:\n%s", out)
	}
	if data, err := os.ReadFile(file); err != nil || string(data) != line {
		t.Errorf("the client's own file was changed: %v", err)
	}
}
