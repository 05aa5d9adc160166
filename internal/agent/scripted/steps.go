package scripted

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"sort"
	"strings"
	"syscall"
	"time"

	"reprise/internal/durable"
	"reprise/internal/proc"
)

const goOn = -1

type sayStep struct{ Text string }

func (s *sayStep) UnmarshalYAML(f func(any) error) error { return f(&s.Text) }

func (s *sayStep) play(p *player) (int, error) {
	p.say(p.text(s.Text))
	return goOn, nil
}

// whenStep begins a section of steps for some tasks only. One file then serves
// an MCP server, where a caller chooses a task and not a file.
type whenStep struct {
	Task string
	re   *regexp.Regexp
}

func (s *whenStep) UnmarshalYAML(f func(any) error) error { return f(&s.Task) }

func (s *whenStep) check() (err error) {
	s.re, err = regexp.Compile(s.Task)
	return err
}

func (s *whenStep) play(p *player) (int, error) {
	p.skip = !s.re.MatchString(p.task)
	return goOn, nil
}

type delayStep struct{ For duration }

func (s *delayStep) UnmarshalYAML(f func(any) error) error { return f(&s.For) }

func (s *delayStep) play(p *player) (int, error) {
	p.sleep(time.Duration(s.For))
	return goOn, nil
}

type echoStep struct{ What []string }

func (s *echoStep) UnmarshalYAML(f func(any) error) error { return f(&s.What) }

func (s *echoStep) check() error {
	for _, w := range s.What {
		switch w {
		case "task", "cwd", "system_prompt", "env", "args":
		default:
			return fmt.Errorf("cannot echo %q; known are task, cwd, system_prompt, env, args", w)
		}
	}
	return nil
}

func (s *echoStep) play(p *player) (int, error) {
	var b strings.Builder
	for _, w := range s.What {
		fmt.Fprintf(&b, "%s: ", w)
		switch w {
		case "task":
			b.WriteString(p.task)
		case "cwd":
			b.WriteString(p.Dir)
		case "args":
			fmt.Fprintf(&b, "model=%s add_dirs=%s session=%s", p.model, proc.EnvValue(p.Env, "REPRISE_ADD_DIRS"), p.session)
		case "system_prompt":
			data, err := durable.Read(proc.EnvValue(p.Env, "REPRISE_SYSTEM_PROMPT_FILE"))
			if err != nil {
				return 0, err
			}
			b.Write(data)
		case "env":
			// Names only: values of an environment are where secrets are.
			var names []string
			for _, kv := range p.Env {
				name, _, _ := strings.Cut(kv, "=")
				names = append(names, name)
			}
			sort.Strings(names)
			b.WriteString(strings.Join(names, " "))
		}
		b.WriteByte('\n')
	}
	p.say(b.String())
	return goOn, nil
}

type writeStep struct {
	Path    string `yaml:"path"`
	Content string `yaml:"content"`
	Append  bool   `yaml:"append"`
}

func (s *writeStep) check() error {
	if s.Path == "" {
		return fmt.Errorf("path is missing")
	}
	return nil
}

func (s *writeStep) play(p *player) (int, error) {
	path, content := p.path(s.Path), p.text(s.Content)
	id := p.call("Write", map[string]any{"file_path": path, "content": content})
	err := writeFile(path, content, s.Append)
	if err != nil {
		p.answer(id, err.Error(), true)
		p.said = "write failed: " + err.Error()
		return goOn, nil // an agent goes on after a failed tool call
	}
	p.answer(id, "written", false)
	return goOn, nil
}

