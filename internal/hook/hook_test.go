package hook

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"reprise/internal/agent/dialect"
	"reprise/internal/event/quick"
	"reprise/internal/hook/plan"
)

// script is a recorder, a guard and handlers, and notes what is asked of them,
// in order.
type script struct {
	did      []string
	refuse   error
	pending  bool
	fail     error
	context  dialect.Decision
	verdict  dialect.Decision
	judged   Judged // with verdict in place of its decision
	warnings []string
	ids      []string
	data     []string
}

func (s *script) Record(_ context.Context, e *quick.Event, _ bool) (bool, error) {
	if s.refuse != nil && (!errors.Is(s.refuse, ErrNeedsFull) || strings.Contains(string(e.Data), "secret")) {
		return false, s.refuse
	}
	s.did = append(s.did, "record "+e.Type)
	s.ids, s.data = append(s.ids, e.ID), append(s.data, string(e.Data))
	return s.pending, nil
}

func (s *script) Kinds() []dialect.Kind { return nil }

func (s *script) Context(context.Context, dialect.Event) (dialect.Decision, error) {
	s.did = append(s.did, "context")
	return s.context, s.fail
}

func (s *script) Job(context.Context, dialect.Event) error {
	s.did = append(s.did, "job")
	return s.fail
}

func (s *script) Judge(context.Context, dialect.Event) Judged {
	s.did = append(s.did, "judge")
	j := s.judged
	j.Decision = s.verdict
	return j
}

func (s *script) router(rules plan.Rules) *Router {
	return &Router{Rules: &rules, Recorder: s, Handlers: s, Guard: s, Warn: func(what string, err error) { s.warnings = append(s.warnings, what) }}
}

func all() plan.Rules { return plan.Rules{Record: true, Recall: true, Jobs: true} }

// Recording comes first, whatever becomes of the rest.
func TestRoute(t *testing.T) {
	boom := errors.New("boom")
	for name, tc := range map[string]struct {
		kind    dialect.Kind
		rules   plan.Rules
		script  script
		did     string
		want    dialect.Decision
		warning string
	}{
		"session start":       {dialect.SessionStart, all(), script{context: dialect.Decision{Context: "c"}}, "record session.started, context, job", dialect.Decision{Context: "c"}, ""},
		"without recall":      {dialect.SessionStart, plan.Rules{Record: true, Jobs: true}, script{}, "record session.started, job", dialect.Decision{}, ""},
		"without jobs":        {dialect.SessionEnd, plan.Rules{Record: true, Recall: true}, script{}, "record session.ended", dialect.Decision{}, ""},
		"without recording":   {dialect.SessionStart, plan.Rules{Recall: true}, script{}, "context", dialect.Decision{}, ""},
		"off":                 {dialect.Prompt, plan.Rules{Record: true, Recall: true, Off: []string{"prompt"}}, script{}, "", dialect.Decision{}, ""},
		"failing handlers":    {dialect.SessionStart, all(), script{fail: boom, context: dialect.Decision{Context: "half"}}, "record session.started, context, job", dialect.Decision{}, "nothing is said"},
		"the log is held":     {dialect.Prompt, all(), script{pending: true}, "record prompt.submitted, context", dialect.Decision{}, "put aside"},
		"nothing is recorded": {dialect.Prompt, all(), script{refuse: boom, context: dialect.Decision{Context: "c"}}, "context", dialect.Decision{Context: "c"}, "not recorded"},
		"denied":              {dialect.ToolBefore, all(), script{verdict: dialect.Decision{Permission: dialect.Deny, Reason: "no"}}, "judge, record tool.called", dialect.Decision{Permission: dialect.Deny, Reason: "no"}, ""},
		"verdict and context": {dialect.ToolBefore, all(), script{verdict: dialect.Decision{Permission: dialect.Ask, Reason: "sure?"}, context: dialect.Decision{Permission: dialect.Allow, Context: "c"}},
			"judge, record tool.called, context", dialect.Decision{Permission: dialect.Ask, Reason: "sure?", Context: "c"}, ""},
		"blocked stop":  {dialect.Response, all(), script{context: dialect.Decision{Block: true, Reason: "tests"}}, "record response.completed, context, job", dialect.Decision{Block: true, Reason: "tests"}, ""},
		"other":         {dialect.Notification, all(), script{}, "", dialect.Decision{}, ""},
		"a tool's end":  {dialect.ToolAfter, all(), script{}, "record tool.succeeded", dialect.Decision{}, ""},
		"a failed tool": {dialect.ToolFailed, all(), script{context: dialect.Decision{Context: "fix"}}, "record tool.failed, context", dialect.Decision{Context: "fix"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := tc.script
			got, err := s.router(tc.rules).Route(t.Context(), dialect.Event{Client: "claude", Kind: tc.kind, Session: "s", Tool: "shell", ToolName: "Bash"})
			if err != nil || strings.Join(s.did, ", ") != tc.did {
				t.Errorf("did %q, want %q (%v)", s.did, tc.did, err)
			}
			if got.Context != tc.want.Context || got.Permission != tc.want.Permission || got.Block != tc.want.Block || got.Reason != tc.want.Reason {
				t.Errorf("%+v, want %+v", got, tc.want)
			}
			if said := strings.Join(s.warnings, "; "); (tc.warning == "") != (said == "") || !strings.Contains(said, tc.warning) {
				t.Errorf("warned %q, want %q", said, tc.warning)
			}
		})
	}
}

