package queue

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Where items come from. What is read here was written by others: it becomes the text
// of an item, and its Source says where it is from.

// line is an item as a line of JSONL has it: what an adder says of one, no more.
type line struct {
	ID          string          `json:"id"`
	Key         string          `json:"key"`
	Title       string          `json:"title"`
	Body        string          `json:"body"`
	Priority    anyPriority     `json:"priority"`
	Labels      []string        `json:"labels"`
	DependsOn   []string        `json:"depends_on"`
	NotBefore   anyTime         `json:"not_before"`
	MaxAttempts int             `json:"max_attempts"`
	Task        string          `json:"task"`
	Agent       string          `json:"agent"`
	NoChangeOK  bool            `json:"no_change_ok"`
	Source      string          `json:"source"`
	Data        json.RawMessage `json:"data"`
}

// anyTime is a time in a list.
type anyTime struct{ t time.Time }

func (a *anyTime) UnmarshalJSON(data []byte) error {
	var text *string
	err := json.Unmarshal(data, &text)
	if err == nil && text != nil && *text != "" {
		a.t, err = time.Parse(time.RFC3339, *text)
	}
	if err != nil {
		return fmt.Errorf("not_before is %s; it is a time such as \"2026-03-01T22:00:00Z\"", cut(string(data), 60))
	}
	return nil
}

// lineError says in words of the list what is wrong with a line.
func lineError(err error) error {
	var kind *json.UnmarshalTypeError
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &kind) && kind.Field == "":
		return fmt.Errorf("it is a JSON %s; an item is an object, {\"title\": …}", kind.Value)
	case errors.As(err, &kind):
		return fmt.Errorf("%s is a %s; it takes %s", kind.Field, kind.Value, takes(kind.Type))
	case errors.As(err, &syntax):
		return fmt.Errorf("it is no JSON: %w, at byte %d", err, syntax.Offset)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("it is no JSON: it ends too early")
	}
	if name, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		var known []string
		for f := range reflect.TypeFor[line]().Fields() {
			known = append(known, f.Tag.Get("json"))
		}
		return fmt.Errorf("an item has no field %s; it has %s", cut(name, 60), strings.Join(known, ", "))
	}
	return err
}

// twice is the first name that an object has a second time; "" where each is there once. The
// decoder takes the last of two, and a name in any case, so that what somebody wrote would be gone
// without a word.
func twice(object []byte) string {
	dec := json.NewDecoder(bytes.NewReader(object))
	if _, err := dec.Token(); err != nil {
		return ""
	}
	seen := map[string]bool{}
	for dec.More() {
		name, err := dec.Token()
		var value json.RawMessage
		if err != nil || dec.Decode(&value) != nil {
			return "" // of what was decoded before
		}
		key, _ := name.(string)
		low := strings.ToLower(key)
		if seen[low] {
			return key
		}
		seen[low] = true
	}
	return ""
}

// takes is what a field of a list's line is, in words.
func takes(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "a text"
	case reflect.Int:
		return "a whole number"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice:
		return "a list of texts"
	}
	return "something else"
}

// ParseJSONL reads items, one JSON object a line. A field that is not known is an
// error, which names the line; blank lines are passed over.
func ParseJSONL(r io.Reader, name string) ([]Item, error) {
	var items []Item
	in := bufio.NewReader(r)
	for n := 1; ; n++ {
		text, err := in.ReadBytes('\n')
		if err != nil && err != io.EOF {
			return nil, fmt.Errorf("read %s: %w", name, err)
		}
		if len(text) > MaxItemBytes+1<<16 {
			return nil, invalid("%s:%d: the line has %d bytes, more than %d: keep the long part in a file and name that; an item is one line, with \\n in its texts", name, n, len(text), MaxItemBytes)
		}
		if n == 1 {
			text = bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))
		}
		if text = bytes.TrimSpace(text); len(text) > 0 {
			if !utf8.Valid(text) {
				return nil, invalid("%s:%d: it is not UTF-8", name, n)
			}
			var l line
			dec := json.NewDecoder(bytes.NewReader(text))
			dec.DisallowUnknownFields()
			if derr := dec.Decode(&l); derr != nil {
				return nil, invalid("%s:%d: %w", name, n, lineError(derr))
			}
			if dec.More() {
				return nil, invalid("%s:%d: more than one JSON value", name, n)
			}
			if key := twice(text); key != "" {
				return nil, invalid("%s:%d: it has %q twice, and which of the two is meant cannot be told", name, n, cut(key, 60))
			}
			it := Item{
				ID: l.ID, Key: l.Key, Title: l.Title, Body: l.Body, Priority: l.Priority.n, Labels: l.Labels, DependsOn: l.DependsOn,
				NotBefore: l.NotBefore.t, MaxAttempts: l.MaxAttempts, Task: l.Task, Agent: l.Agent, NoChangeOK: l.NoChangeOK,
				Source: l.Source, Data: l.Data, at: name + ":" + strconv.Itoa(n),
			}
			if it.Source == "" {
				it.Source = "jsonl:" + cut(name, maxKey/2)
			}
			items = append(items, it)
		}
		if err == io.EOF {
			return items, nil
		}
	}
}

