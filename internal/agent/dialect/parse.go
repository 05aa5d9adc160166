package dialect

import (
	"strings"

	"reprise/internal/clip"
	"reprise/internal/event/quick"
)

// Clients are the clients whose hooks we speak.
func Clients() []string { return []string{"claude", "codex", "gemini", "copilot"} }

// Parse reads a payload. eventName is the client's own name of the event, as
// it was given to the hook program; a payload that names its event itself is
// believed, for that is what the client fired. An event that we do not know is
// of kind [Other], and no error. Byte slices of the result do not share the
// payload's memory.
func Parse(client, eventName string, stdin []byte) (Event, error) {
	m := ManifestOf(client)
	if m == nil {
		return Event{}, bad("unknown client " + string(quick.AppendString(nil, clip.Head(client, 40))) + "; known are " + strings.Join(Clients(), ", "))
	}
	o, err := readPayload(stdin)
	if err != nil {
		return Event{}, err
	}
	if client == "copilot" {
		// Its hook_event_name is in another spelling than its settings have.
		if eventName == "" {
			eventName = o.text("hookName")
		}
	} else if name := o.text("hook_event_name"); name != "" {
		eventName = name
	}
	if eventName == "" {
		return Event{}, bad("it does not name its event, and no name was given")
	}
	e := Event{Client: client, Name: eventName, Kind: Other}
	if spec := m.Event(eventName); spec != nil {
		e.Kind = spec.Kind
	}
	if client == "copilot" {
		e.copilot(o)
	} else {
		e.snake(o)
	}
	switch client {
	case "claude":
		e.claude(o)
	case "codex":
		e.codex(o)
	case "gemini":
		e.gemini(o)
	}
	e.Prompt, e.Output, e.Error = WithoutTold(e.Prompt), WithoutTold(e.Output), WithoutTold(e.Error)
	return e, e.check()
}

// check refuses what no client writes and what a reader of the event would
// trip over.
func (e *Event) check() error {
	for _, s := range [...]string{e.Session, e.Cwd, e.Transcript, e.ToolName} {
		if strings.IndexByte(s, 0) >= 0 {
			return bad("a NUL in the session, the directory, the transcript or the tool's name")
		}
	}
	switch e.Kind {
	case ToolBefore, ToolAfter, ToolFailed, PermissionAsked:
		if e.ToolName == "" {
			return bad("a tool's event without the tool's name")
		}
	}
	return nil
}

// busy reports whether there are subagents at work beside the one that ends, in
// the form of Claude Code, which starts them in the background.
func (e *Event) busy(tasks value) bool {
	for _, t := range tasks.items() {
		if o := t.object(); o.text("type") == "subagent" && o.text("status") == "running" && o.text("id") != e.Agent {
			return true
		}
	}
	return false
}

// snake reads the names that Claude Code, Codex and Gemini CLI share.
func (e *Event) snake(o object) {
	e.Session = o.text("session_id")
	e.Cwd = o.text("cwd")
	e.Transcript = o.text("transcript_path")
	e.Model = o.text("model")
	e.Permission = o.text("permission_mode")
	e.Turn = o.first("prompt_id", "turn_id")
	e.Agent = o.text("agent_id")
	e.AgentType = o.text("agent_type")
	e.StopActive = o.get("stop_hook_active").isTrue()
	switch e.Kind {
	case SessionStart:
		e.Source = o.text("source")
	case SessionEnd:
		e.Reason = o.text("reason")
	case Prompt:
		e.Prompt = o.text("prompt")
	case ToolBefore, ToolAfter, ToolFailed, PermissionAsked, PermissionDenied:
		e.ToolName = o.text("tool_name")
		e.ToolID = o.text("tool_use_id")
		e.Tool = ToolKind(e.ToolName)
		e.Input = input(o.get("tool_input"))
		e.DurationMS, _ = o.get("duration_ms").integer()
	case Response, ResponseFailed, SubagentFinished:
		e.Text = o.text("last_assistant_message")
		e.Busy = e.busy(o.get("background_tasks"))
	case CompactBefore, CompactAfter:
		e.Reason = o.text("trigger")
		e.Text = o.text("compact_summary")
	case Notification:
		e.Text = o.text("message")
		e.Reason = o.text("notification_type")
	}
}

// input is a tool's input on one line. Where a client sends an object as a
// text that holds JSON, it is that JSON.
func input(v value) []byte {
	if v == nil {
		return nil
	}
	if v.is('"') {
		if s := []byte(unquote(v)); len(s) > 0 && s[0] == '{' {
			if _, err := readPayload(s); err == nil {
				return value(s).compact()
			}
		}
	}
	return v.compact()
}

