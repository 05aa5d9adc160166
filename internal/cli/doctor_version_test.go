//go:build unix

package cli

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"reprise/internal/config"
)

// A client that is asked for its version writes nothing into the user's home, whatever it
// makes there when it starts: caches of many megabytes, its settings directory.
func TestVersionLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	home, bin := filepath.Join(dir, "home"), filepath.Join(dir, "bin")
	program := func(path, text string) string {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
		return path
	}
	if err := os.MkdirAll(home, 0o700); err != nil {
		t.Fatal(err)
	}
	app := &App{Environ: []string{"HOME=" + home, "PATH=" + os.Getenv("PATH")}, Out: io.Discard, Err: io.Discard,
		Env: config.Env{Vars: map[string]string{"HOME": home, "PATH": os.Getenv("PATH")}, Dir: dir}}
	app.Env.Vars["TMPDIR"] = dir
	writes := program(filepath.Join(bin, "writes"), "#!/bin/sh\nmkdir -p \"$HOME/.cache/it\" && echo x > \"$HOME/.cache/it/big\" && echo 'it 1.2.3'\n")
	shim := program(filepath.Join(bin, "shim"), "#!/bin/sh\ntest -e \"$HOME/versions\" || { echo 'no version is set' >&2; exit 126; }\necho 'shimmed 4.5'\n")
	never := program(filepath.Join(bin, "never"), "#!/bin/sh\necho broken >&2\nexit 7\n")
	mod := program(filepath.Join(dir, "lib", "node_modules", "@them", "tool", "bin", "run.js"), "#!/bin/sh\necho \"ran\" >> \""+home+"/ran\"\n")
	program(filepath.Join(dir, "lib", "node_modules", "@them", "tool", "package.json"), `{"name": "@them/tool", "version": "9.8.7"}`)
	// One with no version of its own is not taken for a package above it.
	bare := program(filepath.Join(dir, "lib", "node_modules", "bare", "run"), "#!/bin/sh\necho 'bare 2'\n")

	for path, want := range map[string]string{writes: "it 1.2.3", mod: "9.8.7 (@them/tool)", bare: "bare 2"} {
		if v, err := programVersion(t.Context(), app, path); v != want || err != nil {
			t.Errorf("%s: %q %v, want %q", path, v, err, want)
		}
	}
	if list, err := os.ReadDir(home); len(list) != 0 || err != nil {
		t.Errorf("%v %v was made in the user's home", list, err)
	}
	if _, err := programVersion(t.Context(), app, never); err == nil || !strings.Contains(err.Error(), "exit code 7: broken") {
		t.Error(err)
	}
	// A version manager's starter needs the home that it was set up in.
	program(filepath.Join(home, "versions"), "")
	if v, err := programVersion(t.Context(), app, shim); v != "shimmed 4.5" || err != nil {
		t.Errorf("%q %v", v, err)
	}
	left, err := filepath.Glob(filepath.Join(os.TempDir(), "reprise-doctor-*", ".cache", "it"))
	if len(left) != 0 || err != nil {
		t.Errorf("left behind: %v %v", left, err)
	}
}
