package agent

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"reprise/internal/guard"

	"reprise/internal/proc"
)

// Environment variables that reprise gives to what it starts. RunIDVar is the
// marker by which every descendant of a run is found again (proc.RunIDVar is
// the same name).
const (
	RunIDVar        = "REPRISE_RUN_ID"
	ParentRunVar    = "REPRISE_PARENT_RUN_ID"
	DepthVar        = "REPRISE_DEPTH"
	SessionVar      = "REPRISE_SESSION_ID"
	ModelVar        = "REPRISE_MODEL"
	AddDirsVar      = "REPRISE_ADD_DIRS"
	MemoryDirVar    = "REPRISE_MEMORY_DIR"
	SystemPromptVar = "REPRISE_SYSTEM_PROMPT_FILE"
	// ResumeVar is the session that the script client is to go on with.
	ResumeVar = "REPRISE_RESUME_SESSION"
)

// MaxDepth is how many runs may stand inside one another: a run that a person
// started has depth 1. Nothing in Claude Code stops a hook or a server from
// starting Claude again (seen four deep), so the count is ours.
const MaxDepth = 3

// SystemFile is where an adapter places the whole system prompt of a run.
const SystemFile = "system.md"

// Names of the other files that adapters place in a run's directory.
const (
	settingsFile = "settings.json"
	policyFile   = "policy.json"
	serversFile  = "mcp.json"
	schemaFile   = "schema.json"
)

// Policy is what the run's own tools may not touch: the memory directory
// (never written; read only with AllowMemoryRead), the protected directories,
// and the run's directory, whose files (this policy among them) are reprise's.
// The caller may build an operating system sandbox from the same value.
func (t Task) Policy() guard.Policy {
	p := t.protected()
	// Only variables that lead to a protected directory go into the policy,
	// which is written to a file.
	touches := p.Touching()
	for _, kv := range t.Env {
		if name, v, _ := strings.Cut(kv, "="); filepath.IsAbs(v) && !strings.ContainsRune(v, os.PathListSeparator) && touches(v) {
			if p.Vars == nil {
				p.Vars = map[string]string{}
			}
			p.Vars[name] = v
		}
	}
	return p
}

// protected is the policy without the variables of the environment.
func (t Task) protected() guard.Policy {
	p := guard.Policy{WorkDir: t.WorkDir, Home: proc.EnvValue(t.Env, "HOME")}
	p.DenyAll = append(p.DenyAll, t.ProtectDirs...)
	if t.MemoryDir != "" {
		if t.AllowMemoryRead {
			p.DenyWrite = append(p.DenyWrite, t.MemoryDir)
		} else {
			p.DenyAll = append(p.DenyAll, t.MemoryDir)
		}
	}
	if t.RunDir != "" {
		p.DenyWrite = append(p.DenyWrite, t.RunDir)
	}
	return p
}

// resume is the client's session to go on with, "" for a new one.
func (t Task) resume() string {
	if t.Work != nil && t.Work.Resume != "" {
		return t.Work.Resume
	}
	return t.Resume
}

// check finds what no client could do anything sensible with.
func (t Task) check() error {
	if strings.TrimSpace(t.Prompt) == "" {
		return bad("task", "is empty; say what the agent should do")
	}
	if t.RunID == "" || strings.ContainsFunc(t.RunID, func(r rune) bool { return r <= ' ' || r == '=' || r == 0x7f || r == '/' || r == '\\' }) {
		return bad("run id", fmt.Sprintf("%q is not a plain word", t.RunID))
	}
	for _, f := range []struct{ name, value string }{{"task", t.Prompt}, {"system prompt", t.SystemPrompt}} {
		if err := checkText(f.name, f.value); err != nil {
			return err
		}
	}
	for _, f := range []struct{ name, value string }{{"model", t.Model}, {"session id", t.SessionID}} {
		if strings.ContainsFunc(f.value, unicode.IsControl) || !utf8.ValidString(f.value) {
			return bad(f.name, fmt.Sprintf("%q holds control characters", f.value))
		}
	}
	if t.MaxTurns < 0 || t.MaxBudgetUSD < 0 || t.Timeout < 0 {
		return bad("limits", "turns, budget and timeout cannot be negative; leave them out for no limit")
	}
	return t.checkDirs()
}

