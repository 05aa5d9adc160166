package fakemodel

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// dialects are the three further APIs: how a first and a second request of a
// client look in them, and how their answers are read.
var dialects = map[string]struct {
	path, stream       string // where to ask, plain and streamed
	first, second      string
	tool               string // the client's shell tool
	usage, finish      string // what the end of a stream holds
	failure429, midway string
}{
	"responses": {
		path: "/v1/responses", stream: "/v1/responses", tool: "exec_command",
		first: `{"model":"m-1","stream":STREAM,"instructions":"be brief","input":[
			{"type":"message","role":"developer","content":[{"type":"input_text","text":"a rule"}]},
			{"type":"message","role":"user","content":[{"type":"input_text","text":"<environment>"}]},
			{"type":"message","role":"user","content":[{"type":"input_text","text":"do it"}]}],
			"tools":[{"type":"function","name":"exec_command"},{"type":"custom","name":"apply_patch"},{"type":"web_search"}]}`,
		second: `{"model":"m-1","stream":STREAM,"input":[
			{"role":"user","content":"do it"},
			{"type":"reasoning","summary":[]},
			{"type":"message","role":"assistant","content":[{"type":"output_text","text":"I will"}]},
			{"type":"function_call","call_id":"c1","name":"exec_command","arguments":"{\"cmd\":\"x\"}"},
			{"type":"custom_tool_call","call_id":"c2","name":"apply_patch","input":"*** Begin"},
			{"type":"function_call_output","call_id":"c1","output":"exit 7"},
			{"type":"custom_tool_call_output","call_id":"c2","output":[{"type":"input_text","text":"patched"}]},
			{"type":"message","role":"developer","content":"from a hook"}],
			"tools":[{"type":"function","name":"exec_command"}]}`,
		usage: `"total_tokens":16`, finish: `event: response.completed`,
		failure429: `"code":"rate_limit_exceeded"`, midway: `response.failed`,
	},
	"chat": {
		path: "/v1/chat/completions", stream: "/v1/chat/completions", tool: "bash",
		first: `{"model":"m-1","stream":STREAM,"messages":[{"role":"system","content":"be brief"},
			{"role":"user","content":[{"type":"text","text":"do it"}]}],"tools":[{"type":"function","function":{"name":"bash"}}]}`,
		second: `{"model":"m-1","stream":STREAM,"messages":[{"role":"system","content":"be brief"},{"role":"user","content":"do it"},
			{"role":"assistant","content":null,"tool_calls":[{"id":"c1","function":{"name":"bash","arguments":"{}"}},{"id":"c2","function":{"name":"edit","arguments":"{}"}}]},
			{"role":"tool","tool_call_id":"c1","content":"exit 7"},{"role":"tool","tool_call_id":"c2","content":"patched"},
			{"role":"system","content":"from a hook"}],"tools":[{"type":"function","function":{"name":"bash"}}]}`,
		usage: `"total_tokens":16`, finish: "data: [DONE]",
		failure429: `"code":"rate_limit_exceeded"`, midway: `"type":"overloaded_error"`,
	},
	"gemini": {
		path: "/v1beta/models/m-1:generateContent", stream: "/v1beta/models/m-1:streamGenerateContent?alt=sse", tool: "run_shell_command",
		first: `{"systemInstruction":{"parts":[{"text":"be brief"}]},"contents":[{"role":"user","parts":[{"text":"<context>"},{"text":"do it"}]}],
			"tools":[{"functionDeclarations":[{"name":"run_shell_command"},{"name":"glob"}]}]}`,
		second: `{"contents":[{"role":"user","parts":[{"text":"do it"}]},
			{"role":"model","parts":[{"functionCall":{"id":"c1","name":"run_shell_command","args":{}}},{"functionCall":{"name":"glob","args":{}}}]},
			{"role":"user","parts":[{"functionResponse":{"id":"c1","name":"run_shell_command","response":{"error":"exit 7"}}},
				{"functionResponse":{"name":"glob","response":{"output":{"files":["patched"]}}}},{"text":"from a hook"}]}],
			"tools":[{"functionDeclarations":[{"name":"run_shell_command"}]}]}`,
		usage: `"totalTokenCount":16`, finish: `"finishReason":"STOP"`,
		failure429: `"status":"RESOURCE_EXHAUSTED"`, midway: `"status":"overloaded_error"`,
	},
}

func postTo(t *testing.T, url, body string) (int, string, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Goog-Api-Key", "secret")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(data), err
}

