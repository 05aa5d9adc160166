package fakemodel

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Request is one call of the API as it came in.
type Request struct {
	// N counts from 1 over the server's life; At is when the request was read.
	N      int
	At     time.Time
	Method string
	Path   string
	// Header is a copy; the values of keys and tokens in it are replaced by "(hidden)".
	Header http.Header
	Body   []byte
	// Rule is the name of the rule that answered: "otherwise" when none did, "" for other endpoints.
	Rule string

	Model    string
	Stream   bool
	System   []string
	Messages []Message
	Tools    []string
}

// Message is one turn of a conversation. A plain string content is one text block.
type Message struct {
	Role   string
	Blocks []Block
}

// Block is one piece of a message.
type Block struct {
	Type string
	// Text holds a text block's text, or a tool result's text.
	Text string
	// Tool and Input are set in tool_use blocks, ToolID in tool_use and tool_result blocks.
	Tool    string
	ToolID  string
	Input   json.RawMessage
	IsError bool
}

type wireRequest struct {
	Model    string          `json:"model"`
	Stream   bool            `json:"stream"`
	System   json.RawMessage `json:"system"`
	Messages []struct {
		Role    string          `json:"role"`
		Content json.RawMessage `json:"content"`
	} `json:"messages"`
	Tools []struct {
		Name string `json:"name"`
	} `json:"tools"`
}

type wireBlock struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	Name      string          `json:"name"`
	ID        string          `json:"id"`
	ToolUseID string          `json:"tool_use_id"`
	Input     json.RawMessage `json:"input"`
	Content   json.RawMessage `json:"content"`
	IsError   bool            `json:"is_error"`
}

func parseRequest(q *Request) error {
	var w wireRequest
	if err := json.Unmarshal(q.Body, &w); err != nil {
		return fmt.Errorf("request is not JSON of the expected shape: %w", err)
	}
	q.Model, q.Stream = w.Model, w.Stream
	system, err := parseBlocks(w.System)
	if err != nil {
		return fmt.Errorf("system: %w", err)
	}
	for _, b := range system {
		q.System = append(q.System, b.Text)
	}
	for i, m := range w.Messages {
		blocks, err := parseBlocks(m.Content)
		if err != nil {
			return fmt.Errorf("messages[%d].content: %w", i, err)
		}
		q.Messages = append(q.Messages, Message{Role: m.Role, Blocks: blocks})
	}
	for _, t := range w.Tools {
		q.Tools = append(q.Tools, t.Name)
	}
	return nil
}

// parseBlocks reads content that may be absent, a string or a list of blocks.
func parseBlocks(raw json.RawMessage) ([]Block, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	if raw[0] == '"' {
		var s string
		if err := json.Unmarshal(raw, &s); err != nil {
			return nil, err
		}
		return []Block{{Type: "text", Text: s}}, nil
	}
	var list []wireBlock
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, err
	}
	out := make([]Block, 0, len(list))
	for _, w := range list {
		b := Block{Type: w.Type, Text: w.Text, Tool: w.Name, ToolID: w.ID, Input: w.Input, IsError: w.IsError}
		if w.Type == "tool_result" {
			b.ToolID = w.ToolUseID
			inner, err := parseBlocks(w.Content)
			if err != nil {
				return nil, err
			}
			b.Text = joinText(inner, "text")
			for _, in := range inner {
				if in.Type == "tool_reference" {
					b.Text += in.Type
				}
			}
		}
		out = append(out, b)
	}
	return out, nil
}

func joinText(blocks []Block, kind string) string {
	var parts []string
	for _, b := range blocks {
		if b.Type == kind {
			parts = append(parts, b.Text)
		}
	}
	return strings.Join(parts, "\n")
}

// lastUser is the last message with the role user; clients put messages of the
// role system after it.
func (q *Request) lastUser() Message {
	for _, m := range slices.Backward(q.Messages) {
		if m.Role == "user" {
			return m
		}
	}
	return Message{}
}

// Task is the text of the conversation's first user message.
func (q *Request) Task() string {
	for _, m := range q.Messages {
		if m.Role == "user" {
			return joinText(m.Blocks, "text")
		}
	}
	return ""
}

// User is the text of the last user message, without tool results.
func (q *Request) User() string { return joinText(q.lastUser().Blocks, "text") }

// Results are the texts of the tool results in the last user message.
func (q *Request) Results() string { return joinText(q.lastUser().Blocks, "tool_result") }

// ResultBlocks are the tool results in the last user message.
func (q *Request) ResultBlocks() []Block {
	var out []Block
	for _, b := range q.lastUser().Blocks {
		if b.Type == "tool_result" {
			out = append(out, b)
		}
	}
	return out
}

// SystemText is the system prompt, its blocks joined by newlines, and any
// messages of the role system after it.
func (q *Request) SystemText() string {
	parts := slices.Clone(q.System)
	for _, m := range q.Messages {
		if m.Role == "system" {
			parts = append(parts, joinText(m.Blocks, "text"))
		}
	}
	return strings.Join(parts, "\n")
}

// Offers reports whether the request lets the model call the tool.
func (q *Request) Offers(tool string) bool { return slices.Contains(q.Tools, tool) }

// Turn is how many answers the conversation holds already, plus one.
func (q *Request) Turn() int {
	n := 1
	for _, m := range q.Messages {
		if m.Role == "assistant" {
			n++
		}
	}
	return n
}

// Side reports whether this is a request that the client makes for itself (a
// title, a summary, a probe of the quota) and not a step of an agent. Such
// requests offer no tools; an agent that was started without tools looks the
// same, and its rules have to say side.
func (q *Request) Side() bool { return len(q.Tools) == 0 }
