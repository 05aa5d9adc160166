package staterepo_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"reprise/internal/mdfile"
	"reprise/internal/memory"
	"reprise/internal/staterepo"
)

// atOnce lets each do what it does at the same time, as processes of their own would, and
// gives what they say.
func (m *machine) atOnce(do ...func(m *machine) error) []error {
	m.t.Helper()
	errs := make([]error, len(do))
	var begin, done sync.WaitGroup
	begin.Add(1)
	for i, f := range do {
		x := *m
		x.repo = staterepo.New(m.options())
		done.Go(func() {
			begin.Wait()
			errs[i] = f(&x)
		})
	}
	begin.Done()
	done.Wait()
	return errs
}

// logs adds entries to an agent's log, one by one.
func logs(agent string) func(m *machine) error {
	return func(m *machine) error {
		a, err := m.repo.Open(m.t.Context(), m.desk(agent))
		if err != nil {
			return err
		}
		for i := range 6 {
			if _, err := a.Add(m.t.Context(), memory.FullAccess, mdfile.Entry{Type: mdfile.TypeImplement, Text: fmt.Sprintf("Entry %d of %s.", i, agent)}); err != nil {
				return err
			}
		}
		return nil
	}
}

// promoteAll is what `context promote --all` does with an agent's learnings.
func promoteAll(m *machine) error {
	ctx := m.t.Context()
	list, err := m.repo.Unpromoted(ctx, "one")
	if err != nil {
		return err
	}
	g := m.repo.Global()
	for _, e := range list {
		n := e.Entry
		n.Source, n.Parent, n.Time = "entry:"+e.ID, "", at(20)
		if _, err := g.Entries(memory.FullAccess).AddOnce(ctx, n, func(old memory.Item, n mdfile.Entry) bool { return old.Source == n.Source }); err != nil {
			return err
		}
	}
	if _, err := g.Save(ctx, "", "Promote"); err != nil {
		return err
	}
	return m.repo.Consolidate(ctx, "one")
}

func exchange(m *machine) error { _, err := m.repo.Sync(m.t.Context(), staterepo.Both); return err }

// leave takes an agent's checkout of the code away, as somebody would by hand.
func (m *machine) leave(name string) {
	m.t.Helper()
	if err := os.RemoveAll(filepath.Dir(filepath.Dir(m.desk(name)))); err != nil {
		m.t.Fatal(err)
	}
}

