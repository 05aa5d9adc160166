package mdfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"sync"

	"github.com/goccy/go-yaml"
)

// ErrFrontMatter says that the front matter is not a YAML mapping, or is
// written in a way that a single key cannot be set without touching others.
var ErrFrontMatter = errors.New("bad front matter")

// maxFrontMatter bounds what is given to the YAML parser: one file put by hand
// must not hold up everything that reads it.
const maxFrontMatter = 16 << 10

// Map decodes the front matter; nil without one. The error names the line
// within the file.
func (f *File) Map() (map[string]any, error) {
	if !f.has {
		return nil, nil
	}
	m, err := decode(f.FrontMatter())
	if err != nil {
		return nil, fmt.Errorf("read front matter: %w: %s", ErrFrontMatter, flat(err))
	}
	return m, nil
}

func decode(b []byte) (m map[string]any, err error) {
	defer func() { // the parser reads foreign bytes: its panic is this file's fault, not the program's
		if r := recover(); r != nil {
			m, err = nil, fmt.Errorf("the YAML parser gave up: %v", r)
		}
	}()
	if err := CheckYAML(b, maxFrontMatter); err != nil {
		return nil, fmt.Errorf("%w; move the rest below it", err)
	}
	if len(bytes.TrimSpace(b)) == 0 {
		return map[string]any{}, nil
	}
	var v any
	if err := yaml.Unmarshal(b, &v); err != nil {
		return nil, err
	}
	switch v := v.(type) {
	case nil:
		return map[string]any{}, nil
	case map[string]any:
		return v, nil
	default:
		return nil, fmt.Errorf("it is a %T, not a list of keys", v)
	}
}

// flat makes one line of the YAML library's picture of an error, shifting its
// [line:column] by the opening fence.
func flat(err error) string {
	s := strings.TrimSpace(err.Error())
	if i := strings.IndexByte(s, '\n'); i >= 0 {
		s = s[:i]
	}
	var ln, col int
	if n, _ := fmt.Sscanf(s, "[%d:%d]", &ln, &col); n == 2 {
		if i := strings.IndexByte(s, ']'); i >= 0 {
			s = fmt.Sprintf("line %d, column %d:%s", ln+1, col, s[i+1:])
		}
	}
	return s
}

// entry is one top-level key: its line, its value, and the lines that go on.
type entry struct {
	key      string
	from, to int // whole entry, line ends included
	val      int // after "key:"
	valTo    int // end of the first line without comment and line end
	comment  int // start of a comment on the first line with the space before it; -1 = none
	lineEnd  int // end of the first line without line end
}

var keyLine = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(?:"((?:[^"\\]|\\.)*)"|'((?:[^']|'')*)'|([^\s#"'\[\]{}&*!|>%@,?:-][^:#]*?|[?:-][^\s:#][^:#]*?))[ \t]*:(?:[ \t]|$)`)
})

func (f *File) entries() []entry {
	var out []entry
	if !f.has {
		return nil
	}
	block := f.src[:f.fmTo]
	for l := range lines(block, f.fm) {
		text := block[l.start:l.end]
		if len(text) > 0 && text[0] != ' ' && text[0] != '\t' {
			if m := keyLine().FindSubmatchIndex(text); m != nil {
				e := entry{from: l.start, to: l.next, val: l.start + m[1], lineEnd: l.end, comment: -1}
				if e.val > l.start && (text[m[1]-1] == ' ' || text[m[1]-1] == '\t') {
					e.val--
				}
				switch {
				case m[2] >= 0:
					if json.Unmarshal(text[m[2]-1:m[3]+1], &e.key) != nil {
						e.key = string(text[m[2]:m[3]])
					}
				case m[4] >= 0:
					e.key = strings.ReplaceAll(string(text[m[4]:m[5]]), "''", "'")
				default:
					e.key = string(text[m[6]:m[7]])
				}
				e.valTo = l.end
				if c := commentAt(block[e.val:l.end]); c >= 0 {
					e.comment = e.val + c
					e.valTo = e.comment
				}
				out = append(out, e)
				continue
			}
		}
		if len(out) == 0 || len(trimRight(text)) == 0 {
			continue
		}
		switch c := text[0]; {
		case c == ' ', c == '\t', c == '-' && (len(text) == 1 || text[1] == ' '):
			out[len(out)-1].to = l.next // goes on; blank lines between are taken in
		}
	}
	return out
}

// commentAt finds the space before a comment in the rest of a key's line.
func commentAt(v []byte) int {
	quote := byte(0)
	t := bytes.TrimLeft(v, " \t")
	quoted := len(t) > 0 && strings.IndexByte(`"'[{`, t[0]) >= 0
	for i := 0; i < len(v); i++ {
		c := v[i]
		switch {
		case quote == '"' && c == '\\':
			i++
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case quoted && (c == '"' || c == '\''):
			quote = c
		case c == '#' && (i == 0 || v[i-1] == ' ' || v[i-1] == '\t'):
			for i > 0 && (v[i-1] == ' ' || v[i-1] == '\t') {
				i--
			}
			return i
		}
	}
	return -1
}

// Keys are the top-level keys in their order.
func (f *File) Keys() []string {
	var keys []string
	for _, e := range f.entries() {
		keys = append(keys, e.key)
	}
	return keys
}

