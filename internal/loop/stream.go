package loop

import (
	"encoding/json"

	"reprise/internal/agent"
)

// other takes what a line of Codex, Gemini CLI or Copilot CLI tells.
func (s *stream) other(l agent.Said) {
	if l.Text != "" {
		if n := len(s.messages); l.More && s.more && n > 0 {
			s.messages[n-1] = clip(s.messages[n-1]+l.Text, 4000)
		} else if s.messages = append(s.messages, clip(l.Text, 4000)); n+1 > keepLast {
			s.messages = s.messages[n+1-keepLast:]
		}
	}
	s.more = l.More
	if l.Tool != "" {
		s.tool(l.At, l.Tool, l.ID, json.RawMessage(l.Input))
		for _, f := range l.Files {
			s.touched(f)
		}
	}
	if l.Back {
		s.result(l.At, l.ID, l.Failed)
	}
	if l.Error != "" {
		line, _ := json.Marshal(map[string]any{"tool_use_id": l.ID, "error": clip(l.Error, maxToolText), "at": l.At})
		s.errors.Write(append(line, '\n'))
	}
}
