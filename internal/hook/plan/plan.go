// Package plan is what the hook program has to know before it can do anything:
// whose events these are, where they go, and which hooks are on. To find that
// out takes settings, a project file and git's pointers, which cost a hook more
// than all its other work. So the full program works it out and writes it down
// together with the stamps of every file that it depends on; the hook program
// believes it as long as a stat of each of them tells the same. What does not
// hold any more, or cannot be read, is no plan: then the full program is asked.
// A plan makes a hook quicker and never does anything else.
//
// It owns the files <cache>/hooks/<key>.plan, which may be deleted at any time.
// The full program writes them, through package durable; no lock is taken,
// for each is replaced as a whole and two writers write the same.
package plan

import (
	"errors"
	"path/filepath"
	"strconv"
	"strings"
)

// Version is the version of the file's form.
const Version = 2

// maxFile is longer than any plan that is written, in bytes.
const maxFile = 256 << 10

// Plan is what was worked out for sessions in one directory.
type Plan struct {
	Key     Key
	Host    string // as it stands in the log's file names
	Program string // the full program
	Project string // its name, "" outside any
	Root    string // of the project
	Events  string // directory of the event log
	Data    string // base directory of what must not be lost
	Log     string // reprise's own log
	LogMax  int64  // bytes at which the log is turned over
	Rules   Rules
	// Hand are the kinds of events with which the full program has something to
	// do once they are recorded.
	Hand []string
	// Tell are those among them that the recall program deals with: of events of
	// these kinds it says what is remembered.
	Tell []string
	// Home is what the recall program has to know of settings and project, on one
	// line; only package compile knows its form.
	Home   string
	Stamps []Stamp
}

// Has reports whether kinds, as in Hand and Tell, name an event: by its kind, or
// by kind and tool, as tool_before:ask.
func Has(kinds []string, kind, tool string) bool {
	for _, k := range kinds {
		if k == kind || tool != "" && k == kind+":"+tool {
			return true
		}
	}
	return false
}

// Key is what a plan was asked for: the directory and everything of the
// environment that decides about places and settings.
type Key struct {
	Dir  string // absolute
	Vars string // from [Vars]
}

// Vars joins the values of variables for a key.
func Vars(names []string, get func(string) string) string {
	var b []byte
	for _, n := range names {
		if v := get(n); v != "" {
			b = append(append(append(append(b, n...), '='), v...), 0)
		}
	}
	return string(b)
}

// File is where the plan of a key is.
func (k Key) File(cache string) string {
	return filepath.Join(cache, "hooks", k.Name()+".plan")
}

// Name is a file's name for the key: 16 hexadecimal digits.
func (k Key) Name() string {
	return hex64(hash64(hash64(hash64(offset64, k.Dir), "\x00"), k.Vars))
}

// ErrStale says that there is no plan that holds: nothing is wrong, and the
// full program makes one.
var ErrStale = errors.New("no plan that holds")

// staleError is ErrStale with its reason.
type staleError struct{ why string }

func (e *staleError) Error() string        { return ErrStale.Error() + ": " + e.why }
func (e *staleError) Is(target error) bool { return target == ErrStale }

func stale(why string) error { return &staleError{why} }

// Load reads the plan of a key and compares it with what there is now. Every
// error matches [ErrStale]; a plan that comes with one is the key's, and held
// before.
func Load(cache string, k Key, host string) (*Plan, error) {
	data, err := ReadFile(k.File(cache), maxFile)
	if err != nil {
		return nil, stale("it cannot be read: " + err.Error())
	}
	p, err := Parse(data)
	if err != nil {
		return nil, err
	}
	if p.Key != k {
		return nil, stale("it is another directory's or environment's")
	}
	if p.Host != host {
		return nil, stale("the machine has another name")
	}
	for i := range p.Stamps {
		if now := See(p.Stamps[i].Path); now != p.Stamps[i] || now.Kind == Unknown {
			return p, stale(p.Stamps[i].Path + " has changed")
		}
	}
	return p, nil
}

