// Package workspace makes the places that agents work in: a worktree of the
// project's code on a branch of its own, and in it the checkout of the agent's branch
// of the state repository. The two are made together or not at all, and taken away
// together, without losing what is in them.
//
// It owns <project's data>/workspaces/: NAME.json, the record of each workspace;
// kept/, files that git ignores and that were in workspaces which are gone; and
// .lock, held while a record changes and while names are compared. It writes the
// worktrees through the git program, below the code repository's git directory the
// refs refs/reprise/saved/… (again by git), and takes away worktrees/ID there; in the
// repositories of submodules a branch for what a worktree's own has
// ([Manager.BringSubmodules]). What is in .reprise/agent is package staterepo's.
//
// .lock is held for moments only, and no other lock is taken within it. A record
// that is being made or taken away names the process that does it, by number and
// start time; when that is gone, whoever comes next finishes it ([Manager.Mend]).
// So does a lease: it lasts as long as the process that holds it.
package workspace

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"reprise/internal/config"
	"reprise/internal/durable"
	"reprise/internal/git"
	"reprise/internal/pathname"
	"reprise/internal/proc"
	"reprise/internal/staterepo"
)

// What callers tell apart with errors.Is.
var (
	ErrNotFound   = errors.New("no such workspace")
	ErrExists     = errors.New("there is such a workspace already")
	ErrLive       = errors.New("somebody works in the workspace")
	ErrBusy       = errors.New("another process makes or removes the workspace")
	ErrUnfinished = errors.New("the workspace was not finished")
	ErrMissing    = errors.New("the workspace's directory is gone")
	ErrRefused    = errors.New("git cannot make this worktree")
	ErrTaken      = errors.New("the branch is somebody else's")
	ErrPlace      = errors.New("no workspace can be made there")
)

// Variables of the environment of who works in a workspace. DirVar is what the write
// hook goes by: a session that has it never writes in another checkout.
const (
	ProjectVar = "REPRISE_PROJECT"
	RepoVar    = "REPRISE_STATE_REPO"
	BranchVar  = "REPRISE_AGENT_BRANCH"
	AgentVar   = "REPRISE_AGENT"
	StateVar   = "REPRISE_AGENT_DIR"
	DirVar     = "REPRISE_WORKSPACE"
)

// State is how far the making of a workspace has come.
type State string

// The states of a record.
const (
	Making   State = "making"
	Ready    State = "ready"
	Removing State = "removing"
)

// version is the "v" of a record.
const version = 1

// Workspace is the record of one, as it stands in NAME.json.
type Workspace struct {
	V       int    `json:"v"`
	Name    string `json:"name"` // of the agent, too
	Project string `json:"project"`
	State   State  `json:"state"`
	Dir     string `json:"dir"`             // top of the code's worktree, without symbolic links
	Sub     string `json:"sub,omitempty"`   // the project's root below it, with slashes
	Common  string `json:"common"`          // the code repository's git directory
	Admin   string `json:"admin,omitempty"` // what that has of the worktree: worktrees/ID in it
	Branch  string `json:"branch"`
	// NewBranch says that the branch was made for the workspace; Base is the commit
	// that it began at.
	NewBranch bool   `json:"new_branch"`
	Base      string `json:"base"`
	// StateRepo and AgentDir are the repository of the agent's state, and where that
	// is checked out. NewAgent says that its branch was made for the workspace.
	StateRepo string    `json:"state_repo"`
	AgentDir  string    `json:"agent_dir"`
	NewAgent  bool      `json:"new_agent"`
	CreatedAt time.Time `json:"created_at"`
	// Mark is whose it is, as its [CreateOptions] said.
	Mark string `json:"mark,omitempty"`
	// By makes the workspace, or takes it away, at this moment.
	By *proc.ID `json:"by,omitempty"`
	// Holders work in it, or did when they were last seen.
	Holders []Holder `json:"holders,omitempty"`
	// Kept says why it is to stay although its work is done; see [Manager.Keep].
	Kept string `json:"kept,omitempty"`
	// Removal is what a removal that is under way was told.
	Removal *RemoveOptions `json:"removal,omitempty"`

	over string // while it is made: the commit of a branch that has to make room for the new one
}

// Root is the project's root in the workspace: where an agent begins.
func (w *Workspace) Root() string { return filepath.Join(w.Dir, filepath.FromSlash(w.Sub)) }

// AgentBranch is the branch of the agent's state.
func (w *Workspace) AgentBranch() string { return "agent-" + w.Name }

// Vars are the variables, with their values, of who works in the workspace.
func (w *Workspace) Vars() [][2]string {
	return [][2]string{
		{ProjectVar, w.Project}, {RepoVar, w.StateRepo}, {BranchVar, w.AgentBranch()}, {AgentVar, w.Name},
		{StateVar, w.AgentDir}, {DirVar, w.Dir},
	}
}

// Environ is an environment with the workspace's variables in it, in place of those
// of another one.
func (w *Workspace) Environ(base []string) []string {
	vars := w.Vars()
	out := slices.DeleteFunc(proc.WithoutRepository(base), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return name == "PWD" || name == "OLDPWD" || slices.ContainsFunc(vars, func(v [2]string) bool { return v[0] == name })
	})
	for _, v := range vars {
		out = append(out, v[0]+"="+v[1])
	}
	return out
}

