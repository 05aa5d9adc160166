package loop

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protojson"

	"reprise/internal/agent"
	"reprise/internal/loop/core"
	"reprise/internal/loop/said"
	"reprise/internal/loop/tell"
	"reprise/internal/queue"
	"reprise/internal/run"
)

// traced is an iteration as it is recorded, with the output of its run.
func traced(t *testing.T) (Iteration, queue.Item, run.Record, *said.Stream) {
	t.Helper()
	at := func(s int) time.Time { return ten.Add(time.Duration(s) * time.Second) }
	ended := at(60)
	it := Iteration{
		V: 1, Loop: "loop-a", N: 3, Worker: 2, Item: "fix", Title: "SECRET title", Fence: 7, Run: "run-aaaaaaaaaa", Session: "s-1", Started: at(5), Ended: at(70),
		Fate: core.Done, Completed: true, Succeeded: true, Verified: core.GatePassed, Turns: 4, ToolCalls: 2, CostUSD: 0.25, Tokens: 130, Branch: "loop-fix", Summary: "SECRET summary",
	}
	item := queue.Item{ID: "fix", Title: "SECRET title", Body: "SECRET body", Attempts: 1, History: []queue.Entry{
		{At: at(-100), Op: queue.OpClaim, Fence: 6}, {At: at(-50), Op: queue.OpFail, Fence: 6}, {At: at(1), Op: queue.OpClaim, Fence: 7}, {At: at(66), Op: queue.OpDone, Fence: 7, Note: "SECRET"},
	}}
	r := run.Record{
		ID: "run-aaaaaaaaaa", Client: "claude", Model: "opus", Status: run.Completed, StartedAt: at(5), EndedAt: &ended, SessionID: "s-1",
		Result: &agent.Result{OK: true, Text: "SECRET", NumTurns: 4, Usage: agent.Usage{InputTokens: 10, OutputTokens: 20, CacheReadTokens: 60, CacheCreationTokens: 40}},
	}
	path := filepath.Join(t.TempDir(), "stdout.jsonl")
	lines := `{"type":"assistant","timestamp":"2026-01-28T22:00:10Z","message":{"content":[{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"SECRET"}}]}}
{"type":"user","timestamp":"2026-01-28T22:00:14Z","message":{"content":[{"type":"tool_result","tool_use_id":"t1","content":"SECRET"}]}}
{"type":"assistant","timestamp":"2026-01-28T22:00:20Z","message":{"content":[{"type":"tool_use","id":"t2","name":"mcp__web__get","input":{}}]}}
{"type":"user","timestamp":"2026-01-28T22:00:21Z","message":{"content":[{"type":"tool_result","tool_use_id":"t2","is_error":true,"content":"SECRET"}]}}
{"type":"assistant","message":{"content":[{"type":"tool_use","id":"t3","name":"Read","input":{}}]}}
`
	if err := os.WriteFile(path, []byte(lines), 0o600); err != nil {
		t.Fatal(err)
	}
	return it, item, r, said.Read("claude", path)
}