func (e *Event) claude(o object) {
	switch e.Kind {
	case Prompt:
		// The end of a background task comes as a prompt that nobody wrote.
		if strings.HasPrefix(e.Prompt, "<task-notification>") {
			e.Kind, e.Text, e.Prompt = Notification, e.Prompt, ""
		}
	case ToolAfter:
		e.response(o.get("tool_response"))
	case ToolFailed:
		e.claudeFailure(o.text("error"))
		if o.get("is_interrupt").isTrue() {
			e.Reason = "interrupted"
		}
	case PermissionDenied:
		e.Error = o.text("reason")
	case ResponseFailed:
		e.Error = o.text("error")
		if details := o.text("error_details"); details != "" {
			e.Error += ": " + details
		}
	case SubagentFinished:
		// Claude Code also fires it, with no type, where nobody started one.
		if e.AgentType == "" {
			e.Kind = Other
		}
	}
}

func (e *Event) codex(o object) {
	switch e.Kind {
	case ToolAfter:
		e.response(o.get("tool_response"))
		if o.get("tool_response").is('"') {
			e.codexText(value(e.Input).object().text("command"))
		}
	case ResponseFailed:
		e.Error = "interrupted" // its event Interrupt says no more
	}
}

func (e *Event) gemini(o object) {
	switch e.Kind {
	case ToolBefore, ToolAfter:
		if o.get("mcp_context").is('{') {
			e.Tool = "mcp"
		}
		if e.Kind == ToolBefore {
			return
		}
		r := o.get("tool_response").object()
		e.geminiText(contentText(r.get("llmContent")), r.text("returnDisplay"))
		if v := r.get("error"); v.is('{') || v.is('"') {
			why := v.text()
			if o := v.object(); o != nil {
				why = o.first("message", "type")
			}
			e.failed(why)
		}
	case Prompt:
		e.Prompt = GeminiPrompt(e.Prompt)
	case Response:
		e.Text = o.text("prompt_response")
	}
}

// copilot reads the names of Copilot CLI.
func (e *Event) copilot(o object) {
	e.Session = o.text("sessionId")
	e.Cwd = o.text("cwd")
	e.Transcript = o.text("transcriptPath")
	e.StopActive = o.get("stop_hook_active").isTrue()
	e.Agent = o.text("agentId")
	e.AgentType = o.first("agentType", "agentName")
	if parent := o.text("parentAgentId"); parent != "" {
		// A subagent is a session of its own there, with the parent's id in
		// this field. Its task comes as a prompt that no person wrote, and its
		// end as a stop before the event for that.
		e.Session = parent
		if e.Kind == Prompt || e.Kind == Response {
			e.Kind = Other
		}
	}
	switch e.Kind {
	case SessionStart:
		if e.Source = o.text("source"); e.Source == "new" {
			e.Source = "startup"
		}
	case SessionEnd:
		e.Reason = o.text("reason")
	case Prompt:
		e.Prompt = o.text("prompt")
	case ToolBefore, ToolAfter, ToolFailed, PermissionAsked:
		e.copilotTool(o)
	case ResponseFailed:
		if o.get("recoverable").isTrue() {
			e.Kind = Other // the turn goes on
		}
		e.Error = failureText(o.get("error"))
	case SubagentFinished:
		e.Text = o.text("response")
	case CompactBefore:
		e.Reason = o.text("trigger")
	case Notification:
		e.Text = o.text("message")
		e.Reason = o.text("notification_type")
	}
}

func (e *Event) copilotTool(o object) {
	e.ToolName = o.text("toolName")
	e.ToolID = o.text("toolCallId")
	e.Tool = ToolKind(e.ToolName)
	e.Input = input(o.get("toolArgs"))
	if e.Input == nil {
		e.Input = input(o.get("toolInput"))
	}
	if r := o.get("toolResult").object(); r != nil {
		e.copilotText(r.text("textResultForLlm"))
		if t := r.text("resultType"); t != "" && t != "success" {
			e.failed(join(failureText(r.get("error")), t))
		}
	}
	if e.Kind == ToolFailed && e.Error == "" {
		why := failureText(o.get("error"))
		if e.Output == "" {
			if e.copilotText(why); e.ExitCode == nil {
				e.Output = ""
			}
		}
		if e.Error == "" || why != "" && e.ExitCode == nil {
			e.Error = why
		}
	}
}

// failureText is the text of an error that is a string or an object.
func failureText(v value) string {
	if o := v.object(); o != nil {
		return o.first("message", "name", "type")
	}
	return v.text()
}
