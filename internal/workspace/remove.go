package workspace

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"reprise/internal/durable"
	"reprise/internal/git"
	"reprise/internal/pathname"
	"reprise/internal/proc"
	"reprise/internal/staterepo"
	"reprise/internal/verify/tree"
)

// RemoveOptions say what a removal may do.
type RemoveOptions struct {
	// Save keeps under a ref of its own what is in the workspace and nowhere else, and
	// goes on. Without it such a workspace is refused with a list.
	Save bool `json:"save,omitempty"`
	// DropIgnored lets go what git ignores and is too large to be kept.
	DropIgnored bool `json:"drop_ignored,omitempty"`
	// DeleteBranch takes the code branch away, too, also where it has commits of its
	// own: these are kept under the ref.
	DeleteBranch bool `json:"delete_branch,omitempty"`
	// KeepBranch lets the code branch stay wherever it has moved on, also where all its
	// commits are on others by now: somebody is to find the work under its name.
	KeepBranch bool `json:"keep_branch,omitempty"`
	// Ended says that the agent's work is done, too: see [staterepo.Repo.Conclude].
	Ended bool `json:"ended,omitempty"`

	// At and Done are of a removal that is under way: when it began, and what it has
	// kept.
	At   time.Time `json:"at,omitzero"`
	Done *Removed  `json:"done,omitempty"`
}

// Removed says what became of a workspace.
type Removed struct {
	Name string `json:"name"`
	Dir  string `json:"dir"`
	// Saved is the ref that keeps what was in it, "" where that was nothing.
	Saved string `json:"saved,omitempty"`
	// Kept is the directory that files are in now that git ignores.
	Kept string `json:"kept,omitempty"`
	// Branch stays, unless BranchGone; BranchAt is the commit it was at.
	Branch     string `json:"branch"`
	BranchAt   string `json:"branch_at,omitempty"`
	BranchGone bool   `json:"branch_gone"`
	// AgentBranch is the branch of the agent's state where that stays with what was
	// written to it, "" where nothing was, or it is gone.
	AgentBranch string   `json:"agent_branch,omitempty"`
	Notes       []string `json:"notes,omitempty"`
}

// Loss is something that is in a workspace and nowhere else.
type Loss struct {
	// Kind is changed, untracked, commits, stash, learnings, locked, ignored, repository
	// or submodule.
	Kind  string   `json:"kind"`
	What  string   `json:"what"` // for people
	Items []string `json:"items,omitempty"`
	// Save says what becomes of it with Save, "" where nothing can be done by us.
	Save string `json:"save,omitempty"`
}

// LossError refuses a removal.
type LossError struct {
	Name   string
	Losses []Loss
}

// mostItems of a loss are named in the error's text.
const mostItems = 8

func (e *LossError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "workspace %s has what is nowhere else:", e.Name)
	savable := true
	for _, l := range e.Losses {
		b.WriteString("\n  " + l.What)
		for i, item := range l.Items {
			if i == mostItems {
				fmt.Fprintf(&b, "\n    and %d more", len(l.Items)-i)
				break
			}
			b.WriteString("\n    " + item)
		}
		savable = savable && l.Save != ""
	}
	if savable {
		b.WriteString("\npass --yes to keep it and remove the workspace, or save it first")
	} else {
		b.WriteString("\nsee to these first; what can be kept is kept with --yes")
	}
	return b.String()
}

// Losses are what a removal would have to keep, and whether anything of it keeps it
// from being done at all. It commits the agent's state and changes nothing else.
func (m *Manager) Losses(ctx context.Context, name string) ([]Loss, error) {
	w, err := m.Get(name)
	if err != nil {
		return nil, err
	}
	if !m.here(&w) {
		return m.stateLosses(ctx, &w)
	}
	l, _, err := m.losses(ctx, &w, RemoveOptions{})
	return l, err
}

