package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"reprise/internal/config"
	"reprise/internal/durable"
	"reprise/internal/loop"
	"reprise/internal/relay"
	"reprise/internal/run"
	"reprise/internal/worker/elsewhere"
)

// teller tells the fleet what a worker does, and its loops what the fleet asks of them. All
// of it is beside the work: servers that are away hold nothing up.
type teller struct {
	worker *fleetWorker
	wait   sync.WaitGroup
	ctx    context.Context // of what is told; ended by end
	end    context.CancelFunc

	mu    sync.Mutex
	apps  []*App             // of all loops, to be closed
	loops map[string]telling // by project
	runs  map[string]bool    // that are being copied, or were
}

// telling is a project's loop, as far as it is told of.
type telling struct {
	app   *App
	dir   string // of the loop
	relay *relay.Relay
	runs  *run.Manager

	clients, can []string // what works there, as its loop chooses items by
}

func (w *fleetWorker) tell(ctx context.Context) *teller {
	ctx, cancel := context.WithCancel(ctx)
	t := &teller{worker: w, ctx: ctx, end: cancel, loops: map[string]telling{}, runs: map[string]bool{}}
	t.wait.Go(func() { t.beat(ctx) })
	return t
}

// with is a list with what more has and it has not.
func with(list, more []string) []string {
	for _, s := range more {
		if !slices.Contains(list, s) {
			list = append(list, s)
		}
	}
	return list
}

// add has a project's loop told of once it has the right to be the project's: of a worker
// that is refused, as a second one in a home, the fleet hears nothing, nor does it take away
// what the one that works there says under the same name.
func (t *teller) add(ctx context.Context, a *App, project, dir string, opt *loop.Options) error {
	conn, err := a.Fleet(ctx, "worker")
	if err != nil {
		return err
	}
	runs, err := a.Runs()
	if err != nil {
		return err
	}
	home, err := a.Home()
	if err != nil {
		return err
	}
	one := telling{a, dir, relay.Open(conn, project), runs, t.worker.clients(a, home), t.worker.can(home)}
	t.mu.Lock()
	t.apps = append(t.apps, a)
	t.mu.Unlock()
	opt.Files = func(ctx context.Context, r run.Record, p loop.Place) []string {
		t.copy(one, r.ID) // a short run may have come and gone between two beats
		return one.files(ctx, r, p)
	}
	before := opt.Before
	opt.Before = func(ctx context.Context) error {
		t.begin(project, one, opt.Log)
		if before == nil {
			return nil
		}
		return before(ctx)
	}
	return nil
}

// begin tells of a loop, and hears what is asked of it.
func (t *teller) begin(project string, one telling, log *slog.Logger) {
	t.mu.Lock()
	t.loops[project] = one
	t.mu.Unlock()
	name, ctx := t.worker.flags.name, t.ctx
	t.wait.Go(func() { one.sendAgain(ctx) })
	t.wait.Go(func() {
		for ctx.Err() == nil {
			err := one.relay.Asked(ctx, name, func(request string, data []byte) error {
				if stop, ok := elsewhere.CancelAsked(data); ok {
					return one.cancel(ctx, stop)
				}
				return loop.AskAs(durable.Disk{}, one.dir, request, data)
			})
			if err != nil && ctx.Err() == nil {
				log.Warn("hear what is asked of this worker", "error", err.Error())
				_ = pause(ctx, 5*time.Second) // the end of ctx ends the loop, too
			}
		}
	})
}

// beat says every few seconds that the worker lives and what it does, and begins to copy
// what new runs say.
func (t *teller) beat(ctx context.Context) {
	w := t.worker
	since := w.app.Now().UTC()
	var last time.Time
	states := map[string]string{}
	for ctx.Err() == nil {
		t.mu.Lock()
		loops := make(map[string]telling, len(t.loops))
		for p, l := range t.loops {
			loops[p] = l
		}
		t.mu.Unlock()
		me := relay.Worker{
			Name: w.flags.name, Host: w.app.Hostname, Home: w.homeTag(), PID: w.app.PID, Version: Version(), Since: since,
			Labels: w.flags.labels, Room: w.flags.workers,
		}
		changed := false
		for project, l := range loops {
			me.Projects = append(me.Projects, project)
			me.Clients, me.Can = with(me.Clients, l.clients), with(me.Can, l.can)
			data, doing, unsaved := l.look(project)
			me.Doing = append(me.Doing, doing...)
			if unsaved != "" {
				me.Unsaved = append(me.Unsaved, relay.Unsaved{Project: project, Why: unsaved})
			}
			for _, d := range doing {
				t.copy(l, d.Run)
			}
			if data != nil && states[project] != string(data) && l.relay.PutState(ctx, w.flags.name, data) == nil {
				states[project], changed = string(data), true
			}
		}
		slices.Sort(me.Projects)
		if now := w.app.Now(); len(loops) > 0 && (changed || now.Sub(last) >= relay.BeatEvery) {
			me.At = w.app.Now().UTC()
			for _, l := range loops {
				if conn, err := l.app.Fleet(ctx, "worker"); err == nil && relay.Beat(ctx, conn, me) == nil {
					last = now
				}
				break // there is one fleet
			}
		}
		_ = pause(ctx, time.Second) // the end of ctx ends the loop, too
	}
}

