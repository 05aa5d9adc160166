package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"time"
)

// server is a program of reprise that an actor keeps running.
type server struct {
	cmd   *exec.Cmd
	said  *bytes.Buffer // standard error
	began time.Time
	hit   bool // killed by us
}

func (s *server) kill() {
	s.hit = true
	_ = s.cmd.Process.Signal(syscall.SIGCONT)
	_ = s.cmd.Process.Kill()
}

// disturb kills a server or lets it stand still, now and then, from the side.
func (a *actor) disturb(ctx context.Context, s *server, done <-chan struct{}) {
	kill, stop := a.rand.IntN(100) < 3, a.rand.IntN(100) < 3
	after, still := time.Duration(a.rand.Int64N(int64(20*time.Millisecond))), time.Duration(a.rand.Int64N(int64(2*time.Second)))
	kill, stop = kill && a.w.opt.faults["kill"], stop && a.w.opt.faults["stop"]
	if !kill && !stop {
		return
	}
	select {
	case <-done:
		return
	case <-time.After(after):
	}
	if kill {
		a.w.blows.add(a.name+" server killed", 1)
		s.kill()
		return
	}
	a.w.blows.add(a.name+" server stood still", 1)
	_ = s.cmd.Process.Signal(syscall.SIGSTOP)
	wait(ctx, still)
	_ = s.cmd.Process.Signal(syscall.SIGCONT)
}

// client is an MCP client over standard input and output.
type client struct {
	server
	in  io.WriteCloser
	out chan []byte // lines, until the server ends
	id  int
}

// makeMCP makes a client that calls tools, and begins the server anew when it is gone.
func (w *world) makeMCP() {
	var c *client
	a := w.actor("mcp", func(ctx context.Context, a *actor) error {
		if c == nil {
			var err error
			if c, err = a.connect(ctx); c == nil {
				return err
			}
		}
		mark := a.mark()
		t, of := a.tool(mark)
		began := time.Now()
		done := make(chan struct{})
		over := make(chan struct{})
		go func() { a.disturb(ctx, &c.server, done); close(over) }()
		text, failed, err := c.call(t.name, t.args)
		close(done)
		<-over
		switch {
		case err != nil:
			a.lost(c, err)
			c = nil
		case failed:
			w.blows.add("mcp calls refused", 1)
			if strings.Contains(text, advice) && w.excused(w.start0) {
				w.advised.Store(true) // a person would do it at once; here it is done at the end
			} else if strings.TrimSpace(text) == "" || strings.Contains(text, "panic") || strings.Contains(text, "goroutine ") {
				a.bad("%s: refused without a plain error: %q", t.name, text)
			} else if !w.excused(began) && !w.spells.since(began, "slow", "network") {
				a.bad("%s: refused although nothing was wrong: %q", t.name, text)
			}
		default:
			w.blows.add("mcp calls done", 1)
			if of != "" {
				a.keep(of, mark, false)
			}
		}
		return nil
	})
	a.env = w.place("caller")
	a.rest = func(a *actor) {
		if c == nil {
			return
		}
		_ = c.in.Close() // the end of its input is the end of the server
		ended := make(chan error, 1)
		go func() { ended <- c.cmd.Wait() }()
		select {
		case err := <-ended:
			if err != nil && !c.hit && !w.excused(c.began) {
				a.bad("the MCP server ended with %v at the end of its input: %s", err, c.said)
			}
		case <-time.After(patience):
			a.bad("the MCP server lives %s after the end of its input", patience)
			c.kill()
			<-ended
		}
	}
}

type toolCall struct {
	name string
	args map[string]any
}

