package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"reprise/internal/recall"
)

// document is one thing that can be recalled.
type document struct {
	ID      string          `json:"id"`
	Text    string          `json:"text"`
	Title   string          `json:"title"`
	Author  string          `json:"author"`
	Session string          `json:"session"`
	Project string          `json:"project"`
	Class   string          `json:"class"`
	Time    moment          `json:"time"`
	Ord     *int            `json:"ord"`
	Meta    json.RawMessage `json:"meta"`
}

// question asks for the documents that its evidence names; without evidence,
// nothing in the set answers it.
type question struct {
	ID       string          `json:"id"`
	Text     string          `json:"text"`
	Evidence []string        `json:"evidence"`
	Category string          `json:"category"`
	Project  string          `json:"project"`
	Split    string          `json:"split"`
	Lang     string          `json:"lang"`
	Time     moment          `json:"time"`
	Meta     json.RawMessage `json:"meta"`
}

// moment is a time in one of the usual forms.
type moment struct{ time.Time }

var momentForms = []string{time.RFC3339Nano, "2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02 15:04:05", "2006-01-02 15:04", "2006-01-02"}

// UnmarshalJSON reads RFC 3339 and its shorter forms, which are in UTC.
func (m *moment) UnmarshalJSON(b []byte) error {
	var s string
	if err := json.Unmarshal(b, &s); err != nil {
		return fmt.Errorf("time %s: a string like 2023-05-08T13:56:00Z is needed", b)
	}
	if s == "" {
		return nil
	}
	for _, form := range momentForms {
		if t, err := time.Parse(form, s); err == nil {
			m.Time = t
			return nil
		}
	}
	return fmt.Errorf("time %q: a form like 2023-05-08T13:56:00Z or 2023-05-08 is needed", s)
}

// record is one JSON value of a file: a line of JSONL, or the whole of a file.
type record struct {
	Doc       *document  `json:"doc"`
	Question  *question  `json:"question"`
	Documents []document `json:"documents"`
	Questions []question `json:"questions"`
}

type evalSet struct {
	docs      []recall.Doc
	questions []question
}

// readSet reads the files of one set together: evidence may be in another file.
func readSet(files []string) (*evalSet, error) {
	s := &evalSet{}
	r := &reader{set: s, ids: map[string]bool{}, asked: map[string]bool{}, ords: map[string]int{}}
	for _, name := range files {
		if err := r.file(name); err != nil {
			return nil, err
		}
	}
	for _, q := range s.questions {
		for _, id := range q.Evidence {
			if !r.ids[id] {
				return nil, fmt.Errorf("question %q: its evidence %q is no document of the set", q.ID, id)
			}
		}
	}
	if len(s.docs) == 0 {
		return nil, errors.New("the set has no documents")
	}
	if len(s.questions) == 0 {
		return nil, errors.New("the set has no questions")
	}
	return s, nil
}

type reader struct {
	set        *evalSet
	ids, asked map[string]bool
	ords       map[string]int
}

func (r *reader) file(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	in := &lines{r: bufio.NewReaderSize(f, 1<<20)}
	dec := json.NewDecoder(in)
	dec.DisallowUnknownFields()
	for n := 1; ; n++ {
		var rec record
		err := dec.Decode(&rec)
		if errors.Is(err, io.EOF) {
			return nil
		}
		at := fmt.Sprintf("%s, JSON value %d (about line %d)", name, n, in.line(dec.InputOffset()))
		if err != nil {
			return fmt.Errorf("%s: %w", at, err)
		}
		if err := r.add(rec); err != nil {
			return fmt.Errorf("%s: %w", at, err)
		}
	}
}

func (r *reader) add(rec record) error {
	docs, qs := rec.Documents, rec.Questions
	if rec.Doc != nil {
		docs = append(docs, *rec.Doc)
	}
	if rec.Question != nil {
		qs = append(qs, *rec.Question)
	}
	if len(docs) == 0 && len(qs) == 0 {
		return errors.New(`it has none of "doc", "question", "documents" and "questions"`)
	}
	for i := range docs {
		if err := r.document(&docs[i]); err != nil {
			return err
		}
	}
	for _, q := range qs {
		if q.ID == "" {
			q.ID = fmt.Sprintf("question %d", len(r.set.questions)+1)
		}
		if strings.TrimSpace(q.Text) == "" {
			return fmt.Errorf("question %q has no text", q.ID)
		}
		if r.asked[q.ID] {
			return fmt.Errorf("two questions have the id %q", q.ID)
		}
		r.asked[q.ID] = true
		seen := map[string]bool{}
		for _, id := range q.Evidence {
			if seen[id] {
				return fmt.Errorf("question %q names its evidence %q twice", q.ID, id)
			}
			seen[id] = true
		}
		if q.Category == "" {
			q.Category = "all"
		}
		r.set.questions = append(r.set.questions, q)
	}
	return nil
}

func (r *reader) document(d *document) error {
	if d.ID == "" {
		return errors.New("a document has no id")
	}
	if r.ids[d.ID] {
		return fmt.Errorf("two documents have the id %q", d.ID)
	}
	r.ids[d.ID] = true
	if d.Class == "" {
		d.Class = string(recall.ClassEpisode)
	}
	out := recall.Doc{ID: d.ID, Class: recall.Class(d.Class), Scope: "global", Project: d.Project, Author: d.Author,
		Source: d.ID, Title: d.Title, Text: d.Text, Time: d.Time.Time}
	if d.Project != "" {
		out.Scope = "project"
	}
	if d.Session != "" {
		out.Session = d.Session
		out.Group = d.Project + "/" + d.Session
		r.ords[out.Group]++
		out.Ord = r.ords[out.Group]
		if d.Ord != nil {
			out.Ord = *d.Ord
		}
	}
	r.set.docs = append(r.set.docs, out)
	return nil
}

// choose leaves only the questions of one split.
func (s *evalSet) choose(split string) error {
	if split == "" {
		return nil
	}
	var qs []question
	have := map[string]bool{}
	for _, q := range s.questions {
		have[q.Split] = true
		if q.Split == split {
			qs = append(qs, q)
		}
	}
	if len(qs) == 0 {
		return fmt.Errorf("no question is of the split %q (there are %d splits)", split, len(have))
	}
	s.questions = qs
	return nil
}

// lines knows which line a byte of what was read is in, for messages.
type lines struct {
	r    io.Reader
	ends []int64
	off  int64
}

func (l *lines) Read(p []byte) (int, error) {
	n, err := l.r.Read(p)
	for i, c := range p[:n] {
		if c == '\n' {
			l.ends = append(l.ends, l.off+int64(i))
		}
	}
	l.off += int64(n)
	return n, err
}

func (l *lines) line(off int64) int {
	n := 1
	for _, e := range l.ends {
		if e >= off {
			break
		}
		n++
	}
	return n
}
