// Package relay is what the machines of a fleet tell each other beside the queue: which
// workers there are and what they do, how their loops stand, what people want of these,
// what runs say, and the files that come of runs.
//
// Everything is a copy, on the servers, of what the worker's own machine has in files, which
// stay the truth: nothing waits for the servers, and what they did not get is sent when they
// are there again. It reads the output of runs and files of their places; it writes no file
// but where a caller fetches one to, and takes no lock.
package relay

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"reprise/internal/fleet"
)

// ErrNotFound says that no machine of the fleet has told of that.
var ErrNotFound = errors.New("no machine of the fleet has told of it")

// Times of what workers tell.
const (
	// BeatEvery is how often a worker says that it lives, and QuietAfter how long one that
	// said nothing is taken to live.
	BeatEvery  = 10 * time.Second
	QuietAfter = 35 * time.Second
	// KeepFor is how long the servers keep what a worker said last, what was asked of it, and
	// files of runs.
	KeepFor = 30 * 24 * time.Hour
)

// Relay is what is told of one project.
type Relay struct {
	conn    *fleet.Conn
	names   fleet.Names
	project string
}

// Open is the relay of a project; nothing is asked of the servers yet.
func Open(conn *fleet.Conn, project string) *Relay {
	return &Relay{conn: conn, names: conn.Names(project), project: project}
}

// Worker is what a worker says of itself.
type Worker struct {
	V    int    `json:"v"` // 1
	Name string `json:"name"`
	Host string `json:"host"`
	// Home tells directories of reprise's data on one host apart, and says no more of them.
	Home     string    `json:"home,omitempty"`
	PID      int       `json:"pid"`
	Version  string    `json:"version,omitempty"`
	Since    time.Time `json:"since"`
	Clients  []string  `json:"clients,omitempty"`
	Can      []string  `json:"can,omitempty"`
	Labels   []string  `json:"labels,omitempty"`
	Projects []string  `json:"projects"`
	Room     int       `json:"room"` // items at once
	Doing    []Doing   `json:"doing,omitempty"`
	// Unsaved are the projects whose loop cannot write down how it stands, as on a full disk, so
	// that it begins and ends nothing, and what is told of it is from before.
	Unsaved []Unsaved `json:"unsaved,omitempty"`

	// At is what the worker's clock said when it told this; zero where it did not say it, as
	// of older programs.
	At time.Time `json:"at,omitzero"`

	// Heard is when the servers were told, and Quiet that this is too long ago.
	Heard time.Time `json:"heard"`
	Quiet bool      `json:"quiet,omitempty"`
	// ClockOff is by how many seconds the worker's clock is ahead of the servers', 0 where that
	// is little or not known.
	ClockOff float64 `json:"clock_off_seconds,omitempty"`
	// Asked is what the servers' clock said when they were asked for this.
	Asked time.Time `json:"-"`
}

// ClockApart is by how much a clock may differ from the servers' before that is said: what is
// told is under way for a while, and nothing but times that people read depends on it.
const ClockApart = 30 * time.Second

// Ahead is by how much a machine's clock is ahead of the servers', by a time that it told and
// the one at which the servers were told; 0 where that is little.
func Ahead(told, heard time.Time) time.Duration {
	if told.IsZero() || heard.IsZero() {
		return 0
	}
	if off := told.Sub(heard); off.Abs() >= ClockApart {
		return off
	}
	return 0
}

// Off is by how much the worker's clock is ahead of the servers'.
func (w *Worker) Off() time.Duration { return Ahead(w.At, w.Heard) }

// Unsaved is why the loop of a project cannot write down how it stands.
type Unsaved struct {
	Project string `json:"project"`
	Why     string `json:"why"`
}

// UnsavedOf is that of one project; "" where it can.
func (w *Worker) UnsavedOf(project string) string {
	for _, u := range w.Unsaved {
		if u.Project == project {
			return u.Why
		}
	}
	return ""
}

// Doing is an item that a worker has.
type Doing struct {
	Project   string    `json:"project"`
	Item      string    `json:"item"`
	Fence     int64     `json:"fence,omitempty"` // number of its claim; 0 where that was not told, as by older programs
	Step      string    `json:"step"`
	Run       string    `json:"run,omitempty"`
	Client    string    `json:"client,omitempty"` // that the run is of
	Since     time.Time `json:"since,omitzero"`
	ToolCalls int       `json:"tool_calls,omitempty"`
	LastTool  string    `json:"last_tool,omitempty"`
	Tokens    int64     `json:"tokens,omitempty"`
}

