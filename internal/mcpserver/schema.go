package mcpserver

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// kind is the type of a parameter. There is no "any", no nullable type and no
// nested object on purpose: each of them breaks some client.
type kind string

const (
	text    kind = "string"
	integer kind = "integer"
	boolean kind = "boolean"
	list    kind = "array" // of strings
)

// param is one parameter of a tool. The same table makes the schema that
// clients see and the check that calls must pass, so the two cannot disagree.
type param struct {
	name     string
	kind     kind
	about    string // for the schema
	required bool
	enum     []string // closed set of a text
	min, max int      // of an integer
	bytes    int      // most bytes of a text, or of each entry of a list
	entries  int      // most entries of a list
	blank    bool     // a text that may be empty or only white space
	lines    bool     // a text that may hold line breaks and tabs
	remedy   string   // what to do instead, for error messages
	check    func(string) error
}

// schema is the JSON Schema of the parameters, in the plain form that every
// client takes: an object with properties, one type each, all described. Models read the
// list from the top, so the order is that of params. It is written by hand: what a library
// has to learn of a type before it writes the first one is a part of each start.
func schema(params []param) json.RawMessage {
	b := []byte(`{"type":"object","properties":{`)
	var required []string
	for i, p := range params {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(appendString(b, p.name), `:{"type":"`...)
		b = append(append(b, p.kind...), '"')
		if p.kind == list {
			b = strconv.AppendInt(append(b, `,"items":{"type":"string"},"maxItems":`...), int64(p.entries), 10)
		}
		if p.kind == integer {
			b = strconv.AppendInt(append(b, `,"minimum":`...), int64(p.min), 10)
			b = strconv.AppendInt(append(b, `,"maximum":`...), int64(p.max), 10)
		}
		if p.enum != nil {
			b = appendStrings(append(b, `,"enum":`...), p.enum)
		}
		b = append(appendString(append(b, `,"description":`...), p.about), '}')
		if p.required {
			required = append(required, p.name)
		}
	}
	b = append(b, '}')
	if required != nil {
		b = appendStrings(append(b, `,"required":`...), required)
	}
	return append(b, `,"additionalProperties":false}`...)
}

// appendString adds a text as JSON has it.
func appendString(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c >= utf8.RuneSelf || c == '"' || c == '\\' {
			data, err := encodeJSON(s)
			if err != nil {
				panic("mcpserver: encode a text: " + err.Error()) // every text is one in JSON
			}
			return append(b, data...)
		}
	}
	return append(append(append(b, '"'), s...), '"')
}

func appendStrings(b []byte, list []string) []byte {
	b = append(b, '[')
	for i, s := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendString(b, s)
	}
	return append(b, ']')
}

// args are checked arguments of a call.
type args map[string]any

func (a args) text(name string) string   { s, _ := a[name].(string); return s }
func (a args) flag(name string) bool     { b, _ := a[name].(bool); return b }
func (a args) list(name string) []string { l, _ := a[name].([]string); return l }
func (a args) has(name string) bool      { _, ok := a[name]; return ok }
func (a args) number(name string, otherwise int) int {
	if n, ok := a[name].(int); ok {
		return n
	}
	return otherwise
}

// parseArgs checks a call's arguments. Its error names the parameter, what is
// wrong with it and what to do.
func parseArgs(tool string, params []param, raw json.RawMessage) (args, error) {
	given := map[string]json.RawMessage{}
	trimmed := bytes.TrimSpace(raw)
	if len(trimmed) > 0 && !bytes.Equal(trimmed, []byte("null")) {
		if trimmed[0] != '{' {
			return nil, fmt.Errorf("%s: arguments must be a JSON object with the tool's parameters, not %s", tool, jsonKind(trimmed))
		}
		if err := json.Unmarshal(trimmed, &given); err != nil {
			return nil, fmt.Errorf("%s: arguments are not valid JSON: %w", tool, err)
		}
	}
	out := args{}
	for _, p := range params {
		value, ok := given[p.name]
		delete(given, p.name)
		if !ok || bytes.Equal(value, []byte("null")) {
			if p.required {
				return nil, p.errorf(tool, "is missing")
			}
			continue
		}
		v, err := p.parse(value)
		if err != nil {
			return nil, p.errorf(tool, "%w", err)
		}
		out[p.name] = v
	}
	if len(given) > 0 {
		names := make([]string, len(params))
		for i, p := range params {
			names[i] = p.name
		}
		if len(names) == 0 {
			names = []string{"none"}
		}
		unknown := shorten(slices.Min(slices.Collect(maps.Keys(given))), 60)
		return nil, fmt.Errorf("%s: unknown parameter %q: it takes %s", tool, unknown, strings.Join(names, ", "))
	}
	return out, nil
}

func (p param) errorf(tool, format string, a ...any) error {
	err := fmt.Errorf(format, a...)
	if p.remedy != "" {
		return fmt.Errorf("%s: parameter %q %w: %s", tool, p.name, err, p.remedy)
	}
	return fmt.Errorf("%s: parameter %q %w", tool, p.name, err)
}

