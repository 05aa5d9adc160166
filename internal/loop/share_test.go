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

	"reprise/internal/git"
	"reprise/internal/queue"
)

// sharing are two machines that work on one item, by a remote.
type sharing struct {
	t     *testing.T
	dir   string
	here  *Shared // whose clone is "here", with the item's branch checked out
	place Place
	item  queue.Item
}

func share(t *testing.T) *sharing {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not here")
	}
	s := &sharing{t: t, dir: t.TempDir(), item: queue.Item{ID: "a", Title: "A"}}
	s.sh(".", `git init -q --bare -b trunk remote.git
		git clone -q remote.git there 2>&1
		cd there && echo 0 > f && git add f && git commit -qm first && git push -q origin HEAD:trunk
		cd .. && git clone -q remote.git here && cd here && git checkout -q -b loop-a`)
	top := filepath.Join(s.dir, "here")
	opt := git.Options{Vars: map[string]string{"PATH": os.Getenv("PATH"), "HOME": s.dir}}
	s.here = &Shared{Worktrees: &Worktrees{Root: top, Git: opt, Patience: time.Millisecond, Now: time.Now}, Remote: "origin", Main: "trunk", Patience: time.Millisecond}
	s.place = Place{Name: "loop-a", Dir: top, Top: top, Branch: "loop-a", Base: s.sh("here", "git rev-parse HEAD")}
	return s
}

// sh runs a script in one of the directories; what it prints is returned.
func (s *sharing) sh(where, script string) string {
	s.t.Helper()
	cmd := exec.Command("sh", "-ec", script)
	cmd.Dir = filepath.Join(s.dir, where)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_SYSTEM="+os.DevNull,
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.org", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.org")
	out, err := cmd.CombinedOutput()
	if err != nil {
		s.t.Fatalf("%s: %v\n%s", script, err, out)
	}
	return strings.TrimSpace(string(out))
}

// other has the other machine send a commit on the item.
func (s *sharing) other(file string) {
	s.t.Helper()
	s.sh("there", "git fetch -q origin; git checkout -q -B loop-a origin/loop-a 2>/dev/null || git checkout -q -B loop-a; echo other > "+file+"; git add -A; git commit -qm 'of the other'; git push -q origin loop-a")
}

// sent is what the remote has of the item: a subject a line, the newest first.
func (s *sharing) sent() string { return s.sh("remote.git", "git log --format=%s loop-a") }

// A push that the other machine was before is refused, and what it sent stays; whoever works
// there is told to merge it, and what comes of that is at the remote, with the work of both.
func TestRejectedPushIsMergedFirst(t *testing.T) {
	t.Parallel()
	s := share(t)
	s.other("theirs")
	s.sh("here", "echo mine > mine; git add -A; git commit -qm mine")
	_, err := s.here.Keep(t.Context(), s.place, s.item)
	var unkept *UnkeptError
	if !errors.As(err, &unkept) || !strings.Contains(err.Error(), "git merge origin/loop-a") {
		t.Fatalf("%v", err)
	}
	if got := s.sent(); got != "of the other\nfirst" {
		t.Fatalf("the remote has %q", got)
	}
	s.sh("here", "git merge -q -m both origin/loop-a") // as it was told
	if _, err := s.here.Keep(t.Context(), s.place, s.item); err != nil {
		t.Fatal(err)
	}
	if files := s.sh("remote.git", "git ls-tree --name-only loop-a"); files != "f\nmine\ntheirs" {
		t.Errorf("the remote has the files %q", files)
	}
	if _, err := s.here.Keep(t.Context(), s.place, s.item); err != nil { // what is there is sent once
		t.Error(err)
	}
}

// The same file was changed on both machines: the conflict is for who works there, and an
// unsettled one is not sent.
func TestDivergedBranchesConflict(t *testing.T) {
	t.Parallel()
	s := share(t)
	s.sh("here", "git push -q origin loop-a")
	s.other("f")
	s.sh("here", "echo mine > f; git commit -qam mine")
	if err := s.here.Fetch(t.Context()); err != nil {
		t.Fatal(err)
	}
	before := s.sh("here", "git rev-parse loop-a")
	note, err := s.here.join(t.Context(), s.place, "a")
	if err != nil || !strings.Contains(note, "merge that first (git merge origin/loop-a)") {
		t.Fatalf("%q %v", note, err)
	}
	if now := s.sh("here", "git rev-parse loop-a; git status --porcelain"); now != before {
		t.Errorf("something was changed: %s", now)
	}
	s.sh("here", "git merge -q origin/loop-a || true") // a conflict
	var unkept *UnkeptError
	if _, err := s.here.Keep(t.Context(), s.place, s.item); !errors.As(err, &unkept) || !strings.Contains(err.Error(), "conflicts: f") {
		t.Fatalf("an unsettled merge: %v", err)
	}
	s.sh("here", "echo both > f; git commit -qam both")
	if _, err := s.here.Keep(t.Context(), s.place, s.item); err != nil {
		t.Fatal(err)
	}
	if got := s.sh("remote.git", "git show loop-a:f"); got != "both" {
		t.Errorf("the remote has %q", got)
	}
}

