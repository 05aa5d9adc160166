package mcpserver

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"reprise/internal/agent"
	"reprise/internal/config"
	"reprise/internal/memory"
	"reprise/internal/recall"
	"reprise/internal/run"
)

// epoch is when fakes live.
var epoch = time.Date(2026, 2, 21, 14, 30, 0, 0, time.UTC)

// fakeRuns stands in for run.Manager. A task that begins with "now " completes
// at once with the rest as output, "fail " fails at once, anything else runs
// until finish is called.
type fakeRuns struct {
	now func() time.Time

	mu      sync.Mutex
	next    int
	runs    map[string]*fakeRun
	keys    map[string]string
	started []run.Request
	stopped int
	broken  error // what every call answers
	// unsettled is why the end of a run cannot be written: Wait and Settle
	// answer it.
	unsettled error
	suffix    string // added to what a run says
}

type fakeRun struct {
	rec   run.Record
	out   string
	ended chan struct{}
}

func newFakeRuns(now func() time.Time) *fakeRuns {
	return &fakeRuns{now: now, runs: map[string]*fakeRun{}, keys: map[string]string{}}
}

func (f *fakeRuns) Start(_ context.Context, req run.Request) (run.Record, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.broken != nil {
		return run.Record{}, f.broken
	}
	if id := f.keys[req.IdempotencyKey]; id != "" {
		return f.runs[id].rec, nil
	}
	f.next++
	id := fmt.Sprintf("run-aaaaaaaa%s", string([]byte{byte('a' + f.next/26%26), byte('a' + f.next%26)}))
	if f.next >= 676 {
		id = fmt.Sprintf("run-b%09d", f.next)
	}
	r := &fakeRun{ended: make(chan struct{}), rec: run.Record{
		V: 1, ID: id, Status: run.Running, StartedAt: f.now(), Client: "claude", Model: req.Model, WorkDir: req.WorkDir,
		MaxOutputTokens: req.MaxOutputTokens, TimeoutSeconds: req.Timeout.Seconds(), Origin: req.Origin, Principal: req.Principal, Key: req.IdempotencyKey,
		Logs: run.Logs{Stdout: "/runs/" + id + "/stdout.jsonl", Stderr: "/runs/" + id + "/stderr.log"},
	}}
	f.runs[id] = r
	f.started = append(f.started, req)
	if req.IdempotencyKey != "" {
		f.keys[req.IdempotencyKey] = id
	}
	if rest, ok := strings.CutPrefix(req.Task, "now "); ok {
		f.end(r, run.Completed, "", rest+f.suffix)
	}
	if rest, ok := strings.CutPrefix(req.Task, "fail "); ok {
		f.end(r, run.Failed, "exit code 1"+f.suffix, rest+f.suffix)
	}
	return r.rec, nil
}

// end settles a run. The caller holds the lock.
func (f *fakeRuns) end(r *fakeRun, status run.Status, reason, out string) {
	if r.rec.Status.Settled() {
		return
	}
	at := f.now()
	r.rec.Status, r.rec.StatusReason, r.rec.EndedAt, r.out = status, reason, &at, out
	r.rec.Result = &agent.Result{OK: status == run.Completed, Text: out}
	close(r.ended)
}

func (f *fakeRuns) finish(t testing.TB, id string, status run.Status, reason, out string) {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	r := f.runs[id]
	if r == nil {
		t.Fatalf("no run %s", id)
	}
	f.end(r, status, reason, out)
}

func (f *fakeRuns) find(id string) (*fakeRun, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if r := f.runs[id]; r != nil {
		return r, nil
	}
	return nil, fmt.Errorf("find run %q: %w", id, run.ErrNotFound)
}

