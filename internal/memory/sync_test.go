package memory

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"reprise/internal/git"
	"reprise/internal/mdfile"
)

// machine is one of several computers with a memory: its own home with odd
// settings that must neither break a sync nor be run by it.
func machine(t *testing.T, settings string) *Store {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Fatal("git is needed for this test")
	}
	home := t.TempDir()
	if err := os.WriteFile(filepath.Join(home, ".gitconfig"), []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	return New(Options{Dir: filepath.Join(t.TempDir(), "memory"), Now: func() time.Time { return day },
		Git: GitOptions{Vars: map[string]string{"PATH": os.Getenv("PATH"), "HOME": home,
			"GIT_DIR": "/nowhere", "GIT_WORK_TREE": "/nowhere", "GIT_INDEX_FILE": "/nowhere", "GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "core.bare", "GIT_CONFIG_VALUE_0": "true"}}})
}

func run(t *testing.T, s *Store, args ...string) string {
	t.Helper()
	out, err := s.git().Run(t.Context(), args...)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func syncNow(t *testing.T, s *Store) SyncResult {
	t.Helper()
	res, err := s.Sync(t.Context(), SyncOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func remote(t *testing.T, stores ...*Store) string {
	t.Helper()
	bare := filepath.Join(t.TempDir(), "remote.git")
	for i, s := range stores {
		if err := s.Ensure(t.Context()); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			run(t, s, "init", "--bare", "--quiet", bare)
		}
		run(t, s, "remote", "add", "origin", bare)
	}
	return bare
}

const oddSettings = `
[commit]
	gpgsign = true
	template = /nowhere
[gpg]
	program = /bin/false
[core]
	commentChar = M
	hooksPath = %HOOKS%
	autocrlf = true
	excludesFile = %HOOKS%/ignore
	attributesFile = %HOOKS%/attributes
	editor = /bin/false
	pager = /bin/false
	fsmonitor = %HOOKS%/fsmonitor
[init]
	defaultBranch = trunk
	templateDir = %HOOKS%
[user]
	useConfigOnly = true
[push]
	default = nothing
	pushOption = ci.skip
[merge]
	ff = only
[pull]
	rebase = true
`

func TestSyncWithOddSettings(t *testing.T) {
	t.Parallel()
	hooks := t.TempDir()
	ran := filepath.Join(hooks, "ran")
	for _, h := range []string{"pre-commit", "post-commit", "pre-push", "commit-msg", "post-checkout", "fsmonitor", "post-merge", "post-index-change"} {
		if err := os.WriteFile(filepath.Join(hooks, h), []byte("#!/bin/sh\necho "+h+" >>'"+ran+"'\nexit 1\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{"ignore": "*.md\n", "attributes": "*.md filter=none eol=crlf\n"} {
		if err := os.WriteFile(filepath.Join(hooks, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s := machine(t, strings.ReplaceAll(oddSettings, "%HOOKS%", hooks))
	bare := remote(t, s)
	if _, err := s.Create(t.Context(), CreateBlock{Name: "project-a", Content: "# A\r\nwindows line\r\n"}); err != nil {
		t.Fatal(err)
	}
	for _, n := range []string{".search-index.db", "x.lock", "blocks/a.tmp", "index.db", "index.db-wal", "b.torn"} {
		put(t, s, n, "not to be backed up")
	}
	put(t, s, ".gitignore", "# the user's own\n")
	res := syncNow(t, s)
	if !res.Committed || !res.Pushed || res.Branch != "main" || res.Remote != "origin" {
		t.Errorf("%+v", res)
	}
	if got := strings.Fields(run(t, s, "ls-tree", "-r", "--name-only", "HEAD")); strings.Join(got, " ") != ".gitignore blocks/project-a.md core.md index.md" {
		t.Errorf("committed: %v", got)
	}
	if got := run(t, s, "--git-dir", bare, "show", "main:blocks/project-a.md"); got != get(t, s, "blocks/project-a.md") {
		t.Errorf("the remote has %q", got)
	}
	if got := run(t, s, "log", "-1", "--format=%an <%ae>"); got != "reprise <reprise@localhost>\n" {
		t.Errorf("author %q", got)
	}
	if data, err := os.ReadFile(ran); err == nil {
		t.Errorf("these ran unasked: %s", data)
	}
	if res := syncNow(t, s); res.Committed || res.Pushed {
		t.Errorf("again: %+v", res)
	}
}

// TestBrokenGitSettings: the first write of a memory must not fail because git
// cannot read the user's settings; what asks for git says so.
func TestBrokenGitSettings(t *testing.T) {
	s := machine(t, "[core\nbad")
	if _, err := s.Create(t.Context(), CreateBlock{Name: "project-a", Content: "# A\n"}); err != nil {
		t.Error(err)
	}
	_, err := s.Sync(t.Context(), SyncOptions{})
	if err == nil || !strings.Contains(err.Error(), "bad config") || errors.Is(err, git.ErrNetwork) {
		t.Errorf("%v", err)
	}
}

func TestSyncWithoutRemoteOrGit(t *testing.T) {
	s := machine(t, "")
	res := syncNow(t, s)
	if !res.Committed || res.Pushed || len(res.Notes) != 1 {
		t.Errorf("%+v", res)
	}
	s.o.Git.Program = "no-such-git"
	s.o.Dir = filepath.Join(t.TempDir(), "m")
	if err := s.Ensure(t.Context()); err != nil {
		t.Errorf("without git: %v", err)
	}
	if _, err := s.Sync(t.Context(), SyncOptions{}); !errors.Is(err, git.ErrNotInstalled) {
		t.Error(err)
	}
}

func TestSyncRefusesNestedRepository(t *testing.T) {
	s := machine(t, "")
	if err := s.Ensure(t.Context()); err != nil {
		t.Fatal(err)
	}
	run(t, s, "init", "--quiet", "blocks/sub")
	if _, err := s.Sync(t.Context(), SyncOptions{}); err == nil || !strings.Contains(err.Error(), "repository of its own") {
		t.Error(err)
	}
}

// TestTwoMachines: both log, decide and make blocks between two syncs; each
// ends with what both wrote.
func TestTwoMachines(t *testing.T) {
	t.Parallel()
	a, b := machine(t, ""), machine(t, "[user]\n\tname = Bo\n\temail = bo@example.org\n")
	remote(t, a, b)
	base := func(s *Store, who string) {
		if _, err := s.AppendEpisode(t.Context(), Episode{Title: "from " + who, Entry: "Work of " + who + "."}); err != nil {
			t.Fatal(err)
		}
		if _, err := s.AppendFile(t.Context(), "blocks/decisions.md", "\n## 2026-02-21 — "+who+"\nDecided.\n"); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Create(t.Context(), CreateBlock{Name: "project-" + who, Content: "# " + who + "\n"}); err != nil {
			t.Fatal(err)
		}
	}
	base(a, "start")
	syncNow(t, a)
	syncNow(t, b) // gets it, though it began on its own
	base(a, "ann")
	b.o.Now = func() time.Time { return day.AddDate(0, 0, 1) }
	base(b, "bo")
	syncNow(t, a)
	if res := syncNow(t, b); !res.Merged || !res.Pushed {
		t.Errorf("%+v", res)
	}
	syncNow(t, a)
	for _, f := range []string{"blocks/episodic-2026-02.md", "blocks/decisions.md", "index.md"} {
		text := get(t, a, f)
		if text != get(t, b, f) {
			t.Errorf("%s differs", f)
		}
		for _, who := range []string{"start", "ann", "bo"} {
			if !strings.Contains(text, who) {
				t.Errorf("%s has lost %s: %s", f, who, text)
			}
		}
		if strings.Contains(text, "<<<<") {
			t.Errorf("%s has marks of a conflict", f)
		}
	}
	if !strings.Contains(get(t, a, "blocks/episodic-2026-02.md"), "\nupdated: 2026-02-22\n") {
		t.Error("the later day did not win")
	}
	r, err := a.Check(t.Context())
	if err != nil || !r.OK() {
		t.Errorf("%+v %v", r, err)
	}
}

// TestDivergedBlock: the same line changed on both sides is for a person; both
// versions stay.
func TestDivergedBlock(t *testing.T) {
	t.Parallel()
	a, b := machine(t, ""), machine(t, "")
	remote(t, a, b)
	if _, err := a.Create(t.Context(), CreateBlock{Name: "project-x", Content: "# X\nstate: one\n"}); err != nil {
		t.Fatal(err)
	}
	syncNow(t, a)
	syncNow(t, b)
	edit := func(s *Store, to string) {
		if _, err := s.Update(t.Context(), UpdateBlock{Name: "project-x", OldText: "state: one", NewText: "state: " + to}); err != nil {
			t.Fatal(err)
		}
	}
	edit(a, "ann's")
	syncNow(t, a)
	edit(b, "bo's")
	_, err := b.Sync(t.Context(), SyncOptions{})
	if !errors.Is(err, ErrDiverged) || !strings.Contains(err.Error(), "blocks/project-x.md") {
		t.Fatal(err)
	}
	if text := get(t, b, "blocks/project-x.md"); !strings.Contains(text, "state: bo's") || strings.Contains(text, "<<<<") {
		t.Errorf("bo's file: %q", text)
	}
	if got := run(t, b, "show", "HEAD:blocks/project-x.md"); !strings.Contains(got, "bo's") {
		t.Error("bo's version is not committed")
	}
	if got := run(t, b, "show", "refs/remotes/origin/main:blocks/project-x.md"); !strings.Contains(got, "ann's") {
		t.Error("ann's version is not there")
	}
}

func TestSyncUnreachableRemoteKeepsTheCommit(t *testing.T) {
	s := machine(t, "")
	if err := s.Ensure(t.Context()); err != nil {
		t.Fatal(err)
	}
	run(t, s, "remote", "add", "origin", filepath.Join(t.TempDir(), "none.git"))
	res, err := s.Sync(t.Context(), SyncOptions{})
	if !errors.Is(err, git.ErrNetwork) || !res.Committed {
		t.Errorf("%+v %v", res, err)
	}
}

// What git does not keep on one machine, another may have given: it stays as it is.
func TestSyncLeavesWhatIsIgnored(t *testing.T) {
	t.Parallel()
	a, b := machine(t, ""), machine(t, "")
	remote(t, a, b)
	syncNow(t, a)
	syncNow(t, b)
	syncNow(t, a)
	if err := os.MkdirAll(b.abs(".git/info"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(b.abs(".git/info/exclude"), []byte("blocks/reference-keys.md\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	put(t, b, "blocks/reference-keys.md", "mine\n")
	if _, err := a.Create(t.Context(), CreateBlock{Name: "reference-keys", Content: "theirs\n"}); err != nil {
		t.Fatal(err)
	}
	syncNow(t, a)
	if _, err := b.Sync(t.Context(), SyncOptions{}); err == nil || !strings.Contains(err.Error(), "reference-keys.md is in the way") {
		t.Errorf("%v", err)
	}
	if data, err := os.ReadFile(b.abs("blocks/reference-keys.md")); err != nil || string(data) != "mine\n" {
		t.Errorf("it has %q, %v", data, err)
	}
	if got := run(t, b, "status", "--porcelain"); got != "" {
		t.Errorf("left behind: %s", got)
	}
	if err := os.Remove(b.abs("blocks/reference-keys.md")); err != nil {
		t.Fatal(err)
	}
	syncNow(t, b)
	if data, err := os.ReadFile(b.abs("blocks/reference-keys.md")); err != nil || !strings.Contains(string(data), "theirs") {
		t.Errorf("it has %q, %v", data, err)
	}
}

// TestRepositoryHalfMade: git killed while it made the repository must not end
// all syncs for good.
func TestRepositoryHalfMade(t *testing.T) {
	s := machine(t, "")
	if err := os.MkdirAll(filepath.Join(s.Dir(), ".git", "objects"), 0o700); err != nil {
		t.Fatal(err)
	}
	if res := syncNow(t, s); !res.Committed {
		t.Errorf("%+v", res)
	}
}

// TestMergeWhereGitIsAFile: in a linked worktree .git is a file, and nothing can
// be put into it.
func TestMergeWhereGitIsAFile(t *testing.T) {
	t.Parallel()
	a, b := machine(t, ""), machine(t, "")
	remote(t, a, b)
	syncNow(t, a)
	syncNow(t, b)
	elsewhere := filepath.Join(t.TempDir(), "git")
	if err := os.Rename(filepath.Join(b.Dir(), ".git"), elsewhere); err != nil {
		t.Fatal(err)
	}
	put(t, b, ".git", "gitdir: "+filepath.ToSlash(elsewhere)+"\n")
	for title, s := range map[string]*Store{"one": a, "two": b} {
		if _, err := s.AppendEpisode(t.Context(), Episode{Title: title, Entry: "did " + title}); err != nil {
			t.Fatal(err)
		}
	}
	syncNow(t, a)
	if res := syncNow(t, b); !res.Merged || !res.Pushed {
		t.Errorf("%+v", res)
	}
	log := get(t, b, "blocks/episodic-2026-02.md")
	if !strings.Contains(log, "did one") || !strings.Contains(log, "did two") {
		t.Error(log)
	}
	if _, err := os.Lstat(filepath.Join(b.Dir(), ".reprise-merge")); err == nil {
		t.Error("the place of the merge is left")
	}
}

// TestLockedRef: a lock that a killed git left here is not the remote's work.
func TestLockedRef(t *testing.T) {
	s := machine(t, "")
	syncNow(t, s)
	put(t, s, ".git/refs/heads/main.lock", "")
	put(t, s, "core.md", "# Core\nnew\n")
	if _, err := s.Sync(t.Context(), SyncOptions{}); !errors.Is(err, git.ErrLocked) {
		t.Errorf("%v", err)
	}
}

// Two machines that each learn and decide something merge by themselves: each entry is
// whole afterwards, in both. It is what memory is written to most.
func TestSyncUnitesEntries(t *testing.T) {
	t.Parallel()
	a, b := machine(t, ""), machine(t, "")
	remote(t, a, b)
	add := func(s *Store, typ, text string) {
		t.Helper()
		n := mdfile.Entry{Type: typ, Agent: "user", Source: "hand", Text: text}
		if typ == mdfile.TypeDecision {
			n.Decision, n.Text = text, "More about it.\n\n- one\n- two"
		}
		if _, err := s.Entries().Add(t.Context(), n); err != nil {
			t.Fatal(err)
		}
	}
	add(a, mdfile.TypeLearning, "What both know.")
	syncNow(t, a)
	syncNow(t, b)
	gone, err := b.Entries().List(t.Context())
	if err != nil || len(gone) != 1 {
		t.Fatal(gone, err)
	}
	for i, s := range []*Store{a, b} {
		for n := range 2 {
			add(s, mdfile.TypeLearning, fmt.Sprintf("Learnt on %d, the %d.", i, n))
			add(s, mdfile.TypeDecision, fmt.Sprintf("Decided on %d, the %d", i, n))
		}
	}
	if _, err := b.Entries().Retire(t.Context(), gone[0].ID, "user", ""); err != nil {
		t.Fatal(err)
	}
	for _, s := range []*Store{a, b, a} {
		syncNow(t, s)
	}
	for i, s := range []*Store{a, b} {
		list, err := s.Entries().List(t.Context())
		problems, perr := s.Entries().Problems(t.Context())
		if err != nil || perr != nil || len(problems) != 0 || len(list) != 8 {
			t.Errorf("%d: %d entries, %v, %v, %v", i, len(list), problems, err, perr)
		}
		for _, x := range list {
			if x.Edited || x.Problem != "" || x.ID == gone[0].ID {
				t.Errorf("%d: %+v", i, x)
			}
		}
		for _, name := range []string{learnedBlock, decisionsBlock} {
			data, err := os.ReadFile(s.abs(name))
			if f, perr := mdfile.Parse(data); err != nil || perr != nil || !f.HasFrontMatter() || f.Value("updated") == "" {
				t.Errorf("%d %s: %v %v\n%s", i, name, err, perr, data)
			}
		}
	}
}