// told does what changes something on the servers, in whose subjects one of the names
// stands: what they refuse is said as soon as they say it.
func told(ctx context.Context, conn *fleet.Conn, doing string, change func(context.Context) error, names ...string) error {
	until, stop := conn.UntilRefused(ctx, names...)
	defer stop()
	err := change(until)
	if err != nil && errors.Is(context.Cause(until), fleet.ErrRefused) {
		if refused := conn.Refused(doing); refused != nil {
			return refused
		}
	}
	return conn.Explain(doing, err)
}

// put keeps what a worker says, or is asked, under a key.
func put(ctx context.Context, conn *fleet.Conn, doing, key string, value []byte) error {
	return told(ctx, conn, doing, func(ctx context.Context) error {
		kv, err := bucket(ctx, conn)
		if err == nil {
			_, err = kv.Put(ctx, key, value)
		}
		return err
	}, conn.Workers())
}

// bucket is where workers say what they do; made where it is not there.
func bucket(ctx context.Context, conn *fleet.Conn) (jetstream.KeyValue, error) {
	kv, err := fleet.GetOrMake(func() (jetstream.KeyValue, error) {
		return conn.JS.KeyValue(ctx, conn.Workers())
	}, func() (jetstream.KeyValue, error) {
		return conn.JS.CreateKeyValue(ctx, jetstream.KeyValueConfig{
			Bucket: conn.Workers(), Description: "what workers of reprise do, and what is asked of them", TTL: KeepFor, Replicas: conn.Replicas(), MaxValueSize: 1 << 20,
		})
	})
	return kv, conn.Explain("look for what workers say", err)
}

// seen is the bucket for who only looks; nil where no worker has been there yet.
func seen(ctx context.Context, conn *fleet.Conn) (jetstream.KeyValue, error) {
	kv, err := conn.JS.KeyValue(ctx, conn.Workers())
	if errors.Is(err, jetstream.ErrBucketNotFound) {
		return nil, nil
	}
	return kv, conn.Explain("look for what workers say", err)
}

// Beat says that a worker lives, and what it does.
func Beat(ctx context.Context, conn *fleet.Conn, w Worker) error {
	w.V = 1
	data, err := json.Marshal(w)
	if err != nil {
		return fmt.Errorf("say what this worker does: %w", err)
	}
	return put(ctx, conn, "say what this worker does", "w."+w.Name, data)
}

// Gone says that a worker has ended.
func Gone(ctx context.Context, conn *fleet.Conn, name string) error {
	kv, err := bucket(ctx, conn)
	if err != nil {
		return err
	}
	return conn.Explain("say that this worker has ended", kv.Delete(ctx, "w."+name))
}

// Workers are those of the fleet, by name. When they were heard is by the servers' clock.
func Workers(ctx context.Context, conn *fleet.Conn) ([]Worker, error) {
	kv, err := seen(ctx, conn)
	if kv == nil || err != nil {
		return nil, err
	}
	now, err := serverTime(ctx, kv)
	if err != nil {
		return nil, conn.Explain("ask the servers for the time", err)
	}
	var out []Worker
	err = each(ctx, kv, "w.*", func(e jetstream.KeyValueEntry) {
		var w Worker
		if json.Unmarshal(e.Value(), &w) != nil {
			w = Worker{} // of a newer program: that it is there is known
		}
		w.Name, w.Heard = strings.TrimPrefix(e.Key(), "w."), e.Created().UTC()
		w.Quiet, w.Asked = now.Sub(w.Heard) > QuietAfter, now
		w.ClockOff = w.Off().Round(time.Second).Seconds()
		out = append(out, w)
	})
	slices.SortFunc(out, func(a, b Worker) int { return cmp.Compare(a.Name, b.Name) })
	return out, conn.Explain("list workers", err)
}

