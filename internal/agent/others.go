package agent

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"

	"reprise/internal/durable"
)

// other is Codex, Gemini CLI or Copilot CLI. They are started in two ways only: for a
// bare question (Task.Isolated), and to work (Task.Work). Both times they get
// a home of their own in the run's directory, in place of their user's settings, hooks,
// servers and instructions. Measured with Codex 0.171, Gemini CLI 0.61 and Copilot CLI
// 1.0.102.
type other struct{ kind string }

func (o other) Name() string { return o.kind }

func (o other) NewStream() Stream { return newOtherStream(o.kind) }

func (o other) Command(t Task) (Command, error) {
	if err := t.check(); err != nil {
		return Command{}, err
	}
	if t.Isolated == nil && t.Work == nil {
		return Command{}, bad("client", o.kind+" works with a home of its own, and none was given")
	}
	if t.Program == "" {
		return Command{}, bad("program", "is empty; name the client's program")
	}
	if t.Isolated != nil {
		return o.isolated(t)
	}
	return o.work(t)
}

// work starts a client that works by itself: nothing is asked, for nobody is there; what
// it may do is decided by the guard's hooks, which stand in its home, and by the sandbox
// of the run.
func (o other) work(t Task) (Command, error) {
	w := t.Work
	home, fresh := w.Home, w.Home == ""
	if fresh {
		home = filepath.Join(t.RunDir, ownHome)
	} else if !filepath.IsAbs(home) {
		return Command{}, bad("home", fmt.Sprintf("%q is relative; name an absolute path", home))
	}
	args, vars, err := o.argv(t, home)
	if err != nil {
		return Command{}, err
	}
	extra, err := t.plainEnv()
	if err != nil {
		return Command{}, err
	}
	env, err := t.environ(append(extra, vars...)...)
	if err != nil {
		return Command{}, err
	}
	files := map[string][]byte{SystemFile: []byte(t.SystemPrompt)}
	if o.kind == KindCodex && len(w.Schema) > 0 {
		files[schemaFile] = w.Schema
	}
	if fresh {
		for name, data := range maps.All(w.HomeFiles) {
			files[filepath.Join(ownHome, name)] = data
		}
		// What the session is told beside its client's own prompt stands where the client
		// looks for its user's instructions.
		files[filepath.Join(ownHome, filepath.FromSlash(o.instructions()))] = []byte(t.SystemPrompt)
	}
	return Command{Path: t.Program, Args: args, Env: append(env, w.Vars...), Dir: t.WorkDir, Files: files, Home: home}, nil
}

// instructions is the file of the user's instructions below the client's home.
func (o other) instructions() string {
	switch o.kind {
	case KindCodex:
		return ".codex/AGENTS.md"
	case KindGemini:
		return ".gemini/GEMINI.md"
	}
	return ".copilot/copilot-instructions.md"
}

// argv are the client's arguments, and the variables that give it its home.
func (o other) argv(t Task, home string) (args, vars []string, err error) {
	w := t.Work
	switch o.kind {
	case KindCodex:
		if err := t.needKey("Codex", "CODEX_API_KEY", "OPENAI_API_KEY"); err != nil && len(w.HomeFiles[filepath.FromSlash(".codex/config.toml")]) == 0 {
			return nil, nil, err
		}
		args = []string{"exec"}
		if t.resume() != "" {
			args = append(args, "resume")
		}
		// Its own sandbox would keep it from committing in a worktree, whose repository
		// is elsewhere, and cannot be had in every container.
		args = append(args, "--json", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "--dangerously-bypass-hook-trust",
			"-c", "check_for_update_on_startup=false", "-c", "analytics.enabled=false")
		if t.Model != "" {
			args = append(args, "--model="+t.Model)
		}
		if len(w.Schema) > 0 {
			args = append(args, "--output-schema="+filepath.Join(t.RunDir, schemaFile))
		}
		if t.resume() != "" {
			args = append(args, t.resume())
		}
		return append(args, "-"), []string{"CODEX_HOME=" + filepath.Join(home, ".codex")}, nil
	case KindGemini:
		if err := t.needKey("Gemini CLI", "GEMINI_API_KEY"); err != nil {
			return nil, nil, err
		}
		// The flag comes too late for the settings, which are read before it: those of the
		// repository, with its hooks and servers, are left out, and it works all the same.
		args = []string{"-o", "stream-json", "--approval-mode", "yolo", "--skip-trust", "-e", "none"}
		for _, d := range t.openDirs() {
			args = append(args, "--include-directories="+d)
		}
		if t.Model != "" {
			args = append(args, "-m", t.Model)
		}
		if t.resume() != "" {
			args = append(args, "--resume", t.resume())
		} else if t.SessionID != "" {
			args = append(args, "--session-id", t.SessionID)
		}
		none := filepath.Join(home, "none.json")
		return args, []string{
			"GEMINI_CLI_HOME=" + home, "GEMINI_CLI_SYSTEM_SETTINGS_PATH=" + none, "GEMINI_CLI_SYSTEM_DEFAULTS_PATH=" + none,
			"GEMINI_CLI_NO_RELAUNCH=true", "GEMINI_TELEMETRY_ENABLED=false",
		}, nil
	}
	if err := t.needKey("Copilot CLI", "COPILOT_PROVIDER_API_KEY", "COPILOT_GITHUB_TOKEN", "GH_TOKEN", "GITHUB_TOKEN"); err != nil {
		return nil, nil, err
	}
	args = []string{"--output-format", "json", "--stream", "off", "--no-color", "--no-ask-user", "--no-remote", "--no-auto-update", "--disable-builtin-mcps", "--allow-all-paths"}
	if len(w.AllowedTools) > 0 {
		for _, tool := range w.AllowedTools {
			args = append(args, "--allow-tool="+tool)
		}
	} else {
		args = append(args, "--allow-all-tools")
	}
	if t.Model != "" {
		args = append(args, "--model", t.Model)
	}
	if t.resume() != "" {
		args = append(args, "--resume="+t.resume())
	} else if t.SessionID != "" {
		args = append(args, "--session-id="+t.SessionID)
	}
	return args, []string{"COPILOT_HOME=" + filepath.Join(home, ".copilot"), "COPILOT_AUTO_UPDATE=false", "COPILOT_ALLOW_ALL="}, nil
}

