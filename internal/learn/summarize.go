package learn

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"reprise/internal/event"
	"reprise/internal/learn/sign"
	"reprise/internal/recall"
)

// Summarizer writes a summary in place of the extractive one: a model that was
// configured. What it returns becomes an event, so that a rebuild needs no model.
type Summarizer interface {
	// Summarize returns the summary and the name of what wrote it.
	Summarize(ctx context.Context, in SummaryInput) (text, by string, err error)
}

// SummaryInput is what a summary is written from.
type SummaryInput struct {
	Session  string
	Client   string
	Project  string
	Extract  string   // the extractive summary
	Episodes []string // titles of the session's episodes, in order of time
}

// Recorded is the data of episode.recorded: a text about a session that was not
// worked out from the log but written.
type Recorded struct {
	Kind string `json:"kind"` // KindWritten
	Text string `json:"text"`
	By   string `json:"by,omitempty"` // model or person
}

// KindWritten is the kind of a recorded text that is a session's summary.
const KindWritten = "summary"

// Why a session gets no written summary.
var (
	ErrHasSummary = errors.New("the session has a written summary")
	ErrNoSummary  = errors.New("the session has no summary yet: it goes on, or nothing was done in it")
)

// lookBack is how many sessions Unwritten looks at for each that it gives.
const lookBack = 20

// Unwritten are the sessions since then that have ended, were worked in and have
// no written summary, the newest first, at most so many.
func (o *Organizer) Unwritten(ctx context.Context, since time.Time, most int) ([]Stats, error) {
	var all []Stats
	err := o.SessionStats(ctx, func(st Stats) bool {
		if st.Session != "" && st.Prompts > 0 && !st.End.Before(since) {
			all = append(all, st)
		}
		return true
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(all, func(a, b Stats) int {
		return cmp.Or(b.End.Compare(a.End), cmp.Compare(a.Client, b.Client), cmp.Compare(a.Session, b.Session))
	})
	var out []Stats
	for i, st := range all {
		if len(out) == most || i == most*lookBack {
			break
		}
		switch _, _, err := o.summaryInput(ctx, st); {
		case err == nil:
			out = append(out, st)
		case !errors.Is(err, ErrHasSummary) && !errors.Is(err, ErrNoSummary):
			return nil, err
		}
	}
	return out, nil
}

// Summarize has the summary of a session written, and records it by append as an
// event of that session, which the next run takes in. Where it fails nothing is
// recorded, and the extractive summary stands. Errors of its own are
// [ErrHasSummary] and [ErrNoSummary].
func (o *Organizer) Summarize(ctx context.Context, m Summarizer, st Stats, append func(context.Context, event.Event) error) (by string, err error) {
	in, acl, err := o.summaryInput(ctx, st)
	if err != nil {
		return "", fmt.Errorf("summarise session %s: %w", st.Session, err)
	}
	text, by, err := m.Summarize(ctx, in)
	if err != nil {
		return "", fmt.Errorf("summarise session %s: %w", st.Session, err)
	}
	if text == "" {
		return "", fmt.Errorf("summarise session %s: %s wrote nothing", st.Session, by)
	}
	data, err := json.Marshal(Recorded{Kind: KindWritten, Text: sign.Clip(text, 4000), By: by})
	if err != nil {
		return "", fmt.Errorf("summarise session %s: %w", st.Session, err)
	}
	// Its time is that of the session, which it must not make longer; its id is the
	// same for all who summarise it at once.
	key, _ := sessionKey(&event.Event{Client: st.Client, Session: st.Session})
	err = append(ctx, event.Event{
		ID: derivedID(st.End, "summary", key), TS: st.End, Type: event.EpisodeRecorded, Scope: event.ScopeSession,
		Project: st.Project, Session: st.Session, Client: st.Client, ACL: acl, Data: data,
	})
	if err != nil {
		return "", fmt.Errorf("summarise session %s: record it: %w", st.Session, err)
	}
	return by, nil
}

// summaryInput is what is known of the session, and who may read all of it.
func (o *Organizer) summaryInput(ctx context.Context, st Stats) (in SummaryInput, acl []string, err error) {
	in = SummaryInput{Session: st.Session, Client: st.Client, Project: st.Project}
	key, _ := sessionKey(&event.Event{Client: st.Client, Session: st.Session})
	err = o.store.View(ctx, func(tx Tx) error {
		var m made
		b, _, err := tx.Load(bucketMade, "s"+key)
		if err == nil {
			err = m.decode(b)
		}
		if err != nil {
			return err
		}
		var docs []recall.Doc
		for id := range m.Docs {
			d, ok, err := tx.Get(id)
			if err != nil {
				return err
			}
			if ok {
				docs = append(docs, d)
			}
		}
		sortDocs(docs)
		for _, d := range docs {
			if d.Class == recall.ClassSummary {
				in.Extract, acl = d.Text, d.ACL
			} else {
				in.Episodes = append(in.Episodes, d.Title)
			}
		}
		f := &folder{o: &Organizer{cache: cache{sessions: map[string][]*record{}}}, tx: tx}
		recs, err := f.records(key)
		if err != nil {
			return err
		}
		if _, text := writtenIn(recs); text != "" {
			return ErrHasSummary
		}
		return nil
	})
	if err == nil && in.Extract == "" {
		err = ErrNoSummary
	}
	return in, acl, err
}