// Options of [New].
type Options struct {
	Env     config.Env
	Paths   config.Paths
	Project *config.Project
	State   *staterepo.Repo
	// RunLive says whether a run has not ended yet. nil: only processes count.
	RunLive func(id string) bool
	Disk    durable.Disk
	// Programs, where it is set, are those that repositories may have git run.
	Programs *git.Programs
}

// Manager looks after the workspaces of one project. It holds nothing open and is
// safe for use by several goroutines and processes.
type Manager struct {
	o     Options
	later sync.WaitGroup // removals that nobody waits for
}

// New returns the workspaces of a project. It touches nothing.
func New(o Options) *Manager { return &Manager{o: o} }

func (m *Manager) dir() string {
	return filepath.Join(m.o.Paths.ProjectDir(m.o.Project.Name), "workspaces")
}

const recordSuffix = ".json"

func (m *Manager) file(name string) string { return filepath.Join(m.dir(), name+recordSuffix) }

func (m *Manager) now() time.Time { return m.o.Env.Now().UTC().Truncate(time.Second) }

// gitTime bounds a command on the user's repository: a checkout of a large one takes
// minutes.
const gitTime = 15 * time.Minute

// git runs in a checkout of the user's code, whose top dir must be.
func (m *Manager) git(dir string) *git.Git {
	return git.New(dir, m.gitOptions()).OfUser()
}

func (m *Manager) gitOptions() git.Options {
	return git.Options{Vars: m.o.Env.Vars, Local: gitTime, MaxOut: 256 << 20, Disk: m.o.Disk, Programs: m.o.Programs}
}

// Get is the record of a workspace; ErrNotFound where there is none.
func (m *Manager) Get(name string) (Workspace, error) {
	if err := staterepo.CheckName(name); err != nil {
		return Workspace{}, fmt.Errorf("read workspace: %w", err)
	}
	return readRecord(m.file(name))
}

func readRecord(file string) (Workspace, error) {
	var w Workspace
	data, err := durable.Read(file)
	name := strings.TrimSuffix(filepath.Base(file), recordSuffix)
	if errors.Is(err, fs.ErrNotExist) {
		return w, fmt.Errorf("%w: %s; `reprise workspace list` shows those there are", ErrNotFound, name)
	}
	if err != nil {
		return w, fmt.Errorf("read workspace: %w", err)
	}
	if err := json.Unmarshal(data, &w); err != nil || w.V < 1 || w.Name != name {
		return w, fmt.Errorf("read workspace: %s is damaged; move it away once you have looked at it: the worktree and the branches are not touched by that", file)
	}
	if w.V > version {
		return w, fmt.Errorf("read workspace: %s is of format %d, which this reprise does not know; install a newer one", file, w.V)
	}
	w.Project = filepath.Base(filepath.Dir(filepath.Dir(file))) // it may have got another name since
	w.follow()
	return w, nil
}

// follow finds a worktree that was moved with git (or by hand, and repaired with it).
// Git uses the names in worktrees/ again, so it must be on the same branch.
func (w *Workspace) follow() {
	if w.State != Ready || w.Admin == "" || git.LinkedDir(w.Dir) != "" || headRef(w.Admin) != "refs/heads/"+w.Branch {
		return
	}
	at := checkedOut(w.Admin)
	if at == "" || git.LinkedDir(at) != w.Admin {
		return
	}
	if rel, err := filepath.Rel(w.Dir, w.AgentDir); err == nil {
		w.Dir, w.AgentDir = at, filepath.Join(at, rel)
	}
}

func (m *Manager) write(w *Workspace) error { return m.writeBy(m.o.Disk.WriteFile, w) }

// writeHolders is write for a change of who holds the workspace: it does not wait for the
// directory. A power cut ends the holders as well, so the record before it says as much.
func (m *Manager) writeHolders(w *Workspace) error { return m.writeBy(m.o.Disk.WriteFileHot, w) }

func (m *Manager) writeBy(write func(string, []byte, fs.FileMode) error, w *Workspace) error {
	data, err := json.MarshalIndent(w, "", "  ")
	if err != nil {
		return err
	}
	return write(m.file(w.Name), append(data, '\n'), 0o600)
}

func (m *Manager) lock(ctx context.Context) (func() error, error) {
	if err := m.o.Disk.MkdirAll(m.dir(), 0o700); err != nil {
		return nil, err
	}
	return m.o.Disk.Lock(ctx, filepath.Join(m.dir(), ".lock"))
}

// change reads a record, changes it and writes it, under the lock. An error of f
// leaves it as it is.
func (m *Manager) change(ctx context.Context, name string, f func(*Workspace) error) (Workspace, error) {
	return m.changeBy(ctx, name, m.write, f)
}

// hold is change for who holds the workspace.
func (m *Manager) hold(ctx context.Context, name string, f func(*Workspace) error) (Workspace, error) {
	return m.changeBy(ctx, name, m.writeHolders, f)
}

