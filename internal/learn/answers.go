package learn

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"reprise/internal/clip"
	"reprise/internal/event"
	"reprise/internal/learn/sign"
	"reprise/internal/recall"
)

// Asked is a question to the user and what the user said, in Data.Asked.
type Asked struct {
	Question string    `json:"question"`
	Options  []string  `json:"options,omitempty"`
	Answer   string    `json:"answer"`
	Times    int       `json:"times"` // that the user gave it in a row
	First    time.Time `json:"first"`
	Last     time.Time `json:"last"`
	Sessions []string  `json:"sessions,omitempty"` // in which it was given, the newest last, at most 20
	Memory   int       `json:"memory,omitempty"`   // times that it was given from memory
	// Before is what the user had said before this answer, where that was
	// something else.
	Before string `json:"before,omitempty"`
}

// KindAnswer is a question to the user and the answer, in Data.Kind.
const KindAnswer = "answer"

const rowAsk = "ask" // an answer to a question

// QuestionKey is the same for the same question with the same options, however
// it is spelt and in whichever order they stand.
func QuestionKey(question string, options []string) string {
	var opts []string
	for _, o := range options {
		opts = append(opts, plainText(strings.TrimSuffix(strings.TrimSpace(o), "(Recommended)")))
	}
	slices.Sort(opts)
	return "question:" + sign.Hash(append([]string{plainText(question)}, slices.Compact(opts)...)...)
}

// plainText is a text without what does not count: case, width of characters,
// white space, quotes, marks at its end.
func plainText(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case r >= '！' && r <= '～': // full-width forms
			return r - '！' + '!'
		case r == '　':
			return ' '
		case strings.ContainsRune("`\"'“”‘’「」『』*", r):
			return -1
		}
		return r
	}, s)
	return strings.TrimRight(strings.ToLower(strings.Join(strings.Fields(s), " ")), " ?!.:。、")
}

// askRow is one answer.
type askRow struct {
	Question string   `json:"question"`
	Options  []string `json:"options,omitempty"`
	Answer   string   `json:"answer"`
	Memory   bool     `json:"memory,omitempty"` // reprise gave it
	Event    string   `json:"event"`
	At       int64    `json:"at"`
	Session  string   `json:"session,omitempty"`
	Project  string   `json:"project,omitempty"`
	Client   string   `json:"client,omitempty"`
	ACL      []string `json:"acl,omitempty"`
}

func (c *composer) answerRow(r *record) {
	var d event.QuestionData
	decode(r.extra, &d)
	if plainText(d.Question) == "" || strings.TrimSpace(d.Answer) == "" {
		return
	}
	row := askRow{
		Question: sign.Clip(clip.Line(d.Question), 400), Answer: sign.Clip(clip.Line(d.Answer), 600), Memory: d.By == "memory", Event: r.id, At: r.at,
		Session: c.name, Project: r.project, Client: r.client, ACL: r.acl,
	}
	for _, o := range d.Options {
		row.Options = append(row.Options, sign.Clip(clip.Line(o), 160))
	}
	row.Options = row.Options[:min(len(row.Options), 12)]
	// A client that was handed the answer reports it as if the user had given it.
	for _, m := range c.s.recs {
		if m.typ != event.QuestionAnswered || m == r || d.UseID == "" {
			continue
		}
		var by event.QuestionData
		decode(m.extra, &by)
		if by.By == "memory" && by.UseID == d.UseID && by.Question == d.Question {
			if row.Memory = true; d.By != "memory" {
				return
			}
			break
		}
	}
	if row.Memory {
		c.s.stats.FromMemory++
	} else {
		c.s.stats.Answered++
	}
	c.add(rowAsk, sign.Hash(r.project, QuestionKey(d.Question, d.Options), strings.Join(r.acl, " ")), sortKey(r.at, c.key, sign.Hash(r.id)), row)
}

// askGroup makes a document of each answer that the user gave to a question,
// for as long as nothing else was said.
func (f *folder) askGroup(values [][]byte) ([]recall.Doc, error) {
	rows := readRows[askRow](values)
	var docs []recall.Doc
	var run []askRow
	memory, before := 0, ""
	end := func(over int64) error {
		if len(run) == 0 {
			return nil
		}
		id := "qa-" + sign.Hash(run[0].Event)
		at, err := forgottenAt(f.tx, id)
		if err != nil {
			return err
		}
		// What was said again after it was forgotten is a new answer.
		old := run
		if at > 0 {
			old = slices.DeleteFunc(slices.Clone(run), func(r askRow) bool { return r.At > at })
			run = slices.DeleteFunc(run, func(r askRow) bool { return r.At <= at })
		}
		if len(old) > 0 {
			docs = append(docs, answerDoc(old, before, memory, over))
		}
		if at > 0 && len(run) > 0 {
			docs = append(docs, answerDoc(run, "", memory, over))
		}
		return nil
	}
	for _, r := range rows {
		switch {
		case r.Memory:
			memory++
			continue
		case len(run) > 0 && plainText(run[0].Answer) != plainText(r.Answer):
			said := run[len(run)-1].Answer
			if err := end(r.At); err != nil {
				return nil, err
			}
			run, memory, before = nil, 0, said
		}
		run = append(run, r)
	}
	return docs, end(0)
}