// tool is what is called next, and what keeps what it writes.
func (a *actor) tool(mark string) (toolCall, string) {
	is := func(name, of string, args map[string]any) (toolCall, string) { return toolCall{name, args}, of }
	switch n := a.rand.IntN(100); {
	case n < 15:
		return is("append_episodic_log", keptMemory, map[string]any{"title": "Called", "entry": "it was " + mark})
	case n < 22:
		return is("create_memory_block", keptMemory, map[string]any{"name": "reference-" + mark, "content": "# " + mark + "\n\nAs said."})
	case n < 32:
		return is("memory_search", "", map[string]any{"query": "door gate"})
	case n < 40:
		return is("memory_read", "", map[string]any{"name": "core"})
	case n < 55:
		return is("state_log", keptState, map[string]any{"message": "came by " + mark})
	case n < 63:
		return is("state_learn", keptState, map[string]any{"insight": "The bridge " + mark + " bears a cart and two horses"})
	case n < 70:
		return is("state_note", keptState, map[string]any{"name": mark, "text": "the bridge " + mark})
	case n < 75:
		return is("state_context", "", map[string]any{})
	case n < 82:
		return is("task_new", keptTasks, map[string]any{"title": "Mend " + mark})
	case n < 88:
		return is("task_list", "", map[string]any{})
	case n < 94:
		return is("list_agents", "", map[string]any{})
	default:
		return is("state_search", "", map[string]any{"query": "bridge"})
	}
}

// connect starts a server and shakes hands; nil where it could not because of what is
// wrong with the machine.
func (a *actor) connect(ctx context.Context) (*client, error) {
	c := &client{server: server{said: &bytes.Buffer{}, began: time.Now()}, out: make(chan []byte)}
	c.cmd = a.w.command("reprise", "mcp", "--toolsets", "all")
	c.cmd.Env, c.cmd.Stderr = append(c.cmd.Env, a.env...), c.said
	var err error
	if c.in, err = c.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := c.cmd.Start(); err != nil {
		return nil, err
	}
	a.w.blows.add("mcp server begun", 1)
	go func() {
		defer close(c.out)
		r := bufio.NewReader(out)
		for {
			line, err := r.ReadBytes('\n')
			if err != nil {
				return
			}
			c.out <- line
		}
	}()
	if _, err := c.ask("initialize", map[string]any{"protocolVersion": "2025-11-25", "capabilities": map[string]any{}, "clientInfo": map[string]any{"name": "chaos", "version": "0"}}); err != nil {
		a.lost(c, err)
		return nil, nil
	}
	if _, err := io.WriteString(c.in, `{"jsonrpc":"2.0","method":"notifications/initialized"}`+"\n"); err != nil {
		a.lost(c, err)
		return nil, nil
	}
	return c, nil
}

// lost clears a server away that did not answer, which is well only where it was killed,
// or something was wrong with the machine.
func (a *actor) lost(c *client, err error) {
	hit := c.hit
	c.kill()
	go func() {
		for range c.out { // the reader ends with the output
		}
	}()
	_ = c.cmd.Wait()
	if hit {
		return
	}
	a.w.blows.add("mcp server lost", 1)
	if !a.w.excused(c.began) {
		a.bad("the MCP server did not answer although nothing was wrong: %v: %s", err, c.said)
	} else if s := c.said.String(); strings.Contains(s, "panic:") || strings.Contains(s, "goroutine ") {
		a.bad("the MCP server shows its insides: %s", s)
	}
}

var errSilent = errors.New("no answer")

// ask sends a request and waits for its answer.
func (c *client) ask(method string, params any) (json.RawMessage, error) {
	c.id++
	line, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": c.id, "method": method, "params": params})
	if err != nil {
		return nil, err
	}
	if _, err := c.in.Write(append(line, '\n')); err != nil {
		return nil, err
	}
	late := time.NewTimer(patience + 10*time.Second)
	defer late.Stop()
	for {
		select {
		case line, ok := <-c.out:
			if !ok {
				return nil, fmt.Errorf("%s: %w: the server has ended", method, errSilent)
			}
			var m struct {
				ID            json.RawMessage
				Result, Error json.RawMessage
			}
			if err := json.Unmarshal(line, &m); err != nil {
				return nil, fmt.Errorf("%s: %q: %w", method, line, err)
			}
			if string(m.ID) != fmt.Sprint(c.id) {
				continue // a notification
			}
			if m.Error != nil {
				return nil, fmt.Errorf("%s: %s", method, m.Error)
			}
			return m.Result, nil
		case <-late.C:
			return nil, fmt.Errorf("%s: %w within %s", method, errSilent, patience)
		}
	}
}

