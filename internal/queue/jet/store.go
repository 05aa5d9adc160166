package jet

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"

	"reprise/internal/queue"
)

const (
	// briefHeader is the header with what the order of items depends on; largeHeader
	// names the object in which the long parts of an item are.
	briefHeader = "Reprise-Item"
	largeHeader = "Reprise-Large"
	// maxInline is the longest value that is kept in one message whatever the servers
	// would take: each change of an item is sent as a whole.
	maxInline = 256 << 10
	// maxBriefLabels bounds the header.
	maxBriefLabels = 4 << 10
)

// errStale: somebody else changed the item meanwhile.
var errStale = errors.New("changed meanwhile")

// brief is what a header tells of an item.
type brief struct {
	State     queue.State   `json:"s"`
	Priority  int           `json:"p"`
	Created   int64         `json:"c"`           // µs since 1970
	NotBefore int64         `json:"n,omitempty"` // µs since 1970; 0 is none
	Fence     uint64        `json:"f,omitempty"`
	Waits     string        `json:"w,omitempty"`
	Until     int64         `json:"u,omitempty"` // ms since 1970, of a claimed one
	Length    time.Duration `json:"l,omitempty"`
	Holder    string        `json:"h,omitempty"`
	Agent     string        `json:"a,omitempty"`
	Task      string        `json:"t,omitempty"`
	Labels    []string      `json:"k,omitempty"`
	More      bool          `json:"m,omitempty"` // there are more labels
	Arriving  bool          `json:"v,omitempty"`
}

func briefOf(r *queue.Record) brief {
	b := brief{
		State: r.State, Priority: r.Urgency(), Created: r.Created.UnixMicro(), Fence: r.Fence, Waits: r.Waits, Agent: r.Agent, Task: r.Task, Labels: r.Labels, Arriving: r.Arriving != "",
	}
	if !r.NotBefore.IsZero() {
		b.NotBefore = r.NotBefore.UnixMicro()
	}
	if r.Lease != nil {
		b.Until, b.Length, b.Holder = r.Lease.Until.UnixMilli(), r.Lease.Length, r.Lease.Holder
	}
	n := 0
	for _, l := range r.Labels {
		n += len(l)
	}
	if n > maxBriefLabels {
		b.Labels, b.More = nil, true
	}
	return b
}

// held is a record with where it stands on the servers.
type held struct {
	queue.Record
	rev   uint64
	large string // object with its long parts
	// asItWas: it is moved, which is no change of it.
	asItWas bool
}

// get reads an item from the leader. What is not there is ErrNotFound.
func (q *Queue) get(ctx context.Context, id string) (held, error) {
	h, msg, err := q.raw(ctx, id)
	if err != nil {
		return h, err
	}
	return q.decode(ctx, id, msg, h.rev)
}

// raw is the last message about an item; ErrNotFound where it was removed, with the
// revision of that.
func (q *Queue) raw(ctx context.Context, id string) (held, *jetstream.RawStreamMsg, error) {
	if err := queue.CheckID(id); err != nil {
		return held{}, nil, fmt.Errorf("%w: %w", queue.ErrNotFound, err)
	}
	var msg *jetstream.RawStreamMsg
	err := q.patiently(ctx, "read "+id, func(ctx context.Context) (err error) {
		msg, err = q.stream.GetLastMsgForSubject(ctx, q.prefix+id)
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			return fmt.Errorf("%w: %s", queue.ErrNotFound, id)
		}
		return err
	})
	if err != nil {
		return held{}, nil, err
	}
	h := held{rev: msg.Sequence}
	if removed(msg.Header) {
		return h, nil, fmt.Errorf("%w: %s", queue.ErrNotFound, id)
	}
	return h, msg, nil
}

// removed reports whether a message says that its key is gone.
func removed(h nats.Header) bool {
	return h.Get("KV-Operation") != "" || h.Get("Nats-Marker-Reason") != ""
}

// where is how a person finds an item's value.
func (q *Queue) where(id string) string { return "bucket " + q.bucket + ", key item." + id }