func (t Task) checkDirs() error {
	type dir struct {
		name, path string
		need       bool
	}
	dirs := []dir{{"run directory", t.RunDir, true}, {"working directory", t.WorkDir, true}, {"memory directory", t.MemoryDir, false}, {"script file", t.ScriptFile, false}}
	for _, d := range t.AddDirs {
		dirs = append(dirs, dir{"additional directory", d, true})
	}
	for _, d := range t.ProtectDirs {
		dirs = append(dirs, dir{"protected directory", d, true})
	}
	for _, d := range dirs {
		switch {
		case d.path == "" && !d.need:
		case d.path == "":
			return bad(d.name, "is empty; name an absolute path")
		case strings.ContainsFunc(d.path, func(r rune) bool { return r == 0 || r == '\n' || r == '\r' }):
			return bad(d.name, fmt.Sprintf("%q holds a NUL byte or a line break", d.path))
		case !filepath.IsAbs(d.path):
			return bad(d.name, fmt.Sprintf("%q is relative; name an absolute path", d.path))
		}
	}
	// A directory that is handed out and protected at once is a contradiction
	// that the client would settle in its own way.
	pol := t.protected()
	for _, open := range append([]string{t.WorkDir}, t.AddDirs...) {
		if by, ok := pol.Covers(open); ok {
			return bad("directory", fmt.Sprintf("%s lies in %s, which this run may not read; allow reading memory (allow_memory_read) or choose another directory", open, by))
		}
	}
	return nil
}

func checkText(name, s string) error {
	if i := strings.IndexByte(s, 0); i >= 0 {
		return bad(name, fmt.Sprintf("holds a NUL byte at byte %d; remove it", i))
	}
	if !utf8.ValidString(s) {
		return bad(name, "is not UTF-8; convert it")
	}
	return nil
}

func bad(field, problem string) error {
	return fmt.Errorf("check %s: %w: %s", field, ErrBadTask, problem)
}

// clientSession are the variables by which a running Claude Code describes
// itself to its children (measured with 2.1.332: the environment of its Bash
// tool, its hooks and its servers). A client that inherits them takes itself
// for a part of that session: it may refuse, attach to the parent's socket or
// write into the parent's files. The user's own settings of the same prefix,
// such as CLAUDE_CODE_USE_BEDROCK or CLAUDE_CODE_OAUTH_TOKEN, must stay, so
// this is a list and not a prefix.
var clientSession = [...]string{
	"CLAUDECODE", "CLAUDE_PID", "CLAUDE_EFFORT", "CLAUDE_PROJECT_DIR", "CLAUDE_ENV_FILE",
	"CLAUDE_PLUGIN_ROOT", "CLAUDE_PLUGIN_DATA", "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CODE_EXECPATH",
	"CLAUDE_CODE_SSE_PORT", "AI_AGENT",
}

// clientSessionPrefixes are families of such variables.
var clientSessionPrefixes = [...]string{"CLAUDE_CODE_SESSION_", "CLAUDE_CODE_CHILD_", "CLAUDE_CODE_MESSAGING_"}

func isClientSession(name string) bool {
	for _, n := range clientSession {
		if name == n {
			return true
		}
	}
	for _, p := range clientSessionPrefixes {
		if strings.HasPrefix(name, p) {
			return true
		}
	}
	return false
}

// environ builds the child's environment: the task's own without a parent
// client's session, and with the run's identity.
func (t Task) environ(extra ...string) ([]string, error) {
	depth := 1
	if d := proc.EnvValue(t.Env, DepthVar); d != "" {
		n, err := strconv.Atoi(d)
		if err != nil || n < 0 {
			return nil, bad(DepthVar, fmt.Sprintf("%q is not a number; unset it", d))
		}
		depth = n + 1
	}
	// A judge's question delegates nothing, and is asked for the deepest run too.
	if depth > MaxDepth && t.Isolated == nil {
		return nil, bad("nesting", fmt.Sprintf("this run would stand %d deep inside others, %d is the limit; let the outer agent do the work", depth, MaxDepth))
	}
	set := []string{RunIDVar + "=" + t.RunID, DepthVar + "=" + strconv.Itoa(depth)}
	if parent := proc.EnvValue(t.Env, RunIDVar); parent != "" {
		set = append(set, ParentRunVar+"="+parent)
	}
	set = append(set, extra...)
	own := map[string]bool{RunIDVar: true, DepthVar: true, ParentRunVar: true, SessionVar: true, ModelVar: true, AddDirsVar: true, MemoryDirVar: true, SystemPromptVar: true, ResumeVar: true}
	for _, kv := range set {
		name, _, _ := strings.Cut(kv, "=")
		own[name] = true
	}
	var out []string
	for _, kv := range proc.WithoutRepository(t.Env) { // it has a directory of its own
		name, _, ok := strings.Cut(kv, "=")
		if !ok || strings.ContainsRune(kv, 0) || own[name] || isClientSession(name) {
			continue
		}
		out = append(out, kv)
	}
	return append(out, set...), nil
}
