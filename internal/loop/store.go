package loop

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"reprise/internal/durable"
	"reprise/internal/loop/checkout"
	"reprise/internal/loop/core"
	"reprise/internal/proc"
	"reprise/internal/term"
)

// Line is one line of audit.jsonl: something that happened, or was begun.
type Line struct {
	V         int       `json:"v"`
	At        time.Time `json:"at"`
	Loop      string    `json:"loop"`
	Iteration int       `json:"iteration,omitempty"`
	Worker    int       `json:"worker,omitempty"` // from 1; 0 is the loop itself
	Item      string    `json:"item,omitempty"`
	Run       string    `json:"run,omitempty"`
	Op        string    `json:"op"`
	Text      string    `json:"text,omitempty"`
}

// Owner is who runs the loop; owner.json.
type Owner struct {
	V       int       `json:"v"`
	Loop    string    `json:"loop"`
	Process proc.ID   `json:"process"`
	Since   time.Time `json:"since"`
}

// store is a loop's directory.
type store struct {
	taken sync.Map // names of requests that are being done, and stay until the state on disk has them

	dir  string
	disk durable.Disk
	now  func() time.Time

	mu    sync.Mutex
	lines bytes.Buffer // of the audit, that could not be written

	flag   sync.Mutex // of the interrupt file
	raised bool       // it is there, and known
}

func newStore(dir string, disk durable.Disk, now func() time.Time) *store {
	return &store{dir: dir, disk: disk, now: now}
}

func (s *store) path(name string) string { return filepath.Join(s.dir, name) }

// newID names a night's work.
func newID() string {
	const alphabet = "abcdefghijklmnopqrstuvwxyz234567"
	var b [10]byte
	rand.Read(b[:]) // never fails
	for i := range b {
		b[i] = alphabet[b[i]&31]
	}
	return "loop-" + string(b[:])
}

// lock takes the one right to be the project's loop. It ends with the process, however
// that ends, so that a dead loop keeps nobody out.
func (s *store) lock() (func() error, error) {
	for _, dir := range []string{s.dir, s.path(requestsDir), s.path(asksDir)} {
		if err := s.disk.MkdirAll(dir, 0o700); err != nil {
			return nil, fmt.Errorf("make the loop's directory: %w", err)
		}
	}
	unlock, err := s.disk.TryLock(s.path(lockFile))
	if errors.Is(err, durable.ErrLocked) {
		return nil, heldBy(s.dir)
	}
	return unlock, err
}

// heldBy is the error of who would begin a loop beside the one that runs.
func heldBy(dir string) error {
	who := "another process"
	if o, err := readOwner(dir); err == nil {
		who = fmt.Sprintf("process %d, since %s", o.Process.PID, o.Since.Local().Format("15:04"))
	}
	return fmt.Errorf("%w (%s): `reprise loop status` shows it, `reprise loop stop` ends it", ErrRuns, who)
}

// Free is nil where no loop runs in a directory, and else the error of who would begin one,
// which is [ErrRuns].
func Free(disk durable.Disk, dir string) error {
	running, _, err := Running(disk, dir)
	if running {
		return heldBy(dir)
	}
	return err
}

func (s *store) own(loop string) error {
	self, err := proc.Self()
	if err != nil {
		return err
	}
	return s.writeJSON(ownerFile, Owner{V: 1, Loop: loop, Process: self, Since: s.now().UTC()})
}

func readOwner(dir string) (o Owner, err error) {
	data, err := durable.Read(filepath.Join(dir, ownerFile))
	if err != nil {
		return o, err
	}
	return o, json.Unmarshal(data, &o)
}

func (s *store) writeJSON(name string, v any) error {
	data, err := encode(v)
	if err != nil {
		return err
	}
	return s.disk.WriteFileHot(s.path(name), data, 0o600)
}

func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	err := enc.Encode(v)
	return b.Bytes(), err
}

// state is what is on disk of the last loop; nil where there was none.
func (s *store) state() (*core.State, error) { return ReadState(s.dir) }

// ReadState is the state of the loop in a directory; nil where there was none.
func ReadState(dir string) (*core.State, error) {
	path := filepath.Join(dir, stateFile)
	data, err := durable.Read(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the loop's state: %w", err)
	}
	var st core.State
	if err := json.Unmarshal(data, &st); err != nil {
		return nil, fmt.Errorf("read the loop's state %s: it is not valid JSON (%w); move it away to begin anew: items that it holds are given back when their leases end", path, err)
	}
	if st.V < 1 {
		return nil, fmt.Errorf("read the loop's state %s: it says no format (\"v\"), so it is none that reprise wrote; move it away to begin anew: items that it holds are given back when their leases end", path)
	}
	if st.V > core.Version {
		return nil, fmt.Errorf("read the loop's state %s: it has format %d, this program knows up to %d: use a newer reprise", path, st.V, core.Version)
	}
	st.Upgrade()
	return &st, nil
}

