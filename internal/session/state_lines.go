package session

import (
	"context"
	"fmt"
	"strings"
	"time"

	"reprise/internal/clip"
	"reprise/internal/recall"
	"reprise/internal/staterepo"
)

// How much of each is told in one line of a session's start, in characters.
const (
	toldFocus   = 400
	toldScratch = 240
	toldBranch  = 500
	toldHandoff = 300
	toldEntry   = 160
)

// stateLines are where the work stands, for the brief of a session's start: what
// waits for the agent first, then what it was at, then what it did.
func (m *Memory) stateLines(ctx context.Context, r recall.Reader) ([]string, error) {
	if m.o.Home.StateHooks().SessionStart == "off" {
		return nil, nil
	}
	st, err := m.State(ctx, Asking{Reader: r, Session: r.Session})
	if err != nil {
		return nil, err
	}
	return st.lines(), nil
}

// lines say a state in short; none where there is nothing to say.
func (st State) lines() []string {
	var out []string
	say := func(format string, a ...any) { out = append(out, fmt.Sprintf(format, a...)) }
	for _, h := range st.Handoffs {
		say("handoff from %s waits (id %s, %s): %s", h.Agent, h.ID, dateOf(h), clip.Runes(h.Text, toldHandoff))
	}
	if st.Focus != "" {
		say("focus of agent %s: %s", st.Agent, clip.Runes(st.Focus, toldFocus))
	}
	if about := branchText(st.About); about != "" {
		say("branch %s: %s", st.Branch, clip.Runes(about, toldBranch))
	}
	if st.Scratch != "" {
		say("scratch notes: %s", clip.Runes(st.Scratch, toldScratch))
	}
	for i := len(st.Log) - 1; i >= 0; i-- {
		say("%s", st.Log[i].line())
	}
	told := map[string]bool{}
	for _, e := range st.Log {
		told[e.ID] = true
	}
	for i, d := range st.Decisions {
		if i < 3 && d.Branch != "" && d.Branch == st.Branch && !told[d.ID] {
			say("%s", d.line())
		}
	}
	if n := len(st.Open); n > 0 && st.Agent != "" {
		say("%s of agent %s %s not the project's yet: `reprise context promote` lists them", count(n, "learning or decision", "learnings and decisions"), st.Agent, ifOne(n, "is", "are"))
	}
	return out
}

// line is an entry as one line.
func (n Noted) line() string {
	status := ""
	if n.Status != "" {
		status = ", " + n.Status
	}
	first, _, _ := strings.Cut(n.Text, "\n")
	if len(n.Over) > 0 {
		first += " (over " + strings.Join(n.Over, ", ") + ")"
	}
	return fmt.Sprintf("%s %s%s, %s: %s", dateOf(n), n.Type, status, n.Agent, clip.Runes(first, toldEntry))
}

func dateOf(n Noted) string {
	at, err := time.Parse(time.RFC3339, n.Time)
	if err != nil {
		return n.Time
	}
	return at.UTC().Format("2006-01-02 15:04Z") // of agents of any machine: one time for all, and it says which
}

// branchText is what a branch's file says beside its front matter and its empty
// headings.
func branchText(text string) string {
	if rest, ok := strings.CutPrefix(text, "---\n"); ok {
		if _, body, ok := strings.Cut(rest, "\n---\n"); ok {
			text = body
		}
	}
	var out []string
	lines := strings.Split(strings.TrimSpace(text), "\n")
	for i, l := range lines {
		if strings.HasPrefix(l, "#") {
			next := ""
			for _, n := range lines[i+1:] {
				if n = strings.TrimSpace(n); n != "" {
					next = n
					break
				}
			}
			if next == "" || strings.HasPrefix(next, "#") || next == staterepo.BranchPlaceholder {
				continue // nobody has written anything there
			}
			l = strings.TrimLeft(l, "# ") + ":"
		}
		if strings.TrimSpace(l) != staterepo.BranchPlaceholder {
			out = append(out, l)
		}
	}
	return strings.TrimSpace(strings.Join(out, "\n"))
}

func count(n int, one, many string) string { return fmt.Sprintf("%d %s", n, ifOne(n, one, many)) }

func ifOne(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}
