package event

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
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
	// Report is told why an event went into the outbox. nil is nobody.
	Report func(error)
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
		quick: quick.Broker{Events: opt.Events, Outbox: opt.Outbox, Host: quick.HostName(opt.Host), Now: opt.Now, Disk: opt.Disk},
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
	e, err := clean(b.red, e.from(&q))
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
	full := &Log{quick: quick.Log{Dir: l.Dir, Host: l.Host, Now: l.Now, Disk: l.Disk}, red: b.red}
	e, err = full.add(ctx, e, quick.Synced(q.Type))
	if err == nil {
		return e, nil
	}
	if b.opt.Outbox == "" {
		return e, fmt.Errorf("record event: %w", err)
	}
	if perr := b.quick.Put(l, &q, quick.Encode(nil, &q), err); perr != nil {
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

// waiting is the format of a file of the outbox, `<event id>.json`.
type waiting struct {
	V     int             `json:"v"`
	File  string          `json:"file"` // of the log that the event was meant for
	At    time.Time       `json:"at"`
	Why   string          `json:"why"`
	Event json.RawMessage `json:"event"`
}

// Waiting is an event in the outbox.
type Waiting struct {
	ID   string    `json:"id"`
	At   time.Time `json:"at"`
	Why  string    `json:"why"`
	Type Type      `json:"type,omitempty"`
	Bad  string    `json:"bad,omitempty"` // why it cannot be recorded at all
	File string    `json:"file"`          // path
}

// Replayed is what became of the events in an outbox.
type Replayed struct {
	Added   int      `json:"added"`             // now in their logs
	Known   int      `json:"known"`             // had been there already
	Left    int      `json:"left"`              // for another time
	Aside   []string `json:"aside,omitempty"`   // cannot be recorded; moved into the directory bad
	Trouble []string `json:"trouble,omitempty"` // why others are left
}

const (
	waitingExt = ".json"
	badDir     = "bad"
	replayLock = "replay.lock"
)

// Outbox lists what waits, oldest first, and what was set aside.
func (b *Broker) Outbox() ([]Waiting, error) {
	names, err := b.names()
	if err != nil {
		return nil, err
	}
	var out []Waiting
	for _, name := range names {
		out = append(out, b.look(filepath.Join(b.opt.Outbox, name)))
	}
	aside, err := os.ReadDir(filepath.Join(b.opt.Outbox, badDir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return out, fmt.Errorf("list outbox: %w", err)
	}
	for _, entry := range aside {
		if filepath.Ext(entry.Name()) == waitingExt {
			w := b.look(filepath.Join(b.opt.Outbox, badDir, entry.Name()))
			if w.Bad == "" {
				w.Bad = "set aside"
			}
			out = append(out, w)
		}
	}
	return out, nil
}

func (b *Broker) look(path string) Waiting {
	out := Waiting{ID: strings.TrimSuffix(filepath.Base(path), waitingExt), File: path}
	w, e, err := b.open(path)
	if err != nil {
		out.Bad = err.Error()
		return out
	}
	out.At, out.Why, out.Type = w.At, w.Why, e.Type
	return out
}

// names are the files that wait, by id and so by time.
func (b *Broker) names() ([]string, error) {
	if b.opt.Outbox == "" {
		return nil, nil
	}
	list, err := os.ReadDir(b.opt.Outbox)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list outbox: %w", err)
	}
	var names []string
	for _, entry := range list {
		if filepath.Ext(entry.Name()) == waitingExt && !strings.HasPrefix(entry.Name(), ".") && !entry.IsDir() {
			names = append(names, entry.Name())
		}
	}
	return names, nil
}

// open reads and checks one file of the outbox.
func (b *Broker) open(path string) (waiting, Event, error) {
	var w waiting
	fi, err := os.Lstat(path)
	if err != nil {
		return w, Event{}, err
	}
	if !fi.Mode().IsRegular() || fi.Size() > maxRead {
		return w, Event{}, fmt.Errorf("%w: it is not a regular file of at most %d bytes", ErrInvalid, maxRead)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return w, Event{}, err
	}
	if err := json.Unmarshal(data, &w); err != nil {
		return w, Event{}, fmt.Errorf("%w: %v", ErrInvalid, err)
	}
	if w.V != 1 {
		return w, Event{}, fmt.Errorf("%w: version %d is not one that this program knows", ErrInvalid, w.V)
	}
	e, err := parseText(string(w.Event))
	if err == nil && e.ID+waitingExt != filepath.Base(path) {
		err = fmt.Errorf("%w: it holds the event %.60q", ErrInvalid, e.ID)
	}
	return w, e, err
}

// Replay records what waits in the outbox, oldest first: at most limit events
// (0: all), until ctx ends. An event that is in its log already is not added
// again, whatever happened before. One that cannot be recorded at all is set
// aside and holds no other up. When another process is replaying, nothing is
// done.
func (b *Broker) Replay(ctx context.Context, limit int) (Replayed, error) {
	var r Replayed
	names, err := b.names()
	if err != nil || len(names) == 0 {
		return r, err
	}
	unlock, err := b.opt.Disk.TryLock(filepath.Join(b.opt.Outbox, replayLock))
	if errors.Is(err, durable.ErrLocked) {
		r.Left = len(names)
		return r, nil
	}
	if err != nil {
		return r, fmt.Errorf("replay outbox: %w", err)
	}
	defer unlock()
	if limit > 0 && len(names) > limit {
		r.Left, names = len(names)-limit, names[:limit]
	}
	for i, w := range b.load(names) {
		if ctx.Err() != nil {
			r.Left += len(names) - i
			break
		}
		name := names[i]
		err := w.err
		if err == nil {
			err = b.replay(ctx, w)
		}
		switch {
		case errors.Is(err, fs.ErrNotExist): // taken meanwhile
		case errors.Is(err, ErrInvalid):
			if aerr := b.setAside(name); aerr != nil {
				r.Left++
				r.Trouble = append(r.Trouble, fmt.Sprintf("%s: %v, and cannot be set aside: %v", name, err, aerr))
				continue
			}
			r.Aside = append(r.Aside, fmt.Sprintf("%s: %v", name, err))
		case err != nil:
			r.Left++
			r.Trouble = append(r.Trouble, fmt.Sprintf("%s: %v", name, err))
		case w.known:
			r.Known++
		default:
			r.Added++
		}
	}
	return r, nil
}

// item is one event of the outbox on its way into its log.
type item struct {
	path  string
	event Event
	log   *quick.Log
	known bool // it is in the log
	err   error
}

// load reads the files and looks for their events in the logs: once for all,
// since no one else adds events that wait as long as the replay's lock is held.
func (b *Broker) load(names []string) []item {
	items := make([]item, len(names))
	search := map[string]map[string]*item{} // by file of a log, by id
	for i, name := range names {
		it := &items[i]
		it.path = filepath.Join(b.opt.Outbox, name)
		w, e, err := b.open(it.path)
		if err == nil {
			q := e.quick()
			if err = b.quick.Prepare(&q); err == nil {
				// What waits was clean when it was put there; the rules may have grown.
				e, err = clean(b.red, e.from(&q))
			}
		}
		if it.err = err; err != nil {
			continue
		}
		it.event = bound(e)
		q := it.event.quick()
		it.log = b.quick.Log(&q)
		files := []string{it.log.File(e.TS)}
		if _, ok := logName(w.File); ok { // the host may have got another name since
			files = append(files, filepath.Join(it.log.Dir, w.File))
		}
		for _, f := range files {
			if search[f] == nil {
				search[f] = map[string]*item{}
			}
			search[f][e.ID] = it
		}
	}
	for file, wanted := range search {
		if err := findIDs(file, wanted); err != nil {
			for _, it := range wanted {
				it.err = err
			}
		}
	}
	return items
}

func (b *Broker) setAside(name string) error {
	dir := filepath.Join(b.opt.Outbox, badDir)
	if err := b.opt.Disk.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return b.opt.Disk.Rename(filepath.Join(b.opt.Outbox, name), filepath.Join(dir, name))
}

// replay records one event of the outbox and takes it out.
func (b *Broker) replay(ctx context.Context, it item) error {
	if !it.known {
		q := it.event.quick()
		if err := it.log.Add(ctx, it.event.TS, quick.Encode(nil, &q), true); err != nil {
			return err
		}
	}
	return b.opt.Disk.Remove(it.path)
}

// findIDs marks those that are in a log's file.
func findIDs(path string, wanted map[string]*item) error {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	return eachLine(f, func(text []byte, _ int64, _ bool) bool {
		// Ours begin with version and id; the id of another's line is read whole.
		if rest, ok := bytes.CutPrefix(text, []byte(`{"v":1,"id":"`)); ok {
			if i := bytes.IndexByte(rest, '"'); i > 0 {
				if it := wanted[string(rest[:i])]; it != nil {
					it.known = true
				}
			}
			return true
		}
		if e, err := parseText(string(text)); err == nil && wanted[e.ID] != nil {
			wanted[e.ID].known = true
		}
		return true
	})
}
