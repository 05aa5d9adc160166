// Package elsewhere is what the workers of a fleet do for a project, as a person at any
// machine of it sees and steers it: their runs, their loops, what these ask, and what is
// asked of them. What the terminal and the dashboard show of other machines, both have
// from here.
//
// It reads what workers have told the servers and leaves requests there; it writes no file
// and takes no lock.
package elsewhere

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"reprise/internal/agent"
	"reprise/internal/fleet"
	"reprise/internal/loop"
	"reprise/internal/loop/core"
	"reprise/internal/loop/said"
	"reprise/internal/loop/tell"
	"reprise/internal/queue"
	"reprise/internal/relay"
	"reprise/internal/run"
)

// Fleet is what workers tell of one project. All of its fields but Project are required.
type Fleet struct {
	Conn *fleet.Conn
	// Project is the one around the working directory, "" outside any: then no loop, and
	// of runs those of all projects.
	Project string
	// LoopDir is the directory of the project's loop on this machine.
	LoopDir string
	// Runs are the runs of this machine, which are not told of as others'.
	Runs interface {
		Get(id string) (run.Record, error)
	}
	// Queue is that of a project, asked for when it is needed.
	Queue func(project string) (queue.Queue, error)
	Now   func() time.Time
}

// Run is a run on another machine of the fleet.
type Run struct {
	run.Record
	Worker string // "" where that was not told
	Item   string
	Quiet  bool // the worker is

	asked time.Time // what the servers' clock said when it was heard that it goes on; zero where it has ended
}

// Where is the worker, "-" where it is not known.
func (r *Run) Where() string {
	switch {
	case r.Quiet:
		return r.Worker + " (quiet)"
	case r.Worker != "":
		return r.Worker
	}
	return "-"
}

// Workers are those of the fleet, by name.
func (f *Fleet) Workers(ctx context.Context) ([]relay.Worker, error) {
	return relay.Workers(ctx, f.Conn)
}

// Changes are numbers of the servers: one that grows with whatever workers say or are asked,
// and one with each change of the project's queue; 0 for what is not there yet.
func (f *Fleet) Changes(ctx context.Context) (workers, items uint64, err error) {
	if workers, err = f.last(ctx, f.Conn.Workers()); err == nil {
		items, err = f.last(ctx, f.Conn.Names(f.Project).Queue)
	}
	return workers, items, err
}

func (f *Fleet) last(ctx context.Context, bucket string) (uint64, error) {
	s, err := f.Conn.JS.Stream(ctx, "KV_"+bucket)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, f.Conn.Explain("look for changes", err)
	}
	return s.CachedInfo().State.LastSeq, nil
}

// Relay is what is told of the project.
func (f *Fleet) Relay() *relay.Relay { return relay.Open(f.Conn, f.Project) }

func newer(a, b Run) int { return b.StartedAt.Compare(a.StartedAt) }

// here reports whether this machine has the run's record, readable or not.
func (f *Fleet) here(id string) bool {
	_, err := f.Runs.Get(id)
	return !errors.Is(err, run.ErrNotFound)
}

// RunsOf are the runs of other machines that go on, are lost or have ended, the newest first by
// the servers' clock: of one project, or with "" of all that workers work for.
func (f *Fleet) RunsOf(ctx context.Context, workers []relay.Worker, project string) ([]Run, error) {
	going, lost := f.Going(ctx, workers, project)
	out := append(going, lost...)
	projects := []string{project}
	if project == "" {
		projects = nil
		for _, w := range workers {
			projects = append(projects, w.Projects...)
		}
		if f.Project != "" {
			projects = append(projects, f.Project)
		}
		slices.Sort(projects)
		projects = slices.Compact(projects)
	}
	for _, p := range projects {
		ended, err := relay.Open(f.Conn, p).EndedRuns(ctx)
		if err != nil {
			return nil, err
		}
		for _, e := range ended {
			r, ok := Ended(e)
			if !ok || f.here(e.Run) {
				continue
			}
			out = slices.DeleteFunc(out, func(going Run) bool { return going.ID == r.ID })
			out = append(out, r)
		}
	}
	slices.SortStableFunc(out, newer)
	return out, nil
}

// Ended is a run that has ended by what its worker has told of it; false where that is no
// record.
func Ended(e relay.EndedRun) (Run, bool) {
	var d endedRun
	if json.Unmarshal(e.Doc, &d) != nil || d.ID != e.Run || !d.Status.Valid() {
		return Run{}, false
	}
	shift(&d.Record, relay.Ahead(d.Told, e.At))
	return Run{Record: d.Record, Worker: d.Worker, Item: loop.ItemOf(d.Record)}, true
}

// endedRun is what a worker tells of a run that has ended.
type endedRun struct {
	run.Record
	Worker string    `json:"worker,omitempty"`
	Spent  *spent    `json:"spent,omitempty"` // nil where that is not known, as of older programs
	Told   time.Time `json:"told,omitzero"`   // what the worker's clock said then
}

