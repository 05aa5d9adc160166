package agent

import (
	"encoding/json"
	"strings"
)

// Said is what a line of the output of Codex, Gemini CLI or Copilot CLI tells, for who
// keeps what a session did.
type Said struct {
	At     string // the client's own time, "" where it has none
	Text   string // words of the agent
	More   bool   // they go on what was said before
	Tool   string // that is called
	ID     string // of the call, with Tool and with Back
	Input  string // of the call
	Files  []string
	Back   bool // the call has ended
	Failed bool // badly
	Error  string
}

// ReadLine reads a line. It is the zero value for a line that tells nothing of that.
func ReadLine(kind string, line []byte) (s Said) {
	var l otherLine
	if json.Unmarshal(line, &l) != nil {
		return s
	}
	s.At = l.Timestamp
	switch kind {
	case KindCodex:
		l.codexSaid(&s)
	case KindGemini:
		l.geminiSaid(&s)
	case KindCopilot:
		l.copilotSaid(&s)
	}
	return s
}

func (l *otherLine) codexSaid(s *Said) {
	i := &l.Item
	switch {
	case l.Type == "error":
		s.Error = l.Message
	case l.Type == "turn.failed":
		s.Error = l.Error.Message
	case i.Type == "agent_message":
		if l.Type == "item.completed" {
			s.Text = i.Text
		}
	case i.Type == "error": // a warning
	case i.Type == "" || i.Type == "reasoning" || i.Type == "todo_list":
	case l.Type == "item.started":
		s.Tool, s.ID, s.Input = codexTool(l), i.ID, i.Command
		for _, c := range i.Changes {
			s.Files = append(s.Files, c.Path)
		}
		if s.Input == "" {
			s.Input = strings.Join(s.Files, " ")
		}
	case l.Type == "item.completed":
		s.Back, s.ID = true, i.ID
		if s.Failed = i.Status == "failed" || i.Status == "declined" || i.Exit != nil && *i.Exit != 0; s.Failed {
			s.Error = i.Output
		}
	}
}

func (l *otherLine) geminiSaid(s *Said) {
	switch l.Type {
	case "message":
		if l.Role == "assistant" {
			s.Text, s.More = l.Content, l.Delta
		}
	case "tool_use":
		s.Tool, s.ID, s.Input, s.Files = l.ToolName, l.ToolID, string(l.Parameters), filesIn(l.Parameters)
	case "tool_result":
		s.Back, s.ID = true, l.ToolID
		if s.Failed = l.Status == "error"; s.Failed {
			s.Error = l.Output + l.Error.Message
		}
	case "error":
		s.Error = l.Message + l.Error.Message
	case "result":
		s.Error = l.Error.Message
	}
}

func (l *otherLine) copilotSaid(s *Said) {
	switch l.Type {
	case "assistant.message":
		s.Text = l.Data.Content
	case "tool.execution_start":
		s.Tool, s.ID, s.Input, s.Files = l.Data.ToolName, l.Data.CallID, string(l.Data.Arguments), filesIn(l.Data.Arguments)
	case "tool.execution_complete":
		s.Back, s.ID = true, l.Data.CallID
		if s.Failed = l.Data.Success != nil && !*l.Data.Success || l.Data.Shell.Exit != 0; s.Failed {
			s.Error = l.Data.Error.Message
		}
	case "session.error", "error":
		s.Error = l.Data.Message + l.Message + l.Error.Message
	}
}

// filesIn are the files that a tool's input names.
func filesIn(input json.RawMessage) []string {
	var in struct {
		FilePath string `json:"file_path"`
		Path     string `json:"path"`
	}
	if json.Unmarshal(input, &in) != nil {
		return nil
	}
	if f := in.FilePath + in.Path; f != "" {
		return []string{f}
	}
	return nil
}
