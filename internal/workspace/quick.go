package workspace

import (
	"context"
	"path/filepath"
	"strings"

	"reprise/internal/durable"
	"reprise/internal/git"
)

// What can be told from the files of a repository is told from them: a process of git
// takes longer than all of it. Where that is not enough, git is asked.

// beginsAt is the git directory that all worktrees of a checkout's repository share, and
// the commit that is checked out; ok is false where git has to be asked.
func (m *Manager) beginsAt(ctx context.Context, top string) (common, commit string, ok bool) {
	dir, common := gitDirOf(top), commonOf(top)
	if common == "" {
		return "", "", false
	}
	commit, ok = m.headIn(ctx, common, dir)
	return common, commit, ok && commit != ""
}

// commonOf is the git directory that all worktrees of a checkout's repository share, without
// symbolic links; "" where top is no checkout.
func commonOf(top string) string {
	dir := gitDirOf(top)
	if dir == "" {
		return ""
	}
	common := git.CommonOf(dir)
	if real, err := filepath.EvalSymlinks(common); err == nil {
		common = real
	}
	return common
}

// headIn is the commit that HEAD in the git directory of a checkout stands for, "" before
// the first one.
func (m *Manager) headIn(ctx context.Context, common, dir string) (commit string, ok bool) {
	g := m.repo(&Workspace{Common: common})
	ref := headRef(dir)
	if ref == "" {
		data, err := durable.Read(filepath.Join(dir, "HEAD"))
		commit = strings.TrimSpace(string(data))
		if err != nil || len(commit) < 40 || strings.Trim(commit, "0123456789abcdef") != "" {
			return "", false
		}
	} else {
		if !strings.HasPrefix(ref, "refs/heads/") {
			return "", false // it may be one of the worktree's own
		}
		refs, err := g.Refs(ctx, ref)
		if err != nil {
			return "", false
		}
		if commit = refs[ref]; commit == "" {
			return "", true
		}
	}
	list, err := g.Objects(ctx, commit)
	return commit, err == nil && len(list) == 1 && list[0].Kind == "commit"
}

// unused says that no branch has this name or one that differs in case only, here or at a
// remote, so that nothing stands against it; false where git has to be asked.
func (m *Manager) unused(ctx context.Context, common, branch string) bool {
	refs, err := m.repo(&Workspace{Common: common}).Refs(ctx, "refs/heads/", "refs/remotes/")
	if err != nil {
		return false
	}
	for ref := range refs {
		name, local := strings.CutPrefix(ref, "refs/heads/")
		if local && strings.EqualFold(name, branch) || !local && len(ref) > len(branch) && strings.EqualFold(ref[len(ref)-len(branch)-1:], "/"+branch) {
			return false
		}
	}
	return true
}
