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
	"reprise/internal/term"
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
		"enter, shown":    {"\n\ny\n", true, true},
		"not the clients": {"\nn\n", true, false},
		"shown, then not": {"y\ny\nn\n", true, false},
		"no answer":       {"y\n", true, false},
		"nothing":         {"n\n", false, false},
		"whole":           {"y\ny\nf\ny\n", true, true},
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
			if shown := strings.Count(out.String(), "+++") > 2; shown != (name == "differences" || name == "whole") {
				t.Errorf("differences shown: %v\n%s", shown, out.String())
			}
		})
	}
}

// Of a directory's name in another script none can be made for a project: it is asked for.
// Letters with marks become plain ones.
func TestInitNamesTheProject(t *testing.T) {
	home, root := t.TempDir(), t.TempDir()
	for _, c := range []struct{ dir, answers, name, says string }{
		{"日本", "\nshop\n", "", "no name was given"},
		{"日本", "日本\nmy shop\nshop\ny\n", "shop", "A name for this one"},
		{"größe 2", "y\n", "grosse-2", "the project grosse-2"},
		{"Café_Ærø", "y\n", "cafe_aero", "the project cafe_aero"},
		{"plain", "y\n", "plain", "the project plain"},
	} {
		dir := filepath.Join(root, c.dir)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		Main(t.Context(), []string{"init"}, &App{
			In: strings.NewReader(c.answers), Out: &out, Err: &out, InIsTerminal: true, OutIsTerminal: true, Columns: 80, Program: "/opt/bin/reprise", Hostname: "h",
			Env: config.Env{Vars: map[string]string{"HOME": home, "USERPROFILE": home, "NO_COLOR": "1"}, Dir: dir, GOOS: runtime.GOOS, Now: time.Now},
		})
		data, _ := os.ReadFile(filepath.Join(dir, ".reprise", "project.yaml"))
		if named := strings.Contains(string(data), "name: "+c.name+"\n"); !strings.Contains(out.String(), c.says) || named != (c.name != "") {
			t.Errorf("%s: its file is %q\n%s", c.dir, data, out.String())
		}
	}
}

// A terminal's user whose directory has the name of another project is asked for one, and
// offered one that is free. What differs is shown to its end at the question itself; an
// answer that is none is asked for again.
func TestInitAsks(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	home := filepath.Join(root, "home")
	for _, d := range []string{filepath.Join(home, ".codex"), filepath.Join(root, "a", "api"), filepath.Join(root, "b", "api"), filepath.Join(root, "c", "api")} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(home, ".codex", "history.jsonl"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(dir, answers string) string {
		var out bytes.Buffer
		Main(t.Context(), []string{"init"}, &App{
			In: strings.NewReader(answers), Out: &out, Err: &out, InIsTerminal: true, OutIsTerminal: true, Columns: 80, Program: "/opt/bin/reprise", Hostname: "h",
			Env: config.Env{Vars: map[string]string{"HOME": home, "USERPROFILE": home, "NO_COLOR": "1"}, Dir: dir, GOOS: runtime.GOOS, Now: time.Now},
		})
		return out.String()
	}
	name := func(dir string) string {
		data, err := os.ReadFile(filepath.Join(dir, ".reprise", "project.yaml"))
		if err != nil {
			return err.Error()
		}
		return string(data)
	}
	if out := run(filepath.Join(root, "a", "api"), "y\nmaybe\nn\n"); !strings.Contains(out, "maybe is neither yes nor no. Which is it? Later: reprise setup.") {
		t.Errorf("a word that is no answer:\n%s", out)
	}
	// Of several clients those are asked about that are named.
	if err := os.MkdirAll(filepath.Join(home, ".claude", "projects"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(root, "d"), 0o755); err != nil {
		t.Fatal(err)
	}
	if out := run(filepath.Join(root, "d"), "y\nemacs\nclaude\nn\n"); !strings.Contains(out, "emacs is neither yes nor no, nor one of claude-code, codex.") || !strings.Contains(out, ".claude") || strings.Contains(out, ".codex") {
		t.Errorf("one of two clients:\n%s", out)
	}
	if err := os.RemoveAll(filepath.Join(home, ".claude")); err != nil {
		t.Fatal(err)
	}
	out := run(filepath.Join(root, "b", "api"), "\ny\ny\nd\nf\nn\n")
	if !strings.Contains(name(filepath.Join(root, "b", "api")), "\nname: b-api\n") || !strings.Contains(out, "[b-api]:") {
		t.Errorf("the name that was offered: %s\n%s", name(filepath.Join(root, "b", "api")), out)
	}
	shown, whole, ok := strings.Cut(out, "of this file; f at the next question shows them")
	if !ok || strings.Contains(out, "--full") || strings.Count(whole, "\n+") <= strings.Count(shown, "\n+") {
		t.Errorf("what differs cannot be seen to its end at the question:\n%s", out)
	}
	out = run(filepath.Join(root, "c", "api"), "No Good\nb-api\nthird\ny\nn\n")
	if !strings.Contains(name(filepath.Join(root, "c", "api")), "\nname: third\n") || !strings.Contains(out, `"No Good" is not a project name`) || !strings.Contains(out, "Another project is named b-api") {
		t.Errorf("names that are none, or taken: %s\n%s", name(filepath.Join(root, "c", "api")), out)
	}
	if run(home, "n\n"); !strings.Contains(name(home), "no such file") && runtime.GOOS != "windows" {
		t.Errorf("a home directory is a project after a no: %s", name(home))
	}
	if run(home, "y\ny\nn\n"); !strings.Contains(name(home), "\nname: home\n") {
		t.Errorf("a home directory is none after a yes: %s", name(home))
	}
}

// A question is broken between its words where the terminal is narrow.
func TestPromptFits(t *testing.T) {
	var out bytes.Buffer
	app := &App{Out: &out, Columns: 40}
	const question = "There are transcripts of past sessions: 12 of claude (3.1 MB). Take in what happened in them? They are only read. [y/N]"
	app.prompt(question)
	for line := range strings.Lines(out.String()) {
		if w := term.Width(strings.TrimRight(line, "\n")); w > 40 {
			t.Errorf("%d columns: %q", w, line)
		}
	}
	if strings.Join(strings.Fields(out.String()), " ") != question || !strings.HasSuffix(out.String(), "[y/N] ") {
		t.Errorf("the question is another: %q", out.String())
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
