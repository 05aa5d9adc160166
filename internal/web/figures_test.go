package web

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"reprise/internal/agent"
	"reprise/internal/event"
	"reprise/internal/event/quick"
	"reprise/internal/learn"
	"reprise/internal/learn/improve"
	"reprise/internal/recall"
	"reprise/internal/run"
)

// row is the cells of a table's row as text.
func row(t *testing.T, body, figure, day string) []string {
	t.Helper()
	_, part, ok := strings.Cut(body, `id="f-`+figure+`"`)
	if part, _, _ = strings.Cut(part, "</section>"); !ok {
		t.Fatalf("there is no figure %s", figure)
	}
	m := regexp.MustCompile(`<tr><th scope="row">` + day + `</th>((?:<td>[^<]*</td>)+)</tr>`).FindStringSubmatch(part)
	if m == nil {
		t.Fatalf("%s has no row for %s:\n%s", figure, day, part)
	}
	return strings.Split(strings.TrimSuffix(strings.TrimPrefix(m[1], "<td>"), "</td>"), "</td><td>")
}

func TestFigures(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "events")
	noon := func(daysAgo int) time.Time {
		n := testNow()
		return time.Date(n.Year(), n.Month(), n.Day()-daysAgo, 12, 0, 0, 0, n.Location())
	}
	sessions := []learn.Stats{
		{Session: "s1", Client: "claude", Start: noon(1), Outcome: "good", Calls: 4, Retries: 1, Recalls: 1, Served: 4, Used: 3, Tokens: 100},
		{Session: "s2", Client: "claude", Start: noon(1), Outcome: "failed", Calls: 2, Retries: 3, Recalls: 1, Served: 4, Used: 0, Tokens: 300},
		{Session: "s3", Client: hostile, Start: noon(1), Outcome: "unknown"},
		{Session: "s4", Client: "claude", Start: noon(400), Outcome: "good", Calls: 1},
	}
	h := open(t, func(d *Deps) {
		d.Events = &Log{Dir: dir, What: func(event.Event) string { return "" }}
		d.Memory = &Remembering{Logs: []string{dir}, WorkOut: func(context.Context, time.Duration) (bool, error) { return false, nil }, Sessions: func(_ context.Context, fn func(learn.Stats) bool) error {
			for _, s := range sessions {
				if !fn(s) {
					break
				}
			}
			return nil
		}}
	})
	at := noon(1)
	broker := event.NewBroker(event.BrokerOptions{Events: func(string) string { return dir }, Host: "host", Now: func() time.Time { return at }})
	add := func(e event.Event, later time.Duration) event.Event {
		t.Helper()
		at = noon(1).Add(later)
		e.Scope, e.Project, e.Client, e.Session, e.Agent = event.ScopeProject, "shop", "claude", "s1", "tidy"
		got, err := broker.Record(t.Context(), e)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	for i, wait := range []time.Duration{10, 30, 500} {
		begin := time.Duration(i) * time.Minute
		p := add(event.Event{Type: event.PromptSubmitted, Data: data(map[string]string{"text": "x"})}, begin)
		add(event.Event{Type: event.RecallServed, Parent: p.ID, Data: data(event.ServedData{At: "prompt", Tokens: 5})}, begin+wait*time.Millisecond)
		add(event.Event{Type: event.RecallServed, Parent: p.ID, Data: data(event.ServedData{At: "tool_failure", Tokens: 5})}, begin+30*time.Second)
	}
	for i, st := range []run.Status{run.Completed, run.Completed, run.Failed} {
		h.runRecord(fmt.Sprintf("run-aaaaaaaaa%c", 'a'+i), func(r *run.Record) {
			end := noon(1)
			r.Status, r.Client, r.EndedAt, r.StartedAt, r.SessionID = st, "claude", &end, end.Add(-time.Minute), "s1"
		}, "")
		writeResult(t, h, fmt.Sprintf("run-aaaaaaaaa%c", 'a'+i), agent.Result{CostUSD: 0.25})
	}
	day := noon(1).Format("2 Jan")
	body := h.page("/figures?days=7")
	checkHarmless(t, "/figures", body)
	for figure, want := range map[string]string{
		"runs": "67 % (n = 3)", "sessions": "50 % (n = 2)", "retries": "2 (n = 2)", "cost": "0.75", "tokens": "200 (n = 2)", "hits": "38 % (n = 2)", "latency": "30 ms (n = 3)",
	} {
		if got := row(t, body, figure, day)[0]; got != want {
			t.Errorf("%s is %q, want %q", figure, got, want)
		}
	}
	if strings.Contains(body, "NaN") {
		t.Error("the page has a number that is none")
	}
	body = h.page("/figures?by=agent&days=7")
	if got := row(t, body, "runs", day)[0]; !strings.Contains(body, "<th scope=\"col\">tidy</th>") || got != "67 % (n = 3)" {
		t.Errorf("by agent: %q", got)
	}
	for _, odd := range []string{"?days=-1", "?days=1000000", "?by=<script>"} {
		checkHarmless(t, odd, h.page("/figures"+odd))
	}
	sessions = nil
	for i := range 12 {
		sessions = append(sessions, learn.Stats{Session: fmt.Sprint(i), Client: fmt.Sprint("client", i), Start: noon(2), Outcome: "good"})
	}
	add(event.Event{Type: event.SessionStarted}, time.Hour) // sessions are looked at anew when the log has grown
	if body := h.page("/figures"); !strings.Contains(body, "<th scope=\"col\">others</th>") {
		t.Error("a chart of twelve clients has a line for each")
	}
}

