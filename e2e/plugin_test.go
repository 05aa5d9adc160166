//go:build unix

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"reprise/internal/fakemodel"
)

// byCommand are the turns of whoever carries out a command: begin, the work and its
// answer, and a word at the end. about is what the command's text has to hold.
func byCommand(op, about, does, file string) []fakemodel.Rule {
	return []fakemodel.Rule{
		rule("begin", fakemodel.When{Body: about, Turn: 1}, fakemodel.Answer{Calls: []fakemodel.Call{fakemodel.Shell("reprise task begin 1 " + op)}}),
		rule("work", fakemodel.When{Result: `Session: (?P<sid>sess_\d+_[a-z0-9]{6})`}, fakemodel.Answer{Calls: []fakemodel.Call{
			fakemodel.Shell(does + " && reprise task finish ${sid} <<'END'\n" + answerOf(file) + "\nEND")}}),
		rule("said", fakemodel.When{Result: `completed`}, say("It is done.")),
	}
}

// taskSteps are the steps of the small change, in their order.
func taskSteps() [][3]string {
	return [][3]string{
		{"research", taskReport, "specs/001_mend_add/reports/research-001.md"}, {"plan", taskPlan, "specs/001_mend_add/plans/implementation-001.md"},
		{"implement", taskPhase1, "add.sh"}, {"implement", taskPhase2, "test.sh"},
	}
}

// What setup puts in is loaded by the real client, and its commands come to the same
// files, statuses and commits as runs do. They are carried out by an agent of their
// own: the session that calls them pays nothing.
func TestTaskByCommands(t *testing.T) {
	inItsOwnStep(t)
	t.Parallel()
	runs, _ := withTask(t, "claude", stepRules(1)...)
	free := turn(t)
	runs.must("task", "research", "1")
	runs.must("task", "plan", "1")
	runs.must("task", "implement", "1", "--all-phases")
	free()
	want := runs.taskOutcome()

	h, _ := withTask(t, "claude")
	h.must("setup", "claude-code", "--yes")
	agents := map[string]string{"research": "researcher", "plan": "planner", "implement": "implementer"}
	for _, s := range taskSteps() {
		r := h.agent("claude", "/reprise:"+s[0]+" 1", nil, byCommand(s[0], "reprise task begin NUMBER "+s[0], s[1], s[2])...)
		if r.text != "It is done." {
			t.Errorf("/reprise:%s said %q\n%s", s[0], r.text, r.out)
		}
		if !strings.Contains(r.out, `"subagent_type":"reprise:`+agents[s[0]]+`"`) {
			t.Errorf("/reprise:%s was not given to %s\n%s", s[0], agents[s[0]], r.out)
		}
		for _, q := range r.requests {
			if !strings.Contains(q.SystemText(), "reprise task context core/return") {
				t.Errorf("/reprise:%s: a request was not the agent's own: %.300s", s[0], q.SystemText())
			}
		}
	}
	if got := h.taskOutcome(); got != want {
		t.Errorf("by commands it came to\n%s\nand by runs to\n%s", got, want)
	}
}

