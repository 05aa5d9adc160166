// Package staterepo keeps what a project's agents know in a git repository of its
// own, beside the code and never in its history.
//
// There is one bare repository a project, state.git. Its branch global is what
// all agents share and is checked out in the project's global/; each agent has a
// branch agent-NAME, checked out in the code checkout that it works in, at
// .reprise/agent/. The files are the truth: what is on disk is committed as it is,
// by [Tree.Save], and nothing that is not committed yet is ever overwritten.
//
// Files it may write: state.git; in a checked-out directory its .git, what a new
// one begins with, and what a merge brings; where the user asks for it, hooks in the
// repository of the code, and a bundle of a repository that goes. Everything goes
// through durable or the git program.
//
// Locks, in this order: sync.lock in the project's directory (one exchange with a
// remote at a time), state.lock beside it (making the repository and its
// checkouts), then a checkout's change lock (durable), in which memory/ has
// another of its own. Refs are moved by git, from the value that was read, and
// whoever lost that race tries again; so committers take no lock but that of their
// own checkout.
package staterepo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"reprise/internal/durable"
	"reprise/internal/git"
)

// What callers tell apart with errors.Is.
var (
	ErrBranchExists = errors.New("an agent of this name has its state already")
	ErrName         = errors.New("not a name that can be used everywhere")
	ErrNoAgent      = errors.New("no such agent")
	ErrNoRemote     = errors.New("no remote is set")
	ErrLink         = errors.New("a symbolic link is where the agent's state goes")
	ErrBusy         = errors.New("others kept changing the branch")
	ErrHeld         = errors.New("a lock of git's is held")
)

// Names of branches and directories.
const (
	GlobalBranch = "global"
	agentPrefix  = "agent-"
	remoteName   = "origin"
	heads        = "refs/heads/"
	tracking     = "refs/remotes/" + remoteName + "/"
	pendingRefs  = "refs/reprise/merge/"        // a merge that is being put into a checkout
	doneRefs     = "refs/reprise/consolidated/" // an agent's branch as it was when all of it was on global
	keptRefs     = "refs/reprise/kept/"         // branches that gc took away
	endedRefs    = "refs/reprise/ended/"        // on the remote: a branch as it was when its agent worked nowhere any more
	endedThere   = "refs/reprise/there/ended/"  // the remote's, as they were last fetched
	doneThere    = "refs/reprise/there/consolidated/"
	headsThere   = "refs/reprise/there/heads/"
	keptThere    = "refs/reprise/there/kept/"
	formerRefs   = "refs/reprise/former/" // agents of other machines as a remote had them that has them no more
)

const (
	dirPerm  fs.FileMode = 0o700
	filePerm fs.FileMode = 0o600
)

// Options of [New]. Dir, Project, Git.Vars and Now are required.
type Options struct {
	Dir     string // the project's data directory
	Project string
	// Begun is the name that the project had first, where it had another one: by that its
	// repositories have their first commit in common. "" is Project.
	Begun string
	Git   git.Options
	Now   func() time.Time
	Disk  durable.Disk
	// Merge merges a file of the memory; ok false leaves it to be merged by lines.
	// conflicts is how many places stand there twice. May be nil.
	Merge func(path string, base, ours, theirs []byte) (merged []byte, conflicts int, ok bool)
	// AfterWrite is told of each file that a merge, or this package, changed on disk.
	// May be nil.
	AfterWrite func(path string)
	// By is who commits to what all agents share, where a call does not say; "" is a
	// person.
	By string
	// Changed is told of each change that was committed. May be nil.
	Changed func(ctx context.Context, c Change)
}

// Repo is a project's state repository. It holds nothing open and is safe for use
// by several goroutines and processes.
type Repo struct {
	o   Options
	git *git.Git
}

// New returns the state repository of a project. It touches nothing.
func New(o Options) *Repo {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Git.MaxOut == 0 {
		o.Git.MaxOut = 256 << 20
	}
	o.Git.Disk, o.Git.Now = o.Disk, o.Now
	r := &Repo{o: o}
	r.git = git.NewBare(r.Dir(), o.Git)
	return r
}

// Dir is the bare repository.
func (r *Repo) Dir() string { return filepath.Join(r.o.Dir, "state.git") }

