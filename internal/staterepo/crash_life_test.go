package staterepo_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"reprise/internal/durable"
	"reprise/internal/durable/durabletest"
	"reprise/internal/git"
	"reprise/internal/mdfile"
	"reprise/internal/memory"
	"reprise/internal/staterepo"
	"reprise/internal/staterepo/codehooks"
)

// withAgent is a pair of which the first has an agent with something of its own, which
// the remote has, too.
var withAgent = template{make: func(a, _ *machine) {
	one := a.agent("one")
	a.write(one.Dir, "scratch.md", "kept\n")
	a.write(one.Dir, "notes/n.md", "note\n")
	a.add(one, mdfile.Entry{Type: mdfile.TypeLearning, Text: learnt, Time: at(1)})
	a.sync()
}}

func (m *machine) own(name string) *staterepo.Tree {
	m.t.Helper()
	t, err := m.repo.Open(m.t.Context(), m.desk(name))
	if err != nil || t == nil {
		m.t.Fatal(t, err)
	}
	return t
}

func (m *machine) desk(name string) string {
	return filepath.Join(m.dir, "code of "+name, ".reprise", "agent")
}

// keptScratch are the contents of scratch.md in what was kept of agent one.
func (m *machine) keptScratch(repo string) string {
	m.t.Helper()
	var out strings.Builder
	for ref := range strings.FieldsSeq(m.gitIn(repo, "for-each-ref", "--format=%(refname)", "refs/reprise/kept/agent-one")) {
		out.WriteString(m.gitIn(repo, "show", ref+":scratch.md"))
	}
	return out.String()
}

func TestCrashWhileResetting(t *testing.T) {
	t.Parallel()
	needGit(t)
	durabletest.Scenario{
		Sample:  sample(1),
		Prepare: func(t *testing.T, dir string) { withAgent.in(t, dir) },
		Act: func(disk durable.Disk, dir string) error {
			_, err := on(t, dir, disk).own("one").Reset(t.Context(), memory.FullAccess)
			return err
		},
		Check: func(t *testing.T, dir string, err error, step string) {
			m := on(t, dir, durable.Disk{})
			one := m.own("one")
			if text := m.read(one.Dir, "scratch.md"); text != "" && text != "kept\n" || text != "" && err == nil {
				t.Errorf("%s: %q", step, text)
			}
			if err != nil {
				if _, err := one.Reset(t.Context(), memory.FullAccess); err != nil {
					t.Errorf("%s: again: %v", step, err)
				}
			}
			m.sync()
			m.sync()
			if m.read(one.Dir, "scratch.md") != "" || m.read(one.Dir, "learnings.md") != "# Learnings\n" {
				t.Errorf("%s: it did not begin anew", step)
			}
			remote := filepath.Join(dir, "remote.git")
			for _, repo := range []string{m.repo.Dir(), remote} {
				if !strings.Contains(m.keptScratch(repo), "kept\n") {
					t.Errorf("%s: %s has not kept it", step, repo)
				}
			}
			if got := m.gitIn(one.Dir, "status", "--porcelain"); got != "" {
				t.Errorf("%s: status: %s", step, got)
			}
			whole(m, step)
		},
	}.CrashAtEachStep(t)
}

