package cli

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"reprise/internal/agent/dialect"
	"reprise/internal/brief"
	"reprise/internal/event"
	"reprise/internal/hook"
	"reprise/internal/learn"
	"reprise/internal/learn/improve"
	"reprise/internal/memory"
	"reprise/internal/recall"
)

// handlers are what hooks do beyond recording: tell a session what is
// remembered, and organise what was recorded.
type handlers struct{ app *App }

// hookHandlers are what hooks do beyond recording. What they start must not
// start hooks of its own.
func (a *App) hookHandlers() hook.Handlers {
	a.Environ = append(a.Environ, hook.DepthVar+"=1")
	a.hurried = true
	return &handlers{a}
}

// Kinds are the events that the index is needed for.
func (h *handlers) Kinds() []dialect.Kind {
	return []dialect.Kind{dialect.SessionStart, dialect.Prompt, dialect.ToolFailed, dialect.Response, dialect.SessionEnd, toolAsk}
}

// bucketTold holds, by session, the ids of what a session has been told, so that
// it is not told again until the client forgets it.
const bucketTold = "told"

// Context says what is remembered of the moment.
func (h *handlers) Context(ctx context.Context, ev dialect.Event) (dialect.Decision, error) {
	if ev.Kind == dialect.ToolBefore {
		return h.question(ctx, ev)
	}
	at := momentOf(ev)
	if at == "" || !dialect.CanContext(ev.Client, ev.Kind) {
		return dialect.Decision{}, nil
	}
	index, err := h.app.Index()
	if err != nil {
		return dialect.Decision{}, ignoreDenied(err)
	}
	if at == brief.SessionStart {
		// What the last session left is worked out before this one is told.
		if err := h.organize(ctx, ev, "session_start"); err != nil {
			return dialect.Decision{}, err
		}
	}
	r, err := h.request(ctx, index, ev, at)
	if err != nil {
		return dialect.Decision{}, err
	}
	o, err := h.app.briefOptions()
	if err != nil {
		return dialect.Decision{}, err
	}
	b, err := brief.Make(ctx, o, r)
	if err != nil || b.Text == "" && len(b.Withheld) == 0 {
		return dialect.Decision{}, err
	}
	return dialect.Decision{Context: b.Text}, h.served(ctx, index, ev, r, b)
}

func momentOf(ev dialect.Event) brief.At {
	switch ev.Kind {
	case dialect.SessionStart:
		if ev.Source == "compact" {
			return brief.Compact
		}
		return brief.SessionStart
	case dialect.Prompt:
		return brief.Prompt
	case dialect.ToolFailed:
		return brief.ToolFailure
	}
	return ""
}

func (h *handlers) request(ctx context.Context, index *recall.Index, ev dialect.Event, at brief.At) (brief.Request, error) {
	reader, err := h.app.reader()
	if err != nil {
		return brief.Request{}, err
	}
	reader.Session, reader.Client = ev.Session, ev.Client
	r := brief.Request{At: at, Reader: reader, Text: ev.Prompt, Failed: toolData(ev)}
	if r.Policy, err = h.app.policy(ctx, reader, time.Time{}); err != nil {
		return r, err
	}
	if home, err := h.app.Home(); err == nil {
		r.HeldOut = improve.HeldOut(ev.Client, ev.Session, home.Settings.Recall.HoldOutPercent)
	}
	if at == brief.SessionStart || at == brief.Compact || ev.Session == "" {
		return r, nil // whatever was told is told anew
	}
	err = index.View(ctx, func(tx *recall.Tx) error {
		data, ok, err := tx.Load(bucketTold, ev.Client+"\t"+ev.Session)
		if err != nil || !ok {
			return err
		}
		return json.Unmarshal(data, &r.Exclude)
	})
	return r, err
}

func toolData(ev dialect.Event) event.ToolData {
	return event.ToolData{Tool: ev.Tool, Name: ev.ToolName, ID: ev.ToolID, Input: ev.Input, Output: ev.Output, Error: ev.Error, ExitCode: ev.ExitCode, DurationMS: ev.DurationMS, Cwd: ev.Cwd}
}

