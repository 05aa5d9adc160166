package dialect_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"reprise/internal/agent/dialect"
	"reprise/internal/agent/dialect/fixture"
	"reprise/internal/event"
	"reprise/internal/event/quick"
)

func cases(t testing.TB) []fixture.Case {
	t.Helper()
	all, err := fixture.Load(fixture.Builtin())
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 150 {
		t.Fatalf("%d cases: some are missing", len(all))
	}
	return all
}

// answers are replies to everything that could be said.
func answers(e dialect.Event) []dialect.Reply {
	var out []dialect.Reply
	for _, n := range fixture.Decisions() {
		out = append(out, dialect.Encode(e, n.Decision))
	}
	return out
}

// checkReply is what holds of every reply, in every client.
func checkReply(t testing.TB, e dialect.Event, r dialect.Reply) {
	t.Helper()
	if r.Exit != 0 || len(r.Stderr) != 0 {
		t.Errorf("%s %s: exit %d, stderr %q: either is a verdict in some client", e.Client, e.Name, r.Exit, r.Stderr)
	}
	if len(r.Stdout) == 0 {
		return
	}
	var o map[string]any
	if err := json.Unmarshal(r.Stdout, &o); err != nil || len(o) == 0 {
		t.Errorf("%s %s: %q is no JSON object: %v", e.Client, e.Name, r.Stdout, err)
	}
	if bytes.Count(r.Stdout, []byte("\n")) != 1 || !bytes.HasSuffix(r.Stdout, []byte("\n")) {
		t.Errorf("%s %s: %q is not one line", e.Client, e.Name, r.Stdout)
	}
	if c, ok := o["continue"]; ok {
		t.Errorf("%s %s: continue=%v would end the session", e.Client, e.Name, c)
	}
}

// Every event of every manifest has a case, and cases of a captured payload
// stand where the manifest says that it was seen.
func TestEveryEventHasACase(t *testing.T) {
	have := map[string]bool{}
	for _, c := range cases(t) {
		have[c.Client+" "+c.Event] = have[c.Client+" "+c.Event] || c.Captured
		if _, ok := have[c.Client+" "+c.Event]; !ok {
			have[c.Client+" "+c.Event] = false
		}
	}
	for _, m := range dialect.Manifests() {
		for _, s := range m.Events {
			captured, ok := have[m.Client+" "+s.Name]
			if !ok {
				t.Errorf("%s %s has no case", m.Client, s.Name)
			}
			if captured != (s.Source == dialect.Seen) {
				t.Errorf("%s %s: captured %v, manifest says %s", m.Client, s.Name, captured, s.Source)
			}
		}
	}
}

func TestManifest(t *testing.T) {
	for _, client := range dialect.Clients() {
		m := dialect.ManifestOf(client)
		if m == nil || m.Client != client || !m.Covers(m.Tested) || m.Covers(m.Before) || m.Covers("0.0.1") {
			t.Fatalf("manifest of %s: %+v", client, m)
		}
		kinds := map[dialect.Kind]bool{}
		for _, s := range m.Events {
			kinds[s.Kind] = true
			if s.Told&^s.Caps != 0 {
				t.Errorf("%s %s: told of what it cannot do", client, s.Name)
			}
			if s.Install && (s.DeadlineMS <= 0 || s.DeadlineMS*5/4 > s.ClientMS) {
				t.Errorf("%s %s: our deadline of %d ms is not well below the client's %d", client, s.Name, s.DeadlineMS, s.ClientMS)
			}
			if s.Install && dialect.EventType(s.Kind) == "" {
				t.Errorf("%s %s is installed and recorded nowhere", client, s.Name)
			}
			if s.Name == "WorktreeCreate" && s.Install {
				t.Error("WorktreeCreate takes over making the worktree")
			}
		}
		for _, k := range []dialect.Kind{dialect.SessionStart, dialect.SessionEnd, dialect.Prompt, dialect.ToolBefore, dialect.ToolAfter, dialect.Response} {
			if !kinds[k] {
				t.Errorf("%s has no event of kind %s", client, k)
			}
		}
		for _, k := range []dialect.Kind{dialect.SessionStart, dialect.Prompt, dialect.ToolAfter, dialect.ToolFailed} {
			if !dialect.CanContext(client, k) {
				t.Errorf("%s: no channel for context at %s", client, k)
			}
		}
		if dialect.CanContext(client, dialect.SessionEnd) || dialect.CanContext(client, dialect.CompactBefore) {
			t.Errorf("%s: context at the session's end or before a compaction has no channel", client)
		}
	}
	if dialect.ManifestOf("emacs") != nil || dialect.CanContext("emacs", dialect.Prompt) {
		t.Error("an unknown client has a manifest")
	}
	if dialect.CanContext("gemini", dialect.ToolBefore) || !dialect.CanContext("claude", dialect.ToolBefore) {
		t.Error("a tool's start: Gemini CLI has no channel there, Claude Code has one")
	}
	if dialect.ManifestOf("gemini").Event("PreCompress").Kind != dialect.Other {
		t.Error("PreCompress is no compaction: it fires each turn")
	}
}

