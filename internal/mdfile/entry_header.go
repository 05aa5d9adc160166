package mdfile

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// decode reads the lines of a front matter. What Render writes is read line by
// line; anything else goes to the YAML parser, which takes fifty times as long. tidy
// says that there is nothing in it that a field cannot hold.
func (p *entryParser) decode(e *Entry, from, to int) (problem string, tidy bool) {
	if from >= to {
		return "", true
	}
	base := p.lines[from].start
	head := string(p.src[base:p.lines[to-1].end]) // one for all its fields
	for _, l := range p.lines[from:to] {
		s := head[l.start-base : l.end-base]
		if !simpleLine(e, s[:trimmed(s)]) {
			*e = Entry{}
			return p.decodeYAML(e, from, to), false
		}
	}
	return "", strings.IndexByte(head, '\\') < 0 && clean(head) == head
}

func simpleLine(e *Entry, line string) bool {
	if line == "" {
		return true
	}
	key, val, ok := strings.Cut(line, ": ")
	if !ok || val == "" {
		return false
	}
	switch c := val[0]; {
	case c == '"':
		text, rest, ok := plainQuoted(val)
		if !ok || rest != "" {
			text, ok = byJSON[string](val)
		}
		return ok && setEntryText(e, key, text) == nil
	case c == '[':
		texts, ok := plainList(val)
		if !ok {
			texts, ok = byJSON[[]string](val)
		}
		return ok && setEntryList(e, key, texts) == nil
	case c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9':
		if strings.Contains(val, ": ") || strings.Contains(val, " #") || strings.HasSuffix(val, ":") {
			return false
		}
		return setEntryText(e, key, val) == nil
	}
	return false
}

func byJSON[T any](s string) (v T, ok bool) {
	err := json.Unmarshal([]byte(s), &v)
	return v, err == nil
}

// plainQuoted is the string that a JSON text begins with, where it is what stands
// between its quotes, as nearly always; else the JSON parser is asked.
func plainQuoted(s string) (text, rest string, ok bool) {
	if s == "" || s[0] != '"' {
		return "", s, false
	}
	text, rest, ok = strings.Cut(s[1:], `"`)
	for i := 0; ok && i < len(text); i++ {
		ok = text[i] >= ' ' && text[i] != '\\'
	}
	return text, rest, ok && utf8.ValidString(text)
}

// plainList is plainQuoted for a list of strings.
func plainList(s string) (list []string, ok bool) {
	list = make([]string, 0, strings.Count(s, `","`)+1)
	for sep := byte('['); ; sep = ',' {
		if s == "" || s[0] != sep {
			return list, s == "]" && sep == ','
		}
		text, rest, ok := plainQuoted(s[1:])
		if !ok {
			return nil, false
		}
		list, s = append(list, text), rest
	}
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

// textOf is the field of a key that is a text, listOf that of one that is a list; nil
// for other keys.
func textOf(e *Entry, key string) *string {
	switch key {
	case "id":
		return &e.ID
	case "agent":
		return &e.Agent
	case "type":
		return &e.Type
	case "status":
		return &e.Status
	case "to":
		return &e.To
	case "parent":
		return &e.Parent
	case "decision":
		return &e.Decision
	case "rationale":
		return &e.Rationale
	case "source":
		return &e.Source
	case "supersedes":
		return &e.Supersedes
	}
	return nil
}

func listOf(e *Entry, key string) *[]string {
	switch key {
	case "depends_on":
		return &e.DependsOn
	case "alternatives":
		return &e.Alternatives
	case "evidence":
		return &e.Evidence
	case "acl":
		return &e.ACL
	}
	return nil
}

// setEntryText sets the field of a key to a text. Keys of others stay in the file.
func setEntryText(e *Entry, key, v string) error {
	if field := textOf(e, key); field != nil {
		*field = v
		return nil
	}
	if field := listOf(e, key); field != nil {
		if v != "" {
			*field = []string{v}
		}
		return nil
	}
	switch key {
	case "timestamp":
		return entryTimeText(e, v)
	case "confidence":
		return entryConfidence(e, v)
	}
	return nil
}

// setEntryList is setEntryText for a list.
func setEntryList(e *Entry, key string, v []string) error {
	field := listOf(e, key)
	switch {
	case field != nil && len(v) > maxListed:
		return fmt.Errorf("%s has %d items", key, len(v))
	case field != nil && *field == nil && len(v) > 0:
		*field = v
	case field != nil:
		*field = append(*field, v...)
	case textOf(e, key) != nil || key == "timestamp" || key == "confidence":
		return fmt.Errorf("%s is not a text", key)
	}
	return nil
}

// setEntryKey is setEntryText for whatever YAML gives.
func setEntryKey(e *Entry, key string, v any) error {
	switch v := v.(type) {
	case string:
		return setEntryText(e, key, v)
	case []any:
		var list []string
		for _, x := range v {
			list = append(list, fmt.Sprint(x))
		}
		return setEntryList(e, key, list)
	case nil:
		if key == "confidence" {
			return entryConfidence(e, "")
		}
		return nil
	case map[string]any:
		if textOf(e, key) != nil {
			return fmt.Errorf("%s is not a text", key)
		}
	}
	if listOf(e, key) != nil {
		return fmt.Errorf("%s is not a list", key)
	}
	if key == "timestamp" {
		return entryTime(e, v)
	}
	return setEntryText(e, key, fmt.Sprint(v))
}

func entryConfidence(e *Entry, v string) error {
	n, err := strconv.ParseFloat(v, 64)
	if err != nil || n < 0 || n > 1 {
		return fmt.Errorf("confidence is not a number from 0 to 1")
	}
	e.Confidence = n
	return nil
}

func entryTime(e *Entry, v any) error {
	switch v := v.(type) {
	case nil:
		return nil
	case time.Time:
		e.Time = v.UTC()
		return nil
	case string:
		return entryTimeText(e, v)
	}
	return entryTimeText(e, fmt.Sprint(v))
}

func entryTimeText(e *Entry, v string) error {
	for _, layout := range [...]string{time.RFC3339Nano, "2006-01-02T15:04:05", "2006-01-02 15:04:05", "2006-01-02 15:04", time.DateOnly} {
		if t, err := time.Parse(layout, strings.TrimSpace(v)); err == nil {
			e.Time = t.UTC()
			return nil
		}
	}
	return fmt.Errorf("timestamp %.40q is not a time like 2026-02-15T10:00:00Z", v)
}
