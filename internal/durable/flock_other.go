//go:build !linux && !darwin

package durable

import (
	"os"

	"github.com/gofrs/flock"
)

// flocked is a file whose lock this process has.
type flocked struct{ l *flock.Flock }

// tryFlock takes the lock of a file that is there, without waiting: nil when
// another has it.
func tryFlock(path string, shared bool) (*flocked, error) {
	l := flock.New(path, flock.SetFlag(os.O_RDONLY))
	try := l.TryLock
	if shared {
		try = l.TryRLock
	}
	ok, err := try()
	if !ok || err != nil {
		return nil, err
	}
	return &flocked{l}, nil
}

func (l *flocked) stat() (os.FileInfo, error) { return l.l.Stat() }
func (l *flocked) unlock() error              { return l.l.Unlock() }
