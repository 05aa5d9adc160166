package run

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"reprise/internal/agent"
	"reprise/internal/clip"
)

// Going on with a run is a new run in the session of the old one: a record is about one
// life, with one output and one end. The old record names the new one before that is there,
// so that a session never has two clients at once, and a crash between the two leaves a
// name without a run, which counts for nothing.

// Before is what a session had used up before a run of it.
type Before struct {
	CostUSD float64 `json:"cost_usd,omitempty"`
	Tokens  int64   `json:"tokens,omitempty"`
}

// Spent is what the run itself cost, in US dollars and tokens: clients count the session.
func (r Record) Spent() (usd float64, tokens int64) {
	if r.Result == nil {
		return 0, 0
	}
	usd, tokens = r.Result.CostUSD, r.Result.Usage.Sum()
	if b := r.Before; b != nil {
		usd, tokens = max(0, usd-b.CostUSD), max(0, tokens-b.Tokens)
	}
	return usd, tokens
}

// before is what the session of a run that has ended had used up by then.
func before(r Record) *Before {
	if r.Result == nil {
		return r.Before // it came to no result, and what was before it was before the next one, too
	}
	b := Before{CostUSD: r.Result.CostUSD}
	if r.Client == agent.KindCodex { // the others count tokens by the process
		b.Tokens = r.Result.Usage.Sum()
	}
	if b == (Before{}) {
		return r.Before
	}
	return &b
}

// resumed is what a run is told of the one whose session it goes on with.
type resumed struct {
	from   Record
	system string // its whole system prompt
}

// WhyNotResume is why Start cannot go on with a run, "" where it can.
func (m *Manager) WhyNotResume(r Record) string {
	if why := mayNot(r); why != "" {
		return why
	}
	if r.Dir() != filepath.Join(m.opt.Dir, r.ID) {
		return "it belongs to another project than the one here: go on with it in " + r.WorkDir
	}
	if next, err := m.Get(r.ResumedBy); err == nil {
		return next.ID + " has gone on with it already: go on with that one"
	}
	if home := r.Command.Home; home != "" {
		if info, err := os.Stat(home); err != nil || !info.IsDir() {
			return "the home that its client had is gone (" + home + "): begin anew with `reprise spawn`"
		}
	}
	if r.Client != agent.KindScript && agent.Transcript(r.Client, r.Command.Home, r.SessionID, m.opt.Env) == "" {
		return "its client has kept nothing of the session: it ended before its first message, or the client's file of it was removed; begin anew with `reprise spawn`"
	}
	return ""
}

func cannotResume(id, why string) error {
	return fmt.Errorf("go on with %s: %w: %s", id, ErrRefused, why)
}

// mayNot is why a run of this kind, or in this state, is not gone on with.
func mayNot(r Record) string {
	switch {
	case !r.Status.Settled():
		return fmt.Sprintf("it is %s: wait for its end, or stop it with `reprise runs cancel %s`", r.Status, r.ID)
	case r.Origin == "loop":
		return "the loop goes on with its items itself: `reprise loop resume` answers what it asks, and has what was set aside taken up again"
	case r.Origin == "task":
		return "it did a step of a task: `reprise task run` goes on with that"
	case r.Purpose != "" || r.Origin == "check":
		return "it was one question to a model, which has no session"
	case !agent.CanResume(r.Client):
		return fmt.Sprintf("the client %s cannot go on with a session: begin anew with `reprise spawn`", r.Client)
	case r.SessionID == "":
		return "its client never said which session it had: begin anew with `reprise spawn`"
	}
	return ""
}

