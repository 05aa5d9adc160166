package plan

import (
	"strconv"
	"strings"
	"time"
)

// Kinds of what a path leads to.
const (
	Absent  = 'a' // nothing
	Dir     = 'd' // a directory: which one, not what is in it
	File    = 'f' // a regular file
	Other   = 'o' // something else
	Unknown = '?' // it cannot be told; never the same as anything
)

// Stamp is what a stat tells of a path: enough to say that a file is the one
// that was read, unchanged. Of a directory only which one it is counts, for
// .git changes with every command.
type Stamp struct {
	Kind byte
	Link bool // the path itself is a symbolic link; the rest is about its end
	// Of a file: bytes, and times in nanoseconds since 1970. Changed is the
	// time of the inode's last change, 0 where the system has none.
	Size, Modified, Changed int64
	Device, Inode           uint64
	Path                    string
}

// racy is how long after its last change a file must have been read for its
// stamp to tell a later change: the clocks of file systems tick this coarsely
// at worst (FAT: two seconds).
const racy = 2 * time.Second

// Settled reports whether the stamp, taken at that time, will tell every later
// change of the file.
func (s Stamp) Settled(at time.Time) bool {
	switch s.Kind {
	case Absent, Dir:
		return true
	case File:
		return max(s.Modified, s.Changed) < at.Add(-racy).UnixNano()
	}
	return false
}

func (s Stamp) text() string {
	b := []byte{s.Kind, '-'}
	if s.Link {
		b[1] = 'l'
	}
	for _, n := range [...]int64{s.Size, s.Modified, s.Changed} {
		b = strconv.AppendInt(append(b, ' '), n, 10)
	}
	for _, n := range [...]uint64{s.Device, s.Inode} {
		b = strconv.AppendUint(append(b, ' '), n, 10)
	}
	return string(append(append(b, ' '), s.Path...))
}

func parseStamp(text string) (Stamp, bool) {
	kind, rest, ok := strings.Cut(text, " ")
	if !ok || len(kind) != 2 {
		return Stamp{}, false
	}
	s := Stamp{Kind: kind[0], Link: kind[1] == 'l'}
	for _, into := range [...]*int64{&s.Size, &s.Modified, &s.Changed} {
		var f string
		if f, rest, ok = strings.Cut(rest, " "); !ok {
			return Stamp{}, false
		}
		if *into, ok = number(f); !ok {
			return Stamp{}, false
		}
	}
	for _, into := range [...]*uint64{&s.Device, &s.Inode} {
		var f string
		if f, rest, ok = strings.Cut(rest, " "); !ok {
			return Stamp{}, false
		}
		n, err := strconv.ParseUint(f, 10, 64)
		if err != nil {
			return Stamp{}, false
		}
		*into = n
	}
	s.Path = rest
	return s, rest != ""
}

func number(s string) (int64, bool) {
	n, err := strconv.ParseInt(s, 10, 64)
	return n, err == nil
}

func decimal(n int) string { return strconv.Itoa(n) }
