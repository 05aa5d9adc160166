package web

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"reprise/internal/web/decided"
)

// decisionsShown is how many of the guard's decisions a page lists.
const decisionsShown = 50

// Waiting is a call of an agent that waits for a person's word.
type Waiting struct {
	ID, Client, Tool string
	// Input is whole, but for secrets: nobody approves what is not seen.
	Input, Cwd, Rule, Reason string
	Session, Run             string
	Since, Until             time.Time // after Until it is refused
}

// Guard is the guard as the pages use it.
type Guard struct {
	Mode string // enforce, warn or off
	// Waiting are the calls that wait now, the oldest first.
	Waiting func() ([]Waiting, error)
	// Answer lets a call run, or refuses it; why is told to the agent. The error says so
	// where it does not wait any more.
	Answer func(id string, allow bool, why string) error
	// Dir is the directory of what waits.
	Dir string
	// Proposals are rules that what a person approved before speaks for.
	Proposals func() ([]Proposal, error)
	// Allow puts rules that were proposed into the user's settings.
	Allow func(shapes []string) error
}

// Proposal is a rule that would spare a person questions.
type Proposal struct {
	Shape    string
	Approved int // calls that ran after they were asked about
	Example  string
	Rules    []string // built-in rules that asked
	Last     time.Time
}

func (s *Server) guardRoutes() {
	s.mux.HandleFunc("GET /guard", s.guardShow)
	s.mux.HandleFunc("POST /guard/{id}/{answer}", s.guardAnswer)
	s.mux.HandleFunc("GET /guard/rules", s.rulesShow)
	s.mux.HandleFunc("POST /guard/rules", s.rulesAllow)
}

type guardPage struct {
	Mode      string
	Waiting   []Waiting
	Decisions []decisionRow
	Counts    []outcomeCount
	Trouble   string
}

type decisionRow struct {
	decided.Call
	What string
}

type outcomeCount struct {
	Outcome string
	N       int
}

func (s *Server) guardShow(w http.ResponseWriter, r *http.Request) {
	p := guardPage{Mode: s.deps.Guard.Mode}
	var err error
	if p.Waiting, err = s.deps.Guard.Waiting(); err != nil {
		p.Trouble = err.Error()
	}
	if s.deps.Events != nil {
		err = s.tail.look(s.deps.Events.Dir, func(t *tail) {
			counts := map[string]int{}
			for _, call := range slices.Backward(decided.Calls(t.each())) {
				counts[call.Verdict]++
				if len(p.Decisions) < decisionsShown { // the verdict has its own column
					what := strings.TrimSuffix(strings.TrimPrefix(s.deps.Events.What(call.Event), call.Verdict+" "), " (denied)")
					p.Decisions = append(p.Decisions, decisionRow{call, what})
				}
			}
			for outcome, n := range counts {
				p.Counts = append(p.Counts, outcomeCount{outcome, n})
			}
		})
		if err != nil {
			p.Trouble = err.Error()
		}
	}
	slices.SortFunc(p.Counts, func(a, b outcomeCount) int { return strings.Compare(a.Outcome, b.Outcome) })
	for i := range p.Waiting {
		p.Waiting[i] = asRead(p.Waiting[i])
	}
	s.show(w, r, "guard", s.view(r, "guard", "Guard", p))
}

// asRead is a call as it is read best: a command that is all of its input stands for
// itself, and the rule that the reason names is not told twice. Other input is shown as
// it came, so that nothing of it goes unseen.
func asRead(w Waiting) Waiting {
	if command, ok := onlyCommand(w.Input); ok {
		w.Input = command
	}
	if strings.Contains(w.Reason, "["+w.Rule+"]") {
		w.Rule = ""
	}
	return w
}

// onlyCommand is the command of an input that holds nothing else. It is read token by
// token: of a key that stands twice a map would show one.
func onlyCommand(input string) (string, bool) {
	dec := json.NewDecoder(strings.NewReader(input))
	var tokens []json.Token
	for len(tokens) < 5 {
		t, err := dec.Token()
		if err != nil {
			break
		}
		tokens = append(tokens, t)
	}
	if len(tokens) != 4 || dec.InputOffset() != int64(len(strings.TrimRight(input, " \n"))) || tokens[0] != json.Delim('{') || tokens[1] != "command" || tokens[3] != json.Delim('}') {
		return "", false
	}
	command, ok := tokens[2].(string)
	return command, ok && command != ""
}

func (s *Server) guardAnswer(w http.ResponseWriter, r *http.Request) {
	answer := r.PathValue("answer")
	if answer != "approve" && answer != "deny" {
		s.fail(w, r, http.StatusNotFound, errors.New("a call is approved or denied"))
		return
	}
	if err := s.deps.Guard.Answer(r.PathValue("id"), answer == "approve", strings.TrimSpace(r.PostForm.Get("why"))); err != nil {
		s.fail(w, r, http.StatusConflict, err)
		return
	}
	note := "denied"
	if answer == "approve" {
		note = "approved"
	}
	s.done(w, r, "/guard", note)
}

type rulesPage struct {
	Proposals []Proposal
	Trouble   string
}

func (s *Server) rulesShow(w http.ResponseWriter, r *http.Request) {
	var p rulesPage
	var err error
	if p.Proposals, err = s.deps.Guard.Proposals(); err != nil {
		p.Trouble = err.Error()
	}
	s.show(w, r, "rules", s.view(r, "guard", "Rules that would spare you questions", p))
}

// rulesAllow takes the rules that a person chose over, of those that are proposed now:
// a form cannot bring another one in.
func (s *Server) rulesAllow(w http.ResponseWriter, r *http.Request) {
	chosen := r.PostForm["rule"]
	if len(chosen) == 0 {
		s.fail(w, r, http.StatusBadRequest, errors.New("choose at least one rule"))
		return
	}
	list, err := s.deps.Guard.Proposals()
	if err != nil {
		s.fail(w, r, http.StatusInternalServerError, err)
		return
	}
	for _, shape := range chosen {
		if !slices.ContainsFunc(list, func(p Proposal) bool { return p.Shape == shape }) {
			s.fail(w, r, http.StatusConflict, errors.New("one of the rules is not proposed any more: load the page anew"))
			return
		}
	}
	if err := s.deps.Guard.Allow(chosen); err != nil {
		s.fail(w, r, http.StatusConflict, err)
		return
	}
	s.done(w, r, "/guard", "allowed")
}