// call calls a tool; failed says that it refused, text what it said.
func (c *client) call(name string, args map[string]any) (text string, failed bool, err error) {
	raw, err := c.ask("tools/call", map[string]any{"name": name, "arguments": args})
	if err != nil {
		return "", false, err
	}
	var r struct {
		IsError bool
		Content []struct{ Text string }
	}
	if err := json.Unmarshal(raw, &r); err != nil {
		return "", false, err
	}
	for _, p := range r.Content {
		text += p.Text
	}
	return text, r.IsError, nil
}

// browser is somebody at the dashboard.
type browser struct {
	server
	http *http.Client
	base string
	csrf string
}

var (
	csrfValue = regexp.MustCompile(`name="csrf" value="([^"]+)"`)
	hashValue = regexp.MustCompile(`name="hash" value="([^"]+)"`)
	textValue = regexp.MustCompile(`(?s)<textarea id="text"[^>]*>\n(.*?)</textarea>`)
)

// makeWeb makes somebody who reads the dashboard, and writes in it.
func (w *world) makeWeb() {
	var b *browser
	a := w.actor("web", func(ctx context.Context, a *actor) error {
		if b == nil {
			var err error
			if b, err = a.browse(); b == nil {
				return err
			}
		}
		began := time.Now()
		done, over := make(chan struct{}), make(chan struct{})
		go func() { a.disturb(ctx, &b.server, done); close(over) }()
		err := a.visit(b, began)
		close(done)
		<-over
		if err != nil {
			hit := b.hit
			b.kill()
			_ = b.cmd.Wait()
			if !hit {
				w.blows.add("web server lost", 1)
				if !w.excused(b.began) {
					a.bad("the dashboard did not answer although nothing was wrong: %v: %s", err, b.said)
				}
			}
			b = nil
		}
		return nil
	})
	a.rest = func(a *actor) {
		if b == nil {
			return
		}
		_ = b.cmd.Process.Signal(syscall.SIGINT)
		ended := make(chan error, 1)
		go func() { ended <- b.cmd.Wait() }()
		select {
		case <-ended:
		case <-time.After(patience):
			a.bad("the dashboard lives %s after it was told to end", patience)
			b.kill()
			<-ended
		}
	}
}

// browse starts a dashboard and is let in; nil where it did not start because of what is
// wrong with the machine.
func (a *actor) browse() (*browser, error) {
	jar, err := cookiejar.New(nil)
	if err != nil {
		return nil, err
	}
	b := &browser{server: server{said: &bytes.Buffer{}, began: time.Now()}, http: &http.Client{Jar: jar, Timeout: patience + 10*time.Second}}
	b.http.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	b.cmd = a.w.command("reprise", "web")
	b.cmd.Env, b.cmd.Stderr = append(b.cmd.Env, a.env...), b.said
	out, err := b.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := b.cmd.Start(); err != nil {
		return nil, err
	}
	a.w.blows.add("web server begun", 1)
	link, err := bufio.NewReader(out).ReadString('\n')
	if err == nil {
		link = strings.TrimSpace(link)
		b.base, _, _ = strings.Cut(link, "/?")
		var res *http.Response
		if res, err = b.http.Get(link); err == nil {
			res.Body.Close()
			var body string
			var code int
			if code, body, err = b.get("/work"); err == nil {
				if m := csrfValue.FindStringSubmatch(body); m != nil {
					b.csrf = html.UnescapeString(m[1])
				} else { // without it every form is one of another session
					err = fmt.Errorf("/work: %d, and no form", code)
				}
			}
		}
	}
	if err != nil {
		b.kill()
		_ = b.cmd.Wait()
		if !a.w.excused(b.began) {
			return nil, fmt.Errorf("the dashboard does not start although nothing is wrong: %w: %s", err, b.said)
		}
		if problem := plain(b.said.String()); problem != "" {
			return nil, fmt.Errorf("the dashboard does not start, and %s: %q", problem, b.said)
		}
		return nil, nil
	}
	return b, nil
}

