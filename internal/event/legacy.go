package event

import (
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"reprise/internal/event/quick"
)

// migrations lead from a version to the next. A new version adds one, and
// leaves those before it alone.
var migrations = map[int]func(*doc) error{
	0: fromLegacy,
}

type member struct{ name, raw string }

// doc is an event of any version: its members in their order, values as they
// were written.
type doc struct {
	members []member
	hash    string // of the line
}

func (d *doc) at(name string) int {
	return slices.IndexFunc(d.members, func(m member) bool { return m.name == name })
}

// take removes a member and returns its raw value, "" when it is not there.
func (d *doc) take(names ...string) string {
	for _, name := range names {
		if i := d.at(name); i >= 0 {
			raw := d.members[i].raw
			d.members = slices.Delete(d.members, i, i+1)
			if raw != "null" {
				return raw
			}
		}
	}
	return ""
}

func (d *doc) set(name, raw string) {
	if raw == "" {
		return
	}
	if i := d.at(name); i >= 0 {
		d.members[i].raw = raw
		return
	}
	d.members = append(d.members, member{name, raw})
}

func (d *doc) String() string {
	out := []byte{'{'}
	for i, m := range d.members {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(append(quick.AppendString(out, m.name), ':'), m.raw...)
	}
	return string(append(out, '}'))
}

// version is the document's: "v", or the "schema_version" of older programs,
// which is a number or, as in "0.3.1", a text whose first number counts.
func (d *doc) version() (int, error) {
	raw := ""
	if i := d.at("v"); i >= 0 {
		raw = d.members[i].raw
	} else if i := d.at("schema_version"); i >= 0 {
		raw = d.members[i].raw
	}
	if raw == "" {
		return 0, fmt.Errorf("%w: it says no version", ErrInvalid)
	}
	if s, err := quick.Unquote(raw); err == nil {
		raw, _, _ = strings.Cut(strings.TrimPrefix(s, "v"), ".")
	} else {
		raw, _, _ = strings.Cut(raw, ".")
	}
	v, err := strconv.Atoi(raw)
	if err != nil || v < 0 {
		return 0, fmt.Errorf("%w: its version is none", ErrInvalid)
	}
	// The first published versions of the older format are all before our 1.
	if v >= 1 && d.at("v") < 0 && (d.at("timestamp") >= 0 || d.at("agent_id") >= 0 || d.at("event_type") >= 0) {
		v = 0
	}
	if v > Version {
		return 0, fmt.Errorf("%w: version %d is newer than this program", ErrInvalid, v)
	}
	if v == Version {
		return v, fmt.Errorf("%w: it is of version %d, and does not follow it", ErrInvalid, v)
	}
	return v, nil
}

// fromLegacy makes version 1 of the events that programs before ours kept:
// schema_version, timestamp, agent_id, session_id and so on, with the hooks'
// own names as types. What version 1 has no place for goes into the data.
func fromLegacy(d *doc) error {
	d.take("v")
	d.take("schema_version")
	d.take("prev")
	ts, err := legacyTime(d.take("ts", "timestamp", "time", "created_at"))
	if err != nil {
		return err
	}
	id, _ := quick.Unquote(d.take("id", "event_id", "uuid"))
	if id == "" {
		id = idFor(ts, d.hash)
	}
	name, _ := quick.Unquote(d.take("type", "event_type", "event", "hook_event_name", "kind"))
	typ, ok := legacyType(name)
	if !ok {
		return fmt.Errorf("type %.60q has no counterpart", name)
	}
	scope, _ := quick.Unquote(d.take("scope"))
	switch scope {
	case "user":
		scope = string(ScopeGlobal)
	case "agent":
		scope = string(ScopeSession)
	}
	old := &doc{members: d.members, hash: d.hash}
	out := &doc{}
	out.set("v", "1")
	out.set("id", quoted(id))
	out.set("ts", quoted(ts.Format(time.RFC3339Nano)))
	data := old.take("data", "payload", "content")
	for _, f := range []struct{ to, from string }{
		{"project", "project project_id"}, {"session", "session session_id"}, {"run", "run run_id"},
		{"client", "client tool_client source"}, {"agent", "agent agent_id agent_name"},
		{"role", "role agent_role"}, {"task", "task task_id"}, {"parent", "parent parent_id"}, {"outcome", "outcome"},
	} {
		raw := old.take(strings.Fields(f.from)...)
		if raw == "" {
			continue
		}
		if raw[0] != '"' { // a number, or more than a name
			raw = quoted(raw)
		}
		out.set(f.to, raw)
	}
	if scope == "" {
		scope = quick.Narrowest(out.text("session"), out.text("project"))
	}
	out.set("scope", quoted(scope))
	out.set("type", quoted(string(typ)))
	if imp, err := strconv.ParseFloat(old.take("importance", "importance_score"), 64); err == nil && !math.IsNaN(imp) {
		out.set("importance", strconv.FormatFloat(min(max(imp, 0), 1), 'f', -1, 64))
	}
	for _, name := range []string{"evidence", "acl"} {
		if raw := old.take(name); strings.HasPrefix(raw, "[") {
			if _, err := texts(raw); err == nil {
				out.set(name, raw)
			}
		}
	}
	if data, err = legacyData(typ, data, old.members); err != nil {
		return err
	}
	out.set("data", data)
	d.members = out.members
	return nil
}