// The answers to each client follow the rules that it refuses answers by.
func TestEncodeWhatTheClientsTake(t *testing.T) {
	for _, c := range cases(t) {
		e, err := dialect.Parse(c.Client, c.Event, c.Stdin)
		if err != nil {
			continue
		}
		for i, r := range answers(e) {
			checkReply(t, e, r)
			if len(r.Stdout) == 0 {
				continue
			}
			var o struct {
				Decision, Reason, Behavior, Message, PermissionDecision, PermissionDecisionReason *string
				HookSpecificOutput                                                                *struct {
					HookEventName                                *string
					PermissionDecision, PermissionDecisionReason *string
					Decision                                     *struct{ Behavior, Message *string }
					UpdatedInput, ToolInput                      json.RawMessage
					AdditionalContext                            *string
				}
			}
			if err := json.Unmarshal(r.Stdout, &o); err != nil {
				t.Fatal(err)
			}
			name := fmt.Sprintf("%s %s, %s: %s", c.Client, c.Event, fixture.Decisions()[i].Name, r.Stdout)
			if o.Decision != nil && (o.Reason == nil || strings.TrimSpace(*o.Reason) == "") {
				t.Errorf("%s: a decision without a reason", name)
			}
			h := o.HookSpecificOutput
			if h != nil && (h.HookEventName == nil || *h.HookEventName != c.Event) {
				t.Errorf("%s: hookEventName is not the event's", name)
			}
			switch c.Client {
			case "codex":
				if h != nil && h.PermissionDecision != nil {
					switch {
					case *h.PermissionDecision == "allow" && h.UpdatedInput == nil, *h.PermissionDecision == "ask":
						t.Errorf("%s: Codex calls it invalid", name)
					case *h.PermissionDecision == "deny" && (h.PermissionDecisionReason == nil || strings.TrimSpace(*h.PermissionDecisionReason) == ""):
						t.Errorf("%s: a denial without a reason is invalid", name)
					}
				} else if h != nil && (h.PermissionDecisionReason != nil || h.UpdatedInput != nil) {
					t.Errorf("%s: a reason or an input without a decision is invalid", name)
				}
				if h != nil && h.Decision != nil && h.UpdatedInput != nil {
					t.Errorf("%s: Codex takes no changed input there", name)
				}
			case "gemini":
				if o.Decision != nil && *o.Decision != "deny" {
					t.Errorf("%s: only deny has an effect", name)
				}
			case "copilot":
				if h != nil {
					t.Errorf("%s: its answers are flat", name)
				}
				if o.PermissionDecision != nil && *o.PermissionDecision == "ask" {
					t.Errorf("%s: ask is the guard's to decide there", name)
				}
			}
		}
	}
}

func parse(t *testing.T, client, name, payload string) dialect.Event {
	t.Helper()
	e, err := dialect.Parse(client, name, []byte(payload))
	if err != nil {
		t.Fatalf("%s %s: %v", client, name, err)
	}
	return e
}

