package verify

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"sync"
	"unicode/utf8"
)

// Of a check's output the beginning and the end are kept, in bytes: what went
// wrong stands at one of the two.
const (
	keepHead = 8 << 10
	keepTail = 24 << 10
	// maxOutput ends a check: nothing that prints this much is read by anyone.
	maxOutput = 256 << 20
)

// output collects what a check prints.
type output struct {
	mu    sync.Mutex
	head  []byte
	tail  []byte // a ring once it is full
	at    int
	total int64
	scan  scanner
}

// from reads until the end, or until the reader is closed.
func (o *output) from(r io.Reader) {
	buf := make([]byte, 32<<10)
	for {
		n, err := r.Read(buf)
		o.add(buf[:n])
		if err != nil {
			return
		}
	}
}

func (o *output) add(b []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.total += int64(len(b))
	o.scan.add(b)
	if room := keepHead - len(o.head); room > 0 {
		n := min(room, len(b))
		o.head = append(o.head, b[:n]...)
		b = b[n:]
	}
	if len(b) > keepTail {
		b = b[len(b)-keepTail:]
	}
	if room := keepTail - len(o.tail); room > 0 {
		n := min(room, len(b))
		o.tail = append(o.tail, b[:n]...)
		b = b[n:]
	}
	for len(b) > 0 {
		n := copy(o.tail[o.at:], b)
		b = b[n:]
		o.at = (o.at + n) % keepTail
	}
}

func (o *output) bytes() int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.total
}

// said is what was said for comparing it; nothing is added any more.
func (o *output) said() *said {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.scan.end()
}

// text is what was kept, as plain text: whole lines around what is left out,
// and without the codes that colour a terminal.
func (o *output) text() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	tail := append(append([]byte{}, o.tail[min(o.at, len(o.tail)):]...), o.tail[:min(o.at, len(o.tail))]...)
	head := o.head
	if cut := o.total - int64(len(head)) - int64(len(tail)); cut > 0 {
		if i := bytes.LastIndexByte(head, '\n'); i >= 0 {
			cut += int64(len(head) - i - 1)
			head = head[:i+1]
		}
		if i := bytes.IndexByte(tail, '\n'); i >= 0 && i < len(tail)-1 {
			cut += int64(i + 1)
			tail = tail[i+1:]
		}
		return plain(head) + fmt.Sprintf("\n[… %d bytes left out …]\n", cut) + plain(tail)
	}
	return plain(append(append([]byte{}, head...), tail...))
}

// plain makes text of what was meant for a terminal: without escape sequences,
// with what overwrites a line in place of what it overwrites.
func plain(b []byte) string {
	s := strings.ToValidUTF8(string(b), "\uFFFD")
	var out strings.Builder
	out.Grow(len(s))
	for i := 0; i < len(s); {
		if s[i] == 0x1b {
			i = skipEscape(s, i)
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		if r == '\n' || r == '\t' || r == '\r' || r >= ' ' && r != 0x7f {
			out.WriteString(s[i : i+n])
		}
		i += n
	}
	text := strings.ReplaceAll(out.String(), "\r\n", "\n")
	if !strings.Contains(text, "\r") {
		return text
	}
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		if j := strings.LastIndexByte(strings.TrimRight(l, "\r"), '\r'); j >= 0 {
			l = l[j+1:]
		}
		lines[i] = strings.TrimRight(l, "\r")
	}
	return strings.Join(lines, "\n")
}

// skipEscape is the position after the escape sequence that begins at i.
func skipEscape(s string, i int) int {
	i++
	if i >= len(s) {
		return i
	}
	switch s[i] {
	case '[': // until a letter or the like
		for i++; i < len(s); i++ {
			if s[i] >= 0x40 && s[i] <= 0x7e {
				return i + 1
			}
		}
		return i
	case ']': // a title or a link: until BEL or ESC \
		for i++; i < len(s); i++ {
			if s[i] == 0x07 {
				return i + 1
			}
			if s[i] == 0x1b && i+1 < len(s) && s[i+1] == '\\' {
				return i + 2
			}
		}
		return i
	}
	return i + 1
}

// telling are words of lines that say what went wrong, as test runners,
// compilers and linters write them.
var telling = [...]string{
	"fail", "error", "panic:", "exception", "traceback", "assert", "expected", "undefined", "not found",
	"cannot ", "can't ", "✕", "✗", "×", "●", "not ok", "denied", "warning:", "mismatch", "unexpected",
}

// belowName is how many lines count as what went wrong that stand, further in, below the
// name of a test that failed.
const belowName = 3

// tellingLines are the first lines of an output that say what went wrong, at most n, with
// what runners write below the name of a test; the whole output where it is no longer than
// that, and where no line says so, the last ones.
func tellingLines(text string, n int) []string {
	var found, last []string
	all, left, margin := 0, 0, 0
	for line := range strings.Lines(text) {
		l := strings.TrimSpace(line)
		if l == "" || strings.HasPrefix(l, "[… ") {
			continue
		}
		in := len(line) - len(strings.TrimLeft(line, " \t"))
		l = strings.ReplaceAll(l, "\t", " ") // it stands in a line of ours
		all++
		if last = append(last, l); len(last) > n {
			last = last[1:]
		}
		below := left > 0 && in > margin
		if left--; !below {
			left = 0
		}
		if strings.HasPrefix(l, "--- FAIL: ") || strings.HasPrefix(l, "● ") {
			left, margin = belowName, in
		}
		if len(found) < n && l != "FAIL" && (below || tells(l)) {
			found = append(found, l)
		}
	}
	if len(found) == 0 || all <= n {
		return last
	}
	return found
}

// tells reports whether a line says by its words what went wrong.
func tells(l string) bool {
	low := strings.ToLower(l)
	if strings.HasPrefix(l, "E ") { // of pytest
		return true
	}
	for _, w := range telling {
		if strings.Contains(low, w) && !harmless(low) {
			return true
		}
	}
	return false
}

// harmless are lines that count failures and found none.
func harmless(low string) bool {
	for _, s := range [...]string{"0 failed", "0 errors", "0 failures", "no errors", "0 error", "fail 0", "failed: 0", "errors: 0", "failures: 0"} {
		if i := strings.Index(low, s); i == 0 || i > 0 && (low[i-1] < '0' || low[i-1] > '9') {
			return true
		}
	}
	return false
}
