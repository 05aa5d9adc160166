// Package quick puts an event's line into the log with as little as can be: no
// reflection, no regular expressions, nothing to set up when the program
// starts. It is what the hook program links, which runs at every tool call, and
// what package event is built on, so that there is one way a line gets into the
// log.
//
// It owns no file of its own. It appends to the event log's files, which package
// event owns, under their locks `<file>.lock`, and makes files of the outbox,
// which takes no lock.
//
// Here nothing can be taken out of a text: whatever looks as if a secret were
// in it is handed back with [ErrNeedsFull], for package event to record.
package quick

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"math/rand/v2"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"reprise/internal/clip"
	"reprise/internal/durable"
	"reprise/internal/redact/suspect"
)

const (
	// Version is the format's version, in each event's "v".
	Version = 1
	// Ext ends the names of the log's files.
	Ext = ".jsonl"
	// HashSize is the length of a line's hash, as it stands in "prev".
	HashSize = 2 * sha256.Size
)

var (
	// ErrNeedsFull is the error of an event that this package cannot write:
	// something in it may be a secret, or it is too long. Package event can.
	ErrNeedsFull = errors.New("the event needs the full program: it may hold a secret, or is too long")
	// ErrInvalid is the error of an event that does not follow the schema.
	ErrInvalid = errors.New("invalid event")
)

// Event is an event about to be written; see package event for the fields.
type Event struct {
	ID      string    // made when empty
	TS      time.Time // now when zero
	Scope   string    // the narrowest that the event names when empty
	Project string
	Session string
	Run     string
	Client  string
	Agent   string
	Role    string
	Task    string
	Parent  string
	Type    string
	// Data is a JSON object, or empty.
	Data       []byte
	Outcome    string
	Importance float64
	Evidence   []string
	ACL        []string
	Cuts       []Cut
}

// Log appends to the log in one directory. It is safe for use by several
// goroutines, and any number of processes may append to one directory.
type Log struct {
	Dir  string
	Host string // as [HostName] makes it
	Now  func() time.Time
	Disk durable.Disk
	IDs  IDs
	// Withhold writes a mark where something may be a secret, instead of
	// refusing the event: for when nobody is there who can tell.
	Withhold bool
	// Mark is [Cleaner.Mark].
	Mark string
	// Back is told of a clock that went back: the time of the event before, and
	// now. nil is nobody.
	Back func(before, now time.Time)
}

// Withheld stands for a text that may hold a secret and that nobody looked at.
const Withheld = "[withheld: may hold a secret]"

// Append writes an event as it is, with the fields it left empty filled in. It
// refuses what may hold a secret ([ErrNeedsFull]) and what does not follow the
// schema ([ErrInvalid]). Without sync it does not wait for the disk: what is
// written survives the end of this process, and a power cut may take it. When
// ctx ends before the file's lock can be had, nothing is written.
func (l *Log) Append(ctx context.Context, e *Event, sync bool) error {
	line, err := l.Line(e)
	if err != nil {
		return err
	}
	return l.Add(ctx, e.TS, line, sync)
}

// Line fills in what the event left empty and makes its line, without the end
// that [Log.Add] puts to it. It refuses what [Log.Append] refuses.
func (l *Log) Line(e *Event) ([]byte, error) {
	l.Fill(e)
	flagged := false
	c := &Cleaner{Mark: l.Mark, Redact: func(key, s string) string {
		if !suspect.Named(key, s) {
			return s
		}
		if l.Withhold {
			return Withheld
		}
		flagged = true
		return s
	}}
	if err := Clean(c, e); err != nil {
		return nil, err
	}
	if flagged {
		return nil, ErrNeedsFull
	}
	line := Encode(make([]byte, 0, len(e.Data)+1024), e)
	if len(line)+HashSize > MaxLine {
		return nil, ErrNeedsFull
	}
	return line, nil
}

// Fill sets the id, the time and the scope where they are missing.
func (l *Log) Fill(e *Event) {
	if e.TS.IsZero() {
		e.TS = l.Now()
	}
	e.TS = e.TS.UTC().Round(0)
	if e.ID == "" {
		e.ID = l.IDs.Next(e.TS)
	}
	if e.Scope == "" {
		e.Scope = Narrowest(e.Session, e.Project)
	}
}

// Narrowest is the scope of an event that names none.
func Narrowest(session, project string) string {
	switch {
	case session != "":
		return "session"
	case project != "":
		return "project"
	}
	return "global"
}

