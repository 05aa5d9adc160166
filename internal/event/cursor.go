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
	"os"
	"path/filepath"
	"slices"
	"strings"

	"reprise/internal/durable"
	"reprise/internal/event/quick"
)

// Cursor is how far a log file was read. The zero value is its beginning.
type Cursor struct {
	Offset int64  `json:"offset"` // bytes read, whole lines
	Lines  int    `json:"lines"`  // lines read
	Size   int    `json:"size"`   // bytes of the last one, with its newline; of one that is too long, of its last part
	Hash   string `json:"hash"`   // SHA-256 of the last one, as the next one's prev names it
}

// Item is an event and its place in the log.
type Item struct {
	Event
	File  string // name within the directory
	Line  int    // from 1
	Start int64  // offset of the line
	Next  Cursor // where to go on once this item is dealt with
}

// ErrChanged is the error of a cursor whose file does not hold any more what
// was read: it was purged, migrated or restored, or a power cut took its last
// lines. What was derived from the log is to be made again from the beginning.
var ErrChanged = errors.New("the log is not the one that was read before")

// ReadFrom yields the events of dir that stand after the cursors, by file name,
// in the order of each file; not merged by time as [Read] does. A file without
// a cursor is read whole. All cursors are checked before anything is yielded: one
// that does not fit any more yields one error that is [ErrChanged], and nothing
// else. A line that cannot be used yields an error that is a [*LineError] with
// an item of its place alone, whose Next goes past it. A last line without
// newline is left for the next time.
//
// An item's strings share the memory of its line; a few kept hold it all.
func ReadFrom(dir string, from map[string]Cursor) iter.Seq2[Item, error] {
	return func(yield func(Item, error) bool) {
		d, files, err := list(dir)
		if err != nil {
			yield(Item{}, err)
			return
		}
		if d != nil {
			defer d.Close()
		}
		var names []string
		for _, month := range slices.Sorted(maps.Keys(files)) {
			names = append(names, files[month]...)
		}
		for name, c := range from {
			if err := c.check(d, name, names); err != nil {
				yield(Item{File: name}, err)
				return
			}
		}
		for _, name := range names {
			if !readOn(d, name, from[name], yield) {
				return
			}
		}
	}
}

// check reports whether the file still holds the line that the cursor was set
// after.
func (c Cursor) check(d *durable.Dir, name string, names []string) error {
	if c.Offset == 0 {
		return nil
	}
	bad := func(why string) error { return fmt.Errorf("%w: %s: %s", ErrChanged, name, why) }
	if !slices.Contains(names, name) {
		return bad("the file is gone")
	}
	f, err := d.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return bad("the file is gone")
	}
	if err != nil {
		return fmt.Errorf("read events: %w", err)
	}
	defer f.Close()
	if c.Size <= 0 || int64(c.Size) > c.Offset || c.Size > maxRead {
		return bad("the cursor is none")
	}
	last := make([]byte, c.Size)
	if _, err := f.ReadAt(last, c.Offset-int64(c.Size)); errors.Is(err, io.EOF) {
		return bad("it is shorter than it was")
	} else if err != nil {
		return fmt.Errorf("read events: %s: %w", filepath.Join(d.Path(), name), err)
	}
	if text, ok := bytes.CutSuffix(last, []byte("\n")); !ok || quick.Hash(text) != c.Hash {
		return bad("the line that was read last is another one")
	}
	return nil
}

// readOn yields what follows the cursor in one file; it returns whether to go on.
func readOn(d *durable.Dir, name string, at Cursor, yield func(Item, error) bool) bool {
	fail := func(err error) bool { return yield(Item{File: name}, fmt.Errorf("read events: %w", err)) }
	f, err := d.Open(name)
	if err != nil {
		return fail(err)
	}
	defer f.Close()
	if _, err := f.Seek(at.Offset, io.SeekStart); err != nil {
		return fail(err)
	}
	goOn := true
	err = eachLine(f, func(text []byte, size int64, long bool) bool {
		item := Item{File: name, Line: at.Lines + 1, Start: at.Offset}
		var err error
		if long {
			err = errLong()
		} else {
			item.Event, err = parseText(string(text))
		}
		at.Hash, at.Size = quick.Hash(text), len(text)+1
		at.Offset += size
		at.Lines++
		item.Next = at
		if err != nil {
			err = &LineError{File: filepath.Join(d.Path(), name), Line: item.Line, Err: err}
		}
		goOn = yield(item, err)
		return goOn
	})
	if err != nil {
		return fail(err)
	}
	return goOn
}

// eachLine calls yield with each line that has an end, its size with the end,
// and whether it is too long to be held: then the text is its last part alone.
// The text is valid until the next one.
func eachLine(f *os.File, yield func(text []byte, size int64, long bool) bool) error {
	br := bufio.NewReaderSize(f, 256<<10)
	var buf []byte
	for {
		buf = buf[:0]
		size, long := int64(0), false
		for {
			part, err := br.ReadSlice('\n')
			size += int64(len(part))
			if err == nil && len(buf) == 0 && !long { // almost always the line is in the buffer whole
				if !yield(part[:len(part)-1], size, false) {
					return nil
				}
				break
			}
			if long = long || size > maxRead; !long {
				buf = append(buf, part...)
			}
			if errors.Is(err, bufio.ErrBufferFull) {
				continue
			}
			if errors.Is(err, io.EOF) {
				return nil // no end: still being written, or never acknowledged
			}
			if err != nil {
				return err
			}
			if long {
				buf = append(buf[:0], part...)
			}
			if !yield(bytes.TrimSuffix(buf, []byte("\n")), size, long) {
				return nil
			}
			break
		}
	}
}

// FileNames are the log files of dir, in the order in which [ReadFrom] reads
// them. A directory that does not exist has none.
func FileNames(dir string) ([]string, error) {
	d, files, err := list(dir)
	if d == nil || err != nil {
		return nil, err
	}
	defer d.Close()
	var names []string
	for _, month := range slices.Sorted(maps.Keys(files)) {
		names = append(names, files[month]...)
	}
	return names, nil
}

// logName reports whether a file's name is that of a log file, and its month.
func logName(name string) (month string, ok bool) {
	stem, ok := strings.CutSuffix(name, quick.Ext)
	if !ok || len(stem) < 9 || stem[7] != '.' || stem[4] != '-' {
		return "", false
	}
	for i, c := range []byte(stem) {
		switch {
		case i == 4 || i == 7:
		case c >= '0' && c <= '9':
		case i > 7 && (c >= 'a' && c <= 'z' || c == '-' || c == '_'):
		default:
			return "", false
		}
	}
	return stem[:7], true
}