// ParseMarkdown reads the items of a markdown list: each list item of the outermost
// level is one, what is indented beneath it its body. "[x]" marks what is done
// already and "[-]" what was given up, which are passed over; "(P1)" or "(high)" at the beginning or end gives the
// priority, and words with "#" at the end give labels. name is where the list is from; with the
// title it is the key, so that reading the list again adds only what is new in it.
func ParseMarkdown(data []byte, name string) []Item {
	var items []Item
	var body []string
	done, open, fence, indent := false, false, "", 0
	flush := func() {
		if open && !done {
			items[len(items)-1].Body = strings.Trim(strings.Join(body, "\n"), "\n")
		}
		body = nil
	}
	outer := -1
	all := strings.ToValidUTF8(string(bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))), "\uFFFD")
	for _, text := range strings.Split(strings.ReplaceAll(all, "\r\n", "\n"), "\n") {
		text = strings.TrimRight(text, " \t\r")
		rest := strings.TrimLeft(text, " \t")
		depth := columns(text[:len(text)-len(rest)])
		// A fence that is not closed ends with the item that it is in: with a line that stands
		// further out than the item's text.
		if fence != "" && open && rest != "" && depth < indent {
			fence = ""
		}
		if fence == "" {
			if mark, width, ok := listItem(rest); ok && (outer < 0 || depth <= outer+1) {
				flush()
				outer, open, indent = max(outer, 0), true, depth+width
				if outer == 0 {
					outer = depth
				}
				it, isDone := fromLine(mark, name)
				if done = isDone || it.Title == ""; !done {
					items = append(items, it)
				}
				continue
			}
			if rest != "" && depth == 0 && open { // a paragraph or heading ends the list
				flush()
				open = false
			}
		}
		if f := fenceOf(rest); f != "" && (fence == "" || strings.HasPrefix(rest, fence)) {
			if fence == "" {
				fence = f
			} else {
				fence = ""
			}
		}
		if open {
			body = append(body, dedent(text, indent))
		}
	}
	flush()
	number, used := map[string]int{}, map[string]bool{}
	for i := range items {
		base := "markdown:" + name + "#" + items[i].Title
		number[base]++
		key := keyOf(base, number[base])
		for used[key] { // a title that ends with such a number itself
			number[base]++
			key = keyOf(base, number[base])
		}
		items[i].Key, used[key] = key, true
	}
	return items
}

// keyOf is the key of the n-th item of a list that has the same title.
func keyOf(key string, n int) string {
	if n > 1 {
		key += " (" + strconv.Itoa(n) + ")"
	}
	if len(key) > maxKey {
		sum := sha256.Sum256([]byte(key))
		key = cut(key, maxKey-20) + hex.EncodeToString(sum[:8])
	}
	return key
}

// listItem takes the bullet or number off a line; width is how far its text is
// indented by that.
func listItem(s string) (text string, width int, ok bool) {
	for _, bullet := range []string{"- ", "* ", "+ ", "-\t", "*\t", "+\t"} {
		if rest, is := strings.CutPrefix(s, bullet); is {
			return strings.TrimSpace(rest), 2, true
		}
	}
	n := 0
	for n < len(s) && n < 9 && s[n] >= '0' && s[n] <= '9' {
		n++
	}
	if n > 0 && n+1 < len(s) && (s[n] == '.' || s[n] == ')') && (s[n+1] == ' ' || s[n+1] == '\t') {
		return strings.TrimSpace(s[n+2:]), n + 2, true
	}
	return "", 0, false
}

func columns(space string) int {
	n := 0
	for _, c := range space {
		if c == '\t' {
			n += 4 - n%4
		} else {
			n++
		}
	}
	return n
}

