package setup

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Each row was seen with the real program: whether its hooks ran with these files.
func TestHooksOff(t *testing.T) {
	const off = `{"disableAllHooks":true}`
	tests := []struct {
		client string
		files  map[string]string // below the home, the project or the machine's directories
		vars   string
		why    string // "" where hooks run
		admin  bool
	}{
		{"claude-code", nil, "", "", false},
		{"claude-code", map[string]string{"home/.claude/settings.json": off}, "", "disableAllHooks in ~home/.claude/settings.json", false},
		{"claude-code", map[string]string{"work/.claude/settings.json": off}, "", "disableAllHooks in ~work/.claude/settings.json", false},
		{"claude-code", map[string]string{"work/.claude/settings.local.json": off}, "", "disableAllHooks in ~work/.claude/settings.local.json", false},
		{"claude-code", map[string]string{"work/.claude/settings.json": `{"disableAllHooks":"true"}`}, "", "", false},
		{"claude-code", map[string]string{"home/.claude/settings.json": off, "work/.claude/settings.local.json": `{"disableAllHooks":false}`}, "", "", false},
		{"claude-code", map[string]string{"work/.claude/settings.json": off, "etc/claude-code/managed-settings.json": `{"disableAllHooks":false}`}, "", "", false},
		{"claude-code", map[string]string{"etc/claude-code/managed-settings.json": off}, "", "disableAllHooks in ~etc/claude-code/managed-settings.json", true},
		{"claude-code", map[string]string{"etc/claude-code/managed-settings.d/10-x.json": off}, "", "disableAllHooks in ~etc/claude-code/managed-settings.d/10-x.json", true},
		{"claude-code", map[string]string{"etc/claude-code/managed-settings.json": `{"allowManagedHooksOnly":true}`}, "", "allowManagedHooksOnly in ~etc", true},
		{"claude-code", map[string]string{"etc/claude-code/managed-settings.json": `{"strictPluginOnlyCustomization":true}`}, "", "strictPluginOnlyCustomization in ~etc", true},
		{"claude-code", map[string]string{"etc/claude-code/managed-settings.json": `{"strictPluginOnlyCustomization":["hooks"]}`}, "", "strictPluginOnlyCustomization in ~etc", true},
		{"claude-code", map[string]string{"etc/claude-code/managed-settings.json": `{"strictPluginOnlyCustomization":["skills"]}`}, "", "", false},
		{"claude-code", map[string]string{"home/.claude/settings.json": `{"strictPluginOnlyCustomization":true,"allowManagedHooksOnly":true}`}, "", "", false},
		{"claude-code", map[string]string{"home/.claude/settings.json": `{"env":{"CLAUDE_CODE_SIMPLE":"1"}}`}, "", "CLAUDE_CODE_SIMPLE in ~home", false},
		{"claude-code", map[string]string{"work/.claude/settings.json": `{"env":{"CLAUDE_CODE_SIMPLE":"1"}}`}, "", "", false},
		{"claude-code", nil, "CLAUDE_CODE_SAFE_MODE=1", "the variable CLAUDE_CODE_SAFE_MODE", false},
		{"claude-code", nil, "CLAUDE_CODE_SIMPLE=0", "", false},

		{"gemini", map[string]string{"home/.gemini/settings.json": `{"hooksConfig":{"enabled":false}}`}, "", "hooksConfig.enabled in ~home", false},
		{"gemini", map[string]string{"work/.gemini/settings.json": `{"hooksConfig":{"enabled":false}}`}, "", "hooksConfig.enabled in ~work", false},
		{"gemini", map[string]string{"work/.gemini/settings.json": `{"hooksConfig":{"disabled":["reprise"]}}`}, "", "hooksConfig.disabled in ~work", false},
		{"gemini", map[string]string{"home/.gemini/settings.json": `{"tools":{"enableHooks":false},"hooks":{"enabled":false,"disabled":["reprise"]}}`}, "", "", false},
		{"gemini", map[string]string{"etc/gemini-cli/settings.json": `{"hooksConfig":{"enabled":false}}`}, "", "hooksConfig.enabled in ~etc", true},
		{"gemini", map[string]string{"etc/gemini-cli/system-defaults.json": `{"hooksConfig":{"enabled":false}}`}, "", "hooksConfig.enabled in ~etc", true},
		{"gemini", map[string]string{"etc/gemini-cli/system-defaults.json": `{"hooksConfig":{"enabled":false}}`, "home/.gemini/settings.json": `{"hooksConfig":{"enabled":true}}`}, "", "", false},

		{"copilot", map[string]string{"home/.copilot/settings.json": off, "home/.copilot/hooks/other.json": off, "home/.claude/settings.json": off, "work/.github/hooks/x.json": off}, "", "", false},
		{"copilot", map[string]string{"work/.github/copilot/settings.json": off}, "", "disableAllHooks in ~work/.github/copilot/settings.json", false},
		{"copilot", map[string]string{"work/.github/copilot/settings.local.json": off}, "", "disableAllHooks in ~work/.github/copilot/settings.local.json", false},
		{"copilot", map[string]string{"work/.claude/settings.json": off}, "", "disableAllHooks in ~work/.claude/settings.json", false},
		{"copilot", map[string]string{"work/.claude/settings.json": off, "work/.github/copilot/settings.json": `{"disableAllHooks":false}`}, "", "", false},
		{"copilot", map[string]string{"work/.github/copilot/settings.json": off, "work/.github/copilot/settings.local.json": `{"disableAllHooks":false}`}, "", "", false},

		{"codex", map[string]string{"home/.codex/config.toml": "[features]\nhooks = false\n"}, "", "features.hooks in ~home", false},
		{"codex", map[string]string{"home/.codex/config.toml": "[features]\ncodex_hooks = false\n"}, "", "features.codex_hooks in ~home", false},
		{"codex", map[string]string{"work/.codex/config.toml": "[features]\nhooks = false\n"}, "", "", false}, // nobody trusts it
		{"codex", map[string]string{"work/.codex/config.toml": "[features]\nhooks = false\n", "home/.codex/config.toml": "[projects.'~work']\ntrust_level = \"trusted\"\n"}, "", "features.hooks in ~work", false},
		{"codex", map[string]string{"etc/codex/requirements.toml": "allow_managed_hooks_only = true\n"}, "", "allow_managed_hooks_only in ~etc", true},
		{"codex", map[string]string{"etc/codex/requirements.toml": "[features]\nhooks = false\n"}, "", "features.hooks in ~etc", true},
		{"codex", map[string]string{"etc/codex/config.toml": "[features]\nhooks = false\n"}, "", "features.hooks in ~etc", true},
		{"codex", map[string]string{"etc/codex/managed_config.toml": "[features]\nhooks = false\n"}, "", "features.hooks in ~etc", true},
	}
	for _, tt := range tests {
		s := newSetup(t)
		at := map[string]string{"home": s.Env.Vars["HOME"], "work": s.Root, "etc": t.TempDir()}
		s.Machine = at["etc"]
		full := func(text string) string {
			for name, dir := range at {
				text = strings.ReplaceAll(text, "~"+name, dir)
			}
			return filepath.FromSlash(text)
		}
		for name, text := range tt.files {
			put(t, full("~"+name), strings.ReplaceAll(text, "~work", s.Root))
		}
		if name, value, ok := strings.Cut(tt.vars, "="); ok {
			s.Env.Vars[name] = value
		}
		why, remedy, err := s.HooksOff(tt.client, false)
		if err != nil || (why == "") != (tt.why == "") || !strings.HasPrefix(why, full(tt.why)) {
			t.Errorf("%s %v: %q %v, want %q", tt.client, tt.files, why, err, full(tt.why))
		}
		if tt.admin != (remedy == byAdministrator) || (why == "") != (remedy == "") {
			t.Errorf("%s %v: remedy %q", tt.client, tt.files, remedy)
		}
	}
}

