package mdfile

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"hash"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Entry is one entry of a file of entries: front matter, then markdown. Such a
// file (learnings.md, decisions.md, changelog.md) is a set that only grows: an
// edit is a new entry that names the old one in Supersedes, and what is to be
// forgotten is named by an entry of type TypeTombstone.
//
// ID is a hash of the content, so that an entry is the same everywhere, and so
// that where an entry ends is known although people write between entries.
type Entry struct {
	ID           string    `json:"id"`
	Time         time.Time `json:"timestamp"`
	Agent        string    `json:"agent,omitempty"` // who wrote it; "user" for a person
	Type         string    `json:"type"`
	Status       string    `json:"status,omitempty"` // no part of the id; see Resolve
	To           string    `json:"to,omitempty"`     // whom a handoff is for; empty = anyone
	Parent       string    `json:"parent,omitempty"`
	DependsOn    []string  `json:"depends_on,omitempty"`
	Decision     string    `json:"decision,omitempty"`
	Alternatives []string  `json:"alternatives,omitempty"`
	Rationale    string    `json:"rationale,omitempty"`
	Source       string    `json:"source,omitempty"`     // what it was made from: hand, pattern:<id>, entry:<id>, import
	Confidence   float64   `json:"confidence,omitempty"` // 0 to 1; 0 = unknown
	Supersedes   string    `json:"supersedes,omitempty"` // id of the item that this one replaces
	Evidence     []string  `json:"evidence,omitempty"`   // ids of events
	ACL          []string  `json:"acl,omitempty"`        // agent:NAME, role:NAME, client:NAME or *; empty = everyone
	Text         string    `json:"text"`

	Line       int `json:"line,omitempty"` // of its first line in the file, from 1
	Start, End int `json:"-"`              // bytes in the file
	// Edited says that its content has not the hash that its id is: it was
	// written or changed by hand. All up to the next entry is then its text.
	Edited bool `json:"edited,omitempty"`
	// Short says that it stands in the short form, "## TIME - TYPE" and its text,
	// without front matter.
	Short bool `json:"short,omitempty"`
	// Problem says what is wrong with its front matter; what could be read of
	// it stands in the other fields.
	Problem string `json:"problem,omitempty"`
}

// Types of entries. A reader takes others as they are.
const (
	TypeLearning   = "learning"
	TypeDecision   = "decision"
	TypeChange     = "change"
	TypeStart      = "start" // of these the changelog is made: an agent begins,
	TypePlan       = "plan"
	TypeImplement  = "implement"
	TypeError      = "error"
	TypeHandoff    = "handoff" // hands on to another
	TypeEnd        = "end"     // and ends
	TypePreference = "preference"
	// TypeTombstone retires the item that Supersedes names. What that item
	// itself replaced stands in DependsOn, so that it does not come back.
	TypeTombstone = "tombstone"
)

// States of an entry.
const (
	StatusActive     = "active"
	StatusSuperseded = "superseded"
	StatusRetired    = "retired"
)

// Title is the entry in one line: the decision, or the first line of the text.
func (e Entry) Title() string {
	if e.Decision != "" {
		return oneLine(e.Decision)
	}
	return strings.TrimSpace(strings.TrimLeft(oneLine(e.Text), "#- "))
}

func oneLine(s string) string {
	s = strings.TrimSpace(s)
	if i := strings.IndexByte(s, '\n'); i >= 0 {
		s = s[:i]
	}
	return strings.TrimSpace(s)
}

// EntryID is the id that the content gives an entry: "e-" and 16 hex digits of
// a SHA-256 over all fields but ID and Status.
func EntryID(e Entry) string {
	sum := sha256.Sum256(append(appendHashed(nil, &e), normalText(e.Text)...))
	return "e-" + hex.EncodeToString(sum[:idBytes])
}

const idBytes = 8 // of the hash

