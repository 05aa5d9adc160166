package staterepo_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"reprise/internal/durable"
	"reprise/internal/durable/durabletest"
	"reprise/internal/git"
	"reprise/internal/mdfile"
	"reprise/internal/staterepo"
)

func at(sec int) time.Time { return time.Date(2026, 11, 28, 10, 0, sec, 0, time.UTC) }

// machine is one clone: a data directory, and code checkouts for its agents.
type machine struct {
	t    testing.TB
	dir  string
	vars map[string]string
	repo *staterepo.Repo
}

func newMachine(t testing.TB, vars map[string]string) *machine {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not here")
	}
	dir := fastDir(t)
	if vars == nil {
		vars = map[string]string{}
	}
	vars["PATH"] = os.Getenv("PATH")
	if vars["HOME"] == "" {
		vars["HOME"] = dir
	}
	m := &machine{t: t, dir: dir, vars: vars}
	m.repo = staterepo.New(m.options())
	return m
}

func (m *machine) options() staterepo.Options {
	return staterepo.Options{Dir: filepath.Join(m.dir, "data", "projects", "shop"), Project: "shop", Git: git.Options{Vars: m.vars}, Now: time.Now}
}

// fastDir is in memory where the system has such a place: hundreds of fsyncs on a
// disk would take seconds.
func fastDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "staterepo test ü")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func (m *machine) ensure() staterepo.Made {
	m.t.Helper()
	made, err := m.repo.Ensure(m.t.Context())
	if err != nil {
		m.t.Fatal(err)
	}
	return made
}

func (m *machine) agent(name string) *staterepo.Tree {
	m.t.Helper()
	tree, err := m.repo.CreateAgent(m.t.Context(), name, filepath.Join(m.dir, "code of "+name, ".reprise", "agent"), false)
	if err != nil {
		m.t.Fatal(err)
	}
	return tree
}

func (m *machine) write(dir, name, text string) {
	m.t.Helper()
	path := filepath.Join(dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		m.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		m.t.Fatal(err)
	}
}

func (m *machine) read(dir, name string) string {
	m.t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
	if err != nil {
		m.t.Fatal(err)
	}
	return string(data)
}

func (m *machine) save(t *staterepo.Tree, by, message string) staterepo.Saved {
	m.t.Helper()
	s, err := t.Save(m.t.Context(), by, message)
	if err != nil {
		m.t.Fatal(err)
	}
	return s
}

func (m *machine) sync() staterepo.Synced {
	m.t.Helper()
	s, err := m.repo.Sync(m.t.Context(), staterepo.Both)
	if err != nil {
		m.t.Fatal(err)
	}
	return s
}

// gitIn runs git as a person would in a directory, with only HOME and PATH.
func (m *machine) gitIn(dir string, args ...string) string {
	m.t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + m.vars["PATH"], "HOME=" + m.vars["HOME"], "LC_ALL=C"}
	out, err := cmd.CombinedOutput()
	if err != nil {
		m.t.Fatalf("git %s in %s: %v\n%s", strings.Join(args, " "), dir, err, out)
	}
	return string(out)
}

// code makes a repository of code with a commit.
func (m *machine) code(name string) string {
	m.t.Helper()
	dir := filepath.Join(m.dir, name)
	m.write(dir, "a.txt", "a\n")
	m.gitIn(dir, "init", "-q", "-b", "trunk")
	m.gitIn(dir, "config", "user.name", "P")
	m.gitIn(dir, "config", "user.email", "p@example.org")
	m.gitIn(dir, "add", ".")
	m.gitIn(dir, "commit", "-qm", "first")
	return dir
}

func entry(sec int, agent, typ, text string) string {
	_, raw := mdfile.Entry{Type: typ, Time: at(sec), Agent: agent, Text: text}.Render()
	return "\n" + string(raw)
}

// there is where pairIn puts the second machine.
func there(dir string) string { return filepath.Join(dir, "there") }

// template is a directory with two machines that exchange through a third place,
// made once and copied: links are mended as after any move. TestMain removes it.
type template struct {
	make func(a, b *machine) // what is done there at first; may be nil
	once sync.Once
	dir  string
}

