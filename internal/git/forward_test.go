package git

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"reprise/internal/durable"
	"reprise/internal/durable/durabletest"
)

// checkout is a checkout on main, and the commit after the one that it is at: that changes a,
// adds new and dir/new, and removes old.
func checkout(t *testing.T, disk durable.Disk) (g *Git, sh func(string) string, to string) {
	t.Helper()
	dir := t.TempDir()
	sh = func(script string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "sh", "-ec", script)
		cmd.Dir, cmd.Env = dir, []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=u", "GIT_AUTHOR_EMAIL=u@x", "GIT_COMMITTER_NAME=u", "GIT_COMMITTER_EMAIL=u@x"}
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", script, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	sh("git init -q -b main; echo 1 > a; echo 1 > b; echo 1 > old; git add .; git commit -qm one; echo 2 > a; echo n > new; mkdir dir; echo n > dir/new; git rm -q old; git add .; git commit -qm two")
	to = sh("git rev-parse HEAD")
	sh("git reset -q --hard HEAD~1")
	return New(dir, Options{Vars: vars(), Disk: disk}), sh, to
}

func TestFastForward(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		before string
		want   error  // nil and words "" is that it goes
		words  string // of the error
		status string // afterwards
	}{
		"clean":                       {"", nil, "", ""},
		"touched":                     {"touch -d 2001-01-01 a", nil, "", ""},
		"other changes stay":          {"echo mine > b; echo mine > c; echo staged > d; git add d", nil, "", "M b\nA  d\n?? c"},
		"the same change is there":    {"echo n > new; git add new", nil, "", ""},
		"changed":                     {"echo mine > a", nil, "a", "M a"},
		"staged":                      {"echo mine > a; git add a", nil, "a", "M  a"},
		"untracked":                   {"echo mine > new", nil, "new is in the way", "?? new"},
		"untracked as a directory":    {"mkdir new; echo mine > new/x", nil, "new/x is in the way", "?? new/"},
		"ignored":                     {"echo new > .git/info/exclude; echo mine > new", nil, "new is in the way", ""},
		"ignored in place of a dir":   {"echo dir > .git/info/exclude; echo mine > dir", nil, "dir is in the way", ""},
		"a dir of ignored things":     {"echo dir > .git/info/exclude; mkdir dir; echo mine > dir/x", nil, "", ""},
		"a merge goes on":             {"git rev-parse HEAD > .git/MERGE_HEAD", nil, "git merge --abort", ""},
		"another branch":              {"git checkout -q -b other", ErrMoved, "", ""},
		"a commit of somebody's":      {"git commit -q --allow-empty -m u", ErrMoved, "", ""},
		"the branch is being moved":   {"touch .git/refs/heads/main.lock", ErrLocked, "", ""},
		"the checkout is being moved": {"touch .git/HEAD.lock", ErrLocked, "", ""},
		"somebody is at the index":    {"touch .git/index.lock", nil, "index.lock", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g, sh, to := checkout(t, durable.Disk{})
			sh(c.before)
			was := sh("git rev-parse main HEAD; cat a")
			err := g.FastForward(t.Context(), "main", to, "merge: Fast-forward")
			wanted(t, err, c.want, c.words)
			sh("rm -f .git/index.lock")
			if got := sh("git status --porcelain"); got != c.status {
				t.Errorf("status\n%s\nwant\n%s", got, c.status)
			}
			switch {
			case err != nil && sh("git rev-parse main HEAD; cat a") != was:
				t.Errorf("something has moved although it failed (%v)", err)
			case err == nil && sh("git rev-parse HEAD; cat new; git reflog -1 --format=%gs HEAD; git reflog -1 --format=%gs main") != to+"\nn\nmerge: Fast-forward\nmerge: Fast-forward":
				t.Errorf("it has %s", sh("git log -1; cat new; git reflog"))
			}
			if err := g.FastForward(t.Context(), "main", to, "again"); (err == nil) != (c.want == nil && c.words == "") && c.words != "index.lock" {
				t.Errorf("again: %v", err)
			}
		})
	}
}