func asking(first, second string) dialect.Event {
	in, _ := json.Marshal(map[string]any{"questions": []any{map[string]any{"question": first}, map[string]any{"question": second}}})
	return dialect.Event{Client: "claude", Kind: dialect.ToolBefore, Session: "s", Tool: "ask", ToolName: "AskUserQuestion", Input: in}
}

// A router that can write only some of an event's lines says how far it came,
// and the next one goes on from there, with ids that were given before.
func TestRouteGoesOnWhereAnotherStopped(t *testing.T) {
	ev := asking("which?", "what is the secret?")
	hot := &script{refuse: ErrNeedsFull}
	r := hot.router(all())
	r.Guard = nil
	if _, err := r.Route(t.Context(), ev); !errors.Is(err, ErrNeedsFull) || r.Done != 1 || len(hot.did) != 1 {
		t.Fatalf("%v, %d done, did %q", err, r.Done, hot.did)
	}
	full := &script{}
	next := full.router(all())
	next.Guard = nil
	next.Done, next.IDs, next.At = r.Done, []string{"a", "b"}, time.Unix(5, 0)
	if _, err := next.Route(t.Context(), ev); err != nil || !slices.Equal(full.ids, []string{"b"}) || full.did[0] != "record question.asked" {
		t.Errorf("%v, %q, %q", err, full.ids, full.did)
	}
}

// A hook's time is in its first line, and not where nobody says when it began, nor again
// in what another goes on with.
func TestRouteNotesTheTime(t *testing.T) {
	took := func() time.Duration { return 5 * time.Millisecond }
	for _, tc := range []struct {
		took func() time.Duration
		done int
		want []bool
	}{
		{took, 0, []bool{true, false}},
		{took, 1, []bool{false}},
		{nil, 0, []bool{false, false}},
	} {
		s := &script{}
		r := s.router(all())
		r.Guard, r.Took, r.Done = nil, tc.took, tc.done
		if _, err := r.Route(t.Context(), asking("which?", "and then?")); err != nil || len(s.data) != len(tc.want) {
			t.Fatalf("%v, %q", err, s.data)
		}
		for i, want := range tc.want {
			if got, ok := quick.HookTime([]byte(s.data[i])); ok != want || ok && got != 5*time.Millisecond {
				t.Errorf("%d done, line %d: %v %t, want %t", tc.done, i, got, ok, want)
			}
		}
	}
}