// TestSpans: an iteration is told as OpenTelemetry's conventions want it, the same again by
// a loop that took over, and without a word of what people, models and tools said. What
// goes out is read by OpenTelemetry's own types.
func TestSpans(t *testing.T) {
	it, item, r, said := traced(t)
	spans := spansOf("shop", it, item, &r, said)
	body, err := tell.EncodeOTLP(map[string]string{"service.name": "reprise"}, spans)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(body, []byte("SECRET")) {
		t.Errorf("it tells what was said: %s", body)
	}
	again, _ := tell.EncodeOTLP(map[string]string{"service.name": "reprise"}, spansOf("shop", it, item, &r, said))
	if !bytes.Equal(body, again) {
		t.Error("told again it is another trace")
	}
	got := decode(t, body)
	var tree []string
	names := map[string]string{}
	for _, s := range got {
		names[hex.EncodeToString(s.SpanId)] = s.Name
		if len(s.TraceId) != 16 || len(s.SpanId) != 8 || !bytes.Equal(s.TraceId, got[0].TraceId) {
			t.Errorf("%s: trace %x, span %x", s.Name, s.TraceId, s.SpanId)
		}
		tree = append(tree, fmt.Sprintf("%s < %s %d-%d %s", s.Name, names[hex.EncodeToString(s.ParentSpanId)], secs(s.StartTimeUnixNano), secs(s.EndTimeUnixNano), s.Status.GetMessage()))
	}
	want := []string{
		"iteration fix <  1-70 ", "prepare < iteration fix 1-5 ", "invoke_agent claude < iteration fix 5-60 ", "execute_tool Bash < invoke_agent claude 10-14 ",
		"execute_tool mcp__web__get < invoke_agent claude 20-21 tool_error", "verify < iteration fix 60-66 ", "archive < iteration fix 66-70 ",
	}
	if !slices.Equal(tree, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(tree, "\n"), strings.Join(want, "\n"))
	}
	for name, want := range map[string]map[string]string{
		"iteration fix": {"reprise.item.id": "fix", "reprise.fate": "done", "reprise.item.fence": "7", "reprise.succeeded": "true"},
		"invoke_agent claude": {
			"gen_ai.operation.name": "invoke_agent", "gen_ai.provider.name": "anthropic", "gen_ai.agent.name": "claude", "gen_ai.request.model": "opus", "gen_ai.conversation.id": "s-1",
			"gen_ai.usage.input_tokens": "110", "gen_ai.usage.output_tokens": "20", "gen_ai.usage.cache_read.input_tokens": "60", "reprise.cost_usd": "0.25",
		},
		"execute_tool Bash":          {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "Bash", "gen_ai.tool.call.id": "t1", "gen_ai.tool.type": "function"},
		"execute_tool mcp__web__get": {"gen_ai.tool.type": "extension", "error.type": "tool_error"},
	} {
		for key, value := range want {
			if a := attribute(got, name, key); a != value {
				t.Errorf("%s has %s %q, want %q", name, key, a, value)
			}
		}
	}
	it.Fate, it.Completed, it.Class, it.Verified, it.Run = core.Retry, false, string(core.Crashed), core.NotLooked, ""
	failed := decode(t, must(tell.EncodeOTLP(nil, spansOf("shop", it, item, &r, nil))))
	if a := attribute(failed, "invoke_agent claude", "error.type"); a != "crash" || failed[0].Status.Code != tracepb.Status_STATUS_CODE_ERROR {
		t.Errorf("a crash is told as %q, %v", a, failed[0].Status)
	}
	if alone := spansOf("shop", it, queue.Item{}, nil, nil); len(alone) != 1 || alone[0].End.Before(alone[0].Start) {
		t.Errorf("without a run: %+v", alone)
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func secs(ns uint64) int { return int(time.Unix(0, int64(ns)).Sub(ten) / time.Second) }

// decode reads a request as a collector does: strictly.
func decode(t *testing.T, body []byte) []*tracepb.Span {
	t.Helper()
	// The request has the one field of this message.
	var data tracepb.TracesData
	// protojson wants ids in base64, where OTLP has them in hex: all else is as it is.
	fixed := hexIDs.ReplaceAllFunc(body, hexToBase64)
	if err := protojson.Unmarshal(fixed, &data); err != nil {
		t.Fatalf("%v\n%s", err, body)
	}
	if len(data.ResourceSpans) != 1 || len(data.ResourceSpans[0].ScopeSpans) != 1 {
		t.Fatalf("%s", body)
	}
	return data.ResourceSpans[0].ScopeSpans[0].Spans
}

var hexIDs = regexp.MustCompile(`"(traceId|spanId|parentSpanId)":"([0-9a-f]+)"`)

func hexToBase64(field []byte) []byte {
	m := hexIDs.FindSubmatch(field)
	id, err := hex.DecodeString(string(m[2]))
	if err != nil {
		panic(err)
	}
	return fmt.Appendf(nil, "%q:%q", m[1], base64.StdEncoding.EncodeToString(id))
}

func attribute(spans []*tracepb.Span, name, key string) string {
	for _, s := range spans {
		if s.Name != name {
			continue
		}
		for _, a := range s.Attributes {
			if a.Key == key {
				switch v := a.Value; {
				case v.GetStringValue() != "":
					return v.GetStringValue()
				case v.GetIntValue() != 0:
					return fmt.Sprint(v.GetIntValue())
				case v.GetDoubleValue() != 0:
					return fmt.Sprint(v.GetDoubleValue())
				}
				return fmt.Sprint(a.Value.GetBoolValue())
			}
		}
	}
	return ""
}

// TestOTLP: what a collector does not take at once is sent again, what it refuses is not.
func TestOTLP(t *testing.T) {
	it, item, r, said := traced(t)
	var mu sync.Mutex
	answers := []int{http.StatusServiceUnavailable, http.StatusOK, http.StatusBadRequest, http.StatusOK}
	var got [][]byte
	var headers []http.Header
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, _ := io.ReadAll(req.Body)
		mu.Lock()
		defer mu.Unlock()
		if req.URL.Path != "/v1/traces" {
			t.Errorf("asked for %s", req.URL.Path)
		}
		headers = append(headers, req.Header)
		code := answers[min(len(headers)-1, len(answers)-1)]
		if code == http.StatusOK {
			got = append(got, body)
		}
		w.WriteHeader(code)
	}))
	defer server.Close()
	env := map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": server.URL, "OTEL_EXPORTER_OTLP_HEADERS": "authorization=Bearer%20x, a=b", "OTEL_RESOURCE_ATTRIBUTES": "team=night"}
	o, err := tell.OTLPFromEnv(func(n string) string { return env[n] }, "shop")
	if err != nil {
		t.Fatal(err)
	}
	var warned []error
	o.Post, o.Warn = postForTest, func(err error) { warned = append(warned, err) }
	o.Start()
	send := func(wants int) {
		t.Helper()
		if err := o.Send(t.Context(), spansOf("shop", it, item, &r, said)); err != nil {
			t.Fatal(err)
		}
		for deadline := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
			mu.Lock()
			n := len(headers)
			mu.Unlock()
			if n >= wants {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("%d requests, want %d", n, wants)
			}
		}
	}
	send(2) // put off, then taken
	send(3) // refused: not again
	if err := o.Send(t.Context(), spansOf("shop", it, item, &r, said)); err != nil {
		t.Fatal(err)
	}
	o.Close() // sends what waits
	if len(headers) != 4 || len(got) != 2 || len(warned) != 1 {
		t.Fatalf("%d requests, %d taken, warned of %v", len(headers), len(got), warned)
	}
	if len(decode(t, got[0])) != 7 || !bytes.Contains(got[0], []byte(`"night"`)) || headers[0].Get("Authorization") != "Bearer x" || headers[0].Get("Content-Type") != "application/json" {
		t.Errorf("%s\n%v", got[0], headers[0])
	}
}

