package event

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"reprise/internal/durable"
	"reprise/internal/event/quick"
	"reprise/internal/redact"
)

// BrokerOptions says where a [Broker] records.
type BrokerOptions struct {
	// Events is the directory of a project's log, or with "" of the global one.
	Events func(project string) string
	// Outbox is the directory of events that could not be written; "" is none.
	Outbox string
	Host   string
	Now    func() time.Time
	Disk   durable.Disk
	// Wait is how long a log's lock is waited for before the event goes into
	// the outbox; 0 is until the context ends.
	Wait time.Duration
	// Defaults are who records: what an event leaves empty of its project,
	// session, run, client, agent, role, task and ACL is filled in from here.
	Defaults Event
	// Mark is quick.Cleaner's: how texts that were cut when they were read say so.
	Mark string
	// Report is told why an event went into the outbox. nil is nobody.
	Report func(error)
	// Back is told of a clock that went back, by the times of an event that was
	// recorded before and of now. nil is nobody.
	Back func(before, now time.Time)
}

// Broker is the one way into the logs. It gives names one spelling, takes
// secrets out before the first byte is written, checks the schema, finds the
// log that an event belongs to (its project's, or the global one), appends, and
// keeps in the outbox what cannot be appended at the moment. It is safe for use
// by several goroutines, and any number of processes.
type Broker struct {
	opt   BrokerOptions
	quick quick.Broker
	red   *redact.Redactor
}

// NewBroker returns a broker. It touches no file.
func NewBroker(opt BrokerOptions) *Broker {
	return &Broker{
		opt: opt, red: redact.New(),
		quick: quick.Broker{Events: opt.Events, Outbox: opt.Outbox, Host: quick.HostName(opt.Host), Now: opt.Now, Disk: opt.Disk, Back: opt.Back},
	}
}

// Record records an event and returns it as it was written. An id and a time
// that it has are kept, so that what was accepted once can be recorded again. An
// event of nil error is in its log, or in the outbox and will be: then Report
// was told why, and its Prev is empty. An event that does not follow the schema
// is an error that is [ErrInvalid].
func (b *Broker) Record(ctx context.Context, e Event) (Event, error) {
	b.fill(&e)
	q := e.quick()
	if err := b.quick.Prepare(&q); err != nil {
		return e, fmt.Errorf("record event: %w", err)
	}
	e, err := cleanMarked(b.red, b.opt.Mark, e.from(&q))
	if err != nil {
		return e, fmt.Errorf("record event: %w", err)
	}
	e = bound(e)
	if b.opt.Wait > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, b.opt.Wait)
		defer cancel()
	}
	q = e.quick()
	l := b.quick.Log(&q)
	full := &Log{quick: quick.Log{Dir: l.Dir, Host: l.Host, Now: l.Now, Disk: l.Disk, Back: l.Back}, red: b.red}
	e, err = full.add(ctx, e, quick.Synced(q.Type))
	if err == nil {
		return e, nil
	}
	if b.opt.Outbox == "" {
		return e, fmt.Errorf("record event: %w", err)
	}
	if perr := b.quick.Put(l, &q, quick.Encode(nil, &q), err); perr != nil {
		if errors.Is(err, fs.ErrPermission) && errors.Is(perr, fs.ErrPermission) { // one cause, told once
			return e, fmt.Errorf("record event: %w", err)
		}
		return e, fmt.Errorf("record event: %w; and it cannot be kept for later: %w", err, perr)
	}
	if b.opt.Report != nil {
		b.opt.Report(fmt.Errorf("event %s waits in %s: %w", e.ID, b.opt.Outbox, err))
	}
	e.Prev = ""
	return e, nil
}

func (b *Broker) fill(e *Event) {
	d := &b.opt.Defaults
	for _, f := range []struct{ to, from *string }{
		{&e.Project, &d.Project}, {&e.Session, &d.Session}, {&e.Run, &d.Run}, {&e.Client, &d.Client},
		{&e.Agent, &d.Agent}, {&e.Role, &d.Role}, {&e.Task, &d.Task},
	} {
		narrow := f.to == &e.Session && e.Scope != "" && e.Scope != ScopeSession || f.to == &e.Project && e.Scope == ScopeGlobal
		if *f.to == "" && !narrow { // an event of a wide scope is not made one of a narrow place
			*f.to = *f.from
		}
	}
	if e.ACL == nil {
		e.ACL = d.ACL
	}
}
