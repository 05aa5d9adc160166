package proc

import (
	"slices"
	"testing"
)

// What names a repository goes, and whose settings and name count stays.
func TestWithoutRepository(t *testing.T) {
	t.Parallel()
	stay := []string{"PATH=/bin", "GIT_AUTHOR_NAME=a", "GIT_SSH_COMMAND=ssh -v", "GIT_CONFIG_GLOBAL=/x", "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*", "GIT_DIRECTORY=none of git's"}
	given := append([]string{"GIT_DIR=/a/.git", "GIT_WORK_TREE=/a", "GIT_INDEX_FILE=/a/.git/index", "GIT_PREFIX=", "GIT_CONFIG_PARAMETERS='a.b=c'"}, stay...)
	if got := WithoutRepository(given); !slices.Equal(got, stay) {
		t.Errorf("%q", got)
	}
	if len(given) != 13 || given[0] != "GIT_DIR=/a/.git" {
		t.Errorf("what was given is changed: %q", given)
	}
	if got := WithoutRepository([]string{"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=core.workTree", "GIT_CONFIG_VALUE_0=/a"}); slices.Contains(got, "GIT_CONFIG_COUNT=1") {
		t.Errorf("%q", got)
	}
}
