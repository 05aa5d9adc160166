//go:build unix

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"reprise/internal/fakemodel"
)

// conducted is a user who starts a client as a conductor, with hooks and small
// limits: told at the second call of its own, refused after the third.
func conducted(t *testing.T, client string) *home {
	t.Helper()
	h := newHome(t, settings{"delegation": map[string]any{"conductor": map[string]any{"warn": 2, "block": 3}}})
	h.must("init", "--yes", "--name", "shop")
	if client == "claude" {
		h.write(filepath.Join(h.dir, ".claude", "settings.json"), `{"permissions":{"allow":["Bash"]}}`+"\n")
		client = "claude-code"
	}
	h.must("setup", "--yes", client)
	h.env = append(slices.Clone(h.env), "AGENT_ROLE=conductor")
	return h
}

// made reports whether a file is in the work directory.
func (h *home) made(name string) bool {
	_, err := os.Stat(filepath.Join(h.work, name))
	return err == nil
}

// counts are the events of delegation, what happened and the number of calls.
func (h *home) counts() string {
	return h.must("events", "list", "--all", "--type", "delegation.counted", "--json")
}

// A conductor that works itself is told, and then refused, in all four clients;
// what is refused did not run, and the model knows what to do instead.
func TestConductorIsHeldToItsRole(t *testing.T) {
	inItsOwnStep(t)
	t.Parallel()
	for _, name := range fakemodel.TrialClients() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := conducted(t, name)
			rules := []fakemodel.Rule{rule("look", fakemodel.When{Turn: 1}, shell("ls"))}
			for i := 1; i <= 4; i++ {
				rules = append(rules, rule(fmt.Sprint("work ", i), fakemodel.When{Turn: i + 1}, shell(fmt.Sprintf("echo x > made%d", i))))
			}
			r := h.agent(name, "Lead it.", nil, append(rules,
				rule("look again", fakemodel.When{Turn: 6}, shell("ls")),
				rule("end", fakemodel.When{Turn: 7}, say("I shall delegate.")))...)
			for i, want := range []bool{true, true, true, false} {
				if f := fmt.Sprint("made", i+1); h.made(f) != want {
					t.Errorf("%s is there: %v, want %v", f, !want, want)
				}
			}
			if !r.told("have done 3 calls of work yourself since you last delegated; 3 is the most") || !r.told("hand it to a subagent or a run (spawn_agent)") {
				t.Errorf("the model was not told why it was refused\n%s\n%s", r.out, r.err)
			}
			// Copilot CLI has no way to be told at a call that is let through.
			if warned := r.told("have done 2 calls of work yourself"); !warned && name != "copilot" {
				t.Errorf("the model was not warned\n%s\n%s", r.out, r.err)
			}
			if !r.told("made1") {
				t.Error("a command that only reads was refused")
			}
			if out := h.must("delegation", "status"); !strings.Contains(out, "3 of 3") {
				t.Errorf("status:\n%s", out)
			}
		})
	}
}

// In Claude Code: what a subagent does is free, delegating begins the count anew,
// and a count that was lost or damaged between two turns is made again and said,
// never taken for nothing.
func TestConductorWithSubagents(t *testing.T) {
	inItsOwnStep(t)
	t.Parallel()
	h := conducted(t, "claude")
	lead := func(turn int) fakemodel.When { return fakemodel.When{Task: "Lead", Turn: turn} }
	part := func(turn int) fakemodel.When { return fakemodel.When{Task: "Part: make them", Turn: turn} }
	rules := []fakemodel.Rule{
		rule("work 1", lead(1), shell("echo x > lead1")),
		rule("delegate", lead(2), call("Agent", map[string]any{"description": "make them", "prompt": "Part: make them", "subagent_type": "general-purpose", "run_in_background": false})),
	}
	for i := 1; i <= 5; i++ {
		rules = append(rules, rule(fmt.Sprint("part ", i), part(i), shell(fmt.Sprintf("echo x > part%d", i))))
	}
	r := h.agent("claude", "Lead it.", nil, append(rules,
		rule("part end", part(6), say("Made.")),
		rule("work 2", lead(3), shell("echo x > lead2")),
		rule("work 3", lead(4), shell("echo x > lead3")),
		rule("work 4", lead(5), shell("echo x > lead4")),
		rule("end", lead(6), say("Led.")))...)
	for i := 1; i <= 5; i++ {
		if f := fmt.Sprint("part", i); !h.made(f) {
			t.Errorf("the subagent was kept from making %s\n%s", f, r.out)
		}
	}
	if !h.made("lead4") || r.told("3 is the most") {
		t.Errorf("delegating did not begin the count anew\n%s", r.out)
	}
	if out := h.must("delegation", "status"); !strings.Contains(out, "3 of 3") {
		t.Fatalf("status:\n%s", out)
	}
	for i, spoil := range []func(string) error{
		os.Remove,
		func(f string) error { return os.WriteFile(f, []byte("reprise delegation 1\nwork 0\n"), 0o600) },
	} {
		files, err := filepath.Glob(filepath.Join(h.dir, ".local", "share", "reprise", "projects", "shop", "delegation", "*.count"))
		if err != nil || len(files) != 1 {
			t.Fatalf("counts: %v %v", files, err)
		}
		if err := spoil(files[0]); err != nil {
			t.Fatal(err)
		}
		f := fmt.Sprint("spoilt", i)
		again := h.agent("claude", "Lead on.", []string{"--resume=" + r.id},
			rule("work", fakemodel.When{User: "Lead on"}, shell("echo x > "+f)),
			rule("end", fakemodel.When{}, say("Refused.")))
		if h.made(f) || again.text != "Refused." || !strings.Contains(again.out, "3 is the most") {
			t.Errorf("spoilt %d: it was let through: %q\n%s", i, again.text, again.out)
		}
		if n := strings.Count(h.counts(), `"recounted"`); n != i+1 {
			t.Errorf("spoilt %d: said %d times\n%s", i, n, h.counts())
		}
	}
	if log := h.read(filepath.Join(h.dir, ".local", "state", "reprise", "log", "reprise.log")); strings.Count(log, "counted again from the log") != 2 {
		t.Errorf("the log does not say it:\n%s", log)
	}
}

