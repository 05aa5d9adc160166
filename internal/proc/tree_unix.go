//go:build unix

package proc

import (
	"fmt"
	"os"
	"syscall"
)

// politeSignal asks a process to end.
var politeSignal os.Signal = syscall.SIGTERM

func sweep(marker string) ([]ID, error) {
	all, err := Marked()
	if err != nil {
		return nil, err
	}
	return all[marker], nil
}

// Marked lists the processes of all runs, by run id, in one pass over the
// process table. The caller is left out. The limits are those of Sweep; on
// Windows it is not supported.
func Marked() (map[string][]ID, error) {
	all, err := table()
	if err != nil {
		return nil, fmt.Errorf("sweep processes: %w", err)
	}
	boot, self := bootName(), os.Getpid()
	found := map[string][]ID{}
	var buf []byte
	for _, p := range all {
		if p.ended || p.pid == self {
			continue
		}
		env, err := environOf(p, &buf)
		if err != nil {
			continue // ended meanwhile, or not ours to read
		}
		m := markerIn(env)
		if m == "" {
			continue
		}
		// The number may have changed hands since the table was read.
		if now, err := lookup(p.pid); err != nil || now.start != p.start {
			continue
		}
		found[m] = append(found[m], ID{PID: p.pid, Start: p.start, Boot: boot})
	}
	return found, nil
}
