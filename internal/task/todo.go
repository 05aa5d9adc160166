package task

import (
	"bytes"
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"reprise/internal/mdfile"
)

// Todo is TODO.md taken apart. It is not safe for use by several goroutines.
//
// A task is a heading with a number, "### 12. Title" of any level, and what follows
// it up to the next heading of the same or a higher level. Its fields are the items
// of the list under the heading ("- **Status**: [PLANNED]"); what is no field is the
// person's own. A heading without a number that has a field Status, Priority,
// Effort or Language is a new task that has none yet.
type Todo struct {
	file     *mdfile.File
	Sections []*Section
	edits    []*edit
	found    map[int]*Section // by number; nil where it is to be made anew
	prefer   map[int]*Section // of several of a number, the one that has it by right
}

// Section is one task's part of TODO.md.
type Section struct {
	Number int // 0 = a person wrote it and it has none yet
	Title  string
	Level  int // of its heading, 1–6
	Line   int // of its heading, from 1
	Fields []Field

	head, text, end int // heading, what follows it, the end
	deep            int // end of what comes before a heading within it
	after           int // where a further field goes
	bullet          string
	renamed         *edit
	added           *added // nil for a section of the file
}

// Field is one line of a task's list.
type Field struct {
	Name  string // as it is known, "status", or as it stands in lower case
	Value string
	Line  int

	from, to int   // bytes of the value, or of nothing where the line is to be written
	pending  *edit // of this field, when there is one
}

// edit puts text in the place of some bytes.
type edit struct {
	from, to int
	text     string
	line     bool // it adds a field's line
	section  bool // it adds a section
}

// The fields that the program knows, in the order in which it writes them, with
// how they are spelt in TODO.md.
var fieldNames = []struct{ key, shown string }{
	{"effort", "Effort"}, {"status", "Status"}, {"priority", "Priority"}, {"language", "Language"},
	{"depends", "Depends on"}, {"started", "Started"}, {"completed", "Completed"}, {"abandoned", "Abandoned"},
	{"blocked", "Blocked by"}, {"research", "Research"}, {"plan", "Plan"}, {"summary", "Summary"},
}

var fieldAliases = map[string]string{
	"depends on": "depends", "dependencies": "depends", "dependency": "depends", "depend on": "depends", "requires": "depends",
	"blocked by": "blocked", "blocker": "blocked", "blocked on": "blocked", "lang": "language", "prio": "priority",
	"state": "status", "estimate": "effort", "estimated effort": "effort", "done": "completed", "finished": "completed",
	"report": "research", "reports": "research",
}

var patterns = sync.OnceValue(func() (p struct{ heading, field *regexp.Regexp }) {
	p.heading = regexp.MustCompile(`^(?:\[[ xX]\]\s*)?(?:[Tt]ask\s+)?#?(\d{1,9})(?:[.:)]|\s+[-–—])(?:\s+(.*))?$`)
	p.field = regexp.MustCompile(`^([ \t]{0,3}[-*+][ \t]+)(?:\[[ xX]\][ \t]+)?(?:\*\*|__)?([A-Za-z][A-Za-z ]{0,30}?)(?:\*\*|__)?[ \t]*:(?:\*\*|__)?[ \t]*(.*?)[ \t]*$`)
	return p
})

// ParseTodo takes the text of TODO.md apart. Any bytes of text will do; the error
// is [mdfile.ErrNotText].
func ParseTodo(data []byte) (*Todo, error) {
	f, err := mdfile.Parse(data)
	if err != nil {
		return nil, err
	}
	t := &Todo{file: f}
	all := f.Sections()
	text := string(data) // of which fields and titles are parts
	for i, s := range all {
		if s.Level == 0 {
			continue
		}
		sec := &Section{Title: s.Heading, Level: s.Level, Line: s.Line, head: s.Start, text: s.Text, deep: s.End, end: sectionEnd(all, i, len(data))}
		if n, title := numbered(s.Heading); n > 0 {
			sec.Number, sec.Title = n, title
		}
		sec.readFields(text, lineEnd(f))
		if sec.Number > 0 || sec.isNew() {
			t.Sections = append(t.Sections, sec)
		}
	}
	t.within()
	return t, nil
}

