package scopes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"strings"
	"time"

	"reprise/internal/durable"
	"reprise/internal/event"
	"reprise/internal/learn"
	"reprise/internal/mdfile"
	"reprise/internal/memory"
)

// What is being forgotten stands in a file until all of it is done: from the moment
// that the file is there it will be done, by whoever comes next where this process
// is killed. Without one, a kill between the tombstone and the end would leave an
// item half gone until somebody says it again.

const (
	pendingVersion = 1
	pendingExt     = ".json"
	forgetLock     = "forget.lock"
)

// pending is a forgetting that has begun.
type pending struct {
	V       int           `json:"v"`
	At      time.Time     `json:"at"`
	ID      string        `json:"id"` // of the item that was named
	Scope   string        `json:"scope"`
	Project string        `json:"project,omitempty"`
	Text    string        `json:"text,omitempty"`
	Reason  string        `json:"reason,omitempty"`
	Items   []pendingItem `json:"items,omitempty"`
	// Evidence is what a purge takes out of the logs; nil = none was asked for.
	Evidence *evidence `json:"evidence,omitempty"`

	file string
}

// pendingItem is one item that goes: the first is the one that was named, the
// others go with it.
type pendingItem struct {
	ID       string          `json:"id"`
	Kind     string          `json:"kind"`
	Project  string          `json:"project,omitempty"`
	Scope    string          `json:"scope"`
	Name     string          `json:"name,omitempty"` // file
	Passage  *memory.Passage `json:"passage,omitempty"`
	Hash     string          `json:"hash,omitempty"`
	ACL      []string        `json:"acl,omitempty"`
	Evidence []string        `json:"evidence,omitempty"`
	Entry    *mdfile.Entry   `json:"entry,omitempty"` // as it was, to be taken back

	tombstone string // the log has it already
}

func itemOf(f Found) pendingItem {
	i := pendingItem{ID: f.Doc.ID, Kind: f.Kind, Project: f.Project, Scope: f.Scope(), Name: f.Entry.File + f.Passage.File, ACL: f.Doc.ACL, Evidence: evidenceOf(f)}
	switch f.Kind {
	case FoundDerived:
		i.Hash = learn.ContentKey(f.Doc)
	case FoundSection:
		i.Passage = &f.Passage
	case FoundEntry:
		i.Entry = &f.Entry.Entry
	}
	return i
}

// alone waits until nobody else is forgetting: what was found by two at once would
// be looked for in files that the other rewrites.
func (s *Scopes) alone(ctx context.Context) (unlock func() error, err error) {
	if s.o.Pending == "" {
		return func() error { return nil }, nil
	}
	if err := s.o.Disk.MkdirAll(s.o.Pending, 0o700); err != nil {
		return nil, fmt.Errorf("forget: %w", err)
	}
	if unlock, err = s.o.Disk.Lock(ctx, filepath.Join(s.o.Pending, forgetLock)); err != nil {
		return nil, fmt.Errorf("forget: %w", err)
	}
	if err := s.sweepNotes(); err != nil {
		return nil, errors.Join(fmt.Errorf("forget: %w", err), unlock())
	}
	return unlock, nil
}

// sweepNotes removes notes that were being written when their process was killed: they
// hold words that somebody wants gone. The lock is held, so nobody writes.
func (s *Scopes) sweepNotes() error {
	_, err := s.o.Disk.RemoveStale(s.o.Pending, time.Time{})
	return err
}

// intend writes down what is to be done.
func (s *Scopes) intend(p *pending) error {
	if s.o.Pending == "" {
		return nil
	}
	data, err := json.MarshalIndent(p, "", "  ")
	if err != nil {
		return fmt.Errorf("forget: %w", err)
	}
	p.file = filepath.Join(s.o.Pending, p.At.Format("20060102T150405.000000000Z")+pendingExt)
	if err := s.o.Disk.WriteFile(p.file, append(data, '\n'), 0o600); err != nil {
		return fmt.Errorf("forget: %w; nothing was forgotten", err)
	}
	return nil
}

func (s *Scopes) done(p *pending) error {
	if p.file == "" {
		return nil
	}
	if err := s.o.Disk.Remove(p.file); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("it is forgotten, but the note that it was to be is left over: %w", err)
	}
	return nil
}

// carryOut does what is to be done. It may have been done in part before.
func (s *Scopes) carryOut(ctx context.Context, p *pending, c *Change) error {
	if err := s.takeOut(ctx, p, c); err != nil || p.Evidence == nil {
		return err
	}
	return s.purge(ctx, p, c)
}

