package config

import (
	"path/filepath"
	"strings"
)

// CodeBranch is the branch that the code around dir is on, as its HEAD says; ""
// outside git, and where HEAD is at a commit. Git itself is not run.
func CodeBranch(dir string) string {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return ""
	}
	for d := real; ; d = filepath.Dir(d) {
		if kind, _, err := gitAt(d); err != nil || kind != gitNone && !isAgentDir(d) {
			if err != nil {
				return ""
			}
			gitdir := filepath.Join(d, ".git")
			if at, ok := pointer(gitdir, "gitdir: "); ok {
				gitdir = absolute(d, at)
			}
			head, err := readFile(filepath.Join(gitdir, "HEAD"))
			if err != nil {
				return ""
			}
			name, ok := strings.CutPrefix(strings.TrimSpace(string(head)), "ref: refs/heads/")
			if !ok || name == ".invalid" { // reftable's stand-in
				return ""
			}
			return name
		}
		if d == filepath.Dir(d) {
			return ""
		}
	}
}
