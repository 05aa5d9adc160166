package mdfile

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// decode reads the lines of a front matter. What Render writes is read line by
// line; anything else goes to the YAML parser, which takes fifty times as long.
func (p *entryParser) decode(e *Entry, from, to int) (problem string) {
	for i := from; i < to; i++ {
		if !simpleLine(e, trimRight(p.raw(i))) {
			*e = Entry{}
			return p.decodeYAML(e, from, to)
		}
	}
	return ""
}

func simpleLine(e *Entry, b []byte) bool {
	if len(b) == 0 {
		return true
	}
	key, val, ok := bytes.Cut(b, []byte(": "))
	if !ok || len(val) == 0 {
		return false
	}
	var v any
	switch c := val[0]; {
	case c == '"':
		var s string
		if json.Unmarshal(val, &s) != nil {
			return false
		}
		v = s
	case c == '[':
		var list []any
		var texts []string
		if json.Unmarshal(val, &texts) != nil {
			return false
		}
		for _, t := range texts {
			list = append(list, t)
		}
		v = list
	case c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9':
		if bytes.Contains(val, []byte(": ")) || bytes.Contains(val, []byte(" #")) || bytes.HasSuffix(val, []byte(":")) {
			return false
		}
		v = string(val)
	default:
		return false
	}
	return setEntryKey(e, string(key), v) == nil
}

func (p *entryParser) decodeYAML(e *Entry, from, to int) string {
	if from >= to {
		return "it is empty"
	}
	m, err := decode(p.src[p.lines[from].start:p.lines[to-1].next])
	if err != nil {
		return flat(err)
	}
	for k, v := range m {
		if err := setEntryKey(e, k, v); err != nil {
			return err.Error()
		}
	}
	return ""
}

// lenient takes what can be read of a front matter that is none.
func (p *entryParser) lenient(e *Entry, from, to int) {
	for i := from; i < to; i++ {
		key, val, ok := bytes.Cut(trimRight(p.raw(i)), []byte(":"))
		if ok {
			_ = setEntryKey(e, string(key), strings.Trim(string(bytes.TrimSpace(val)), `"'`)) // what cannot be read stays out
		}
	}
}

func setEntryKey(e *Entry, key string, v any) error {
	text := func(into *string) error {
		switch v := v.(type) {
		case nil:
		case string:
			*into = v
		case map[string]any, []any:
			return fmt.Errorf("%s is not a text", key)
		default:
			*into = fmt.Sprint(v)
		}
		return nil
	}
	list := func(into *[]string) error {
		switch v := v.(type) {
		case nil:
		case string:
			if v != "" {
				*into = []string{v}
			}
		case []any:
			if len(v) > maxListed {
				return fmt.Errorf("%s has %d items", key, len(v))
			}
			for _, x := range v {
				*into = append(*into, fmt.Sprint(x))
			}
		default:
			return fmt.Errorf("%s is not a list", key)
		}
		return nil
	}
	switch key {
	case "id":
		return text(&e.ID)
	case "timestamp":
		return entryTime(e, v)
	case "agent":
		return text(&e.Agent)
	case "type":
		return text(&e.Type)
	case "status":
		return text(&e.Status)
	case "to":
		return text(&e.To)
	case "parent":
		return text(&e.Parent)
	case "depends_on":
		return list(&e.DependsOn)
	case "decision":
		return text(&e.Decision)
	case "alternatives":
		return list(&e.Alternatives)
	case "rationale":
		return text(&e.Rationale)
	case "source":
		return text(&e.Source)
	case "confidence":
		n, err := strconv.ParseFloat(fmt.Sprint(v), 64)
		if err != nil || n < 0 || n > 1 {
			return fmt.Errorf("confidence is not a number from 0 to 1")
		}
		e.Confidence = n
	case "supersedes":
		return text(&e.Supersedes)
	case "evidence":
		return list(&e.Evidence)
	case "acl":
		return list(&e.ACL)
	}
	return nil // keys of others stay in the file
}

func entryTime(e *Entry, v any) error {
	switch v := v.(type) {
	case nil:
		return nil
	case time.Time:
		e.Time = v.UTC()
		return nil
	case string:
		for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05", "2006-01-02 15:04:05", "2006-01-02 15:04", time.DateOnly} {
			if t, err := time.Parse(layout, strings.TrimSpace(v)); err == nil {
				e.Time = t.UTC()
				return nil
			}
		}
	}
	return fmt.Errorf("timestamp %.40q is not a time like 2026-02-15T10:00:00Z", fmt.Sprint(v))
}