// Remove takes a workspace away: its worktree, the checkout of its agent's state and
// its record. Nothing is lost: what is in it and nowhere else is kept under a ref and
// in a directory (o.Save), or the removal is refused (*LossError). The code branch
// goes if it was made for the workspace and all its commits are elsewhere, too; the
// agent's branch always stays. Whose holder lives is refused (ErrLive).
func (m *Manager) Remove(ctx context.Context, name string, o RemoveOptions) (Removed, error) {
	return m.remove(ctx, name, o, nil)
}

func (m *Manager) remove(ctx context.Context, name string, o RemoveOptions, own []Holder) (Removed, error) {
	w, notes, done, err := m.beginRemoval(ctx, name, o, own)
	if err != nil || done != nil {
		return deref(done), err
	}
	out, err := m.endRemoval(ctx, w)
	if err == nil {
		out.Notes = append(notes, out.Notes...)
	}
	return out, err
}

func deref(r *Removed) Removed {
	if r == nil {
		return Removed{}
	}
	return *r
}

func removalError(name string, err error) error {
	var l *LossError
	if errors.As(err, &l) {
		return err // it names the workspace
	}
	return fmt.Errorf("remove workspace %s: %w", name, err)
}

// beginRemoval writes down that a workspace is taken away, after a look at what stands
// against it. From then on it is finished by whoever comes next, should this process end.
// done is what became of one whose removal had been cut off, and was finished just now.
func (m *Manager) beginRemoval(ctx context.Context, name string, o RemoveOptions, own []Holder) (w Workspace, notes []string, done *Removed, err error) {
	mended, err := m.mend(ctx)
	for _, d := range mended {
		notes = append(notes, d.notes...)
		if d.name == name && d.err != nil {
			return w, notes[:len(notes)-1], nil, removalError(name, d.err)
		}
		if d.name == name {
			out := Removed{Name: name}
			if d.gone != nil {
				out = *d.gone
			}
			out.Notes = notes
			return w, notes, &out, nil
		}
	}
	if err != nil {
		return w, notes, nil, removalError(name, err)
	}
	if w, err = m.Get(name); err != nil {
		return w, notes, nil, removalError(name, err)
	}
	if err := m.removable(ctx, &w, o, own); err != nil {
		return w, notes, nil, removalError(name, err)
	}
	self, err := proc.Self()
	if err != nil {
		return w, notes, nil, removalError(name, err)
	}
	o.At, o.Done = m.o.Env.Now().UTC().Truncate(time.Millisecond), nil
	w, err = m.change(ctx, name, func(w *Workspace) error {
		if w.State != Ready {
			return ErrBusy
		}
		if err := m.unheld(w, own); err != nil {
			return err
		}
		w.State, w.By, w.Removal = Removing, &self, &o
		return nil
	})
	if err != nil {
		return w, notes, nil, removalError(name, err)
	}
	return w, notes, nil, nil
}

func (m *Manager) endRemoval(ctx context.Context, w Workspace) (Removed, error) {
	out, err := m.carryOut(ctx, w)
	if err != nil {
		return out, removalError(w.Name, err)
	}
	return out, nil
}

// unheld wants nobody but these to work in the workspace.
func (m *Manager) unheld(w *Workspace, own []Holder) error {
	for _, h := range m.live(w) {
		if !slices.ContainsFunc(own, h.same) {
			return fmt.Errorf("%w: %s, since %s; end that first", ErrLive, h, h.Since.Format(time.RFC3339))
		}
	}
	return nil
}