func serverTime(ctx context.Context, kv jetstream.KeyValue) (time.Time, error) {
	s, err := kv.Status(ctx)
	if err != nil {
		return time.Time{}, err
	}
	b, ok := s.(*jetstream.KeyValueBucketStatus)
	if !ok {
		return time.Time{}, fmt.Errorf("the servers say nothing of the time")
	}
	return b.StreamInfo().TimeStamp, nil
}

// each calls fn with what lies under a pattern of keys.
func each(ctx context.Context, kv jetstream.KeyValue, pattern string, fn func(jetstream.KeyValueEntry)) error {
	w, err := kv.Watch(ctx, pattern, jetstream.IgnoreDeletes())
	if err != nil {
		return err
	}
	defer func() { _ = w.Stop() }() // it ends with ctx, too
	for {
		select {
		case e := <-w.Updates():
			if e == nil {
				return nil // all that there was
			}
			fn(e)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (r *Relay) key(kind, worker string) string {
	return kind + "." + fleet.Token(r.project) + "." + worker
}

// PutState tells how the loop of a worker stands: loop.json, as it is.
func (r *Relay) PutState(ctx context.Context, worker string, state []byte) error {
	return put(ctx, r.conn, "say how the loop stands", r.key("s", worker), state)
}

// States are how the loops of the project's workers stand, by worker.
func (r *Relay) States(ctx context.Context) (map[string][]byte, error) {
	kv, err := seen(ctx, r.conn)
	if kv == nil || err != nil {
		return nil, err
	}
	out := map[string][]byte{}
	err = each(ctx, kv, r.key("s", "*"), func(e jetstream.KeyValueEntry) {
		out[strings.TrimPrefix(e.Key(), r.key("s", ""))] = e.Value()
	})
	return out, r.conn.Explain("ask how loops stand", err)
}

// Ask leaves a request for the loop of a worker. It is there when Ask returns, and stays
// until the worker has it on its own disk, which may be when it is started again. name
// tells the request from every other.
func (r *Relay) Ask(ctx context.Context, worker, name string, request []byte) error {
	return put(ctx, r.conn, "ask the worker "+worker, r.key("r", worker)+"."+name, request)
}

// Asked gives each request for a worker's loop to take, until ctx ends. One that take has
// on disk is removed; a worker that is killed in between is given it again, under its name.
func (r *Relay) Asked(ctx context.Context, worker string, take func(name string, request []byte) error) error {
	kv, err := bucket(ctx, r.conn)
	if err != nil {
		return err
	}
	before := r.key("r", worker) + "."
	w, err := kv.Watch(ctx, before+">", jetstream.IgnoreDeletes()) // a name may have dots
	if err != nil {
		return r.conn.Explain("hear what is asked of this worker", err)
	}
	defer func() { _ = w.Stop() }()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case e, ok := <-w.Updates():
			if !ok {
				return r.conn.Explain("hear what is asked of this worker", errors.New("the servers ended it"))
			}
			if e == nil {
				continue
			}
			if err := take(strings.TrimPrefix(e.Key(), before), e.Value()); err != nil {
				return err
			}
			if err := kv.Purge(ctx, e.Key(), jetstream.LastRevision(e.Revision())); err != nil && ctx.Err() == nil {
				return r.conn.Explain("say that a request was taken", err)
			}
		}
	}
}

// Taken waits until a worker has a request on its disk; false where it has not for so long.
func (r *Relay) Taken(ctx context.Context, worker, name string, patience time.Duration) (bool, error) {
	kv, err := bucket(ctx, r.conn)
	if err != nil {
		return false, err
	}
	w, err := kv.Watch(ctx, r.key("r", worker)+"."+name, jetstream.MetaOnly())
	if err != nil {
		return false, r.conn.Explain("hear whether the worker "+worker+" has it", err)
	}
	defer func() { _ = w.Stop() }()
	waiting, cancel := context.WithTimeout(ctx, patience) // for the worker: the servers have their own time
	defer cancel()
	there := false
	for {
		select {
		case <-waiting.Done():
			return false, ctx.Err()
		case e, ok := <-w.Updates():
			switch {
			case !ok:
				return false, ctx.Err()
			case e == nil: // all that there is has been told
				if !there {
					return true, nil
				}
			default:
				if there = e.Operation() == jetstream.KeyValuePut; !there {
					return true, nil
				}
			}
		}
	}
}
