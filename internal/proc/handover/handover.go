// Package handover lets one program do its work through another: the same
// input, the answer read back within a time and a size. It is apart from
// package proc because the hook program links it, and pays for each package at
// each tool call. It owns no files, writes none and takes no lock.
package handover

import (
	"errors"
	"io"
	"os"
	"time"
)

// Call says what to start.
type Call struct {
	Path string   // absolute
	Args []string // after the program's own name
	Env  []string
	Dir  string // "" is the caller's own
	// Input is all that the program reads.
	Input []byte
	// MaxOutput bounds what it may say, in bytes; more is an error.
	MaxOutput int
	// Timeout is after what time it is killed.
	Timeout time.Duration
}

// Errors of a call.
var (
	ErrTime    = errors.New("it took too long and was ended")
	ErrTooLong = errors.New("it said more than it may")
)

// Do starts the program and returns what it printed and how it ended. Its
// standard error is thrown away: in some clients it would be part of an answer.
// An error means that there is no answer to rely on; the program has ended or
// was killed by then.
func Do(c Call) (stdout []byte, exit int, err error) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, 0, err
	}
	defer null.Close()
	inR, inW, err := os.Pipe()
	if err != nil {
		return nil, 0, err
	}
	defer inR.Close()
	defer inW.Close()
	outR, outW, err := os.Pipe()
	if err != nil {
		return nil, 0, err
	}
	defer outR.Close()
	defer outW.Close()
	p, err := os.StartProcess(c.Path, append([]string{c.Path}, c.Args...), &os.ProcAttr{
		Dir: c.Dir, Env: c.Env, Files: []*os.File{inR, outW, null}, Sys: attributes(),
	})
	if err != nil {
		return nil, 0, err
	}
	_, _ = inR.Close(), outW.Close() // the child has its own
	timer := time.AfterFunc(c.Timeout, func() { kill(p) })
	go feed(inW, c.Input)
	said := make(chan result, 1)
	go func() {
		b, err := io.ReadAll(io.LimitReader(outR, int64(c.MaxOutput)+1))
		if len(b) > c.MaxOutput {
			kill(p)
			err = ErrTooLong
		}
		said <- result{b, err}
	}()
	st, err := p.Wait()
	inTime := timer.Stop()
	// What the child left behind may hold the pipe.
	drain := time.AfterFunc(drainTime, func() { _ = outR.Close() })
	r := <-said
	drain.Stop()
	switch {
	case !inTime:
		return nil, 0, ErrTime
	case err != nil:
		return nil, 0, err
	case r.err != nil && !errors.Is(r.err, os.ErrClosed):
		return nil, 0, r.err
	}
	return r.out, st.ExitCode(), nil
}

type result struct {
	out []byte
	err error
}

// drainTime is how long the end of the output is waited for after the program
// has ended.
const drainTime = 250 * time.Millisecond

// feed writes the input. A program that ends without reading all of it is
// judged by how it ends, so that errors are of no interest here.
func feed(w *os.File, input []byte) {
	defer w.Close()
	_, _ = w.Write(input)
}
