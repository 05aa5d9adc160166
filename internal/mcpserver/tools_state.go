package mcpserver

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"reprise/internal/clip"
	"reprise/internal/mdfile"
	"reprise/internal/memory"
	"reprise/internal/session"
	"reprise/internal/staterepo"
)

// StateService is what the server needs of session.Desk: the state of the agent
// that works where the server was started.
type StateService interface {
	State(ctx context.Context) (session.State, error)
	Add(ctx context.Context, e mdfile.Entry) (session.Wrote, error)
	Learn(ctx context.Context, insight, about string, sure bool) (session.Wrote, error)
	Write(ctx context.Context, name, text string, add bool) (session.Wrote, error)
	Checkpoint(ctx context.Context, name, message string, now time.Time) (session.Wrote, error)
	Accept(ctx context.Context, id string) (session.Accepted, error)
	Search(ctx context.Context, w session.Wanted) (session.Found, error)
}

// stateTools are the tools of the state toolset, which by default take the place
// of those that write blocks where the server was started inside a project.
func stateTools() []tool {
	return []tool{
		{
			name: "state_context", title: "Where the work stands", toolset: ToolsetState, reads: true, repeatable: true,
			about:  "Call it at the start of work in this project and after a compaction: what you were at (focus, scratch notes), your last 5 log entries, the decisions that hold on this branch, what you learned in this session, handoffs that wait for you, and what is known of the branch.",
			params: []param{}, do: (*Server).stateContext,
		},
		{
			name: "state_log", title: "Log work", toolset: ToolsetState,
			about:  "Note a finished or begun piece of work in your log, so that the next session and other agents know: one to three sentences on what was done and what came of it. Not for every edit: for each step that somebody would ask about.",
			params: logParams(), do: (*Server).stateLog,
		},
		{
			name: "state_learn", title: "Keep a learning", toolset: ToolsetState,
			about:  "Keep what you found out that holds next time, as soon as you know it: after a bug that took several tries, a surprise, a correction by the user. Good: \"Run the linter before a commit: the hook rejects it otherwise.\" \"workspace.go is where to begin: everything else calls it.\" Not a learning: \"Added X\" (state_log), \"Fixed a typo\". It is yours until it is promoted to the project.",
			params: learnParams(), do: (*Server).stateLearn,
		},
		{
			name: "state_decide", title: "Record a decision", toolset: ToolsetState,
			about:  "Record a choice between alternatives when it is made, with what was decided against and why, so that nobody decides it again or the other way.",
			params: decideParams(), do: (*Server).stateDecide,
		},
		{
			name: "state_handoff", title: "Hand work over, or take it", toolset: ToolsetState,
			about:  "Leave work for another agent, or for anyone, with all that is needed to go on (text); or take one that waits, once, before you begin with it (accept). state_context lists those that wait.",
			params: handoffParams(), do: (*Server).stateHandoff,
		},
		{
			name: "state_search", title: "Search the project's log", toolset: ToolsetState, more: true, reads: true, repeatable: true,
			about:  "Find a decision, a learning or a log entry of this project, of any session and agent: by words, type and time. Without a query: the newest. Learnings and decisions of other agents are found once they are promoted.",
			params: stateSearchParams(), do: (*Server).stateSearch,
		},
		{
			name: "state_scratch", title: "Write scratch notes", toolset: ToolsetState, more: true, repeatable: true,
			about:  "Keep your working notes: what you are trying, what to look at next. They replace the old ones unless append is set, and are told to your next session.",
			params: textParams("Your notes, in markdown. Empty clears them.", true), do: (*Server).stateScratch,
		},
		{
			name: "state_focus", title: "Set the focus", toolset: ToolsetState, more: true, repeatable: true,
			about:  "Say what you are at, in a few sentences, when it changes: goal, where you are, what is left. Your next session begins with it.",
			params: textParams("What you are at, in markdown. Empty clears it.", false), do: (*Server).stateFocus,
		},
		{
			name: "state_checkpoint", title: "Make a checkpoint", toolset: ToolsetState, more: true,
			about:  "Keep focus, scratch notes and the code's commit under a name, before something risky. A name is used once.",
			params: checkpointParams(), do: (*Server).stateCheckpoint,
		},
		{
			name: "state_note", title: "Write a note", toolset: ToolsetState, more: true, repeatable: true,
			about:  "Write an observation that is too long for a log entry into notes/NAME.md of your state. It replaces a note of that name.",
			params: namedParams("Name of the note: lower case letters, digits and hyphens.", "The note, in markdown."), do: (*Server).stateNote,
		},
		{
			name: "state_artifact", title: "Keep an artifact", toolset: ToolsetState, more: true, repeatable: true,
			about:  "Keep a generated text (a report, a table, a plan) under artifacts/ of your state, beside the code and not in it. It replaces one of that name.",
			params: artifactParams(), do: (*Server).stateArtifact,
		},
	}
}

