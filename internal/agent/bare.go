package agent

import (
	"fmt"
	"path/filepath"
	"strings"

	"reprise/internal/proc"
)

// ownHome is the client's home beneath the run's directory.
const ownHome = "home"

// isolated starts a client for one bare question (Task.Isolated). It gets a home of
// its own in the run's directory, in which nobody's hooks, servers, instructions and
// logins are, and so takes its key from the environment. Measured with Gemini CLI 0.61
// and Copilot CLI 1.0, against homes full of all that.
func (o other) isolated(t Task) (Command, error) {
	switch o.kind {
	case KindGemini:
		return isolatedGemini(t)
	case KindCopilot:
		return isolatedCopilot(t)
	}
	// With hooks, servers and features off, what Codex 0.171 offers is decided by
	// the model: gpt-6 models are given a JavaScript interpreter and agents of their
	// own whatever the settings say.
	return Command{}, fmt.Errorf("start %s: %w: which tools it offers depends on the model, and not all of them can be switched off; use Claude Code, Gemini CLI or Copilot CLI", o.kind, ErrIsolation)
}

// geminiSettings leave nothing on. A list of one tool that there is not is the way
// to have none: an empty list means all.
const geminiSettings = `{
  "security": {"auth": {"selectedType": "gemini-api-key"}},
  "hooksConfig": {"enabled": false},
  "mcp": {"allowed": []},
  "tools": {"core": ["none"]},
  "skills": {"enabled": false},
  "experimental": {"enableAgents": false},
  "context": {"fileName": "none.md"},
  "privacy": {"usageStatisticsEnabled": false},
  "telemetry": {"enabled": false},
  "general": {"enableAutoUpdate": false, "enableAutoUpdateNotification": false}
}
`

func isolatedGemini(t Task) (Command, error) {
	if err := t.needKey("Gemini CLI", "GEMINI_API_KEY"); err != nil {
		return Command{}, err
	}
	args := []string{"-o", "stream-json", "--approval-mode", "default", "-e", "none"}
	if t.Model != "" {
		args = append(args, "-m", t.Model)
	}
	home := filepath.Join(t.RunDir, ownHome)
	env, err := t.environ("GEMINI_CLI_HOME="+home, "GEMINI_SYSTEM_MD="+filepath.Join(t.RunDir, SystemFile),
		// Settings of the machine, or of whoever set the variable: there are none there.
		"GEMINI_CLI_SYSTEM_SETTINGS_PATH="+filepath.Join(home, "none.json"), "GEMINI_CLI_SYSTEM_DEFAULTS_PATH="+filepath.Join(home, "none.json"),
		// Its directory is empty and its own; without trust it does not start.
		"GEMINI_CLI_TRUST_WORKSPACE=true", "GEMINI_CLI_NO_RELAUNCH=true", "GEMINI_TELEMETRY_ENABLED=false")
	if err != nil {
		return Command{}, err
	}
	return Command{Path: t.Program, Args: args, Env: env, Dir: t.WorkDir, Files: map[string][]byte{
		SystemFile: []byte(t.SystemPrompt), filepath.Join(ownHome, ".gemini", "settings.json"): []byte(geminiSettings),
	}}, nil
}

func isolatedCopilot(t Task) (Command, error) {
	if err := t.needKey("Copilot CLI", "COPILOT_PROVIDER_API_KEY", "COPILOT_GITHUB_TOKEN", "GH_TOKEN", "GITHUB_TOKEN"); err != nil {
		return Command{}, err
	}
	// It has no flag for a system prompt: that stands before the question, in the
	// file that is its standard input.
	args := []string{
		"--output-format", "json", "--stream", "off", "--no-color", "--available-tools=none", "--disable-builtin-mcps",
		"--no-custom-instructions", "--no-ask-user", "--no-remote", "--no-auto-update",
	}
	if t.Model != "" {
		args = append(args, "--model", t.Model)
	}
	env, err := t.environ("COPILOT_HOME="+filepath.Join(t.RunDir, ownHome), "COPILOT_AUTO_UPDATE=false", "COPILOT_ALLOW_ALL=")
	if err != nil {
		return Command{}, err
	}
	return Command{Path: t.Program, Args: args, Env: env, Dir: t.WorkDir, Files: map[string][]byte{
		SystemFile: []byte(t.SystemPrompt), promptFile: []byte(t.SystemPrompt + "\n\n" + t.Prompt), filepath.Join(ownHome, ".keep"): nil,
	}}, nil
}

// promptFile is what the run gives the client as its standard input.
const promptFile = "prompt.md"

// needKey wants one of the variables: a login is in the user's own home.
func (t Task) needKey(client string, names ...string) error {
	for _, name := range names {
		if proc.EnvValue(t.Env, name) != "" {
			return nil
		}
	}
	return fmt.Errorf("start %s: %w: a login lies among the settings that it must not load, so it needs a key: set %s", client, ErrIsolation, strings.Join(names, " or "))
}
