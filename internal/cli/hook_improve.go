package cli

import (
	"context"
	"errors"
	"time"

	"reprise/internal/event"
	"reprise/internal/learn/improve"
	"reprise/internal/memory"
)

// tuner looks for better policies.
func (a *App) tuner(progress func(n, of int)) (*improve.Tuner, error) {
	home, err := a.Home()
	if err != nil {
		return nil, err
	}
	index, err := a.Index()
	if err != nil {
		return nil, err
	}
	organizer, err := a.Organizer()
	if err != nil {
		return nil, err
	}
	return improve.NewTuner(improve.Options{
		Index: index, Organizer: organizer, Now: a.Env.Now, Progress: progress, Tokens: home.Settings.Recall.PromptTokens,
		Record: func(ctx context.Context, e event.Event) error {
			broker, err := a.Broker(event.Event{Role: e.Role})
			if err != nil {
				return err
			}
			_, err = broker.Record(ctx, e)
			return err
		},
	}), nil
}

// tune goes on with learning policies, with what organising has left of the
// time that a job may take.
func (h *handlers) tune(ctx context.Context, began time.Time) error {
	home, err := h.app.Home()
	if err != nil || home.Settings.Recall.Learn == "off" {
		return err
	}
	end := began.Add(h.budget())
	over := func() bool { return !h.app.Now().Before(end) }
	reader, err := h.app.reader()
	if err != nil {
		return err
	}
	tuner, err := h.app.tuner(nil)
	if err != nil {
		return err
	}
	for _, s := range improve.Scopes(reader) {
		if over() {
			return nil
		}
		if _, err := tuner.Work(ctx, s, over); err != nil {
			return err
		}
	}
	return nil
}

// ignoreDenied is nil for a run that may not read the memory.
func ignoreDenied(err error) error {
	if errors.Is(err, memory.ErrDenied) {
		return nil
	}
	return err
}