// Each hook's own time is in the figures, by hook and by whom it kept waiting; what is
// remembered is told after the event was recorded, and belongs to the wait.
func TestHookLatency(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "events")
	at := testNow().Add(-24 * time.Hour)
	h := open(t, func(d *Deps) { d.Events = &Log{Dir: dir, What: func(event.Event) string { return "" }} })
	broker := event.NewBroker(event.BrokerOptions{Events: func(string) string { return dir }, Host: "host", Now: func() time.Time { return at }})
	add := func(e event.Event, ms int) event.Event {
		t.Helper()
		at = at.Add(time.Millisecond)
		e.Scope, e.Project, e.Session = event.ScopeProject, "shop", "s1"
		if e.Client == "" {
			e.Client, e.Agent = "claude", "tidy"
		}
		if ms > 0 {
			e.Data = quick.WithHookTime(e.Data, time.Duration(ms)*time.Millisecond)
		}
		got, err := broker.Record(t.Context(), e)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	for i := range 100 { // 1 to 100 ms
		add(event.Event{Type: event.ToolCalled, Data: data(event.ToolData{Tool: "shell"})}, i+1)
	}
	add(event.Event{Type: event.ToolCalled, Data: data(event.ToolData{Tool: "shell"})}, 0) // of an earlier version
	add(event.Event{Type: event.ToolCalled, Client: "codex"}, 7)
	p := add(event.Event{Type: event.PromptSubmitted, Data: data(event.PromptData{Text: "x"})}, 20)
	at = at.Add(200 * time.Millisecond)
	add(event.Event{Type: event.RecallServed, Parent: p.ID, Data: data(event.ServedData{At: "prompt"})}, 0)
	for _, typ := range []event.Type{event.SessionStarted, event.SessionEnded, event.ToolSucceeded, event.ToolSucceeded, event.SubagentStarted, event.ResponseCompleted} {
		add(event.Event{Type: typ}, 3)
	}
	day := at.Format("2 Jan")
	body := h.page("/figures?days=7")
	checkHarmless(t, "/figures", body)
	want := []string{"before a tool", "after a tool", "end of a turn", "prompt", "session&#39;s end", "session&#39;s start", "subagent&#39;s start"}
	for figure, cells := range map[string][]string{
		"latency":           {"48 ms (n = 107)", "7 ms (n = 1)"},
		"latency-high":      {"96 ms (n = 107)", "7 ms (n = 1)"},
		"latency-hook":      {"50 ms (n = 101)", "3 ms (n = 2)", "3 ms (n = 1)", "221 ms (n = 1)", "3 ms (n = 1)", "3 ms (n = 1)", "3 ms (n = 1)"},
		"latency-hook-high": {"95 ms (n = 101)", "3 ms (n = 2)", "3 ms (n = 1)", "221 ms (n = 1)", "3 ms (n = 1)", "3 ms (n = 1)", "3 ms (n = 1)"},
	} {
		if got := row(t, body, figure, day); !slices.Equal(got, cells) {
			t.Errorf("%s: %q, want %q", figure, got, cells)
		}
	}
	if heads := "<th scope=\"col\">" + strings.Join(want, "</th><th scope=\"col\">") + "</th>"; !strings.Contains(body, heads) {
		t.Errorf("the hooks are not %q:\n%s", want, body)
	}
	if got := row(t, h.page("/figures?days=7&by=agent"), "latency", day); !slices.Equal(got, []string{"48 ms (n = 107)", "7 ms (n = 1)"}) {
		t.Errorf("by agent: %q", got)
	}
}

