package agent

import (
	"bytes"
	"encoding/json"
	"fmt"
	"sort"
	"strings"
	"unicode/utf8"

	"reprise/internal/clip"
)

// Limits on what a stream keeps, so that a run of any length is followed in
// constant memory. The whole output stays in the run's stdout file.
const (
	// MaxText is the most of an answer that Result.Text holds, in bytes.
	MaxText      = 4 << 20
	maxLastText  = 2 << 10
	maxStray     = 4 << 10
	maxListed    = 100 // denials and errors kept one by one
	maxToolNames = 256
	maxReason    = 1000 // runes
	stderrInText = 4 << 10
)

// claudeStream understands the lines of `--output-format stream-json` as
// Claude Code 2.1.332 writes them. The order of keys varies from line to
// line and unknown types and keys are normal, so every line is taken apart
// key by key and what has an unexpected form is passed over.
type claudeStream struct {
	p       Progress
	retries int
	tools   map[string]int
	denied  []Denial // from events, in order; the result's list is the better one
	nDenied int
	errs    []string
	stray   []byte // what was not JSON: errors from before the session
	lines   int
	lastMsg string // id of the assistant message seen last; one message is several lines
	// msgTokens is how many tokens that message has used so far.
	msgTokens  int64
	stopReason string
	apiText    bool // the last assistant text was the client's own error message
	result     *claudeResult
}

// claudeResult is a result line.
type claudeResult struct {
	subtype, terminal string
	isError, judged   bool // judged: is_error was there and a boolean
	hasTurns          bool
	hasText, cut      bool
	r                 Result
}

func newClaudeStream() *claudeStream { return &claudeStream{tools: map[string]int{}} }

type object map[string]json.RawMessage

func (o object) str(key string) string {
	var s string
	if json.Unmarshal(o[key], &s) != nil {
		return ""
	}
	return s
}

// num reads a number; strings, null and numbers beyond a float are 0, not ok.
func (o object) num(key string) (float64, bool) {
	raw := bytes.TrimSpace(o[key])
	if len(raw) == 0 || raw[0] == 'n' {
		return 0, false
	}
	var f float64
	if json.Unmarshal(raw, &f) != nil {
		return 0, false
	}
	return f, true
}

func (o object) int(key string) int {
	f, _ := o.num(key)
	if f > 1e15 || f < -1e15 {
		return 0
	}
	return int(f)
}

func (o object) obj(key string) object {
	var m object
	if json.Unmarshal(o[key], &m) != nil {
		return nil
	}
	return m
}

func (o object) list(key string) []json.RawMessage {
	var l []json.RawMessage
	if json.Unmarshal(o[key], &l) != nil {
		return nil
	}
	return l
}

// isTrue reports a boolean and whether it was one.
func (o object) isTrue(key string) (val, ok bool) {
	switch string(bytes.TrimSpace(o[key])) {
	case "true":
		return true, true
	case "false":
		return false, true
	}
	return false, false
}

func (s *claudeStream) Line(line []byte, cut bool) {
	s.lines++
	line = bytes.TrimSpace(line)
	if len(line) == 0 {
		return
	}
	var o object
	if cut {
		o = partialObject(line)
		s.note(fmt.Sprintf("line %d of the output is longer than %d bytes and was read only to there", s.lines, len(line)))
	} else if line[0] != '{' || json.Unmarshal(line, &o) != nil {
		o = nil
	}
	if o == nil {
		if n := maxStray - len(s.stray); n > 0 && !cut {
			s.stray = append(append(s.stray, line[:min(n, len(line))]...), '\n')
		}
		return
	}
	if id := o.str("session_id"); id != "" && len(id) <= 128 {
		s.p.SessionID = id
	}
	switch o.str("type") {
	case "system":
		s.system(o)
	case "assistant":
		s.p.Retry = nil
		s.assistant(o)
	case "user":
		s.p.Retry = nil
	case "result":
		s.p.Retry = nil
		s.p.ResultSeen = true
		s.result = readResult(o, cut)
	}
}

// Skip implements Stream.
func (s *claudeStream) Skip(n int64) {
	s.note(fmt.Sprintf("%d bytes in the middle of the output were not read; the file has them", n))
}

