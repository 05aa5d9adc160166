package task

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"reprise/internal/mdfile"
)

// ErrReadBack says that TODO.md, as it was to be written, would not be read as it is meant.
var ErrReadBack = errors.New("nothing is changed: TODO.md could not be read again as it is meant")

// readBack refuses a text of TODO.md in which other tasks, or other fields of new tasks,
// would be found than the program means.
func (t *Todo) readBack(text []byte) error {
	again, err := ParseTodo(text)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrReadBack, err)
	}
	type key struct {
		number int
		title  string
	}
	found := map[key]*Section{}
	for _, s := range again.Sections {
		found[key{s.Number, s.Title}] = s
	}
	for _, s := range t.Sections {
		r := found[key{s.Number, s.Title}]
		if r == nil {
			if line := openAt(t.file.Bytes()); line > 0 {
				return fmt.Errorf("%w: the fence or comment that begins in line %d is not closed, and task %d would be a part of it; close it", ErrReadBack, line, s.Number)
			}
			return fmt.Errorf("%w: task %d, %q, would be missing", ErrReadBack, s.Number, s.Title)
		}
		if s.added == nil {
			continue
		}
		for _, f := range r.Fields {
			if v, ok := s.Value(f.Name); fieldRank(f.Name) >= 0 && (!ok || v != f.Value) {
				return fmt.Errorf("%w: task %d would have the field %s: %s", ErrReadBack, s.Number, shownName(f.Name), f.Value)
			}
		}
	}
	if a, b := len(again.Sections), len(t.Sections); a != b {
		return fmt.Errorf("%w: there would be %d tasks in place of %d", ErrReadBack, a, b)
	}
	return nil
}

// openAt is the line of a code fence or comment that is not closed, 0 where all are. What
// a line means is asked of the parser of the whole text: "```go" within a block closes it
// as little as a fence that is too short does.
func openAt(text []byte) int {
	if closed(string(text)) {
		return 0
	}
	const most = 100 // of the lines that may begin one; each is a parse of what is before it
	type line struct{ n, at int }
	var may []line
	n, at := 0, 0
	for l := range bytes.Lines(text) {
		n++
		if t := strings.TrimLeft(string(l), " \t>*+-.)0123456789"); strings.HasPrefix(t, "```") || strings.HasPrefix(t, "~~~") || strings.HasPrefix(t, "<") {
			may = append(may, line{n, at})
		}
		at += len(l)
	}
	for _, l := range slices.Backward(may[max(0, len(may)-most):]) {
		if closed(string(text[:l.at])) {
			return l.n
		}
	}
	return 0
}

// closed reports whether a heading behind a text would be one.
func closed(text string) bool {
	f, err := mdfile.Parse([]byte(text + "\n\n# behind\n"))
	if err != nil {
		return false
	}
	all := f.Sections()
	return len(all) > 0 && all[len(all)-1].Heading == "behind"
}

// checkText refuses what is no text.
func checkText(what, text string) error {
	if !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
		return &DraftError{what + " is no text: it has a NUL or bytes that are not UTF-8"}
	}
	return nil
}

// bodyText is a text as the body of a task whose heading has that level: its own headings
// below that, its last fence closed, and nothing of it taken for a field.
func bodyText(body string, level int) (string, error) {
	body = strings.TrimSpace(strings.ReplaceAll(body, "\r\n", "\n"))
	if err := checkText("the task's text", body); err != nil {
		return "", err
	}
	if body == "" {
		return "", nil
	}
	if !closed(body) {
		ended := ""
		for _, end := range []string{"```", "~~~", "-->", "`````````", "~~~~~~~~~"} {
			if closed(body + "\n" + end) {
				ended = body + "\n" + end
				break
			}
		}
		if ended == "" {
			return "", &DraftError{"the task's text has a code fence or comment that is not closed: close it"}
		}
		body = ended
	}
	first, _, _ := strings.Cut(body, "\n")
	if m, ok := fieldAt(first); ok && fieldRank(fieldName(first[m[4]:m[5]])) >= 0 {
		body = "<!-- text -->\n" + body
	}
	f, err := mdfile.Parse([]byte(body))
	if err != nil {
		return "", &DraftError{"the task's text: " + err.Error()}
	}
	var edits []edit
	for _, s := range f.Sections() {
		if s.Level == 0 || s.Level > level {
			continue
		}
		at := s.Start + len(body[s.Start:]) - len(strings.TrimLeft(body[s.Start:], " "))
		if body[at] == '#' {
			edits = append(edits, edit{from: at, to: at + s.Level, text: strings.Repeat("#", min(level+1, 6))})
			continue
		}
		return "", &DraftError{fmt.Sprintf("the task's text has the underlined heading %q: write it as %s %s", s.Heading, strings.Repeat("#", min(level+1, 6)), s.Heading)}
	}
	return string(splice([]byte(body), edits)), nil
}