func (b *browser) get(path string) (int, string, error) {
	res, err := b.http.Get(b.base + path)
	return read(res, err)
}

func (b *browser) post(path string, form url.Values) (int, string, error) {
	form.Set("csrf", b.csrf)
	req, err := http.NewRequest(http.MethodPost, b.base+path, strings.NewReader(form.Encode()))
	if err != nil {
		return 0, "", err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Origin", b.base[:strings.LastIndex(b.base, "/")])
	req.Header.Set("Sec-Fetch-Site", "same-origin")
	res, err := b.http.Do(req)
	return read(res, err)
}

func read(res *http.Response, err error) (int, string, error) {
	if err != nil {
		return 0, "", err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	return res.StatusCode, string(body), err
}

// visit looks at a page, or changes something.
func (a *actor) visit(b *browser, began time.Time) error {
	w, mark := a.w, a.mark()
	var code int
	var body, what string
	var err error
	switch n := a.rand.IntN(100); {
	case n < 60:
		what = oneOf(a, "/", "/memory", "/memory?q=door", "/work", "/runs", "/events", "/state", "/tasks", "/figures", "/policy", "/work/items")
		code, body, err = b.get(what)
	case n < 65 && w.opt.parts["loop"]:
		what = "/work/add"
		if code, body, err = b.post(what, url.Values{"title": {"write " + mark}, "priority": {"5"}}); code == http.StatusSeeOther {
			a.keep(keptQueue, mark, false)
		}
	default:
		page := w.board.page()
		what = "/memory/edit/" + page + ".md"
		if code, body, err = b.get(what); err != nil || code != http.StatusOK {
			break
		}
		hash, text := hashValue.FindStringSubmatch(body), textValue.FindStringSubmatch(body)
		if hash == nil || text == nil {
			return fmt.Errorf("%s: there is no form in %q", what, body)
		}
		now := strings.TrimRight(html.UnescapeString(text[1]), "\n") + "\n- " + mark + "\n"
		if code, body, err = b.post(what, url.Values{"hash": {html.UnescapeString(hash[1])}, "text": {now}}); code == http.StatusSeeOther {
			a.keep(keptMemory, mark, false)
			w.board.added()
		} else if code == http.StatusConflict {
			w.blows.add("board conflicts", 1)
			if !strings.Contains(body, mark) {
				a.bad("%s: what was written is not on the page about the conflict", what)
			}
		}
	}
	if err != nil {
		return err
	}
	switch {
	case code < 400:
		w.blows.add("web calls done", 1)
	case code == http.StatusNotFound || code == http.StatusConflict:
		w.blows.add("web calls refused", 1)
	default:
		w.blows.add("web calls refused", 1)
		if strings.TrimSpace(body) == "" || strings.Contains(body, "goroutine ") {
			a.bad("%s: %d without a plain error: %q", what, code, body)
		} else if !w.excused(began) && !w.spells.since(began, "slow", "network") {
			a.bad("%s: %d although nothing was wrong: %s", what, code, alert(body))
		}
	}
	return nil
}

var alertText = regexp.MustCompile(`(?s)<(?:p|div)[^>]*(?:bad|alert)[^>]*>(.*?)</(?:p|div)>`)

// alert is what a page says went wrong.
func alert(body string) string {
	if m := alertText.FindStringSubmatch(body); m != nil {
		return m[1]
	}
	return body[:min(len(body), 600)]
}