func (s *claudeStream) system(o object) {
	switch o.str("subtype") {
	case "api_retry":
		s.retries++
		s.p.Retry = &Retry{Attempt: o.int("attempt"), MaxAttempts: o.int("max_retries"), DelayMS: o.int("retry_delay_ms"),
			Status: o.int("error_status"), Error: bounded(o.str("error"), 200)}
	case "permission_denied":
		s.nDenied++
		if len(s.denied) < maxListed {
			s.denied = append(s.denied, Denial{Tool: bounded(o.str("tool_name"), 200), UseID: bounded(o.str("tool_use_id"), 200), Reason: bounded(o.str("message"), 500)})
		}
	}
}

func (s *claudeStream) assistant(o object) {
	msg := o.obj("message")
	if id := msg.str("id"); id == "" || id != s.lastMsg {
		s.p.Messages++
		s.lastMsg = bounded(id, 200)
		s.msgTokens = 0
	}
	// Each line of a message has the message's usage as it is by then.
	if u := msg.obj("usage"); u != nil {
		now := readUsage(u).Sum()
		s.p.Tokens += now - s.msgTokens
		s.msgTokens = now
	}
	if why := msg.str("stop_reason"); why != "" {
		s.stopReason = bounded(why, 100)
	}
	// A subagent's words are not the run's, but its calls are.
	var parent string
	sub := json.Unmarshal(o["parent_tool_use_id"], &parent) == nil && parent != ""
	api, _ := o.isTrue("is_api_error_message")
	if text := msg.str("content"); text != "" && !sub {
		s.p.LastText, s.apiText = bounded(text, maxLastText), api
	}
	for _, raw := range msg.list("content") {
		var b object
		if json.Unmarshal(raw, &b) != nil {
			continue
		}
		switch b.str("type") {
		case "text":
			if text := b.str("text"); text != "" && !sub {
				s.p.LastText, s.apiText = bounded(text, maxLastText), api
			}
		case "tool_use", "server_tool_use", "mcp_tool_use":
			s.p.ToolCalls++
			name := bounded(b.str("name"), 200)
			s.p.LastTool = name
			if _, known := s.tools[name]; !known && len(s.tools) >= maxToolNames {
				name = "(other)"
			}
			s.tools[name]++
		}
	}
}

func (s *claudeStream) note(msg string) {
	if len(s.errs) < maxListed {
		s.errs = append(s.errs, msg)
	}
}

func readUsage(u object) Usage {
	return Usage{
		InputTokens: int64(u.int("input_tokens")), OutputTokens: int64(u.int("output_tokens")),
		CacheCreationTokens: int64(u.int("cache_creation_input_tokens")), CacheReadTokens: int64(u.int("cache_read_input_tokens")),
	}
}

func readResult(o object, cut bool) *claudeResult {
	c := &claudeResult{subtype: o.str("subtype"), terminal: o.str("terminal_reason"), cut: cut}
	c.isError, c.judged = o.isTrue("is_error")
	c.r.SessionID = o.str("session_id")
	c.r.APIStatus = o.int("api_error_status")
	c.r.TerminalReason = bounded(c.terminal, 200)
	_, c.hasTurns = o.num("num_turns")
	c.r.NumTurns = o.int("num_turns")
	c.r.CostUSD, _ = o.num("total_cost_usd")
	c.r.Usage = readUsage(o.obj("usage"))
	c.r.Subtype = bounded(c.subtype, 100)
	c.r.Text = o.str("result")
	c.hasText = c.r.Text != ""
	if so := bytes.TrimSpace(o["structured_output"]); len(so) > 0 && string(so) != "null" && len(so) <= MaxText {
		c.r.Structured = append(json.RawMessage(nil), so...)
	}
	for _, raw := range o.list("errors") {
		var msg string
		if json.Unmarshal(raw, &msg) == nil && len(c.r.Errors) < maxListed {
			c.r.Errors = append(c.r.Errors, bounded(msg, 500))
		}
	}
	for _, raw := range o.list("permission_denials") {
		var d object
		if json.Unmarshal(raw, &d) == nil && len(c.r.PermissionDenials) < maxListed {
			c.r.PermissionDenials = append(c.r.PermissionDenials, Denial{Tool: bounded(d.str("tool_name"), 200), UseID: bounded(d.str("tool_use_id"), 200), Input: bounded(compact(d["tool_input"]), maxLastText)})
		}
	}
	return c
}

func (s *claudeStream) Progress() Progress {
	p := s.p
	if p.Retry != nil {
		r := *p.Retry
		p.Retry = &r
	}
	return p
}

