package tree

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"reprise/internal/durable"
	"reprise/internal/git"
)

// repositories give the copy, and each repository within it, a repository of its
// own: with the same commits, branches and index, and nothing else of the
// original's. Objects are read from there and new ones are not written there.
func (s *Snapshot) repositories(ctx context.Context, t Tree, commit string) error {
	if err := s.repository(ctx, t, "", commit); err != nil {
		return err
	}
	for _, rel := range s.From.Repos {
		if err := s.repository(ctx, t, rel, s.commits[rel]); err != nil {
			if ctx.Err() != nil {
				return err
			}
			s.Notes = append(s.Notes, rel+": has no repository in the copy: "+err.Error())
		}
	}
	return nil
}

// repository is where git keeps what belongs to a working tree.
type repository struct{ dir, common, index, format string }

func (t Tree) repository(ctx context.Context, top string) (repository, error) {
	out, err := t.git(top).Run(ctx, "rev-parse", "--git-dir", "--git-common-dir", "--git-path", "index", "--show-object-format")
	if err != nil {
		return repository{}, err
	}
	l := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
	if len(l) != 4 {
		return repository{}, fmt.Errorf("git's answer was not understood: %q", out)
	}
	for i := range l[:3] {
		if !filepath.IsAbs(l[i]) {
			l[i] = filepath.Join(top, l[i])
		}
	}
	return repository{l[0], l[1], l[2], l[3]}, nil
}

func (s *Snapshot) repository(ctx context.Context, t Tree, rel, commit string) error {
	from, to := filepath.Join(t.Top, filepath.FromSlash(rel)), filepath.Join(s.Tree.Top, filepath.FromSlash(rel))
	src, dst := t.git(from), t.git(to)
	r := t.own
	if rel != "" {
		var err error
		if r, err = t.repository(ctx, from); err != nil {
			return err
		}
	}
	own := filepath.Join(to, ".git")
	refs, err := src.Run(ctx, "for-each-ref", "--format=%(objectname) %(refname)")
	if err != nil {
		return err
	}
	config := "[core]\n\trepositoryformatversion = 0\n\tbare = false\n"
	if r.format != "sha1" {
		config = "[extensions]\n\tobjectFormat = " + r.format + "\n[core]\n\trepositoryformatversion = 1\n\tbare = false\n"
	}
	config += coreOf(readText(filepath.Join(r.common, "config"))) + s.active(ctx, t, to, rel)
	head := commit + "\n"
	if commit == "" {
		if head, err = headOf(ctx, src, r.dir); err != nil {
			return err
		}
	}
	files := map[string]string{
		"config":                  config,
		"objects/info/alternates": filepath.Join(r.common, "objects") + "\n",
		"packed-refs":             string(refs),
		"HEAD":                    head,
		"info/exclude":            readText(filepath.Join(r.common, "info", "exclude")) + "\n" + readText(t.excludes),
	}
	if text := readText(filepath.Join(r.common, "shallow")); text != "" {
		files["shallow"] = text
	}
	for _, d := range [...]string{"objects/pack", "refs/heads", "refs/tags"} {
		if err := os.MkdirAll(filepath.Join(own, filepath.FromSlash(d)), 0o700); err != nil {
			return err
		}
	}
	for name, text := range files {
		name = filepath.Join(own, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			return err
		}
	}
	if commit != "" {
		_, err := dst.Run(ctx, "read-tree", commit)
		return err
	}
	return copyIndex(r.dir, r.index, own)
}

// coreOf are the lines of a repository's settings that say how its files are to
// be read; none of them runs anything.
func coreOf(text string) string {
	var out strings.Builder
	core := false
	for line := range strings.Lines(text) {
		l := strings.ToLower(strings.TrimSpace(line))
		if strings.HasPrefix(l, "[") {
			core = l == "[core]"
			continue
		}
		name, value, _ := strings.Cut(l, "=")
		name, value = strings.TrimSpace(name), strings.TrimSpace(value)
		switch name {
		case "filemode", "ignorecase", "symlinks", "precomposeunicode", "longpaths", "autocrlf", "eol":
			if core && value != "" && strings.Trim(value, "abcdefghijklmnopqrstuvwxyz01") == "" {
				out.WriteString("\t" + name + " = " + value + "\n")
			}
		}
	}
	return out.String()
}