// fill makes of a request to go on with a run a whole one: what is not said is as it was.
func (m *Manager) fill(ctx context.Context, req *Request) error {
	r, err := m.Settle(ctx, req.Resume)
	if err != nil {
		return fmt.Errorf("start run: %w", err)
	}
	if why := mayNot(r); why != "" { // the rest is asked once the session is to be the new run's
		return cannotResume(r.ID, why)
	}
	for _, f := range []struct{ name, is, was string }{{"client", req.Client, r.Client}, {"working_directory", req.WorkDir, r.WorkDir}} {
		if f.is != "" && f.is != f.was {
			return badRequest("%s is %q, and %s, which is to be gone on with, has %q: leave it out", f.name, f.is, r.ID, f.was)
		}
	}
	if req.SystemPrompt != "" {
		return badRequest("system_prompt cannot be given to a session that is gone on with: say it in the task")
	}
	if req.Work != nil || req.Question != nil {
		return badRequest("only a run that somebody has started goes on with another")
	}
	req.Client, req.WorkDir = r.Client, r.WorkDir
	req.AddDirs = append(append([]string(nil), r.AddDirs...), req.AddDirs...)
	req.AllowMemoryRead = req.AllowMemoryRead || r.AllowMemoryRead
	req.AllowStateWrite = req.AllowStateWrite || r.AllowStateWrite
	if req.Model == "" {
		req.Model = r.Model
	}
	if req.Timeout == 0 {
		if req.Timeout = time.Duration(r.TimeoutSeconds * float64(time.Second)); req.Timeout == 0 {
			req.Timeout = -1 // none then, none now
		}
	}
	if req.MaxOutputTokens == 0 {
		req.MaxOutputTokens = r.MaxOutputTokens
	}
	for _, arg := range r.Command.Args {
		if file, ok := strings.CutPrefix(arg, "--file="); ok && r.Client == agent.KindScript && req.ScriptFile == "" {
			req.ScriptFile = file
		}
	}
	if strings.TrimSpace(req.Task) == "" {
		if req.Task, err = goOn(r); err != nil {
			return err
		}
	}
	return nil
}

// goOn is what a session is told that goes on without a word of anybody's.
func goOn(r Record) (string, error) {
	about, err := r.About()
	if err != nil {
		return "", err
	}
	text := "Go on: " + clip.Runes(strings.TrimPrefix(about, "Go on: "), 200) + "\n\n"
	if r.Status == Completed {
		return text + "You had ended. Look whether something of it is left to do, and do that.\n", nil
	}
	return text + "You were stopped before you had ended. Look at how far you came, and do the rest.\n", nil
}

// take makes the session of a run that has ended that of the run id, which is about to
// begin. done tells whether that began; where it did not, the session is free again.
func (m *Manager) take(ctx context.Context, id, next string) (out *resumed, done func(began bool) error, err error) {
	r, err := m.Settle(ctx, id)
	if err != nil {
		return nil, nil, fmt.Errorf("start run: %w", err)
	}
	if why := m.WhyNotResume(r); why != "" {
		return nil, nil, cannotResume(id, why)
	}
	unlock, err := r.disk.Lock(ctx, r.path(lockFile))
	if err != nil {
		return nil, nil, fmt.Errorf("go on with %s: %w", id, err)
	}
	give := func(err error) (*resumed, func(bool) error, error) { return nil, nil, errors.Join(err, unlock()) }
	// Again: another may have gone on with it until the lock was held.
	if r, err = m.Get(id); err != nil {
		return give(err)
	}
	if why := m.WhyNotResume(r); why != "" {
		return give(cannotResume(id, why))
	}
	system, err := readFile(r.path(agent.SystemFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return give(fmt.Errorf("go on with %s: read its system prompt: %w", id, err))
	}
	r.ResumedBy = next
	if err := r.write(); err != nil {
		return give(fmt.Errorf("go on with %s: %w", id, err))
	}
	return &resumed{from: r, system: string(system)}, func(began bool) error {
		var err error
		if !began {
			r.ResumedBy = ""
			err = r.write()
		}
		return errors.Join(err, unlock())
	}, nil
}

// homes are the homes that runs of a list have their sessions in, which the directory of
// another run may hold.
func homes(list []Record) map[string]bool {
	out := map[string]bool{}
	for _, r := range list {
		if r.Command.Home != "" {
			out[filepath.Dir(r.Command.Home)] = true
		}
	}
	return out
}
