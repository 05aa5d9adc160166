package dialect_test

import (
	"encoding/json"
	"testing"

	"reprise/internal/agent/dialect"
)

// Foreign bytes never make Parse panic, and whatever it takes can be answered
// and written in valid JSON. What it takes, encoding/json takes too.
func FuzzParse(f *testing.F) {
	for _, c := range cases(f) {
		f.Add(c.Client, c.Event, c.Stdin)
	}
	f.Add("gemini", "AfterTool", []byte(`{"tool_name":"run_shell_command","tool_response":{"llmContent":"<untrusted_context>\n</untrusted_context>"}}`))
	f.Add("codex", "PostToolUse", []byte(`{"tool_name":"Bash","tool_response":"Exit code: 1\nOutput:"}`))
	f.Fuzz(func(t *testing.T, client, name string, payload []byte) {
		e, err := dialect.Parse(client, name, payload)
		if err != nil {
			return
		}
		if payload = trimBOM(payload); !json.Valid(payload) {
			t.Fatalf("taken though it is no JSON: %q", payload)
		}
		if data := dialect.AppendData(nil, e); !json.Valid(data) {
			t.Fatalf("data: %q", data)
		}
		if len(e.Input) > 0 && !json.Valid(e.Input) {
			t.Fatalf("input: %q", e.Input)
		}
		for _, r := range answers(e) {
			checkReply(t, e, r)
		}
	})
}

func trimBOM(b []byte) []byte {
	if len(b) >= 3 && string(b[:3]) == "\xef\xbb\xbf" {
		return b[3:]
	}
	return b
}

// Whatever the decision holds, what is printed is one JSON object or nothing.
func FuzzEncode(f *testing.F) {
	f.Add("claude", "PreToolUse", "ctx", "deny", "reason", true, []byte(`{"a": 1}`))
	f.Add("copilot", "agentStop", "\x00\xff", "allow", "\n", true, []byte(`[1]`))
	f.Add("gemini", "BeforeTool", "日本", "", "", false, []byte(`{"a":"`))
	f.Fuzz(func(t *testing.T, client, name, context, permission, reason string, block bool, input []byte) {
		e := dialect.Event{Client: client, Name: name, Kind: dialect.ToolBefore}
		if m := dialect.ManifestOf(client); m != nil {
			if s := m.Event(name); s != nil {
				e.Kind = s.Kind
			}
		}
		d := dialect.Decision{Context: context, Permission: dialect.Permission(permission), Reason: reason, Block: block, UpdatedInput: input}
		checkReply(t, e, dialect.Encode(e, d))
		dialect.Unsaid(e, d)
	})
}
