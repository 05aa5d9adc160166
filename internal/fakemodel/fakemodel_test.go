package fakemodel

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func start(t *testing.T, s Script) *Server {
	t.Helper()
	srv, err := Start(s, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := srv.Close(); err != nil {
			t.Error(err)
		}
	})
	return srv
}

// post sends a body to /v1/messages and returns status and answer; a broken
// answer gives what came and the error.
func post(t *testing.T, srv *Server, body string) (int, string, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), "POST", srv.URL+"/v1/messages?beta=true", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Api-Key", "secret")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(data), err
}

func ask(user string, stream bool) string {
	data, _ := json.Marshal(map[string]any{
		"model": "m-1", "stream": stream, "messages": []any{map[string]any{"role": "user", "content": user}},
		"tools": []any{map[string]any{"name": "Bash"}},
	})
	return string(data)
}

func TestParseRefuses(t *testing.T) {
	for name, tc := range map[string]struct{ in, want string }{
		"unknown key on top":   {`{"rulez":[]}`, `unknown field "rulez"`},
		"unknown key in when":  {`{"rules":[{"when":{"usr":"x"},"say":{}}]}`, `unknown field "usr"`},
		"unknown key in say":   {`{"rules":[{"say":{"txt":"x"}}]}`, `unknown field "txt"`},
		"unknown key in call":  {`{"rules":[{"say":{"calls":[{"name":"Bash"}]}}]}`, `unknown field "name"`},
		"unknown key in fail":  {`{"otherwise":{"fail":{"code":500}}}`, `unknown field "code"`},
		"function from data":   {`{"rules":[{"Reply":null,"say":{}}]}`, `unknown field "Reply"`},
		"two values":           {`{} {}`, "more than one JSON value"},
		"bad pattern":          {`{"rules":[{"when":{"user":"("},"say":{}}]}`, "rule 1: when.user"},
		"status is no error":   {`{"otherwise":{"fail":{"status":200}}}`, "200 is no HTTP error"},
		"negative delay":       {`{"otherwise":{"delay_ms":-1}}`, "may not be negative"},
		"call without a tool":  {`{"rules":[{"name":"r","say":{"calls":[{}]}}]}`, "model script, r: say.calls"},
		"wrong type":           {`{"rules":{}}`, "cannot unmarshal"},
		"not JSON":             {`rules: []`, "invalid character"},
		"nothing":              {``, "EOF"},
		"uses is not a number": {`{"rules":[{"uses":"many","say":{}}]}`, "cannot unmarshal"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse([]byte(tc.in))
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want an error with %q", err, tc.want)
			}
		})
	}
	if _, err := Parse([]byte(`{"rules":[{"name":"a","when":{"task":"x","side":true,"offers":["Bash"],"turn":2},"uses":-1,"say":{"text":"t"}}],"otherwise":{"hang":true}}`)); err != nil {
		t.Errorf("a script with many keys: %v", err)
	}
}

func TestRulesAreChosenInOrderAndUsedUp(t *testing.T) {
	srv := start(t, Script{
		Rules: []Rule{
			{Name: "once", When: When{User: "hello"}, Say: Answer{Text: "first"}},
			{Name: "twice", When: When{User: "hello"}, Uses: 2, Say: Answer{Text: "second"}},
			{Name: "ever", When: When{Body: `"model":"m-1"`, Model: "^m-1$", User: "bye"}, Uses: -1, Say: Answer{Text: "farewell"}},
			{Name: "never", When: When{Offers: []string{"Write"}}, Say: Answer{Text: "not offered"}},
		},
		Otherwise: &Answer{Text: "otherwise"},
	})
	var got []string
	for _, user := range []string{"hello", "hello", "bye", "hello", "hello", "bye"} {
		_, body, err := post(t, srv, ask(user, false))
		if err != nil {
			t.Fatal(err)
		}
		var m struct {
			Content []struct{ Text string }
		}
		if err := json.Unmarshal([]byte(body), &m); err != nil {
			t.Fatal(err)
		}
		got = append(got, m.Content[0].Text)
	}
	if d := cmp.Diff([]string{"first", "second", "farewell", "second", "otherwise", "farewell"}, got); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"never"}, srv.Unused()); d != "" {
		t.Errorf("unused rules: %s", d)
	}
	q := srv.Requests()[0]
	if q.Rule != "once" || q.N != 1 || q.Header.Get("X-Api-Key") != "(hidden)" || strings.Contains(string(q.Body), "secret") {
		t.Errorf("log entry: %+v", q)
	}
}

