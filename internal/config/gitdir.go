package config

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"reprise/internal/pathname"
)

type gitKind int

const (
	gitNone   gitKind = iota // no .git here
	gitMain                  // the top of a repository's main checkout
	gitLinked                // the top of a linked worktree
	gitModule                // the top of a submodule
)

// gitTop finds the working tree that dir is in, a submodule's where it is in one. main is
// its main checkout, "" outside git.
func gitTop(dir string) (top, main string, err error) {
	for d := dir; ; d = filepath.Dir(d) {
		kind, m, err := gitAt(d)
		if err != nil {
			return "", "", err
		}
		switch kind {
		case gitMain, gitModule:
			return d, d, nil
		case gitLinked:
			return d, m, nil
		}
		if d == filepath.Dir(d) {
			return "", "", nil
		}
	}
}

// gitAt tells what kind of git working tree has its top at dir. A linked
// worktree is believed only when the repository it names points back at it: a
// .git file that someone dropped somewhere must not make a directory part of a
// project elsewhere.
func gitAt(dir string) (kind gitKind, main string, err error) {
	dot := filepath.Join(dir, ".git")
	info, err := os.Stat(dot)
	switch {
	case err != nil && (errors.Is(err, fs.ErrNotExist) || notDir(err)):
		return gitNone, "", nil
	case errors.Is(err, syscall.ELOOP): // as useless as any other file of that name, and no reason to record nothing
		return gitMain, dir, nil
	case err != nil:
		return gitNone, "", fmt.Errorf("look for a git repository: %w", err)
	case info.IsDir():
		return gitMain, dir, nil
	}
	gitdir, ok := GitPointer(dot, "gitdir: ")
	if !ok {
		return gitMain, dir, nil
	}
	common, ok := GitPointer(filepath.Join(gitdir, "commondir"), "")
	if !ok {
		// A submodule, or a repository with its git directory elsewhere.
		if ofModule(gitdir) {
			return gitModule, dir, nil
		}
		return gitMain, dir, nil
	}
	back, ok := GitPointer(filepath.Join(gitdir, "gitdir"), "")
	if !ok || !pathname.Same(back, dot) || filepath.Dir(filepath.Dir(gitdir)) != common {
		return gitMain, dir, nil // forged
	}
	if main = MainCheckout(common); main == "" {
		return gitMain, dir, nil // not a worktree of a checkout, as a bare repository has none
	}
	return gitLinked, main, nil
}

// ofModule tells the git directory of a submodule: it lies in the one of what the submodule is
// a part of, or of a linked worktree of that, in modules.
func ofModule(gitdir string) bool {
	for d := filepath.Dir(gitdir); d != filepath.Dir(d); d = filepath.Dir(d) {
		if filepath.Base(d) != "modules" {
			continue
		}
		if up := filepath.Dir(d); filepath.Base(up) == ".git" {
			return true
		} else if _, err := os.Lstat(filepath.Join(up, "HEAD")); err == nil {
			return true
		}
	}
	return false
}

// MainCheckout is the top of the main checkout of a repository, whose git directory is common;
// "" where it has none, or nothing says where it is: git knows that of a submodule by the
// setting core.worktree, and of a repository with its git directory elsewhere not at all.
func MainCheckout(common string) string {
	if filepath.Base(common) == ".git" {
		return filepath.Dir(common)
	}
	for _, name := range [...]string{"config.worktree", "config"} {
		top := gitSetting(filepath.Join(common, name), "core", "worktree")
		if top == "" {
			continue
		}
		if top = filepath.FromSlash(top); !filepath.IsAbs(top) {
			top = filepath.Join(common, top)
		}
		if own, ok := GitPointer(filepath.Join(top, ".git"), "gitdir: "); !ok || !pathname.Same(own, common) {
			continue
		}
		if real, err := filepath.EvalSymlinks(top); err == nil {
			return real
		}
	}
	return ""
}

// Outermost is the top of the checkout that no other has as its submodule: that of what the
// one at top is a part of, or top itself.
func Outermost(top string) string {
	for {
		kind, _, err := gitAt(top)
		if err != nil || kind != gitModule {
			return top
		}
		up, _, err := gitTop(filepath.Dir(top))
		if err != nil || up == "" {
			return top
		}
		top = up
	}
}

// gitSetting is what a file of git's settings says in a section, "" where it does not.
func gitSetting(file, section, key string) string {
	data, err := readFile(file)
	if err != nil {
		return ""
	}
	in := false
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "[") {
			in = strings.EqualFold(strings.ReplaceAll(line, " ", ""), "["+section+"]")
			continue
		}
		name, value, ok := strings.Cut(line, "=")
		if in && ok && strings.EqualFold(strings.TrimSpace(name), key) {
			return gitValue(strings.TrimSpace(value))
		}
	}
	return ""
}

// gitValue is a value as git means it, which quotes what has blanks at its ends or marks of
// comments in it, and each backslash.
func gitValue(s string) string {
	if len(s) > 1 && strings.HasPrefix(s, `"`) && strings.HasSuffix(s, `"`) {
		s = s[1 : len(s)-1]
	}
	return strings.NewReplacer(`\\`, `\`, `\"`, `"`, `\t`, "\t").Replace(s)
}

// GitConfigOf is the file of git's settings of the checkout at top, as far as it has its own.
func GitConfigOf(top string) string {
	dot := filepath.Join(top, ".git")
	gitdir, ok := GitPointer(dot, "gitdir: ")
	if !ok {
		return filepath.Join(dot, "config")
	}
	if common, ok := GitPointer(filepath.Join(gitdir, "commondir"), ""); ok {
		gitdir = common
	}
	return filepath.Join(gitdir, "config")
}

// GitPointer is the path that one of git's one-line files names after the prefix (gitdir,
// commondir, the .git of a linked worktree or of a submodule: gitrepository-layout(5)), made
// absolute: git means it from where the file lies. ok is false where there is none.
func GitPointer(file, prefix string) (path string, ok bool) {
	data, err := readFile(file)
	if err != nil || !bytes.HasPrefix(data, []byte(prefix)) {
		return "", false
	}
	path = filepath.FromSlash(strings.TrimRight(string(data[len(prefix):]), "\r\n"))
	switch {
	case path == "" || strings.ContainsRune(path, 0):
		return "", false
	case filepath.IsAbs(path):
		return filepath.Clean(path), true
	}
	return filepath.Join(filepath.Dir(file), path), true
}

// GitMain is the top of the main checkout that dir belongs to, "" outside git.
// dir's own links are resolved.
func GitMain(dir string) string {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return ""
	}
	_, main, err := gitTop(real)
	if err != nil {
		return ""
	}
	return main
}