// Finish judges the run. No single field is to be trusted: an API error says
// subtype "success", a denied run exits 0, a blocked prompt has is_error
// false, an interrupted one exits 0. A run is good when a result line says
// so in all its parts and the process ended as a good one does.
func (s *claudeStream) Finish(e Exit) Result {
	var r Result
	if s.result != nil {
		r = s.result.r
		r.IsError = s.result.isError
	}
	if r.SessionID == "" {
		r.SessionID = s.p.SessionID
	}
	r.Retries, r.StopReason = s.retries, s.stopReason
	r.Errors = append(append([]string(nil), r.Errors...), s.errs...)
	r.Tools = make(map[string]int, len(s.tools))
	for k, v := range s.tools {
		r.Tools[k] = v
	}
	r.PermissionDenials = s.mergeDenials(r.PermissionDenials)

	why := s.verdict(e)
	r.OK = why == ""
	if why != "" && r.Text == "" {
		r.Text = s.fallbackText(e, r.Errors)
	}
	if len(r.Text) > MaxText {
		r.Errors = append(r.Errors, fmt.Sprintf("the answer has %d bytes, the first %d are kept; all of it is in the run's output", len(r.Text), MaxText))
		r.Text = clip.Head(r.Text, MaxText)
	}
	r.Reason = oneLine(join("; ", why, deniedSummary(r.PermissionDenials, max(s.nDenied, len(r.PermissionDenials)))))
	return r
}

// verdict says why the run is not good, "" if it is.
func (s *claudeStream) verdict(e Exit) string {
	c := s.result
	switch {
	case e.Cancelled:
		return "cancelled"
	case e.TimedOut:
		return join(", ", "stopped at its time limit", s.retryHint())
	case c == nil:
		return join(": ", "ended without a result ("+e.String()+")", join(", ", s.retryHint(), s.lastWords(e)))
	}
	if why := c.verdict(); why != "" {
		return why
	}
	if !e.AfterResult && (e.Code != 0 || e.Signal != "") {
		return "reported success, but the process ended with " + e.String()
	}
	return ""
}

// verdict judges the result line alone.
func (c *claudeResult) verdict() string {
	switch {
	case !c.judged && c.cut:
		return "the result line is longer than what is read of a line, and its verdict lay behind that"
	case !c.judged:
		return "the result does not say whether it is an error"
	case c.isError && c.terminal == "api_error", c.r.APIStatus >= 400:
		if c.r.APIStatus > 0 {
			return fmt.Sprintf("the model's API failed with status %d: %s", c.r.APIStatus, bounded(c.r.Text, 500))
		}
		return join(": ", "the model's API failed", bounded(c.r.Text, 500))
	case c.isError, strings.HasPrefix(c.subtype, "error"):
		kind := c.subtype
		if kind == "success" { // what the client says where the model's service failed
			kind = ""
		}
		return join(": ", "the agent ended with an error", join(", ", kind, c.terminalUnless("completed"), strings.Join(c.r.Errors, ", "), bounded(c.r.Text, 500)))
	case c.terminal != "" && c.terminal != "completed":
		return "the agent stopped early: " + bounded(c.terminal, 200)
	case c.r.NumTurns < 1:
		// A hook that blocks the prompt looks like success in everything else.
		return "nothing was sent to the model: the prompt was blocked by a hook or was a local command"
	case strings.TrimSpace(c.r.Text) == "" && len(c.r.Structured) == 0:
		return "the agent ended without an answer"
	}
	return ""
}

func (c *claudeResult) terminalUnless(usual string) string {
	if c.terminal == usual {
		return ""
	}
	return bounded(c.terminal, 200)
}

func (s *claudeStream) retryHint() string {
	if r := s.p.Retry; r != nil {
		return fmt.Sprintf("while waiting to ask the model again (attempt %d of %d, status %d %s)", r.Attempt, r.MaxAttempts, r.Status, r.Error)
	}
	return ""
}

// lastWords is what a program said before it ended without a result.
func (s *claudeStream) lastWords(e Exit) string {
	if t := strings.TrimSpace(e.Stderr); t != "" {
		return tail(t, 500)
	}
	return tail(strings.TrimSpace(toValid(s.stray)), 500)
}

