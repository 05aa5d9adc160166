package setup

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// tomlPart is a table of a TOML file: its header's name and where its lines
// are.
type tomlPart struct {
	name  []string
	array bool
	start int // offset of the header's line
	body  int // offset of the line after the header
	end   int // offset after the table's last value, line end included
	keys  []tomlKey
}

// tomlKey is one "key = value" in a table.
type tomlKey struct {
	name     []string
	from, to int // the whole assignment
	value    int // offset of the value
}

func parseTOML(src []byte) (map[string]any, error) {
	var doc map[string]any
	if err := toml.Unmarshal(src, &doc); err != nil {
		var de *toml.DecodeError
		if errors.As(err, &de) {
			line, col := de.Position()
			return nil, fmt.Errorf("line %d, column %d: %s", line, col, strings.TrimPrefix(de.Error(), "toml: "))
		}
		return nil, err
	}
	if doc == nil {
		doc = map[string]any{}
	}
	return doc, nil
}

// tomlParts lists the tables of a file that parses; the first is the part
// before any header.
func tomlParts(src []byte) ([]tomlPart, error) {
	var p unstable.Parser
	p.Reset(src)
	parts := []tomlPart{{}}
	for p.NextExpression() {
		e := p.Expression()
		var name []string
		first, last := -1, 0
		for it := e.Key(); it.Next(); {
			n := it.Node()
			name = append(name, string(n.Data))
			if first < 0 {
				first = int(n.Raw.Offset)
			}
			last = int(n.Raw.Offset + n.Raw.Length)
		}
		if first < 0 {
			continue
		}
		switch e.Kind {
		case unstable.Table, unstable.ArrayTable:
			start := bytes.LastIndexByte(src[:first], '\n') + 1
			body := lineEnd(src, last)
			parts = append(parts, tomlPart{name: name, array: e.Kind == unstable.ArrayTable, start: start, body: body, end: body})
		case unstable.KeyValue:
			t := &parts[len(parts)-1]
			to := int(e.Raw.Offset + e.Raw.Length)
			eq := last + bytes.IndexByte(src[last:], '=') + 1
			for eq < len(src) && (src[eq] == ' ' || src[eq] == '\t') {
				eq++
			}
			t.keys = append(t.keys, tomlKey{name: name, from: first, to: to, value: eq})
			t.end = lineEnd(src, to)
		}
	}
	if err := p.Error(); err != nil {
		return nil, err
	}
	return parts, nil
}

// lineEnd is the offset after the line break that ends offset's line.
func lineEnd(src []byte, offset int) int {
	if i := bytes.IndexByte(src[offset:], '\n'); i >= 0 {
		return offset + i + 1
	}
	return len(src)
}

// setTOML returns src with the table path holding the members of val, which
// are strings, lists of strings, and objects of strings. A table that is there
// keeps what val does not have; else it is added at the end.
func setTOML(src []byte, path []string, val object) ([]byte, error) {
	before, err := parseTOML(src)
	if err != nil {
		return nil, err
	}
	eol := "\n"
	if i := bytes.IndexByte(src, '\n'); i > 0 && src[i-1] == '\r' {
		eol = "\r\n"
	}
	out, err := editTOML(src, path, val, eol)
	if err != nil {
		return nil, err
	}
	return out, verifyTOML(before, out, path, val)
}

