//go:build unix

package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"
)

// server is a running reprise mcp, spoken to in raw lines, so that what goes
// wrong on the wire shows.
type server struct {
	t    *testing.T
	h    *home
	cmd  *exec.Cmd
	in   io.WriteCloser
	errs *lockedBuffer
	gone chan struct{} // closed when the process has ended and its output is read

	mu     sync.Mutex
	next   int
	wait   map[string]chan message
	notes  []message
	bad    []string // lines on stdout that are no JSON-RPC
	closed bool
}

type message struct {
	JSONRPC string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  json.RawMessage `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *wireError      `json:"error,omitempty"`
}

type wireError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// launch starts a server and shakes no hands.
func (h *home) launch(args ...string) *server {
	h.t.Helper()
	cmd := exec.Command(program("reprise"), append([]string{"mcp"}, args...)...)
	cmd.Dir, cmd.Env = h.work, h.env
	in, err := cmd.StdinPipe()
	if err != nil {
		h.t.Fatal(err)
	}
	out, outW, err := os.Pipe()
	if err != nil {
		h.t.Fatal(err)
	}
	s := &server{t: h.t, h: h, cmd: cmd, in: in, errs: &lockedBuffer{}, gone: make(chan struct{}), wait: map[string]chan message{}}
	cmd.Stdout, cmd.Stderr = outW, s.errs
	// Children of the server must not keep the pipe open: the end is the
	// server's end, and is seen only if nobody else holds its output.
	if err := cmd.Start(); err != nil {
		h.t.Fatal(err)
	}
	outW.Close()
	read := make(chan struct{})
	go func() { defer close(read); s.read(out) }()
	go func() {
		_ = cmd.Wait() // the state is read from cmd.ProcessState
		<-read
		close(s.gone)
	}()
	h.t.Cleanup(s.finish)
	return s
}

// serve starts a server and initialises the session.
func (h *home) serve(args ...string) *server {
	h.t.Helper()
	s := h.launch(args...)
	s.initialize()
	return s
}

func (s *server) initialize() json.RawMessage {
	s.t.Helper()
	m := s.request("initialize", map[string]any{
		"protocolVersion": "2025-11-25", "capabilities": map[string]any{},
		"clientInfo": map[string]any{"name": "e2e", "version": "0"},
	})
	if m.Error != nil {
		s.t.Fatalf("initialize: %+v", m.Error)
	}
	s.send(map[string]any{"jsonrpc": "2.0", "method": "notifications/initialized"})
	return m.Result
}

func (s *server) read(out *os.File) {
	defer out.Close()
	r := bufio.NewReaderSize(out, 1<<20)
	for {
		line, err := r.ReadBytes('\n')
		if len(line) > 0 {
			s.take(line, err == nil)
		}
		if err != nil {
			s.mu.Lock()
			s.closed = true
			for id, c := range s.wait {
				delete(s.wait, id)
				close(c)
			}
			s.mu.Unlock()
			return
		}
	}
}

func (s *server) take(line []byte, whole bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var m message
	if err := json.Unmarshal(line, &m); err != nil || m.JSONRPC != "2.0" || !whole {
		s.bad = append(s.bad, string(line))
		return
	}
	if m.Method == "" && len(m.ID) > 0 {
		if c, ok := s.wait[string(m.ID)]; ok {
			delete(s.wait, string(m.ID))
			c <- m
			close(c)
			return
		}
	}
	s.notes = append(s.notes, m)
}

// raw writes bytes as they are.
func (s *server) raw(line string) {
	s.t.Helper()
	if _, err := io.WriteString(s.in, line); err != nil {
		s.t.Fatalf("write to the server: %v (its stderr: %s)", err, s.errs)
	}
}

func (s *server) send(v any) {
	s.t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		s.t.Fatal(err)
	}
	s.raw(string(data) + "\n")
}

// begin sends a request and gives the channel of its answer.
func (s *server) begin(method string, params any) (id int, answer <-chan message) {
	s.t.Helper()
	c := make(chan message, 1)
	s.mu.Lock()
	s.next++
	id = s.next
	if s.closed {
		close(c)
	} else {
		s.wait[fmt.Sprint(id)] = c
	}
	s.mu.Unlock()
	m := map[string]any{"jsonrpc": "2.0", "id": id, "method": method}
	if params != nil {
		m["params"] = params
	}
	s.send(m)
	return id, c
}

func (s *server) await(what string, c <-chan message) message {
	s.t.Helper()
	select {
	case m, ok := <-c:
		if !ok {
			s.t.Fatalf("%s: the server ended without an answer; stderr: %s", what, s.errs)
		}
		return m
	case <-time.After(3 * time.Minute):
		s.t.Fatalf("%s: no answer in three minutes", what)
		return message{}
	}
}

func (s *server) request(method string, params any) message {
	s.t.Helper()
	_, c := s.begin(method, params)
	return s.await(method, c)
}

// answer is a tool's answer: what it says, and whether that is an error.
type answer struct {
	isError bool
	text    string
	data    map[string]any
}

func (a answer) str(key string) string {
	v, _ := a.data[key].(string)
	return v
}

func toAnswer(t *testing.T, m message) answer {
	t.Helper()
	if m.Error != nil {
		return answer{isError: true, text: fmt.Sprintf("JSON-RPC error %d: %s", m.Error.Code, m.Error.Message)}
	}
	var r struct {
		IsError    bool           `json:"isError"`
		Structured map[string]any `json:"structuredContent"`
		Content    []struct{ Type, Text string }
	}
	if err := json.Unmarshal(m.Result, &r); err != nil {
		t.Fatalf("tool result %s: %v", m.Result, err)
	}
	a := answer{isError: r.IsError, data: r.Structured}
	for _, c := range r.Content {
		a.text += c.Text
	}
	return a
}

func (s *server) beginTool(name string, args map[string]any) <-chan message {
	s.t.Helper()
	_, c := s.begin("tools/call", map[string]any{"name": name, "arguments": args})
	return c
}

// tool calls a tool and gives whatever it answers.
func (s *server) tool(name string, args map[string]any) answer {
	s.t.Helper()
	return toAnswer(s.t, s.await(name, s.beginTool(name, args)))
}

// good calls a tool that must succeed.
func (s *server) good(name string, args map[string]any) answer {
	s.t.Helper()
	a := s.tool(name, args)
	if a.isError {
		s.t.Fatalf("%s %v: %s", name, args, a.text)
	}
	return a
}

// refused calls a tool that must answer with an error that contains want.
func (s *server) refused(want, name string, args map[string]any) answer {
	s.t.Helper()
	a := s.tool(name, args)
	if !a.isError || !strings.Contains(a.text, want) {
		s.t.Errorf("%s %v: got %+v, want an error with %q", name, args, a, want)
	}
	return a
}

// spawn starts an agent on a task and gives the whole answer.
func (s *server) spawn(task string, more ...map[string]any) answer {
	s.t.Helper()
	return s.good("spawn_agent", spawnArgs(task, more...))
}

func spawnArgs(task string, more ...map[string]any) map[string]any {
	args := map[string]any{"task": task}
	for _, m := range more {
		for k, v := range m {
			args[k] = v
		}
	}
	return args
}

// settle polls a job until it no longer runs.
func (s *server) settle(job string) answer {
	s.t.Helper()
	deadline := time.Now().Add(3 * time.Minute)
	for {
		a := s.good("check_agent", map[string]any{"job_id": job, "wait_seconds": 5})
		if a.str("status") != "running" {
			return a
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("%s runs after three minutes: %s", job, a.text)
		}
	}
}

// ends waits until the server is gone, at most for limit.
func (s *server) ends(limit time.Duration, why string) {
	s.t.Helper()
	select {
	case <-s.gone:
		return
	case <-time.After(limit):
	}
	began := time.Now()
	more := within(s.t, limit) - limit
	select {
	case <-s.gone:
	case <-time.After(more - time.Since(began)):
		s.t.Fatalf("the server is still there %v after %s", limit+more, why)
	}
}

// finish closes the session as a client does and checks what was on stdout.
func (s *server) finish() {
	_ = s.in.Close() // may be closed already by the test
	select {
	case <-s.gone:
	case <-time.After(time.Minute):
		_ = s.cmd.Process.Kill()
		s.t.Errorf("the server did not end with its input")
		<-s.gone
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.bad {
		s.t.Errorf("on the server's stdout, and no JSON-RPC: %.300q", l)
	}
	if e := s.errs.String(); strings.Contains(e, "panic:") || strings.Contains(e, "DATA RACE") {
		s.t.Errorf("the server's stderr: %s", e)
	}
}

// exitCode is the ended server's; -1 for a signal.
func (s *server) exitCode() int { return s.cmd.ProcessState.ExitCode() }

// with is the same user with more in the environment.
func (h *home) with(env ...string) *home {
	c := *h
	c.env = append(append([]string{}, h.env...), env...)
	return &c
}
