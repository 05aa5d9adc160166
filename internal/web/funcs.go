package web

import (
	"fmt"
	"html/template"
	"math"
	"strings"
	"time"

	"reprise/internal/clip"
	"reprise/internal/loop/core"
	"reprise/internal/term"
	"reprise/internal/web/markdown"
)

// notes are what pages say after a change; addresses name them by a word.
var notes = map[string]string{
	"stopped":      "The run was stopped.",
	"extended":     "The run has more time.",
	"moved":        "The item has its new priority.",
	"retried":      "The item has its attempts again.",
	"parked":       "The item was set aside.",
	"unparked":     "The item was put back.",
	"dropped":      "The item was given up.",
	"added":        "The item was added.",
	"same":         "An item with this key is in the queue already; nothing was added.",
	"approved":     "The call was let through.",
	"denied":       "The call was refused.",
	"saved":        "Saved.",
	"unchanged":    "The file says that already; nothing was changed.",
	"created":      "The block was made.",
	"corrected":    "Corrected: this holds now.",
	"promoted":     "Promoted.",
	"learnt":       "Kept: it is the project's, and told where it fits.",
	"decided":      "The decision is kept.",
	"known":        "That is known already; nothing was added.",
	"raised":       "Asked: the ceilings go up.",
	"allowed":      "The rules are in your settings: what they allow is not asked about any more.",
	"rolled":       "The earlier policy is in force again.",
	"demoted":      "The promotion was taken back.",
	"forgotten":    "Forgotten: nothing serves it any more, nor what went with it. It can be brought back below.",
	"brought-back": "It is remembered again, with what went with it.",
	"paused":       "Asked: nothing new is begun until the loop is resumed.",
	"resumed":      "Sent: the loop goes on as soon as it has read this.",
	"answered":     "Your answer was sent to the loop, which tells the agent.",
	"gone-on":      "It goes on, in this run.",
	"waits":        "No loop runs; the next one begins with this answer.",
	"waits-so":     "No loop runs; the next one goes on so.",
	"stopping":     "Asked: the agents are being stopped (up to 30 s), and the loop ends as soon as they have.",
	"draining":     "Asked: the loop ends when what is being done is done, and begins nothing new.",
	"asked":        "Asked: the worker goes on so as soon as it hears of it.",
	"askedaway":    "Asked. The worker is not running, or does not answer: it goes on so when it is there again.",
	"backthere":    "The item is put back with what you said, for whichever worker is next: the one that set it aside is not running, or does not answer.",
	"asked-stop":   "Asked: the worker stops the run as soon as it hears of it.",
	"interrupt":    "Asked: the agents are being stopped, and the loop waits then.",
}

func funcs(now func() time.Time) template.FuncMap {
	return template.FuncMap{
		"when":     when,
		"moment":   moment,
		"iso":      func(t time.Time) string { return t.UTC().Format(time.RFC3339) },
		"since":    func(t time.Time) string { return ago(t, now()) },
		"took":     term.Took,
		"seconds":  seconds,
		"usd":      term.USD,
		"num":      num,
		"kind":     core.KindWords,
		"ceilings": ceilingsOf,
		"size":     term.Size,
		"oneline":  oneLine,
		"gist": func(n int, s string) string {
			return oneLine(n, strings.Join(strings.Fields(strings.ToValidUTF8(s[:min(len(s), 4*n)], "")), " "))
		},
		"plural":   term.Plural,
		"join":     strings.Join,
		"markdown": markdown.HTML,
		"lines":    func(s string) string { return strings.ReplaceAll(s, "\n", "  \n") }, // each stays one
		"did":      did,
		"words":    func(s string) string { return strings.ReplaceAll(s, "_", " ") },
		"below":    func(s string) string { _, rest, _ := strings.Cut(s, "/"); return rest },
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

// ago is how long ago a moment was. A day without a time, as the head of a block has it,
// is told in days: hours since its midnight would be a time that nobody noted.
func ago(t, now time.Time) string {
	if !isDay(t) || t.After(now) {
		return term.Ago(now.Sub(t))
	}
	switch days := int(now.Sub(t) / (24 * time.Hour)); days {
	case 0:
		return "today"
	case 1:
		return "yesterday"
	default:
		return term.Plural(days, "day") + " ago"
	}
}

func isDay(t time.Time) bool { return t.Equal(t.Truncate(24 * time.Hour)) }

// moment is a moment in full, for the reader who stays on it.
func moment(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	if isDay(t) {
		return t.UTC().Format("Monday 2 January 2006")
	}
	return t.Local().Format("Monday 2 January 2006, 15:04:05 MST")
}

// num is a whole number of a template, with its thousands apart.
func num(v any) string {
	switch v := v.(type) {
	case int:
		return term.Num(int64(v))
	case int64:
		return term.Num(v)
	case uint64:
		return term.Num(int64(min(v, math.MaxInt64)))
	}
	return fmt.Sprint(v)
}

// oneLine is the first line of a text that says something, of at most n characters; that
// there are more is marked.
func oneLine(n int, s string) string {
	s, more, _ := strings.Cut(strings.TrimSpace(s), "\n")
	if more != "" {
		s = strings.TrimSpace(s) + " …"
	}
	return clip.Runes(s, n)
}

// did is what was done to something that is remembered, in the past: the log has it as an
// order.
func did(op string) string {
	switch op {
	case "learn":
		return "learnt"
	case "forget":
		return "forgotten"
	case "set_aside":
		return "kept, so that it can be brought back"
	case "restore":
		return "brought back"
	case "useful":
		return "said to be useful"
	case "promote", "demote", "decide", "create", "update", "expire":
		return op + "d"
	case "correct", "consolidate", "import":
		return strings.TrimSuffix(op, "e") + "ed"
	}
	return op
}
