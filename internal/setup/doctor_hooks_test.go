package setup

import (
	"context"
	"os"
	"path/filepath"
	"slices"
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
	found, err := FindHooks(file, "codex")
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range found {
		accepted.WriteString("\n[hooks.state.\"" + file + ":" + snake(h.Event) + ":0:0\"]\ntrusted_hash = \"" + codexHashes(h)[0] + "\"\n")
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
	// Of a hook that changed since, Codex asks again, and runs it no more until then.
	put(t, file, strings.Replace(text, "reprise-hook codex PreToolUse", "reprise-hook codex PreToolUse --x", 1))
	want(Warn, "waiting for trust: 1 of 12 hooks do not run until you have accepted them in Codex (1 changed since you did): PreToolUse", "start codex")
	put(t, filepath.Join(filepath.Dir(file), "config.toml"), strings.Replace(accepted.String(), "stop:0:0\"]\n", "stop:0:0\"]\nenabled = false\n", 1))
	put(t, file, text)
	want(Warn, "1 of 12 hooks are switched off in Codex: ", "/hooks")
	put(t, filepath.Join(filepath.Dir(file), "config.toml"), accepted.String())
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

// What Codex 0.171.0 itself (hooks/list of its app server) gave to these hooks.
func TestCodexHashes(t *testing.T) {
	file := filepath.Join(t.TempDir(), "hooks.json")
	put(t, file, `{"hooks":{"PreToolUse":[{"matcher":"*","hooks":[{"type":"command","command":"/x/reprise-hook codex PreToolUse","timeout":75}]}],`+
		`"Stop":[{"hooks":[{"type":"command","command":"/x/reprise-hook codex Stop"}]}],`+
		`"SessionEnd":[{"hooks":[{"type":"command","command":"/x/reprise-hook codex SessionEnd","timeout":3,"statusMessage":"hi","async":false}]}],`+
		`"UserPromptSubmit":[{"matcher":"*","hooks":[{"type":"command","command":"/x/reprise-hook codex UserPromptSubmit \u00e9<>&","timeout":10}]}]}}`)
	hooks, err := FindHooks(file, "codex")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"PreToolUse":       "sha256:efe9edfc196b3c7a89e14f335d28904752da803ff0c6209394ad07041126f7c2",
		"Stop":             "sha256:aa7baf2aba2cd5ad85765ae9bb12d2f8e3115e79683c0fe955685b0fff66f29f",
		"SessionEnd":       "sha256:5f28f4049ef68fdeb72003e33050ad5ebb13eb463088e81707f173a49f7d062f",
		"UserPromptSubmit": "sha256:e25c43ef46dda36094c34d31786a0868bb9b003beed9310d9b7426bef0eeecbd",
	}
	for _, h := range hooks {
		if got := codexHashes(h); !slices.Contains(got, want[h.Event]) {
			t.Errorf("%s: %q, Codex says %s", h.Event, got, want[h.Event])
		}
		delete(want, h.Event)
	}
	if len(want) > 0 {
		t.Errorf("not found: %v", want)
	}
}