// writeResult is what a run came to, as its supervisor writes it.
func writeResult(t *testing.T, h *house, id string, r agent.Result) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(h.dir, "runs", id, "result.json"), data(r), 0o600); err != nil {
		t.Fatal(err)
	}
}

// What a chart is about leaves no time out.
func TestSpansAreWithoutGaps(t *testing.T) {
	now := time.Date(2026, 11, 29, 3, 0, 0, 0, time.Local)
	for _, days := range []int{7, 30, 90} {
		spans := spansOf(now, days)
		if !spans[len(spans)-1].to.After(now) || !spans[0].from.Before(now.AddDate(0, 0, -days+1)) {
			t.Errorf("%d days are from %s to %s", days, spans[0].from, spans[len(spans)-1].to)
		}
		for i := 1; i < len(spans); i++ {
			if !spans[i].from.Equal(spans[i-1].to) {
				t.Errorf("between %s and %s something is missing", spans[i-1].name, spans[i].name)
			}
		}
	}
}

func TestPolicyShowsWhatJustifiedIt(t *testing.T) {
	p := recall.DefaultPolicy()
	p.ID, p.Threshold = "e-two", p.Threshold*1.1
	all := []learn.PolicyVersion{
		{ID: "e-one", Time: testNow().Add(-time.Hour), PolicyChange: learn.PolicyChange{Op: learn.PolicyLearnt, For: learn.PolicyScope{Project: "shop"}, Version: 1, Parent: "default", Policy: &recall.Policy{ID: "e-one"}, Reason: hostile,
			Replay: &learn.Replay{Recalls: 40, Uses: 12, Before: learn.Score{Total: .5, Tokens: 100}, After: learn.Score{Total: .75, Tokens: 120}}}},
		{ID: "e-two", Time: testNow(), PolicyChange: learn.PolicyChange{Op: learn.PolicyRollback, For: learn.PolicyScope{Project: "shop", Role: "musician"}, Version: 2, Parent: "e-one", Policy: &p}},
	}
	var asked []string
	h := open(t, func(d *Deps) {
		d.Policy = &Policies{
			All:     func(context.Context) ([]learn.PolicyVersion, error) { return all, nil },
			InForce: func(context.Context) (recall.Policy, error) { return p, nil },
			Rollback: func(_ context.Context, s learn.PolicyScope, id, why string) (learn.PolicyVersion, error) {
				if why == "twice" {
					return learn.PolicyVersion{}, fmt.Errorf("%w: it is in force", improve.ErrPolicy)
				}
				asked = append(asked, fmt.Sprint(s.Project, " ", s.Role, " ", id, " ", why))
				return learn.PolicyVersion{}, nil
			},
		}
	})
	body := h.page("/policy")
	checkHarmless(t, "/policy", body)
	for _, want := range []string{"0.5000 → 0.7500", "40 recalls", "threshold", "in force"} {
		if !strings.Contains(body, want) {
			t.Errorf("/policy does not show %q", want)
		}
	}
	body = h.page("/policy/e-one")
	checkHarmless(t, "a version", body)
	for _, want := range []string{"40 past recalls", "12 things had been used", ">better<", ">worse<", "Put it in force again"} {
		if !strings.Contains(body, want) {
			t.Errorf("the version does not show %q", want)
		}
	}
	if body := h.page("/policy/e-two"); strings.Contains(body, "Put it in force again") || !strings.Contains(body, "None: somebody went back to it") {
		t.Error("the one in force is offered to go back to, or its replay is not said to be missing")
	}
	if code, _ := h.get("/policy/e-nothing"); code != http.StatusNotFound {
		t.Errorf("no such version: %d", code)
	}
	if code, to := h.send("/policy/e-one/rollback", url.Values{"why": {"it was better"}}); code != http.StatusSeeOther || !strings.Contains(to, "done=rolled") {
		t.Errorf("%d %s", code, to)
	}
	if code, _ := h.send("/policy/default/rollback", url.Values{}); code != http.StatusSeeOther {
		t.Error(code)
	}
	if code, _ := h.send("/policy/e-one/rollback", url.Values{"why": {"twice"}}); code != http.StatusConflict {
		t.Error(code)
	}
	if got := strings.Join(asked, ", "); got != "shop  e-one it was better, shop musician default on the dashboard" {
		t.Error(got)
	}
}