// SessionUsage is what a session has used by its client's own file, for Copilot CLI, which
// tells it nowhere else: in the last of the processes that it had. ok is false where it
// is not said.
func SessionUsage(kind, transcript string) (u Usage, ok bool) {
	if kind != KindCopilot || transcript == "" {
		return u, false
	}
	f, err := durable.Open(transcript)
	if err != nil {
		return u, false
	}
	defer f.Close()
	var before Usage
	sc := bufio.NewScanner(f)
	sc.Buffer(make([]byte, 64<<10), 16<<20)
	for sc.Scan() {
		if !bytes.Contains(sc.Bytes(), []byte(`"session.shutdown"`)) {
			continue
		}
		var l struct {
			Type string `json:"type"`
			Data struct {
				Snapshot struct {
					Models map[string]struct {
						Usage struct {
							Input  int64 `json:"inputTokens"`
							Output int64 `json:"outputTokens"`
							Read   int64 `json:"cacheReadTokens"`
							Write  int64 `json:"cacheWriteTokens"`
						} `json:"usage"`
					} `json:"modelMetrics"`
				} `json:"accountingSnapshot"`
			} `json:"data"`
		}
		if json.Unmarshal(sc.Bytes(), &l) != nil || l.Type != "session.shutdown" {
			continue
		}
		before, u, ok = u, Usage{}, true // the counts go on from one process to the next
		for _, m := range l.Data.Snapshot.Models {
			u.InputTokens += m.Usage.Input
			u.OutputTokens += m.Usage.Output
			u.CacheReadTokens += m.Usage.Read
			u.CacheCreationTokens += m.Usage.Write
		}
	}
	u.InputTokens, u.OutputTokens = max(0, u.InputTokens-before.InputTokens), max(0, u.OutputTokens-before.OutputTokens)
	u.CacheReadTokens, u.CacheCreationTokens = max(0, u.CacheReadTokens-before.CacheReadTokens), max(0, u.CacheCreationTokens-before.CacheCreationTokens)
	return u, ok && sc.Err() == nil
}

// Transcript finds the client's own file of a session, "" where there is none. home is
// Command.Home, and env what the client was started from.
func Transcript(kind, home, session string, env []string) string {
	if session == "" || strings.ContainsAny(session, `*?[\/`) {
		return ""
	}
	var pattern string
	switch kind {
	case KindClaude:
		pattern = filepath.Join(ClaudeDir(env), "projects", "*", session+".jsonl")
	case KindCodex:
		pattern = filepath.Join(home, ".codex", "sessions", "*", "*", "*", "rollout-*"+session+".jsonl")
	case KindGemini:
		pattern = filepath.Join(home, ".gemini", "tmp", "*", "chats", "session-*"+session[:min(8, len(session))]+"*")
	case KindCopilot:
		pattern = filepath.Join(home, ".copilot", "session-state", session, "events.jsonl")
	default:
		return ""
	}
	found, err := filepath.Glob(pattern)
	if err != nil || len(found) == 0 || !filepath.IsAbs(found[0]) {
		return ""
	}
	if st, err := os.Stat(found[0]); err != nil || !st.Mode().IsRegular() {
		return ""
	}
	return found[0]
}
