package run

import (
	"context"
	"encoding/json"
	"time"

	"reprise/internal/event"
)

// recordEvent tells the event log what became of a run. It never fails the
// run: what could not be recorded is in the run's own record.
func recordEvent(ctx context.Context, host string, r Record, now func() time.Time) error {
	dir := r.Command.EventsDir
	if dir == "" {
		return nil
	}
	said := map[string]any{"status": r.Status, "reason": r.StatusReason, "exit_code": r.ExitCode, "elapsed_seconds": r.Elapsed(now()).Seconds()}
	if r.Resumes != "" {
		said["resumes"] = r.Resumes
	}
	data, err := json.Marshal(said)
	if err != nil {
		return err
	}
	scope := event.ScopeGlobal
	if r.Project != "" {
		scope = event.ScopeProject
	}
	broker := event.NewBroker(event.BrokerOptions{
		Events: func(string) string { return dir }, Outbox: r.Command.Outbox, Host: host, Now: now, Disk: r.disk,
	})
	_, err = broker.Record(ctx, event.Event{
		Scope: scope, Project: r.Project, Session: r.SessionID, Run: r.ID, Client: r.Client,
		Type: event.RunChanged, Data: data, Outcome: outcome(r.Status),
	})
	return err
}

func outcome(s Status) string {
	switch {
	case s == Completed:
		return "success"
	case s.Done():
		return "failure"
	}
	return ""
}
