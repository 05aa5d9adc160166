package relay

import (
	"context"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// reader reads messages of the stream of what runs say, in their order, by one consumer for all
// of them: one that is asked for messages one by one is made anew for each, which costs the servers
// of a cluster three messages each, and fails where the next is asked for before all of them know it.
type reader struct {
	relay *Relay
	cfg   jetstream.OrderedConsumerConfig

	seen uint64 // the last that was given, from which a new consumer goes on
	left uint64 // how many there were after it
	got  chan read
	end  context.CancelFunc
}

type read struct {
	msg jetstream.Msg
	err error
}

// begin makes the consumer, and has its messages come.
func (d *reader) begin(ctx context.Context) error {
	cfg := d.cfg
	cfg.MaxResetAttempts = 1 // else nothing is said while servers are away
	if d.seen > 0 {
		cfg.DeliverPolicy, cfg.OptStartSeq = jetstream.DeliverByStartSequencePolicy, d.seen+1
	}
	c, err := d.relay.conn.JS.OrderedConsumer(ctx, d.relay.names.Output, cfg)
	if err != nil {
		return err
	}
	messages, err := c.Messages(jetstream.PullMaxMessages(500), jetstream.PullExpiry(10*time.Second), jetstream.PullHeartbeat(time.Second))
	if err != nil {
		return err
	}
	ctx, d.end = context.WithCancel(ctx)
	got := make(chan read)
	d.left, d.got = c.CachedInfo().NumPending, got
	go func() { // for the library's own way to begin anew cannot be ended
		defer messages.Stop()
		for {
			msg, err := messages.Next(jetstream.NextContext(ctx))
			select {
			case got <- read{msg, err}:
			case <-ctx.Done():
				return
			}
			if err != nil {
				return
			}
		}
	}()
	return nil
}

// next is the next message; [nats.ErrTimeout] where none came for a while. After an error it may be
// asked again: nothing is given twice, or left out.
func (d *reader) next(ctx context.Context, wait time.Duration) (jetstream.Msg, *jetstream.MsgMetadata, error) {
	if d.got == nil {
		if err := d.begin(ctx); err != nil {
			return nil, nil, err
		}
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	var one read
	select {
	case one = <-d.got:
	case <-timer.C:
		return nil, nil, nats.ErrTimeout
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	}
	if one.err != nil {
		d.close()
		return nil, nil, one.err
	}
	meta, err := one.msg.Metadata()
	if err != nil {
		return nil, nil, err
	}
	d.seen, d.left = meta.Sequence.Stream, meta.NumPending
	return one.msg, meta, nil
}

func (d *reader) close() {
	if d.got != nil {
		d.end()
		d.got = nil
	}
}
