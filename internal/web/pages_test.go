package web

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"reprise/internal/queue"
	"reprise/internal/run"
	"reprise/internal/task"
)

var testNow = time.Now

// noRuns is a run service without runs.
type noRuns struct{}

func (noRuns) Get(id string) (run.Record, error) { return run.Record{}, run.ErrNotFound }
func (noRuns) List(context.Context) ([]run.Record, error) {
	return nil, nil
}
func (noRuns) Settle(_ context.Context, id string) (run.Record, error) {
	return run.Record{}, run.ErrNotFound
}
func (noRuns) Cancel(context.Context, string, string) (run.Record, error) {
	return run.Record{}, run.ErrNotFound
}
func (noRuns) Extend(context.Context, string, time.Duration) error { return run.ErrNotFound }
func (noRuns) Output(string, int) (run.Output, error)              { return run.Output{}, errors.New("none") }
func (noRuns) WhyNotResume(run.Record) string                      { return "" }
func (noRuns) Start(context.Context, run.Request) (run.Record, error) {
	return run.Record{}, errors.New("none")
}
func (noRuns) Dir() string { return "" }

// house is a dashboard that serves, and a browser that was let in.
type house struct {
	t    testing.TB
	dir  string // of the project's data
	base string
	http *http.Client
	deps Deps
}

// open serves a dashboard over a project's data directory.
func open(t testing.TB, change func(*Deps)) *house {
	t.Helper()
	h := &house{t: t, dir: filepath.Join(t.TempDir(), "shop")}
	for _, d := range []string{"runs", "queue", "loop", "code"} {
		if err := os.MkdirAll(filepath.Join(h.dir, d), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	h.deps = Deps{
		Project: "shop", Now: testNow, Version: "test",
		Runs:    run.New(run.Options{Dir: filepath.Join(h.dir, "runs"), Now: testNow, Hostname: "host"}),
		Queue:   queue.Open(queue.Options{Dir: filepath.Join(h.dir, "queue"), Now: testNow, Host: "host", Actor: "user"}),
		LoopDir: filepath.Join(h.dir, "loop"),
		Tasks:   task.New(filepath.Join(h.dir, "code"), task.Options{Now: testNow}),
	}
	if change != nil {
		change(&h.deps)
	}
	s, err := New(h.deps)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	links := make(chan string, 4)
	ended := make(chan error, 1)
	go func() {
		ended <- s.Serve(ctx, Options{Listen: "127.0.0.1:0", Ready: func(link string, _ bool) { links <- link }})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the dashboard ended with %v", err)
		}
	})
	jar, _ := cookiejar.New(nil)
	h.http = &http.Client{Jar: jar, Timeout: time.Minute, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	var link string
	select {
	case link = <-links:
	case err := <-ended:
		t.Fatal(err)
	}
	res, err := h.http.Get(link)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	h.base, _, _ = strings.Cut(link, "/?")
	return h
}

func (h *house) get(path string) (int, string) {
	h.t.Helper()
	res, err := h.http.Get(h.base + path)
	if err != nil {
		h.t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		h.t.Fatal(err)
	}
	return res.StatusCode, string(body)
}

// page is a page that must be there.
func (h *house) page(path string) string {
	h.t.Helper()
	code, body := h.get(path)
	if code != http.StatusOK {
		h.t.Fatalf("GET %s: %d\n%s", path, code, body)
	}
	return body
}

var csrfValue = regexp.MustCompile(`name="csrf" value="([0-9a-f]{64})"`)

// send sends a form as a browser does, with the token that a page has, and returns
// where it leads.
func (h *house) send(path string, form url.Values) (int, string) {
	h.t.Helper()
	m := csrfValue.FindStringSubmatch(h.page("/work"))
	if m == nil {
		h.t.Fatal("the page has no form token")
	}
	form.Set("csrf", m[1])
	r, err := http.NewRequest("POST", h.base+path, strings.NewReader(form.Encode()))
	if err != nil {
		h.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Origin", "http://"+r.URL.Host)
	res, err := h.http.Do(r)
	if err != nil {
		h.t.Fatal(err)
	}
	defer res.Body.Close()
	body, _ := io.ReadAll(res.Body)
	if to := res.Header.Get("Location"); to != "" {
		return res.StatusCode, to
	}
	return res.StatusCode, string(body)
}

func (h *house) add(items ...queue.Item) {
	h.t.Helper()
	if _, err := h.deps.Queue.Add(context.Background(), items...); err != nil {
		h.t.Fatal(err)
	}
}

// runRecord puts a run's files on disk as a supervisor leaves them.
func (h *house) runRecord(id string, change func(*run.Record), stdout string) string {
	h.t.Helper()
	dir := filepath.Join(h.dir, "runs", id)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		h.t.Fatal(err)
	}
	ended := time.Now().UTC()
	code := 0
	r := run.Record{V: 1, ID: id, Status: run.Completed, StartedAt: ended.Add(-time.Minute), StatusUpdatedAt: ended, EndedAt: &ended, ExitCode: &code,
		Client: "claude", Project: "shop", WorkDir: "/work", DelegationPath: []string{}, Logs: run.Logs{Stdout: filepath.Join(dir, "stdout.jsonl"), Stderr: filepath.Join(dir, "stderr.log")}}
	if change != nil {
		change(&r)
	}
	data, err := json.Marshal(r)
	if err != nil {
		h.t.Fatal(err)
	}
	for name, text := range map[string]string{"run.json": string(data), "prompt.md": "do it", "stdout.jsonl": stdout, "stderr.log": ""} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			h.t.Fatal(err)
		}
	}
	return dir
}

