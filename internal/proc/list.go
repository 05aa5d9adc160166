package proc

import (
	"bytes"
	"fmt"
	"os"
	"time"
)

// Entry is a process of the machine's table, with what may be known of it.
type Entry struct {
	ID     ID
	Parent int
	// Orphan says that whoever started it has ended: what adopts orphans is its
	// parent now. A service that the system itself started looks the same.
	Orphan bool
	// Terminal says that it has a controlling terminal, or that the system does
	// not say.
	Terminal bool
	// Mine says that it runs as the user of the caller.
	Mine bool
	// Began is when it started by the machine's clock, a second more or less.
	Began time.Time
	// Args are the words that it was started with, its program first; on Windows
	// the program's name alone. Nil where they may not be read.
	Args []string
	// Dir is its working directory, "" where that may not be read.
	Dir string
	// RunID is the run that it belongs to, see [RunIDVar].
	RunID string
}

// List is the process table without what has ended and without the caller. What of
// a process may not be read is left out of its entry.
func List() ([]Entry, error) {
	all, err := table()
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	adopters := map[int]bool{0: true, 1: true}
	living := map[int]bool{}
	for _, p := range all {
		living[p.pid] = !p.ended
		if adopts(p) {
			adopters[p.pid] = true
		}
	}
	boot, self := bootName(), os.Getpid()
	clock := newClock()
	var out []Entry
	var buf []byte
	for _, p := range all {
		if p.ended || p.pid == self {
			continue
		}
		e := Entry{ID: ID{PID: p.pid, Start: p.start, Boot: boot}, Parent: p.ppid, Terminal: p.terminal, Began: clock.began(p.start)}
		e.Orphan = adopters[p.ppid] || !living[p.ppid]
		describe(p, &e)
		if env, err := environOf(p, &buf); err == nil {
			e.RunID = markerIn(env)
		}
		if now, err := lookup(p.pid); err != nil || now.start != p.start {
			continue // the number has changed hands since
		}
		out = append(out, e)
	}
	return out, nil
}

// words divides a block of arguments that are ended by NUL.
func words(block []byte) []string {
	var out []string
	for _, w := range bytes.Split(bytes.TrimRight(block, "\x00"), []byte{0}) {
		out = append(out, string(w))
	}
	return out
}
