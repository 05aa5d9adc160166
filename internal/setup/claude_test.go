package setup

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// The real Claude Code sees the entries in all three scopes, and what it wrote
// itself stays. Without the program (script/test installs it) this is skipped;
// Claude Desktop, Cursor and VS Code cannot be had here, and are tested by the
// form of their files alone.
func TestRealClaude(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the program is started as on Unix")
	}
	claude, err := filepath.Abs("../../script/clients/node_modules/.bin/claude")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(claude); err != nil {
		t.Skip("Claude Code is not installed: ", err)
	}
	if testing.Short() {
		t.Skip("takes three seconds")
	}
	s := newSetup(t)
	server := filepath.Join(s.Dir, "reprise")
	put(t, server, "#!/bin/sh\nexit 1\n")
	if err := os.Chmod(server, 0o755); err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), claude, args...)
		cmd.Dir = s.Dir
		cmd.Env = []string{"HOME=" + s.Env.Vars["HOME"], "PATH=" + os.Getenv("PATH"), "LANG=C.UTF-8", "TERM=dumb", "DISABLE_TELEMETRY=1",
			"DISABLE_AUTOUPDATER=1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1"}
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("claude %v: %v\n%s", args, err, out)
		}
		return string(out)
	}
	run("mcp", "add", "--scope", "user", "other", "--", server, "x")
	for _, scope := range []string{User, Local, Project} {
		if _, err := s.Install(t.Context(), Request{Client: "claude-code", Scope: scope, Program: server}); err != nil {
			t.Fatal(err)
		}
	}
	// Each start of the program takes a second or more: three must do.
	if out := run("mcp", "get", Name); !strings.Contains(out, server) || !strings.Contains(out, "Local config") {
		t.Errorf("the entry of local scope is not seen:\n%s", out)
	}
	for _, scope := range []string{Local, Project} {
		if _, err := s.Uninstall(t.Context(), Request{Client: "claude-code", Scope: scope, Program: server}); err != nil {
			t.Fatal(err)
		}
	}
	if out := run("mcp", "get", Name); !strings.Contains(out, server) || !strings.Contains(out, "User config") {
		t.Errorf("the entry of user scope is not seen:\n%s", out)
	}
	if _, err := s.Uninstall(t.Context(), Request{Client: "claude-code", Program: server}); err != nil {
		t.Fatal(err)
	}
	target, err := Locate(s.Where, "claude-code", User)
	if err != nil {
		t.Fatal(err)
	}
	if e, ok, err := Find(target, "other"); err != nil || !ok || e.Command != server {
		t.Errorf("the entry that the program made itself: %+v, %v, %v", e, ok, err)
	}
	if _, ok, err := Find(target, Name); err != nil || ok {
		t.Errorf("ours is still there, or the file is broken: %v", err)
	}
}
