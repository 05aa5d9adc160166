package event

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"reprise/internal/durable"
)

// maxRead is how long a line may be to be read at all: other programs' lines
// must not fill the memory.
const maxRead = 4 * MaxLine

// LineError is a line that cannot be used. Reading goes on after it.
type LineError struct {
	File string // path
	Line int    // from 1
	Err  error
}

func (e *LineError) Error() string { return fmt.Sprintf("%s:%d: %v", e.File, e.Line, e.Err) }

// Unwrap returns the cause.
func (e *LineError) Unwrap() error { return e.Err }

// line is one line of a file.
type line struct {
	n    int
	text []byte // without the newline; valid until the next line
	torn bool   // the newline is missing: being written, or torn by a crash
	err  error  // the text is not all of it
}

// Read yields the events in dir: month by month, and within a month the hosts'
// files merged by time. A line that cannot be used yields an error that is a
// [*LineError], a file that cannot be read one that names it, and reading goes
// on. A last line without newline is left out: it is still being written, or
// was never acknowledged. A directory that does not exist has no events.
func Read(dir string) iter.Seq2[Event, error] { return ReadSince(dir, time.Time{}) }

// ReadSince is [Read] without the files of the months before since; of its own
// month it yields all. The zero time is the beginning.
func ReadSince(dir string, since time.Time) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		d, files, err := list(dir)
		if err != nil {
			yield(Event{}, err)
			return
		}
		if d == nil {
			return
		}
		defer d.Close()
		for _, month := range slices.Sorted(maps.Keys(files)) {
			if !since.IsZero() && month < since.UTC().Format("2006-01") {
				continue
			}
			if !readMonth(d, files[month], yield) {
				return
			}
		}
	}
}

// OfRun yields the events of a run that stand in dir since the month of a moment, file by file.
// Lines in which its id does not stand are not taken apart: a log of many megabytes is looked
// through in some milliseconds, and what is wrong with them is told by others.
func OfRun(dir, run string, since time.Time) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		d, files, err := list(dir)
		if err != nil {
			yield(Event{}, err)
			return
		}
		if d == nil || run == "" {
			return
		}
		defer d.Close()
		id, goOn := []byte(run), true
		for _, month := range slices.Sorted(maps.Keys(files)) {
			if month < since.UTC().Format("2006-01") {
				continue
			}
			for _, name := range files[month] {
				for l, err := range readLines(d, name) {
					switch {
					case err != nil:
						goOn = yield(Event{}, err)
					case !l.torn && bytes.Contains(l.text, id):
						if e, err := parse(l); err == nil && e.Run == run {
							goOn = yield(e, nil)
						}
					}
					if !goOn {
						return
					}
				}
			}
		}
	}
}

// source is one host's file while a month is merged.
type source struct {
	next func() (Event, error, bool)
	head Event
	at   time.Time // by which head is merged
}

// advance moves to the source's next event, reporting errors on the way. It
// returns whether there is one, and whether to go on at all.
func (s *source) advance(yield func(Event, error) bool) (more, goOn bool) {
	for {
		e, err, ok := s.next()
		if !ok {
			return false, true
		}
		if err == nil {
			s.head, s.at = e, e.TS
			if e.Prev != "" && startsChain(e) {
				s.at = time.Time{} // a purge, later than all that follows it in its file
			}
			return true, true
		}
		if !yield(Event{}, err) {
			return false, false
		}
	}
}

func readMonth(d *durable.Dir, names []string, yield func(Event, error) bool) bool {
	var open []*source
	for _, name := range names {
		next, stop := iter.Pull2(readFile(d, name))
		defer stop()
		s := &source{next: next}
		more, goOn := s.advance(yield)
		if !goOn {
			return false
		}
		if more {
			open = append(open, s)
		}
	}
	for len(open) > 0 {
		first := 0
		for i, s := range open {
			if s.at.Before(open[first].at) {
				first = i
			}
		}
		s := open[first]
		if !yield(s.head, nil) {
			return false
		}
		more, goOn := s.advance(yield)
		if !goOn {
			return false
		}
		if !more {
			open = slices.Delete(open, first, first+1)
		}
	}
	return true
}

func readFile(d *durable.Dir, name string) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		for l, err := range readLines(d, name) {
			if err != nil {
				if !yield(Event{}, err) {
					return
				}
				continue
			}
			if l.torn {
				return
			}
			e, err := parse(l)
			if err != nil {
				err = &LineError{File: filepath.Join(d.Path(), name), Line: l.n, Err: err}
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

func parse(l line) (Event, error) {
	if l.err != nil {
		return Event{}, l.err
	}
	return parseText(string(l.text))
}

func parseText(line string) (Event, error) {
	var e Event
	if err := e.decode(line); err != nil {
		return Event{}, fmt.Errorf("%w: %v", ErrInvalid, err)
	}
	if err := e.checkRead(); err != nil {
		return Event{}, err
	}
	return e, nil
}

func errLong() error {
	return fmt.Errorf("%w: the line is longer than %d bytes", ErrInvalid, maxRead)
}

// readLines yields a file's lines; an error means that the file cannot be read
// any further.
func readLines(d *durable.Dir, name string) iter.Seq2[line, error] {
	return func(yield func(line, error) bool) {
		f, err := d.Open(name)
		if err != nil {
			yield(line{}, fmt.Errorf("read events: %w", err))
			return
		}
		defer f.Close()
		scanLines(f, func(l line, err error) bool {
			if err != nil {
				err = fmt.Errorf("read events: %w", err)
			}
			return yield(l, err)
		})
	}
}

func scanLines(r io.Reader, yield func(line, error) bool) {
	br := bufio.NewReaderSize(r, 64<<10)
	var buf []byte
	for n := 1; ; n++ {
		l := line{n: n}
		buf = buf[:0]
		for {
			part, err := br.ReadSlice('\n')
			if len(buf)+len(part) > maxRead {
				l.err = errLong()
			} else {
				buf = append(buf, part...)
			}
			if errors.Is(err, bufio.ErrBufferFull) {
				continue
			}
			if err == io.EOF {
				l.torn = true
			} else if err != nil {
				yield(line{}, err)
				return
			}
			break
		}
		if l.torn && len(buf) == 0 && l.err == nil {
			return
		}
		l.text = bytes.TrimSuffix(buf, []byte("\n"))
		if !yield(l, nil) || l.torn {
			return
		}
	}
}

// list opens dir and finds its event files by month; the directory is nil when
// it does not exist.
func list(dir string) (*durable.Dir, map[string][]string, error) {
	d, err := durable.OpenDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("read events: %w", err)
	}
	entries, err := d.ReadDir(".")
	if err != nil {
		d.Close()
		return nil, nil, fmt.Errorf("read events: %w", err)
	}
	files := map[string][]string{}
	for _, e := range entries {
		if month, ok := logName(e.Name()); ok {
			files[month] = append(files[month], e.Name())
		}
	}
	return d, files, nil
}
