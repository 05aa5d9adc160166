package jet

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"reprise/internal/fleet"
	"reprise/internal/queue"
)

// row is what one process knows of an item.
type row struct {
	id    string
	rev   uint64
	brief brief
	bad   bool // no brief could be read: whoever looks at it reads the value
}

// view is a picture of the queue, by the headers of what is published. It is derived and
// may be behind; whoever decides by it catches up first, and what is decided is then
// checked by the servers.
type view struct {
	q *Queue

	mu      sync.Mutex
	rows    map[string]row
	seen    uint64        // the last change that came by the watch
	changed chan struct{} // closed at the next change
	arrived uint64        // counts what came to be ready
	watch   jetstream.ConsumeContext
	number  int  // of the watch: what an earlier one still tells counts for nothing
	failed  bool // the watch has ended, or cannot be trusted
}

func newView(q *Queue) *view {
	return &view{q: q, rows: map[string]row{}, changed: make(chan struct{})}
}

// catchUpWait is how long the watch may be behind what the leader says, and tell nothing,
// before it is made anew; behindWait how often in that time the leader is asked for the last
// change that is still there.
const (
	catchUpWait = 800 * time.Millisecond
	behindWait  = 250 * time.Millisecond
)

// catchUp returns when the picture has everything that was published before.
func (v *view) catchUp(ctx context.Context) error {
	seq, err := v.q.last(ctx)
	if err != nil {
		return err
	}
	return v.reach(ctx, seq)
}

// reach returns when the picture has the change of that number.
func (v *view) reach(ctx context.Context, seq uint64) error {
	return v.q.patiently(ctx, "look at the queue", func(ctx context.Context) error {
		if err := v.start(ctx); err != nil {
			return err
		}
		t := time.NewTimer(catchUpWait)
		defer t.Stop()
		look := time.NewTicker(behindWait)
		defer look.Stop()
		for last := uint64(0); ; {
			v.mu.Lock()
			seen, changed, failed := v.seen, v.changed, v.failed
			v.mu.Unlock()
			if seen >= seq {
				return nil
			}
			if seen != last { // it is on its way
				last = seen
				t.Reset(catchUpWait)
			}
			if failed {
				return queue.Away(fmt.Errorf("%w: the watch of the queue ended", fleet.ErrUnreachable))
			}
			select {
			case <-changed:
			case <-ctx.Done():
				return ctx.Err()
			case <-look.C:
				if err := v.tail(ctx, seq); err != nil {
					return err
				}
			case <-t.C:
				v.restart()
				return queue.Away(fmt.Errorf("%w: the watch of the queue is behind", fleet.ErrUnreachable))
			}
		}
	})
}

// tail settles that what was published last has been removed since, as old markers are:
// then no watch will ever tell of it.
func (v *view) tail(ctx context.Context, seq uint64) error {
	msg, err := v.q.stream.GetLastMsgForSubject(ctx, "$KV."+v.q.bucket+".>")
	last := uint64(0)
	switch {
	case err == nil:
		last = msg.Sequence
	case !errors.Is(err, jetstream.ErrMsgNotFound):
		return err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.seen >= last && v.seen < seq {
		v.seen = seq
		v.tell()
	}
	return nil
}

// start begins the watch, unless there is one. It begins with the last of each item.
func (v *view) start(ctx context.Context) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.watch != nil && !v.failed {
		return nil
	}
	if v.watch != nil {
		v.watch.Stop()
		v.watch = nil
	}
	c, err := v.q.stream.OrderedConsumer(ctx, jetstream.OrderedConsumerConfig{
		FilterSubjects: []string{"$KV." + v.q.bucket + ".>"}, DeliverPolicy: jetstream.DeliverLastPerSubjectPolicy, HeadersOnly: true,
		InactiveThreshold: 30 * time.Second,
	})
	if err != nil {
		return err
	}
	// What came by a watch before may have been removed since, and its marker, too.
	v.number++
	v.rows, v.seen, v.failed = map[string]row{}, 0, false
	number := v.number
	w, err := c.Consume(func(m jetstream.Msg) { v.heard(m, number) },
		jetstream.PullMaxMessages(1000), jetstream.PullExpiry(10*time.Second), jetstream.PullHeartbeat(time.Second),
		jetstream.ConsumeErrHandler(func(_ jetstream.ConsumeContext, err error) {
			if fleet.Away(err) {
				return // it goes on by itself when the servers are back
			}
			v.mu.Lock()
			defer v.mu.Unlock()
			v.failed = v.failed || number == v.number
			v.tell()
		}))
	if err != nil {
		return err
	}
	v.watch = w
	return nil
}

