package worker

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"reprise/internal/config"
	"reprise/internal/durable"
	"reprise/internal/git"
)

// Origin is what git calls the remote in a worker's clones.
const Origin = "origin"

// cloneTime bounds a clone.
const cloneTime = time.Hour

// Checkout is a worker's clone of a project.
type Checkout struct {
	Project config.WorkerProject
	Dir     string
	Git     git.Options
	Disk    durable.Disk
	Now     func() time.Time
	// Say tells what a person should know; nil is nobody.
	Say func(text string)
}

// DefaultDir is where clones are unless the settings say otherwise, in the user's home: not
// with reprise's own files, which agents must not change.
const DefaultDir = "reprise-worker"

func (c *Checkout) say(format string, args ...any) {
	if c.Say != nil {
		c.Say(fmt.Sprintf(format, args...))
	}
}

func (c *Checkout) git(dir string) *git.Git {
	o := c.Git
	o.Now, o.Disk = c.Now, c.Disk // the clone is ours: what a killed git left may go
	return git.New(dir, o)
}

// Ensure makes the clone where there is none, and brings one that is there forward to what
// the remote has. It returns the branch at which work begins. Whatever was killed in
// between, done again it comes to the same: a clone gets its name when it is whole.
func (c *Checkout) Ensure(ctx context.Context) (branch string, err error) {
	if err := c.Disk.MkdirAll(filepath.Dir(c.Dir), 0o700); err != nil {
		return "", fmt.Errorf("clone %s: %w", c.Project.Name, err)
	}
	unlock, err := c.Disk.Lock(ctx, c.Dir+".lock")
	if err != nil {
		return "", fmt.Errorf("clone %s: %w", c.Project.Name, err)
	}
	defer unlock()
	made, err := c.there(ctx)
	if err != nil {
		return "", fmt.Errorf("clone %s: %w", c.Project.Name, err)
	}
	if !made {
		if err := c.clone(ctx); err != nil {
			return "", fmt.Errorf("clone %s: %w", c.Project.Name, &plainError{err, c.Project.Remote})
		}
	}
	if branch, err = c.begin(ctx); err != nil {
		return "", fmt.Errorf("find the branch of %s: %w", c.Dir, err)
	}
	if made {
		if err := c.forward(ctx, branch); err != nil {
			return "", fmt.Errorf("bring %s forward: %w", c.Dir, err)
		}
	}
	return branch, nil
}

// there reports whether the clone is there. What lies in its place and is none is moved
// aside, for it may hold what is nowhere else.
func (c *Checkout) there(ctx context.Context) (bool, error) {
	if _, err := os.Lstat(c.Dir); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	} else if err != nil {
		return false, err
	}
	g := c.git(c.Dir)
	head, err := g.Resolve(ctx, "HEAD")
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	if err == nil && head != "" {
		url, err := g.Run(ctx, "config", "--get", "remote."+Origin+".url")
		if err == nil && strings.TrimSpace(string(url)) == c.Project.Remote {
			return true, nil
		}
		_, err = g.Run(ctx, "config", "remote."+Origin+".url", c.Project.Remote)
		return true, err
	}
	for n := 1; n < 1000; n++ {
		to := fmt.Sprintf("%s.broken-%d", c.Dir, n)
		if _, err := os.Lstat(to); !errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err := c.Disk.Rename(c.Dir, to); err != nil {
			return false, err
		}
		c.say("%s was no usable clone any more; it is cloned anew, and what was there is in %s", c.Dir, to)
		return false, nil
	}
	return false, fmt.Errorf("%s is no usable clone, and there are too many copies of it beside it: remove those that are of no use", c.Dir)
}

func (c *Checkout) clone(ctx context.Context) error {
	tmp := c.Dir + ".new"
	if err := c.Disk.RemoveAll(tmp); err != nil {
		return err
	}
	o := c.Git
	o.Local, o.Disk = cloneTime, c.Disk
	args := []string{"clone", "--quiet", "--origin", Origin}
	if c.Project.Branch != "" {
		args = append(args, "--branch", c.Project.Branch)
	}
	if _, err := git.New(filepath.Dir(c.Dir), o).Run(ctx, append(args, "--", c.Project.Remote, tmp)...); err != nil {
		return errors.Join(err, c.Disk.RemoveAll(tmp))
	}
	if head, err := c.git(tmp).Resolve(ctx, "HEAD"); err != nil || head == "" {
		return errors.Join(err, errors.New("it has no commit yet: push one first"), c.Disk.RemoveAll(tmp))
	}
	return c.Disk.Rename(tmp, c.Dir)
}

// begin is the remote's branch that work begins at.
func (c *Checkout) begin(ctx context.Context) (string, error) {
	if c.Project.Branch != "" {
		return c.Project.Branch, nil
	}
	g := c.git(c.Dir)
	const there = "refs/remotes/" + Origin + "/"
	out, err := g.Run(ctx, "symbolic-ref", "--quiet", there+"HEAD")
	if err == nil {
		return strings.TrimPrefix(strings.TrimSpace(string(out)), there), nil
	}
	return g.Branch(ctx) // of a remote that says nothing about it
}

// forward brings the main checkout to what the remote has, for the project's own file and
// template are read there. Where the remote cannot be reached, or somebody has changed
// something there, it stays as it is: items begin at what is fetched for each of them.
func (c *Checkout) forward(ctx context.Context, branch string) error {
	g := c.git(c.Dir)
	there := "refs/remotes/" + Origin + "/" + branch
	err := g.FetchRefs(ctx, Origin, "+refs/heads/"+branch+":"+there)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, git.ErrNetwork), errors.Is(err, git.ErrTimeout):
		c.say("%s is as it was: %v", c.Dir, err)
		return nil
	case err != nil:
		return err
	}
	if err := g.FastForward(ctx, branch, there, "merge "+Origin+"/"+branch+": Fast-forward"); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		c.say("%s stays at its commit, with the project's settings as they are there: %v", c.Dir, err)
	}
	return nil
}

// plainError is what git says of a remote, without a password that stands in its address.
type plainError struct {
	err    error
	remote string
}

func (e *plainError) Error() string {
	return strings.ReplaceAll(e.err.Error(), e.remote, withoutPassword(e.remote))
}

func (e *plainError) Unwrap() error { return e.err }

// withoutPassword is an address as others may see it.
func withoutPassword(url string) string {
	scheme, rest, ok := strings.Cut(url, "://")
	if !ok {
		return url
	}
	host, path, _ := strings.Cut(rest, "/")
	if i := strings.LastIndexByte(host, '@'); i >= 0 {
		return scheme + "://…" + host[i:] + "/" + path
	}
	return url
}