// sectionEnd is where the i-th section ends with all that is under its heading: at the
// next heading of its level or above, else at end.
func sectionEnd(all []mdfile.Section, i, end int) int {
	for _, later := range all[i+1:] {
		if later.Level <= all[i].Level {
			return later.Start
		}
	}
	return end
}

// numbered takes the number off a heading; 0 where it has none. "12. Title" is found by
// hand, for a long list has many of them.
func numbered(text string) (int, string) {
	if number, title, ok := strings.Cut(text, ". "); ok && len(number) <= 9 && number != "" && strings.Trim(number, "0123456789") == "" && title != "" && title[0] != ' ' && title[0] != '\t' {
		n, _ := strconv.Atoi(number)
		return n, title
	}
	m := patterns().heading.FindStringSubmatch(text)
	if m == nil {
		return 0, ""
	}
	n, _ := strconv.Atoi(m[1])
	return n, m[2]
}

// within leaves out headings inside a task's section: they are parts of it, even
// where they begin with a number. A heading without fields is a task only where it
// has the level of those with fields; of the third where none has any.
func (t *Todo) within() {
	end, level := 0, 3
	if i := slices.IndexFunc(t.Sections, func(s *Section) bool { return len(s.Fields) > 0 }); i >= 0 {
		level = t.Sections[i].Level
	}
	t.Sections = slices.DeleteFunc(t.Sections, func(s *Section) bool {
		if s.head < end {
			return true
		}
		if len(s.Fields) == 0 && s.Level != level {
			return true // "## 1. Overview"
		}
		end = s.end
		return false
	})
}

func (s *Section) isNew() bool {
	return slices.ContainsFunc(s.Fields, func(f Field) bool {
		switch f.Name {
		case "status", "priority", "effort", "language":
			return true
		}
		return false
	})
}

// readFields reads the list under the heading. It ends where something else than an
// item, its continuation or a blank line stands.
func (s *Section) readFields(src string, nl byte) {
	s.after = s.text
	line := s.Line + strings.Count(src[s.head:s.text], string(nl))
	apart := false // there was a blank line behind a field: a list of something else may begin
	for at := s.text; at < s.deep; {
		stop := at + strings.IndexByte(src[at:s.deep], nl) + 1
		if stop == at {
			stop = s.deep
		}
		text := strings.TrimRight(src[at:stop], "\r\n")
		m, found := fieldAt(text)
		name := ""
		if found {
			name = fieldName(text[m[4]:m[5]])
		}
		switch {
		case apart && strings.TrimSpace(text) != "" && (!found || fieldRank(name) < 0):
			return
		case found:
			if s.Fields == nil {
				s.Fields = make([]Field, 0, 4)
			}
			s.Fields = append(s.Fields, Field{Name: name, Value: text[m[6]:m[7]], Line: line, from: at + m[6], to: at + m[7]})
			s.after, s.bullet = stop, text[m[2]:m[3]]
		case strings.TrimSpace(text) == "":
			apart = len(s.Fields) > 0
		case isItem(text), len(s.Fields) > 0 && indented(text):
			s.after = stop
		default:
			return
		}
		at = stop
		line++
	}
}

// fieldName is a field's name as it is known; of another one, its own in lower case.
func fieldName(text string) string {
	for _, f := range fieldNames {
		if f.shown == text {
			return f.key
		}
	}
	name := strings.ToLower(strings.Join(strings.Fields(text), " "))
	return cmp.Or(fieldAliases[name], name)
}

