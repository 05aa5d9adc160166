package fakemodel

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// maxBody bounds what a request may hold: 64 MiB.
const maxBody = 64 << 20

// Model answers the API's requests by its script and remembers them. It is safe
// for use by several goroutines.
type Model struct {
	now  func() time.Time
	done chan struct{}
	stop func()

	mu        sync.Mutex
	rules     []*compiled
	otherwise *Answer
	log       []*Request
	changed   chan struct{} // closed and replaced whenever log grows
}

// New makes a model. An error names the rule that is wrong. The clock dates the
// log's entries.
func New(s Script, now func() time.Time) (*Model, error) {
	rules, err := compile(s, 0)
	if err != nil {
		return nil, err
	}
	done := make(chan struct{})
	return &Model{
		now: now, done: done, stop: sync.OnceFunc(func() { close(done) }),
		rules: rules, otherwise: s.Otherwise, changed: make(chan struct{}),
	}, nil
}

// Close lets go of every request that hangs or waits.
func (m *Model) Close() { m.stop() }

// Add puts more rules behind those there are.
func (m *Model) Add(rules ...Rule) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	more, err := compile(Script{Rules: rules}, len(m.rules))
	if err != nil {
		return err
	}
	m.rules = append(m.rules, more...)
	return nil
}

// Requests are all the requests so far, oldest first. The entries must not be changed.
func (m *Model) Requests() []*Request {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.log)
}

// Matching are the requests so far that keep says true to.
func (m *Model) Matching(keep func(*Request) bool) []*Request {
	return slices.DeleteFunc(m.Requests(), func(q *Request) bool { return !keep(q) })
}

// Await returns as soon as a request that want says true to has come in. It
// needs no polling and ends with ctx's error.
func (m *Model) Await(ctx context.Context, want func(*Request) bool) (*Request, error) {
	seen := 0
	for {
		m.mu.Lock()
		log, changed := m.log, m.changed
		m.mu.Unlock()
		for _, q := range log[seen:] {
			if want(q) {
				return q, nil
			}
		}
		seen = len(log)
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, fmt.Errorf("await model request (%d came): %w", seen, ctx.Err())
		}
	}
}

// Unused are the names of rules that have not answered all they could (or, where
// their uses are unlimited, have not answered at all).
func (m *Model) Unused() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []string
	for _, r := range m.rules {
		used := slices.ContainsFunc(m.log, func(q *Request) bool { return q.Rule == r.Name })
		if r.left > 0 || r.left < 0 && !used {
			out = append(out, r.Name)
		}
	}
	return out
}

// choose logs the request and picks its answer.
func (m *Model) choose(q *Request) Answer {
	m.mu.Lock()
	defer m.mu.Unlock()
	defer m.note()
	m.log = append(m.log, q)
	q.N = len(m.log)
	for _, r := range m.rules {
		groups, ok := r.match(q)
		if !ok {
			continue
		}
		if r.left > 0 {
			r.left--
		}
		q.Rule = r.Name
		if r.Reply != nil {
			return r.Reply(q)
		}
		return r.Say.fill(groups)
	}
	q.Rule = "otherwise"
	if m.otherwise != nil && !q.Side() {
		return *m.otherwise
	}
	return Answer{Text: "ok"}
}

// note wakes those who wait; mu is held.
func (m *Model) note() {
	close(m.changed)
	m.changed = make(chan struct{})
}

func (m *Model) record(q *Request) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.log = append(m.log, q)
	q.N = len(m.log)
	m.note()
}