// Clean makes of an event what may be written of it, by the cleaner, and checks
// it.
func Clean(c *Cleaner, e *Event) error {
	fields, ok := Fields(e.Type)
	if !ok {
		return invalid("type " + strconv.Quote(clip.Head(e.Type, 80)) + " is not one of the list")
	}
	if err := Check(e.Scope, e.Importance, e.ACL); err != nil {
		return err
	}
	e.Project = c.Text("/project", "", valid(e.Project))
	e.Session = c.Text("/session", "", valid(e.Session))
	e.Run = c.Text("/run", "", valid(e.Run))
	e.Client = c.Text("/client", "", valid(e.Client))
	e.Agent = c.Text("/agent", "", valid(e.Agent))
	e.Role = c.Text("/role", "", valid(e.Role))
	e.Task = c.Text("/task", "", valid(e.Task))
	e.Parent = c.Text("/parent", "", valid(e.Parent))
	e.Outcome = c.Text("/outcome", "", valid(e.Outcome))
	e.Evidence = append([]string(nil), e.Evidence...)
	for i, s := range e.Evidence {
		e.Evidence[i] = c.Text("/evidence/"+strconv.Itoa(i), "", valid(s))
	}
	e.ACL = append([]string(nil), e.ACL...)
	for i, s := range e.ACL {
		e.ACL[i] = c.Text("/acl/"+strconv.Itoa(i), "", valid(s))
	}
	data := strings.Trim(string(e.Data), " \t\r\n")
	switch {
	case data == "" || data == "null":
		e.Data = nil
	case data[0] != '{':
		return invalid("data is not a JSON object")
	default:
		c.Fields = fields
		out, err := c.Value(make([]byte, 0, len(data)+64), "/data", data)
		if err != nil {
			return invalid("data: " + err.Error())
		}
		e.Data = out
	}
	e.Cuts = append(e.Cuts, c.Cuts...)
	return nil
}

// Check reports what is wrong with the fields of an event that are not free.
func Check(scope string, importance float64, acl []string) error {
	switch scope {
	case "session", "project", "global":
	default:
		return invalid("scope " + strconv.Quote(clip.Head(scope, 80)) + " is not session, project or global")
	}
	if !(importance >= 0 && importance <= 1) { // also what is no number
		return invalid("importance is not between 0 and 1")
	}
	for _, a := range acl {
		kind, name, _ := strings.Cut(a, ":")
		if a != "*" && (name == "" || kind != "agent" && kind != "role" && kind != "client") {
			return invalid("acl entry " + strconv.Quote(clip.Head(a, 80)) + " is not agent:NAME, role:NAME, client:NAME or *")
		}
	}
	return nil
}

type invalidError struct{ what string }

func (e *invalidError) Error() string { return ErrInvalid.Error() + ": " + e.what }
func (e *invalidError) Unwrap() error { return ErrInvalid }

func invalid(what string) error { return &invalidError{what} }

// Encode appends an event's line up to where its "prev" belongs.
func Encode(dst []byte, e *Event) []byte {
	dst = append(append(dst, `{"v":`...), strconv.Itoa(Version)...)
	text := func(name, s string, always bool) {
		if s != "" || always {
			dst = append(append(append(dst, `,"`...), name...), `":`...)
			dst = AppendString(dst, s)
		}
	}
	list := func(name string, l []string) {
		for i, s := range l {
			if i == 0 {
				dst = append(append(append(dst, `,"`...), name...), `":[`...)
			} else {
				dst = append(dst, ',')
			}
			dst = AppendString(dst, s)
		}
		if len(l) > 0 {
			dst = append(dst, ']')
		}
	}
	text("id", e.ID, true)
	dst = append(e.TS.AppendFormat(append(dst, `,"ts":"`...), time.RFC3339Nano), '"')
	text("scope", e.Scope, true)
	text("project", e.Project, false)
	text("session", e.Session, false)
	text("run", e.Run, false)
	text("client", e.Client, false)
	text("agent", e.Agent, false)
	text("role", e.Role, false)
	text("task", e.Task, false)
	text("parent", e.Parent, false)
	text("type", e.Type, true)
	if len(e.Data) > 0 {
		dst = append(append(dst, `,"data":`...), e.Data...)
	}
	text("outcome", e.Outcome, false)
	if e.Importance != 0 {
		dst = strconv.AppendFloat(append(dst, `,"importance":`...), e.Importance, 'f', -1, 64)
	}
	list("evidence", e.Evidence)
	list("acl", e.ACL)
	for i, cut := range e.Cuts {
		if i == 0 {
			dst = append(dst, `,"cut":{`...)
		} else {
			dst = append(dst, ',')
		}
		dst = append(AppendString(dst, cut.At), `:{"sha256":"`...)
		dst = append(append(dst, cut.SHA256...), `","len":`...)
		dst = append(strconv.AppendInt(dst, int64(cut.Len), 10), '}')
	}
	if len(e.Cuts) > 0 {
		dst = append(dst, '}')
	}
	return dst
}