func TestEmptyPagesSayWhatComesNext(t *testing.T) {
	h := open(t, nil)
	for path, want := range map[string]string{
		"/": "reprise spawn", "/runs": "reprise spawn", "/work": "reprise queue add",
	} {
		if body := h.page(path); !strings.Contains(body, want) {
			t.Errorf("GET %s does not name %q", path, want)
		}
	}
	for _, path := range []string{"/nothing", "/runs/run-aaaaaaaaaa", "/work/items/nothing", "/static/nothing.css", "/static/..%2flayout.html"} {
		if code, body := h.get(path); code != http.StatusNotFound || !strings.Contains(body, "<h1>") {
			t.Errorf("GET %s: %d, want a page with 404", path, code)
		}
	}
}

// hostile is what an agent could say to have a page do something, and what must not
// come of it.
const hostile = "<script>alert(1)</script> <img src=x onerror=alert(2)> </pre></textarea></title>\n\n" +
	"![i](https://tracker.example.org/p.gif) [l](javascript:alert(3)) [d](data:text/html,x) [r](//evil.example.org) [q](/runs) <javascript:alert(4)>\n\n" +
	"<iframe src=https://evil.example.org></iframe>\n\n\u202Egnp.exe \x1b[31mred\x1b[0m \u200bzero"

var forbidden = []string{"<script>alert", "<img", "<iframe", "onerror=alert(2)>", `href="javascript`, `href="data`, `href="//`, "\u202e", "\u200b", "\x1b", `src="http`}

func checkHarmless(t *testing.T, where, body string) {
	t.Helper()
	for _, bad := range forbidden {
		if strings.Contains(strings.ToLower(body), strings.ToLower(bad)) {
			i := strings.Index(strings.ToLower(body), strings.ToLower(bad))
			t.Errorf("%s: the page has %q in …%s…", where, bad, body[max(0, i-60):min(len(body), i+80)])
		}
	}
}

func TestHostileTextStaysText(t *testing.T) {
	h := open(t, nil)
	line := func(v any) string {
		data, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return string(data) + "\n"
	}
	block := func(kind string, extra map[string]any) map[string]any {
		b := map[string]any{"type": kind}
		for k, v := range extra {
			b[k] = v
		}
		return b
	}
	out := line(map[string]any{"type": "assistant", "message": map[string]any{"content": []any{
		block("text", map[string]any{"text": hostile}), block("tool_use", map[string]any{"name": hostile, "input": map[string]any{"command": hostile}}),
	}}}) + line(map[string]any{"type": "user", "message": map[string]any{"content": []any{block("tool_result", map[string]any{"is_error": true, "content": hostile})}}}) +
		line(map[string]any{"type": "result", "is_error": true, "result": hostile}) + strings.ReplaceAll(hostile, "\n", " ") + "\n"
	h.runRecord("run-aaaaaaaaaa", func(r *run.Record) {
		r.Status, r.StatusReason, r.Client, r.Model, r.WorkDir = run.Failed, hostile, "claude", hostile, hostile
		r.Notes = []string{hostile}
	}, out)
	if err := os.WriteFile(filepath.Join(h.dir, "runs", "run-aaaaaaaaaa", "prompt.md"), []byte(hostile), 0o600); err != nil {
		t.Fatal(err)
	}
	h.add(queue.Item{ID: "bad", Title: strings.ReplaceAll(hostile, "\n", " "), Body: hostile, Labels: []string{"a"}})
	for _, path := range []string{"/", "/runs", "/runs/run-aaaaaaaaaa", "/work", "/work/items/bad"} {
		checkHarmless(t, path, h.page(path))
	}
	body := h.page("/runs/run-aaaaaaaaaa")
	for _, want := range []string{`&lt;script&gt;alert(1)`, `\u{202e}`, `\x1b[31m`, `href="https://tracker.example.org/p.gif"`, `[image: `} {
		if !strings.Contains(body, want) {
			t.Errorf("the run's page does not show %q", want)
		}
	}
	// What a stranger may see of an error says nothing of what there is.
	code, body := h.get("/work/items/" + url.PathEscape("<script>alert(1)</script>"))
	if code != http.StatusNotFound {
		t.Errorf("an item that is not there: %d", code)
	}
	checkHarmless(t, "an address", body)
}

