package agent

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"reprise/internal/proc"
)

const lineLimit = 1 << 20

// feed gives a stream what a reader makes of some output.
func feed(t testing.TB, s Stream, r io.Reader, limit int) {
	t.Helper()
	lines := proc.NewLineReader(r, limit)
	for {
		line, cut, _, err := lines.Next()
		if len(line) > 0 || err == nil {
			s.Line(line, cut)
		}
		if err == io.EOF {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func fixture(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name+".jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestClaudeStreamVerdicts(t *testing.T) {
	tests := []struct {
		fixture string
		exit    Exit
		ok      bool
		reason  string // a part of it
		text    string // a part of it
	}{
		{"plain", Exit{}, true, "", "All done."},
		{"plain", Exit{Code: 1}, false, "reported success, but the process ended with exit code 1", "All done."},
		{"plain", Exit{Code: 143, Signal: "SIGTERM"}, false, "signal SIGTERM", "All done."},
		{"plain", Exit{Code: 143, Signal: "SIGTERM", AfterResult: true}, true, "", "All done."},
		{"plain", Exit{Code: 143, TimedOut: true}, false, "time limit", "All done."},
		{"plain", Exit{Code: 143, Cancelled: true}, false, "cancelled", "All done."},
		{"tool-call", Exit{}, true, "", "All done."},
		{"content-string", Exit{}, true, "", "All done."},
		{"subagent", Exit{}, true, "", "Outer words."},
		{"denied", Exit{}, true, "2 tool calls were denied: Bash ×2", "I could not."},
		{"api-error", Exit{Code: 1}, false, "the model's API failed with status 400: API Error: 400 bad request", "400"},
		{"api-error", Exit{}, false, "status 400", "400"},
		{"api-error", Exit{AfterResult: true}, false, "status 400", "400"},
		{"api-status-without-error", Exit{}, false, "status 500", "API Error"},
		{"retries-then-error", Exit{Code: 1}, false, "status 429", "429"},
		{"retries-then-fine", Exit{}, true, "", "All done."},
		{"still-retrying", Exit{Code: 143, Signal: "SIGTERM", TimedOut: true}, false, "attempt 2 of 10, status 529", ""},
		{"still-retrying", Exit{Code: 0}, false, "ended without a result (exit code 0): while waiting", ""},
		{"max-turns", Exit{Code: 1}, false, "Reached maximum number of turns (2)", "Reached maximum"},
		{"budget", Exit{Code: 1}, false, "Reached maximum budget ($1)", "half"},
		{"interrupted", Exit{}, false, "error_during_execution", ""},
		{"blocked-prompt", Exit{}, false, "nothing was sent to the model", ""},
		{"hook-stopped", Exit{}, false, "stopped early: hook_stopped", ""},
		{"empty-answer", Exit{}, false, "without an answer", "Working."},
		{"structured", Exit{}, true, "", `{"name":"ada"}`},
		{"no-result", Exit{}, false, "ended without a result (exit code 0)", "Half way"},
		{"no-result", Exit{Code: 137, Signal: "SIGKILL", Stderr: "killed by me"}, false, "signal SIGKILL): killed by me", "[stderr]\nkilled by me"},
		{"two-results", Exit{}, true, "", "All done."},
		{"no-is-error", Exit{}, false, "does not say whether it is an error", ""},
		{"is-error-string", Exit{}, false, "does not say whether it is an error", ""},
		{"no-turns", Exit{}, false, "nothing was sent", ""},
		{"odd-types", Exit{}, true, "", "All done."},
		{"plain-text-error", Exit{Code: 1}, false, "unknown option '--nope'", "unknown option"},
		{"plain-text-error", Exit{Code: 1, Stderr: "Error: session is in use"}, false, "session is in use", "session is in use"},
		{"noise-between", Exit{}, true, "", "All done."},
		{"partial-json", Exit{Code: 137, Signal: "SIGKILL"}, false, "ended without a result", ""},
	}
	for _, tt := range tests {
		t.Run(fmt.Sprintf("%s/%+v", tt.fixture, tt.exit), func(t *testing.T) {
			s := newClaudeStream()
			feed(t, s, bytes.NewReader(fixture(t, tt.fixture)), lineLimit)
			r := s.Finish(tt.exit)
			if r.OK != tt.ok || !strings.Contains(r.Reason, tt.reason) || tt.reason == "" && r.Reason != "" {
				t.Errorf("ok %v, reason %q; want %v, %q", r.OK, r.Reason, tt.ok, tt.reason)
			}
			if !strings.Contains(r.Text, tt.text) {
				t.Errorf("text %q lacks %q", r.Text, tt.text)
			}
			if strings.ContainsAny(r.Reason, "\n\r") {
				t.Errorf("reason has more than one line: %q", r.Reason)
			}
		})
	}
}

func TestClaudeStreamResult(t *testing.T) {
	s := newClaudeStream()
	feed(t, s, bytes.NewReader(fixture(t, "denied")), lineLimit)
	got := s.Finish(Exit{})
	want := Result{
		OK: true, Reason: "2 tool calls were denied: Bash ×2", Text: "I could not.", SessionID: "0b6c1d1e-4f00-4a10-9a55-2f1f3a7f0001",
		TerminalReason: "completed", Subtype: "success", NumTurns: 3, CostUSD: 0.0125, Usage: Usage{InputTokens: 210, OutputTokens: 42, CacheCreationTokens: 5, CacheReadTokens: 7},
		PermissionDenials: []Denial{
			{Tool: "Bash", UseID: "t1", Input: `{"command":"rm x"}`, Reason: "This command requires approval"},
			{Tool: "Bash", UseID: "t2", Input: `{"command":"rm y"}`},
		},
		Tools: map[string]int{"Bash": 2},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	s = newClaudeStream()
	feed(t, s, bytes.NewReader(fixture(t, "structured")), lineLimit)
	if got := s.Finish(Exit{}); string(got.Structured) != `{"name": "ada"}` && string(got.Structured) != `{"name":"ada"}` {
		t.Errorf("structured answer %s", got.Structured)
	}
}

func TestClaudeStreamProgress(t *testing.T) {
	tests := map[string]Progress{
		"plain":              {Messages: 1, ResultSeen: true, LastText: "All done."},
		"tool-call":          {Messages: 3, ToolCalls: 2, LastTool: "Read", ResultSeen: true, LastText: "All done."},
		"content-string":     {Messages: 1, ResultSeen: true, LastText: "Said as a string."},
		"subagent":           {Messages: 4, ToolCalls: 2, LastTool: "Bash", ResultSeen: true, LastText: "Outer words."},
		"still-retrying":     {Retry: &Retry{Attempt: 2, MaxAttempts: 10, DelayMS: 1200, Status: 529, Error: "rate_limit"}},
		"retries-then-fine":  {Messages: 1, ResultSeen: true, LastText: "All done."},
		"retries-then-error": {Messages: 1, ResultSeen: true, LastText: "API Error: 429"},
		"no-result":          {Messages: 1, LastText: "Half way"},
	}
	for name, want := range tests {
		s := newClaudeStream()
		feed(t, s, bytes.NewReader(fixture(t, name)), lineLimit)
		want.SessionID = "0b6c1d1e-4f00-4a10-9a55-2f1f3a7f0001"
		if d := cmp.Diff(want, s.Progress()); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
	s := newClaudeStream()
	feed(t, s, bytes.NewReader(fixture(t, "retries-then-error")), lineLimit)
	if r := s.Finish(Exit{Code: 1}); r.Retries != 10 || r.APIStatus != 429 {
		t.Errorf("retries %d, status %d", r.Retries, r.APIStatus)
	}
}

// The order of keys and the pieces in which output arrives are chance; what
// is made of it is not.
func TestSameResultForAnyOrderAndPieces(t *testing.T) {
	files, err := filepath.Glob("testdata/*.jsonl")
	if err != nil || len(files) < 20 {
		t.Fatalf("fixtures: %v %v", files, err)
	}
	rnd := rand.New(rand.NewPCG(7, 11))
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for _, exit := range []Exit{{}, {Code: 1, Stderr: "x"}, {Code: 143, Signal: "SIGTERM", TimedOut: true}} {
			run := func(r io.Reader) (Result, Progress) {
				s := newClaudeStream()
				feed(t, s, r, lineLimit)
				return s.Finish(exit), s.Progress()
			}
			want, wantP := run(bytes.NewReader(data))
			for range 3 {
				got, gotP := run(iotest.OneByteReader(bytes.NewReader(shuffle(rnd, data))))
				// The order inside an input that is quoted is the input's own.
				if d := cmp.Diff(want, got, cmp.Comparer(func(a, b json.RawMessage) bool { return sameJSON(string(a), string(b)) }), cmp.Comparer(func(a, b Denial) bool {
					return a.Tool == b.Tool && a.UseID == b.UseID && a.Reason == b.Reason && (a.Input == b.Input || sameJSON(a.Input, b.Input))
				})); d != "" {
					t.Errorf("%s: %s", f, d)
				}
				if d := cmp.Diff(wantP, gotP); d != "" {
					t.Errorf("%s: %s", f, d)
				}
			}
		}
	}
}

func sameJSON(a, b string) bool {
	var x, y any
	return a == b || json.Unmarshal([]byte(a), &x) == nil && json.Unmarshal([]byte(b), &y) == nil && cmp.Equal(x, y)
}

// shuffle reorders the keys of each line that is an object.
func shuffle(rnd *rand.Rand, data []byte) []byte {
	lines := strings.Split(string(data), "\n")
	for i, l := range lines {
		var v map[string]any
		if json.Unmarshal([]byte(l), &v) == nil {
			lines[i] = string(encodeShuffled(rnd, v))
		}
	}
	return []byte(strings.Join(lines, "\n"))
}

func encodeShuffled(rnd *rand.Rand, v any) []byte {
	switch v := v.(type) {
	case map[string]any:
		keys := slices.Sorted(maps.Keys(v))
		rnd.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
		parts := [][]byte{}
		for _, k := range keys {
			name, _ := json.Marshal(k)
			parts = append(parts, append(append(name, ':'), encodeShuffled(rnd, v[k])...))
		}
		return append(append([]byte("{"), bytes.Join(parts, []byte(", "))...), '}')
	case []any:
		parts := [][]byte{}
		for _, x := range v {
			parts = append(parts, encodeShuffled(rnd, x))
		}
		return append(append([]byte("["), bytes.Join(parts, []byte(","))...), ']')
	}
	b, _ := json.Marshal(v)
	return b
}

func TestCutLines(t *testing.T) {
	long := strings.Repeat("long ", 4000)
	tests := []struct {
		name, out string
		ok        bool
		reason    string
		text      string
	}{
		{"long message, then a result", `{"type":"assistant","message":{"content":[{"type":"text","text":"` + long + `"}]}}` + "\n" + `{"type":"result","is_error":false,"num_turns":1,"result":"short"}`, true, "", "short"},
		{"long result, verdict before it", `{"type":"result","is_error":false,"num_turns":1,"terminal_reason":"completed","result":"` + long + `"}`, true, "", "long long"},
		{"long result, verdict behind it", `{"type":"result","result":"` + long + `","is_error":false,"num_turns":1}`, false, "verdict lay behind", "long long"},
		{"an error that calls itself success", `{"type":"result","subtype":"success","is_error":true,"num_turns":1,"result":"it failed"}`, false, "the agent ended with an error: it failed", "it failed"},
		{"long bad result", `{"type":"result","is_error":true,"num_turns":1,"result":"` + long + `"}`, false, "ended with an error", "long long"},
		{"long junk", long, false, "without a result", ""},
		{"escape cut in half", `{"type":"result","is_error":false,"num_turns":1,"result":"` + strings.Repeat(`\ud83d\ude00`, 4000) + `"}`, true, "", "😀"},
	}
	for _, tt := range tests {
		for limit := 1000; limit < 1012; limit++ {
			s := newClaudeStream()
			feed(t, s, strings.NewReader(tt.out), limit)
			r := s.Finish(Exit{})
			if r.OK != tt.ok || !strings.Contains(r.Reason, tt.reason) || !strings.Contains(r.Text, tt.text) || !utf8.ValidString(r.Text) {
				t.Errorf("%s, limit %d: ok %v, reason %q, text %.40q", tt.name, limit, r.OK, r.Reason, r.Text)
			}
			if tt.ok && len(r.Errors) == 0 {
				t.Errorf("%s: nothing says that a line was cut", tt.name)
			}
		}
	}
}

func TestStreamKeepsLittle(t *testing.T) {
	s := newClaudeStream()
	for i := range 600 {
		s.Line(fmt.Appendf(nil, `{"type":"assistant","message":{"id":"m%d","content":[{"type":"tool_use","name":"tool-%d"},{"type":"text","text":%q}]}}`, i, i, strings.Repeat("x", 3000)), false)
		s.Line(fmt.Appendf(nil, `{"type":"system","subtype":"permission_denied","tool_name":"T%d"}`, i), false)
		s.Line([]byte("not json at all"), false)
		s.Line([]byte(`{"type":"assistant"`), true)
	}
	r := s.Finish(Exit{})
	if len(r.Tools) > maxToolNames+1 || len(r.PermissionDenials) > maxListed || len(r.Errors) > maxListed+1 || len(s.stray) > maxStray+1 || len(r.Text) > 100_000 || utf8.RuneCountInString(r.Reason) > maxReason+1 {
		t.Errorf("kept %d tools, %d denials, %d errors, %d stray bytes, %d of text, %d of reason", len(r.Tools), len(r.PermissionDenials), len(r.Errors), len(s.stray), len(r.Text), len(r.Reason))
	}
	if !strings.Contains(r.Reason, "600 tool calls were denied") {
		t.Errorf("reason %q", r.Reason)
	}
	if n := s.Progress().ToolCalls; n != 600 {
		t.Errorf("%d tool calls", n)
	}
}

func TestTextStream(t *testing.T) {
	tests := []struct {
		name, out    string
		exit         Exit
		ok           bool
		reason, text string
	}{
		{"good", "Mock sub-agent received task: hi\nWorking directory: /x\n", Exit{Stderr: "a warning"}, true, "", "Mock sub-agent received task: hi\nWorking directory: /x"},
		{"nothing said", "", Exit{}, true, "", ""},
		{"blank lines stay", "\na\n\nb\n\n", Exit{}, true, "", "\na\n\nb"},
		{"crash", "half\n", Exit{Code: 1, Stderr: "boom\nat line 7\n"}, false, "ended with exit code 1: boom at line 7", "half\n\n[stderr]\nboom\nat line 7"},
		{"crash without a word", "", Exit{Code: 3}, false, "ended with exit code 3", ""},
		{"signal", "x", Exit{Code: 137, Signal: "SIGKILL"}, false, "signal SIGKILL", "x"},
		{"timeout", "x", Exit{Code: 143, TimedOut: true}, false, "time limit", "x"},
		{"cancelled", "x", Exit{Code: 143, Cancelled: true}, false, "cancelled", "x"},
		{"looks like json", `{"type":"result","is_error":true}`, Exit{}, true, "", `{"type":"result","is_error":true}`},
		{"not UTF-8", "a\xff\xfeb\n", Exit{}, true, "", "a\uFFFDb"},
		{"no line end", "a", Exit{}, true, "", "a"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := generic{}.NewStream()
			feed(t, s, strings.NewReader(tt.out), lineLimit)
			r := s.Finish(tt.exit)
			if r.OK != tt.ok || !strings.Contains(r.Reason, tt.reason) || r.Text != tt.text {
				t.Errorf("ok %v, reason %q, text %q", r.OK, r.Reason, r.Text)
			}
		})
	}
	s := generic{}.NewStream()
	for range 3 {
		s.Line(bytes.Repeat([]byte("ä"), MaxText/4), true)
	}
	if r := s.Finish(Exit{}); len(r.Text) > MaxText || !utf8.ValidString(r.Text) || len(r.Errors) != 2 {
		t.Errorf("flood: %d bytes, %q", len(r.Text), r.Errors)
	}
}

func FuzzClaudeLine(f *testing.F) {
	files, err := filepath.Glob("testdata/*.jsonl")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data, false)
		f.Add(data[:len(data)*2/3], true)
	}
	f.Fuzz(func(t *testing.T, data []byte, cut bool) {
		s := newClaudeStream()
		said := false // that all is well, in so many words
		for line := range bytes.SplitSeq(data, []byte("\n")) {
			s.Line(line, cut)
			var o map[string]any
			if json.Unmarshal(line, &o) == nil {
				turns, _ := o["num_turns"].(float64)
				said = said || o["type"] == "result" && o["is_error"] == false && turns >= 1
			}
		}
		r := s.Finish(Exit{})
		if r.OK && !said && !cut {
			t.Errorf("OK without a good result line: %q", data)
		}
		if !r.OK && r.Reason == "" {
			t.Errorf("not OK, and no reason: %q", data)
		}
		if !utf8.ValidString(r.Text) || !utf8.ValidString(r.Reason) {
			t.Errorf("not UTF-8: %q", r.Text)
		}
		for _, bad := range []Exit{{Code: 1}, {Signal: "SIGKILL"}, {TimedOut: true}, {Cancelled: true}} {
			if s.Finish(bad).OK {
				t.Errorf("OK after %+v", bad)
			}
		}
	})
}

func FuzzTextLine(f *testing.F) {
	f.Add([]byte("a\n\xff\nb"), true)
	f.Fuzz(func(t *testing.T, data []byte, cut bool) {
		s := generic{}.NewStream()
		for line := range bytes.SplitSeq(data, []byte("\n")) {
			s.Line(line, cut)
		}
		if r := s.Finish(Exit{}); !r.OK || !utf8.ValidString(r.Text) {
			t.Errorf("%+v", r)
		}
	})
}

// TestClaudeStreamTokens: each line of a message has the usage of the whole message as
// it is by then, so that it is not to be counted line by line.
func TestClaudeStreamTokens(t *testing.T) {
	s := newClaudeStream()
	for _, line := range []string{
		`{"type":"assistant","message":{"id":"m1","stop_reason":null,"usage":{"input_tokens":100,"output_tokens":1,"cache_read_input_tokens":10},"content":[{"type":"text","text":"a"}]}}`,
		`{"type":"assistant","message":{"id":"m1","usage":{"input_tokens":100,"output_tokens":21,"cache_read_input_tokens":10},"content":[{"type":"tool_use","name":"Edit"}]}}`,
		`{"type":"assistant","message":{"id":"m2","stop_reason":"refusal","usage":{"input_tokens":7,"output_tokens":3},"content":[]}}`,
	} {
		s.Line([]byte(line), false)
	}
	if p := s.Progress(); p.Tokens != 131+10 || p.LastTool != "Edit" {
		t.Errorf("%+v", p)
	}
	if r := s.Finish(Exit{}); r.StopReason != "refusal" {
		t.Errorf("%+v", r)
	}
}

// TestClaudeWork: the loop's run is the client as it is, with nobody's settings.
func TestClaudeWork(t *testing.T) {
	dir := t.TempDir()
	task := Task{
		RunID: "run-aaaaaaaaaa", SessionID: "0b6c1d1e-4f00-4a10-9a55-2f1f3a7f0001", RunDir: dir, Prompt: "begin", SystemPrompt: "bootstrap",
		WorkDir: dir, Program: filepath.Join(dir, "claude"), Self: filepath.Join(dir, "reprise"), GuardHook: "guard", Env: []string{"PATH=/bin"},
		Work: &Work{
			AllowedTools: []string{"Bash", "Read"}, Hooks: map[string]string{"PreToolUse": "guard", "Stop": "record"},
			Settings: map[string]json.RawMessage{"apiKeyHelper": json.RawMessage(`"key"`), "hooks": json.RawMessage(`{}`), "env": json.RawMessage(`{"CLAUDE_CODE_SIMPLE":"1","REGION":"x"}`)}, Vars: []string{"ITERATION=3"},
		},
	}
	c, err := claude{}.Command(task)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"--session-id=" + task.SessionID, "--append-system-prompt-file=" + filepath.Join(dir, "system.md"), "--setting-sources=", "--strict-mcp-config", "--allowedTools=Bash,Read"} {
		if !slices.Contains(c.Args, want) {
			t.Errorf("%q lacks %s", c.Args, want)
		}
	}
	if !slices.Contains(c.Env, "ITERATION=3") {
		t.Errorf("environment %q", c.Env)
	}
	var s struct {
		Helper string                     `json:"apiKeyHelper"`
		Hooks  map[string][]claudeMatcher `json:"hooks"`
		Off    *bool                      `json:"disableAllHooks"`
		Env    map[string]string          `json:"env"`
	}
	if err := json.Unmarshal(c.Files["settings.json"], &s); err != nil {
		t.Fatal(err)
	}
	if s.Env["CLAUDE_CODE_SIMPLE"] != "0" || s.Env["REGION"] != "x" { // with the first no hook would run
		t.Errorf("environment of the settings %v", s.Env)
	}
	if s.Helper != "key" || s.Off == nil || *s.Off || len(s.Hooks["Stop"]) != 1 || len(s.Hooks["PreToolUse"]) != 1 || len(s.Hooks["PreToolUse"][0].Hooks) != 2 {
		t.Errorf("settings %s", c.Files["settings.json"])
	}
	task.Work.Resume = "0b6c1d1e-4f00-4a10-9a55-2f1f3a7f0002"
	if c, err = (claude{}).Command(task); err != nil || !slices.Contains(c.Args, "--resume="+task.Work.Resume) || slices.Contains(c.Args, "--session-id="+task.SessionID) {
		t.Errorf("%q %v", c.Args, err)
	}
}
