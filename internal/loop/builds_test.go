package loop

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"reprise/internal/git"
	"reprise/internal/loop/core"
	"reprise/internal/queue"
)

// sheller runs shell commands in a directory, with git as nobody has set it up.
func sheller(t *testing.T, dir string) func(script string) string {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not here")
	}
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip("there is no shell here")
	}
	return func(script string) string {
		t.Helper()
		cmd := exec.Command("sh", "-c", script)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_SYSTEM="+os.DevNull,
			"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@x", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@x")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", script, err, out)
		}
		return strings.TrimSpace(string(out))
	}
}

// TestBegin: an item begins with all that the items have made on which it builds, as far as
// that is on branches of their own, and with what is checked out.
func TestBegin(t *testing.T) {
	t.Parallel()
	file := func(branch, name, text string) string {
		return "git checkout -q " + branch + " && echo " + text + " > " + name + " && git add -A && git commit -qm " + name + " && git checkout -q trunk;"
	}
	for _, c := range []struct {
		name, do string
		on       []string
		has      []string // branches that are in the history of where it begins
		left     []string
		none     bool // it begins at what is checked out, whatever that is
	}{
		{name: "nothing", none: true},
		{name: "it made nothing", on: []string{"a"}, has: []string{"trunk"}},
		{name: "ahead", do: "git branch loop-a;" + file("loop-a", "a", "1"), on: []string{"a"}, has: []string{"loop-a", "trunk"}},
		{name: "merged", do: "git branch loop-a;" + file("loop-a", "a", "1") + "git merge -q loop-a;" + file("trunk", "t", "1"), on: []string{"a"}, has: []string{"loop-a", "trunk"}},
		{name: "beside", do: "git branch loop-a;" + file("loop-a", "a", "1") + file("trunk", "t", "1"), on: []string{"a"}, has: []string{"loop-a", "trunk"}},
		{name: "two", do: "git branch loop-a; git branch loop-b;" + file("loop-a", "a", "1") + file("loop-b", "b", "1"), on: []string{"a", "b"}, has: []string{"loop-a", "loop-b", "trunk"}},
		{name: "one on the other", do: "git branch loop-a;" + file("loop-a", "a", "1") + "git branch loop-b loop-a;" + file("loop-b", "b", "1"), on: []string{"a", "b"}, has: []string{"loop-a", "loop-b"}},
		{name: "two that conflict", do: "git branch loop-a; git branch loop-b;" + file("loop-a", "f", "1") + file("loop-b", "f", "2"), on: []string{"a", "b"}, has: []string{"loop-a", "trunk"}, left: []string{"loop-b"}},
		{name: "in conflict with what came meanwhile", do: "git branch loop-a;" + file("loop-a", "f", "1") + file("trunk", "f", "2"), on: []string{"a"}, has: []string{"loop-a"}},
		{name: "at a remote only", do: "git branch loop-a;" + file("loop-a", "a", "1") + "git update-ref refs/remotes/origin/loop-a loop-a; git branch -qD loop-a", on: []string{"a"}, has: []string{"origin/loop-a", "trunk"}},
		{name: "a person has a branch of its name", do: "git branch loop-a; git branch loop-x;" + file("loop-a", "a", "1"), on: []string{"a"}, has: []string{"loop-a"}},
		{name: "of an earlier try", do: "git branch loop-a; GIT_COMMITTER_EMAIL=item+x@0 git branch loop-x;" + file("loop-a", "a", "1"), on: []string{"a"}, none: true, left: []string{"loop-a"}},
		{name: "of an earlier try that has it", do: "git branch loop-a;" + file("loop-a", "a", "1") + "GIT_COMMITTER_EMAIL=item+x@0 git branch loop-x loop-a", on: []string{"a"}, none: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			sh := sheller(t, dir)
			sh("git init -q -b trunk && git commit -q --allow-empty -m x;" + c.do)
			w := &Worktrees{Root: dir}
			base, left, _, err := w.begin(t.Context(), queue.Item{ID: "x", DependsOn: c.on})
			if err != nil || !slices.Equal(left, c.left) || (base == "") != c.none {
				t.Fatalf("%q, left %q, %v", base, left, err)
			}
			for _, branch := range c.has {
				sh("git merge-base --is-ancestor " + branch + " " + base)
			}
			if status := sh("git status --porcelain; git symbolic-ref HEAD"); status != "refs/heads/trunk" {
				t.Errorf("the main checkout is left as %q", status)
			}
		})
	}
}