// A line has one look on the whole page, and no two lines of a chart have the same.
func TestLooks(t *testing.T) {
	l := looks{}
	for i, c := range []struct {
		names []string
		want  []int
	}{
		{[]string{"claude", "codex", "script", "gemini"}, []int{0, 1, 2, 3}},
		{[]string{"gemini", "claude"}, []int{3, 0}},
		{[]string{"copilot", "gemini"}, []int{4, 3}},
		{[]string{"others", "claude", "codex"}, []int{2, 0, 1}}, // all are given away: one that this chart does not use
		{[]string{"script", "others"}, []int{2, 0}},
		{[]string{"a", "b", "c", "d", "e"}, []int{0, 1, 2, 3, 4}},
	} {
		if got := l.of(c.names); !slices.Equal(got, c.want) {
			t.Errorf("chart %d, %v: %v, want %v", i, c.names, got, c.want)
		}
	}
}

// A run whose client ended without an error has not ended well where its work was refused:
// by the project's checks, whose last word holds, or by the loop.
func TestRefusedWorkHasNotEndedWell(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "events")
	h := open(t, func(d *Deps) { d.Events = &Log{Dir: dir, What: func(event.Event) string { return "" }} })
	at := testNow().Add(-24 * time.Hour)
	broker := event.NewBroker(event.BrokerOptions{Events: func(string) string { return dir }, Host: "host", Now: func() time.Time { return at }})
	add := func(e event.Event) {
		t.Helper()
		e.Scope, e.Project = event.ScopeProject, "shop"
		if _, err := broker.Record(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	verified := func(run, outcome string) {
		add(event.Event{Type: event.VerificationFinished, Run: run, Outcome: outcome, Data: data(event.VerificationData{ID: "v"})})
	}
	worked := func(run, op string) {
		add(event.Event{Type: event.WorkChanged, Data: data(event.WorkData{ID: "w", Op: op, Run: run})})
	}
	var runs []string
	for i := range 6 {
		id := fmt.Sprintf("run-aaaaaaaaa%c", 'a'+i)
		h.runRecord(id, func(r *run.Record) {
			r.Status, r.Client, r.EndedAt, r.StartedAt = run.Completed, "claude", &at, at.Add(-time.Minute)
		}, "")
		runs = append(runs, id)
	}
	verified(runs[0], "failed")
	verified(runs[1], "failed")
	verified(runs[1], "passed")
	worked(runs[2], "failed") // nothing came of it
	verified(runs[3], "passed")
	worked(runs[3], "done")
	worked(runs[4], "released") // says nothing of the work
	if got := row(t, h.page("/figures?days=7"), "runs", at.Format("2 Jan"))[0]; got != "67 % (n = 6)" {
		t.Errorf("four of six ended well, and the figure is %q", got)
	}
}