// restart has the next look begin anew.
func (v *view) restart() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.failed = true
}

func (v *view) stop() {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.watch != nil {
		v.watch.Stop()
		v.watch = nil
	}
	v.failed = true
	v.tell()
}

// tell wakes those who wait for a change. v.mu is held.
func (v *view) tell() {
	close(v.changed)
	v.changed = make(chan struct{})
}

// heard takes one message of the watch.
func (v *view) heard(m jetstream.Msg, number int) {
	meta, err := m.Metadata()
	if err != nil {
		return
	}
	id, ok := strings.CutPrefix(m.Subject(), v.q.prefix)
	var b *brief
	bad := false
	if ok && !removed(m.Headers()) {
		got, good := briefFrom(m.Headers())
		b, bad = &got, !good
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if number != v.number {
		return
	}
	if ok {
		v.take(id, meta.Sequence.Stream, b, bad)
	}
	v.seen = max(v.seen, meta.Sequence.Stream)
	v.tell()
}

// wrote takes what this process has just written; nil is a removal.
func (v *view) wrote(id string, rev uint64, b *brief) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.take(id, rev, b, false)
	v.tell()
}

// take is one change of one item. v.mu is held.
func (v *view) take(id string, rev uint64, b *brief, bad bool) {
	old, known := v.rows[id]
	if known && old.rev >= rev {
		return
	}
	if b == nil {
		delete(v.rows, id)
		return
	}
	v.rows[id] = row{id: id, rev: rev, brief: *b, bad: bad}
	if !bad && !b.Arriving && b.State == queue.Ready {
		v.arrived++
	}
}

// all are the items that are known, those that are moved here left out.
func (v *view) all() []row {
	v.mu.Lock()
	defer v.mu.Unlock()
	return slices.DeleteFunc(slices.Collect(maps.Values(v.rows)), func(r row) bool { return r.brief.Arriving })
}

func (v *view) row(id string) (row, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	r, ok := v.rows[id]
	return r, ok
}

// bad reports whether an item's header says nothing that can be read.
func (v *view) bad(id string) bool {
	r, ok := v.row(id)
	return ok && r.bad
}

// next is closed at the next change; arrived is how much had come to be ready.
func (v *view) next() (changed <-chan struct{}, arrived uint64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.changed, v.arrived
}

// due are the ready items whose time has come and that may fit, in the order in which
// they are claimed.
func (v *view) due(opt *queue.ClaimOptions, now time.Time) (list []row) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, r := range v.rows {
		if r.bad || r.brief.Arriving || r.brief.State != queue.Ready || r.brief.NotBefore > now.UnixMicro() || !r.mayFit(opt) {
			continue
		}
		list = append(list, r)
	}
	slices.SortFunc(list, func(a, b row) int { return a.order(&b) })
	return list
}

// left is what of the items that fit is ready, be it for later, and what is claimed.
func (v *view) left(opt *queue.ClaimOptions) (l queue.Left) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, r := range v.rows {
		found := &l.Ready
		if r.brief.State == queue.Claimed {
			found = &l.Claimed
		} else if r.brief.State != queue.Ready {
			continue
		}
		*found = *found || !r.bad && !r.brief.Arriving && r.mayFit(opt)
	}
	return l
}

func (r *row) order(o *row) int {
	switch {
	case r.brief.Priority != o.brief.Priority:
		return r.brief.Priority - o.brief.Priority
	case r.brief.Created != o.brief.Created:
		if r.brief.Created < o.brief.Created {
			return -1
		}
		return 1
	}
	return strings.Compare(r.id, o.id)
}

// mayFit reports whether what is known of an item fits what is asked for.
func (r *row) mayFit(opt *queue.ClaimOptions) bool {
	if r.brief.More { // then its value is looked at
		return opt.ID == "" || opt.ID == r.id
	}
	return opt.Want(&queue.Item{ID: r.id, Labels: r.brief.Labels, Agent: r.brief.Agent, Task: r.brief.Task})
}
