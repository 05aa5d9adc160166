package judge

import "time"

// When the circuit opens, and for how long.
const (
	// openAfter failures in a row nobody is asked for firstWait, and after each
	// trial that fails too for twice as long, up to mostWait.
	openAfter = 3
	firstWait = time.Minute
	mostWait  = time.Hour
)

// circuit is what is known of one client and model. The zero value is closed.
type circuit struct {
	Failures int       `json:"failures"` // in a row
	OpenedAt time.Time `json:"opened_at,omitzero"`
	// Wait is how long it stays open from then; 0: it is closed.
	Wait time.Duration `json:"wait_ns,omitempty"`
	// Trial is the one question that is asked after that time, until its answer
	// closes the circuit or its failure opens it again.
	Trial string `json:"trial,omitempty"`
}

// mind takes note of a clock that was set back: an opening in the future would
// last longer than any opening may. It reports whether there was one.
func (c *circuit) mind(now time.Time) bool {
	if !c.OpenedAt.After(now) {
		return false
	}
	c.OpenedAt = now
	return true
}

// allow says whether a question may be asked now, as the trial or not, and if
// not from when on.
func (c *circuit) allow(now time.Time) (ok, trial bool, until time.Time) {
	if c.Wait == 0 {
		return true, false, time.Time{}
	}
	if until = c.OpenedAt.Add(c.Wait); now.Before(until) || c.Trial != "" {
		return false, false, until
	}
	return true, true, until
}

// succeeded closes the circuit, whichever question it was.
func (c *circuit) succeeded() { *c = circuit{} }

// failed counts a question without an answer. Only the trial opens an open
// circuit for longer: others were asked before it opened.
func (c *circuit) failed(trial bool, now time.Time) {
	c.Failures++
	switch {
	case c.Wait == 0 && c.Failures >= openAfter:
		c.OpenedAt, c.Wait = now, firstWait
	case c.Wait > 0 && trial:
		c.OpenedAt, c.Wait, c.Trial = now, min(2*c.Wait, mostWait), ""
	}
}

// gaveUp says that a question ended without its answer being waited for: that
// says nothing of the client, and a trial is still to be made.
func (c *circuit) gaveUp(trial bool) {
	if trial {
		c.Trial = ""
	}
}

// word is the state for people.
func (c *circuit) word(now time.Time) string {
	switch ok, trial, _ := c.allow(now); {
	case ok && !trial:
		return "closed"
	case trial || c.Trial != "":
		return "half-open"
	}
	return "open"
}
