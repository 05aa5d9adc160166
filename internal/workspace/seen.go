package workspace

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"reprise/internal/durable"
	"reprise/internal/git"
)

// mayBeElsewhere finds in a repository's settings the two that, together, have git look at
// another directory in each worktree, or that more settings are read from elsewhere.
var mayBeElsewhere = regexp.MustCompile(`(?mi)^\s*worktree\b|\binclude`)

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
	if !bytes.Contains(bytes.ToLower(text), []byte("worktreeconfig")) || !mayBeElsewhere.Match(text) {
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