// RawEntry is the text of one key with its value and following lines, as it stands.
func (f *File) RawEntry(key string) (string, bool) {
	for _, e := range f.entries() {
		if e.key == key {
			return string(f.src[e.from:e.to]), true
		}
	}
	return "", false
}

// Value is the decoded value of one key as text; "" when it is absent, not a
// scalar, or the front matter cannot be read.
func (f *File) Value(key string) string {
	m, err := f.Map()
	if err != nil {
		return ""
	}
	switch v := m[key].(type) {
	case nil, map[string]any, []any:
		return ""
	case string:
		return v
	default:
		return fmt.Sprint(v)
	}
}

// SetString sets one key to a string, written plain where YAML allows it.
func (f *File) SetString(key, value string) (*File, error) {
	return f.setRaw(key, scalar(value), value)
}

// SetList sets one key to a list of strings in flow form.
func (f *File) SetList(key string, values []string) (*File, error) {
	parts := make([]string, len(values))
	want := make([]any, len(values))
	for i, v := range values {
		parts[i], want[i] = scalar(v), v
	}
	return f.setRaw(key, "["+strings.Join(parts, ", ")+"]", want)
}

// SetEntry takes over a key's raw text from another file's RawEntry.
func (f *File) SetEntry(key, raw string) (*File, error) {
	m, err := decode([]byte(raw))
	if err != nil {
		return nil, fmt.Errorf("set %s: %w: %s", key, ErrFrontMatter, flat(err))
	}
	raw = f.WithEOL(strings.TrimRight(raw, "\r\n")) + f.EOL()
	for _, e := range f.entries() {
		if e.key == key {
			return f.checked(key, m[key], e.from, e.to, raw)
		}
	}
	return f.insert(key, raw, m[key])
}

func (f *File) setRaw(key, text string, want any) (*File, error) {
	for _, e := range f.entries() {
		if e.key != key {
			continue
		}
		// Keep a comment behind the value; drop the lines the old value went on over.
		new := " " + text
		if e.comment >= 0 {
			new += string(f.src[e.comment:e.lineEnd])
		}
		if e.to > e.lineEnd { // the line end stays what it was
			new += f.EOL()
			if bytes.HasPrefix(f.src[e.lineEnd:], []byte("\r\n")) {
				new = strings.TrimSuffix(new, f.EOL()) + "\r\n"
			} else {
				new = strings.TrimSuffix(new, f.EOL()) + "\n"
			}
		}
		return f.checked(key, want, e.val, e.to, new)
	}
	return f.insert(key, scalar(key)+": "+text+f.EOL(), want)
}

func (f *File) insert(key, entry string, want any) (*File, error) {
	if !f.has {
		nl := f.EOL()
		text := "---" + nl + entry + "---" + nl
		if len(f.Body()) > 0 {
			text += nl
		}
		return f.checked(key, want, f.start, f.start, text)
	}
	return f.checked(key, want, f.fmTo, f.fmTo, entry)
}

// checked makes the edit and then proves by decoding both sides that it set the
// key and changed no other: text surgery on YAML is only safe when checked.
func (f *File) checked(key string, want any, from, to int, text string) (*File, error) {
	before, err := f.Map()
	if err != nil {
		return nil, fmt.Errorf("set %s: %w", key, err)
	}
	g, err := f.Replace(from, to, []byte(text))
	if err != nil {
		return nil, fmt.Errorf("set %s: %w", key, err)
	}
	after, err := g.Map()
	if err == nil && !g.has {
		err = fmt.Errorf("%w: it ends early", ErrFrontMatter)
	}
	if err != nil {
		return nil, fmt.Errorf("set %s: the front matter is written in a way that cannot be edited by key: %w", key, err)
	}
	got, ok := after[key]
	if !ok || fmt.Sprint(got) != fmt.Sprint(want) || (f.has && !bytes.Equal(f.Body(), g.Body())) {
		return nil, fmt.Errorf("set %s: %w: it is written in a way that cannot be edited by key; edit it by hand", key, ErrFrontMatter)
	}
	delete(after, key)
	rest := make(map[string]any, len(before))
	for k, v := range before {
		if k != key {
			rest[k] = v
		}
	}
	if !reflect.DeepEqual(rest, after) {
		return nil, fmt.Errorf("set %s: %w: another key would change with it; edit it by hand", key, ErrFrontMatter)
	}
	return g, nil
}

var (
	plainScalar = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_./ -]*$`) })
	notString   = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?i)^(true|false|yes|no|on|off|y|n|null|nan|inf|[0-9][0-9_]*(\.[0-9_]*)?(e[0-9+-]*)?|0[xob][0-9a-f_]*|[0-9_.-]*[0-9])$`)
	})
	dateLike = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[0-9]{4}-[0-9]{2}-[0-9]{2}$`) })
)

// scalar writes s plain where that reads back as the same string, else quoted
// as JSON, which YAML reads too.
func scalar(s string) string {
	if dateLike().MatchString(s) || plainScalar().MatchString(s) && !notString().MatchString(s) && !strings.HasSuffix(s, " ") {
		return s
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s) // a string always encodes
	return strings.TrimSuffix(b.String(), "\n")
}
