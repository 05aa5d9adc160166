//go:build !unix

package hookmain

import (
	"io"
	"os"
	"time"
)

func noCore() {}

// readInput reads all of the standard input: at most limit bytes, for at most
// that long.
func readInput(f *os.File, limit int, patience time.Duration) ([]byte, error) {
	type result struct {
		b   []byte
		err error
	}
	done := make(chan result, 1)
	go func() {
		b, err := io.ReadAll(io.LimitReader(f, int64(limit)+1))
		done <- result{b, err}
	}()
	select {
	case r := <-done:
		if r.err == nil && len(r.b) > limit {
			r.err = errLong
		}
		return r.b, r.err
	case <-time.After(patience):
		return nil, errSlow
	}
}
