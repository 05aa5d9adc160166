package lexicon

import (
	"strconv"
	"strings"
	"time"
	"unicode"
)

var (
	monthNames = [12]string{"january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november", "december"}
	dayNames   = [7]string{"sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"}
	smallWords = [...]string{"zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"}
	ordinals   = [...]string{"", "first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth", "eleventh", "twelfth",
		"thirteenth", "fourteenth", "fifteenth", "sixteenth", "seventeenth", "eighteenth", "nineteenth", "twentieth"}
)

// plainWords cuts text at everything that is no letter or digit, keeping case.
func plainWords(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}

// MonthOf is the number of an English month, whole or cut to three letters; 0 for
// other words.
func MonthOf(w string) int {
	if len(w) < 3 {
		return 0
	}
	for i, m := range monthNames {
		if w == m || w == m[:3] || m == "september" && w == "sept" {
			return i + 1
		}
	}
	return 0
}

func dayOf(w string) int {
	for i, d := range dayNames {
		if w == d {
			return i
		}
	}
	return -1
}

// numberOf reads 7, 7th, seven and seventh; -1 when it is none of these.
func numberOf(w string) int {
	for _, end := range []string{"st", "nd", "rd", "th"} {
		if s, ok := strings.CutSuffix(w, end); ok && s != "" && s[0] >= '0' && s[0] <= '9' {
			w = s
		}
	}
	if n, err := strconv.Atoi(w); err == nil && n >= 0 {
		return n
	}
	for i, s := range smallWords {
		if w == s {
			return i
		}
	}
	for i, s := range ordinals {
		if w == s {
			return i
		}
	}
	return -1
}

// Span is a stretch of time, end exclusive.
type Span struct {
	From, To time.Time
	// anyYear: the question names a month and no year.
	anyYear bool
}

func day(t time.Time) time.Time {
	return time.Date(t.Year(), t.Month(), t.Day(), 0, 0, 0, 0, t.Location())
}

func month(y, m int) Span {
	from := time.Date(y, time.Month(m), 1, 0, 0, 0, 0, time.UTC)
	return Span{From: from, To: from.AddDate(0, 1, 0)}
}

// DatesOf finds the dates that a text names and the days that it counts from
// at: "on 16 May", "in June 2023", "last Friday", "three weeks ago", 3月20日.
// It reads plain wordings only; what it does not know it leaves out.
func DatesOf(text string, at time.Time) []Span {
	ws := plainWords(strings.ToLower(text))
	var out []Span
	get := func(i int) string {
		if i < 0 || i >= len(ws) {
			return ""
		}
		return ws[i]
	}
	one := func(t time.Time) { out = append(out, Span{From: day(t), To: day(t).AddDate(0, 0, 1)}) }
	for i, w := range ws {
		if m := MonthOf(w); m > 0 && (w != "may" && w != "march" || isMonth(get(i-1), get(i+1))) {
			out = append(out, monthSpan(get, i, m, at))
			continue
		}
		if n, err := strconv.Atoi(w); err == nil && len(w) == 4 && n >= 1990 && n < 2100 {
			if iso, ok := isoDate(get, i, n); ok {
				out = append(out, iso)
			} else if MonthOf(get(i-1)) == 0 && MonthOf(get(i-2)) == 0 {
				from := time.Date(n, 1, 1, 0, 0, 0, 0, time.UTC)
				out = append(out, Span{From: from, To: from.AddDate(1, 0, 0)})
			}
			continue
		}
		switch w {
		case "yesterday":
			one(at.AddDate(0, 0, -1))
		case "today", "tonight":
			one(at)
		case "tomorrow":
			one(at.AddDate(0, 0, 1))
		case "ago":
			if s, ok := ago(get(i-2), get(i-1), at); ok {
				out = append(out, s)
			}
		case "last", "next":
			if s, ok := nextTo(w, get(i+1), at); ok {
				out = append(out, s)
			}
		case "on":
			if d := dayOf(get(i + 1)); d >= 0 && !at.IsZero() {
				one(at.AddDate(0, 0, -((int(at.Weekday())-d+7)%7 + 0)))
			}
		}
	}
	return append(out, japaneseDates(text, at)...)
}

