package config

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// testEnv is a Linux environment with a home of its own.
func testEnv(t *testing.T) Env {
	t.Helper()
	home := filepath.Join(t.TempDir(), "home")
	if err := os.MkdirAll(home, 0o755); err != nil {
		t.Fatal(err)
	}
	return Env{Vars: map[string]string{"HOME": home, "USERPROFILE": home}, Dir: home, GOOS: "linux", Now: time.Now}
}

func TestOpenWithoutAnything(t *testing.T) {
	env := testEnv(t)
	h, err := Open(env, "")
	if err != nil {
		t.Fatal(err)
	}
	if h.Source != "" || h.Project != nil {
		t.Errorf("source %q, project %v: want none", h.Source, h.Project)
	}
	if got, want := h.MemoryDir(), filepath.Join(env.Dir, ".local/share/reprise/memory"); got != want {
		t.Errorf("memory directory %s, want %s", got, want)
	}
	if entries, err := os.ReadDir(env.Dir); err != nil || len(entries) != 0 {
		t.Errorf("Open left something behind: %v %v", entries, err)
	}
}
