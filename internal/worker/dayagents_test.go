package worker_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"reprise/internal/agent"
	"reprise/internal/durable"
	"reprise/internal/loop"
	"reprise/internal/loop/core"
	"reprise/internal/queue"
	rec "reprise/internal/run"
)

// limited are the hours in which the service of the agents refuses them, and says until
// when.
var limited = [][2]float64{{2, 2.7}, {7.5, 8.25}, {21.8, 22.1}}

// manners are what the agents of an item do, by their share in a thousand; done says
// whether the item can be.
var manners = []struct {
	share int
	name  string
	done  bool
}{
	{560, "well", true}, {90, "slowly", true}, {60, "crash first", true}, {30, "hang first", true}, {15, "too long first", true}, {30, "overloaded first", true},
	{40, "asks", true}, {25, "checks fail", true}, {25, "context full first", true}, {15, "no place first", true}, {15, "does not start first", true}, {10, "logged out first", true},
	{25, "fails", false}, {20, "changes nothing", false}, {20, "refuses", false}, {20, "crashes", false},
}

// agents are runs that do by the day's clock what the manner of their item is, and the
// places that they work in.
type agents struct {
	d       *day
	manager *rec.Manager
	paused  atomic.Bool // a person has stopped what is new, a minute ago

	mu      sync.Mutex
	manner  map[string]int           // by item
	takes   map[string]time.Duration // an item's work
	runs    map[string]*life
	keys    map[string]string
	tries   map[string]int // runs of an item
	places  map[string]int // preparations of an item
	paid    map[string]float64
	hold    time.Time // until when the service wants to be left alone, by the machine's clock
	held    time.Time // since when somebody has been told that
	all     sync.WaitGroup
	most    int
	spent   float64
	before  float64       // spent by loops that have ended
	money   float64       // that runs which go on may spend
	worked  time.Duration // by runs, together
	limits  int
	unfound []string
}

// life is a run.
type life struct {
	item  string
	rec   rec.Record
	usd   float64
	began time.Time // by the machine's clock
	over  chan struct{}
	ended chan ending // somebody ends it
}

type ending struct {
	status rec.Status
	why    string
}

func newAgents(d *day) *agents {
	return &agents{d: d, manager: rec.New(rec.Options{Dir: filepath.Join(d.dir, "runs"), Now: d.now}), manner: map[string]int{}, takes: map[string]time.Duration{},
		runs: map[string]*life{}, keys: map[string]string{}, tries: map[string]int{}, places: map[string]int{}, paid: map[string]float64{}}
}

