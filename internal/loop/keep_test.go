package loop

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"reprise/internal/durable"
	"reprise/internal/loop/core"
	"reprise/internal/queue"
	"reprise/internal/run"
)

// TestKeep: whatever an agent did with its branch, its work is on it afterwards, or the
// item is not called done and nothing has changed.
func TestKeep(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not here")
	}
	commit := `git add -A && git -c user.name=a -c user.email=a@x commit -qm work`
	for _, c := range []struct {
		name, do string
		want     string // of the note, or with a "!" of the error
		has      string // file that the branch has then
		not      string // path that it has not
		linux    bool   // it can be seen there only
	}{
		{name: "as it should be", do: "echo 1 > new && " + commit, has: "new"},
		{name: "uncommitted", do: "echo 1 > new", want: "left uncommitted is committed", has: "new"},
		{name: "files removed", do: "echo 1 > new && " + commit + " && rm f new && echo 2 > other", want: "left uncommitted is committed", has: "other", not: "f\n"},
		{name: "only what git knows", do: "echo 1 > f", want: "left uncommitted is committed", has: "f"},
		{name: "only what git knows, staged in part", do: "echo 1 > f && git add f && rm f && git mv -f f g 2>/dev/null; echo 2 > f; git add -N nothing 2>/dev/null; true", want: "left uncommitted is committed", has: "f"},
		{name: "only removed", do: "rm f", want: "left uncommitted is committed", not: "f\n"},
		{name: "staged and new to the last commit", do: "echo 1 > new && git add new", want: "left uncommitted is committed", has: "new"},
		{name: "detached", do: "git checkout -q --detach && echo 1 > new && " + commit, want: "no branch", has: "new"},
		{name: "another branch", do: "git checkout -q -b sw && echo 1 > new && " + commit, want: "the branch sw", has: "new"},
		{name: "both branches", do: "echo 1 > one && " + commit + " && git checkout -q -b sw && echo 1 > new && " + commit, want: "the branch sw", has: "one"},
		{name: "uncommitted elsewhere", do: "git checkout -q -b sw && echo 1 > new", want: "committed", has: "new"},
		{name: "its branch is gone", do: "git checkout -q -b sw && git branch -D loop-a && echo 1 > new && " + commit, want: "the branch sw", has: "new"},
		{name: "behind", do: "echo 1 > new && " + commit + " && git checkout -q --detach HEAD~1", want: "!does not go on from loop-a", has: "new"},
		{name: "orphan", do: "git checkout -q --orphan o && echo 1 > new && " + commit, want: "!does not go on from commit"},
		{name: "orphan without a commit", do: "git checkout -q --orphan o", want: "!without a commit"},
		{name: "orphan in place of the branch", do: "git checkout -q --orphan o && echo 1 > new && " + commit + " && git branch -D loop-a && git branch -m loop-a", want: "!does not go on from commit", has: "new"},
		{name: "the first commit amended", do: "git -c user.name=a -c user.email=a@x commit -q --allow-empty --amend -m other && echo 1 > new && " + commit, want: "!does not go on from commit", has: "new"},
		{name: "its state committed", do: "mkdir -p .reprise/agent && cd .reprise/agent && git init -q && echo 1 > x && " + commit + " && cd ../.. && echo 1 > new && " + commit, want: "committed", has: "new", not: ".reprise/agent"},
		{name: "unmerged", do: "echo 1 > f && " + commit + " && git checkout -q -b other HEAD~1 && echo 2 > f && " + commit + " && git checkout -q loop-a; git -c user.name=a -c user.email=a@x merge -q other", want: "!these have conflicts: f"},
		{name: "locked", do: `echo 1 > new; touch .git/index.lock`, want: "!remove that file if no git runs there"},
		{name: "locked by one that was killed", do: `echo 1 > new; touch -d '5 minutes ago' .git/index.lock`, want: "committed", has: "new", linux: true},
		{name: "empty repository in it", do: "git init -q sub", want: "!repository of its own in it, whose files git would not keep: sub;"},
		{name: "repository in it", do: "git init -q sub && cd sub && echo 1 > x && " + commit, want: "!repository of its own in it", not: "sub"},
		{name: "a link for its state", do: "echo 1 > new; mkdir -p .reprise; ln -s / .reprise/agent", want: "committed", has: "new", not: ".reprise/agent"},
		{name: "a link for its state, committed", do: "echo 1 > new; mkdir -p .reprise; ln -s / .reprise/agent; git add -f .reprise/agent; " + commit, want: "committed", has: "new", not: ".reprise/agent"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if c.linux && runtime.GOOS != "linux" {
				t.Skip("only Linux tells who works in a repository")
			}
			dir := t.TempDir()
			sh := func(script string) string {
				cmd := exec.Command("sh", "-c", script)
				cmd.Dir, cmd.Env = dir, append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_SYSTEM="+os.DevNull)
				out, _ := cmd.CombinedOutput() // some of it fails as it should: a merge that conflicts
				return strings.TrimSpace(string(out))
			}
			sh("git init -q -b trunk && echo 0 > f && " + commit + " && git checkout -q -b loop-a")
			p := Place{Name: "loop-a", Dir: dir, Top: dir, Branch: "loop-a", Base: sh("git rev-parse HEAD")}
			said := sh(c.do)
			before := sh("git rev-parse loop-a")
			w := &Worktrees{Root: dir, Patience: time.Millisecond, Now: time.Now}
			note, err := w.Keep(t.Context(), p, queue.Item{ID: "a", Title: "A"})
			if text, bad := strings.CutPrefix(c.want, "!"); bad {
				if err == nil || !strings.Contains(err.Error(), text) {
					t.Errorf("%v, want %q (%s)", err, text, said)
				}
				if now := sh("git rev-parse loop-a"); now != before {
					t.Errorf("the branch went from %s to %s", before, now)
				}
			} else if err != nil || !strings.Contains(note, c.want) || c.want == "" && note != "" {
				t.Errorf("%q, %v; want %q (%s)", note, err, c.want, said)
			} else if left := sh("git symbolic-ref HEAD; git status --porcelain -- . ':(exclude).reprise'"); left != "refs/heads/loop-a" {
				t.Errorf("it is left as %q", left)
			}
			files := "\n" + sh("git ls-tree -r --name-only loop-a") + "\n"
			if c.has != "" && !strings.Contains(files, "\n"+c.has+"\n") || c.not != "" && strings.Contains(files, "\n"+c.not) {
				t.Errorf("the branch has %q; want %q, not %q", files, c.has, c.not)
			}
			again, err2 := w.Keep(t.Context(), p, queue.Item{ID: "a", Title: "A"})
			if (err2 == nil) != (err == nil) || err2 == nil && again != "" {
				t.Errorf("done twice: %q, %v", again, err2)
			}
		})
	}
}