func TestNames(t *testing.T) {
	for _, tc := range []struct {
		client, arg, payload, name string
		kind                       dialect.Kind
	}{
		{"claude", "PreToolUse", `{"tool_name":"Bash"}`, "PreToolUse", dialect.ToolBefore},
		{"claude", "PreToolUse", `{"hook_event_name":"PostToolUse","tool_name":"Bash"}`, "PostToolUse", dialect.ToolAfter},
		{"claude", "pretooluse", `{}`, "pretooluse", dialect.Other},
		{"claude", "preToolUse", `{}`, "preToolUse", dialect.Other},
		{"claude", "Tomorrow", `{"session_id":"s"}`, "Tomorrow", dialect.Other},
		{"copilot", "preToolUse", `{"toolName":"bash"}`, "preToolUse", dialect.ToolBefore},
		{"copilot", "PreToolUse", `{"tool_name":"Bash"}`, "PreToolUse", dialect.Other},
		{"copilot", "notification", `{"hook_event_name":"Notification"}`, "notification", dialect.Notification},
		{"copilot", "", `{"hookName":"permissionRequest","toolName":"bash"}`, "permissionRequest", dialect.PermissionAsked},
		{"gemini", "PreCompress", `{}`, "PreCompress", dialect.Other},
		{"codex", "Interrupt", `{}`, "Interrupt", dialect.ResponseFailed},
	} {
		e := parse(t, tc.client, tc.arg, tc.payload)
		if e.Name != tc.name || e.Kind != tc.kind || e.Client != tc.client {
			t.Errorf("%s %q %s: %s %s, want %s %s", tc.client, tc.arg, tc.payload, e.Name, e.Kind, tc.name, tc.kind)
		}
		if e.Kind == dialect.Other {
			for _, r := range answers(e) {
				if len(r.Stdout) > 0 {
					t.Errorf("%s %s: an answer to an event of no kind: %s", tc.client, e.Name, r.Stdout)
				}
			}
		}
	}
}

func TestRefusedPayloads(t *testing.T) {
	many := make([]string, 40)
	for i := range many {
		many[i] = fmt.Sprintf(`"k%d":%d`, i, i)
	}
	deep := func(n int) string {
		return `{"tool_name":"Bash","tool_input":` + strings.Repeat(`{"a":[`, n) + strings.Repeat(`]}`, n) + `}`
	}
	for name, tc := range map[string]struct{ payload, why string }{
		"nothing":           {"", "empty"},
		"space":             {" \n\t", "empty"},
		"no object":         {`["PreToolUse"]`, "not a JSON object"},
		"text after":        {`{"tool_name":"Bash"} x`, "after the end"},
		"two objects":       {`{"tool_name":"Bash"}{"tool_name":"Bash"}`, "after the end"},
		"cut":               {`{"tool_name":"Ba`, "ends in the middle"},
		"cut in a rune":     {`{"tool_name":"` + "\xe6\x97", "ends in the middle"},
		"cut in a word":     {`{"tool_name":tr`, "ends in the middle"},
		"twice":             {`{"tool_name":"Bash","tool_name":"Read"}`, `"tool_name" stands twice`},
		"twice in disguise": {`{"tool_name":"Bash","tool\u005fname":"Read"}`, "stands twice"},
		"twice below":       {`{"tool_name":"Bash","tool_input":{"command":"ls","command":"rm"}}`, "stands twice"},
		"twice among many":  {`{` + strings.Join(many, ",") + `,"k3":1}`, `"k3" stands twice`},
		"NUL":               {"{\"tool_name\":\"Ba\x00sh\"}", "control character"},
		"escaped NUL":       {`{"tool_name":"Bash","cwd":"/a\u0000b"}`, "NUL"},
		"not UTF-8":         {"{\"tool_name\":\"Ba\xffsh\"}", "not valid UTF-8"},
		"UTF-16":            {"\xff\xfe{\x00}\x00", "UTF-16"},
		"deep":              {deep(200), "nested deeper than 256"},
		"very deep":         {strings.Repeat(`{"a":`, 1_000_000), "nested deeper than 256"},
		"huge":              {`{"tool_name":"` + strings.Repeat("x", dialect.MaxPayload) + `"}`, "larger than 32 MiB"},
		"no tool":           {`{"tool_input":{}}`, "without the tool's name"},
		"tool of a kind":    {`{"tool_name":["Bash"]}`, "without the tool's name"},
		"number":            {`{"tool_name":"Bash","n":01}`, "byte 24"},
		"escape":            {`{"tool_name":"\x"}`, "unknown escape"},
		"half an escape":    {`{"tool_name":"\u12"}`, "four hexadecimal"},
		"single quotes":     {`{'tool_name':'Bash'}`, "a name was expected"},
		"comma":             {`{"tool_name":"Bash",}`, "a name was expected"},
	} {
		_, err := dialect.Parse("claude", "PreToolUse", []byte(tc.payload))
		if err == nil || !strings.Contains(err.Error(), tc.why) {
			t.Errorf("%s: %v, want %q", name, err, tc.why)
		}
	}
	if _, err := dialect.Parse("emacs", "x", []byte(`{}`)); err == nil || !strings.Contains(err.Error(), "claude, codex, gemini, copilot") {
		t.Errorf("unknown client: %v", err)
	}
	if _, err := dialect.Parse("copilot", "", []byte(`{}`)); err == nil || !strings.Contains(err.Error(), "does not name its event") {
		t.Errorf("no event: %v", err)
	}
	if e := parse(t, "claude", "PreToolUse", deep(120)); len(e.Input) == 0 {
		t.Error("240 levels are allowed")
	}
}