// Two commands at once: neither is told of a lock or of a race, and what either did is
// there. An error that a pair may end with is one that somebody can act on.
func TestPairsAtOnce(t *testing.T) {
	t.Parallel()
	needGit(t)
	collect := func(m *machine) error { _, err := m.repo.GC(m.t.Context(), true); return err }
	aggregate := func(m *machine) error { _, _, err := m.repo.Aggregate(m.t.Context()); return err }
	repair := func(m *machine) error { _, err := m.repo.Fsck(m.t.Context(), true); return err }
	for name, c := range map[string]struct {
		prepare func(m *machine)
		do      []func(m *machine) error
		may     []error // that one of them may end with
		check   func(t *testing.T, m *machine, errs []error)
	}{
		"gc and log": {
			prepare: func(m *machine) {
				g := m.agent("gone")
				m.add(g, mdfile.Entry{Type: mdfile.TypeImplement, Text: "Of one that is over.", Time: at(3)})
				m.leave("gone")
				if err := m.repo.Consolidate(m.t.Context(), "gone"); err != nil {
					m.t.Fatal(err)
				}
			},
			do: []func(m *machine) error{collect, logs("one"), collect},
			check: func(t *testing.T, m *machine, _ []error) {
				if refs := m.gitIn(m.repo.Dir(), "for-each-ref", "--format=%(refname)"); strings.Contains(refs, "heads/agent-gone") || strings.Count(refs, "refs/reprise/kept/agent-gone/") != 1 {
					t.Error(refs)
				}
				if got := m.read(m.repo.Global().Dir, "changelog.md"); strings.Count(got, "Of one that is over.\n") != 1 {
					t.Error(got)
				}
			},
		},
		"promote twice": {do: []func(m *machine) error{promoteAll, promoteAll}, check: func(t *testing.T, m *machine, _ []error) {
			if text := m.gitIn(m.repo.Dir(), "show", "global:learnings.md"); strings.Count(text, learnt) != 1 {
				t.Error(text)
			}
		}},
		"promote and log": {do: []func(m *machine) error{promoteAll, logs("one")}},
		"sync twice":      {do: []func(m *machine) error{exchange, exchange, logs("one")}},
		"two machines push": {do: []func(m *machine) error{exchange, func(m *machine) error {
			o := on(m.t, there(m.dir), m.options().Disk)
			o.repo = staterepo.New(o.options())
			o.write(o.repo.Global().Dir, "learnings.md", "# Learnings\n"+entry(4, "there", mdfile.TypeLearning, "From there."))
			return exchange(o)
		}, logs("one")}, check: func(t *testing.T, m *machine, _ []error) {
			m.sync()
			if text := m.read(m.repo.Global().Dir, "learnings.md"); !strings.Contains(text, "From there.") {
				t.Error(text)
			}
		}},
		"sync and gc": {
			prepare: func(m *machine) {
				m.agent("gone")
				m.sync()
				m.leave("gone")
				if err := m.repo.Consolidate(m.t.Context(), "gone"); err != nil {
					m.t.Fatal(err)
				}
			},
			do: []func(m *machine) error{exchange, collect}, may: []error{staterepo.ErrBusy},
			check: func(t *testing.T, m *machine, _ []error) {
				m.sync()
				if _, err := m.repo.GC(t.Context(), true); err != nil {
					t.Error(err)
				}
				remote := filepath.Join(m.dir, "remote.git")
				if refs := m.gitIn(remote, "for-each-ref", "--format=%(refname)"); strings.Contains(refs, "heads/agent-gone") || !strings.Contains(refs, "kept/agent-gone/") {
					t.Error(refs)
				}
			},
		},
		"aggregate and log": {do: []func(m *machine) error{aggregate, aggregate, logs("one")}},
		"fsck and log":      {do: []func(m *machine) error{repair, logs("one")}},
		"rename and log": {
			do: []func(m *machine) error{func(m *machine) error {
				_, err := m.own("one").Rename(m.t.Context(), memory.FullAccess, "eins")
				return err
			}, logs("one")},
			may: []error{staterepo.ErrBusy}, // who began with the old name
			check: func(t *testing.T, m *machine, errs []error) {
				if errs[0] != nil || m.own("one").Agent() != "eins" {
					t.Error(errs)
				}
			},
		},
		"reset and log": {
			do:  []func(m *machine) error{func(m *machine) error { _, err := m.own("one").Reset(m.t.Context(), memory.FullAccess); return err }, logs("one")},
			may: []error{staterepo.ErrBusy},
		},
		"accepted by two": {
			prepare: func(m *machine) {
				m.agent("two")
				m.agent("three")
				m.add(m.own("one"), mdfile.Entry{Type: mdfile.TypeHandoff, Status: "pending", Text: "Go on with it.", Time: at(5)})
			},
			do: []func(m *machine) error{accepts("two"), accepts("three")}, may: []error{staterepo.ErrTaken},
			check: func(t *testing.T, m *machine, errs []error) {
				if (errs[0] == nil) == (errs[1] == nil) {
					t.Errorf("not by one of them: %v", errs)
				}
			},
		},
		"archive, gc and attach": {
			prepare: func(m *machine) {
				m.agent("gone")
				m.leave("gone")
				if err := m.repo.Consolidate(m.t.Context(), "gone"); err != nil {
					m.t.Fatal(err)
				}
			},
			do: []func(m *machine) error{
				func(m *machine) error { _, err := m.repo.Archive(m.t.Context(), "gone"); return err },
				collect,
				func(m *machine) error {
					_, err := m.repo.CreateAgent(m.t.Context(), "gone", filepath.Join(m.dir, "again", ".reprise", "agent"), true)
					return err
				},
			},
			may: []error{staterepo.ErrBranchExists, staterepo.ErrNoAgent, staterepo.ErrBusy},
			check: func(t *testing.T, m *machine, _ []error) {
				if _, err := os.Stat(filepath.Join(m.dir, "again", ".reprise", "agent", ".git")); err == nil {
					m.gitIn(filepath.Join(m.dir, "again", ".reprise", "agent"), "status")
				}
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rounds := 1
			if long() {
				rounds = 25
			}
			for range rounds {
				m, _ := withAgent.pair(t)
				m.own("one")
				if c.prepare != nil {
					c.prepare(m)
				}
				errs := m.atOnce(c.do...)
				for _, err := range errs {
					if err != nil && !slices.ContainsFunc(c.may, func(k error) bool { return errors.Is(err, k) }) {
						t.Error(err)
					}
				}
				if c.check != nil {
					c.check(t, m, errs)
				}
				m.nothingLost(name, errs)
				if t.Failed() {
					return
				}
			}
		})
	}
}

func accepts(agent string) func(m *machine) error {
	return func(m *machine) error {
		a, err := m.repo.Open(m.t.Context(), m.desk(agent))
		if err != nil {
			return err
		}
		list, err := m.repo.Handoffs(m.t.Context(), "")
		if err != nil {
			return err
		}
		_, err = a.Accept(m.t.Context(), memory.FullAccess, list[0].ID)
		return err
	}
}

// nothingLost wants the learning that was there before, and every entry that was
// acknowledged, in some branch or in what is kept; and that all is well with git.
func (m *machine) nothingLost(name string, errs []error) {
	m.t.Helper()
	if tr := m.own("one"); tr != nil {
		m.save(tr, "", "")
	}
	m.save(m.repo.Global(), "", "")
	all := ""
	for ref := range strings.FieldsSeq(m.gitIn(m.repo.Dir(), "for-each-ref", "--format=%(refname)", "refs/heads", "refs/reprise/kept")) {
		for _, file := range []string{"changelog.md", "learnings.md"} {
			if strings.Contains(m.gitIn(m.repo.Dir(), "ls-tree", "--name-only", ref), file) {
				all += m.gitIn(m.repo.Dir(), "show", ref+":"+file)
			}
		}
	}
	want := []string{learnt}
	if strings.Contains(name, "log") && !slices.ContainsFunc(errs, func(err error) bool { return err != nil }) {
		for i := range 6 {
			want = append(want, fmt.Sprintf("Entry %d of one.", i))
		}
	}
	for _, w := range want {
		if !strings.Contains(all, w) {
			m.t.Errorf("%q is nowhere", w)
		}
	}
	whole(m, name)
}