// decode reads a value, and what lies beside it.
func (q *Queue) decode(ctx context.Context, id string, msg *jetstream.RawStreamMsg, rev uint64) (held, error) {
	r, err := queue.DecodeRecord(msg.Data, q.machine, q.opt.Boot)
	if err != nil {
		return held{rev: rev}, fmt.Errorf("%s: %w", q.where(id), err)
	}
	if r.ID != id {
		return held{rev: rev}, fmt.Errorf("%w: %s: it says that its id is %s", queue.ErrDamaged, q.where(id), r.ID)
	}
	h := held{Record: r, rev: rev, large: msg.Header.Get(largeHeader)}
	if h.large == "" {
		return h, nil
	}
	data, err := q.getLarge(ctx, h.large)
	if err == nil {
		err = h.Attach(data)
	}
	return h, err
}

// put writes an item where it was read. errStale: somebody else was faster.
func (q *Queue) put(ctx context.Context, h *held) error {
	if !h.asItWas {
		h.Stamp(q.now())
	}
	short := h.Record
	data, err := short.Encode()
	if err != nil {
		return err
	}
	large := ""
	if len(data) > min(maxInline, int(q.opt.Conn.NC.MaxPayload())/2) {
		if large, err = q.putLarge(ctx, &short, h.large); err != nil {
			return err
		}
		if data, err = short.Encode(); err != nil {
			return err
		}
	}
	b := briefOf(&h.Record)
	line, err := json.Marshal(b)
	if err != nil {
		return err
	}
	msg := nats.NewMsg(q.prefix + h.ID)
	msg.Data = data
	msg.Header.Set(briefHeader, string(line))
	if large != "" {
		msg.Header.Set(largeHeader, large)
	}
	seq, err := q.publish(ctx, msg, h.rev)
	if err != nil {
		return err
	}
	h.rev, h.large = seq, large
	q.view.wrote(h.ID, seq, &b)
	return nil
}

// publish stores a message if the last about its subject is rev. What was sent and not
// answered is sent again under the same id, so that it is stored once.
func (q *Queue) publish(ctx context.Context, msg *nats.Msg, rev uint64) (seq uint64, err error) {
	id := nuid.Next()
	again := false
	err = q.patiently(ctx, "change "+strings.TrimPrefix(msg.Subject, q.prefix), func(ctx context.Context) error {
		ack, err := q.opt.Conn.JS.PublishMsg(ctx, msg, jetstream.WithMsgID(id), jetstream.WithExpectLastSequencePerSubject(rev), jetstream.WithRetryAttempts(0))
		if err == nil {
			seq = ack.Sequence
			return nil
		}
		if !swapped(err) {
			again = true
			return err
		}
		if again { // it may be the first try that stands there
			last, err := q.stream.GetLastMsgForSubject(ctx, msg.Subject)
			if err == nil && last.Header.Get(jetstream.MsgIDHeader) == id {
				seq = last.Sequence
				return nil
			}
			if err != nil && !errors.Is(err, jetstream.ErrMsgNotFound) {
				return err
			}
		}
		return errStale
	})
	return seq, err
}

// swapped reports whether a publication was refused because its revision is not the last.
func swapped(err error) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) && (api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence || api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequenceConstant)
}

// change reads an item, lets decide change it, and writes it, until nobody else came
// between. What decide returns without an operation changes nothing.
func (q *Queue) change(ctx context.Context, id string, decide func(h *held) (queue.Change, error)) (queue.Item, error) {
	for try := 0; ; try++ {
		h, err := q.get(ctx, id)
		if err == nil && h.Arriving != "" {
			err = fmt.Errorf("%w: %s is being moved here; `reprise queue migrate` again finishes that", queue.ErrState, id)
		}
		if err != nil {
			return queue.Item{}, err
		}
		from := h.State
		c, err := decide(&h)
		if err != nil || c.Op == "" {
			return h.Item, err
		}
		switch err := q.put(ctx, &h); {
		case errors.Is(err, errStale):
			if err := pause(ctx, try); err != nil {
				return queue.Item{}, err
			}
			continue
		case err != nil:
			return queue.Item{}, err
		}
		if c.Op != opSilent {
			c.Item, c.From, c.To, c.Fence = h.Item, from, h.State, h.Fence
			q.record(ctx, c)
		}
		return h.Item, nil
	}
}