func TestItemsAreChanged(t *testing.T) {
	h := open(t, nil)
	h.add(queue.Item{ID: "one", Title: "First"}, queue.Item{ID: "two", Title: "Second"})
	ctx := context.Background()
	for _, step := range []struct {
		path  string
		form  url.Values
		note  string
		check func(queue.Item) bool
	}{
		{"/work/items/one/priority", url.Values{"priority": {"0"}}, "done=moved", func(i queue.Item) bool { return i.Urgency() == 0 }},
		{"/work/items/one/park", url.Values{"back": {"item"}}, "/work/items/one?done=parked", func(i queue.Item) bool { return i.State == queue.Blocked }},
		{"/work/items/one/unpark", nil, "done=unparked", func(i queue.Item) bool { return i.State == queue.Ready }},
		{"/work/items/one/drop", url.Values{"why": {"not wanted"}}, "done=dropped", func(i queue.Item) bool { return i.State == queue.Dead && i.Reason == "not wanted" }},
		{"/work/items/one/retry", nil, "done=retried", func(i queue.Item) bool { return i.State == queue.Ready }},
	} {
		if step.form == nil {
			step.form = url.Values{}
		}
		code, to := h.send(step.path, step.form)
		if code != http.StatusSeeOther || !strings.Contains(to, step.note) {
			t.Fatalf("POST %s: %d %s", step.path, code, to)
		}
		it, err := h.deps.Queue.Get(ctx, "one")
		if err != nil || !step.check(it) {
			t.Errorf("after POST %s the item is %s, priority %d, %q (%v)", step.path, it.State, it.Urgency(), it.Reason, err)
		}
	}
	body := h.page("/work")
	if first, second := strings.Index(body, ">First<"), strings.Index(body, ">Second<"); first < 0 || first > second {
		t.Error("the item with priority 0 does not stand first")
	}
	code, to := h.send("/work/add", url.Values{"title": {"Third"}, "body": {"line\r\nline"}, "priority": {"8"}})
	if code != http.StatusSeeOther {
		t.Fatalf("add: %d %s", code, to)
	}
	l, err := h.deps.Queue.List(ctx, queue.Filter{})
	if err != nil || len(l.Items) != 3 || l.Items[2].Body != "line\nline" || l.Items[2].Urgency() != 8 {
		t.Errorf("after adding there are %+v (%v)", l.Items, err)
	}
	for path, want := range map[string]int{
		"/work/items/one/priority":  http.StatusBadRequest, // no number
		"/work/items/one/explode":   http.StatusNotFound,
		"/work/items/none/retry":    http.StatusNotFound,
		"/work/items/two/retry":     http.StatusConflict, // it is ready
		"/work/add":                 http.StatusBadRequest,
		"/work/loop/pause":          http.StatusConflict, // none runs
		"/runs/run-aaaaaaaaaa/stop": http.StatusNotFound,
	} {
		if code, body := h.send(path, url.Values{}); code != want || !strings.Contains(body, "<h1>") {
			t.Errorf("POST %s: %d, want %d and a page", path, code, want)
		}
	}
}

