package memory

import (
	"errors"
	"fmt"
)

// Access is what a program may do with the memory. People and the clients that
// they run have all of it. What runs inside a spawned run has what the run was
// given: a run's own tools never write memory, and neither may a reprise that
// the run starts, wherever no sandbox would stop it.
type Access int

// The levels.
const (
	FullAccess Access = iota
	ReadAccess
	NoAccess
)

// ErrDenied is wrapped where the program's access does not reach.
var ErrDenied = errors.New("not allowed inside a run")

// MayRead says why the memory may not be read with this access, if so.
func (a Access) MayRead() error {
	if a == NoAccess {
		return fmt.Errorf("open memory: %w: this run was started without allow_memory_read", ErrDenied)
	}
	return nil
}

// MayWrite says why the memory may not be written with this access, if so.
func (a Access) MayWrite() error {
	if a != FullAccess {
		return fmt.Errorf("write memory: %w: return what is worth keeping as your answer, and whoever started the run decides", ErrDenied)
	}
	return nil
}
