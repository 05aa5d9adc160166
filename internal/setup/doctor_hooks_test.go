package setup

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestHookProgramOf(t *testing.T) {
	for command, want := range map[string]string{
		"/opt/bin/reprise-hook claude Stop":                            "/opt/bin/reprise-hook",
		"REPRISE_HOME='/my data' '/it'\\''s/reprise-hook' claude Stop": "/it's/reprise-hook",
		`"C:/Program Files/reprise-hook.exe" codex Stop`:               "C:/Program Files/reprise-hook.exe",
		"A=1 B=2 reprise-hook gemini BeforeTool":                       "reprise-hook",
		"'unfinished":                                                  "unfinished",
		"":                                                             "",
	} {
		if got := hookProgramOf(command); got != want {
			t.Errorf("%s: %q, want %q", command, got, want)
		}
	}
}

// Hooks that cannot work, that are not whole, or that a person has yet to
// accept are told apart, each with what to do.
func TestDoctorHooks(t *testing.T) {
	s := newSetup(t)
	dir := t.TempDir()
	hook := filepath.Join(dir, "reprise-hook")
	d := Doctor{Setup: s, Program: filepath.Join(dir, "reprise"), LookPath: func(string) (string, error) { return "", os.ErrNotExist }}
	want := func(status Status, message, remedy string) {
		t.Helper()
		for _, f := range d.hooks(context.Background()) {
			if f.Status == status && strings.Contains(f.Message, message) && strings.Contains(f.Remedy, remedy) {
				return
			}
		}
		t.Errorf("no %s %q %q in %+v", status, message, remedy, d.hooks(context.Background()))
	}
	want(Info, "behind no client's hooks", "reprise setup")
	a := All{Request: Request{Client: "codex", Scope: User, Program: d.Program}, HookProgram: hook, NoMCP: true}
	if _, err := s.InstallAll(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	want(Fail, "is not there", "reprise setup codex")
	if err := os.WriteFile(hook, nil, 0o755); err != nil {
		t.Fatal(err)
	}
	want(OK, "12 hooks", "")
	want(Warn, "waiting for trust: 12 of 12", "start codex")
	want(Warn, "SessionStart, UserPromptSubmit, PreToolUse", "start codex") // each by its name

	// As Codex 0.171.0 notes that they were accepted.
	file, err := s.HookFile("codex", User)
	if err != nil {
		t.Fatal(err)
	}
	var accepted strings.Builder
	accepted.WriteString("model = \"x\"\n\n[hooks.state]\n")
	for _, e := range HookEvents("codex") {
		accepted.WriteString("\n[hooks.state.\"" + file + ":" + snake(e) + ":0:0\"]\ntrusted_hash = \"sha256:00\"\n")
	}
	put(t, filepath.Join(filepath.Dir(file), "config.toml"), accepted.String())
	for _, f := range d.hooks(context.Background()) {
		if f.Status != OK {
			t.Errorf("accepted hooks: %+v", f)
		}
	}
	one := strings.Replace(accepted.String(), ":"+snake("Stop")+":0:0", ":other:0:0", 1)
	put(t, filepath.Join(filepath.Dir(file), "config.toml"), one)
	want(Warn, "waiting for trust: 1 of 12 hooks do not run until you have accepted them in Codex: Stop", "start codex")
	put(t, filepath.Join(filepath.Dir(file), "config.toml"), accepted.String())
	text := get(t, file)
	put(t, file, strings.Replace(text, "\"PostToolUse\"", "\"PostToolUse2\"", 1))
	want(Warn, "without PostToolUse", "reprise setup codex")
	put(t, file, text)
	a.Scope = Project
	if _, err := s.InstallAll(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	want(Warn, "recorded twice", "--scope project --remove")
	if _, err := s.RemoveAll(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	// Claude Code runs a command once, however often its settings name it.
	for _, scope := range []string{User, Project} {
		if _, err := s.InstallAll(t.Context(), All{Request: Request{Client: "claude-code", Scope: scope, Program: d.Program}, HookProgram: hook, NoMCP: true}); err != nil {
			t.Fatal(err)
		}
	}
	want(Info, "one of them is enough", "reprise setup claude-code --scope project --remove")
	d.Program = filepath.Join(t.TempDir(), "reprise")
	want(Warn, "and this is", "reprise setup codex")
	put(t, file, "{")
	want(Warn, "hooks.json", "correct the file")
}
