package setup

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/tailscale/hujson"
)

// object is a JSON object whose members keep their order.
type object []member

type member struct {
	Key string
	Val any // string, bool, int, []string, []any or object
}

// jsonFile is the text of a JSON or JSONC file, and what is needed to add to it
// in its own style. Edits are made in the text itself: what an edit does not
// concern keeps every byte.
type jsonFile struct {
	src  []byte // without byte order mark
	root hujson.Value
	unit string // one step of indentation
	eol  string
}

var errNotObject = errors.New("not an object: make it {}, or take it out, and try again")

func parseJSONFile(src []byte) (*jsonFile, error) {
	root, err := hujson.Parse(src)
	if err != nil {
		return nil, errors.New(strings.TrimPrefix(err.Error(), "hujson: "))
	}
	f := &jsonFile{src: src, root: root, unit: "  ", eol: "\n"}
	if i := bytes.IndexByte(src, '\n'); i > 0 && src[i-1] == '\r' {
		f.eol = "\r\n"
	}
	obj, ok := root.Value.(*hujson.Object)
	if !ok {
		line, col := lineCol(src, root.StartOffset)
		return nil, fmt.Errorf("line %d, column %d: the file's value is %w", line, col, errNotObject)
	}
	if len(obj.Members) > 0 {
		if in, ok := f.indentAt(obj.Members[0].Name.StartOffset); ok && in != "" {
			f.unit = in
		}
	}
	return f, nil
}

// lineCol is the place of an offset, both from 1, the column in bytes.
func lineCol(src []byte, offset int) (line, col int) {
	before := src[:min(offset, len(src))]
	return 1 + bytes.Count(before, []byte("\n")), len(before) - bytes.LastIndexByte(before, '\n')
}

// indentAt is the white space from the beginning of the line to offset; not ok
// when something else stands there.
func (f *jsonFile) indentAt(offset int) (string, bool) {
	start := bytes.LastIndexByte(f.src[:offset], '\n') + 1
	in := string(f.src[start:offset])
	return in, strings.Trim(in, " \t") == "" && start > 0
}

// find returns the member at the end of path. Of equal names the last counts,
// as it does for the programs that read the file. depth is how many names of
// path there are; parent is the object that the next one would be in.
func (f *jsonFile) find(path []string) (m *hujson.ObjectMember, parent *hujson.Value, depth int, err error) {
	v := &f.root
	for i, name := range path {
		obj, ok := v.Value.(*hujson.Object)
		if !ok {
			line, col := lineCol(f.src, v.StartOffset)
			return nil, nil, i, fmt.Errorf("line %d, column %d: %q is %w", line, col, strings.Join(path[:i], "."), errNotObject)
		}
		m = nil
		for j := range obj.Members {
			if lit, ok := obj.Members[j].Name.Value.(hujson.Literal); ok && lit.String() == name {
				m = &obj.Members[j]
			}
		}
		if m == nil {
			return nil, v, i, nil
		}
		parent, v = v, &m.Value
	}
	return m, parent, len(path), nil
}

// get returns the value at path as encoding/json has it; not ok when there is
// none.
func (f *jsonFile) get(path []string) (any, bool, error) {
	m, _, depth, err := f.find(path)
	if err != nil || depth < len(path) {
		return nil, false, err
	}
	v := &f.root
	if m != nil {
		v = &m.Value
	}
	out, err := decode(v)
	if err != nil {
		return nil, false, fmt.Errorf("read %q: %w", strings.Join(path, "."), err)
	}
	return out, true, nil
}

// decode gives a value as encoding/json has it, numbers as they are written.
func decode(v *hujson.Value) (any, error) {
	std := v.Clone()
	std.Standardize()
	std.BeforeExtra, std.AfterExtra = nil, nil
	dec := json.NewDecoder(bytes.NewReader(std.Pack()))
	dec.UseNumber()
	var out any
	err := dec.Decode(&out)
	return out, err
}

// setJSON returns src with val at path. Objects that are missing on the way are
// made; created is how many. A value that is there is replaced, an object is
// merged member by member: members that val does not have stay.
func setJSON(src []byte, path []string, val any) (out []byte, created int, err error) {
	f, err := parseJSONFile(src)
	if err != nil {
		return nil, 0, err
	}
	m, parent, depth, err := f.find(path)
	if err != nil {
		return nil, 0, err
	}
	if depth < len(path) {
		for i := len(path) - 1; i > depth; i-- {
			val = object{{path[i], val}}
		}
		return f.insert(parent, path[depth], val), len(path) - 1 - depth, nil
	}
	if obj, ok := val.(object); ok {
		if _, isObj := m.Value.Value.(*hujson.Object); isObj {
			out = src
			for _, sub := range obj {
				if out, _, err = setJSON(out, append(path[:len(path):len(path)], sub.Key), sub.Val); err != nil {
					return nil, 0, err
				}
			}
			return out, 0, nil
		}
	}
	if sameJSON(&m.Value, val) {
		return src, 0, nil
	}
	in, ok := f.indentAt(m.Name.StartOffset)
	text := render(val, style{unit: f.unit, eol: f.eol, colon: ": ", comma: ", ", compact: !ok}, in)
	return splice(src, m.Value.StartOffset, m.Value.EndOffset, text), 0, nil
}

