package workspace

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"reprise/internal/proc"
)

// Holder is who works in a workspace: as long as the process runs, or the run has
// not ended. One of the two is enough.
type Holder struct {
	Process proc.ID `json:"process,omitzero"`
	Run     string  `json:"run,omitempty"`
	What    string  `json:"what"` // a word for people: run, loop, shell, tmux
	// Shared says that others may work there too: a person who looks around.
	Shared bool      `json:"shared,omitempty"`
	Since  time.Time `json:"since"`
}

func (h Holder) String() string {
	who := h.What
	if h.Run != "" {
		who += " " + h.Run
	}
	if !h.Process.IsZero() {
		who += fmt.Sprintf(" (process %d)", h.Process.PID)
	}
	return strings.TrimSpace(who)
}

func (h Holder) same(o Holder) bool {
	return h.Process == o.Process && h.Run == o.Run && h.What == o.What
}

func (m *Manager) alive(h Holder) bool {
	if !h.Process.IsZero() && h.Process.Alive() {
		return true
	}
	return h.Run != "" && m.o.RunLive != nil && m.o.RunLive(h.Run)
}

// live are the holders that are there now.
func (m *Manager) live(w *Workspace) []Holder {
	var out []Holder
	for _, h := range w.Holders {
		if m.alive(h) {
			out = append(out, h)
		}
	}
	return out
}

// Lease is one holder's right to work in a workspace. It needs no renewing: it ends
// with what it is held by, however that ends.
type Lease struct {
	m    *Manager
	name string
	held []Holder
}

// Lease takes the right to work in a workspace. h.Process is usually the calling
// process ([proc.Self]), and h.Since need not be set. Where another holder that is
// not Shared is there, and h is not either, it is ErrLive. A workspace that is not
// finished, or whose directory is gone, is refused.
func (m *Manager) Lease(ctx context.Context, name string, h Holder) (*Lease, error) {
	h.Since = m.now()
	if _, err := m.Refind(ctx, name); err != nil {
		return nil, fmt.Errorf("work in workspace %s: %w", name, err)
	}
	w, err := m.hold(ctx, name, func(w *Workspace) error {
		if err := m.usable(w); err != nil {
			return err
		}
		return m.admit(w, h, nil)
	})
	if err != nil {
		return nil, fmt.Errorf("work in workspace %s: %w", name, err)
	}
	return &Lease{m: m, name: w.Name, held: []Holder{h}}, nil
}

// usable says why nobody can work in a workspace.
func (m *Manager) usable(w *Workspace) error {
	switch i := m.Look(*w); i.Status {
	case "unfinished":
		return fmt.Errorf("%w: %s", ErrUnfinished, i.Note)
	case string(Making), string(Removing):
		return fmt.Errorf("%w: process %d", ErrBusy, w.By.PID)
	case "missing":
		return fmt.Errorf("%w: %s: %s", ErrMissing, w.Dir, i.Note)
	}
	return nil
}

// admit adds a holder, and forgets those that are gone.
func (m *Manager) admit(w *Workspace, h Holder, own []Holder) error {
	w.Holders = m.live(w)
	for _, o := range w.Holders {
		if !o.Shared && !h.Shared && !slices.ContainsFunc(own, o.same) {
			return fmt.Errorf("%w: %s, since %s", ErrLive, o, o.Since.Format(time.RFC3339))
		}
	}
	if !slices.ContainsFunc(w.Holders, h.same) {
		w.Holders = append(w.Holders, h)
	}
	return nil
}

// Add lets another process or run work under the lease, such as the run that was
// started in the workspace: the lease then outlasts the process that took it.
func (l *Lease) Add(ctx context.Context, h Holder) error {
	h.Since = l.m.now()
	_, err := l.m.hold(ctx, l.name, func(w *Workspace) error { return l.m.admit(w, h, l.held) })
	if err != nil {
		return fmt.Errorf("work in workspace %s: %w", l.name, err)
	}
	l.held = append(l.held, h)
	return nil
}

// Release gives the lease up, with everything that was added to it. A workspace
// that is gone is no error.
func (l *Lease) Release(ctx context.Context) error {
	_, err := l.m.hold(ctx, l.name, func(w *Workspace) error {
		w.Holders = slices.DeleteFunc(w.Holders, func(h Holder) bool { return slices.ContainsFunc(l.held, h.same) })
		return nil
	})
	if err != nil && !isNotFound(err) {
		return fmt.Errorf("leave workspace %s: %w", l.name, err)
	}
	l.held = nil
	return nil
}

// Remove is [Manager.Remove] by who holds the lease, which ends with it. Where it is
// refused the lease stays.
func (l *Lease) Remove(ctx context.Context, o RemoveOptions) (Removed, error) {
	return l.m.remove(ctx, l.name, o, l.held)
}

// RemoveLater is Remove beside what the caller does next. When it returns without an
// error the removal is written down: should the process end before it is done, the next
// command that makes or removes workspaces finishes it. then is told what came of it;
// [Manager.Wait] waits for all that were begun. The end of ctx does not end it.
func (l *Lease) RemoveLater(ctx context.Context, o RemoveOptions, then func(Removed, error)) error {
	w, notes, done, err := l.m.beginRemoval(ctx, l.name, o, l.held)
	if err != nil {
		return err
	}
	if done != nil {
		then(*done, nil)
		return nil
	}
	l.m.later.Go(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), gitTime)
		defer cancel()
		out, err := l.m.endRemoval(ctx, w)
		if Passing(err) {
			out, err = l.m.removeAgain(ctx, w.Name, err)
		}
		out.Notes = append(notes, out.Notes...)
		then(out, err)
	})
	return nil
}

// Wait waits for the removals that this manager does beside other work.
func (m *Manager) Wait() { m.later.Wait() }

// Keep says that a workspace is to stay although its work is done, and why; "" takes
// that back. Nothing else is changed: it keeps programs that clean up from it, and
// not people.
func (m *Manager) Keep(ctx context.Context, name, why string) error {
	if _, err := m.change(ctx, name, func(w *Workspace) error { w.Kept = why; return nil }); err != nil {
		return fmt.Errorf("keep workspace %s: %w", name, err)
	}
	return nil
}
