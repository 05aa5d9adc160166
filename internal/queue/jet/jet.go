// Package jet is the queue of a fleet: work items on NATS servers, in a key-value bucket
// of JetStream that any number of machines share.
//
// An item is one key, item.ID, and all of it one value ([queue.Record]). Each change is one
// publication that names the revision which it was made from, so the servers let one of
// several through (compare and swap), and each publication has an id, so that one which
// was sent twice is stored once. The number of a claim rises in the same step as the
// item changes hands. A header tells what the order of items depends on; by these headers
// alone each process keeps a picture of the queue, of which it makes sure before a claim
// that it is not behind. The times of leases are by the servers' clock.
//
// What is too long for one message lies in an object store beside the bucket, under a
// name that says what is in it.
//
// It writes no file, and takes no lock.
package jet

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"reprise/internal/fleet"
	"reprise/internal/proc"
	"reprise/internal/queue"
)

// Options say which queue it is, and who works with it.
type Options struct {
	Conn    *fleet.Conn
	Project string // "" is the global scope
	// Now is the machine's clock, with its monotonic reading. It measures how long things
	// take; what time it is, the servers say.
	Now func() time.Time
	// ServersTime replaces the servers' clock in tests; nil asks them.
	ServersTime func() time.Time
	// Host, Process, Boot, Alive, Actor and Record are as in [queue.Options].
	Host    string
	Process proc.ID
	Boot    string
	Alive   func(proc.ID) bool
	Actor   string
	Record  func(context.Context, queue.Change)
	// Patience is how long servers may be away before what was asked fails; 0 is
	// DefaultPatience. A cluster that has lost its leader has another within that.
	Patience time.Duration
}

// DefaultPatience is longer than an election in a cluster takes.
const DefaultPatience = 20 * time.Second

// Queue is a queue on the servers. It is made by [Open].
type Queue struct {
	opt     Options
	bucket  string
	prefix  string // of subjects: "$KV.<bucket>.item."
	machine string
	stream  jetstream.Stream
	clock   *fleet.Clock
	view    *view
	overdue queue.Overdue
	ctx     context.Context // ends with Close
	cancel  context.CancelFunc

	mu     sync.Mutex
	large  jetstream.ObjectStore
	swept  time.Time // by the servers' clock
	spread int       // how many items behind the first are as good, because others try for that
}

// Open is the queue of a project, which is made on the servers where it is not there
// yet. Errors are those of package fleet.
func Open(ctx context.Context, opt Options) (*Queue, error) {
	if opt.Alive == nil {
		opt.Alive = proc.ID.Alive
	}
	if opt.Boot == "" {
		opt.Boot = opt.Process.Boot
	}
	if opt.Patience == 0 {
		opt.Patience = DefaultPatience
	}
	names := opt.Conn.Names(opt.Project)
	m := queue.Machine(opt.Host, opt.Boot)
	q := &Queue{
		opt: opt, bucket: names.Queue, prefix: "$KV." + names.Queue + ".item.", machine: m, clock: fleet.NewClock(opt.Now),
		overdue: queue.Overdue{Machine: m, Boot: opt.Boot, Alive: opt.Alive},
	}
	q.ctx, q.cancel = context.WithCancel(context.WithoutCancel(ctx))
	q.view = newView(q)
	err := q.patiently(ctx, "open the queue", func(ctx context.Context) (err error) {
		q.stream, err = q.bucketStream(ctx)
		return err
	})
	if err != nil {
		q.cancel()
		return nil, err
	}
	return q, nil
}

// bucketStream is the stream that the bucket is kept in. It is one as the client's
// key-value store makes it, but for AllowDirect: a replica may be behind, and a worker
// that reads there what it has just written would take its claim for lost.
func (q *Queue) bucketStream(ctx context.Context) (jetstream.Stream, error) {
	js := q.opt.Conn.JS
	return fleet.GetOrMake(func() (jetstream.Stream, error) {
		return js.Stream(ctx, "KV_"+q.bucket)
	}, func() (jetstream.Stream, error) {
		s, err := js.CreateStream(ctx, jetstream.StreamConfig{
			Name: "KV_" + q.bucket, Description: "work items of reprise", Subjects: []string{"$KV." + q.bucket + ".>"},
			MaxMsgsPerSubject: 1, MaxBytes: -1, MaxMsgSize: -1, MaxMsgs: -1, MaxConsumers: -1, Storage: jetstream.FileStorage, Replicas: q.opt.Conn.Replicas(),
			Discard: jetstream.DiscardNew, Duplicates: sentAgain, AllowRollup: true, DenyDelete: true,
			AllowMsgTTL: true, SubjectDeleteMarkerTTL: markerTTL,
		})
		if err == nil { // those who may not make it will need it, too
			_, err = q.objects(ctx)
		}
		return s, err
	})
}

