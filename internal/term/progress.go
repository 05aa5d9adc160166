package term

import (
	"fmt"
	"io"
	"time"
)

// progressAfter is how long work goes on before anything is said of it, and
// progressEvery how often the line is drawn anew at most.
const (
	progressAfter = 300 * time.Millisecond
	progressEvery = 100 * time.Millisecond
)

// Progress is one line on a terminal that says how far long work has come, and that is
// gone when the work is done. A nil *Progress shows nothing: that is what whoever writes
// to no terminal has. It is for one goroutine.
type Progress struct {
	w     io.Writer
	width int
	now   func() time.Time
	began time.Time
	drawn time.Time // zero while there is no line
}

// NewProgress returns a line that goes to w, a terminal of so many columns (0: unknown).
func NewProgress(w io.Writer, columns int, now func() time.Time) *Progress {
	if columns < 2 {
		columns = 80
	}
	return &Progress{w: w, width: columns - 1, now: now, began: now()}
}

// Show says how far it is. Of what comes faster than an eye sees, some is left out.
func (p *Progress) Show(format string, args ...any) {
	if p == nil {
		return
	}
	now := p.now()
	if now.Sub(p.began) < progressAfter || now.Sub(p.drawn) < progressEvery {
		return
	}
	p.drawn = now
	fmt.Fprint(p.w, "\r\x1b[K", Cut(SafeLine(fmt.Sprintf(format, args...)), p.width))
}

// Clear takes the line away. What is printed next begins at the left.
func (p *Progress) Clear() {
	if p == nil || p.drawn.IsZero() {
		return
	}
	fmt.Fprint(p.w, "\r\x1b[K")
	p.drawn = time.Time{}
}
