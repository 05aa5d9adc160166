// Package outcome says how a run ended, by its record and its client's result: which class a
// failure is of, until when a service wants to be left alone, and whether two failures are
// the same.
//
// It owns no files and takes no locks.
package outcome

import (
	"errors"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"reprise/internal/agent"
	"reprise/internal/loop/core"
	"reprise/internal/loop/tell"
	"reprise/internal/run"
)

// Judge is how a run ended, as its record and its client's result tell it.
func Judge(r run.Record) core.Outcome {
	o := core.Outcome{Run: r.ID, Session: r.SessionID, Completed: r.Status == run.Completed, Reason: r.StatusReason}
	res := r.Result
	if res != nil {
		o.OK, o.Turns = res.OK, res.NumTurns
		known := r.StatusReason != "" && res.Reason == "cancelled" // the record says why
		if res.Reason != "" && !known && !strings.Contains(o.Reason, res.Reason) {
			o.Reason = Join(o.Reason, res.Reason)
		}
	}
	if o.Turns == 0 && r.Heartbeat.MessageCount > 0 && !o.OK {
		o.Turns = r.Heartbeat.MessageCount // it spoke, and did not live to count
	}
	switch {
	case r.Status == run.TimedOut:
		o.Class = core.TimedOut
	case r.Status == run.Killed, r.Status == run.Interrupted:
		o.Class = core.Cancelled
	case o.Completed && o.OK && res.StopReason == "refusal":
		o.OK, o.Class = false, core.Refused
	case o.Completed && o.OK:
		o.Reason = strings.TrimSpace(o.Reason) // such as tools that were denied, which is no failure
	default:
		o.Class = failed(r, res, &o)
	}
	if o.Class != core.None {
		o.Signature = signature(o.Reason)
	}
	return o
}

// failed is the class of a run that ended badly by itself.
func failed(r run.Record, res *agent.Result, o *core.Outcome) core.Class {
	text := strings.ToLower(o.Reason)
	if res != nil {
		text += "\n" + strings.ToLower(tell.Clip(res.Text, 4000)+"\n"+strings.Join(res.Errors, "\n"))
	}
	has := func(words ...string) bool {
		for _, w := range words {
			if strings.Contains(text, w) {
				return true
			}
		}
		return false
	}
	status := 0
	var subtype, stop string
	if res != nil {
		status, subtype, stop = res.APIStatus, res.Subtype, res.StopReason
	}
	switch {
	case status == 401, status == 403, has("invalid api key", "please run /login", "not logged in", "authentication_error", "oauth token has expired", "401 unauthorized", "invalid_api_key", "unauthenticated", "no sign of a login"):
		return core.AuthFailed
	case status == 429, has("usage limit reached", "rate_limit_error", "rate limit", "quota exceeded", "resource_exhausted"):
		o.Reset = resetTime(text, statusTime(r))
		return core.RateLimited
	case has("no conversation found with session id", "no rollout found for thread id", "error resuming session", "no session, task, or name matched"):
		return core.SessionGone // the words of Claude Code, Codex, Gemini CLI and Copilot CLI
	case has("prompt is too long", "prompt as too long", "context window", "context length", "context_length_exceeded", "maximum context", "input is too long"), stop == "model_context_window_exceeded":
		return core.ContextFull
	case subtype == "error_max_turns", has("maximum number of turns"):
		return core.TurnsUsed
	case subtype == "error_max_budget_usd", has("reached maximum budget"):
		return core.BudgetUsed
	case stop == "refusal":
		return core.Refused
	case status >= 400, has("the model's api failed", "overloaded_error", "connection error", "econnrefused", "econnreset", "etimedout"):
		return core.APIError
	case strings.HasPrefix(text, "failed to start agent"):
		return core.SpawnFailed
	case !o.Completed && (res == nil || res.Subtype == ""):
		return core.Crashed
	}
	return core.None // the core tells what is missing
}

// Untold reports whether nobody has said what a run cost that has used so many tokens, of which
// its client has told so many dollars: of the clients Claude Code alone says it, where it lives to.
// What a loop can estimate by the tokens is told.
func Untold(r run.Record, usd float64, tokens int64, turns int) bool {
	switch {
	case usd > 0, r.Client == agent.KindScript:
		return false
	case r.Client == agent.KindClaude:
		return (r.Result == nil || r.Result.Subtype == "") && tokens == 0 && !strings.HasPrefix(strings.ToLower(r.StatusReason), "failed to start agent")
	}
	return tokens > 0 || turns > 0 // else it has asked no model
}

func statusTime(r run.Record) time.Time {
	if r.EndedAt != nil {
		return *r.EndedAt
	}
	return r.StatusUpdatedAt
}

