package task

import (
	"bytes"
	"encoding/json"
	"strconv"
	"time"
	"unicode/utf8"
)

// quickState reads a state.json in the form in which this program writes it, for a long
// list is read by every command and encoding/json takes ten times as long. What is not in
// that form (a field that it does not know, one that stands twice, null, anything that is
// wrong) is for encoding/json: ok is false then. Where ok is true, [slowState] would
// have come to the same.
func quickState(data []byte) (s *State, ok bool) {
	if !utf8.Valid(data) {
		return nil, false
	}
	q := &quick{data: data, text: string(data)}
	s = &State{Next: 1, Tasks: make(map[int]*Task, len(data)/300)}
	next := 0
	q.object(func(key string) {
		switch key {
		case "v":
			if q.once(0); q.integer() > stateVersion {
				q.bad = true
			}
		case "next_number":
			q.once(1)
			next = q.integer()
		case "tasks":
			q.once(2)
			q.object(func(key string) { q.entry(s, key) })
		case "reviews":
			q.once(3)
			q.foreign(&s.Reviews)
		default:
			q.bad = true
		}
	})
	if q.space(); q.bad || q.at != len(data) {
		return nil, false
	}
	for _, r := range s.Reviews {
		if r == nil || r.Number < 1 {
			return nil, false
		}
	}
	if len(s.Reviews) == 0 {
		s.Reviews = nil
	}
	s.Next = max(s.Next, next)
	return s, true
}

// quick is how far a text is read, and whether it is of the form that can be.
type quick struct {
	data []byte
	text string // the same
	at   int
	bad  bool
	seen uint32 // of the object at hand
	pool []Task
}

// once says that the i-th field of an object was met; a second one is not for us.
func (q *quick) once(i int) {
	if bit := uint32(1) << i; q.seen&bit != 0 {
		q.bad = true
	} else {
		q.seen |= bit
	}
}

func (q *quick) space() {
	for q.at < len(q.data) {
		switch q.data[q.at] {
		case ' ', '\n', '\t', '\r':
			q.at++
		default:
			return
		}
	}
}

// is goes beyond c, if it comes next.
func (q *quick) is(c byte) bool {
	if q.space(); q.at < len(q.data) && q.data[q.at] == c {
		q.at++
		return true
	}
	return false
}

// must goes beyond c.
func (q *quick) must(c byte) {
	if !q.is(c) {
		q.bad = true
	}
}

// object reads an object; field reads what stands behind a key.
func (q *quick) object(field func(key string)) {
	outer := q.seen
	q.seen = 0
	defer func() { q.seen = outer }()
	if q.must('{'); q.is('}') {
		return
	}
	for !q.bad {
		key := q.word()
		if q.must(':'); q.bad {
			return
		}
		if field(key); q.is('}') {
			return
		}
		q.must(',')
	}
}

// word is a string; of one with escapes, what encoding/json makes of it.
func (q *quick) word() string {
	if q.must('"'); q.bad {
		return ""
	}
	for from := q.at; q.at < len(q.data); q.at++ {
		switch c := q.data[q.at]; {
		case c == '"':
			q.at++
			return q.text[from : q.at-1]
		case c == '\\':
			var s string
			q.at = from - 1
			q.foreign(&s)
			return s
		case c < ' ':
			q.bad = true
			return ""
		}
	}
	q.bad = true
	return ""
}

// integer is a whole number as this program writes it, of at most 15 digits.
func (q *quick) integer() int {
	q.space()
	from := q.at
	for q.at < len(q.data) && q.data[q.at] >= '0' && q.data[q.at] <= '9' {
		q.at++
	}
	word := q.text[from:q.at]
	n, err := strconv.Atoi(word)
	if err != nil || len(word) > 15 || len(word) > 1 && word[0] == '0' || q.at < len(q.data) && bytes.IndexByte([]byte(".eE"), q.data[q.at]) >= 0 {
		q.bad = true
	}
	return n
}