func (d *doc) text(name string) string {
	if i := d.at(name); i >= 0 {
		s, _ := quick.Unquote(d.members[i].raw)
		return s
	}
	return ""
}

// legacyData is the data in our names, with what has no other place beside it.
func legacyData(typ Type, raw string, rest []member) (string, error) {
	in := &doc{}
	switch {
	case raw == "":
	case raw[0] == '{':
		if err := quick.Members(raw, func(name, raw string) error {
			in.set(name, raw)
			return nil
		}); err != nil {
			return "", err
		}
	default:
		in.set("text", raw)
	}
	for _, m := range rest {
		if in.at(m.name) < 0 {
			in.set(m.name, m.raw)
		}
	}
	rename := func(to string, from ...string) {
		if in.at(to) < 0 {
			in.set(to, in.take(from...))
		}
	}
	switch typ {
	case ToolCalled, ToolSucceeded, ToolFailed, PermissionAsked:
		rename("name", "tool_name")
		rename("input", "tool_input")
		rename("output", "tool_response", "result", "tool_output")
		rename("use_id", "tool_use_id")
		if in.at("tool") < 0 {
			in.set("tool", quoted("other"))
		}
	case PromptSubmitted, ResponseCompleted:
		rename("text", "prompt", "response", "message")
	}
	// A field of another kind than ours keeps its value under another name.
	fields, _ := quick.Fields(string(typ))
	for i, m := range in.members {
		if !quick.Fits(fields, m.name, m.raw) {
			in.members[i].name = "legacy_" + m.name
		}
	}
	if len(in.members) == 0 {
		return "", nil
	}
	return in.String(), nil
}

// legacyTime reads RFC 3339, with or without a zone, and seconds or
// milliseconds since 1970.
func legacyTime(raw string) (time.Time, error) {
	if n, err := strconv.ParseFloat(raw, 64); err == nil && n > 0 && n < 1e15 {
		if n > 1e11 {
			n /= 1000
		}
		sec, frac := math.Modf(n)
		return time.Unix(int64(sec), int64(frac*1e6)*1000).UTC(), nil
	}
	s, err := quick.Unquote(raw)
	if err != nil {
		return time.Time{}, errors.New("it says no time")
	}
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999", "2006-01-02 15:04:05.999999999"} {
		if ts, err := time.Parse(layout, s); err == nil && ts.Year() >= 1970 && ts.Year() <= 9999 {
			return ts.UTC(), nil
		}
	}
	return time.Time{}, fmt.Errorf("its time %.40q is none", s)
}

// legacyType is a type of ours, or what a hook's name means.
func legacyType(name string) (Type, bool) {
	if _, ok := quick.Fields(name); ok {
		return Type(name), true
	}
	switch strings.ToLower(strings.NewReplacer("_", "", "-", "", ".", "").Replace(name)) {
	case "sessionstart", "sessionstarted":
		return SessionStarted, true
	case "sessionend", "sessionended", "sessionboundary":
		return SessionEnded, true
	case "userpromptsubmit", "prompt", "userprompt":
		return PromptSubmitted, true
	case "pretooluse", "toolcall", "tooluse":
		return ToolCalled, true
	case "posttooluse", "toolresult", "toolsuccess":
		return ToolSucceeded, true
	case "posttoolusefailure", "toolfailure", "toolerror":
		return ToolFailed, true
	case "permissionrequest":
		return PermissionAsked, true
	case "stop", "postassistantresponse", "response", "assistantresponse":
		return ResponseCompleted, true
	case "subagentstart":
		return SubagentStarted, true
	case "subagentstop":
		return SubagentFinished, true
	case "precompact", "postcompact":
		return ClientCompacted, true
	case "verification", "verificationresult":
		return VerificationFinished, true
	case "memorywrite", "memory":
		return MemoryWritten, true
	case "policy", "policyupdate":
		return PolicyChanged, true
	case "episode", "experience":
		return EpisodeRecorded, true
	}
	return "", false
}

func quoted(s string) string { return string(quick.AppendString(nil, s)) }

// idFor is an id for an event that has none: of its time, and of its line, so
// that it is the same whenever and wherever the line is migrated.
func idFor(ts time.Time, hash string) string {
	b, err := hex.DecodeString(hash)
	if err != nil || len(b) < 10 {
		b = make([]byte, 10)
	}
	ms := max(ts.UnixMilli(), 0)
	return fmt.Sprintf("%08x-%04x-7%03x-%04x-%012x", ms>>16, ms&0xffff, uint16(b[0])<<8&0xf00|uint16(b[1]),
		0x8000|uint16(b[2]&0x3f)<<8|uint16(b[3]), b[4:10])
}
