package transcript

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"reprise/internal/agent/dialect"
)

// geminiReader reads Gemini CLI's `tmp/<project>/chats/session-*.jsonl` (0.61),
// where a later line of the same id replaces an earlier one, and the single
// JSON document `session-*.json` of older versions.
type geminiReader struct {
	*session
	done map[string]bool // calls and messages that are told of
}

type geminiMessage struct {
	ID        string          `json:"id"`
	Time      string          `json:"timestamp"`
	Type      string          `json:"type"`
	Content   json.RawMessage `json:"content"`
	Model     string          `json:"model"`
	ToolCalls []struct {
		ID     string          `json:"id"`
		Name   string          `json:"name"`
		Args   json.RawMessage `json:"args"`
		Status string          `json:"status"`
		Time   string          `json:"timestamp"`
		Result json.RawMessage `json:"result"`
	} `json:"toolCalls"`
}

type geminiLine struct {
	geminiMessage
	Session string `json:"sessionId"`
	Start   string `json:"startTime"`
	Kind    string `json:"kind"`
	Set     struct {
		Messages []geminiMessage `json:"messages"`
	} `json:"$set"`
}

func (r *geminiReader) read(l line) error {
	var c geminiLine
	if err := json.Unmarshal(l.text, &c); err != nil {
		return fmt.Errorf("%w: %v", errLine, err)
	}
	if c.Session != "" && c.Type == "" {
		r.header(c.Session, c.Start, c.Kind)
		return nil
	}
	for i := range c.Set.Messages {
		if err := r.message(&c.Set.Messages[i]); err != nil {
			return err
		}
	}
	if c.Type == "" {
		return nil
	}
	return r.message(&c.geminiMessage)
}

func (r *geminiReader) header(id, start, kind string) {
	if !r.started {
		r.id = id
		if kind == "subagent" {
			r.agent = id
		}
		r.when(start)
	}
}

func (r *geminiReader) message(m *geminiMessage) error {
	at := r.when(m.Time)
	if at.IsZero() {
		return fmt.Errorf("%w: it has no time, and none before it has", errLine)
	}
	if r.done == nil {
		r.done = map[string]bool{}
	}
	if m.Model != "" {
		r.model = m.Model
	}
	if err := r.begin(at, "start", "startup"); err != nil {
		return err
	}
	text := contentText(m.Content)
	switch m.Type {
	case "user":
		if r.done[m.ID] || strings.HasPrefix(strings.TrimSpace(text), "<session_context>") || strings.HasPrefix(text, "This is the Gemini CLI.") {
			return nil
		}
		r.done[m.ID] = true
		return r.prompt(at, m.ID, dialect.GeminiPrompt(text))
	case "gemini":
		if len(m.ToolCalls) == 0 {
			if !r.done[m.ID] {
				r.said(at, m.ID, text)
			}
			return nil
		}
		r.done[m.ID] = true // its text came before a call: no end of a turn
		return r.calls(m, at)
	case "error":
		if !r.done[m.ID] {
			r.done[m.ID] = true
			r.failedTurn(at, m.ID, text)
			return r.endTurn()
		}
	}
	return nil
}

func (r *geminiReader) calls(m *geminiMessage, at time.Time) error {
	for _, c := range m.ToolCalls {
		if c.ID == "" || r.done[c.ID] {
			continue
		}
		r.called(at, c.ID, c.Name, c.Args)
		switch c.Status {
		case "success", "error", "cancelled":
		default:
			continue // still running
		}
		r.done[c.ID] = true
		end := at
		if c.Time != "" {
			end = r.when(c.Time)
		}
		if err := r.ended(end, c.ID, "", geminiOutcome(geminiResponse(c.Result), c.Status)); err != nil {
			return err
		}
	}
	return nil
}

// geminiResponse is the text of a tool's response.
func geminiResponse(raw json.RawMessage) string {
	var parts []struct {
		Text     string `json:"text"`
		Function struct {
			Response struct {
				Output json.RawMessage `json:"output"`
				Error  string          `json:"error"`
			} `json:"response"`
		} `json:"functionResponse"`
	}
	if json.Unmarshal(raw, &parts) != nil {
		return contentText(raw)
	}
	var out []string
	for _, p := range parts {
		for _, text := range []string{p.Text, p.Function.Response.Error, contentText(p.Function.Response.Output)} {
			// A hook's words stand behind the output, where its exit code is looked for.
			if text = dialect.WithoutTold(text); text != "" {
				out = append(out, text)
			}
		}
	}
	return strings.Join(out, "\n")
}

// document reads the single JSON document of older versions, one message at a
// time, so that its length does not matter. A message that cannot be used is
// told to bad, with its number.
// The document is written anew at each turn, so that nothing of it is known to
// have been read before.
func (r *geminiReader) document(in io.Reader, bad func(n int, err error)) error {
	dec := json.NewDecoder(in)
	switch t, err := dec.Token(); {
	case err != nil:
		return fmt.Errorf("%w: no JSON object (%v)", errLine, err)
	case t != json.Delim('{'):
		return fmt.Errorf("%w: no JSON object", errLine)
	}
	var id, start, kind string
	for dec.More() {
		t, err := dec.Token()
		if err != nil {
			return fmt.Errorf("%w: %v", errLine, err)
		}
		switch t {
		case "sessionId":
			err = dec.Decode(&id)
		case "startTime":
			err = dec.Decode(&start)
		case "kind":
			err = dec.Decode(&kind)
		case "messages":
			r.header(or(id, r.id), start, kind)
			err = r.messages(dec, bad)
		default:
			var skip json.RawMessage
			err = dec.Decode(&skip)
		}
		if err != nil {
			if errors.Is(err, errLine) || !isJSON(err) {
				return err
			}
			return fmt.Errorf("%w: %v", errLine, err)
		}
	}
	return nil
}

func (r *geminiReader) messages(dec *json.Decoder, bad func(int, error)) error {
	if t, err := dec.Token(); err != nil || t != json.Delim('[') {
		return fmt.Errorf("%w: messages are no list (%v)", errLine, err)
	}
	for n := 1; dec.More(); n++ {
		r.at.line = n
		var m geminiMessage
		err := dec.Decode(&m)
		var wrong *json.UnmarshalTypeError
		switch {
		case errors.As(err, &wrong):
			bad(n, err)
			continue
		case err != nil:
			return fmt.Errorf("%w: message %d: %v", errLine, n, err)
		}
		if err := r.message(&m); errors.Is(err, errLine) {
			bad(n, err)
		} else if err != nil {
			return err
		}
	}
	_, err := dec.Token()
	return err
}

func isJSON(err error) bool {
	var syntax *json.SyntaxError
	var wrong *json.UnmarshalTypeError
	return errors.As(err, &syntax) || errors.As(err, &wrong) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF)
}