func (f *fakeRuns) Get(id string) (run.Record, error) {
	r, err := f.find(id)
	if err != nil {
		return run.Record{}, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return r.rec, nil
}

func (f *fakeRuns) List(context.Context) ([]run.Record, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []run.Record
	for _, r := range f.runs {
		out = append(out, r.rec)
	}
	slices.SortFunc(out, func(a, b run.Record) int { return strings.Compare(b.ID, a.ID) })
	return out, f.broken
}

func (f *fakeRuns) Settle(_ context.Context, id string) (run.Record, error) {
	f.mu.Lock()
	err := f.unsettled
	f.mu.Unlock()
	if err != nil {
		return run.Record{}, err
	}
	return f.Get(id)
}

func (f *fakeRuns) Wait(ctx context.Context, id string) (run.Record, error) {
	r, err := f.find(id)
	if err != nil {
		return run.Record{}, err
	}
	select {
	case <-r.ended:
		return f.Settle(ctx, id)
	case <-ctx.Done():
		rec, _ := f.Get(id)
		return rec, ctx.Err()
	}
}

func (f *fakeRuns) Cancel(_ context.Context, id, reason string) (run.Record, error) {
	r, err := f.find(id)
	if err != nil {
		return run.Record{}, err
	}
	f.mu.Lock()
	f.end(r, run.Killed, reason, "so far")
	f.mu.Unlock()
	return f.Get(id)
}

func (f *fakeRuns) Output(id string, maxTokens int) (run.Output, error) {
	r, err := f.find(id)
	if err != nil {
		return run.Output{}, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	out := run.Output{Text: r.out, TotalBytes: int64(len(r.out)), Path: "/runs/" + id + "/result.json"}
	if len(out.Text) > 4*maxTokens {
		out.Text, out.Truncated = out.Text[:4*maxTokens]+"\n[output truncated; the whole is in "+out.Path+"]", true
	}
	return out, nil
}

func (f *fakeRuns) StopAll(context.Context) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for _, r := range f.runs {
		if !r.rec.Status.Settled() {
			f.end(r, run.Killed, "the server ended", "")
			n++
		}
	}
	f.stopped += n
	return n, nil
}

func (f *fakeRuns) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.started)
}

// fakeMemory stands in for memory.Store: files in a map.
type fakeMemory struct {
	dir string

	mu     sync.Mutex
	files  map[string]string
	ensure int
	writes int
	panics bool
}

func newFakeMemory() *fakeMemory {
	return &fakeMemory{dir: "/memory", files: map[string]string{
		"core.md":                   "# Core\n\nA tester.\n",
		"index.md":                  "# Index\n\n| Block | Summary | Updated |\n|---|---|---|\n| project-site.md | The site | 2026-02-20 |\n",
		"blocks/project-site.md":    "# Site\n\nline 1\nline 2\nline 3\n",
		"blocks/reference-notes.md": "# Notes\n",
	}}
}

func (f *fakeMemory) path(name string) string {
	name = strings.TrimSuffix(strings.TrimPrefix(name, "blocks/"), ".md") + ".md"
	if name == "core.md" || name == "index.md" {
		return name
	}
	return "blocks/" + name
}

func (f *fakeMemory) Dir() string { return f.dir }

func (f *fakeMemory) Ensure(context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ensure++
	return nil
}