// appendHashed appends everything that is hashed of an entry but the text, which comes
// last so that the end of a text can be found by its hash.
func appendHashed(b []byte, e *Entry) []byte {
	// Logs have entries by the thousand, and each is hashed when it is read.
	b = slices.Grow(b, 256+len(e.Decision)+len(e.Rationale))
	put := func(name, v string) {
		if v != "" {
			b = append(append(b, name...), ':')
			b = append(strconv.AppendInt(b, int64(len(v)), 10), ':')
			b = append(append(b, v...), '\n')
		}
	}
	list := func(name string, values []string) {
		for _, v := range values {
			put(name, v)
		}
	}
	put("v", "1")
	if !e.Time.IsZero() {
		var room [64]byte
		at := e.Time.UTC().AppendFormat(room[:0], time.RFC3339Nano)
		b = append(strconv.AppendInt(append(b, "timestamp:"...), int64(len(at)), 10), ':')
		b = append(append(b, at...), '\n')
	}
	put("agent", e.Agent)
	put("type", e.Type)
	put("to", e.To)
	put("parent", e.Parent)
	list("depends_on", e.DependsOn)
	put("decision", e.Decision)
	list("alternatives", e.Alternatives)
	put("rationale", e.Rationale)
	put("source", e.Source)
	if e.Confidence != 0 {
		put("confidence", strconv.FormatFloat(e.Confidence, 'g', -1, 64))
	}
	put("supersedes", e.Supersedes)
	list("evidence", e.Evidence)
	list("acl", e.ACL)
	return b
}

// normalText is a text as it is hashed: line ends and white space at the ends of
// lines do not count, nor do blank lines around it.
func normalText(s string) string {
	if isNormal(s) {
		return strings.Trim(s, "\n")
	}
	var b strings.Builder
	blank := 0
	for line := range strings.Lines(s) {
		line = strings.TrimRight(line, " \t\r\n")
		if line == "" {
			blank++
			continue
		}
		if b.Len() > 0 {
			b.WriteString(strings.Repeat("\n", blank+1))
		}
		blank = 0
		b.WriteString(line)
	}
	return b.String()
}

// isNormal says that a text has no white space at the ends of lines, as nearly every
// text; then nothing but blank lines around it has to go.
func isNormal(s string) bool {
	if strings.IndexByte(s, '\r') >= 0 {
		return false
	}
	for rest := s; ; {
		i := strings.IndexByte(rest, '\n')
		end := i
		if i < 0 {
			end = len(rest)
		}
		if end > 0 && (rest[end-1] == ' ' || rest[end-1] == '\t') {
			return false
		}
		if i < 0 {
			return true
		}
		rest = rest[i+1:]
	}
}

// Render is the entry as it stands in a file, with the id that its content
// gives it. Its text cannot be taken for another entry's beginning: a line of
// exactly three hyphens gets a fourth, which means the same in markdown.
func (e Entry) Render() (Entry, []byte) {
	e.Text = strings.ReplaceAll(strings.ReplaceAll(e.Text, "\r\n", "\n"), "\r", "\n") // whatever the file's line ends are
	e.Text = strings.TrimRight(strings.TrimLeft(e.Text, "\n"), " \t\n")
	if strings.Contains(e.Text, "---") {
		var b strings.Builder
		for line := range strings.Lines(e.Text) {
			if isFence([]byte(strings.TrimRight(line, "\n"))) {
				line = "-" + line
			}
			b.WriteString(line)
		}
		e.Text = b.String()
	}
	e.Time = e.Time.UTC().Truncate(time.Millisecond)
	e.DependsOn, e.Alternatives, e.Evidence, e.ACL = filled(e.DependsOn), filled(e.Alternatives), filled(e.Evidence), filled(e.ACL)
	if e.Status == "" {
		e.Status = StatusActive
	}
	e.ID = EntryID(e)
	var b bytes.Buffer
	one := func(key, v string) {
		if v != "" {
			b.WriteString(key + ": " + entryScalar(v) + "\n")
		}
	}
	list := func(key string, vs []string) {
		if len(vs) > 0 {
			b.WriteString(key + ": " + jsonText(vs) + "\n")
		}
	}
	b.WriteString("---\n")
	one("id", e.ID)
	if !e.Time.IsZero() {
		one("timestamp", e.Time.Format(time.RFC3339Nano))
	}
	one("agent", e.Agent)
	one("type", e.Type)
	one("status", e.Status)
	one("to", e.To)
	one("parent", e.Parent)
	list("depends_on", e.DependsOn)
	one("decision", e.Decision)
	list("alternatives", e.Alternatives)
	one("rationale", e.Rationale)
	one("source", e.Source)
	if e.Confidence != 0 {
		b.WriteString("confidence: " + strconv.FormatFloat(e.Confidence, 'g', -1, 64) + "\n")
	}
	one("supersedes", e.Supersedes)
	list("evidence", e.Evidence)
	list("acl", e.ACL)
	b.WriteString("---\n")
	if e.Text != "" {
		b.WriteString("\n" + e.Text + "\n")
	}
	return e, b.Bytes()
}

func filled(list []string) []string {
	var out []string
	for _, s := range list {
		if s != "" {
			out = append(out, s)
		}
	}
	return out
}