// opSilent is a change that nobody is told of.
const opSilent = "-"

// pause is a short and growing wait by chance, for those who change one item together.
func pause(ctx context.Context, try int) error {
	t := time.NewTimer(rand.N(time.Millisecond << min(try, 7)))
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("change an item: %w", context.Cause(ctx))
	}
}

// remove takes an item out, if it is as it was read. Word of that stays for a day.
func (q *Queue) remove(ctx context.Context, id string, rev uint64) error {
	msg := nats.NewMsg(q.prefix + id)
	msg.Header.Set("KV-Operation", "PURGE")
	msg.Header.Set(jetstream.MsgRollup, jetstream.MsgRollupSubject)
	msg.Header.Set(jetstream.MsgTTLHeader, markerTTL.String())
	seq, err := q.publish(ctx, msg, rev)
	if err == nil {
		q.view.wrote(id, seq, nil)
	}
	return err
}

// objects is the store for what is long.
func (q *Queue) objects(ctx context.Context) (jetstream.ObjectStore, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.large != nil {
		return q.large, nil
	}
	name := q.opt.Conn.Names(q.opt.Project).Large
	err := q.patiently(ctx, "open the store of long items", func(ctx context.Context) (err error) {
		q.large, err = q.opt.Conn.JS.ObjectStore(ctx, name)
		if errors.Is(err, jetstream.ErrBucketNotFound) || errors.Is(err, jetstream.ErrStreamNotFound) {
			q.large, err = q.opt.Conn.JS.CreateOrUpdateObjectStore(ctx, jetstream.ObjectStoreConfig{Bucket: name, Description: "long parts of work items of reprise", Replicas: q.opt.Conn.Replicas()})
		}
		return err
	})
	if err != nil {
		q.large = nil
	}
	return q.large, err
}

// putLarge takes the long parts out of a record and keeps them under a name that says
// what is in it; known is one that is there.
func (q *Queue) putLarge(ctx context.Context, r *queue.Record, known string) (string, error) {
	data, err := r.Detach()
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(data)
	name := r.ID + "~" + hex.EncodeToString(sum[:12])
	if name == known {
		return name, nil
	}
	store, err := q.objects(ctx)
	if err != nil {
		return "", err
	}
	return name, q.patiently(ctx, "keep the long parts of "+r.ID, func(ctx context.Context) error {
		_, err := store.PutBytes(ctx, name, data)
		return err
	})
}

func (q *Queue) getLarge(ctx context.Context, name string) (data []byte, err error) {
	store, err := q.objects(ctx)
	if err != nil {
		return nil, err
	}
	err = q.patiently(ctx, "read the long parts of an item", func(ctx context.Context) (err error) {
		data, err = store.GetBytes(ctx, name)
		if errors.Is(err, jetstream.ErrObjectNotFound) {
			return fmt.Errorf("%w: its long parts, %s, are not there", queue.ErrDamaged, name)
		}
		return err
	})
	return data, err
}

// dropLarge removes what no item needs any more. What fails stays for the next.
func (q *Queue) dropLarge(ctx context.Context, names ...string) {
	names = slices.DeleteFunc(names, func(n string) bool { return n == "" })
	if len(names) == 0 {
		return
	}
	store, err := q.objects(ctx)
	if err != nil {
		return
	}
	for _, n := range names {
		_ = store.Delete(ctx, n)
	}
}

// briefFrom reads a header. ok is false for a message that this package did not write.
func briefFrom(h nats.Header) (b brief, ok bool) {
	dec := json.NewDecoder(bytes.NewReader([]byte(h.Get(briefHeader))))
	err := dec.Decode(&b)
	return b, err == nil && slices.Contains(queue.States(), b.State)
}
