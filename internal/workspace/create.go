package workspace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"reprise/internal/config"
	"reprise/internal/durable"
	"reprise/internal/git"
	"reprise/internal/pathname"
	"reprise/internal/proc"
	"reprise/internal/staterepo"
	"reprise/internal/verify/tree"
)

// CreateOptions say what workspace to make. Only Name is required.
type CreateOptions struct {
	Name string // of the workspace and its agent; see [staterepo.CheckName]
	// Dir is where the worktree goes, absolute, not there yet or empty; "" is
	// PROJECT.workspaces/NAME beside the main checkout.
	Dir string
	// Branch is the code branch. One that is named and exists is gone on with; else
	// it is made at Base. "" is a new branch of the workspace's name.
	Branch string
	// Base is the revision that a new branch begins at; "" is the HEAD of From.
	Base string
	// From is a directory in the checkout whose HEAD counts, and from which is
	// carried; "" is the project's root.
	From string
	// Attach goes on with the agent's branch, and the code branch, of that name,
	// where an earlier workspace left them.
	Attach bool
	// Mark, where it is set, is whose the workspace and its branch are, as [Mark] spells it.
	// Then a branch of the name that was made for nobody, or for another one, has to make
	// room, if it has no commit that is not in the history of Base; else that is ErrTaken, and
	// so is a workspace that was made for another one.
	Mark string
	// Carry are patterns of directories that git ignores and that are copied from
	// the checkout, such as those of dependencies.
	Carry []string
	// Holder, where it is set, takes a lease of the new workspace.
	Holder *Holder
	// Unread says that nobody reads the notes: what in the checkout is not in the
	// workspace is not looked for.
	Unread bool
}

// Created is a new workspace.
type Created struct {
	Workspace
	// Lease is that of the options' Holder, nil without one.
	Lease *Lease `json:"-"`
	// Taken is a note that a branch had to make room, "" if none had.
	Taken string `json:"-"`
	// Notes are what a person should know: what an earlier command had left, what
	// is not in the workspace.
	Notes []string `json:"notes,omitempty"`
}

// Create makes a workspace: branch, worktree, the agent's branch and its checkout,
// or nothing of them. Killed in the middle, it is taken back by the next command that
// makes or removes a workspace of the project.
func (m *Manager) Create(ctx context.Context, o CreateOptions) (Created, error) {
	var out Created
	if err := staterepo.CheckName(o.Name); err != nil {
		return out, fmt.Errorf("make workspace: %w", err)
	}
	done, err := m.mend(ctx)
	for _, d := range done {
		out.Notes = append(out.Notes, d.notes...)
		if d.name == o.Name && d.err != nil { // why it is in the way says more than that it is
			err = errors.Join(err, d.err)
		}
	}
	if err != nil {
		return out, fmt.Errorf("make workspace %s: %w", o.Name, err)
	}
	w, from, err := m.plan(ctx, o)
	if err != nil {
		// Another process may have begun meanwhile to make just this one: then that is
		// why there is a branch, and no advice about branches helps.
		if there := m.unclaimed(o.Name); there != nil {
			err = there
		}
		return out, fmt.Errorf("make workspace %s: %w", o.Name, err)
	}
	if err := m.claim(ctx, &w); err != nil {
		return out, fmt.Errorf("make workspace %s: %w", o.Name, err)
	}
	err = m.build(ctx, &w, from, o, &out)
	if err == nil {
		if w, err = m.finish(ctx, w, o.Holder); err == nil {
			out.Workspace = w
			if o.Holder != nil {
				out.Lease = &Lease{m: m, name: w.Name, held: w.Holders}
			}
			return out, nil
		}
	}
	// A caller that gave up still leaves nothing behind.
	undo, cancel := context.WithTimeout(context.WithoutCancel(ctx), gitTime)
	defer cancel()
	if _, uerr := m.takeBack(undo, w); uerr != nil {
		err = fmt.Errorf("%w (and what was made could not all be taken back: %w; `reprise workspace remove %s` tries again)", err, uerr, w.Name)
		_ = m.disown(undo, w.Name) // the next command takes it for cut off, which it is
	}
	return out, fmt.Errorf("make workspace %s: %w", o.Name, err)
}

