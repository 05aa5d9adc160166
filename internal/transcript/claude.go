package transcript

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path"
	"strings"

	"reprise/internal/clip"
	"reprise/internal/event"
)

// claudeReader reads Claude Code's `projects/<slug>/<session>.jsonl` and
// `…/<session>/subagents/agent-<id>.jsonl` (2.1.332, and older ones back to 1.0,
// which kept subagents in the session's own file).
type claudeReader struct {
	*session
	marks [][]byte // of the lines that are read
	// result opens a file of the session's tool-results by its name; nil where
	// there is none.
	result func(name string) (*os.File, error)
	sides  map[string]*session // subagents inside this file
	// trigger is what started the compaction whose summary comes next.
	trigger string
}

func claudeMarks() [][]byte {
	return [][]byte{[]byte(`"type":"user"`), []byte(`"type":"assistant"`), []byte(`"type":"system"`)}
}

type claudeLine struct {
	Type       string `json:"type"`
	Subtype    string `json:"subtype"`
	UUID       string `json:"uuid"`
	Session    string `json:"sessionId"`
	Time       string `json:"timestamp"`
	Cwd        string `json:"cwd"`
	Agent      string `json:"agentId"`
	Side       bool   `json:"isSidechain"`
	Meta       bool   `json:"isMeta"`
	Summary    bool   `json:"isCompactSummary"`
	APIError   bool   `json:"isApiErrorMessage"`
	Permission struct {
		Decision string `json:"decision"`
	} `json:"permissionDecision"`
	Compact struct {
		Trigger string `json:"trigger"`
	} `json:"compactMetadata"`
	Message struct {
		Model   string          `json:"model"`
		Content json.RawMessage `json:"content"`
	} `json:"message"`
	ToolUseResult json.RawMessage `json:"toolUseResult"`
}

type claudeBlock struct {
	Type    string          `json:"type"`
	Text    string          `json:"text"`
	ID      string          `json:"id"`
	Name    string          `json:"name"`
	Input   json.RawMessage `json:"input"`
	UseID   string          `json:"tool_use_id"`
	Content json.RawMessage `json:"content"`
	IsError bool            `json:"is_error"`
}

func (r *claudeReader) read(l line) error {
	if !mayBe(l.text, r.marks) {
		return nil
	}
	var c claudeLine
	if err := json.Unmarshal(l.text, &c); err != nil {
		return fmt.Errorf("%w: %v", errLine, err)
	}
	if c.Type != "user" && c.Type != "assistant" && c.Type != "system" {
		return nil
	}
	s := r.of(c)
	if c.Session != "" && !s.started && s.agent == "" {
		s.id = c.Session
	}
	if c.Cwd != "" {
		s.cwd = c.Cwd
	}
	if c.Message.Model != "" && c.Message.Model != "<synthetic>" {
		s.model = c.Message.Model
	}
	at, key := s.when(c.Time), c.UUID
	if key == "" {
		key = fmt.Sprintf("line %d", l.n)
	}
	if at.IsZero() {
		return fmt.Errorf("%w: it has no time, and none before it has", errLine)
	}
	if err := s.begin(at, key, "startup"); err != nil {
		return err
	}
	switch {
	case c.Type == "system" && c.Subtype == "compact_boundary":
		r.trigger = c.Compact.Trigger
		return nil
	case c.Type == "system":
		return nil
	case c.Summary:
		if err := s.endTurn(); err != nil {
			return err
		}
		return s.add(at, key, event.ClientCompacted, s.agent, event.CompactData{Trigger: r.trigger, Phase: "after", Summary: contentText(c.Message.Content)})
	case c.Type == "assistant":
		return r.assistant(s, c, l)
	}
	return r.user(s, c, key)
}

// of is the session that a line belongs to: this one, or a subagent's in it.
func (r *claudeReader) of(c claudeLine) *session {
	if !c.Side || r.session.agent != "" {
		return r.session
	}
	id := c.Agent
	if id == "" {
		id = "side"
	}
	if r.sides == nil {
		r.sides = map[string]*session{}
	}
	s := r.sides[id]
	if s == nil {
		s = &session{client: r.client, id: r.id, path: r.path, cwd: r.cwd, base: r.base, now: r.now, emit: r.emit, at: r.at, agent: id}
		r.sides[id] = s
	}
	return s
}