// TestMergedIsThere: what somebody takes back in the moment of its merge is not called
// merged.
func TestMergedIsThere(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("the stand-in for git is a shell script")
	}
	dir := t.TempDir()
	root, place := filepath.Join(dir, "shop"), filepath.Join(dir, "place")
	sh := sheller(t, dir)
	sh("git init -q -b trunk shop && cd shop && git commit -q --allow-empty -m x && git worktree add -q -b loop-a ../place && cd ../place && echo 1 > f && git add f && git commit -qm f")
	real, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "git")
	script := "#!/bin/sh\n" + real + " \"$@\" || exit\ncase \"$*\" in *update-ref*--stdin*) " + real + " reset -q --hard HEAD~1;; esac\n"
	if err := os.WriteFile(program, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	vars := map[string]string{"PATH": os.Getenv("PATH"), "HOME": dir}
	p := Place{Name: "loop-a", Dir: place, Top: place, Branch: "loop-a"}
	w := &Worktrees{Root: root, Git: git.Options{Vars: vars, Program: program}}
	if _, why, err := w.merge(t.Context(), p); err == nil || why != "" || !strings.Contains(err.Error(), "after the merge") {
		t.Errorf("%q, %v", why, err)
	}
	w.Git.Program = ""
	sh("cd shop && git reflog expire --expire=now --all") // else it is known for a person's decision
	if _, why, err := w.merge(t.Context(), p); err != nil || why != "" {
		t.Errorf("%q, %v", why, err)
	}
	sh("cd shop && git merge-base --is-ancestor loop-a trunk")
}

// TestMergesBySettingsOfNobody: how the user has git merge, in general or a branch, changes
// nothing of the loop's own merges.
func TestMergesBySettingsOfNobody(t *testing.T) {
	t.Parallel()
	for _, set := range []string{
		"merge.ff only", "merge.ff false", "branch.trunk.mergeoptions --squash", "branch.trunk.mergeoptions --no-commit", "branch.trunk.mergeoptions --no-ff",
		"branch.loop-a.mergeoptions --no-commit", "branch.loop-a.mergeoptions '--squash --ff-only'", "branch.loop-a.mergeoptions '-s ours'", "merge.verifySignatures true",
	} {
		t.Run(set, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			root, place := filepath.Join(dir, "shop"), filepath.Join(dir, "place")
			sh := sheller(t, dir)
			sh("git init -q -b trunk shop && cd shop && git commit -q --allow-empty -m x && git worktree add -q -b loop-a ../place && cd ../place && echo 1 > f && git add f && git commit -qm f && cd ../shop && echo 2 > g && git add g && git commit -qm g && git config " + set)
			w := &Worktrees{Root: root, Git: git.Options{Vars: map[string]string{"PATH": os.Getenv("PATH"), "HOME": dir, "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@x", "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@x"}}, Now: time.Now}
			if _, why, err := w.merge(t.Context(), Place{Name: "loop-a", Dir: place, Top: place, Branch: "loop-a"}); err != nil || why != "" {
				t.Fatalf("%q, %v", why, err)
			}
			if got := sh("cd shop && git status --short && ls && git log -1 --format=%p loop-a"); len(strings.Fields(got)) != 4 || !strings.HasPrefix(got, "f\ng\n") {
				t.Errorf("the main checkout has %q", got)
			}
		})
	}
}

// What git ignores in the main checkout is a person's, such as keys: work that has a file of
// that name is not merged over it.
func TestMergesOverNothingIgnored(t *testing.T) {
	t.Parallel()
	for made, kept := range map[string]string{"echo theirs > .env": ".env", "echo theirs > local": "local/db", "mkdir local && echo theirs > local/db": "local/db"} {
		w, p, sh := merged(t)
		sh("cd place && " + made + " && git add -A && git commit -qm ignored; cd ../shop && mkdir local && echo mine | tee .env > local/db && printf '.env\nlocal\n' > .git/info/exclude")
		_, why, err := w.merge(t.Context(), p)
		if err == nil || !strings.Contains(err.Error(), strings.Split(kept, "/")[0]) {
			t.Errorf("%s: %q, %v", made, why, err)
		}
		if got := sh("cd shop && cat .env local/db"); got != "mine\nmine" {
			t.Errorf("%s: the person's files are now %q", made, got)
		}
	}
}