func postForTest(ctx context.Context, url string, header map[string]string, body []byte) (bool, time.Duration, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return false, 0, err
	}
	for k, v := range header {
		req.Header.Set(k, v)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return true, 0, err
	}
	res.Body.Close()
	if res.StatusCode == http.StatusOK {
		return false, 0, nil
	}
	return res.StatusCode == http.StatusServiceUnavailable, 0, errors.New(res.Status)
}

func TestOTLPFromEnv(t *testing.T) {
	for _, tt := range []struct {
		env  string
		url  string
		fail string
	}{
		{"", "", ""},
		{"OTEL_EXPORTER_OTLP_ENDPOINT=http://c:4318", "http://c:4318/v1/traces", ""},
		{"OTEL_EXPORTER_OTLP_ENDPOINT=http://c:4318/otel/", "http://c:4318/otel/v1/traces", ""},
		{"OTEL_EXPORTER_OTLP_ENDPOINT=http://c OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=https://t/x", "https://t/x", ""},
		{"OTEL_EXPORTER_OTLP_ENDPOINT=http://c OTEL_SDK_DISABLED=TRUE", "", ""},
		{"OTEL_EXPORTER_OTLP_ENDPOINT=http://c OTEL_TRACES_EXPORTER=none", "", ""},
		{"OTEL_EXPORTER_OTLP_ENDPOINT=http://c OTEL_TRACES_EXPORTER=otlp,console", "http://c/v1/traces", ""},
		{"OTEL_EXPORTER_OTLP_ENDPOINT=http://c OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf", "http://c/v1/traces", ""},
		{"OTEL_EXPORTER_OTLP_ENDPOINT=http://c OTEL_EXPORTER_OTLP_PROTOCOL=grpc", "", "4318"},
		{"OTEL_EXPORTER_OTLP_ENDPOINT=c:4317", "", "no http or https address"},
		{"OTEL_EXPORTER_OTLP_ENDPOINT=http://c OTEL_EXPORTER_OTLP_HEADERS=x", "", "OTEL_EXPORTER_OTLP_HEADERS: "},
		{"OTEL_EXPORTER_OTLP_ENDPOINT=http://c OTEL_EXPORTER_OTLP_TIMEOUT=5s", "", "milliseconds"},
	} {
		env := map[string]string{}
		for _, v := range strings.Fields(tt.env) {
			k, v, _ := strings.Cut(v, "=")
			env[k] = v
		}
		o, err := tell.OTLPFromEnv(func(n string) string { return env[n] }, "shop")
		switch {
		case tt.fail != "":
			if err == nil || !strings.Contains(err.Error(), tt.fail) {
				t.Errorf("%s: %v, want %q", tt.env, err, tt.fail)
			}
		case err != nil:
			t.Errorf("%s: %v", tt.env, err)
		case tt.url == "" && o != nil, tt.url != "" && (o == nil || o.URL != tt.url):
			t.Errorf("%s: %+v, want %q", tt.env, o, tt.url)
		}
	}
}

