package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"reprise/internal/durable"
	"reprise/internal/proc"
)

// Level is how bad a finding is.
type Level string

// The levels. A run is refused on LevelError only.
const (
	LevelOK    Level = "ok"
	LevelWarn  Level = "warning"
	LevelError Level = "error"
)

// Finding is one thing looked at before a start.
type Finding struct {
	Check   string `json:"check"` // "program", "version", "login"
	Level   Level  `json:"level"`
	Message string `json:"message"`
	Remedy  string `json:"remedy,omitempty"`
}

// TestedClaude is the version of Claude Code that the adapter was measured
// with.
const TestedClaude = "2.1.332"

// Preflight looks at a client before anything is started with it: whether the
// program is there and can be executed, whether its version is known, and
// whether it is logged in as far as that can be seen offline. program is an
// absolute path (proc.LookPath). It contacts nobody and reads no secret: for
// a login only the existence of variables and files counts. detect may be
// nil.
func Preflight(ctx context.Context, program string, env []string, detect *Detector) (Info, []Finding) {
	info, err := detect.Detect(ctx, program, env)
	if err != nil {
		return info, []Finding{{Check: "program", Level: LevelError, Message: err.Error(), Remedy: "install the client, or set claude_cli.path to where it is"}}
	}
	out := []Finding{{Check: "program", Level: LevelOK, Message: program}}
	if info.Kind != KindClaude {
		return info, append(out, Finding{Check: "version", Level: LevelOK, Message: join(" ", "not Claude Code: used as a program that reads its task on standard input", info.Version)})
	}
	v := Finding{Check: "version", Level: LevelOK, Message: "Claude Code " + info.Version}
	if olderThan(info.Version, "2.1.0") {
		v.Level = LevelWarn
		v.Message += ", older than anything tried (" + TestedClaude + ")"
		v.Remedy = "update Claude Code"
	}
	return info, append(out, v, claudeLogin(env))
}

// ClaudeDir is the directory that Claude Code keeps its own settings and sessions in, which
// it makes where it is missing; "" where the environment does not say.
func ClaudeDir(env []string) string {
	home := cmp.Or(proc.EnvValue(env, "HOME"), proc.EnvValue(env, "USERPROFILE"))
	switch dir := proc.EnvValue(env, "CLAUDE_CONFIG_DIR"); {
	case dir != "":
		return dir
	case home != "":
		return filepath.Join(home, ".claude")
	}
	return ""
}

// claudeLogin looks for any of the ways Claude Code can be authenticated.
func claudeLogin(env []string) Finding {
	f := Finding{Check: "login", Level: LevelOK}
	for _, name := range []string{"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN", "CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX", "CLAUDE_CODE_USE_FOUNDRY"} {
		if proc.EnvValue(env, name) != "" {
			f.Message = name + " is set"
			return f
		}
	}
	dir := ClaudeDir(env)
	if dir == "" {
		return Finding{Check: "login", Level: LevelWarn, Message: "cannot tell: neither HOME nor CLAUDE_CONFIG_DIR is set", Remedy: "set HOME"}
	}
	if path := filepath.Join(dir, ".credentials.json"); isFile(path) {
		f.Message = path + " is there"
		return f
	}
	if path := filepath.Join(dir, "settings.json"); hasKeyHelper(path) {
		f.Message = "apiKeyHelper is set in " + path
		return f
	}
	f.Level, f.Message = LevelWarn, "no sign of a login: no key in the environment, no "+filepath.Join(dir, ".credentials.json")+", no apiKeyHelper"
	f.Remedy = "run `claude` once and log in, or set ANTHROPIC_API_KEY"
	if runtime.GOOS == "darwin" {
		f.Message += " (a login in the keychain cannot be seen from here)"
	}
	return f
}

func isFile(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.Mode().IsRegular()
}

// hasKeyHelper reports whether the user's settings name a program that
// supplies the key. The settings hold no key themselves.
func hasKeyHelper(path string) bool {
	data, err := durable.Read(path)
	if err != nil {
		return false
	}
	var s struct {
		APIKeyHelper string `json:"apiKeyHelper"`
	}
	return json.Unmarshal(data, &s) == nil && strings.TrimSpace(s.APIKeyHelper) != ""
}

// olderThan compares dotted numbers; what is no number counts as 0.
func olderThan(v, than string) bool {
	var a, b [3]int
	_, _ = fmt.Sscanf(v, "%d.%d.%d", &a[0], &a[1], &a[2])
	_, _ = fmt.Sscanf(than, "%d.%d.%d", &b[0], &b[1], &b[2])
	for i := range a {
		if a[i] != b[i] {
			return a[i] < b[i]
		}
	}
	return false
}
