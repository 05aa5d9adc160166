package agent

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// program writes an executable shell script.
func program(t *testing.T, name, body string) string {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("the stand-ins are shell scripts")
	}
	path := filepath.Join(t.TempDir(), name)
	// A process that is started just now would hold the file open for writing, and
	// until it has become another program nobody could run it (ETXTBSY).
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+body), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestDetect(t *testing.T) {
	tests := []struct {
		name, body string
		kind       string
		version    string
	}{
		{"claude", `echo "2.1.332 (Claude Code)"`, KindClaude, "2.1.332"},
		{"mock of the seed", "sleep ${MOCK_DELAY:-0}\necho \"Mock sub-agent received task: $(cat)\"\necho \"Working directory: $(pwd)\"", KindGeneric, ""},
		{"other program with a version", `echo 1.2.3-beta.1`, KindGeneric, "1.2.3-beta.1"},
		{"talks about it", `echo "I am not 2.1 (Claude Code), sorry"`, KindGeneric, ""},
		{"two lines", `echo "2.1.332 (Claude Code)"; echo more`, KindGeneric, ""},
		{"fails", `echo "2.1.332 (Claude Code)"; exit 1`, KindGeneric, ""},
		{"floods", `yes "2.1.332 (Claude Code)" | head -100000`, KindGeneric, ""},
		{"silent", `exit 0`, KindGeneric, ""},
		{"garbage", `printf '\377\000\001'`, KindGeneric, ""},
		{"dies", `kill -9 $$`, KindGeneric, ""},
		{"sees a key", `[ -z "$ANTHROPIC_API_KEY" ] && echo "2.1.332 (Claude Code)"`, KindClaude, "2.1.332"},
		{"has input", `[ -z "$(cat)" ] && echo "2.1.332 (Claude Code)"`, KindClaude, "2.1.332"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			path := program(t, "p", tt.body)
			info, err := Detect(t.Context(), path, []string{"PATH=" + os.Getenv("PATH"), "ANTHROPIC_API_KEY=k", "MOCK_DELAY=99"})
			if err != nil || info.Kind != tt.kind || info.Version != tt.version || info.Path != path {
				t.Errorf("%+v %v", info, err)
			}
		})
	}
}

func TestDetectDoesNotWaitForEver(t *testing.T) {
	path := program(t, "p", "exec sleep 600")
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(200*time.Millisecond, func() { cancel(errNoAnswer) }) // as its own limit does
	start := time.Now()
	info, err := Detect(ctx, path, []string{"PATH=" + os.Getenv("PATH")})
	if err != nil || info.Kind != KindGeneric || time.Since(start) > time.Minute {
		t.Errorf("%+v %v after %s", info, err, time.Since(start))
	}
	// The caller's own end is an error and not an answer.
	done, stop := context.WithCancel(t.Context())
	stop()
	if _, err := Detect(done, path, nil); err == nil {
		t.Error("a cancelled question was answered")
	}
}

