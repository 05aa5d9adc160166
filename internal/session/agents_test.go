package session

import (
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