func editTOML(src []byte, path []string, val object, eol string) ([]byte, error) {
	parts, err := tomlParts(src)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(parts, func(p tomlPart) bool { return slices.Equal(p.name, path) && !p.array })
	if i < 0 {
		doc, err := parseTOML(src)
		if err != nil {
			return nil, err
		}
		if _, there := lookup(doc, path); there {
			return nil, fmt.Errorf("%s is there, but not as a table of its own; write it as [%s], or edit it by hand", strings.Join(path, "."), tomlPath(path))
		}
		var b bytes.Buffer
		b.Write(src)
		if len(src) > 0 && src[len(src)-1] != '\n' {
			b.WriteString(eol)
		}
		if len(bytes.TrimSpace(src)) > 0 {
			b.WriteString(eol)
		}
		b.WriteString("[" + tomlPath(path) + "]" + eol)
		for _, m := range val {
			b.WriteString(tomlName(m.Key) + " = " + tomlValue(m.Val) + eol)
		}
		return b.Bytes(), nil
	}
	out := src
	// From the last key to the first, so that the offsets before stay good.
	var missing []string
	var tables object
	at := parts[i].end
	edits := map[int]member{}
	for _, m := range val {
		k := slices.IndexFunc(parts[i].keys, func(k tomlKey) bool { return len(k.name) == 1 && k.name[0] == m.Key })
		if k >= 0 {
			edits[k] = m
			continue
		}
		if sub, ok := m.Val.(object); ok {
			below := append(path[:len(path):len(path)], m.Key)
			if slices.ContainsFunc(parts, func(p tomlPart) bool { return slices.Equal(p.name, below) && !p.array }) {
				tables = append(tables, member{m.Key, sub}) // a table of its own
				continue
			}
			if slices.ContainsFunc(parts[i].keys, func(k tomlKey) bool { return len(k.name) > 1 && k.name[0] == m.Key }) {
				return nil, fmt.Errorf("%s is written with dots; write it as %s = { … }, or remove it", strings.Join(below, "."), m.Key)
			}
		}
		missing = append(missing, tomlName(m.Key)+" = "+tomlValue(m.Val)+eol)
	}
	if len(missing) > 0 {
		text := strings.Join(missing, "")
		if at > 0 && out[at-1] != '\n' {
			text = eol + text
		}
		out = splice(out, at, at, text)
	}
	for k := len(parts[i].keys) - 1; k >= 0; k-- {
		if m, ok := edits[k]; ok {
			key := parts[i].keys[k]
			if !sameTOML(src[key.from:key.to], m) {
				out = splice(out, key.value, key.to, tomlValue(m.Val))
			}
		}
	}
	for _, m := range tables {
		if out, err = editTOML(out, append(path[:len(path):len(path)], m.Key), m.Val.(object), eol); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func sameTOML(assignment []byte, m member) bool {
	var a, b map[string]any
	return toml.Unmarshal(assignment, &a) == nil &&
		toml.Unmarshal([]byte(tomlName(m.Key)+" = "+tomlValue(m.Val)), &b) == nil && reflect.DeepEqual(a, b)
}

// verifyTOML checks that nothing but the table path differs from before, and
// that it says what it should. An edit that fails this is not written.
func verifyTOML(before map[string]any, out []byte, path []string, val object) error {
	after, err := parseTOML(out)
	if err != nil {
		return fmt.Errorf("the edit would break the file: %w", err)
	}
	got, _ := lookup(after, path)
	table, _ := got.(map[string]any)
	for _, m := range val {
		var want map[string]any
		err := toml.Unmarshal([]byte(tomlName(m.Key)+" = "+tomlValue(m.Val)), &want)
		if err != nil || !covers(table[m.Key], want[m.Key]) {
			return fmt.Errorf("the edit would not set %s.%s", strings.Join(path, "."), m.Key)
		}
	}
	forget(before, path)
	forget(after, path)
	if !reflect.DeepEqual(before, after) {
		return errors.New("the edit would change something else in the file")
	}
	return nil
}

// covers tells whether got is want, or a table that has all of want.
func covers(got, want any) bool {
	g, okG := got.(map[string]any)
	w, okW := want.(map[string]any)
	if !okG || !okW {
		return reflect.DeepEqual(got, want)
	}
	for k, v := range w {
		if !covers(g[k], v) {
			return false
		}
	}
	return true
}

// lookup finds the value at path.
func lookup(doc map[string]any, path []string) (any, bool) {
	var v any = doc
	for _, name := range path {
		m, ok := v.(map[string]any)
		if !ok {
			return nil, v != nil
		}
		if v, ok = m[name]; !ok {
			return nil, false
		}
	}
	return v, true
}

// forget removes the value at path, and the tables above it that become empty.
func forget(doc map[string]any, path []string) {
	if len(path) == 1 {
		delete(doc, path[0])
		return
	}
	if sub, ok := doc[path[0]].(map[string]any); ok {
		forget(sub, path[1:])
		if len(sub) == 0 {
			delete(doc, path[0])
		}
	}
}

// removeTOML returns src without the table path and the tables below it. The
// comments before the next header belong to that one and stay.
func removeTOML(src []byte, path []string) (out []byte, found bool, err error) {
	before, err := parseTOML(src)
	if err != nil {
		return nil, false, err
	}
	if _, there := lookup(before, path); !there {
		return src, false, nil
	}
	parts, err := tomlParts(src)
	if err != nil {
		return nil, false, err
	}
	out = src
	for _, p := range slices.Backward(parts) {
		if len(p.name) < len(path) || !slices.Equal(p.name[:len(path)], path) {
			continue
		}
		from, to := p.start, p.end
		// One blank line goes with it: the one before it at the end of the
		// file, where it was put, else the one after it.
		rest := out[to:]
		switch {
		case len(rest) == 0 && bytes.HasSuffix(out[:from], []byte("\r\n\r\n")):
			from -= 2
		case len(rest) == 0 && bytes.HasSuffix(out[:from], []byte("\n\n")):
			from--
		case bytes.HasPrefix(rest, []byte("\n")):
			to++
		case bytes.HasPrefix(rest, []byte("\r\n")):
			to += 2
		}
		out = splice(out, from, to, "")
	}
	after, err := parseTOML(out)
	if err != nil {
		return nil, false, fmt.Errorf("the edit would break the file: %w", err)
	}
	if _, still := lookup(after, path); still {
		return nil, false, fmt.Errorf("%s is there, but not as a table of its own; remove it by hand", strings.Join(path, "."))
	}
	forget(before, path)
	pruneLike(before, after, path)
	if !reflect.DeepEqual(before, after) {
		return nil, false, errors.New("the edit would change something else in the file")
	}
	return out, true, nil
}

// pruneLike drops empty tables above path from both.
func pruneLike(a, b map[string]any, path []string) {
	missing := append(path[:len(path)-1:len(path)-1], "\x00")
	forget(a, missing)
	forget(b, missing)
}

func tomlPath(path []string) string {
	parts := make([]string, len(path))
	for i, p := range path {
		parts[i] = tomlName(p)
	}
	return strings.Join(parts, ".")
}

func tomlName(name string) string {
	if name != "" && strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") == "" {
		return name
	}
	return tomlString(name)
}

// tomlString writes a basic string. JSON's escapes are TOML's too, but for the
// slash and surrogate pairs, which encoding/json does not write.
func tomlString(s string) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		return `""`
	}
	return strings.ReplaceAll(strings.TrimSuffix(b.String(), "\n"), "\x7f", `\u007f`)
}

func tomlValue(val any) string {
	switch v := val.(type) {
	case string:
		return tomlString(v)
	case bool:
		return fmt.Sprint(v)
	case []string:
		items := make([]string, len(v))
		for i, s := range v {
			items[i] = tomlString(s)
		}
		return "[" + strings.Join(items, ", ") + "]"
	case object:
		items := make([]string, len(v))
		for i, m := range v {
			items[i] = tomlName(m.Key) + " = " + tomlValue(m.Val)
		}
		return "{ " + strings.Join(items, ", ") + " }"
	}
	return `""`
}
