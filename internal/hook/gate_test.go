package hook

import (
	"context"
	"slices"
	"testing"
	"time"

	"reprise/internal/agent/dialect"
	"reprise/internal/hook/plan"
)

// gate notes that it was asked, in the script.
type gate struct {
	s    *script
	says dialect.Decision
}

func (g gate) Gate(context.Context, dialect.Event) dialect.Decision {
	g.s.did = append(g.s.did, "gate")
	return g.says
}

// The gate comes last: what it runs takes minutes, and recording, recall and jobs
// must not wait for it, nor be lost with it. It is asked of its kinds only.
func TestTheGateIsAskedLast(t *testing.T) {
	block := dialect.Decision{Block: true, Reason: "not done"}
	for _, tc := range []struct {
		name  string
		rules plan.Rules
		kind  dialect.Kind
		says  dialect.Decision
		did   []string
		block bool
	}{
		{"blocks", plan.Rules{Record: true, Recall: true, Jobs: true, GateKinds: []string{"response"}}, dialect.Response, block, []string{"record response.completed", "context", "job", "gate"}, true},
		{"no opinion", plan.Rules{Record: true, Jobs: true, GateKinds: []string{"response"}}, dialect.Response, dialect.Decision{}, []string{"record response.completed", "job", "gate"}, false},
		{"of another kind", plan.Rules{Record: true, GateKinds: []string{"session_start"}}, dialect.Response, block, []string{"record response.completed"}, false},
		{"none", plan.Rules{Record: true}, dialect.Response, block, []string{"record response.completed"}, false},
		{"switched off", plan.Rules{Record: true, Off: []string{"response"}, GateKinds: []string{"response"}}, dialect.Response, block, nil, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := &script{context: dialect.Decision{Context: "told"}}
			r := s.router(tc.rules)
			r.Gate = gate{s, tc.says}
			d, err := r.Route(context.Background(), dialect.Event{Client: "claude", Name: "Stop", Kind: tc.kind, Session: "s", Text: "x"})
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(s.did, tc.did) {
				t.Errorf("did %q, want %q", s.did, tc.did)
			}
			if d.Block != tc.block || d.Block && d.Reason != "not done" {
				t.Errorf("%+v", d)
			}
		})
	}
}

// A notification is no occasion for anything, in any client: there is no answer
// to it that decides, whatever somebody has to say.
func TestNotificationsDecideNothing(t *testing.T) {
	for _, m := range dialect.Manifests() {
		for _, s := range m.Events {
			if s.Kind != dialect.Notification {
				continue
			}
			if can := s.Caps &^ dialect.CapContext; can != 0 {
				t.Errorf("%s %s can %q", m.Client, s.Name, can.Names())
			}
			if s.Install || Asks(s.Kind) || Works(s.Kind) {
				t.Errorf("%s %s is listened to", m.Client, s.Name)
			}
			ev := dialect.Event{Client: m.Client, Name: s.Name, Kind: s.Kind}
			for _, d := range []dialect.Decision{{Block: true, Reason: "r"}, {Permission: dialect.Deny, Reason: "r"}, {Permission: dialect.Allow}, {Permission: dialect.Ask}} {
				if out := dialect.Encode(ev, d).Stdout; len(out) > 0 {
					t.Errorf("%s %s says %s", m.Client, s.Name, out)
				}
			}
			if dialect.GateMS(m.Client, s.Name) != 0 || dialect.DeadlineMS(m.Client, s.Name) > int(10*time.Second/time.Millisecond) {
				t.Errorf("%s %s has a gate's time", m.Client, s.Name)
			}
		}
	}
}

// Only the end of a turn or of a subagent has a gate's time, and only where its
// answer can keep it from ending.
func TestGatesTime(t *testing.T) {
	for _, m := range dialect.Manifests() {
		for _, s := range m.Events {
			want := s.Caps&dialect.CapBlock != 0 && (s.Kind == dialect.Response || s.Kind == dialect.SubagentFinished)
			if got := dialect.GateMS(m.Client, s.Name) > 0; got != want {
				t.Errorf("%s %s: %v", m.Client, s.Name, got)
			}
		}
	}
}
