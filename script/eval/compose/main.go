// Command compose makes the long dialogues of the own evaluation set:
//
//	go run ./script/eval/compose
//
// Hand-written conversations (internal/recall/testdata/eval/source) hold what is
// asked about. Compose puts small talk between, of the kind that fills real ones:
// it returns to what the two care about, so that every topic has many turns that
// say nothing about the question. The same sources make the same files.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// perSession is how many turns a session has at least.
const perSession = 34

func main() {
	if err := run(filepath.FromSlash("internal/recall/testdata/eval")); err != nil {
		fmt.Fprintln(os.Stderr, "compose:", err)
		os.Exit(1)
	}
}

func run(dir string) error {
	names, err := filepath.Glob(filepath.Join(dir, "source", "*-*.txt"))
	if err != nil {
		return err
	}
	for _, name := range names {
		if strings.HasPrefix(filepath.Base(name), "filler-") {
			continue
		}
		out, err := compose(name)
		if err != nil {
			return err
		}
		base := strings.TrimSuffix(filepath.Base(name), ".txt") + ".jsonl"
		if err := os.WriteFile(filepath.Join(dir, base), out, 0o644); err != nil { //nolint:gosec // test data
			return err
		}
	}
	return nil
}

type turn struct {
	who  int // of the two
	text string
	tags []string
}

type doc struct {
	ID      string `json:"id"`
	Time    string `json:"time"`
	Session string `json:"session"`
	Project string `json:"project"`
	Author  string `json:"author"`
	Text    string `json:"text"`
}

type question struct {
	ID       string   `json:"id"`
	Text     string   `json:"text"`
	Evidence []string `json:"evidence"`
	Category string   `json:"category"`
	Project  string   `json:"project"`
	Split    string   `json:"split"`
	Lang     string   `json:"lang"`
}

// conversation is one source file on its way to documents and questions.
type conversation struct {
	name, split string
	people      [2]string
	interests   [2][][]string
	filler      [][]string
	rnd         *rand.Rand
	used        map[string]bool // small talk that was said
	enc         *json.Encoder
	ids         map[string]string // tag to document
	asked       []question
	wants       [][]string
	session     int
	at          time.Time
	turns       []turn
}

// compose reads a source: a line "@name split Person Person", for each person a
// line "~Person topic|other words;topic|…", sessions that begin with "# date",
// turns "P text {tag}" by the person's initial, and questions
// "?kind text = tag tag".
func compose(name string) ([]byte, error) {
	src, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	c := &conversation{used: map[string]bool{}, ids: map[string]string{}, enc: json.NewEncoder(&out)}
	c.enc.SetEscapeHTML(false)
	for n, line := range strings.Split(strings.TrimSpace(string(src)), "\n") {
		if err := c.line(filepath.Dir(name), line); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", name, n+1, err)
		}
	}
	if err := c.flush(); err != nil {
		return nil, err
	}
	for i, q := range c.asked {
		for _, tag := range c.wants[i] {
			id, ok := c.ids[tag]
			if !ok {
				return nil, fmt.Errorf("%s: question %q: no turn has the tag %q", name, q.Text, tag)
			}
			q.Evidence = append(q.Evidence, id)
		}
		if err := c.enc.Encode(map[string]question{"question": q}); err != nil {
			return nil, err
		}
	}
	return out.Bytes(), nil
}

func (c *conversation) line(dir, line string) error {
	head, rest, _ := strings.Cut(line, " ")
	switch {
	case line == "":
		return nil
	case line[0] == '@':
		f := strings.Fields(line[1:])
		if len(f) != 4 {
			return fmt.Errorf("%q: name, split and two people are needed", line)
		}
		c.name, c.split, c.people = f[0], f[1], [2]string{f[2], f[3]}
		h := fnv.New64a()
		_, _ = h.Write([]byte(c.name))
		c.rnd = rand.New(rand.NewPCG(h.Sum64(), 1)) //nolint:gosec // the same talk each time
		src, err := os.ReadFile(filepath.Join(dir, "filler-"+c.split+".txt"))
		if err != nil {
			return err
		}
		for para := range strings.SplitSeq(strings.TrimSpace(string(src)), "\n\n") {
			c.filler = append(c.filler, strings.Split(para, "\n"))
		}
		return nil
	case line[0] == '~':
		for i, p := range c.people {
			if head[1:] == p {
				for topic := range strings.SplitSeq(rest, ";") {
					c.interests[i] = append(c.interests[i], strings.Split(topic, "|"))
				}
			}
		}
		return nil
	case head == "#":
		if err := c.flush(); err != nil {
			return err
		}
		var err error
		c.at, err = time.Parse("2006-01-02 15:04", rest)
		return err
	case line[0] == '?':
		text, tags, _ := strings.Cut(rest, " = ")
		q := question{ID: fmt.Sprintf("%s-q%d", c.name, len(c.asked)+1), Text: text, Evidence: []string{},
			Category: head[1:], Project: c.name, Split: c.split, Lang: "en"}
		c.asked, c.wants = append(c.asked, q), append(c.wants, strings.Fields(tags))
		return nil
	}
	for i, p := range c.people {
		if head == p[:1] {
			t := turn{who: i, text: rest}
			if at := strings.Index(rest, "{"); at >= 0 {
				var after string
				tags, tail, _ := strings.Cut(rest[at+1:], "}")
				after = strings.TrimSpace(tail)
				t.text, t.tags = strings.TrimSpace(strings.TrimSpace(rest[:at])+" "+after), strings.Fields(tags)
			}
			c.turns = append(c.turns, t)
			return nil
		}
	}
	return fmt.Errorf("%q: nobody's initial", line)
}

