//go:build !windows

package config

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
)

// foreignFile says whose the project file of root is, where that is somebody else's than the
// user's, the administrator's, or whoever owns start: in a directory above that others may write
// to, such as /tmp, anybody could make the project that everything below it belongs to. Git has
// the same rule for its repositories.
func foreignFile(root, start string) (uid int, foreign bool) {
	file := ProjectFile(root)
	info, err := os.Lstat(file)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, false
	}
	mine := []int{os.Geteuid(), 0}
	if info, err := os.Stat(start); err == nil {
		mine = append(mine, ownerOf(info))
	}
	if err == nil && !slices.Contains(mine, ownerOf(info)) {
		return ownerOf(info), true
	}
	// Of a file that cannot be looked at the directory tells whose it is.
	if info, err = os.Lstat(filepath.Dir(file)); err == nil && !slices.Contains(mine, ownerOf(info)) {
		return ownerOf(info), true
	}
	return 0, false
}

// ownerOf is the user whose a file is; the administrator, whom everybody trusts, where the system
// does not say.
func ownerOf(info fs.FileInfo) int {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(st.Uid)
	}
	return 0
}
