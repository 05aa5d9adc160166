package transcript

import (
	"encoding/json"
	"fmt"
	"time"

	"reprise/internal/event"
)

// copilotReader reads Copilot CLI's `session-state/<id>/events.jsonl` (1.0.102).
// Subagents are told of in the same file, by agentId.
type copilotReader struct {
	*session
	marks [][]byte          // of the lines that are read
	shut  bool              // the last thing was the session's own end
	side  map[string]string // the last words of subagents, by id
}

func copilotMarks() [][]byte {
	var out [][]byte
	for _, t := range []string{
		"session.start", "session.resume", "session.context_changed", "session.error", "session.shutdown", "session.compaction_complete",
		"user.message", "assistant.message", "tool.execution_start", "tool.execution_complete", "subagent.started", "subagent.completed",
		"subagent.failed", "abort",
	} {
		out = append(out, []byte(`"type":"`+t+`"`))
	}
	return out
}

type copilotLine struct {
	Type  string `json:"type"`
	ID    string `json:"id"`
	Time  string `json:"timestamp"`
	Agent string `json:"agentId"`
	Data  struct {
		Session string `json:"sessionId"`
		Model   string `json:"selectedModel"`
		Cwd     string `json:"cwd"`
		Context struct {
			Cwd string `json:"cwd"`
		} `json:"context"`
		Content   json.RawMessage `json:"content"`
		Source    string          `json:"source"`
		Requests  []struct{}      `json:"toolRequests"`
		Call      string          `json:"toolCallId"`
		Tool      string          `json:"toolName"`
		Arguments json.RawMessage `json:"arguments"`
		Success   *bool           `json:"success"`
		Result    struct {
			Content string `json:"content"`
		} `json:"result"`
		Shell struct {
			ExitCode *int `json:"exitCode"`
		} `json:"shellExecution"`
		Error     json.RawMessage `json:"error"`
		Message   string          `json:"message"`
		Reason    string          `json:"reason"`
		Shutdown  string          `json:"shutdownType"`
		Summary   string          `json:"summaryContent"`
		Trigger   string          `json:"trigger"`
		AgentType string          `json:"agentName"`
	} `json:"data"`
}

func (r *copilotReader) read(l line) error {
	if !mayBe(l.text, r.marks) {
		return nil
	}
	var c copilotLine
	if err := json.Unmarshal(l.text, &c); err != nil {
		return fmt.Errorf("%w: %v", errLine, err)
	}
	d := &c.Data
	at, key := r.when(c.Time), c.ID
	if key == "" {
		key = fmt.Sprintf("line %d", l.n)
	}
	if at.IsZero() {
		return fmt.Errorf("%w: it has no time, and none before it has", errLine)
	}
	switch c.Type {
	case "session.start":
		if d.Session != "" {
			r.id = d.Session
		}
		r.cwd, r.model = d.Context.Cwd, d.Model
		return r.begin(at, key, "startup")
	case "session.resume":
		r.cwd, r.shut = or(d.Context.Cwd, r.cwd), false
		return r.begin(at, key, "resume")
	case "session.context_changed":
		r.cwd = or(or(d.Context.Cwd, d.Cwd), r.cwd)
		return nil
	}
	if err := r.begin(at, "start", "startup"); err != nil {
		return err
	}
	r.shut = c.Type == "session.shutdown"
	return r.event(&c, at, key)
}

// end adds no end of its own where the client wrote one.
func (r *copilotReader) end(over bool) error { return r.session.end(over && !r.shut) }

func (c *copilotLine) outcome() outcome {
	d := &c.Data
	if d.Success != nil && !*d.Success {
		return outcome{failed: true, err: errorText(d.Error)}
	}
	return copilotOutcome(d.Result.Content, d.Shell.ExitCode)
}

func or(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

func (r *copilotReader) event(c *copilotLine, at time.Time, key string) error {
	d := &c.Data
	switch c.Type {
	case "user.message":
		if c.Agent == "" {
			return r.prompt(at, key, contentText(d.Content))
		}
	case "assistant.message":
		text := contentText(d.Content)
		switch {
		case len(d.Requests) > 0:
		case c.Agent == "":
			r.said(at, key, text)
		case text != "":
			if r.side == nil {
				r.side = map[string]string{}
			}
			r.side[c.Agent] = text
		}
	case "tool.execution_start":
		if c.Agent == "" {
			r.called(at, d.Call, d.Tool, d.Arguments)
			return nil
		}
		main := r.answer // a subagent's call does not end the turn of its parent
		r.called(at, d.Call, d.Tool, d.Arguments)
		r.answer = main
	case "tool.execution_complete":
		return r.ended(at, d.Call, c.Agent, c.outcome())
	case "subagent.started":
		return r.add(at, key, event.SubagentStarted, c.Agent, event.SubagentData{ID: c.Agent, Type: d.AgentType})
	case "subagent.completed", "subagent.failed":
		text := r.side[c.Agent]
		delete(r.side, c.Agent)
		if c.Type == "subagent.failed" {
			text = or(errorText(d.Error), text)
		}
		return r.add(at, key, event.SubagentFinished, c.Agent, event.SubagentData{ID: c.Agent, Type: d.AgentType, Text: text})
	case "session.compaction_complete":
		if d.Success == nil || *d.Success {
			return r.add(at, key, event.ClientCompacted, "", event.CompactData{Trigger: d.Trigger, Phase: "after", Summary: d.Summary})
		}
	case "session.error":
		r.failedTurn(at, key, d.Message)
		return r.endTurn()
	case "abort":
		r.failedTurn(at, key, or(d.Reason, "aborted"))
		return r.endTurn()
	case "session.shutdown":
		if err := r.endTurn(); err != nil {
			return err
		}
		return r.add(at, key, event.SessionEnded, "", event.SessionData{Reason: d.Shutdown, Cwd: r.cwd, Transcript: r.path, Imported: true})
	}
	return nil
}

// errorText is the text of an error that is a string or an object.
func errorText(raw json.RawMessage) string {
	var o struct {
		Message string `json:"message"`
	}
	if json.Unmarshal(raw, &o) == nil {
		return o.Message
	}
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	return ""
}