// headOf is what a repository's HEAD says. With the usual kind of refs that is in
// its file.
func headOf(ctx context.Context, g *git.Git, dir string) (string, error) {
	if ref, ok := strings.CutPrefix(readText(filepath.Join(dir, "HEAD")), "ref: refs/heads/"); ok && strings.TrimSpace(ref) != ".invalid" {
		return "ref: refs/heads/" + ref, nil
	}
	out, err := g.Run(ctx, "symbolic-ref", "--quiet", "HEAD")
	if err == nil {
		return "ref: " + string(out), nil
	}
	var e *git.Error
	if !errors.As(err, &e) || e.Code != 1 {
		return "", err
	}
	out, err = g.Run(ctx, "rev-parse", "--verify", "HEAD")
	return string(out), err
}

// copyIndex copies the index, and what a split one shares.
func copyIndex(gitDir, index, own string) error {
	names := []string{index}
	shared, err := filepath.Glob(filepath.Join(gitDir, "sharedindex.*"))
	if err == nil {
		names = append(names, shared...)
	}
	for _, name := range names {
		if _, err := git.CopyIndex(durable.Disk{}, name, filepath.Join(own, filepath.Base(name))); err != nil {
			return err
		}
	}
	return nil
}

func readText(name string) string {
	if name == "" {
		return ""
	}
	data, err := durable.Read(name)
	if err != nil {
		return ""
	}
	return string(data)
}

// fromCommit copies a commit's tree, with submodules as it records them.
func (s *Snapshot) fromCommit(ctx context.Context, t Tree, o SnapshotOptions) error {
	if !t.Git {
		return errors.New("there is no git repository to take a commit from")
	}
	if err := removeAll(s.Tree.Top); err != nil {
		return fmt.Errorf("%w: %w", errSlot, err)
	}
	s.commits = map[string]string{}
	if err := s.checkout(ctx, t, "", o.Commit); err != nil {
		return err
	}
	now, err := t.List(ctx, o.Now())
	if err != nil {
		return err
	}
	if err := s.alongside(ctx, t, now, o); err != nil {
		return err
	}
	if err := roomFor(s.Root, s.moved, 0); err != nil {
		return err
	}
	l, err := s.Tree.List(ctx, o.Now())
	if err != nil {
		return err
	}
	s.Hash, err = s.Tree.Hash(ctx, l)
	return err
}

// with are the arguments of a command of git that runs no filter.
func (t Tree) with(args ...string) []string { return append(slices.Clone(t.plain), args...) }

// Change is how much a tree differs from a commit.
type Change struct {
	Commit string   // the commit that it was compared with, in full
	Paths  []string // changed, added or removed, from the tree's top
	Lines  int      // added and removed; a binary file counts as one

	subs []changed
}

// ChangeSince compares the tree as it is with a commit: "" is HEAD. Untracked
// files count with all their lines, and what is in submodules counts, too. scratch is a
// directory for an index of our own.
func (t Tree) ChangeSince(ctx context.Context, rev, scratch string) (Change, error) {
	var c Change
	if !t.Git {
		return c, errors.New("there is no git repository to compare with")
	}
	g := t.git(t.Top)
	if rev == "" {
		rev = "HEAD"
	}
	var err error
	if c.Commit, err = g.Resolve(ctx, rev); err != nil {
		return c, err
	}
	if c.Commit == "" {
		if rev != "HEAD" {
			return c, fmt.Errorf("there is no commit %q here", rev)
		}
		// Nothing was ever committed: everything is new.
	}
	index, drop, err := t.indexCopy(scratch)
	if err != nil {
		return c, err
	}
	defer drop()
	var out []byte
	if c.Commit != "" {
		out, err = g.RunIndex(ctx, index, t.with("diff", "--numstat", "-z", "--no-renames", "--no-ext-diff", "--no-textconv", "--ignore-submodules=dirty", c.Commit)...)
	} else {
		out, err = g.RunIndex(ctx, index, "ls-files", "-z", "--cached")
	}
	if err != nil {
		return c, err
	}
	for f := range strings.SplitSeq(string(out), "\x00") {
		c.add(f, c.Commit != "", t.Top)
	}
	args := []string{"ls-files", "-z", "--others", "--exclude-standard"}
	if t.excludes != "" {
		args = append([]string{"-c", "core.excludesFile=" + t.excludes}, args...)
	}
	if out, err = g.RunIndex(ctx, index, args...); err != nil {
		return c, err
	}
	for f := range strings.SplitSeq(string(out), "\x00") {
		c.add(f, false, t.Top)
	}
	if err := c.within(ctx, t, scratch); err != nil {
		return c, err
	}
	slices.Sort(c.Paths)
	c.Paths = slices.Compact(c.Paths)
	return c, nil
}