var plainEntryText = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_./-]*( [A-Za-z0-9_./-]+)*$|^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+Z$`)
})

// entryScalar writes a string plain where every YAML reader takes it for that
// string, else as JSON, which is YAML too.
func entryScalar(v string) string {
	if plainEntryText().MatchString(v) {
		switch strings.ToLower(v) {
		case "true", "false", "yes", "no", "on", "off", "null", "y", "n":
		default:
			return v
		}
	}
	return jsonText(v)
}

func jsonText(v any) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(v) // strings always encode
	return strings.TrimSpace(b.String())
}

// EntryFile is a file of entries, taken apart. What stands between the parts
// is kept as it is.
type EntryFile struct {
	src     []byte
	Entries []Entry // in the file's order
	// Free are the stretches that are no entry, as bytes from and to: headings,
	// a block's own front matter, what people write. Blank ones are left out.
	Free [][2]int
	// Damage are the places that are no text. What stands around them is read.
	Damage []Damage
	// Foreign says that the file is in another encoding: its entries were read
	// from a copy in UTF-8, and no edit would keep its bytes.
	Foreign bool
}

// Bytes is the whole file.
func (f *EntryFile) Bytes() []byte { return f.src }

// Problems are entries whose front matter could not be read whole.
func (f *EntryFile) Problems() []Entry {
	var out []Entry
	for _, e := range f.Entries {
		if e.Problem != "" {
			out = append(out, e)
		}
	}
	return out
}

const (
	maxHeaderLines = 80
	maxListed      = 10000 // of one list in a header
)

// ParseEntries takes a file apart. It takes any bytes: a front matter that cannot
// be read and bytes that are no text spoil their own entry alone. Bytes, and what
// WithEntry and Without make, keep every byte that is not theirs.
func ParseEntries(data []byte) *EntryFile {
	f := &EntryFile{}
	_, f.Damage = Mended(data)
	if u, ok := fromUTF16(data); ok {
		data, f.Foreign = u, true
	}
	f.src = data
	first := 0
	if bytes.HasPrefix(data, bom) {
		first = len(bom)
	}
	p := entryParser{src: data, lines: make([]line, 0, bytes.Count(data, []byte("\n"))+1), sum: sha256.New()}
	f.Entries = make([]Entry, 0, bytes.Count(data, []byte("\n---\n"))/2+1)
	for l := range lines(data, first) {
		p.lines = append(p.lines, l)
		if n := l.end - l.start; n >= 3 && n < 11 && isFence(data[l.start:l.end]) {
			p.fences = append(p.fences, len(p.lines)-1)
		}
	}
	free := first
	for next := 0; next < len(p.fences); {
		at := p.fences[next]
		h := p.header(next)
		if !h.ok {
			next++
			continue
		}
		start := p.lines[at].start
		p.free(f, free, start)
		f.Entries = append(f.Entries, h.e)
		e, body := &f.Entries[len(f.Entries)-1], h.body
		limit, after := p.bodyEnd(next, body)
		e.Line, e.Start = at+1, start
		e.End = p.text(e, body, limit)
		free, next = e.End, after
	}
	p.free(f, free, len(data))
	return f
}

// isFence says that a line opens or closes a front matter; one with a byte order
// mark does where another file was put behind this one.
func isFence(line []byte) bool { return string(trimRight(bytes.TrimPrefix(line, bom))) == "---" }

func (f *EntryFile) free(from, to int) {
	if len(bytes.TrimSpace(f.src[from:to])) > 0 {
		f.Free = append(f.Free, [2]int{from, to})
	}
}

// free is a stretch between entries in full form: entries in the short form, and
// what is none.
func (p *entryParser) free(f *EntryFile, from, to int) {
	at, _ := slices.BinarySearchFunc(p.lines, from, func(l line, from int) int { return l.start - from })
	open := -1 // number of the line that opens a short entry
	var e Entry
	flush := func(next int) { // the entry ends before that line
		if open < 0 {
			return
		}
		first, end := open+1, next
		for first < end && len(trimRight(p.raw(first))) == 0 {
			first++
		}
		for end > first && len(trimRight(p.raw(end-1))) == 0 {
			end--
		}
		e.Text = strings.TrimRight(p.body(first, end), " \t\n")
		e.ID = EntryID(e)
		if e.End = p.lines[open].next; end > first {
			e.End = p.lines[end-1].next
		}
		f.Entries = append(f.Entries, e)
		from, open = e.End, -1
	}
	for ; at < len(p.lines) && p.lines[at].start < to; at++ {
		b := p.raw(at)
		if len(b) == 0 || b[0] != '#' {
			continue
		}
		if next, ok := shortHeading(b); ok {
			flush(at)
			f.free(from, p.lines[at].start)
			e, open = next, at
			e.Line, e.Start = at+1, p.lines[at].start
			continue
		}
		if bytes.HasPrefix(b, []byte("# ")) || bytes.HasPrefix(b, []byte("## ")) {
			flush(at)
		}
	}
	flush(at)
	f.free(from, to)
}

// shortHeading reads the line that opens an entry in the short form:
//
//	## 2026-01-21T10:30:00Z - implement
//
// Only known types count: people head their own sections with times, too.
func shortHeading(b []byte) (Entry, bool) {
	rest, ok := bytes.CutPrefix(trimRight(b), []byte("## 2"))
	if !ok || len(rest) > 80 {
		return Entry{}, false
	}
	at := bytes.LastIndexByte(rest, ' ')
	if at < 0 {
		return Entry{}, false
	}
	e := Entry{Type: string(rest[at+1:]), Short: true}
	switch e.Type {
	case TypeStart, TypePlan, TypeImplement, TypeDecision, TypeHandoff, TypeEnd, TypeError, TypeLearning, TypeChange:
	default:
		return Entry{}, false
	}
	when := "2" + string(bytes.TrimRight(rest[:at], " "))
	for _, dash := range []string{"-", "–", "—"} {
		if t, ok := strings.CutSuffix(when, " "+dash); ok && len(t) > len(time.DateOnly) {
			err := entryTimeText(&e, t)
			return e, err == nil
		}
	}
	return Entry{}, false
}

type entryParser struct {
	src    []byte
	lines  []line
	fences []int // lines that are "---"
	last   header

	// What is used for each entry again.
	sum    hash.Hash
	buf    []byte // to be hashed
	out    [sha256.Size]byte
	is     [idBytes]byte // what the id says that the hash is,
	hashed bool          // if it says it
}

// header is the front matter that a fence opens.
type header struct {
	fence int // its number and one; 0 = none was read
	e     Entry
	body  int // the first line after it
	ok    bool
}

// header reads the front matter that fence number n opens, if it does. The last answer
// is kept, and is good until the next one: where an entry ends is asked before that is
// read.
func (p *entryParser) header(n int) *header {
	if p.last.fence != n+1 {
		p.last = header{fence: n + 1}
		p.last.body, p.last.ok = p.readHeader(n, &p.last.e)
	}
	return &p.last
}

func (p *entryParser) readHeader(n int, e *Entry) (body int, ok bool) {
	open := p.fences[n]
	if open+1 >= len(p.lines) || !p.entryKey(open+1) {
		return 0, false
	}
	closed := len(p.lines)
	if n+1 < len(p.fences) && p.fences[n+1]-open <= maxHeaderLines {
		closed = p.fences[n+1]
		problem, tidy := p.decode(e, open+1, closed)
		if problem == "" && (e.ID != "" || e.Type != "") && !p.opens(n+1) {
			if !tidy {
				e.cleaned()
			}
			return closed + 1, true
		}
	}
	// Unclosed, or not to be read: what looks like keys is the header.
	*e = Entry{}
	end := open + 1
	for end < closed && end-open <= maxHeaderLines && p.keyLine(end) {
		end++
	}
	if problem, _ := p.decode(e, open+1, end); problem != "" {
		p.lenient(e, open+1, end)
	}
	if e.ID == "" {
		return 0, false
	}
	e.Problem = "its front matter is not closed by a line of ---"
	body = end
	if closed < len(p.lines) && !p.opens(n+1) {
		e.Problem, body = "its front matter cannot be read", closed+1
	}
	e.cleaned()
	return body, true
}

// opens says that fence n opens a front matter of an entry that can be read.
func (p *entryParser) opens(n int) bool {
	if n+1 >= len(p.fences) || p.fences[n+1]-p.fences[n] > maxHeaderLines || !p.entryKey(p.fences[n]+1) {
		return false
	}
	var e Entry
	problem, _ := p.decode(&e, p.fences[n]+1, p.fences[n+1])
	return problem == "" && (e.ID != "" || e.Type != "")
}

func (p *entryParser) raw(i int) []byte { return p.src[p.lines[i].start:p.lines[i].end] }

// entryKey says that a line is a key that an entry's front matter begins with.
func (p *entryParser) entryKey(i int) bool {
	if i >= len(p.lines) {
		return false
	}
	key, _, ok := bytes.Cut(p.raw(i), []byte(":"))
	if !ok {
		return false
	}
	switch string(key) {
	case "id", "timestamp", "agent", "type", "status", "parent", "depends_on", "decision", "alternatives", "rationale":
		return true
	}
	return false
}

func (p *entryParser) keyLine(i int) bool {
	b := p.raw(i)
	if len(b) > 0 && (b[0] == ' ' || b[0] == '-') {
		return true
	}
	key, _, ok := bytes.Cut(b, []byte(":"))
	return ok && len(key) > 0 && len(key) < 40 && bytes.IndexByte(key, ' ') < 0
}

// bodyEnd is the line at which the body that begins there must end, and the
// number of the fence from which the next entry is looked for.
func (p *entryParser) bodyEnd(n, body int) (limit, next int) {
	for next = n + 1; next < len(p.fences); next++ {
		if p.fences[next] < body {
			continue
		}
		if p.header(next).ok {
			return p.fences[next], next
		}
	}
	return len(p.lines), next
}

// text finds the entry's text, which begins at line body and ends before line
// limit: where the hash of the entry is its id, or, when it is nowhere, at the
// limit. It returns the byte after the text.
func (p *entryParser) text(e *Entry, body, limit int) int {
	first := body
	for first < limit && len(trimRight(p.raw(first))) == 0 {
		first++
	}
	after := p.lines[body-1].next
	p.hashed = e.hashed(&p.is) && e.Problem == "" // else it is what it is
	p.sum.Reset()
	p.buf = appendHashed(p.buf[:0], e)
	if p.hashIs() { // an entry without a text
		return after
	}
	blank, end := 0, first
	for i := first; i < limit; i++ {
		t := trimRight(p.raw(i))
		if len(t) == 0 {
			blank++
			continue
		}
		if i > first {
			for range blank + 1 {
				p.buf = append(p.buf, '\n')
			}
		}
		blank = 0
		p.buf = append(p.buf, t...)
		end = i + 1
		last := i+1 == limit || len(trimRight(p.raw(i+1))) == 0 || bytes.IndexByte(p.raw(i+1), 0) >= 0 // what a power cut leaves
		if last && p.hashIs() {
			e.Text = p.body(first, end)
			return p.lines[end-1].next
		}
	}
	e.Edited = true
	for i := first; i < end; i++ {
		if _, ok := shortHeading(p.raw(i)); ok {
			end = i
			for end > first && len(trimRight(p.raw(end-1))) == 0 {
				end--
			}
		}
	}
	e.Text = p.body(first, end)
	if e.ID == "" { // written by hand, without an id
		e.ID = EntryID(*e)
	}
	if end == first {
		return after
	}
	return p.lines[end-1].next
}

// hashed puts the hash that an entry's id says into sum; ok false where it says none.
func (e *Entry) hashed(sum *[idBytes]byte) (ok bool) {
	id, ok := strings.CutPrefix(e.ID, "e-")
	if !ok || len(id) != 2*idBytes || id != strings.ToLower(id) {
		return false
	}
	_, err := hex.Decode(sum[:], []byte(id))
	return err == nil
}

// hashIs hashes what is in the buffer, and all that was before, and says whether it
// comes to what the entry's id says.
func (p *entryParser) hashIs() bool {
	if !p.hashed {
		return false
	}
	p.sum.Write(p.buf)
	p.buf = p.buf[:0]
	return bytes.Equal(p.sum.Sum(p.out[:0])[:idBytes], p.is[:])
}

func (p *entryParser) body(first, end int) string {
	if first >= end {
		return ""
	}
	s := clean(string(p.src[p.lines[first].start:p.lines[end-1].end]))
	if s = strings.ReplaceAll(s, "\r\n", "\n"); crOnly(p.src) {
		s = strings.ReplaceAll(s, "\r", "\n")
	}
	return s
}

// cleaned makes text of the fields of a front matter. An id that is none is made
// anew from the content.
func (e *Entry) cleaned() {
	if e.ID != clean(e.ID) {
		e.ID, e.Problem = "", "its id cannot be read"
	}
	for _, s := range []*string{&e.Agent, &e.Type, &e.Status, &e.To, &e.Parent, &e.Decision, &e.Rationale, &e.Source, &e.Supersedes} {
		*s = clean(*s)
	}
	for _, list := range [][]string{e.DependsOn, e.Alternatives, e.Evidence, e.ACL} {
		for i := range list {
			list[i] = clean(list[i])
		}
	}
}
