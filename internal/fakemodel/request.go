package fakemodel

import (
	"encoding/json"
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

	// Wire is the API that was spoken: "messages", "responses", "chat" or
	// "gemini"; "" for other endpoints.
	Wire     string
	Model    string
	Stream   bool
	System   []string
	Messages []Message
	Tools    []string

	custom map[string]bool // tools that take free text (Responses API)
}

// Message is one turn of a conversation. A plain string content is one text
// block. In the APIs that have no turns but single items (Responses, chat
// completions), neighbouring items of one side are one message, tool results
// belong to the user's, and the roles developer and system are "system".
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

// Task is the text of the conversation's first user message, or messages: Codex sends what is
// to be done as one beside its instructions, and what a hook adds may stand between them.
func (q *Request) Task() string {
	var parts []string
	for _, m := range q.Messages {
		if m.Role == "assistant" {
			break
		}
		if m.Role == "user" {
			parts = append(parts, joinText(m.Blocks, "text"))
		}
	}
	return strings.Join(parts, "\n")
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

// add puts blocks at the end of the conversation, into the last message where
// that is the same side's.
func (q *Request) add(role string, blocks ...Block) {
	if len(blocks) == 0 {
		return
	}
	if n := len(q.Messages); n > 0 && q.Messages[n-1].Role == role && role != "system" {
		q.Messages[n-1].Blocks = append(q.Messages[n-1].Blocks, blocks...)
		return
	}
	q.Messages = append(q.Messages, Message{Role: role, Blocks: blocks})
}

// Text is everything that the model was given to read: system prompt, messages,
// tool results, in their order. A test looks here for what must have reached the
// model.
func (q *Request) Text() string {
	parts := slices.Clone(q.System)
	for _, m := range q.Messages {
		for _, b := range m.Blocks {
			if b.Text != "" {
				parts = append(parts, b.Text)
			}
		}
	}
	return strings.Join(parts, "\n")
}