func (s *store) save(st core.State) error { return s.writeJSON(stateFile, st) }

// shownWords are words of an agent or a person in a file that is looked at in terminals.
func shownWords(why string) string { return term.SafeText(strings.TrimSpace(why)) }

// raise makes an interrupt visible. Removing the file lets the loop go on, which answers
// nothing. One that was there and is not any more has been removed by a person, and
// handmade is to hear of that: put there again, the loop would wait for ever.
func (s *store) raise(why string) error {
	s.flag.Lock()
	defer s.flag.Unlock()
	if _, err := os.Lstat(s.path(interruptFile)); s.raised && errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err := s.disk.WriteFile(s.path(interruptFile), []byte(shownWords(why)+"\n"), 0o600); err != nil {
		return err
	}
	s.raised = true
	return nil
}

func (s *store) lower() error {
	s.flag.Lock()
	defer s.flag.Unlock()
	if !s.raised {
		return nil
	}
	if err := s.disk.Remove(s.path(interruptFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	s.raised = false
	return nil
}

// lowerLeft removes an interrupt file that an earlier loop did not live to remove: one with
// the words that it has shown. With any others it is a person's.
func (s *store) lowerLeft(shown string) error {
	s.flag.Lock()
	words := shownWords(shown)
	text, err := checkout.ReadStart(s.path(interruptFile), max(len(words), len(shown))+8)
	text = strings.TrimSpace(text)
	s.raised = err == nil && shown != "" && (text == words || text == strings.TrimSpace(shown)) // the last as older programs wrote it
	s.flag.Unlock()
	return s.lower()
}

// handmade is what a person has put into the interrupt file, or that a person has taken
// it away: each is told once. The file is looked at under the lock under which the loop
// itself makes and removes it, or its own would be taken for a person's.
func (s *store) handmade(waiting bool) (made, removed bool, why string) {
	s.flag.Lock()
	defer s.flag.Unlock()
	why, err := checkout.ReadStart(s.path(interruptFile), maxAsk)
	for n := 0; n < 5 && err == nil && strings.TrimSpace(why) == "" && !waiting && !s.raised; n++ {
		time.Sleep(40 * time.Millisecond) // it was made just now, and is being written
		why, err = checkout.ReadStart(s.path(interruptFile), maxAsk)
	}
	there := !errors.Is(err, fs.ErrNotExist)
	switch {
	case there && !waiting && !s.raised:
		s.raised = true // whoever answers removes it
		return true, false, why
	case !there && waiting && s.raised:
		if _, err := os.Lstat(s.dir); err != nil {
			return false, false, "" // the directory cannot be read, which is no answer
		}
		s.raised = false
		return false, true, ""
	}
	return false, false, ""
}

// add puts a line into the audit. It is with the system when add returns, so that a
// loop that is killed has said what it did; only a power cut can lose the last lines. What
// cannot be written is kept for the next time, up to a bound.
func (s *store) add(ctx context.Context, l Line) error {
	data, err := json.Marshal(l)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines.Write(data)
	s.lines.WriteByte('\n')
	err = s.disk.AppendNextHot(ctx, s.path(auditFile), 0o600, func(func() ([]byte, error)) ([]byte, error) { return s.lines.Bytes(), nil })
	if err == nil || s.lines.Len() > 1<<20 {
		s.lines.Reset()
	}
	return err
}

// requestVersion is the "v" of requests.
const requestVersion = 1

// errNewer says that a request was written by a newer program.
var errNewer = errors.New("it is in a newer format")

// Request is what somebody wants of a loop that runs, or of the next one.
type Request struct {
	V    int    `json:"v"`
	Kind string `json:"kind"` // interrupt, resume, pause, stop
	// Loop is the loop that is meant; a request for another is dropped. "" is whichever
	// reads it.
	Loop   string   `json:"loop,omitempty"`
	Why    string   `json:"why,omitempty"`
	Answer string   `json:"answer,omitempty"`
	Items  []string `json:"items,omitempty"`
	// Number is that of the question, or of the interrupt, that an answer is for. NoAnswer
	// says that what agents ask may go without one.
	Number   int64     `json:"number,omitempty"`
	NoAnswer bool      `json:"no_answer,omitempty"`
	Drain    bool      `json:"drain,omitempty"`
	More     *More     `json:"more,omitempty"`
	At       time.Time `json:"at"`

	name string // of its file
}

// More is what ceilings are raised by.
type More = core.More

// Ask leaves a request for the loop in a directory.
func Ask(disk durable.Disk, dir string, r Request) error {
	r.V = requestVersion
	if err := disk.MkdirAll(filepath.Join(dir, requestsDir), 0o700); err != nil {
		return err
	}
	data, err := encode(r)
	if err != nil {
		return err
	}
	return disk.WriteFile(filepath.Join(dir, requestsDir, RequestName(r)+".json"), data, 0o600)
}

// RequestName is a new name for a request, by which requests are in order of their times.
func RequestName(r Request) string {
	return r.At.UTC().Format("20060102T150405.000000000") + "-" + strings.TrimPrefix(newID(), "loop-")
}

// AskAs leaves a request of another machine for the loop in a directory. Left twice under
// one name, it is one request.
func AskAs(disk durable.Disk, dir, name string, data []byte) error {
	var r Request
	if err := json.Unmarshal(data, &r); err != nil {
		return fmt.Errorf("read request %s: %w", name, err)
	}
	if name != filepath.Base(name) || strings.HasPrefix(name, ".") {
		return fmt.Errorf("a request cannot be called %q", oneLine(name, 80))
	}
	if err := disk.MkdirAll(filepath.Join(dir, requestsDir), 0o700); err != nil {
		return err
	}
	return disk.WriteFile(filepath.Join(dir, requestsDir, name+".json"), data, 0o600)
}

// Running reports whether a loop runs in a directory, and who it is.
func Running(disk durable.Disk, dir string) (bool, Owner, error) {
	held, err := disk.IsLocked(filepath.Join(dir, lockFile))
	if err != nil || !held {
		return false, Owner{}, err
	}
	o, err := readOwner(dir)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil // it is just beginning
	}
	return true, o, err
}

// take takes the requests out of their directory, the oldest first. One that cannot be
// read is removed, and said; one of a newer format is said, and stays. What a person answers stays there until it is in the state on
// disk, see [store.done]: a loop that is killed in between must not lose it.
func (s *store) take() (out []Request, bad []error) {
	err := readRequests(s.dir, func(r Request, err error) {
		if s.isTaken(r.name) {
			return
		}
		if err == nil && r.Kind == "resume" {
			s.taken.Store(r.name, true)
			out = append(out, r)
			return
		}
		if errors.Is(err, errNewer) {
			s.taken.Store(r.name, true) // said once; it stays for a program that knows it
			bad = append(bad, fmt.Errorf("read request %s: %w", r.name, err))
			return
		}
		if rmErr := s.disk.Remove(filepath.Join(s.path(requestsDir), r.name)); rmErr != nil {
			bad = append(bad, rmErr)
			return // it would be done again
		}
		if err != nil {
			bad = append(bad, fmt.Errorf("read request %s: %w", r.name, err))
			return
		}
		out = append(out, r)
	})
	if err != nil {
		bad = append(bad, err)
	}
	return out, bad
}

// readRequests calls fn with each request that lies in a loop's directory, the oldest
// first; the error that fn gets says why one cannot be read, and then it has its name only.
func readRequests(dir string, fn func(Request, error)) error {
	entries, err := durable.ReadDir(filepath.Join(dir, requestsDir))
	if err != nil {
		return err
	}
	for _, e := range entries { // by name, which begins with the time
		if durable.IsTemp(e.Name()) || !strings.HasSuffix(e.Name(), ".json") {
			continue
		}
		var r Request
		text, err := checkout.ReadStart(filepath.Join(dir, requestsDir, e.Name()), 256<<10)
		if err == nil {
			err = json.Unmarshal([]byte(text), &r)
		}
		if err == nil && r.V > requestVersion {
			err = fmt.Errorf("%w: format %d, this program knows up to %d; it is left for a newer reprise", errNewer, r.V, requestVersion)
		}
		r.name = e.Name()
		fn(r, err)
	}
	return nil
}

func (s *store) isTaken(name string) bool {
	_, ok := s.taken.Load(name)
	return ok
}

// done takes a request away that the state on disk has.
func (s *store) done(name string) error {
	err := s.disk.Remove(filepath.Join(s.path(requestsDir), name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