// removable finds what stands against a removal.
func (m *Manager) removable(ctx context.Context, w *Workspace, o RemoveOptions, own []Holder) error {
	if w.State != Ready {
		return ErrBusy
	}
	if err := m.unheld(w, own); err != nil {
		return err
	}
	var losses []Loss
	var err error
	if m.here(w) {
		if who := inside(w.Dir, m.o.Env.Dir); len(who) > 0 {
			return fmt.Errorf("%w: %s has its directory there; leave it first", ErrLive, strings.Join(who, ", "))
		}
		if data, err := durable.Read(filepath.Join(git.LinkedDir(w.Dir), "locked")); err == nil {
			return fmt.Errorf("%w: the worktree is locked (%s); `git worktree unlock %s` unlocks it", ErrRefused, strings.TrimSpace(string(data)), w.Dir)
		}
		if o.Save {
			return nil // what cannot be kept is found when the rest is, and then nothing is taken away
		}
		losses, _, err = m.losses(ctx, w, o)
	} else {
		losses, err = m.stateLosses(ctx, w)
	}
	if err != nil {
		return err
	}
	stop := slices.ContainsFunc(losses, func(l Loss) bool { return l.Save == "" })
	if stop || len(losses) > 0 && !o.Save {
		return &LossError{Name: w.Name, Losses: losses}
	}
	return nil
}

// losses looks at a worktree that is there.
func (m *Manager) losses(ctx context.Context, w *Workspace, o RemoveOptions) ([]Loss, *work, error) {
	if err := m.saveAgent(ctx, w); err != nil {
		return nil, nil, err
	}
	k, err := m.look(ctx, w)
	if err != nil {
		return nil, nil, err
	}
	var out []Loss
	add := func(kind string, items []string, one, many, save string) {
		switch {
		case len(items) == 1:
			out = append(out, Loss{kind, "1 " + one, items, save})
		case len(items) > 1:
			out = append(out, Loss{kind, fmt.Sprintf("%d %s", len(items), many), items, save})
		}
	}
	add("changed", k.changed, "changed file", "changed files", "kept under a ref")
	add("untracked", k.untried, "untracked file", "untracked files", "kept under a ref")
	if k.branch == "" && k.head != "" {
		lost, err := m.lost(ctx, w, []string{k.head}, "")
		if err != nil {
			return nil, nil, err
		}
		add("commits", lost, "commit on no branch, with what leads to it", "commits on no branch, with what leads to them", "kept under a ref")
	}
	add("repository", k.repos, "repository of its own in it; move it away", "repositories of their own in it; move them away", "")
	subs, err := m.submodules(ctx, w, k)
	if err != nil {
		return nil, nil, err
	}
	if k.modules, err = m.modules(ctx, w, k); err != nil {
		return nil, nil, err
	}
	x, err := m.extras(w, k)
	if err != nil {
		return nil, nil, err
	}
	if !o.DropIgnored {
		add("ignored", x.large, "ignored file or directory that is too large to be kept; move it away, or pass --drop-ignored",
			"ignored files and directories that are too large to be kept; move them away, or pass --drop-ignored", "")
	}
	broken, stashes, branches := moduleLosses(k.modules, subs)
	add("stash", stashes, "stash of a submodule", "stashes of submodules", "kept as a git bundle")
	add("commits", branches, "branch of a submodule, with commits that are nowhere else", "branches of submodules, with commits that are nowhere else", "kept as a git bundle")
	add("submodule", broken, "submodule that cannot be kept; move it away", "submodules that cannot be kept; move them away", "")
	add("submodule", subs, "submodule with work that its remote does not have; push it first", "submodules with work that their remotes do not have; push them first", "")
	state, err := m.stateLosses(ctx, w)
	return append(out, state...), k, err
}

// saveAgent commits the agent's state as it is on disk.
func (m *Manager) saveAgent(ctx context.Context, w *Workspace) error {
	t, err := m.o.State.Open(ctx, w.AgentDir)
	if t == nil || err != nil {
		return err
	}
	_, err = t.Save(ctx, w.Name, "As it was in the workspace")
	return err
}

