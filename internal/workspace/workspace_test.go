package workspace_test

import (
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"reprise/internal/config"
	"reprise/internal/durable"
	"reprise/internal/git"
	"reprise/internal/mdfile"
	"reprise/internal/memory"
	"reprise/internal/proc"
	"reprise/internal/staterepo"
	"reprise/internal/workspace"
)

// place is a code repository with a project in it, and reprise's data beside it.
type place struct {
	t    testing.TB
	dir  string
	code string // the main checkout
	vars map[string]string
	disk durable.Disk
	from string // directory that commands are given in
}

func fastDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "workspace test ü")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func newPlace(t testing.TB) *place {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not here")
	}
	p := at(t, fastDir(t))
	p.prepare()
	return p
}

// at is a place whose directory is there already.
func at(t testing.TB, dir string) *place {
	p := &place{t: t, dir: dir, code: filepath.Join(dir, "My Shop é")}
	p.vars = map[string]string{"PATH": os.Getenv("PATH"), "HOME": filepath.Join(dir, "home"), "REPRISE_HOME": filepath.Join(dir, "reprise")}
	return p
}

// prepare makes the repository, with one commit and the project's file in it.
func (p *place) prepare() {
	p.t.Helper()
	p.write(p.code, ".reprise/project.yaml", "v: 1\nname: shop\n")
	p.write(p.code, ".gitignore", "node_modules/\n*.log\n.env\n")
	p.write(p.code, "main.go", "package main\n")
	p.git(p.code, "init", "-q", "-b", "trunk", ".")
	p.commit(p.code, "first")
}

func (p *place) options() workspace.Options {
	p.t.Helper()
	vars := maps.Clone(p.vars)
	from := p.from
	if from == "" {
		from = p.code
	}
	env := config.Env{Vars: vars, Dir: from, GOOS: "linux", Now: time.Now}
	paths, err := config.FindPaths(env)
	if err != nil {
		p.t.Fatal(err)
	}
	project, err := config.FindProject(env, from)
	if err != nil || project == nil {
		p.t.Fatal(project, err)
	}
	state := staterepo.New(staterepo.Options{
		Dir: paths.ProjectDir(project.Name), Project: project.Name, Git: git.Options{Vars: vars}, Now: time.Now, Disk: p.disk,
	})
	return workspace.Options{Env: env, Paths: paths, Project: project, State: state, Disk: p.disk}
}

func (p *place) manager() *workspace.Manager { return workspace.New(p.options()) }

func (p *place) create(o workspace.CreateOptions) workspace.Created {
	p.t.Helper()
	c, err := p.manager().Create(p.t.Context(), o)
	if err != nil {
		p.t.Fatal(err)
	}
	return c
}

func (p *place) write(dir, name, text string) {
	p.t.Helper()
	file := filepath.Join(dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		p.t.Fatal(err)
	}
}

func (p *place) read(dir, name string) string {
	data, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
	if err != nil {
		return "(" + err.Error() + ")"
	}
	return string(data)
}

