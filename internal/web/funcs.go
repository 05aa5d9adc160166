package web

import (
	"fmt"
	"html/template"
	"math"
	"strconv"
	"strings"
	"time"
)

// notes are what pages say after a change; addresses name them by a word.
var notes = map[string]string{
	"stopped":   "The run was stopped.",
	"extended":  "The run has more time.",
	"moved":     "The item has its new priority.",
	"retried":   "The item has its attempts again.",
	"parked":    "The item was set aside.",
	"unparked":  "The item was put back.",
	"dropped":   "The item was given up.",
	"added":     "The item was added.",
	"same":      "An item with this key is in the queue already; nothing was added.",
	"approved":  "The call was let through.",
	"denied":    "The call was refused.",
	"saved":     "Saved.",
	"unchanged": "The file says that already; nothing was changed.",
	"created":   "The block was made.",
	"corrected": "Corrected: this holds now.",
	"promoted":  "Promoted.",
	"learnt":    "Kept: it is the project's, and told where it fits.",
	"decided":   "The decision is kept.",
	"known":     "That is known already; nothing was added.",
	"raised":    "Asked: the ceilings go up.",
	"allowed":   "The rules are in your settings: what they allow is not asked about any more.",
	"rolled":    "The earlier policy is in force again.",
	"demoted":   "The promotion was taken back.",
	"forgotten": "Forgotten: nothing serves it any more.",
	"paused":    "Asked: nothing new is begun until the loop is resumed.",
	"resumed":   "Asked: the loop goes on.",
	"waits":     "No loop runs; the next one begins with this answer.",
	"stopping":  "Asked: the loop ends as soon as its agents have.",
	"interrupt": "Asked: the agents are being stopped, and the loop waits then.",
}

func funcs(now func() time.Time) template.FuncMap {
	return template.FuncMap{
		"when":    when,
		"moment":  moment,
		"iso":     func(t time.Time) string { return t.UTC().Format(time.RFC3339) },
		"since":   func(t time.Time) string { return since(now().Sub(t)) },
		"took":    took,
		"usd":     usd,
		"num":     num,
		"size":    size,
		"oneline": oneLine,
		"gist": func(n int, s string) string {
			return oneLine(n, strings.Join(strings.Fields(strings.ToValidUTF8(s[:min(len(s), 4*n)], "")), " "))
		},
		"plural":   plural,
		"join":     strings.Join,
		"markdown": markdown,
		"words":    func(s string) string { return strings.ReplaceAll(s, "_", " ") },
	}
}

// when is a moment for a list: the time of day for today, else the date.
func when(t, now time.Time) string {
	if t.IsZero() {
		return ""
	}
	l, n := t.Local(), now.Local()
	switch {
	case l.Year() == n.Year() && l.YearDay() == n.YearDay():
		return l.Format("15:04:05")
	case l.Year() == n.Year():
		return l.Format("2 Jan 15:04")
	}
	return l.Format("2 Jan 2006")
}

// moment is a moment in full, for the reader who stays on it.
func moment(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Local().Format("Monday 2 January 2006, 15:04:05 MST")
}

// since is how long ago something was, in a few words.
func since(d time.Duration) string {
	switch {
	case d < 0:
		return "in " + took(-d)
	case d < 5*time.Second:
		return "just now"
	}
	return took(d) + " ago"
}

// took is a length of time in one or two units.
func took(d time.Duration) string {
	switch {
	case d < time.Second:
		return strconv.FormatInt(d.Milliseconds(), 10) + " ms"
	case d < time.Minute:
		return strconv.FormatFloat(d.Seconds(), 'f', 1, 64) + " s"
	case d < time.Hour:
		return fmt.Sprintf("%d min %d s", int(d.Minutes()), int(d.Seconds())%60)
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h %d min", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%d days", int(d.Hours()/24))
}

func usd(f float64) string {
	switch {
	case f == 0:
		return "0"
	case f < 0.01:
		return strconv.FormatFloat(f, 'f', 4, 64)
	}
	return strconv.FormatFloat(f, 'f', 2, 64)
}

// num is a whole number with its thousands apart.
func num(v any) string {
	var n int64
	switch v := v.(type) {
	case int:
		n = int64(v)
	case int64:
		n = v
	case uint64:
		n = int64(min(v, math.MaxInt64))
	default:
		return fmt.Sprint(v)
	}
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "\u202f" + s[i:]
	}
	return s
}

func size(n int64) string {
	switch {
	case n < 1<<10:
		return fmt.Sprintf("%d bytes", n)
	case n < 1<<20:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
}

// oneLine is the first line of a text that says something, of at most n characters.
func oneLine(n int, s string) string {
	s, _, _ = strings.Cut(strings.TrimSpace(s), "\n")
	if r := []rune(s); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return s
}

func plural(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return num(n) + " " + one + "s"
}
