package fakemodel

import (
	"encoding/json"
	"fmt"
)

// messagesAPI is Anthropic's Messages API as Claude Code 2.1 uses it.
type messagesAPI struct{}

func (messagesAPI) name() string { return "messages" }

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

func (messagesAPI) parse(q *Request) error {
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

func (u Usage) messages() map[string]int {
	u = u.orDefault()
	return map[string]int{
		"input_tokens": u.Input, "output_tokens": u.Output,
		"cache_read_input_tokens": u.CacheRead, "cache_creation_input_tokens": u.CacheWrite,
	}
}

func (a Answer) stop() string {
	switch {
	case a.Stop != "":
		return a.Stop
	case len(a.Calls) > 0:
		return "tool_use"
	}
	return "end_turn"
}

// blocks are the answer's content in wire form. Tool call ids are made from the
// request's number, so that a log reads the same in each run.
func (a Answer) blocks(n int) []map[string]any {
	var out []map[string]any
	if a.Thinking != "" {
		out = append(out, map[string]any{"type": "thinking", "thinking": a.Thinking, "signature": "ZmFrZQ=="})
	}
	if a.Text != "" {
		out = append(out, map[string]any{"type": "text", "text": a.Text})
	}
	for i, call := range a.Calls {
		input := call.Input
		if input == nil {
			input = map[string]any{}
		}
		out = append(out, map[string]any{
			"type": "tool_use", "id": fmt.Sprintf("toolu_fake%04d%02d", n, i), "name": call.Tool, "input": input,
		})
	}
	return out
}

func (messagesAPI) whole(q *Request, a Answer) any { return message(q, a) }

func message(q *Request, a Answer) map[string]any {
	content := a.blocks(q.N)
	if content == nil {
		content = []map[string]any{}
	}
	return map[string]any{
		"id": fmt.Sprintf("msg_fake%06d", q.N), "type": "message", "role": "assistant", "model": q.Model,
		"content": content, "stop_reason": a.stop(), "stop_sequence": nil, "usage": a.Usage.messages(),
	}
}

// frames are the answer as server-sent events, in the API's order.
func (messagesAPI) frames(q *Request, a Answer) []frame {
	var out []frame
	for _, e := range events(q, a) {
		kind := e["type"].(string)
		out = append(out, frame{event: kind, data: e, piece: kind == "content_block_delta"})
	}
	return out
}

func (messagesAPI) midway(kind string) frame {
	return frame{event: "error", data: map[string]any{
		"type":  "error",
		"error": map[string]string{"type": kind, "message": midwayText},
	}}
}

func (messagesAPI) end() string { return "" }

func (messagesAPI) failure(f Failure) any {
	if f.Type == "" {
		f.Type = errorType(f.Status)
	}
	return map[string]any{
		"type":  "error",
		"error": map[string]string{"type": f.Type, "message": f.text()},
	}
}

func events(q *Request, a Answer) []map[string]any {
	usage := a.Usage.messages()
	head := message(q, a)
	head["content"], head["stop_reason"] = []any{}, nil
	head["usage"] = map[string]int{
		"input_tokens": usage["input_tokens"], "output_tokens": 1,
		"cache_read_input_tokens":     usage["cache_read_input_tokens"],
		"cache_creation_input_tokens": usage["cache_creation_input_tokens"],
	}
	out := []map[string]any{{"type": "message_start", "message": head}}
	for i, b := range a.blocks(q.N) {
		out = append(out, blockEvents(i, b)...)
	}
	return append(out,
		map[string]any{
			"type":  "message_delta",
			"delta": map[string]any{"stop_reason": a.stop(), "stop_sequence": nil},
			"usage": usage,
		},
		map[string]any{"type": "message_stop"})
}

func blockEvents(i int, b map[string]any) []map[string]any {
	delta := func(kind, key, value string) map[string]any {
		return map[string]any{
			"type": "content_block_delta", "index": i, "delta": map[string]any{"type": kind, key: value},
		}
	}
	var start map[string]any
	var deltas []map[string]any
	switch b["type"] {
	case "thinking":
		start = map[string]any{"type": "thinking", "thinking": "", "signature": ""}
		for _, p := range pieces(b["thinking"].(string)) {
			deltas = append(deltas, delta("thinking_delta", "thinking", p))
		}
		deltas = append(deltas, delta("signature_delta", "signature", b["signature"].(string)))
	case "text":
		start = map[string]any{"type": "text", "text": ""}
		for _, p := range pieces(b["text"].(string)) {
			deltas = append(deltas, delta("text_delta", "text", p))
		}
	default:
		start = map[string]any{"type": "tool_use", "id": b["id"], "name": b["name"], "input": map[string]any{}}
		for _, p := range pieces(encode(b["input"])) {
			deltas = append(deltas, delta("input_json_delta", "partial_json", p))
		}
	}
	out := []map[string]any{{"type": "content_block_start", "index": i, "content_block": start}}
	out = append(out, deltas...)
	return append(out, map[string]any{"type": "content_block_stop", "index": i})
}
