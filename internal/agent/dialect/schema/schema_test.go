package schema

import (
	"bytes"
	"encoding/json"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"reprise/internal/agent/dialect"
	"reprise/internal/agent/dialect/fixture"
)

var update = flag.Bool("update", false, "write docs/schemas anew")

const docs = "../../../../docs/schemas"

// The published files are what the program would write today. Look at the
// difference after -update: what was valid and no longer is needs a new version.
func TestPublishedSchemas(t *testing.T) {
	want := map[string]bool{}
	for _, n := range All() {
		data, err := fixture.Format(n.Schema)
		if err != nil {
			t.Fatal(err)
		}
		want[n.Name] = true
		name := filepath.Join(docs, n.Name)
		if *update {
			if err := os.MkdirAll(docs, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(name, data, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		have, err := os.ReadFile(name)
		if err != nil || !bytes.Equal(have, data) {
			t.Errorf("%s is not what the program writes (%v); see `go test ./internal/agent/dialect/schema -update`", name, err)
		}
	}
	entries, err := os.ReadDir(docs)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), "hook-") && !want[e.Name()] {
			t.Errorf("%s is a schema of nothing", e.Name())
		}
	}
}

func resolve(t *testing.T, s Object) *jsonschema.Resolved {
	t.Helper()
	raw, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	var schema jsonschema.Schema
	if err := json.Unmarshal(raw, &schema); err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	r, err := schema.Resolve(nil)
	if err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	return r
}

func check(t *testing.T, r *jsonschema.Resolved, raw []byte) error {
	t.Helper()
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		t.Fatalf("%q: %v", raw, err)
	}
	return r.Validate(v)
}

// All recorded payloads follow the schemas of what comes in, and all answers to
// them those of what goes out; so do the files of the cases themselves.
func TestCasesFollowTheSchemas(t *testing.T) {
	named := map[string]*jsonschema.Resolved{}
	for _, n := range All() {
		named[n.Name] = resolve(t, n.Schema)
	}
	cases, err := fixture.Load(fixture.Builtin())
	if err != nil {
		t.Fatal(err)
	}
	inputs, outputs := 0, 0
	for _, c := range cases {
		head, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		if err := check(t, named["hook-case.v1.json"], head); err != nil {
			t.Errorf("%s/case.json: %v", c.Dir, err)
		}
		m := dialect.ManifestOf(c.Client)
		spec := m.Event(c.Event)
		want := fixture.Expect(c)
		if want.Error != "" || spec == nil {
			continue
		}
		stdin := bytes.TrimPrefix(c.Stdin, []byte("\xef\xbb\xbf"))
		if err := check(t, resolve(t, Input(m, spec)), stdin); err != nil {
			t.Errorf("%s/stdin.json: %v", c.Dir, err)
		}
		if err := check(t, named["hook-input-"+c.Client+".v1.json"], stdin); err != nil {
			t.Errorf("%s/stdin.json: %v", c.Dir, err)
		}
		inputs++
		event, err := json.Marshal(want.Event)
		if err != nil {
			t.Fatal(err)
		}
		if err := check(t, named["hook-event.v1.json"], event); err != nil {
			t.Errorf("%s: event: %v", c.Dir, err)
		}
		out := resolve(t, Output(m, spec))
		for _, name := range slices.Sorted(maps.Keys(want.Replies)) {
			reply := want.Replies[name]
			if err := check(t, out, reply.Stdout); err != nil {
				t.Errorf("%s: answer to %q: %s: %v", c.Dir, name, reply.Stdout, err)
			}
			outputs++
		}
	}
	if inputs < 130 || outputs < 150 {
		t.Errorf("only %d payloads and %d answers were looked at", inputs, outputs)
	}
}

// The schemas refuse what clients refuse.
func TestOutputSchemasRefuse(t *testing.T) {
	for _, tc := range []struct{ client, event, answer string }{
		{"codex", "PreToolUse", `{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"ask","permissionDecisionReason":"r"}}`},
		{"codex", "PreToolUse", `{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"allow"}}`},
		{"codex", "PreToolUse", `{"hookSpecificOutput":{"hookEventName":"PreToolUse","updatedInput":{}}}`},
		{"codex", "PreToolUse", `{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":" "}}`},
		{"codex", "Stop", `{"decision":"block"}`},
		{"codex", "Interrupt", `{"continue":true}`},
		{"claude", "PreToolUse", `{"continue":false}`},
		{"claude", "PreToolUse", `{"hookSpecificOutput":{"hookEventName":"PostToolUse","additionalContext":"c"}}`},
		{"claude", "SessionEnd", `{"hookSpecificOutput":{"hookEventName":"SessionEnd","additionalContext":"c"}}`},
		{"gemini", "BeforeTool", `{"decision":"allow"}`},
		{"copilot", "preToolUse", `{"permissionDecision":"ask"}`},
		{"copilot", "agentStop", `{"decision":"block","reason":""}`},
	} {
		m := dialect.ManifestOf(tc.client)
		if err := check(t, resolve(t, Output(m, m.Event(tc.event))), []byte(tc.answer)); err == nil {
			t.Errorf("%s %s: %s was taken", tc.client, tc.event, tc.answer)
		}
	}
}
