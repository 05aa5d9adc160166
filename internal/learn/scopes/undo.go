package scopes

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"reprise/internal/event"
	"reprise/internal/learn"
	"reprise/internal/learn/sign"
	"reprise/internal/mdfile"
	"reprise/internal/memory"
)

// opSetAside is the op of a memory.written event that holds what left its file when it
// was forgotten.
const opSetAside = "set_aside"

// aside is what such an event holds, in MemoryData.Item. Its texts stand in it as they
// are, so that a purge of the same words finds them.
type aside struct {
	Entry    *mdfile.Entry `json:"entry,omitempty"`
	Headings string        `json:"headings,omitempty"` // of a section
	Text     string        `json:"text,omitempty"`     // of a section
}

// setAside keeps in the log what is about to leave its file.
func (s *Scopes) setAside(ctx context.Context, f pendingItem, keep bool) error {
	var a aside
	switch {
	case !keep:
		return nil
	case f.Kind == FoundEntry && f.Entry != nil:
		a.Entry = f.Entry
	case f.Kind == FoundSection && f.Passage != nil:
		a.Headings, a.Text = f.Passage.Headings, f.Passage.Text
	default:
		return nil
	}
	item, err := json.Marshal(a)
	if err != nil {
		return fmt.Errorf("forget %s: %w", f.ID, err)
	}
	_, err = s.note(ctx, event.MemoryWritten, f.Project, event.MemoryData{Op: opSetAside, ID: f.ID, Name: f.Name, By: byHand, Item: item}, f.ACL, nil)
	return err
}

// lost is an item that the logs say was forgotten, and that this was not taken back.
type lost struct {
	id, project string
	stones      []tombstone
	file        string // that it left
	was         *aside
}

// Unforget takes a forgetting back: of the item, and of all that went with it then. What
// was worked out from the log is worked out again; an entry comes back with another id,
// since the tombstone in its file holds for good; a section comes back at the end of its
// file. What was purged is not there to be brought back.
func (s *Scopes) Unforget(ctx context.Context, id, reason string) (Change, error) {
	unlock, err := s.alone(ctx)
	if err != nil {
		return Change{}, err
	}
	defer unlock()
	list, err := s.forgottenWith(ctx, strings.TrimSpace(id))
	if err != nil {
		return Change{}, err
	}
	c := Change{Op: learn.OpRestore, ID: list[0].id, Old: list[0].id, Scope: scopeOf(list[0].project), Project: list[0].project}
	reason = sign.Clip(s.sweep(reason), 400)
	for i, f := range list {
		now, ev, warnings, err := s.bringBack(ctx, f, reason)
		if err != nil {
			return c, fmt.Errorf("take back that %s was forgotten: %w; what is back stays, and the same command goes on", f.id, err)
		}
		c.Warnings = append(c.Warnings, warnings...)
		switch {
		case i == 0:
			c.ID, c.Event, c.File = now, ev, f.file
		default:
			c.Also = append(c.Also, now)
		}
	}
	if err := s.fresh(ctx); err != nil {
		return c, err
	}
	if f, err := s.Find(ctx, c.ID); err == nil {
		c.Text = f.Doc.Title
	} else {
		c.Warnings = append(c.Warnings, "it is not forgotten any more, and the logs have not enough to work it out again")
	}
	return c, nil
}