// What only the other machine has done is taken up without a word to merge; where it has
// nothing new, nothing is said.
func TestWhatTheOtherDidIsTakenUp(t *testing.T) {
	t.Parallel()
	s := share(t)
	s.sh("here", "git push -q origin loop-a")
	s.other("theirs")
	for i, want := range []string{"another machine worked on this item meanwhile", ""} {
		if err := s.here.Fetch(t.Context()); err != nil {
			t.Fatal(err)
		}
		note, err := s.here.join(t.Context(), s.place, "a")
		if err != nil || !strings.HasPrefix(note, want) || want == "" && note != "" {
			t.Errorf("%d: %q %v", i, note, err)
		}
	}
	if got := s.sh("here", "cat theirs"); got != "other" {
		t.Errorf("%q", got)
	}
	// Elsewhere there is no branch yet: it is made from the remote's.
	s.sh("here", "git checkout -q trunk; git branch -q -D loop-a")
	if taken, err := s.here.takeUp(t.Context(), "a"); err != nil || !taken {
		t.Fatal(taken, err)
	}
	if got := s.sh("here", "git log --format=%s loop-a"); got != "of the other\nfirst" {
		t.Errorf("%q", got)
	}
}

// A remote that takes no push at all is not taken for one that has newer work: nobody is told
// to merge what is not there.
func TestRefusedPushIsNoRace(t *testing.T) {
	t.Parallel()
	s := share(t)
	s.sh("remote.git", `printf '#!/bin/sh\necho no pushes on Sundays >&2\nexit 1\n' > hooks/pre-receive; chmod +x hooks/pre-receive`)
	s.sh("here", "echo mine > mine; git add -A; git commit -qm mine")
	_, err := s.here.Keep(t.Context(), s.place, s.item)
	if err == nil || strings.Contains(err.Error(), "another machine") || errors.Is(err, errRemote) {
		t.Errorf("%v", err)
	}
}

// A remote that is away for the moment is waited for: what was made is not given up.
func TestRemoteAwayIsWaitedFor(t *testing.T) {
	t.Parallel()
	s := share(t)
	s.sh("here", `git remote set-url origin "$PWD/../away.git"; echo mine > mine; git add -A; git commit -qm mine`)
	_, err := s.here.Keep(t.Context(), s.place, s.item)
	if !errors.Is(err, errRemote) || !passing(err) {
		t.Errorf("%v", err)
	}
	s.sh("here", `git remote set-url origin "$PWD/../remote.git"`)
	if _, err := s.here.Keep(t.Context(), s.place, s.item); err != nil {
		t.Fatal(err)
	}
	if got := s.sent(); got != "mine\nfirst" {
		t.Errorf("the remote has %q", got)
	}
}

// A remote that has nothing for us, whatever it says, is no fault of the item that is to be begun:
// it used up items' attempts, and in ten seconds a whole queue was dead.
func TestRemoteAwayIsNoItemsFault(t *testing.T) {
	t.Parallel()
	s := share(t)
	s.sh("here", `git remote set-url origin "$PWD/../away.git"`)
	s.here.Patience = time.Nanosecond
	var said []string
	s.here.Say = func(_, text string) { said = append(said, text) }
	_, err := s.here.Prepare(t.Context(), s.item, 7)
	if !errors.Is(err, errFetch) || passing(err) || strings.Contains(err.Error(), "--refmap") {
		t.Errorf("%v", err)
	}
	s.here.Patience = time.Second
	if err := s.here.Fetch(t.Context()); err == nil || len(said) != 1 || !strings.HasPrefix(said[0], "the git remote origin cannot be reached, and is tried for 1s: ") {
		t.Errorf("%v, and it is told of %q", err, said)
	}
}

// What an item builds on may have no branch any more, and be at the remote all the same: then it is
// known whether its work is in what is begun at.
func TestMissingIsFetched(t *testing.T) {
	t.Parallel()
	s := share(t)
	s.sh("there", "git checkout -q -b loop-b; echo b > b; git add b; git commit -qm b; git push -q origin loop-b; git push -q origin --delete loop-b; git checkout -q -B trunk origin/trunk")
	commit := s.sh("there", "git rev-parse loop-b")
	s.here.Building(func(_ context.Context, id string) (string, error) {
		if id == "c" {
			return strings.Repeat("1", 40), nil
		}
		return commit, nil
	})
	s.here.Base = "origin/trunk"
	begin := func(on string) (string, error) {
		t.Helper()
		if err := s.here.Fetch(t.Context()); err != nil {
			t.Fatal(err)
		}
		_, _, lacks, err := s.here.begin(t.Context(), queue.Item{ID: "x", DependsOn: []string{on}})
		return lacks, err
	}
	if lacks, err := begin("b"); err != nil || !strings.Contains(lacks, "without its commit "+commit[:12]) {
		t.Errorf("it was deleted: %q, %v", lacks, err)
	}
	if _, err := begin("c"); !errors.As(err, new(*missingError)) {
		t.Errorf("it is nowhere: %v", err)
	}
	s.sh("there", "git merge -q --squash loop-b && git commit -qm squashed && git push -q origin trunk")
	if lacks, err := begin("b"); err != nil || lacks != "" {
		t.Errorf("it was merged by a squash: %q, %v", lacks, err)
	}
}
