package staterepo_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"reprise/internal/durable"
	"reprise/internal/durable/durabletest"
	"reprise/internal/git"
	"reprise/internal/mdfile"
	"reprise/internal/memory"
	"reprise/internal/staterepo"
)

// long says that each step is tried, and not a sample.
func long() bool { return os.Getenv("REPRISE_LONG_TESTS") != "" }

func sample(n int) int {
	if long() {
		return 0
	}
	return n
}

// on is a machine in a directory that is there already, with a disk. Its clock stands,
// so that objects get the same names each time, and a change has the same steps.
func on(t testing.TB, dir string, disk durable.Disk) *machine {
	m := &machine{t: t, dir: dir, vars: map[string]string{"PATH": os.Getenv("PATH"), "HOME": dir}}
	o := m.options()
	o.Disk, o.Now = disk, func() time.Time { return at(30) }
	m.repo = staterepo.New(o)
	return m
}

// whole checks a repository after a crash: git finds nothing wrong, fsck neither,
// and what is on disk is what the branches have.
func whole(m *machine, at string) {
	m.t.Helper()
	if long() { // ours runs git's, but for the contents of files
		if out := m.gitIn(m.repo.Dir(), "fsck", "--strict", "--no-dangling"); strings.Contains(out, "error") || strings.Contains(out, "missing") {
			m.t.Errorf("%s: git fsck: %s", at, out)
		}
	}
	list, err := m.repo.Fsck(m.t.Context(), false)
	if err != nil || len(list) > 0 {
		m.t.Errorf("%s: fsck: %v %v", at, list, err)
	}
}

const learnt = "The port is 5432."

func TestCrashWhileMaking(t *testing.T) {
	t.Parallel()
	needGit(t)
	durabletest.Scenario{
		Sample: sample(2),
		Prepare: func(t *testing.T, dir string) {
			m := on(t, dir, durable.Disk{})
			m.write(m.repo.Global().Dir, "learnings.md", "# Learnings\n"+entry(1, "user", mdfile.TypeLearning, learnt))
		},
		Act: func(disk durable.Disk, dir string) error {
			m := on(t, dir, disk)
			if _, err := m.repo.Ensure(t.Context()); err != nil {
				return err
			}
			_, err := m.repo.CreateAgent(t.Context(), "one", filepath.Join(dir, "code", ".reprise", "agent"), false)
			return err
		},
		Check: func(t *testing.T, dir string, err error, at string) {
			m := on(t, dir, durable.Disk{})
			m.ensure()
			a, cerr := m.repo.CreateAgent(t.Context(), "one", filepath.Join(dir, "code", ".reprise", "agent"), false)
			if cerr != nil {
				t.Errorf("%s: again: %v", at, cerr)
				return
			}
			m.save(m.repo.Global(), "", "")
			if !strings.Contains(m.read(m.repo.Global().Dir, "learnings.md"), learnt) || m.read(a.Dir, "changelog.md") != "# Changelog\n" {
				t.Errorf("%s: files are lost", at)
			}
			if got := m.gitIn(m.repo.Dir(), "show", "global:learnings.md"); !strings.Contains(got, learnt) {
				t.Errorf("%s: not committed: %s", at, got)
			}
			if got := m.gitIn(a.Dir, "status", "--porcelain"); got != "" {
				t.Errorf("%s: status: %s", at, got)
			}
			whole(m, at)
		},
	}.CrashAtEachStep(t)
}

func TestCrashWhileLogging(t *testing.T) {
	t.Parallel()
	needGit(t)
	durabletest.Scenario{
		Sample: sample(2),
		Prepare: func(t *testing.T, dir string) {
			on(t, dir, durable.Disk{}).agent("one")
		},
		Act: func(disk durable.Disk, dir string) error {
			m := on(t, dir, disk)
			a, err := m.repo.Open(t.Context(), filepath.Join(dir, "code of one", ".reprise", "agent"))
			if err != nil {
				return err
			}
			_, err = a.Add(t.Context(), memory.FullAccess, mdfile.Entry{Type: mdfile.TypeImplement, Text: "Done.", Time: at(1)})
			return err
		},
		Check: func(t *testing.T, dir string, err error, step string) {
			m := on(t, dir, durable.Disk{})
			a, oerr := m.repo.Open(t.Context(), filepath.Join(dir, "code of one", ".reprise", "agent"))
			if oerr != nil {
				t.Errorf("%s: %v", step, oerr)
				return
			}
			added, aerr := a.Add(t.Context(), memory.FullAccess, mdfile.Entry{Type: mdfile.TypeImplement, Text: "After.", Time: at(2)})
			if aerr != nil {
				t.Errorf("%s: %v", step, aerr)
				return
			}
			text := m.gitIn(a.Dir, "show", "HEAD:changelog.md")
			if n := strings.Count(text, "\nDone.\n"); n > 1 || n == 0 && err == nil || !strings.Contains(text, "\nAfter.\n") {
				t.Errorf("%s: %d times in %s", step, n, text)
			}
			if strings.Contains(text, "Done.") && added.Parent == "" {
				t.Errorf("%s: no parent", step)
			}
			if got := m.gitIn(a.Dir, "status", "--porcelain"); got != "" {
				t.Errorf("%s: status: %s", step, got)
			}
			whole(m, step)
		},
	}.CrashAtEachStep(t)
}

