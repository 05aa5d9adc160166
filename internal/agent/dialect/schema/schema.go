// Package schema makes JSON Schemas of what clients send to hooks and of what
// is answered to them, from the manifests of package dialect, and of the forms
// that are reprise's own. The hook program does not link it. It writes nothing
// and takes no lock.
package schema

import (
	"reflect"
	"slices"
	"strconv"
	"strings"

	"reprise/internal/agent/dialect"
	"reprise/internal/agent/dialect/fixture"
)

// Version is in each schema's name and id. It goes up when what was valid no
// longer is.
const Version = 1

const draft = "https://json-schema.org/draft/2020-12/schema"

// Object is a piece of a JSON Schema.
type Object = map[string]any

// Named is one schema with the name of its file.
type Named struct {
	Name   string // such as hook-input-claude.v1.json
	Schema Object
}

// All are all schemas, in a fixed order.
func All() []Named {
	var out []Named
	for _, m := range dialect.Manifests() {
		out = append(out,
			file("hook-input-"+m.Client, "What "+m.Program+" sends to a hook, as far as reprise reads it. Each event has a definition of its own.", root(m, Input)),
			file("hook-output-"+m.Client, "What reprise answers to "+m.Program+". Nothing at all is always a valid answer, too.", root(m, Output)),
		)
	}
	return append(out,
		file("hook-event", "A client's hook event in reprise's own words, as in a case's expected.json.", structure(reflect.TypeFor[fixture.Event]())),
		file("hook-case", "case.json of a recorded hook payload.", structure(reflect.TypeFor[fixture.Case]())),
		file("hook-reply", "A hook's reply, as in a case's expected.json.", structure(reflect.TypeFor[fixture.Reply]())),
	)
}

func file(name, description string, s Object) Named {
	name += ".v" + strconv.Itoa(Version) + ".json"
	s["$schema"], s["$id"], s["title"], s["description"] = draft, "urn:reprise:"+name, strings.TrimSuffix(name, ".json"), description
	return Named{Name: name, Schema: s}
}

// root has one definition for each event. Where a payload names its event, it
// is checked against that one.
func root(m *dialect.Manifest, of func(*dialect.Manifest, *dialect.EventSpec) Object) Object {
	defs := Object{}
	var rules []any
	for i := range m.Events {
		s := &m.Events[i]
		defs[s.Name] = of(m, s)
		rules = append(rules, Object{
			"if":   Object{"required": []string{"hook_event_name"}, "properties": Object{"hook_event_name": Object{"const": s.Name}}},
			"then": Object{"$ref": "#/$defs/" + s.Name},
		})
	}
	out := Object{"type": "object", "$defs": defs}
	if m.Client != "copilot" && defs["SessionStart"].(Object)["required"] != nil {
		out["allOf"] = rules
	}
	return out
}

var (
	text     = Object{"type": "string"}
	someText = Object{"type": "string", "minLength": 1}
	maybe    = Object{"type": []string{"string", "null"}}
	boolean  = Object{"type": "boolean"}
	number   = Object{"type": "number", "minimum": 0}
	anything = Object{}
)

// Input is the schema of an event's payload. Fields that reprise does not read
// are left to the client.
func Input(m *dialect.Manifest, s *dialect.EventSpec) Object {
	if m.Client == "copilot" {
		return copilotInput(s)
	}
	p := Object{"hook_event_name": Object{"const": s.Name}, "session_id": someText, "cwd": someText, "transcript_path": maybe}
	need := []string{"hook_event_name", "session_id", "cwd"}
	add := func(name string, is Object, required bool) {
		p[name] = is
		if required {
			need = append(need, name)
		}
	}
	switch m.Client {
	case "claude":
		add("prompt_id", text, false)
		add("permission_mode", text, false)
	case "codex":
		add("turn_id", text, false)
		add("model", text, false)
		add("permission_mode", text, false)
	case "gemini":
		add("timestamp", someText, true)
	}
	switch s.Kind {
	case dialect.SessionStart:
		add("source", Object{"enum": []string{"startup", "resume", "clear", "compact"}}, true)
	case dialect.SessionEnd:
		add("reason", text, true)
	case dialect.Prompt:
		add("prompt", text, true)
	case dialect.ToolBefore, dialect.ToolAfter, dialect.ToolFailed, dialect.PermissionAsked, dialect.PermissionDenied:
		add("tool_name", someText, true)
		add("tool_input", anything, true)
		add("tool_use_id", text, false)
		add("duration_ms", number, false)
		switch s.Kind {
		case dialect.ToolAfter:
			add("tool_response", anything, true)
		case dialect.ToolFailed:
			add("error", text, true)
			add("is_interrupt", boolean, false)
		case dialect.PermissionDenied:
			add("reason", text, false)
		}
		if m.Client == "gemini" {
			add("mcp_context", Object{"type": "object"}, false)
		}
	case dialect.Response:
		add("stop_hook_active", boolean, true)
		if m.Client == "gemini" {
			add("prompt_response", text, true)
		} else {
			add("last_assistant_message", maybe, false)
		}
	case dialect.ResponseFailed:
		if m.Client == "claude" {
			add("error", text, true)
			add("error_details", maybe, false)
			add("last_assistant_message", maybe, false)
		}
	case dialect.SubagentStarted, dialect.SubagentFinished:
		add("agent_id", text, true)
		add("agent_type", text, true)
		if s.Kind == dialect.SubagentFinished {
			add("last_assistant_message", maybe, false)
			add("stop_hook_active", boolean, false)
		}
	case dialect.CompactBefore, dialect.CompactAfter:
		add("trigger", Object{"enum": []string{"manual", "auto"}}, true)
		add("compact_summary", maybe, false)
	case dialect.Notification:
		add("message", text, true)
		add("notification_type", text, false)
	}
	return Object{"type": "object", "properties": p, "required": need}
}