func sameJSON(v *hujson.Value, val any) bool {
	a, err := decode(v)
	if err != nil {
		return false
	}
	var b any
	dec := json.NewDecoder(strings.NewReader(render(val, style{compact: true, colon: ":", comma: ","}, "")))
	dec.UseNumber()
	return dec.Decode(&b) == nil && reflect.DeepEqual(a, b)
}

func splice(src []byte, from, to int, text string) []byte {
	out := make([]byte, 0, len(src)+len(text))
	out = append(out, src[:from]...)
	out = append(out, text...)
	return append(out, src[to:]...)
}

// part is a member of an object or an element of an array, as it stands in the
// text.
type part struct {
	before     hujson.Extra // what stands before it
	start, end int
	after      hujson.Extra // what stands before its comma; nil for a last one without comma
}

// parts are the members or elements of v, which is an object or an array.
func parts(v *hujson.Value) []part {
	var out []part
	switch c := v.Value.(type) {
	case *hujson.Object:
		for _, m := range c.Members {
			out = append(out, part{m.Name.BeforeExtra, m.Name.StartOffset, m.Value.EndOffset, m.Value.AfterExtra})
		}
	case *hujson.Array:
		for _, e := range c.Elements {
			out = append(out, part{e.BeforeExtra, e.StartOffset, e.EndOffset, e.AfterExtra})
		}
	}
	return out
}

// insert adds a member (or with an empty name an element) at the end of v, in
// v's own layout.
func (f *jsonFile) insert(v *hujson.Value, name string, val any) []byte {
	have := parts(v)
	closing := v.EndOffset - 1
	st, in := f.layout(v)
	text := render(val, st, in)
	if name != "" {
		text = quote(name) + st.colon + text
	}
	if len(have) == 0 {
		inner := f.src[v.StartOffset+1 : closing]
		if st.compact {
			return splice(f.src, v.StartOffset+1, closing, text)
		}
		if len(bytes.TrimSpace(inner)) == 0 {
			outer := strings.TrimSuffix(in, f.unit)
			return splice(f.src, v.StartOffset+1, closing, f.eol+in+text+f.eol+outer)
		}
		at := v.StartOffset + 1 + len(bytes.TrimRight(inner, " \t\r\n"))
		return splice(f.src, at, at, f.eol+in+text)
	}
	last := have[len(have)-1]
	from, comma := last.end, true
	if last.after != nil { // a trailing comma: JSONC allows it, and it stays
		from, comma = last.end+len(last.after)+1, false
	}
	at := from + len(bytes.TrimRight(f.src[from:closing], " \t\r\n"))
	sep := f.eol + in
	if st.compact {
		sep = strings.TrimPrefix(st.comma, ",")
	}
	if !comma {
		return splice(f.src, at, at, sep+text+",")
	}
	if at == from {
		return splice(f.src, at, at, ","+sep+text)
	}
	out := splice(f.src, at, at, sep+text)
	return splice(out, from, from, ",")
}

// style is how an object is laid out.
type style struct {
	unit, eol    string
	colon, comma string // with the space after them
	compact      bool   // all on one line
}

// layout finds the style of v, an object or an array, and the indentation of
// what is in it.
func (f *jsonFile) layout(v *hujson.Value) (style, string) {
	st := style{unit: f.unit, eol: f.eol, colon: ": ", comma: ", "}
	have := parts(v)
	body := f.src[v.StartOffset:v.EndOffset]
	outer, _ := f.lineIndent(v.StartOffset)
	if len(have) == 0 {
		// An empty one on one line is opened up, unless the whole file is on one
		// line.
		st.compact = bytes.IndexByte(f.src, '\n') < 0 && len(f.root.Value.(*hujson.Object).Members) > 0
		if st.compact {
			st.colon, st.comma = f.spacing(&f.root)
		}
		return st, outer + f.unit
	}
	if in, ok := f.indentAt(have[0].start); ok {
		return st, in
	}
	if bytes.Contains(body, []byte("//")) || bytes.Contains(body, []byte("\n")) {
		return st, outer + f.unit
	}
	st.compact = true
	st.colon, st.comma = f.spacing(v)
	return st, ""
}

// spacing is how the colons and commas of v are written, with the space after
// them. An array says it by its first element, if that is an object.
func (f *jsonFile) spacing(v *hujson.Value) (colon, comma string) {
	colon, comma = ":", ","
	have := parts(v)
	switch c := v.Value.(type) {
	case *hujson.Object:
		if len(c.Members[0].Value.BeforeExtra) > 0 {
			colon = ": "
		}
	case *hujson.Array:
		if o, ok := c.Elements[0].Value.(*hujson.Object); ok && len(o.Members) > 0 {
			colon, comma = f.spacing(&c.Elements[0])
		}
	}
	if len(have) > 1 && len(have[1].before) > 0 || len(have) == 1 && colon == ": " {
		comma = ", "
	}
	return colon, comma
}