// foreign gives a value, whatever it is, to encoding/json.
func (q *quick) foreign(into any) {
	q.space()
	from, depth := q.at, 0
	for ; q.at < len(q.data); q.at++ {
		switch c := q.data[q.at]; c {
		case '"':
			for q.at++; q.at < len(q.data) && q.data[q.at] != '"'; q.at++ {
				if q.data[q.at] == '\\' {
					q.at++
				}
			}
		case '{', '[':
			depth++
			continue
		case '}', ']':
			depth--
		case ',', ' ', '\n', '\t', '\r', ':':
			if depth > 0 {
				continue
			}
		default:
			if depth > 0 || q.at+1 < len(q.data) && bytes.IndexByte([]byte(",]} \n\t\r"), q.data[q.at+1]) < 0 {
				continue
			}
		}
		if depth <= 0 {
			break
		}
	}
	end := min(q.at+1, len(q.data))
	if word := q.data[min(from, end):end]; bytes.Equal(word, []byte("null")) || json.Unmarshal(word, into) != nil {
		q.bad = true
	}
	q.at = end
}

func (q *quick) moment() *time.Time {
	q.space()
	from := q.at
	q.word()
	var t time.Time
	if q.bad || t.UnmarshalJSON(q.data[from:q.at]) != nil {
		q.bad = true
		return nil
	}
	return &t
}

func (q *quick) integers() (list []int) {
	list = []int{}
	if q.must('['); q.is(']') {
		return list
	}
	for !q.bad {
		if list = append(list, q.integer()); q.is(']') {
			return list
		}
		q.must(',')
	}
	return nil
}

func (q *quick) words() (list []string) {
	list = []string{}
	if q.must('['); q.is(']') {
		return list
	}
	for !q.bad {
		if list = append(list, q.word()); q.is(']') {
			return list
		}
		q.must(',')
	}
	return nil
}

// entry is one task below its number.
func (q *quick) entry(s *State, key string) {
	n, err := strconv.Atoi(key)
	if err != nil || n < 1 || n > maxNumber || strconv.Itoa(n) != key || s.Tasks[n] != nil {
		q.bad = true
		return
	}
	if len(q.pool) == 0 {
		q.pool = make([]Task, 64)
	}
	t := &q.pool[0]
	q.pool = q.pool[1:]
	t.Number = n
	q.object(func(key string) { q.field(t, key) })
	if t.Status == "" {
		t.Status = NotStarted
	}
	status, known := ParseStatus(string(t.Status))
	if !known {
		q.bad = true
		return
	}
	t.Status = status
	s.Tasks[n] = t
	s.Next = max(s.Next, n+1)
}

func (q *quick) field(t *Task, key string) {
	switch key {
	case "title":
		q.once(0)
		t.Title = q.word()
	case "slug":
		q.once(1)
		t.Slug = q.word()
	case "status":
		q.once(2)
		t.Status = Status(q.word())
	case "priority":
		q.once(3)
		t.Priority = q.word()
	case "language":
		q.once(4)
		t.Language = q.word()
	case "effort":
		q.once(5)
		t.Effort = q.word()
	case "effort_hours":
		q.once(6)
		q.foreign(&t.EffortHours)
	case "depends_on":
		q.once(7)
		t.DependsOn = q.integers()
	case "created":
		q.once(8)
		t.Created = q.moment()
	case "started":
		q.once(9)
		t.Started = q.moment()
	case "completed":
		q.once(10)
		t.Completed = q.moment()
	case "abandoned":
		q.once(11)
		t.Abandoned = q.moment()
	case "updated":
		q.once(12)
		t.Updated = q.moment()
	case "status_before":
		q.once(13)
		t.Before = Status(q.word())
	case "reason":
		q.once(14)
		t.Reason = q.word()
	case "operations":
		q.once(15)
		q.foreign(&t.Operations)
	case "research":
		q.once(16)
		t.Research = q.words()
	case "plans":
		q.once(17)
		t.Plans = q.words()
	case "summary":
		q.once(18)
		t.Summary = q.word()
	default:
		q.bad = true
	}
}