// stateLosses are what the agent learnt and decided and nobody else knows.
func (m *Manager) stateLosses(ctx context.Context, w *Workspace) ([]Loss, error) {
	list, err := m.o.State.Unpromoted(ctx, w.Name)
	if errors.Is(err, staterepo.ErrNoAgent) {
		return nil, nil
	}
	if err != nil || len(list) == 0 {
		return nil, err
	}
	var items []string
	for _, e := range list {
		text, _, _ := strings.Cut(strings.TrimSpace(e.Entry.Text), "\n")
		items = append(items, e.Type+": "+text)
	}
	return []Loss{{
		Kind: "learnings", Items: items, Save: "stays on branch " + w.AgentBranch(),
		What: fmt.Sprintf("%s not promoted (`reprise context promote --agent %s`)", lasting(len(list)), w.Name),
	}}, nil
}

// lasting and files are so many of these, in words.
func lasting(n int) string {
	if n == 1 {
		return "1 learning or decision"
	}
	return fmt.Sprintf("%d learnings and decisions", n)
}

func files(n int) string {
	if n == 1 {
		return "1 file is"
	}
	return fmt.Sprintf("%d files are", n)
}

// gone is where a worktree lies while it is deleted: by one rename a workspace is
// there whole, or not at all.
func gone(w *Workspace) string {
	return filepath.Join(filepath.Dir(w.Dir), "."+filepath.Base(w.Dir)+".reprise-removed")
}

// carryOut does a removal that is written down, from wherever it was left.
func (m *Manager) carryOut(ctx context.Context, w Workspace) (Removed, error) {
	if w.Removal == nil {
		w.Removal = &RemoveOptions{Save: true, At: m.o.Env.Now().UTC().Truncate(time.Millisecond)}
	}
	if w.Removal.Done == nil || m.here(&w) { // somebody may have worked there since
		done, err := m.salvage(ctx, &w)
		if err != nil {
			if Passing(err) { // it can be finished later, by whoever comes next
				return Removed{}, m.leave(ctx, w.Name, err)
			}
			return Removed{}, errors.Join(err, m.giveUp(context.WithoutCancel(ctx), &w))
		}
		removal := w.Removal
		if w, err = m.change(ctx, w.Name, func(r *Workspace) error {
			if r.Removal == nil { // of a record that says no more than that it was to be removed
				r.Removal = removal
			}
			r.Removal.Done = done
			return nil
		}); err != nil {
			return Removed{}, m.leave(ctx, w.Name, err)
		}
	}
	out := *w.Removal.Done
	err := m.deleteAll(ctx, &w, &out)
	if err != nil {
		err = m.leave(ctx, w.Name, err)
	}
	return out, err
}

// giveUp makes a workspace usable again whose removal found something in its way.
func (m *Manager) giveUp(ctx context.Context, w *Workspace) error {
	_, err := m.change(ctx, w.Name, func(w *Workspace) error { w.State, w.By, w.Removal = Ready, nil, nil; return nil })
	return err
}