// lineIndent is the white space at the beginning of offset's line.
func (f *jsonFile) lineIndent(offset int) (string, bool) {
	start := bytes.LastIndexByte(f.src[:offset], '\n') + 1
	line := f.src[start:offset]
	n := len(line) - len(bytes.TrimLeft(line, " \t"))
	return string(line[:n]), n == len(line)
}

func quote(s string) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil { // cannot be: a string always encodes
		return `""`
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// render writes val; in is the indentation of the line it begins on.
func render(val any, st style, in string) string {
	var items []string
	open, shut := "[", "]"
	switch v := val.(type) {
	case string:
		return quote(v)
	case bool:
		return fmt.Sprint(v)
	case int:
		return strconv.Itoa(v)
	case []string:
		for _, s := range v {
			items = append(items, quote(s))
		}
	case []any:
		for _, e := range v {
			items = append(items, render(e, st, in+st.unit))
		}
	case object:
		open, shut = "{", "}"
		for _, m := range v {
			items = append(items, quote(m.Key)+st.colon+render(m.Val, st, in+st.unit))
		}
	}
	if len(items) == 0 {
		return open + shut
	}
	if st.compact {
		return open + strings.Join(items, st.comma) + shut
	}
	inner := st.eol + in + st.unit
	return open + inner + strings.Join(items, ","+inner) + st.eol + in + shut
}

// removeJSON returns src without the member at path. Objects on the way that
// become empty are removed too, at most empties of them, counted from the
// inside. found is false when there is no such member.
func removeJSON(src []byte, path []string, empties int) (out []byte, found bool, err error) {
	f, err := parseJSONFile(src)
	if err != nil {
		return nil, false, err
	}
	m, parent, depth, err := f.find(path)
	if err != nil || depth < len(path) {
		return src, false, err
	}
	obj := parent.Value.(*hujson.Object)
	for i := range obj.Members {
		if &obj.Members[i] == m {
			out = f.remove(parent, i)
			break
		}
	}
	// The same name may stand there again: it would count now.
	if again, more, err := removeJSON(out, path, empties); err != nil || more {
		return again, true, err
	}
	if empties <= 0 || len(path) < 2 {
		return out, true, nil
	}
	if g, err := parseJSONFile(out); err != nil {
		return nil, false, err
	} else if m, _, depth, err := g.find(path[:len(path)-1]); err != nil || depth < len(path)-1 || !emptyObject(g, m) {
		return out, true, err
	}
	out, _, err = removeJSON(out, path[:len(path)-1], empties-1)
	return out, true, err
}

// emptyObject reports whether nothing is left of an object or array, not even a
// comment.
func emptyObject(f *jsonFile, m *hujson.ObjectMember) bool {
	switch m.Value.Value.(type) {
	case *hujson.Object, *hujson.Array:
	default:
		return false
	}
	return len(parts(&m.Value)) == 0 && len(bytes.TrimSpace(f.src[m.Value.StartOffset+1:m.Value.EndOffset-1])) == 0
}

// remove takes one member or element out of v, together with the white space
// before it and one comma. Comments stay.
func (f *jsonFile) remove(v *hujson.Value, i int) []byte {
	have := parts(v)
	m := have[i]
	src := f.src
	before := bytes.TrimRight(m.before, " \t\r\n")
	from := m.start - len(m.before) + len(before)
	to := m.end
	hasComma := i < len(have)-1 || m.after != nil
	keep := ""
	if line := before[bytes.LastIndexByte(before, '\n')+1:]; bytes.Contains(line, []byte("//")) {
		keep = f.eol // a line comment must not swallow what follows
		rest := src[to:]
		if hasComma {
			rest = splice(rest, len(m.after), len(m.after)+1, "")
		}
		if rest = bytes.TrimLeft(rest, " \t\r"); len(rest) > 0 && rest[0] == '\n' {
			keep = ""
		}
	}
	if hasComma { // take the comma after it, and leave what is between
		comma := to + len(m.after)
		src = splice(src, comma, comma+1, "")
	}
	src = splice(src, from, to, keep)
	if !hasComma && i > 0 { // the last one: the comma before it goes
		prev := have[i-1]
		comma := prev.end + len(prev.after)
		src = splice(src, comma, comma+1, "")
	}
	if len(have) == 1 {
		closing := v.EndOffset - 1 - (len(f.src) - len(src))
		if inner := src[v.StartOffset+1 : closing]; len(bytes.TrimSpace(inner)) == 0 {
			src = splice(src, v.StartOffset+1, closing, "")
		}
	}
	return src
}
