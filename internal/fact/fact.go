// Package fact finds plain statements in text (the port of X is 5432, we use
// pnpm, "max_connections: 200") as subject, attribute and value, so that two
// texts that say different things about the same subject can be told. It is
// pure: no files are read or written, there are no locks and no clock.
//
// It would rather miss a statement than see one that is not there: a missed one
// leaves two notes side by side, a wrong one hides a true note. So it reads
// short sentences of a few known forms, in English and Japanese, and leaves out
// whatever is conditional, negated, past, asked, quoted, logged, tabled or code.
package fact

import (
	"strings"
	"unicode/utf8"
)

// Fact is one statement.
type Fact struct {
	// Subject is normalised: lower case, articles dropped, words stemmed; a
	// place that the statement is bound to follows after "@" (billing@staging).
	// Empty when the text does not name it: such a statement can be compared
	// only within one text's neighbourhood.
	Subject   string `json:"subject"`
	Attribute string `json:"attribute"` // port, version, owner, is, …; normalised
	Value     string `json:"value"`     // as it was written
}

// Key is what two statements about the same thing have in common, "" when the
// statement names no subject and so can be compared with no other text's.
func (f Fact) Key() string {
	if f.Subject == "" {
		return ""
	}
	return f.Subject + "|" + f.Attribute
}

// Contradict says that two statements about the same subject cannot both hold.
func Contradict(a, b Fact) bool {
	return a.Attribute == b.Attribute && a.Subject == b.Subject && a.Subject != "" && !SameValue(a.Attribute, a.Value, b.Value)
}

const (
	maxSentence = 240 // bytes; longer ones are no plain statements
	maxFacts    = 32  // of one text
	maxText     = 64 << 10
	maxHeading  = 80 // bytes of a heading that can name a subject
)

// Find returns the statements in text, in their order. A subject that the text
// gives two values is left out: it tells of a change, a list or alternatives.
func Find(text string) []Fact { return FindUnder("", text) }

// FindUnder is [Find] for text below a heading, which names the subject of
// statements that name none ("port: 5432" below "Postgres") and the place that
// they are about ("Staging").
func FindUnder(heading, text string) []Fact {
	if len(text) > maxText {
		text = text[:maxText]
	}
	s := scanner{}
	s.under(heading)
	fence := byte(0)
	comment := false
	for len(text) > 0 && len(s.out) < maxFacts {
		line := text
		if i := strings.IndexByte(text, '\n'); i >= 0 {
			line, text = text[:i], text[i+1:]
		} else {
			text = ""
		}
		body, ok := prose(line, &fence, &comment, &s)
		if !ok {
			continue
		}
		s.line(body)
	}
	return s.result()
}

// prose returns what a line says, without its list marker; false for lines that
// are code, quotes, tables, comments, headings or records of a log.
func prose(line string, fence *byte, comment *bool, s *scanner) (string, bool) {
	t := strings.TrimLeft(line, " \t")
	indent := len(line) - len(t)
	t = strings.TrimRight(t, " \t\r")
	if len(t) >= 3 && (t[0] == '`' || t[0] == '~') && t[1] == t[0] && t[2] == t[0] {
		switch *fence {
		case 0:
			*fence = t[0]
		case t[0]:
			*fence = 0
		}
		return "", false
	}
	if *comment {
		*comment = !strings.Contains(t, "-->")
		return "", false
	}
	if *fence != 0 || len(t) < 4 || indent >= 4 || line[0] == '\t' {
		return "", false
	}
	switch t[0] {
	case '<':
		*comment = strings.HasPrefix(t, "<!--") && !strings.Contains(t, "-->")
		return "", false
	case '>', '|', '$', '{', '}', '[', '+', '@', '/', '=':
		return "", false
	case '#':
		s.under(strings.Trim(t, "# "))
		return "", false
	case '-', '*':
		if t[1] == ' ' {
			t = strings.TrimLeft(t[2:], " ")
		} else if t[0] == '-' {
			return "", false
		}
	}
	if i := digits(t); i > 0 && i < 4 && i+1 < len(t) && (t[i] == '.' || t[i] == ')') && t[i+1] == ' ' {
		t = strings.TrimLeft(t[i+2:], " ")
	}
	if logged(t) {
		return "", false
	}
	return t, true
}

func digits(s string) int {
	n := 0
	for n < len(s) && s[n] >= '0' && s[n] <= '9' {
		n++
	}
	return n
}