func (f *fakeMemory) Read(_ context.Context, _, name string, offset, limit int) (memory.Doc, bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.panics {
		panic("the fake memory breaks")
	}
	body, ok := f.files[f.path(name)]
	if !ok {
		return memory.Doc{}, false, fmt.Errorf("read %s: %w", name, memory.ErrNotFound)
	}
	lines := strings.SplitAfter(body, "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	doc := memory.Doc{Name: strings.TrimPrefix(f.path(name), "blocks/"), Hash: hashOf("a"), Updated: epoch, Tokens: tokens(body), Lines: len(lines)}
	lines = lines[min(offset, len(lines)):]
	more := false
	if limit > 0 && len(lines) > limit {
		lines, more = lines[:limit], true
	}
	doc.Content = strings.Join(lines, "")
	return doc, more, nil
}

func hashOf(digit string) string { return "sha256:" + strings.Repeat(digit, 64) }

func (f *fakeMemory) List(context.Context, string) ([]memory.BlockInfo, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []memory.BlockInfo
	for name := range f.files {
		if rest, ok := strings.CutPrefix(name, "blocks/"); ok {
			out = append(out, memory.BlockInfo{Name: rest, Summary: "About " + rest, Updated: epoch})
		}
	}
	slices.SortFunc(out, func(a, b memory.BlockInfo) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

func (f *fakeMemory) put(name, body string) memory.Written {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.writes++
	p := f.path(name)
	_, had := f.files[p]
	f.files[p] = body
	return memory.Written{Path: f.dir + "/" + p, Name: p, Hash: hashOf("b"), IndexUpdated: true, Created: !had}
}

func (f *fakeMemory) Create(_ context.Context, b memory.CreateBlock) (memory.Written, error) {
	return f.put(b.Name, b.Content), nil
}

func (f *fakeMemory) Update(_ context.Context, u memory.UpdateBlock) (memory.Written, error) {
	if u.IfHash != "" && u.IfHash != hashOf("a") {
		return memory.Written{}, &memory.StaleError{Name: u.Name, Have: hashOf("a"), Want: u.IfHash, Current: memory.Doc{Content: "what is there now"}}
	}
	return f.put(u.Name, u.Content+u.NewText), nil
}

func (f *fakeMemory) AppendEpisode(_ context.Context, e memory.Episode) (memory.Written, error) {
	return f.put("episodic-2026-02", e.Title+"\n"+e.Entry), nil
}

func (f *fakeMemory) AppendFile(_ context.Context, path, text string) (int, error) {
	rel, inside := strings.CutPrefix(path, f.dir+"/")
	if strings.HasPrefix(path, "/") && !inside || strings.Contains(path, "..") {
		return 0, fmt.Errorf("append %s: %w", path, memory.ErrOutside)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.writes++
	f.files[rel] += text
	return len(text), nil
}

func (f *fakeMemory) changes() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.writes
}

type fakeSearch struct{ hits []recall.Hit }

func (f fakeSearch) Search(_ context.Context, q recall.Query) ([]recall.Hit, error) {
	if q.Text == "broken" {
		return nil, errors.New("the index is broken: run `reprise index rebuild`")
	}
	return f.hits[:min(len(f.hits), q.Max)], nil
}

func (f fakeSearch) Damage(context.Context, recall.Reader) ([]recall.FileDamage, error) {
	return nil, nil
}

// world is a server with fakes around it.
type world struct {
	t      testing.TB
	runs   *fakeRuns
	memory *fakeMemory
	log    *logLines
	server *Server
}

// logLines collects a log as JSON lines.
type logLines struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *logLines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logLines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// find returns the entries with a message.
func (l *logLines) find(t testing.TB, msg string) []map[string]any {
	t.Helper()
	var out []map[string]any
	for line := range strings.Lines(l.String()) {
		var m map[string]any
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatalf("log line %q: %v", line, err)
		}
		if m["msg"] == msg {
			out = append(out, m)
		}
	}
	return out
}

func newWorld(t testing.TB, change func(*Deps)) *world {
	t.Helper()
	w := &world{t: t, memory: newFakeMemory(), log: &logLines{}}
	w.runs = newFakeRuns(time.Now)
	d := Deps{
		Runs: w.runs, Memory: w.memory,
		Search:   fakeSearch{hits: []recall.Hit{{File: "blocks/project-site.md", Heading: "Site", Snippet: "line 1", Score: 1.5, Line: 1}}},
		Settings: config.Default(config.Paths{}), Source: "/etc/reprise.yaml", Version: "test", Now: time.Now,
		Log: slog.New(slog.NewJSONHandler(w.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Redact: func(s string) (string, int) {
			return strings.ReplaceAll(s, "hunter2", "[secret]"), strings.Count(s, "hunter2")
		},
	}
	if change != nil {
		change(&d)
	}
	w.runs.now = d.Now
	s, err := New(d)
	if err != nil {
		t.Fatal(err)
	}
	w.server = s
	return w
}

// call calls a tool without a wire.
func (w *world) call(ctx context.Context, name string, arguments any) *mcp.CallToolResult {
	w.t.Helper()
	raw, ok := arguments.(json.RawMessage)
	if !ok {
		var err error
		if raw, err = json.Marshal(arguments); err != nil {
			w.t.Fatal(err)
		}
	}
	for _, tl := range w.server.tools {
		if tl.name == name {
			res, err := w.server.handler(tl)(ctx, &mcp.CallToolRequest{Params: &mcp.CallToolParamsRaw{Name: name, Arguments: raw}})
			if err != nil {
				w.t.Fatalf("%s: %v: a tool's error must not be one of the protocol", name, err)
			}
			return res
		}
	}
	w.t.Fatalf("no tool %s", name)
	return nil
}

func textOf(t testing.TB, res *mcp.CallToolResult) string {
	t.Helper()
	if len(res.Content) != 1 {
		t.Fatalf("%d parts of content, want 1", len(res.Content))
	}
	return res.Content[0].(*mcp.TextContent).Text
}

// good calls a tool that must succeed and returns its structured answer.
func (w *world) good(ctx context.Context, name string, arguments map[string]any) map[string]any {
	w.t.Helper()
	res := w.call(ctx, name, arguments)
	text := textOf(w.t, res)
	if res.IsError {
		w.t.Fatalf("%s: %s", name, text)
	}
	var out map[string]any
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		w.t.Fatalf("%s: text %q is not the structured answer: %v", name, text, err)
	}
	return out
}

// bad calls a tool that must fail and returns what it says.
func (w *world) bad(ctx context.Context, name string, arguments any) string {
	w.t.Helper()
	res := w.call(ctx, name, arguments)
	if !res.IsError {
		w.t.Fatalf("%s(%v) succeeded: %s", name, arguments, textOf(w.t, res))
	}
	return textOf(w.t, res)
}

// peer is a client on the other end of a stdio server.
type peer struct {
	t     testing.TB
	in    *io.PipeWriter
	lines chan string
	ended chan error
}

// serve starts the server over pipes.
func (w *world) serve(ctx context.Context) *peer {
	return servePeer(w.t, ctx, w.server.ServeStdio)
}

func servePeer(t testing.TB, ctx context.Context, serve func(context.Context, io.Reader, io.Writer) error) *peer {
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	p := &peer{t: t, in: inW, lines: make(chan string, 1000), ended: make(chan error, 1)}
	go func() {
		r := bufio.NewReader(outR)
		for {
			line, err := r.ReadString('\n')
			if line != "" {
				p.lines <- line
			}
			if err != nil {
				close(p.lines)
				return
			}
		}
	}()
	go func() {
		err := serve(ctx, inR, outW)
		outW.Close()
		inR.Close()
		p.ended <- err
	}()
	return p
}

func (p *peer) send(line string) {
	p.t.Helper()
	if _, err := io.WriteString(p.in, line+"\n"); err != nil {
		p.t.Fatalf("send: %v", err)
	}
}

// next is the next line the server wrote.
func (p *peer) next() string {
	p.t.Helper()
	select {
	case l, ok := <-p.lines:
		if !ok {
			p.t.Fatal("the server closed its output")
		}
		if !json.Valid([]byte(l)) {
			p.t.Fatalf("on standard output, and no JSON: %q", l)
		}
		return strings.TrimSuffix(l, "\n")
	case <-time.After(60 * time.Second):
		p.t.Fatal("no line within 60 s")
	}
	return ""
}

type reply struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params map[string]any  `json:"params"`
	Result map[string]any  `json:"result"`
	Error  *struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
}

func (p *peer) reply() reply {
	p.t.Helper()
	var r reply
	line := p.next()
	if err := json.Unmarshal([]byte(line), &r); err != nil {
		p.t.Fatalf("%s: %v", line, err)
	}
	return r
}

func (p *peer) ask(line string) reply { p.t.Helper(); p.send(line); return p.reply() }

const shake = `{"jsonrpc":"2.0","id":"shake","method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"test","version":"0"}}}`

// hands shakes hands as older clients do.
func (p *peer) hands() *peer {
	p.t.Helper()
	if r := p.ask(shake); r.Error != nil {
		p.t.Fatalf("initialize: %+v", r.Error)
	}
	p.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return p
}

// end closes the input and waits for the server.
func (p *peer) end() error {
	p.t.Helper()
	p.in.Close()
	return p.gone()
}

func (p *peer) gone() error {
	p.t.Helper()
	select {
	case err := <-p.ended:
		return err
	case <-time.After(time.Minute):
		p.t.Fatal("the server is still there after a minute")
	}
	return nil
}

func toolCall(id int, name string, arguments string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":%s}}`, id, name, arguments)
}
