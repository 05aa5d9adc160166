package staterepo_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"reprise/internal/durable"
	"reprise/internal/durable/durabletest"
	"reprise/internal/mdfile"
	"reprise/internal/memory"
	"reprise/internal/staterepo"
)

// use is the next ordinary command in a checkout: it logs, and makes the state first
// where there is none.
func (m *machine) use(dir, name string, attach bool) (*staterepo.Tree, error) {
	t, err := m.repo.Open(m.t.Context(), dir)
	if err == nil && t == nil {
		t, err = m.repo.CreateAgent(m.t.Context(), name, dir, attach)
	}
	if err == nil {
		_, err = t.Add(m.t.Context(), memory.FullAccess, mdfile.Entry{Type: mdfile.TypeImplement, Text: "After.", Time: at(5)})
	}
	return t, err
}

// A making that is cut off at any step leaves nothing that a person has to mend: whoever
// works there next does so, with all files that the branch had.
func TestCrashWhileMakingThenUse(t *testing.T) {
	t.Parallel()
	needGit(t)
	for name, attach := range map[string]bool{"new": false, "attached": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			durabletest.Scenario{
				Sample: sample(2),
				Prepare: func(t *testing.T, dir string) {
					m := on(t, dir, durable.Disk{})
					m.ensure()
					if !attach {
						return
					}
					one := m.agent("one")
					m.write(one.Dir, "notes/n.md", "note\n")
					m.save(one, "", "")
					if err := m.repo.Detach(t.Context(), "one", one.Dir); err != nil {
						t.Fatal(err)
					}
					if err := os.RemoveAll(one.Dir); err != nil {
						t.Fatal(err)
					}
				},
				Act: func(disk durable.Disk, dir string) error {
					_, err := on(t, dir, disk).repo.CreateAgent(t.Context(), "one", filepath.Join(dir, "new code", ".reprise", "agent"), attach)
					return err
				},
				Check: func(t *testing.T, dir string, _ error, step string) {
					m := on(t, dir, durable.Disk{})
					whole(m, step+", before")
					one, err := m.use(filepath.Join(dir, "new code", ".reprise", "agent"), "one", attach)
					if err != nil {
						t.Fatalf("%s: %v", step, err)
					}
					if got := m.gitIn(one.Dir, "show", "HEAD:changelog.md"); !strings.Contains(got, "After.") || one.Agent() != "one" {
						t.Errorf("%s: %s has %q", step, one.Agent(), got)
					}
					if files := m.gitIn(one.Dir, "ls-tree", "-r", "--name-only", "HEAD"); attach && !strings.Contains(files, "notes/n.md\n") {
						t.Errorf("%s: a file is gone from the branch: %s", step, files)
					}
					if got := m.gitIn(one.Dir, "status", "--porcelain"); got != "" {
						t.Errorf("%s: status: %s", step, got)
					}
					whole(m, step)
				},
			}.CrashAtEachStep(t)
		})
	}
}

// What is taken back is gone, wherever its making, or an earlier taking back, was cut off;
// and at no step is there a checkout whose branch is not there.
func TestCrashWhileTakingBack(t *testing.T) {
	t.Parallel()
	needGit(t)
	desk := func(dir string) string { return filepath.Join(dir, "code", ".reprise", "agent") }
	left := func(t *testing.T, dir, step string) {
		m := on(t, dir, durable.Disk{})
		whole(m, step+", before")
		if err := m.repo.TakeBack(t.Context(), "one", desk(dir)); err != nil {
			t.Errorf("%s: %v", step, err)
		}
		list, err := m.repo.Agents(t.Context())
		if err != nil || len(list) > 0 {
			t.Errorf("%s: %v %v", step, list, err)
		}
		if _, err := os.Lstat(filepath.Join(m.repo.Dir(), "worktrees", "agent-one")); err == nil {
			t.Errorf("%s: the repository knows a checkout still", step)
		}
		whole(m, step)
	}
	t.Run("making", func(t *testing.T) {
		t.Parallel()
		durabletest.Scenario{
			Sample:  sample(2),
			Prepare: func(t *testing.T, dir string) { on(t, dir, durable.Disk{}).ensure() },
			Act: func(disk durable.Disk, dir string) error {
				_, err := on(t, dir, disk).repo.CreateAgent(t.Context(), "one", desk(dir), false)
				return err
			},
			Check: func(t *testing.T, dir string, _ error, step string) { left(t, dir, step) },
		}.CrashAtEachStep(t)
	})
	t.Run("taking back", func(t *testing.T) {
		t.Parallel()
		durabletest.Scenario{
			Prepare: func(t *testing.T, dir string) {
				m := on(t, dir, durable.Disk{})
				m.ensure()
				if _, err := m.repo.CreateAgent(t.Context(), "one", desk(dir), false); err != nil {
					t.Fatal(err)
				}
			},
			Act: func(disk durable.Disk, dir string) error {
				return on(t, dir, disk).repo.TakeBack(t.Context(), "one", desk(dir))
			},
			Check: func(t *testing.T, dir string, _ error, step string) { left(t, dir, step) },
		}.CrashAtEachStep(t)
	})
}