func writeFile(path, content string, add bool) error {
	if err := durable.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if add { // no lock, which would leave its file in the tree that the agent works in
		was, err := durable.Read(path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		content = string(was) + content
	}
	return durable.WriteFile(path, []byte(content), 0o644)
}

type readStep struct{ Path string }

func (s *readStep) UnmarshalYAML(f func(any) error) error { return f(&s.Path) }

func (s *readStep) play(p *player) (int, error) {
	path := p.path(s.Path)
	id := p.call("Read", map[string]any{"file_path": path})
	data, err := durable.Read(path)
	if err != nil {
		p.answer(id, err.Error(), true)
		p.say("read failed: " + err.Error())
		return goOn, nil
	}
	p.answer(id, string(data), false)
	p.say("read: " + string(data))
	return goOn, nil
}

type shellStep struct {
	Command    string `yaml:"command"`
	Background bool   `yaml:"background"`
}

func (s *shellStep) check() error {
	if s.Command == "" {
		return fmt.Errorf("command is missing")
	}
	return nil
}

const shellOut = 64 << 10

func (s *shellStep) play(p *player) (int, error) {
	cmd := p.text(s.Command)
	id := p.call("Bash", map[string]any{"command": cmd})
	vars := map[string]string{"PATH": proc.EnvValue(p.Env, "PATH")}
	sh, err := proc.LookPath("sh", vars, goos)
	if err != nil {
		return 0, err
	}
	c := proc.Cmd{Path: sh, Args: []string{"-c", cmd}, Env: p.Env, Dir: p.Dir, NewSession: true}
	if s.Background {
		c.Stdout, c.Stderr = p.Out, p.Err
		if _, err := proc.Start(c); err != nil {
			return 0, err
		}
		p.answer(id, "started in the background", false)
		return goOn, nil
	}
	out, err := proc.Run(context.Background(), c, shellOut)
	if err != nil {
		return 0, err
	}
	text := string(append(out.Stdout, out.Stderr...))
	if out.Exit.Code != 0 {
		text = fmt.Sprintf("Exit code %d\n%s", out.Exit.Code, text)
	}
	p.answer(id, text, out.Exit.Code != 0)
	p.said = text
	return goOn, nil
}

type toolStep struct {
	Name  string `yaml:"name"`
	Count int    `yaml:"count"`
}

func (s *toolStep) check() error {
	if s.Name == "" || s.Count < 0 || s.Count > 1_000_000 {
		return fmt.Errorf("a name and a count between 0 and 1000000 are wanted")
	}
	return nil
}

func (s *toolStep) play(p *player) (int, error) {
	for range max(s.Count, 1) {
		p.answer(p.call(s.Name, map[string]any{}), "ok", false)
	}
	return goOn, nil
}

type deniedStep struct {
	Tool   string `yaml:"tool"`
	Input  string `yaml:"input"`
	Reason string `yaml:"reason"`
}

func (s *deniedStep) play(p *player) (int, error) {
	in := map[string]any{"command": p.text(s.Input)}
	tool, why := cmp.Or(s.Tool, "Bash"), cmp.Or(s.Reason, "This command requires approval")
	id := p.call(tool, in)
	p.emit(map[string]any{"type": "system", "subtype": "permission_denied", "tool_name": tool, "tool_use_id": id, "message": why})
	p.answer(id, why, true)
	p.denials = append(p.denials, map[string]any{"tool_name": tool, "tool_use_id": id, "tool_input": in})
	return goOn, nil
}

type floodStep struct {
	Bytes size   `yaml:"bytes"`
	To    string `yaml:"to"`
	Form  string `yaml:"form"`
}

func (s *floodStep) check() error {
	return oneOf(s.To, "to", "stdout", "stderr", s.Form, "form", "json", "text")
}

func oneOf(a, an, a1, a2, b, bn, b1, b2 string) error {
	if a != "" && a != a1 && a != a2 {
		return fmt.Errorf("%s is %s or %s, not %q", an, a1, a2, a)
	}
	if b != "" && b != b1 && b != b2 {
		return fmt.Errorf("%s is %s or %s, not %q", bn, b1, b2, b)
	}
	return nil
}

func (s *floodStep) play(p *player) (int, error) {
	line := []byte(strings.Repeat("All work and no play makes a long log. ", 25) + "\n")
	if s.Form != "text" {
		b, err := json.Marshal(map[string]any{"type": "assistant", "session_id": p.session, "message": map[string]any{
			"id": p.id("msg"), "role": "assistant", "content": []any{map[string]any{"type": "text", "text": string(line)}}}})
		if err != nil {
			return 0, err
		}
		line = append(b, '\n')
	}
	out := p.Out
	if s.To == "stderr" {
		out = p.Err
	}
	block := bytes.Repeat(line, 64)
	for left := int64(s.Bytes); left > 0; left -= int64(len(block)) {
		if left < int64(len(block)) {
			// Whole lines: a cut one would be another step's business.
			n := (int(left) + len(line) - 1) / len(line)
			block = block[:n*len(line)]
		}
		if _, err := out.Write(block); err != nil {
			return 0, err
		}
	}
	return goOn, nil
}

type longLineStep struct {
	Bytes size   `yaml:"bytes"`
	Form  string `yaml:"form"`
}

func (s *longLineStep) check() error {
	switch s.Form {
	case "", "json", "text", "result":
		return nil
	}
	return fmt.Errorf("form is json, text or result, not %q", s.Form)
}

func (s *longLineStep) play(p *player) (int, error) {
	head, end := "", "\n"
	switch s.Form {
	case "", "json":
		head = `{"type":"assistant","session_id":` + quote(p.session) + `,"message":{"id":` + quote(p.id("msg")) + `,"role":"assistant","content":[{"type":"text","text":"`
		end = `"}]}}` + "\n"
		p.turns++
	case "result":
		head = `{"type":"result","subtype":"success","is_error":false,"num_turns":1,"terminal_reason":"completed","session_id":` + quote(p.session) + `,"result":"`
		end = `"}` + "\n"
		p.resulted = true
	}
	p.write([]byte(head))
	// In pieces: the line may be larger than memory should be.
	piece := bytes.Repeat([]byte("long "), 64<<10/5)
	for left := int64(s.Bytes); left > 0 && p.err == nil; left -= int64(len(piece)) {
		p.write(piece[:min(int64(len(piece)), left)])
	}
	p.write([]byte(end))
	return goOn, p.err
}

func quote(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		return `""`
	}
	return string(b)
}