// Prepare is Create for a program that runs agents: where the workspace is there
// already, left by an earlier try, it is gone on with. Either way who asks holds the
// lease of it.
func (m *Manager) Prepare(ctx context.Context, o CreateOptions, h Holder) (Created, error) {
	if _, err := m.Refind(ctx, o.Name); err != nil && !isNotFound(err) {
		return Created{}, fmt.Errorf("make workspace %s: %w", o.Name, err)
	}
	if w, err := m.Get(o.Name); err == nil && w.State == Ready && m.here(&w) {
		if err := m.sameCode(&w, o.From); err != nil {
			return Created{}, fmt.Errorf("make workspace %s: %w", o.Name, err)
		}
		if o.Mark != "" && w.Mark != "" && w.Mark != o.Mark {
			return Created{}, fmt.Errorf("make workspace %s: %w", o.Name, takenPlace(&w))
		}
		l, err := m.Lease(ctx, o.Name, h)
		if err != nil {
			return Created{}, err
		}
		if w, err = m.Get(o.Name); err != nil {
			return Created{}, errors.Join(err, l.Release(ctx))
		}
		return Created{Workspace: w, Lease: l}, nil
	}
	o.Holder = &h
	return m.Create(ctx, o)
}

// sameCode refuses a workspace of another clone of the project: what is made in it would be in
// that one's repository, where nobody looks for it.
func (m *Manager) sameCode(w *Workspace, dir string) error {
	from, err := m.origin(dir)
	if err != nil {
		return err
	}
	if common := commonOf(from.top); common != "" && !pathname.Same(common, w.Common) {
		return fmt.Errorf("%w: %s is a worktree of another clone of this project, %s; go on with it there, or remove it there with `reprise workspace remove %s`", ErrExists, w.Dir, cmp.Or(config.MainCheckout(w.Common), filepath.Dir(w.Common)), w.Name)
	}
	return nil
}

// origin is the checkout that a workspace comes from.
type origin struct {
	top, root string // of the working tree, and the project's root in it
}

// plan works out what is to be made and finds what stands against it.
func (m *Manager) plan(ctx context.Context, o CreateOptions) (w Workspace, from origin, err error) {
	if err := m.unclaimed(o.Name); err != nil {
		return w, from, err
	}
	if from, err = m.origin(o.From); err != nil {
		return w, from, err
	}
	base := o.Base
	if base == "" {
		base = "HEAD"
	}
	if strings.HasPrefix(base, "-") || strings.ContainsAny(base, "\n\x00") {
		return w, from, fmt.Errorf("%w: %q is no revision", ErrRefused, base)
	}
	g := m.git(from.top)
	common, commit, err := m.begin(ctx, g, from.top, base)
	if err != nil {
		return w, from, err
	}
	if fileThere(filepath.Join(common, "reftable")) {
		// What a worktree's own files say of its branch is not so there.
		return w, from, fmt.Errorf("%w: %s keeps its refs in a reftable, and reprise reads files; `git refs migrate --ref-format=files` in it makes them such", ErrRefused, from.top)
	}
	if err := m.inPlace(ctx, g, common); err != nil {
		return w, from, err
	}
	sub, err := filepath.Rel(from.top, from.root)
	if err != nil || sub == "." {
		sub = ""
	}
	self, err := proc.Self()
	if err != nil {
		return w, from, err
	}
	w = Workspace{
		V: version, Name: o.Name, Project: m.o.Project.Name, State: Making, Sub: filepath.ToSlash(sub), Common: common,
		Base: commit, StateRepo: m.o.State.Dir(), CreatedAt: m.now(), By: &self, Mark: o.Mark,
	}
	if w.Dir, err = m.place(ctx, &w, o, from); err != nil {
		return w, from, err
	}
	w.AgentDir = config.AgentDirIn(w.Root())
	if err := m.planBranch(ctx, g, &w, o); err != nil {
		return w, from, err
	}
	return w, from, m.planAgent(ctx, &w, o)
}

// unclaimed wants no record of that name.
func (m *Manager) unclaimed(name string) error {
	old, err := readRecord(m.file(name))
	switch {
	case isNotFound(err):
		return nil
	case err != nil:
		return err
	}
	return fmt.Errorf("%w: %s, in %s (%s)", ErrExists, name, old.Dir, m.Look(old).Status)
}

