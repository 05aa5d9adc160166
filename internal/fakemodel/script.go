// Package fakemodel is a scripted stand-in for hosted models, so that real agent
// programs can be run without a network, an account or a bill: in tests, and
// where the doctor proves that a client's hooks work.
//
// It owns nothing on disk, writes no file and takes no lock beyond a mutex of
// its own. A Server listens on a loopback port that the system picks; a Model is
// the http.Handler behind it, for use without a listener. Answers come from
// Rules: the first rule that matches a request and has uses left answers it.
//
// It speaks the APIs of the four clients, plain and as server-sent events: the
// Messages API (Claude Code 2.1), the Responses API (Codex 0.171), the Gemini
// API (Gemini CLI 0.61) and chat completions (Copilot CLI 1.0). Requests of all
// four are read into the same Request, so that a rule or an assertion need not
// know which client asked. A Trial says how a client is started against it.
package fakemodel

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"
)

// Script is a list of rules and what to say when none of them applies.
type Script struct {
	Rules []Rule `json:"rules"`
	// Otherwise answers every request that no rule wants; nil answers with the text "ok".
	Otherwise *Answer `json:"otherwise,omitempty"`
}

// Rule says which requests it answers, how often, and with what.
type Rule struct {
	// Name shows in the request log. Rules without one are called "rule N", N from 1.
	Name string `json:"name,omitempty"`
	When When   `json:"when,omitempty"`
	// Uses is how many requests the rule may answer: 0 means 1, a negative number no limit.
	Uses int `json:"uses,omitempty"`
	// Say is the answer. Text and string values inside tool inputs may name
	// groups of the When patterns as ${name}.
	Say Answer `json:"say"`
	// Reply, if set, makes the answer in place of Say. Only Go code can set it.
	// It runs under the model's lock and must not call the model.
	Reply func(*Request) Answer `json:"-"`
}

// When is a conjunction of conditions; an empty one matches every main request.
// The strings are regular expressions (RE2) that need to match somewhere.
type When struct {
	// Task looks at the conversation's first user message: it tells several
	// agents that share one model apart.
	Task string `json:"task,omitempty"`
	// User looks at the text of the last user message, without tool results.
	User string `json:"user,omitempty"`
	// Result looks at the tool results in the last user message, joined by newlines.
	Result string `json:"result,omitempty"`
	// System looks at the system prompt.
	System string `json:"system,omitempty"`
	// Body looks at the request as it was sent.
	Body string `json:"body,omitempty"`
	// Model looks at the name of the model that was asked for.
	Model string `json:"model,omitempty"`
	// Offers lists tools that the request must offer.
	Offers []string `json:"offers,omitempty"`
	// Turn, if not 0, is how many answers the model has given in this conversation, plus one.
	Turn int `json:"turn,omitempty"`
	// Side says whether the rule is for side requests (see Request.Side). A rule
	// that does not say so sees only main requests.
	Side bool `json:"side,omitempty"`
}

// Answer is what the model says, or how it fails.
type Answer struct {
	Thinking string `json:"thinking,omitempty"`
	Text     string `json:"text,omitempty"`
	Calls    []Call `json:"calls,omitempty"`
	// Stop overrides the API's own stop reason for calls or for the end of a turn.
	Stop  string `json:"stop,omitempty"`
	Usage Usage  `json:"usage,omitempty"`

	// DelayMS is the wait before the first byte, PaceMS the wait before each streamed piece; milliseconds.
	DelayMS int `json:"delay_ms,omitempty"`
	PaceMS  int `json:"pace_ms,omitempty"`

	// Fail answers with an HTTP error.
	Fail *Failure `json:"fail,omitempty"`
	// CutAfter drops the connection after so many stream events; without streaming at once.
	CutAfter int `json:"cut_after,omitempty"`
	// FailMidway ends a stream by an error event of this type, after the first piece.
	FailMidway string `json:"fail_midway,omitempty"`
	// Hang never answers: it waits until the caller leaves or the server is closed.
	Hang bool `json:"hang,omitempty"`
}

// Call is one tool call. Input is any JSON object; nil is {}. See ShellTool for
// a tool that every client has under another name.
type Call struct {
	Tool  string         `json:"tool"`
	Input map[string]any `json:"input,omitempty"`
}

// Usage counts tokens. Zero input and output become 100 and 20.
type Usage struct {
	Input      int `json:"input,omitempty"`
	Output     int `json:"output,omitempty"`
	CacheRead  int `json:"cache_read,omitempty"`
	CacheWrite int `json:"cache_write,omitempty"`
}

// Failure is an HTTP error. Type and Message default to what the API documents for Status.
type Failure struct {
	Status  int    `json:"status"`
	Type    string `json:"type,omitempty"`
	Message string `json:"message,omitempty"`
	// RetryAfter is sent as the header of that name, in seconds, if not 0.
	RetryAfter int `json:"retry_after,omitempty"`
}

