package agent

import (
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"reprise/internal/clip"
)

// otherStream understands the lines of Codex 0.171 (exec --json), Gemini CLI 0.61
// (stream-json) and Copilot CLI 1.0.102 (json): a line an event, the answer in messages,
// and a last line that says how it went. None of them tells what a run costs.
type otherStream struct {
	kind    string
	p       Progress
	text    strings.Builder
	tools   map[string]int
	turns   int  // answers of the model
	inTurn  bool // nothing has come back from a tool since the last began
	stray   string
	ok      bool
	said    string // the last error
	status  int    // the HTTP status with it, as far as the client says it apart
	notes   []string
	usage   Usage
	retries int
	open    bool // the message goes on
}

func newOtherStream(kind string) *otherStream {
	return &otherStream{kind: kind, tools: map[string]int{}}
}

// otherLine is one line of such a client, with the fields of all three of them that
// mean something here.
type otherLine struct {
	Type      string `json:"type"`
	Timestamp string `json:"timestamp"`
	SessionID string `json:"session_id"` // Gemini
	ThreadID  string `json:"thread_id"`  // Codex
	CopilotID string `json:"sessionId"`
	Role      string `json:"role"`
	Content   string `json:"content"`
	Delta     bool   `json:"delta"`
	Status    string `json:"status"`
	Message   string `json:"message"`
	ExitCode  *int   `json:"exitCode"`
	ToolName  string `json:"tool_name"`
	ToolID    string `json:"tool_id"`
	Output    string `json:"output"`

	Parameters json.RawMessage `json:"parameters"`
	Error      struct {
		Message string `json:"message"`
	} `json:"error"`
	Stats struct {
		Input  int64 `json:"input_tokens"`
		Output int64 `json:"output_tokens"`
		Cached int64 `json:"cached"`
	} `json:"stats"`
	Usage struct {
		Input  int64 `json:"input_tokens"`
		Cached int64 `json:"cached_input_tokens"`
		Output int64 `json:"output_tokens"`
	} `json:"usage"`
	Item struct {
		ID      string `json:"id"`
		Type    string `json:"type"`
		Text    string `json:"text"`
		Message string `json:"message"`
		Command string `json:"command"`
		Status  string `json:"status"`
		Tool    string `json:"tool"`
		Server  string `json:"server"`
		Output  string `json:"aggregated_output"`
		Exit    *int   `json:"exit_code"`
		Changes []struct {
			Path string `json:"path"`
		} `json:"changes"`
	} `json:"item"`
	Data struct {
		Content   string          `json:"content"`
		Message   string          `json:"message"`
		ToolName  string          `json:"toolName"`
		CallID    string          `json:"toolCallId"`
		Arguments json.RawMessage `json:"arguments"`
		Success   *bool           `json:"success"`
		Status    int             `json:"statusCode"`
		Attempt   int             `json:"retryAttempt"`
		Why       string          `json:"errorMessage"`
		Shell     struct {
			Exit int `json:"exitCode"`
		} `json:"shellExecution"`
		Error struct {
			Message string `json:"message"`
		} `json:"error"`
	} `json:"data"`
}

func (s *otherStream) Line(line []byte, cut bool) {
	var l otherLine
	if cut || json.Unmarshal(line, &l) != nil {
		if s.stray == "" {
			s.stray = bounded(string(line), 500)
		}
		return
	}
	if id := l.SessionID + l.ThreadID + l.CopilotID; id != "" && len(id) <= 128 {
		s.p.SessionID = id
	}
	switch s.kind {
	case KindCodex:
		s.codex(&l)
	case KindGemini:
		s.gemini(&l)
	default:
		s.copilot(&l)
	}
}

func (s *otherStream) codex(l *otherLine) {
	switch l.Type {
	case "item.started":
		s.item(l, false)
	case "item.completed":
		s.item(l, true)
	case "turn.completed":
		s.p.ResultSeen, s.ok = true, true
		s.usage = Usage{InputTokens: max(0, l.Usage.Input-l.Usage.Cached), CacheReadTokens: l.Usage.Cached, OutputTokens: l.Usage.Output}
		s.p.Tokens = s.usage.Sum()
	case "turn.failed":
		s.p.ResultSeen, s.ok = true, false
		s.fails(l.Error.Message)
	case "error":
		s.fails(l.Message)
	}
}

func (s *otherStream) item(l *otherLine, ended bool) {
	switch l.Item.Type {
	case "agent_message":
		if ended {
			s.say(l.Item.Text, false)
		}
	case "error": // a warning: what ends a turn comes by itself
		if len(s.notes) < maxListed {
			s.notes = append(s.notes, bounded(l.Item.Message, 500))
		}
	case "reasoning", "todo_list":
	default:
		if ended {
			s.back()
		} else {
			s.call(codexTool(l))
		}
	}
}