func (s *Server) desk() (StateService, error) {
	if s.deps.State == nil {
		return nil, errors.New("there is no project here, and state belongs to one: run `reprise init` in the project's directory, or start the server inside it")
	}
	return s.deps.State, nil
}

// stateError says what can be done about an error of the state.
func stateError(tool string, err error) error {
	remedy := ""
	switch {
	case errors.Is(err, session.ErrDoubt):
		remedy = "call state_log with it; or say what to do or to expect next time; or, if it does hold next time as it is, call state_learn again with keep true"
	case errors.Is(err, staterepo.ErrTaken):
		remedy = "take another one; state_context lists those that wait"
	case errors.Is(err, staterepo.ErrCheckpoint):
		remedy = "give it another name"
	case errors.Is(err, memory.ErrDenied):
		remedy = "this run was not given the project's state to write; say what you found in your answer"
	case errors.Is(err, memory.ErrRetired):
		remedy = "it was forgotten on purpose; leave it, or say it in other words if it holds after all"
	}
	if remedy != "" {
		return fmt.Errorf("%s: %w: %s", tool, err, remedy)
	}
	return fmt.Errorf("%s: %w", tool, err)
}

// bounded are the notes of an answer, as many and as long as fit.
func bounded(w session.Wrote) session.Wrote {
	notes := []string{}
	for _, n := range w.Notes[:min(len(w.Notes), 20)] {
		notes = append(notes, shorten(n, 500))
	}
	w.Notes = notes
	return w
}

func (s *Server) stateContext(c *call) (any, error) {
	st, err := s.desk()
	if err != nil {
		return nil, err
	}
	v, err := st.State(c.ctx)
	if err != nil {
		return nil, stateError("state_context", err)
	}
	// Everything together has to fit into an answer.
	for _, list := range [][]session.Noted{v.Log, v.Decisions, v.Learnings, v.Open, v.Handoffs} {
		for i := range list {
			list[i].Text, _ = cutText(list[i].Text, 90, "the whole is in its file")
		}
	}
	for _, text := range []*string{&v.Focus, &v.Scratch, &v.About} {
		*text, _ = cutText(*text, 600, "the rest is in the file")
	}
	return v, nil
}

func logParams() []param {
	return []param{
		{name: "message", kind: text, required: true, bytes: 20_000, lines: true,
			about:  "What happened and what came of it.",
			remedy: "give one to three sentences"},
		{name: "type", kind: text, bytes: 20, enum: staterepo.Types(),
			about:  "start and end of a session's work, plan, implement (default), error. For learnings and decisions use state_learn and state_decide.",
			remedy: "leave it out for implement"},
		{name: "status", kind: text, bytes: 20, enum: staterepo.Statuses(),
			about:  "How far it has come.",
			remedy: "leave it out"},
		{name: "depends_on", kind: list, bytes: 60, entries: 20,
			about:  "Ids of entries that this one needs.",
			remedy: "give ids as state_context and state_search show them, or leave it out"},
	}
}

func (s *Server) stateLog(c *call) (any, error) {
	st, err := s.desk()
	if err != nil {
		return nil, err
	}
	e := mdfile.Entry{Type: mdfile.TypeImplement, Text: c.args.text("message"), Status: c.args.text("status"), DependsOn: c.args.list("depends_on")}
	if t := c.args.text("type"); t != "" {
		e.Type = t
	}
	if e.Type == mdfile.TypeHandoff {
		return nil, errors.New("state_log: parameter \"type\" handoff: use state_handoff, so that the handoff can be addressed and taken")
	}
	w, err := st.Add(c.ctx, e)
	if err != nil {
		return nil, stateError("state_log", err)
	}
	return bounded(w), nil
}

func learnParams() []param {
	return []param{
		{name: "insight", kind: text, required: true, bytes: 8_000, lines: true,
			about:  "One or two sentences: what to do or to expect next time, and where.",
			remedy: "say what holds next time"},
		{name: "context", kind: text, bytes: 8_000, lines: true, blank: true,
			about:  "What prompted it: the error, the place, the correction.",
			remedy: "leave it out"},
		{name: "keep", kind: boolean,
			about:  "Keep it although it was doubted.",
			remedy: "leave it out"},
	}
}

func (s *Server) stateLearn(c *call) (any, error) {
	st, err := s.desk()
	if err != nil {
		return nil, err
	}
	w, err := st.Learn(c.ctx, c.args.text("insight"), c.args.text("context"), c.args.flag("keep"))
	if err != nil {
		return nil, stateError("state_learn", err)
	}
	return bounded(w), nil
}