// Two machines in one directory: here and there.
func TestCrashWhileSyncing(t *testing.T) {
	t.Parallel()
	needGit(t)
	kinds := map[string]staterepo.Direction{"both": staterepo.Both}
	if long() {
		kinds["pull"], kinds["push"] = staterepo.Pull, staterepo.Push
	}
	for name, way := range kinds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			syncCrash(t, way)
		})
	}
}

func syncCrash(t *testing.T, way staterepo.Direction) {
	durabletest.Scenario{
		Sample: sample(1),
		Prepare: func(t *testing.T, dir string) {
			twoSides.in(t, dir)
		},
		Act: func(disk durable.Disk, dir string) error {
			_, err := on(t, dir, disk).repo.Sync(t.Context(), way)
			return err
		},
		Check: func(t *testing.T, dir string, _ error, step string) {
			m := on(t, dir, durable.Disk{})
			m.sync()
			o := on(t, there(dir), durable.Disk{})
			o.sync()
			for _, x := range []*machine{m, o} {
				g := x.repo.Global()
				text := x.read(g.Dir, "learnings.md")
				if strings.Count(text, "From here.") != 1 || strings.Count(text, "From there.") != 1 || x.read(g.Dir, "plan.md") != "1 here\n2\n3 there\n" {
					t.Errorf("%s: %s: %s\n%s", step, g.Dir, text, x.read(g.Dir, "plan.md"))
				}
				if got := x.gitIn(g.Dir, "status", "--porcelain"); got != "" {
					t.Errorf("%s: status: %s", step, got)
				}
			}
			whole(m, step)
		},
	}.CrashAtEachStep(t)
}

func TestCrashWhileCollecting(t *testing.T) {
	t.Parallel()
	needGit(t)
	durabletest.Scenario{
		Sample: sample(1),
		Prepare: func(t *testing.T, dir string) {
			m := on(t, dir, durable.Disk{})
			a := m.agent("one")
			m.write(a.Dir, "scratch.md", "kept\n")
			m.save(a, "one", "")
			if err := m.repo.Consolidate(t.Context(), "one"); err != nil {
				t.Fatal(err)
			}
			if err := os.RemoveAll(filepath.Join(dir, "code of one")); err != nil {
				t.Fatal(err)
			}
		},
		Act: func(disk durable.Disk, dir string) error {
			list, err := on(t, dir, disk).repo.GC(t.Context(), true)
			if err == nil && (len(list) != 1 || !list[0].Remove) {
				return fmt.Errorf("collected %v", list)
			}
			return err
		},
		Check: func(t *testing.T, dir string, _ error, step string) {
			m := on(t, dir, durable.Disk{})
			if _, err := m.repo.GC(t.Context(), true); err != nil {
				t.Errorf("%s: again: %v", step, err)
			}
			refs := m.gitIn(m.repo.Dir(), "for-each-ref", "--format=%(refname)")
			if strings.Contains(refs, "refs/heads/agent-one") || strings.Count(refs, "refs/reprise/kept/agent-one/") != 1 || strings.Contains(refs, "consolidated") {
				t.Errorf("%s: %s", step, refs)
				return
			}
			kept := strings.TrimSpace(m.gitIn(m.repo.Dir(), "for-each-ref", "--format=%(refname)", "refs/reprise/kept"))
			if got := m.gitIn(m.repo.Dir(), "show", kept+":scratch.md"); got != "kept\n" {
				t.Errorf("%s: %q", step, got)
			}
			whole(m, step)
		},
	}.CrashAtEachStep(t)
}