// A run that a conductor starts is a musician and does its work; it may start
// another, and that one a third, and no further; nor the same task again.
func TestRunsOfAConductor(t *testing.T) {
	inItsOwnStep(t)
	t.Parallel()
	spawn := func(task string) fakemodel.Answer {
		return shell("reprise spawn --timeout 2m '" + task + "'")
	}
	at := func(task string, turn int) fakemodel.When { return fakemodel.When{Task: task, Turn: turn} }
	m := model(t,
		rule("one works", at("Part one", 1), shell("for i in 1 2; do echo x > one$i; done")),
		rule("one works on", at("Part one", 2), shell("echo x > one3")),
		rule("one still works", at("Part one", 3), shell("echo x > one4")),
		rule("one works yet", at("Part one", 4), shell("echo role=$AGENT_ROLE > one5")),
		rule("one delegates", at("Part one", 5), spawn("Part two")),
		rule("one in a circle", at("Part one", 6), spawn("Part   one")),
		rule("one ends", at("Part one", 7), say("One is made.")),
		rule("two delegates", at("Part two", 1), spawn("Part three")),
		rule("two ends", at("Part two", 2), say("Two is made.")),
		rule("three delegates", at("Part three", 1), spawn("Part four")),
		rule("three ends", at("Part three", 2), say("Three is made.")),
		rule("four", at("Part four", 1), say("Four should not be.")))
	h := newClaudeHome(t, m, settings{
		"delegation": map[string]any{"conductor": map[string]any{"warn": 1, "block": 1}},
		"guard":      map[string]any{"allow": []string{"reprise spawn ..."}},
	})
	h.must("init", "--yes", "--name", "shop")
	h.must("setup", "--yes", "claude-code")
	h.env = append(slices.Clone(h.env), "AGENT_ROLE=conductor")
	free := turn(t)
	defer free()
	if out := h.must("spawn", "--timeout", "2m", "Part one"); !strings.Contains(out, "One is made.") {
		t.Fatalf("answered %s", out)
	}
	if text := h.read(filepath.Join(h.work, "one5")); text != "role=musician\n" {
		t.Errorf("the run's %s", text)
	}
	told := func(text string) bool {
		return len(m.Matching(func(q *fakemodel.Request) bool { return strings.Contains(q.Text(), text) })) > 0
	}
	for _, want := range []string{"Three is made.", "this would be level 4 of runs that start runs", "this would go round in a circle"} {
		if !told(want) {
			t.Errorf("no agent was told %q\n%s", want, strings.Join(texts(m), "\n--\n"))
		}
	}
	if told("Four should not be.") || told("is the most. Delegate this one") {
		t.Error("a fourth level, or a run that was held to its conductor's limits")
	}
	if out := h.must("delegation", "status"); strings.Count(out, "was started by") != 2 || !strings.Contains(out, "No session of a conductor") {
		t.Errorf("status:\n%s", out)
	}
}

// texts are what the model was sent, the last message of each request.
func texts(m *fakemodel.Server) (out []string) {
	for _, q := range m.Matching(func(q *fakemodel.Request) bool { return !q.Side() }) {
		text := q.Text()
		out = append(out, text[max(0, len(text)-1500):])
	}
	return out
}
