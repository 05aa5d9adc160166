package session

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"reprise/internal/agent/dialect"
	"reprise/internal/durable"
	"reprise/internal/event"
	"reprise/internal/hook"
	"reprise/internal/hook/plan"
	"reprise/internal/redact/suspect"
)

// What a session was told is not told to it again until its client forgets it.
// That stands in a file of its own and not in the index: a prompt then only reads
// the index, which costs half of what writing it does, and a rebuild of the index
// does not make a running session hear everything twice. Each note replaces the
// one before; of two hooks of one session at the same time one may go missing,
// and then something is told twice.
const (
	toldExt   = ".told"
	toldMax   = 64 << 10            // bytes of a note; the oldest ids go first
	toldKeeps = 30 * 24 * time.Hour // since the session was told something
)

func (t *Teller) toldFile(ev dialect.Event) string {
	return toldFile(t.Memory.o.Home.Paths.State, ev.Client, ev.Session)
}

func toldFile(state, client, session string) string {
	return filepath.Join(state, "sessions", plan.Key{Dir: client, Vars: session}.Name()+toldExt)
}

// toldHead names the session: two may share a file's name.
func toldHead(ev dialect.Event) string { return ev.Client + "\n" + ev.Session + "\n" }

// told are the ids of what the session was told. Without a note, or with one that
// cannot be read, it is what the log says of it.
func (t *Teller) told(ctx context.Context, ev dialect.Event) []string {
	data, err := plan.ReadFile(t.toldFile(ev), toldMax+4096)
	rest, ok := strings.CutPrefix(string(data), toldHead(ev))
	if err != nil || !ok {
		ids, err := t.Memory.Organizer.Told(ctx, ev.Client, ev.Session)
		if err != nil {
			t.Warn("the session may be told something twice", err)
		}
		return ids
	}
	return strings.FieldsFunc(rest, func(r rune) bool { return r == '\n' })
}

// note puts ids behind those that the session was told before.
func (t *Teller) note(ev dialect.Event, before []string, items []event.ServedItem) {
	if strings.ContainsRune(ev.Session, '\n') || suspect.String(toldHead(ev)) {
		return // no client's ids are like that, and nothing of ours repeats a secret
	}
	ids := slices.Clone(before)
	for _, i := range items {
		if !strings.ContainsRune(i.ID, '\n') {
			ids = append(ids, i.ID)
		}
	}
	size := 0
	for i := len(ids) - 1; i >= 0; i-- {
		if size += len(ids[i]) + 1; size > toldMax {
			ids = ids[i+1:]
			break
		}
	}
	file := t.toldFile(ev)
	err := durable.MkdirAll(filepath.Dir(file), 0o700)
	if err == nil {
		err = durable.WriteFileHot(file, []byte(toldHead(ev)+strings.Join(ids, "\n")+"\n"), 0o600)
	}
	if err != nil {
		t.Warn("the session may be told something twice", err)
	}
}

// ForgetTold removes the note of a session that has ended.
func ForgetTold(state, client, session string) error {
	err := durable.Remove(toldFile(state, client, session))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// SweepTold removes the notes of sessions in which nothing has happened for long:
// what they were told, what their events belong to, where they began, and what is to be said and was
// left of their agent's state.
func SweepTold(state string, now time.Time) error {
	dir := filepath.Join(state, "sessions")
	list, err := durable.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range list {
		if ext := filepath.Ext(e.Name()); ext != toldExt && ext != hook.TurnExt && ext != hook.DirExt && ext != noteExt && ext != leftExt {
			continue
		}
		info, err := e.Info()
		if err != nil || !info.Mode().IsRegular() || now.Sub(info.ModTime()) < toldKeeps {
			continue
		}
		if err := durable.Remove(filepath.Join(dir, e.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
