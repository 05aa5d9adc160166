package loop

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"reprise/internal/loop/core"
	"reprise/internal/queue"
	"reprise/internal/workspace"
)

// TestKeepSubmodules: the commit of a submodule that the work names is in the main
// checkout's own before the item is done, or it is not done; what is pushed says which
// remotes lack it.
func TestKeepSubmodules(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not here")
	}
	for _, c := range []struct {
		name, do string
		want     string // of the note, or with a "!" of the error
		has      bool   // the main checkout's own has the commit
		pull     string // what a pull request says, with "!" in front what it does not say
	}{
		{name: "committed", do: "cd lib; echo 1 > new; git add -A; git commit -qm inner; cd ..; git add -A; git commit -qm outer", want: "on the branch loop-a of", has: true, pull: "do not have the commits"},
		{name: "left for the loop", do: "cd lib; echo 1 > new; git add -A; git commit -qm inner", want: "on the branch loop-a of", has: true, pull: "do not have the commits"},
		{name: "pushed", do: "cd lib; echo 1 > new; git add -A; git commit -qm inner; git push -q origin HEAD:refs/heads/x; cd ..; git add -A; git commit -qm outer", pull: "!do not have the commits"},
		{name: "not committed", do: "echo 1 > lib/f", want: "!not committed in them: lib;"},
		{name: "a new file", do: "echo 1 > lib/new", want: "!not committed in them: lib;"},
		{name: "one that the main checkout has not", do: "git -c protocol.file.allow=always submodule --quiet add ../lib.git other; cd other; echo 1 > new; git add -A; git commit -qm inner; cd ..; git add -A; git commit -qm outer", want: "!submodule other is at"},
		{name: "no submodule", do: "echo 1 > new; git add -A; git commit -qm outer", pull: "!do not have the commits"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			sh := func(script string) string {
				t.Helper()
				cmd := exec.Command("sh", "-ec", script)
				cmd.Dir, cmd.Env = dir, append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_SYSTEM="+os.DevNull, "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@x", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@x")
				out, err := cmd.CombinedOutput()
				if err != nil {
					t.Fatalf("%s: %v\n%s", script, err, out)
				}
				return strings.TrimSpace(string(out))
			}
			sh(`git init -q --bare lib.git
				git init -q -b trunk seed; cd seed; echo 0 > f; git add -A; git commit -qm first; git push -q ../lib.git trunk; cd ..
				git --git-dir=lib.git symbolic-ref HEAD refs/heads/trunk
				git init -q --bare origin.git; git init -q -b trunk main; cd main; git remote add origin "$PWD/../origin.git"
				git -c protocol.file.allow=always submodule --quiet add "$PWD/../lib.git" lib; git commit -qm first
				git worktree add -q ../work -b loop-a; cd ../work
				git -c protocol.file.allow=always submodule --quiet update --init`)
			main, top := filepath.Join(dir, "main"), filepath.Join(dir, "work")
			p := Place{Name: "loop-a", Dir: top, Top: top, Branch: "loop-a", Base: sh("cd main; git rev-parse HEAD")}
			w := &Worktrees{
				Workspaces: workspace.New(workspace.Options{}), Root: main, Patience: time.Millisecond, Now: time.Now,
				GH: func(context.Context, Place, queue.Item) (string, error) { return "https://example.org/1", nil },
			}
			sh("cd work; " + c.do)
			item := queue.Item{ID: "a", Title: "A"}
			note, err := w.Keep(t.Context(), p, item)
			if text, bad := strings.CutPrefix(c.want, "!"); bad {
				var u *UnkeptError
				var stranded *workspace.StrandedError
				if !errors.As(err, &u) && !errors.As(err, &stranded) || !strings.Contains(err.Error(), text) {
					t.Errorf("%q %v, want %q", note, err, text)
				}
				if _, _, err := w.Finish(t.Context(), p, item, core.Done); err == nil {
					t.Error("it was finished all the same")
				}
				return
			}
			if err != nil || !strings.Contains(note, c.want) || c.want == "" && note != "" {
				t.Fatalf("%q %v, want %q", note, err, c.want)
			}
			id := sh("cd work; git rev-parse HEAD:lib")
			if got := sh("cd main/lib; git for-each-ref --format='%(objectname)' refs/heads/loop-a"); (got == id) != c.has {
				t.Errorf("the main checkout's own has it at %q, not %s", got, id)
			}
			said, pushed, _ := w.pull(t.Context(), p, item)
			text, not := strings.CutPrefix(c.pull, "!")
			if !pushed || !strings.Contains(said, "example.org") || strings.Contains(said, text) == not {
				t.Errorf("%q %v, want %q", said, pushed, c.pull)
			}
			if _, why, err := w.merge(t.Context(), p); why != "" || err != nil {
				t.Fatal(why, err)
			}
			sh("cd main; git worktree remove --force --force ../work; git -c protocol.file.allow=always submodule --quiet update")
			if got := sh("cd main; git rev-parse HEAD:lib; cd lib; git rev-parse HEAD"); got != id+"\n"+id {
				t.Errorf("%s, want %s", got, id)
			}
		})
	}
}