// Payloads are what package event's types say.
func TestEvents(t *testing.T) {
	code := 2
	ev := dialect.Event{
		Client: "codex", Kind: dialect.ToolFailed, Session: "s", Cwd: "/w", Transcript: "/t", Turn: "u", Agent: "sub", AgentType: "explorer",
		Tool: "shell", ToolName: "Bash", ToolID: "i", Input: []byte(`{"command":"x"}`), Output: "o\n", Error: "e\"", ExitCode: &code, DurationMS: 7,
	}
	got := Events(&ev, Who{Project: "p", Run: "run-aaaaaaaaaa", Role: "musician"})
	if len(got) != 1 {
		t.Fatal(got)
	}
	e := got[0]
	want := `{"tool":"shell","name":"Bash","use_id":"i","input":{"command":"x"},"output":"o\n","error":"e\"","exit_code":2,"duration_ms":7,"cwd":"/w"}`
	if string(e.Data) != want || e.Outcome != "failure" || e.Agent != "explorer" || e.Project != "p" || e.Role != "musician" {
		t.Errorf("%s\n%s\n%+v", e.Data, want, e)
	}
	if links := []string{"transcript:/t", "turn:u", "tool:i", "subagent:sub"}; !slices.Equal(e.Evidence, links) {
		t.Errorf("evidence %q", e.Evidence)
	}
	answered := asking("which?", "when?")
	answered.Kind, answered.Output = dialect.ToolAfter, `{"answers":{"which?":"this"}}`
	if got := Events(&answered, Who{}); len(got) != 1 || got[0].Type != "question.answered" || string(got[0].Data) != `{"question":"which?","answer":"this","by":"user"}` {
		t.Errorf("%+v", got)
	}
}

// Every kind that there is comes to an event that the log takes, or to none.
func TestEventsOfEveryKind(t *testing.T) {
	for _, k := range []dialect.Kind{
		dialect.SessionStart, dialect.SessionEnd, dialect.Prompt, dialect.ToolBefore, dialect.ToolAfter, dialect.ToolFailed, dialect.PermissionAsked,
		dialect.PermissionDenied, dialect.Response, dialect.ResponseFailed, dialect.SubagentStarted, dialect.SubagentFinished, dialect.CompactBefore, dialect.CompactAfter,
	} {
		b := &quick.Broker{Events: func(string) string { return t.TempDir() }, Host: "h", Now: time.Now}
		for _, e := range Events(&dialect.Event{Client: "claude", Kind: k, Tool: "shell", ToolName: "Bash"}, Who{}) {
			if pending, err := b.Record(t.Context(), &e, false); err != nil || pending {
				t.Errorf("%s: %v, %v", k, pending, err)
			}
		}
	}
	if got := Events(&dialect.Event{Kind: dialect.Other}, Who{}); got != nil {
		t.Errorf("of no kind: %+v", got)
	}
}

func TestStartDir(t *testing.T) {
	env := map[string]string{"CLAUDE_PROJECT_DIR": "/claude", "GEMINI_PROJECT_DIR": "/gemini"}
	for _, tc := range []struct{ client, cwd, want string }{
		{"claude", "/w", "/claude"}, {"gemini", "/w", "/gemini"}, {"codex", "/w", "/w"}, {"codex", "rel", "/p"}, {"copilot", "", "/p"},
	} {
		if got := StartDir(&dialect.Event{Client: tc.client, Cwd: tc.cwd}, func(n string) string { return env[n] }, "/p"); got != tc.want {
			t.Errorf("%+v: %s", tc, got)
		}
	}
}

