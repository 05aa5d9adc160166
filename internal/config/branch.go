package config

import (
	"path/filepath"
	"strings"
)

// CodeBranch is the branch that the code around dir is on, as its HEAD says; ""
// outside git, and where HEAD is at a commit. Git itself is not run.
func CodeBranch(dir string) string {
	branch, _ := headOf(codeGitDir(dir))
	return branch
}

// CodeHead is the branch and the commit that the code around dir is at, as far as
// files tell: the branch as [CodeBranch] has it, the commit where refs are files or
// packed in one, "" elsewhere and before the first commit. Git itself is not run.
func CodeHead(dir string) (branch, commit string) {
	gitdir := codeGitDir(dir)
	branch, commit = headOf(gitdir)
	if branch == "" {
		return "", commit
	}
	common := gitdir
	if at, ok := GitPointer(filepath.Join(gitdir, "commondir"), ""); ok {
		common = at
	}
	ref := "refs/heads/" + branch
	if data, err := readFile(filepath.Join(common, filepath.FromSlash(ref))); err == nil {
		if id := strings.TrimSpace(string(data)); isCommit(id) {
			return branch, id
		}
		return branch, ""
	}
	data, err := readFile(filepath.Join(common, "packed-refs"))
	if err != nil {
		return branch, ""
	}
	for line := range strings.Lines(string(data)) {
		if id, name, ok := strings.Cut(strings.TrimRight(line, "\r\n"), " "); ok && name == ref && isCommit(id) {
			return branch, id
		}
	}
	return branch, ""
}

// codeGitDir is the git directory of the code's checkout around dir, "" outside git.
func codeGitDir(dir string) string {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return ""
	}
	for d := real; ; d = filepath.Dir(d) {
		kind, _, err := gitAt(d)
		if err != nil {
			return ""
		}
		if kind != gitNone && !isAgentDir(d) {
			gitdir := filepath.Join(d, ".git")
			if at, ok := GitPointer(gitdir, "gitdir: "); ok {
				gitdir = at
			}
			return gitdir
		}
		if d == filepath.Dir(d) {
			return ""
		}
	}
}

// headOf reads the HEAD of a git directory.
func headOf(gitdir string) (branch, commit string) {
	if gitdir == "" {
		return "", ""
	}
	head, err := readFile(filepath.Join(gitdir, "HEAD"))
	if err != nil {
		return "", ""
	}
	text := strings.TrimSpace(string(head))
	if isCommit(text) {
		return "", text
	}
	name, ok := strings.CutPrefix(text, "ref: refs/heads/")
	if !ok || name == ".invalid" { // reftable's stand-in
		return "", ""
	}
	return name, ""
}

func isCommit(s string) bool {
	return (len(s) == 40 || len(s) == 64) && strings.Trim(s, "0123456789abcdef") == ""
}
