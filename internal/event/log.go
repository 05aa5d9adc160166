package event

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"reprise/internal/durable"
	"reprise/internal/event/quick"
	"reprise/internal/redact"
)

// Log appends to the log in one directory. It is safe for use by several
// goroutines, and any number of processes may append to one directory.
type Log struct {
	quick quick.Log
	red   *redact.Redactor
}

// Open returns the log in dir as written by this host. It touches no file; the
// directory is made by the first event.
func Open(dir, host string, now func() time.Time) *Log {
	return OpenOn(durable.Disk{}, dir, host, now)
}

// OpenOn is [Open] on another disk than the machine's own, for tests.
func OpenOn(disk durable.Disk, dir, host string, now func() time.Time) *Log {
	return &Log{quick: quick.Log{Dir: dir, Host: quick.HostName(host), Now: now, Disk: disk}, red: redact.New()}
}

// Append writes an event and returns it as it was written: with its id, time
// and place in the chain, without secrets, its long fields cut. A scope that is
// empty is the narrowest that the event names. When ctx ends before the file's
// lock can be had, nothing is written. It waits until the event would survive a
// power cut.
func (l *Log) Append(ctx context.Context, e Event) (Event, error) {
	e.ID, e.TS, e.Cut = "", time.Time{}, nil
	e, err := l.prepare(e)
	if err == nil {
		e, err = l.add(ctx, e, true)
	}
	if err != nil {
		return e, fmt.Errorf("append event: %w", err)
	}
	return e, nil
}

// prepare makes of an event what may be written, with an id and a time where it
// has none.
func (l *Log) prepare(e Event) (Event, error) {
	q := e.quick()
	l.quick.Fill(&q)
	e.ID, e.TS, e.Scope, e.Prev = q.ID, q.TS, Scope(q.Scope), ""
	e, err := clean(l.red, e)
	if err != nil {
		return e, err
	}
	return bound(e), nil
}

// add appends a prepared event.
func (l *Log) add(ctx context.Context, e Event, sync bool) (Event, error) {
	q := e.quick()
	line := quick.Encode(nil, &q)
	err := l.quick.AddNext(ctx, e.TS, sync, func(prev string) ([]byte, error) {
		if e.Prev = prev; prev == "" {
			e.Prev = oldChain(e)
		}
		return quick.End(line, e.Prev), nil
	})
	return e, err
}

func sortCuts(cuts []quick.Cut) {
	slices.SortFunc(cuts, func(a, b quick.Cut) int { return strings.Compare(a.At, b.At) })
}
