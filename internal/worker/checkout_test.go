package worker_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"reprise/internal/config"
	"reprise/internal/durable"
	"reprise/internal/durable/durabletest"
	"reprise/internal/git"
	"reprise/internal/worker"
)

func needGit(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not here")
	}
}

func gitOptions() git.Options {
	return git.Options{Vars: map[string]string{"PATH": os.Getenv("PATH"), "HOME": os.DevNull, "GIT_CONFIG_GLOBAL": os.DevNull, "GIT_CONFIG_SYSTEM": os.DevNull}}
}

// run runs git as somebody else than the program does.
func run(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=a", "-c", "user.email=a@example.org"}, args...)...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_SYSTEM="+os.DevNull)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %v in %s: %v\n%s", args, dir, err, out)
	}
	return strings.TrimSpace(string(out))
}

// remote makes a repository with a commit, and a checkout beside it that pushes there.
func remote(t *testing.T, dir string) {
	t.Helper()
	run(t, dir, "init", "-q", "--bare", "-b", "trunk", "code.git")
	run(t, dir, "clone", "-q", "code.git", "own")
	commit(t, dir, "first")
}

func commit(t *testing.T, dir, message string) {
	t.Helper()
	own := filepath.Join(dir, "own")
	run(t, own, "checkout", "-q", "-B", "trunk")
	run(t, own, "commit", "-q", "--allow-empty", "-m", message)
	run(t, own, "push", "-q", "origin", "trunk")
}

func checkout(dir string, disk durable.Disk) *worker.Checkout {
	return &worker.Checkout{
		Project: config.WorkerProject{Name: "shop", Remote: filepath.Join(dir, "code.git")},
		Dir:     filepath.Join(dir, "work", "shop"), Git: gitOptions(), Disk: disk, Now: time.Now,
	}
}

// usable wants the clone to be there, at what the remote has.
func usable(t *testing.T, dir, at, message string) {
	t.Helper()
	branch, err := checkout(dir, durable.Disk{}).Ensure(t.Context())
	if err != nil || branch != "trunk" {
		t.Errorf("%s: %q, %v", at, branch, err)
		return
	}
	clone := filepath.Join(dir, "work", "shop")
	if got := run(t, clone, "log", "-1", "--format=%s"); got != message {
		t.Errorf("%s: the clone is at %q", at, got)
	}
	if got := run(t, clone, "status", "--porcelain") + run(t, clone, "fsck", "--connectivity-only"); got != "" {
		t.Errorf("%s: %s", at, got)
	}
	if _, err := os.Stat(clone + ".new"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s: half a clone is left", at)
	}
}

// Killed at any step, a clone that is being made is made by the next worker, and one that
// is being brought forward is whole.
func TestCheckoutKilledAtEachStep(t *testing.T) {
	needGit(t)
	act := func(disk durable.Disk, dir string) error {
		_, err := checkout(dir, disk).Ensure(t.Context())
		return err
	}
	t.Run("new", func(t *testing.T) {
		durabletest.Scenario{
			Prepare: func(t *testing.T, dir string) { remote(t, dir) },
			Act:     act,
			Check:   func(t *testing.T, dir string, _ error, at string) { usable(t, dir, at, "first") },
		}.CrashAtEachStep(t)
	})
	t.Run("forward", func(t *testing.T) {
		durabletest.Scenario{
			Prepare: func(t *testing.T, dir string) {
				remote(t, dir)
				usable(t, dir, "before", "first")
				commit(t, dir, "second")
			},
			Act:   act,
			Check: func(t *testing.T, dir string, _ error, at string) { usable(t, dir, at, "second") },
		}.CrashAtEachStep(t)
	})
	t.Run("damaged", func(t *testing.T) {
		durabletest.Scenario{
			Prepare: func(t *testing.T, dir string) {
				remote(t, dir)
				usable(t, dir, "before", "first")
				clone := filepath.Join(dir, "work", "shop")
				if err := errors.Join(os.Remove(filepath.Join(clone, ".git", "HEAD")), os.WriteFile(filepath.Join(clone, "mine"), []byte("mine"), 0o600)); err != nil {
					t.Fatal(err)
				}
			},
			Act: act,
			Check: func(t *testing.T, dir string, _ error, at string) {
				usable(t, dir, at, "first")
				if data, err := os.ReadFile(filepath.Join(dir, "work", "shop.broken-1", "mine")); err != nil || string(data) != "mine" {
					t.Errorf("%s: what was there is lost: %v", at, err)
				}
			},
		}.CrashAtEachStep(t)
	})
}

// What a person left in the clone is not overwritten, and a remote that cannot be reached
// does not keep a machine from what it has.
func TestCheckoutStaysAsItIs(t *testing.T) {
	needGit(t)
	dir := t.TempDir()
	remote(t, dir)
	own := filepath.Join(dir, "own")
	if err := os.WriteFile(filepath.Join(own, "file"), []byte("one\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, own, "add", "file")
	commit(t, dir, "file")
	usable(t, dir, "before", "file")
	clone := filepath.Join(dir, "work", "shop")
	for _, at := range []string{clone, own} {
		if err := os.WriteFile(filepath.Join(at, "file"), []byte("of "+filepath.Base(at)+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run(t, own, "add", "file")
	commit(t, dir, "other")
	var said []string
	c := checkout(dir, durable.Disk{})
	c.Say = func(text string) { said = append(said, text) }
	if _, err := c.Ensure(t.Context()); err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(filepath.Join(clone, "file")); err != nil || string(data) != "of shop\n" {
		t.Errorf("%q, %v", data, err)
	}
	if len(said) != 1 || !strings.Contains(said[0], "stays at its commit") {
		t.Errorf("it was not said: %q", said)
	}
}

// What is no repository is an error that shows no password.
func TestCheckoutCannotClone(t *testing.T) {
	needGit(t)
	dir := t.TempDir()
	c := checkout(dir, durable.Disk{})
	c.Project.Remote = "https://me:secret@127.0.0.1:1/x.git"
	if _, err := c.Ensure(t.Context()); err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("error %v", err)
	}
	run(t, dir, "init", "-q", "--bare", "code.git")
	if _, err := checkout(dir, durable.Disk{}).Ensure(t.Context()); err == nil || !strings.Contains(err.Error(), "no commit yet") {
		t.Errorf("a repository without a commit: %v", err)
	}
}