// plan chooses what the agents of an item will do, and gives the item a title.
func (a *agents) plan(item string, r *rand.Rand) string {
	at, kind := r.IntN(1000), 0
	for at >= manners[kind].share {
		at -= manners[kind].share
		kind++
	}
	takes := time.Minute + time.Duration(r.ExpFloat64()*float64(5*time.Minute))
	if manners[kind].name == "slowly" {
		takes *= 4
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.manner[item], a.takes[item] = kind, min(takes, 50*time.Minute)
	return fmt.Sprintf("%s: %s", item, manners[kind].name)
}

// well has the agents of an item do it.
func (a *agents) well(item string) (title string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.manner[item], a.takes[item] = 0, 3*time.Minute
	return item + ": " + manners[0].name
}

func (a *agents) canBeDone(item string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return manners[a.manner[item]].done
}

func (a *agents) how(item string) string { return manners[a.manner[item]].name }

func (a *agents) bad(format string, args ...any) { a.d.t.Errorf(format, args...) }

// Start is one more run, if nothing forbids it.
func (a *agents) Start(_ context.Context, req rec.Request) (rec.Record, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	item := strings.Split(req.IdempotencyKey, ":")[1]
	if _, twice := a.keys[req.IdempotencyKey]; twice {
		a.bad("%s is started twice", req.IdempotencyKey)
	}
	a.forbidden(item, req)
	a.tries[item]++
	try := a.tries[item]
	if a.how(item) == "does not start first" && try == 1 {
		return rec.Record{}, errors.New("failed to start agent: no such file")
	}
	id := fmt.Sprintf("run-%s", idOf(len(a.keys)))
	now := a.d.now().UTC()
	r := rec.Record{V: 1, ID: id, Status: rec.Running, Client: "claude", SessionID: cmp.Or(req.Work.Resume, req.Work.Session), StartedAt: now, StatusUpdatedAt: now, Origin: "loop", Key: req.IdempotencyKey,
		Heartbeat: rec.Heartbeat{MessageCount: 1, OutputBytes: 10}, Logs: rec.Logs{Stdout: filepath.Join(a.d.dir, "runs", id, "stdout.jsonl")}}
	data, err := json.Marshal(r)
	if err == nil {
		err = durable.MkdirAll(filepath.Join(a.d.dir, "runs", id), 0o700)
	}
	if err == nil {
		err = durable.WriteFileHot(filepath.Join(a.d.dir, "runs", id, "run.json"), data, 0o600)
	}
	if err == nil {
		r, err = a.manager.Get(id)
	}
	if err != nil {
		a.bad("%v", err)
		return r, err
	}
	l := &life{item: item, rec: r, usd: req.Work.MaxBudgetUSD, began: time.Now(), over: make(chan struct{}), ended: make(chan ending, 4)}
	a.runs[id], a.keys[req.IdempotencyKey] = l, id
	a.money += l.usd
	asks := ""
	for _, kv := range req.Work.Vars {
		if v, ok := strings.CutPrefix(kv, "INTERRUPT_FILE="); ok {
			asks = v
		}
	}
	a.all.Go(func() { a.live(l, req, asks, try) })
	return r, nil
}

// anew says that a loop begins that has not spent anything. A pause was of the loop before,
// and ended with it; what the service wants, it wants of all loops.
func (a *agents) anew() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.before = a.spent
	a.paused.Store(false)
}

// idOf is the ten letters of a run's id.
func idOf(n int) string {
	b := []byte("aaaaaaaaaa")
	for i := len(b) - 1; n > 0; i-- {
		b[i] = 'a' + byte(n%26)
		n /= 26
	}
	return string(b)
}

