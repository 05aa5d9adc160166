package judge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"reprise/internal/agent"
	"reprise/internal/config"
	"reprise/internal/redact"
	"reprise/internal/run"
)

// fakeRuns are runs without processes.
type fakeRuns struct {
	mu       sync.Mutex
	requests []run.Request
	canceled chan string
	client   string // default: script
	version  string
	// say makes a run's end; nil answers {"ok":true} for a cent.
	say func(req run.Request) (run.Record, error)
	// mark, where set, is made when a run is started.
	mark    string
	records map[string]run.Record
	startup error
}

func (f *fakeRuns) Client(context.Context, run.Request) (string, string, error) {
	if f.client == "" {
		return agent.KindScript, f.version, nil
	}
	return f.client, f.version, nil
}

func (f *fakeRuns) Start(_ context.Context, req run.Request) (run.Record, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.startup != nil {
		return run.Record{}, f.startup
	}
	if f.mark != "" {
		if err := os.WriteFile(f.mark, nil, 0o600); err != nil {
			return run.Record{}, err
		}
	}
	f.requests = append(f.requests, req)
	return run.Record{ID: fmt.Sprintf("run-%010d", len(f.requests)), Status: run.Running}, nil
}

func (f *fakeRuns) Wait(ctx context.Context, id string) (run.Record, error) {
	f.mu.Lock()
	req := f.requests[len(f.requests)-1]
	f.mu.Unlock()
	if f.say == nil {
		r := said(`{"ok":true}`, 0.01)
		r.ID = id
		return r, nil
	}
	r, err := f.say(req)
	if errors.Is(err, errHangs) {
		<-ctx.Done()
		return run.Record{ID: id, Status: run.Running}, ctx.Err()
	}
	r.ID = id
	return r, err
}

var errHangs = errors.New("hangs")

func (f *fakeRuns) Settle(_ context.Context, id string) (run.Record, error) { return f.Get(id) }

func (f *fakeRuns) Cancel(_ context.Context, id, _ string) (run.Record, error) {
	f.canceled <- id
	return run.Record{}, nil
}

func (f *fakeRuns) Get(id string) (run.Record, error) {
	if r, ok := f.records[id]; ok {
		return r, nil
	}
	return run.Record{}, run.ErrNotFound
}

func (f *fakeRuns) asked() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.requests)
}

// said is a run that ended well with a text.
func said(text string, cost float64) run.Record {
	return run.Record{Status: run.Completed, Result: &agent.Result{OK: true, Text: text, CostUSD: cost}}
}

const okSchema = `{"type":"object","properties":{"ok":{"type":"boolean"}},"required":["ok"]}`

func question() Question {
	return Question{Purpose: Guard, System: "You judge.", Prompt: "Is it well?", Schema: json.RawMessage(okSchema), Fresh: true}
}

// bench is a judge over fake runs with a clock that is set by hand.
type bench struct {
	*Judge
	t    *testing.T
	runs *fakeRuns
	mu   sync.Mutex
	at   time.Time
	env  map[string]string
}

func newBench(t *testing.T, change func(*Options)) *bench {
	t.Helper()
	b := &bench{t: t, runs: &fakeRuns{canceled: make(chan string, 1)}, at: time.Date(2026, 11, 28, 10, 0, 0, 0, time.UTC), env: map[string]string{}}
	redactor := redact.New()
	set := config.DefaultJudge()
	set.Client = "script"
	o := Options{
		Settings: set, Runs: b.runs, Environ: []string{"HOME=/h"},
		Get:    func(name string) string { return b.env[name] },
		Redact: func(s string) string { s, _ = redactor.String(s); return s },
		Now:    func() time.Time { b.mu.Lock(); defer b.mu.Unlock(); return b.at },
	}
	if change != nil {
		change(&o)
	}
	if o.Dir == "" { // a test that dies on purpose has one, and could not remove this
		o.Dir = filepath.Join(t.TempDir(), "judge")
	}
	b.Judge = New(o)
	return b
}

func (b *bench) pass(d time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.at = b.at.Add(d)
}

// ask wants an answer, or with a target an error that is one.
func (b *bench) ask(q Question, want error) Answer {
	b.t.Helper()
	a, err := b.Ask(context.Background(), q)
	if !errors.Is(err, want) || (want == nil) != (err == nil) {
		b.t.Fatalf("got %v, want %v", err, want)
	}
	return a
}

func (b *bench) status() Status {
	b.t.Helper()
	s, err := b.Status()
	if err != nil {
		b.t.Fatal(err)
	}
	return s
}

// spent is what the guard's questions took today.
func (b *bench) spent() Spent {
	b.t.Helper()
	for _, p := range b.status().Purposes {
		if p.Purpose == Guard {
			return p.Spent
		}
	}
	b.t.Fatal("no line for the guard")
	return Spent{}
}

func (b *bench) sent() run.Request {
	b.t.Helper()
	if b.runs.asked() == 0 {
		b.t.Fatal("nobody was asked")
	}
	return b.runs.requests[len(b.runs.requests)-1]
}

func value(env []string, name string) string {
	for _, kv := range env {
		if v, ok := strings.CutPrefix(kv, name+"="); ok {
			return v
		}
	}
	return ""
}