// What a person has taken out of the base while an item was worked on does not come back with
// its work.
func TestMergesNothingThatWasTakenOut(t *testing.T) {
	t.Parallel()
	for name, do := range map[string]string{"reset": "git reset -q --hard HEAD~1", "amended": "git commit -q --allow-empty --amend -m other"} {
		dir := t.TempDir()
		sh := sheller(t, dir)
		sh("git init -q -b trunk shop && cd shop && git commit -q --allow-empty -m first && echo secret > s && git add s && git commit -qm bad && git worktree add -q -b loop-a ../place && cd ../place && echo 1 > f && git add f && git commit -qm f && cd ../shop && " + do)
		place := filepath.Join(dir, "place")
		w := &Worktrees{Root: filepath.Join(dir, "shop"), Git: git.Options{Vars: map[string]string{"PATH": os.Getenv("PATH"), "HOME": dir}}, Now: time.Now, Into: "trunk"}
		before := sh("cd shop && git rev-parse HEAD")
		_, why, err := w.merge(t.Context(), Place{Name: "loop-a", Dir: place, Top: place, Branch: "loop-a"})
		var p *PersonalError
		if !errors.As(err, &p) || !strings.Contains(err.Error(), "git rebase --onto trunk") {
			t.Errorf("%s: %q, %v", name, why, err)
		}
		if after := sh("cd shop && git rev-parse HEAD"); after != before {
			t.Errorf("%s: trunk went from %s to %s", name, before, after)
		}
	}
}

// merged is a place with a commit in it, and the worktrees that merge it into trunk.
func merged(t *testing.T) (w *Worktrees, p Place, sh func(string) string) {
	t.Helper()
	dir := t.TempDir()
	sh = sheller(t, dir)
	sh("git init -q -b trunk shop && cd shop && git commit -q --allow-empty -m x && git worktree add -q -b loop-a ../place && cd ../place && echo 1 > f && git add f && git commit -qm f")
	place := filepath.Join(dir, "place")
	w = &Worktrees{Root: filepath.Join(dir, "shop"), Git: git.Options{Vars: map[string]string{"PATH": os.Getenv("PATH"), "HOME": dir}}, Now: time.Now, Into: "trunk"}
	return w, Place{Name: "loop-a", Dir: place, Top: place, Branch: "loop-a"}, sh
}

// A tag that is called like a branch is none: what is merged is what was checked.
func TestMergesBranchesNotTags(t *testing.T) {
	t.Parallel()
	w, p, sh := merged(t)
	sh("cd shop && echo bad > bad && git add bad && git commit -qm bad && git tag loop-a && git tag trunk && git reset -q --hard HEAD~1 && echo 2 > g && git add g && git commit -qm g")
	if into, why, err := w.merge(t.Context(), p); err != nil || why != "" || into != "trunk" {
		t.Fatalf("%q %q, %v", into, why, err)
	}
	if got := sh("cd shop && ls && git log -1 --format=%s refs/heads/trunk"); got != "f\ng\nMerge branch 'trunk' into loop-a" {
		t.Errorf("trunk has %q", got)
	}
}

// People who commit while the checks run on a merge are no reason to give it up: it is merged
// and checked again, and where that never ends somebody is to see to it.
func TestMergesAgainWhatMoved(t *testing.T) {
	t.Parallel()
	for _, times := range []int{1, mergeTries - 1, 99} {
		w, p, sh := merged(t)
		checks := 0
		w.Check = func(context.Context, Place) (Checked, error) {
			if checks++; checks <= times {
				sh(fmt.Sprintf("cd shop && echo %d > other && git add other && git commit -qm other", checks))
			}
			return Checked{Gate: core.GatePassed}, nil
		}
		_, why, err := w.merge(t.Context(), p)
		if stays := times >= mergeTries; err != nil || (why != "") != stays || checks != min(times+1, mergeTries) {
			t.Errorf("moved %d times: %q, %v, checked %d times", times, why, err, checks)
		}
		if times < mergeTries {
			sh("cd shop && git merge-base --is-ancestor loop-a trunk && git diff --quiet HEAD")
		}
	}
}