// Exists says whether the repository was made.
func (r *Repo) Exists() bool {
	fi, err := os.Stat(filepath.Join(r.Dir(), "HEAD"))
	return err == nil && fi.Mode().IsRegular()
}

// Made says what [Repo.Ensure] did; both are empty where all was as it should be.
type Made struct {
	New      bool     // the repository is new
	Repaired []string // what a crash or a move had left, one sentence each
}

// Ensure makes the repository and the checkout of its branch global, and mends
// their links where directories were moved or a step was not finished. What is in
// global/ already becomes the branch's first content. Where all is well it starts
// no process.
func (r *Repo) Ensure(ctx context.Context) (Made, error) {
	var made Made
	g := r.Global()
	if r.Exists() && g.linked() && !fileExists(r.abs(newDir)) && !fileExists(r.abs(goneDir)) {
		return made, nil
	}
	if !r.git.Installed() {
		return made, fmt.Errorf("make state repository: %w", git.ErrNotInstalled)
	}
	unlock, err := r.lock(ctx, "state.lock")
	if err != nil {
		return made, fmt.Errorf("make state repository: %w", err)
	}
	defer unlock()
	if err := r.ensureBare(ctx, &made); err != nil {
		return made, fmt.Errorf("make state repository: %w", err)
	}
	if !g.linked() {
		if !made.New && fileExists(g.admin()) {
			made.Repaired = append(made.Repaired, "the checkout of global was linked again: "+g.Dir)
		}
		if err := g.link(); err != nil {
			return made, fmt.Errorf("check out state: %w", err)
		}
	}
	return made, nil
}

func (r *Repo) abs(name string) string { return filepath.Join(r.o.Dir, name) }

func (r *Repo) lock(ctx context.Context, name string) (func() error, error) {
	if err := r.o.Disk.MkdirAll(r.o.Dir, dirPerm); err != nil {
		return nil, err
	}
	return r.o.Disk.Lock(ctx, r.abs(name))
}

const (
	newDir  = "state.git.new"  // the repository while it is being made
	goneDir = "state.git.gone" // the repository, put into a bundle, while it is being removed
)