// A payload that was cut anywhere is refused, and nothing is ever answered to it.
func TestTruncatedAtEveryByte(t *testing.T) {
	for _, c := range cases(t) {
		whole := bytes.TrimRight(c.Stdin, "\n")
		for n := range whole {
			if e, err := dialect.Parse(c.Client, c.Event, whole[:n]); err == nil {
				t.Fatalf("%s cut at byte %d was taken for %+v", c.Dir, n, e)
			}
		}
	}
}

// What stands in the log can be read with the payload structs, and all of it.
func TestDataFitsThePayloadStructs(t *testing.T) {
	strict := func(name string, data []byte, into any) {
		t.Helper()
		dec := json.NewDecoder(bytes.NewReader(data))
		dec.DisallowUnknownFields()
		if err := dec.Decode(into); err != nil {
			t.Errorf("%s: %s: %v", name, data, err)
		}
	}
	for _, c := range cases(t) {
		e, err := dialect.Parse(c.Client, c.Event, c.Stdin)
		if err != nil {
			continue
		}
		data := dialect.AppendData([]byte("before"), e)
		if !bytes.HasPrefix(data, []byte("before{")) || bytes.ContainsAny(data, "\n\r") {
			t.Errorf("%s: %q", c.Dir, data)
		}
		data = data[len("before"):]
		typ := event.Type(dialect.EventType(e.Kind))
		if typ == "" {
			if string(data) != "{}" {
				t.Errorf("%s: data of what is not recorded: %s", c.Dir, data)
			}
			continue
		}
		if !slices.Contains(event.Types(), typ) {
			t.Errorf("%s: %s is no type of the log", c.Dir, typ)
		}
		var want, got any
		switch e.Kind {
		case dialect.SessionStart, dialect.SessionEnd:
			var d event.SessionData
			strict(c.Dir, data, &d)
			got, want = d, event.SessionData{Source: e.Source, Reason: e.Reason, Cwd: e.Cwd, Model: d.Model, Transcript: e.Transcript}
		case dialect.Prompt:
			var d event.PromptData
			strict(c.Dir, data, &d)
			got, want = d, event.PromptData{Text: e.Prompt, Cwd: e.Cwd}
		case dialect.Response, dialect.ResponseFailed:
			var d event.ResponseData
			strict(c.Dir, data, &d)
			got, want = d, event.ResponseData{Text: e.Text, Error: e.Error}
		case dialect.SubagentStarted, dialect.SubagentFinished:
			var d event.SubagentData
			strict(c.Dir, data, &d)
			got, want = d, event.SubagentData{ID: e.Agent, Type: e.AgentType, Text: e.Text}
		case dialect.CompactBefore, dialect.CompactAfter:
			var d event.CompactData
			strict(c.Dir, data, &d)
			got, want = d, event.CompactData{Trigger: e.Reason, Phase: map[bool]string{true: "before", false: "after"}[e.Kind == dialect.CompactBefore], Summary: e.Text}
		default:
			var d event.ToolData
			strict(c.Dir, data, &d)
			got, want = d, event.ToolData{Tool: e.Tool, Name: e.ToolName, ID: e.ToolID, Input: e.Input, Output: e.Output,
				Error: e.Error, ExitCode: e.ExitCode, DurationMS: e.DurationMS, Cwd: e.Cwd}
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", c.Dir, d)
		}
	}
}

