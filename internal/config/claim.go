package config

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"reprise/internal/durable"
	"reprise/internal/pathname"
)

// claim is <data>/projects/<name>/project.json: which working trees a project's
// name stands for on this machine. A name that two different projects use would
// silently mix their runs, events and memory, so the second one is refused.
type claim struct {
	V          int       `json:"v"`
	Name       string    `json:"name"`
	Created    time.Time `json:"created"`
	Roots      []string  `json:"roots"`                 // main checkouts, the newest last
	RootCommit string    `json:"root_commit,omitempty"` // the repository's first commit
	Remote     string    `json:"remote,omitempty"`      // its origin, normalised
	Former     []former  `json:"former,omitempty"`      // who had the name before it was given away
	Names      []string  `json:"names,omitempty"`       // all that it has had, the first one first; none where that is the only one
}

// former is a checkout that had a name and its data until these were given to another.
type former struct {
	Root  string    `json:"root"`
	Until time.Time `json:"until"`
}

// NameTakenError says that another project has the name.
type NameTakenError struct {
	Name string
	Root string // the project that asks
	By   string // root of the one that has it
	// Away says that By is not there, or is no project of that name any more, and that its
	// data are kept: those are Holds, last changed at Last.
	Away  bool
	Holds []string
	Last  time.Time
	// Given is when the name and its data were given from Root to By; zero where they were not.
	Given time.Time
	// Now is the name by now of the project that had this one, "" where it has it still.
	Now string
}

func (e *NameTakenError) Error() string {
	switch {
	case e.Now != "":
		return fmt.Sprintf("project name %q leads to project %s, which had it before `reprise project rename`; give this one another name in %s", e.Name, e.Now, ProjectFile(e.Root))
	case e.Away:
		return e.Whose() + "; if it is the same project, run `reprise init --adopt` there, which takes name and data over; " +
			"if not, give this one another name in " + ProjectFile(e.Root)
	case !e.Given.IsZero():
		return fmt.Sprintf("project name %q and its data were given from %s to %s at %s (`reprise init --adopt`); give this one another name in %s",
			e.Name, e.Root, e.By, stamp(e.Given), ProjectFile(e.Root))
	}
	return fmt.Sprintf("project name %q is taken by %s, and nothing shows that %s is a clone of it; "+
		"if it is one, run `reprise init --yes` there; if not, give this one another name in %s",
		e.Name, e.By, e.Root, ProjectFile(e.Root))
}

