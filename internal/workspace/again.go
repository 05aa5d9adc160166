package workspace

import (
	"context"
	"errors"
	"strings"
	"syscall"
	"time"

	"reprise/internal/git"
)

// A removal beside other work that the machine stood in the way of is tried again so soon,
// each time later, and not for longer than that. What is left then is finished by the next
// command that makes or removes workspaces.
const (
	againSoon = 100 * time.Millisecond
	againLast = 5 * time.Second
)

// Passing reports whether a removal failed by what may be otherwise in a moment, or once the
// disk is mounted to be written again. Git says so in words.
func Passing(err error) bool {
	return git.Passing(err) || err != nil && strings.Contains(strings.ToLower(err.Error()), syscall.EROFS.Error())
}

// removeAgain goes on with a removal that was written down and failed with err.
func (m *Manager) removeAgain(ctx context.Context, name string, err error) (Removed, error) {
	ours := errors.Is(err, errOurs)
	for wait := againSoon; wait <= againLast && Passing(err); wait *= 2 {
		t := time.NewTimer(wait)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return Removed{}, err
		}
		if ours { // and as long as it is, nobody else finishes it
			if ours = m.disown(ctx, name) != nil; ours {
				continue
			}
		}
		d, again := m.mendOne(ctx, name)
		switch {
		case again != nil:
			err, ours = removalError(name, again), errors.Is(again, errOurs)
		case d == nil || d.gone == nil: // somebody else was quicker
			return Removed{Name: name}, nil
		default:
			return *d.gone, nil
		}
	}
	return Removed{}, err
}

// errOurs says that a removal which failed could not even be left to others.
var errOurs = errors.New("and its record still names this process")

// leave lets others finish a removal that has failed with err.
func (m *Manager) leave(ctx context.Context, name string, err error) error {
	if derr := m.disown(context.WithoutCancel(ctx), name); derr != nil && !isNotFound(derr) {
		return errors.Join(err, derr, errOurs)
	}
	return err
}
