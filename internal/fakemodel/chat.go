package fakemodel

import (
	"encoding/json"
	"fmt"
)

// chatAPI is the chat completions API, which Copilot CLI 1.0 and most local
// model servers speak: POST …/chat/completions.
type chatAPI struct{}

func (chatAPI) name() string { return "chat" }

type chatRequest struct {
	Model    string `json:"model"`
	Stream   bool   `json:"stream"`
	Messages []struct {
		Role       string          `json:"role"`
		Content    json.RawMessage `json:"content"`
		ToolCallID string          `json:"tool_call_id"`
		ToolCalls  []struct {
			ID       string `json:"id"`
			Function struct {
				Name      string `json:"name"`
				Arguments string `json:"arguments"`
			} `json:"function"`
		} `json:"tool_calls"`
	} `json:"messages"`
	Tools []struct {
		Function struct {
			Name string `json:"name"`
		} `json:"function"`
	} `json:"tools"`
}

func (chatAPI) parse(q *Request) error {
	var w chatRequest
	if err := json.Unmarshal(q.Body, &w); err != nil {
		return fmt.Errorf("request is not JSON of the expected shape: %w", err)
	}
	q.Model, q.Stream = w.Model, w.Stream
	for _, t := range w.Tools {
		q.Tools = append(q.Tools, t.Function.Name)
	}
	for i, m := range w.Messages {
		text, err := textOf(m.Content)
		if err != nil {
			return fmt.Errorf("messages[%d].content: %w", i, err)
		}
		role := side(m.Role)
		switch {
		case m.Role == "tool":
			q.add("user", Block{Type: "tool_result", ToolID: m.ToolCallID, Text: text})
		case role == "system" && len(q.Messages) == 0:
			q.System = append(q.System, text)
		case text != "":
			q.add(role, Block{Type: "text", Text: text})
		}
		for _, c := range m.ToolCalls {
			q.add(role, Block{Type: "tool_use", Tool: c.Function.Name, ToolID: c.ID, Input: json.RawMessage(c.Function.Arguments)})
		}
	}
	return nil
}

func (chatAPI) calls(q *Request, a Answer) []map[string]any {
	var out []map[string]any
	for i, call := range a.Calls {
		out = append(out, map[string]any{
			"index": i, "id": callID("call", q, i), "type": "function",
			"function": map[string]any{"name": call.Tool, "arguments": encode(call.input())},
		})
	}
	return out
}

func (chatAPI) reason(a Answer) string {
	switch {
	case a.Stop != "":
		return a.Stop
	case len(a.Calls) > 0:
		return "tool_calls"
	}
	return "stop"
}

func (chatAPI) usage(u Usage) map[string]any {
	u = u.orDefault()
	return map[string]any{
		"prompt_tokens": u.Input, "completion_tokens": u.Output, "total_tokens": u.Input + u.Output,
		"prompt_tokens_details": map[string]int{"cached_tokens": u.CacheRead},
	}
}

func (c chatAPI) object(q *Request, kind string, choice map[string]any) map[string]any {
	choice["index"] = 0
	return map[string]any{
		"id": fmt.Sprintf("chatcmpl-fake%06d", q.N), "object": kind, "created": q.At.Unix(), "model": q.Model,
		"choices": []any{choice},
	}
}

func (c chatAPI) whole(q *Request, a Answer) any {
	message := map[string]any{"role": "assistant", "content": a.Text}
	if calls := c.calls(q, a); calls != nil {
		message["tool_calls"] = calls
	}
	out := c.object(q, "chat.completion", map[string]any{"message": message, "finish_reason": c.reason(a)})
	out["usage"] = c.usage(a.Usage)
	return out
}

func (c chatAPI) frames(q *Request, a Answer) []frame {
	chunk := func(delta map[string]any, reason any) map[string]any {
		return c.object(q, "chat.completion.chunk", map[string]any{"delta": delta, "finish_reason": reason})
	}
	out := []frame{{data: chunk(map[string]any{"role": "assistant", "content": ""}, nil)}}
	for _, p := range pieces(a.Text) {
		out = append(out, frame{data: chunk(map[string]any{"content": p}, nil), piece: true})
	}
	for _, call := range c.calls(q, a) {
		out = append(out, frame{data: chunk(map[string]any{"tool_calls": []any{call}}, nil), piece: true})
	}
	last := chunk(map[string]any{}, c.reason(a))
	last["usage"] = c.usage(a.Usage)
	return append(out, frame{data: last})
}

func (chatAPI) midway(kind string) frame {
	return frame{data: map[string]any{"error": map[string]string{"type": kind, "message": midwayText}}}
}

func (chatAPI) end() string { return "[DONE]" }

func (chatAPI) failure(f Failure) any { return openAIFailure(f) }
