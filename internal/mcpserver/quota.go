package mcpserver

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"reprise/internal/config"
	"reprise/internal/run"
)

const (
	// quotaUsers is how many are counted before those that have long been quiet
	// are let go.
	quotaUsers = 1000
	quotaQuiet = time.Hour

	quotaDay = 24 * time.Hour
)

// quotas count the requests of each token.
type quotas struct {
	limits config.HTTPLimits
	now    func() time.Time

	mu    sync.Mutex
	users map[string]*usage
}

type usage struct {
	rate *rate.Limiter // nil: no limit
	busy int           // requests under way
	last time.Time
}

func newQuotas(l config.HTTPLimits, now func() time.Time) *quotas {
	return &quotas{limits: l, now: now, users: map[string]*usage{}}
}

// overQuota is a request that was refused for now.
type overQuota struct {
	wait time.Duration
	text string
}

// enter counts a request of user. The caller calls leave at its end. A stream
// that only waits for what the server has to say is no request under way.
func (q *quotas) enter(user string, stream bool) (leave func(), over *overQuota) {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := q.now()
	u := q.users[user]
	if u == nil {
		q.forget(now)
		u = &usage{}
		if n := q.limits.RequestsPerMinute; n > 0 {
			// A minute's worth may come at once: clients begin with a burst.
			u.rate = rate.NewLimiter(rate.Limit(float64(n)/60), n)
		}
		q.users[user] = u
	}
	u.last = now
	if n := q.limits.Concurrent; n > 0 && u.busy >= n && !stream {
		return nil, &overQuota{time.Second, fmt.Sprintf("%d requests of %s are under way, which is the most (http.limits.concurrent): wait for one to end", n, user)}
	}
	if over := q.rated(user, u, now, 1); over != nil {
		return nil, over
	}
	if stream {
		return func() {}, nil
	}
	u.busy++
	return func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		u.busy--
	}, nil
}

// more counts further messages of a request that is under way: those of a batch.
func (q *quotas) more(user string, n int) *overQuota {
	q.mu.Lock()
	defer q.mu.Unlock()
	if u := q.users[user]; u != nil {
		return q.rated(user, u, q.now(), n)
	}
	return nil
}

// rated counts n requests against those of a minute. The caller holds the lock.
func (q *quotas) rated(user string, u *usage, now time.Time, n int) *overQuota {
	if u.rate == nil {
		return nil
	}
	r := u.rate.ReserveN(now, n)
	wait := r.DelayFrom(now)
	switch {
	case !r.OK(): // more than a minute has
		wait = time.Minute
	case wait == 0:
		return nil
	default:
		r.CancelAt(now)
	}
	return &overQuota{wait, fmt.Sprintf("%s has made its %d requests a minute (http.limits.requests_per_minute): the next may come in %s", user, q.limits.RequestsPerMinute, upToSecond(wait))}
}

// forget lets those go who have been quiet so long that nothing is counted
// against them any more. The caller holds the lock.
func (q *quotas) forget(now time.Time) {
	if len(q.users) < quotaUsers {
		return
	}
	for name, u := range q.users {
		if u.busy == 0 && now.Sub(u.last) > quotaQuiet {
			delete(q.users, name)
		}
	}
}

func upToSecond(d time.Duration) time.Duration {
	return time.Duration(math.Ceil(d.Seconds())) * time.Second
}

// answerOver refuses with 429, in the form of the protocol, so that clients
// show the reason to whoever waits.
func answerOver(w http.ResponseWriter, over *overQuota) {
	w.Header().Set("Retry-After", strconv.Itoa(max(1, int(upToSecond(over.wait).Seconds()))))
	answerWith(w, http.StatusTooManyRequests, refuse(nil, codeBusy, "%s", over.text))
}

// spawn starts a run within the limits of whoever asks for it. What was started
// is read from the records, so that a new server counts on.
func (s *Server) spawn(ctx context.Context, req run.Request) (*job, run.Record, error) {
	l := s.deps.Settings.HTTP.Limits
	if req.Principal == "" || l.RunsAtOnce == 0 && l.RunsPerDay == 0 && l.USDPerDay == 0 {
		return s.jobs.start(ctx, req)
	}
	// One at a time, so that two cannot both be the last one allowed.
	s.spawning.Lock()
	defer s.spawning.Unlock()
	if err := s.withinLimits(ctx, l, req); err != nil {
		return nil, run.Record{}, err
	}
	return s.jobs.start(ctx, req)
}

func (s *Server) withinLimits(ctx context.Context, l config.HTTPLimits, req run.Request) error {
	records, err := s.deps.Runs.List(ctx)
	if err != nil {
		// What cannot be counted is not allowed: the limits are there for somebody
		// who may be anybody.
		return fmt.Errorf("spawn_agent: the runs of %s cannot be counted, so no more is started: %w", req.Principal, err)
	}
	now := s.deps.Now()
	active, today, spent := 0, 0, 0.0
	free := now // when the oldest of today's counts no more
	for _, rec := range records {
		if rec.Principal != req.Principal {
			continue
		}
		if req.IdempotencyKey != "" && rec.Key == req.IdempotencyKey {
			return nil // starts nothing
		}
		if !rec.Status.Settled() {
			active++
		}
		if now.Sub(rec.StartedAt) >= quotaDay {
			continue
		}
		today++
		if until := rec.StartedAt.Add(quotaDay); today == 1 || until.Before(free) {
			free = until
		}
		if l.USDPerDay > 0 {
			full, err := s.deps.Runs.Get(rec.ID)
			if err != nil {
				return fmt.Errorf("spawn_agent: what %s has spent cannot be counted, so no more is started: %w", req.Principal, err)
			}
			usd, _ := full.Spent()
			spent += usd
		}
	}
	var why string
	switch at := free.UTC().Format(time.RFC3339); {
	case l.RunsAtOnce > 0 && active >= l.RunsAtOnce:
		why = fmt.Sprintf("has %s under way, which is the most (http.limits.runs_at_once): wait for one with check_agent, or stop one with cancel_agent", someRuns(active))
	case l.RunsPerDay > 0 && today >= l.RunsPerDay:
		why = fmt.Sprintf("has started %s in 24 hours, which is the most (http.limits.runs_per_day): the next may start at %s", someRuns(today), at)
	case l.USDPerDay > 0 && spent >= l.USDPerDay:
		why = fmt.Sprintf("has spent %.2f US dollars on runs in 24 hours, of %.2f (http.limits.usd_per_day): what the oldest cost is free again at %s", spent, l.USDPerDay, at)
	default:
		return nil
	}
	return fmt.Errorf("spawn_agent: %s %s", strings.TrimPrefix(req.Principal, staticUser), why)
}

func someRuns(n int) string {
	if n == 1 {
		return "1 run"
	}
	return fmt.Sprintf("%d runs", n)
}