// ensureBare makes the repository beside its place and moves it there whole.
func (r *Repo) ensureBare(ctx context.Context, made *Made) error {
	if err := r.removeLeft(made); err != nil || r.Exists() {
		return err
	}
	if fi, err := os.Lstat(r.Dir()); err == nil {
		return fmt.Errorf("%s is there and is no repository (%s); move it away once you have looked at it", r.Dir(), fi.Mode().Type())
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	dir := r.abs(newDir)
	if err := r.o.Disk.MkdirAll(dir, dirPerm); err != nil {
		return err
	}
	g := git.NewBare(dir, r.o.Git)
	if err := g.InitBare(ctx, GlobalBranch); err != nil {
		return err
	}
	if err := r.configure(dir); err != nil {
		return err
	}
	root, err := rootCommit(g, r.o.begun())
	if err != nil {
		return err
	}
	if err := g.MoveRef(ctx, heads+GlobalBranch, root, "", "reprise: made"); err != nil {
		return err
	}
	made.New = true
	return r.o.Disk.Rename(dir, r.Dir())
}

// removeLeft removes what a killed command has left beside the repository.
func (r *Repo) removeLeft(made *Made) error {
	for _, left := range [...][2]string{{newDir, "making"}, {goneDir, "removing"}} {
		if !fileExists(r.abs(left[0])) {
			continue
		}
		made.Repaired = append(made.Repaired, "what was left of "+left[1]+" the repository was removed")
		if err := r.o.Disk.RemoveAll(r.abs(left[0])); err != nil {
			return err
		}
	}
	return nil
}

// settings of the repository. They are for people who run git there by hand; what
// reprise itself runs says them again.
const settings = `[core]
	autocrlf = false
	safecrlf = false
	fsmonitor = false
	logAllRefUpdates = true
	fsync = committed,loose-object
[gc]
	auto = 0
	worktreePruneExpire = never
[merge "reprise"]
	name = entries of reprise, as the set that they are
	driver = reprise merge-driver %O %A %B %P
`

// Paths that are never committed, and how git by hand is to merge.
const (
	exclude    = "# Written by reprise.\n.reprise-*\n*.lock\n*.torn\n*.tmp\n"
	attributes = "# Written by reprise.\n* -text -filter -ident\n/learnings.md merge=reprise\n/decisions.md merge=reprise\n/changelog.md merge=reprise\n*.md merge=reprise\n"
)

func (r *Repo) configure(dir string) error {
	file := filepath.Join(dir, "config")
	config, err := durable.Read(file)
	if err != nil {
		return err
	}
	if err := r.o.Disk.MkdirAll(filepath.Join(dir, "info"), dirPerm); err != nil {
		return err
	}
	for name, data := range map[string][]byte{
		"config":          append(bytes.TrimRight(config, "\n"), "\n"+settings...),
		"info/exclude":    []byte(exclude),
		"info/attributes": []byte(attributes),
	} {
		if err := r.o.Disk.WriteFile(filepath.Join(dir, filepath.FromSlash(name)), data, filePerm); err != nil {
			return err
		}
	}
	return nil
}

// rootCommit is the first commit of every branch of a project. It is the same
// wherever it is made, so that two clones that were begun apart have a common
// ancestor.
func rootCommit(g *git.Git, project string) (string, error) {
	tree, err := g.StoreTree(nil)
	if err != nil {
		return "", err
	}
	who := git.Person{Name: "reprise", Email: "reprise@localhost", Time: time.Unix(0, 0)}
	return g.StoreCommit(tree, nil, who, who, "State of "+project)
}

func (o *Options) begun() string {
	if o.Begun != "" {
		return o.Begun
	}
	return o.Project
}

func fileExists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// SetRemote names the repository that state is exchanged with; "" names none.
func (r *Repo) SetRemote(ctx context.Context, url string) error {
	if strings.HasPrefix(url, "-") || strings.ContainsAny(url, "\r\n\x00") {
		return fmt.Errorf("set remote: %q is no address of a repository", url)
	}
	old, err := r.Remote(ctx)
	if err != nil {
		return err
	}
	switch {
	case url == old:
		return nil
	case url == "":
		_, err = r.git.Run(ctx, "config", "--remove-section", "remote."+remoteName)
	default:
		if err := r.forgetRemote(ctx); err != nil {
			return fmt.Errorf("set remote: %w", err)
		}
		if _, err = r.git.Run(ctx, "config", "remote."+remoteName+".url", url); err == nil {
			_, err = r.git.Run(ctx, "config", "remote."+remoteName+".fetch", "+"+heads+"*:"+tracking+"*")
		}
	}
	if err != nil {
		return fmt.Errorf("set remote: %w", err)
	}
	return nil
}

// forgetRemote forgets what a remote had: another one has to be sent all of it. What is
// of agents of other machines is kept under [formerRefs], since it may be nowhere else.
// After a kill in the middle the next exchange brings it back.
func (r *Repo) forgetRemote(ctx context.Context) error {
	refs, err := r.git.Refs(ctx, heads, tracking, claimsThere, endedThere, doneThere, headsThere, keptThere, formerRefs)
	if err != nil {
		return err
	}
	var moves []git.RefMove
	for ref, id := range refs {
		branch, tracked := strings.CutPrefix(ref, tracking)
		if strings.HasPrefix(ref, heads) || strings.HasPrefix(ref, formerRefs) {
			continue
		}
		if former := formerRefs + branch + "/" + id[:12]; tracked && refs[heads+branch] == "" && refs[former] == "" {
			moves = append(moves, git.RefMove{Ref: former, New: id})
		}
		moves = append(moves, git.RefMove{Ref: ref, Old: id})
	}
	if len(moves) == 0 {
		return nil
	}
	return r.git.MoveRefs(ctx, "reprise: another remote", moves...)
}

// Remote is the address of the repository that state is exchanged with, "" for none.
func (r *Repo) Remote(ctx context.Context) (string, error) {
	out, err := r.git.Run(ctx, "config", "--local", "--get", "remote."+remoteName+".url")
	var e *git.Error
	if errors.As(err, &e) && e.Code == 1 {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("look for the remote: %w", err)
	}
	return strings.TrimRight(string(out), "\r\n"), nil
}