// EndedDoc is what a worker tells of a run that has ended, for [relay.Relay.Mirror].
func EndedDoc(r run.Record, worker string, now time.Time) []byte {
	d := endedRun{Record: r, Worker: worker, Told: now.UTC()}
	if r.Result != nil {
		usd, tokens := r.Spent()
		d.Spent = &spent{usd, tokens, r.Result.NumTurns}
	}
	doc, err := json.Marshal(d)
	if err != nil {
		return []byte("{}")
	}
	return doc
}

// Run is one run of another machine; [relay.ErrNotFound] where nobody there knows it.
func (f *Fleet) Run(ctx context.Context, id string) (Run, error) {
	if !run.ValidID(id) {
		return Run{}, relay.ErrNotFound
	}
	ended, err := f.Relay().EndedRun(ctx, id)
	if err == nil {
		if r, ok := Ended(ended); ok {
			return r, nil
		}
		return Run{}, relay.ErrNotFound
	}
	if !errors.Is(err, relay.ErrNotFound) {
		return Run{}, err
	}
	workers, err := f.Workers(ctx)
	if err != nil {
		return Run{}, err
	}
	going, lost := f.Going(ctx, workers, f.Project)
	list := append(going, lost...)
	i := slices.IndexFunc(list, func(r Run) bool { return r.ID == id })
	if i < 0 {
		return Run{}, relay.ErrNotFound
	}
	return list[i], nil
}

// Result is what a run that has ended came to; nil where its worker has not sent it.
func (f *Fleet) Result(ctx context.Context, id string) *agent.Result {
	var b bytes.Buffer
	var res agent.Result
	if err := f.Relay().GetFile(ctx, id, "result.json", &b); err != nil || json.Unmarshal(b.Bytes(), &res) != nil {
		return nil
	}
	return &res
}

// cancelKind is what a worker itself is asked for; other requests are for its loops.
const cancelKind = "cancel"

// CancelRequest asks a worker to stop a run.
type CancelRequest struct {
	V    int    `json:"v"` // 1
	Kind string `json:"kind"`
	Run  string `json:"run"`
	Why  string `json:"why"`
}

// CancelAsked is a request as one to stop a run; false where it is another.
func CancelAsked(data []byte) (c CancelRequest, ok bool) {
	return c, json.Unmarshal(data, &c) == nil && c.Kind == cancelKind
}

// Cancel asks the worker of a run to stop it.
func (f *Fleet) Cancel(ctx context.Context, r Run, why string) error {
	data, err := json.Marshal(CancelRequest{V: 1, Kind: cancelKind, Run: r.ID, Why: why})
	if err != nil {
		return err
	}
	return f.Relay().Ask(ctx, r.Worker, "cancel-"+r.ID, data)
}

// Loop is how the loop of a worker stands.
type Loop struct {
	Worker    string
	State     core.State
	Questions []loop.Question

	Away   bool     // told by Resume: the worker has ended, or is quiet
	Silent bool     // told by Resume: it lives by what was heard last, and has not taken what it was asked
	Back   []string // items that Resume has put back, because of that
}

// ErrNewer says that a worker tells of its loop as another version of reprise does.
var ErrNewer = errors.New("what it tells of its loop is of another version of reprise")

// Loops are how the loops of the project's workers stand, whether or not these have ended,
// by worker. note is told of one whose words cannot be read.
func (f *Fleet) Loops(ctx context.Context, note func(worker string, err error)) ([]Loop, error) {
	states, err := f.Relay().States(ctx)
	if err != nil || len(states) == 0 {
		return nil, err
	}
	q, err := f.Queue(f.Project)
	if err != nil {
		return nil, err
	}
	out := make([]Loop, 0, len(states))
	for name, data := range states {
		l := Loop{Worker: name}
		if err := json.Unmarshal(data, &l.State); err != nil || l.State.V > core.Version {
			note(name, ErrNewer)
			continue
		}
		// No answer lies in a directory here: what was said to it is on its machine.
		if l.Questions, err = loop.Questions(ctx, filepath.Join(f.LoopDir, "none"), &l.State, q); err != nil {
			return nil, err
		}
		out = append(out, l)
	}
	slices.SortFunc(out, func(a, b Loop) int { return strings.Compare(a.Worker, b.Worker) })
	return out, nil
}

// Others are the loops without that of dir, of which its own state says more; dir is ""
// where there is none.
func Others(dir string, loops []Loop) ([]Loop, error) {
	if dir == "" {
		return loops, nil
	}
	own, err := loop.ReadState(dir)
	if err != nil || own == nil || own.Loop == "" {
		return loops, err
	}
	return slices.DeleteFunc(slices.Clone(loops), func(l Loop) bool { return l.State.Loop == own.Loop }), nil
}

