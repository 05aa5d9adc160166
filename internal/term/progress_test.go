package term

import (
	"strings"
	"testing"
	"time"
)

// A line that says how far work is: nothing of what is soon over, not more than an eye
// sees, nothing foreign that a terminal acts on, and gone at the end.
func TestProgress(t *testing.T) {
	at := time.Unix(1000, 0)
	var b strings.Builder
	p := NewProgress(&b, 20, func() time.Time { return at })
	p.Show("at once")
	p.Clear()
	if b.Len() > 0 {
		t.Errorf("of what has just begun it shows %q", b.String())
	}
	at = at.Add(400 * time.Millisecond)
	p.Show("%d of %d", 1, 3)
	p.Show("%d of %d", 2, 3) // too soon after it
	at = at.Add(100 * time.Millisecond)
	p.Show("3 of 3 \x1b[2J and so on, and on")
	p.Clear()
	p.Clear()
	if want := "\r\x1b[K1 of 3\r\x1b[K3 of 3 \\x1b[2J and…\r\x1b[K"; b.String() != want {
		t.Errorf("got %q, want %q", b.String(), want)
	}
	var none *Progress
	none.Show("nothing")
	none.Clear()
}