// An agent's new name is its only one, or the old one is, and nothing of it is lost.
func TestCrashWhileRenaming(t *testing.T) {
	t.Parallel()
	needGit(t)
	durabletest.Scenario{
		Sample:  sample(1),
		Prepare: func(t *testing.T, dir string) { withAgent.in(t, dir) },
		Act: func(disk durable.Disk, dir string) error {
			_, err := on(t, dir, disk).own("one").Rename(t.Context(), memory.FullAccess, "uno")
			return err
		},
		Check: func(t *testing.T, dir string, err error, step string) {
			m := on(t, dir, durable.Disk{})
			one := m.own("one")
			if one.Agent() != "uno" && (err == nil || one.Agent() != "one") {
				t.Errorf("%s: the agent is %s", step, one.Agent())
			}
			if one, err = one.Rename(t.Context(), memory.FullAccess, "uno"); err != nil {
				t.Fatalf("%s: again: %v", step, err)
			}
			if text := m.read(one.Dir, "changelog.md"); strings.Count(text, "Called uno from now on, and one before.") != 1 {
				t.Errorf("%s: %s", step, text)
			}
			m.add(one, mdfile.Entry{Type: mdfile.TypeImplement, Text: "Goes on", Time: at(2)})
			m.sync()
			list, err := m.repo.Agents(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, a := range list {
				if (a.Name == "uno") != (a.Dir != "") {
					t.Errorf("%s: %+v", step, a)
				}
			}
			if text := m.gitIn(filepath.Join(dir, "remote.git"), "show", "agent-uno:learnings.md"); !strings.Contains(text, learnt) {
				t.Errorf("%s: the remote has %q", step, text)
			}
			if got := m.gitIn(one.Dir, "status", "--porcelain"); got != "" {
				t.Errorf("%s: status: %s", step, got)
			}
			whole(m, step)
		},
	}.CrashAtEachStep(t)
}

// What an archiving takes away here and on the remote is kept in both, and nothing
// brings it back.
func TestCrashWhileArchiving(t *testing.T) {
	t.Parallel()
	needGit(t)
	durabletest.Scenario{
		Sample: sample(1),
		Prepare: func(t *testing.T, dir string) {
			withAgent.in(t, dir)
			if err := os.RemoveAll(filepath.Join(dir, "code of one")); err != nil {
				t.Fatal(err)
			}
		},
		Act: func(disk durable.Disk, dir string) error {
			_, err := on(t, dir, disk).repo.Archive(t.Context(), "one")
			return err
		},
		Check: func(t *testing.T, dir string, err error, step string) {
			m := on(t, dir, durable.Disk{})
			list, lerr := m.repo.Agents(t.Context())
			if lerr != nil || err == nil && len(list) > 0 {
				t.Errorf("%s: %v %v", step, list, lerr)
			}
			for _, a := range list {
				if !a.Here {
					continue
				}
				if _, err := m.repo.Archive(t.Context(), "one"); err != nil {
					t.Errorf("%s: again: %v", step, err)
				}
			}
			m.sync()
			remote := filepath.Join(dir, "remote.git")
			for _, repo := range []string{m.repo.Dir(), remote} {
				if !strings.Contains(m.keptScratch(repo), "kept\n") {
					t.Errorf("%s: %s has not kept it", step, repo)
				}
				if refs := m.gitIn(repo, "for-each-ref", "--format=%(refname)"); strings.Contains(refs, "heads/agent-one") || strings.Contains(refs, "origin/agent-one") {
					t.Errorf("%s: %s has it still: %s", step, repo, refs)
				}
			}
			whole(m, step)
		},
	}.CrashAtEachStep(t)
}

// The file of a branch that was renamed is there under one of its names, whole.
func TestCrashWhileABranchIsFollowed(t *testing.T) {
	t.Parallel()
	needGit(t)
	durabletest.Scenario{
		Sample: sample(1),
		Prepare: func(t *testing.T, dir string) {
			m := on(t, dir, durable.Disk{})
			m.ensure()
			code := m.code("code")
			m.write(m.repo.Global().Dir, "branches/trunk.md", "---\nbranch: trunk\n---\n\nSigned tokens.\n")
			m.save(m.repo.Global(), "", "")
			m.gitIn(code, "branch", "-m", "main")
		},
		Act: func(disk durable.Disk, dir string) error {
			m := on(t, dir, disk)
			_, _, err := m.repo.Switched(t.Context(), memory.FullAccess, git.New(filepath.Join(dir, "code"), git.Options{Vars: m.vars}), "main", "one")
			return err
		},
		Check: func(t *testing.T, dir string, _ error, step string) {
			m := on(t, dir, durable.Disk{})
			b, made, err := m.repo.Switched(t.Context(), memory.FullAccess, git.New(filepath.Join(dir, "code"), git.Options{Vars: m.vars}), "main", "one")
			if err != nil || made || b.Text != "Signed tokens." || strings.Join(b.Was, " ") != "trunk" || b.Agent != "one" {
				t.Errorf("%s: %v %+v %v", step, made, b, err)
			}
			if list, err := m.repo.Branches(); err != nil || len(list) != 1 {
				t.Errorf("%s: %+v %v", step, list, err)
			}
			m.save(m.repo.Global(), "", "")
			if got := m.gitIn(m.repo.Global().Dir, "show", "HEAD:branches/main.md"); !strings.Contains(got, "Signed tokens.") {
				t.Errorf("%s: not committed: %s", step, got)
			}
			whole(m, step)
		},
	}.CrashAtEachStep(t)
}

// A repository that goes is there, or in its bundle, and nothing is left beside.
func TestCrashWhileRetiring(t *testing.T) {
	t.Parallel()
	needGit(t)
	bundle := func(dir string) string { return filepath.Join(dir, "archive", "shop.bundle") }
	retire := func(m *machine) error {
		u, err := m.repo.Retire(m.t.Context(), nil, time.Now().Add(time.Hour), bundle(m.dir))
		if err == nil && !u.Remove {
			return errors.New(u.Why)
		}
		return err
	}
	durabletest.Scenario{
		Sample: sample(1),
		Prepare: func(t *testing.T, dir string) {
			m := on(t, dir, durable.Disk{})
			m.ensure()
			m.write(m.repo.Global().Dir, "learnings.md", "# Learnings\n"+entry(1, "user", mdfile.TypeLearning, learnt))
		},
		Act: func(disk durable.Disk, dir string) error { return retire(on(t, dir, disk)) },
		Check: func(t *testing.T, dir string, err error, step string) {
			m := on(t, dir, durable.Disk{})
			if err != nil && m.repo.Exists() {
				if err := retire(m); err != nil {
					t.Errorf("%s: again: %v", step, err)
				}
			}
			if err := retire(m); err != nil && err.Error() != "" {
				t.Errorf("%s: once more: %v", step, err)
			}
			list, _ := filepath.Glob(filepath.Join(filepath.Dir(m.repo.Dir()), "state.*"))
			for _, left := range list {
				if !strings.HasSuffix(left, "state.lock") {
					t.Errorf("%s: left %s", step, left)
				}
			}
			m.gitIn(dir, "clone", "-q", "-b", "global", bundle(dir), "opened")
			if !strings.Contains(m.read(filepath.Join(dir, "opened"), "learnings.md"), learnt) {
				t.Errorf("%s: the bundle does not have it", step)
			}
			if !m.ensure().New || !strings.Contains(m.read(m.repo.Global().Dir, "learnings.md"), learnt) {
				t.Errorf("%s: it cannot be made anew of the files", step)
			}
			m.save(m.repo.Global(), "", "")
			whole(m, step)
		},
	}.CrashAtEachStep(t)
}

// At whatever step putting our hooks in, or taking them out, is cut off: git has the
// user's hook, and taking them out leaves no trace.
func TestCrashWhileHooksAreInstalled(t *testing.T) {
	t.Parallel()
	needGit(t)
	if runtime.GOOS == "windows" {
		t.Skip("the user's hook here is a script of sh")
	}
	for _, where := range []string{"beside", "elsewhere"} {
		for _, out := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, out %v", where, out), func(t *testing.T) {
				t.Parallel()
				codeHooksCrash(t, where, out)
			})
		}
	}
}

