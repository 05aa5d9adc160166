package delegation

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"reprise/internal/durable"
	"reprise/internal/event/quick"
)

// A count is never taken for 0 because its file is gone or says something that
// it cannot: the caller is told which, and counts again from the event log.
var (
	// ErrMissing says that a session has no count.
	ErrMissing = errors.New("the session's count of its own work is not there")
	// ErrDamaged says that a file of counts is not as it was written.
	ErrDamaged = errors.New("the session's count of its own work is not as it was written")
)

const (
	head    = "reprise delegation 1"
	maxFile = 8 << 10
	suffix  = ".count"
)

// Store keeps the counts of one project, or of what is outside any.
type Store struct {
	Dir string
}

// Beside is the store of the events in a directory.
func Beside(events string) Store {
	return Store{Dir: filepath.Join(filepath.Dir(events), "delegation")}
}

// File is where a session's count is.
func (s Store) File(client, session string) string {
	return filepath.Join(s.Dir, quick.Hash([]byte(client + "\x00" + session))[:16]+suffix)
}

// Update changes a session's count under its lock. fn gets the count as it was
// and nil, or what is wrong with it ([ErrMissing], [ErrDamaged], or what kept it
// from being read); nothing is written when fn fails. Errors are those of fn,
// the lock and the write.
func (s Store) Update(ctx context.Context, client, session string, fn func(Count, error) (Count, error)) error {
	file := s.File(client, session)
	if err := durable.MkdirAll(s.Dir, 0o700); err != nil {
		return err
	}
	unlock, err := durable.Lock(ctx, file+".lock")
	if err != nil {
		return err
	}
	err = s.update(file, client, session, fn)
	if uerr := unlock(); err == nil {
		err = uerr
	}
	return err
}

func (s Store) update(file, client, session string, fn func(Count, error) (Count, error)) error {
	old, problem := read(file)
	if problem == nil && (old.Client != client || old.Session != session) {
		problem = ErrDamaged
	}
	if problem != nil {
		old = Count{Client: client, Session: session}
	}
	c, err := fn(old, problem)
	if err != nil || problem == nil && c == old {
		return err
	}
	return durable.WriteFileHot(file, c.encode(), 0o600)
}

// Load reads a session's count. Errors are those that [Store.Update] tells.
func (s Store) Load(client, session string) (Count, error) {
	c, err := read(s.File(client, session))
	if err == nil && (c.Client != client || c.Session != session) {
		err = ErrDamaged
	}
	return c, err
}

// List gives every count, and of each file that cannot be read what is wrong.
func (s Store) List() (counts []Count, damaged map[string]error, err error) {
	entries, err := durable.ReadDir(s.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), suffix) {
			continue
		}
		file := filepath.Join(s.Dir, e.Name())
		c, err := read(file)
		if err == nil && s.File(c.Client, c.Session) != file {
			err = ErrDamaged
		}
		if err != nil {
			if damaged == nil {
				damaged = map[string]error{}
			}
			damaged[file] = err
			continue
		}
		counts = append(counts, c)
	}
	return counts, damaged, nil
}

func read(file string) (Count, error) {
	info, err := os.Lstat(file)
	if errors.Is(err, fs.ErrNotExist) {
		return Count{}, ErrMissing
	}
	if err != nil {
		return Count{}, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxFile {
		return Count{}, ErrDamaged
	}
	f, err := durable.Open(file)
	if err != nil {
		return Count{}, err
	}
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return Count{}, err
	}
	return decode(data)
}

// encode is the count as it stands in its file: a name and a value a line, the
// last one a checksum. Whoever means to can write one; what he cannot change is
// the log, from which the count can be made again.
func (c Count) encode() []byte {
	b := append([]byte(head), '\n')
	for _, f := range [...]struct{ name, value string }{
		{"client", strconv.Quote(c.Client)}, {"session", strconv.Quote(c.Session)}, {"role", strconv.Quote(c.Role)},
		{"work", strconv.Itoa(c.Work)}, {"total", strconv.Itoa(c.Total)},
		{"delegated", strconv.Itoa(c.Delegated)}, {"refused", strconv.Itoa(c.Refused)}, {"before", strconv.Itoa(c.Before)},
	} {
		if f.name == "before" && c.Before == 0 {
			continue
		}
		b = append(append(append(append(b, f.name...), ' '), f.value...), '\n')
	}
	return append(append(append(b, "sum "...), quick.Hash(b)...), '\n')
}

func decode(data []byte) (Count, error) {
	var c Count
	rest := string(data)
	ok := true
	line := func(name string) string {
		l, after, found := strings.Cut(rest, "\n")
		v, named := strings.CutPrefix(l, name)
		ok = ok && found && named
		rest = after
		return v
	}
	text := func(name string) string {
		v, err := strconv.Unquote(line(name + " "))
		ok = ok && err == nil
		return v
	}
	number := func(name string) int {
		n, err := strconv.Atoi(line(name + " "))
		ok = ok && err == nil && n >= 0
		return n
	}
	line(head)
	c.Client, c.Session, c.Role = text("client"), text("session"), text("role")
	c.Work, c.Total, c.Delegated, c.Refused = number("work"), number("total"), number("delegated"), number("refused")
	if strings.HasPrefix(rest, "before ") {
		c.Before = number("before")
	}
	body := data[:len(data)-len(rest)]
	if sum := line("sum "); !ok || rest != "" || sum != quick.Hash(body) || c.Work > c.Total || c.Before > c.Total {
		return Count{}, ErrDamaged
	}
	return c, nil
}
