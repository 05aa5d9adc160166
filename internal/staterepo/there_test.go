package staterepo_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"reprise/internal/mdfile"
	"reprise/internal/memory"
)

// What is kept here stays kept, whatever the user's git removes when it fetches: with
// fetch.prune, which many have set, an exchange took away every ref that the remote did
// not have, and with it all that gc had kept of agents that were never exchanged.
func TestPruneTakesNothing(t *testing.T) {
	t.Parallel()
	m, o := emptyPair.pair(t)
	m.write(m.vars["HOME"], ".gitconfig", "[fetch]\n\tprune = true\n\tpruneTags = true\n[remote \"origin\"]\n\tprune = true\n\ttagOpt = --tags\n\tfetch = +refs/*:refs/*\n")
	ctx := t.Context()
	gone := m.agent("gone")
	m.add(gone, mdfile.Entry{Type: mdfile.TypeLearning, Text: "Of one that went before it was exchanged", Time: at(1)})
	if err := os.RemoveAll(filepath.Dir(filepath.Dir(gone.Dir))); err != nil {
		t.Fatal(err)
	}
	item, err := m.repo.Archive(ctx, "gone")
	if err != nil {
		t.Fatal(err)
	}
	o.agent("two")
	o.sync()
	m.sync()
	m.agent("one")
	m.sync()
	refs := m.gitIn(m.repo.Dir(), "for-each-ref", "--format=%(refname)")
	for _, want := range []string{item.Kept, "refs/heads/agent-one", "refs/remotes/origin/agent-one", "refs/remotes/origin/agent-two", "refs/remotes/origin/global"} {
		if !strings.Contains(refs, want+"\n") {
			t.Errorf("no %s in\n%s", want, refs)
		}
	}
	whole(m, "in the end")
}

// Somebody removes branches on the remote by hand. Those of this machine are sent again;
// of another machine's what was fetched last stays, and it is said. One that was taken
// away with reprise is kept and nothing to speak of.
func TestBranchRemovedOnTheRemote(t *testing.T) {
	t.Parallel()
	m, o := emptyPair.pair(t)
	ctx := t.Context()
	remote := filepath.Join(m.dir, "remote.git")
	m.agent("one")
	two := o.agent("two")
	o.add(two, mdfile.Entry{Type: mdfile.TypeLearning, Text: learnt, Time: at(1)})
	o.sync()
	m.sync()
	o.sync()
	for _, branch := range []string{"agent-one", "agent-two", "global"} {
		m.gitIn(remote, "update-ref", "-d", "refs/heads/"+branch)
	}
	notices := strings.Join(m.sync().Notices, "\n")
	for _, want := range []string{"branch agent-one had been removed", "branch global had been removed", "branch agent-two, of another machine, had been removed from the remote; what was fetched of it stays here as refs/reprise/former/agent-two/"} {
		if !strings.Contains(notices, want) {
			t.Errorf("%q is not said:\n%s", want, notices)
		}
	}
	if refs := m.gitIn(remote, "for-each-ref", "--format=%(refname)"); refs != "refs/heads/agent-one\nrefs/heads/global\n" {
		t.Errorf("the remote has %s", refs)
	}
	if got := m.gitIn(m.repo.Dir(), "log", "--all", "-p", "--", "learnings.md"); !strings.Contains(got, learnt) {
		t.Errorf("what the other machine learnt is nowhere: %s", got)
	}
	if again := m.sync(); len(again.Notices) > 0 {
		t.Errorf("said again: %v", again.Notices)
	}
	// The machine whose it is sends it again, and all is as before.
	if s := o.sync(); !strings.Contains(strings.Join(s.Notices, "\n"), "branch agent-two had been removed") {
		t.Error(s.Notices)
	}
	if s := m.sync(); len(s.Notices) > 0 || strings.Join(s.Fetched, " ") != "two" {
		t.Errorf("%+v", s)
	}
	// What is renamed, begins anew or is collected went from the remote as well, but not so.
	if _, err := two.Rename(ctx, memory.FullAccess, "zwei"); err != nil {
		t.Fatal(err)
	}
	o.sync()
	if s := m.sync(); len(s.Notices) > 0 {
		t.Error(s.Notices)
	}
	if refs := m.gitIn(m.repo.Dir(), "for-each-ref", "--format=%(refname)", "refs/remotes"); strings.Contains(refs, "agent-two") || !strings.Contains(refs, "agent-zwei") {
		t.Error(refs)
	}
	for _, x := range []*machine{m, o} {
		whole(x, "in the end")
	}
}

// A remote that lets no branch be removed keeps gc from that branch alone, and says why.
func TestRemoteThatForbids(t *testing.T) {
	t.Parallel()
	m, _ := emptyPair.pair(t)
	ctx := t.Context()
	remote := filepath.Join(m.dir, "remote.git")
	for _, name := range []string{"a-sent", "b-own"} {
		a := m.agent(name)
		if name == "a-sent" {
			m.sync()
		}
		if err := os.RemoveAll(filepath.Dir(filepath.Dir(a.Dir))); err != nil {
			t.Fatal(err)
		}
		if err := m.repo.Consolidate(ctx, name); err != nil {
			t.Fatal(err)
		}
	}
	m.gitIn(remote, "config", "receive.denyDeletes", "true")
	items, err := m.repo.GC(ctx, true)
	if err != nil || len(items) != 2 || items[0].Remove || !strings.Contains(items[0].Why, "denyDeletes") || !items[1].Remove {
		t.Fatalf("%+v %v", items, err)
	}
	whole(m, "forbidden")
	m.gitIn(remote, "config", "receive.denyDeletes", "false")
	if items, err = m.repo.GC(ctx, true); err != nil || len(items) != 1 || !items[0].Remove {
		t.Errorf("%+v %v", items, err)
	}
	if refs := m.gitIn(remote, "for-each-ref", "--format=%(refname)"); strings.Contains(refs, "heads/agent-a-sent") || !strings.Contains(refs, "refs/reprise/kept/agent-a-sent/") {
		t.Error(refs)
	}
}
