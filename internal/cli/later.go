package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"reprise/internal/config"
	"reprise/internal/durable"
	"reprise/internal/hook"
	"reprise/internal/learn"
	"reprise/internal/memory"
	"reprise/internal/proc"
	"reprise/internal/recall"
	"reprise/internal/session"
	"reprise/internal/term"
)

// later starts a command of this program that nobody waits for. It is in no hook, so it must
// not be taken for one.
func (a *App) later(dir string, args ...string) error {
	if a.ConfigFlag != "" {
		args = append(args, "--config="+a.ConfigFlag)
	}
	env := slices.DeleteFunc(slices.Clone(a.Environ), func(kv string) bool { return strings.HasPrefix(kv, hook.DepthVar+"=") })
	_, err := proc.Start(proc.Cmd{Path: a.Program, Args: args, Env: env, Dir: dir, NewSession: true})
	return err
}

// A new version's index is empty, and a hook has time for a little of what is to be taken in.
// The rest is one process's work, which the first hook starts that leaves much of it.

// restLock is held by the process that brings the rest into the index; its time says when
// that began.
func restLock(home *config.Home) string { return session.IndexFile(home) + ".rest.lock" }

// restPause is how long after one such process began another is not started: where it ends
// at once, each time, hooks do not begin it at every turn.
const restPause = time.Minute

// indexRest is what is missing of the index.
type indexRest struct {
	Built          bool // there is an index of this version
	Updated        bool // and, where there is none, one of another
	Bytes          int64
	Share          float64 // of the logs that is taken in
	Missing, Known int     // sessions; as many as there will be, as far as is known
	learn.Progress
}

// much says that there is more to do than hooks do beside their work.
func (r indexRest) much() bool {
	const work = 100
	return r.Bytes > behind || r.Work > work
}

// lacking says that what a person asks for may not be found yet. An index that is not there
// where nothing was updated is no lack: who needs it first makes it.
func (r indexRest) lacking() bool {
	return r.Bytes > behind || r.Missing > 0 && r.much() || !r.Built && r.Bytes > 0 && r.Updated
}

func (r indexRest) text() string {
	switch {
	case r.Share == 0:
		return "no session is in this version's index yet"
	case r.Bytes > behind:
		return fmt.Sprintf("about %d of %s are missing in this version's index", r.Missing, count(r.Known, "session"))
	}
	return fmt.Sprintf("%d of %s are missing in this version's index", r.Missing, count(r.Known, "session"))
}

const atOnce = "hooks and a process of their own go on with it; `reprise index rebuild` does it at once"

// indexRest looks at what is missing. It makes nothing.
func (a *App) indexRest(ctx context.Context, home *config.Home) (indexRest, error) {
	m := session.Open(session.Options{Home: home, Env: a.Env, Access: memory.FullAccess, Look: true})
	defer m.Close()
	p, err := m.Organizer.Progress(ctx)
	if errors.Is(err, recall.ErrNotBuilt) {
		r := indexRest{Updated: recall.Followed(session.IndexFile(home))}
		r.Bytes, err = m.Organizer.Logged()
		return r, err
	}
	if err != nil {
		return indexRest{}, err
	}
	r := indexRest{Built: true, Bytes: p.Total - p.Read, Share: 1, Progress: p}
	if p.Total > 0 {
		r.Share = float64(p.Read) / float64(p.Total)
	}
	if r.Missing, r.Known, err = m.Organizer.Missing(ctx); err != nil || r.Share == 0 {
		return r, err
	}
	all := int(float64(r.Known) / r.Share) // so many there will be, so that what is missing counts down
	r.Missing, r.Known = r.Missing+all-r.Known, all
	return r, nil
}

// restLater has what is missing of the index brought into it by a process of its own, where
// that is as much as worth says and none is at it; begun says that it was started.
func (a *App) restLater(ctx context.Context, worth func(indexRest) bool) (begun bool, err error) {
	home, err := a.Home()
	if err != nil || a.Env.Get(hook.RunVar) != "" {
		return false, err // a run may not; the next session of a person does
	}
	access, err := a.memoryAccess()
	if err != nil || access.MayWrite() != nil {
		return false, err
	}
	info, err := os.Stat(restLock(home))
	if err == nil && a.Now().Sub(info.ModTime()).Abs() < restPause || err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	if locked, err := durable.IsLocked(restLock(home)); err != nil || locked {
		return false, err
	}
	r, err := a.indexRest(ctx, home)
	if err != nil || !worth(r) {
		return false, err
	}
	return true, a.later(home.Paths.Data, "index", "rebuild", "--rest")
}

// restSaid does so where a person has just put this version in place, and says so. That it
// cannot be is no reason for what was asked for to fail: hooks do it, too.
func (a *App) restSaid(ctx context.Context) {
	begun, err := a.restLater(ctx, func(r indexRest) bool { return r.much() || r.lacking() })
	switch {
	case err != nil:
		fmt.Fprint(a.Err, wrapLine(term.SafeLine(fmt.Sprintf("note: what was recorded is not brought into this version's index yet: %v; `reprise index rebuild` does it", err)), a.Columns))
	case begun:
		fmt.Fprint(a.Out, wrapLine("What was recorded is brought into this version's index now, beside you; `reprise` says how far that is.", a.Columns))
	}
}

// rest brings what is missing into the index, unless another process is at it.
func (a *App) rest(ctx context.Context) (err error) {
	home, err := a.Home()
	if err != nil {
		return err
	}
	m, err := a.Remembered()
	if err != nil {
		return err
	}
	defer func() { // nobody reads what it prints
		if log, lerr := a.Logger(); err != nil && lerr == nil {
			log.Warn("what is missing of the index is not made; the next hook begins it again", slog.Any("error", err))
		}
	}()
	if err := durable.MkdirAll(home.Paths.Cache, 0o700); err != nil {
		return err
	}
	unlock, err := durable.TryLock(restLock(home))
	if errors.Is(err, durable.ErrLocked) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	if err := (durable.Disk{}).Touch(restLock(home), a.Now()); err != nil {
		return err
	}
	_ = proc.Background() // slower for others, otherwise the same
	return m.Finish(ctx)
}
