package fact

import (
	"strconv"
	"strings"
	"unicode"
)

// SameValue says that two values of an attribute can both hold: they are equal
// in other spelling ("30 s" and "30 seconds", "1,000" and "1000", "Thursdays"
// and "木曜日"), or one says the same less exactly ("Aiko" and "Aiko Tanaka",
// "1.26" and "1.26.3").
func SameValue(attribute, a, b string) bool {
	if strings.EqualFold(a, b) {
		return true
	}
	x, y := normalValue(a), normalValue(b)
	if x == y {
		return true
	}
	p, q := quantity(x), quantity(y)
	if p.ok && q.ok {
		if p.unit == q.unit || p.unit == "" || q.unit == "" {
			return p.n == q.n && (p.unit == q.unit || p.plain == q.plain)
		}
		return false
	}
	if strings.HasSuffix(attribute, "version") {
		x, y = strings.TrimPrefix(x, "v"), strings.TrimPrefix(y, "v")
		return x == y || strings.HasPrefix(x, y+".") || strings.HasPrefix(y, x+".")
	}
	return within(x, y) || within(y, x)
}

// within says that all words of a are in b.
func within(a, b string) bool {
	for word := range strings.FieldsSeq(a) {
		found := false
		for other := range strings.FieldsSeq(b) {
			if word == other {
				found = true
				break
			}
		}
		if !found {
			return false
		}
	}
	return a != ""
}

func normalValue(v string) string {
	var b strings.Builder
	space := false
	for _, r := range v {
		switch {
		case r >= '０' && r <= '９':
			r = r - '０' + '0'
		case r >= 'Ａ' && r <= 'ｚ':
			r = r - 'Ａ' + 'A'
		}
		if unicode.IsSpace(r) {
			space = b.Len() > 0
			continue
		}
		if space {
			b.WriteByte(' ')
			space = false
		}
		b.WriteRune(unicode.ToLower(r))
	}
	s := strings.Trim(b.String(), "`*\"'.,;/")
	s = strings.TrimPrefix(strings.TrimPrefix(s, "https://"), "http://")
	if d := weekday([]byte(s)); d != "" {
		return d
	}
	return sameThing(s)
}

type amount struct {
	n     float64
	plain float64 // as written, without the unit
	unit  string  // s, B, % or what was written; empty = none
	ok    bool
}

// quantity reads a number with a unit; durations come out in seconds, sizes in
// bytes.
func quantity(v string) amount {
	v = strings.TrimPrefix(v, "$")
	i := 0
	for i < len(v) && (v[i] >= '0' && v[i] <= '9' || i > 0 && (v[i] == '.' || v[i] == ',' || v[i] == '_')) {
		i++
	}
	if i == 0 {
		return amount{}
	}
	n, err := strconv.ParseFloat(strings.NewReplacer(",", "", "_", "").Replace(v[:i]), 64)
	if err != nil {
		return amount{}
	}
	unit := strings.TrimSpace(v[i:])
	if strings.ContainsAny(unit, " :/.") || strings.IndexFunc(unit, unicode.IsDigit) >= 0 {
		return amount{}
	}
	by := 1.0
	switch strings.TrimSuffix(unit, "s") {
	case "", "sec", "second", "秒":
		if unit != "" {
			unit = "s"
		}
	case "m", "milli", "millisecond", "ミリ秒":
		if unit == "m" {
			unit, by = "s", 60
		} else {
			unit, by = "s", 0.001
		}
	case "min", "minute", "分":
		unit, by = "s", 60
	case "h", "hr", "hour", "時間":
		unit, by = "s", 3600
	case "d", "day", "日":
		unit, by = "s", 86400
	case "week", "週間":
		unit, by = "s", 7*86400
	case "b", "byte":
		unit = "B"
	case "k", "kb", "kib":
		unit, by = "B", 1<<10
	case "mb", "mib":
		unit, by = "B", 1<<20
	case "g", "gb", "gib":
		unit, by = "B", 1<<30
	case "percent", "パーセント":
		unit = "%"
	}
	return amount{n: n * by, plain: n, unit: unit, ok: true}
}
