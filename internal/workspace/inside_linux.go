package workspace

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// inside names processes that have their working directory in dir: an agent or a
// shell that somebody started there by hand. Those of others cannot be seen, and
// have no work there. own is this process's. At most three are named.
func inside(dir, own string) []string {
	if within(own, dir) {
		return []string{"this command"}
	}
	list, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var out []string
	for _, e := range list {
		if _, err := strconv.Atoi(e.Name()); err != nil {
			continue
		}
		at, err := os.Readlink(filepath.Join("/proc", e.Name(), "cwd"))
		if err != nil || !within(at, dir) {
			continue
		}
		name, _ := os.ReadFile(filepath.Join("/proc", e.Name(), "comm")) // without it the number has to do
		if out = append(out, fmt.Sprintf("%s (process %s)", strings.TrimSpace(string(name)), e.Name())); len(out) == 3 {
			break
		}
	}
	return out
}
