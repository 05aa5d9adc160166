package scopes

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"reprise/internal/event"
	"reprise/internal/learn"
	"reprise/internal/mdfile"
	"reprise/internal/recall"
)

// Account is all that is known of an item: why it counts what it counts, what
// happened to it, and what says otherwise.
type Account struct {
	learn.Reasons
	Status     string     `json:"status"` // active, superseded, candidate, forgotten or gone
	Supersedes string     `json:"supersedes,omitempty"`
	Superseded string     `json:"superseded_by,omitempty"`
	MadeFrom   string     `json:"made_from,omitempty"` // an entry's source: hand, pattern:<id>, …
	History    []Step     `json:"history,omitempty"`   // the newest last
	Conflicts  []Conflict `json:"conflicts,omitempty"`
	Kin        []string   `json:"kin,omitempty"` // ids of what says the same elsewhere
}

// Step is one thing that happened to an item.
type Step struct {
	Time   time.Time `json:"time"`
	Op     string    `json:"op"`
	From   string    `json:"from,omitempty"`
	To     string    `json:"to,omitempty"`
	By     string    `json:"by,omitempty"`
	Reason string    `json:"reason,omitempty"`
	ID     string    `json:"id,omitempty"` // of the item that came of it
	Event  string    `json:"event"`
}

// Why explains an item. What was forgotten or corrected is explained from the
// log, as far as the log has it.
func (s *Scopes) Why(ctx context.Context, id string) (Account, error) {
	if err := s.fresh(ctx); err != nil {
		return Account{}, err
	}
	f, err := s.Find(ctx, id)
	if err != nil {
		return s.whyGone(ctx, id, err)
	}
	d := f.Doc
	x := Account{Status: cmp.Or(string(d.Status), mdfile.StatusActive)}
	x.Reasons, err = learn.New(learn.Options{Index: s.o.Index, Now: s.o.Now}).Reasons(ctx, d.ID)
	if err != nil && !errors.Is(err, learn.ErrUnknown) {
		return x, err
	}
	x.Doc = d // as it stands in its file, which the index may not have seen yet
	if len(x.Path) == 0 {
		x.Path = learn.ScopePath(d)
	}
	if f.Kind == FoundEntry {
		x.Supersedes, x.MadeFrom = f.Entry.Supersedes, f.Entry.Source
		if f.Entry.State.Status == mdfile.StatusSuperseded {
			x.Superseded = f.Entry.State.By
		}
		x.Reasons.Evidence = nil
		for _, id := range f.Entry.Evidence {
			x.Reasons.Evidence = append(x.Reasons.Evidence, learn.Evidence{Event: id})
		}
	}
	kin, err := s.kin(ctx, f)
	if err != nil {
		return x, err
	}
	for _, k := range kin {
		x.Kin = append(x.Kin, k.Doc.ID)
	}
	if x.Conflicts, err = s.against(ctx, d); err != nil {
		return x, err
	}
	if f.Kind == FoundEntry {
		rivals, err := s.rivalsOf(ctx, d.ID)
		if err != nil {
			return x, err
		}
		x.Conflicts = append(x.Conflicts, rivals...)
	}
	s.history(&x, d.ID, d.Source, f.Entry.ID)
	return x, nil
}

// history fills in what the logs have about the ids of an item and about the
// events that are its evidence.
func (s *Scopes) history(x *Account, ids ...string) {
	if s.o.Events == nil {
		return
	}
	var f fate
	for _, p := range s.places() {
		for e, err := range event.Read(s.o.Events(p)) {
			if err != nil || !visible(s.o.Who, e.ACL) {
				continue // `reprise events verify` tells of lines that cannot be read
			}
			for i := range x.Reasons.Evidence {
				w := &x.Reasons.Evidence[i]
				if w.Event == e.ID && w.Type == "" {
					w.Type, w.Time = string(e.Type), e.TS
				}
			}
			if e.Type == event.MemoryWritten || e.Type == event.MemoryPromoted || e.Type == event.MemoryRetired {
				s.step(x, &f, e, ids)
			}
		}
	}
	slices.SortStableFunc(x.History, func(a, b Step) int { return a.Time.Compare(b.Time) })
	if slices.ContainsFunc(f.stones, func(id string) bool { return !slices.Contains(f.back, id) }) {
		x.Status, x.Forgotten = "forgotten", true
	}
}

// fate are the events that say that an item was forgotten, and those of them that were
// taken back. Logs of several machines have them in any order.
type fate struct{ stones, back []string }

func (s *Scopes) step(x *Account, f *fate, e event.Event, ids []string) {
	var d event.MemoryData
	if json.Unmarshal(e.Data, &d) != nil {
		return
	}
	about := func(id string) bool { return id != "" && slices.Contains(ids, id) }
	from := strings.Contains(d.Reason, ":"+x.Doc.ID+")") // promoted from it
	if !about(d.ID) && !about(d.Supersedes) && !from {
		return
	}
	st := Step{Time: e.TS, Op: d.Op, From: d.From, To: d.To, By: d.By, Reason: d.Reason, Event: e.ID}
	if d.ID != x.Doc.ID {
		st.ID = d.ID
	}
	if e.Type == event.MemoryRetired && d.ID == x.Doc.ID {
		switch d.Op {
		case learn.OpCorrect:
			x.Superseded, x.Status = cmp.Or(d.Supersedes, x.Superseded), mdfile.StatusSuperseded
		case learn.OpForget:
			f.stones = append(f.stones, e.ID)
		case learn.OpRestore:
			f.back = append(f.back, d.Supersedes)
		case learn.OpDemote:
			x.Status = "demoted"
		}
		x.Doc.Title = cmp.Or(x.Doc.Title, d.Text)
	}
	x.History = append(x.History, st)
}

// whyGone explains what only the log knows.
func (s *Scopes) whyGone(ctx context.Context, id string, cause error) (Account, error) {
	x := Account{Status: "gone"}
	x.Doc.ID, x.Doc.Source = id, "the event log"
	s.history(&x, id)
	if len(x.History) == 0 || ctx.Err() != nil {
		return Account{}, cause
	}
	last := x.History[len(x.History)-1]
	x.Doc.Scope = cmp.Or(last.From, last.To)
	return x, nil
}

// ByKind reports whether the importance of a class is that of what it is and who said it:
// its signals say nothing of it, and use counts beside it.
func ByKind(class recall.Class) bool {
	switch class {
	case recall.ClassDecision, recall.ClassLearning, recall.ClassProfile, recall.ClassState:
		return true
	}
	return false
}
