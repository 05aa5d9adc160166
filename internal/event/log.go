package event

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"reprise/internal/durable"
	"reprise/internal/redact"
)

const (
	ext      = ".jsonl"
	hashSize = 2 * sha256.Size
)

// Log appends to the log in one directory. It is safe for use by several
// goroutines, and any number of processes may append to one directory.
type Log struct {
	dir  string
	host string
	now  func() time.Time
	disk durable.Disk
	red  *redact.Redactor
	ids  ids
}

// Open returns the log in dir as written by this host. It touches no file; the
// directory is made by the first event.
func Open(dir, host string, now func() time.Time) *Log {
	return &Log{dir: dir, host: hostName(host), now: now, red: redact.New()}
}

// OpenOn is [Open] on another disk than the machine's own, for tests.
func OpenOn(disk durable.Disk, dir, host string, now func() time.Time) *Log {
	l := Open(dir, host, now)
	l.disk = disk
	return l
}

// hostName is a host's name as it stands in a file's name.
func hostName(host string) string {
	name := strings.Map(func(r rune) rune {
		switch {
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '-', r == '_':
			return r
		}
		return '-'
	}, host)
	name = strings.Trim(name[:min(len(name), 64)], "-")
	if name == "" {
		return "local"
	}
	return name
}

// Append writes an event and returns it as it was written: with its id, time
// and place in the chain, without secrets, its long fields cut. A scope that is
// empty is the narrowest that the event names. When ctx ends before the file's
// lock can be had, nothing is written.
func (l *Log) Append(ctx context.Context, e Event) (Event, error) {
	now := l.now().UTC()
	e.V, e.ID, e.TS, e.Prev = Version, l.ids.next(now), now.Round(0), ""
	if e.Scope == "" {
		e.Scope = narrowest(e)
	}
	if err := e.check(); err != nil {
		return e, fmt.Errorf("append event: %w", err)
	}
	e, err := clean(l.red, e)
	if err != nil {
		return e, fmt.Errorf("append event: %w", err)
	}
	e = bound(e)
	if err := l.disk.MkdirAll(l.dir, 0o700); err != nil {
		return e, fmt.Errorf("append event: %w", err)
	}
	file := filepath.Join(l.dir, now.Format("2006-01")+"."+l.host+ext)
	err = l.disk.AppendNext(ctx, file, 0o600, func(last func() ([]byte, error)) ([]byte, error) {
		line, err := last()
		if err != nil {
			return nil, err
		}
		if line != nil {
			e.Prev = hashLine(line)
		} else if chain := oldChain(e); chain != "" {
			e.Prev = chain
		}
		out, err := marshal(e)
		return append(out, '\n'), err
	})
	if err != nil {
		return e, fmt.Errorf("append event: %w", err)
	}
	return e, nil
}

func narrowest(e Event) Scope {
	switch {
	case e.Session != "":
		return ScopeSession
	case e.Project != "":
		return ScopeProject
	}
	return ScopeGlobal
}

func hashLine(line []byte) string {
	sum := sha256.Sum256(line)
	return hex.EncodeToString(sum[:])
}

// ids makes UUIDs of version 7 (RFC 9562): milliseconds, then a fraction of a
// millisecond (method 3 of its section 6.2), then random bits. Within a process
// they increase even when the clock steps back.
type ids struct {
	mu   sync.Mutex
	last uint64 // in 1/4096 ms
}

func (g *ids) next(now time.Time) string {
	ms := max(now.UnixMilli(), 0)
	frac := uint64(now.Nanosecond()%1e6) * 4096 / 1e6
	at := uint64(ms)<<12 | frac
	g.mu.Lock()
	if at <= g.last {
		at = g.last + 1
	}
	g.last = at
	g.mu.Unlock()
	var b [16]byte
	_, _ = rand.Read(b[8:]) // never fails
	binary.BigEndian.PutUint64(b[:8], at>>12<<16|7<<12|at&0xfff)
	b[8] = b[8]&0x3f | 0x80
	h := hex.EncodeToString(b[:])
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}