// The input does not share the payload's memory: the payload's buffer may be
// used again while the event waits to be written.
func TestInputIsACopy(t *testing.T) {
	b := []byte(`{"tool_name":"Bash","tool_input":{"command":"ls"}}`)
	e, err := dialect.Parse("claude", "PreToolUse", b)
	if err != nil {
		t.Fatal(err)
	}
	for i := range b {
		b[i] = 'x'
	}
	if string(e.Input) != `{"command":"ls"}` || e.ToolName != "Bash" {
		t.Errorf("%s %s", e.ToolName, e.Input)
	}
}

func TestAppendString(t *testing.T) {
	for _, s := range []string{"", "plain", "日本語 — “x” \u2028", "\x00\x01\x1f\x7f\"\\\n\r\t/<>&", "a\xffb\xe6\x97", "\xf0\x9f\x98\x80\xf0\x9f", "\ufffd"} {
		quoted := quick.AppendString(nil, s)
		var back string
		if err := json.Unmarshal(quoted, &back); err != nil {
			t.Errorf("%q: %s: %v", s, quoted, err)
		}
		if want := strings.ToValidUTF8(s, "\ufffd"); utf8.ValidString(s) && back != want || !utf8.Valid(quoted) {
			t.Errorf("%q came back as %q", s, back)
		}
	}
}

func TestUnsaid(t *testing.T) {
	end := parse(t, "claude", "SessionEnd", `{}`)
	if got := dialect.Unsaid(end, dialect.Decision{Context: "c"}); !slices.Equal(got, []string{"context"}) {
		t.Errorf("context at the session's end: %v", got)
	}
	stop := parse(t, "codex", "Stop", `{}`)
	if got := dialect.Unsaid(stop, dialect.Decision{Block: true}); !slices.Equal(got, []string{"block"}) {
		t.Errorf("a block without a reason: %v", got)
	}
	tool := parse(t, "codex", "PreToolUse", `{"tool_name":"Bash"}`)
	for want, d := range map[string]dialect.Decision{
		"[ask]":        {Permission: dialect.Ask, Reason: "r"},
		"[allow]":      {Permission: dialect.Allow},
		"[]":           {Permission: dialect.Deny, Context: "c"},
		"[update]":     {UpdatedInput: []byte(`{}`)},
		"[ask update]": {Permission: dialect.Ask, UpdatedInput: []byte(`{}`), Context: "c"},
	} {
		if got := fmt.Sprint(dialect.Unsaid(tool, d)); got != want {
			t.Errorf("%+v: %s, want %s", d, got, want)
		}
	}
	bad := dialect.Decision{Permission: dialect.Allow, UpdatedInput: []byte(`{"a":`)}
	if r := dialect.Encode(tool, bad); len(r.Stdout) > 0 {
		t.Errorf("a broken input was sent: %s", r.Stdout)
	}
}

// TestToolsOfServers: each client names the tool of an MCP server in its own way, and
// Copilot CLI in two.
func TestToolsOfServers(t *testing.T) {
	for name, want := range map[string]string{
		"mcp__notes__state_context": "mcp", "mcp_notes_state_context": "mcp", "notes-state_context": "mcp", "notes/state_context": "mcp",
		"fetch_copilot_cli_documentation": "other", "update_plan": "other", "TodoWrite": "other", "read_bash": "other",
	} {
		if got := dialect.ToolKind(name); got != want {
			t.Errorf("%s is taken for %s, want %s", name, got, want)
		}
	}
}
