package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"reprise/internal/config"
	"reprise/internal/event"
	"reprise/internal/learn"
	"reprise/internal/learn/scopes"
	"reprise/internal/session"
	"reprise/internal/setup"
)

func finding(s setup.Status, remedy, format string, args ...any) []setup.Finding {
	return []setup.Finding{{Status: s, Message: fmt.Sprintf(format, args...), Remedy: remedy}}
}

// memoryChecks are the doctor's looks at the logs and at what is made of them.
func (a *App) memoryChecks(home *config.Home) []setup.Check {
	return []setup.Check{
		{Name: "event logs", Run: func(ctx context.Context) []setup.Finding { return checkLogs(ctx, home) }, Time: logsTime},
		{Name: "what was learnt", Run: func(ctx context.Context) []setup.Finding { return a.checkLearnt(ctx, home) }},
	}
}

// logsTime bounds the look at every line of the logs: a minute of a busy machine reads
// gigabytes of them.
const logsTime = time.Minute

// checkLogs says what keeps events from being logged: they wait in the outbox then,
// and nothing else tells of it. It reads the logs too, as `reprise events verify` does:
// a line that was changed or cannot be read is found by nobody who does not look.
func checkLogs(ctx context.Context, home *config.Home) []setup.Finding {
	var out []setup.Finding
	logs, events := 0, 0
	look := func(what, dir string) {
		odd, err := event.Obstacles(dir)
		if err != nil {
			out = append(out, finding(setup.Warn, "", "%s: %v", what, err)...)
		}
		for _, o := range odd {
			out = append(out, finding(setup.Fail, fmt.Sprintf("move it away (mv %[1]s %[1]s.aside); the next hook logs what waits, nothing is lost", o.Path),
				"%s cannot be written: %s %s; events wait in the outbox", what, o.Path, o.Why)...)
		}
	}
	log := func(what, project string) {
		logs++
		dir := home.Paths.Events(project)
		before := len(out)
		look(what, dir)
		if len(out) > before {
			return // what cannot be opened cannot be read either
		}
		r, err := event.VerifyContext(ctx, dir)
		events += r.Events
		out = append(out, damaged(what, dir, r)...)
		switch {
		case ctx.Err() != nil:
			out = append(out, finding(setup.Info, "`reprise events verify` looks at all of it", "%s is long: its lines were looked at for as long as the doctor may take, and not to the end", what)...)
		case err != nil:
			out = append(out, finding(setup.Warn, "", "%s: %v", what, err)...)
		}
	}
	log("the global log", "")
	for _, p := range session.Projects(home) {
		log("the log of project "+p, p)
	}
	look("the outbox", home.Paths.Outbox())
	if out != nil {
		return out
	}
	return finding(setup.OK, "", "%s can be written; no line of their %s was changed or is missing", count(logs, "log"), count(events, "event"))
}

// damaged says what is wrong with the lines of a log. Nothing mends them: who knows why
// they are so decides what becomes of them.
func damaged(what, dir string, r event.Report) []setup.Finding {
	if r.OK() {
		return nil
	}
	more := ""
	if n := len(r.Problems) - 1; n > 0 {
		more = fmt.Sprintf(" (and %d more)", n)
	}
	first := r.Problems[0]
	if r.Newer == len(r.Problems) {
		return finding(setup.Fail, "install the newer program again: nothing is wrong with the file, and this one passes those events over", "%s has events of a newer reprise: %s%s", what, first, more)
	}
	return finding(setup.Fail, fmt.Sprintf("`reprise events verify` names each line; put a copy of the file back if you have one. Nothing is repaired by itself. "+
		"To go on without the file's events: mv %[1]s %[1]s.aside, and `reprise index rebuild`", filepath.Join(dir, first.File)),
		"%s is damaged: %s%s", what, first, more)
}

// checkLearnt says how far what was recorded has been taken in: after an upgrade it
// is made anew, by as much at each hook as fits its time.
func (a *App) checkLearnt(ctx context.Context, home *config.Home) []setup.Finding {
	var out []setup.Finding
	if scopes.Unfinished(home.Paths.Forgetting()) {
		out = finding(setup.Warn, "`reprise memory forget --finish` goes on with it and says what is in the way", "something is being forgotten, or that was cut short: %s", home.Paths.Forgetting())
	}
	r, err := a.indexRest(ctx, home)
	p := r.Progress
	_, there := os.Stat(session.IndexFile(home))
	switch {
	case err != nil:
		return append(out, finding(setup.Warn, "`reprise index rebuild` makes the index anew", "%v", err)...)
	case r.lacking():
		return append(out, finding(setup.Warn, atOnce, "what was learnt is being made anew: %s", r.text())...)
	case errors.Is(there, fs.ErrNotExist):
		return append(out, finding(setup.Info, "", "there is no index yet; what needs it first makes it")...)
	case !r.Built:
		return append(out, finding(setup.Info, atOnce, "the index is damaged, and is made anew")...)
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