// ServeHTTP answers one request.
func (m *Model) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		writeJSON(w, 413, messagesAPI{}.failure(Failure{Status: 413, Message: err.Error()}))
		return
	}
	q := &Request{At: m.now(), Method: r.Method, Path: r.URL.Path, Header: hide(r.Header), Body: body}
	name, action := geminiPath(r.URL.Path)
	post := r.Method == http.MethodPost
	switch {
	case post && r.URL.Path == "/v1/messages":
		m.modelCall(w, r, q, messagesAPI{})
	case post && strings.HasSuffix(r.URL.Path, "/responses"):
		m.modelCall(w, r, q, responsesAPI{})
	case post && strings.HasSuffix(r.URL.Path, "/chat/completions"):
		m.modelCall(w, r, q, chatAPI{})
	case post && (action == "generateContent" || action == "streamGenerateContent"):
		q.Model, q.Stream = name, action == "streamGenerateContent"
		m.modelCall(w, r, q, geminiAPI{})
	case post && r.URL.Path == "/v1/messages/count_tokens":
		m.record(q)
		// A fixed and rough measure: four bytes of request a token.
		writeJSON(w, http.StatusOK, map[string]int{"input_tokens": len(body)/4 + 1})
	case post && action == "countTokens":
		m.record(q)
		writeJSON(w, http.StatusOK, map[string]int{"totalTokens": len(body)/4 + 1})
	case r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/models"):
		m.record(q)
		// The lists of the four APIs have different names; a client looks at its own.
		writeJSON(w, http.StatusOK, map[string]any{"object": "list", "data": []any{}, "models": []any{}, "has_more": false})
	case r.Method == http.MethodHead:
		m.record(q)
	default:
		m.record(q)
		fail := Failure{Status: 404, Message: "the fake model has no " + r.Method + " " + r.URL.Path}
		writeJSON(w, fail.Status, messagesAPI{}.failure(fail))
	}
}

// modelCall answers a request for the model's next turn.
func (m *Model) modelCall(w http.ResponseWriter, r *http.Request, q *Request, api wire) {
	q.Wire = api.name()
	err := api.parse(q)
	if err == nil && len(q.Messages) == 0 {
		err = errors.New(q.Wire + ": at least one message is required")
	}
	if err != nil {
		m.record(q)
		writeFailure(w, api, Failure{Status: 400, Message: err.Error()})
		return
	}
	a := m.choose(q).resolve(q)
	if a.Hang {
		m.wait(r.Context(), 0)
		panic(http.ErrAbortHandler)
	}
	if a.DelayMS > 0 && !m.wait(r.Context(), ms(a.DelayMS)) {
		panic(http.ErrAbortHandler)
	}
	switch {
	case a.Fail != nil:
		writeFailure(w, api, *a.Fail)
	case q.Stream:
		m.stream(w, r, q, a, api)
	case a.CutAfter > 0:
		panic(http.ErrAbortHandler)
	default:
		writeJSON(w, http.StatusOK, api.whole(q, a))
	}
}

// wait sleeps for d (0: for ever) and reports whether the caller is still there.
func (m *Model) wait(ctx context.Context, d time.Duration) bool {
	var fire <-chan time.Time
	if d > 0 {
		t := time.NewTimer(d)
		defer t.Stop()
		fire = t.C
	}
	select {
	case <-fire:
		return true
	case <-ctx.Done():
	case <-m.done:
	}
	return false
}

func hide(h http.Header) http.Header {
	h = h.Clone()
	for _, name := range []string{"X-Api-Key", "X-Goog-Api-Key", "Authorization", "Cookie"} {
		if h.Get(name) != "" {
			h.Set(name, "(hidden)")
		}
	}
	return h
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	data, err := json.Marshal(v)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(data) // the caller may have left; there is nobody to tell
}

func writeFailure(w http.ResponseWriter, api wire, f Failure) {
	if f.RetryAfter > 0 {
		w.Header().Set("Retry-After", fmt.Sprint(f.RetryAfter))
	}
	writeJSON(w, f.Status, api.failure(f))
}

// Server is a Model on a loopback port of its own.
type Server struct {
	*Model
	// URL has no slash at its end; clients append their API's path, such as /v1/messages.
	URL  string
	http *http.Server
	ends chan error
}

// Start listens on a port of 127.0.0.1 that the system picks.
func Start(s Script, now func() time.Time) (*Server, error) {
	m, err := New(s, now)
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for the fake model: %w", err)
	}
	srv := &Server{
		Model: m, URL: "http://" + l.Addr().String(),
		http: &http.Server{Handler: m, ReadHeaderTimeout: 30 * time.Second},
		ends: make(chan error, 1),
	}
	go func() { srv.ends <- srv.http.Serve(l) }()
	return srv, nil
}

// Close ends the server and every request in flight.
func (s *Server) Close() error {
	s.Model.Close()
	err := s.http.Close()
	if e := <-s.ends; !errors.Is(e, http.ErrServerClosed) {
		err = errors.Join(err, e)
	}
	return err
}

// Rewrite changes what the rules will say, those with a Reply excepted. Tests
// use it for paths that are known only after the server's address.
func (m *Model) Rewrite(change func(Answer) Answer) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range m.rules {
		r.Say = change(r.Say)
	}
}
