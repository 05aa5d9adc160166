package cli

import (
	"context"
	"time"

	"reprise/internal/agent/dialect"
	"reprise/internal/event"
	"reprise/internal/hook"
	"reprise/internal/learn"
	"reprise/internal/recall"
	"reprise/internal/session"
)

// handlers are what hooks do beyond recording: tell a session what is
// remembered, and organise what was recorded.
type handlers struct {
	app  *App
	warn func(what string, err error)
}

// hookHandlers are what hooks do beyond recording. What they start must not
// start hooks of its own.
func (a *App) hookHandlers(warn func(what string, err error)) hook.Handlers {
	a.Environ = append(a.Environ, hook.DepthVar+"=1")
	a.hurried = true
	return &handlers{app: a, warn: warn}
}

// Kinds are the events that the index is needed for.
func (h *handlers) Kinds() []dialect.Kind {
	return append(session.Told(), dialect.Response, dialect.SessionEnd, dialect.CompactBefore)
}

// Context says what is remembered of the moment.
func (h *handlers) Context(ctx context.Context, ev dialect.Event) (dialect.Decision, error) {
	if err := h.app.finishForgetting(ctx); err != nil {
		return dialect.Decision{}, err
	}
	m, err := h.app.Remembered()
	if err != nil {
		return dialect.Decision{}, ignoreDenied(err)
	}
	t := session.Teller{Memory: m, Broker: func(who event.Event) (*event.Broker, error) { return h.app.Broker(who) }, Warn: h.warn}
	d, err := t.Tell(ctx, ev)
	if ev.Kind == dialect.SessionStart { // the first one after an update comes here
		h.restLater(ctx)
	}
	return d, err
}

// restLater has the rest of the index made beside the session.
func (h *handlers) restLater(ctx context.Context) {
	if _, err := h.app.restLater(ctx, indexRest.much); err != nil {
		h.warn("what is missing of the index is not made by a process of its own", err)
	}
}

// append records an event of the session.
func (h *handlers) append(ctx context.Context, ev dialect.Event, e event.Event) error {
	broker, err := h.app.Broker(event.Event{Session: ev.Session, Client: ev.Client, Agent: h.app.Env.Get(hook.AgentVar)})
	if err != nil {
		return err
	}
	_, err = broker.Record(ctx, e)
	return err
}

// Job organises what was recorded, for a bounded time, and at a session's end
// lets what has proved itself through the gates. A session's start is no occasion
// for it: its client waits for what it is told, for which [session.Teller] does
// no more than it needs.
func (h *handlers) Job(ctx context.Context, ev dialect.Event) error {
	if ev.Kind == dialect.SessionStart {
		return nil
	}
	if _, err := h.app.Index(); err != nil {
		return ignoreDenied(err)
	}
	began := h.app.Now()
	if err := h.app.finishForgetting(ctx); err != nil {
		return err
	}
	if err := h.organize(ctx, ev, string(ev.Kind)); err != nil {
		return err
	}
	if err := h.notice(ctx, ev); err != nil {
		h.warn("nothing is said about the state of the agent", err)
	}
	if ev.Kind == dialect.CompactBefore {
		return nil // the client waits, and so does the model
	}
	if err := h.tune(ctx, began); err != nil || ev.Kind != dialect.SessionEnd {
		return err
	}
	if home, err := h.app.Home(); err == nil {
		if err := session.ForgetTold(home.Paths.State, ev.Client, ev.Session); err != nil {
			h.warn("a note of what the session was told is left over", err)
		}
	}
	if err := h.app.summarizeLater(); err != nil {
		h.warn("summaries are not written by a model", err)
	}
	return h.promote(ctx)
}

// bucketJobs holds the day on which a daily job was done last.
const bucketJobs = "jobs"

// promote runs the gates, and once a day retention.
func (h *handlers) promote(ctx context.Context) error {
	if h.app.Env.Get(hook.RunVar) != "" {
		return nil // a run proposes; the next session of a person lets through
	}
	all, err := h.app.Scopes()
	if err != nil {
		return err
	}
	if _, err := all.Promote(ctx, h.budget()); err != nil {
		return err
	}
	index, err := h.app.Index()
	if err != nil {
		return err
	}
	today := h.app.Now().UTC().Format(time.DateOnly)
	var done []byte
	if err := index.View(ctx, func(tx *recall.Tx) error {
		done, _, err = tx.Load(bucketJobs, "expire")
		return err
	}); err != nil || string(done) == today {
		return err
	}
	if _, err := all.Expire(ctx); err != nil {
		return err
	}
	if home, err := h.app.Home(); err == nil {
		if err := session.SweepTold(home.Paths.State, h.app.Now()); err != nil {
			h.warn("old notes of what sessions were told are left over", err)
		}
	}
	if err := index.Sweep(); err != nil {
		h.warn("indexes of older versions are left over", err)
	}
	return index.Update(ctx, func(tx *recall.Tx) error { return tx.Store(bucketJobs, "expire", []byte(today)) })
}

// budget is how long one bounded job may take.
func (h *handlers) budget() time.Duration {
	home, err := h.app.Home()
	if err != nil {
		return learn.DefaultBudget
	}
	return time.Duration(home.Settings.Recall.JobMS) * time.Millisecond
}

func (h *handlers) organize(ctx context.Context, ev dialect.Event, at string) error {
	organizer, err := h.app.Organizer()
	if err != nil {
		return err
	}
	home, err := h.app.Home()
	if err != nil {
		return err
	}
	job := learn.Job{
		At: at, Session: ev.Session, Client: ev.Client, Budget: h.budget(),
		Append: func(ctx context.Context, e event.Event) error { return h.append(ctx, ev, e) },
	}
	if home.Project != nil {
		job.Project = home.Project.Name
	}
	done, err := organizer.Do(ctx, job)
	if err != nil || done.More { // another process is at it, or there is more than there was time for
		h.restLater(ctx)
	}
	return err
}