// End appends what follows [Encode]: the hash of the line before, and the end.
func End(line []byte, prev string) []byte {
	return append(append(append(line, `,"prev":"`...), prev...), "\"}\n"...)
}

// Add appends a line that [Log.Line] made to the file of the month of ts.
func (l *Log) Add(ctx context.Context, ts time.Time, line []byte, sync bool) error {
	return l.AddNext(ctx, ts, sync, func(prev string) ([]byte, error) { return End(line, prev), nil })
}

// AddAll is [Log.Add] for several lines in one write, each naming the one before it.
func (l *Log) AddAll(ctx context.Context, ts time.Time, sync bool, lines [][]byte) error {
	return l.AddNext(ctx, ts, sync, func(prev string) ([]byte, error) {
		var all []byte
		for _, line := range lines {
			from := len(all)
			all = End(append(all, line...), prev)
			prev = Hash(all[from : len(all)-1])
		}
		return all, nil
	})
}

// AddNext is [Log.Add] for a line that is made once the file's lock is held and
// the hash of its last line known (empty for a file's first).
func (l *Log) AddNext(ctx context.Context, ts time.Time, sync bool, next func(prev string) ([]byte, error)) error {
	if err := l.Disk.MkdirAll(l.Dir, 0o700); err != nil {
		return err
	}
	add := l.Disk.AppendNext
	if !sync {
		add = l.Disk.AppendNextHot
	}
	var before, now time.Time
	defer func() {
		if wentBack(before, now) {
			l.Back(before, now) // not under the file's lock
		}
	}()
	return add(ctx, l.File(ts), 0o600, func(last func() ([]byte, error)) ([]byte, error) {
		line, err := last()
		if err != nil {
			return nil, err
		}
		if l.Back != nil {
			before, now = lineTime(line), l.Now()
		}
		prev := ""
		if line != nil {
			prev = Hash(line)
		}
		return next(prev)
	})
}

// File is the path of the file of the month of ts.
func (l *Log) File(ts time.Time) string {
	return filepath.Join(l.Dir, FileName(ts, l.Host))
}

// FileName is the name of a host's file for the month of ts.
func FileName(ts time.Time, host string) string {
	return ts.UTC().Format("2006-01") + "." + host + Ext
}

// Hash is a line's SHA-256 in hex, as the line after it names it.
func Hash(line []byte) string {
	s := sha256.Sum256(line)
	return hex.EncodeToString(s[:])
}

// HostName is a host's name as it stands in a file's name.
func HostName(host string) string {
	out := make([]byte, 0, min(len(host), 64))
	for _, r := range host {
		switch {
		case r >= 'A' && r <= 'Z':
			r += 'a' - 'A'
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '-', r == '_':
		default:
			r = '-'
		}
		if len(out) == 64 {
			break
		}
		out = append(out, byte(r))
	}
	if name := strings.Trim(string(out), "-"); name != "" {
		return name
	}
	return "local"
}

// IDs makes UUIDs of version 7 (RFC 9562): milliseconds, then a fraction of a
// millisecond (method 3 of its section 6.2), then random bits. Within a process
// they increase even when the clock steps back. They name events and guard
// nothing, so that the runtime's own random numbers are good enough, and cost
// the program no start of a cipher.
type IDs struct {
	mu   sync.Mutex
	last uint64 // in 1/4096 ms
}

// Next is the next id at that time.
func (g *IDs) Next(now time.Time) string {
	ms := max(now.UnixMilli(), 0)
	frac := uint64(now.Nanosecond()%1e6) * 4096 / 1e6
	at := uint64(ms)<<12 | frac
	g.mu.Lock()
	if at <= g.last {
		at = g.last + 1
	}
	g.last = at
	g.mu.Unlock()
	high := at>>12<<16 | 7<<12 | at&0xfff
	low := rand.Uint64()&(1<<62-1) | 1<<63
	var out [36]byte
	for i, n := 0, 0; i < len(out); i++ {
		switch i {
		case 8, 13, 18, 23:
			out[i] = '-'
			continue
		}
		half := high
		if n >= 16 {
			half = low
		}
		out[i] = hexDigits[half>>(60-4*(n%16))&15]
		n++
	}
	return string(out[:])
}