// What is not consolidated, was added to since, or still works, stays.
func TestGCLeavesWhatIsNeeded(t *testing.T) {
	t.Parallel()
	m := newMachine(t, nil)
	ctx := t.Context()
	for _, name := range []string{"open", "late", "live", "gone"} {
		a := m.agent(name)
		if name != "open" {
			if name == "late" {
				m.save(a, name, "")
			}
			if err := m.repo.Consolidate(ctx, name); err != nil {
				t.Fatal(err)
			}
		}
		if name == "late" {
			m.write(a.Dir, "scratch.md", "later\n")
			m.save(a, name, "")
		}
		if name != "live" {
			if err := os.RemoveAll(filepath.Dir(filepath.Dir(a.Dir))); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, really := range []bool{false, true} {
		list, err := m.repo.GC(ctx, really)
		if err != nil || len(list) != 4 {
			t.Fatal(list, err)
		}
		for _, i := range list {
			if i.Remove != (i.Agent == "gone") || i.Why == "" {
				t.Errorf("%v: %+v", really, i)
			}
		}
	}
	list, err := m.repo.Agents(ctx)
	if err != nil || len(list) != 3 {
		t.Errorf("%v %v", list, err)
	}
	if err := m.repo.Consolidate(ctx, "nobody"); !errors.Is(err, staterepo.ErrNoAgent) {
		t.Error(err)
	}
}

// Fsck mends a branch whose last commit is damaged: nothing on disk is lost.
func TestFsckRepairs(t *testing.T) {
	t.Parallel()
	m := newMachine(t, nil)
	a := m.agent("one")
	m.write(a.Dir, "scratch.md", "1\n")
	good := m.save(a, "", "first").Commit
	m.write(a.Dir, "scratch.md", "2\n")
	bad := m.save(a, "", "second").Commit
	object := filepath.Join(m.repo.Dir(), "objects", bad[:2], bad[2:])
	if err := os.Remove(object); err != nil {
		t.Fatal(err)
	}
	lock := filepath.Join(m.repo.Dir(), "refs", "heads", "global.lock")
	m.write(filepath.Dir(lock), filepath.Base(lock), "")
	old := time.Now().Add(-time.Hour)
	if err := os.Chtimes(lock, old, old); err != nil {
		t.Fatal(err)
	}
	list, err := m.repo.Fsck(t.Context(), false)
	if err != nil || len(list) < 2 {
		t.Fatal(list, err)
	}
	if list, err = m.repo.Fsck(t.Context(), true); err != nil {
		t.Fatal(list, err)
	}
	if got := m.gitIn(a.Dir, "show", "HEAD:scratch.md"); got != "2\n" {
		t.Error(got)
	}
	if got := m.gitIn(a.Dir, "rev-parse", "HEAD~1"); strings.TrimSpace(got) != good {
		t.Errorf("%s, want %s", got, good)
	}
	// The broken commit stands in the reflog still, which git's own fsck says.
	m.gitIn(m.repo.Dir(), "reflog", "expire", "--expire=now", "--expire-unreachable=now", "--all")
	whole(m, "mended")
}

// Many committers on checkouts of one repository, and several on one checkout: no
// error of a lock reaches them, and nothing is lost.
func TestManyCommitters(t *testing.T) {
	t.Parallel()
	m := newMachine(t, nil)
	each, agents, on := 4, 4, 2
	if long() {
		each, agents, on = 1000, 8, 1
	}
	var wg sync.WaitGroup
	for n := range agents {
		name := fmt.Sprintf("a%d", n/on) // in the short run two on each checkout
		dir := filepath.Join(m.dir, name, ".reprise", "agent")
		if n%on == 0 {
			if _, err := m.repo.CreateAgent(t.Context(), name, dir, false); err != nil {
				t.Fatal(err)
			}
		}
		wg.Go(func() {
			repo := staterepo.New(m.options()) // as another process has it
			a, err := repo.Open(t.Context(), dir)
			if err != nil {
				t.Error(err)
				return
			}
			for i := range each {
				if _, err := a.Add(t.Context(), memory.FullAccess, mdfile.Entry{Type: mdfile.TypeImplement, Text: fmt.Sprintf("Entry %d of %d.", i, n)}); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
		})
	}
	wg.Wait()
	for n := range agents / on {
		name := fmt.Sprintf("a%d", n)
		text := m.gitIn(m.repo.Dir(), "show", "agent-"+name+":changelog.md")
		if got := strings.Count(text, "\nEntry "); got != on*each {
			t.Errorf("%s: %d entries of %d", name, got, on*each)
		}
		if got := m.gitIn(filepath.Join(m.dir, name, ".reprise", "agent"), "status", "--porcelain"); got != "" {
			t.Errorf("%s: %s", name, got)
		}
	}
	whole(m, "in the end")
}

// needGit skips where git is not installed.
func needGit(t *testing.T) {
	if !git.New("", git.Options{Vars: map[string]string{"PATH": os.Getenv("PATH")}}).Installed() {
		t.Skip("git is not here")
	}
}

// Every lock that a killed git can leave is removed by the next command that fails at it,
// and by fsck: before, one of them stopped all commits for good. A young one is another's.
func TestLocksThatWereLeft(t *testing.T) {
	t.Parallel()
	remote := t.TempDir()
	m := newMachine(t, nil)
	m.gitIn(remote, "init", "-q", "--bare")
	a := m.agent("one")
	m.remote(remote)
	m.sync()
	for _, name := range []string{
		"HEAD.lock", "refs/heads/global.lock", "refs/heads/agent-one.lock", "packed-refs.lock", "config.lock",
		"refs/reprise/consolidated/agent-one.lock", "refs/reprise/merge/global.lock", "refs/remotes/origin/global.lock", "refs/remotes/origin/agent-one.lock",
		"worktrees/agent-one/HEAD.lock", "worktrees/agent-one/index.lock", "worktrees/global/HEAD.lock", "objects/info/commit-graph.lock",
	} {
		path := filepath.Join(m.repo.Dir(), filepath.FromSlash(name))
		plant := func(age time.Duration) {
			m.write(filepath.Dir(path), filepath.Base(path), "")
			when := m.options().Now().Add(-age)
			if err := os.Chtimes(path, when, when); err != nil {
				t.Fatal(err)
			}
		}
		plant(time.Second)
		for _, repair := range []bool{false, true} {
			if list, err := m.repo.Fsck(t.Context(), repair); err != nil || len(list) != 1 || list[0].Where != path || list[0].Repaired {
				t.Errorf("%s, young: %v %v", name, list, err)
			}
		}
		plant(time.Hour)
		if list, err := m.repo.Fsck(t.Context(), true); err != nil || len(list) != 1 || !list[0].Repaired {
			t.Errorf("%s, old: %v %v", name, list, err)
		}
		plant(time.Hour)
		m.write(m.repo.Global().Dir, "plan.md", name+"\n")
		m.write(a.Dir, "scratch.md", name+"\n")
		m.sync()
		if err := m.repo.Consolidate(t.Context(), "one"); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		m.remote(remote + "/.")
		m.remote(remote)
		m.sync()
		if got := m.gitIn(remote, "show", "global:plan.md") + m.gitIn(remote, "show", "agent-one:scratch.md"); got != name+"\n"+name+"\n" {
			t.Errorf("%s: the remote has %q", name, got)
		}
		if list, err := m.repo.Fsck(t.Context(), true); err != nil {
			t.Errorf("%s, then: %v %v", name, list, err)
		}
	}
}

// What killed commands were writing is taken away by fsck --repair and gc once it is old.
func TestTempsThatWereLeft(t *testing.T) {
	t.Parallel()
	m := newMachine(t, nil)
	a := m.agent("one")
	name := ".x.md." + strings.Repeat("a", 16) + ".tmp"
	for n := 1; !durable.IsTemp(name); n++ {
		if name = ".x.md." + strings.Repeat("a", n) + ".tmp"; n > 64 {
			t.Fatal("no name is one of a temporary file")
		}
	}
	objects, err := filepath.Glob(filepath.Join(m.repo.Dir(), "objects", "??"))
	if err != nil || len(objects) == 0 {
		t.Fatal(objects, err)
	}
	for _, clean := range []func() error{
		func() error { _, err := m.repo.Fsck(t.Context(), true); return err },
		func() error { _, err := m.repo.GC(t.Context(), true); return err },
	} {
		for _, dir := range []string{m.repo.Global().Dir, a.Dir, filepath.Join(a.Dir, "notes"), objects[0]} {
			for age, stays := range map[time.Duration]bool{time.Minute: true, 2 * time.Hour: false} {
				m.write(dir, name, "half")
				path, when := filepath.Join(dir, name), m.options().Now().Add(-age)
				if err := os.Chtimes(path, when, when); err != nil {
					t.Fatal(err)
				}
				if err := clean(); err != nil {
					t.Fatal(err)
				}
				if _, err := os.Stat(path); (err == nil) != stays {
					t.Errorf("%s, %s old: %v", path, age, err)
				}
			}
		}
	}
}
