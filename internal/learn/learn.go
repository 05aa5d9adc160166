package learn

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"reprise/internal/event"
	"reprise/internal/learn/sign"
	"reprise/internal/recall"
	"reprise/internal/redact"
)

// Log is one directory of events.
type Log struct {
	Project string // empty = the global log
	Dir     string
	// Names are all that the project has had, the first one first; none where it never had
	// another one.
	Names []string
}

// Options of an [Organizer].
type Options struct {
	Index *recall.Index
	// Store is used in place of Index where it is set: tests.
	Store Store
	Logs  []Log
	Now   func() time.Time
	Tiers Tiers
	// HalfLife is how long a failed fix counts half; default 30 days.
	HalfLife time.Duration
	// Sweep takes secrets out of what is kept, by the full rules: what the
	// hook's quick look let through is caught here, before it is served. Nil =
	// package redact's.
	Sweep func(string) string
	// Batch is the most events of one transaction; default 2,000.
	Batch int
}

// Organizer works out from the logs what can be recalled: episodes, patterns,
// anti-patterns, summaries. What it makes depends on the events and the day
// alone, not on when or in which order they were read.
type Organizer struct {
	mu    sync.Mutex // one run at a time
	o     Options
	store Store
	cache cache
}

// New returns an organizer. It reads nothing yet.
func New(o Options) *Organizer {
	if o.Store == nil {
		o.Store = In(o.Index)
	}
	o.Tiers = o.Tiers.withDefaults()
	if o.HalfLife <= 0 {
		o.HalfLife = 30 * 24 * time.Hour
	}
	if o.Sweep == nil {
		red := redact.New()
		o.Sweep = func(s string) string {
			s, _ = red.String(s)
			return s
		}
	}
	if o.Batch <= 0 {
		o.Batch = 2000
	}
	return &Organizer{o: o, store: o.Store}
}

// Report is what a run did.
type Report struct {
	Events   int  `json:"events"`   // read
	Sessions int  `json:"sessions"` // worked out again
	Groups   int  `json:"groups"`   // patterns, digests and the like worked out again
	Docs     int  `json:"docs"`     // written
	Deleted  int  `json:"deleted"`
	More     bool `json:"more"` // the budget ended first: the next run goes on
	// Refolded are log files that are not the ones that were read before, and
	// whose events were taken in again.
	Refolded []string `json:"refolded,omitempty"`
	// Skipped are lines that cannot be used, at most 20.
	Skipped []string `json:"skipped,omitempty"`
	Bad     int      `json:"bad"` // lines that cannot be used
}

func (r *Report) skip(err error) {
	r.Bad++
	if len(r.Skipped) < 20 {
		r.Skipped = append(r.Skipped, err.Error())
	}
}

// DefaultBudget is how long organising may take in a hook.
const DefaultBudget = 200 * time.Millisecond

// Run takes in what is new in the logs and works out again what depends on it,
// until there is nothing left to do or the budget is over (0 = no limit; at
// least one event or session is dealt with). Where it stops, the next run goes
// on.
func (o *Organizer) Run(ctx context.Context, budget time.Duration) (Report, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	var total Report
	if o.behind() {
		return total, nil
	}
	start := o.o.Now()
	over := func() bool { return budget > 0 && o.o.Now().Sub(start) >= budget }
	for {
		var r Report
		err := o.store.Update(ctx, func(tx Tx) error {
			r = Report{} // called again on an empty index: what the first call counted is gone
			f := &folder{o: o, tx: tx, over: over, report: &r}
			return f.step(ctx)
		})
		if err != nil {
			o.cache = cache{} // it holds what was not kept
			total.More = true
			if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
				return total, err
			}
			return total, fmt.Errorf("organise: %w", err)
		}
		total.add(r)
		if !r.More || over() {
			return total, nil
		}
		if err := ctx.Err(); err != nil {
			return total, err
		}
	}
}

func (r *Report) add(s Report) {
	r.Events += s.Events
	r.Sessions += s.Sessions
	r.Groups += s.Groups
	r.Docs += s.Docs
	r.Deleted += s.Deleted
	r.Bad += s.Bad
	r.More = s.More
	r.Refolded = append(r.Refolded, s.Refolded...)
	for _, l := range s.Skipped {
		if len(r.Skipped) < 20 {
			r.Skipped = append(r.Skipped, l)
		}
	}
}

// beingWiped stands for the version of an index that what was worked out is being
// taken out of. Where that stops, the next run of whichever version goes on.
const beingWiped = "none"

// wipe takes out what organising has made, at most so many documents and values
// (and at least one), until over says that time is up; left says that there is more.
// A large index takes longer than a client waits, so nothing may need it whole.
func wipe(tx Tx, most int, over func() bool) (left bool, err error) {
	n := 0
	full := func() bool { return n >= most || n > 0 && over() }
	for _, b := range buckets() {
		for {
			var keys []string
			var ids [][]string
			err := tx.EachKV(b, "", func(key string, value []byte) bool {
				if b == bucketMeta && key == "version" {
					return true // goes last, by being replaced
				}
				var docs []string
				if b == bucketMade {
					var m made
					if m.decode(value) == nil {
						docs = slices.Sorted(maps.Keys(m.Docs))
					}
				}
				keys, ids = append(keys, key), append(ids, docs)
				return len(keys) < 64
			})
			if err != nil {
				return true, err
			}
			for i, k := range keys {
				if full() {
					return true, nil
				}
				for _, id := range ids[i] {
					n++
					if err := tx.Delete(id); err != nil {
						return true, err
					}
				}
				n++
				if err := tx.Drop(b, k); err != nil {
					return true, err
				}
			}
			if len(keys) == 0 {
				break
			}
		}
	}
	return false, nil
}

// sourceKey names a log file in the index.
func sourceKey(project, file string) string { return sign.Hash("log", project) + "/" + file }

// sessionKey names a session in the index. Events outside any session are put
// together by project and day, so that they can be treated alike.
func sessionKey(e *event.Event) (key, name string) {
	if e.Session != "" {
		return sign.Hash("session", e.Client, e.Session), e.Session
	}
	return sign.Hash("day", e.Project, fmt.Sprint(day(e.TS))), ""
}
