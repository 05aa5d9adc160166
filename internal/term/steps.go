package term

import (
	"fmt"
	"io"
	"strings"
)

// Steps prints an account of something, step by step, one line at a time: no
// spinner and no line that is written over, so that it reads the same in a
// terminal, a file and a build log.
type Steps struct {
	w     io.Writer
	style Style
	n     int
}

// NewSteps returns an account that goes to w.
func NewSteps(w io.Writer, style Style) *Steps { return &Steps{w: w, style: style} }

// Step begins a numbered step.
func (s *Steps) Step(title string) {
	s.n++
	if s.n > 1 {
		fmt.Fprintln(s.w)
	}
	fmt.Fprintf(s.w, "%s %s\n", s.style.Blue(fmt.Sprintf("%d.", s.n)), s.style.Bold(SafeLine(title)))
}

// OK says that something is well.
func (s *Steps) OK(format string, args ...any) { s.mark(s.style.Green("✓"), format, args) }

// Warn says that something needs a look.
func (s *Steps) Warn(format string, args ...any) { s.mark(s.style.Yellow("!"), format, args) }

// Fail says that something went wrong.
func (s *Steps) Fail(format string, args ...any) { s.mark(s.style.Red("✗"), format, args) }

// Info adds a remark.
func (s *Steps) Info(format string, args ...any) { s.mark(s.style.Dim("·"), format, args) }

// Command shows a command that a person could type.
func (s *Steps) Command(line string) {
	fmt.Fprintf(s.w, "   %s %s\n", s.style.Dim("$"), s.style.Cyan(SafeLine(line)))
}

// Quote shows foreign text, indented and made safe.
func (s *Steps) Quote(text string) {
	for line := range strings.SplitSeq(strings.TrimRight(SafeText(text), "\n"), "\n") {
		fmt.Fprintf(s.w, "     %s\n", s.style.Dim(line))
	}
}

func (s *Steps) mark(mark, format string, args []any) {
	text := safeCell(strings.ReplaceAll(fmt.Sprintf(format, args...), "\n", " "), s.style.on)
	fmt.Fprintf(s.w, "   %s %s\n", mark, text)
}