// fieldAt finds the field in a line, as the pattern of fields does: the ends of bullet,
// name and value. The form in which the program writes is found by hand, for a long list
// has many of them.
func fieldAt(text string) (at [8]int, ok bool) {
	const open, colon = "- **", "**: "
	if rest, ok := strings.CutPrefix(text, open); ok {
		n := 0
		for n < len(rest) && n < 31 && (rest[n] >= 'a' && rest[n] <= 'z' || rest[n] >= 'A' && rest[n] <= 'Z' || n > 0 && rest[n] == ' ') {
			n++
		}
		if value, ok := strings.CutPrefix(rest[n:], colon); ok && n > 0 && rest[n-1] != ' ' && value != "" && !blankEnds(value) {
			from := len(open) + n + len(colon)
			return [8]int{0, len(text), 0, 2, len(open), len(open) + n, from, len(text)}, true
		}
	}
	if !strings.Contains(text, ":") {
		return at, false
	}
	m := patterns().field.FindStringSubmatchIndex(text)
	copy(at[:], m)
	return at, m != nil
}

func blankEnds(s string) bool {
	blank := func(c byte) bool { return c == ' ' || c == '\t' }
	return blank(s[0]) || blank(s[len(s)-1])
}

func isItem(text string) bool {
	t := strings.TrimLeft(text, " \t")
	return len(t) > 1 && strings.IndexByte("-*+", t[0]) >= 0 && (t[1] == ' ' || t[1] == '\t')
}

func indented(text string) bool { return text[0] == '\t' || strings.HasPrefix(text, "  ") }

// Bytes is the text with all edits done.
func (t *Todo) Bytes() []byte {
	list := make([]edit, 0, len(t.edits))
	for _, e := range t.edits {
		list = append(list, *e)
	}
	return splice(t.file.Bytes(), list)
}

// splice does edits to a text. One within what another takes out is lost with it.
func splice(src []byte, edits []edit) []byte {
	edits = slices.Clone(edits)
	rank := func(e edit) int { // what belongs to a section stands before the next one
		if e.section {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(edits, func(a, b edit) int {
		return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to), rank(a)-rank(b))
	})
	var out bytes.Buffer
	at := 0
	for _, e := range edits {
		if e.from < at {
			continue
		}
		out.Write(src[at:e.from])
		out.WriteString(e.text)
		at = e.to
	}
	out.Write(src[at:])
	return out.Bytes()
}

// Changed reports whether there is any edit.
func (t *Todo) Changed() bool { return len(t.edits) > 0 }

// Find is the section of a number, of several the preferred or first; nil without one.
func (t *Todo) Find(number int) *Section {
	if t.found == nil {
		t.found = make(map[int]*Section, len(t.Sections))
		for _, s := range slices.Backward(t.Sections) {
			if o := t.found[s.Number]; o == nil || o != t.prefer[s.Number] {
				t.found[s.Number] = s
			}
		}
	}
	return t.found[number]
}

// Value is a field's value and whether the field is there.
func (s *Section) Value(name string) (string, bool) {
	for _, f := range s.Fields {
		if f.Name == name {
			return f.Value, true
		}
	}
	return "", false
}

// Set gives a field of a section another value, or adds it where it belongs among
// the others. An empty value takes the line away.
func (t *Todo) Set(s *Section, name, value string) {
	t.set(s, name, value, slices.IndexFunc(s.Fields, func(f Field) bool { return f.Name == name }))
}

// SetOwn is Set for a field that people write, too: only a value for which own holds is
// replaced or taken away, and one that is empty filled. Beside what a person wrote there,
// a line of the program's own is added.
func (t *Todo) SetOwn(s *Section, name, value string, own func(value string) bool) {
	t.set(s, name, value, slices.IndexFunc(s.Fields, func(f Field) bool {
		return f.Name == name && (f.Value != "" && own(f.Value) || f.Value == "" && value != "")
	}))
}