// served notes what a session was told, in the index for the session's next
// question and in the log for what is learnt from it.
func (h *handlers) served(ctx context.Context, index *recall.Index, ev dialect.Event, r brief.Request, b brief.Brief) error {
	items := b.Items()
	if ev.Session != "" && !r.HeldOut {
		told := append([]string{}, r.Exclude...)
		for _, i := range items {
			told = append(told, i.ID)
		}
		data, err := json.Marshal(told)
		if err != nil {
			return err
		}
		if err := index.Update(ctx, func(tx *recall.Tx) error { return tx.Store(bucketTold, ev.Client+"\t"+ev.Session, data) }); err != nil {
			return err
		}
	}
	data, err := json.Marshal(event.ServedData{At: string(b.At), Query: clipText(r.Text, 500), Items: items, Tokens: b.Tokens, Policy: b.Policy, HeldOut: r.HeldOut})
	if err != nil {
		return err
	}
	return h.append(ctx, ev, event.Event{Type: event.RecallServed, Data: data})
}

// clipText is the beginning of a text, in characters.
func clipText(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n]) + "…"
	}
	return s
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
// lets what has proved itself through the gates.
func (h *handlers) Job(ctx context.Context, ev dialect.Event) error {
	if ev.Kind == dialect.SessionStart {
		return nil // done before the session was told
	}
	if _, err := h.app.Index(); err != nil {
		return ignoreDenied(err)
	}
	began := h.app.Now()
	if err := h.organize(ctx, ev, string(ev.Kind)); err != nil {
		return err
	}
	if err := h.tune(ctx, began); err != nil || ev.Kind != dialect.SessionEnd {
		return err
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
	_, err = organizer.Do(ctx, job)
	return err
}

// briefOptions are where a brief takes what it says.
func (a *App) briefOptions() (brief.Options, error) {
	home, err := a.Home()
	if err != nil {
		return brief.Options{}, err
	}
	index, err := a.Index()
	if err != nil {
		return brief.Options{}, err
	}
	set := home.Settings.Recall
	curated := func(name string) func(context.Context) ([]brief.File, error) {
		return func(ctx context.Context) ([]brief.File, error) { return a.curated(ctx, name) }
	}
	return brief.Options{
		Budgets: brief.Budgets{Start: set.SessionStartTokens, Prompt: set.PromptTokens, Failure: set.FailureTokens, Core: set.CoreTokens, Index: set.IndexTokens},
		Core:    curated("core.md"), Index: curated("index.md"),
		Recall: index.Recall, Top: index.Top, KnownFix: a.knownFix, Now: a.Env.Now,
	}, nil
}

// curated are core.md or index.md of the project and of the global memory.
func (a *App) curated(ctx context.Context, name string) ([]brief.File, error) {
	var out []brief.File
	read := func(s *memory.Store, scope string) error {
		doc, _, err := s.Read(ctx, name, 0, 0)
		if errors.Is(err, memory.ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		if !memory.IsSeed(name, doc.Content) {
			out = append(out, brief.File{Name: name, Scope: scope, Text: doc.Content})
		}
		return nil
	}
	project, err := a.projectMemory()
	if err != nil {
		return nil, err
	}
	if project != nil {
		if err := read(project, a.home.Project.Name); err != nil {
			return nil, err
		}
	}
	global, err := a.Memory()
	if err != nil {
		return nil, err
	}
	return out, read(global, "global")
}

// knownFix is what helped with a failure before, then what did not.
func (a *App) knownFix(ctx context.Context, r recall.Reader, failed event.ToolData) (recall.Answer, error) {
	organizer, err := a.Organizer()
	if err != nil {
		return recall.Answer{}, err
	}
	known, err := organizer.KnownFix(ctx, r, failed)
	if err != nil {
		return recall.Answer{}, err
	}
	return recall.Answer{Results: append(known.Fixes, known.Avoid...)}, nil
}
