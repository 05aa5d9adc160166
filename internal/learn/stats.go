package learn

import (
	"encoding/json"
	"strings"
	"time"

	"reprise/internal/event"
	"reprise/internal/learn/sign"
)

// Stats are the figures of one session: what learning is measured by.
type Stats struct {
	Session     string    `json:"session"` // the client's own id
	Client      string    `json:"client,omitempty"`
	Project     string    `json:"project,omitempty"`
	Role        string    `json:"role,omitempty"`
	Start       time.Time `json:"start"`
	End         time.Time `json:"end"` // of the last event so far
	Ended       bool      `json:"ended"`
	Imported    bool      `json:"imported,omitempty"`
	Prompts     int       `json:"prompts"`
	Calls       int       `json:"calls"` // tool calls that ended
	Failures    int       `json:"failures"`
	Fixed       int       `json:"fixed"`   // failures whose call worked later
	Open        int       `json:"open"`    // failures whose call never did
	Retries     int       `json:"retries"` // a failed call again with the same input
	Refused     int       `json:"refused"` // calls that a person or a rule kept from happening
	Unended     int       `json:"unended"` // calls without an end
	Edits       int       `json:"edits"`
	Corrections int       `json:"corrections"`
	Errors      int       `json:"errors"`  // turns that ended by an error
	Started     bool      `json:"started"` // its beginning was recorded
	Served      int       `json:"served"`  // items that recall put in
	Used        int       `json:"used"`    // of them, those that were mentioned later or said to be useful
	Recalls     int       `json:"recalls"` // times that recall had something to put in
	Tokens      int       `json:"tokens"`  // put in, what is always told included
	HeldOut     bool      `json:"held_out,omitempty"`
	Withheld    int       `json:"withheld,omitempty"`    // times that recall had something, and it was held out
	Answered    int       `json:"answered,omitempty"`    // questions that the user answered
	FromMemory  int       `json:"from_memory,omitempty"` // and that memory did
	// Verified is what verification said last: passed, failed or empty.
	Verified string `json:"verified,omitempty"`
	// Unmet is what the last verification found missing, cut; empty where it passed.
	Unmet string `json:"unmet,omitempty"`
	// Judged is what whoever gave the session an item of the queue made of it last, in the
	// same words: an attempt may fail whose checks passed. Undone is why it failed, cut.
	Judged string `json:"judged,omitempty"`
	Undone string `json:"undone,omitempty"`
	// Outcome is good, corrected, failed, error or unknown, by what is there: who gave the
	// work decides against it, then a verification; without them, corrections, failures
	// that stayed and errors do.
	Outcome string `json:"outcome"`
}

func (st *Stats) see(r *record) {
	t := r.time()
	if st.Start.IsZero() || t.Before(st.Start) {
		st.Start = t
	}
	if t.After(st.End) {
		st.End = t
	}
	if st.Client == "" {
		st.Client = r.client
	}
	if st.Project == "" && isProject(r.project) {
		st.Project = r.project
	}
	if st.Role == "" {
		st.Role = r.role
	}
	switch r.typ {
	case event.SessionStarted:
		st.Ended, st.Started = false, true // not ended where it is resumed
	case event.SessionEnded:
		st.Ended = true
	case event.ResponseCompleted:
		if r.outcome != "" && len(r.outcome) > 6 && r.outcome[:6] == "error:" {
			st.Errors++
		}
	case event.VerificationFinished:
		st.Verified, st.Unmet = verdict(r), ""
		if st.Verified == "failed" {
			var d event.VerificationData
			decode(r.extra, &d)
			st.Unmet = sign.Clip(strings.Join(d.Issues, "; "), 200)
		}
	case event.WorkChanged:
		var d event.WorkData
		decode(r.extra, &d)
		if st.Judged, st.Undone = "passed", ""; d.Op == "failed" {
			st.Judged, st.Undone = "failed", sign.Clip(d.Note, 200)
		}
	case event.RecallServed:
		var d event.ServedData
		decode(r.extra, &d)
		st.HeldOut = st.HeldOut || d.HeldOut
		switch {
		case d.HeldOut && len(d.Items) > 0:
			st.Withheld++
		case !d.HeldOut:
			st.Served += len(d.Items)
			st.Tokens += d.Tokens
			if len(d.Items) > 0 {
				st.Recalls++
			}
		}
	case event.RecallUsed:
		var d event.UsedData
		decode(r.extra, &d)
		if d.How != "useless" {
			st.Used++
		}
	}
}

// verdict is what a verification came to, "" where it could not be found out:
// then it says nothing about the session.
func verdict(r *record) string {
	var d struct {
		Status string `json:"status"`
		Passed *bool  `json:"passed"`
	}
	decode(r.extra, &d)
	for _, s := range []string{r.outcome, d.Status} {
		switch s {
		case "passed", "pass", "ok", "success", "succeeded", "verified":
			return "passed"
		case "failed", "fail":
			return "failed"
		}
	}
	if d.Passed != nil {
		if *d.Passed {
			return "passed"
		}
		return "failed"
	}
	return ""
}

// seen says that the session itself was recorded, and not only what became of the item that
// it was given: a client without hooks leaves nothing of its sessions to count.
func (st *Stats) seen() bool {
	return st.Judged == "" || st.Started || st.Ended || st.Prompts > 0 || st.Calls > 0 || st.Verified != ""
}

// settle judges the session by its end.
func (st *Stats) settle(s *reading) {
	last := s.turn()
	switch {
	case st.Judged == "failed", st.Verified == "failed":
		st.Outcome = "failed"
	case st.Verified == "passed", st.Judged == "passed":
		st.Outcome = "good"
	case last != nil && last.error != "":
		st.Outcome = "error"
	case st.Corrections > 0:
		st.Outcome = "corrected"
	case st.Open > 0 && s.openInLastTurn():
		st.Outcome = "failed"
	case last != nil && last.refused > 0 && last.happened == 0:
		st.Outcome = "failed" // nothing that it wanted to do was let happen, whatever it said then
	case last != nil && last.response != nil:
		st.Outcome = "good"
	default:
		st.Outcome = "unknown"
	}
}

// openInLastTurn reports that a call failed in the last turn and never worked:
// a failure that was left behind earlier may have been a dead end.
func (s *reading) openInLastTurn() bool {
	last := s.turn()
	if last == nil {
		return len(s.open) > 0
	}
	for _, c := range s.open {
		if c.first.tool == "shell" && order(c.last, last.prompt) > 0 {
			return true
		}
	}
	return false
}

func (st Stats) encode() []byte {
	b, err := json.Marshal(st)
	if err != nil {
		return nil // numbers, strings and times of four-digit years
	}
	return b
}
