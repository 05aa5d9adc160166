package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"reprise/internal/config"
	"reprise/internal/event"
	"reprise/internal/learn"
	"reprise/internal/learn/scopes"
	"reprise/internal/memory"
	"reprise/internal/recall"
	"reprise/internal/session"
	"reprise/internal/setup"
)

func finding(s setup.Status, remedy, format string, args ...any) []setup.Finding {
	return []setup.Finding{{Status: s, Message: fmt.Sprintf(format, args...), Remedy: remedy}}
}

// memoryChecks are the doctor's looks at the logs and at what is made of them.
func (a *App) memoryChecks(home *config.Home) []setup.Check {
	return []setup.Check{
		{Name: "event logs", Run: func(context.Context) []setup.Finding { return checkLogs(home) }},
		{Name: "what was learnt", Run: func(ctx context.Context) []setup.Finding { return a.checkLearnt(ctx, home) }},
	}
}

// checkLogs says what keeps events from being logged: they wait in the outbox then,
// and nothing else tells of it.
func checkLogs(home *config.Home) []setup.Finding {
	var out []setup.Finding
	n := 0
	look := func(what, dir string) {
		n++
		odd, err := event.Obstacles(dir)
		if err != nil {
			out = append(out, finding(setup.Warn, "", "%s: %v", what, err)...)
		}
		for _, o := range odd {
			out = append(out, finding(setup.Fail, fmt.Sprintf("move it away (mv %[1]s %[1]s.aside); the next hook logs what waits, nothing is lost", o.Path),
				"%s cannot be written: %s %s; events wait in the outbox", what, o.Path, o.Why)...)
		}
	}
	look("the global log", home.Paths.Events(""))
	for _, p := range session.Projects(home) {
		look("the log of project "+p, home.Paths.Events(p))
	}
	look("the outbox", home.Paths.Outbox())
	if out != nil {
		return out
	}
	return finding(setup.OK, "", "%s can be written", count(n-1, "log"))
}

// checkLearnt says how far what was recorded has been taken in: after an upgrade it
// is made anew, by as much at each hook as fits its time.
func (a *App) checkLearnt(ctx context.Context, home *config.Home) []setup.Finding {
	const atOnce = "hooks go on with it, each for as long as it may take; `reprise index rebuild` does it at once"
	var out []setup.Finding
	if scopes.Unfinished(home.Paths.Forgetting()) {
		out = finding(setup.Warn, "`reprise memory forget --finish` goes on with it and says what is in the way", "something is being forgotten, or that was cut short: %s", home.Paths.Forgetting())
	}
	if _, err := os.Stat(home.IndexFile()); errors.Is(err, fs.ErrNotExist) {
		return append(out, finding(setup.Info, "", "there is no index yet; what needs it first makes it")...)
	}
	m := session.Open(session.Options{Home: home, Env: a.Env, Access: memory.FullAccess, Look: true})
	defer m.Close()
	p, err := m.Organizer.Progress(ctx)
	switch {
	case errors.Is(err, recall.ErrNotBuilt):
		return append(out, finding(setup.Info, atOnce, "the index is of another version, or damaged, and is made anew")...)
	case err != nil:
		return append(out, finding(setup.Warn, "`reprise index rebuild` makes the index anew", "%v", err)...)
	case p.Other:
		return append(out, finding(setup.Info, atOnce, "what was learnt is made anew, for this version of reprise: what the other has made is being taken out")...)
	case p.Total-p.Read > behind || p.Work > 0:
		return append(out, finding(setup.Info, atOnce, "%s%s", ofLogs(p), toDo(p))...)
	}
	return append(out, finding(setup.OK, "", "%s", ofLogs(p))...)
}

// behind is how much of the logs may not be taken in yet, in bytes, without being
// worth a word: a session that goes on is organised at the end of its turns.
const behind = 1 << 20

func ofLogs(p learn.Progress) string {
	part := 100.0
	if p.Total > 0 {
		part = float64(p.Read) * 100 / float64(p.Total)
	}
	return fmt.Sprintf("%.0f %% of the logs (%.1f of %.1f MB) are taken in", part, float64(p.Read)/1e6, float64(p.Total)/1e6)
}

func toDo(p learn.Progress) string {
	if p.Work == 0 {
		return ""
	}
	return ", " + fmt.Sprintf("%d sessions and groups are to be worked out", p.Work)
}
