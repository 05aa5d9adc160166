package config

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
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
}

// NameTakenError says that another project has the name.
type NameTakenError struct {
	Name string
	Root string // the project that asks
	By   string // root of the one that has it
}

func (e *NameTakenError) Error() string {
	return fmt.Sprintf("project name %q is taken by %s, and nothing shows that %s is a clone of it; "+
		"if it is one, run `reprise init --yes` there; if not, give this one another name in %s",
		e.Name, e.By, e.Root, ProjectFile(e.Root))
}

func claimFile(paths Paths, name string) string {
	return filepath.Join(paths.ProjectDir(name), "project.json")
}

// CheckName tells whether p's name stands for another project on this machine
// (*NameTakenError). It reads, and never writes. Two checkouts are the same
// project when they are the same directory, worktrees of one repository, clones
// with the same origin, one the origin of the other, or when the directory that
// had the name is gone.
func CheckName(paths Paths, p *Project) error { return paths.CheckClaim(p, "") }

// CheckClaim is CheckName that also knows the id of the repository's first
// commit, by which clones without an origin are recognised.
func (paths Paths) CheckClaim(p *Project, rootCommit string) error {
	c, err := readClaim(paths, p.Name)
	if err != nil || c == nil {
		return err
	}
	return c.check(p, rootCommit)
}

func (c *claim) check(p *Project, rootCommit string) error {
	if rootCommit != "" && rootCommit == c.RootCommit {
		return nil
	}
	remote := originOf(p.Main)
	if remote != "" && remote == c.Remote {
		return nil
	}
	for _, root := range slices.Backward(c.Roots) {
		if pathname.Same(root, p.Main) || related(root, originOf(root), p.Main, remote) {
			return nil
		}
	}
	for _, root := range slices.Backward(c.Roots) {
		// One that moved away or has another name now holds no claim. One that
		// cannot be read keeps it.
		if old, err := projectAt(root); err == nil && (old == nil || old.Name != p.Name) {
			continue
		}
		return &NameTakenError{Name: p.Name, Root: p.Root, By: root}
	}
	return nil
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
	if err := json.Unmarshal(data, &c); err != nil || c.V < 1 || c.Name != name {
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
// recognised.
func (paths Paths) Claim(ctx context.Context, p *Project, rootCommit string, now time.Time) error {
	return paths.claim(ctx, p, rootCommit, now, nil)
}

// ClaimNew is Claim for a project that is not there yet, and has make make it once the
// name is its own: where the name cannot be had, or nothing be written, the project's tree
// stays as it was. Nobody else gets the name meanwhile. Where make fails its error is
// given; the name is then claimed for a directory that is no project, which holds nobody.
func (paths Paths) ClaimNew(ctx context.Context, p *Project, rootCommit string, now time.Time, make func() error) error {
	return paths.claim(ctx, p, rootCommit, now, make)
}

func (paths Paths) claim(ctx context.Context, p *Project, rootCommit string, now time.Time, make func() error) error {
	c, err := readClaim(paths, p.Name)
	if err != nil {
		return err
	}
	if make == nil && c.has(p) && (rootCommit == "" || rootCommit == c.RootCommit) {
		return nil
	}
	if err := durable.MkdirAll(paths.ProjectDir(p.Name), 0o700); err != nil {
		return fmt.Errorf("claim project name: %w", err)
	}
	unlock, err := durable.Lock(ctx, claimFile(paths, p.Name)+".lock")
	if err != nil {
		return fmt.Errorf("claim project name: %w", err)
	}
	defer unlock()
	if c, err = readClaim(paths, p.Name); err != nil {
		return err
	}
	if c == nil {
		c = &claim{V: 1, Name: p.Name, Created: now.UTC().Truncate(time.Second)}
	} else if err := c.check(p, rootCommit); err != nil {
		return err
	}
	if !c.has(p) {
		c.Roots = append(c.Roots, p.Main)
	}
	if c.RootCommit == "" {
		c.RootCommit = rootCommit
	}
	if c.Remote == "" {
		c.Remote = originOf(p.Main)
	}
	data, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return fmt.Errorf("claim project name: %w", err)
	}
	if err := durable.WriteFile(claimFile(paths, p.Name), append(data, '\n'), 0o600); err != nil {
		return fmt.Errorf("claim project name: %w", err)
	}
	if make == nil {
		return nil
	}
	return make()
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

// originOf reads the origin's address out of a checkout's .git/config and
// normalises it; "" when there is none. It is enough to tell clones of one
// repository from strangers; git itself is not run.
func originOf(main string) string {
	data, err := readFile(filepath.Join(main, ".git", "config"))
	if err != nil {
		return ""
	}
	in := false
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "[") {
			in = strings.EqualFold(strings.ReplaceAll(line, " ", ""), `[remote"origin"]`)
			continue
		}
		name, value, ok := strings.Cut(line, "=")
		if in && ok && strings.EqualFold(strings.TrimSpace(name), "url") {
			return NormaliseRemote(strings.TrimSpace(value))
		}
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