// forgottenAt is when an item was forgotten last; 0 = never.
func forgottenAt(tx Tx, id string) (at int64, err error) {
	was, err := retirementOf(tx, id)
	if err != nil || !was.gone() {
		return 0, err
	}
	prefix := rowGone + "\t" + sign.Hash(id) + "\t"
	err = tx.EachKV(bucketRow, prefix, func(key string, value []byte) bool {
		when, _, _ := strings.Cut(key[len(prefix):], "|")
		var row goneRow
		if n, perr := strconv.ParseInt(when, 10, 64); perr == nil && json.Unmarshal(value, &row) == nil && slices.Contains(was.stones, row.Event) && !slices.Contains(was.back, row.Event) {
			at = max(at, n)
		}
		return true
	})
	return at, err
}

func answerDoc(run []askRow, before string, memory int, over int64) recall.Doc {
	first, last := run[0], run[len(run)-1]
	a := Asked{
		Question: last.Question, Options: last.Options, Answer: last.Answer, Times: len(run), First: timeOf(first.At), Last: timeOf(last.At), Memory: memory, Before: before,
	}
	data := Data{Kind: KindAnswer, Task: last.Question, Said: last.Answer, Outcome: Told, Asked: &a, Signals: map[string]float64{SignalOutcome: 0.7, SignalSaid: 0.9, SignalNovelty: 0.5}}
	for _, r := range run {
		if !slices.Contains(a.Sessions, r.Session) {
			a.Sessions = append(a.Sessions, r.Session)
		}
		data.Evidence = appendNew(data.Evidence, r.Event, maxEvidence)
	}
	a.Sessions = a.Sessions[max(0, len(a.Sessions)-20):]
	var b strings.Builder
	fmt.Fprintf(&b, "The user was asked: %s", last.Question)
	if len(last.Options) > 0 {
		fmt.Fprintf(&b, " (%s)", strings.Join(last.Options, " / "))
	}
	fmt.Fprintf(&b, "\nThe user answered: %s", last.Answer)
	if len(run) > 1 {
		fmt.Fprintf(&b, " (%s, last on %s)", count(len(run), "time"), timeOf(last.At).Format(time.DateOnly))
	}
	if before != "" {
		fmt.Fprintf(&b, "\nBefore that the answer was: %s", before)
	}
	d := recall.Doc{
		ID: "qa-" + sign.Hash(first.Event), Class: recall.ClassAnswer, Project: first.Project, Client: last.Client, Author: "user", Source: last.Event,
		Keys: []string{QuestionKey(last.Question, last.Options)}, Title: sign.Clip(last.Question, 200), Text: b.String(), Time: timeOf(first.At), ACL: first.ACL,
		Confidence: answerConfidence(len(run), before != ""), Data: data.encode(),
	}
	if over > 0 {
		d.Status, d.Until = recall.Superseded, timeOf(over)
	}
	return d
}

// answerConfidence is how sure it is that the user would say the same again.
func answerConfidence(times int, changed bool) float64 {
	c := 0.85
	switch {
	case times >= 3:
		c = 0.96
	case times == 2:
		c = 0.92
	}
	if changed { // they thought otherwise once
		c = min(c, 0.5)
	}
	return c
}

// AskedOf is the question and answer that a document is about.
func AskedOf(d recall.Doc) (Asked, bool) {
	data, ok := DataOf(d)
	if !ok || data.Asked == nil {
		return Asked{}, false
	}
	return *data.Asked, true
}

// ByAge orders answers, the newest first.
func ByAge(a, b recall.Doc) int {
	x, _ := AskedOf(a)
	y, _ := AskedOf(b)
	return cmp.Or(y.Last.Compare(x.Last), cmp.Compare(a.ID, b.ID))
}

// MayRead reports whether a reader is served a document, by scope and access list.
func MayRead(who recall.Reader, d recall.Doc) bool { return mayRead(who, d) }