func decideParams() []param {
	return []param{
		{name: "decision", kind: text, required: true, bytes: 8_000, lines: true,
			about:  "What was chosen, in one sentence.",
			remedy: "give one sentence"},
		{name: "over", kind: list, bytes: 500, entries: 20,
			about:  "The alternatives that were considered.",
			remedy: "give a list of a few words each, or leave it out"},
		{name: "because", kind: text, bytes: 8_000, lines: true,
			about:  "Why.",
			remedy: "give a sentence, or leave it out"},
	}
}

func (s *Server) stateDecide(c *call) (any, error) {
	st, err := s.desk()
	if err != nil {
		return nil, err
	}
	w, err := st.Add(c.ctx, mdfile.Entry{
		Type: mdfile.TypeDecision, Decision: clip.Line(c.args.text("decision")), Alternatives: c.args.list("over"), Rationale: clip.Line(c.args.text("because")),
		Source: "agent", Confidence: 0.6,
	})
	if err != nil {
		return nil, stateError("state_decide", err)
	}
	return bounded(w), nil
}

func handoffParams() []param {
	return []param{
		{name: "text", kind: text, bytes: 20_000, lines: true,
			about:  "What is to be done, what is done already, what to look out for.",
			remedy: "say what the next one needs to go on"},
		{name: "to", kind: text, bytes: 100, check: staterepo.CheckName,
			about:  "Name of the agent that it is for. Default: anyone.",
			remedy: "give a name as `reprise state show` lists them, or leave it out"},
		{name: "accept", kind: text, bytes: 60,
			about:  "Id of a handoff to take; instead of text.",
			remedy: "give an id as state_context lists it"},
	}
}

func (s *Server) stateHandoff(c *call) (any, error) {
	st, err := s.desk()
	if err != nil {
		return nil, err
	}
	switch {
	case c.args.has("accept") && (c.args.has("text") || c.args.has("to")):
		return nil, errors.New("state_handoff: parameters \"accept\" and \"text\"/\"to\" exclude each other: take one, or leave one")
	case c.args.has("accept"):
		a, err := st.Accept(c.ctx, c.args.text("accept"))
		if err != nil {
			return nil, stateError("state_handoff", err)
		}
		a.Wrote = bounded(a.Wrote)
		return a, nil
	case !c.args.has("text"):
		return nil, errors.New("state_handoff: parameter \"text\" is missing: say what the next one needs to go on, or give the id of a handoff to accept")
	}
	w, err := st.Add(c.ctx, mdfile.Entry{Type: mdfile.TypeHandoff, Status: "pending", Text: c.args.text("text"), To: c.args.text("to")})
	if err != nil {
		return nil, stateError("state_handoff", err)
	}
	return bounded(w), nil
}

func stateSearchParams() []param {
	return []param{
		{name: "query", kind: text, bytes: 2000, lines: true, blank: true,
			about:  "Words to look for. Default: none, the newest entries are listed.",
			remedy: "give a few words, or leave it out"},
		{name: "type", kind: text, bytes: 20, enum: staterepo.Types(),
			about:  "Only entries of this type.",
			remedy: "leave it out for all"},
		{name: "since", kind: text, bytes: 40, check: checkSince,
			about:  "Only entries since then: 2026-02-21, or a time such as 2026-02-21T10:00:00Z.",
			remedy: "give a date such as 2026-02-21, or leave it out"},
		{name: "max_results", kind: integer, min: 1, max: 50,
			about:  "Most entries. Default 10.",
			remedy: "leave it out for 10"},
	}
}

func checkSince(s string) error {
	if _, err := parseSince(s, time.UTC); err != nil {
		return fmt.Errorf("is neither a date of the form YYYY-MM-DD nor a time (%q)", shorten(s, 40))
	}
	return nil
}

func parseSince(s string, zone *time.Location) (time.Time, error) {
	if at, err := time.Parse(time.RFC3339, s); err == nil {
		return at, nil
	}
	return time.ParseInLocation(time.DateOnly, s, zone)
}

// foundAnswer is what was found, with a sentence where that needs one.
type foundAnswer struct {
	session.Found
	Note string `json:"note,omitempty"`
}