// isMonth tells the months of May and March from the verbs.
func isMonth(before, after string) bool {
	switch before {
	case "in", "of", "since", "until", "by", "during", "early", "late", "mid", "last", "next", "on", "from", "to", "before", "after":
		return true
	}
	return numberOf(before) > 0 || numberOf(after) > 0 || before == "" && after == ""
}

func monthSpan(get func(int) string, i, m int, at time.Time) Span {
	year, d := 0, 0
	for _, j := range []int{i + 1, i + 2} {
		if n, err := strconv.Atoi(get(j)); err == nil && n >= 1990 && n < 2100 {
			year = n
		}
	}
	if n := numberOf(get(i + 1)); n >= 1 && n <= 31 {
		d = n
	} else if n := numberOf(get(i - 1)); n >= 1 && n <= 31 {
		d = n
	} else if n := numberOf(get(i - 2)); get(i-1) == "of" && n >= 1 && n <= 31 {
		d = n
	}
	s := Span{}
	if year == 0 {
		s.anyYear = true
		if year = at.Year(); at.IsZero() {
			year = 2000
		}
	}
	if d > 0 {
		s.From = time.Date(year, time.Month(m), d, 0, 0, 0, 0, time.UTC)
		s.To = s.From.AddDate(0, 0, 1)
		return s
	}
	any := s.anyYear
	s = month(year, m)
	s.anyYear = any
	return s
}

func isoDate(get func(int) string, i, year int) (Span, bool) {
	m, err1 := strconv.Atoi(get(i + 1))
	d, err2 := strconv.Atoi(get(i + 2))
	if err1 != nil || m < 1 || m > 12 || len(get(i+1)) != 2 {
		return Span{}, false
	}
	if err2 != nil || d < 1 || d > 31 || len(get(i+2)) != 2 {
		return month(year, m), true
	}
	from := time.Date(year, time.Month(m), d, 0, 0, 0, 0, time.UTC)
	return Span{From: from, To: from.AddDate(0, 0, 1)}, true
}

func ago(number, unit string, at time.Time) (Span, bool) {
	n := numberOf(number)
	if n < 0 && (number == "a" || number == "an") {
		n = 1
	}
	if n < 0 || at.IsZero() {
		return Span{}, false
	}
	switch strings.TrimSuffix(unit, "s") {
	case "day":
		t := day(at.AddDate(0, 0, -n))
		return Span{From: t, To: t.AddDate(0, 0, 1)}, true
	case "week":
		t := day(at.AddDate(0, 0, -7*n))
		return Span{From: t.AddDate(0, 0, -3), To: t.AddDate(0, 0, 4)}, true
	case "month":
		t := at.AddDate(0, -n, 0)
		return month(t.Year(), int(t.Month())), true
	case "year":
		from := time.Date(at.Year()-n, 1, 1, 0, 0, 0, 0, time.UTC)
		return Span{From: from, To: from.AddDate(1, 0, 0)}, true
	}
	return Span{}, false
}

func nextTo(way, unit string, at time.Time) (Span, bool) {
	if at.IsZero() {
		return Span{}, false
	}
	sign := 1
	if way == "last" {
		sign = -1
	}
	if d := dayOf(unit); d >= 0 {
		n := (d - int(at.Weekday()) + 7) % 7
		if n == 0 {
			n = 7
		}
		if sign < 0 {
			n -= 7
			if n == 0 {
				n = -7
			}
		}
		t := day(at.AddDate(0, 0, n))
		return Span{From: t, To: t.AddDate(0, 0, 1)}, true
	}
	switch unit {
	case "night":
		t := day(at.AddDate(0, 0, -1))
		return Span{From: t, To: t.AddDate(0, 0, 1)}, sign < 0
	case "week", "weekend":
		t := day(at.AddDate(0, 0, 7*sign))
		return Span{From: t.AddDate(0, 0, -4), To: t.AddDate(0, 0, 5)}, true
	case "month":
		t := at.AddDate(0, sign, -at.Day()+1)
		return month(t.Year(), int(t.Month())), true
	case "year":
		from := time.Date(at.Year()+sign, 1, 1, 0, 0, 0, 0, time.UTC)
		return Span{From: from, To: from.AddDate(1, 0, 0)}, true
	}
	return Span{}, false
}

