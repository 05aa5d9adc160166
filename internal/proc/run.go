package proc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

// Output is what a short command said.
type Output struct {
	// Stdout and Stderr are the first bytes of each, up to the limit.
	Stdout, Stderr []byte
	// StdoutBytes and StderrBytes are the whole lengths.
	StdoutBytes, StderrBytes int64
	Exit                     Exit
}

// Cut reports whether anything was left out of Stdout or Stderr.
func (o Output) Cut() bool {
	return o.StdoutBytes > int64(len(o.Stdout)) || o.StderrBytes > int64(len(o.Stderr))
}

const (
	// drainTime is how long Run waits for the end of output after the command
	// ended: a daemon it left behind may hold the pipe for ever.
	drainTime = 250 * time.Millisecond
	// killTime bounds the killing of a command that ran into its timeout.
	killTime = 5 * time.Second
)

// Run runs a short helper command in a group of its own and returns up to
// maxOut bytes of its standard output and as many of its standard error; the
// rest is read and thrown away, so that the command never blocks. If ctx ends
// first, the command and all its descendants are killed and the error wraps
// ctx's; what was said until then is returned with it. A failing command is
// not an error: look at Exit. Stdout and Stderr of c must be nil.
func Run(ctx context.Context, c Cmd, maxOut int) (Output, error) {
	if c.Stdout != nil || c.Stderr != nil {
		return Output{}, fmt.Errorf("run %s: Stdout and Stderr are taken by Run", c.Path)
	}
	if err := ctx.Err(); err != nil {
		return Output{}, fmt.Errorf("run %s: %w", c.Path, err)
	}
	var so, se sink
	ro, wo, err := os.Pipe()
	if err != nil {
		return Output{}, fmt.Errorf("run %s: %w", c.Path, err)
	}
	defer ro.Close()
	re, we, err := os.Pipe()
	if err != nil {
		_ = wo.Close()
		return Output{}, fmt.Errorf("run %s: %w", c.Path, err)
	}
	defer re.Close()
	c.Stdout, c.Stderr, c.NewGroup = wo, we, true
	p, err := Start(c)
	_, _ = wo.Close(), we.Close() // the child has its own
	if err != nil {
		return Output{}, err
	}
	var readers sync.WaitGroup
	readers.Go(func() { so.from(ro, maxOut) })
	readers.Go(func() { se.from(re, maxOut) })
	drained := make(chan struct{})
	go func() { readers.Wait(); close(drained) }()

	var stopErr error
	select {
	case <-p.Done():
	case <-ctx.Done():
		kctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), killTime)
		_, stopErr = StopTree(kctx, p.ID(), "", 0)
		cancel()
		stopErr = errors.Join(fmt.Errorf("run %s: %w", c.Path, context.Cause(ctx)), stopErr)
	}
	var exit Exit
	if stopErr == nil || ended(p, killTime) {
		exit, err = p.Wait()
	}
	select {
	case <-drained:
	case <-time.After(drainTime):
		_, _ = ro.Close(), re.Close() // ends the readers
		<-drained
	}
	out := Output{Stdout: so.kept, StdoutBytes: so.total, Stderr: se.kept, StderrBytes: se.total, Exit: exit}
	return out, errors.Join(stopErr, err)
}

// ended waits for the end of a killed process: one that is stuck in the kernel
// must not hold the caller.
func ended(p *Process, limit time.Duration) bool {
	select {
	case <-p.Done():
		return true
	case <-time.After(limit):
		return false
	}
}

// sink keeps the first bytes of a stream and counts all.
type sink struct {
	kept  []byte
	total int64
}

func (s *sink) from(r io.Reader, limit int) {
	buf := make([]byte, 8<<10)
	for {
		n, err := r.Read(buf)
		s.total += int64(n)
		if room := limit - len(s.kept); room > 0 {
			s.kept = append(s.kept, buf[:min(n, room)]...)
		}
		if err != nil {
			return // end of output, or Run stopped waiting
		}
	}
}
