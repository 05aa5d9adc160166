package config

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// claimWorld is a machine on which several projects have the name "app".
type claimWorld struct {
	*testing.T
	env   Env
	paths Paths
}

func newClaimWorld(t *testing.T) claimWorld {
	env := testEnv(t)
	return claimWorld{t, env, testPaths(t, env)}
}

func (w claimWorld) project(dir string) *Project {
	w.Helper()
	p, err := projectAt(project(w.T, mkdir(w.T, w.env.Dir, dir), "app"))
	if err != nil {
		w.Fatal(err)
	}
	return p
}

func (w claimWorld) claim(p *Project, commit string) error {
	return w.paths.Claim(context.Background(), p, commit, time.Unix(1700000000, 0))
}

func (w claimWorld) adopt(p *Project, commit string) error {
	return w.paths.Adopt(context.Background(), p, commit, time.Unix(1700000000, 0))
}

// data is a work item that the name's queue holds.
func (w claimWorld) data() {
	write(w.T, filepath.Join(w.paths.ProjectDir("app"), "queue", "ready", "a.json"), "{}")
}

func (w claimWorld) move(from, to string) {
	w.Helper()
	if err := os.Rename(filepath.Join(w.env.Dir, from), filepath.Join(w.env.Dir, to)); err != nil {
		w.Fatal(err)
	}
}

func (w claimWorld) refused(what string, p *Project, err error, away bool, by string) {
	w.Helper()
	var taken *NameTakenError
	if !errors.As(err, &taken) || taken.Away != away || filepath.Base(taken.By) != by || taken.Root != p.Root {
		w.Errorf("%s: %v", what, err)
	}
}

// A name whose directory is away keeps its data from any other repository: one may be told
// another project's memory, and work off its queue, only where a person says so. The same
// repository has it again wherever it is.
func TestClaimAway(t *testing.T) {
	w := newClaimWorld(t)
	one := w.project("one")
	if err := w.claim(one, "c0ffee"); err != nil {
		t.Fatal(err)
	}
	w.data()
	w.move("one", "gone")
	two := w.project("two")
	w.refused("claimed by another", two, w.claim(two, "beef"), true, "one")
	w.refused("claimed by one without a commit", two, w.claim(two, ""), true, "one")
	w.refused("read by another", two, CheckName(w.paths, two), true, "one")
	w.refused("made by another", two, w.paths.CheckClaim(two, "beef"), true, "one")
	err := w.claim(two, "beef")
	for _, want := range []string{one.Root, "not there now", "work items", "reprise init --adopt", two.File(), "last changed 20"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not said: %v", want, err)
		}
	}
	moved, err := projectAt(filepath.Join(w.env.Dir, "gone"))
	if err != nil {
		t.Fatal(err)
	}
	if err := w.claim(moved, "c0ffee"); err != nil {
		t.Errorf("the same repository elsewhere: %v", err)
	}
	if err := CheckName(w.paths, moved); err != nil {
		t.Errorf("it is known there: %v", err)
	}
	w.refused("another while it is there", two, w.claim(two, "beef"), false, "gone")
	w.refused("taken over while it is there", two, w.adopt(two, "beef"), false, "gone")
	w.move("gone", "one")
	if err := CheckName(w.paths, one); err != nil {
		t.Errorf("back in its place: %v", err)
	}
}

// Who takes a name over has it alone, and the one that had it finds that out when it is back.
func TestAdopt(t *testing.T) {
	w := newClaimWorld(t)
	one, two := w.project("one"), w.project("two")
	if err := w.claim(one, "c0ffee"); err != nil {
		t.Fatal(err)
	}
	w.data()
	w.move("one", "gone")
	if err := w.adopt(two, "beef"); err != nil {
		t.Fatal(err)
	}
	if roots, err := w.paths.ClaimedRoots("app"); err != nil || !slices.Equal(roots, []string{two.Root}) {
		t.Errorf("the name stands for %q, %v", roots, err)
	}
	// What sessions saw where it was is told where it is now, until that place is back.
	if got := Places(w.paths, two, two.Root); !slices.Contains(got, one.Root) {
		t.Errorf("the places are %q", got)
	}
	w.move("gone", "one")
	if got := Places(w.paths, two, two.Root); slices.Contains(got, one.Root) {
		t.Errorf("the places are %q", got)
	}
	w.refused("back", one, CheckName(w.paths, one), false, "two")
	err := w.claim(one, "c0ffee")
	w.refused("back, with its commit", one, err, false, "two")
	if !strings.Contains(err.Error(), "were given from "+one.Root+" to "+two.Root+" at 2023-11-14 22:13 UTC") {
		t.Errorf("it is not said what became of it: %v", err)
	}
	if err := CheckName(w.paths, two); err != nil {
		t.Error(err)
	}
	w.move("two", "gone")
	w.refused("with the other away", one, w.claim(one, "c0ffee"), true, "two")
	if err := w.adopt(one, "c0ffee"); err != nil {
		t.Errorf("taken back: %v", err)
	}
	if kept, err := w.paths.Kept("app"); err != nil || !slices.Equal(kept, []string{"work items"}) {
		t.Errorf("the data are %q, %v", kept, err)
	}
}

// Where nothing is kept of a name there is nothing to mix up, and it is free; who had it is
// no second owner of it afterwards.
func TestClaimFree(t *testing.T) {
	w := newClaimWorld(t)
	one, two := w.project("one"), w.project("two")
	if err := w.claim(one, ""); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(w.paths.ProjectDir("app"), "queue", "queue.lock"), "")
	w.move("one", "gone")
	if err := w.claim(two, ""); err != nil {
		t.Errorf("nothing is kept: %v", err)
	}
	w.move("gone", "one")
	w.refused("back", one, CheckName(w.paths, one), false, "two")
}

