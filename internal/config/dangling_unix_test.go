//go:build unix

package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A settings file that is a link to what is not there is not "no settings file": the
// rules in it forbid something, and nobody would be told that they are gone.
func TestSettingsBehindALinkThatLeadsNowhere(t *testing.T) {
	for name, of := range map[string]func(file string) string{"the file": func(f string) string { return f }, "its directory": filepath.Dir} {
		env := testEnv(t)
		paths, err := FindPaths(env)
		if err != nil {
			t.Fatal(err)
		}
		link := of(paths.ConfigFile)
		if err := os.MkdirAll(filepath.Dir(link), 0o755); err != nil {
			t.Fatal(err)
		}
		if _, source, err := Load(env, paths, ""); err != nil || source != "" {
			t.Fatalf("%s: without it: %q, %v", name, source, err)
		}
		if err := os.Symlink(filepath.Join(t.TempDir(), "away"), link); err != nil {
			t.Fatal(err)
		}
		if _, _, err := Load(env, paths, ""); err == nil || !strings.Contains(err.Error(), link) || !strings.Contains(err.Error(), "remove the link") {
			t.Errorf("%s: %v", name, err)
		}
		if err := os.Remove(link); err != nil {
			t.Fatal(err)
		}
		if _, _, err := Load(env, paths, ""); err != nil {
			t.Errorf("%s: after it was removed: %v", name, err)
		}
	}
}
