package git

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"reprise/internal/durable"
)

// A git that is killed leaves its lock files, and every later one fails at them. Git
// holds one for moments, so one that is old was left, unless its maker was stopped or
// slept: where that can be seen (Linux), a git that was there before the lock keeps it.
const (
	leftAge     = time.Minute
	leftUnknown = 10 * time.Minute // where it cannot be seen who works in the repository
)

// Lock is a lock file of git's in a repository.
type Lock struct {
	Path  string
	Since time.Time
	// Left says that whoever made it is gone: it is old, and no git that was started
	// before it works in the repository.
	Left bool
}

// Locks are git's lock files in this bare repository, those of its worktrees, refs and
// packs too.
func (g *Git) Locks() ([]Lock, error) {
	var out []Lock
	err := filepath.WalkDir(g.bare, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // gone meanwhile
		}
		if err != nil {
			return err
		}
		if d.IsDir() && len(d.Name()) == 2 && filepath.Base(filepath.Dir(path)) == "objects" {
			return fs.SkipDir // loose objects, which have none
		}
		if !d.Type().IsRegular() || !strings.HasSuffix(path, ".lock") {
			return nil
		}
		fi, err := d.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		out = append(out, Lock{Path: path, Since: fi.ModTime(), Left: g.left(fi)})
		return nil
	})
	return out, err
}

// left says that a lock was left by a git that is no more.
func (g *Git) left(fi fs.FileInfo) bool {
	if g.o.Now == nil {
		return false
	}
	age := g.o.Now().Sub(fi.ModTime())
	if age < leftAge {
		return false
	}
	working, known := gitsIn(g.bare, fi.ModTime())
	if !known {
		return age >= leftUnknown
	}
	return !working
}

// RemoveLeft removes the locks that were left, and names them.
func (g *Git) RemoveLeft() ([]string, error) {
	list, err := g.Locks()
	if err != nil {
		return nil, err
	}
	var out []string
	for _, l := range list {
		if !l.Left {
			continue
		}
		if err := durable.Remove(l.Path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return out, err
		}
		out = append(out, l.Path)
	}
	return out, nil
}

// lockIn is the lock file that git's words say is there already, "" where they say
// nothing of one. git was started in dir.
func lockIn(stderr, dir string) string {
	path := ""
	if _, rest, ok := strings.Cut(stderr, "Unable to create '"); ok {
		path, _, _ = strings.Cut(rest, ".lock': File exists")
	} else if _, rest, ok := strings.Cut(stderr, "could not lock config file "); ok {
		path, _, _ = strings.Cut(rest, ": File exists")
	}
	if path == "" || strings.Contains(path, "\n") {
		return ""
	}
	if path = filepath.FromSlash(path) + ".lock"; !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	return path
}

// heldBy says who may hold a lock and what to do: git's own words are for those who know
// what it keeps in which file.
func (g *Git) heldBy(lock string) string {
	age := ""
	if fi, err := os.Stat(lock); err == nil {
		age = fmt.Sprintf(", since %s", fi.ModTime().UTC().Format(time.RFC3339))
	}
	s := "git's lock " + lock + " is there" + age + ": another git is at work in the repository, such as that of an editor, and it helps to wait for it; or one that was killed left it"
	if g.o.Now != nil {
		return s + ", and then it is removed by the next command once it is a minute old"
	}
	return s + ": remove that file if no git runs there"
}

// Held says of a command that failed at a lock file which one it is, since when it is there,
// who may hold it and what to do; "" where it did not fail at one.
func (e *Error) Held() string { return e.held }

// repositoryOf is the repository directory that a file of git's lies in, such as a lock of a
// linked worktree's; "" where it lies in none.
func repositoryOf(path string) string {
	for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
		if _, err := os.Lstat(filepath.Join(dir, "objects")); err == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			return ""
		}
	}
}

// LockedAt is the lock file at which a command has failed, "" where it did not fail at one.
func LockedAt(err error) string {
	var e *Error
	if !errors.As(err, &e) {
		return ""
	}
	return e.Lock
}

// TakeLeft removes one lock file of a repository, which may be a user's, if it is
// at least so old and whoever made it is gone; what is no such file stays. Where it cannot
// be seen who works in the repository that goes by age alone, and then only in a linked
// worktree: another's git may hold the main checkout for as long as its editor is open.
func TakeLeft(path string, least time.Duration, now time.Time) (gone bool, err error) {
	repository := repositoryOf(path)
	if repository == "" || !strings.HasSuffix(path, ".lock") {
		return false, nil
	}
	rel, err := filepath.Rel(repository, path)
	if err != nil {
		return false, err
	}
	fi, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return true, nil
	case err != nil:
		return false, err
	}
	age := now.Sub(fi.ModTime())
	if !fi.Mode().IsRegular() || age < least {
		return false, nil
	}
	working, known := gitsIn(repository, fi.ModTime())
	linked := strings.HasPrefix(filepath.ToSlash(rel), "worktrees/")
	if working || !known && (!linked || age < leftUnknown) {
		return false, nil
	}
	if err := durable.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	return true, nil
}

// unlocked says that a command failed at a lock that was left, and that it is gone now.
func (g *Git) unlocked(err error) bool {
	var e *Error
	if g.o.Now == nil || g.bare == "" || !errors.As(err, &e) || !strings.Contains(e.Stderr, "File exists") {
		return false
	}
	gone, rerr := g.RemoveLeft()
	return rerr == nil && len(gone) > 0
}