// One script serves every API, plain and streamed, and a test sees the same of
// each: task, results, turn, what was offered.
func TestOneScriptForEveryAPI(t *testing.T) {
	for name, d := range dialects {
		for _, stream := range []bool{false, true} {
			t.Run(name+map[bool]string{true: " streamed"}[stream], func(t *testing.T) {
				long := strings.Repeat("größer ", 30)
				srv := start(t, Script{Rules: []Rule{
					{Name: "call", When: When{User: "do it", Model: "^m-1$", System: "be brief", Turn: 1}, Say: Answer{Text: long, Calls: []Call{Shell("false")}, Usage: Usage{Input: 9, Output: 7}}},
					{Name: "end", When: When{Result: `(?s)exit (?P<n>\d+).*patched`, Turn: 2}, Say: Answer{Text: "it was ${n}"}},
				}, Otherwise: &Answer{Fail: &Failure{Status: 500}}})
				url := srv.URL + d.path
				if stream {
					url = srv.URL + d.stream
				}
				send := func(body string) string {
					body = strings.ReplaceAll(body, "STREAM", map[bool]string{true: "true", false: "false"}[stream])
					status, got, err := postTo(t, url, body)
					if err != nil || status != http.StatusOK {
						t.Fatalf("%d %s %v", status, got, err)
					}
					return got
				}
				got := send(d.first)
				if text, calls := read(t, name, stream, got); text != long || len(calls) != 1 ||
					!strings.HasPrefix(calls[0], d.tool+" ") || !strings.Contains(calls[0], `:"false"`) {
					t.Errorf("text %q, calls %q", text, calls)
				}
				if !strings.Contains(got, d.usage) || stream && !strings.Contains(got, d.finish) {
					t.Errorf("no %s or %s: %s", d.usage, d.finish, got)
				}
				if text, calls := read(t, name, stream, send(d.second)); text != "it was 7" || len(calls) > 0 {
					t.Errorf("text %q, calls %q", text, calls)
				}
				q := srv.Requests()[1]
				var roles []string
				for _, m := range q.Messages {
					roles = append(roles, m.Role)
				}
				want := []string{"user", "assistant", "user", "system"}
				if name == "gemini" {
					want = want[:3]
				}
				if d := cmp.Diff(want, roles); d != "" || len(q.ResultBlocks()) != 2 || q.Wire != name || q.Stream != stream {
					t.Errorf("roles %s, results %v, wire %s", d, q.ResultBlocks(), q.Wire)
				}
				if !strings.Contains(q.Text(), "from a hook") || strings.Contains(string(q.Header.Get("X-Goog-Api-Key")), "secret") {
					t.Errorf("text %q, header %v", q.Text(), q.Header)
				}
			})
		}
	}
}

// read takes text and calls ("tool arguments") out of an answer.
func read(t *testing.T, api string, stream bool, body string) (text string, calls []string) {
	t.Helper()
	values := []string{body}
	if stream {
		values = nil
		for line := range strings.Lines(body) {
			if data, ok := strings.CutPrefix(strings.TrimSpace(line), "data: "); ok && data != "[DONE]" {
				values = append(values, data)
			}
		}
	}
	type function struct {
		Name      string
		Arguments string
	}
	type message struct {
		Content   string
		ToolCalls []struct{ Function function } `json:"tool_calls"`
	}
	type item struct {
		Type, Name, Arguments string
		Content               []struct{ Text string }
	}
	for _, v := range values {
		var e struct {
			Type       string
			Delta      any
			Item       item
			Output     []item
			Choices    []struct{ Message, Delta message }
			Candidates []struct {
				Content struct {
					Parts []struct {
						Text         string
						FunctionCall *struct {
							Name string
							Args json.RawMessage
						}
					}
				}
			}
		}
		if err := json.Unmarshal([]byte(v), &e); err != nil {
			t.Fatalf("%s: %v", v, err)
		}
		for _, c := range e.Choices {
			for _, m := range []message{c.Message, c.Delta} {
				text += m.Content
				for _, call := range m.ToolCalls {
					calls = append(calls, call.Function.Name+" "+call.Function.Arguments)
				}
			}
		}
		for _, c := range e.Candidates {
			for _, p := range c.Content.Parts {
				text += p.Text
				if p.FunctionCall != nil {
					calls = append(calls, p.FunctionCall.Name+" "+string(p.FunctionCall.Args))
				}
			}
		}
		if s, ok := e.Delta.(string); ok {
			text += s
		}
		items := e.Output
		if e.Type == "response.output_item.done" {
			items = append(items, e.Item)
		}
		for _, it := range items {
			if it.Type == "function_call" {
				calls = append(calls, it.Name+" "+it.Arguments)
			}
			if it.Type == "message" && !stream {
				text += it.Content[0].Text
			}
		}
	}
	return text, calls
}

