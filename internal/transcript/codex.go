package transcript

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"reprise/internal/event"
)

// codexReader reads Codex' `sessions/YYYY/MM/DD/rollout-*.jsonl` (0.171, and
// older ones that have the same response items).
type codexReader struct {
	*session
	marks [][]byte // of the lines that are read
	// ends are the outcomes that Codex notes for itself, by call: they come
	// before what the model was told, and hold the exit code.
	ends map[string]outcome
}

func codexMarks() [][]byte {
	return [][]byte{
		[]byte(`"type":"session_meta"`), []byte(`"type":"turn_context"`), []byte(`"type":"response_item"`),
		[]byte(`"type":"event_msg"`), []byte(`"type":"compacted"`),
	}
}

type codexLine struct {
	Time     string `json:"timestamp"`
	Type     string `json:"type"`
	Metadata struct {
		Compaction bool `json:"compaction_output"`
	} `json:"metadata"`
	Payload struct {
		Type      string          `json:"type"`
		ID        string          `json:"id"`
		Cwd       string          `json:"cwd"`
		Model     string          `json:"model"`
		Thread    string          `json:"thread_source"`
		Role      string          `json:"role"`
		Content   json.RawMessage `json:"content"`
		Name      string          `json:"name"`
		CallID    string          `json:"call_id"`
		Arguments string          `json:"arguments"`
		Input     string          `json:"input"`
		Action    json.RawMessage `json:"action"`
		Output    json.RawMessage `json:"output"`
		Message   json.RawMessage `json:"message"`
		Reason    string          `json:"reason"`
		Aggregate string          `json:"aggregated_output"`
		ExitCode  *int            `json:"exit_code"`
		Success   *bool           `json:"success"`
		Stdout    string          `json:"stdout"`
		Stderr    string          `json:"stderr"`
		Duration  codexDuration   `json:"duration"`
		Item      struct {
			Type      string        `json:"type"`
			ID        string        `json:"id"`
			Aggregate string        `json:"aggregated_output"`
			ExitCode  *int          `json:"exit_code"`
			Status    string        `json:"status"`
			Duration  codexDuration `json:"duration"`
		} `json:"item"`
		Passthrough struct {
			Items []struct {
				Provenance struct {
					Type string `json:"type"`
				} `json:"provenance"`
			} `json:"content_item_metadata"`
		} `json:"internal_chat_message_metadata_passthrough"`
	} `json:"payload"`
}

type codexDuration time.Duration

// UnmarshalJSON reads {"secs":1,"nanos":2} or a text such as "1.2s".
func (d *codexDuration) UnmarshalJSON(data []byte) error {
	var o struct{ Secs, Nanos int64 }
	var text string
	if json.Unmarshal(data, &o) == nil {
		*d = codexDuration(time.Duration(o.Secs)*time.Second + time.Duration(o.Nanos))
	} else if json.Unmarshal(data, &text) == nil {
		t, _ := time.ParseDuration(text)
		*d = codexDuration(t)
	}
	return nil // a duration in another form is no reason to lose the line
}

func (r *codexReader) read(l line) error {
	if !mayBe(l.text, r.marks) {
		return nil
	}
	var c codexLine
	if err := json.Unmarshal(l.text, &c); err != nil {
		return fmt.Errorf("%w: %v", errLine, err)
	}
	p := &c.Payload
	at, key := r.when(c.Time), fmt.Sprintf("line %d", l.n)
	if p.ID != "" && c.Type == "response_item" {
		key = p.ID
	}
	switch c.Type {
	case "session_meta":
		if !r.started && p.ID != "" {
			r.id = p.ID
		}
		r.cwd = p.Cwd
		if p.Thread == "subagent" {
			r.agent = r.id
		}
		return nil
	case "turn_context":
		if p.Cwd != "" {
			r.cwd = p.Cwd
		}
		r.model = p.Model
		return r.begin(at, key, "startup")
	case "compacted":
		if err := r.endTurn(); err != nil {
			return err
		}
		return r.add(at, key, event.ClientCompacted, r.agent, event.CompactData{Phase: "after", Summary: contentText(p.Message)})
	case "response_item", "event_msg":
		if at.IsZero() {
			return fmt.Errorf("%w: it has no time, and none before it has", errLine)
		}
	}
	switch c.Type {
	case "response_item":
		if err := r.begin(at, "start", "startup"); err != nil {
			return err
		}
		return r.item(&c, at, key)
	case "event_msg":
		return r.message(&c, at, key)
	}
	return nil
}