// begin is the git directory of a checkout's repository, and the commit that a revision
// stands for there.
func (m *Manager) begin(ctx context.Context, g *git.Git, top, base string) (common, commit string, err error) {
	if base == "HEAD" {
		if common, commit, ok := m.beginsAt(ctx, top); ok {
			return common, commit, nil
		}
	}
	out, err := g.Run(ctx, "rev-parse", "--path-format=absolute", "--git-common-dir", base+"^{commit}")
	if err != nil {
		return "", "", m.noBase(ctx, g, top, base, err)
	}
	lines := strings.Split(strings.TrimRight(string(out), "\n"), "\n")
	if len(lines) != 2 {
		return "", "", fmt.Errorf("%w: git's answer was not understood: %q", ErrRefused, out)
	}
	common = filepath.FromSlash(lines[0])
	if real, err := filepath.EvalSymlinks(common); err == nil {
		common = real
	}
	return common, lines[1], nil
}

// origin finds the checkout around a directory.
func (m *Manager) origin(dir string) (origin, error) {
	if dir == "" {
		dir = m.o.Project.Root
	}
	root := config.CheckoutRoot(m.o.Project, dir)
	top := git.Top(root)
	if top == "" {
		return origin{}, fmt.Errorf("%w: %s is in no git repository; a workspace is a worktree of one: `git init` makes one", ErrRefused, root)
	}
	return origin{top: top, root: root}, nil
}

// noBase says why there is no commit to begin at.
func (m *Manager) noBase(ctx context.Context, g *git.Git, top, base string, err error) error {
	if errors.Is(err, git.ErrNotInstalled) || errors.Is(err, git.ErrNotRepo) || ctx.Err() != nil {
		return err
	}
	head, herr := g.Resolve(ctx, "HEAD")
	switch {
	case herr != nil:
		return err
	case head == "":
		return fmt.Errorf("%w: %s has no commit yet, and a worktree begins at one; commit something first", ErrRefused, top)
	case base == "HEAD":
		return err
	}
	return fmt.Errorf("%w: there is no commit %q in %s", ErrRefused, base, top)
}

// workspacesSuffix ends the name of the directory beside a project's checkout in which its
// workspaces are.
const workspacesSuffix = ".workspaces"

// place decides where the worktree goes, and makes the directory above it.
func (m *Manager) place(ctx context.Context, w *Workspace, o CreateOptions, from origin) (string, error) {
	dir := o.Dir
	if dir == "" {
		beside := filepath.Dir(config.Outermost(m.o.Project.Main)) // a submodule is in another's checkout
		if config.MainCheckout(w.Common) == "" && within(m.o.Project.Main, from.top) {
			beside = filepath.Dir(w.Common) // of a bare repository, whose checkouts are all worktrees
		}
		dir = filepath.Join(beside, m.o.Project.Name+workspacesSuffix, w.Name)
	}
	if !filepath.IsAbs(dir) || strings.ContainsAny(dir, "\n\x00") {
		return "", fmt.Errorf("%w: %q is no absolute path", ErrPlace, dir)
	}
	dir = filepath.Clean(dir)
	for _, own := range [...]string{m.o.Paths.Data, m.o.Paths.State, m.o.Paths.Cache, w.Common} {
		if real, err := filepath.EvalSymlinks(own); err == nil {
			own = real
		}
		if within(dir, own) {
			return "", fmt.Errorf("%w: %s is among files that agents must not change (%s)", ErrPlace, dir, own)
		}
	}
	if err := vacant(dir); err != nil {
		return "", err
	}
	if err := m.o.Disk.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return "", fmt.Errorf("%w: %w", ErrPlace, err)
	}
	parent, err := filepath.EvalSymlinks(filepath.Dir(dir))
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrPlace, err)
	}
	return filepath.Join(parent, filepath.Base(dir)), nil
}

// vacant refuses a directory with something in it, and whatever else is there.
func vacant(dir string) error {
	fi, err := os.Lstat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("%w: %w", ErrPlace, err)
	case !fi.IsDir():
		return fmt.Errorf("%w: %s is there and is no directory; move it away", ErrPlace, dir)
	}
	list, err := durable.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrPlace, err)
	}
	if admin, ok := config.GitPointer(filepath.Join(dir, ".git"), "gitdir: "); ok {
		if of, _, linked := strings.Cut(filepath.ToSlash(admin), "/.git/worktrees/"); linked {
			// As of a second clone beside the first one that has data of its own (REPRISE_HOME), so
			// that neither knows the workspaces of the other.
			return fmt.Errorf("%w: %s is a worktree of %s already, in which somebody may be at work; where that is another checkout of this project, with data of its own, move one of the two, so that they do not lie side by side; else remove it there (git worktree remove)", ErrPlace, dir, filepath.FromSlash(of))
		}
	}
	if len(list) > 0 {
		return fmt.Errorf("%w: %s is there and has files in it, such as %s; move it away", ErrPlace, dir, list[0].Name())
	}
	return nil
}