// PutBack is [loop.PutBack] on a fleet: what an agent of another machine has asked is not
// passed over in silence either, whether or not its loop tells of it. f is nil without a fleet,
// loops are those of [Fleet.Loops], and dir is that of the loop here.
func PutBack(ctx context.Context, f *Fleet, dir string, loops []Loop, q queue.Queue, id, why string) (queue.Item, error) {
	it, err := q.Get(ctx, id) // which takes a key, too
	if err != nil {
		return it, err
	}
	if loops, err = Others(dir, loops); err != nil {
		return it, err
	}
	for _, l := range loops {
		for _, one := range l.Questions {
			if one.Item == it.ID && one.Open() && one.Asked() && it.State == queue.Blocked {
				return it, &tell.Unsaid{Kind: loop.ErrUnanswered, What: "it stays set aside", Way: tell.WayItem, Open: []tell.OpenQuestion{one.Told(l.Worker, true)}}
			}
		}
	}
	if f == nil {
		return loop.PutBack(ctx, dir, q, id, why)
	}
	var own *core.State
	if dir != "" {
		if own, err = loop.ReadState(dir); err != nil {
			return it, err
		}
	}
	if one, ok := silent(&it, own, loops); ok {
		return it, unanswered([]Asked{one}, "it stays set aside", tell.WayItem)
	}
	return loop.PutBack(ctx, dir, q, id, why)
}

// Ask leaves requests for the loop of a worker.
func (f *Fleet) Ask(ctx context.Context, worker string, list ...loop.Request) error {
	_, err := f.ask(ctx, worker, list)
	return err
}

// ask is [Fleet.Ask], and the name of the last request.
func (f *Fleet) ask(ctx context.Context, worker string, list []loop.Request) (last string, err error) {
	for _, req := range list {
		req.V, req.At = 1, f.Now()
		data, err := json.Marshal(req)
		if err != nil {
			return "", err
		}
		last = loop.RequestName(req)
		if err := f.Relay().Ask(ctx, worker, last, data); err != nil {
			return "", err
		}
	}
	return last, nil
}

// takes is how long a worker that lives has for taking what it is asked, of which it is told at
// once.
const takes = 6 * time.Second

// Resume leaves what a person says for the workers whose questions it answers, of the loops
// given; to is who was asked, none where no worker has such a question. The errors are those
// of [loop.Requests]. What a worker has set aside that is away, or does not take the answer, is
// put back, too, with the answer: that machine may never come again, and any other can go on
// with the item.
func (f *Fleet) Resume(ctx context.Context, loops []Loop, say loop.Said) (to []Loop, err error) {
	for _, l := range loops {
		mine := len(say.Items) == 0 && (l.State.Interrupt != nil || l.State.Phase == core.Paused)
		for _, q := range l.Questions {
			mine = mine || len(say.Items) == 0 && q.Open() || slices.Contains(say.Items, q.Item)
		}
		if mine {
			to = append(to, l)
		}
	}
	if say.Answer != "" && len(say.Items) == 0 && len(to) > 1 {
		which := &tell.Unsaid{Kind: loop.ErrWhich, Way: tell.WayWhich}
		for _, l := range to {
			for _, q := range l.Questions {
				which.Open = append(which.Open, q.Told(l.Worker, false))
			}
		}
		return nil, which
	}
	workers, err := f.Workers(ctx)
	if err != nil {
		return nil, err
	}
	for i := range to {
		l := &to[i]
		last := ""
		requests, err := loop.Requests(&l.State, l.Questions, say)
		if err == nil {
			last, err = f.ask(ctx, l.Worker, requests)
		}
		l.Away = !slices.ContainsFunc(workers, func(w relay.Worker) bool { return w.Name == l.Worker && !w.Quiet })
		if err == nil && !l.Away && last != "" { // one that was killed is quiet only after a while
			var taken bool
			taken, err = f.Relay().Taken(ctx, l.Worker, last, takes)
			l.Silent = !taken
		}
		if err == nil && (l.Away || l.Silent) {
			l.Back, err = f.putBack(ctx, l, say)
		}
		if err != nil {
			return to[:i], err
		}
	}
	return to, nil
}

// putBack puts back what a person speaks of of what the loop of a worker has set aside, as
// that would do it.
func (f *Fleet) putBack(ctx context.Context, l *Loop, say loop.Said) (back []string, err error) {
	q, err := f.Queue(f.Project)
	if err != nil {
		return nil, err
	}
	why := said.GoesOnNote
	if say.Answer != "" {
		why = said.AnsweredNote + say.Answer
	}
	for _, one := range l.Questions {
		if !one.Open() || len(say.Items) > 0 && !slices.Contains(say.Items, one.Item) || one.Asked() && say.Answer == "" && !say.NoAnswer {
			continue
		}
		it, err := q.Get(ctx, one.Item)
		if err == nil && it.State == queue.Blocked && it.Waits == "" && int64(it.Fence) == one.Number {
			_, err = q.Unpark(ctx, it.ID, why)
			if err == nil {
				back = append(back, it.ID)
			}
		}
		if err != nil && !queue.Over(err) { // else it has gone on by itself
			return back, err
		}
	}
	return back, nil
}