func copilotInput(s *dialect.EventSpec) Object {
	p := Object{
		"sessionId": someText, "cwd": someText, "timestamp": number, "transcriptPath": maybe,
		"agentId": text, "agentType": text, "parentAgentId": text,
	}
	need := []string{"sessionId", "cwd", "timestamp"}
	add := func(name string, is Object, required bool) {
		p[name] = is
		if required {
			need = append(need, name)
		}
	}
	switch s.Kind {
	case dialect.SessionStart:
		add("source", Object{"enum": []string{"startup", "resume", "new"}}, true)
	case dialect.SessionEnd:
		add("reason", text, true)
	case dialect.Prompt:
		add("prompt", text, true)
	case dialect.ToolBefore, dialect.ToolAfter, dialect.ToolFailed:
		add("toolName", someText, true)
		add("toolArgs", anything, true)
		switch s.Kind {
		case dialect.ToolAfter:
			add("toolResult", Object{
				"type": "object", "required": []string{"resultType", "textResultForLlm"},
				"properties": Object{"resultType": text, "textResultForLlm": text},
			}, true)
		case dialect.ToolFailed:
			add("error", Object{"type": []string{"string", "object"}}, true)
		}
	case dialect.PermissionAsked:
		add("hookName", Object{"const": s.Name}, false)
		add("toolName", someText, true)
		add("toolInput", anything, true)
	case dialect.Response:
		add("stop_hook_active", boolean, true)
		add("stopReason", text, false)
	case dialect.ResponseFailed:
		add("error", Object{"type": "object"}, true)
		add("recoverable", boolean, true)
		add("errorContext", text, false)
	case dialect.SubagentStarted, dialect.SubagentFinished:
		add("agentName", someText, true)
		if s.Kind == dialect.SubagentFinished {
			add("response", text, false)
		}
	case dialect.CompactBefore:
		add("trigger", Object{"enum": []string{"manual", "auto"}}, true)
	case dialect.Notification:
		add("message", text, true)
		add("notification_type", text, false)
	}
	return Object{"type": "object", "properties": p, "required": need}
}

// reason is a text that is not empty and not only space: clients refuse others.
var reason = Object{"type": "string", "pattern": `\S`}

// Output is the schema of the answer to an event: what reprise prints where it
// has something to say.
func Output(m *dialect.Manifest, s *dialect.EventSpec) Object {
	if s.Caps == 0 {
		return Object{"type": "object", "maxProperties": 0}
	}
	var forms []any
	switch m.Client {
	case "claude", "codex":
		forms = claudeOutput(m, s)
	case "gemini":
		forms = geminiOutput(s)
	case "copilot":
		forms = copilotOutput(s)
	}
	return Object{"type": "object", "minProperties": 1, "oneOf": forms}
}

// closed is an object of exactly these members, some of them required.
func closed(p Object, need ...string) Object {
	o := Object{"type": "object", "properties": p, "additionalProperties": false}
	if len(need) > 0 {
		o["required"] = need
	}
	return o
}

func has(s *dialect.EventSpec, c dialect.Caps) bool { return s.Caps&c != 0 }

func decision(word string) Object {
	return closed(Object{"decision": Object{"const": word}, "reason": reason}, "decision", "reason")
}

func verdicts(s *dialect.EventSpec, codexUpdate bool) []string {
	var out []string
	for _, v := range []struct {
		c    dialect.Caps
		word string
	}{{dialect.CapAllow, "allow"}, {dialect.CapAsk, "ask"}, {dialect.CapDeny, "deny"}} {
		if has(s, v.c) || v.word == "allow" && codexUpdate {
			out = append(out, v.word)
		}
	}
	return out
}