// A session stays where it began, wherever its agent goes: in another directory its calls
// would be judged by other rules, and its turns would end unlooked at.
func TestSessionDir(t *testing.T) {
	state := t.TempDir()
	env := map[string]string{"GEMINI_PROJECT_DIR": "/gemini"}
	dir := func(client, session, cwd string, kind dialect.Kind, source string) string {
		t.Helper()
		return SessionDir(state, &dialect.Event{Client: client, Session: session, Cwd: cwd, Kind: kind, Source: source}, func(n string) string { return env[n] }, "/p",
			func(what string, err error) { t.Error(what, err) })
	}
	for _, tc := range []struct {
		client, session, cwd string
		kind                 dialect.Kind
		source, want         string
	}{
		{"codex", "a", "/w", dialect.SessionStart, "startup", "/w"},
		{"codex", "a", "/tmp", dialect.Response, "", "/w"},
		{"codex", "a", "", dialect.ToolBefore, "", "/w"},
		{"codex", "a", "/w/gone", dialect.Prompt, "", "/w"},
		{"copilot", "a", "/tmp", dialect.Response, "", "/tmp"}, // another client's of that id
		{"codex", "a", "/tmp", dialect.SessionStart, "compact", "/w"},
		{"codex", "a", "/other", dialect.SessionStart, "resume", "/other"},
		{"codex", "a", "/w", dialect.Response, "", "/other"},
		{"codex", "", "/x", dialect.Response, "", "/x"},
		{"codex", "b", "/x", dialect.ToolBefore, "", "/x"}, // its beginning was not seen
		{"codex", "b", "/y", dialect.Prompt, "", "/y"},
		{"codex", "b", "/x", dialect.ToolBefore, "", "/y"},
		{"codex", "c", "rel", dialect.SessionStart, "", "/p"},
		{"gemini", "a", "/w", dialect.SessionStart, "", "/gemini"}, // the client says it
		{"codex", "d\n/e", "/w", dialect.SessionStart, "", "/w"},
		{"codex", "d\n/e", "/x", dialect.Response, "", "/x"}, // such an id is none
	} {
		if got := dir(tc.client, tc.session, tc.cwd, tc.kind, tc.source); got != tc.want {
			t.Errorf("%+v: %s", tc, got)
		}
	}
	notes, err := filepath.Glob(filepath.Join(state, "sessions", "*"+DirExt))
	if err != nil || len(notes) != 3 {
		t.Errorf("notes: %q, %v", notes, err)
	}
	for _, damaged := range []string{"", "codex\na\n/w", "codex\nb\n/w\n", "codex\na\nw\n", "codex\na\n\n"} {
		for _, n := range notes {
			if err := os.WriteFile(n, []byte(damaged), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if got := dir("codex", "a", "/here", dialect.Response, ""); got != "/here" {
			t.Errorf("by %q: %s", damaged, got)
		}
	}
}

// A session keeps the role that it began with.
func TestRole(t *testing.T) {
	state := t.TempDir()
	role := func(kind dialect.Kind, session, value string) string {
		t.Helper()
		return Role(state, &dialect.Event{Client: "claude", Kind: kind, Session: session}, func(n string) string {
			if n == RoleVar {
				return value
			}
			return ""
		}, func(what string, err error) { t.Error(what, err) })
	}
	for _, tc := range []struct {
		kind                 dialect.Kind
		session, value, want string
	}{
		{dialect.Prompt, "a", "", ""}, {dialect.Prompt, "a", "king", ""}, {dialect.Prompt, "a", "Section_Leader", "section-leader"},
		{dialect.Prompt, "a", "", ""}, {dialect.SessionStart, "a", "musician", "musician"}, {dialect.Prompt, "a", "", "musician"},
		{dialect.Prompt, "b", "", ""}, {dialect.SessionStart, "a", "conductor", "conductor"}, {dialect.Prompt, "a", "", "conductor"},
		{dialect.SessionStart, "", "conductor", "conductor"}, {dialect.Prompt, "", "", ""},
	} {
		if got := role(tc.kind, tc.session, tc.value); got != tc.want {
			t.Errorf("%+v: %q", tc, got)
		}
	}
}