// logged says that a line is a record of a log or a part of a program's output:
// it begins with a date, a time, a level or a place in a stack.
func logged(t string) bool {
	if n := digits(t); n > 0 && n < len(t) && strings.IndexByte("-:/.T", t[n]) >= 0 {
		return true
	}
	word, _, _ := strings.Cut(t, " ")
	switch strings.TrimRight(word, ":") {
	case "ERROR", "WARN", "WARNING", "INFO", "DEBUG", "TRACE", "FATAL", "PANIC", "E", "W", "I",
		"error", "warning", "panic", "fatal", "npm", "Traceback", "at", "File", "goroutine", "FAIL", "PASS", "ok", "---":
		return true
	}
	return strings.HasPrefix(t, "level=") || strings.HasPrefix(t, "ts=") || strings.HasPrefix(t, "time=")
}

// scanner collects the statements of one text.
type scanner struct {
	out     []Fact
	heading string // subject that a heading gives; normalised
	place   string // the place that the heading names
	words   words
}

func (s *scanner) under(heading string) {
	s.heading, s.place = "", ""
	if heading == "" || len(heading) > maxHeading {
		return
	}
	if i := strings.LastIndex(heading, " > "); i >= 0 {
		heading = heading[i+3:]
	}
	if !s.words.split(heading) || s.words.n > 4 {
		return
	}
	s.place = s.words.place()
	for i := range s.words.n {
		if hedge(s.words.at(i)) {
			return
		}
	}
	if sub := s.words.subject(0, s.words.n); !vague(sub) {
		s.heading = sub
	}
}

// line reads the sentences of one line.
func (s *scanner) line(t string) {
	for len(t) > 0 {
		end, next := sentenceEnd(t)
		one := strings.TrimSpace(t[:end])
		asked := strings.HasSuffix(one, "?") || strings.HasSuffix(one, "？")
		t = t[next:]
		if asked || len(one) < 4 || len(one) > maxSentence {
			continue
		}
		if kana(one) {
			s.japanese(one)
		} else {
			s.english(one)
		}
	}
}

// sentenceEnd finds where the first sentence ends and the next begins. A full
// stop ends one when a space follows: "1.26" and "db.internal" go on.
func sentenceEnd(t string) (end, next int) {
	for i := 0; i < len(t); i++ {
		switch c := t[i]; c {
		case '.', '!', '?', ';':
			if i+1 == len(t) || t[i+1] == ' ' {
				if c == '.' && abbreviation(t[:i]) {
					continue
				}
				if c == '?' {
					return i + 1, i + 1
				}
				return i, i + 1
			}
		case 0xe3: // 。 is e3 80 82
			if strings.HasPrefix(t[i:], "。") {
				return i, i + len("。")
			}
		case 0xef: // ？ is ef bc 9f
			if strings.HasPrefix(t[i:], "？") {
				return i + 3, i + 3
			}
		}
	}
	return len(t), len(t)
}

func abbreviation(t string) bool {
	return strings.HasSuffix(t, "e.g") || strings.HasSuffix(t, "i.e") || strings.HasSuffix(t, " vs") || strings.HasSuffix(t, " no")
}

// kana says that a sentence is Japanese: it has a hiragana or katakana letter.
func kana(t string) bool {
	for i := 0; i+2 < len(t); i++ {
		if t[i] == 0xe3 && t[i+1] >= 0x81 && t[i+1] <= 0x83 {
			return true
		}
	}
	return false
}

func (s *scanner) add(subject, attribute, value, place string) {
	value = strings.Trim(value, " \t`*\"'“”「」,;")
	if value == "" || attribute == "" || len(value) > 80 || !utf8.ValidString(value) {
		return
	}
	if subject == "" {
		subject = s.heading
	}
	if place == "" {
		place = s.place
	}
	if place != "" && subject != "" && subject != place {
		subject += "@" + place
	}
	s.out = append(s.out, Fact{Subject: subject, Attribute: attribute, Value: value})
}

// result leaves out what the text gives several values, and what it says twice.
func (s *scanner) result() []Fact {
	if len(s.out) < 2 {
		return s.out
	}
	kept := s.out[:0:0]
	for i, f := range s.out {
		ok := true
		for j, g := range s.out {
			if i == j || f.Subject != g.Subject || f.Attribute != g.Attribute {
				continue
			}
			if !SameValue(f.Attribute, f.Value, g.Value) || j < i {
				ok = false
				break
			}
		}
		if ok {
			kept = append(kept, f)
		}
	}
	return kept
}
