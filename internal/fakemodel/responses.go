package fakemodel

import (
	"encoding/json"
	"fmt"
	"strings"
)

// responsesAPI is OpenAI's Responses API as Codex 0.171 uses it: POST
// …/responses, a conversation of single items, nothing kept by the server.
type responsesAPI struct{}

func (responsesAPI) name() string { return "responses" }

type responsesRequest struct {
	Model        string          `json:"model"`
	Stream       bool            `json:"stream"`
	Instructions string          `json:"instructions"`
	Input        json.RawMessage `json:"input"`
	Tools        []struct {
		Type string `json:"type"`
		Name string `json:"name"`
	} `json:"tools"`
}

type responsesItem struct {
	Type      string          `json:"type"`
	Role      string          `json:"role"`
	Content   json.RawMessage `json:"content"`
	Name      string          `json:"name"`
	CallID    string          `json:"call_id"`
	Arguments string          `json:"arguments"`
	Input     string          `json:"input"`
	Output    json.RawMessage `json:"output"`
}

func (responsesAPI) parse(q *Request) error {
	var w responsesRequest
	if err := json.Unmarshal(q.Body, &w); err != nil {
		return fmt.Errorf("request is not JSON of the expected shape: %w", err)
	}
	q.Model, q.Stream = w.Model, w.Stream
	if w.Instructions != "" {
		q.System = []string{w.Instructions}
	}
	q.custom = map[string]bool{}
	for _, t := range w.Tools {
		if t.Name == "" {
			t.Name = t.Type // built-in tools have a type alone
		}
		q.Tools = append(q.Tools, t.Name)
		if t.Type == "custom" {
			q.custom[t.Name] = true
		}
	}
	if len(w.Input) > 0 && w.Input[0] == '"' {
		text, err := textOf(w.Input)
		q.add("user", Block{Type: "text", Text: text})
		return err
	}
	var items []responsesItem
	if err := unmarshalList(w.Input, &items); err != nil {
		return fmt.Errorf("input: %w", err)
	}
	for i, it := range items {
		if err := q.addItem(it); err != nil {
			return fmt.Errorf("input[%d]: %w", i, err)
		}
	}
	return nil
}

func (q *Request) addItem(it responsesItem) error {
	switch it.Type {
	case "message", "":
		text, err := textOf(it.Content)
		if err != nil {
			return fmt.Errorf("content: %w", err)
		}
		q.add(side(it.Role), Block{Type: "text", Text: text})
	case "function_call":
		q.add("assistant", Block{Type: "tool_use", Tool: it.Name, ToolID: it.CallID, Input: json.RawMessage(it.Arguments)})
	case "custom_tool_call":
		q.add("assistant", Block{Type: "tool_use", Tool: it.Name, ToolID: it.CallID, Input: json.RawMessage(encode(it.Input))})
	case "function_call_output", "custom_tool_call_output":
		text, err := textOf(it.Output)
		if err != nil {
			return fmt.Errorf("output: %w", err)
		}
		q.add("user", Block{Type: "tool_result", ToolID: it.CallID, Text: text})
	}
	return nil // reasoning and what else there is says nothing to a fake
}

// side is a role as this package knows it.
func side(role string) string {
	if role == "developer" {
		return "system"
	}
	return role
}

func unmarshalList(raw json.RawMessage, to any) error {
	if len(raw) == 0 {
		return nil
	}
	return json.Unmarshal(raw, to)
}

// textOf is content that may be absent, a string or a list of parts with a text.
func textOf(raw json.RawMessage) (string, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return "", nil
	}
	if raw[0] == '"' {
		var s string
		err := json.Unmarshal(raw, &s)
		return s, err
	}
	var list []struct {
		Text string `json:"text"`
	}
	if err := json.Unmarshal(raw, &list); err != nil {
		return "", err
	}
	var parts []string
	for _, p := range list {
		parts = append(parts, p.Text)
	}
	return strings.Join(parts, "\n"), nil
}

