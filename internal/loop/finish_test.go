package loop

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"reprise/internal/config"
	"reprise/internal/durable"
	"reprise/internal/git"
	"reprise/internal/loop/core"
	"reprise/internal/queue"
	"reprise/internal/staterepo"
	"reprise/internal/workspace"
)

// TestFinishAgain: a worktree that cannot be given up or taken away at one moment, such as
// for want of descriptors, is at the next. The loop's own lease of it, forgotten, kept
// everybody from it, the loop itself too, for as long as that lived; and what was noted
// as staying stayed for good.
func TestFinishAgain(t *testing.T) {
	t.Parallel()
	var ill atomic.Bool
	w := finishing(t, durable.NewDisk(func(durable.Step) *durable.Fault {
		if ill.Load() {
			return &durable.Fault{Err: syscall.EMFILE}
		}
		return nil
	}))
	item := queue.Item{ID: "a", Title: "A"}
	for _, fate := range []core.Fate{core.Retry, core.Done} {
		p, err := w.Prepare(t.Context(), item, 1)
		if err != nil {
			t.Fatalf("before it is %s: %v", fate, err)
		}
		if err := os.WriteFile(filepath.Join(p.Dir, string(fate)), []byte("1\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Keep(t.Context(), p, item); err != nil {
			t.Fatal(err)
		}
		ill.Store(true)
		for range 2 {
			if note, _, err := w.Finish(t.Context(), p, item, fate); !passing(err) {
				t.Errorf("%s without a descriptor: %q, %v", fate, note, err)
			}
		}
		ill.Store(false)
		if note, _, err := w.Finish(t.Context(), p, item, fate); note != "" || err != nil {
			t.Errorf("%s at the next moment: %q, %v", fate, note, err)
		}
		w.Wait()
		got, err := w.Workspaces.Get(p.Name)
		_, lerr := os.Lstat(p.Top)
		switch {
		case fate == core.Done && (!errors.Is(err, workspace.ErrNotFound) || !errors.Is(lerr, fs.ErrNotExist)):
			t.Errorf("the worktree is left: %+v, %v, %v", got, err, lerr)
		case fate != core.Done && (err != nil || len(got.Holders) > 0 || lerr != nil):
			t.Errorf("the worktree is not as it should be: %+v, %v, %v", got, err, lerr)
		}
	}
}

// TestFinishStopsWhatIsLeft: where a process of a run that has ended is still in the worktree,
// which a supervisor without descriptors cannot stop, it is stopped and the worktree goes; it
// stayed for good. Where it cannot be stopped now that is tried again.
func TestFinishStopsWhatIsLeft(t *testing.T) {
	t.Parallel()
	w := finishing(t, durable.Disk{})
	item := queue.Item{ID: "a", Title: "A"}
	p, err := w.Prepare(t.Context(), item, 1)
	if err != nil {
		t.Fatal(err)
	}
	left := exec.Command("sleep", "600")
	left.Dir = p.Dir
	if err := left.Start(); err != nil {
		t.Fatal(err)
	}
	stop := sync.OnceFunc(func() { _ = left.Process.Kill(); _ = left.Wait() })
	t.Cleanup(stop)
	w.Sweep = func(context.Context) error { return syscall.EMFILE }
	if note, _, err := w.Finish(t.Context(), p, item, core.Done); !passing(err) {
		t.Errorf("while nothing can be stopped: %q, %v", note, err)
	}
	w.Sweep = func(context.Context) error { stop(); return nil }
	if note, _, err := w.Finish(t.Context(), p, item, core.Done); note != "" || err != nil {
		t.Errorf("once it can: %q, %v", note, err)
	}
	w.Wait()
	if got, err := w.Workspaces.Get(p.Name); !errors.Is(err, workspace.ErrNotFound) {
		t.Errorf("the worktree is left: %+v, %v", got, err)
	}
}

// finishing are the worktrees of a project of their own.
func finishing(t *testing.T, disk durable.Disk) *Worktrees {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not here")
	}
	dir := t.TempDir()
	top := filepath.Join(dir, "shop")
	vars := map[string]string{
		"PATH": os.Getenv("PATH"), "HOME": dir, "REPRISE_HOME": filepath.Join(dir, "data"), "GIT_CONFIG_NOSYSTEM": "1",
		"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@x", "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@x",
	}
	script := exec.Command("sh", "-ec", "git init -q -b trunk shop; cd shop; mkdir .reprise; printf 'v: 1\\nname: shop\\n' > .reprise/project.yaml; echo 0 > f; git add -A; git commit -qm first")
	for k, v := range vars {
		script.Env = append(script.Env, k+"="+v)
	}
	script.Dir = dir
	if out, err := script.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	env := config.Env{Vars: vars, Dir: top, GOOS: "linux", Now: time.Now}
	paths, err := config.FindPaths(env)
	if err != nil {
		t.Fatal(err)
	}
	project, err := config.FindProject(env, top)
	if err != nil || project == nil {
		t.Fatal(project, err)
	}
	state := staterepo.New(staterepo.Options{Dir: paths.ProjectDir("shop"), Project: "shop", Git: git.Options{Vars: vars}, Now: time.Now, Disk: disk})
	w := &Worktrees{
		Workspaces: workspace.New(workspace.Options{Env: env, Paths: paths, Project: project, State: state, Disk: disk}),
		Root:       top, Git: git.Options{Vars: vars}, Now: time.Now, Patience: time.Millisecond,
	}
	return w
}