func (r *claudeReader) assistant(s *session, c claudeLine, l line) error {
	at, key := s.last, c.UUID
	if c.APIError {
		s.failedTurn(at, key, contentText(c.Message.Content))
		return nil
	}
	blocks, err := claudeBlocks(c.Message.Content)
	if err != nil {
		return err
	}
	for _, b := range blocks {
		switch b.Type {
		case "text":
			s.said(at, key, b.Text)
		case "tool_use":
			s.called(at, b.ID, b.Name, b.Input)
		}
	}
	return nil
}

func (r *claudeReader) user(s *session, c claudeLine, key string) error {
	at := s.last
	if c.Meta {
		return nil
	}
	blocks, err := claudeBlocks(c.Message.Content)
	if err != nil {
		return err
	}
	var texts []string
	for _, b := range blocks {
		switch b.Type {
		case "text":
			texts = append(texts, b.Text)
		case "tool_result":
			o := claudeOutcome(r.whole(contentText(b.Content)), b.IsError)
			if d := c.Permission.Decision; b.IsError && d != "" && d != "accept" && d != "allow" {
				o.denied = true
			}
			o.answers = string(c.ToolUseResult)
			if err := s.ended(at, b.UseID, "", o); err != nil {
				return err
			}
		}
	}
	text := strings.Join(texts, "\n")
	// What the client itself puts there as the user: commands of its own,
	// notices of background tasks, interruptions.
	for _, sign := range []string{"<command-", "<local-command-", "<task-notification", "<bash-", "[Request interrupted", "Caveat: The messages below", "<system-reminder>"} {
		if strings.HasPrefix(text, sign) {
			if sign == "[Request interrupted" && s.agent == "" {
				s.failedTurn(at, key, "interrupted by the user")
			}
			return nil
		}
	}
	return s.prompt(at, key, text)
}

// whole is a tool's output, read from the file that the client put it into
// where it was too long for the transcript.
func (r *claudeReader) whole(text string) string {
	if r.result == nil || !strings.HasPrefix(text, "<persisted-output>") {
		return text
	}
	_, rest, ok := strings.Cut(clip.Head(text, 4096), "saved to: ")
	if !ok {
		return text
	}
	name, _, _ := strings.Cut(rest, "\n")
	name = path.Base(strings.ReplaceAll(strings.TrimSpace(name), `\`, "/"))
	f, err := r.result(name)
	if err != nil {
		return text // it has been cleared away: the preview is what is left
	}
	defer f.Close()
	// An event holds no more of it; the beginning and the end say most.
	const head, tail = event.MaxField / 2, event.MaxField/2 - 64
	data := make([]byte, event.MaxField)
	n, err := io.ReadFull(f, data)
	if err == nil {
		if size, err := f.Seek(0, io.SeekEnd); err == nil && size > int64(n) {
			if _, err := f.ReadAt(data[head:head+tail], size-tail); err == nil {
				return strings.ToValidUTF8(string(data[:head])+"\n[…]\n"+string(data[head:head+tail]), "")
			}
		}
	}
	return strings.ToValidUTF8(string(data[:n]), "")
}

func claudeBlocks(raw json.RawMessage) ([]claudeBlock, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	if raw[0] == '"' {
		var s string
		if err := json.Unmarshal(raw, &s); err != nil {
			return nil, fmt.Errorf("%w: %v", errLine, err)
		}
		return []claudeBlock{{Type: "text", Text: s}}, nil
	}
	var out []claudeBlock
	if err := json.Unmarshal(raw, &out); err != nil {
		return nil, fmt.Errorf("%w: content: %v", errLine, err)
	}
	return out, nil
}

func (r *claudeReader) end(over bool) error {
	for _, id := range sortedKeys(r.sides) {
		if err := r.sides[id].end(over); err != nil {
			return err
		}
	}
	return r.session.end(over)
}