func (responsesAPI) items(q *Request, a Answer) []map[string]any {
	var out []map[string]any
	if a.Text != "" || len(a.Calls) == 0 {
		out = append(out, map[string]any{
			"type": "message", "role": "assistant", "id": callID("msg", q, 0), "status": "completed",
			"content": []any{map[string]any{"type": "output_text", "text": a.Text, "annotations": []any{}}},
		})
	}
	for i, call := range a.Calls {
		item := map[string]any{"id": callID("fc", q, i), "call_id": callID("call", q, i), "name": call.Tool, "status": "completed"}
		if q.custom[call.Tool] {
			item["type"], item["input"] = "custom_tool_call", call.Input["input"]
		} else {
			item["type"], item["arguments"] = "function_call", encode(call.input())
			// Codex offers the tools of a server as one, and takes calls of them so.
			if at := strings.LastIndex(call.Tool, "__"); strings.HasPrefix(call.Tool, "mcp__") && at > len("mcp_") {
				item["namespace"], item["name"] = call.Tool[:at], call.Tool[at+len("__"):]
			}
		}
		out = append(out, item)
	}
	return out
}

func (c responsesAPI) response(q *Request, a Answer, status string) map[string]any {
	u := a.Usage.orDefault()
	return map[string]any{
		"id": fmt.Sprintf("resp_fake%06d", q.N), "object": "response", "status": status, "model": q.Model,
		"output": c.items(q, a),
		"usage": map[string]any{
			"input_tokens": u.Input, "input_tokens_details": map[string]int{"cached_tokens": u.CacheRead},
			"output_tokens": u.Output, "output_tokens_details": map[string]int{"reasoning_tokens": 0},
			"total_tokens": u.Input + u.Output,
		},
	}
}

func (c responsesAPI) whole(q *Request, a Answer) any { return c.response(q, a, "completed") }

func (c responsesAPI) frames(q *Request, a Answer) []frame {
	event := func(kind string, kv map[string]any) frame {
		kv["type"] = kind
		return frame{event: kind, data: kv}
	}
	begun := c.response(q, a, "in_progress")
	begun["output"], begun["usage"] = []any{}, nil
	out := []frame{event("response.created", map[string]any{"response": begun})}
	for i, item := range c.items(q, a) {
		if item["type"] == "message" {
			open := map[string]any{"type": "message", "role": "assistant", "id": item["id"], "status": "in_progress", "content": []any{}}
			out = append(out, event("response.output_item.added", map[string]any{"output_index": i, "item": open}))
			for _, p := range pieces(a.Text) {
				f := event("response.output_text.delta", map[string]any{"item_id": item["id"], "output_index": i, "content_index": 0, "delta": p})
				f.piece = true
				out = append(out, f)
			}
		}
		out = append(out, event("response.output_item.done", map[string]any{"output_index": i, "item": item}))
	}
	return append(out, event("response.completed", map[string]any{"response": c.response(q, a, "completed")}))
}

func (responsesAPI) midway(kind string) frame {
	return frame{event: "response.failed", data: map[string]any{
		"type":     "response.failed",
		"response": map[string]any{"status": "failed", "error": map[string]string{"code": kind, "message": midwayText}},
	}}
}

func (responsesAPI) end() string { return "" }

func (responsesAPI) failure(f Failure) any { return openAIFailure(f) }

// openAIFailure is an error as OpenAI's APIs write it.
func openAIFailure(f Failure) any {
	if f.Type == "" {
		switch f.Status {
		case 401, 403:
			f.Type = "invalid_api_key"
		case 429:
			f.Type = "rate_limit_exceeded"
		case 400, 404, 413:
			f.Type = "invalid_request_error"
		default:
			f.Type = "server_error"
		}
	}
	return map[string]any{"error": map[string]any{"message": f.text(), "type": f.Type, "code": f.Type, "param": nil}}
}

func (c Call) input() map[string]any {
	if c.Input == nil {
		return map[string]any{}
	}
	return c.Input
}