// TestPrometheus: what is printed for Prometheus is read by its own parser, and says what
// the state says, whatever the project is called.
func TestPrometheus(t *testing.T) {
	s := core.New("loop-a", core.DefaultLimits(), core.Time{Wall: ten})
	s.Tally.Done, s.Tally.Lost, s.CostUSD, s.Tokens, s.Worked, s.Phase = 3, 1, 0.125, 1<<40, 90*time.Second, core.Waiting
	for _, project := range []string{"shop", "a \"b\" \\c\nd é"} {
		var b bytes.Buffer
		if err := MetricsOf(s).Prometheus(&b, project); err != nil {
			t.Fatal(err)
		}
		parser := expfmt.NewTextParser(model.UTF8Validation)
		families, err := parser.TextToMetricFamilies(&b)
		if err != nil {
			t.Fatal(err)
		}
		value := func(name, label, want string) float64 {
			t.Helper()
			for _, m := range families["reprise_loop_"+name].GetMetric() {
				labels := map[string]string{}
				for _, l := range m.GetLabel() {
					labels[l.GetName()] = l.GetValue()
				}
				if labels["project"] != project {
					t.Errorf("%s is of project %q, want %q", name, labels["project"], project)
				}
				if label == "" || labels[label] == want {
					return m.GetCounter().GetValue() + m.GetGauge().GetValue()
				}
			}
			t.Errorf("there is no %s with %s %q", name, label, want)
			return -1
		}
		for _, c := range []struct {
			name, label, value string
			want               float64
		}{
			{"items_total", "fate", "done", 3}, {"items_total", "fate", "lost", 1}, {"items_total", "fate", "parked", 0}, {"cost_usd_total", "", "", 0.125},
			{"tokens_total", "", "", 1 << 40}, {"worked_seconds_total", "", "", 90}, {"phase", "phase", "waiting", 1}, {"phase", "phase", "working", 0}, {"workers", "", "", 1},
		} {
			if got := value(c.name, c.label, c.value); got != c.want {
				t.Errorf("%s{%s=%q} is %g, want %g", c.name, c.label, c.value, got, c.want)
			}
		}
	}
}