func TestGroupsReachTextAndInputs(t *testing.T) {
	srv := start(t, Script{Rules: []Rule{{
		When: When{Result: `job_id[^a-z]+(?P<id>run-[a-z0-9]+)`, Task: `for (?P<who>\w+)`},
		Say: Answer{Text: "checking ${id} for ${who}", Calls: []Call{{Tool: "check", Input: map[string]any{
			"job_id": "${id}", "list": []any{"a ${who}", 1}, "deep": map[string]any{"x": "${id}${id}"}, "other": "${unknown}",
		}}}},
	}}})
	_, body, err := post(t, srv, `{"model":"m","tools":[{"name":"check"}],"messages":[
		{"role":"user","content":"work for ann"},
		{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"spawn","input":{}}]},
		{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":[{"type":"text","text":"{\"job_id\":\"run-abc\"}"}]}]},
		{"role":"system","content":"a note of the client"}]}`)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`checking run-abc for ann`, `"job_id":"run-abc"`, `["a ann",1]`, `"x":"run-abcrun-abc"`, `${unknown}`, `"stop_reason":"tool_use"`} {
		if !strings.Contains(body, want) {
			t.Errorf("answer lacks %s: %s", want, body)
		}
	}
	if q := srv.Requests()[0]; q.Turn() != 2 || !strings.Contains(q.SystemText(), "a note of the client") || len(q.ResultBlocks()) != 1 {
		t.Errorf("turn %d, system %q, results %v", q.Turn(), q.SystemText(), q.ResultBlocks())
	}
}

func TestSideRequestsAreToldApart(t *testing.T) {
	srv := start(t, Script{
		Rules: []Rule{
			{Name: "main", Say: Answer{Text: "main"}},
			{Name: "title", When: When{Side: true, System: "title"}, Say: Answer{Text: "a title"}},
		},
		Otherwise: &Answer{Fail: &Failure{Status: 500}},
	})
	side := `{"model":"m","system":"write a title","messages":[{"role":"user","content":"x"}]}`
	for i, want := range []string{"a title", `"ok"`} {
		if status, body, err := post(t, srv, side); err != nil || status != 200 || !strings.Contains(body, want) {
			t.Errorf("side request %d: %d %s %v, want %s", i, status, body, err, want)
		}
	}
	if _, body, _ := post(t, srv, ask("x", false)); !strings.Contains(body, "main") {
		t.Errorf("the main rule was used up by side requests: %s", body)
	}
}

func TestStreamHasTheEventsOfTheAPI(t *testing.T) {
	long := strings.Repeat("größer ", 30)
	srv := start(t, Script{Rules: []Rule{{Say: Answer{
		Thinking: "hm", Text: long, Calls: []Call{{Tool: "Bash", Input: map[string]any{"command": "true"}}},
		Usage: Usage{Input: 7, Output: 9, CacheRead: 3},
	}}}})
	_, body, err := post(t, srv, ask("x", true))
	if err != nil {
		t.Fatal(err)
	}
	var kinds []string
	var text, input string
	lines := bufio.NewScanner(strings.NewReader(body))
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		var e struct {
			Type  string
			Delta struct {
				Text        string
				PartialJSON string `json:"partial_json"`
				StopReason  string `json:"stop_reason"`
			}
			Usage map[string]int
		}
		if err := json.Unmarshal([]byte(data), &e); err != nil {
			t.Fatal(err)
		}
		if len(kinds) == 0 || kinds[len(kinds)-1] != e.Type {
			kinds = append(kinds, e.Type)
		}
		text, input = text+e.Delta.Text, input+e.Delta.PartialJSON
		if e.Type == "message_delta" && (e.Delta.StopReason != "tool_use" || e.Usage["output_tokens"] != 9 || e.Usage["cache_read_input_tokens"] != 3) {
			t.Errorf("message_delta: %s", data)
		}
	}
	block := []string{"content_block_start", "content_block_delta", "content_block_stop"}
	want := append([]string{"message_start"}, append(append(append([]string{}, block...), block...), block...)...)
	want = append(want, "message_delta", "message_stop")
	if d := cmp.Diff(want, kinds); d != "" {
		t.Error(d)
	}
	if text != long || input != `{"command":"true"}` {
		t.Errorf("text %q, input %q", text, input)
	}
}

