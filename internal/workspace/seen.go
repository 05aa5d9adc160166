package workspace

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"reprise/internal/durable"
	"reprise/internal/git"
)

// mayBeElsewhere says of a repository's settings that those may be among them which, together,
// have git look at another directory in each worktree, or that more are read from elsewhere.
func mayBeElsewhere(text []byte) bool {
	text = bytes.ToLower(text)
	if !bytes.Contains(text, []byte("worktreeconfig")) {
		return false
	}
	for line := range bytes.Lines(text) {
		if line = bytes.TrimSpace(line); bytes.HasPrefix(line, []byte("worktree")) || bytes.Contains(line, []byte("include")) {
			return true
		}
	}
	return false
}

// inPlace says that git, asked in a linked worktree of a repository, looks at that worktree. With
// extensions.worktreeConfig, core.worktree among the settings that all worktrees share counts
// for each of them: what is in a worktree is seen by nobody then, and an agent's commit takes
// what lies in the main one. common is the repository's directory.
func (m *Manager) inPlace(ctx context.Context, g *git.Git, common string) error {
	file := filepath.Join(common, "config")
	text, err := durable.Read(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if !mayBeElsewhere(text) {
		return nil
	}
	out, err := g.Run(ctx, "config", "--null", "--file", file, "--includes", "--list")
	if err != nil {
		return err
	}
	var tree string
	var each bool
	for rec := range strings.SplitSeq(string(out), "\x00") {
		key, value, _ := strings.Cut(rec, "\n")
		switch strings.ToLower(key) {
		case "core.worktree":
			tree = value
		case "extensions.worktreeconfig":
			each = !slices.Contains([]string{"false", "no", "off", "0"}, strings.ToLower(value))
		}
	}
	if tree == "" || !each {
		return nil
	}
	return fmt.Errorf("%w: core.worktree in %s counts for every worktree, since extensions.worktreeConfig is set, and so git looks at %s in each of them; in the main one, `git config --worktree core.worktree %q` and `git config --local --unset core.worktree` make it that one's own", ErrRefused, file, tree, tree)
}