// What a repository sets for hooks is named, though nobody heeds it.
func TestDoctorImposedVariables(t *testing.T) {
	s := newSetup(t)
	d := Doctor{Setup: s, Program: filepath.Join(t.TempDir(), "reprise")}
	file := filepath.Join(s.Root, ".claude", "settings.json")
	put(t, file, `{"env":{"REPRISE_HOOK_DEPTH":"1","OTHER":"x"}}`)
	got := d.hooks(t.Context())
	if len(got) == 0 || got[0].Status != Warn || !strings.HasPrefix(got[0].Message, file+" sets REPRISE_HOOK_DEPTH for hooks") {
		t.Errorf("%+v", got)
	}
	put(t, file, `{"env":{"OTHER":"REPRISE_HOME"}}`)
	for _, f := range d.hooks(t.Context()) {
		if f.Status != Info {
			t.Errorf("nothing is set: %+v", f)
		}
	}
}

// The doctor says that hooks are off in place of how many there are, and tries no session
// that would prove nothing of the user's own.
func TestDoctorHooksOff(t *testing.T) {
	s := newSetup(t)
	s.Machine = t.TempDir()
	d := Doctor{Setup: s, Program: filepath.Join(t.TempDir(), "reprise")}
	hook := Beside(d.Program, HookProgram)
	if err := os.WriteFile(hook, nil, 0o755); err != nil {
		t.Fatal(err)
	}
	d.Live = func(_ context.Context, h InstalledHooks) []Finding { return one(OK, "", "%s: ran", h.Client) }
	for _, client := range []string{"claude-code", "copilot"} {
		if _, err := s.InstallAll(t.Context(), All{Request: Request{Client: client, Scope: User, Program: d.Program}, HookProgram: hook, NoMCP: true}); err != nil {
			t.Fatal(err)
		}
	}
	said := func() string {
		var b strings.Builder
		for _, f := range append(d.hooks(t.Context()), d.live(t.Context())...) {
			b.WriteString(string(f.Status) + " " + f.Message + " → " + f.Remedy + "\n")
		}
		return b.String()
	}
	if out := said(); strings.Contains(out, "fail") || !strings.Contains(out, "ok claude-code: ran") {
		t.Errorf("as it should be:\n%s", out)
	}
	file, err := s.HookFile("copilot", User)
	if err != nil {
		t.Fatal(err)
	}
	put(t, file, strings.Replace(get(t, file), "{", `{"disableAllHooks": true,`, 1)) // of this file alone
	if out := said(); !strings.Contains(out, "but copilot runs no hooks here, by disableAllHooks in "+file) || !strings.Contains(out, "ok claude-code: ran") {
		t.Errorf("Copilot's own file:\n%s", out)
	}
	project := filepath.Join(s.Root, ".claude", "settings.json")
	put(t, project, `{"disableAllHooks": true}`)
	if out := said(); !strings.Contains(out, "14 hooks, but claude-code runs no hooks here, by disableAllHooks in "+project) ||
		!strings.Contains(out, "→ take disableAllHooks out of "+project) || !strings.Contains(out, "info claude-code: not tried") || strings.Contains(out, "ran") {
		t.Errorf("the project's:\n%s", out)
	}
	put(t, project, `{`)
	if out := said(); !strings.Contains(out, "warn claude-code: whether its hooks are switched off is not known") {
		t.Errorf("a file that cannot be read:\n%s", out)
	}
}
