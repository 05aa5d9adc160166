package learn

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"reprise/internal/event"
	"reprise/internal/learn/sign"
	"reprise/internal/recall"
)

// Recalled is a past recall along with a prompt: what was asked and served, and
// what became of it in the session.
type Recalled struct {
	Event   string             `json:"event"`
	Time    time.Time          `json:"time"`
	Reader  recall.Reader      `json:"reader"`
	Query   string             `json:"query"`
	Policy  string             `json:"policy,omitempty"` // that ranked
	Items   []event.ServedItem `json:"items"`
	Told    []string           `json:"told,omitempty"`    // what the session had been told before
	Used    []string           `json:"used,omitempty"`    // of the items: mentioned again later, or said to be useful
	Useless []string           `json:"useless,omitempty"` // of the items: said to be of no use
	Outcome string             `json:"outcome"`           // of the session, see Stats
}

// Scope is whose recall it was.
func (r Recalled) Scope() PolicyScope {
	return PolicyScope{Project: r.Reader.Project, Role: r.Reader.Role}
}

const (
	rowRecall = "recall" // a recall along with a prompt
	recallAll = "all"
)

// feedbackRows hand on what the session says about recall itself.
func (c *composer) feedbackRows() {
	var told []string
	var served []*record
	var ended int64
	for _, r := range c.s.recs {
		switch r.typ {
		case event.SessionEnded:
			ended = r.at
		case event.PolicyChanged:
			c.policyRow(r)
		case event.RecallServed:
			served = append(served, r)
		case event.QuestionAnswered:
			c.answerRow(r)
		}
	}
	if c.name == "" {
		return
	}
	for _, r := range served {
		var d event.ServedData
		decode(r.extra, &d)
		switch {
		case startsTelling(d.At):
			told = nil // whatever was told is told anew
		case d.At == "prompt":
			c.recallRow(r, d, told)
		}
		for _, it := range d.Items {
			told = append(told, it.ID)
		}
		if startsTelling(d.At) {
			c.out.told = nil
		}
		if !d.HeldOut && r.at >= ended {
			for _, it := range d.Items {
				c.out.told = append(c.out.told, it.ID)
			}
		}
	}
}

// startsTelling says that whatever a session was told before, it does not have
// before it any more.
func startsTelling(at string) bool { return at == "session_start" || at == "compact" }

// keepTold notes what a session that goes on has been told.
func (f *folder) keepTold(key string, ids []string) error {
	old, had, err := f.tx.Load(bucketTold, key)
	if err != nil {
		return err
	}
	if len(ids) == 0 {
		if !had {
			return nil
		}
		return f.tx.Drop(bucketTold, key)
	}
	now := []byte(strings.Join(ids, "\n"))
	if had && bytes.Equal(old, now) {
		return nil
	}
	return f.tx.Store(bucketTold, key, now)
}

// Told are the ids of what a session that goes on has been told, as far as the log
// was taken in.
func (o *Organizer) Told(ctx context.Context, client, session string) ([]string, error) {
	key, _ := sessionKey(&event.Event{Client: client, Session: session})
	var ids []string
	err := o.store.View(ctx, func(tx Tx) error {
		b, ok, err := tx.Load(bucketTold, key)
		if ok {
			ids = strings.Split(string(b), "\n")
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read what the session was told: %w", err)
	}
	return ids, nil
}

func (c *composer) recallRow(r *record, d event.ServedData, told []string) {
	if d.HeldOut || len(d.Items) == 0 || strings.TrimSpace(d.Query) == "" {
		return
	}
	who := recall.Reader{Project: r.project, Session: c.name, Client: r.client, Agent: r.agent, Role: r.role}
	if !isProject(r.project) && r.project != "" {
		who.Project, who.Places = "", []string{r.project}
	}
	row := Recalled{
		Event: r.id, Time: r.time(), Query: d.Query, Policy: d.Policy, Items: d.Items, Told: slices.Clone(told), Outcome: c.s.stats.Outcome,
		Reader: who,
	}
	for _, u := range c.s.recs {
		if u.typ != event.RecallUsed || u.at < r.at {
			continue
		}
		var d event.UsedData
		decode(u.extra, &d)
		if !slices.ContainsFunc(row.Items, func(it event.ServedItem) bool { return it.ID == d.ID }) {
			continue
		}
		switch d.How {
		case "useless":
			row.Useless = appendNew(row.Useless, d.ID, 100)
		default:
			row.Used = appendNew(row.Used, d.ID, 100)
		}
	}
	c.add(rowRecall, recallAll, sortKey(r.at, c.key, sign.Hash(r.id)), row)
}

// recallSpan is how long the first digits of a row's time stand for, 1e15 ns or
// eleven and a half days: the newest rows are found without reading all.
const (
	recallDigits = 4
	recallSpans  = 32 // about a year
)

// Recalls are past recalls for which want is true, the newest first, at most so
// many and at most about a year old.
func (o *Organizer) Recalls(ctx context.Context, most int, want func(Recalled) bool) ([]Recalled, error) {
	var out []Recalled
	err := o.store.View(ctx, func(tx Tx) error {
		now := nanos(o.o.Now())
		for span := range int64(recallSpans) {
			at := now - (span-1)*1e15 // clocks differ: a little of what is to come is looked at, too
			if at < 0 || len(out) >= most {
				break
			}
			var chunk []Recalled
			err := tx.EachKV(bucketRow, rowRecall+"\t"+recallAll+"\t"+fmt.Sprintf("%019d", at)[:recallDigits], func(_ string, v []byte) bool {
				var r Recalled
				if json.Unmarshal(v, &r) == nil && want(r) {
					chunk = append(chunk, r)
				}
				return true
			})
			if err != nil {
				return err
			}
			slices.Reverse(chunk)
			out = append(out, chunk...)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read past recalls: %w", err)
	}
	return out[:min(len(out), most)], nil
}