// takeOut sees to it that nothing serves the items any more.
func (s *Scopes) takeOut(ctx context.Context, p *pending, c *Change) error {
	var ids []string
	for i, item := range p.Items {
		one, err := s.forget(ctx, item, p.Reason, c.Event, p.Evidence == nil)
		if err != nil {
			return err
		}
		c.Warnings = append(c.Warnings, one.Warnings...)
		if i == 0 {
			c.Event, c.File = one.Event, one.File
		} else {
			c.Also = append(c.Also, item.ID)
		}
		if item.Kind == FoundDerived {
			ids = append(ids, item.ID)
		}
	}
	if err := s.drop(ctx, ids...); err != nil {
		return err
	}
	return s.o.Index.Refresh(ctx)
}

// Unfinished reports whether a forgetting that was begun is not done: by its
// process, or because that was killed. It costs a look at a directory.
func Unfinished(dir string) bool {
	names, _ := unfinished(dir)
	return len(names) > 0
}

func unfinished(dir string) ([]string, error) {
	if dir == "" {
		return nil, nil
	}
	list, err := durable.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var names []string
	for _, e := range list {
		if filepath.Ext(e.Name()) == pendingExt && !strings.HasPrefix(e.Name(), ".") {
			names = append(names, filepath.Join(dir, e.Name()))
		}
	}
	return names, err
}

// Finish does what a forgetting that was killed has left, and returns what it was
// of. With quick set it only sees to it that nothing is served any more, which takes
// milliseconds; more says that the rest is left for a call without. Where somebody
// is forgetting at the moment, nothing is done.
func (s *Scopes) Finish(ctx context.Context, quick bool) (done []Change, more bool, err error) {
	names, err := unfinished(s.o.Pending)
	if len(names) == 0 {
		return nil, false, err
	}
	unlock, err := s.o.Disk.TryLock(filepath.Join(s.o.Pending, forgetLock))
	if errors.Is(err, durable.ErrLocked) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("finish forgetting: %w", err)
	}
	defer unlock()
	if err := s.sweepNotes(); err != nil {
		return nil, false, fmt.Errorf("finish forgetting: %w", err)
	}
	names, err = unfinished(s.o.Pending) // another may have finished meanwhile
	for _, name := range names {
		c, left, ferr := s.finish(ctx, name, quick)
		if ferr != nil {
			err = errors.Join(err, fmt.Errorf("finish forgetting %s (%s): %w", c.ID, name, ferr))
			continue
		}
		if more = more || left; !left {
			done = append(done, c)
		}
	}
	return done, more, err
}

func (s *Scopes) finish(ctx context.Context, name string, quick bool) (c Change, more bool, err error) {
	data, err := durable.Read(name)
	if err != nil {
		return c, false, err
	}
	var p pending
	if err := json.Unmarshal(data, &p); err != nil {
		return c, false, fmt.Errorf("it cannot be read; forget again what it names, and remove it: %w", err)
	}
	if p.V != pendingVersion {
		return c, false, fmt.Errorf("it is of version %d, which this program does not know: use the newer reprise", p.V)
	}
	p.file = name
	c = Change{Op: "forget", ID: p.ID, Scope: p.Scope, Project: p.Project}
	if p.Evidence == nil {
		c.Text = p.Text
	}
	err = s.eachRetired(func(_ string, e event.Event, d event.MemoryData) {
		for i := range p.Items {
			if it := &p.Items[i]; d.Op == learn.OpForget && d.ID == it.ID && !e.TS.Before(p.At.Truncate(time.Second)) {
				it.tombstone = e.ID
			}
		}
	})
	if err != nil {
		return c, false, err
	}
	if quick && p.Evidence != nil {
		return c, true, s.takeOut(ctx, &p, &c)
	}
	if err := s.carryOut(ctx, &p, &c); err != nil {
		return c, false, err
	}
	return c, false, s.done(&p)
}

// finishForgetting takes out the entries that the log says are forgotten and whose
// file still has them: another machine forgot them, or an older version was killed
// between the two.
func (s *Scopes) finishForgetting(ctx context.Context) error {
	gone := map[string]string{} // id → reason
	back := map[string]bool{}   // what was forgotten, and taken back while its file still had it
	err := s.eachRetired(func(_ string, _ event.Event, d event.MemoryData) {
		switch {
		case !strings.HasPrefix(d.ID, "e-"):
		case d.Op == learn.OpForget:
			gone[d.ID] = d.Reason
		case d.Op == learn.OpRestore:
			back[d.ID] = true
		}
	})
	maps.DeleteFunc(gone, func(id, _ string) bool { return back[id] })
	if err != nil || len(gone) == 0 {
		return err
	}
	for _, p := range s.places() {
		e := s.o.Entries(p)
		if e == nil {
			continue
		}
		list, err := e.List(ctx)
		if err != nil {
			return fmt.Errorf("finish forgetting: %w", err)
		}
		for _, i := range list {
			reason, ok := gone[i.ID]
			if !ok || !i.Active() {
				continue
			}
			agent, _, _ := s.who()
			if _, err := e.Retire(ctx, i.ID, agent, reason); err != nil {
				return fmt.Errorf("finish forgetting %s: %w", i.ID, err)
			}
			s.touch(p, i.File)
		}
	}
	return nil
}
