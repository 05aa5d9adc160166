package task

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

const byHand = `---
title: mine
---
# To do

What we agreed on Monday stays at the top.

## Now

### 12. Fix the login (again)
  * __Status__: in progress
  * Priority: HIGH
  * a note of mine
    that goes on
- **Plan**:

Some words with a fence:

` + "```" + `
### 99. Not a task
- **Status**: [COMPLETED]
` + "```" + `

#### 3. a step of it
- **Status**: [DONE]

### 7. Second

- **Effort**: 2 hours
- **Status**: [NOT STARTED]
- **Depends on**: #12, task 3

### Tidy the cellar
- **Priority**: low

## Notes

### 2026-01-21 Meeting
Nothing.

### Ideas
- maybe: later
`

func parse(t *testing.T, text string) *Todo {
	t.Helper()
	todo, err := ParseTodo([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return todo
}

func TestReadsWhatPeopleWrite(t *testing.T) {
	todo := parse(t, byHand)
	var got []string
	for _, s := range todo.Sections {
		got = append(got, strings.TrimSpace(strings.Join([]string{s.Title, fields(s)}, " | ")))
	}
	want := []string{
		"Fix the login (again) | status=in progress priority=HIGH plan=",
		"Second | effort=2 hours status=[NOT STARTED] depends=#12, task 3",
		"Tidy the cellar | priority=low",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if n := todo.Sections[0].Number; n != 12 {
		t.Errorf("number %d", n)
	}
	if got := todo.Body(todo.Sections[1]); got != "" {
		t.Errorf("body %q", got)
	}
	if !bytes.Equal(todo.Bytes(), []byte(byHand)) {
		t.Error("reading changed it")
	}
}

func fields(s *Section) string {
	var out []string
	for _, f := range s.Fields {
		out = append(out, f.Name+"="+f.Value)
	}
	return strings.Join(out, " ")
}

// An edit changes the bytes that it is about and no others.
func TestEditsKeepTheRest(t *testing.T) {
	for _, c := range []struct {
		name, text string
		do         func(*Todo)
		from, to   string
	}{
		{"a marker", byHand, func(d *Todo) { d.Set(d.Find(12), "status", "[COMPLETED]") }, "__Status__: in progress", "__Status__: [COMPLETED]"},
		{"an empty value", byHand, func(d *Todo) { d.Set(d.Find(12), "plan", "x") }, "- **Plan**:\n", "- **Plan**: x\n"},
		{"a further field", byHand, func(d *Todo) { d.Set(d.Find(7), "started", "now") }, "task 3\n", "task 3\n- **Started**: now\n"},
		{"two further fields", byHand, func(d *Todo) { d.Set(d.Find(7), "started", "now"); d.Set(d.Find(7), "completed", "then") }, "task 3\n", "task 3\n- **Started**: now\n- **Completed**: then\n"},
		{"the wrong way round", byHand, func(d *Todo) { d.Set(d.Find(7), "priority", "low"); d.Set(d.Find(7), "priority", "high") }, "[NOT STARTED]\n- **Dep", "[NOT STARTED]\n- **Priority**: high\n- **Dep"},
		{"added and taken away", byHand, func(d *Todo) { d.Set(d.Find(7), "started", "now"); d.Set(d.Find(7), "started", "") }, "", ""},
		{"changed twice", byHand, func(d *Todo) { d.Set(d.Find(7), "effort", "3"); d.Set(d.Find(7), "effort", "4 hours") }, "2 hours", "4 hours"},
		{"a line less", byHand, func(d *Todo) { d.Set(d.Find(7), "effort", "9"); d.Set(d.Find(7), "effort", "") }, "- **Effort**: 2 hours\n", ""},
		{"a number", byHand, func(d *Todo) { s := d.Sections[2]; d.SetHeading(s, 13, s.Title) }, "### Tidy", "### 13. Tidy"},
		{"a section less", byHand, func(d *Todo) { s := d.Find(7); d.SetHeading(s, 8, "x"); d.Set(s, "effort", "1"); d.Remove(s) }, byHand[strings.Index(byHand, "### 7."):strings.Index(byHand, "### Tidy")], ""},
		{"no final newline", "### 1. a\n- **Status**: [PLANNED]", func(d *Todo) { d.Set(d.Find(1), "started", "x"); d.Set(d.Find(1), "completed", "y") }, "[PLANNED]", "[PLANNED]\n- **Started**: x\n- **Completed**: y\n"},
		{"CRLF", "### 1. a\r\n- **Status**: [PLANNED]\r\n", func(d *Todo) { d.Set(d.Find(1), "started", "x"); d.Set(d.Find(1), "status", "[BLOCKED]") }, "[PLANNED]\r\n", "[BLOCKED]\r\n- **Started**: x\r\n"},
		{"no list yet", "### 1. a\n\nwords\n", func(d *Todo) { d.Set(d.Find(1), "status", "[PLANNED]") }, "### 1. a\n", "### 1. a\n- **Status**: [PLANNED]\n"},
		{"a title that ends in #", byHand, func(d *Todo) { d.SetHeading(d.Find(7), 7, "Use C #") }, "### 7. Second", "### 7. Use C # ###"},
	} {
		todo := parse(t, c.text)
		c.do(todo)
		if got, want := string(todo.Bytes()), strings.Replace(c.text, c.from, c.to, 1); got != want {
			t.Errorf("%s: got\n%s\nwant\n%s", c.name, got, want)
		}
	}
}

func TestAppend(t *testing.T) {
	for text, want := range map[string]string{
		"":                            "# TODO\n\n### 4. New\n\n- **Status**: [NOT STARTED]\n",
		"# Mine":                      "# Mine\n\n### 4. New\n\n- **Status**: [NOT STARTED]\n",
		"# Mine\r\n":                  "# Mine\r\n\r\n### 4. New\r\n\r\n- **Status**: [NOT STARTED]\r\n",
		"## 3. a\n- Status: x\n# End": "## 3. a\n- Status: x\n\n## 4. New\n\n- **Status**: [NOT STARTED]\n\n# End",
	} {
		todo := parse(t, text)
		todo.Append(4, "New", [][2]string{{"status", "[NOT STARTED]"}, {"effort", ""}}, "")
		if got := string(todo.Bytes()); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
		if todo.Find(4) == nil || !todo.Changed() {
			t.Errorf("%q: it is not found", text)
		}
		// What is changed of it, and added behind it, is as if it had been read.
		again := parse(t, want)
		for _, to := range []*Todo{todo, again} {
			to.Set(to.Find(4), "status", "[PLANNED]")
			to.Set(to.Find(4), "effort", "3 hours")
			to.Set(to.Find(4), "effort", "")
			to.Set(to.Find(4), "plan", "[p](p)")
			to.SetHeading(to.Find(4), 4, "Newer")
			to.Append(5, "Next", [][2]string{{"status", "x"}}, "Said.")
			to.Append(6, "Last", [][2]string{{"status", "x"}}, "")
		}
		if got, want := string(todo.Bytes()), string(again.Bytes()); got != want || strings.Count(got, "### ")+strings.Count(got, "## ") < 3 {
			t.Errorf("%q: got\n%q, and when it is read between\n%q", text, got, want)
		}
	}
}

// FuzzTodo: any text stays as it is where nobody edits it, an edit is read back, and
// no line that a person wrote is lost by one.
func FuzzTodo(f *testing.F) {
	f.Add([]byte(byHand))
	f.Add([]byte("### 1. a\r\n- Status: done\r\n### 1. a\n"))
	f.Add([]byte("1. x\n---\n- **Status**:\n<!-- ### 2. y -->\n### 3) z"))
	f.Add([]byte("\xef\xbb\xbf### 5. \n* **Priority** : low\r- Status: a"))
	f.Fuzz(func(t *testing.T, data []byte) {
		todo, err := ParseTodo(data)
		if err != nil {
			return
		}
		if !bytes.Equal(todo.Bytes(), data) {
			t.Fatal("reading changed it")
		}
		b := &Board{Todo: todo, State: &State{Next: 1, Tasks: map[int]*Task{}}, now: clock()}
		b.takeOver()
		after := b.Todo.Bytes()
		again, err := ParseTodo(after)
		if err != nil {
			t.Fatal(err)
		}
		c := &Board{Todo: again, State: b.State, now: clock()}
		c.takeOver()
		if len(c.Taken) > 0 || again.Changed() {
			t.Fatalf("taken over twice: %v\n%q\n%q", c.Taken, data, again.Bytes())
		}
		lost(t, data, after)
	})
}

// lost looks for lines of before that after does not have; those of headings that
// got a number are there with it.
func lost(t *testing.T, before, after []byte) {
	t.Helper()
	have := map[string]int{}
	lines := func(b []byte) [][]byte {
		return bytes.FieldsFunc(b, func(r rune) bool { return r == '\n' || r == '\r' })
	}
	for _, line := range lines(after) {
		have[string(bytes.TrimSpace(line))]++
	}
	for _, line := range lines(before) {
		text := string(bytes.TrimSpace(line))
		if have[text]--; have[text] < 0 && !strings.Contains(string(after), strings.Trim(text, "# \t\xef\xbb\xbf")) && !underline(text) {
			t.Fatalf("lost %q\nof %q\nin %q", text, before, after)
		}
	}
}

// underline is the second line of a heading, which goes when the heading gets a
// number.
func underline(text string) bool {
	return strings.Trim(text, "=") == "" || strings.Trim(text, "-") == ""
}

func BenchmarkTodo5000(b *testing.B) {
	var text strings.Builder
	for n := range 5000 {
		text.WriteString("### " + itoa(n+1) + ". A task of some length that says what is to be done\n- **Effort**: 3 hours\n- **Status**: [PLANNED]\n- **Priority**: high\n- **Language**: go\n- **Started**: 2026-01-01T00:00:00Z\n\nAnd a line of words about it, as people write them.\n\n")
	}
	data := []byte(text.String())
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		if todo, err := ParseTodo(data); err != nil || len(todo.Sections) != 5000 {
			b.Fatal(err)
		}
	}
}

// What is found by hand is what the pattern finds.
func TestFieldAt(t *testing.T) {
	for _, line := range []string{
		"- **Status**: [PLANNED]", "- **Depends on**: 1, 2", "- **Status:** x", "* Status: x", "- **Status**:  x", "- **Status**: x ", "- **Status**: ",
		"- ** Status**: x", "- **Status **: x", "- **A very long name that is none of a field**: x", "- **Plan**: [a](b): c", "- [ ] **Status**: x", "text: x", "- no field",
		"- **St4tus**: x", "- **Status**:x", "  - **Status**: x",
	} {
		got, ok := fieldAt(line)
		if want := patterns().field.FindStringSubmatchIndex(line); ok != (want != nil) || ok && fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%q: got %v, want %v", line, got, want)
		}
	}
}
