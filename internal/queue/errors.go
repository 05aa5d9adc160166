package queue

import (
	"errors"
	"fmt"

	"reprise/internal/durable"
)

// What a queue's errors are about; they are found by errors.Is. Who works through the
// night asks [Over] and [ForNow]: an error that is neither is one that only a person can do
// something about, such as a store that may not be written, and has changed nothing.
var (
	// ErrEmpty: nothing that was asked for is ready at the moment.
	ErrEmpty = errors.New("nothing is ready")
	// ErrNotFound: there is no such item.
	ErrNotFound = errors.New("no such item")
	// ErrLost: the claim is not the item's current one. Its lease ran out and the
	// item went on, it was settled otherwise, or the item is not there any more, and then
	// the error is ErrNotFound, too. What the worker says is refused, and will be.
	ErrLost = errors.New("claim lost")
	// ErrState: the item is in a state in which that cannot be done.
	ErrState = errors.New("not possible in this state")
	// ErrInvalid: what was given is no item that a queue takes.
	ErrInvalid = errors.New("invalid item")
	// ErrCycle: the item would wait for itself.
	ErrCycle = errors.New("dependency cycle")
	// ErrDamaged: the item's record cannot be read. It is left as it is.
	ErrDamaged = errors.New("damaged item")
	// ErrNewer: the item's record was written by a newer program. It is left alone as one that
	// is damaged is, and is nobody's to give up: its errors are ErrDamaged, too.
	ErrNewer = errors.New("item of a newer reprise")
	// ErrAway: the store cannot be used for the moment: its disk is full or fails, there
	// are no file descriptors left, its servers do not answer. A claim stays what it was,
	// what was to be changed is as it was or all of it changed, and asking again does no
	// harm and may help. The texts of such errors say what is the matter, and not this.
	ErrAway = errors.New("the queue is away for the moment")
)

// MissingError says of an item that it is to depend on one that the queue has not got. It is
// ErrInvalid.
type MissingError struct {
	On   string // the id or key
	text string
}

func (e *MissingError) Error() string { return ErrInvalid.Error() + ": " + e.text }

// Unwrap returns ErrInvalid.
func (e *MissingError) Unwrap() error { return ErrInvalid }

// newerError is of an item in a format that this program does not know yet.
type newerError struct{ v int }

func (e *newerError) Error() string {
	return fmt.Sprintf("%v: it has format %d, and this program knows up to %d: use a newer reprise here", ErrNewer, e.v, version)
}

func (e *newerError) Is(target error) bool { return target == ErrNewer || target == ErrDamaged }

// Over reports whether an error about a claim ([Queue.Extend], Progress, Done, Fail,
// Release, and Park by its token) says that the claim is over: the item went on, was
// settled otherwise, vanished, or cannot be read. Nothing that is said under its token
// will be heard again.
func Over(err error) bool {
	return errors.Is(err, ErrLost) || errors.Is(err, ErrNotFound) || errors.Is(err, ErrState) || errors.Is(err, ErrDamaged)
}

// ForNow reports whether an error is one of the moment, [ErrAway]: what was asked may be
// asked again, and a claim that was had is still had, as far as its lease goes.
func ForNow(err error) bool { return errors.Is(err, ErrAway) }

// Away marks an error as ErrAway, for backends. Its text stays as it is.
func Away(err error) error {
	if err == nil || ForNow(err) {
		return err
	}
	return away{err}
}

type away struct{ error }

func (a away) Unwrap() error        { return a.error }
func (a away) Is(target error) bool { return target == ErrAway }

// storeError says where an error of the file system is from, and whether it is one of the moment.
func storeError(err error) error {
	if err == nil {
		return nil
	}
	if durable.Passing(err) {
		err = Away(err)
	}
	return fmt.Errorf("queue: %w", err)
}

// Gone is the error about a claim whose item is not there any more, for backends.
func Gone(id string) error {
	return fmt.Errorf("%w: %w: %s is not in the queue any more", ErrLost, ErrNotFound, id)
}