// salvage keeps everything that is in the workspace and nowhere else.
func (m *Manager) salvage(ctx context.Context, w *Workspace) (*Removed, error) {
	out := &Removed{Name: w.Name, Dir: w.Dir, Branch: w.Branch}
	refs, err := m.repo(w).Refs(ctx, "refs/heads/"+w.Branch)
	if err != nil {
		return nil, err
	}
	out.BranchAt = refs["refs/heads/"+w.Branch]
	var heads []string
	k := &work{}
	if m.here(w) {
		losses, look, err := m.losses(ctx, w, *w.Removal)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(losses, func(l Loss) bool { return l.Save == "" || !w.Removal.Save }) {
			return nil, &LossError{Name: w.Name, Losses: losses}
		}
		k, heads = look, look.heads
		if k.branch == "" && k.head != "" {
			heads = append(heads, k.head)
		}
		x, err := m.extras(w, k)
		if err != nil {
			return nil, err
		}
		left, err := m.agentLeft(ctx, w)
		if err != nil {
			return nil, err
		}
		if x.files = append(x.files, left...); len(x.files) > 0 {
			out.Kept = m.keptAt(w)
			if err := m.keep(w, x.files, out.Kept); err != nil {
				return nil, fmt.Errorf("keep ignored files: %w", err)
			}
			out.Notes = append(out.Notes, fmt.Sprintf("of what git ignores, %s kept in %s", files(len(x.files)), out.Kept))
		}
		if len(x.dropped)+len(x.large) > 0 {
			out.Notes = append(out.Notes, "not kept, for tools fill them again: "+strings.Join(append(x.dropped, x.large...), " "))
		}
	} else {
		if fileThere(w.AgentDir) {
			if err := m.saveAgent(ctx, w); err != nil {
				return nil, err
			}
		}
		if k, err = m.lookGone(ctx, w); err != nil {
			return nil, err
		}
		heads = k.heads
		if fileThere(w.Dir) {
			out.Notes = append(out.Notes, w.Dir+" is no worktree of the repository any more, and was left as it is: take what is of use, and remove it")
		}
	}
	if err := m.salvageModules(ctx, w, k, out); err != nil {
		return nil, err
	}
	open, err := m.o.State.Unfinished(ctx, w.Name)
	if err != nil && !errors.Is(err, staterepo.ErrNoAgent) {
		return nil, err
	}
	for _, h := range open {
		out.Notes = append(out.Notes, fmt.Sprintf("%s had accepted handoff %s (%s) and not said that it ended its work; if that is not done, hand it on: `reprise handoff`", w.Name, h.ID, h.Title()))
	}
	if err := m.planBranchEnd(ctx, w, out, &heads); err != nil {
		return nil, err
	}
	if !out.BranchGone {
		// Most of what the worktree names is on its own branch, which stays.
		g := m.repo(w)
		heads = slices.DeleteFunc(heads, func(id string) bool { return g.Contains(out.BranchAt, id) })
	}
	lost, err := m.lost(ctx, w, heads, exceptBranch(w, out))
	if err != nil {
		return nil, err
	}
	must := out.Kept != ""
	if must {
		if must, err = m.elsewhere(ctx, w, k, out); err != nil {
			return nil, err
		}
	}
	if out.Saved, err = m.saveAny(ctx, w, k, lost, must); err != nil {
		return nil, err
	}
	return out, nil
}

// salvageModules keeps what submodules have in git directories that go.
func (m *Manager) salvageModules(ctx context.Context, w *Workspace, k *work, out *Removed) error {
	labels, err := m.keepModules(ctx, k.modules, m.keptAt(w))
	if err != nil || len(labels) == 0 {
		return err
	}
	out.Kept = m.keptAt(w)
	out.Notes = append(out.Notes, fmt.Sprintf("stashes, branches and what was amended or reset away in submodule %s are kept as git bundles in %s", strings.Join(labels, ", "), filepath.Join(out.Kept, modulesDir)))
	return nil
}

func exceptBranch(w *Workspace, out *Removed) string {
	if out.BranchGone {
		return w.Branch
	}
	return ""
}

// planBranchEnd decides whether the code branch goes: then its commits count as ours
// alone.
func (m *Manager) planBranchEnd(ctx context.Context, w *Workspace, out *Removed, heads *[]string) error {
	if out.BranchAt == "" {
		out.BranchGone = true // by somebody else
		return nil
	}
	own, err := m.lost(ctx, w, []string{out.BranchAt}, w.Branch)
	if err != nil {
		return err
	}
	elsewhere, err := m.usedElsewhere(w)
	if err != nil {
		return err
	}
	moved := w.Removal.KeepBranch && out.BranchAt != w.Base
	out.BranchGone = !elsewhere && (w.Removal.DeleteBranch || w.NewBranch && len(own) == 0 && !moved)
	if out.BranchGone {
		*heads = append(*heads, m.branchHeads(w, out.BranchAt)...)
	} else if len(own) > 0 {
		out.Notes = append(out.Notes, "branch "+w.Branch+" stays: it has commits that are nowhere else")
	}
	return nil
}

