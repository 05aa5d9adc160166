package git

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"reprise/internal/durable"
)

// freshBatch bounds how many files git is asked about at once, so that what it answers can
// be kept in memory.
const freshBatch = 256

// Fresh are those of some files that are, byte for byte, what git would write if it checked
// them out now. Git calls such a file changed where what it makes of it on the way back is
// something else: line ends that a later .gitattributes has git convert, or a file that was
// added before a filter such as that of LFS was in use. Nobody has changed those. files has
// the blob that the index holds of each path, which is one from the top of the checkout, whose
// mode is the same there. Of a path that git converts nothing of it is not asked.
func (g *Git) Fresh(ctx context.Context, files map[string]string) (map[string]bool, error) {
	fresh := map[string]bool{}
	seen := map[string]bool{}
	var names []string
	for name, id := range files {
		if isID(id) && !strings.ContainsAny(name, "\n\x00") && strings.TrimLeft(name, " \t") == name && g.mayConvert(name, seen) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for part := range slices.Chunk(names, freshBatch) {
		if err := g.freshOf(ctx, part, files, fresh); err != nil {
			return nil, err
		}
	}
	return fresh, nil
}

// Unchanged is Fresh for paths of which the index is still to be asked.
func (g *Git) Unchanged(ctx context.Context, names []string) (map[string]bool, error) {
	seen := map[string]bool{}
	names = slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !g.mayConvert(name, seen) })
	files := map[string]string{}
	for part := range slices.Chunk(names, freshBatch) {
		out, err := g.Run(ctx, append([]string{"--literal-pathspecs", "ls-files", "--stage", "-z", "--"}, part...)...)
		if err != nil {
			return nil, err
		}
		for _, rec := range splitNUL(out) {
			about, name, _ := strings.Cut(rec, "\t")
			f := strings.Fields(about)
			fi, err := os.Lstat(filepath.Join(g.dir, filepath.FromSlash(name)))
			if len(f) != 3 || f[2] != "0" || err != nil || !fi.Mode().IsRegular() {
				continue
			}
			if f[0] == "100644" && !runnable(fi) || f[0] == "100755" && runnable(fi) {
				files[name] = f[1]
			}
		}
	}
	return g.Fresh(ctx, files)
}

// runnable says that git takes a file for one that can be run, as far as the system has that.
func runnable(fi fs.FileInfo) bool { return fi.Mode()&0o100 != 0 }

// freshOf is Fresh of a few files.
func (g *Git) freshOf(ctx context.Context, names []string, files map[string]string, fresh map[string]bool) error {
	mark := rand.Text() + "\n" // before each one: the size that git would say is that before its filters
	var in bytes.Buffer
	for _, name := range names {
		fmt.Fprintf(&in, "%s %s\n", files[name], name)
	}
	out, err := g.RunInput(ctx, in.Bytes(), "cat-file", "--filters", "--batch="+strings.TrimSuffix(mark, "\n"))
	if err != nil {
		return fmt.Errorf("see what a checkout would make: %w", err)
	}
	made := strings.Split(string(out), mark)
	if len(made) != len(names)+1 {
		return nil // an object is not there: what git says of the files counts
	}
	for i, name := range names {
		at := filepath.Join(g.dir, filepath.FromSlash(name))
		if fi, err := os.Lstat(at); err != nil || !fi.Mode().IsRegular() || fi.Size() != int64(len(made[i+1])-1) {
			continue
		}
		data, err := durable.Read(at)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		if string(data)+"\n" == made[i+1] {
			fresh[name] = true
		}
	}
	return nil
}

// mayConvert says that there may be attributes by which git converts a file. seen has the
// answers for directories. A file that only the setting core.attributesFile names is not
// looked for.
func (g *Git) mayConvert(name string, seen map[string]bool) bool {
	dir := path.Dir(name)
	has, known := seen[dir]
	if known {
		return has
	}
	if dir == "." {
		has = there(filepath.Join(g.dir, ".gitattributes")) || g.attributesBeside()
	} else {
		has = there(filepath.Join(g.dir, filepath.FromSlash(dir), ".gitattributes")) || g.mayConvert(dir, seen)
	}
	seen[dir] = has
	return has
}

// attributesBeside says that a repository, a user or the machine has attributes that are in no
// checkout.
func (g *Git) attributesBeside() bool {
	admin := LinkedDir(g.dir)
	if admin == "" {
		admin = filepath.Join(g.dir, ".git")
	}
	home := g.o.Vars["XDG_CONFIG_HOME"]
	if home == "" {
		home = filepath.Join(g.o.Vars["HOME"], ".config")
	}
	return slices.ContainsFunc([]string{filepath.Join(CommonOf(admin), "info", "attributes"), filepath.Join(home, "git", "attributes"), "/etc/gitattributes"}, there)
}

// CommonDir is the git directory that all worktrees of the repository share which the checkout
// around a directory belongs to, "" where there is none.
func CommonDir(dir string) string {
	admin := adminAround(dir)
	if admin == "" {
		return ""
	}
	return CommonOf(admin)
}

// CommonOf is the git directory that all worktrees of a repository share, of which admin is
// that of one; admin itself where nothing says otherwise.
func CommonOf(admin string) string {
	data, err := durable.Read(filepath.Join(admin, "commondir"))
	if err != nil {
		return admin
	}
	common := filepath.FromSlash(strings.TrimRight(string(data), "\r\n"))
	if !filepath.IsAbs(common) {
		common = filepath.Join(admin, common)
	}
	return common
}
