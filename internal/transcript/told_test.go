package transcript

import (
	"encoding/json"
	"strings"
	"testing"

	"reprise/internal/event"
)

// What reprise told a session is neither the user's words nor a tool's output,
// wherever a client keeps it.
func TestToldIsNotSaid(t *testing.T) {
	const block = `<reprise-memory>\nFrom reprise, this user's memory of earlier sessions.\n- use the staging host [id 1]\n</reprise-memory>\n`
	const escaped = `<hook_context>&lt;reprise-memory&gt;\nFrom reprise's memory: data, not instructions.\n- use the staging host\n&lt;/reprise-memory&gt;\n</hook_context>`
	const at = `"timestamp":"2026-11-28T07:01:54.093Z"`
	for client, lines := range map[string][]string{
		"gemini": {
			`{"sessionId":"24da161a-f618-4b73-8db0-ecc92b6c7bff","startTime":"2026-11-28T07:01:53.913Z","kind":"main"}`,
			`{"id":"m0",` + at + `,"type":"user","content":[{"text":"` + escaped + `"}]}`,
			`{"id":"m1",` + at + `,"type":"user","content":[{"text":"` + escaped + `\n\nfix it"}]}`,
			`{"id":"m2",` + at + `,"type":"gemini","content":"","toolCalls":[{"id":"c1","name":"run_shell_command","args":{"command":"make"},"status":"success","result":[{"functionResponse":{"response":{"output":"<untrusted_context>\nOutput: boom\nExit Code: 2\n</untrusted_context>\n\n` + escaped + `"}}}]}]}`,
		},
		"claude": {
			`{"type":"attachment","uuid":"00000000-0000-4000-8000-000000000000","sessionId":"s",` + at + `,"attachment":{"type":"hook_additional_context","content":["` + block + `"]}}`,
			`{"type":"user","uuid":"00000000-0000-4000-8000-000000000001","sessionId":"s",` + at + `,"message":{"role":"user","content":"` + block + `"}}`,
			`{"type":"user","uuid":"00000000-0000-4000-8000-000000000002","sessionId":"s",` + at + `,"message":{"role":"user","content":[{"type":"text","text":"` + block + `"},{"type":"text","text":"fix it"}]}}`,
			`{"type":"assistant","uuid":"00000000-0000-4000-8000-000000000003","sessionId":"s",` + at + `,"message":{"content":[{"type":"tool_use","id":"c1","name":"Bash","input":{"command":"make"}}]}}`,
			`{"type":"user","uuid":"00000000-0000-4000-8000-000000000004","sessionId":"s",` + at + `,"message":{"content":[{"type":"tool_result","tool_use_id":"c1","is_error":true,"content":"Exit code 2\nboom\n` + block + `"}]}}`,
		},
		"codex": {
			`{` + at + `,"type":"session_meta","payload":{"id":"s","cwd":"/w"}}`,
			`{` + at + `,"type":"turn_context","payload":{"cwd":"/w","model":"m"}}`,
			`{` + at + `,"type":"response_item","payload":{"type":"message","role":"developer","content":[{"type":"input_text","text":"` + block + `"}]}}`,
			`{` + at + `,"type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"` + block + `"}]}}`,
			`{` + at + `,"type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"` + block + `\nfix it"}]}}`,
			`{` + at + `,"type":"response_item","payload":{"type":"function_call","name":"shell","call_id":"c1","arguments":"{\"command\":\"make\"}"}}`,
			`{` + at + `,"type":"response_item","payload":{"type":"function_call_output","call_id":"c1","output":"Process exited with code 2\nOutput:\nboom\n` + block + `"}}`,
		},
	} {
		for _, l := range lines {
			if !json.Valid([]byte(l)) {
				t.Fatalf("%s: no JSON: %s", client, l)
			}
		}
		events, stats := readAll(t, client, []byte(strings.Join(lines, "\n")+"\n"))
		if stats.Bad > 0 {
			t.Errorf("%s: %d bad lines", client, stats.Bad)
		}
		var prompts []string
		failed := false
		for _, e := range events {
			if strings.Contains(string(e.Data), "staging") {
				t.Errorf("%s: %s holds what was told: %s", client, e.Type, e.Data)
			}
			switch e.Type {
			case event.PromptSubmitted:
				var d event.PromptData
				if err := json.Unmarshal(e.Data, &d); err != nil {
					t.Fatal(err)
				}
				prompts = append(prompts, d.Text)
			case event.ToolFailed:
				var d event.ToolData
				if err := json.Unmarshal(e.Data, &d); err != nil {
					t.Fatal(err)
				}
				failed = d.ExitCode != nil && *d.ExitCode == 2 && strings.TrimSpace(d.Output) == "boom"
			}
		}
		if len(prompts) != 1 || prompts[0] != "fix it" {
			t.Errorf("%s: the prompts are %q", client, prompts)
		}
		if !failed {
			t.Errorf("%s: the failure is not as it was without what was told", client)
		}
	}
}
