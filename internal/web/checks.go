package web

import "context"

// Checks say how a project's own checks stand, by which the loop judges what is done.
type Checks struct {
	// State reads that anew, for it is changed beside the dashboard.
	State func(context.Context) (CheckState, error)
	// Files are those that it is read from.
	Files []string
}

// CheckState is how a project's checks stand.
type CheckState struct {
	Warn    bool   // there are some, and they do not run
	Text    string // which run, or why none does, and what that means
	Command string // what a person gives in a terminal to change that; "" is nothing
}

// checkState is what the page of the loop says of checks; nil where there is nothing to say.
func (s *Server) checkState(ctx context.Context) *CheckState {
	if s.deps.Checks == nil {
		return nil
	}
	state, err := s.deps.Checks.State(ctx)
	if err != nil {
		return &CheckState{Warn: true, Text: "Whether the project's checks run is not known: " + err.Error()}
	}
	return &state
}
