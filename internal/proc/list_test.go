package proc_test

import (
	"os"
	"runtime"
	"slices"
	"testing"
	"time"

	"reprise/internal/proc"
)

// A child of ours is in the table, with what it was started with, and not as an
// orphan; we ourselves are not.
func TestList(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	dir, began := t.TempDir(), time.Now()
	p, err := proc.Start(proc.Cmd{
		Path: self, Args: []string{"-test.run=TestListChild$"}, Dir: dir, Stdin: r,
		Env: []string{"REPRISE_LIST_CHILD=1", proc.RunIDVar + "=run-listedlist"},
	})
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	defer func() {
		w.Close()
		if _, err := p.Wait(); err != nil {
			t.Error(err)
		}
	}()
	var e proc.Entry
	for deadline := time.Now().Add(time.Minute); ; {
		all, err := proc.List()
		if err != nil {
			t.Fatal(err)
		}
		if slices.ContainsFunc(all, func(e proc.Entry) bool { return e.ID.PID == os.Getpid() }) {
			t.Fatal("the caller is in the list")
		}
		// Between fork and exec it still has our words.
		if i := slices.IndexFunc(all, func(e proc.Entry) bool { return e.ID == p.ID() }); i >= 0 {
			if e = all[i]; len(e.Args) == 0 || runtime.GOOS == "windows" || len(e.Args) > 1 && e.Args[1] == "-test.run=TestListChild$" {
				break
			}
		}
		if time.Now().After(deadline) {
			t.Fatalf("the child %s is not in the list as it was started: %+v", p.ID(), e)
		}
	}
	if e.Orphan || !e.Mine || e.Parent != os.Getpid() {
		t.Errorf("orphan %v, mine %v, parent %d, want a child of %d", e.Orphan, e.Mine, e.Parent, os.Getpid())
	}
	if d := e.Began.Sub(began); d < -3*time.Second || d > time.Minute {
		t.Errorf("it began %v after we did", d)
	}
	if runtime.GOOS == "linux" && (e.RunID != "run-listedlist" || !sameDir(e.Dir, dir)) {
		t.Errorf("run %q in %q, want run-listedlist in %q", e.RunID, e.Dir, dir)
	}
}

func sameDir(a, b string) bool {
	x, errA := os.Stat(a)
	y, errB := os.Stat(b)
	return errA == nil && errB == nil && os.SameFile(x, y)
}

// TestListChild is the child: it ends with its input.
func TestListChild(t *testing.T) {
	if os.Getenv("REPRISE_LIST_CHILD") == "" {
		t.Skip("for TestList")
	}
	os.Stdin.Read(make([]byte, 1)) //nolint:errcheck // the end of it is the answer
}
