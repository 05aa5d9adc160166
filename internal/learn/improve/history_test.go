package improve_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"reprise/internal/event"
	"reprise/internal/learn"
	"reprise/internal/learn/improve"
	"reprise/internal/recall"
)

// history is a log, and an index of what can be recalled, with a clock of its own.
type history struct {
	t     testing.TB
	dir   string
	now   time.Time
	index *recall.Index
	org   *learn.Organizer
	n     int
	fail  error // of the next event that is recorded
}

func newHistory(t testing.TB) *history {
	h := &history{t: t, dir: t.TempDir(), now: time.Date(2026, 9, 1, 9, 0, 0, 0, time.UTC)}
	h.open("index.db")
	return h
}

// open opens an index, of what the logs say and the notes of put.
func (h *history) open(name string) {
	now := func() time.Time { return h.now }
	h.index = recall.Open(recall.Options{IndexFile: filepath.Join(h.dir, name), MemoryDir: filepath.Join(h.dir, "memory"), Now: now})
	h.t.Cleanup(func() { h.index.Close() })
	h.org = learn.New(learn.Options{Index: h.index, Now: now, Logs: []learn.Log{{Dir: h.logs("")}, {Project: "shop", Dir: h.logs("shop")}}})
}

func (h *history) logs(project string) string { return filepath.Join(h.dir, "log-"+project) }

func (h *history) record(_ context.Context, e event.Event) error {
	if err := h.fail; err != nil {
		h.fail = nil
		return err
	}
	b := event.NewBroker(event.BrokerOptions{Events: h.logs, Host: "desk", Now: func() time.Time { return h.now }})
	_, err := b.Record(context.Background(), e)
	return err
}

func (h *history) add(e event.Event, data any) {
	h.t.Helper()
	h.now = h.now.Add(5 * time.Second)
	raw, err := json.Marshal(data)
	if err != nil {
		h.t.Fatal(err)
	}
	e.Data = raw
	if err := h.record(context.Background(), e); err != nil {
		h.t.Fatal(err)
	}
}

func (h *history) fold() {
	h.t.Helper()
	if _, err := h.org.Run(context.Background(), 0); err != nil {
		h.t.Fatal(err)
	}
}

func (h *history) put(docs ...recall.Doc) {
	h.t.Helper()
	err := h.index.Update(context.Background(), func(tx *recall.Tx) error {
		for _, d := range docs {
			if err := tx.Put(d); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		h.t.Fatal(err)
	}
}

var topics = []string{
	"postgres", "billing", "staging", "frontend", "invoice", "catalogue", "shipping", "warehouse", "payment", "customer", "search", "mailer", "scheduler", "gateway", "telemetry", "metrics", "backup",
	"archive", "session", "checkout", "coupon", "refund", "inventory", "supplier", "analytics", "dashboard", "webhook", "profile", "avatar", "locale",
}

// notes are two for each topic: one that important says everybody should know,
// and one that is of use.
func (h *history) notes() {
	var docs []recall.Doc
	at := time.Date(2026, 8, 1, 0, 0, 0, 0, time.UTC)
	for i, topic := range topics {
		docs = append(docs,
			recall.Doc{ID: fmt.Sprintf("loud-%d", i), Class: recall.ClassLearning, Scope: "global", Source: "x", Title: "about " + topic, Text: "The " + topic + " service restarts quickly after trouble overnight", Importance: 1, Confidence: 0.5, Time: at},
			recall.Doc{ID: fmt.Sprintf("used-%d", i), Class: recall.ClassLearning, Scope: "global", Source: "x", Title: "about " + topic, Text: "The " + topic + " service restarts slowly unless warmed beforehand", Importance: 0.1, Confidence: 0.5, Time: at},
		)
	}
	h.put(docs...)
}

// session plays a session: for a topic something is recalled by the policy in
// force, served, and the note of that prefix is used.
func (h *history) session(topic int, role, uses string, correct bool) {
	h.t.Helper()
	h.n++
	ctx := context.Background()
	name := fmt.Sprintf("s%d", h.n)
	e := event.Event{Scope: event.ScopeSession, Project: "shop", Session: name, Client: "claude", Role: role}
	put := func(typ event.Type, data any) { e.Type = typ; h.add(e, data) }
	query := "why does the " + topics[topic] + " service restart"
	put(event.PromptSubmitted, event.PromptData{Text: query})
	reader := recall.Reader{Project: "shop", Session: name, Client: "claude", Role: role}
	p, err := h.org.PolicyFor(ctx, learn.PolicyScope{Project: "shop", Role: role}, time.Time{})
	if err != nil {
		h.t.Fatal(err)
	}
	a, err := h.index.Recall(ctx, recall.Question{Text: query, Reader: reader, MaxTokens: 500, Policy: &p, Classes: []recall.Class{recall.ClassLearning}})
	if err != nil {
		h.t.Fatal(err)
	}
	d := event.ServedData{At: "prompt", Query: query, Policy: a.Policy}
	for _, r := range a.Results {
		d.Items = append(d.Items, event.ServedItem{ID: r.ID, Class: string(r.Class), Score: r.Score, Tokens: r.Tokens})
		d.Tokens += r.Tokens
	}
	put(event.RecallServed, d)
	if uses != "" {
		put(event.RecallUsed, event.UsedData{ID: fmt.Sprintf("%s-%d", uses, topic), How: "mentioned"})
	}
	put(event.ResponseCompleted, event.ResponseData{Text: "Done."})
	if correct {
		put(event.PromptSubmitted, event.PromptData{Text: "no, that is wrong, use the other one instead"})
		put(event.ResponseCompleted, event.ResponseData{Text: "Done."})
	}
}

func (h *history) tuner() *improve.Tuner {
	return improve.NewTuner(improve.Options{Index: h.index, Organizer: h.org, Record: h.record, Now: func() time.Time { return h.now }, MinUses: 6, Recalls: 12})
}

func (h *history) policies() []learn.PolicyVersion {
	h.t.Helper()
	h.fold()
	all, err := h.org.Policies(context.Background())
	if err != nil {
		h.t.Fatal(err)
	}
	return all
}

// work goes on until nothing is left to do, a little at a time.
func (h *history) work(s learn.PolicyScope) improve.Outcome {
	h.t.Helper()
	for range 5000 {
		h.fold()
		n := 0
		out, err := h.tuner().Work(context.Background(), s, func() bool { n++; return n > 200 })
		if err != nil {
			h.t.Fatal(err)
		}
		if out.Done {
			return out
		}
	}
	h.t.Fatal("it never ends")
	return improve.Outcome{}
}

var errDisk = errors.New("the disk is full")
