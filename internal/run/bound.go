package run

import (
	"context"
	"errors"
	"fmt"
	"os"

	"reprise/internal/durable"
)

// outputBounds bound what a run's output takes of the disk while it works, in bytes: an agent
// that prints all night must not fill it.
type outputBounds struct {
	head, tail int64 // of each file, that stay: how it began, and what readers take for its end
	most       int64 // that a file may take before its middle is given back
	whole      int64 // that it may take where no middle can be given back
}

// defaultBounds leave each run of any use whole: the longest session of a model writes some
// hundred megabytes.
var defaultBounds = outputBounds{head: 16 << 20, tail: 128 << 20, most: 1 << 30, whole: 4 << 30}

// block is what parts that are given back are rounded to.
const block = 4 << 10

// bound gives back the middle of output that has become too long. The agent writes on, and
// what was given back is read as zeros. Where the system cannot do that, a run is ended before
// it fills the disk.
func (s *supervisor) bound(ctx context.Context) {
	for len(s.given) < len(s.output) {
		s.given = append(s.given, s.bounds.head)
	}
	for i, f := range s.output {
		info, err := f.Stat()
		if err != nil || s.stopped {
			return
		}
		read := info.Size()
		if i == 0 && s.tail != nil {
			read = min(read, s.tail.Offset()) // what was not followed yet stays
		}
		to := (read - s.bounds.tail) / block * block
		if to-s.given[i] < s.bounds.most-s.bounds.head-s.bounds.tail {
			continue
		}
		err = durable.Hole(f, s.given[i], to)
		switch {
		case err == nil:
			s.r.Logs.CutBytes += to - s.given[i]
			s.given[i] = to
			fmt.Fprintf(os.Stderr, "%s: bytes %d to %d are given back to the disk: it is longer than %d\n", f.Name(), s.bounds.head, to, s.bounds.most)
		case info.Size() < s.bounds.whole:
		case errors.Is(err, errors.ErrUnsupported):
			s.stop(ctx, Failed, fmt.Sprintf("it has put out more than %d MB, the most that a run may where this system cannot give a part of it back", s.bounds.whole>>20))
		default:
			s.stop(ctx, Failed, fmt.Sprintf("it has put out more than %d MB, and a part of it could not be given back: %v", s.bounds.whole>>20, err))
		}
	}
}
