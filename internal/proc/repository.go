package proc

import (
	"slices"
	"strings"
)

// ofRepository are variables by which git is told which repository, index or files to work
// with, in place of those of its directory. They are there in git's hooks, in what `git rebase
// --exec` and aliases run, and in shells of programs that keep dot files.
var ofRepository = []string{
	"GIT_DIR", "GIT_WORK_TREE", "GIT_IMPLICIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR", "GIT_OBJECT_DIRECTORY",
	"GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_NAMESPACE", "GIT_PREFIX", "GIT_GRAFT_FILE", "GIT_SHALLOW_FILE", "GIT_QUARANTINE_PATH",
	"GIT_REPLACE_REF_BASE", "GIT_CONFIG", "GIT_CONFIG_PARAMETERS", "GIT_REFLOG_ACTION",
}

// OfRepository reports whether a variable of the environment tells git with which repository to
// work, or is of the one command of git that is just being done: what is started to work in a
// directory of its own must not get it.
func OfRepository(name string) bool { return slices.Contains(ofRepository, name) }

// WithoutRepository is an environment without what git is told of a repository by its
// variables, settings given as variables that name one with it.
func WithoutRepository(env []string) []string {
	named := slices.ContainsFunc(env, func(kv string) bool {
		name, value, _ := strings.Cut(kv, "=")
		return strings.HasPrefix(name, "GIT_CONFIG_KEY_") && (strings.EqualFold(value, "core.worktree") || strings.EqualFold(value, "core.bare"))
	})
	return slices.DeleteFunc(slices.Clone(env), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return OfRepository(name) || named && name == "GIT_CONFIG_COUNT" // without which the others are nothing
	})
}
