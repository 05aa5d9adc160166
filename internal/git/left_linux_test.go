package git

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// TestTakeLeft: a lock goes only where it is old enough and no git that was there before it
// works in the repository, which one with an open editor does, wherever in it it was begun.
func TestTakeLeft(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not here")
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) {
		t.Helper()
		cmd := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=a", "-c", "user.email=a@x"}, args...)...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	run("init", "-q")
	run("commit", "-q", "--allow-empty", "-m", "x")
	if err := os.Mkdir(filepath.Join(dir, "sub"), 0o700); err != nil {
		t.Fatal(err)
	}
	bare := filepath.Join(dir, ".git")
	lock := filepath.Join(bare, "index.lock")
	make := func(age time.Duration) {
		t.Helper()
		if err := os.WriteFile(lock, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		at := time.Now().Add(-age)
		if err := os.Chtimes(lock, at, at); err != nil {
			t.Fatal(err)
		}
	}
	want := func(what string, gone bool) {
		t.Helper()
		got, err := TakeLeft(lock, time.Minute, time.Now())
		if _, serr := os.Lstat(lock); err != nil || got != gone || (serr != nil) != gone {
			t.Errorf("%s: gone %v (%v), error %v; want %v", what, got, serr, err, gone)
		}
	}
	make(time.Second)
	want("a new one", false)
	make(5 * time.Minute)
	want("one that was left", true)
	want("none", true)
	if gone, err := TakeLeft(filepath.Join(dir, "x.lock"), 0, time.Now()); gone {
		t.Errorf("one outside: %v", err)
	}

	// A git that waits, as with an editor, and was begun below the top. It counts where it
	// was there before the lock.
	ready := filepath.Join(dir, "ready")
	cmd := exec.Command("git", "-c", "user.name=a", "-c", "user.email=a@x", "commit", "--allow-empty")
	cmd.Dir = filepath.Join(dir, "sub")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Env = append(os.Environ(), "GIT_EDITOR=touch "+ready+"; read x; echo said >")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		if _, err := os.Lstat(ready); err == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("git does not call its editor")
		}
	}
	make(0)
	if gone, err := TakeLeft(lock, 0, time.Now()); gone || err != nil {
		t.Errorf("the lock of a git that works was taken: %v", err)
	}
	in.Close()
	_ = cmd.Wait() // that it was committed or not is not what is asked
	if _, err := os.Lstat(lock); err == nil {
		make(5 * time.Minute)
		want("when it has ended", true)
	}
}