// forbidden looks at what must not be when a run begins.
func (a *agents) forbidden(item string, req rec.Request) {
	d, live := a.d, 1
	for id, l := range a.runs {
		if l.rec.Status.Settled() {
			continue
		}
		if live++; l.item == item {
			a.bad("%s has a second run beside %s", item, id)
		}
	}
	if a.most = max(a.most, live); live > dayWorkers {
		a.bad("%d runs at once, and there are %d workers", live, dayWorkers)
	}
	if a.paused.Load() {
		a.bad("%s is begun although a person has paused the loop", item)
	}
	now := time.Now()
	if now.Before(a.hold) && now.Sub(a.held) > 10*time.Second {
		a.bad("%s is begun %s before the service lets anybody in", item, a.hold.Sub(now))
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if l := d.loop; l != nil {
		// The loop holds no lock of ours while it asks for its own state.
		if s := l.State(); a.spent-a.before+a.money+req.Work.MaxBudgetUSD > s.Limits.MaxUSD+0.001 {
			a.bad("%s is begun with %.2f USD beside %.2f that are spent and %.2f that may be: more than %.2f (the loop counts %.2f spent)", item, req.Work.MaxBudgetUSD, a.spent-a.before, a.money, s.Limits.MaxUSD, s.CostUSD)
		}
	}
	if answer, ok := d.parked[item]; ok {
		if !strings.Contains(req.Task+req.SystemPrompt, answer) {
			a.unfound = append(a.unfound, item)
		}
		delete(d.parked, item)
	}
	if at, first := d.added[item]; first && a.tries[item] == 0 {
		d.notes["seconds from arrival to start, at most"] = max(d.notes["seconds from arrival to start, at most"], int(now.Sub(at)/time.Second))
		if now.Sub(at) < 3*time.Second {
			d.notes["started within 3 s"]++
		}
	}
}

// live is what a run does until it ends.
func (a *agents) live(l *life, req rec.Request, asks string, try int) {
	how, left := manners[a.manner[l.item]].name, a.takes[l.item]
	first := try == 1
	for begin := time.Now(); ; {
		if how == "too long first" && first {
			left = req.Timeout + time.Second
		}
		step := min(left, 40*time.Second)
		select {
		case e := <-l.ended:
			a.end(l, e.status, e.why, nil)
			return
		case <-time.After(step):
		}
		a.mu.Lock()
		if how != "hang first" || !first {
			l.rec.Heartbeat.OutputBytes += 100
			l.rec.Heartbeat.ToolCalls++
		}
		a.mu.Unlock()
		if left -= step; time.Since(begin) >= req.Timeout {
			a.end(l, rec.TimedOut, "exceeded timeout", nil)
			return
		}
		if how == "asks" && first && left <= 0 {
			_ = os.WriteFile(asks, []byte("which colour?"), 0o600)
			left = time.Hour
		}
		if how == "hang first" && first {
			left = time.Hour
		}
		if left <= 0 {
			a.finish(l, how, try)
			return
		}
	}
}

// finish is how a run ends by itself.
func (a *agents) finish(l *life, how string, try int) {
	res := &agent.Result{OK: true, NumTurns: 3, Text: "done", CostUSD: min(l.usd, 0.05+a.takes[l.item].Minutes()/40), Usage: agent.Usage{InputTokens: 1000}}
	status, first := rec.Completed, try == 1
	failed := func(r agent.Result) {
		r.CostUSD, r.Usage = res.CostUSD/2, res.Usage
		res, status = &r, rec.Failed
	}
	if until, ok := a.refused(); ok {
		failed(agent.Result{APIStatus: 429, Reason: fmt.Sprintf("status 429: retry after %d seconds", int(until/time.Second)+1)})
	} else {
		switch {
		case how == "crash first" && first, how == "crashes":
			res, status = nil, rec.Failed
		case how == "overloaded first" && first:
			failed(agent.Result{APIStatus: 529, Reason: "the model's API failed with status 529: overloaded"})
		case how == "context full first" && first:
			failed(agent.Result{APIStatus: 400, Text: "prompt is too long: 210000 tokens > 200000 maximum", NumTurns: 9})
		case how == "logged out first" && first:
			failed(agent.Result{APIStatus: 401, Reason: "the model's API failed with status 401"})
		case how == "fails":
			failed(agent.Result{NumTurns: 2, IsError: true, Subtype: "error_during_execution", Reason: "the agent ended with an error"})
		case how == "refuses":
			res.StopReason = "refusal"
		}
	}
	a.end(l, status, "", res)
}

// refused reports whether the service is closed at the moment, and for how long.
func (a *agents) refused() (time.Duration, bool) {
	for _, h := range limited {
		from, to := a.d.begin.Add(time.Duration(h[0]*float64(time.Hour))), a.d.begin.Add(time.Duration(h[1]*float64(time.Hour)))
		if now := time.Now(); now.After(from) && now.Before(to) {
			a.mu.Lock()
			defer a.mu.Unlock()
			if !a.hold.Equal(to) {
				a.hold, a.held = to, now
			}
			a.limits++
			return to.Sub(now), true
		}
	}
	return 0, false
}

func (a *agents) end(l *life, s rec.Status, why string, res *agent.Result) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.d.now().UTC()
	if res != nil { // a client counts the whole session
		a.spent += res.CostUSD
		a.paid[l.rec.SessionID] += res.CostUSD
		res.CostUSD = a.paid[l.rec.SessionID]
	}
	a.money -= l.usd
	a.worked += time.Since(l.began)
	l.rec.Status, l.rec.StatusReason, l.rec.EndedAt, l.rec.StatusUpdatedAt, l.rec.Result = s, why, &now, now, res
	close(l.over)
}

