package session

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"reprise/internal/mdfile"
)

// The end of a log, read backwards, is what the whole of it says, whatever stands
// between entries and however lines end.
func TestLastOfALog(t *testing.T) {
	t.Parallel()
	for seed := range 300 {
		r := rand.New(rand.NewPCG(uint64(seed), 3))
		var b strings.Builder
		if r.IntN(2) == 0 {
			b.WriteString("# Changelog\n\nBy hand.\n\n---\n\n")
		}
		for n := range r.IntN(8) {
			at := time.Date(2026, 11, 28, 10, n, 0, 0, time.UTC)
			if r.IntN(3) == 0 {
				fmt.Fprintf(&b, "## %s - plan\n\nShort %d.\n\n", at.Format(time.RFC3339), n)
				continue
			}
			e := mdfile.Entry{Type: mdfile.TypeImplement, Agent: "ann", Time: at, Text: fmt.Sprintf("Entry %d.\n\n---\n\nMore.\n- a\n", n)}
			if r.IntN(3) == 0 {
				e.Type, e.To = mdfile.TypeHandoff, "ben"
			}
			_, raw := e.Render()
			b.WriteString(strings.Repeat("\n", r.IntN(2)) + string(raw))
			if r.IntN(4) == 0 {
				b.WriteString("\nA note by hand\n\n----\n\n")
			}
		}
		text := b.String()
		if r.IntN(4) == 0 {
			text = strings.ReplaceAll(text, "\n", "\r\n")
		}
		l := &entryLog{name: "changelog.md", agent: "ann", data: []byte(text)}
		all := mdfile.ParseEntries([]byte(text)).Entries
		for _, mark := range []string{"", "type: " + mdfile.TypeHandoff} {
			n := 1 + r.IntN(9)
			var want, got []string
			for _, e := range slices.Backward(all) {
				if len(want) < n && (mark == "" || e.Type == mdfile.TypeHandoff) {
					want = append(want, e.ID)
				}
			}
			for _, e := range l.last(n, mark, func(e *mdfile.Entry) bool { return mark == "" || e.Type == mdfile.TypeHandoff }) {
				got = append(got, e.ID)
			}
			if !slices.Equal(got, want) {
				t.Fatalf("seed %d, %q: %v, want %v in\n%s", seed, mark, got, want, text)
			}
		}
	}
}

// lastIndex gives what bytes.LastIndex gives, wherever the last of them stands: across
// the ends of the pieces that it looks at, too.
func TestLastIndex(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 9))
	mark := []byte("type: handoff")
	for n := range 400 {
		data := []byte(strings.Repeat("type: hand\n", r.IntN(3000)))
		for range n % 4 {
			at := r.IntN(len(data) + 1)
			if edge := len(data) - 4<<10 + r.IntN(2*len(mark)) - len(mark); n%2 == 0 && edge > 0 {
				at = edge
			}
			data = slices.Insert(data, at, mark...)
		}
		if got, want := lastIndex(data, mark), bytes.LastIndex(data, mark); got != want {
			t.Fatalf("case %d of %d bytes: %d, want %d", n, len(data), got, want)
		}
	}
}
