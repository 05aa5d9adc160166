//go:build !windows

package config

import (
	"os"
	"path/filepath"
	"syscall"
)

// foreignFile says whose the project file of root is, where that is somebody else's than the
// user's, the administrator's, or whoever owns start: in a directory above that others may write
// to, such as /tmp, anybody could make the project that everything below it belongs to. Git has
// the same rule for its repositories.
func foreignFile(root, start string) (uid int, foreign bool) {
	mine := []int{os.Geteuid(), 0}
	if info, err := os.Stat(start); err == nil {
		if st, ok := info.Sys().(*syscall.Stat_t); ok {
			mine = append(mine, int(st.Uid))
		}
	}
	file := ProjectFile(root)
	for _, place := range []string{file, filepath.Dir(file)} {
		info, err := os.Lstat(place)
		if err != nil {
			continue // what cannot be looked at is told when it is read
		}
		st, ok := info.Sys().(*syscall.Stat_t)
		if !ok {
			continue
		}
		known := false
		for _, m := range mine {
			known = known || int(st.Uid) == m
		}
		if !known {
			return int(st.Uid), true
		}
	}
	return 0, false
}
