package fakemodel

import (
	"encoding/json"
	"fmt"
	"net/http"
	"unicode/utf8"
)

// pieceBytes is about how much text one streamed delta carries.
const pieceBytes = 48

func (u Usage) wire() map[string]int {
	if u.Input == 0 && u.Output == 0 {
		u.Input, u.Output = 100, 20
	}
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

func message(q *Request, a Answer) map[string]any {
	content := a.blocks(q.N)
	if content == nil {
		content = []map[string]any{}
	}
	return map[string]any{
		"id": fmt.Sprintf("msg_fake%06d", q.N), "type": "message", "role": "assistant", "model": q.Model,
		"content": content, "stop_reason": a.stop(), "stop_sequence": nil, "usage": a.Usage.wire(),
	}
}

// events are the answer as server-sent events, in the API's order.
func events(q *Request, a Answer) []map[string]any {
	usage := a.Usage.wire()
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
		input, err := json.Marshal(b["input"])
		if err != nil { // inputs come from JSON or from test code: an unusable one must show
			input = []byte(`{"fakemodel":"input could not be encoded"}`)
		}
		for _, p := range pieces(string(input)) {
			deltas = append(deltas, delta("input_json_delta", "partial_json", p))
		}
	}
	out := []map[string]any{{"type": "content_block_start", "index": i, "content_block": start}}
	out = append(out, deltas...)
	return append(out, map[string]any{"type": "content_block_stop", "index": i})
}

// pieces cuts text into parts of about pieceBytes, never inside a rune.
func pieces(s string) []string {
	var out []string
	for len(s) > pieceBytes {
		n := pieceBytes
		for n > 1 && !utf8.RuneStart(s[n]) {
			n--
		}
		out = append(out, s[:n])
		s = s[n:]
	}
	return append(out, s)
}

func (m *Model) stream(w http.ResponseWriter, r *http.Request, q *Request, a Answer) {
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-cache")
	flush := http.NewResponseController(w)
	w.WriteHeader(http.StatusOK)
	for i, e := range events(q, a) {
		if a.CutAfter > 0 && i >= a.CutAfter {
			panic(http.ErrAbortHandler)
		}
		piece := e["type"] == "content_block_delta"
		if piece && a.PaceMS > 0 && !m.wait(r.Context(), ms(a.PaceMS)) {
			panic(http.ErrAbortHandler)
		}
		if err := sendEvent(w, e); err != nil {
			return // the caller has left
		}
		if err := flush.Flush(); err != nil {
			return
		}
		if piece && a.FailMidway != "" {
			_ = sendEvent(w, map[string]any{
				"type":  "error",
				"error": map[string]string{"type": a.FailMidway, "message": "the fake model was told to fail midway"},
			})
			return
		}
	}
}

func sendEvent(w http.ResponseWriter, e map[string]any) error {
	data, err := json.Marshal(e)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "event: %s\ndata: %s\n\n", e["type"], data)
	return err
}