// A branch that is gone, whoever took it, is made again by the next command from what is
// on disk. One that was taken away with its agent is not.
func TestBranchOfCheckoutGone(t *testing.T) {
	t.Parallel()
	needGit(t)
	m := on(t, t.TempDir(), durable.Disk{})
	m.ensure()
	one := m.agent("one")
	m.write(one.Dir, "notes/n.md", "note\n")
	m.add(one, mdfile.Entry{Type: mdfile.TypeLearning, Text: learnt, Time: at(1)})
	m.gitIn(m.repo.Dir(), "update-ref", "-d", "refs/heads/agent-one")
	s, err := one.Save(t.Context(), "", "")
	if err != nil || !strings.Contains(strings.Join(s.Notes, "\n"), "made again") {
		t.Fatal(s, err)
	}
	for file, want := range map[string]string{"learnings.md": learnt, "notes/n.md": "note\n"} {
		if got := m.gitIn(one.Dir, "show", "HEAD:"+file); !strings.Contains(got, want) {
			t.Errorf("%s: %q", file, got)
		}
	}
	if _, err := m.use(one.Dir, "one", false); err != nil {
		t.Error(err)
	}
	whole(m, "made again")

	m.gitIn(m.repo.Dir(), "update-ref", "refs/reprise/kept/agent-one/123456789012", "refs/heads/agent-one")
	m.gitIn(m.repo.Dir(), "update-ref", "-d", "refs/heads/agent-one")
	if _, err := m.use(one.Dir, "one", false); err == nil || !strings.Contains(err.Error(), "is not there: agent-one") {
		t.Errorf("an agent that was taken away came back: %v", err)
	}
	if refs := m.gitIn(m.repo.Dir(), "for-each-ref", "refs/heads/agent-one"); refs != "" {
		t.Error(refs)
	}
}

// Whatever takes an agent's branch away, or gives it another name, is cut off at no step
// where a checkout has none: nothing is to be repaired, and what comes next in the checkout,
// where that is still there, is kept.
func TestCrashLeavesNoCheckoutWithoutBranch(t *testing.T) {
	t.Parallel()
	needGit(t)
	away := func(m *machine) {
		one := m.own("one")
		if err := m.repo.Detach(m.t.Context(), "one", one.Dir); err != nil {
			m.t.Error(err)
		}
		if err := os.RemoveAll(one.Dir); err != nil {
			m.t.Error(err)
		}
	}
	for name, c := range map[string]struct {
		before func(m *machine)
		act    func(m *machine) error
	}{
		"rename": {act: func(m *machine) error {
			one, err := m.repo.Open(m.t.Context(), m.desk("one"))
			if err == nil {
				_, err = one.Rename(m.t.Context(), memory.FullAccess, "uno")
			}
			return err
		}},
		"detach":  {act: func(m *machine) error { return m.repo.Detach(m.t.Context(), "one", m.desk("one")) }},
		"reset":   {act: func(m *machine) error { _, err := m.own("one").Reset(m.t.Context(), memory.FullAccess); return err }},
		"archive": {before: away, act: func(m *machine) error { _, err := m.repo.Archive(m.t.Context(), "one"); return err }},
		"conclude": {before: away, act: func(m *machine) error {
			_, err := m.repo.Conclude(m.t.Context(), "one")
			return err
		}},
		"collect": {before: func(m *machine) {
			away(m)
			if err := m.repo.Consolidate(m.t.Context(), "one"); err != nil {
				m.t.Error(err)
			}
		}, act: func(m *machine) error { _, err := m.repo.GC(m.t.Context(), true); return err }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			durabletest.Scenario{
				Sample: sample(2),
				Prepare: func(t *testing.T, dir string) {
					m := on(t, dir, durable.Disk{})
					m.ensure()
					m.write(m.agent("one").Dir, "scratch.md", "kept\n")
					m.save(m.own("one"), "", "")
					if c.before != nil {
						c.before(m)
					}
				},
				Act: func(disk durable.Disk, dir string) error { return c.act(on(t, dir, disk)) },
				Check: func(t *testing.T, dir string, _ error, step string) {
					m := on(t, dir, durable.Disk{})
					for name, at := range staterepo.Checkouts(filepath.Dir(m.repo.Dir())) {
						if exists, _, err := m.repo.Branch(t.Context(), name); err != nil || !exists {
							t.Errorf("%s: %s is a checkout of %s, which is not there: %v", step, at, name, err)
						}
					}
					if c.before != nil {
						return
					}
					one, err := m.use(m.desk("one"), "one", true)
					if err != nil {
						t.Fatalf("%s: %v", step, err)
					}
					if got := m.gitIn(one.Dir, "show", "HEAD:changelog.md"); !strings.Contains(got, "After.") {
						t.Errorf("%s: %q", step, got)
					}
					whole(m, step)
				},
			}.CrashAtEachStep(t)
		})
	}
}