// usedElsewhere says that another worktree has the branch checked out by now.
func (m *Manager) usedElsewhere(w *Workspace) (bool, error) {
	ref := "refs/heads/" + w.Branch
	if headRef(w.Common) == ref {
		return true, nil
	}
	list, err := durable.ReadDir(filepath.Join(w.Common, "worktrees"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return false, err
	}
	for _, e := range list {
		admin := filepath.Join(w.Common, "worktrees", e.Name())
		if headRef(admin) == ref && !pathname.Same(checkedOut(admin), w.Dir) {
			return true, nil
		}
	}
	return false, nil
}

// agentLeft are files of the agent's state that its repository does not keep.
func (m *Manager) agentLeft(ctx context.Context, w *Workspace) ([]string, error) {
	if git.LinkedDir(w.AgentDir) == "" {
		return nil, nil
	}
	o := m.gitOptions()
	o.Programs = nil // the repository is reprise's own, with a merge driver of its own
	out, err := git.New(w.AgentDir, o).Run(ctx, "--no-optional-locks", "status", "--porcelain=v1", "-z", "--untracked-files=all", "--ignored=matching", "--no-renames")
	if err != nil {
		return nil, err
	}
	rel, err := filepath.Rel(w.Dir, w.AgentDir)
	if err != nil {
		return nil, err
	}
	var files []string
	for f := range strings.SplitSeq(string(out), "\x00") {
		if len(f) < 4 || strings.HasPrefix(filepath.Base(f[3:]), ".reprise-") || strings.HasSuffix(f, ".lock") || strings.HasSuffix(f, ".tmp") {
			continue
		}
		name := filepath.Join(rel, filepath.FromSlash(f[3:]))
		if fi, err := os.Lstat(filepath.Join(w.Dir, name)); err == nil && fi.Mode().IsRegular() {
			files = append(files, filepath.ToSlash(name))
		}
	}
	return files, nil
}

// lookGone is what git still has of a worktree whose directory is gone: its HEAD and
// what was staged.
func (m *Manager) lookGone(ctx context.Context, w *Workspace) (*work, error) {
	k := &work{admin: findAdmin(w.Common, w.Dir)}
	if k.admin == "" {
		return k, nil // that is gone, too
	}
	var err error
	if k.modules, err = m.modules(ctx, w, k); err != nil {
		return nil, err
	}
	if i := slices.IndexFunc(k.modules, func(x *module) bool { return x.broken != "" }); i >= 0 {
		return nil, fmt.Errorf("submodule %s cannot be kept: %s; its git directory is %s: move it away", k.modules[i].label, k.modules[i].broken, k.modules[i].dir)
	}
	k.branch, k.heads = headRef(k.admin), ownHeads(k.admin)
	if k.branch == "" {
		if data, err := durable.Read(filepath.Join(k.admin, "HEAD")); err == nil {
			k.head = strings.TrimSpace(string(data))
			k.heads = append(k.heads, k.head)
		}
		return k, nil
	}
	refs, err := m.repo(w).Refs(ctx, k.branch)
	if err != nil {
		return nil, err
	}
	k.head = refs[k.branch]
	return k, nil
}

// elsewhere says that a workspace which is made anew by its name alone would not be where
// this one was: its branch has another name, it was on none, or the branch goes and its
// commits are named by what an earlier removal kept and by nothing else. Ignored files that
// are kept tell nothing of that, so they need a ref beside them that does.
func (m *Manager) elsewhere(ctx context.Context, w *Workspace, k *work, out *Removed) (bool, error) {
	if k.branch != "refs/heads/"+w.Name {
		return true, nil
	}
	if !out.BranchGone || k.head == "" {
		return false, nil
	}
	list, err := m.repo(w).Run(ctx, "rev-list", "--max-count=1", k.head, "--not", "--exclude="+w.Branch, "--branches", "--tags", "--remotes")
	return len(list) > 0, err
}

// saveAny is save, also where the worktree is gone: then what was staged is all that
// can be kept.
func (m *Manager) saveAny(ctx context.Context, w *Workspace, k *work, lost []string, must bool) (string, error) {
	if m.here(w) {
		return m.save(ctx, w, k, lost, must)
	}
	if k.admin == "" || k.head == "" {
		return "", nil
	}
	index := filepath.Join(k.admin, "index")
	if _, err := os.Lstat(index); err != nil && len(lost) == 0 {
		return "", nil
	}
	g := m.repo(w).WithIndex(index)
	staged, err := g.Run(ctx, "write-tree")
	if err != nil {
		staged = nil // a merge that was not ended
	}
	had, err := treeOf(ctx, g, k.head)
	if err != nil {
		return "", err
	}
	id := strings.TrimSpace(string(staged))
	if id == "" {
		id = had
	}
	if id == had && len(lost) == 0 {
		return "", nil
	}
	return m.saveTrees(ctx, w, k, g, saved{head: k.head, staged: id, whole: id, lost: lost})
}

// deleteAll takes away what was kept before. Each step may have been done already.
func (m *Manager) deleteAll(ctx context.Context, w *Workspace, out *Removed) error {
	aside := gone(w)
	if m.here(w) {
		if err := tree.RemoveAll(aside); err != nil {
			return err
		}
		if err := m.o.Disk.Rename(w.Dir, aside); err != nil {
			return fmt.Errorf("%w; close what has files open there, and run it again", err)
		}
	}
	if admin := findAdmin(w.Common, w.Dir); admin != "" {
		if err := m.o.Disk.RemoveAll(admin); err != nil {
			return err
		}
	}
	if out.BranchGone && out.BranchAt != "" {
		if err := m.dropBranch(ctx, w, out.BranchAt); errors.Is(err, git.ErrMoved) {
			if refs, rerr := m.repo(w).Refs(ctx, "refs/heads/"+w.Branch); rerr == nil && len(refs) > 0 {
				out.BranchGone = false
				out.Notes = append(out.Notes, "branch "+w.Branch+" stays: it moved meanwhile")
			}
		} else if err != nil {
			return err
		}
	}
	if err := m.o.State.Detach(ctx, w.Name, w.AgentDir); err != nil {
		return err
	}
	if w.Removal != nil && !w.Removal.Ended {
		// An agent that has nothing to be promoted is over with its workspace, until
		// somebody goes on with it; its branch stays until `state gc`.
		if list, err := m.o.State.Unpromoted(ctx, w.Name); err == nil && len(list) == 0 {
			if err := m.o.State.Consolidate(ctx, w.Name); err != nil && !errors.Is(err, staterepo.ErrNoAgent) {
				out.Notes = append(out.Notes, "agent "+w.Name+" stays in the team: "+err.Error())
			}
		}
	}
	if w.Removal != nil && w.Removal.Ended {
		// What the agent knows is kept either way.
		left, err := m.o.State.Conclude(ctx, w.Name)
		switch {
		case err != nil:
			out.Notes = append(out.Notes, "agent "+w.Name+" stays in the team: "+err.Error())
		case left > 0:
			out.Notes = append(out.Notes, fmt.Sprintf("agent %s stays in the team, with %s to promote (`reprise context promote --agent %s`)", w.Name, lasting(left), w.Name))
		}
	}
	if _, written, err := m.o.State.Branch(ctx, w.Name); err == nil && written {
		out.AgentBranch = w.AgentBranch()
	}
	if err := m.o.Disk.Step("remove", aside); err != nil {
		return err
	}
	if err := tree.RemoveAll(aside); err != nil {
		return err
	}
	return m.forget(ctx, w)
}