// bringBack takes back what one item's tombstones say. The file comes first: where this
// is killed between the two, the next one finds it there.
func (s *Scopes) bringBack(ctx context.Context, f lost, reason string) (now, ev string, warnings []string, err error) {
	now = f.id
	switch {
	case f.was == nil:
	case f.was.Entry != nil:
		e, err := s.entries(f.project)
		if err != nil {
			return now, "", nil, err
		}
		a, err := e.Restore(ctx, *f.was.Entry)
		if err != nil {
			return now, "", nil, err
		}
		now, warnings = a.ID, a.Warnings
		s.touch(f.project, a.File)
	case f.was.Text != "":
		st, err := s.store(f.project)
		if err != nil {
			return now, "", nil, err
		}
		text := strings.TrimSpace(f.was.Text)
		if doc, _, err := st.Read(ctx, f.file, 0, math.MaxInt32); err == nil && strings.Contains(doc.Content, text) {
			break // it was brought back before, and this was killed
		}
		text = "\n" + text + "\n"
		if f.was.Headings != "" {
			text = "\n## " + last(f.was.Headings) + "\n" + text
		}
		if _, err := st.AppendFile(ctx, f.file, text); err != nil {
			return now, "", nil, err
		}
		warnings = append(warnings, "the section stands at the end of "+f.file+" now: where it stood is not known any more")
		s.touch(f.project, f.file)
	}
	for _, t := range f.stones {
		data := event.MemoryData{Op: learn.OpRestore, ID: f.id, To: t.data.From, By: byHand, Reason: reason, Hash: t.data.Hash, Name: f.file, Supersedes: t.event.ID}
		if ev, err = s.note(ctx, event.MemoryRetired, t.project, data, t.event.ACL, nil); err != nil {
			return now, ev, warnings, err
		}
	}
	return now, ev, warnings, nil
}

// forgottenWith are an item that was forgotten, and what went with it, as the logs say.
func (s *Scopes) forgottenWith(ctx context.Context, id string) ([]lost, error) {
	var stones []tombstone
	back, purged, known := map[string]bool{}, map[string]bool{}, false
	asides := map[string]*aside{}
	err := s.eachChange(func(project string, e event.Event, d event.MemoryData) {
		switch {
		case e.Type == event.MemoryPurged:
			purged[d.ID] = true
		case e.Type == event.MemoryWritten && d.Op == opSetAside:
			var a aside
			if json.Unmarshal(d.Item, &a) == nil {
				asides[d.ID] = &a
			}
		case e.Type == event.MemoryRetired && d.Op == learn.OpRestore:
			back[d.Supersedes] = true
		case e.Type == event.MemoryRetired && d.Op == learn.OpForget && visible(s.o.Who, e.ACL):
			stones = append(stones, tombstone{project, e, d})
			known = known || d.ID == id
		}
	})
	if err != nil {
		return nil, err
	}
	stones = slices.DeleteFunc(stones, func(t tombstone) bool { return back[t.event.ID] })
	parents := map[string]bool{}
	for _, t := range stones {
		if t.data.ID == id {
			parents[t.event.ID] = true
		}
	}
	switch {
	case purged[id]:
		return nil, fmt.Errorf("%w: what %s was made from was purged, and is in no log any more; say it anew: `reprise memory learn \"…\"`", memory.ErrContent, sign.Clip(id, 60))
	case !known:
		return nil, fmt.Errorf("%w: the logs here do not say that %s was forgotten; `reprise events list --type memory.retired` shows what was", memory.ErrNotFound, sign.Clip(id, 60))
	case len(parents) == 0:
		return nil, fmt.Errorf("%w: that %s was forgotten has been taken back already", memory.ErrExists, sign.Clip(id, 60))
	}
	var out []lost
	add := func(t tombstone) {
		i := slices.IndexFunc(out, func(f lost) bool { return f.id == t.data.ID && f.project == t.project })
		if i < 0 {
			i = len(out)
			out = append(out, lost{id: t.data.ID, project: t.project, file: t.data.Name, was: asides[t.data.ID]})
		}
		out[i].stones = append(out[i].stones, t)
	}
	for _, t := range stones {
		if t.data.ID == id {
			add(t)
		}
	}
	for _, t := range stones {
		if t.data.ID != id && parents[t.event.Parent] {
			add(t)
		}
	}
	return out, ctx.Err()
}

// last is the innermost of a section's headings.
func last(headings string) string {
	list := strings.Split(headings, " > ")
	return list[len(list)-1]
}