// fallbackText is what there is to read of a run without an answer.
func (s *claudeStream) fallbackText(e Exit, errs []string) string {
	parts := []string{}
	if s.p.LastText != "" && !s.apiText {
		parts = append(parts, s.p.LastText)
	}
	if t := strings.TrimSpace(toValid(s.stray)); t != "" {
		parts = append(parts, t)
	}
	if len(errs) > 0 {
		parts = append(parts, strings.Join(errs, "\n"))
	}
	return withStderr(strings.Join(parts, "\n\n"), e.Stderr)
}

// mergeDenials takes the result's list and adds the reasons, which only the
// events give. Without a result the events are all there is.
func (s *claudeStream) mergeDenials(list []Denial) []Denial {
	if len(list) == 0 {
		return append([]Denial(nil), s.denied...)
	}
	why := map[string]string{}
	for _, d := range s.denied {
		if d.UseID != "" {
			why[d.UseID] = d.Reason
		}
	}
	out := append([]Denial(nil), list...)
	for i := range out {
		out[i].Reason = why[out[i].UseID]
	}
	return out
}

func deniedSummary(list []Denial, n int) string {
	if n == 0 {
		return ""
	}
	count := map[string]int{}
	for _, d := range list {
		count[d.Tool]++
	}
	names := make([]string, 0, len(count))
	for name := range count {
		names = append(names, name)
	}
	sort.Strings(names)
	for i, name := range names {
		if count[name] > 1 {
			names[i] = fmt.Sprintf("%s ×%d", name, count[name])
		}
	}
	if n == 1 {
		return "1 tool call was denied: " + strings.Join(names, ", ")
	}
	return fmt.Sprintf("%d tool calls were denied: %s", n, strings.Join(names, ", "))
}

// partialObject reads the members of a JSON object whose end is missing: all
// complete ones, and of a string that was cut as much as is there. It returns
// nil if the beginning is not that of an object.
func partialObject(line []byte) object {
	if len(line) == 0 || line[0] != '{' {
		return nil
	}
	o := object{}
	dec := json.NewDecoder(bytes.NewReader(line))
	if _, err := dec.Token(); err != nil {
		return nil
	}
	for dec.More() {
		tok, err := dec.Token()
		key, ok := tok.(string)
		if err != nil || !ok {
			break
		}
		at := dec.InputOffset()
		var raw json.RawMessage
		if dec.Decode(&raw) != nil {
			if v := cutString(line[at:]); v != nil {
				o[key] = v
			}
			break
		}
		o[key] = raw
	}
	return o
}

// cutString closes a JSON string that lost its end. rest begins after the
// member's name.
func cutString(rest []byte) json.RawMessage {
	rest = bytes.TrimLeft(rest, ": \t\r\n")
	if len(rest) == 0 || rest[0] != '"' {
		return nil
	}
	// An escape or a rune may have been cut too: at most 12 bytes, the two
	// halves of a surrogate pair.
	for drop := 0; drop <= 12 && drop < len(rest); drop++ {
		try := append(bytes.Clone(rest[:len(rest)-drop]), '"')
		if json.Valid(try) {
			return try
		}
	}
	return nil
}

func compact(raw json.RawMessage) string {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return ""
	}
	return b.String()
}

// String describes the end of a process in words.
func (e Exit) String() string {
	if e.Signal != "" {
		return "signal " + e.Signal
	}
	return fmt.Sprintf("exit code %d", e.Code)
}

// bounded is a text in at most n characters.
func bounded(s string, n int) string { return clip.Runes(toValid([]byte(s)), n) }

// tail keeps the last n runes or so of a string.
func tail(s string, n int) string {
	if len(s) <= n {
		return s
	}
	i := len(s) - n
	for i < len(s) && !utf8.RuneStart(s[i]) {
		i++
	}
	return "…" + s[i:]
}

func toValid(b []byte) string { return strings.ToValidUTF8(string(b), "\uFFFD") }

// oneLine makes a text fit for a table: no line breaks, bounded.
func oneLine(s string) string { return bounded(clip.Line(s), maxReason) }

func join(sep string, parts ...string) string {
	var kept []string
	for _, p := range parts {
		if p != "" {
			kept = append(kept, p)
		}
	}
	return strings.Join(kept, sep)
}

// withStderr appends the tail of standard error to a text, marked.
func withStderr(text, stderr string) string {
	t := tail(strings.TrimSpace(toValid([]byte(stderr))), stderrInText)
	if t == "" {
		return text
	}
	return join("\n\n", text, "[stderr]\n"+t)
}
