package staterepo

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"reprise/internal/durable"
	"reprise/internal/git"
	"reprise/internal/pathname"
)

// Tree is a branch and the directory that it is checked out in.
type Tree struct {
	r      *Repo
	Branch string // global, or agent-NAME
	Dir    string
}

// Global is the checkout of what all agents share. It need not exist yet.
func (r *Repo) Global() *Tree {
	return &Tree{r: r, Branch: GlobalBranch, Dir: r.abs("global")}
}

// Agent is the agent's name, "" of the branch global.
func (t *Tree) Agent() string {
	name, _ := strings.CutPrefix(t.Branch, agentPrefix)
	if t.Branch == GlobalBranch {
		return ""
	}
	return name
}

func (t *Tree) ref() string   { return heads + t.Branch }
func (t *Tree) admin() string { return filepath.Join(t.r.Dir(), "worktrees", t.Branch) }
func (t *Tree) git() *git.Git { return t.r.git.At(t.admin(), t.Dir) }

// A checkout is git's linked worktree: a .git file that names a directory among
// the repository's worktrees, which names the checkout back. They are written
// here and not by `git worktree add`, because that refuses a directory with files
// in it, and cannot be gone on with when it was killed.
func (t *Tree) pointers() [][2]string {
	return [][2]string{
		{filepath.Join(t.admin(), "commondir"), "../..\n"},
		{filepath.Join(t.admin(), "HEAD"), "ref: " + t.ref() + "\n"},
		{filepath.Join(t.admin(), "gitdir"), filepath.Join(t.Dir, ".git") + "\n"},
		{filepath.Join(t.Dir, ".git"), "gitdir: " + t.admin() + "\n"},
	}
}

// linked says that both ends are there and name each other.
func (t *Tree) linked() bool {
	for _, p := range t.pointers() {
		data, err := durable.Read(p[0])
		if err != nil || string(data) != p[1] && filepath.Base(p[0]) != "HEAD" {
			return false // a HEAD that someone moved to another branch is theirs
		}
	}
	return true
}