// errorType is the documented type of an error by its status.
func errorType(status int) string {
	switch status {
	case 400:
		return "invalid_request_error"
	case 401:
		return "authentication_error"
	case 403:
		return "permission_error"
	case 404:
		return "not_found_error"
	case 413:
		return "request_too_large"
	case 429:
		return "rate_limit_error"
	case 529:
		return "overloaded_error"
	}
	return "api_error"
}

// Parse reads a script from JSON. An unknown key, trailing data, a bad pattern
// or an impossible value is an error.
func Parse(data []byte) (Script, error) {
	var s Script
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&s); err != nil {
		return Script{}, fmt.Errorf("parse model script: %w", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return Script{}, errors.New("parse model script: more than one JSON value")
	}
	if _, err := compile(s, 0); err != nil {
		return Script{}, err
	}
	return s, nil
}

// compiled is a rule made ready, with its count of uses.
type compiled struct {
	Rule
	left     int // negative: for ever
	patterns []pattern
}

type pattern struct {
	re   *regexp.Regexp
	from func(*Request) string
}

func compile(s Script, before int) ([]*compiled, error) {
	var out []*compiled
	for i, r := range s.Rules {
		c, err := compileRule(r)
		if c.Name == "" {
			c.Name = fmt.Sprintf("rule %d", before+i+1)
		}
		if err != nil {
			return nil, fmt.Errorf("model script, %s: %w", c.Name, err)
		}
		out = append(out, c)
	}
	if s.Otherwise != nil {
		if err := s.Otherwise.check(); err != nil {
			return nil, fmt.Errorf("model script, otherwise: %w", err)
		}
	}
	return out, nil
}

func compileRule(r Rule) (*compiled, error) {
	c := &compiled{Rule: r, left: r.Uses}
	if c.left == 0 {
		c.left = 1
	}
	for _, p := range []struct {
		key, re string
		from    func(*Request) string
	}{
		{"task", r.When.Task, (*Request).Task},
		{"user", r.When.User, (*Request).User},
		{"result", r.When.Result, (*Request).Results},
		{"system", r.When.System, (*Request).SystemText},
		{"body", r.When.Body, func(q *Request) string { return string(q.Body) }},
		{"model", r.When.Model, func(q *Request) string { return q.Model }},
	} {
		if p.re == "" {
			continue
		}
		re, err := regexp.Compile(p.re)
		if err != nil {
			return c, fmt.Errorf("when.%s: %w", p.key, err)
		}
		c.patterns = append(c.patterns, pattern{re, p.from})
	}
	return c, r.Say.check()
}

func (a Answer) check() error {
	if a.DelayMS < 0 || a.PaceMS < 0 || a.CutAfter < 0 {
		return errors.New("say: delay_ms, pace_ms and cut_after may not be negative")
	}
	if a.Fail != nil && (a.Fail.Status < 400 || a.Fail.Status > 599) {
		return fmt.Errorf("say.fail.status: %d is no HTTP error", a.Fail.Status)
	}
	for _, call := range a.Calls {
		if call.Tool == "" {
			return errors.New("say.calls: a call names no tool")
		}
	}
	return nil
}

// match reports whether the rule wants the request, and the named groups it caught.
func (c *compiled) match(q *Request) (map[string]string, bool) {
	if c.left == 0 || c.When.Side != q.Side() {
		return nil, false
	}
	if c.When.Turn != 0 && c.When.Turn != q.Turn() {
		return nil, false
	}
	for _, name := range c.When.Offers {
		if !q.Offers(name) {
			return nil, false
		}
	}
	groups := map[string]string{}
	for _, p := range c.patterns {
		found := p.re.FindStringSubmatch(p.from(q))
		if found == nil {
			return nil, false
		}
		for i, name := range p.re.SubexpNames() {
			if name != "" {
				groups[name] = found[i]
			}
		}
	}
	return groups, true
}

// fill puts caught groups into the answer's text and inputs.
func (a Answer) fill(groups map[string]string) Answer {
	if len(groups) == 0 {
		return a
	}
	var pairs []string
	for name, value := range groups {
		pairs = append(pairs, "${"+name+"}", value)
	}
	rep := strings.NewReplacer(pairs...)
	a.Text = rep.Replace(a.Text)
	calls := make([]Call, len(a.Calls))
	for i, call := range a.Calls {
		calls[i] = Call{Tool: rep.Replace(call.Tool)}
		if call.Input != nil {
			calls[i].Input = fillValue(call.Input, rep).(map[string]any)
		}
	}
	a.Calls = calls
	return a
}

func fillValue(v any, rep *strings.Replacer) any {
	switch v := v.(type) {
	case string:
		return rep.Replace(v)
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, e := range v {
			out[k] = fillValue(e, rep)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = fillValue(e, rep)
		}
		return out
	}
	return v
}

func ms(n int) time.Duration { return time.Duration(n) * time.Millisecond }
