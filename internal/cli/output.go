package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"syscall"
)

// output is what the commands print to. It remembers the first write that failed, so that
// [Main] says so: a script must not take an empty file for an answer.
type output struct {
	io.Writer
	failed atomic.Pointer[outputError]
}

// outputError is the error of a write to the program's output.
type outputError struct{ err error }

func (e *outputError) Error() string {
	return fmt.Sprintf("the output could not be written: %v", e.err)
}
func (e *outputError) Unwrap() error { return e.err }

// Write is the output's, and the errors of all are of one kind.
func (o *output) Write(p []byte) (int, error) {
	n, err := o.Writer.Write(p)
	if err == nil {
		return n, nil
	}
	e := &outputError{err: err}
	o.failed.CompareAndSwap(nil, e)
	return n, e
}

// Typed hands on what is printed for programs; see [typed].
func (o *output) Typed(v any) { typed(o.Writer, v) }

// err is the first error of a write, nil where a reader merely went away.
func (o *output) err() error {
	e := o.failed.Load()
	if e == nil || errors.Is(e, syscall.EPIPE) || errors.Is(e, io.ErrClosedPipe) {
		return nil
	}
	return e
}

// outFile is the file, pipe or terminal that is printed to, nil where it is none.
func (a *App) outFile() *os.File {
	w := a.Out
	if o, ok := w.(*output); ok {
		w = o.Writer
	}
	f, _ := w.(*os.File)
	return f
}