// add counts one line of numstat, or a file that is new.
func (c *Change) add(f string, stat bool, top string) {
	if f == "" {
		return
	}
	if stat {
		part := strings.SplitN(f, "\t", 3)
		if len(part) != 3 {
			return
		}
		c.Paths = append(c.Paths, part[2])
		c.Lines += number(part[0]) + number(part[1])
		return
	}
	c.Paths = append(c.Paths, f)
	c.Lines += countLines(filepath.Join(top, filepath.FromSlash(f)))
}

// number is a count of numstat, 1 for a binary file's two "-" together.
func number(s string) int {
	n := 0
	for _, r := range s {
		if r < '0' || r > '9' || n > 1<<30 {
			return 0
		}
		n = 10*n + int(r-'0')
	}
	return n
}

// countLines counts the lines of the beginning of a file.
func countLines(name string) int {
	fi, err := os.Lstat(name)
	if err != nil || !fi.Mode().IsRegular() {
		return 1
	}
	f, err := openFile(name)
	if err != nil {
		return 1
	}
	defer f.Close()
	buf := make([]byte, 256<<10)
	n, _ := f.Read(buf) // what cannot be read counts as one line
	return max(1, strings.Count(string(buf[:n]), "\n"))
}

// Head is the commit that is checked out, "" before the first one.
func (t Tree) Head(ctx context.Context) (string, error) { return t.git(t.Top).Resolve(ctx, "HEAD") }

// Has reports whether there is such a commit.
func (t Tree) Has(ctx context.Context, commit string) bool {
	if commit == "" || !t.Git {
		return false
	}
	c, err := t.git(t.Top).Resolve(ctx, commit)
	return err == nil && c != ""
}

// Diff is what changed since a commit, as text, new files with what they hold;
// at most so many bytes.
func (t Tree) Diff(ctx context.Context, commit, scratch string, most int) (string, error) {
	c, err := t.ChangeSince(ctx, commit, scratch)
	if err != nil {
		return "", err
	}
	index, drop, err := t.indexCopy(scratch)
	if err != nil {
		return "", err
	}
	defer drop()
	g := t.git(t.Top)
	var b strings.Builder
	tracked := map[string]bool{}
	if c.Commit != "" {
		out, err := g.RunIndex(ctx, index, t.with("diff", "--no-renames", "--no-ext-diff", "--no-textconv", "--ignore-submodules=dirty", c.Commit)...)
		if err != nil {
			return "", err
		}
		b.Write(out)
		if out, err = g.RunIndex(ctx, index, t.with("diff", "--name-only", "-z", "--no-renames", "--no-ext-diff", "--ignore-submodules=dirty", c.Commit)...); err != nil {
			return "", err
		}
		for f := range strings.SplitSeq(string(out), "\x00") {
			tracked[f] = true
		}
	}
	for _, p := range c.Paths {
		if tracked[p] || b.Len() > most || c.in(p) {
			continue
		}
		b.WriteString("\nnew file " + p + "\n" + t.beginning(p, most-b.Len()))
	}
	for _, sub := range c.subs {
		if b.Len() > most {
			break
		}
		text, err := sub.diff(ctx, scratch, most-b.Len())
		if err != nil {
			return "", err
		}
		b.WriteString(text)
	}
	text := b.String()
	if len(text) > most {
		text = text[:most] + "\n[… the rest is left out …]\n"
	}
	return strings.ToValidUTF8(text, "\uFFFD"), nil
}

// beginning is the text that a file begins with, "" for what is no text.
func (t Tree) beginning(p string, most int) string {
	f, err := openFile(filepath.Join(t.Top, filepath.FromSlash(p)))
	if err != nil {
		return ""
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, int64(max(0, most))+1))
	if err != nil || bytes.IndexByte(data, 0) >= 0 {
		return "(binary)\n"
	}
	return string(data) + "\n"
}

// indexCopy is a copy of the index for commands that would write it.
func (t Tree) indexCopy(scratch string) (index string, drop func(), err error) {
	dir, err := os.MkdirTemp(scratch, scratchPrefix)
	if err != nil {
		return "", nil, err
	}
	drop = func() { _ = os.RemoveAll(dir) } // what is left is swept
	if err := copyIndex(t.own.dir, t.own.index, dir); err != nil {
		drop()
		return "", nil, err
	}
	return filepath.Join(dir, "index"), drop, nil
}

// scratchPrefix begins the names of directories that are needed for moments.
const scratchPrefix = "index-"
