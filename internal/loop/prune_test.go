package loop

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"reprise/internal/durable"
	"reprise/internal/durable/durabletest"
	"reprise/internal/git"
	"reprise/internal/queue"
)

// pruned are a clone, its remote, and a queue that knows what became of items.
const prunedRepositories = `git init -q --bare -b trunk remote.git
	git clone -q remote.git here 2>&1
	cd here && git checkout -q -b trunk && echo 0 > f && git add f && git commit -qm first && git push -q origin trunk
	for i in done dead gone open unsent merged elsewhere cleared worked; do
		git checkout -q -b loop-$i trunk; echo $i > $i; git add $i; git commit -qm $i
	done
	git push -q origin loop-done loop-dead loop-gone loop-open loop-elsewhere loop-cleared loop-worked
	git checkout -q loop-elsewhere; git commit -q --allow-empty -m 'not sent'
	git checkout -q trunk; git merge -q -m both loop-merged; git push -q origin trunk
	git worktree add -q ../place loop-worked
	cd ../remote.git && git update-ref -d refs/heads/loop-cleared`

func pruneItems() []queue.Item {
	var items []queue.Item
	for _, id := range []string{"done", "dead", "open", "unsent", "merged", "elsewhere", "cleared", "worked"} {
		items = append(items, queue.Item{ID: id, Title: id})
	}
	return items
}

// prunedIn makes the repositories in a directory.
func prunedIn(t *testing.T, dir string) {
	t.Helper()
	cmd := exec.Command("sh", "-ec", prunedRepositories)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_SYSTEM="+os.DevNull, "GIT_TEMPLATE_DIR=",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.org", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.org")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// prunedCopies makes the repositories once, by sixty programs, and gives what copies them
// into a directory.
func prunedCopies() func(t *testing.T, dir string) {
	from := ""
	return func(t *testing.T, dir string) {
		t.Helper()
		if from == "" {
			from = t.TempDir()
			prunedIn(t, from)
		}
		if err := os.CopyFS(dir, os.DirFS(from)); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"here/.git/config", "here/.git/worktrees/place/gitdir", "place/.git"} {
			file := filepath.Join(dir, filepath.FromSlash(name))
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Contains(text, []byte(from)) {
				t.Fatalf("%s does not name where it is: %s", name, text)
			}
			if err := os.WriteFile(file, bytes.ReplaceAll(text, []byte(from), []byte(dir)), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		settlePruned(t, dir)
	}
}

// settlePruned makes a queue in which all but one item are settled.
func settlePruned(t *testing.T, dir string) {
	t.Helper()
	q := pruneQueue(dir)
	ctx := context.Background()
	if _, err := q.Add(ctx, pruneItems()...); err != nil {
		t.Fatal(err)
	}
	for _, it := range pruneItems() {
		if it.ID == "open" {
			continue
		}
		c, err := q.Claim(ctx, queue.ClaimOptions{Worker: "w", ID: it.ID, Lease: time.Minute})
		if err == nil && it.ID == "dead" {
			_, err = q.Fail(ctx, c.Token, queue.Failure{Error: "no", Permanent: true})
		} else if err == nil {
			_, err = q.Done(ctx, c.Token, queue.Outcome{})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func pruneQueue(dir string) *queue.Files {
	return queue.Open(queue.Options{Dir: filepath.Join(dir, "queue"), Now: time.Now, Host: "vm"})
}

func prune(dir string, disk durable.Disk) ([]string, error) {
	opt := git.Options{Vars: map[string]string{"PATH": os.Getenv("PATH"), "HOME": dir}, Disk: disk}
	s := &Shared{Worktrees: &Worktrees{Root: filepath.Join(dir, "here"), Git: opt, Now: time.Now, Patience: time.Millisecond}, Remote: "origin", Main: "trunk", Patience: time.Millisecond}
	return s.Prune(context.Background(), pruneQueue(dir))
}

// The branch of a settled item goes from the clone when the remote has its commit, on its
// branch or on the one that work begins at; whoever dies at whichever step, the next time does
// the rest, and what only this machine has stays: work that was not sent, or was sent and
// cleared away there, an item that is not settled, and what somebody has a worktree of.
func TestPruneKilledAtEachStep(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not here")
	}
	stay := []string{"loop-cleared", "loop-elsewhere", "loop-open", "loop-unsent", "loop-worked"}
	branches := func(t *testing.T, dir string) []string {
		cmd := exec.Command("git", "for-each-ref", "--format=%(refname:lstrip=2)", "refs/heads/loop-*")
		cmd.Dir = filepath.Join(dir, "here")
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		return strings.Fields(string(out))
	}
	durabletest.Scenario{
		Prepare: prunedCopies(),
		Act:     func(disk durable.Disk, dir string) error { _, err := prune(dir, disk); return err },
		Check: func(t *testing.T, dir string, _ error, at string) {
			left := branches(t, dir)
			for _, name := range stay {
				if !slices.Contains(left, name) {
					t.Errorf("%s: %s is gone", at, name)
				}
			}
			if _, err := prune(dir, durable.Disk{}); err != nil {
				t.Errorf("%s: %v", at, err)
			}
			if left := branches(t, dir); !slices.Equal(left, stay) {
				t.Errorf("%s: the clone has %v, want %v", at, left, stay)
			}
		},
	}.CrashAtEachStep(t)
}

// Where the remote cannot be asked nothing goes, for what a copy says may be long ago.
func TestPruneWithoutTheRemote(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not here")
	}
	dir := t.TempDir()
	prunedIn(t, dir)
	settlePruned(t, dir)
	if err := os.Rename(filepath.Join(dir, "remote.git"), filepath.Join(dir, "away.git")); err != nil {
		t.Fatal(err)
	}
	gone, err := prune(dir, durable.Disk{})
	if err == nil || len(gone) > 0 {
		t.Errorf("%v, %v", gone, err)
	}
}