func TestFailures(t *testing.T) {
	for status, kind := range map[int]string{
		400: "invalid_request_error", 401: "authentication_error", 429: "rate_limit_error", 500: "api_error", 529: "overloaded_error",
	} {
		srv := start(t, Script{Otherwise: &Answer{Fail: &Failure{Status: status, RetryAfter: 3}}})
		got, body, err := post(t, srv, ask("x", true))
		if err != nil || got != status || !strings.Contains(body, `"`+kind+`"`) {
			t.Errorf("%d: got %d %s %v", status, got, body, err)
		}
	}
	t.Run("cut stream", func(t *testing.T) {
		srv := start(t, Script{Otherwise: &Answer{Text: "abc", CutAfter: 2}})
		_, body, err := post(t, srv, ask("x", true))
		if err == nil || strings.Contains(body, "message_stop") || !strings.Contains(body, "content_block_start") {
			t.Errorf("got %q, %v: want a start and a broken connection", body, err)
		}
	})
	t.Run("error midway", func(t *testing.T) {
		srv := start(t, Script{Otherwise: &Answer{Text: "abc", FailMidway: "overloaded_error"}})
		_, body, err := post(t, srv, ask("x", true))
		if err != nil || !strings.Contains(body, "event: error") || strings.Contains(body, "message_stop") {
			t.Errorf("got %q, %v", body, err)
		}
	})
	t.Run("hang ends with the server", func(t *testing.T) {
		srv, err := Start(Script{Otherwise: &Answer{Hang: true}}, time.Now)
		if err != nil {
			t.Fatal(err)
		}
		got := make(chan error, 1)
		go func() { _, _, err := post(t, srv, ask("x", true)); got <- err }()
		if _, err := srv.Await(t.Context(), func(*Request) bool { return true }); err != nil {
			t.Fatal(err)
		}
		if err := srv.Close(); err != nil {
			t.Error(err)
		}
		if err := <-got; err == nil {
			t.Error("a hanging request was answered")
		}
	})
}

func TestBadRequestsAreRefusedAndLogged(t *testing.T) {
	srv := start(t, Script{})
	for _, body := range []string{`nonsense`, `{"messages":"x"}`, `{"messages":[]}`, `{"messages":[{"role":"user","content":7}]}`} {
		if status, answer, err := post(t, srv, body); err != nil || status != 400 || !strings.Contains(answer, "invalid_request_error") {
			t.Errorf("%s: %d %s %v", body, status, answer, err)
		}
	}
	if n := len(srv.Requests()); n != 4 {
		t.Errorf("%d requests in the log, want 4", n)
	}
}

func TestOtherEndpoints(t *testing.T) {
	m, err := New(Script{}, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		method, path string
		status       int
		want         string
	}{
		{"POST", "/v1/messages/count_tokens", 200, `{"input_tokens":3}`},
		{"GET", "/v1/models", 200, `"data":[]`},
		{"HEAD", "/", 200, ""},
		{"GET", "/v1/files", 404, "not_found_error"},
	} {
		w := httptest.NewRecorder()
		m.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), tc.method, tc.path, strings.NewReader("12345678")))
		if w.Code != tc.status || !strings.Contains(w.Body.String(), tc.want) {
			t.Errorf("%s %s: %d %s", tc.method, tc.path, w.Code, w.Body)
		}
	}
}

func TestAwaitEndsWithItsContext(t *testing.T) {
	srv := start(t, Script{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := srv.Await(ctx, func(*Request) bool { return false }); err == nil {
		t.Error("want the context's error")
	}
}

func FuzzParseRequest(f *testing.F) {
	f.Add([]byte(ask("x", true)))
	f.Add([]byte(`{"system":[{"type":"text","text":"a"}],"messages":[{"role":"user","content":[{"type":"tool_result","content":"t"}]}]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		q := &Request{Body: body}
		if (messagesAPI{}).parse(q) != nil {
			return
		}
		_, _, _, _, _ = q.Task(), q.User(), q.Results(), q.Turn(), q.SystemText()
	})
}