func (r *codexReader) item(c *codexLine, at time.Time, key string) error {
	p := &c.Payload
	switch p.Type {
	case "message":
		text := contentText(p.Content)
		switch {
		case c.Metadata.Compaction: // told by the compaction's own line
		case p.Role == "assistant":
			r.said(at, key, text)
		case p.Role == "user" && !r.harness(c, text):
			return r.prompt(at, key, text)
		}
	case "function_call":
		name, input := codexTool(p.Name, []byte(p.Arguments))
		r.called(at, p.CallID, name, input)
	case "custom_tool_call":
		input, err := json.Marshal(map[string]string{"command": p.Input})
		if err != nil {
			return fmt.Errorf("%w: %v", errLine, err)
		}
		r.called(at, p.CallID, p.Name, input)
	case "local_shell_call":
		name, input := codexTool("local_shell", p.Action)
		r.called(at, p.CallID, name, input)
	case "function_call_output", "custom_tool_call_output", "local_shell_call_output":
		o := codexOutcome(contentText(p.Output))
		if known, ok := r.ends[p.CallID]; ok {
			delete(r.ends, p.CallID)
			if known.output == "" {
				known.output = o.output
			}
			o = known
		}
		return r.ended(at, p.CallID, "", o)
	}
	return nil
}

// codexTool is a call as the hooks show it: the shell is called Bash there,
// whatever the tool's own name, and its input is {"command": …}.
func codexTool(name string, args []byte) (string, []byte) {
	switch name {
	case "exec_command", "shell", "shell_command", "local_shell", "container.exec":
	default:
		return name, args
	}
	var in struct {
		Cmd     string          `json:"cmd"`
		Command json.RawMessage `json:"command"`
	}
	if json.Unmarshal(args, &in) != nil {
		return "Bash", args
	}
	command := in.Cmd
	if command == "" && len(in.Command) > 0 {
		var words []string
		if json.Unmarshal(in.Command, &words) == nil {
			command = strings.Join(words, " ")
			if len(words) == 3 && strings.HasSuffix(words[0], "sh") && strings.HasPrefix(words[1], "-") {
				command = words[2]
			}
		} else if json.Unmarshal(in.Command, &command) != nil {
			return "Bash", args
		}
	}
	out, err := json.Marshal(map[string]string{"command": command})
	if err != nil {
		return "Bash", args
	}
	return "Bash", out
}

// harness reports whether a message of the user was put there by the client.
func (r *codexReader) harness(c *codexLine, text string) bool {
	for _, m := range c.Payload.Passthrough.Items {
		if m.Provenance.Type != "" {
			return m.Provenance.Type != "user"
		}
	}
	text = strings.TrimSpace(text)
	for _, sign := range []string{
		"<environment_context>", "<user_instructions>", "# AGENTS.md instructions", "<turn_aborted>", "<skill>", "<hook_prompt",
		"<subagent_notification>", "<INSTRUCTIONS>", "<permissions instructions>", "<user_shell_command>",
	} {
		if strings.HasPrefix(text, sign) {
			return true
		}
	}
	return false
}

func (r *codexReader) message(c *codexLine, at time.Time, key string) error {
	p := &c.Payload
	switch p.Type {
	case "item_completed":
		if p.Item.Type == "CommandExecution" {
			r.noted(p.Item.ID, outcome{output: p.Item.Aggregate, code: p.Item.ExitCode, took: time.Duration(p.Item.Duration), denied: p.Item.Status == "declined"})
		}
	case "exec_command_end":
		text := p.Aggregate
		if text == "" {
			text = p.Stdout + p.Stderr
		}
		r.noted(p.CallID, outcome{output: text, code: p.ExitCode, took: time.Duration(p.Duration)})
	case "patch_apply_end":
		o := outcome{output: p.Stdout}
		if p.Success != nil && !*p.Success {
			o.failed, o.err = true, p.Stderr
		}
		r.noted(p.CallID, o)
	case "task_complete", "turn_complete":
		return r.endTurn()
	case "turn_aborted":
		r.failedTurn(at, key, strings.TrimSuffix("aborted: "+p.Reason, ": "))
		return r.endTurn()
	case "error":
		if r.started {
			r.failedTurn(at, key, contentText(p.Message))
			return r.endTurn()
		}
	}
	return nil
}

func (r *codexReader) noted(id string, o outcome) {
	if r.ends == nil {
		r.ends = map[string]outcome{}
	}
	if id != "" && len(r.ends) < maxCalls {
		r.ends[id] = o
	}
}
