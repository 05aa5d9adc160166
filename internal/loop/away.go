package loop

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"reprise/internal/loop/core"
	"reprise/internal/loop/tell"
)

// ErrAway says that the project's directory is not where it was when the loop began: it was
// moved, or its disk is not mounted. That is no item's fault, and it may be back any moment.
var ErrAway = errors.New("the project's directory is away")

// awayLook is the longest time between two looks whether it is back.
const awayLook = 10 * time.Second

// Anchor is how it is found out that a project's directory is away. It remembers in which
// repository the directory is: where that is on a disk that is not mounted any more, an empty
// directory is left, or one of a repository around it.
func Anchor(root string) (away func() error) {
	repository := ""
	for d := root; ; d = filepath.Dir(d) {
		if at := filepath.Join(d, ".git"); there(at) == nil {
			repository = at
			break
		}
		if d == filepath.Dir(d) {
			break
		}
	}
	return func() error {
		err := there(root)
		if err == nil && repository != "" {
			err = there(repository)
		}
		if err == nil {
			return nil
		}
		return fmt.Errorf("%w: %s was moved or removed, or its disk is not mounted (%w); once it is back the loop goes on by itself. Where it stays elsewhere, end this loop and begin it there: it is gone on with", ErrAway, root, err)
	}
}

func there(path string) error {
	_, err := os.Stat(path)
	return err
}

// away says whether the project's directory is away. When it goes, and when it is back, that
// is told once, however many workers it stands in the way of.
func (l *Loop) away() error {
	if l.opt.Away == nil {
		return nil
	}
	err := l.opt.Away()
	l.mu.Lock()
	was := l.gone
	l.gone = err != nil
	l.mu.Unlock()
	switch {
	case err != nil && !was:
		l.tell("away", -1, oneLine(err.Error(), 500)+". Until then nothing is begun, and no item has an attempt less for it")
		l.notice(context.Background(), tell.Notice{Kind: "directory away", Text: oneLine(err.Error(), 500)})
	case err == nil && was:
		l.tell("away", -1, "the project's directory is back, and the loop goes on")
	}
	return err
}

// inProject does something that needs the project's directory. What fails while that is away
// failed for it.
func (l *Loop) inProject(f func() error) error {
	if err := l.away(); err != nil {
		return err
	}
	err := f()
	if err != nil {
		if away := l.away(); away != nil {
			return fmt.Errorf("%w (%s)", away, oneLine(err.Error(), 200))
		}
	}
	return err
}

// noteAway remembers of a run that the project's directory was away while it went on.
func (l *Loop) noteAway(run string) {
	if l.away() == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.missing[run] = true
}

// excused has a run whose work came to nothing while the project's directory was away count
// against nobody: its git, and much else, could not work.
func (l *Loop) excused(o *core.Outcome) {
	l.mu.Lock()
	missing := l.missing[o.Run]
	l.mu.Unlock()
	if !missing || o.Completed && o.OK && o.Changed {
		return
	}
	switch o.Class {
	case core.None, core.Crashed, core.SpawnFailed:
		o.Class, o.Reason = core.PlaceAway, join("the project's directory was away while it worked", o.Reason)
	}
}
