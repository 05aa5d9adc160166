package proc

import (
	"fmt"
	"os"
)

// Lifeline returns the two ends of a pipe on which nothing is ever written.
// The owner keeps w open for as long as it lives and gives r to the child, as
// its Stdin or as the first of its ExtraFiles, and closes its own r after the
// start. However the owner goes, kill -9 included, the kernel closes w and the
// child's WatchLifeline sees it. No other child inherits w.
func Lifeline() (r, w *os.File, err error) {
	r, w, err = os.Pipe()
	if err != nil {
		return nil, nil, fmt.Errorf("make a lifeline: %w", err)
	}
	return r, w, nil
}

// WatchLifeline returns a channel that is closed when the owner of the other
// end is gone. fd is the descriptor's number in this process: 0 for a lifeline
// on standard input (the only way on Windows), 3 for the first extra file. The
// descriptor belongs to the watcher from then on. A descriptor that is not
// open counts as a cut line.
func WatchLifeline(fd int) <-chan struct{} {
	cut := make(chan struct{})
	makePollable(fd)
	f := os.NewFile(uintptr(fd), "lifeline")
	go func() {
		defer close(cut)
		if f == nil {
			return
		}
		defer f.Close()
		var b [16]byte
		for {
			if _, err := f.Read(b[:]); err != nil {
				return
			}
		}
	}()
	return cut
}