func (m *Manager) changeBy(ctx context.Context, name string, write func(*Workspace) error, f func(*Workspace) error) (Workspace, error) {
	if err := staterepo.CheckName(name); err != nil {
		return Workspace{}, err
	}
	if _, err := readRecord(m.file(name)); err != nil {
		return Workspace{}, err
	}
	unlock, err := m.lock(ctx)
	if err != nil {
		return Workspace{}, err
	}
	defer unlock()
	w, err := readRecord(m.file(name))
	if err != nil {
		return w, err
	}
	if err := f(&w); err != nil {
		return w, err
	}
	return w, write(&w)
}

// Info is what can be told of a workspace without asking git.
type Info struct {
	Workspace
	// Status is ready, live, missing, unfinished (its making or removal was cut
	// off), or making and removing while that is under way.
	Status string `json:"status"`
	// Live are the holders that are there now.
	Live []Holder `json:"live"`
	// Inside are processes that have their directory there and hold no lease, as far as
	// [Manager.List] and [Manager.Detail] see them: a session that somebody started there.
	Inside []string `json:"inside,omitempty"`
	// Note says what to do about it, "" for nothing.
	Note string `json:"note,omitempty"`
}

// List are the workspaces in the order of their names; it changes nothing. Records
// that cannot be read come as an error beside those that can.
func (m *Manager) List() ([]Info, error) {
	names, err := m.names()
	var out []Info
	var errs []error
	for _, name := range names {
		w, err := readRecord(m.file(name))
		switch {
		case errors.Is(err, ErrNotFound):
		case err != nil:
			errs = append(errs, err)
		default:
			i := m.Look(w)
			m.lookInside(&i)
			out = append(out, i)
		}
	}
	return out, errors.Join(append(errs, err)...)
}

// Unfinished are the workspaces whose making or removal was cut off and that nobody is at: the next
// command that makes or removes one finishes them.
func (m *Manager) Unfinished() (list []Info, err error) {
	names, err := m.names()
	for _, name := range names {
		if w, rerr := readRecord(m.file(name)); rerr == nil && abandoned(&w) {
			list = append(list, m.Look(w))
		}
	}
	return list, err
}

func (m *Manager) names() ([]string, error) {
	list, err := durable.ReadDir(m.dir())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list workspaces: %w", err)
	}
	var out []string
	for _, e := range list {
		if name, ok := strings.CutSuffix(e.Name(), recordSuffix); ok && staterepo.CheckName(name) == nil {
			out = append(out, name)
		}
	}
	return out, nil
}

// Look says how a workspace is.
func (m *Manager) Look(w Workspace) Info {
	i := Info{Workspace: w, Status: string(Ready), Live: m.live(&w)}
	if i.Live == nil {
		i.Live = []Holder{}
	}
	switch {
	case w.State != Ready && w.By != nil && w.By.Alive():
		i.Status = string(w.State)
	case w.State == Making:
		i.Status, i.Note = "unfinished", "its making was cut off; `reprise workspace create` and `remove` take back what there is of it"
	case w.State == Removing:
		i.Status, i.Note = "unfinished", "its removal was cut off; `reprise workspace remove "+w.Name+"` goes on with it"
	case !m.here(&w):
		i.Status = "missing"
		i.Note = "its directory is gone or is no worktree of this repository any more; if you moved it, `git worktree repair` with its new place mends that, else `reprise workspace remove " + w.Name + "` keeps what git still has"
	case len(i.Live) > 0:
		i.Status = "live"
	}
	return i
}

// lookInside adds who works in a workspace without a lease of it.
func (m *Manager) lookInside(i *Info) {
	if i.Status == string(Ready) && len(i.Live) == 0 {
		i.Inside = inside(i.Dir, m.o.Env.Dir)
	}
}

// here says that the worktree is where the record has it, and that the repository has not
// lost what it keeps of it.
func (m *Manager) here(w *Workspace) bool {
	admin := git.LinkedDir(w.Dir)
	return admin != "" && filepath.Dir(filepath.Dir(admin)) == filepath.Clean(w.Common) && fileThere(filepath.Join(admin, "HEAD"))
}

// findAdmin is the directory that the repository has for a worktree at dir, also
// where that is gone; "" where it has none.
func findAdmin(common, dir string) string {
	list, err := durable.ReadDir(filepath.Join(common, "worktrees"))
	if err != nil {
		return ""
	}
	for _, e := range list {
		admin := filepath.Join(common, "worktrees", e.Name())
		if at := checkedOut(admin); at != "" && pathname.Same(at, dir) {
			return admin
		}
	}
	return ""
}

// checkedOut is the directory that a repository's worktrees/ID says it is of.
func checkedOut(admin string) string {
	data, err := durable.Read(filepath.Join(admin, "gitdir"))
	if err != nil {
		return ""
	}
	at := filepath.FromSlash(strings.TrimRight(string(data), "\r\n"))
	if !filepath.IsAbs(at) {
		at = filepath.Join(admin, at)
	}
	return filepath.Dir(at)
}

// within says that path is dir or lies below it.
func within(path, dir string) bool { return pathname.Within(dir, path) }
