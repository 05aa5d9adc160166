package learn

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"reprise/internal/event"
)

// Job is the bounded work at a session's start and end.
type Job struct {
	At      string // session_start or session_end
	Session string // the client's own id
	Client  string
	Project string
	Budget  time.Duration // default [DefaultBudget]
	// Replay takes in what could not be written when it happened (the outbox);
	// nil = nothing. It is called first, so that what it brings is organised too.
	Replay func(ctx context.Context) error
	// Append writes an event into the log of the session's project; nil = the
	// job leaves no event.
	Append func(ctx context.Context, e event.Event) error
}

// JobReport is what a job did.
type JobReport struct {
	Report
	Compacted bool   `json:"compacted"`        // the event was written
	Used      int    `json:"used"`             // uses of what was served that were found and recorded
	Outbox    string `json:"outbox,omitempty"` // why the outbox could not be taken in
}

// CompactionData is the data of compaction.finished.
type CompactionData struct {
	At string `json:"at"`
	// Seen is how many events had been taken in: the state that was compacted.
	Seen     int `json:"seen"`
	Events   int `json:"events"`   // in this job
	Sessions int `json:"sessions"` // worked out again
	Docs     int `json:"docs"`     // written
	Deleted  int `json:"deleted"`
	Bad      int `json:"bad,omitempty"` // lines that cannot be used
}

// Do runs a job. Where the budget ends first, the next one goes on; the event
// compaction.finished is written once all is done, and only when something had
// happened since the last one. Secrets are looked for by the full rules in
// everything that is kept.
func (o *Organizer) Do(ctx context.Context, j Job) (JobReport, error) {
	var out JobReport
	if j.Budget <= 0 {
		j.Budget = DefaultBudget
	}
	if j.Replay != nil {
		if err := j.Replay(ctx); err != nil {
			// What waits in the outbox goes on waiting; what is in the log counts.
			out.Outbox = err.Error()
		}
	}
	var err error
	if out.Report, err = o.Run(ctx, j.Budget); err != nil {
		return out, err
	}
	if out.More || j.Append == nil {
		return out, nil
	}
	if err := o.improve(ctx, j, &out); err != nil {
		return out, err
	}
	seen, last, err := o.compacted(ctx)
	if err != nil || seen == last {
		return out, err
	}
	data, err := json.Marshal(CompactionData{At: j.At, Seen: seen, Events: out.Events, Sessions: out.Sessions, Docs: out.Docs, Deleted: out.Deleted, Bad: out.Bad})
	if err != nil {
		return out, fmt.Errorf("organise: %w", err)
	}
	err = j.Append(ctx, event.Event{Type: event.CompactionFinished, Scope: jobScope(j), Project: j.Project, Session: j.Session, Client: j.Client, Data: data})
	if err != nil {
		return out, fmt.Errorf("organise: record that it is done: %w", err)
	}
	out.Compacted = true
	return out, nil
}

// improve records what was used of what was served, and takes that in.
func (o *Organizer) improve(ctx context.Context, j Job, out *JobReport) (err error) {
	began := o.o.Now()
	over := func() bool { return o.o.Now().Sub(began) >= j.Budget/2 }
	if out.Used, err = o.mentions(ctx, j, over); err != nil || out.Used == 0 {
		return err
	}
	more, err := o.Run(ctx, j.Budget/2)
	out.add(more)
	return err
}

func jobScope(j Job) event.Scope {
	if j.Project != "" {
		return event.ScopeProject
	}
	return event.ScopeGlobal
}

// compacted is how many events were taken in, and how many the last
// compaction.finished that was read says there were.
func (o *Organizer) compacted(ctx context.Context) (seen, last int, err error) {
	err = o.store.View(ctx, func(tx Tx) error {
		f := &folder{tx: tx}
		if seen, err = f.number("seen"); err != nil {
			return err
		}
		b, _, err := tx.Load(bucketMeta, "compacted")
		if _, n, ok := strings.Cut(string(b), "|"); ok {
			last, _ = strconv.Atoi(n) // none, if it is none
		}
		return err
	})
	if err != nil {
		return 0, 0, fmt.Errorf("organise: %w", err)
	}
	return seen, last, nil
}

// counts keeps how many events there are, but for those that only say that
// organising was done: they must not be the cause of another.
func (f *folder) counts(e *event.Event) {
	if e.Type != event.CompactionFinished {
		f.seen++
		return
	}
	var d CompactionData
	decode(e.Data, &d)
	f.compacted = max(f.compacted, fmt.Sprintf("%019d|%d", nanos(e.TS), d.Seen))
}

func (f *folder) keepCounts() error {
	if f.seen > 0 {
		n, err := f.number("seen")
		if err != nil {
			return err
		}
		if err := f.tx.Store(bucketMeta, "seen", []byte(strconv.Itoa(n+f.seen))); err != nil {
			return err
		}
	}
	if f.compacted != "" { // the newest counts, in whichever log it stands
		b, _, err := f.tx.Load(bucketMeta, "compacted")
		if err != nil {
			return err
		}
		if err := f.tx.Store(bucketMeta, "compacted", []byte(max(string(b), f.compacted))); err != nil {
			return err
		}
	}
	return nil
}
