package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"reprise/internal/config"
)

// What to do is said where the system refuses reprise's own places, and nowhere else: a
// file of the user's that cannot be read has nothing to do with REPRISE_HOME.
func TestRefusedPlace(t *testing.T) {
	home := t.TempDir()
	app := &App{Env: config.Env{Vars: map[string]string{"HOME": home, "USERPROFILE": home, "REPRISE_HOME": filepath.Join(home, "a", "reprise")}, Dir: home, GOOS: "linux"}}
	at := func(path string, why error) error {
		return fmt.Errorf("claim project name: %w", &fs.PathError{Op: "mkdir", Path: path, Err: why})
	}
	for name, c := range map[string]struct {
		err  error
		said bool
	}{
		"above it":    {at(filepath.Join(home, "a"), syscall.EACCES), true},
		"in it":       {at(filepath.Join(home, "a", "reprise", "projects", "x"), syscall.EROFS), true},
		"not there":   {at(filepath.Join(home, "a", "reprise", "x"), syscall.ENOENT), false},
		"elsewhere":   {at(filepath.Join(home, "b"), syscall.EACCES), false},
		"of no file":  {errors.New("permission denied"), false},
		"with a code": {exitWith(ExitConflict, at(filepath.Join(home, "a"), syscall.EACCES)), true},
	} {
		got := app.withPlace(c.err)
		if said := strings.Contains(got.Error(), "REPRISE_HOME"); said != c.said || strings.Contains(got.Error(), "\n") {
			t.Errorf("%s: %v", name, got)
		}
		if !errors.Is(got, c.err) {
			t.Errorf("%s: it is another error now: %v", name, got)
		}
	}
	// Where something else lies in a directory's place, to make that writable is no help.
	if err := os.WriteFile(filepath.Join(home, "a"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	got := app.withPlace(at(filepath.Join(home, "a", "reprise", "projects"), syscall.ENOTDIR)).Error()
	if !strings.Contains(got, filepath.Join(home, "a")+" is a file") || strings.Contains(got, "writable") {
		t.Error(got)
	}
	if app.withPlace(nil) != nil {
		t.Error("an error came of none")
	}
}