type stderrStep struct{ Text string }

func (s *stderrStep) UnmarshalYAML(f func(any) error) error { return f(&s.Text) }

func (s *stderrStep) play(p *player) (int, error) {
	_, err := io.WriteString(p.Err, p.text(s.Text)+"\n")
	return goOn, err
}

type rawStep struct{ Text string }

func (s *rawStep) UnmarshalYAML(f func(any) error) error { return f(&s.Text) }

func (s *rawStep) play(p *player) (int, error) {
	p.write([]byte(p.text(s.Text)))
	return goOn, nil
}

type partialStep struct{ Text string }

func (s *partialStep) UnmarshalYAML(f func(any) error) error { return f(&s.Text) }

func (s *partialStep) play(p *player) (int, error) {
	p.write([]byte(p.text(s.Text)))
	return killSelf(syscall.SIGKILL)
}

type apiRetryStep struct {
	Count  int      `yaml:"count"`
	Status int      `yaml:"status"`
	Delay  duration `yaml:"delay"`
}

func (s *apiRetryStep) check() error {
	if s.Count < 0 || s.Count > 100_000 {
		return fmt.Errorf("count is between 0 and 100000")
	}
	return nil
}

func (s *apiRetryStep) play(p *player) (int, error) {
	status := s.Status
	if status == 0 {
		status = 429
	}
	for i := range max(s.Count, 1) {
		p.emit(map[string]any{"type": "system", "subtype": "api_retry", "attempt": i + 1, "max_retries": max(s.Count, 1),
			"retry_delay_ms": time.Duration(s.Delay).Milliseconds(), "error_status": status, "error": errorName(status)})
		p.sleep(time.Duration(s.Delay))
	}
	return goOn, nil
}

func errorName(status int) string {
	switch status {
	case 401:
		return "authentication_failed"
	case 429:
		return "rate_limit"
	case 529:
		return "overloaded"
	}
	return "server_error"
}

type apiErrorStep struct {
	Status  int    `yaml:"status"`
	Message string `yaml:"message"`
}

func (s *apiErrorStep) play(p *player) (int, error) {
	status := s.Status
	if status == 0 {
		status = 500
	}
	text := fmt.Sprintf("API Error: %d %s", status, cmp.Or(p.text(s.Message), errorName(status)))
	p.assistant(map[string]any{"type": "text", "text": text}, map[string]any{"is_api_error_message": true, "api_error_status": status})
	// As the real client has it: subtype success.
	p.result(resultStep{Text: &text, IsError: true, TerminalReason: "api_error", APIStatus: status})
	return 1, nil
}

