package relay

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// EndedRun is a run of a worker that has ended: what the servers have of it.
type EndedRun struct {
	Run string
	At  time.Time       // when the servers were told, by their clock
	Doc json.RawMessage // the run's record
}

// EndedRuns are the project's runs on workers that have ended, the newest first, for as
// long as the servers keep what they said (seven days). Only the last piece of each run is
// read.
func (r *Relay) EndedRuns(ctx context.Context) ([]EndedRun, error) {
	all := r.names.OutputSubject("*")
	d := reader{relay: r, cfg: jetstream.OrderedConsumerConfig{FilterSubjects: []string{all}, DeliverPolicy: jetstream.DeliverLastPerSubjectPolicy}}
	defer d.close()
	err := d.begin(ctx)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil, nil // no worker has begun yet
	}
	if err != nil {
		return nil, r.conn.Explain("list runs of workers", err)
	}
	var out []EndedRun
	for failed := 0; d.left > 0; {
		msg, meta, err := d.next(ctx, 2*time.Second)
		if ctx.Err() != nil {
			return out, ctx.Err()
		}
		if err != nil {
			if failed++; failed > 10 {
				return out, r.conn.Explain("list runs of workers", err)
			}
			continue
		}
		failed = 0
		if msg.Headers().Get(headEnd) != "" {
			out = append(out, EndedRun{strings.TrimPrefix(msg.Subject(), strings.TrimSuffix(all, "*")), meta.Timestamp.UTC(), msg.Data()})
		}
	}
	slices.SortFunc(out, func(a, b EndedRun) int { return b.At.Compare(a.At) })
	return out, nil
}

// EndedRun is one of them; [ErrNotFound] where the servers do not have it, or it goes on.
func (r *Relay) EndedRun(ctx context.Context, run string) (EndedRun, error) {
	s, err := r.conn.JS.Stream(ctx, r.names.Output)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return EndedRun{}, ErrNotFound
	}
	var last *jetstream.RawStreamMsg
	if err == nil {
		last, err = s.GetLastMsgForSubject(ctx, r.names.OutputSubject(run))
	}
	switch {
	case errors.Is(err, jetstream.ErrMsgNotFound):
		return EndedRun{}, ErrNotFound
	case err != nil:
		return EndedRun{}, r.conn.Explain("look for "+run, err)
	case last.Header.Get(headEnd) == "":
		return EndedRun{}, ErrNotFound
	}
	return EndedRun{run, last.Time.UTC(), last.Data}, nil
}

// Prepare makes on the servers what the project's workers need beside the queue, where it
// is not there yet: for whoever may, so that workers need not.
func (r *Relay) Prepare(ctx context.Context) error {
	if _, err := bucket(ctx, r.conn); err != nil {
		return err
	}
	if _, err := r.stream(ctx); err != nil {
		return r.conn.Explain("make the stream of what runs say", err)
	}
	_, err := r.files(ctx, true)
	return r.conn.Explain("make the store for files of runs", err)
}