// flush writes the session that has ended, with small talk in up to three places.
func (c *conversation) flush() error {
	if len(c.turns) == 0 {
		return nil
	}
	c.session++
	var cuts []int // before these turns: never between a question and its answer
	for i := 1; i < len(c.turns); i++ {
		if !strings.Contains(c.turns[i-1].text, "?") {
			cuts = append(cuts, i)
		}
	}
	cuts = append(cuts, len(c.turns), len(c.turns))
	extra := map[int][]turn{}
	for n := len(c.turns); n < perSession; {
		talk := c.talk()
		at := cuts[c.rnd.IntN(len(cuts))]
		extra[at] = append(extra[at], talk...)
		n += len(talk)
	}
	ord := 0
	put := func(t turn) error {
		ord++
		d := doc{ID: fmt.Sprintf("%s-%d-%d", c.name, c.session, ord), Time: c.at.Format(time.RFC3339),
			Session: fmt.Sprintf("%s-s%d", c.name, c.session), Project: c.name, Author: c.people[t.who], Text: t.text}
		for _, tag := range t.tags {
			c.ids[tag] = d.ID
		}
		return c.enc.Encode(map[string]doc{"doc": d})
	}
	for i := 0; i <= len(c.turns); i++ {
		for _, t := range extra[i] {
			if err := put(t); err != nil {
				return err
			}
		}
		if i < len(c.turns) {
			if err := put(c.turns[i]); err != nil {
				return err
			}
		}
	}
	c.turns = nil
	return nil
}

// talk is one exchange of small talk, no turn of which was said word for word
// before if that can be had.
func (c *conversation) talk() []turn {
	var out []turn
	for range 20 {
		x := c.rnd.IntN(2)
		topics := [2]string{c.topic(0), c.topic(1)}
		out = out[:0]
		fresh := true
		for _, line := range c.filler[c.rnd.IntN(len(c.filler))] {
			who, text, _ := strings.Cut(line, " ")
			t := turn{who: x}
			if who == "Y" {
				t.who = 1 - x
			}
			me, you := c.people[x], c.people[1-x]
			t.text = strings.NewReplacer("{me}", me, "{you}", you, "{xi}", topics[x], "{yi}", topics[1-x],
				"{xI}", upperFirst(topics[x]), "{yI}", upperFirst(topics[1-x])).Replace(c.choose(text))
			fresh = fresh && !c.used[t.text]
			out = append(out, t)
		}
		if fresh {
			break
		}
	}
	for _, t := range out {
		c.used[t.text] = true
	}
	return out
}

func (c *conversation) topic(who int) string {
	t := c.interests[who][c.rnd.IntN(len(c.interests[who]))]
	return t[c.rnd.IntN(len(t))]
}

// choose takes one of each [a|b|c]; brackets without a bar stay.
func (c *conversation) choose(text string) string {
	var b strings.Builder
	for {
		open := strings.IndexByte(text, '[')
		if open < 0 {
			return b.String() + text
		}
		length := strings.IndexByte(text[open:], ']')
		part := strings.Split(text[open+1:open+length], "|")
		b.WriteString(text[:open])
		if len(part) == 1 {
			b.WriteString("[" + part[0] + "]")
		} else {
			b.WriteString(part[c.rnd.IntN(len(part))])
		}
		text = text[open+length+1:]
	}
}

func upperFirst(s string) string { return strings.ToUpper(s[:1]) + s[1:] }