// Whose says whose an Away name is, and what is kept of it.
func (e *NameTakenError) Whose() string {
	where := fmt.Sprintf("%s, which is not there now (moved or removed, or its disk is not mounted)", e.By)
	if pathname.Same(e.By, e.Root) {
		where = "another repository that was in " + e.By
	} else if _, err := os.Stat(e.By); err == nil {
		where = e.By + ", where no project of that name is now"
	}
	return fmt.Sprintf("project name %q belongs to %s; its data are kept (%s; last changed %s), and nothing shows that %s is the same project",
		e.Name, where, strings.Join(e.Holds, ", "), stamp(e.Last), e.Root)
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02 15:04") + " UTC" }

func claimFile(paths Paths, name string) string {
	return filepath.Join(paths.ProjectDir(name), "project.json")
}

// CheckName tells whether p's name stands for another project on this machine
// (*NameTakenError). It reads, and never writes. Two checkouts are the same
// project when they are the same directory, worktrees of one repository, clones
// with the same origin, one the origin of the other, or when the one has the
// state of the name's agent in it. Where the directory that had the name is gone,
// the name is free unless data are kept of it.
func CheckName(paths Paths, p *Project) error {
	c, err := readClaim(paths, p.Name)
	if err != nil || c == nil {
		return err
	}
	_, err = c.check(paths, p, "", false)
	return err
}

// CheckClaim is CheckName for a project that is still to be made. It knows the id of the
// repository's first commit, by which clones without an origin are recognised, and
// another repository in a directory where the name's was.
func (paths Paths) CheckClaim(p *Project, rootCommit string) error {
	c, err := readClaim(paths, p.Name)
	if err != nil || c == nil {
		return err
	}
	_, err = c.check(paths, p, rootCommit, true)
	return err
}

// check tells whether p may have the name. free says that it may because nobody holds it
// any more, and nothing is kept of it. With fresh p is still to be made.
func (c *claim) check(paths Paths, p *Project, rootCommit string, fresh bool) (free bool, err error) {
	if rootCommit != "" && rootCommit == c.RootCommit {
		return false, nil
	}
	remote := originOf(p.Main)
	if remote != "" && remote == c.Remote {
		return false, nil
	}
	// A history may be begun anew in its place; but where the project's file is gone, too,
	// another repository lies there by now.
	other := fresh && rootCommit != "" && c.RootCommit != ""
	for _, root := range slices.Backward(c.Roots) {
		if top := Outermost(p.Main); top != p.Main && pathname.Same(root, top) {
			// Earlier programs took what a submodule is a part of for its main checkout.
			if old, err := projectAt(root); err == nil && (old == nil || !c.named(old)) {
				return false, nil
			}
		}
		if same := pathname.Same(root, p.Main); same && !other || !same && related(root, originOf(root), p.Main, remote) {
			return false, nil
		}
	}
	taken := &NameTakenError{Name: p.Name, Root: p.Root}
	for _, f := range c.Former {
		if pathname.Same(f.Root, p.Main) {
			taken.Given = f.Until
		}
	}
	for _, root := range slices.Backward(c.Roots) {
		// One that moved away or has another name now is not asked any more. One that
		// cannot be read keeps its claim.
		if old, err := projectAt(root); err == nil && (old == nil || !c.named(old)) {
			continue
		}
		taken.By = root
		return false, taken
	}
	if c.Name != p.Name { // it is not given up: what has the old name in it still is led by it
		taken.Now = c.Name
		return false, taken
	}
	if paths.hasStateOf(p) {
		return false, nil
	}
	if taken.Holds, taken.Last, err = paths.kept(p.Name); err != nil {
		return false, fmt.Errorf("look what is kept of project %s: %w", p.Name, err)
	}
	if len(taken.Holds) == 0 || len(c.Roots) == 0 {
		return true, nil
	}
	taken.By, taken.Away = c.Roots[len(c.Roots)-1], true
	return false, taken
}

// named tells whether a project's file has a name of this claim's: the one it has, one from
// before, or one that it is to have and has not got on this machine.
func (c *claim) named(p *Project) bool {
	return p.Name == c.Name || slices.Contains(c.Names, p.Name) || slices.Contains(p.Aliases, c.Name)
}

// hasStateOf tells whether p's directory has a worktree of the state that is kept under its
// name. It goes with a directory that is moved, and no repository can bring one along: git
// tracks nothing that is called .git.
func (paths Paths) hasStateOf(p *Project) bool {
	admin, ok := GitPointer(filepath.Join(p.Root, ".reprise", "agent", ".git"), "gitdir: ")
	if !ok || !pathname.Same(filepath.Dir(filepath.Dir(admin)), filepath.Join(paths.ProjectDir(p.Name), "state.git")) {
		return false
	}
	_, ok = GitPointer(filepath.Join(admin, "gitdir"), "")
	return ok
}

// keptAs are the words for what lies in a project's data directory.
var keptAs = map[string]string{
	"state.git": "memory", "global": "memory", "memory": "memory", "queue": "work items", "runs": "runs", "events": "events",
	"loop": "the loop's records", "workspaces": "workspaces", "trust.json": "approvals", "verify": "results of checks",
}

// Kept is what there is of a project's data beside its claim, in words; nil where there is
// nothing.
func (paths Paths) Kept(name string) ([]string, error) {
	out, _, err := paths.kept(name)
	return out, err
}

// kept is Kept, and when the last of it was changed.
func (paths Paths) kept(name string) (out []string, last time.Time, err error) {
	entries, err := durable.ReadDir(paths.ProjectDir(name))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, last, err
	}
	for _, e := range entries {
		if e.Name() == "project.json" || !isData(e) {
			continue
		}
		there := false
		err := filepath.WalkDir(filepath.Join(paths.ProjectDir(name), e.Name()), func(_ string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() || !isData(e) {
				return err
			}
			there = true
			if info, err := e.Info(); err == nil && info.ModTime().After(last) {
				last = info.ModTime()
			}
			return nil
		})
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // else another command tidies up there
			return nil, last, err
		}
		word := keptAs[e.Name()]
		if word == "" {
			word = "other files"
		}
		if there && !slices.Contains(out, word) {
			out = append(out, word)
		}
	}
	return out, last, nil
}

// isData tells whether an entry is more than a lock, or a file that a kill left half written.
func isData(e fs.DirEntry) bool {
	return !strings.HasSuffix(e.Name(), ".lock") && !strings.HasSuffix(e.Name(), ".tmp")
}

