package staterepo_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"reprise/internal/event"
	"reprise/internal/git"
	"reprise/internal/mdfile"
	"reprise/internal/memory"
	"reprise/internal/staterepo"
)

func (m *machine) add(t *staterepo.Tree, e mdfile.Entry) staterepo.Added {
	m.t.Helper()
	a, err := t.Add(m.t.Context(), memory.FullAccess, e)
	if err != nil {
		m.t.Fatal(err)
	}
	return a
}

func (m *machine) handoffs(agent string) []staterepo.Handoff {
	m.t.Helper()
	list, err := m.repo.Handoffs(m.t.Context(), agent)
	if err != nil {
		m.t.Fatal(err)
	}
	return list
}

// What all agents logged comes together on global, with who is at what, the same on
// each machine; the team sees it, and a handoff that two accepted before they
// exchanged belongs to the one who exchanged first, whatever their clocks said.
func TestTeam(t *testing.T) {
	t.Parallel()
	m, o := emptyPair.pair(t)
	one, two := m.agent("one"), o.agent("two")
	left := m.add(one, mdfile.Entry{Type: mdfile.TypeHandoff, Text: "Continue with the API | tests", Time: at(1)})
	m.add(one, mdfile.Entry{Type: mdfile.TypeEnd, Text: "Stopped here", Time: at(2)})
	m.sync()
	o.sync()
	three := m.agent("three")
	for _, h := range o.handoffs("") {
		if h.AcceptedBy != "" {
			t.Errorf("%+v", h)
		}
	}
	o.write(two.Dir, "context.md", "# The API tests\n")
	// Both accept: three a minute earlier by its clock, two exchanges first.
	if _, err := three.Accept(t.Context(), memory.FullAccess, left.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := two.Accept(t.Context(), memory.FullAccess, left.ID[:8]); err != nil {
		t.Fatal(err)
	}
	o.sync()
	s := m.sync()
	if len(s.Notices) != 1 || !strings.Contains(s.Notices[0], "had been accepted by two") {
		t.Errorf("%+v", s)
	}
	if text := m.read(three.Dir, "changelog.md"); strings.Count(text, "handoff-lost:") != 1 {
		t.Error(text)
	}
	o.sync()
	if s := m.sync(); len(s.Notices) > 0 {
		t.Errorf("told twice: %+v", s)
	}
	for _, x := range []*machine{m, o} {
		if list := x.handoffs(""); len(list) != 1 || list[0].AcceptedBy != "two" {
			t.Errorf("%+v", list)
		}
	}
	if _, err := three.Accept(t.Context(), memory.FullAccess, left.ID); !errors.Is(err, staterepo.ErrTaken) {
		t.Errorf("%v", err)
	}
	log := m.read(m.repo.Global().Dir, "changelog.md")
	if log != o.read(o.repo.Global().Dir, "changelog.md") {
		t.Errorf("%s\n----\n%s", log, o.read(o.repo.Global().Dir, "changelog.md"))
	}
	for _, want := range []string{"# Changelog\n\n<!-- reprise: agents -->\n| Agent |", "| one | completed | 2026-11-28 10:00 | Stopped here |", "| two | in_progress |", "| three | blocked |"} {
		if strings.Count(log, want) != 1 {
			t.Errorf("no %q in\n%s", want, log)
		}
	}
	team, err := m.repo.Team(t.Context())
	if err != nil || len(team) != 3 {
		t.Fatal(team, err)
	}
	for _, x := range team {
		want := map[string]string{"one": "completed Stopped here true", "two": "in_progress The API tests false", "three": "blocked Not ours: handoff " + left.ID + " is two's true"}[x.Agent]
		if got := fmt.Sprint(x.Status, " ", x.On, " ", x.Here); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	whole(m, "in the end")
}

// An agent that works nowhere any more is known as such on the other machines: what it
// wrote last comes along, and that nothing of it is left to promote. Who goes on with it
// elsewhere is at work again, and one that was taken away goes from everybody's team.
func TestEndTravels(t *testing.T) {
	t.Parallel()
	m, o := emptyPair.pair(t)
	ctx := t.Context()
	one := m.agent("one")
	m.add(one, mdfile.Entry{Type: mdfile.TypeImplement, Text: "The parser", Time: at(1)})
	m.sync()
	o.sync()
	seen := func(x *machine, want string) {
		t.Helper()
		list, err := x.repo.Team(ctx)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, a := range list {
			got += fmt.Sprintf("%s here=%v nowhere=%v left=%d over=%v %s; ", a.Agent, a.Here, a.Nowhere, a.Left, a.Over(), a.On)
		}
		if got != want {
			t.Errorf("%s\nwant %s", got, want)
		}
	}
	seen(o, "one here=false nowhere=false left=0 over=false The parser; ")
	// Its last words are committed when its checkout goes, after the last exchange.
	m.add(one, mdfile.Entry{Type: mdfile.TypeLearning, Text: "Tabs count as eight columns", Time: at(2)})
	if err := os.RemoveAll(filepath.Dir(filepath.Dir(one.Dir))); err != nil {
		t.Fatal(err)
	}
	if err := m.repo.Detach(ctx, "one", one.Dir); err != nil {
		t.Fatal(err)
	}
	if left, err := m.repo.Conclude(ctx, "one"); err != nil || left != 1 {
		t.Fatal(left, err)
	}
	m.sync()
	o.sync()
	ended := "one here=false nowhere=true left=1 over=false Tabs count as eight columns; "
	seen(m, ended)
	seen(o, ended)
	// Somebody looked at what was left, elsewhere.
	if err := o.repo.Consolidate(ctx, "one"); err != nil {
		t.Fatal(err)
	}
	o.sync()
	m.sync()
	if items, err := m.repo.GC(ctx, false); err != nil || len(items) != 1 || !items[0].Remove {
		t.Fatalf("%+v %v", items, err)
	}
	ended = strings.Replace(ended, "over=false", "over=true", 1)
	seen(m, ended)
	seen(o, ended)
	if s := m.sync(); len(s.Commits) > 0 {
		t.Errorf("sent again: %+v", s)
	}
	// It goes on elsewhere, and has written nothing yet.
	two, err := o.repo.CreateAgent(ctx, "one", filepath.Join(o.dir, "again", ".reprise", "agent"), true)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		o.sync()
		m.sync()
	}
	seen(o, "one here=true nowhere=false left=0 over=false Tabs count as eight columns; ")
	seen(m, "one here=false nowhere=false left=0 over=false Tabs count as eight columns; ")
	if s := o.sync(); len(s.Commits) > 0 {
		t.Errorf("it is at work again for the second time: %+v", s)
	}
	// It ends there, and is taken away.
	if err := os.RemoveAll(filepath.Dir(filepath.Dir(two.Dir))); err != nil {
		t.Fatal(err)
	}
	if err := o.repo.Detach(ctx, "one", two.Dir); err != nil {
		t.Fatal(err)
	}
	o.sync()
	m.sync()
	seen(m, "one here=false nowhere=true left=1 over=false Tabs count as eight columns; ")
	if err := o.repo.Consolidate(ctx, "one"); err != nil {
		t.Fatal(err)
	}
	if items, err := o.repo.GC(ctx, true); err != nil || len(items) != 1 || !items[0].Remove {
		t.Fatalf("%+v %v", items, err)
	}
	third := newMachine(t, nil)
	third.remote(filepath.Join(m.dir, "remote.git"))
	for range 2 {
		m.sync()
		third.sync()
		o.sync()
	}
	seen(third, "")
	seen(o, "")
	if refs := m.gitIn(m.repo.Dir(), "for-each-ref", "--format=%(refname)", "refs/remotes/origin/agent-one"); refs != "" {
		t.Errorf("the first machine still has %s", refs)
	}
	if refs := m.gitIn(filepath.Join(m.dir, "remote.git"), "for-each-ref", "--format=%(refname)", "refs/heads/agent-*"); refs != "" {
		t.Errorf("the remote has %s", refs)
	}
	if text := m.gitIn(m.repo.Dir(), "log", "--all", "--format=%H", "-S", "Tabs count"); text == "" {
		t.Error("what it learnt is lost")
	}
}

// Two machines whose agents have the same name, as where both are called so, do not come
// to have one agent: the second is told, and another name is all that it takes.
func TestNamesakes(t *testing.T) {
	t.Parallel()
	m, o := emptyPair.pair(t)
	ctx := t.Context()
	first, second := m.agent("vm"), o.agent("vm")
	m.write(first.Dir, "scratch.md", "of the first\n")
	m.add(first, mdfile.Entry{Type: mdfile.TypeLearning, Text: "The first learnt this", Time: at(1)})
	m.sync()
	o.write(second.Dir, "scratch.md", "of the second\n")
	o.add(second, mdfile.Entry{Type: mdfile.TypeLearning, Text: "The second learnt that", Time: at(2)})
	for range 2 {
		if s := o.sync(); len(s.Notices) != 1 || !strings.Contains(s.Notices[0], "state rename") || len(s.Namesakes) != 1 {
			t.Errorf("%+v", s)
		}
	}
	if s := m.sync(); len(s.Notices) > 0 {
		t.Errorf("%+v", s)
	}
	if text := o.read(second.Dir, "scratch.md") + o.read(second.Dir, "learnings.md"); strings.Contains(text, "first") || !strings.Contains(text, "second learnt") {
		t.Error(text)
	}
	for _, bad := range []string{"vm", "Up per", ""} {
		if _, err := second.Rename(ctx, memory.FullAccess, bad); err == nil {
			t.Errorf("it was given the name %q", bad)
		}
	}
	third, err := second.Rename(ctx, memory.FullAccess, "vm-2")
	if err != nil {
		t.Fatal(err)
	}
	if s := o.sync(); len(s.Notices) > 0 {
		t.Errorf("%+v", s)
	}
	m.sync()
	if got := m.gitIn(filepath.Join(m.dir, "remote.git"), "for-each-ref", "--format=%(refname)", "refs/heads"); got != "refs/heads/agent-vm\nrefs/heads/agent-vm-2\nrefs/heads/global\n" {
		t.Error(got)
	}
	if m.read(first.Dir, "scratch.md") != "of the first\n" || o.read(third.Dir, "scratch.md") != "of the second\n" {
		t.Error("a scratch.md is another one's")
	}
	left, err := m.repo.Unpromoted(ctx, "vm-2")
	if err != nil || len(left) != 1 {
		t.Errorf("%v %v", left, err)
	}
	// A command that began before it was renamed is told so.
	if _, err := second.Save(ctx, "", ""); !errors.Is(err, staterepo.ErrBusy) {
		t.Errorf("%v", err)
	}
	if found, err := o.repo.Open(ctx, third.Dir); err != nil || found.Agent() != "vm-2" {
		t.Errorf("%v %v", found, err)
	}
	whole(o, "in the end")
}

// A new remote is sent all that the old one had, and what only the old one had of others
// stays here.
func TestAnotherRemote(t *testing.T) {
	t.Parallel()
	m, o := emptyPair.pair(t)
	m.agent("one")
	two := o.agent("two")
	m.sync()
	o.add(two, mdfile.Entry{Type: mdfile.TypeLearning, Text: "Only the old remote has this", Time: at(1)})
	o.sync()
	m.sync()
	url := filepath.Join(m.dir, "other.git")
	m.gitIn(m.dir, "init", "-q", "--bare", url)
	m.remote(url)
	m.sync()
	if refs := m.gitIn(url, "for-each-ref", "--format=%(refname)"); refs != "refs/heads/agent-one\nrefs/heads/global\n" {
		t.Errorf("the new remote has %s", refs)
	}
	for _, dir := range []string{m.repo.Dir(), url} {
		if a, b := m.gitIn(dir, "rev-parse", "global"), m.gitIn(m.repo.Dir(), "rev-parse", "global"); a != b {
			t.Errorf("global is at %s, want %s", a, b)
		}
	}
	if refs := m.gitIn(m.repo.Dir(), "for-each-ref", "--format=%(refname)", "refs/reprise/former"); !strings.HasPrefix(refs, "refs/reprise/former/agent-two/") {
		t.Errorf("%q", refs)
	}
	o.remote(url)
	o.sync()
	m.sync()
	list, err := m.repo.Log(t.Context(), "two")
	if err != nil || len(list) != 1 {
		t.Errorf("%v %v", list, err)
	}
}

// What another machine wrote in an agent's name since it left this one is not taken from
// the remote by whoever takes the agent away here.
func TestTakenAwayTooLate(t *testing.T) {
	t.Parallel()
	m, o := emptyPair.pair(t)
	ctx := t.Context()
	one := m.agent("one")
	m.sync()
	if err := os.RemoveAll(filepath.Dir(filepath.Dir(one.Dir))); err != nil {
		t.Fatal(err)
	}
	if err := m.repo.Detach(ctx, "one", one.Dir); err != nil {
		t.Fatal(err)
	}
	if err := m.repo.Consolidate(ctx, "one"); err != nil {
		t.Fatal(err)
	}
	o.sync()
	two, err := o.repo.CreateAgent(ctx, "one", filepath.Join(o.dir, "again", ".reprise", "agent"), true)
	if err != nil {
		t.Fatal(err)
	}
	o.add(two, mdfile.Entry{Type: mdfile.TypeLearning, Text: "Learnt elsewhere", Time: at(1)})
	o.sync()
	m.sync()
	if _, err := m.repo.Archive(ctx, "one"); !errors.Is(err, staterepo.ErrBusy) {
		t.Errorf("archive: %v", err)
	}
	if items, err := m.repo.GC(ctx, true); err != nil || len(items) > 0 {
		t.Errorf("gc: %+v %v", items, err)
	}
	if text := m.gitIn(filepath.Join(m.dir, "remote.git"), "show", "agent-one:learnings.md"); !strings.Contains(text, "Learnt elsewhere") {
		t.Errorf("the remote has %q", text)
	}
}

// The table is no entry, and no merge doubles it.
func TestLogTable(t *testing.T) {
	t.Parallel()
	o := staterepo.Options{}
	plain := "# Changelog\n" + entry(1, "one", mdfile.TypeImplement, "First")
	a := "# Changelog\n\nBy hand.\n\n<!-- reprise: agents -->\n| Agent |\n<!-- /reprise: agents -->\n" + entry(1, "one", mdfile.TypeImplement, "First")
	b := "# Changelog\n\n<!-- reprise: agents -->\nold\n<!-- /reprise: agents -->\n\n<!-- reprise: agents -->\nno end\n" + entry(2, "two", mdfile.TypeEnd, "Says\n<!-- reprise: agents -->\nitself")
	for _, pair := range [][2]string{{a, b}, {b, a}, {plain, b}} {
		got, notice := o.MergeFile("changelog.md", nil, []byte(pair[0]), []byte(pair[1]))
		text := string(got)
		if notice != "" || strings.Count(text, "| two | completed | 2026-11-28 10:00 | Says |") != 1 || strings.Count(text, "<!-- reprise: agents -->") != 2 ||
			!strings.Contains(text, "Says\n<!-- reprise: agents -->\nitself") || strings.Contains(text, "old\n") {
			t.Errorf("%s %s", notice, text)
		}
		again, _ := o.MergeFile("changelog.md", nil, got, []byte(pair[1]))
		if string(again) != text {
			t.Errorf("again:\n%s\n----\n%s", text, again)
		}
	}
	// An agent's own log has none.
	if got, _ := o.MergeFile("changelog.md", nil, []byte(plain), []byte(entry(2, "two", mdfile.TypeEnd, "Done"))); strings.Contains(string(got), "<!--") {
		t.Errorf("%s", got)
	}
}

// State can be forked, begun anew and archived; nothing of it is lost, and no
// exchange brings it back.
func TestForkResetArchive(t *testing.T) {
	t.Parallel()
	m, _ := emptyPair.pair(t)
	ctx := t.Context()
	one := m.agent("one")
	m.write(one.Dir, "scratch.md", "thinking\n")
	m.write(one.Dir, "notes/n.md", "note\n")
	m.add(one, mdfile.Entry{Type: mdfile.TypeLearning, Text: "The port of staging is 5432", Time: at(1)})
	m.sync()
	if _, err := m.repo.Fork(ctx, "one", "two"); err != nil {
		t.Fatal(err)
	}
	if _, err := m.repo.Fork(ctx, "one", "two"); !errors.Is(err, staterepo.ErrBranchExists) {
		t.Errorf("%v", err)
	}
	if _, err := m.repo.Fork(ctx, "nobody", "x"); !errors.Is(err, staterepo.ErrNoAgent) {
		t.Errorf("%v", err)
	}
	two, err := m.repo.CreateAgent(ctx, "two", filepath.Join(m.dir, "two", ".reprise", "agent"), true)
	if err != nil || m.read(two.Dir, "scratch.md") != "thinking\n" {
		t.Fatal(err)
	}
	kept, err := one.Reset(ctx, memory.FullAccess)
	if err != nil {
		t.Fatal(err)
	}
	check := func(when string) {
		t.Helper()
		if m.read(one.Dir, "scratch.md") != "" || m.read(one.Dir, "learnings.md") != "# Learnings\n" {
			t.Errorf("%s: %q %q", when, m.read(one.Dir, "scratch.md"), m.read(one.Dir, "learnings.md"))
		}
		if _, err := os.Stat(filepath.Join(one.Dir, "notes", "n.md")); err == nil {
			t.Errorf("%s: a note is there", when)
		}
		if got := m.gitIn(one.Dir, "status", "--porcelain"); got != "" {
			t.Errorf("%s: %s", when, got)
		}
		if got := m.gitIn(m.repo.Dir(), "show", kept+":notes/n.md"); got != "note\n" {
			t.Errorf("%s: %q", when, got)
		}
	}
	check("at once")
	m.sync()
	m.sync()
	check("after exchanges")
	if refs := m.gitIn(filepath.Join(m.dir, "remote.git"), "for-each-ref", "--format=%(refname)"); !strings.Contains(refs, kept) {
		t.Errorf("the remote has %s", refs)
	}
	// Archiving leaves an agent that works, and takes one that does not.
	if _, err := m.repo.Archive(ctx, "two"); !errors.Is(err, staterepo.ErrBranchExists) {
		t.Errorf("%v", err)
	}
	if err := os.RemoveAll(filepath.Join(m.dir, "two")); err != nil {
		t.Fatal(err)
	}
	item, err := m.repo.Archive(ctx, "two")
	if err != nil || !strings.HasPrefix(item.Kept, "refs/reprise/kept/agent-two/") {
		t.Fatal(item, err)
	}
	m.sync()
	if list, err := m.repo.Agents(ctx); err != nil || len(list) != 1 || list[0].Name != "one" {
		t.Errorf("%v %v", list, err)
	}
	if got := m.gitIn(m.repo.Dir(), "show", item.Kept+":scratch.md"); got != "thinking\n" {
		t.Errorf("%q", got)
	}
	whole(m, "in the end")
}

// An entry of what all share, or of another agent, can be read and copied; it stays
// one entry. An artifact is kept under its name, and not replaced unasked.
func TestCopyAndArtifacts(t *testing.T) {
	t.Parallel()
	m := newMachine(t, nil)
	ctx := t.Context()
	one, two := m.agent("one"), m.agent("two")
	m.write(m.repo.Global().Dir, "decisions.md", "# Decisions\n"+entry(1, "user", mdfile.TypeDecision, "Use RS256"))
	m.save(m.repo.Global(), "", "")
	shared, err := m.repo.Log(ctx, staterepo.Everyone)
	if err != nil || len(shared) != 1 {
		t.Fatal(shared, err)
	}
	other := m.add(two, mdfile.Entry{Type: mdfile.TypeLearning, Text: "The port is 1", Time: at(2)})
	for _, id := range []string{shared[0].ID, other.ID, other.ID} {
		e, _, err := one.Copy(ctx, memory.FullAccess, id[:10])
		if err != nil || e.ID != id {
			t.Fatal(e, err)
		}
	}
	if _, _, err := one.Copy(ctx, memory.FullAccess, "e-none"); !errors.Is(err, staterepo.ErrUnknown) {
		t.Errorf("%v", err)
	}
	if strings.Count(m.read(one.Dir, "decisions.md"), "Use RS256") != 1 || strings.Count(m.read(one.Dir, "learnings.md"), "The port is 1") != 1 {
		t.Error(m.read(one.Dir, "decisions.md"), m.read(one.Dir, "learnings.md"))
	}
	if all, err := m.repo.Log(ctx, staterepo.Everyone); err != nil || len(all) != 2 {
		t.Errorf("%v %v", all, err)
	}
	if _, err := one.AddArtifact(ctx, memory.FullAccess, "plan.bin", []byte("a\x00b"), false); err != nil {
		t.Fatal(err)
	}
	if _, err := one.AddArtifact(ctx, memory.FullAccess, "plan.bin", []byte("c"), false); !errors.Is(err, staterepo.ErrArtifact) {
		t.Errorf("%v", err)
	}
	if _, err := one.AddArtifact(ctx, memory.FullAccess, "plan.bin", []byte("c"), true); err != nil || m.read(one.Dir, "artifacts/plan.bin") != "c" {
		t.Errorf("%v", err)
	}
	for _, bad := range []string{"../x", "a:b", "CON", "", "x.lock"} {
		if _, err := one.AddArtifact(ctx, memory.FullAccess, bad, []byte("c"), true); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
}

// A branch's file is made once, follows the branch when that is renamed or rebased,
// and keeps what people wrote.
func TestBranchContext(t *testing.T) {
	t.Parallel()
	m := newMachine(t, nil)
	m.ensure()
	dir := m.code("code")
	code := git.New(dir, git.Options{Vars: m.vars})
	to := func(branch, agent string) (staterepo.BranchContext, bool) {
		t.Helper()
		b, made, err := m.repo.Switched(t.Context(), memory.FullAccess, code, branch, agent)
		if err != nil {
			t.Fatal(err)
		}
		return b, made
	}
	m.gitIn(dir, "checkout", "-qb", "pers/Add auth"[:8]+"-auth")
	b, made := to("pers/Add-auth", "one")
	if !made || b.File != "branches/pers/Add-auth.md" || b.Agent != "one" || b.Status != "in_progress" || b.Created.IsZero() {
		t.Errorf("%v %+v", made, b)
	}
	if _, err := m.repo.WriteBranch(t.Context(), memory.FullAccess, "pers/Add-auth", "## Context\n\nSigned tokens.", ""); err != nil {
		t.Fatal(err)
	}
	// A rebase changes its commits and not its name; a rename is in the reflog.
	m.gitIn(dir, "commit", "-qm", "more", "--allow-empty")
	m.gitIn(dir, "rebase", "-q", "--root", "--force-rebase")
	if b, made = to("pers/Add-auth", "one"); made || b.Text != "## Context\n\nSigned tokens." {
		t.Errorf("%v %+v", made, b)
	}
	m.gitIn(dir, "branch", "-m", "auth")
	m.gitIn(dir, "branch", "-m", "auth-2")
	if b, made = to("auth-2", "two"); made || b.Text != "## Context\n\nSigned tokens." || b.Branch != "auth-2" || b.Agent != "two" || strings.Join(b.Was, " ") != "pers/Add-auth" {
		t.Errorf("%v %+v", made, b)
	}
	if _, err := os.Stat(filepath.Join(m.repo.Global().Dir, "branches", "pers", "Add-auth.md")); err == nil {
		t.Error("the old name has a file still")
	}
	// One that is there again under the old name is another branch.
	m.gitIn(dir, "branch", "-m", "auth-3")
	m.gitIn(dir, "branch", "auth-2", "trunk")
	if b, made = to("auth-3", ""); !made {
		t.Errorf("%+v", b)
	}
	if b, err := m.repo.WriteBranch(t.Context(), memory.FullAccess, "auth-3", "", "completed"); err != nil || b.Status != "completed" {
		t.Errorf("%+v %v", b, err)
	}
	list, err := m.repo.Branches()
	if err != nil || len(list) != 2 || list[0].Branch != "auth-2" || list[1].Status != "completed" {
		t.Errorf("%+v %v", list, err)
	}
	if got := m.gitIn(m.repo.Global().Dir, "status", "--porcelain"); got != "" {
		t.Error(got)
	}
	for branch, want := range map[string]string{"main": "branches/main.md", "a/b": "branches/a/b.md", "x.md/y": "branches/x%2Emd/y.md", `a"b|c`: "branches/a%22b%7Cc.md", "aux": "branches/%61u%78.md", "größe/ß": "branches/größe/ß.md", "nul/x": "branches/%6Eu%6C/x.md"} {
		if got := staterepo.BranchFile(branch); got != want {
			t.Errorf("%s: %s, want %s", branch, got, want)
		}
	}
}

// Of a long log only the end is read for an entry's parent, and all of it for what
// stands farther up.
func TestParentInALongLog(t *testing.T) {
	t.Parallel()
	m := newMachine(t, nil)
	a := m.agent("one")
	var b strings.Builder
	b.WriteString("# Changelog\n")
	for n := range 900 {
		b.WriteString(entry(n, "one", mdfile.TypeImplement, fmt.Sprintf("Entry %d.", n)))
	}
	m.write(a.Dir, "changelog.md", b.String())
	m.save(a, "one", "")
	all := mdfile.ParseEntries([]byte(b.String())).Entries
	added := m.add(a, mdfile.Entry{Type: mdfile.TypeImplement, Text: "Last", Time: at(1000), DependsOn: []string{all[0].ID}})
	if added.Parent != all[899].ID {
		t.Errorf("parent %s, want %s", added.Parent, all[899].ID)
	}
	if _, err := a.Add(t.Context(), memory.FullAccess, mdfile.Entry{Type: mdfile.TypeImplement, Text: "x", DependsOn: []string{"e-0000000000000000"}}); !errors.Is(err, staterepo.ErrUnknown) {
		t.Errorf("%v", err)
	}
}

// What is used is counted from events, whatever their order.
func TestAdoption(t *testing.T) {
	t.Parallel()
	ev := func(session string, typ event.Type, data string) event.Event {
		return event.Event{Session: session, Type: typ, Data: []byte(data)}
	}
	list := []event.Event{
		ev("s1", "tool.called", `{"tool":"mcp","name":"mcp__reprise__state_learn"}`),
		ev("s1", "tool.called", `{"tool":"shell","name":"Bash"}`),
		ev("s1", "state.changed", `{"op":"add","type":"learning","id":"e-1111111111111111"}`),
		ev("s1", "recall.served", `{"at":"prompt","items":[{"id":"e-1111111111111111"}]}`),
		ev("s2", "recall.served", `{"at":"prompt","items":[{"id":"e-1111111111111111"},{"id":"x"}]}`),
		ev("s3", "recall.served", `{"at":"prompt","held_out":true,"items":[{"id":"e-2222222222222222"}]}`),
		ev("s2", "recall.used", `{"id":"e-1111111111111111","how":"mentioned"}`),
		ev("s2", "recall.used", `{"id":"e-2222222222222222","how":"useless"}`),
		ev("s2", "tool.succeeded", `{"tool":"mcp","name":"reprise.state_search","output":"{\"results\":[{\"id\":\"e-1\"}]}"}`),
		ev("s2", "tool.succeeded", `{"tool":"mcp","name":"mcp__reprise__memory_search","output":"{\"results\":[]}"}`),
	}
	log := []staterepo.LogEntry{
		{Entry: mdfile.Entry{ID: "e-1111111111111111", Type: mdfile.TypeLearning, Text: "The port is 1"}},
		{Entry: mdfile.Entry{ID: "e-2222222222222222", Type: mdfile.TypeDecision, Decision: "Use RS256"}},
		{Entry: mdfile.Entry{ID: "e-3333333333333333", Type: mdfile.TypeEnd}},
	}
	for range 2 {
		m := staterepo.Adopted(func(yield func(e event.Event, err error) bool) {
			for _, e := range list {
				if !yield(e, nil) {
					return
				}
			}
		}, log)
		got := fmt.Sprint(m.Sessions, m.Tools, m.Writes, m.Lasting, m.Read, m.Used, m.Top, m.Searches, m.Hits)
		if want := "3 [{state_learn 1}] [{learning 1}] 2 1 1 [{e-1111111111111111 The port is 1 1 1}] 2 1"; got != want {
			t.Errorf("%s\nwant %s", got, want)
		}
		slices.Reverse(list)
	}
}

// An entry that could not be committed is told with its id, and the same command given
// again commits it and writes no second one. The same words later are another entry.
func TestEntryThatWasNotCommitted(t *testing.T) {
	t.Parallel()
	m := newMachine(t, nil)
	a := m.agent("one")
	e := mdfile.Entry{Type: "implement", Text: "Validate the token.", Time: at(1)}
	lock := filepath.Join(m.repo.Dir(), "refs", "heads", "agent-one.lock")
	m.write(filepath.Dir(lock), filepath.Base(lock), "")
	now := m.options().Now() // a young lock: it may be another's
	if err := os.Chtimes(lock, now, now); err != nil {
		t.Fatal(err)
	}
	var got staterepo.Added
	var err error
	for limit := 2 * time.Second; limit < time.Minute && got.ID == ""; limit *= 4 { // time enough to get as far as the lock
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		got, err = a.Add(ctx, memory.FullAccess, e)
		cancel()
	}
	if err == nil || got.ID == "" || !strings.Contains(err.Error(), got.ID) || !strings.Contains(err.Error(), "not committed") {
		t.Fatal(got.ID, err)
	}
	if err := os.Remove(lock); err != nil {
		t.Fatal(err)
	}
	e.Time = at(5)
	again := m.add(a, e)
	if again.ID != got.ID || !again.Existing || again.Saved.Commit == "" {
		t.Errorf("%+v", again)
	}
	if n := strings.Count(m.gitIn(a.Dir, "show", "HEAD:changelog.md"), e.Text); n != 1 {
		t.Errorf("it is there %d times", n)
	}
	e.Time = at(9)
	if later := m.add(a, e); later.ID == got.ID || later.Existing {
		t.Errorf("%+v", later)
	}
}

// Several who mark the same agent at once: each finds it marked, and none fails.
func TestManyConsolidate(t *testing.T) {
	t.Parallel()
	m := newMachine(t, nil)
	a := m.agent("one")
	for round := range 3 {
		m.write(a.Dir, "scratch.md", strings.Repeat("x", round+1))
		m.save(a, "", "")
		errs := make(chan error)
		for range 8 {
			go func() { errs <- m.repo.Consolidate(t.Context(), "one") }()
		}
		for range 8 {
			if err := <-errs; err != nil {
				t.Error(err)
			}
		}
	}
}
