package proc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

// chunk is how much LineReader reads at once.
const chunk = 64 << 10

// LineReader reads lines of any length and keeps at most a fixed number of
// bytes of each. It holds the limit plus 64 KiB and never more, whatever comes.
type LineReader struct {
	r        io.Reader
	limit    int
	buf      []byte // read but not used yet: buf[pos:end]
	pos, end int
	line     []byte // the start of a line that did not fit into buf
	total    int64  // bytes of the unfinished line so far
	err      error
}

// NewLineReader reads from r and keeps up to limit bytes of a line (at least 1).
func NewLineReader(r io.Reader, limit int) *LineReader {
	return &LineReader{r: r, limit: max(limit, 1)}
}

// Next returns the next line without its '\n'. cut says that the line was
// longer than the limit and only its first bytes are there; total is its whole
// length in bytes. The slice is valid until the next call. A last line without
// '\n' is returned like any other; then the error is io.EOF.
func (l *LineReader) Next() (line []byte, cut bool, total int64, err error) {
	line, cut, total, err = l.next()
	if errors.Is(err, io.EOF) && l.total > 0 {
		line, cut, total = l.unfinished()
		return line, cut, total, nil
	}
	return line, cut, total, err
}

// next returns the next line that has its '\n'; at the end of what can be read
// it returns io.EOF and keeps the part it has.
func (l *LineReader) next() ([]byte, bool, int64, error) {
	for {
		if l.pos < l.end {
			part := l.buf[l.pos:l.end]
			if i := bytes.IndexByte(part, '\n'); i >= 0 {
				l.pos += i + 1
				return l.finish(part[:i])
			}
			l.keep(part)
			l.pos = l.end
		}
		if err := l.fill(); err != nil {
			return nil, false, 0, err
		}
	}
}

// finish returns the line that ends with part. If it lies whole in the buffer
// it is not copied.
func (l *LineReader) finish(part []byte) ([]byte, bool, int64, error) {
	if l.total == 0 {
		n := len(part)
		return part[:min(n, l.limit)], n > l.limit, int64(n), nil
	}
	l.keep(part)
	line, cut, total := l.unfinished()
	return line, cut, total, nil
}

// unfinished returns what there is of the current line and starts a new one.
func (l *LineReader) unfinished() ([]byte, bool, int64) {
	line, total := l.line, l.total
	l.line, l.total = l.line[:0], 0
	return line, total > int64(len(line)), total
}

func (l *LineReader) keep(part []byte) {
	l.total += int64(len(part))
	room := l.limit - len(l.line)
	if room <= 0 {
		return
	}
	part = part[:min(len(part), room)]
	if need := len(l.line) + len(part); need > cap(l.line) {
		// Doubling, but never beyond the limit, which append would do.
		grown := make([]byte, len(l.line), min(l.limit, max(need, 2*cap(l.line), 4<<10)))
		copy(grown, l.line)
		l.line = grown
	}
	l.line = append(l.line, part...)
}

func (l *LineReader) fill() error {
	if l.err != nil {
		return l.err
	}
	if l.buf == nil {
		l.buf = make([]byte, chunk)
	}
	for range 100 {
		n, err := l.r.Read(l.buf)
		l.pos, l.end = 0, n
		if err != nil && !errors.Is(err, io.EOF) {
			l.err = err
		}
		if n > 0 {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return io.ErrNoProgress
}

// ErrShrunk says that a followed file is shorter than what was read of it:
// somebody truncated or replaced it.
var ErrShrunk = errors.New("file shrank while it was followed")

// Tail reads the lines of a file that is still being written. A last line
// without '\n' waits until the rest is there.
type Tail struct {
	f     *os.File
	lines *LineReader
	read  int64
	until int64 // Read stops there; negative: nowhere
}

// NewTail follows a file from where it stands. The file is the Tail's from then
// on. limit is as in NewLineReader.
func NewTail(f *os.File, limit int) *Tail {
	t := &Tail{f: f, until: -1}
	t.lines = NewLineReader(t, limit)
	return t
}

// Allow lets n more bytes be read; after them Next returns io.EOF as if that
// were all. A writer may be faster than its reader, so whoever has other things
// to do between lines must not read until there is nothing left.
func (t *Tail) Allow(n int64) { t.until = t.read + n }

// Paused reports that Next returned io.EOF because of Allow.
func (t *Tail) Paused() bool { return t.until >= 0 && t.read >= t.until }

// Skip goes on near the file's end, so that about keep bytes are left to read,
// and returns how many it passed over: 0 if there are no more than that. Next
// then begins with a whole line.
func (t *Tail) Skip(keep int64) (int64, error) {
	st, err := t.f.Stat()
	if err != nil {
		return 0, fmt.Errorf("follow file: %w", err)
	}
	from := t.read - int64(t.lines.end-t.lines.pos) - t.lines.total
	// One byte before, so that a line that begins right there is not lost.
	to := st.Size() - keep - 1
	if to <= t.read {
		return 0, nil
	}
	if _, err := t.f.Seek(to, io.SeekStart); err != nil {
		return 0, fmt.Errorf("follow %s: %w", t.f.Name(), err)
	}
	t.read, t.until = to, -1
	t.lines = NewLineReader(t, t.lines.limit)
	_, _, _, err = t.lines.next()
	if err != nil && !errors.Is(err, io.EOF) {
		return 0, err
	}
	t.lines.unfinished()
	return t.read - int64(t.lines.end-t.lines.pos) - from, nil
}

// Read is for the line reader: it counts and looks for a file that shrank.
func (t *Tail) Read(b []byte) (int, error) {
	if t.until >= 0 {
		if t.read >= t.until {
			return 0, io.EOF
		}
		b = b[:min(int64(len(b)), t.until-t.read)]
	}
	n, err := t.f.Read(b)
	t.read += int64(n)
	if n == 0 && errors.Is(err, io.EOF) {
		if st, serr := t.f.Stat(); serr == nil && st.Mode().IsRegular() && st.Size() < t.read {
			return 0, fmt.Errorf("follow %s: %w: %d bytes, %d were read", t.f.Name(), ErrShrunk, st.Size(), t.read)
		}
	}
	return n, err
}

// Next returns the next whole line, as LineReader.Next does. io.EOF means that
// there is none for now; it may be called again when the file has grown.
func (t *Tail) Next() (line []byte, cut bool, total int64, err error) { return t.lines.next() }

// Rest returns the last line if it has no '\n', for when the writer has ended.
// ok is false if there is none.
func (t *Tail) Rest() (line []byte, cut bool, total int64, ok bool) {
	if t.lines.total == 0 {
		return nil, false, 0, false
	}
	line, cut, total = t.lines.unfinished()
	return line, cut, total, true
}

// Offset is the number of bytes read from the file.
func (t *Tail) Offset() int64 { return t.read }

// Close closes the file.
func (t *Tail) Close() error { return t.f.Close() }

// Follow calls fn for each line until done is closed and the file is read to
// its end, the unfinished last line included, or until ctx ends or fn returns
// an error. It looks for new bytes at each interval; one look costs a read.
func (t *Tail) Follow(ctx context.Context, done <-chan struct{}, every time.Duration, fn func(line []byte, cut bool, total int64) error) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for ended := false; ; {
		for {
			line, cut, total, err := t.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return err
			}
			if err := fn(line, cut, total); err != nil {
				return err
			}
			if err := ctx.Err(); err != nil {
				return err
			}
		}
		if ended {
			if line, cut, total, ok := t.Rest(); ok {
				return fn(line, cut, total)
			}
			return nil
		}
		select {
		case <-done:
			ended = true
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}