// An answer is a request that the loop, or the next one, takes from its directory.
func TestLoopIsAnswered(t *testing.T) {
	h := open(t, nil)
	h.asks("one")
	code, to := h.send("/work/loop/resume", url.Values{"answer": {"the\r\nsecond"}})
	if code != http.StatusSeeOther || !strings.Contains(to, "done=waits") {
		t.Fatalf("resume: %d %s", code, to)
	}
	if !strings.Contains(h.page("/work?done=waits"), "the next one begins with this answer") {
		t.Error("the page does not say what became of the answer")
	}
	found, err := filepath.Glob(filepath.Join(h.deps.LoopDir, "requests", "*"))
	if err != nil || len(found) != 1 {
		t.Fatalf("there are %d requests (%v)", len(found), err)
	}
	data, err := os.ReadFile(found[0])
	if err != nil || !strings.Contains(string(data), `"answer": "the\nsecond"`) || !strings.Contains(string(data), `"resume"`) {
		t.Errorf("the request is %s (%v)", data, err)
	}
}

func TestReadOnlyShowsNoForms(t *testing.T) {
	h := open(t, func(d *Deps) { d.ReadOnly = true })
	h.add(queue.Item{ID: "one", Title: "First"})
	for _, path := range []string{"/", "/work", "/work/items/one", "/runs"} {
		if body := h.page(path); strings.Contains(body, `method="post"`) || !strings.Contains(body, "read only") {
			t.Errorf("GET %s has a form, or does not say that nothing can be changed", path)
		}
	}
}

// events reads a stream until it has the events that are wanted.
func (h *house) events(path string, enough func([]string) bool, then func(int)) []string {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, "GET", h.base+path, nil)
	if err != nil {
		h.t.Fatal(err)
	}
	res, err := h.http.Do(r)
	if err != nil {
		h.t.Fatal(err)
	}
	defer res.Body.Close()
	if kind := res.Header.Get("Content-Type"); kind != "text/event-stream" {
		h.t.Fatalf("GET %s: %d %s", path, res.StatusCode, kind)
	}
	var got []string
	var event string
	sc := bufio.NewScanner(res.Body)
	sc.Buffer(nil, 1<<20)
	for sc.Scan() {
		line := sc.Text()
		if line != "" {
			event += line + "\n"
			continue
		}
		if got = append(got, event); enough(got) {
			return got
		}
		event = ""
		if then != nil {
			then(len(got))
		}
	}
	if !enough(append(got, "end")) {
		h.t.Fatalf("the stream ended with %q (%v)", got, sc.Err())
	}
	return got
}

func TestOutputStreams(t *testing.T) {
	h := open(t, nil)
	text := func(s string) string {
		return `{"type":"assistant","message":{"content":[{"type":"text","text":"` + s + `"}]}}` + "\n"
	}
	dir := h.runRecord("run-aaaaaaaaaa", nil, text("one")+text("two"))
	got := h.events("/runs/run-aaaaaaaaaa/stream?from=0", func(e []string) bool { return len(e) == 2 }, nil)
	if !strings.Contains(got[0], "<p>one</p>") || !strings.Contains(got[0], "<p>two</p>") || !strings.HasPrefix(got[1], "id: ") || !strings.Contains(got[1], "event: ended") {
		t.Errorf("the stream of a run that has ended is %q", got)
	}
	// A browser whose connection was lost goes on where it was.
	if got := h.events("/runs/run-aaaaaaaaaa/stream?from="+strings.TrimSpace(itoa(len(text("one")))), func(e []string) bool { return len(e) == 2 }, nil); strings.Contains(got[0], "one") || !strings.Contains(got[0], "two") {
		t.Errorf("the stream from the second line on is %q", got)
	}
	for _, from := range []string{"x", "-1", ""} {
		if code, _ := h.get("/runs/run-aaaaaaaaaa/stream?from=" + from); code != http.StatusBadRequest {
			t.Errorf("from=%s: %d, want 400", from, code)
		}
	}
	// The agent can put something else in the place of its output.
	out := filepath.Join(dir, "stdout.jsonl")
	if err := os.Remove(out); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc/passwd", out); err == nil {
		if code, body := h.get("/runs/run-aaaaaaaaaa"); code != http.StatusOK || strings.Contains(body, "root:") {
			t.Errorf("a link out of the run's directory was followed (%d)", code)
		}
	}
}

func itoa(n int) string { data, _ := json.Marshal(n); return string(data) }

// Files that a person or another program changes are noticed by whoever has a page open.
func TestChangesByHandAreTold(t *testing.T) {
	h := open(t, nil)
	got := h.events("/live", func(e []string) bool { return strings.Contains(strings.Join(e, ""), "data: queue") }, func(n int) {
		if n == 1 { // hello
			h.add(queue.Item{ID: "one", Title: "First"})
		}
	})
	if !strings.Contains(got[0], "event: hello") {
		t.Errorf("the stream begins with %q", got[0])
	}
}