func TestEveryAPIFailsInItsOwnWay(t *testing.T) {
	for name, d := range dialects {
		t.Run(name, func(t *testing.T) {
			streamed := strings.ReplaceAll(d.first, "STREAM", "true")
			for _, tc := range []struct {
				what   string
				say    Answer
				status int
				want   string
				broken bool
			}{
				{"429", Answer{Fail: &Failure{Status: 429}}, 429, d.failure429, false},
				{"message of its own", Answer{Fail: &Failure{Status: 500, Message: "no luck"}}, 500, "no luck", false},
				{"midway", Answer{Text: "abc", FailMidway: "overloaded_error"}, 200, d.midway, false},
				{"cut", Answer{Text: strings.Repeat("a", 300), CutAfter: 3}, 200, "", true},
			} {
				srv := start(t, Script{Otherwise: &tc.say})
				status, body, err := postTo(t, srv.URL+d.stream, streamed)
				if status != tc.status || !strings.Contains(body, tc.want) || (err != nil) != tc.broken || strings.Contains(body, d.finish) {
					t.Errorf("%s: %d %s %v", tc.what, status, body, err)
				}
			}
			srv := start(t, Script{})
			for _, body := range []string{`nonsense`, `{}`, `{"messages":3,"input":3,"contents":3}`} {
				if status, got, err := postTo(t, srv.URL+d.path, body); err != nil || status != 400 {
					t.Errorf("%s: %d %s %v", body, status, got, err)
				}
			}
		})
	}
}

// A custom tool takes text and no JSON.
func TestCustomToolsTakeText(t *testing.T) {
	srv := start(t, Script{Otherwise: &Answer{Calls: []Call{{Tool: "apply_patch", Input: map[string]any{"input": "*** Begin Patch"}}}}})
	_, body, err := postTo(t, srv.URL+"/v1/responses", strings.ReplaceAll(dialects["responses"].first, "STREAM", "false"))
	if err != nil || !strings.Contains(body, `"type":"custom_tool_call"`) || !strings.Contains(body, `"input":"*** Begin Patch"`) {
		t.Errorf("%s %v", body, err)
	}
}

func TestCountTokensOfGemini(t *testing.T) {
	srv := start(t, Script{})
	if status, body, err := postTo(t, srv.URL+"/v1beta/models/m:countTokens", `{"contents":[]}`); err != nil || status != 200 || body != `{"totalTokens":4}` {
		t.Errorf("%d %s %v", status, body, err)
	}
}

func TestTrials(t *testing.T) {
	srv, err := Start(Script{}, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	for _, name := range TrialClients() {
		trial, err := srv.Trial(name, "/scratch")
		if err != nil {
			t.Fatal(err)
		}
		argv := trial.Argv("the prompt", "--more")
		if argv[len(argv)-1] != "the prompt" {
			t.Errorf("%s: %q", name, argv)
		}
		if all := strings.Join(append(argv, trial.Env...), " "); !strings.Contains(all, srv.URL) || !strings.Contains(all, "--more") {
			t.Errorf("%s does not use the server: %q", name, all)
		}
		for file := range trial.Files {
			if !strings.HasPrefix(file, "/scratch") {
				t.Errorf("%s: file %s is not in its directory", name, file)
			}
		}
	}
	if _, err := srv.Trial("nobody", "/scratch"); err == nil || !strings.Contains(err.Error(), "known are claude, codex, gemini, copilot") {
		t.Errorf("error %v", err)
	}
}

func FuzzParseAnyAPI(f *testing.F) {
	for _, d := range dialects {
		f.Add([]byte(d.first))
		f.Add([]byte(d.second))
	}
	f.Add([]byte(`{"input":"text","tools":null}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, api := range []wire{messagesAPI{}, responsesAPI{}, chatAPI{}, geminiAPI{}} {
			q := &Request{Body: body}
			if api.parse(q) != nil {
				continue
			}
			_, _, _, _, _ = q.Task(), q.User(), q.Results(), q.Turn(), q.Text()
			if _, err := json.Marshal(api.whole(q, Answer{Text: "t", Calls: []Call{Shell("x")}}.resolve(q))); err != nil {
				t.Fatal(err)
			}
		}
	})
}