func codeHooksCrash(t *testing.T, where string, out bool) {
	at := func(m *machine, disk durable.Disk) codehooks.Repo {
		return codehooks.Repo{Dir: filepath.Join(m.dir, "code"), Git: git.Options{Vars: m.vars}, Disk: disk}
	}
	install := func(m *machine, disk durable.Disk) error {
		_, err := at(m, disk).Install(t.Context(), "/bin/true", codehooks.Names())
		return err
	}
	remove := func(m *machine, disk durable.Disk) error {
		_, err := at(m, disk).Remove(t.Context())
		return err
	}
	look := func(m *machine) string {
		hooks, _ := filepath.Glob(filepath.Join(m.dir, "code", ".git", "*hooks", "*"))
		return strings.Join(hooks, "\n") + "\n" + m.read(m.dir, "code/.git/config")
	}
	durabletest.Scenario{
		Sample: sample(1),
		Prepare: func(t *testing.T, dir string) {
			m := on(t, dir, durable.Disk{})
			code := m.code("code")
			hooks := filepath.Join(code, ".git", "hooks")
			if where == "elsewhere" {
				hooks = filepath.Join(dir, "my hooks")
				m.gitIn(code, "config", "core.hooksPath", hooks)
			}
			m.write(hooks, "post-checkout", "#!/bin/sh\necho ran >>'"+dir+"/said'\n")
			if err := os.Chmod(filepath.Join(hooks, "post-checkout"), 0o755); err != nil {
				t.Fatal(err)
			}
			m.write(dir, "before", look(m))
			if out {
				if err := install(m, durable.Disk{}); err != nil {
					t.Fatal(err)
				}
			}
		},
		Act: func(disk durable.Disk, dir string) error {
			if out {
				return remove(on(t, dir, disk), disk)
			}
			return install(on(t, dir, disk), disk)
		},
		Check: func(t *testing.T, dir string, _ error, step string) {
			m := on(t, dir, durable.Disk{})
			code := filepath.Join(dir, "code")
			m.gitIn(code, "checkout", "-q", "-b", "other")
			if m.read(dir, "said") != "ran\n" {
				t.Errorf("%s: the user's hook did not run, or twice", step)
			}
			if err := install(m, durable.Disk{}); err != nil {
				t.Errorf("%s: install: %v", step, err)
			}
			list, err := at(m, durable.Disk{}).Look(t.Context())
			if err != nil || len(list) != 2 || !list[0].Installed || list[0].Problem != "" || list[0].Chained == "" {
				t.Errorf("%s: %+v %v", step, list, err)
			}
			if err := remove(m, durable.Disk{}); err != nil {
				t.Errorf("%s: remove: %v", step, err)
			}
			if got := look(m); got != m.read(dir, "before") {
				t.Errorf("%s: a trace is left:\n%s\n----\n%s", step, m.read(dir, "before"), got)
			}
		},
	}.CrashAtEachStep(t)
}

