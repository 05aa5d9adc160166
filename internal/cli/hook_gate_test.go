package cli

import (
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"reprise/internal/agent/dialect"
	"reprise/internal/config"
	"reprise/internal/guard"
	"reprise/internal/hook"
	"reprise/internal/proc/confine"
)

// Copilot CLI does not tell its hooks what the agent said last.
func TestLastWords(t *testing.T) {
	line := func(typ, content string) string {
		return `{"type":"` + typ + `","data":{"content":"` + content + `"}}` + "\n"
	}
	for name, tc := range map[string]struct{ text, want string }{
		"last":             {line("assistant.message", "first") + line("user.message", "x") + line("assistant.message", "All done.") + line("session.idle", ""), "All done."},
		"a call alone":     {line("assistant.message", "said") + line("assistant.message", ""), "said"},
		"cut at the end":   {line("assistant.message", "said") + `{"type":"assistant.mess`, "said"},
		"long before":      {strings.Repeat(line("tool", strings.Repeat("x", 1000)), 400) + line("assistant.message", "said"), "said"},
		"none":             {line("user.message", "x"), ""},
		"empty":            {"", ""},
		"not what we know": {"\x00\xff\n[1]\n", ""},
	} {
		file := filepath.Join(t.TempDir(), "events.jsonl")
		if err := os.WriteFile(file, []byte(tc.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := lastWords(file); got != tc.want {
			t.Errorf("%s: %q", name, got)
		}
	}
	if lastWords(filepath.Join(t.TempDir(), "none")) != "" || lastWords(t.TempDir()) != "" || lastWords("") != "" {
		t.Error("words of nothing")
	}
}

// What a hook program without a plan grants is for calls that wait for a person: the
// others are refused as soon as before.
func TestTimeToJudge(t *testing.T) {
	ev := dialect.Event{Client: "claude", Name: "PreToolUse", Kind: dialect.ToolBefore}
	for _, tc := range []struct {
		rules guard.Rules
		want  time.Duration
	}{
		{guard.Rules{}, judgeLimit},
		{guard.Rules{WaitMS: 20_000}, judgeLimit},
		{guard.Rules{Full: true, WaitMS: 20_000}, 22 * time.Second},
		{guard.Rules{Full: true, WaitMS: 600_000}, 55 * time.Second},
	} {
		h := &hookRun{guard: &hook.Guarding{Rules: tc.rules}}
		if got := h.judging(&ev); got != tc.want {
			t.Errorf("%+v: %s, want %s", tc.rules, got, tc.want)
		}
	}
}

// The code that a check runs is the agent's, and a gate runs it unasked: what would let
// the agent go afterwards (reprise's settings, approvals and records, the clients' hooks)
// is not its to write, nor are the plans that hooks go by.
func TestChecksReachNoSettings(t *testing.T) {
	if abi, why := confine.Supported(); abi == 0 {
		t.Skip("nothing keeps checks from writing here: " + why)
	}
	home := filepath.Join(t.TempDir(), "home")
	work := filepath.Join(home, "work")
	put := func(name, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(filepath.Join(home, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(home, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	kept := []string{
		".config/reprise/config.yaml", ".local/share/reprise/projects/other/trust.json", ".local/share/reprise/tokens.json",
		".claude/settings.json", ".codex/hooks.json", ".codex/config.toml", ".gemini/settings.json", ".copilot/hooks/reprise.json",
		".local/state/reprise/sessions/a.dir", ".local/state/reprise/guard/pending/a.answer", ".local/state/reprise/judge/state.json",
	}
	for _, name := range kept {
		put(name, ifKnown(strings.HasSuffix(name, ".yaml"), "memory: {}\n", "{}\n"))
	}
	put(".cache/reprise/hooks/a.plan", "on")
	var line strings.Builder
	for _, name := range append([]string{".cache/reprise/hooks/a.plan", ".cache/reprise/hooks/b.plan", ".cache/seen"}, kept...) {
		line.WriteString("echo off >> $HOME/" + name + " && echo written " + name + "; ")
	}
	line.WriteString("mkdir -p $HOME/.copilot/hooks && echo off > $HOME/.copilot/hooks/a.json && echo written a.json; ")
	line.WriteString("mv $HOME/.config/reprise $HOME/.config/gone; for d in $HOME/.local/share/reprise/projects/shop*; do echo off > $d/trust.json; rm -rf $d; done; true")
	put("work/.reprise/project.yaml", "v: 1\nname: shop\nverify:\n  profiles:\n    quick:\n      - name: reaches\n        run: "+strconv.Quote(line.String())+"\n")
	run := func(args ...string) string {
		t.Helper()
		var out strings.Builder
		vars := map[string]string{"HOME": home, "PATH": os.Getenv("PATH"), "GIT_CONFIG_NOSYSTEM": "1"}
		code := Main(t.Context(), args, &App{
			In: strings.NewReader(""), Out: &out, Err: &out, Guest: true, Hostname: "h", Program: "reprise",
			Environ: []string{"HOME=" + home, "PATH=" + os.Getenv("PATH")}, Env: config.Env{Vars: vars, Dir: work, GOOS: runtime.GOOS, Now: time.Now},
		})
		if code != 0 {
			t.Fatalf("%q: exit code %d\n%s", args, code, out.String())
		}
		return out.String()
	}
	run("trust", "--yes")
	trust, err := filepath.Glob(filepath.Join(home, ".local/share/reprise/projects/shop/trust.json"))
	if err != nil || len(trust) != 1 {
		t.Fatal("no approval was kept", trust, err)
	}
	approval, err := os.ReadFile(trust[0])
	if err != nil {
		t.Fatal(err)
	}
	run("verify")
	if shown := run("verify", "show"); strings.Count(shown, "| written ") != 3 { // of caches, where everything is made anew
		t.Errorf("the check says:\n%s", shown)
	}
	for _, name := range kept {
		if data, err := os.ReadFile(filepath.Join(home, name)); err != nil || strings.Contains(string(data), "off") {
			t.Errorf("%s: %q %v", name, data, err)
		}
	}
	if data, err := os.ReadFile(trust[0]); err != nil || string(data) != string(approval) {
		t.Errorf("the approval: %q %v", data, err)
	}
	if plans, _ := filepath.Glob(filepath.Join(home, ".cache/reprise/hooks/*.plan")); len(plans) != 0 {
		t.Errorf("plans that the check wrote are left: %q", plans)
	}
	// Copilot is there, and has no hooks yet: a check makes none.
	if err := os.RemoveAll(filepath.Join(home, ".copilot/hooks")); err != nil {
		t.Fatal(err)
	}
	run("verify")
	if list, _ := filepath.Glob(filepath.Join(home, ".copilot/*")); len(list) != 0 {
		t.Errorf("made by the check: %q", list)
	}
}
