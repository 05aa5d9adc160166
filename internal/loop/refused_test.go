package loop

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"reprise/internal/agent"
	"reprise/internal/event"
	"reprise/internal/loop/core"
	"reprise/internal/loop/report"
	"reprise/internal/queue"
	"reprise/internal/run"
)

// refuse records that the guard refused a call of the run that is begun next, as a hook does.
func (n *night) refuse(run, id, reason string) {
	n.t.Helper()
	data, err := json.Marshal(map[string]any{"tool": "shell", "name": "Bash", "use_id": id, "verdict": "deny", "by": "guard", "instead_of": "ask", "rule": "exec", "reason": reason})
	if err != nil {
		n.t.Fatal(err)
	}
	e := event.Event{Type: event.PermissionDecided, Scope: event.ScopeSession, Project: "shop", Session: "s", Run: run, Client: "codex", Outcome: "denied", Data: data}
	if _, err := event.Open(n.opt.Events, "here", time.Now).Append(n.t.Context(), e); err != nil {
		n.t.Fatal(err)
	}
}

// What the guard refused is told with every client, by what it has recorded and not by what the
// client writes; of what is done, too, for its tests may never have run; and where the attempt that is the last one
// went on in the session, and did not try again what was refused there.
func TestNightTellsWhatWasRefused(t *testing.T) {
	t.Parallel()
	nothing := &agent.Result{OK: true, NumTurns: 2, Text: "I could not run them."}
	for name, tt := range map[string]struct {
		plays []play
		log   string // the last line of the item
		error string // that the queue keeps
		fate  core.Fate
	}{
		"given up": {[]play{{result: nothing}}, "given up: nothing was changed; the guard refused ./check.sh: it runs a program of the project [exec] (and another call)",
			"no change: nothing was changed; the guard refused ./check.sh: it runs a program of the project [exec] (and another call)", core.GiveUp},
		"done": {[]play{{change: true}}, "the guard refused ./check.sh: it runs a program of the project [exec] (and another call)", "", core.Done},
		"gone on with": {[]play{{result: nothing}, {result: nothing}}, "given up after 2 attempts: nothing was changed; in an attempt before the guard refused ./check.sh: it runs a program of the project [exec] (and another call)",
			"no change: nothing was changed; in an attempt before the guard refused ./check.sh: it runs a program of the project [exec] (and another call)", core.GiveUp},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newNight(t, tt.plays...)
			n.opt.Events = t.TempDir()
			var told []string
			n.opt.Say = func(l report.Line) { told = append(told, l.Text) }
			n.runs.plays[0].do = func(run.Request) {
				id := n.runs.id(0)
				n.refuse(id, "call-1", "./check.sh: it runs a program of the project [exec]")
				n.refuse(id, "call-1", "the same, asked by the client once more") // a PermissionRequest beside the PreToolUse
				n.refuse(id, "call-2", "touch .db-up: it writes [writes]")
				n.refuse("run-another", "call-3", "of another run")
			}
			limit := len(tt.plays)
			if _, err := n.queue.Add(t.Context(), queue.Item{ID: "a", Title: "Do a", MaxAttempts: limit}); err != nil {
				t.Fatal(err)
			}
			n.opt.Limits.MaxIdentical = 9
			s := n.all()
			it, err := n.queue.Get(context.Background(), "a")
			if err != nil {
				t.Fatal(err)
			}
			if it.LastError != tt.error {
				t.Errorf("the item has\n%q, want\n%q", it.LastError, tt.error)
			}
			if it.Result == nil || !strings.Contains(string(it.Result.Data), "./check.sh") {
				t.Errorf("its result says nothing of it: %+v", it.Result)
			}
			if all := strings.Join(told, "\n"); !strings.Contains(all, tt.log) {
				t.Errorf("the log is\n%s\nwithout %s", all, tt.log)
			}
			its, _, err := Iterations(n.opt.Dir, s.Loop)
			if err != nil || len(its) != limit || its[0].Refusals != 2 || its[limit-1].Fate != tt.fate || its[limit-1].RefusedEarlier != (limit > 1) {
				t.Fatalf("%+v %v", its, err)
			}
			page := report.Night("shop", s, its, nil, report.Standing{})
			if !strings.Contains(page, "guard refused ./check.sh: it runs a program of the project [exec] (and another call)") {
				t.Errorf("the report says nothing of it:\n%s", page)
			}
		})
	}
}