// What is promoted is the project's once, whatever the promotion was cut off at.
func TestCrashWhilePromoting(t *testing.T) {
	t.Parallel()
	needGit(t)
	durabletest.Scenario{
		Sample:  sample(1),
		Prepare: func(t *testing.T, dir string) { withAgent.in(t, dir) },
		Act:     func(disk durable.Disk, dir string) error { return promoteAll(on(t, dir, disk)) },
		Check: func(t *testing.T, dir string, _ error, step string) {
			m := on(t, dir, durable.Disk{})
			m.own("one") // links what was copied
			if err := promoteAll(m); err != nil {
				t.Errorf("%s: again: %v", step, err)
			}
			if text := m.gitIn(m.repo.Dir(), "show", "global:learnings.md"); strings.Count(text, learnt) != 1 {
				t.Errorf("%s: %s", step, text)
			}
			list, err := m.repo.Agents(t.Context())
			if err != nil || len(list) != 1 || !list[0].Consolidated {
				t.Errorf("%s: %+v %v", step, list, err)
			}
			whole(m, step)
		},
	}.CrashAtEachStep(t)
}

// An agent whose work is done goes from the team once nothing of it is left to be
// looked at; what it logged is in the log of all, and what it had is kept.
func TestConclude(t *testing.T) {
	t.Parallel()
	m := newMachine(t, nil)
	ctx := t.Context()
	for _, name := range []string{"done", "learnt", "sent"} {
		a := m.agent(name)
		m.add(a, mdfile.Entry{Type: mdfile.TypeImplement, Text: "Work of " + name, Time: at(1)})
		if name == "learnt" {
			m.add(a, mdfile.Entry{Type: mdfile.TypeLearning, Text: learnt, Time: at(2)})
		}
	}
	m.gitIn(m.repo.Dir(), "update-ref", "refs/remotes/origin/agent-sent", "agent-sent")
	left, err := m.repo.Conclude(ctx, "done")
	if err != nil || left != 0 {
		t.Fatal(left, err)
	}
	if list, err := m.repo.Agents(ctx); err != nil || len(list) != 3 {
		t.Errorf("one that works was taken away: %+v %v", list, err)
	}
	for name, want := range map[string]int{"done": 0, "learnt": 1, "sent": 0, "nobody": 0} {
		if err := os.RemoveAll(filepath.Join(m.dir, "code of "+name)); err != nil {
			t.Fatal(err)
		}
		if left, err := m.repo.Conclude(ctx, name); err != nil || left != want {
			t.Errorf("%s: %d %v", name, left, err)
		}
	}
	team, err := m.repo.Team(ctx)
	if err != nil {
		t.Fatal(err)
	}
	got := ""
	for _, x := range team {
		got += fmt.Sprintf("%s %v %v %d %v; ", x.Agent, x.Nowhere, x.Consolidated, x.Left, x.Over())
	}
	if want := "learnt true false 1 false; sent true true 0 true; "; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	log := m.read(m.repo.Global().Dir, "changelog.md")
	for _, name := range []string{"done", "learnt", "sent"} {
		if strings.Count(log, "\nWork of "+name+"\n") != 1 {
			t.Errorf("the log of all has not %s's once:\n%s", name, log)
		}
	}
	if refs := m.gitIn(m.repo.Dir(), "for-each-ref", "--format=%(refname)", "refs/reprise"); strings.Count(refs, "kept/agent-done/") != 1 || strings.Contains(refs, "consolidated/agent-done") {
		t.Error(refs)
	}
	whole(m, "in the end")
}
