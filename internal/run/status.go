package run

import (
	"errors"
	"fmt"
	"slices"
)

// Status is where a run is in its life. The names are those of the session
// states of the agent-spawning design; MCP has names of its own for them
// (Record.MCPStatus).
type Status string

// The states of a run.
const (
	Spawning    Status = "spawning"    // the record exists, the agent does not yet
	Running     Status = "running"     // the agent process lives
	Completing  Status = "completing"  // the agent has ended; what it left is being collected
	Completed   Status = "completed"   // it ended well
	Failed      Status = "failed"      // it ended badly, or never started
	Interrupted Status = "interrupted" // stopped because a person must decide; may be resumed
	TimedOut    Status = "timeout"     // stopped because its time was up
	Killed      Status = "killed"      // stopped by somebody, or because its server went
)

// transitions is the whole life of a run. What is not in it is refused.
var transitions = map[Status][]Status{
	Spawning:    {Running, Failed, Killed},
	Running:     {Completing, Failed, Interrupted, TimedOut, Killed},
	Completing:  {Completed, Failed, TimedOut, Killed},
	Interrupted: {Running, Failed, Spawning},
}

// ErrTransition is wrapped by the error for a step that a run cannot take.
var ErrTransition = errors.New("transition not allowed")

// Done reports whether the run has ended for good: nothing will change its
// record any more. An interrupted run is not done, for it may be resumed.
func (s Status) Done() bool {
	return s == Completed || s == Failed || s == TimedOut || s == Killed
}

// Settled reports whether no process belongs to the run: it is done, or it is
// interrupted and waits for a person.
func (s Status) Settled() bool { return s.Done() || s == Interrupted }

// Valid reports whether s is one of the states.
func (s Status) Valid() bool {
	_, from := transitions[s]
	return from || s.Done()
}

// Allowed reports whether a run may go from one state to the other.
func Allowed(from, to Status) bool { return slices.Contains(transitions[from], to) }

func checkTransition(from, to Status) error {
	if Allowed(from, to) {
		return nil
	}
	return fmt.Errorf("run status %s cannot become %s: %w", from, to, ErrTransition)
}
