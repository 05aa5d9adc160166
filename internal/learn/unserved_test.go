package learn

import (
	"strings"
	"testing"

	"reprise/internal/event"
)

// That nobody was logged in, or a plan used up, is nothing that a later session is told:
// neither as what was done nor as a summary. What was done until then is.
func TestUnserved(t *testing.T) {
	for name, c := range map[string]struct {
		error, answer string
		work          func(s *story)
		turns         int
		told, untold  string // in what is made of the session
	}{
		"no login at Claude Code": {error: "authentication_failed", answer: "Not logged in · Please run /login"},
		"the same, not flagged":   {answer: "Not logged in · Please run /login"},
		"a limit":                 {error: "rate_limit: 429 Too Many Requests"},
		"a plan that is used up":  {error: "unknown", answer: "You’ve hit your limit · resets 3pm"},
		"no credit":               {error: "billing_error", answer: "Credit balance is too low"},
		"overload":                {error: "API Error: 529 overloaded_error"},
		"an edit before":          {error: "rate_limit", answer: "API Error: 429", work: func(s *story) { s.edit("/w/shop/cart.js") }, turns: 1, told: "The turn ended by an error: rate_limit", untold: "API Error"},
		"a command before":        {error: "rate_limit", answer: "API Error: 429", work: func(s *story) { s.shell("npm test", "") }, turns: 1, told: "Ran: `npm test`", untold: "API Error"},
		"an error of the work":    {error: "max_output_tokens", answer: "The sum is kept in cents", turns: 1, told: "max_output_tokens"},
		"an answer about logins":  {answer: "The login page checks the API key in auth.go; it answers 401 where the plan is used up.", turns: 1, told: "auth.go"},
		"a long answer":           {answer: "API errors are handled in one place. " + strings.Repeat("The handler looks at the code and answers. ", 6), turns: 1, told: "in one place"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStory(t)
			s.start()
			s.prompt("run the order tests please")
			if c.work != nil {
				c.work(s)
			}
			s.add(event.ResponseCompleted, event.ResponseData{Text: c.answer, Error: c.error})
			s.end()
			st, _ := s.fold("2026-11-03")
			turns, sessions := st.ofKind(KindTurn), st.ofKind(KindSession)
			if len(turns) != c.turns || len(sessions) != c.turns {
				t.Fatalf("%d turns and %d sessions are remembered, want %d: %+v", len(turns), len(sessions), c.turns, turns)
			}
			text := ""
			for _, d := range append(turns, sessions...) {
				text += d.Text + "\n"
			}
			if c.told != "" && !strings.Contains(text, c.told) || c.untold != "" && strings.Contains(text, c.untold) {
				t.Errorf("told is %q", text)
			}
		})
	}
}

// Of a session that went on after that, all is told but that.
func TestUnservedAtFirst(t *testing.T) {
	s := newStory(t)
	s.start()
	s.prompt("are you there")
	s.add(event.ResponseCompleted, event.ResponseData{Text: "Not logged in · Please run /login", Error: "authentication_failed"})
	s.prompt("mend the cart")
	s.edit("/w/shop/cart.js")
	s.answer("The cart works now.")
	s.prompt("and the basket")
	s.add(event.ResponseCompleted, event.ResponseData{Text: "API Error: 529", Error: "overloaded"})
	s.end()
	st, _ := s.fold("2026-11-03")
	sessions := st.ofKind(KindSession)
	if len(sessions) != 1 || !strings.HasSuffix(sessions[0].Title, ": mend the cart") || !strings.Contains(sessions[0].Text, "Last answer: The cart works now.") ||
		strings.Contains(sessions[0].Text, "are you there") || strings.Contains(sessions[0].Text, "529") {
		t.Errorf("remembered is %+v", sessions)
	}
}
