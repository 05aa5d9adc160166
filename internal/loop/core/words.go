package core

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"reprise/internal/term"
)

// Differences are what a loop that goes on does in another way than its state says, each as
// a person would say it: what it is now, and what it was.
func Differences(old *State, l Limits, g *Given) (out []string) {
	was := old.Limits
	add := func(name string, now, before any) {
		if now != before {
			if d, ok := now.(time.Duration); ok { // which is compared, and not its words
				now, before = term.Took(d), term.Took(before.(time.Duration))
			}
			out = append(out, fmt.Sprintf("%s %v (was %v)", name, now, before))
		}
	}
	add("workers", l.Workers, was.Workers)
	add("attempts to begin", l.MaxIterations, was.MaxIterations)
	add("USD", l.MaxUSD, was.MaxUSD)
	add("USD a run", l.ItemUSD, was.ItemUSD)
	add("tokens", l.MaxTokens, was.MaxTokens)
	add("time of work", l.MaxTime, was.MaxTime)
	add("time of a run", l.ItemTimeout, was.ItemTimeout)
	add("silence of a run", l.Stall, was.Stall)
	add("time between items", l.Delay, was.Delay)
	add("ends when nothing is left", l.UntilEmpty, was.UntilEmpty)
	add("on an interrupt", l.OnInterrupt, was.OnInterrupt)
	if g == nil || old.Given == nil {
		return out
	}
	now, before := GivenWords(g), GivenWords(old.Given)
	if !slices.Equal(now, before) {
		add("how it works", strings.Join(now, ", "), strings.Join(before, ", "))
	}
	return out
}

// many is a number of things.
func many(n int64, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// Words are what ceilings are to be raised by, as a person would say it; "" is nothing.
func (m More) Words() string {
	var out []string
	if m.USD != 0 {
		out = append(out, fmt.Sprintf("%.2f USD", m.USD))
	}
	if m.Tokens != 0 {
		out = append(out, many(m.Tokens, "token"))
	}
	if m.Iterations != 0 {
		out = append(out, many(int64(m.Iterations), "attempt")+" to begin")
	}
	if m.Time != 0 {
		out = append(out, term.Took(m.Time)+" of work")
	}
	return strings.Join(out, ", ")
}

// GivenWords are how a loop was told to work, beside its limits, in words.
func GivenWords(g *Given) (out []string) {
	if g == nil {
		return nil
	}
	client := cmp.Or(g.Agent, "any client")
	if g.Script != "" {
		client = "script" + " (" + filepath.Base(g.Script) + ")"
	}
	if g.Model != "" {
		client += ", model " + g.Model
	}
	out = append(out, client)
	if g.Turns > 0 {
		out = append(out, many(int64(g.Turns), "turn")+" a run")
	}
	if len(g.Labels) > 0 {
		out = append(out, "only items with "+strings.Join(g.Labels, ", "))
	}
	switch {
	case g.InPlace:
		out = append(out, "in the project's own directory")
	case g.Integrate == "merge":
		out = append(out, strings.TrimSuffix("what is done is merged into "+g.Into, " into "))
	case g.Integrate == "pr":
		out = append(out, "what is done becomes a pull request")
	}
	if g.Base != "" {
		out = append(out, "from "+g.Base)
	}
	if g.Unattended {
		out = append(out, "unattended")
	}
	return out
}

// LimitWords are the limits beside the ceilings that a person may have set, in words.
func LimitWords(l Limits) (out []string) {
	out = append(out, fmt.Sprintf("a run may take %s and cost %.2f USD", term.Took(l.ItemTimeout), l.ItemUSD))
	if l.UntilEmpty {
		out = append(out, "it ends when nothing is left")
	}
	if l.OnInterrupt == Skip {
		out = append(out, "what must be decided is set aside")
	}
	if d := DefaultLimits(); l.Stall != d.Stall {
		out = append(out, "a run may say nothing for "+term.Took(l.Stall))
	}
	return out
}
