package task

import (
	"bytes"
	"encoding/json"
	"maps"
	"path"
	"slices"
	"strconv"
	"time"
)

// writer writes JSON as json.MarshalIndent does with two spaces, without its detours: a
// change of one task writes the whole list.
type writer struct {
	b     []byte
	err   error
	lead  string // line end and indent of the object at hand
	first bool   // nothing stands in it yet
}

// object writes an object whose line ends and indents are lead.
func (w *writer) object(lead string, fields func()) {
	outer := w.lead
	w.lead, w.first = lead, true
	w.b = append(w.b, '{')
	if fields(); !w.first {
		w.b = append(w.b, lead...)
	}
	w.b = append(w.b, '}')
	w.lead, w.first = outer, false
}

func (w *writer) key(name string) *writer {
	if !w.first {
		w.b = append(w.b, ',')
	}
	w.first = false
	w.b = append(append(w.b, w.lead...), "  "...)
	w.text(name)
	w.b = append(w.b, ": "...)
	return w
}

func (w *writer) integer(n int) { w.b = strconv.AppendInt(w.b, int64(n), 10) }

// text is a string; one with anything but plain letters is for encoding/json.
func (w *writer) text(s string) {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c >= 0x7f || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			w.value(s)
			return
		}
	}
	w.b = append(append(append(w.b, '"'), s...), '"')
}

// value is anything, by encoding/json.
func (w *writer) value(v any) {
	data, err := json.Marshal(v)
	if err != nil {
		w.fail(err)
		return
	}
	w.raw(data)
}

// raw is JSON that somebody else made.
func (w *writer) raw(data []byte) {
	var out bytes.Buffer
	if err := json.Indent(&out, data, w.lead[min(1, len(w.lead)):]+"  ", "  "); err != nil {
		w.fail(err)
		return
	}
	w.b = append(w.b, out.Bytes()...)
}

func (w *writer) fail(err error) {
	if w.err == nil {
		w.err = err
	}
}

func (w *writer) extra(fields map[string]json.RawMessage) {
	for _, k := range slices.Sorted(maps.Keys(fields)) {
		w.key(k).raw(fields[k])
	}
}

func (w *writer) list(n int, item func(i int)) {
	w.b = append(w.b, '[')
	for i := range n {
		if i > 0 {
			w.b = append(w.b, ',')
		}
		w.b = append(append(w.b, w.lead...), "    "...)
		item(i)
	}
	if n > 0 {
		w.b = append(append(w.b, w.lead...), "  "...)
	}
	w.b = append(w.b, ']')
}

func (w *writer) maybeText(name, s string) {
	if s != "" {
		w.key(name).text(s)
	}
}

func (w *writer) maybeTexts(name string, list []string) {
	if len(list) > 0 {
		w.key(name).list(len(list), func(i int) { w.text(list[i]) })
	}
}

func (w *writer) maybeIntegers(name string, list []int) {
	if len(list) > 0 {
		w.key(name).list(len(list), func(i int) { w.integer(list[i]) })
	}
}

func (w *writer) maybeTime(name string, at *time.Time) {
	if at == nil {
		return
	}
	w.key(name)
	w.b = append(w.b, '"')
	data, err := at.AppendText(w.b)
	if err != nil {
		w.fail(err)
		return
	}
	w.b = append(data, '"')
}

// named is a task with what else a program may want that knows it from nowhere else.
func (w *writer) named(d Named, lead string) {
	w.taskAfter(d.Task, lead, func() {
		w.key("number").integer(d.Number)
		if d.Archived {
			w.key("folder").text(path.Join(specsDir, archiveDir, d.Folder()))
			w.key("archived").value(true)
		} else {
			w.key("folder").text(specsDir + "/" + d.Folder())
		}
		w.maybeIntegers("waits_for", d.Waits)
	})
}

// task is a task as state.json has it.
func (w *writer) task(t *Task, lead string) { w.taskAfter(t, lead, func() {}) }

func (w *writer) taskAfter(t *Task, lead string, before func()) {
	w.object(lead, func() {
		before()
		w.key("title").text(t.Title)
		w.key("slug").text(t.Slug)
		w.key("status").text(string(t.Status))
		w.maybeText("priority", t.Priority)
		w.maybeText("language", t.Language)
		w.maybeText("effort", t.Effort)
		if n := int(t.EffortHours); t.EffortHours == float64(n) && n > 0 && n < 1e9 {
			w.key("effort_hours").integer(n)
		} else if t.EffortHours != 0 {
			w.key("effort_hours").value(t.EffortHours)
		}
		w.maybeIntegers("depends_on", t.DependsOn)
		w.maybeTime("created", t.Created)
		w.maybeTime("started", t.Started)
		w.maybeTime("completed", t.Completed)
		w.maybeTime("abandoned", t.Abandoned)
		w.maybeTime("updated", t.Updated)
		w.maybeText("status_before", string(t.Before))
		w.maybeText("reason", t.Reason)
		if len(t.Operations) > 0 {
			w.key("operations").value(t.Operations)
		}
		w.maybeTexts("research", t.Research)
		w.maybeTexts("plans", t.Plans)
		w.maybeText("summary", t.Summary)
		w.extra(t.extra)
	})
}

// Named is a task as commands print it for programs: with its number, its folder, and
// the tasks that it waits for.
type Named struct {
	*Task
	Waits []int
	// Archived says that it was taken out of the list.
	Archived bool
}

// MarshalJSON puts the number first and the task's own fields after it.
func (d Named) MarshalJSON() ([]byte, error) {
	w := writer{}
	w.named(d, "\n")
	return w.b, w.err
}

// MarshalList is a list of tasks as indented JSON with a line end.
func MarshalList(list []Named) ([]byte, error) {
	w := writer{b: make([]byte, 0, 16+450*len(list)), lead: "\n"}
	w.b = append(w.b, '[')
	for i, d := range list {
		if i > 0 {
			w.b = append(w.b, ',')
		}
		w.b = append(w.b, "\n  "...)
		w.named(d, "\n  ")
	}
	if len(list) > 0 {
		w.b = append(w.b, '\n')
	}
	return append(w.b, "]\n"...), w.err
}