// The same commands in the other clients' own forms.
func TestTaskCommandsOfOtherClients(t *testing.T) {
	inItsOwnStep(t)
	t.Parallel()
	for client, prompt := range map[string]string{"codex": "$reprise-research 1", "gemini": "/reprise:research 1"} {
		t.Run(client, func(t *testing.T) {
			t.Parallel()
			h, _ := withTask(t, client)
			h.must("setup", client, "--yes", "--no-skill")
			// Codex runs commands by a login shell, in which the profile decides the path.
			h.write(filepath.Join(h.dir, ".bash_profile"), "export PATH='"+programs+"':$PATH\n")
			s := taskSteps()[0]
			r := h.agent(client, prompt, nil, byCommand(s[0], "reprise task begin NUMBER research", s[1], s[2])...)
			if !strings.Contains(r.text, "It is done.") || !r.told("agent/researcher") {
				t.Errorf("%s said %q\n%s", client, r.text, r.out)
			}
			for _, s := range taskSteps()[1:] { // to the end, as by any other way
				if r := h.agent(client, strings.Replace(prompt, "research", s[0], 1), nil, byCommand(s[0], "reprise task begin NUMBER "+s[0], s[1], s[2])...); !strings.Contains(r.text, "It is done.") {
					t.Errorf("%s: %s said %q\n%s", client, s[0], r.text, r.out)
				}
			}
			if got := h.taskOutcome(); !strings.HasSuffix(got, stepSubjects) {
				t.Errorf("%s: it came to\n%s", client, got)
			}
			if list := h.must("task", "list", "--all"); !strings.Contains(list, "completed") {
				t.Errorf("after %s: %s", prompt, list)
			}
			if text := h.read(filepath.Join(h.work, filepath.FromSlash(s[2]))); !strings.Contains(text, "add.sh subtracts") {
				t.Errorf("the report holds %q", text)
			}
		})
	}
	// Copilot lets a person call a skill in its own surface only: here it is seen that
	// the client has it, as one that a person may call and that the model is not told of.
	t.Run("copilot", func(t *testing.T) {
		t.Parallel()
		h, _ := withTask(t, "copilot")
		h.must("setup", "copilot", "--yes", "--no-skill")
		r := h.agent("copilot", "hello", nil, rule("said", fakemodel.When{}, say("Hello.")))
		for _, l := range lines(r.out) {
			if strings.Contains(l, "session.skills_loaded") && strings.Contains(l, `"name":"reprise-research"`) && strings.Contains(l, `"userInvocable":true`) {
				if r.told("Have a task of the project's list looked into") {
					t.Error("the model was told of it, so each session pays for it")
				}
				return
			}
		}
		t.Errorf("copilot does not know the commands:\n%s", r.out)
	})
}

// The client's own checker finds nothing to say about the plugin, the marketplace, and
// a system of agents that the interview made.
func TestPluginIsValid(t *testing.T) {
	inItsOwnStep(t)
	t.Parallel()
	h := newHome(t, nil)
	claude := client(t, "claude")
	free := turn(t)
	defer free()
	for _, dir := range []string{filepath.Join(repo, "plugin"), repo} {
		if r := h.run(claude, "plugin", "validate", "--strict", dir); r.code != 0 || !strings.Contains(r.out, "Validation passed") {
			t.Errorf("%s: exit %d\n%s%s", dir, r.code, r.out, r.err)
		}
	}
	// A plugin that is none is found out: the check can fail.
	bad := filepath.Join(h.work, "bad")
	h.write(filepath.Join(bad, ".claude-plugin", "plugin.json"), `{"name": "two words"}`)
	if r := h.run(claude, "plugin", "validate", "--strict", bad); r.code == 0 {
		t.Errorf("a name of two words passed:\n%s", r.out)
	}

	answers := filepath.Join(h.work, "answers.yaml")
	h.write(answers, `
domain: {name: Contract desk, purpose: keep track of contracts, users: [{name: lawyers}]}
use_cases:
  - {name: Review contracts, what: "each clause: compared", complexity: complex}
  - {name: Track deadlines, what: all dates stand in one list, complexity: simple}
  - {name: Draft letters, what: a letter says what has to be said, complexity: moderate}
confirm: true
`)
	h.config = filepath.Join(filepath.Dir(h.config), "with-claude.json")
	h.write(h.config, `{"claude_cli": {"path": "`+claude+`"}}`)
	project := filepath.Join(h.work, "desk")
	if err := os.MkdirAll(project, 0o700); err != nil {
		t.Fatal(err)
	}
	out := h.must("--config", h.config, "task", "meta", "--dir", project, "--answers", answers)
	if !strings.Contains(out, "Claude Code's own checker found no fault") {
		t.Error(out)
	}
	// And the client loads it: the commands and agents are there.
	h.work = project
	r := h.agent("claude", "/draft-letters to Ann", nil, rule("said", fakemodel.When{Task: `Draft letters: to Ann`}, say("Drafted.")))
	for _, want := range []string{`"review-contracts"`, `"contract-desk-orchestrator"`, `"contract-desk-knowledge"`} {
		if !strings.Contains(r.out, want) {
			t.Errorf("the client does not know %s:\n%.3000s", want, r.out)
		}
	}
	if r.text != "Drafted." {
		t.Errorf("the command said %q", r.text)
	}
}
