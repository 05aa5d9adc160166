package session

import (
	"io"
	"log/slog"
	"time"

	"reprise/internal/config"
	"reprise/internal/event"
	"reprise/internal/hook"
	"reprise/internal/logfile"
	"reprise/internal/redact"
)

// lockPatience is how long a log that another process is writing to is waited
// for: an append takes a few milliseconds, a purge of a large log more.
const lockPatience = 5 * time.Second

// Broker is the one way into the event logs of an installation: of the project
// around the working directory, or the global scope. What an event leaves open of
// who and where is filled in from who, and then for this process. report is told
// of what had to be put aside.
func Broker(home *config.Home, env config.Env, host string, who event.Event, report func(error)) *event.Broker {
	if who.Run == "" {
		who.Run = env.Get(hook.RunVar)
	}
	if who.Role == "" {
		who.Role = env.Get(hook.RoleVar)
	}
	if home.Project != nil && who.Project == "" {
		who.Project = home.Project.Name
	}
	return event.NewBroker(event.BrokerOptions{
		Events: home.Paths.Events, Outbox: home.Paths.Outbox(), Host: host, Now: env.Now,
		Wait: lockPatience, Defaults: who, Report: report,
	})
}

// Log is reprise's own log. Its file is made at the first line.
func Log(file string, set config.Logging, now func() time.Time, pid int) (*slog.Logger, io.Closer, error) {
	redactor := redact.New()
	handler, err := logfile.New(logfile.Options{
		File:       file,
		Level:      set.Level,
		MaxSizeMB:  set.MaxSizeMB,
		MaxBackups: set.MaxBackups,
		Now:        now,
		Redact:     func(s string) string { s, _ = redactor.String(s); return s },
	})
	if err != nil {
		return nil, nil, err
	}
	// The pid tells apart what several processes write into one log.
	return slog.New(handler).With("pid", pid), handler, nil
}