// codexTool is the name of the tool that an item of Codex stands for.
func codexTool(l *otherLine) string {
	switch l.Item.Type {
	case "command_execution":
		return "exec_command"
	case "file_change":
		return "apply_patch"
	case "mcp_tool_call":
		return "mcp__" + l.Item.Server + "__" + l.Item.Tool
	}
	return l.Item.Type
}

func (s *otherStream) gemini(l *otherLine) {
	switch l.Type {
	case "message":
		if l.Role == "assistant" {
			s.say(l.Content, l.Delta)
		}
	case "tool_use":
		s.call(l.ToolName)
	case "tool_result":
		s.back()
	case "error":
		s.fails(l.Message + l.Error.Message)
	case "result":
		s.p.ResultSeen = true
		s.ok = l.Status == "success"
		s.usage = Usage{InputTokens: max(0, l.Stats.Input-l.Stats.Cached), CacheReadTokens: l.Stats.Cached, OutputTokens: l.Stats.Output}
		s.p.Tokens = s.usage.Sum()
		if !s.ok {
			s.fails(l.Error.Message)
		}
	}
}

func (s *otherStream) copilot(l *otherLine) {
	switch l.Type {
	case "assistant.message":
		s.p.Retry = nil
		s.say(l.Data.Content, false)
	case "model.call_failure":
		s.p.Retry = &Retry{Attempt: l.Data.Attempt + 1, Status: l.Data.Status, Error: bounded(l.Data.Why, 200)}
		s.retries++
	case "tool.execution_start":
		s.call(l.Data.ToolName)
	case "tool.execution_complete":
		s.back()
	case "session.error", "error":
		s.fails(l.Data.Message + l.Message + l.Error.Message)
		s.status = l.Data.Status
	case "result":
		s.p.ResultSeen, s.p.Retry = true, nil
		s.ok = l.ExitCode != nil && *l.ExitCode == 0
	}
}

func (s *otherStream) fails(why string) {
	if why != "" {
		s.said = bounded(why, 1000)
	}
}

func (s *otherStream) call(tool string) {
	s.p.ToolCalls++
	s.p.LastTool = bounded(tool, 200)
	if _, known := s.tools[s.p.LastTool]; known || len(s.tools) < maxToolNames {
		s.tools[s.p.LastTool]++
	}
	s.open = false
	s.turn()
}

// turn is a sign of the model's; back is one of a tool's that has ended.
func (s *otherStream) turn() {
	if !s.inTurn {
		s.turns++
	}
	s.inTurn = true
}

func (s *otherStream) back() { s.inTurn, s.open = false, false }

// say takes a message, or with more the next piece of one.
func (s *otherStream) say(text string, more bool) {
	if text == "" {
		return // only the calls that came with it
	}
	if !more || !s.open {
		s.text.Reset()
		s.p.Messages++
	}
	s.turn()
	s.open = more
	s.text.WriteString(clip.Head(text, max(0, MaxText-s.text.Len())))
	s.p.LastText = bounded(s.text.String(), maxLastText)
}

// Skip implements Stream. What is passed over are whole events.
func (s *otherStream) Skip(int64) {}

func (s *otherStream) Progress() Progress {
	p := s.p
	p.Messages = max(p.Messages, s.turns)
	if p.Retry != nil {
		r := *p.Retry
		p.Retry = &r
	}
	return p
}

func (s *otherStream) Finish(e Exit) Result {
	r := Result{Text: toValid([]byte(s.text.String())), SessionID: s.p.SessionID, NumTurns: s.turns, Usage: s.usage, Tools: s.tools, Retries: s.retries, Errors: s.notes}
	switch {
	case e.Cancelled:
		r.Reason = "cancelled"
	case e.TimedOut:
		r.Reason = "stopped at its time limit"
	case !s.p.ResultSeen:
		r.Reason = oneLine(join(": ", "ended without a result ("+e.String()+")", join("; ", s.said, s.stray, tail(strings.TrimSpace(e.Stderr), 500))))
	case !s.ok:
		r.Reason = oneLine(join(": ", "the agent ended with an error", join("; ", s.said, tail(strings.TrimSpace(e.Stderr), 300))))
	case !e.AfterResult && (e.Code != 0 || e.Signal != ""):
		r.Reason = "reported success, but the process ended with " + e.String()
	case strings.TrimSpace(r.Text) == "":
		r.Reason = oneLine(join(": ", "the agent ended without an answer", s.said))
	default:
		r.OK = true
	}
	if !r.OK && !e.Cancelled && !e.TimedOut {
		r.IsError = true
		if r.APIStatus = s.status; r.APIStatus == 0 {
			r.APIStatus = apiStatus(r.Reason)
		}
	}
	return r
}

// statusForms are the ways in which these clients name the HTTP status with which their
// model's service failed.
var statusForms = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)(?:status:? |code"?: ?|http |last error: )([45]\d\d)\b`)
})

// apiStatus is that status, 0 where none is named.
func apiStatus(why string) int {
	m := statusForms().FindStringSubmatch(why)
	if m == nil {
		return 0
	}
	n, _ := strconv.Atoi(m[1])
	return n
}
