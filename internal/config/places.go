package config

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Places are the directories whose earlier sessions are told to one in dir: dir
// and the top of its git working tree, or inside a project the project's root,
// its main checkout and where else it was on this machine. What sessions saw
// there before there was a project is so not lost to it. A directory that is
// reached by a symbolic link is named both ways, as a client may say either.
func Places(paths Paths, p *Project, dir string) []string {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		real = dir
	}
	list := []string{real}
	if p != nil {
		list = append(list, p.Root, p.Main)
		if c, err := readClaim(paths, p.Name); err == nil && c != nil {
			list = append(list, c.Roots...)
			for _, f := range c.Former {
				// Where it moved away from. One that is back is a project of its own.
				if _, err := os.Lstat(f.Root); errors.Is(err, fs.ErrNotExist) {
					list = append(list, f.Root)
				}
			}
		}
	} else if top, main, err := gitTop(real); err == nil {
		list = append(list, top, main)
	}
	var out []string
	for _, d := range list {
		for _, d := range []string{d, asReached(dir, real, d)} {
			if d != "" && !slices.Contains(out, d) {
				out = append(out, d)
			}
		}
	}
	return out
}

// asReached is a directory at or above real by the path that dir, the same place
// as real, was reached by; "" where it cannot be told.
func asReached(dir, real, above string) string {
	rel, err := filepath.Rel(above, real)
	if err != nil || above == "" || rel == ".." || strings.HasPrefix(rel, ".."+string(filepath.Separator)) {
		return ""
	}
	if rel == "." {
		return filepath.Clean(dir)
	}
	out, ok := strings.CutSuffix(filepath.Clean(dir), string(filepath.Separator)+rel)
	if !ok {
		return ""
	}
	return out
}

// ProjectOf names the project that a directory is of, "" for none. A project
// whose name stands for another on this machine has none here.
func ProjectOf(env Env, paths Paths, dir string) string {
	p, err := FindProject(env, dir)
	if err != nil || p == nil || CheckName(paths, p) != nil {
		return ""
	}
	return p.Name
}

// Forgetting is the directory of what is being forgotten at the moment.
func (p Paths) Forgetting() string { return filepath.Join(p.Data, "forgetting") }