// planBranch decides about the code branch.
func (m *Manager) planBranch(ctx context.Context, g *git.Git, w *Workspace, o CreateOptions) error {
	w.Branch = o.Branch
	if w.Branch == "" {
		w.Branch = o.Name
	}
	if why := badBranch(w.Branch); why != "" {
		return fmt.Errorf("%w: %q is no name for a branch: it %s", ErrRefused, w.Branch, why)
	}
	if m.unused(ctx, w.Common, w.Branch) {
		w.NewBranch = true
		return nil
	}
	out, err := g.Run(ctx, "for-each-ref", "--ignore-case", "--format=%(objectname)%00%(refname)%00%(worktreepath)", "refs/heads/"+w.Branch, "refs/remotes/*/"+w.Branch)
	if err != nil {
		return err
	}
	w.NewBranch = true
	remote := ""
	for line := range strings.Lines(string(out)) {
		part := strings.SplitN(strings.TrimRight(line, "\n"), "\x00", 3)
		if len(part) != 3 {
			continue
		}
		name, local := strings.CutPrefix(part[1], "refs/heads/")
		switch {
		case local && name == w.Branch && part[2] != "":
			return fmt.Errorf("%w: branch %s is checked out in %s; work there, or take another branch", ErrRefused, name, part[2])
		case local && name == w.Branch && o.Branch == "" && !o.Attach:
			return fmt.Errorf("%w: there is a branch %s already; pass --branch %s to go on with it, or another name", ErrRefused, name, name)
		case local && name == w.Branch && o.Mark != "" && !IsMarked(w.Common, name, o.Mark):
			if ok, err := g.IsAncestor(ctx, part[0], w.Base); err != nil {
				return err
			} else if !ok {
				return taken(name, o.Name)
			}
			w.over = part[0]
		case local && name == w.Branch && o.Base != "":
			return fmt.Errorf("%w: branch %s is there and has a commit of its own; leave --base out, or take another branch", ErrRefused, name)
		case local && name == w.Branch:
			w.NewBranch, w.Base = false, part[0]
		case local && strings.EqualFold(name, w.Branch):
			return fmt.Errorf("%w: there is a branch %s, which differs in case only: some systems take the two for one", ErrRefused, name)
		case !local && strings.HasSuffix(part[1], "/"+w.Branch):
			remote = strings.TrimPrefix(part[1], "refs/remotes/")
		}
	}
	if w.NewBranch && remote != "" && o.Base == "" {
		return fmt.Errorf("%w: the remote has a branch of that name, %s; pass --base %s to go on from there, or --base HEAD to begin anew", ErrRefused, remote, remote)
	}
	return nil
}

// badBranch says what is wrong with a branch's name, "" where git has the last word.
func badBranch(name string) string {
	switch {
	case strings.HasPrefix(name, "-"), name == "HEAD", name == "@":
		return "is one that git takes for something else"
	case strings.ContainsAny(name, " ~^:?*[\\\x7f") || strings.IndexFunc(name, func(r rune) bool { return r < ' ' }) >= 0:
		return "has characters that git does not allow"
	case strings.Contains(name, ".."), strings.Contains(name, "//"), strings.Contains(name, "@{"),
		strings.HasPrefix(name, "/"), strings.HasSuffix(name, "/"), strings.HasSuffix(name, "."), strings.HasSuffix(name, ".lock"):
		return "has a form that git does not allow"
	}
	return ""
}

// planAgent finds an agent of that name, so that nothing is made in vain.
func (m *Manager) planAgent(ctx context.Context, w *Workspace, o CreateOptions) error {
	agents, err := m.o.State.Agents(ctx)
	if err != nil {
		return err
	}
	w.NewAgent = true
	for _, a := range agents {
		if a.Name != w.Name {
			continue
		}
		w.NewAgent = false
		if a.Dir != "" {
			return fmt.Errorf("%w: agent %s has its state in %s; take another name", staterepo.ErrBranchExists, a.Name, a.Dir)
		}
		// One that nothing was written to is as good as none.
		if exists, written, err := m.o.State.Branch(ctx, a.Name); err != nil || exists && !written {
			return err
		}
		if !o.Attach {
			return fmt.Errorf("%w: branch agent-%s, of an earlier workspace; pass --attach to go on with it, or take another name", staterepo.ErrBranchExists, a.Name)
		}
	}
	return nil
}

