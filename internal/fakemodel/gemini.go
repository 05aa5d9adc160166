package fakemodel

import (
	"encoding/json"
	"fmt"
	"strings"
)

// geminiAPI is the Gemini API as Gemini CLI 0.61 uses it: POST
// …/models/MODEL:generateContent and :streamGenerateContent?alt=sse.
type geminiAPI struct{}

func (geminiAPI) name() string { return "gemini" }

// geminiPath takes model and action out of a path that ends in
// /models/MODEL:ACTION.
func geminiPath(path string) (model, action string) {
	_, last, ok := strings.Cut(path, "/models/")
	if !ok {
		return "", ""
	}
	model, action, _ = strings.Cut(last, ":")
	return model, action
}

type geminiPart struct {
	Text         string `json:"text"`
	FunctionCall *struct {
		ID   string          `json:"id"`
		Name string          `json:"name"`
		Args json.RawMessage `json:"args"`
	} `json:"functionCall"`
	FunctionResponse *struct {
		ID       string                     `json:"id"`
		Name     string                     `json:"name"`
		Response map[string]json.RawMessage `json:"response"`
	} `json:"functionResponse"`
}

type geminiContent struct {
	Role  string       `json:"role"`
	Parts []geminiPart `json:"parts"`
}

type geminiRequest struct {
	System   *geminiContent  `json:"systemInstruction"`
	Contents []geminiContent `json:"contents"`
	Tools    []struct {
		Functions []struct {
			Name string `json:"name"`
		} `json:"functionDeclarations"`
	} `json:"tools"`
}

func (geminiAPI) parse(q *Request) error {
	var w geminiRequest
	if err := json.Unmarshal(q.Body, &w); err != nil {
		return fmt.Errorf("request is not JSON of the expected shape: %w", err)
	}
	if w.System != nil {
		for _, p := range w.System.Parts {
			q.System = append(q.System, p.Text)
		}
	}
	for _, t := range w.Tools {
		for _, f := range t.Functions {
			q.Tools = append(q.Tools, f.Name)
		}
	}
	for _, c := range w.Contents {
		role := c.Role
		switch role {
		case "model":
			role = "assistant"
		case "", "function":
			role = "user"
		}
		for _, p := range c.Parts {
			q.add(role, p.block())
		}
	}
	return nil
}

func (p geminiPart) block() Block {
	switch {
	case p.FunctionCall != nil:
		return Block{Type: "tool_use", Tool: p.FunctionCall.Name, ToolID: p.FunctionCall.ID, Input: p.FunctionCall.Args}
	case p.FunctionResponse != nil:
		b := Block{Type: "tool_result", ToolID: p.FunctionResponse.ID}
		for _, key := range []string{"output", "error"} {
			raw, ok := p.FunctionResponse.Response[key]
			if !ok {
				continue
			}
			b.IsError = key == "error"
			if json.Unmarshal(raw, &b.Text) != nil {
				b.Text = string(raw) // not every result is a string
			}
		}
		return b
	}
	return Block{Type: "text", Text: p.Text}
}

func (geminiAPI) chunk(q *Request, a Answer, parts []any, last bool) map[string]any {
	candidate := map[string]any{"content": map[string]any{"role": "model", "parts": parts}, "index": 0}
	out := map[string]any{"candidates": []any{candidate}, "modelVersion": q.Model}
	if last {
		stop := a.Stop
		if stop == "" {
			stop = "STOP"
		}
		u := a.Usage.orDefault()
		candidate["finishReason"] = stop
		out["usageMetadata"] = map[string]int{
			"promptTokenCount": u.Input, "candidatesTokenCount": u.Output,
			"totalTokenCount": u.Input + u.Output, "cachedContentTokenCount": u.CacheRead,
		}
	}
	return out
}

// parts are the answer's parts, its text in one or in pieces. Calls have no id:
// the service gives none, and the client makes its own.
func (geminiAPI) parts(a Answer, inPieces bool) []any {
	var out []any
	if a.Thinking != "" {
		out = append(out, map[string]any{"text": a.Thinking, "thought": true})
	}
	if a.Text != "" {
		texts := []string{a.Text}
		if inPieces {
			texts = pieces(a.Text)
		}
		for _, t := range texts {
			out = append(out, map[string]any{"text": t})
		}
	}
	for _, call := range a.Calls {
		out = append(out, map[string]any{"functionCall": map[string]any{"name": call.Tool, "args": call.input()}})
	}
	if out == nil {
		out = []any{map[string]any{"text": ""}}
	}
	return out
}

func (c geminiAPI) whole(q *Request, a Answer) any {
	return c.chunk(q, a, c.parts(a, false), true)
}

func (c geminiAPI) frames(q *Request, a Answer) []frame {
	parts := c.parts(a, true)
	var out []frame
	for i, p := range parts {
		// The end is said in the last piece: an empty one would be no valid answer.
		last := i == len(parts)-1 && a.FailMidway == ""
		out = append(out, frame{data: c.chunk(q, a, []any{p}, last), piece: true})
	}
	return out
}

func (geminiAPI) midway(kind string) frame {
	return frame{data: map[string]any{"error": map[string]any{"code": 500, "status": kind, "message": midwayText}}}
}

func (geminiAPI) end() string { return "" }

func (geminiAPI) failure(f Failure) any {
	if f.Type == "" {
		switch f.Status {
		case 400:
			f.Type = "INVALID_ARGUMENT"
		case 401:
			f.Type = "UNAUTHENTICATED"
		case 403:
			f.Type = "PERMISSION_DENIED"
		case 404:
			f.Type = "NOT_FOUND"
		case 429:
			f.Type = "RESOURCE_EXHAUSTED"
		case 503, 529:
			f.Type = "UNAVAILABLE"
		default:
			f.Type = "INTERNAL"
		}
	}
	return map[string]any{"error": map[string]any{"code": f.Status, "message": f.text(), "status": f.Type}}
}