func (p param) parse(raw json.RawMessage) (any, error) {
	if !utf8.Valid(raw) {
		return nil, fmt.Errorf("is not valid UTF-8")
	}
	switch p.kind {
	case boolean:
		switch string(raw) {
		case "true":
			return true, nil
		case "false":
			return false, nil
		}
		return nil, fmt.Errorf("must be true or false, not %s", jsonKind(raw))
	case integer:
		return p.parseInteger(raw)
	case list:
		return p.parseList(raw)
	}
	if raw[0] != '"' {
		return nil, fmt.Errorf("must be a string, not %s", jsonKind(raw))
	}
	return p.parseText(raw)
}

func (p param) parseInteger(raw json.RawMessage) (any, error) {
	f, err := strconv.ParseFloat(string(raw), 64)
	if err != nil || f != math.Trunc(f) || math.Abs(f) > 1<<53 {
		return nil, fmt.Errorf("must be a whole number from %d to %d, not %s", p.min, p.max, describe(raw))
	}
	if f < float64(p.min) || f > float64(p.max) {
		return nil, fmt.Errorf("must be from %d to %d, not %s", p.min, p.max, describe(raw))
	}
	return int(f), nil
}

func (p param) parseList(raw json.RawMessage) (any, error) {
	if raw[0] != '[' {
		return nil, fmt.Errorf("must be a list of strings, not %s", jsonKind(raw))
	}
	var entries []json.RawMessage
	if err := json.Unmarshal(raw, &entries); err != nil {
		return nil, fmt.Errorf("is not valid JSON: %w", err)
	}
	if len(entries) > p.entries {
		return nil, fmt.Errorf("has %d entries, the most is %d", len(entries), p.entries)
	}
	out := make([]string, len(entries))
	for i, e := range entries {
		if e[0] != '"' {
			return nil, fmt.Errorf("entry %d must be a string, not %s", i+1, jsonKind(e))
		}
		s, err := p.parseText(e)
		if err != nil {
			return nil, fmt.Errorf("entry %d %w", i+1, err)
		}
		out[i] = s
	}
	return out, nil
}

func (p param) parseText(raw json.RawMessage) (string, error) {
	if loneSurrogate(raw) {
		return "", fmt.Errorf("is not valid Unicode: it has half of a surrogate pair")
	}
	var s string
	if err := json.Unmarshal(raw, &s); err != nil {
		return "", fmt.Errorf("is not valid JSON: %w", err)
	}
	if p.bytes > 0 && len(s) > p.bytes {
		return "", fmt.Errorf("has %d bytes, the most is %d", len(s), p.bytes)
	}
	if !p.blank && strings.TrimSpace(s) == "" {
		return "", fmt.Errorf("is empty")
	}
	for _, r := range s {
		switch {
		case r == 0:
			return "", fmt.Errorf("has a NUL character in it")
		case p.lines && (r == '\n' || r == '\r' || r == '\t'):
		case !p.lines && unicode.IsControl(r):
			return "", fmt.Errorf("has a control character (%U) in it", r)
		}
	}
	if p.enum != nil && !slices.Contains(p.enum, s) {
		return "", fmt.Errorf("must be one of %s, not %q", strings.Join(p.enum, ", "), shorten(s, 40))
	}
	if p.check != nil {
		if err := p.check(s); err != nil {
			return "", err
		}
	}
	return s, nil
}

// loneSurrogate finds an escape such as \ud800 without its other half, which
// Go's decoder would replace in silence. raw is a valid JSON string.
func loneSurrogate(raw []byte) bool {
	half := func(i int) (uint64, bool) {
		if i+6 > len(raw) || raw[i] != '\\' || raw[i+1] != 'u' {
			return 0, false
		}
		v, err := strconv.ParseUint(string(raw[i+2:i+6]), 16, 32)
		return v, err == nil
	}
	for i := 0; i < len(raw); i++ {
		if raw[i] != '\\' {
			continue
		}
		v, ok := half(i)
		if !ok {
			i++ // an escape of one character
			continue
		}
		i += 5
		switch {
		case v >= 0xdc00 && v <= 0xdfff:
			return true
		case v >= 0xd800 && v <= 0xdbff:
			low, ok := half(i + 1)
			if !ok || low < 0xdc00 || low > 0xdfff {
				return true
			}
			i += 6
		}
	}
	return false
}

func jsonKind(raw []byte) string {
	if len(raw) == 0 {
		return "nothing"
	}
	switch raw[0] {
	case '"':
		return "a string"
	case '{':
		return "an object"
	case '[':
		return "a list"
	case 't', 'f':
		return "true or false"
	case 'n':
		return "null"
	}
	return "a number"
}

// describe shows a number, and of anything else only what it is: it may be
// long, or a secret put into the wrong parameter.
func describe(raw json.RawMessage) string {
	if k := jsonKind(raw); k != "a number" || len(raw) > 30 {
		return k
	}
	return string(raw)
}
