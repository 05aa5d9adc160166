package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"reprise/internal/fact"
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

var momentForms = []string{time.RFC3339Nano, "2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02 15:04:05Z07:00", "2006-01-02 15:04:05",
	"2006-01-02 15:04", "2006-01-02", "2006-01", "2006/01/02", "2006/01/02 15:04", "2006/01/02 15:04:05", time.RFC1123Z, time.RFC1123,
	"3:04 pm on 2 January, 2006", "3:04 PM on 2 January, 2006", "2 January 2006", "2 January, 2006", "2 January 2006 15:04", "January 2, 2006", "January 2, 2006 15:04"}

// UnmarshalJSON reads RFC 3339 and its shorter forms, and how people write
// dates; without a zone they are in UTC. null and "" are no time.
func (m *moment) UnmarshalJSON(b []byte) error {
	var s string
	if err := json.Unmarshal(b, &s); err != nil {
		return fmt.Errorf("time %s: a string like 2023-05-08T13:56:00Z is needed", b)
	}
	s = strings.TrimSpace(s)
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
	// plain are the ids of documents as the set has them, where the index needs
	// others: two conversations may use the same ids.
	plain map[string]string
	notes []string // what was put up with, for the reader of the figures
}

// id is what the set calls a document.
func (s *evalSet) id(of string) string {
	if p, ok := s.plain[of]; ok {
		return p
	}
	return strings.TrimPrefix(of, nowhere)
}

// nowhere begins the id of evidence that is no document.
const nowhere = "\x00"

// key tells questions of one id in different projects apart.
func (q *question) key() [2]string { return [2]string{q.Project, q.ID} }

const maxNotes = 10 // of one kind that are told one by one

// readSet reads the files of one set together: evidence may be in another file.
// When lenient, evidence that is no document counts as never found, instead of
// being an error.
func readSet(files []string, lenient bool) (*evalSet, error) {
	s := &evalSet{plain: map[string]string{}}
	r := &reader{set: s, byID: map[string][]recall.Doc{}, taken: map[string]bool{}, asked: map[[2]string]question{}, ords: map[string]int{}}
	for _, name := range files {
		if err := r.file(name); err != nil {
			return nil, err
		}
	}
	if len(s.docs) == 0 {
		return nil, errors.New("the set has no documents")
	}
	if len(s.questions) == 0 {
		return nil, errors.New("the set has no questions")
	}
	var wrong []string
	for i := range s.questions {
		q := &s.questions[i]
		var ids []string
		for _, id := range q.Evidence {
			full, why := r.evidence(q, id)
			if why != "" {
				wrong = append(wrong, fmt.Sprintf("question %q: its evidence %q %s", q.ID, id, why))
				full = nowhere + id
			}
			if slices.Contains(ids, full) {
				s.note("question %q names its evidence %q twice: it counts once", q.ID, id)
				continue
			}
			ids = append(ids, full)
		}
		q.Evidence = ids
	}
	if len(wrong) > 0 {
		list := strings.Join(wrong[:min(maxNotes, len(wrong))], "\n  ")
		if !lenient {
			return nil, fmt.Errorf("%s\n(%d in all; with --lenient such evidence counts as never found)", list, len(wrong))
		}
		s.note("%d times evidence cannot be found, which counts as a miss:\n  %s", len(wrong), list)
	}
	return s, nil
}

func (s *evalSet) note(format string, args ...any) {
	s.notes = append(s.notes, fmt.Sprintf(format, args...))
}

type reader struct {
	set   *evalSet
	byID  map[string][]recall.Doc // by the id that the set uses; one a project
	taken map[string]bool         // ids of the index
	asked map[[2]string]question  // by project and id
	ords  map[string]int
}

// evidence finds the document that a question means, or says why there is none.
func (r *reader) evidence(q *question, id string) (full, why string) {
	docs := r.byID[id]
	for _, d := range docs {
		if d.Project == q.Project {
			return d.ID, ""
		}
	}
	for _, d := range docs {
		if d.Project == "" { // every project sees it
			return d.ID, ""
		}
	}
	switch {
	case len(docs) == 0:
		return "", "is no document of the set"
	case q.Project != "":
		return "", fmt.Sprintf("is of project %q, which a question of project %q does not see", docs[0].Project, q.Project)
	case len(docs) > 1:
		return "", fmt.Sprintf("is in %d projects: the question must say which project it is of", len(docs))
	}
	return docs[0].ID, ""
}