// Who commits in the checkout at the same moment never has the files of what is merged in a
// commit of their own, and where it is not merged nothing of it is left there.
func TestFastForwardBesideCommits(t *testing.T) {
	t.Parallel()
	g, sh, to := checkout(t, durable.Disk{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		cmd := exec.Command("sh", "-c", "i=0; while [ $i -lt 40 ]; do git commit -q --allow-empty -m user$i; i=$((i+1)); done")
		cmd.Dir, cmd.Env = g.dir, []string{"PATH=" + os.Getenv("PATH"), "HOME=" + g.dir, "GIT_AUTHOR_NAME=u", "GIT_AUTHOR_EMAIL=u@x", "GIT_COMMITTER_NAME=u", "GIT_COMMITTER_EMAIL=u@x"}
		_ = cmd.Run() // those that come at the same moment are refused
	}()
	merged := 0
	for i := 0; ; i++ {
		select {
		case <-done:
			if merged == 0 {
				t.Log("nothing could be merged beside the commits")
			}
			for _, id := range strings.Fields(sh("git log --format=%H --grep=user main")) {
				if files := sh("git show --format= --name-only " + id); files != "" {
					t.Errorf("a commit of somebody's has %s", files)
				}
			}
			if left := sh("git status --porcelain"); left != "" {
				t.Errorf("left behind: %s", left)
			}
			return
		default:
		}
		base := sh("git rev-parse main")
		next := sh("t=$(git rev-parse " + to + "^{tree}); git commit-tree $t -p " + base + " -m work")
		switch err := g.FastForward(t.Context(), "main", next, "merge: Fast-forward"); {
		case err == nil:
			merged++
			to = next
			// And away again, so that the next has something to do.
			back := sh("git commit-tree $(git rev-list --max-parents=0 main | head -n 1)^{tree} -p " + next + " -m back")
			if err := g.FastForward(t.Context(), "main", back, "back"); err != nil && !errors.Is(err, ErrMoved) && !errors.Is(err, ErrLocked) && LockedAt(err) == "" {
				t.Fatal(err)
			}
		case !errors.Is(err, ErrMoved) && !errors.Is(err, ErrLocked) && LockedAt(err) == "":
			t.Fatal(err)
		}
	}
}

// Whatever step fails, the branch, the index and the files fit together.
func TestFastForwardFails(t *testing.T) {
	t.Parallel()
	disk, steps := durabletest.Record()
	g, _, to := checkout(t, disk)
	if err := g.FastForward(t.Context(), "main", to, "merge"); err != nil {
		t.Fatal(err)
	}
	for n := range len(steps.List()) {
		disk, _ := durabletest.FailAt(n, syscall.ENOSPC)
		g, sh, to := checkout(t, disk)
		if err := g.FastForward(t.Context(), "main", to, "merge"); !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("step %d: %v", n, err)
		}
		if got := sh("git status --porcelain; cat a"); got != "1" {
			t.Errorf("step %d: %q", n, got)
		}
		if _, err := os.Stat(filepath.Join(g.dir, ".git", "HEAD.lock")); err == nil {
			t.Errorf("step %d: the branch is still held", n)
		}
	}
}

// A branch that has no commit yet begins with the one that it goes to, or nothing is done.
func TestFastForwardOfNothing(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		before string
		want   error
		words  string
		status string
	}{
		"clean":                    {"", nil, "", ""},
		"other files stay":         {"echo mine > c; echo staged > d; git add d", nil, "", "A  d\n?? c"},
		"the same is staged":       {"echo 2 > a; git add a", nil, "", ""},
		"another is staged":        {"echo mine > a; git add a", nil, "a", "A  a"},
		"untracked":                {"echo mine > new", nil, "new is in the way", "?? new"},
		"ignored":                  {"echo new > .git/info/exclude; echo mine > new", nil, "new is in the way", ""},
		"another branch":           {"git symbolic-ref HEAD refs/heads/other", ErrMoved, "", ""},
		"somebody commits":         {"git symbolic-ref HEAD refs/heads/second; git commit -q --allow-empty -m u", ErrMoved, "", ""},
		"the branch is being made": {"mkdir -p .git/refs/heads; touch .git/refs/heads/main.lock", ErrLocked, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g, sh, to := checkout(t, durable.Disk{})
			sh("git update-ref refs/kept/two " + to + "; git rm -qrf .; git update-ref -d refs/heads/main; rm -f .git/index")
			sh(c.before)
			err := g.FastForward(t.Context(), "main", to, "merge: Fast-forward")
			wanted(t, err, c.want, c.words)
			sh("rm -f .git/refs/heads/main.lock")
			if got := sh("git status --porcelain"); got != c.status {
				t.Errorf("status\n%s\nwant\n%s", got, c.status)
			}
			switch made := sh("git for-each-ref --format='%(objectname)' refs/heads/main"); {
			case err != nil && made != "":
				t.Errorf("it failed, and the branch is there (%v)", err)
			case err == nil && sh("git rev-parse HEAD; cat new; git reflog -1 --format=%gs main") != to+"\nn\nmerge: Fast-forward":
				t.Errorf("it has %s", sh("git log -1; cat new; git reflog"))
			}
		})
	}
}

// wanted ends a test whose error is another than wanted: of that kind, with these words, or none
// where there is neither.
func wanted(t *testing.T, err, want error, words string) {
	t.Helper()
	if (err == nil) != (want == nil && words == "") || want != nil && !errors.Is(err, want) || err != nil && !strings.Contains(err.Error(), words) {
		t.Fatalf("%v", err)
	}
}