func (a *agents) Get(id string) (rec.Record, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if l := a.runs[id]; l != nil {
		return l.rec, nil
	}
	return rec.Record{}, rec.ErrNotFound
}

func (a *agents) ByKey(key string) (rec.Record, error) {
	a.mu.Lock()
	id := a.keys[key]
	a.mu.Unlock()
	return a.Get(id)
}

func (a *agents) Settle(_ context.Context, id string) (rec.Record, error) { return a.Get(id) }

func (a *agents) Wait(ctx context.Context, id string) (rec.Record, error) {
	a.mu.Lock()
	l := a.runs[id]
	a.mu.Unlock()
	select {
	case <-l.over:
	case <-ctx.Done():
		return rec.Record{}, ctx.Err()
	}
	return a.Get(id)
}

func (a *agents) Cancel(_ context.Context, id, why string) (rec.Record, error) {
	return a.stop(id, rec.Killed, why)
}

func (a *agents) Interrupt(_ context.Context, id, why string) (rec.Record, error) {
	return a.stop(id, rec.Interrupted, why)
}

// stop ends a run, which takes a while.
func (a *agents) stop(id string, s rec.Status, why string) (rec.Record, error) {
	a.mu.Lock()
	l := a.runs[id]
	a.mu.Unlock()
	time.Sleep(3 * time.Second)
	select {
	case l.ended <- ending{s, why}:
	case <-l.over:
	}
	<-l.over
	return a.Get(id)
}

// wait waits for runs that go on after the day.
func (a *agents) wait() {
	a.mu.Lock()
	for _, l := range a.runs {
		if !l.rec.Status.Settled() {
			l.ended <- ending{rec.Killed, "the test is over"}
		}
	}
	a.mu.Unlock()
	a.all.Wait()
}

// The places of the items.

func (a *agents) Prepare(_ context.Context, it queue.Item, _ int64) (loop.Place, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.places[it.ID]++; a.how(it.ID) == "no place first" && a.places[it.ID] == 1 {
		return loop.Place{}, errors.New("git: the worktree cannot be made")
	}
	dir := filepath.Join(a.d.dir, "places", it.ID)
	return loop.Place{Name: "loop-" + it.ID, Dir: dir, Top: dir, Branch: "loop-" + it.ID}, nil
}

func (a *agents) Began(context.Context, loop.Place, string) error { return nil }

func (a *agents) Look(_ context.Context, p loop.Place, _ bool) (loop.Work, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return loop.Work{Changed: a.how(filepath.Base(p.Dir)) != "changes nothing", Files: []string{"a.go"}}, nil
}

func (a *agents) Finish(context.Context, loop.Place, queue.Item, core.Fate) (string, bool, error) {
	return "", false, nil
}

func (a *agents) check(_ context.Context, p loop.Place, _ rec.Record) (loop.Checked, error) {
	time.Sleep(20 * time.Second)
	a.mu.Lock()
	defer a.mu.Unlock()
	item := filepath.Base(p.Dir)
	if a.how(item) == "checks fail" && a.tries[item] <= 2 {
		return loop.Checked{Gate: core.GateFailed, Text: fmt.Sprintf("TestIt fails, try %d", a.tries[item])}, nil
	}
	return loop.Checked{Gate: core.GatePassed}, nil
}

// judge looks at the runs at the end.
func (a *agents) judge() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for id, l := range a.runs {
		if !l.rec.Status.Settled() {
			a.bad("%s has not ended", id)
		}
	}
	if len(a.unfound) > 0 {
		a.bad("the next session of %v was not told the answer", a.unfound)
	}
	if a.most < dayWorkers/2 {
		a.bad("no more than %d runs were there at once: this day shows nothing", a.most)
	}
	a.d.note("runs", len(a.runs))
	a.d.note("runs at once, at most", a.most)
	a.d.note("runs refused by the service", a.limits)
	a.d.note("USD", int(a.spent))
	a.d.note("hours of runs", int(a.worked.Hours()))
}