func dedent(s string, n int) string {
	col := 0
	for i, c := range s {
		if col >= n || c != ' ' && c != '\t' {
			return s[i:]
		}
		if c == '\t' {
			col += 4 - col%4
		} else {
			col++
		}
	}
	return ""
}

func fenceOf(s string) string {
	for _, f := range []string{"```", "~~~"} {
		if strings.HasPrefix(s, f) {
			return f
		}
	}
	return ""
}

// fromLine makes an item of a list item's first line.
func fromLine(s, name string) (it Item, done bool) {
	if len(s) >= 3 && s[0] == '[' && s[2] == ']' && (len(s) == 3 || s[3] == ' ') && strings.ContainsRune(" xX-~", rune(s[1])) {
		done = s[1] != ' '
		s = strings.TrimSpace(s[3:])
	}
	for {
		head, last := "", s
		if i := strings.LastIndexByte(s, ' '); i >= 0 {
			head, last = strings.TrimSpace(s[:i]), s[i+1:]
		}
		if p, ok := inParentheses(last); ok && head != "" {
			it.Priority = &p
		} else if label := strings.TrimPrefix(last, "#"); label != last && oneLine(label) != "" && head != "" && !isNumber(label) {
			it.Labels = append([]string{oneLine(label)}, it.Labels...)
		} else {
			break
		}
		s = head
	}
	if first, rest, found := strings.Cut(s, " "); found {
		if p, ok := inParentheses(first); ok {
			it.Priority, s = &p, strings.TrimSpace(rest)
		}
	}
	it.Title, it.Source = oneLine(s), "markdown:"+cut(name, maxKey/2)
	return it, done
}

func isNumber(s string) bool {
	_, err := strconv.Atoi(s)
	return err == nil
}

// inParentheses reads "(P2)" and "(high)". A number alone is none: it may mean anything.
func inParentheses(s string) (int, bool) {
	word, ok := strings.CutPrefix(s, "(")
	if ok {
		word, ok = strings.CutSuffix(word, ")")
	}
	if !ok || isNumber(word) {
		return 0, false
	}
	n, err := ParsePriority(word)
	return n, err == nil
}

// priorityLabel reads a label of an issue: "P2", "priority: high" or "priority/high".
func priorityLabel(s string) (int, bool) {
	word, named := strings.CutPrefix(strings.ToLower(s), "priority")
	word = strings.TrimLeft(word, " :/-")
	if !named && (len(s) != 2 || isNumber(s)) {
		return 0, false
	}
	n, err := ParsePriority(word)
	return n, err == nil
}

// oneLine is a title of what may have control characters, or be too long.
func oneLine(s string) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
	return cut(strings.Join(strings.Fields(s), " "), maxTitle)
}

// GitHubFields are the fields that ParseGitHub wants of `gh issue list --json`.
const GitHubFields = "number,title,body,labels,url"

// ParseGitHub reads what `gh issue list --json number,title,body,labels,url` printed.
// An issue's address is its key, its labels are the item's, and a label "P1" or
// "priority: high" is its priority.
func ParseGitHub(data []byte) ([]Item, error) {
	var issues []struct {
		Number int                     `json:"number"`
		Title  string                  `json:"title"`
		Body   string                  `json:"body"`
		Labels []struct{ Name string } `json:"labels"`
		URL    string                  `json:"url"`
	}
	if err := json.Unmarshal(data, &issues); err != nil {
		return nil, invalid("gh did not print a list of issues: %w", err)
	}
	items := make([]Item, 0, len(issues))
	for _, i := range issues {
		u, err := url.Parse(i.URL)
		parts := []string{}
		if err == nil {
			parts = strings.Split(strings.Trim(u.Path, "/"), "/")
		}
		if len(parts) != 4 || i.Number <= 0 {
			return nil, invalid("the issue %d has the address %q, which is none of an issue", i.Number, cut(i.URL, 200))
		}
		name := fmt.Sprintf("github:%s/%s#%d", parts[0], parts[1], i.Number)
		if u.Host != "github.com" {
			name = "github:" + u.Host + "/" + strings.TrimPrefix(name, "github:")
		}
		it := Item{Key: name, Source: name, Title: oneLine(i.Title), Body: strings.ToValidUTF8(strings.ReplaceAll(i.Body, "\r\n", "\n"), "\uFFFD")}
		for _, l := range i.Labels {
			if p, ok := priorityLabel(l.Name); ok {
				it.Priority = &p
			}
			if name := oneLine(l.Name); name != "" {
				it.Labels = append(it.Labels, name)
			}
		}
		items = append(items, it)
	}
	return items, nil
}
