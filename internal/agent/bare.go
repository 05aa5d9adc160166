package agent

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"

	"reprise/internal/proc"
)

// bare is a client that is started for bare questions only (Task.Isolated). It
// gets a home of its own in the run's directory, in which nobody's hooks, servers,
// instructions and logins are, and so takes its key from the environment. Measured
// with Gemini CLI 0.61 and Copilot CLI 1.0, against homes full of all that.
type bare struct{ kind string }

func (b bare) Name() string { return b.kind }

func (b bare) NewStream() Stream { return &bareStream{} }

// ownHome is the client's home beneath the run's directory.
const ownHome = "home"

func (b bare) Command(t Task) (Command, error) {
	if err := t.check(); err != nil {
		return Command{}, err
	}
	if t.Isolated == nil {
		return Command{}, bad("client", b.kind+" is asked as a judge only; use claude, script or generic for a run")
	}
	if t.Program == "" {
		return Command{}, bad("program", "is empty; set judge.program")
	}
	switch b.kind {
	case KindGemini:
		return isolatedGemini(t)
	case KindCopilot:
		return isolatedCopilot(t)
	}
	// With hooks, servers and features off, what Codex 0.171 offers is decided by
	// the model: gpt-6 models are given a JavaScript interpreter and agents of their
	// own whatever the settings say.
	return Command{}, fmt.Errorf("start %s: %w: which tools it offers depends on the model, and not all of them can be switched off; use Claude Code, Gemini CLI or Copilot CLI", b.kind, ErrIsolation)
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
	env, err := t.environ("GEMINI_CLI_HOME="+home, "GEMINI_SYSTEM_MD="+filepath.Join(t.RunDir, systemFile),
		// Settings of the machine, or of whoever set the variable: there are none there.
		"GEMINI_CLI_SYSTEM_SETTINGS_PATH="+filepath.Join(home, "none.json"), "GEMINI_CLI_SYSTEM_DEFAULTS_PATH="+filepath.Join(home, "none.json"),
		// Its directory is empty and its own; without trust it does not start.
		"GEMINI_CLI_TRUST_WORKSPACE=true", "GEMINI_CLI_NO_RELAUNCH=true", "GEMINI_TELEMETRY_ENABLED=false")
	if err != nil {
		return Command{}, err
	}
	return Command{Path: t.Program, Args: args, Env: env, Dir: t.WorkDir, Files: map[string][]byte{
		systemFile: []byte(t.SystemPrompt), filepath.Join(ownHome, ".gemini", "settings.json"): []byte(geminiSettings),
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
		systemFile: []byte(t.SystemPrompt), promptFile: []byte(t.SystemPrompt + "\n\n" + t.Prompt), filepath.Join(ownHome, ".keep"): nil,
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

// bareStream understands Gemini CLI's stream-json and Copilot CLI's json: a line
// an event, the answer in messages, and a last line that says how it went.
type bareStream struct {
	p      Progress
	text   strings.Builder
	stray  string
	ok     bool
	status string
	usage  Usage
}

type bareLine struct {
	Type      string `json:"type"`
	SessionID string `json:"session_id"`
	CopilotID string `json:"sessionId"`
	Role      string `json:"role"`
	Content   string `json:"content"`
	Delta     bool   `json:"delta"`
	Status    string `json:"status"`
	ExitCode  *int   `json:"exitCode"`
	Error     struct {
		Message string `json:"message"`
	} `json:"error"`
	Stats struct {
		Input  int64 `json:"input_tokens"`
		Output int64 `json:"output_tokens"`
	} `json:"stats"`
	Data struct {
		Content string `json:"content"`
		Message string `json:"message"`
	} `json:"data"`
}

func (s *bareStream) Line(line []byte, cut bool) {
	var l bareLine
	if cut || json.Unmarshal(line, &l) != nil {
		if s.stray == "" {
			s.stray = clip(string(line), 500)
		}
		return
	}
	if id := l.SessionID + l.CopilotID; id != "" && len(id) <= 128 {
		s.p.SessionID = id
	}
	switch {
	case l.Type == "message" && l.Role == "assistant":
		s.say(l.Content, l.Delta)
	case l.Type == "assistant.message":
		s.say(l.Data.Content, false)
	case l.Type == "tool_use", l.Type == "tool.execution_start":
		s.p.ToolCalls++
	case l.Type == "session.error", l.Type == "error":
		s.status = clip(l.Data.Message+l.Error.Message, 300)
	case l.Type == "result":
		s.p.ResultSeen = true
		s.ok = l.Status == "success" || l.ExitCode != nil && *l.ExitCode == 0
		s.usage = Usage{InputTokens: l.Stats.Input, OutputTokens: l.Stats.Output}
		if !s.ok && l.Error.Message != "" {
			s.status = clip(l.Error.Message, 300)
		}
	}
}

// say takes a message, or with more the next piece of one.
func (s *bareStream) say(text string, more bool) {
	if !more {
		s.text.Reset()
	}
	s.p.Messages++
	s.text.WriteString(clipBytes(text, max(0, MaxText-s.text.Len())))
	s.p.LastText = clip(text, maxLastText)
}

func (s *bareStream) Skip(int64) {}

func (s *bareStream) Progress() Progress { return s.p }

func (s *bareStream) Finish(e Exit) Result {
	r := Result{Text: toValid([]byte(s.text.String())), SessionID: s.p.SessionID, NumTurns: s.p.Messages, Usage: s.usage}
	switch {
	case e.Cancelled:
		r.Reason = "cancelled"
	case e.TimedOut:
		r.Reason = "stopped at its time limit"
	case !s.p.ResultSeen:
		r.Reason = oneLine(join(": ", "ended without a result ("+e.String()+")", join("; ", s.status, s.stray, tail(strings.TrimSpace(e.Stderr), 500))))
	case !s.ok:
		r.Reason = oneLine(join(": ", "the agent ended with an error", s.status))
	case !e.AfterResult && (e.Code != 0 || e.Signal != ""):
		r.Reason = "reported success, but the process ended with " + e.String()
	case strings.TrimSpace(r.Text) == "":
		r.Reason = oneLine(join(": ", "the agent ended without an answer", s.status))
	default:
		r.OK = true
	}
	return r
}