// japaneseDates reads 2023年3月20日 and its parts, 昨日, 明日, 先月, 来月.
func japaneseDates(text string, at time.Time) []Span {
	var out []Span
	year := 0
	rs := []rune(text)
	before := func(i int) int {
		j, n, f := i, 0, 1
		for j > 0 {
			r, _ := narrow(rs[j-1], "")
			if r < '0' || r > '9' || f > 1000 {
				break
			}
			n += int(r-'0') * f
			f *= 10
			j--
		}
		return n
	}
	for i, r := range rs {
		switch n := before(i); {
		case r == '年' && n >= 1990 && n < 2100:
			year = n
			next := rune(0)
			if i+1 < len(rs) {
				next, _ = narrow(rs[i+1], "")
			}
			if !digit(next) {
				from := time.Date(n, 1, 1, 0, 0, 0, 0, time.UTC)
				out = append(out, Span{From: from, To: from.AddDate(1, 0, 0)})
			}
		case r == '月' && n >= 1 && n <= 12:
			s := month(max(year, 1), n)
			if year == 0 {
				s = month(max(at.Year(), 1), n)
				s.anyYear = true
			}
			out = append(out, s)
		case r == '日' && n >= 1 && n <= 31 && len(out) > 0:
			s := &out[len(out)-1]
			s.From = time.Date(s.From.Year(), s.From.Month(), n, 0, 0, 0, 0, time.UTC)
			s.To = s.From.AddDate(0, 0, 1)
		}
	}
	if at.IsZero() {
		return out
	}
	for _, k := range []struct {
		word   string
		days   int
		months int
	}{{"昨日", -1, 0}, {"明日", 1, 0}, {"今日", 0, 0}, {"明後日", 2, 0}, {"先月", 0, -1}, {"来月", 0, 1}} {
		if !strings.Contains(text, k.word) {
			continue
		}
		if k.months != 0 {
			t := at.AddDate(0, k.months, -at.Day()+1)
			out = append(out, month(t.Year(), int(t.Month())))
			continue
		}
		t := day(at.AddDate(0, 0, k.days))
		out = append(out, Span{From: t, To: t.AddDate(0, 0, 1)})
	}
	return out
}

// Nearness is 1 for a time within the span, falling to 0 over the weeks after
// it, because what happened is told afterwards, and over the days before.
func (s Span) Nearness(t time.Time) float64 {
	if t.IsZero() {
		return 0
	}
	if s.anyYear {
		best := 0.0
		for y := -1; y <= 1; y++ {
			n := t.Year() - s.From.Year() + y
			best = max(best, Span{From: s.From.AddDate(n, 0, 0), To: s.To.AddDate(n, 0, 0)}.Nearness(t))
		}
		return best
	}
	const week = 7 * 24 * time.Hour
	switch {
	case t.Before(s.From):
		return max(0, 0.7-0.7*float64(s.From.Sub(t))/float64(3*week))
	case t.Before(s.To):
		return 1
	}
	return max(0, 0.9-0.9*float64(t.Sub(s.To))/float64(5*week))
}

// Overlaps says that two spans have a day in common.
func (s Span) Overlaps(o Span) bool {
	if s.anyYear {
		n := o.From.Year() - s.From.Year()
		s = Span{From: s.From.AddDate(n, 0, 0), To: s.To.AddDate(n, 0, 0)}
	}
	return s.From.Before(o.To) && o.From.Before(s.To)
}
