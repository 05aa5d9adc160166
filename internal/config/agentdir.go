package config

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"reprise/internal/durable"
	"reprise/internal/pathname"
)

// agentDir is where an agent's own state is in a checkout, below the project's
// root: a checkout of another repository, which is not the project's.
var agentDir = filepath.Join(".reprise", "agent")

// isAgentDir says that dir is such a place: what lies in it belongs to the project
// around it, although a repository of its own begins there.
func isAgentDir(dir string) bool {
	return filepath.Base(dir) == "agent" && filepath.Base(filepath.Dir(dir)) == ".reprise"
}

// AgentDir is where the agent that works in dir has its state: in the checkout
// that dir is in, where the project's root is in that. It need not exist.
func AgentDir(p *Project, dir string) string { return AgentDirIn(CheckoutRoot(p, dir)) }

// CheckoutRoot is the project's root in the checkout that dir is in: of a linked
// worktree that has no project file, the place where it would have one.
func CheckoutRoot(p *Project, dir string) string {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return p.Root
	}
	rel, err := filepath.Rel(p.Main, p.Root)
	if err != nil {
		return p.Root
	}
	for d := real; d != p.Root; d = filepath.Dir(d) {
		if kind, main, err := gitAt(d); err == nil && kind == gitLinked && pathname.Same(main, p.Main) {
			return filepath.Join(d, rel)
		}
		if d == filepath.Dir(d) {
			break
		}
	}
	return p.Root
}

// HideAgentDir sees to it that git does not take the agent's state at root for a
// part of the code: by the line in .gitignore, where that is there, else by one in
// the repository's own info/exclude, which is nobody's but this clone's. Outside
// git there is nothing to do.
func HideAgentDir(root string) error {
	data, err := durable.Read(filepath.Join(root, ".gitignore"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("keep %s out of git: %w", ignoreLine, err)
	}
	if err == nil && bytes.Equal(withIgnoreLine(data, ignoreLine), data) {
		return nil
	}
	return ExcludeAgentDir(root)
}

// ExcludeAgentDir adds the line to the info/exclude of the repository that root
// is in, unless it is there.
func ExcludeAgentDir(root string) error {
	file, top, err := excludeFile(root)
	if err != nil || file == "" {
		return err
	}
	data, err := durable.Read(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("keep %s out of git: %w", ignoreLine, err)
	}
	line := ignoreLine
	if top != root {
		line = "**/" + ignoreLine // a slash within ties a line to the top
	}
	next := withIgnoreLine(data, line)
	if bytes.Equal(next, data) {
		return nil
	}
	if err := durable.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return fmt.Errorf("keep %s out of git: %w", ignoreLine, err)
	}
	if err := durable.WriteFile(file, next, 0o644); err != nil {
		return fmt.Errorf("keep %s out of git: %w", ignoreLine, err)
	}
	return nil
}

// excludeFile is the info/exclude that git reads for dir, and the top of its working
// tree; "" outside git.
func excludeFile(dir string) (file, top string, err error) {
	for d := dir; ; d = filepath.Dir(d) {
		dot := filepath.Join(d, ".git")
		fi, err := os.Stat(dot)
		switch {
		case err == nil && fi.IsDir():
			return filepath.Join(dot, "info", "exclude"), d, nil
		case err == nil:
			gitdir, ok := GitPointer(dot, "gitdir: ")
			if !ok {
				return "", "", nil
			}
			if common, ok := GitPointer(filepath.Join(gitdir, "commondir"), ""); ok {
				gitdir = common
			}
			return filepath.Join(gitdir, "info", "exclude"), d, nil
		case !errors.Is(err, fs.ErrNotExist) && !notDir(err):
			return "", "", fmt.Errorf("keep %s out of git: %w", ignoreLine, err)
		}
		if d == filepath.Dir(d) {
			return "", "", nil
		}
	}
}

// IgnoreAgentDir adds the line to root's .gitignore, unless it is there.
func IgnoreAgentDir(root string) error { return addIgnoreLine(root) }

// AgentDirIn is where an agent has its state in a checkout, of which root is the
// project's root.
func AgentDirIn(root string) string { return filepath.Join(root, agentDir) }
