package git

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// IsTop says whether the directory is the top of a repository of its own: it
// has a .git, as a directory or, in a linked worktree, as a file.
func (g *Git) IsTop() bool {
	_, err := os.Lstat(filepath.Join(g.dir, ".git"))
	return err == nil
}

// Init makes the directory a repository with the given first branch, without
// the user's template: that may hold hooks.
func (g *Git) Init(ctx context.Context, branch string) error {
	if _, err := g.Run(ctx, "init", "--quiet", "--template=", "--initial-branch="+branch); err != nil {
		return fmt.Errorf("make repository %s: %w", g.dir, err)
	}
	return nil
}

// Branch is the current branch; an error in a detached checkout.
func (g *Git) Branch(ctx context.Context) (string, error) {
	out, err := g.Run(ctx, "symbolic-ref", "--quiet", "HEAD") // its short name is another where there is a tag of that name
	var e *Error
	if errors.As(err, &e) && e.Kind == nil {
		return "", fmt.Errorf("the checkout is detached from any branch; run `git switch BRANCH` in %s", g.dir)
	}
	return strings.TrimPrefix(strings.TrimSpace(string(out)), "refs/heads/"), err
}

// Resolve gives the commit of a revision, "" when there is none.
func (g *Git) Resolve(ctx context.Context, rev string) (string, error) {
	out, err := g.Run(ctx, "rev-parse", "--verify", "--quiet", rev+"^{commit}")
	var e *Error
	if errors.As(err, &e) && e.Code == 1 {
		return "", nil
	}
	return strings.TrimSpace(string(out)), err
}

// Remote is the remote to use for a branch: the one configured for it, else
// origin, else the only one; "" when there is none.
func (g *Git) Remote(ctx context.Context, branch string) (string, error) {
	out, err := g.Run(ctx, "remote")
	if err != nil {
		return "", err
	}
	names := strings.Fields(string(out))
	if out, err := g.Run(ctx, "config", "--get", "branch."+branch+".remote"); err == nil {
		if want := strings.TrimSpace(string(out)); want != "" && want != "." {
			return want, nil
		}
	}
	for _, n := range names {
		if n == "origin" {
			return n, nil
		}
	}
	switch len(names) {
	case 0:
		return "", nil
	case 1:
		return names[0], nil
	}
	return "", fmt.Errorf("there are %d remotes and none is called origin; run `git branch --set-upstream-to` in %s", len(names), g.dir)
}

// Identity gives the arguments that make a commit possible when the user has no
// name or address configured; nil when they have.
func (g *Git) Identity(ctx context.Context) []string {
	var args []string
	has := map[string]string{}
	out, _ := g.Run(ctx, "config", "-z", "--get-regexp", `^user\.(name|email)$`) // fails where neither is set
	for _, kv := range splitNUL(out) {
		name, value, _ := strings.Cut(kv, "\n")
		has[name] = strings.TrimSpace(value)
	}
	for _, kv := range [][2]string{{"user.name", "reprise"}, {"user.email", "reprise@localhost"}} {
		if has[kv[0]] == "" {
			args = append(args, "-c", kv[0]+"="+kv[1])
		}
	}
	return args
}

// Staged lists the paths that a commit would change.
func (g *Git) Staged(ctx context.Context) ([]string, error) {
	out, err := g.Run(ctx, "diff", "--cached", "--name-only", "-z", "--no-ext-diff", "--no-renames")
	return splitNUL(out), err
}

// Merging says whether a merge was begun and not ended.
func (g *Git) Merging(ctx context.Context) (bool, error) {
	c, err := g.Resolve(ctx, "MERGE_HEAD")
	return c != "", err
}

// Blob is the content of an object by its id.
func (g *Git) Blob(ctx context.Context, id string) ([]byte, error) {
	return g.Run(ctx, "cat-file", "blob", id)
}

// Conflict is a path that a merge could not settle: the object of each side,
// "" where the side does not have the path.
type Conflict struct {
	Path               string
	Mode               string // of our side, else of theirs
	Base, Ours, Theirs string
}

// MergeTree merges two commits without touching the checkout: a tree and, where
// lines clash, the conflicts in it. It needs git 2.38.
func (g *Git) MergeTree(ctx context.Context, ours, theirs string) (tree string, conflicts []Conflict, err error) {
	out, err := g.Run(ctx, "merge-tree", "--write-tree", "-z", "--no-messages", "--allow-unrelated-histories", ours, theirs)
	var e *Error
	if err != nil && (!errors.As(err, &e) || e.Code != 1) {
		return "", nil, fmt.Errorf("merge: %w", err)
	}
	fields := splitNUL(out)
	if len(fields) == 0 {
		return "", nil, fmt.Errorf("merge: git gave no tree")
	}
	at := map[string]int{}
	for _, f := range fields[1:] {
		info, path, ok := strings.Cut(f, "\t")
		part := strings.Fields(info)
		if !ok || len(part) != 3 {
			return "", nil, fmt.Errorf("merge: git's answer was not understood: %q", f)
		}
		i, seen := at[path]
		if !seen {
			i = len(conflicts)
			at[path] = i
			conflicts = append(conflicts, Conflict{Path: path})
		}
		c := &conflicts[i]
		switch part[2] {
		case "1":
			c.Base = part[1]
		case "2":
			c.Ours, c.Mode = part[1], part[0]
		case "3":
			c.Theirs = part[1]
			if c.Mode == "" {
				c.Mode = part[0]
			}
		}
	}
	return fields[0], conflicts, nil
}