// claim writes the record down, before anything else is made.
func (m *Manager) claim(ctx context.Context, w *Workspace) error {
	unlock, err := m.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	names, err := m.names()
	if err != nil {
		return err
	}
	for _, name := range names {
		o, err := readRecord(m.file(name))
		switch {
		case isNotFound(err):
			continue
		case name == w.Name && err == nil:
			i := m.Look(o)
			return fmt.Errorf("%w: %s, in %s (%s)", ErrExists, name, o.Dir, i.Status)
		case name == w.Name:
			return err
		case err == nil && (within(w.Dir, o.Dir) || within(o.Dir, w.Dir)):
			return fmt.Errorf("%w: %s lies together with workspace %s, %s", ErrPlace, w.Dir, o.Name, o.Dir)
		}
	}
	return m.write(w)
}

// checkOut makes the worktree and, where it is new, the branch. Git reads what belongs to
// the other worktrees in between, and takes one for broken that another process is just
// making: then the branch is there already, and it is gone on with from there.
func (m *Manager) checkOut(ctx context.Context, w *Workspace, top, mark string) error {
	have := []string{"worktree", "add", "--quiet", "--", w.Dir, w.Branch}
	args := have
	if w.NewBranch {
		// Without upstream: nothing that an agent pushes goes to the base by itself.
		args = []string{"worktree", "add", "--quiet", "--no-track", "-b", w.Branch, "--", w.Dir, w.Base}
		if mark != "" {
			args = append(git.By(markName, mark), args...)
		}
	}
	_, err := m.git(top).Run(ctx, args...)
	for try := 1; try <= 10 && err != nil && halfMade(err); try++ {
		select {
		case <-ctx.Done():
			return err
		case <-time.After(time.Duration(try) * 50 * time.Millisecond):
		}
		if w.NewBranch && m.isAt(ctx, top, w.Branch, w.Base) {
			args = have
		}
		_, err = m.git(top).Run(ctx, args...)
	}
	return err
}

// isAt reports whether a branch is there, and is at a revision.
func (m *Manager) isAt(ctx context.Context, top, branch, revision string) bool {
	at, err := m.git(top).Resolve(ctx, "refs/heads/"+branch)
	want, werr := m.git(top).Resolve(ctx, revision)
	return err == nil && werr == nil && at != "" && at == want
}

// build does what the record says.
func (m *Manager) build(ctx context.Context, w *Workspace, from origin, o CreateOptions, out *Created) error {
	dirty := make(chan string, 1)
	go func() {
		if o.Unread {
			dirty <- ""
			return
		}
		dirty <- m.dirty(ctx, from.top)
	}()
	err := m.makeRoom(ctx, w, out)
	if err == nil {
		err = m.checkOut(ctx, w, from.top, o.Mark)
	}
	note := <-dirty
	if err != nil {
		return fmt.Errorf("%w: %w", ErrRefused, git.Short(err))
	}
	if note != "" {
		out.Notes = append(out.Notes, note)
	}
	if !m.here(w) {
		return fmt.Errorf("%w: %s is not a worktree of %s", ErrRefused, w.Dir, w.Common)
	}
	// Whatever .gitignore says: who works there may write another one.
	if err := config.ExcludeAgentDir(w.Root()); err != nil {
		return err
	}
	if _, err := m.o.State.CreateAgent(ctx, w.Name, w.AgentDir, !w.NewAgent); err != nil {
		return err
	}
	if len(o.Carry) > 0 {
		notes, err := m.carry(ctx, w, from, o.Carry)
		out.Notes = append(out.Notes, notes...)
		if err != nil {
			return err
		}
	}
	have := []string{from.top}
	if top := config.MainCheckout(w.Common); top != "" && top != from.top {
		have = append(have, top)
	}
	notes, err := m.addSubmodules(ctx, w.Dir, have)
	out.Notes = append(out.Notes, notes...)
	if err != nil {
		return err
	}
	return m.belongs(w)
}

