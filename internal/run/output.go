package run

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"reprise/internal/agent"
	"reprise/internal/durable"
	"reprise/internal/proc"
)

const (
	// lookBytes is how much output is read before time and requests are looked
	// at again: about a tenth of a second's work.
	lookBytes = 8 << 20
	// endBytes is how much of each end of an output is read when the run has
	// ended. What a client has to say about a run as a whole is at the ends,
	// and an agent can leave more than could be read in any bearable time.
	endBytes = 32 << 20
)

// feed gives the stream the lines that are there, up to about limit bytes.
func feed(stream agent.Stream, tail *proc.Tail, limit int64) error {
	tail.Allow(limit)
	for {
		line, cut, _, err := tail.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		stream.Line(line, cut)
	}
}

// feedEnds gives the stream what there is still to read of a finished output:
// all, or its beginning and its end.
func feedEnds(stream agent.Stream, tail *proc.Tail) error {
	if err := feed(stream, tail, endBytes); err != nil {
		return err
	}
	skipped, err := tail.Skip(endBytes)
	if err != nil {
		return err
	}
	if skipped > 0 {
		stream.Skip(skipped)
	}
	if err := feed(stream, tail, 2*endBytes); err != nil {
		return err
	}
	if line, cut, _, ok := tail.Rest(); ok {
		stream.Line(line, cut)
	}
	return nil
}

// readEnds reads the rest of the output of an agent that has ended.
func (s *supervisor) readEnds() {
	if s.tail == nil || s.unread != nil {
		return
	}
	if err := feedEnds(s.stream, s.tail); err != nil {
		s.unread = fmt.Errorf("its output can no longer be read: %w", err)
	}
}

// readFile is os.ReadFile for one of a run's files.
func readFile(path string) ([]byte, error) {
	f, err := durable.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(f)
}

// tailOf is the last n bytes of a file, "" if it cannot be read.
func tailOf(path string, n int64) string {
	f, err := durable.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return ""
	}
	data, err := io.ReadAll(io.NewSectionReader(f, max(0, info.Size()-n), n))
	if err != nil {
		return ""
	}
	return string(data)
}

// headOf is the beginning of a file in one line, "" if it cannot be read. A
// program that crashed says why first and prints its stacks then.
func headOf(path string, n int64) string {
	f, err := durable.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, n))
	if err != nil {
		return ""
	}
	return strings.Join(strings.Fields(strings.ToValidUTF8(string(data), "")), " ")
}

// reserveBytes is more than a record needs when it is written for the last
// time, twice because the old one is there until the new one is.
const reserveBytes = 16 << 10

// reserve sets disk space aside, so that on a disk that the agent has filled
// the record can still say how the run ended.
func (r *Record) reserve() error {
	data, err := encode(r)
	if err != nil {
		return fmt.Errorf("encode run %s: %w", r.ID, err)
	}
	f, err := r.disk.CreateHot(r.path(reserveFile), 0o600)
	if err != nil {
		return fmt.Errorf("set disk space aside for the record: %w", err)
	}
	fill := make([]byte, reserveBytes+2*len(data))
	for i, b := 0, uint32(1); i < len(fill); i++ {
		b = b*1664525 + 1013904223 // nothing that a file system could compress away
		fill[i] = byte(b >> 24)
	}
	_, err = f.Write(fill)
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("set disk space aside for the record: %w", err)
	}
	return nil
}

// keepResult writes the result on the space that was set aside for the end. A
// result that cannot be kept must not keep the record from telling the end, so
// what went wrong is returned as a reason.
func (r *Record) keepResult(res agent.Result) string {
	// If this fails, the writing that follows does too, and says why.
	_ = r.disk.Remove(r.path(reserveFile))
	if err := r.writeResult(res); err != nil {
		return fmt.Sprintf("its result could not be kept (%v); %s has what it said", err, r.Logs.Stdout)
	}
	return ""
}