func (p *place) git(dir string, args ...string) string {
	p.t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=t", "-c", "user.email=t@example.invalid"}, args...)...)
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + p.vars["PATH"], "HOME=" + p.vars["HOME"], "GIT_CONFIG_NOSYSTEM=1"}
	out, err := cmd.CombinedOutput()
	if err != nil {
		p.t.Fatalf("git %s: %v: %s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

func (p *place) commit(dir, message string) string {
	p.t.Helper()
	p.git(dir, "add", "-A")
	p.git(dir, "commit", "-q", "--no-verify", "--no-gpg-sign", "--allow-empty", "-m", message)
	return strings.TrimSpace(p.git(dir, "rev-parse", "HEAD"))
}

func (p *place) refs() string {
	return p.git(p.code, "for-each-ref", "--format=%(refname) %(objectname)")
}

// nothing wants that nothing is left of a workspace that was never there.
func (p *place) nothing(name, step string) {
	p.t.Helper()
	refs := p.refs()
	if strings.Contains(refs, "/"+name+" ") {
		p.t.Errorf("%s: a branch is left: %s", step, refs)
	}
	if list := p.git(p.code, "worktree", "list", "--porcelain"); strings.Count(list, "worktree ") != 1 {
		p.t.Errorf("%s: a worktree is left: %s", step, list)
	}
	if list, err := p.manager().List(); err != nil || len(list) != 0 {
		p.t.Errorf("%s: a record is left: %v %v", step, list, err)
	}
	agents, err := p.options().State.Agents(p.t.Context())
	if err != nil || slices.ContainsFunc(agents, func(a staterepo.AgentInfo) bool { return a.Name == name }) {
		p.t.Errorf("%s: an agent is left: %v %v", step, agents, err)
	}
	if list, _ := filepath.Glob(filepath.Join(p.dir, "shop.workspaces", "*")); len(list) > 0 {
		p.t.Errorf("%s: files are left: %v", step, list)
	}
}

// A worktree of somebody else is half made while this one is: git stops when the branch is
// there already, and is asked again when the other one is whole, or gone.
func TestBesideOneThatIsHalfMade(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.create(workspace.CreateOptions{Name: "other"})
	half := filepath.Join(p.code, ".git", "worktrees", "half")
	p.write(half, "commondir", "")
	p.write(half, "gitdir", "x\n")
	gone := make(chan error, 1)
	go func() {
		branch := filepath.Join(p.code, ".git", "refs", "heads", "auth")
		for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(time.Millisecond) {
			if _, err := os.Stat(branch); err == nil {
				break
			}
		}
		gone <- os.RemoveAll(half)
	}()
	c, err := p.manager().Create(t.Context(), workspace.CreateOptions{Name: "auth"})
	if rerr := <-gone; rerr != nil {
		t.Fatal(rerr)
	}
	if err != nil {
		t.Fatal(err)
	}
	if got := p.git(c.Dir, "symbolic-ref", "HEAD"); got != "refs/heads/auth\n" {
		t.Error(got)
	}
	if out, _ := exec.Command("git", "-C", p.code, "config", "--get-regexp", "^branch[.]auth[.]").Output(); len(out) != 0 {
		t.Errorf("the branch follows another: %s", out)
	}
}

func TestCreateAndRemove(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	c := p.create(workspace.CreateOptions{Name: "auth"})
	want := filepath.Join(p.dir, "shop.workspaces", "auth")
	if c.Dir != want || c.Branch != "auth" || c.AgentDir != filepath.Join(want, ".reprise", "agent") || c.State != workspace.Ready || len(c.Notes) > 0 {
		t.Errorf("%+v", c)
	}
	if got := p.git(c.Dir, "symbolic-ref", "HEAD"); got != "refs/heads/auth\n" {
		t.Error(got)
	}
	if got := p.git(c.AgentDir, "symbolic-ref", "HEAD"); got != "refs/heads/agent-auth\n" {
		t.Error(got)
	}
	if got := p.git(c.Dir, "status", "--porcelain") + p.git(p.code, "status", "--porcelain") + p.git(c.AgentDir, "status", "--porcelain"); got != "" {
		t.Error(got)
	}
	env := c.Environ([]string{"A=1", "REPRISE_AGENT=old", "PWD=/x"})
	for _, kv := range []string{
		"A=1", "REPRISE_PROJECT=shop", "REPRISE_AGENT=auth", "REPRISE_AGENT_BRANCH=agent-auth", "REPRISE_AGENT_DIR=" + c.AgentDir,
		"REPRISE_WORKSPACE=" + c.Dir, "REPRISE_STATE_REPO=" + filepath.Join(p.dir, "reprise", "projects", "shop", "state.git"),
	} {
		if !slices.Contains(env, kv) {
			t.Errorf("%s is not in %v", kv, env)
		}
	}
	if len(env) != 7 {
		t.Error(env)
	}
	if _, err := p.manager().Create(t.Context(), workspace.CreateOptions{Name: "auth"}); !errors.Is(err, workspace.ErrExists) {
		t.Error(err)
	}
	r, err := p.manager().Remove(t.Context(), "auth", workspace.RemoveOptions{})
	if err != nil || !r.BranchGone || r.Saved != "" || r.Kept != "" {
		t.Fatalf("%+v %v", r, err)
	}
	if _, err := os.Stat(filepath.Dir(want)); err == nil {
		t.Error("the directory is left")
	}
	if got := p.git(p.code, "worktree", "list"); strings.Count(got, "\n") != 1 {
		t.Error(got)
	}
	if strings.Contains(p.refs(), "auth") {
		t.Error(p.refs())
	}
	if r.AgentBranch != "" {
		t.Error(r.AgentBranch)
	}
	// The agent's branch stays. Where nothing was written to it, that is as good as none,
	// also after the directory went by hand.
	for range 2 {
		c = p.create(workspace.CreateOptions{Name: "auth"})
		if err := os.RemoveAll(c.Dir); err != nil {
			t.Fatal(err)
		}
		if r, err = p.manager().Remove(t.Context(), "auth", workspace.RemoveOptions{}); err != nil || r.AgentBranch != "" {
			t.Errorf("%+v %v", r, err)
		}
	}
	c = p.create(workspace.CreateOptions{Name: "auth"})
	p.write(c.AgentDir, "scratch.md", "thinking\n")
	if r, err = p.manager().Remove(t.Context(), "auth", workspace.RemoveOptions{}); err != nil || r.AgentBranch != "agent-auth" {
		t.Errorf("%+v %v", r, err)
	}
	// Else its name is taken up again only when that is said.
	if _, err := p.manager().Create(t.Context(), workspace.CreateOptions{Name: "auth"}); !errors.Is(err, staterepo.ErrBranchExists) {
		t.Error(err)
	}
	p.create(workspace.CreateOptions{Name: "auth", Attach: true})
}

// What is in a workspace and nowhere else is refused with a list, or comes back.
func TestNothingIsLost(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	ctx := t.Context()
	m := p.manager()
	p.write(p.code, ".env", "same=1\n")
	c := p.create(workspace.CreateOptions{Name: "auth"})
	p.write(c.Dir, "own.go", "package own\n")
	tip := p.commit(c.Dir, "own work")
	p.write(c.Dir, "staged.txt", "staged\n")
	p.git(c.Dir, "add", "staged.txt")
	p.write(c.Dir, "staged.txt", "changed after\n")
	p.write(c.Dir, "main.go", "package main // changed\n")
	p.write(c.Dir, "new dir/ü.txt", "untracked\n")
	p.write(c.Dir, "debug.log", "ignored\n")
	p.write(c.Dir, ".env", "same=1\n")
	p.write(c.Dir, "node_modules/x/index.js", "x\n")
	p.write(c.AgentDir, "scratch.md", "thinking\n")
	p.git(c.Dir, "update-index", "--assume-unchanged", ".gitignore")
	p.write(c.Dir, ".gitignore", "node_modules/\n*.log\n.env\n# hidden change\n")
	state := p.options().State
	tree, err := state.Open(ctx, c.AgentDir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tree.Add(ctx, memory.FullAccess, mdfile.Entry{Type: mdfile.TypeLearning, Text: "Prices are cents."}); err != nil {
		t.Fatal(err)
	}
	_, err = m.Remove(ctx, "auth", workspace.RemoveOptions{})
	var loss *workspace.LossError
	if !errors.As(err, &loss) {
		t.Fatal(err)
	}
	for _, want := range []string{"3 changed files", "main.go", "staged.txt", ".gitignore", "1 untracked file\n", "new dir/ü.txt", "1 learning or decision not promoted", "Prices are cents", "--yes"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in: %v", want, err)
		}
	}
	if w, err := m.Get("auth"); err != nil || w.State != workspace.Ready {
		t.Fatal(w, err)
	}
	r, err := m.Remove(ctx, "auth", workspace.RemoveOptions{Save: true})
	if err != nil {
		t.Fatal(err)
	}
	if r.Saved == "" || r.Kept == "" || r.BranchGone || r.BranchAt != tip || p.read(r.Kept, "debug.log") != "ignored\n" || !strings.Contains(strings.Join(r.Notes, "\n"), "branch auth stays") {
		t.Errorf("%+v", r)
	}
	if got := p.read(r.Kept, ".env") + p.read(r.Kept, "node_modules/x/index.js"); strings.Contains(got, "same") || strings.Contains(got, "x\n") {
		t.Error("what is elsewhere was kept")
	}
	if got := p.git(p.code, "show", r.Saved+":main.go"); got != "package main // changed\n" {
		t.Error(got)
	}
	list, err := m.ListSaved(ctx, "")
	if err != nil || len(list) != 1 || list[0].Ref != r.Saved || list[0].Kept != r.Kept || list[0].Branch != "auth" || list[0].Bytes != 8 {
		t.Fatal(list, err)
	}
	back, err := m.Restore(ctx, workspace.RestoreOptions{Name: "auth"})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"main.go": "package main // changed\n", "staged.txt": "changed after\n", "new dir/ü.txt": "untracked\n", "debug.log": "ignored\n",
		"own.go": "package own\n", ".gitignore": "node_modules/\n*.log\n.env\n# hidden change\n", ".reprise/agent/scratch.md": "thinking\n",
	} {
		if got := p.read(back.Dir, name); got != want {
			t.Errorf("%s: %q", name, got)
		}
	}
	if got := p.git(back.Dir, "show", ":staged.txt"); got != "staged\n" {
		t.Error(got)
	}
	if err := m.DropSaved(ctx, list[0]); err != nil {
		t.Fatal(err)
	}
	if list, err = m.ListSaved(ctx, "auth"); err != nil || len(list) != 0 {
		t.Error(list, err)
	}
}

// Commits that only the worktree knows: on no branch, amended away, on a branch that
// is to go, and an index whose worktree was deleted by hand.
func TestCommitsAreKept(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	ctx := t.Context()
	m := p.manager()
	has := func(ref, commit string) {
		t.Helper()
		p.git(p.code, "merge-base", "--is-ancestor", commit, ref)
	}
	c := p.create(workspace.CreateOptions{Name: "a"})
	p.write(c.Dir, "a", "1")
	amended := p.commit(c.Dir, "first try")
	p.git(c.Dir, "commit", "-q", "--amend", "-m", "second try")
	tip := strings.TrimSpace(p.git(c.Dir, "rev-parse", "HEAD"))
	p.git(c.Dir, "checkout", "-q", "--detach")
	p.write(c.Dir, "b", "2")
	detached := p.commit(c.Dir, "on no branch")
	if _, err := m.Remove(ctx, "a", workspace.RemoveOptions{DeleteBranch: true}); err == nil || !strings.Contains(err.Error(), "1 commit on no branch") {
		t.Error(err)
	}
	r, err := m.Remove(ctx, "a", workspace.RemoveOptions{DeleteBranch: true, Save: true})
	if err != nil || !r.BranchGone || r.Saved == "" {
		t.Fatalf("%+v %v", r, err)
	}
	p.git(p.code, "reflog", "expire", "--expire=now", "--all")
	p.git(p.code, "gc", "-q", "--prune=now")
	for _, commit := range []string{amended, tip, detached} {
		has(r.Saved, commit)
	}
	if back, err := m.Restore(ctx, workspace.RestoreOptions{Name: "a"}); err != nil || p.read(back.Dir, "b") != "2" {
		t.Error(err)
	}

	c = p.create(workspace.CreateOptions{Name: "gone"})
	p.write(c.Dir, "staged.txt", "only in the index\n")
	p.git(c.Dir, "add", "staged.txt")
	if err := os.RemoveAll(c.Dir); err != nil {
		t.Fatal(err)
	}
	if list, err := m.List(); err != nil || list[1].Status != "missing" || list[1].Note == "" {
		t.Error(list, err)
	}
	if _, err := m.Lease(ctx, "gone", workspace.Holder{}); !errors.Is(err, workspace.ErrMissing) {
		t.Error(err)
	}
	r, err = m.Remove(ctx, "gone", workspace.RemoveOptions{})
	if err != nil || r.Saved == "" || p.git(p.code, "show", r.Saved+":staged.txt") != "only in the index\n" {
		t.Errorf("%+v %v", r, err)
	}

	// Pruned by hand, nothing but the branch is left.
	c = p.create(workspace.CreateOptions{Name: "pruned"})
	if err := os.RemoveAll(c.Dir); err != nil {
		t.Fatal(err)
	}
	p.git(p.code, "worktree", "prune")
	if r, err = m.Remove(ctx, "pruned", workspace.RemoveOptions{}); err != nil || r.Saved != "" || !r.BranchGone {
		t.Errorf("%+v %v", r, err)
	}
}

func self(t testing.TB) proc.ID {
	id, err := proc.Self()
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func TestLeases(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	ctx := t.Context()
	o := p.options()
	ended := false
	o.RunLive = func(id string) bool { return id == "run-aaaaaaaaaa" && !ended }
	m := workspace.New(o)
	me := workspace.Holder{Process: self(t), What: "loop"}
	c, err := m.Prepare(ctx, workspace.CreateOptions{Name: "job"}, me)
	if err != nil || c.Lease == nil {
		t.Fatal(err)
	}
	if _, err := m.Lease(ctx, "job", workspace.Holder{Process: self(t), What: "other"}); !errors.Is(err, workspace.ErrLive) {
		t.Error(err)
	}
	look, err := m.Lease(ctx, "job", workspace.Holder{Process: self(t), What: "shell", Shared: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.Remove(ctx, "job", workspace.RemoveOptions{Save: true}); !errors.Is(err, workspace.ErrLive) || !strings.Contains(err.Error(), "loop") {
		t.Error(err)
	}
	// Even its own holder does not remove it under somebody else.
	if _, err := c.Lease.Remove(ctx, workspace.RemoveOptions{}); !errors.Is(err, workspace.ErrLive) || !strings.Contains(err.Error(), "shell") {
		t.Error(err)
	}
	if err := look.Release(ctx); err != nil {
		t.Error(err)
	}
	// A run outlasts who started it.
	if err := c.Lease.Add(ctx, workspace.Holder{Run: "run-aaaaaaaaaa", What: "run"}); err != nil {
		t.Error(err)
	}
	gone := self(t)
	gone.Start++ // another process of that number
	if i := m.Look(c.Workspace); len(i.Live) != 1 {
		t.Error(i)
	}
	w, err := m.Get("job")
	if err != nil || len(w.Holders) != 2 {
		t.Error(w, err)
	}
	if i := m.Look(w); i.Status != "live" || len(i.Live) != 2 {
		t.Error(i)
	}
	if err := c.Lease.Release(ctx); err != nil {
		t.Error(err)
	}
	l, err := m.Lease(ctx, "job", workspace.Holder{Process: gone, Run: "run-aaaaaaaaaa", What: "run"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.Prepare(ctx, workspace.CreateOptions{Name: "job"}, me); !errors.Is(err, workspace.ErrLive) {
		t.Error(err)
	}
	ended = true
	again, err := m.Prepare(ctx, workspace.CreateOptions{Name: "job"}, me)
	if err != nil || again.Dir != c.Dir {
		t.Error(err)
	}
	if err := m.Keep(ctx, "job", "to be looked at"); err != nil {
		t.Error(err)
	}
	if _, err := again.Lease.Remove(ctx, workspace.RemoveOptions{}); err != nil {
		t.Error(err)
	}
	if err := l.Release(ctx); err != nil {
		t.Error(err)
	}
	p.git(p.code, "worktree", "prune")
	if got := p.git(p.code, "worktree", "list"); strings.Count(got, "\n") != 1 {
		t.Error(got)
	}
}