const head = "reprise hook plan "

// Encode is the plan as it stands in its file: one name and value a line, the
// last line a checksum. ok is false for a plan that has no such form.
func (p *Plan) Encode() (data []byte, ok bool) {
	w := writer{ok: true}
	w.b = append(strconv.AppendInt(append(w.b, head...), Version, 10), '\n')
	w.line("vars", p.Key.Vars)
	w.line("dir", p.Key.Dir)
	w.line("host", p.Host)
	w.line("program", p.Program)
	w.line("project", p.Project)
	w.line("root", p.Root)
	w.line("events", p.Events)
	w.line("data", p.Data)
	w.line("log", p.Log)
	w.line("logmax", strconv.FormatInt(p.LogMax, 10))
	p.Rules.encode(&w)
	for _, k := range p.Hand {
		w.line("hand", k)
	}
	for _, k := range p.Tell {
		w.line("tell", k)
	}
	if p.Home != "" {
		w.line("home", p.Home)
	}
	for _, s := range p.Stamps {
		w.line("stamp", s.text())
	}
	w.b = append(append(append(w.b, "end "...), hex64(hash64(offset64, string(w.b)))...), '\n')
	return w.b, w.ok && len(w.b) <= maxFile
}

type writer struct {
	b  []byte
	ok bool
}

func (w *writer) line(name, value string) {
	// A name of a file may hold a line end. Such a place has no plan.
	w.ok = w.ok && strings.IndexByte(value, '\n') < 0
	w.b = append(append(append(append(w.b, name...), ' '), value...), '\n')
}

// Parse reads what [Plan.Encode] made. Every error matches [ErrStale].
func Parse(data []byte) (*Plan, error) {
	s := string(data)
	const tail = len("end ") + 16 + 1
	if len(s) < tail || s[len(s)-tail:] != "end "+hex64(hash64(offset64, s[:len(s)-tail]))+"\n" {
		return nil, stale("it is damaged")
	}
	s = s[:len(s)-tail]
	first, s, _ := strings.Cut(s, "\n")
	if first != head+strconv.Itoa(Version) {
		return nil, stale("it is of another version")
	}
	p := &Plan{}
	for s != "" {
		var l string
		l, s, _ = strings.Cut(s, "\n")
		name, value, _ := strings.Cut(l, " ")
		if !p.set(name, value) {
			return nil, stale("it holds " + strconv.Quote(name) + ", which is not known or not right")
		}
	}
	return p, nil
}

func (p *Plan) set(name, value string) bool {
	for _, f := range [...]struct {
		name string
		into *string
	}{
		{"vars", &p.Key.Vars}, {"dir", &p.Key.Dir}, {"host", &p.Host}, {"program", &p.Program},
		{"project", &p.Project}, {"root", &p.Root}, {"events", &p.Events}, {"data", &p.Data}, {"log", &p.Log}, {"home", &p.Home},
	} {
		if f.name == name {
			*f.into = value
			return true
		}
	}
	switch name {
	case "logmax":
		n, err := strconv.ParseInt(value, 10, 64)
		p.LogMax = n
		return err == nil
	case "hand":
		p.Hand = append(p.Hand, value)
		return true
	case "tell":
		p.Tell = append(p.Tell, value)
		return true
	case "stamp":
		st, ok := parseStamp(value)
		p.Stamps = append(p.Stamps, st)
		return ok
	}
	return p.Rules.set(name, value)
}

// The hash is FNV-1a of 64 bits: it names files and finds damage. Two keys that
// meet in one name are told apart by what the file says.
const (
	offset64 = 14695981039346656037
	prime64  = 1099511628211
)

func hash64(h uint64, s string) uint64 {
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * prime64
	}
	return h
}

func hex64(h uint64) string {
	const digits = "0123456789abcdef"
	var b [16]byte
	for i := range b {
		b[i] = digits[h>>(60-4*i)&15]
	}
	return string(b[:])
}