// look reads how a loop stands, as it has it on disk, and why that is from before, where it is.
func (l *telling) look(project string) (data []byte, doing []relay.Doing, unsaved string) {
	data, err := durable.Read(filepath.Join(l.dir, "loop.json"))
	if err != nil {
		return nil, nil, "" // it has not begun
	}
	s, err := loop.ReadState(l.dir)
	if err != nil || s == nil {
		return nil, nil, ""
	}
	for i := range s.Slots {
		p := &s.Slots[i]
		if p.Claim.Fence == 0 {
			continue
		}
		d := relay.Doing{Project: project, Item: p.Claim.Item.ID, Fence: p.Claim.Fence, Step: string(p.Step), Run: p.Run}
		if r, err := l.runs.Get(p.Run); err == nil {
			d.Client, d.Since, d.ToolCalls, d.LastTool, d.Tokens = r.Client, r.StartedAt, r.Heartbeat.ToolCalls, r.Heartbeat.LastTool, r.Heartbeat.Tokens
		}
		doing = append(doing, d)
	}
	return data, doing, loop.Unsaved(l.dir, s, l.app.Now())
}

// copy has what a run says copied to the servers, once. One whose record cannot be read at
// the moment is tried at the next beat.
func (t *teller) copy(l telling, id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if id == "" || t.runs[id] {
		return
	}
	r, err := l.runs.Get(id)
	if err != nil {
		return
	}
	t.runs[id] = true
	ctx := t.ctx
	t.wait.Go(func() {
		err := l.relay.Mirror(ctx, id, r.Logs.Stdout, func() []byte {
			now, err := l.runs.Settle(ctx, id)
			if err != nil || !now.Status.Settled() {
				return nil
			}
			return elsewhere.EndedDoc(now, t.worker.flags.name, t.worker.app.Now())
		})
		if err != nil && ctx.Err() == nil {
			fmt.Fprintf(t.worker.notes, "note: %s is not copied to the servers: %v\n", id, err)
		}
	})
}

// close tells the fleet that the worker has ended, once what its runs said is copied or has
// had its time for that.
func (t *teller) close() {
	t.mu.Lock()
	loops, apps := t.loops, t.apps
	t.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	for _, l := range loops {
		s, err := loop.ReadState(l.dir)
		for i := 0; err == nil && s != nil && i < len(s.Slots); i++ {
			t.copy(l, s.Slots[i].Run)
		}
	}
	for project, l := range loops {
		if data, _, _ := l.look(project); data != nil {
			_ = l.relay.PutState(ctx, t.worker.flags.name, data) // who looks sees the one before
		}
		t.flush(ctx, l)
	}
	t.end()
	t.wait.Wait()
	for _, l := range loops {
		if conn, err := l.app.Fleet(ctx, "worker"); err == nil {
			_ = relay.Gone(ctx, conn, t.worker.flags.name) // else it is quiet from now on
		}
		break
	}
	for _, a := range apps {
		a.Close()
	}
}

// flush waits until the servers have the end of each run that was copied.
func (t *teller) flush(ctx context.Context, l telling) {
	t.mu.Lock()
	ids := make([]string, 0, len(t.runs))
	for id := range t.runs {
		ids = append(ids, id)
	}
	t.mu.Unlock()
	for _, id := range ids {
		r, err := l.runs.Get(id)
		if err != nil || !r.Status.Settled() {
			continue
		}
		doc := elsewhere.EndedDoc(r, t.worker.flags.name, t.worker.app.Now())
		_ = l.relay.Mirror(ctx, id, r.Logs.Stdout, func() []byte { return doc }) // what time allows
	}
}

// files sends what came of a run: what its agent left as artifacts, its summary and result.
func (l *telling) files(ctx context.Context, r run.Record, p loop.Place) (names []string) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	send := func(name, path string) {
		err := l.relay.PutFile(ctx, r.ID, name, path)
		if serversFail(err) {
			err = l.keepUnsent(r.ID, name, path, err)
		}
		switch {
		case err == nil:
			names = append(names, r.ID+"/"+name)
		case !errors.Is(err, fs.ErrNotExist):
			fmt.Fprintf(l.app.Err, "note: %s of %s is on this machine only: %v\n", name, r.ID, err)
		}
	}
	for _, name := range []string{"result.json", "summary.md"} {
		send(name, filepath.Join(r.Dir(), name))
	}
	dir := filepath.Join(config.AgentDirIn(p.Dir), "artifacts")
	entries, err := durable.ReadDir(dir)
	if err != nil {
		return names
	}
	for _, e := range entries[:min(len(entries), 100)] {
		if e.Type().IsRegular() {
			send("artifacts/"+e.Name(), filepath.Join(dir, e.Name()))
		}
	}
	return names
}