func TestDetectNamesWhatIsWrong(t *testing.T) {
	dir := t.TempDir()
	plain := filepath.Join(dir, "plain")
	if err := os.WriteFile(plain, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	tests := map[string]string{filepath.Join(dir, "none"): "no such file", dir: "not a file", "claude": "absolute"}
	if runtime.GOOS != "windows" {
		tests[plain] = "not executable"
	}
	for path, want := range tests {
		if _, err := Detect(t.Context(), path, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func TestDetectorAsksOnce(t *testing.T) {
	dir := t.TempDir()
	count := filepath.Join(dir, "count")
	path := program(t, "p", "echo x >> "+count+"\necho '2.1.332 (Claude Code)'")
	d := &Detector{File: filepath.Join(dir, "cache", "clients.json")}
	env := []string{"PATH=" + os.Getenv("PATH")}
	asked := func() int {
		data, err := os.ReadFile(count)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Count(string(data), "x")
	}
	for range 3 {
		if info, err := d.Detect(t.Context(), path, env); err != nil || info.Kind != KindClaude {
			t.Fatal(info, err)
		}
		d = &Detector{File: d.File} // another process
	}
	if n := asked(); n != 1 {
		t.Errorf("asked %d times", n)
	}
	// Another program under the same name is asked again.
	if err := os.WriteFile(path, []byte("#!/bin/sh\necho x >> "+count+"\necho other thing\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if info, err := d.Detect(t.Context(), path, env); err != nil || info.Kind != KindGeneric || asked() != 2 {
		t.Errorf("%+v %v, asked %d times", info, err, asked())
	}
	// A broken memory is no memory.
	if err := os.WriteFile(d.File, []byte(`{"v":1,"programs":[{"kind":"claude","pa`), 0o600); err != nil {
		t.Fatal(err)
	}
	if info, err := d.Detect(t.Context(), path, env); err != nil || info.Kind != KindGeneric || asked() != 3 {
		t.Errorf("%+v %v, asked %d times", info, err, asked())
	}
}

func TestPreflight(t *testing.T) {
	claudeProgram := program(t, "claude", `echo "2.1.332 (Claude Code)"`)
	old := program(t, "claude", `echo "1.9.1 (Claude Code)"`)
	home := t.TempDir()
	login := t.TempDir()
	keyed := t.TempDir()
	for path, data := range map[string]string{filepath.Join(login, ".claude", ".credentials.json"): "", filepath.Join(keyed, ".claude", "settings.json"): `{"apiKeyHelper":"get-key"}`} {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		// Unreadable: only that it is there may count.
		if err := os.WriteFile(path, []byte(data), 0o400); err != nil {
			t.Fatal(err)
		}
	}
	tests := []struct {
		name, program string
		env           []string
		want          map[string]Level
	}{
		{"key", claudeProgram, []string{"ANTHROPIC_API_KEY=k"}, map[string]Level{"program": LevelOK, "version": LevelOK, "login": LevelOK}},
		{"logged in", claudeProgram, []string{"HOME=" + login}, map[string]Level{"program": LevelOK, "version": LevelOK, "login": LevelOK}},
		{"other place", claudeProgram, []string{"HOME=" + home, "CLAUDE_CONFIG_DIR=" + filepath.Join(login, ".claude")}, map[string]Level{"program": LevelOK, "version": LevelOK, "login": LevelOK}},
		{"key program", claudeProgram, []string{"HOME=" + keyed}, map[string]Level{"program": LevelOK, "version": LevelOK, "login": LevelOK}},
		{"nothing", claudeProgram, []string{"HOME=" + home}, map[string]Level{"program": LevelOK, "version": LevelOK, "login": LevelWarn}},
		{"no home", claudeProgram, nil, map[string]Level{"program": LevelOK, "version": LevelOK, "login": LevelWarn}},
		{"old", old, []string{"ANTHROPIC_API_KEY=k"}, map[string]Level{"program": LevelOK, "version": LevelWarn, "login": LevelOK}},
		{"generic needs no login", program(t, "p", "cat"), nil, map[string]Level{"program": LevelOK, "version": LevelOK}},
		{"missing", "/nonexistent/claude", nil, map[string]Level{"program": LevelError}},
	}
	for _, tt := range tests {
		_, found := Preflight(t.Context(), tt.program, append(tt.env, "PATH="+os.Getenv("PATH")), nil)
		got := map[string]Level{}
		for _, f := range found {
			got[f.Check] = f.Level
			if f.Level != LevelOK && f.Remedy == "" {
				t.Errorf("%s: %s has no remedy", tt.name, f.Message)
			}
		}
		if len(got) != len(tt.want) {
			t.Errorf("%s: %v", tt.name, found)
		}
		for k, v := range tt.want {
			if got[k] != v {
				t.Errorf("%s: %s is %q, want %q (%v)", tt.name, k, got[k], v, found)
			}
		}
	}
}
