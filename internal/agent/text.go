package agent

import (
	"fmt"
	"strings"

	"reprise/internal/clip"
)

// textStream is the stream of a program that writes its answer as plain text.
type textStream struct {
	p       Progress
	text    []byte
	total   int64
	started bool
	cutLine bool
}

func (s *textStream) Line(line []byte, cut bool) {
	if s.started {
		s.add([]byte{'\n'})
	}
	s.started = true
	s.cutLine = s.cutLine || cut
	s.add(line)
	if t := strings.TrimSpace(toValid(line[:min(len(line), maxLastText)])); t != "" {
		s.p.Messages++
		s.p.LastText = t
	}
}

// Skip implements Stream. What is passed over is past what Text holds.
func (s *textStream) Skip(n int64) { s.total += n }

func (s *textStream) add(b []byte) {
	s.total += int64(len(b))
	if n := MaxText - len(s.text); n > 0 {
		s.text = append(s.text, b[:min(n, len(b))]...)
	}
}

// Progress counts lines as messages.
func (s *textStream) Progress() Progress { return s.p }

// Finish: exit 0 is done, anything else is not. Standard error is kept apart
// from the answer of a good run; a failed one is easier to understand with
// it, so its tail is appended.
func (s *textStream) Finish(e Exit) Result {
	r := Result{Tools: map[string]int{}}
	text := s.text
	if s.total > int64(len(text)) {
		text = []byte(clip.Head(string(text), len(text)-3))
		r.Errors = append(r.Errors, fmt.Sprintf("the answer has %d bytes, the first %d are kept; all of it is in the run's output", s.total, len(text)))
	}
	if s.cutLine {
		r.Errors = append(r.Errors, "a line of the answer was too long and is cut here; all of it is in the run's output")
	}
	r.Text = strings.TrimRight(toValid(text), "\r\n")
	switch {
	case e.Cancelled:
		r.Reason = "cancelled"
	case e.TimedOut:
		r.Reason = "stopped at its time limit"
	case e.Code != 0 || e.Signal != "":
		r.Reason = oneLine(join(": ", "ended with "+e.String(), tail(strings.TrimSpace(toValid([]byte(e.Stderr))), 500)))
	default:
		r.OK = true
	}
	if !r.OK {
		r.IsError = !e.Cancelled
		r.Text = withStderr(r.Text, e.Stderr)
	}
	return r
}