// A directory that is not in git, or of an older claim, is known by the state in it.
func TestClaimByState(t *testing.T) {
	w := newClaimWorld(t)
	one := w.project("one")
	admin := filepath.Join(w.paths.ProjectDir("app"), "state.git", "worktrees", "agent")
	write(t, filepath.Join(admin, "gitdir"), filepath.Join(one.Root, ".reprise", "agent", ".git")+"\n")
	write(t, filepath.Join(one.Root, ".reprise", "agent", ".git"), "gitdir: "+admin+"\n")
	// As programs before tonight's wrote it, without a commit.
	write(t, claimFile(w.paths, "app"), `{"v":1,"name":"app","created":"2025-11-29T16:29:24Z","roots":["`+filepath.ToSlash(one.Root)+`"]}`)
	w.data()
	w.move("one", "moved")
	two := w.project("two")
	write(t, filepath.Join(two.Root, ".reprise", "agent", ".git"), "gitdir: "+filepath.Join(w.env.Dir, "state.git", "worktrees", "agent")+"\n")
	w.refused("state of something else", two, w.claim(two, ""), true, "one")
	moved, err := projectAt(filepath.Join(w.env.Dir, "moved"))
	if err != nil {
		t.Fatal(err)
	}
	if err := CheckName(w.paths, moved); err != nil {
		t.Errorf("its state is in it: %v", err)
	}
	if err := w.claim(moved, "c0ffee"); err != nil || !w.paths.KnowsCommit("app") {
		t.Errorf("its state is in it: %v", err)
	}
}

// Another repository that is made a project where the name's was is another one, too.
func TestClaimInItsPlace(t *testing.T) {
	w := newClaimWorld(t)
	one := w.project("one")
	if err := w.claim(one, "c0ffee"); err != nil {
		t.Fatal(err)
	}
	w.data()
	if err := w.claim(one, "beef"); err != nil {
		t.Errorf("a history that was begun anew: %v", err)
	}
	if err := os.RemoveAll(filepath.Join(one.Root, ".reprise")); err != nil {
		t.Fatal(err)
	}
	err := w.paths.CheckClaim(one, "beef")
	w.refused("another repository", one, err, true, "one")
	if !strings.Contains(err.Error(), "another repository that was in "+one.Root) {
		t.Errorf("it is not said: %v", err)
	}
	if err := w.paths.CheckClaim(one, ""); err != nil {
		t.Errorf("the same directory, and nothing says that it is another: %v", err)
	}
	broken := errors.New("the disk is full")
	err = w.paths.ClaimNew(t.Context(), one, "beef", time.Now(), true, func() error { return broken })
	if !errors.Is(err, broken) {
		t.Fatal(err)
	}
	w.refused("after one that failed", one, w.paths.CheckClaim(one, "beef"), true, "one")
	if err := w.paths.CheckClaim(one, "c0ffee"); err != nil {
		t.Errorf("what failed took the name: %v", err)
	}
}

// Of many that take one name over at once, one gets it.
func TestAdoptAtOnce(t *testing.T) {
	w := newClaimWorld(t)
	if err := w.claim(w.project("one"), "c0ffee"); err != nil {
		t.Fatal(err)
	}
	w.data()
	w.move("one", "gone")
	errs := make([]error, 8)
	var wg sync.WaitGroup
	for i := range errs {
		p := w.project(string(rune('a' + i)))
		wg.Go(func() { errs[i] = w.adopt(p, "") })
	}
	wg.Wait()
	oneHasIt(t, errs, func(taken *NameTakenError) bool { return !taken.Away })
}

// A submodule's origin is in its own git directory, and clones of it are one project. What an
// earlier program took for its main checkout, and claimed the name with, was that of what the
// submodule is a part of: the name is the submodule's still.
func TestClaimOfASubmodule(t *testing.T) {
	env := testEnv(t)
	paths := testPaths(t, env)
	top := mkdir(t, env.Dir, "top")
	modules := mkdir(t, top, ".git", "modules", "lib")
	lib := project(t, mkdir(t, top, "lib"), "lib")
	write(t, filepath.Join(lib, ".git"), "gitdir: ../.git/modules/lib\n")
	now := time.Date(2026, 11, 28, 0, 0, 0, 0, time.UTC)
	if err := paths.Claim(t.Context(), &Project{Name: "lib", Root: lib, Main: top}, "", now); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(paths.ProjectDir("lib"), "trust.json"), "{}\n")
	p, err := projectAt(lib)
	if err != nil || p == nil || p.Main != lib {
		t.Fatalf("%+v, %v", p, err)
	}
	if err := paths.Claim(t.Context(), p, "", now); err != nil {
		t.Errorf("what an earlier program claimed: %v", err)
	}
	write(t, filepath.Join(modules, "config"), "[remote \"origin\"]\n\turl = https://example.org/team/lib\n")
	clone := project(t, mkdir(t, env.Dir, "clone"), "lib")
	write(t, filepath.Join(clone, ".git", "config"), "[remote \"origin\"]\n\turl = git@example.org:team/lib.git\n")
	if p, err = projectAt(clone); err != nil {
		t.Fatal(err)
	}
	if err := paths.Claim(t.Context(), p, "", now); err != nil {
		t.Errorf("a clone: %v", err)
	}
}