func (s *Server) stateSearch(c *call) (any, error) {
	st, err := s.desk()
	if err != nil {
		return nil, err
	}
	w := session.Wanted{Query: c.args.text("query"), Type: c.args.text("type"), Max: c.args.number("max_results", 10)}
	if at := c.args.text("since"); at != "" {
		w.Since, err = parseSince(at, s.deps.Now().Location())
		if err != nil {
			return nil, err // checkSince passed it
		}
	}
	f, err := st.Search(c.ctx, w)
	if err != nil {
		return nil, stateError("state_search", err)
	}
	out := foundAnswer{Found: f}
	out.Results = []session.FoundEntry{}
	left := maxSearchTokens
	for _, r := range f.Results {
		r.Text, _ = cutText(r.Text, 150, "")
		if left -= tokens(r.Text) + tokens(r.Source) + 40; left < 0 {
			break
		}
		out.Results = append(out.Results, r)
	}
	var notes []string
	if n := 0; len(f.Own) > 0 {
		for _, of := range f.Own {
			n += of
		}
		names := slices.Sorted(maps.Keys(f.Own))
		notes = append(notes, fmt.Sprintf("%d more fit that are the own of %s until they are promoted (`reprise context promote --agent %s`)", n, shorten(strings.Join(names, ", "), 200), shorten(names[0], 60)))
	}
	switch {
	case len(f.Elsewhere) > 0:
		notes = append(notes, "nothing here, but in "+shorten(strings.Join(f.Elsewhere, ", "), 300)+": is this the right project?")
	case len(f.Results) == 0 && len(f.Projects) > 0:
		notes = append(notes, "nothing here; other projects are "+shorten(strings.Join(f.Projects, ", "), 300))
	}
	out.Elsewhere, out.Projects = f.Elsewhere[:min(len(f.Elsewhere), 10)], f.Projects[:min(len(f.Projects), 20)]
	out.Note = strings.Join(notes, "; ")
	return out, nil
}

func textParams(about string, add bool) []param {
	out := []param{{name: "text", kind: text, required: true, bytes: memory.MaxContent, lines: true, blank: true, about: about, remedy: "give markdown text"}}
	if add {
		out = append(out, param{name: "append", kind: boolean, about: "Put it behind what is there. Default false.", remedy: "leave it out to replace what is there"})
	}
	return out
}

func (s *Server) stateScratch(c *call) (any, error) {
	return s.writeState(c, "state_scratch", "scratch.md", c.args.flag("append"))
}

func (s *Server) stateFocus(c *call) (any, error) {
	return s.writeState(c, "state_focus", "context.md", false)
}

func (s *Server) stateNote(c *call) (any, error) {
	return s.writeState(c, "state_note", "notes/"+strings.TrimSuffix(c.args.text("name"), ".md")+".md", false)
}

func (s *Server) stateArtifact(c *call) (any, error) {
	return s.writeState(c, "state_artifact", "artifacts/"+c.args.text("name"), false)
}

// writeState writes a text file of the agent's.
func (s *Server) writeState(c *call, tool, file string, add bool) (any, error) {
	st, err := s.desk()
	if err != nil {
		return nil, err
	}
	w, err := st.Write(c.ctx, file, c.args.text("text"), add)
	if err != nil {
		return nil, stateError(tool, err)
	}
	return bounded(w), nil
}

func checkpointParams() []param {
	return []param{
		{name: "name", kind: text, required: true, bytes: 60, check: staterepo.CheckName,
			about:  "For example before-refactor.",
			remedy: "use lower case letters, digits and hyphens"},
		{name: "message", kind: text, bytes: 4_000, lines: true, blank: true,
			about:  "What it is for.",
			remedy: "leave it out"},
	}
}

func (s *Server) stateCheckpoint(c *call) (any, error) {
	st, err := s.desk()
	if err != nil {
		return nil, err
	}
	w, err := st.Checkpoint(c.ctx, c.args.text("name"), c.args.text("message"), s.deps.Now())
	if err != nil {
		return nil, stateError("state_checkpoint", err)
	}
	return bounded(w), nil
}

func namedParams(name, about string) []param {
	return []param{
		{name: "name", kind: text, required: true, bytes: 60, check: func(s string) error { return staterepo.CheckName(strings.TrimSuffix(s, ".md")) },
			about: name, remedy: "use lower case letters, digits and hyphens, without a path"},
		{name: "text", kind: text, required: true, bytes: memory.MaxContent, lines: true, about: about, remedy: "give markdown text"},
	}
}

func artifactParams() []param {
	return []param{
		{name: "name", kind: text, required: true, bytes: 100, check: checkArtifact,
			about:  "File name with its ending, for example report.md.",
			remedy: "use lower case letters, digits, hyphens and an ending, without a path"},
		{name: "text", kind: text, required: true, bytes: memory.MaxContent, lines: true, about: "Its content.", remedy: "give text, at most 1 MiB"},
	}
}

func checkArtifact(s string) error {
	base, ending, _ := strings.Cut(s, ".")
	if err := staterepo.CheckName(base); err != nil {
		return err
	}
	if ending != "" {
		return staterepo.CheckName(ending)
	}
	return nil
}