var (
	emptyPair template
	// twoSides is a pair of which both changed the same files since they exchanged.
	twoSides = template{make: func(a, b *machine) {
		a.write(a.repo.Global().Dir, "plan.md", "1\n2\n3\n")
		a.sync()
		b.sync()
		b.write(b.repo.Global().Dir, "learnings.md", entry(1, "there", mdfile.TypeLearning, "From there."))
		b.write(b.repo.Global().Dir, "plan.md", "1\n2\n3 there\n")
		b.sync()
		a.write(a.repo.Global().Dir, "learnings.md", entry(2, "here", mdfile.TypeLearning, "From here."))
		a.write(a.repo.Global().Dir, "plan.md", "1 here\n2\n3\n")
	}}
)

func (p *template) get(t testing.TB) string {
	t.Helper()
	p.once.Do(func() {
		dir, err := os.MkdirTemp("/dev/shm", "staterepo pair ü")
		if err != nil {
			if dir, err = os.MkdirTemp("", "staterepo pair ü"); err != nil {
				t.Fatal(err)
			}
		}
		p.dir = dir
		if err := os.Mkdir(there(dir), 0o700); err != nil {
			t.Fatal(err)
		}
		a, b := on(t, dir, durable.Disk{}), on(t, there(dir), durable.Disk{})
		url := filepath.Join(dir, "remote.git")
		a.gitIn(dir, "init", "-q", "--bare", url)
		a.gitIn(url, "config", "receive.autogc", "false")
		a.remote(url)
		b.remote(url)
		if p.make != nil {
			p.make(a, b)
		}
	})
	return p.dir
}