// set gives the i-th field another value; i < 0 adds it.
func (t *Todo) set(s *Section, name, value string, i int) {
	if s.added != nil {
		t.setAdded(s, name, value, i)
		return
	}
	if i < 0 {
		if value != "" {
			t.add(s, name, value)
		}
		return
	}
	f := &s.Fields[i]
	if f.Value == value {
		return
	}
	f.Value = value
	src := t.file.Bytes()
	added := f.pending != nil && f.pending.line
	switch {
	case value == "":
		t.drop(f.pending)
		if !added {
			t.edits = append(t.edits, &edit{from: bytes.LastIndexByte(src[:f.from], lineEnd(t.file)) + 1, to: t.lineEnd(f.to)})
		}
		s.Fields = slices.Delete(s.Fields, i, i+1)
	case added:
		f.pending.text = t.fieldLine(s, f.from, name, value)
	default:
		if f.from > 0 && src[f.from-1] != ' ' && src[f.from-1] != '\t' {
			value = " " + value // behind "- **Plan**:"
		}
		if f.pending == nil {
			f.pending = &edit{from: f.from, to: f.to}
			t.edits = append(t.edits, f.pending)
		}
		f.pending.text = value
	}
}

func (t *Todo) add(s *Section, name, value string) {
	at := t.place(s, name)
	e := &edit{from: at, to: at, text: t.fieldLine(s, at, name, value), line: true}
	t.edits = append(t.edits, e)
	s.Fields = append(s.Fields, Field{Name: name, Value: value, from: at, to: at, pending: e})
}

func (t *Todo) drop(e *edit) {
	t.edits = slices.DeleteFunc(t.edits, func(o *edit) bool { return o == e })
}

func (t *Todo) fieldLine(s *Section, at int, name, value string) string {
	return t.lead(at) + cmp.Or(s.bullet, "- ") + "**" + shownName(name) + "**: " + value + t.eol()
}

// lead begins a line where the text before has not ended its own.
func (t *Todo) lead(at int) string {
	src := t.file.Bytes()
	if at == 0 || src[at-1] == '\n' || src[at-1] == '\r' {
		return ""
	}
	if slices.ContainsFunc(t.edits, func(e *edit) bool { return e.from == at && e.line }) {
		return "" // another one does
	}
	return t.eol()
}

func (t *Todo) eol() string { return t.file.EOL() }

// lineEnd is the byte that ends a line: a carriage return in a file that has nothing
// else.
func lineEnd(f *mdfile.File) byte {
	if f.EOL() == "\r" {
		return '\r'
	}
	return '\n'
}

// place is where a further field goes: behind those that come before it in the
// order of the known ones, else behind the last.
func (t *Todo) place(s *Section, name string) int {
	rank := fieldRank(name)
	at := -1
	for _, f := range s.Fields {
		if r := fieldRank(f.Name); r >= 0 && r < rank {
			if at = f.from; f.pending == nil || !f.pending.line {
				at = t.lineEnd(f.to)
			}
		}
	}
	if at < 0 {
		at = s.text
		if len(s.Fields) > 0 {
			at = bytes.LastIndexByte(t.file.Bytes()[:s.Fields[0].from], lineEnd(t.file)) + 1
		}
	}
	return at
}

func (t *Todo) lineEnd(at int) int {
	if n := bytes.IndexByte(t.file.Bytes()[at:], lineEnd(t.file)); n >= 0 {
		return at + n + 1
	}
	return len(t.file.Bytes())
}

func fieldRank(name string) int {
	for i, f := range fieldNames {
		if f.key == name {
			return i
		}
	}
	return -1
}

func shownName(key string) string {
	for _, f := range fieldNames {
		if f.key == key {
			return f.shown
		}
	}
	return key
}

// SetHeading gives a section a number and a title. The rest of the heading's line
// (its level, closing #) is written anew.
func (t *Todo) SetHeading(s *Section, number int, title string) {
	if s.Number != number {
		t.found = nil
	}
	if s.Number == number && s.Title == title {
		return
	}
	if s.added != nil {
		s.Number, s.Title = number, title
		t.write(s)
		return
	}
	src := t.file.Bytes()
	end := s.text
	for end > s.head && (src[end-1] == '\n' || src[end-1] == '\r') {
		end--
	}
	t.drop(s.renamed)
	s.renamed = &edit{from: s.head, to: end, text: heading(s.Level, number, title)}
	t.edits = append(t.edits, s.renamed)
	s.Number, s.Title = number, title
}

func heading(level, number int, title string) string {
	marks := strings.Repeat("#", level)
	if strings.HasSuffix(title, "#") { // would count as the heading's own end
		title += " " + marks
	}
	return fmt.Sprintf("%s %d. %s", marks, number, title)
}