func readClaim(paths Paths, name string) (*claim, error) {
	if err := CheckProjectName(name); err != nil {
		return nil, fmt.Errorf("read project register: %w", err)
	}
	file := claimFile(paths, name)
	data, err := durable.Read(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read project register: %w", err)
	}
	var c claim
	if err := json.Unmarshal(data, &c); err == nil && c.V == 1 && c.Name != name && c.Name == paths.NameNow(name) {
		c.Names = append(c.Names, name) // led here by the link of a former name, though what was known of that is gone
	} else if err != nil || c.V < 1 || c.Name != name && !slices.Contains(c.Names, name) {
		return nil, fmt.Errorf("read project register: %s is damaged; move it away and run `reprise init` in the project", file)
	}
	if c.V > 1 {
		return nil, fmt.Errorf("read project register: %s is of format %d, which this reprise does not know; install a newer one", file, c.V)
	}
	return &c, nil
}

// Claim writes down that p's name stands for p's main checkout, and makes the
// project's data directory. It is a no-op where that is known. rootCommit, the
// id of the repository's first commit, may be empty; it lets another clone be
// recognised, and the project itself once its directory was moved.
func (paths Paths) Claim(ctx context.Context, p *Project, rootCommit string, now time.Time) error {
	return paths.claim(ctx, p, claiming{commit: rootCommit, now: now})
}

// ClaimNew is Claim for a project that is not there yet, and has make make it once the
// name is its own: where the name cannot be had, or nothing be written, the project's tree
// stays as it was. Nobody else gets the name meanwhile. Where make fails its error is
// given, and the name stands for whom it stood before; one that was nobody's is then claimed
// for a directory that is no project, which holds nobody. With adopt it takes over the data
// of a project whose directory is away, as [Paths.Adopt].
func (paths Paths) ClaimNew(ctx context.Context, p *Project, rootCommit string, now time.Time, adopt bool, make func() error) error {
	return paths.claim(ctx, p, claiming{commit: rootCommit, now: now, fresh: true, adopt: adopt, make: make})
}

// Adopt is Claim that also takes over the name and the data of a project whose directory is
// away. From then on they are p's alone: the one that had them is refused when it comes back,
// and told who has them.
func (paths Paths) Adopt(ctx context.Context, p *Project, rootCommit string, now time.Time) error {
	return paths.claim(ctx, p, claiming{commit: rootCommit, now: now, adopt: true})
}

// claiming is how a name is claimed.
type claiming struct {
	commit       string
	now          time.Time
	fresh, adopt bool
	make         func() error
}

func (paths Paths) claim(ctx context.Context, p *Project, o claiming) error {
	c, err := readClaim(paths, p.Name)
	if err != nil {
		return err
	}
	if o.make == nil && c.has(p) && (o.commit == "" || o.commit == c.RootCommit) {
		return nil
	}
	if err := paths.dropLink(p.Name); err != nil {
		return fmt.Errorf("claim project name: %w", err)
	}
	if err := durable.MkdirAll(paths.ProjectDir(p.Name), 0o700); err != nil {
		return fmt.Errorf("claim project name: %w", err)
	}
	unlock, err := durable.Lock(ctx, claimFile(paths, p.Name)+".lock")
	if err != nil {
		return fmt.Errorf("claim project name: %w", err)
	}
	defer unlock()
	before, err := readClaim(paths, p.Name)
	if err != nil {
		return err
	}
	next, err := before.next(paths, p, o)
	if err != nil {
		return err
	}
	if err := next.write(paths); err != nil {
		return err
	}
	if o.make == nil {
		return nil
	}
	err = o.make()
	if err != nil && before != nil {
		err = errors.Join(err, before.write(paths))
	}
	return err
}

// next is what becomes of a claim, nil where there is none yet, that p may share or have.
func (c *claim) next(paths Paths, p *Project, o claiming) (*claim, error) {
	next := claim{V: 1, Name: p.Name, Created: o.now.UTC().Truncate(time.Second)}
	if c != nil {
		free, err := c.check(paths, p, o.commit, o.fresh)
		var taken *NameTakenError
		given := errors.As(err, &taken) && taken.Away && o.adopt
		switch {
		case err != nil && !given:
			return nil, err
		case !given && !free:
			next = *c
			next.Roots = slices.Clone(c.Roots)
		default: // it is p's alone: who had it, and comes back, is to find out
			next.Created = c.Created
			for _, f := range c.Former {
				if !pathname.Same(f.Root, p.Main) {
					next.Former = append(next.Former, f)
				}
			}
			for _, root := range c.Roots {
				if given && !pathname.Same(root, p.Main) {
					next.Former = append(next.Former, former{root, o.now.UTC().Truncate(time.Second)})
				}
			}
		}
	}
	if !next.has(p) {
		next.Roots = append(next.Roots, p.Main)
	}
	if next.RootCommit == "" {
		next.RootCommit = o.commit
	}
	if next.Remote == "" {
		next.Remote = originOf(p.Main)
	}
	return &next, nil
}