// PutBlob stores data and gives its object id.
func (g *Git) PutBlob(ctx context.Context, data []byte) (string, error) {
	out, err := g.RunInput(ctx, data, "hash-object", "-w", "--stdin", "--no-filters")
	return strings.TrimSpace(string(out)), err
}

// CommitTree makes a commit of a tree; identity comes from [Git.Identity].
func (g *Git) CommitTree(ctx context.Context, identity []string, tree, message string, parents ...string) (string, error) {
	args := append(append([]string{}, identity...), "commit-tree", "--no-gpg-sign", tree, "-m", message)
	for _, p := range parents {
		args = append(args, "-p", p)
	}
	out, err := g.Run(ctx, args...)
	return strings.TrimSpace(string(out)), err
}

// Changed lists the paths that differ between two commits.
func (g *Git) Changed(ctx context.Context, a, b string) ([]string, error) {
	out, err := g.Run(ctx, "diff", "--name-only", "-z", "--no-ext-diff", "--no-renames", a, b)
	return splitNUL(out), err
}

// IsAncestor says whether commit a is in the history of b.
func (g *Git) IsAncestor(ctx context.Context, a, b string) (bool, error) {
	_, err := g.Run(ctx, "merge-base", "--is-ancestor", a, b)
	var e *Error
	if errors.As(err, &e) && e.Code == 1 {
		return false, nil
	}
	return err == nil, err
}

// RemoteRef asks a remote what it has a ref at, "" where it has no such ref. name is
// the ref's whole name.
func (g *Git) RemoteRef(ctx context.Context, remote, name string) (string, error) {
	out, err := g.run(ctx, g.o.Remote, nil, "ls-remote", "--exit-code", "--", remote, name)
	var e *Error
	if errors.As(err, &e) && e.Code == 2 {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("ask remote %s: %w", remote, err)
	}
	for line := range strings.Lines(string(out)) {
		if id, ref, ok := strings.Cut(strings.TrimRight(line, "\r\n"), "\t"); ok && ref == name {
			return id, nil
		}
	}
	return "", nil
}

// Fetch brings one branch of a remote into refs/remotes/<remote>/<branch>. A
// branch that the remote does not have is no error: found is false.
func (g *Git) Fetch(ctx context.Context, remote, branch string) (found bool, err error) {
	if id, err := g.RemoteRef(ctx, remote, "refs/heads/"+branch); id == "" {
		return false, err
	}
	_, err = g.run(ctx, g.o.Remote, nil, "fetch", "--quiet", "--no-tags", "--", remote,
		"+refs/heads/"+branch+":refs/remotes/"+remote+"/"+branch)
	if err != nil {
		return false, fmt.Errorf("fetch from %s: %w", remote, err)
	}
	return true, nil
}

// Push sends the current commit to a branch of a remote; never by force.
func (g *Git) Push(ctx context.Context, remote, branch string) error {
	if _, err := g.run(ctx, g.o.Remote, nil, "push", "--quiet", "--no-verify", "--", remote, "HEAD:refs/heads/"+branch); err != nil {
		return fmt.Errorf("push to %s: %w", remote, err)
	}
	return nil
}

// Ahead counts the commits of HEAD that a revision does not have.
func (g *Git) Ahead(ctx context.Context, rev string) (int, error) {
	out, err := g.Run(ctx, "rev-list", "--count", rev+"..HEAD")
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(string(out)))
}

// Note is what is noted about a commit under refs/notes/NAME, "" for nothing.
func (g *Git) Note(ctx context.Context, name, commit string) (string, error) {
	out, err := g.Run(ctx, "notes", "--ref="+name, "show", commit)
	var e *Error
	if errors.As(err, &e) && e.Code == 1 && strings.Contains(e.Stderr, "no note found") {
		return "", nil
	}
	return string(out), err
}

// AddNote adds text to what is noted about a commit under refs/notes/NAME.
func (g *Git) AddNote(ctx context.Context, name, commit, text string) error {
	args := append(g.Identity(ctx), "notes", "--ref="+name, "append", "-m", text, commit)
	if _, err := g.Run(ctx, args...); err != nil {
		return fmt.Errorf("note about %s: %w", commit, err)
	}
	return nil
}

func splitNUL(b []byte) []string {
	var out []string
	for s := range strings.SplitSeq(string(b), "\x00") {
		if s != "" {
			out = append(out, s)
		}
	}
	return out
}