// StartClass is why a run could not be started.
func StartClass(err error) core.Class {
	var b *core.BootstrapError
	var steps *StepsError
	text := strings.ToLower(err.Error())
	switch {
	case errors.As(err, &b), errors.As(err, &steps):
		return core.BadBootstrap
	case strings.Contains(text, "no sign of a login"), strings.Contains(text, "not logged in"):
		return core.AuthFailed
	}
	return core.SpawnFailed
}

// StepsError says that what a run is told cannot be used: no item's fault, as a template that
// is wrong is none.
type StepsError struct{ Err error }

func (e *StepsError) Error() string { return e.Err.Error() }

// Unwrap implements the interface of package errors.
func (e *StepsError) Unwrap() error { return e.Err }

// The forms in which services say until when they want to be left alone. They are
// compiled when the first rate limit is met.
var resetForms = sync.OnceValue(func() (f struct{ epoch, in, clock *regexp.Regexp }) {
	f.epoch = regexp.MustCompile(`limit reached\|(\d{10})\b`)
	f.in = regexp.MustCompile(`(?:try again|retry|retry-after|resets?)(?: after)?(?: in)?:? (\d+(?:\.\d+)?) ?(ms|milliseconds?|s|secs?|seconds?|m|mins?|minutes?|h|hours?)?\b`)
	f.clock = regexp.MustCompile(`resets?(?: at)? (\d{1,2})(?::(\d{2}))? ?(am|pm)?\b`)
	return f
})

// resetTime is when a rate limit is over, by what was said at a time; zero where that
// says nothing.
func resetTime(text string, at time.Time) time.Time {
	f := resetForms()
	if m := f.epoch.FindStringSubmatch(text); m != nil {
		n, _ := strconv.ParseInt(m[1], 10, 64)
		return time.Unix(n, 0).UTC()
	}
	if m := f.in.FindStringSubmatch(text); m != nil && (m[2] != "" || !f.clock.MatchString(text)) {
		n, _ := strconv.ParseFloat(m[1], 64)
		unit := time.Second
		switch {
		case strings.HasPrefix(m[2], "ms"), strings.HasPrefix(m[2], "milli"):
			unit = time.Millisecond
		case strings.HasPrefix(m[2], "m"):
			unit = time.Minute
		case strings.HasPrefix(m[2], "h"):
			unit = time.Hour
		}
		return at.Add(time.Duration(min(n, 1e6) * float64(unit))).UTC()
	}
	if m := f.clock.FindStringSubmatch(text); m != nil {
		return clockTime(m, at)
	}
	return time.Time{}
}

// clockTime is the next time that a clock on the wall shows what was said, "3pm".
func clockTime(m []string, at time.Time) time.Time {
	hour, _ := strconv.Atoi(m[1])
	minute := 0
	if m[2] != "" {
		minute, _ = strconv.Atoi(m[2])
	}
	switch {
	case m[3] == "pm" && hour < 12:
		hour += 12
	case m[3] == "am" && hour == 12:
		hour = 0
	}
	if hour > 23 || minute > 59 {
		return time.Time{}
	}
	local := at.Local()
	t := time.Date(local.Year(), local.Month(), local.Day(), hour, minute, 0, 0, local.Location())
	if !t.After(local) {
		t = t.AddDate(0, 0, 1)
	}
	return t.UTC()
}

// signature makes failures comparable: what differs from one run to the next, such as
// ids, numbers and paths, is taken out.
func signature(reason string) string {
	var b strings.Builder
	digit := false
	for _, w := range strings.Fields(strings.ToLower(reason)) {
		if strings.ContainsAny(w, `/\`) || strings.HasPrefix(w, "run-") {
			w = "…"
		}
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		for _, r := range w {
			if r >= '0' && r <= '9' {
				if !digit {
					b.WriteByte('#')
				}
				digit = true
				continue
			}
			digit = false
			b.WriteRune(r)
		}
		digit = false
		if b.Len() > 200 {
			break
		}
	}
	return tell.Clip(b.String(), 200)
}

// Resumable reports whether a new run can go on in the session of this one.
func Resumable(r run.Record) bool {
	return agent.CanResume(r.Client) && r.SessionID != "" && r.Heartbeat.MessageCount > 0
}

// Classed is a reason with the class of failure that it is one of, which may be all that it
// says.
func Classed(class, reason string) string {
	switch {
	case class == "" || strings.HasPrefix(reason, class):
		return reason
	case reason == "":
		return class
	}
	return class + ": " + reason
}

// Join is two texts as one, parted where both say something.
func Join(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "; " + b
}