func (c *claim) write(paths Paths) error {
	data, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return fmt.Errorf("claim project name: %w", err)
	}
	if err := durable.WriteFile(claimFile(paths, c.Name), append(data, '\n'), 0o600); err != nil {
		return fmt.Errorf("claim project name: %w", err)
	}
	return nil
}

func (c *claim) has(p *Project) bool {
	return c != nil && slices.ContainsFunc(c.Roots, func(r string) bool { return pathname.Same(r, p.Main) })
}

// related tells whether two checkouts have one origin by now, which the register
// need not know yet, or one is the origin of the other.
func related(a, originA, b, originB string) bool {
	of := func(origin, root string) bool {
		return filepath.IsAbs(origin) && pathname.Same(strings.TrimSuffix(filepath.Clean(origin), string(filepath.Separator)+".git"), root)
	}
	return originA != "" && originA == originB || of(originA, b) || of(originB, a)
}

// originOf reads the origin's address out of a checkout's git settings and
// normalises it; "" when there is none. It is enough to tell clones of one
// repository from strangers; git itself is not run.
func originOf(main string) string {
	if url := gitSetting(GitConfigOf(main), `remote"origin"`, "url"); url != "" {
		return NormaliseRemote(url)
	}
	return ""
}

// NormaliseRemote gives the different addresses of one remote repository one
// form, "host/path": without scheme, user, port, ".git" and letter case in the
// host. A path on this machine stays as it is.
func NormaliseRemote(address string) string {
	address = strings.Trim(address, `"`)
	if scheme, rest, ok := strings.Cut(address, "://"); ok {
		if scheme == "file" {
			return rest
		}
		address = rest
	} else if host, path, ok := strings.Cut(address, ":"); ok && !strings.ContainsAny(host, `/\`) && len(host) > 1 {
		address = host + "/" + strings.TrimPrefix(path, "/") // scp's form, host:path
	} else {
		return address
	}
	host, path, _ := strings.Cut(address, "/")
	host = host[strings.LastIndexByte(host, '@')+1:]
	host, _, _ = strings.Cut(host, ":")
	path = strings.TrimSuffix(strings.Trim(path, "/"), ".git")
	if host == "" || path == "" {
		return ""
	}
	return strings.ToLower(host) + "/" + path
}

// ClaimedRoots are the main checkouts that a project's name stands for on this
// machine, as far as they are known; they need not be there any more.
func (paths Paths) ClaimedRoots(name string) ([]string, error) {
	c, err := readClaim(paths, name)
	if err != nil || c == nil {
		return nil, err
	}
	return slices.Clone(c.Roots), nil
}

// FormerNames are the names, in order, that p's main checkout had before on this machine, as
// far as something is kept of them: whoever changes the name in the project's file leaves it
// behind. What cannot be read is left out, for it is said where it is asked for by its name.
func (paths Paths) FormerNames(p *Project) (names []string, err error) {
	entries, err := durable.ReadDir(filepath.Join(paths.Data, "projects"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, e := range entries {
		if !e.IsDir() || e.Name() == p.Name || CheckProjectName(e.Name()) != nil {
			continue
		}
		if c, err := readClaim(paths, e.Name()); err != nil || c == nil || !c.has(p) {
			continue
		}
		if kept, err := paths.Kept(e.Name()); err == nil && len(kept) > 0 {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

// Begun tells whether anything but events is kept of a name: then somebody works under it.
func (paths Paths) Begun(name string) bool {
	kept, err := paths.Kept(name)
	return err != nil || slices.ContainsFunc(kept, func(what string) bool { return what != keptAs["events"] })
}

// Renamed is what a person is told of a project whose file has another name than before.
func Renamed(p *Project, former []string) string {
	return fmt.Sprintf("this directory was project %s before, and what is known of it is kept under that name: `reprise project rename %s` has it go along, `name: %s` in %s goes back to it",
		strings.Join(former, " and "), p.Name, former[len(former)-1], p.File())
}

// KnowsCommit tells whether the first commit of a name's repository is written down, by which
// it is found again wherever it is moved.
func (paths Paths) KnowsCommit(name string) bool {
	c, err := readClaim(paths, name)
	return err == nil && c != nil && c.RootCommit != ""
}
