//go:build unix

package git

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestCutOffInHook: a git that is cut off, by a signal to the command or by its time, while
// a hook of the user's runs removes its lock, and the hook ends with it; the next one works.
// A hook that does not want to end is killed.
func TestCutOffInHook(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not here")
	}
	for _, c := range []struct{ name, trap string }{{"one that ends", ""}, {"one that does not want to", "trap '' TERM; "}} {
		for _, timed := range []bool{false, true} {
			t.Run(c.name+map[bool]string{false: ", cancelled", true: ", out of time"}[timed], func(t *testing.T) {
				t.Parallel()
				cutOffInHook(t, c.trap, timed)
			})
		}
	}
}

func cutOffInHook(t *testing.T, trap string, timed bool) {
	dir := t.TempDir()
	g := New(dir, Options{Vars: map[string]string{"PATH": os.Getenv("PATH"), "HOME": t.TempDir()}, Remote: 2 * time.Second})
	for _, args := range [][]string{{"init", "-q"}, {"config", "user.name", "a"}, {"config", "user.email", "a@x"}} {
		if _, err := g.AsUser().Run(t.Context(), args...); err != nil {
			t.Fatal(err)
		}
	}
	hook, pidFile := filepath.Join(dir, ".git", "hooks", "pre-commit"), filepath.Join(dir, "pid")
	script := "#!/bin/sh\n" + trap + "echo $$ >" + pidFile + ".new; mv " + pidFile + ".new " + pidFile + "\nwhile :; do sleep 1; done\n"
	if err := os.MkdirAll(filepath.Dir(hook), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{hook: script, filepath.Join(dir, "a"): "x"} {
		if err := os.WriteFile(name, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if !timed {
		g.o.Remote = time.Minute
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		_, err := g.CommitOnly(ctx, "m", []string{"a"})
		ended <- err
	}()
	pid := 0
	for deadline := time.Now().Add(time.Minute); pid == 0; time.Sleep(5 * time.Millisecond) {
		data, _ := os.ReadFile(pidFile)
		pid, _ = strconv.Atoi(strings.TrimSpace(string(data)))
		if time.Now().After(deadline) {
			t.Fatal("the hook does not run")
		}
	}
	want := error(ErrTimeout)
	if !timed {
		want = context.Canceled
		cancel()
	}
	if err := <-ended; !errors.Is(err, want) {
		t.Errorf("it says %v, not %v", err, want)
	}
	for deadline := time.Now().Add(time.Minute); syscall.Kill(pid, 0) == nil; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the hook runs on")
		}
	}
	locks, err := filepath.Glob(filepath.Join(dir, ".git", "*.lock"))
	if err != nil || len(locks) > 0 {
		t.Errorf("left behind: %v, %v", locks, err)
	}
	if err := os.Remove(hook); err != nil {
		t.Fatal(err)
	}
	if _, err := New(dir, g.o).CommitOnly(t.Context(), "m", []string{"a"}); err != nil {
		t.Errorf("the next one: %v", err)
	}
}