// What would be no place of the project any more is not kept, nor are its files committed.
func TestKeepOnlyWhatBelongs(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	sh := sheller(t, dir)
	sh("git init -q -b trunk && echo 0 > f && git add f && git commit -qm f && git checkout -q -b loop-a && echo 1 > new")
	w := &Worktrees{Root: dir, Patience: time.Millisecond, Now: time.Now, Belongs: func(name string) error { return errors.New(name + " has no project.yaml") }}
	p := Place{Name: "loop-a", Dir: dir, Top: dir, Branch: "loop-a", Base: sh("git rev-parse HEAD")}
	if _, err := w.Keep(t.Context(), p, queue.Item{ID: "a", Title: "A"}); err == nil || passing(err) || !strings.Contains(err.Error(), "loop-a has no project.yaml; bring") {
		t.Errorf("%v", err)
	}
	if got := sh("git status --porcelain; git rev-list --count HEAD"); got != "?? new\n1" {
		t.Errorf("%q", got)
	}
}

// keepingPlaces are places whose work cannot be kept.
type keepingPlaces struct {
	*fakePlaces
	err error
}

func (f *keepingPlaces) Keep(context.Context, Place, queue.Item) (string, error) { return "", f.err }

// An item whose file is taken away while it is worked on is nobody's, and the next comes.
func TestNightVanishes(t *testing.T) {
	t.Parallel()
	n := newNight(t)
	n.opt.Places = &keepingPlaces{n.place, nil}
	n.runs.plays = []play{{change: true, do: func(run.Request) {
		found, err := filepath.Glob(filepath.Join(n.dir, "queue", "claimed", "*"))
		if err != nil || len(found) != 1 {
			t.Errorf("%v, %v", found, err)
		}
		for _, f := range found {
			if err := durable.Remove(f); err != nil {
				t.Error(err)
			}
		}
	}}, {change: true}}
	n.add("a", "b")
	if s := n.all(); s.Tally.Done != 1 || s.Tally.Lost != 1 {
		t.Errorf("%+v", s.Tally)
	}
	n.want("b done")
}

// Work that cannot be kept is not done: what depends on it would be built on nothing.
func TestNightUnkept(t *testing.T) {
	t.Parallel()
	n := newNight(t)
	n.opt.Places = &keepingPlaces{n.place, errors.New("index.lock is there")}
	n.add("a")
	if _, err := n.queue.Add(t.Context(), queue.Item{ID: "b", Title: "B", DependsOn: []string{"a"}}); err != nil {
		t.Fatal(err)
	}
	n.begin()
	if i := n.waits(core.ByGate, "a"); !strings.Contains(i.Why, "index.lock is there") {
		t.Errorf("%q", i.Why)
	}
	n.want("a blocked, b blocked")
	data, err := os.ReadFile(filepath.Join(n.opt.Dir, auditFile))
	if err != nil || !strings.Contains(string(data), `"op":"keep"`) || !strings.Contains(string(data), "cannot be kept") {
		t.Errorf("the log says nothing of it: %v", err)
	}
	n.over()
}