func claudeOutput(m *dialect.Manifest, s *dialect.EventSpec) []any {
	var forms []any
	if has(s, dialect.CapBlock) {
		forms = append(forms, decision("block"))
	}
	p := Object{"hookEventName": Object{"const": s.Name}}
	specific := closed(p, "hookEventName")
	specific["minProperties"] = 2
	if has(s, dialect.CapContext) {
		p["additionalContext"] = someText
	}
	codexUpdate := m.Client == "codex" && has(s, dialect.CapUpdate)
	input := Object{"type": "object"}
	switch {
	case !has(s, dialect.CapDeny):
	case s.Kind == dialect.PermissionAsked:
		d := Object{"behavior": Object{"enum": verdicts(s, false)}, "message": reason}
		if has(s, dialect.CapUpdate) {
			d["updatedInput"] = input
		}
		c := closed(d, "behavior")
		c["if"] = Object{"properties": Object{"behavior": Object{"const": "deny"}}}
		c["then"] = Object{"required": []string{"message"}}
		p["decision"] = c
	default:
		p["permissionDecision"] = Object{"enum": verdicts(s, codexUpdate)}
		p["permissionDecisionReason"] = reason
		if has(s, dialect.CapUpdate) {
			p["updatedInput"] = input
		}
		specific["dependentRequired"] = Object{"permissionDecisionReason": []string{"permissionDecision"}}
		rules := []any{Object{
			"if":   Object{"required": []string{"permissionDecision"}, "properties": Object{"permissionDecision": Object{"const": "deny"}}},
			"then": Object{"required": []string{"permissionDecisionReason"}},
		}}
		if codexUpdate {
			rules = append(rules, Object{
				"if":   Object{"required": []string{"permissionDecision"}, "properties": Object{"permissionDecision": Object{"const": "allow"}}},
				"then": Object{"required": []string{"updatedInput"}},
			}, Object{
				"if":   Object{"required": []string{"updatedInput"}},
				"then": Object{"required": []string{"permissionDecision"}, "properties": Object{"permissionDecision": Object{"const": "allow"}}},
			})
		}
		specific["allOf"] = rules
	}
	if len(p) > 1 {
		forms = append(forms, closed(Object{"hookSpecificOutput": specific}, "hookSpecificOutput"))
	}
	return forms
}

func geminiOutput(s *dialect.EventSpec) []any {
	var forms []any
	if has(s, dialect.CapDeny|dialect.CapBlock) {
		forms = append(forms, decision("deny"))
	}
	p := Object{"hookEventName": Object{"const": s.Name}}
	if has(s, dialect.CapContext) {
		p["additionalContext"] = someText
	}
	if has(s, dialect.CapUpdate) {
		p["tool_input"] = Object{"type": "object"}
	}
	if len(p) > 1 {
		specific := closed(p, "hookEventName")
		specific["minProperties"] = 2
		forms = append(forms, closed(Object{"hookSpecificOutput": specific}, "hookSpecificOutput"))
	}
	return forms
}

func copilotOutput(s *dialect.EventSpec) []any {
	var forms []any
	if has(s, dialect.CapBlock) {
		forms = append(forms, decision("block"))
	}
	if s.Kind == dialect.PermissionAsked {
		c := closed(Object{"behavior": Object{"enum": verdicts(s, false)}, "message": reason}, "behavior")
		c["if"] = Object{"properties": Object{"behavior": Object{"const": "deny"}}}
		c["then"] = Object{"required": []string{"message"}}
		return append(forms, c)
	}
	p := Object{}
	if has(s, dialect.CapContext) {
		p["additionalContext"] = someText
	}
	if has(s, dialect.CapUpdate) {
		p["modifiedArgs"] = Object{"type": "object"}
	}
	var c Object
	if has(s, dialect.CapDeny) {
		p["permissionDecision"] = Object{"enum": verdicts(s, false)}
		p["permissionDecisionReason"] = reason
		c = closed(p)
		c["dependentRequired"] = Object{"permissionDecisionReason": []string{"permissionDecision"}}
		c["if"] = Object{"required": []string{"permissionDecision"}, "properties": Object{"permissionDecision": Object{"const": "deny"}}}
		c["then"] = Object{"required": []string{"permissionDecisionReason"}}
	} else {
		c = closed(p)
	}
	if len(p) > 0 {
		c["minProperties"] = 1
		forms = append(forms, c)
	}
	return forms
}

// structure is the schema of a struct of ours, by its JSON tags.
func structure(t reflect.Type) Object {
	p := Object{}
	var need []string
	for _, f := range reflect.VisibleFields(t) {
		name, opts, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "-" || name == "" {
			continue
		}
		p[name] = typeOf(f.Type)
		if !strings.Contains(opts, "omitempty") {
			need = append(need, name)
		}
	}
	if _, ok := p["kind"]; ok {
		p["kind"] = Object{"enum": kinds()}
	}
	if _, ok := p["v"]; ok {
		p["v"] = Object{"const": fixture.Version}
	}
	return closed(p, need...)
}

func typeOf(t reflect.Type) Object {
	switch t.Kind() {
	case reflect.Pointer:
		return typeOf(t.Elem())
	case reflect.Bool:
		return boolean
	case reflect.Int, reflect.Int64:
		return Object{"type": "integer"}
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return anything // json.RawMessage
		}
		return Object{"type": "array", "items": typeOf(t.Elem())}
	}
	return text
}

// kinds are all kinds that an event can have.
func kinds() []string {
	var out []string
	for _, m := range dialect.Manifests() {
		for _, s := range m.Events {
			k := string(s.Kind)
			if !slices.Contains(out, k) {
				out = append(out, k)
			}
		}
	}
	return out
}