// Remove takes a section out, and returns its text.
func (t *Todo) Remove(s *Section) []byte {
	text := bytes.Clone(t.Text(s))
	t.found = nil
	if t.drop(s.renamed); s.added != nil {
		t.drop(s.added.edit)
	} else {
		t.edits = append(t.edits, &edit{from: s.head, to: s.end})
	}
	t.Sections = slices.DeleteFunc(t.Sections, func(o *Section) bool { return o == s })
	return text
}

// Text is a section's text as it was read.
func (t *Todo) Text(s *Section) []byte {
	if s.added != nil {
		return []byte(strings.ReplaceAll(s.words(), "\n", t.eol()))
	}
	return t.file.Bytes()[s.head:s.end]
}

// Body is what a section says behind its fields.
func (t *Todo) Body(s *Section) string {
	if s.added != nil {
		return s.added.body
	}
	return strings.TrimSpace(string(t.file.Bytes()[s.after:s.end]))
}

// Append adds a task behind the last one, or, in a list without any, at the end of
// the file. fields are in the order in which they are to stand.
func (t *Todo) Append(number int, title string, fields [][2]string, body string) {
	src := t.file.Bytes()
	level, at := 3, len(src)
	n := &added{body: strings.TrimSpace(body)}
	if last := len(t.Sections); last > 0 {
		s := t.Sections[last-1]
		if level, at = s.Level, s.end; s.added != nil {
			n.before = s.added.between
		}
	}
	switch first := !slices.ContainsFunc(t.edits, func(e *edit) bool { return e.from == at && e.section }); {
	case !first:
	case at == 0:
		n.before = "# TODO\n\n"
	case !bytes.HasSuffix(src[:at], []byte{lineEnd(t.file)}):
		n.before = "\n\n"
	case !t.endsBlank(at):
		n.before = "\n"
	}
	if at < len(src) {
		n.after = "\n"
	} else {
		n.between = "\n"
	}
	s := &Section{Number: number, Title: title, Level: level, end: at, added: n}
	for _, f := range fields {
		if f[1] != "" {
			s.Fields = append(s.Fields, Field{Name: f[0], Value: f[1]})
		}
	}
	n.edit = &edit{from: at, to: at, section: true}
	t.edits = append(t.edits, n.edit)
	t.Sections = append(t.Sections, s)
	if t.found != nil && t.found[number] == nil {
		t.found[number] = s
	}
	t.write(s)
}

// added is what of a section is known that stands in no file yet.
type added struct {
	edit *edit
	body string
	// before and after are the line ends around it; between those before one that
	// comes behind it.
	before, after, between string
}

// write puts an added section into words.
func (t *Todo) write(s *Section) {
	n := s.added
	text := s.words()
	n.edit.text = strings.ReplaceAll(n.before+text+n.after, "\n", t.eol())
}

func (s *Section) words() string {
	var b strings.Builder
	b.WriteString(heading(s.Level, s.Number, s.Title) + "\n\n")
	for _, f := range s.Fields {
		b.WriteString("- **" + shownName(f.Name) + "**: " + f.Value + "\n")
	}
	if s.added.body != "" {
		b.WriteString("\n" + s.added.body + "\n")
	}
	return b.String()
}

// setAdded is Set for a section that stands in no file yet.
func (t *Todo) setAdded(s *Section, name, value string, i int) {
	switch {
	case i >= 0 && value == "":
		s.Fields = slices.Delete(s.Fields, i, i+1)
	case i >= 0:
		s.Fields[i].Value = value
	case value != "":
		at := 0
		for j, f := range s.Fields {
			if fieldRank(f.Name) < fieldRank(name) {
				at = j + 1
			}
		}
		s.Fields = slices.Insert(s.Fields, at, Field{Name: name, Value: value})
	}
	t.write(s)
}

func (t *Todo) endsBlank(at int) bool {
	return bytes.HasSuffix(t.file.Bytes()[:at], []byte(t.eol()+t.eol()))
}