// NoLink refuses a checkout at, or directly below, a symbolic link: the code's repository
// may have one committed at .reprise or .reprise/agent, and what is written through it
// lands wherever its author wanted. Only the two last parts of the path are of the
// repository; what leads to the checkout of the code is the user's own.
func NoLink(dir string) error {
	look := []string{dir}
	if above := filepath.Dir(dir); filepath.Base(above) == ".reprise" {
		look = []string{above, dir}
	}
	for _, path := range look {
		fi, err := os.Lstat(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		if fi.Mode()&(fs.ModeSymlink|fs.ModeIrregular) != 0 { // irregular: a junction of Windows
			to, _ := os.Readlink(path)
			return fmt.Errorf("%w: %s leads to %q, and an agent's state is kept in the checkout itself; remove it (`git rm --cached` where it is committed), and reprise makes a directory there", ErrLink, path, to)
		}
	}
	return nil
}

// link writes the ends; the checkout's own is the last.
func (t *Tree) link() error { return t.linkEnds(len(t.pointers())) }

// linkThere writes the repository's end only: the checkout counts as none, until [Tree.link]
// writes the other one.
func (t *Tree) linkThere() error { return t.linkEnds(len(t.pointers()) - 1) }

func (t *Tree) linkEnds(n int) error {
	if err := NoLink(t.Dir); err != nil {
		return err
	}
	if fi, err := os.Lstat(filepath.Join(t.Dir, ".git")); err == nil && !fi.Mode().IsRegular() {
		return fmt.Errorf("%s is a repository of its own; move its .git away, or its files elsewhere", t.Dir)
	}
	var files []durable.File
	for _, p := range t.pointers()[:n] {
		data, err := durable.Read(p[0])
		if err == nil && string(data) == p[1] {
			continue
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		files = append(files, durable.File{Path: p[0], Data: []byte(p[1]), Perm: 0o644})
	}
	return t.r.o.Disk.WriteSeveral(files, dirPerm, t.admin(), t.Dir)
}

// tip is the commit that the branch is at, "" when there is none.
func (r *Repo) tip(ctx context.Context, ref string) (string, error) {
	list, err := r.git.Objects(ctx, ref)
	if err != nil {
		return "", err
	}
	return list[0].ID, nil
}

// CheckName tells what is wrong with an agent's name: it becomes a branch and a
// directory on every system, hence one case and no spaces.
func CheckName(name string) error {
	bad := func(why string) error { return fmt.Errorf("%w: %q %s", ErrName, name, why) }
	if name == "" || len(name) > 63 {
		return bad("is not 1 to 63 letters")
	}
	for i, c := range []byte(name) {
		inner := c == '.' || c == '_' || c == '-'
		if !(c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || inner && i > 0 && i < len(name)-1) {
			return bad("has other characters than lower-case letters, digits, '-', '_' and '.', or ends in one of these")
		}
	}
	if strings.Contains(name, "..") || strings.HasSuffix(name, ".lock") {
		return bad("is one that git does not take for a branch")
	}
	return nil
}

// seeds are the files that a new agent's state begins with.
func seeds() map[string]string {
	return map[string]string{
		"scratch.md": "", "context.md": "", "changelog.md": "# Changelog\n", "learnings.md": "# Learnings\n", "decisions.md": "# Decisions\n",
	}
}

// Find is the agent's state that is checked out at dir; nil when there is none of
// this repository.
func (r *Repo) Find(dir string) (*Tree, error) {
	if err := NoLink(dir); err != nil {
		return nil, fmt.Errorf("look at the agent's state: %w", err)
	}
	data, err := durable.Read(filepath.Join(dir, ".git"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look at the agent's state: %w", err)
	}
	admin, ok := strings.CutPrefix(strings.TrimRight(string(data), "\r\n"), "gitdir: ")
	branch := filepath.Base(filepath.FromSlash(admin))
	if !ok || CheckName(strings.TrimPrefix(branch, agentPrefix)) != nil || !strings.HasPrefix(branch, agentPrefix) {
		return nil, fmt.Errorf("%s is no state of this project: its .git names %s", dir, admin)
	}
	t := &Tree{r: r, Branch: branch, Dir: dir}
	if !pathname.Same(admin, t.admin()) && filepath.Base(filepath.Dir(filepath.Dir(filepath.FromSlash(admin)))) != "state.git" {
		return nil, fmt.Errorf("%s is no state of this project: its .git names %s", dir, admin)
	}
	return t, nil
}

// Open returns the agent's state at dir and mends its links, where the code
// checkout or the repository was moved. Nil when there is none.
func (r *Repo) Open(ctx context.Context, dir string) (*Tree, error) {
	t, err := r.Find(dir)
	if t == nil || err != nil {
		return nil, err
	}
	if _, err := r.Ensure(ctx); err != nil {
		return nil, err
	}
	if t.linked() {
		return t, nil
	}
	unlock, err := r.lock(ctx, "state.lock")
	if err != nil {
		return nil, fmt.Errorf("link the agent's state again: %w", err)
	}
	defer unlock()
	if at := t.where(); at != "" && !pathname.Same(at, dir) && fileExists(filepath.Join(at, ".git")) {
		return nil, fmt.Errorf("%w: %s is checked out in %s, and %s is a copy of it; remove the copy's .reprise/agent, and reprise makes it one of its own",
			ErrBranchExists, t.Branch, at, dir)
	}
	if err := t.link(); err != nil {
		return nil, fmt.Errorf("link the agent's state again: %w", err)
	}
	return t, nil
}

// where is the directory that the repository believes the branch to be checked
// out in, "" when it is nowhere.
func (t *Tree) where() string {
	data, err := durable.Read(filepath.Join(t.admin(), "gitdir"))
	if err != nil {
		return ""
	}
	return filepath.Dir(filepath.FromSlash(strings.TrimRight(string(data), "\r\n")))
}

// CreateAgent makes an agent's branch and checks it out at dir, which must be
// empty or missing. A name that is in use is ErrBranchExists, unless attach is
// set and the branch is checked out nowhere (its code checkout is gone): then it
// goes on from there. Called again after a kill it finishes what was begun.
func (r *Repo) CreateAgent(ctx context.Context, name, dir string, attach bool) (*Tree, error) {
	if err := CheckName(name); err != nil {
		return nil, fmt.Errorf("make agent's state: %w", err)
	}
	if _, err := r.Ensure(ctx); err != nil {
		return nil, err
	}
	unlock, err := r.lock(ctx, "state.lock")
	if err != nil {
		return nil, fmt.Errorf("make agent's state: %w", err)
	}
	defer unlock()
	t := &Tree{r: r, Branch: agentPrefix + name, Dir: dir}
	if err := t.create(ctx, attach); err != nil {
		return nil, fmt.Errorf("make state of agent %s: %w", name, err)
	}
	return t, nil
}

func (t *Tree) create(ctx context.Context, attach bool) error {
	r := t.r
	refs, err := r.git.Refs(ctx, t.ref(), tracking+t.Branch)
	if err != nil {
		return err
	}
	if err := NoLink(t.Dir); err != nil { // before there is a branch for it
		return err
	}
	at := t.where()
	begun := at != "" && pathname.Same(filepath.Dir(at), filepath.Dir(t.Dir)) && filepath.Base(at) == filepath.Base(t.Dir)
	live := at != "" && !begun && fileExists(filepath.Join(at, ".git"))
	have := refs[t.ref()]
	switch {
	case live:
		return fmt.Errorf("%w: %s is checked out in %s; work there, or take another name", ErrBranchExists, t.Branch, at)
	case have != "" && !begun && !attach:
		return fmt.Errorf("%w: branch %s; take another name, or pass --attach to go on with it here", ErrBranchExists, t.Branch)
	case have == "" && refs[tracking+t.Branch] != "" && !attach:
		return fmt.Errorf("%w: the remote has %s, of another machine; take another name, or pass --attach to go on with it here", ErrBranchExists, t.Branch)
	case have == "" && refs[tracking+t.Branch] != "":
		have = refs[tracking+t.Branch]
		if err := r.git.MoveRef(ctx, t.ref(), have, "", "reprise: attach"); err != nil {
			return err
		}
	}
	if err := t.empty(begun); err != nil {
		return err
	}
	if have == "" {
		if have, err = rootCommit(r.git, r.o.begun()); err != nil {
			return err
		}
		// The repository's end first: it is what a killed making is known by.
		if err := t.linkThere(); err != nil {
			return err
		}
		// With what it begins with, so that the branch moves once.
		if have, err = t.first(have); err != nil {
			return err
		}
		if err := r.git.MoveRef(ctx, t.ref(), have, "", "reprise: made"); err != nil {
			return err
		}
	} else if err := t.linkThere(); err != nil {
		return err
	}
	if err := t.fill(ctx, have); err != nil {
		return err
	}
	// And the checkout's own last: whoever finds that finds a branch with it, and all its
	// files; before that it counts as not made, and whoever needs it makes it.
	return t.link()
}

// first is the commit of what a new agent begins with, upon the one that all have in
// common. No ref names it yet.
func (t *Tree) first(root string) (string, error) {
	files := map[string]git.Entry{}
	for name, text := range seeds() {
		id, err := t.r.git.Store("blob", []byte(text))
		if err != nil {
			return "", err
		}
		files[name] = git.Entry{Mode: git.ModeFile, ID: id}
	}
	return t.commit(files, []string{root}, "", "State of agent "+t.Agent())
}

// empty refuses a directory with files that are not ours to mix with.
func (t *Tree) empty(begun bool) error {
	list, err := durable.ReadDir(t.Dir)
	if errors.Is(err, fs.ErrNotExist) || err == nil && (len(list) == 0 || begun) {
		return nil
	}
	if err != nil {
		return err
	}
	if len(list) == 1 && list[0].Name() == ".git" {
		return nil // of a checkout whose repository went
	}
	return fmt.Errorf("%s has files in it already, such as %s; move them away first", t.Dir, list[0].Name())
}

// fill puts a commit's files, or what a new agent begins with, into the checkout.
// What is there stays.
func (t *Tree) fill(ctx context.Context, commit string) error {
	r := t.r
	files, err := r.git.Files(ctx, commit)
	if err != nil {
		return err
	}
	var names, ids []string
	for name, e := range files {
		if e.Mode != git.ModeLink && e.Mode != git.ModeRepo && portable(name) {
			names, ids = append(names, name), append(ids, e.ID)
		}
	}
	blobs, err := r.git.Objects(ctx, ids...)
	if err != nil {
		return err
	}
	var list []durable.File
	add := func(name string, data []byte, perm fs.FileMode) {
		if path := filepath.Join(t.Dir, filepath.FromSlash(name)); !fileExists(path) {
			list = append(list, durable.File{Path: path, Data: data, Perm: perm})
		}
	}
	for i, name := range names {
		perm := filePerm
		if files[name].Mode == git.ModeExec {
			perm = 0o700
		}
		add(name, blobs[i].Data, perm)
	}
	for name, text := range seeds() {
		if _, ok := files[name]; !ok {
			add(name, []byte(text), filePerm)
		}
	}
	var dirs []string
	for _, dir := range []string{"artifacts", "notes", "checkpoints"} {
		dirs = append(dirs, filepath.Join(t.Dir, dir))
	}
	if err := r.o.Disk.WriteSeveral(list, dirPerm, dirs...); err != nil {
		return err
	}
	_, err = t.Save(ctx, "", "State of agent "+t.Agent())
	return err
}

// AgentInfo is one agent that has state in the repository.
type AgentInfo struct {
	Name   string `json:"name"`
	Commit string `json:"commit"`
	Dir    string `json:"dir,omitempty"` // where it is checked out on this machine; "" = nowhere
	Here   bool   `json:"here"`          // the branch is here, not only known from the remote
	// Ended says that it works in no checkout any more: of this machine, or as the
	// machine that it worked on told the remote.
	Ended bool `json:"ended,omitempty"`
	// Consolidated says that all of it that is to last is on global; see [Repo.Consolidate].
	Consolidated bool `json:"consolidated,omitempty"`

	tracked string    // the remote's branch, "" for none
	endedAt string    // the commit that the remote was told so of
	doneAt  [2]string // those that were consolidated, as is known here and as the remote has it
}

// Agents lists the agents that have state, those of other machines too as far as
// they were fetched, in order of their names.
func (r *Repo) Agents(ctx context.Context) ([]AgentInfo, error) {
	if !r.Exists() {
		return nil, nil
	}
	refs, err := r.git.Refs(ctx, heads+agentPrefix+"*", tracking+agentPrefix+"*", doneRefs, endedThere, doneThere)
	if err != nil {
		return nil, err
	}
	var out []AgentInfo
	for _, name := range sortedAgents(refs) {
		t := &Tree{r: r, Branch: agentPrefix + name}
		a := AgentInfo{
			Name: name, Commit: refs[t.ref()], Here: refs[t.ref()] != "",
			tracked: refs[tracking+t.Branch], endedAt: refs[endedThere+t.Branch], doneAt: [2]string{refs[doneRefs+t.Branch], refs[doneThere+t.Branch]},
		}
		if !a.Here {
			a.asThere()
		} else {
			if t.works() {
				a.Dir = t.where()
			}
			a.Ended, a.Consolidated = a.Dir == "", slices.Contains(a.doneAt[:], a.Commit)
		}
		out = append(out, a)
	}
	return out, nil
}

// asThere makes it what the remote says of the agent.
func (a *AgentInfo) asThere() {
	a.Here, a.Commit = false, a.tracked
	a.Ended, a.Consolidated = a.endedAt == a.tracked, slices.Contains(a.doneAt[:], a.tracked)
}

// follow is asThere for an agent that went on with its work on another machine, after
// it left this one.
func (r *Repo) follow(ctx context.Context, a *AgentInfo) error {
	if !a.Here || a.Dir != "" || a.tracked == "" || a.tracked == a.Commit {
		return nil
	}
	base, err := r.git.MergeBase(ctx, a.Commit, a.tracked)
	if err == nil && base == a.Commit {
		a.asThere()
	}
	return err
}

func readSmall(path string) (string, error) {
	data, err := durable.Read(path)
	return string(data), err
}