const (
	// sentAgain is how long the servers know the ids of publications.
	sentAgain = 2 * time.Minute
	// markerTTL is how long they keep word of an item that was removed, for those who
	// were away meanwhile.
	markerTTL = 24 * time.Hour
)

// Close ends what watches the queue; claims stay. The connection stays, too: it is the
// caller's.
func (q *Queue) Close() error {
	q.cancel()
	q.view.stop()
	return nil
}

// firstTry is how long the first answer may take. One that was asked of a leader that had
// just died never comes; one that is slow is waited for longer each time.
const firstTry = time.Second

// patiently asks the servers, again and again while they are away, until patience or the
// context ends. What is asked must be such that asking again does no harm.
func (q *Queue) patiently(ctx context.Context, doing string, ask func(context.Context) error) error {
	whole, cancel := context.WithTimeout(ctx, q.opt.Patience)
	defer cancel()
	wait, limit := 20*time.Millisecond, firstTry
	names := q.opt.Conn.Names(q.opt.Project)
	for {
		one, stop := context.WithTimeout(whole, limit)
		limit = min(2*limit, fleet.AskTimeout)
		until, end := q.opt.Conn.UntilRefused(one, names.Queue, names.Large)
		err := ask(until)
		refused := errors.Is(context.Cause(until), fleet.ErrRefused)
		end()
		stop()
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("%s: %w", doing, context.Cause(ctx))
		}
		if refused {
			// What is asked again is refused again.
			if err := q.opt.Conn.Refused(doing); err != nil {
				return err
			}
		}
		if !fleet.Away(err) && !refused {
			return q.explain(doing, err)
		}
		t := time.NewTimer(wait)
		select {
		case <-t.C:
		case <-q.ctx.Done():
			t.Stop()
			return queue.Away(fmt.Errorf("%s: %w: the queue was closed", doing, fleet.ErrUnreachable))
		case <-whole.Done():
			t.Stop()
			if ctx.Err() != nil {
				return fmt.Errorf("%s: %w", doing, context.Cause(ctx))
			}
			return q.explain(doing, err)
		}
		wait = min(2*wait, time.Second)
	}
}

// explain leaves errors of the queue as they are, and tells servers that are away from what
// will not be otherwise the next time.
func (q *Queue) explain(doing string, err error) error {
	for _, e := range []error{queue.ErrEmpty, queue.ErrNotFound, queue.ErrLost, queue.ErrState, queue.ErrInvalid, queue.ErrCycle, queue.ErrDamaged} {
		if errors.Is(err, e) {
			return err
		}
	}
	if err = q.opt.Conn.Explain(doing, err); errors.Is(err, fleet.ErrUnreachable) {
		return queue.Away(err)
	}
	return err
}

// now is the time by the servers' clock, as far as it was heard; sync asks them.
func (q *Queue) now() time.Time {
	if q.opt.ServersTime != nil {
		return q.opt.ServersTime()
	}
	now, _, _ := q.clock.Now()
	return now
}

// ClockOff is by how much a machine's clock is ahead of the servers', which must have been
// asked something before; ok is false where they were not.
func (q *Queue) ClockOff(now time.Time) (off time.Duration, ok bool) {
	server, _, ok := q.clock.Now()
	return now.Sub(server), ok
}

// timeKnown is how long the machine's monotonic clock is trusted to go on from what the
// servers said. It stands still while a machine sleeps.
const timeKnown = 5 * time.Second

// time is the servers' time, asked for where that is long ago.
func (q *Queue) time(ctx context.Context) (time.Time, error) {
	if q.opt.ServersTime == nil {
		if _, age, ok := q.clock.Now(); !ok || age > timeKnown {
			if _, err := q.last(ctx); err != nil {
				return time.Time{}, err
			}
		}
	}
	return q.now(), nil
}

// last asks for the number of the last change there was, and with it for the time.
func (q *Queue) last(ctx context.Context) (seq uint64, err error) {
	err = q.patiently(ctx, "look at the queue", func(ctx context.Context) error {
		info, err := q.stream.Info(ctx)
		if err != nil {
			return err
		}
		q.clock.Heard(info.TimeStamp)
		seq = info.State.LastSeq
		return nil
	})
	return seq, err
}

// record tells of a change that was made.
func (q *Queue) record(ctx context.Context, c queue.Change) {
	if q.opt.Record != nil {
		q.opt.Record(context.WithoutCancel(ctx), c)
	}
}

func (q *Queue) holder() string { return queue.HolderName(q.machine, q.opt.Process) }