func (r *reader) file(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	buf := bufio.NewReaderSize(f, 1<<20)
	if mark, err := buf.Peek(3); err == nil && string(mark) == "\ufeff" {
		_, _ = buf.Discard(3)
	}
	in := &lines{r: buf}
	dec := json.NewDecoder(in)
	dec.DisallowUnknownFields()
	for n := 1; ; n++ {
		var rec record
		err := dec.Decode(&rec)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = r.add(rec)
		}
		if err != nil {
			return fmt.Errorf("%s, JSON value %d (about line %d): %w", name, n, in.line(dec.InputOffset()), err)
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
		if err := r.question(q); err != nil {
			return err
		}
	}
	return nil
}

func (r *reader) question(q question) error {
	if q.ID == "" {
		q.ID = fmt.Sprintf("question %d", len(r.set.questions)+1)
	}
	if strings.TrimSpace(q.Text) == "" {
		return fmt.Errorf("question %q has no text", q.ID)
	}
	if q.Category == "" {
		q.Category = "all"
	}
	if old, ok := r.asked[q.key()]; ok {
		if old.Text != q.Text || !slices.Equal(old.Evidence, q.Evidence) {
			return fmt.Errorf("two questions have the id %q", q.ID)
		}
		r.set.note("the question %q is there twice: it counts once", q.ID)
		return nil
	}
	r.asked[q.key()] = q
	r.set.questions = append(r.set.questions, q)
	return nil
}

// classes are those that a document may be of.
var classes = []recall.Class{recall.ClassCore, recall.ClassIndex, recall.ClassBlock, recall.ClassDecision, recall.ClassLearning, recall.ClassEpisode,
	recall.ClassPattern, recall.ClassAntiPattern, recall.ClassSummary, recall.ClassAnswer, recall.ClassState, recall.ClassProfile}

func (r *reader) document(d *document) error {
	if d.ID == "" {
		return errors.New("a document has no id")
	}
	if d.Class == "" {
		d.Class = string(recall.ClassEpisode)
	}
	if !slices.Contains(classes, recall.Class(d.Class)) {
		return fmt.Errorf("document %q is of class %q: there are %v, and none means episode", d.ID, d.Class, classes)
	}
	out := recall.Doc{ID: d.ID, Class: recall.Class(d.Class), Scope: "global", Project: d.Project, Author: d.Author,
		Source: d.ID, Title: d.Title, Text: d.Text, Time: d.Time.Time}
	if d.Project != "" {
		out.Scope = "project"
	}
	if out.Class != recall.ClassEpisode { // as reprise does with what is written down
		out.Facts = fact.FindUnder(out.Title, out.Text)
	}
	for _, old := range r.byID[d.ID] {
		if old.Project != d.Project {
			continue
		}
		if old.Text != d.Text || old.Title != d.Title || old.Author != d.Author || old.Session != d.Session || !old.Time.Equal(d.Time.Time) {
			return fmt.Errorf("two documents have the id %q, and say different things", d.ID)
		}
		r.set.note("the document %q is there twice: it counts once", d.ID)
		return nil
	}
	for n := 0; r.taken[out.ID]; n++ {
		out.ID = d.Project + "/" + d.ID + strings.Repeat("'", n)
	}
	if out.ID != d.ID {
		r.set.plain[out.ID] = d.ID
	}
	r.taken[out.ID] = true
	if d.Session != "" {
		out.Session = d.Session
		out.Group = d.Project + "/" + d.Session
		r.ords[out.Group]++
		out.Ord = r.ords[out.Group]
		if d.Ord != nil {
			out.Ord = *d.Ord
		}
	}
	r.byID[d.ID] = append(r.byID[d.ID], out)
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

// pairs makes one question of each two single ones of a project that follow one
// another: what is asked in one breath needs both answers.
func (s *evalSet) pairs() {
	var out []question
	var first *question
	for _, q := range s.questions {
		if q.Category != "single" || q.Lang == "ja" || !q.Time.IsZero() {
			continue
		}
		if first == nil || first.Project != q.Project {
			first = &q
			continue
		}
		both := *first
		both.ID += "+" + q.ID
		both.Category = "pair"
		both.Text = strings.TrimRight(first.Text, "?. ") + " and " + strings.ToLower(q.Text[:1]) + q.Text[1:]
		both.Evidence = append(slices.Clone(first.Evidence), q.Evidence...)
		slices.Sort(both.Evidence)
		both.Evidence = slices.Compact(both.Evidence)
		out = append(out, both)
		first = nil
	}
	s.questions = out
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