type resultStep struct {
	Text           *string `yaml:"text"`
	IsError        bool    `yaml:"is_error"`
	Subtype        string  `yaml:"subtype"`
	TerminalReason string  `yaml:"terminal_reason"`
	Turns          *int    `yaml:"turns"`
	Cost           float64 `yaml:"cost"`
	APIStatus      int     `yaml:"api_status"`
}

func (s *resultStep) play(p *player) (int, error) {
	p.result(*s)
	return goOn, nil
}

type ignoreStep struct{ Signals []string }

func (s *ignoreStep) UnmarshalYAML(f func(any) error) error { return f(&s.Signals) }

func (s *ignoreStep) check() error {
	for _, n := range s.Signals {
		if _, err := signalNamed(n); err != nil {
			return err
		}
	}
	return nil
}

func (s *ignoreStep) play(*player) (int, error) {
	for _, n := range s.Signals {
		sig, err := signalNamed(n)
		if err != nil {
			return 0, err
		}
		signal.Ignore(sig)
	}
	return goOn, nil
}

type signalStep struct{ Name string }

func (s *signalStep) UnmarshalYAML(f func(any) error) error { return f(&s.Name) }

func (s *signalStep) check() error {
	_, err := signalNamed(s.Name)
	return err
}

func (s *signalStep) play(*player) (int, error) {
	sig, err := signalNamed(s.Name)
	if err != nil {
		return 0, err
	}
	return killSelf(sig)
}

func signalNamed(name string) (os.Signal, error) {
	switch strings.TrimPrefix(strings.ToUpper(name), "SIG") {
	case "TERM":
		return syscall.SIGTERM, nil
	case "INT":
		return syscall.SIGINT, nil
	case "HUP":
		return syscall.SIGHUP, nil
	case "KILL":
		return syscall.SIGKILL, nil
	case "ABRT":
		return syscall.SIGABRT, nil
	}
	return nil, fmt.Errorf("unknown signal %q; known are SIGTERM, SIGINT, SIGHUP, SIGKILL, SIGABRT", name)
}

// killSelf signals this process and waits for the effect. Where a signal is
// ignored, it does not come, and the script goes on after a moment.
func killSelf(sig os.Signal) (int, error) {
	self, err := proc.Self()
	if err != nil {
		return 0, err
	}
	if err := self.Signal(sig); err != nil {
		return 0, err
	}
	if sig == syscall.SIGKILL {
		select {}
	}
	t := time.NewTimer(2 * time.Second)
	defer t.Stop()
	<-t.C
	return goOn, nil
}

type hangStep struct{ On bool }

func (s *hangStep) UnmarshalYAML(f func(any) error) error { return f(&s.On) }

func (s *hangStep) play(p *player) (int, error) {
	for s.On {
		p.sleep(time.Hour)
	}
	return goOn, nil
}

type exitStep struct{ Code int }

func (s *exitStep) UnmarshalYAML(f func(any) error) error { return f(&s.Code) }

func (s *exitStep) check() error {
	if s.Code < 0 || s.Code > 255 {
		return fmt.Errorf("a code is between 0 and 255")
	}
	return nil
}

func (s *exitStep) play(*player) (int, error) { return s.Code, nil }

type waitForStep struct {
	File    string   `yaml:"file"`
	Timeout duration `yaml:"timeout"`
}

func (s *waitForStep) check() error {
	if s.File == "" {
		return fmt.Errorf("file is missing")
	}
	return nil
}

func (s *waitForStep) play(p *player) (int, error) {
	limit := time.Duration(s.Timeout)
	if limit == 0 {
		limit = 30 * time.Second
	}
	path := p.path(s.File)
	end := time.NewTimer(limit)
	defer end.Stop()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		if _, err := os.Lstat(path); err == nil {
			return goOn, nil
		}
		select {
		case <-tick.C:
		case <-end.C:
			return 0, fmt.Errorf("%s did not appear within %s", path, limit)
		}
	}
}