// in copies the machines into a directory.
func (p *template) in(t testing.TB, dir string) (a, b *machine) {
	t.Helper()
	from := p.get(t)
	if err := os.CopyFS(dir, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	for _, d := range []string{dir, there(dir)} {
		repo := filepath.Join(d, "data", "projects", "shop", "state.git")
		links, _ := filepath.Glob(filepath.Join(repo, "worktrees", "*", "gitdir"))
		desks, _ := filepath.Glob(filepath.Join(d, "code of *", ".reprise", "agent", ".git"))
		for _, file := range slices.Concat(links, desks, []string{filepath.Join(repo, "config"), filepath.Join(d, "data", "projects", "shop", "global", ".git")}) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, bytes.ReplaceAll(text, []byte(from), []byte(dir)), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	a, b = on(t, dir, durable.Disk{}), on(t, there(dir), durable.Disk{})
	a.ensure()
	b.ensure()
	return a, b
}

func (p *template) pair(t testing.TB) (a, b *machine) {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not here")
	}
	a, b = p.in(t, fastDir(t))
	for _, m := range []*machine{a, b} {
		m.repo = staterepo.New(m.options()) // whose clock goes
	}
	return a, b
}

func TestMain(m *testing.M) {
	os.Exit(durabletest.InMemory(func() int {
		code := m.Run()
		for _, p := range []*template{&emptyPair, &twoSides, &withAgent} {
			if p.dir != "" {
				_ = os.RemoveAll(p.dir)
			}
		}
		return code
	}))
}

func (m *machine) remote(url string) {
	m.t.Helper()
	m.ensure()
	if err := m.repo.SetRemote(m.t.Context(), url); err != nil {
		m.t.Fatal(err)
	}
}

// What was in global/ before there was git is the branch's first content, and
// nothing of it changes.
func TestEnsureTakesInWhatIsThere(t *testing.T) {
	t.Parallel()
	m := newMachine(t, nil)
	g := m.repo.Global()
	m.write(g.Dir, "learnings.md", "# Learnings\n"+entry(1, "user", mdfile.TypeLearning, "The port is 5432."))
	m.write(g.Dir, "memory/core.md", "# Core\n")
	m.write(g.Dir, ".reprise-journal/lock", "")
	m.write(g.Dir, "learnings.md.lock", "")
	if made := m.ensure(); !made.New || len(made.Repaired) > 0 {
		t.Errorf("%+v", made)
	}
	s := m.save(g, "", "What was there")
	if strings.Join(s.Changed, " ") != "learnings.md memory/core.md" || len(s.Notes) > 0 {
		t.Errorf("%+v", s)
	}
	if made := m.ensure(); made.New || len(made.Repaired) > 0 {
		t.Errorf("again: %+v", made)
	}
	if again := m.save(g, "", "x"); len(again.Changed) > 0 || again.Commit != s.Commit {
		t.Errorf("again: %+v", again)
	}
	if got := m.gitIn(g.Dir, "status", "--porcelain"); got != "" {
		t.Errorf("status: %s", got)
	}
	if got := m.gitIn(g.Dir, "log", "--format=%an %cn %s", "global"); got != "user reprise What was there\nreprise reprise State of shop\n" {
		t.Errorf("log: %s", got)
	}
	if got := m.gitIn(g.Dir, "fsck", "--strict"); strings.Contains(got, "error") {
		t.Error(got)
	}
}

// An agent's state is a repository within the code's, and a person uses git there
// as anywhere.
func TestAgentsStateIsARepository(t *testing.T) {
	t.Parallel()
	m := newMachine(t, nil)
	a := m.agent("tidy")
	for _, f := range []string{"scratch.md", "context.md", "changelog.md", "learnings.md", "decisions.md"} {
		m.read(a.Dir, f)
	}
	m.write(a.Dir, "scratch.md", "thinking\n")
	m.write(a.Dir, "notes/é/ß.md", "deep\n")
	m.save(a, "tidy", "Think")
	if got := m.gitIn(a.Dir, "log", "--format=%an: %s"); !strings.HasPrefix(got, "tidy: Think\n") {
		t.Errorf("log: %s", got)
	}
	if got := m.gitIn(a.Dir, "status", "--porcelain", "--branch"); got != "## agent-tidy\n" {
		t.Errorf("status: %q", got)
	}
	// A commit by hand is gone on from.
	m.write(a.Dir, "context.md", "by hand\n")
	m.gitIn(a.Dir, "-c", "user.name=P", "-c", "user.email=p@example.org", "commit", "-qam", "by hand")
	m.write(a.Dir, "scratch.md", "more\n")
	s := m.save(a, "tidy", "More")
	if strings.Join(s.Changed, " ") != "scratch.md" {
		t.Errorf("%+v", s)
	}
	if got := m.gitIn(a.Dir, "log", "--format=%s", "-2"); got != "More\nby hand\n" {
		t.Errorf("log: %s", got)
	}
	if err := os.RemoveAll(filepath.Join(a.Dir, "notes")); err != nil {
		t.Fatal(err)
	}
	if s := m.save(a, "", ""); strings.Join(s.Changed, " ") != "notes" {
		t.Errorf("%+v", s)
	}
	if got := m.gitIn(a.Dir, "ls-files"); strings.Contains(got, "notes") {
		t.Errorf("still there: %s", got)
	}
}

func TestNamesThatAreTaken(t *testing.T) {
	t.Parallel()
	m := newMachine(t, nil)
	ctx := t.Context()
	a := m.agent("one")
	for _, bad := range []string{"", "A", "a/b", "-a", "a.lock", "a..b", strings.Repeat("x", 64), "é"} {
		if _, err := m.repo.CreateAgent(ctx, bad, filepath.Join(m.dir, "x"), false); !errors.Is(err, staterepo.ErrName) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	other := filepath.Join(m.dir, "other", ".reprise", "agent")
	if _, err := m.repo.CreateAgent(ctx, "one", other, false); !errors.Is(err, staterepo.ErrBranchExists) || !strings.Contains(err.Error(), a.Dir) {
		t.Errorf("%v", err)
	}
	if _, err := m.repo.CreateAgent(ctx, "one", other, true); !errors.Is(err, staterepo.ErrBranchExists) {
		t.Errorf("attached while it lives: %v", err)
	}
	// The code checkout is gone: only who asks for it goes on with the branch.
	m.write(a.Dir, "scratch.md", "kept\n")
	m.save(a, "one", "x")
	if err := os.RemoveAll(filepath.Dir(filepath.Dir(a.Dir))); err != nil {
		t.Fatal(err)
	}
	if _, err := m.repo.CreateAgent(ctx, "one", other, false); !errors.Is(err, staterepo.ErrBranchExists) || !strings.Contains(err.Error(), "--attach") {
		t.Errorf("%v", err)
	}
	b, err := m.repo.CreateAgent(ctx, "one", other, true)
	if err != nil {
		t.Fatal(err)
	}
	if m.read(b.Dir, "scratch.md") != "kept\n" || m.gitIn(b.Dir, "status", "--porcelain") != "" {
		t.Error("not as it was")
	}
	// A directory with files of someone's is not mixed with.
	full := filepath.Join(m.dir, "full")
	m.write(full, "mine", "x")
	if _, err := m.repo.CreateAgent(ctx, "two", full, false); err == nil || !strings.Contains(err.Error(), "mine") {
		t.Errorf("%v", err)
	}
}

// A clone may have a symbolic link committed where the agent's state goes: what is
// written through it would land wherever its author wanted.
func TestLinkWhereTheStateGoes(t *testing.T) {
	t.Parallel()
	m := newMachine(t, nil)
	ctx := t.Context()
	for _, tc := range []struct{ at, name string }{{".reprise/agent", "one"}, {".reprise", "two"}} {
		victim, code := filepath.Join(m.dir, "victim-"+tc.name), filepath.Join(m.dir, "code-"+tc.name)
		link := filepath.Join(code, filepath.FromSlash(tc.at))
		for _, dir := range []string{victim, filepath.Dir(link)} {
			if err := os.MkdirAll(dir, 0o700); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Symlink(victim, link); err != nil {
			t.Skip("no symbolic links here: ", err)
		}
		dir := filepath.Join(code, ".reprise", "agent")
		_, err := m.repo.CreateAgent(ctx, tc.name, dir, true)
		_, oerr := m.repo.Open(ctx, dir)
		for _, err := range []error{err, oerr} {
			if !errors.Is(err, staterepo.ErrLink) || !strings.Contains(err.Error(), link) || !strings.Contains(err.Error(), victim) {
				t.Errorf("%s: %v", tc.at, err)
			}
		}
		if list, err := os.ReadDir(victim); err != nil || len(list) != 0 {
			t.Errorf("%s: %v in the other directory (%v)", tc.at, list, err)
		}
		if m.gitIn(m.repo.Dir(), "for-each-ref", "refs/heads/agent-"+tc.name) != "" {
			t.Errorf("%s: a branch was made", tc.at)
		}
		to := m.agent("good-" + tc.name).Dir
		if tc.at == ".reprise" {
			to = filepath.Dir(to)
		}
		if err := errors.Join(os.Remove(link), os.Symlink(to, link)); err != nil {
			t.Fatal(err)
		}
		// A link to another agent's checkout makes nobody that agent.
		if tr, err := m.repo.Open(ctx, dir); !errors.Is(err, staterepo.ErrLink) {
			t.Errorf("%s: %v %v", tc.at, tr, err)
		}
	}
}

// The code checkout or all of reprise's data may move: the links are mended.
func TestMovedDirectories(t *testing.T) {
	t.Parallel()
	m := newMachine(t, nil)
	a := m.agent("one")
	moved := filepath.Join(m.dir, "moved")
	if err := os.Rename(filepath.Join(m.dir, "code of one"), moved); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(moved, ".reprise", "agent")
	b, err := m.repo.Open(t.Context(), dir)
	if err != nil || b.Agent() != "one" {
		t.Fatal(b, err)
	}
	m.write(b.Dir, "scratch.md", "after\n")
	m.save(b, "one", "After the move")
	if got := m.gitIn(b.Dir, "log", "--format=%s", "-1"); got != "After the move\n" {
		t.Error(got)
	}
	if err := os.Rename(filepath.Join(m.dir, "data"), filepath.Join(m.dir, "data2")); err != nil {
		t.Fatal(err)
	}
	o := m.options()
	o.Dir = filepath.Join(m.dir, "data2", "projects", "shop")
	repo := staterepo.New(o)
	c, err := repo.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	m.save(repo.Global(), "", "")
	m.gitIn(c.Dir, "status")
	// A copy of the checkout is not the checkout.
	if err := os.CopyFS(filepath.Join(m.dir, "copy"), os.DirFS(moved)); err != nil {
		t.Fatal(err)
	}
	if _, err := repo.Open(t.Context(), filepath.Join(m.dir, "copy", ".reprise", "agent")); !errors.Is(err, staterepo.ErrBranchExists) {
		t.Errorf("%v", err)
	}
	_ = a
}

// Settings of the user's git that run programs, change bytes or hide repositories
// do nothing to what reprise commits.
func TestHostileSettings(t *testing.T) {
	t.Parallel()
	home := fastDir(t)
	boom := filepath.Join(home, "boom")
	hooks := filepath.Join(home, "hooks")
	if err := os.MkdirAll(hooks, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, h := range []string{"pre-commit", "commit-msg", "post-commit", "reference-transaction", "pre-push", "post-index-change", "post-checkout", "pre-auto-gc", "fsmonitor"} {
		if err := os.WriteFile(filepath.Join(hooks, h), []byte("#!/bin/sh\necho "+h+" >>'"+boom+"'\nexit 1\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(home, "ignore"), []byte("*.md\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(home, "attributes"), []byte("* text eol=crlf filter=x\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	config := `[core]
	hooksPath = ` + hooks + `
	autocrlf = true
	eol = crlf
	fsmonitor = ` + hooks + `/fsmonitor
	excludesFile = ` + home + `/ignore
	attributesFile = ` + home + `/attributes
	bare = true
	quotePath = true
[commit]
	gpgSign = true
[gpg]
	program = ` + hooks + `/pre-commit
[init]
	templateDir = ` + home + `
	defaultBranch = trunk
	defaultObjectFormat = sha256
[safe]
	bareRepository = explicit
[filter "x"]
	clean = false
	required = true
[user]
	useConfigOnly = true
[transfer]
	hideRefs = refs/heads
[push]
	followTags = true
	default = nothing
[fetch]
	prune = true
`
	if err := os.WriteFile(filepath.Join(home, ".gitconfig"), []byte(config), 0o644); err != nil {
		t.Fatal(err)
	}
	m := newMachine(t, map[string]string{"HOME": home, "GIT_DIR": "/nowhere", "GIT_INDEX_FILE": "/nowhere"})
	a := m.agent("one")
	m.write(a.Dir, "notes/n.md", "a\r\nb\n")
	s := m.save(a, "one", "Note")
	if strings.Join(s.Changed, " ") != "notes/n.md" {
		t.Errorf("%+v", s)
	}
	m.vars["HOME"] = m.dir // look without these settings
	if got := m.gitIn(a.Dir, "show", "HEAD:notes/n.md"); got != "a\r\nb\n" {
		t.Errorf("%q", got)
	}
	if got := m.gitIn(a.Dir, "log", "-1", "--format=%an %cn %G?"); got != "one reprise N\n" {
		t.Errorf("%q", got)
	}
	if data, err := os.ReadFile(boom); err == nil {
		t.Errorf("ran: %s", data)
	}
}

// What cannot be kept is said, and what was kept of it stays.
func TestWhatIsNotKept(t *testing.T) {
	t.Parallel()
	m := newMachine(t, nil)
	a := m.agent("one")
	m.write(a.Dir, "artifacts/out.bin", "x")
	m.write(a.Dir, ".gitignore", "artifacts/tmp\n*.o\n")
	m.write(a.Dir, "artifacts/tmp/y", "x")
	m.write(a.Dir, "artifacts/z.o", "x")
	if err := os.Symlink("/etc/passwd", filepath.Join(a.Dir, "artifacts", "link")); err != nil {
		t.Fatal(err)
	}
	m.write(a.Dir, "artifacts/repo/.git/HEAD", "ref: refs/heads/x\n")
	m.write(a.Dir, "artifacts/repo/file", "x")
	m.write(a.Dir, "artifacts/a:b", "x")
	big, err := os.Create(filepath.Join(a.Dir, "artifacts", "big"))
	if err != nil {
		t.Fatal(err)
	}
	if err := big.Truncate(33 << 20); err != nil {
		t.Fatal(err)
	}
	big.Close()
	s := m.save(a, "one", "")
	if strings.Join(s.Changed, " ") != ".gitignore artifacts/out.bin" {
		t.Errorf("%+v", s)
	}
	notes := strings.Join(s.Notes, "\n")
	for _, want := range []string{"artifacts/link is not kept", "artifacts/repo is a repository", "artifacts/a:b", "artifacts/big is not kept"} {
		if !strings.Contains(notes, want) {
			t.Errorf("%q is not said:\n%s", want, notes)
		}
	}
}

// A hand edit within an entry is a new entry; the old one is as it was.
func TestHandEditsBecomeEntries(t *testing.T) {
	t.Parallel()
	m := newMachine(t, nil)
	a := m.agent("one")
	m.write(a.Dir, "learnings.md", "# Learnings\n"+entry(1, "one", mdfile.TypeLearning, "The port is 5432.")+entry(2, "one", mdfile.TypeLearning, "Second."))
	m.save(a, "one", "Learn")
	m.write(a.Dir, "learnings.md", strings.Replace(strings.Replace(m.read(a.Dir, "learnings.md"), "5432", "6543", 1), "# Learnings", "# My learnings\n\nBy hand.", 1))
	s := m.save(a, "", "")
	if len(s.Notes) != 1 || !strings.Contains(s.Notes[0], "edited by hand") {
		t.Errorf("%+v", s)
	}
	text := m.read(a.Dir, "learnings.md")
	for _, want := range []string{"# My learnings\n\nBy hand.\n", "The port is 5432.", "The port is 6543.", "supersedes: e-"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	if s := m.save(a, "", ""); len(s.Changed)+len(s.Notes) > 0 {
		t.Errorf("again: %+v", s)
	}
	// One that is cut out is a tombstone, so that no other copy brings it back.
	f := mdfile.ParseEntries([]byte(text))
	m.write(a.Dir, "learnings.md", string(f.Without(map[string]bool{f.Entries[1].ID: true})))
	m.save(a, "", "")
	if text = m.read(a.Dir, "learnings.md"); !strings.Contains(text, "type: tombstone") || strings.Contains(text, "Second.") {
		t.Error(text)
	}
	// A file that is gone comes back: nobody forgets everything so.
	if err := os.Remove(filepath.Join(a.Dir, "learnings.md")); err != nil {
		t.Fatal(err)
	}
	m.save(a, "", "")
	if got := m.read(a.Dir, "learnings.md"); !strings.Contains(got, "The port is 6543.") {
		t.Error(got)
	}
}

// Without a remote there is nothing to exchange with, which is said.
func TestNoRemote(t *testing.T) {
	t.Parallel()
	m := newMachine(t, nil)
	if s := m.sync(); s.Remote != "" || len(s.Notes) == 0 {
		t.Errorf("%+v", s)
	}
	if _, err := m.repo.Sync(t.Context(), staterepo.Push); !errors.Is(err, staterepo.ErrNoRemote) {
		t.Errorf("%v", err)
	}
	if err := m.repo.SetRemote(t.Context(), "--upload-pack=x"); err == nil {
		t.Error("an option was taken for an address")
	}
}

// Two machines: entries unite, text of both sides stays, an owner's scratch stays
// its own, and other agents' branches are seen.
func TestSync(t *testing.T) {
	t.Parallel()
	a, b := emptyPair.pair(t)
	ga, gb := a.repo.Global(), b.repo.Global()
	one := a.agent("one")
	a.write(ga.Dir, "learnings.md", "# Learnings\n"+entry(1, "a", mdfile.TypeLearning, "From a."))
	a.write(ga.Dir, "plan.md", "# Plan\n\n1. First\n2. Second\n3. Third\n")
	b.write(gb.Dir, "learnings.md", "# Learnings\n"+entry(2, "b", mdfile.TypeLearning, "From b."))
	a.write(one.Dir, "scratch.md", "of one\n")
	a.sync()
	if s := b.sync(); strings.Join(s.Fetched, " ") != "one" {
		t.Errorf("%+v", s)
	}
	a.sync()
	if x, y := a.read(ga.Dir, "learnings.md"), b.read(gb.Dir, "learnings.md"); x != y || !strings.Contains(x, "From a.") || !strings.Contains(x, "From b.") {
		t.Errorf("%s\n----\n%s", x, y)
	}
	// The same line stays twice, under a notice; others merge.
	a.write(ga.Dir, "plan.md", "# Plan\n\n1. First\n2. Other\n3. Third\n\nEnd of a\n")
	b.write(gb.Dir, "plan.md", "# Plan of b\n\n1. First\n2. Another\n3. Third\n")
	a.sync()
	if s := b.sync(); len(s.Notices) != 1 || !strings.Contains(s.Notices[0], "plan.md") {
		t.Errorf("%+v", s)
	}
	a.sync()
	got := a.read(ga.Dir, "plan.md")
	for _, want := range []string{"# Plan of b\n", "2. Other\n", "2. Another\n", "Two versions", "End of a\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in %s", want, got)
		}
	}
	if got != b.read(gb.Dir, "plan.md") {
		t.Errorf("%s\n----\n%s", got, b.read(gb.Dir, "plan.md"))
	}
	for _, m := range []*machine{a, b} {
		if got := m.gitIn(m.repo.Global().Dir, "status", "--porcelain"); got != "" {
			t.Errorf("status: %s", got)
		}
	}
	// The same agent's name on two machines: the scratch of each is its own.
	if _, err := b.repo.CreateAgent(t.Context(), "one", filepath.Join(b.dir, "x"), false); !errors.Is(err, staterepo.ErrBranchExists) {
		t.Errorf("%v", err)
	}
	two, err := b.repo.CreateAgent(t.Context(), "one", filepath.Join(b.dir, "x"), true)
	if err != nil {
		t.Fatal(err)
	}
	b.write(two.Dir, "scratch.md", "of two\n")
	a.write(one.Dir, "scratch.md", "of one, later\n")
	b.sync()
	a.sync()
	if got := a.read(one.Dir, "scratch.md"); got != "of one, later\n" {
		t.Error(got)
	}
	if list, _ := filepath.Glob(filepath.Join(one.Dir, "notes", "scratch-from-*.md")); len(list) != 1 || a.read(filepath.Dir(list[0]), filepath.Base(list[0])) != "of two\n" {
		t.Error(list)
	}
}

// A checkout that is taken away in the middle of an exchange is in nobody's way, and a
// branch that went without its checkout is called that, and made anew.
func TestSyncWithoutOneThatLeaves(t *testing.T) {
	t.Parallel()
	m := newMachine(t, nil)
	stays, leaves := m.agent("aa"), m.agent("zz")
	m.sync()
	armed := true
	o := m.options()
	o.Disk = durable.NewDisk(func(s durable.Step) *durable.Fault {
		if armed && strings.HasPrefix(s.Path, filepath.Join(m.dir, "data")) && strings.Contains(s.Path, "global") {
			armed = false
			if err := os.RemoveAll(leaves.Dir); err != nil {
				t.Error(err)
			}
		}
		return nil
	})
	m.write(m.repo.Global().Dir, "plan.md", "# Plan\n")
	m.write(stays.Dir, "scratch.md", "of aa\n")
	if _, err := staterepo.New(o).Sync(t.Context(), staterepo.Both); err != nil {
		t.Fatal(err)
	}
	if armed {
		t.Fatal("nothing was taken away")
	}
	if got := m.gitIn(m.repo.Dir(), "show", "agent-aa:scratch.md"); got != "of aa\n" {
		t.Errorf("%q", got)
	}

	m.gitIn(m.repo.Dir(), "update-ref", "-d", "refs/heads/agent-aa")
	list, err := m.repo.Fsck(t.Context(), false)
	if err != nil || !slices.ContainsFunc(list, func(p staterepo.Problem) bool {
		return p.Where == "agent-aa" && strings.Contains(p.Problem, "not there, and "+stays.Dir) && strings.Contains(p.Remedy, "from what is on disk")
	}) {
		t.Errorf("%+v, %v", list, err)
	}
	if _, err := m.repo.Fsck(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	if got := m.gitIn(m.repo.Dir(), "show", "agent-aa:scratch.md"); got != "of aa\n" {
		t.Errorf("made anew: %q", got)
	}
}

// A merge whose files arrived and whose branch did not move is finished.
func TestUnfinishedMerge(t *testing.T) {
	t.Parallel()
	m, _ := twoSides.pair(t)
	g := m.repo.Global()
	before := m.save(g, "", "").Commit
	m.sync()
	merged := strings.TrimSpace(m.gitIn(g.Dir, "rev-parse", "global"))
	m.gitIn(g.Dir, "update-ref", "refs/reprise/merge/global", merged)
	m.gitIn(g.Dir, "update-ref", "refs/heads/global", before)
	s := m.save(g, "", "")
	if s.Commit != merged || len(s.Notes) != 1 || !strings.Contains(s.Notes[0], "was finished") {
		t.Errorf("%+v, want %s", s, merged)
	}
	if s := m.save(g, "", ""); s.Commit != merged || len(s.Notes) != 0 {
		t.Errorf("%+v", s)
	}
}

func TestCancelled(t *testing.T) {
	t.Parallel()
	m := newMachine(t, nil)
	a := m.agent("one")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	m.write(a.Dir, "scratch.md", "x")
	if _, err := a.Save(ctx, "", ""); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}