// dirty is a note about changes in the checkout that the workspace does not have.
func (m *Manager) dirty(ctx context.Context, top string) string {
	out, err := m.git(top).Run(ctx, "--no-optional-locks", "status", "--porcelain=v1", "-z", "--untracked-files=normal", "--ignore-submodules=all", "--no-renames")
	if err != nil {
		return ""
	}
	n, fresh := 0, 0
	for line := range strings.SplitSeq(string(out), "\x00") {
		switch {
		case strings.HasPrefix(line, "?? .reprise/agent"): // has one of its own
		case strings.HasPrefix(line, "??"):
			fresh++
		case line != "":
			n++
		}
	}
	also := ""
	if fresh > 0 {
		also = fmt.Sprintf("; nor is what git does not know yet: %s", newFiles(fresh))
	}
	if n == 0 && fresh > 0 {
		return fmt.Sprintf("what git does not know yet in %s is not in the workspace: %s", top, newFiles(fresh))
	}
	if n == 0 {
		return ""
	}
	what := "an uncommitted change in " + top + " is"
	if n > 1 {
		what = fmt.Sprintf("%d uncommitted changes in %s are", n, top)
	}
	return what + " not in the workspace" + also
}

func newFiles(n int) string {
	if n == 1 {
		return "1 new file or directory"
	}
	return fmt.Sprintf("%d new files or directories", n)
}

// belongs wants the new worktree to be part of the project: its own project file may
// have another name, or there may be none.
func (m *Manager) belongs(w *Workspace) error {
	p, err := config.FindProject(m.o.Env, w.Root())
	switch {
	case err != nil:
		return fmt.Errorf("%w: the project cannot be read there: %w", ErrRefused, err)
	case p == nil && m.leftOut(w):
		return fmt.Errorf("%w: %s would be in no project, for this is a sparse checkout that leaves .reprise out, here and in the main one; `git sparse-checkout add %s` in %s brings it in", ErrRefused, w.Root(), path.Join(w.Sub, ".reprise"), filepath.Dir(w.Common))
	case p == nil:
		return fmt.Errorf("%w: %s would be in no project, for commit %.12s has no .reprise/project.yaml; commit it first", ErrRefused, w.Root(), w.Base)
	case p.Name != w.Project:
		return fmt.Errorf("%w: at commit %.12s the project is called %q and not %q; begin at another commit", ErrRefused, w.Base, p.Name, w.Project)
	}
	return nil
}

// leftOut says that the project's file is in the commit that is checked out, and not on the
// disk, as a sparse checkout may have it.
func (m *Manager) leftOut(w *Workspace) bool {
	at := path.Join(w.Sub, ".reprise/project.yaml")
	_, err := m.git(w.Dir).Run(context.Background(), "cat-file", "-e", "HEAD:"+at)
	return err == nil && !fileThere(filepath.Join(w.Dir, filepath.FromSlash(at))) && fileThere(filepath.Join(git.LinkedDir(w.Dir), "info", "sparse-checkout"))
}

// Belongs says why a workspace is no part of the project any more, nil where it is one: its files
// may have become another project's, or nobody's, or a link may lie where its agent's state is.
func (m *Manager) Belongs(name string) error {
	w, err := m.Get(name)
	if err != nil {
		return err
	}
	if err := staterepo.NoLink(w.AgentDir); err != nil {
		return err
	}
	return m.belongs(&w)
}

// carry copies dependencies from the checkout.
func (m *Manager) carry(ctx context.Context, w *Workspace, from origin, patterns []string) ([]string, error) {
	if err := m.o.Disk.Step("run", "carry"); err != nil {
		return nil, err
	}
	t, err := tree.Find(ctx, from.top, from.root, tree.Options{Vars: m.o.Env.Vars, Programs: m.o.Programs, Limits: tree.Limits{Bytes: 64 << 30, Entries: 5_000_000}})
	if err != nil {
		return nil, err
	}
	notes, err := t.Carry(ctx, w.Dir, w.Sub, patterns)
	if err != nil {
		return notes, fmt.Errorf("carry dependencies over: %w", err)
	}
	return notes, nil
}

// finish makes the workspace one that is used.
func (m *Manager) finish(ctx context.Context, w Workspace, h *Holder) (Workspace, error) {
	return m.change(ctx, w.Name, func(r *Workspace) error {
		r.State, r.By, r.Admin = Ready, nil, git.LinkedDir(r.Dir)
		if h != nil {
			h := *h
			h.Since = m.now()
			r.Holders = []Holder{h}
		}
		return nil
	})
}

// disown lets others finish what this process cannot.
func (m *Manager) disown(ctx context.Context, name string) error {
	_, err := m.change(ctx, name, func(w *Workspace) error { w.By = nil; return nil })
	return err
}

func isNotFound(err error) bool { return errors.Is(err, ErrNotFound) }

// halfMade reports whether git gave up for another worktree whose files are being written.
func halfMade(err error) bool {
	return strings.Contains(err.Error(), "failed to read") && strings.Contains(err.Error(), "/commondir")
}
