//go:build unix

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"reprise/internal/fakemodel"
)

// wholeProject has one check: that there is no file named broken.
const wholeProject = `v: 1
name: shop
verify:
  profiles:
    quick:
      - name: whole
        run: |
          if test -e broken; then echo "error: the file broken is there" >&2; exit 4; fi
`

// gated is a user with a project whose one check is that there is no file named
// broken, approved, with the hooks of a client put in by `reprise setup`.
func gated(t *testing.T, client string) *home {
	t.Helper()
	h := newHome(t, nil)
	h.git("init", "-q", "-b", "main")
	h.must("init", "--yes", "--name", "shop")
	h.write(filepath.Join(h.work, ".reprise", "project.yaml"), wholeProject)
	h.write(filepath.Join(h.work, "kept.txt"), "kept\n")
	h.must("trust", "--yes")
	h.git("add", "-A")
	h.git("-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "-m", "one")
	name := client
	if name == "claude" {
		name = "claude-code"
	}
	h.must("setup", "--yes", name)
	return h
}

func (h *home) git(args ...string) {
	h.t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir, cmd.Env = h.work, h.env
	if out, err := cmd.CombinedOutput(); err != nil {
		h.t.Fatalf("git %q: %v\n%s", args, err, out)
	}
}

// verifications are the results of the project, the newest first.
func (h *home) verifications() (list []struct {
	Status  string `json:"status"`
	Trigger string `json:"trigger"`
	Client  string `json:"client"`
	Blocked bool   `json:"blocked"`
	Reason  string `json:"reason"`
}) {
	h.t.Helper()
	if err := json.Unmarshal([]byte(h.must("verify", "list", "--json")), &list); err != nil {
		h.t.Fatal(err)
	}
	return list
}

// A stop gate forces another turn, in all four clients: the model is told which
// check failed and how, mends it, and then may end.
func TestStopGateForcesAnotherTurn(t *testing.T) {
	inItsOwnStep(t)
	t.Parallel()
	for _, name := range fakemodel.TrialClients() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := gated(t, name)
			r := h.agent(name, "Make it.", nil,
				rule("break", fakemodel.When{Turn: 1}, shell("echo x > broken")),
				rule("claim", fakemodel.When{Turn: 2}, say("All done.")),
				rule("mend", fakemodel.When{User: "the work is not done yet", Turn: 3}, shell("rm broken; echo y > made")),
				rule("end", fakemodel.When{Turn: 4}, say("Now it is done.")))
			if !r.told("error: the file broken is there") || !r.told(`Check "whole"`) {
				t.Errorf("the model was not told what is wrong:\n%s\n%s\n%s", r.out, r.err, h.reprise("gates", "status").out)
			}
			if !strings.HasSuffix(r.text, "Now it is done.") { // Gemini CLI's lines are one text
				t.Errorf("the last answer is %q", r.text)
			}
			list := h.verifications()
			if len(list) != 2 || list[0].Status != "passed" || list[1].Status != "failed" || !list[1].Blocked || list[1].Trigger != "stop" || list[1].Client != name {
				t.Errorf("verifications: %+v", list)
			}
		})
	}
}

// An agent that cannot mend it is kept at most twice, and a session that changed
// nothing is never kept.
func TestStopGateLetsGo(t *testing.T) {
	inItsOwnStep(t)
	t.Parallel()
	for _, name := range fakemodel.TrialClients() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := gated(t, name)
			r := h.agent(name, "Break it.", nil,
				rule("break", fakemodel.When{Turn: 1}, shell("echo x > broken")),
				rule("claim", fakemodel.When{Turn: 2}, say("All done.")),
				rule("again", fakemodel.When{Turn: 3}, say("Still done.")),
				rule("and again", fakemodel.When{Turn: 4}, say("Done, I say.")),
				rule("too often", fakemodel.When{Turn: 5}, say("Kept too often.")))
			if !strings.HasSuffix(r.text, "Done, I say.") {
				t.Errorf("the last answer is %q", r.text)
			}
			blocked := 0
			for _, v := range h.verifications() {
				if v.Blocked {
					blocked++
				}
			}
			if blocked != 2 {
				t.Errorf("kept %d times, want twice: %+v", blocked, h.verifications())
			}
			before := len(h.verifications())
			r = h.agent(name, "What is in kept.txt?", nil,
				rule("look", fakemodel.When{Turn: 1}, shell("cat kept.txt")),
				rule("tell", fakemodel.When{Turn: 2}, say("It says kept.")))
			if n := len(h.verifications()); n != before || r.text != "It says kept." {
				t.Errorf("a session that only read was verified: %d results, before %d; %q\n%s", n, before, r.text, strings.TrimSpace(fmt.Sprint(h.verifications())))
			}
		})
	}
}

// The end of a subagent is looked at, too: in Claude Code it is the subagent that
// is told and goes on, and the session that started it gets what it made in the
// end.
func TestSubagentStopGate(t *testing.T) {
	inItsOwnStep(t)
	t.Parallel()
	h := gated(t, "claude")
	h.write(filepath.Join(h.dir, ".claude", "settings.json"), strings.Replace(h.read(filepath.Join(h.dir, ".claude", "settings.json")), "{", `{"permissions":{"allow":["Bash"]},`, 1))
	lead := func(turn int) fakemodel.When { return fakemodel.When{Task: "Lead", Turn: turn} }
	part := func(turn int) fakemodel.When { return fakemodel.When{Task: "Part: make it", Turn: turn} }
	r := h.agent("claude", "Lead it.", nil,
		rule("delegate", lead(1), call("Agent", map[string]any{"description": "make it", "prompt": "Part: make it", "subagent_type": "general-purpose", "run_in_background": false})),
		rule("break", part(1), shell("echo x > broken")),
		rule("claim", part(2), say("All done.")),
		rule("mend", fakemodel.When{Task: "Part: make it", User: "the work is not done yet", Turn: 3}, shell("rm broken; echo y > made")),
		rule("part end", part(4), say("Now the part is done.")),
		rule("end", fakemodel.When{Task: "Lead", Result: "Now the part is done", Turn: 2}, say("It is led.")))
	if !strings.HasSuffix(r.text, "It is led.") || !h.made("made") {
		t.Errorf("the last answer is %q\n%s\n%s", r.text, r.out, r.err)
	}
	var told []string
	for _, q := range r.requests {
		if strings.Contains(q.Text(), "error: the file broken is there") {
			told = append(told, q.Text())
		}
	}
	if len(told) == 0 || slices.ContainsFunc(told, func(s string) bool { return !strings.Contains(s, "Part: make it") }) {
		t.Errorf("%d requests have the reason, or others than the subagent's", len(told))
	}
	list := h.verifications()
	if n := len(list); n < 2 || list[n-1].Trigger != "subagent_stop" || !list[n-1].Blocked || list[n-2].Trigger != "subagent_stop" || list[n-2].Status != "passed" {
		t.Errorf("verifications: %+v", list)
	}
}

// Where the user wants it, another agent reviews the work when the checks pass:
// here Claude Code, isolated, asked by the gate of each client.
func TestReviewGate(t *testing.T) {
	inItsOwnStep(t)
	t.Parallel()
	for _, name := range fakemodel.TrialClients() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			review := func(verdict string, findings ...string) fakemodel.Answer {
				return call("StructuredOutput", map[string]any{"verdict": verdict, "findings": append([]string{}, findings...)})
			}
			m := model(t,
				fakemodel.Rule{Name: "reject", When: fakemodel.When{Offers: []string{"StructuredOutput"}, User: "new file made"}, Say: review("reject", "made is only a placeholder")},
				fakemodel.Rule{Name: "approve", When: fakemodel.When{Offers: []string{"StructuredOutput"}}, Say: review("approve")})
			h := gated(t, name)
			// The reviewer brings its account along, here the other model: Claude Code
			// has its hooks inherit its own, and Copilot takes keys out of theirs.
			reviewer := filepath.Join(h.dir, "bin", "reviewer")
			h.write(reviewer, "#!/bin/sh\nexec env '"+strings.Join(m.Env(), "' '")+"' '"+client(t, "claude")+"' \"$@\"\n")
			if err := os.Chmod(reviewer, 0o700); err != nil {
				t.Fatal(err)
			}
			h.write(h.config, strings.Replace(h.read(h.config), "{", fmt.Sprintf(`{"gates":{"review":"on"},"judge":{"client":"claude","program":%q,"purposes":["review"],"timeout_seconds":80},`, reviewer), 1))
			r := h.agent(name, "Make it.", nil,
				rule("make", fakemodel.When{Turn: 1}, shell("echo TODO > made")),
				rule("claim", fakemodel.When{Turn: 2}, say("All done.")),
				rule("mend", fakemodel.When{User: "the work is not done yet", Turn: 3}, shell("echo made > made")),
				rule("end", fakemodel.When{Turn: 4}, say("Now it is done.")))
			if !r.told("judge: made is only a placeholder") {
				t.Errorf("the model was not told what the reviewer found:\n%s\n%s\n%s", r.out, r.err, h.must("verify", "show"))
			}
			list := h.verifications()
			if len(list) != 2 || list[0].Status != "passed" || list[1].Status != "failed" || !list[1].Blocked {
				t.Errorf("verifications: %+v", list)
			}
			if asked := m.Matching(func(q *fakemodel.Request) bool { return q.Offers("StructuredOutput") }); len(asked) < 2 || !strings.Contains(asked[0].User(), "new file made") {
				t.Errorf("the reviewer was asked %d times", len(asked))
			}
		})
	}
}

// slowGate is a user whose project has a check that takes minutes, and notes in a
// directory of the home that it has begun: in the home itself a check makes nothing.
func slowGate(t *testing.T, seconds int) *hooked {
	t.Helper()
	h := &hooked{home: newHome(t, settings{"gates": map[string]any{"timeout_seconds": seconds}}), program: program("reprise-hook")}
	h.data = filepath.Join(filepath.Dir(h.dir), "data")
	h.env = append(h.env, "REPRISE_HOME="+h.data)
	if err := os.MkdirAll(filepath.Join(h.dir, "marks"), 0o755); err != nil {
		t.Fatal(err)
	}
	h.git("init", "-q", "-b", "main")
	h.must("init", "--yes", "--name", "shop")
	h.write(filepath.Join(h.work, ".reprise", "project.yaml"), "v: 1\nname: shop\nverify:\n  profiles:\n    quick:\n      - run: echo $$ > \"$HOME/marks/begun\"; sleep 250 & sleep 250\n        timeout_seconds: 300\n")
	h.must("trust", "--yes")
	return h
}

// recordedTypes are the types of the project's events so far.
func (h *hooked) recordedTypes() string { return strings.Join(h.events("projects", "shop"), " ") }

// When the client ends its hook, the checks end with it; the turn was recorded
// before they began.
func TestStopGateEndsWithItsHook(t *testing.T) {
	linuxOnly(t, "it looks at processes")
	t.Parallel()
	h := slowGate(t, 200)
	cmd := exec.Command(h.program, "claude", "Stop")
	cmd.Dir, cmd.Env, cmd.Stdin = h.work, h.env, strings.NewReader(h.payload("Stop", `,"last_assistant_message":"All done."`))
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	until(t, within(t, 20*time.Second), "the check has begun", func() bool {
		_, err := os.Stat(filepath.Join(h.dir, "marks", "begun"))
		return err == nil
	})
	if got := h.recordedTypes(); !strings.Contains(got, "response.completed") {
		t.Errorf("the turn is not recorded while the checks run: %q", got)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	until(t, within(t, 15*time.Second), "everything has ended", func() bool { return len(h.mine()) == 0 })
	// The copy of the tree is given back, for the next verification.
	left, err := filepath.Glob(filepath.Join(h.data, "cache", "verify", "*"))
	if err != nil || len(left) != 1 {
		t.Fatalf("left: %v, %v", left, err)
	}
	if _, err := os.Stat(filepath.Join(left[0], "kept")); err != nil {
		t.Error(err)
	}
	h.wantLog("the client ended the hook")
	h.wantLog("the verification was interrupted")
	if n := strings.Count(h.recordedTypes(), "verification.finished"); n != 0 {
		t.Errorf("%d verifications are recorded of what says nothing of the work", n)
	}
}

// When the time for checks is over, the turn ends, and the log says why.
func TestStopGateOutOfTime(t *testing.T) {
	linuxOnly(t, "it looks at processes")
	t.Parallel()
	h := slowGate(t, 20) // with time to copy the tree on a busy machine
	if r := h.hook("claude", "Stop", h.payload("Stop", `,"last_assistant_message":"All done."`)); r.out != "" {
		t.Errorf("it said %q", r.out)
	}
	h.wantLog("the turn was not judged", "time was over")
	if got := h.recordedTypes(); !strings.Contains(got, "response.completed") || !strings.Contains(got, "verification.finished") {
		t.Errorf("recorded: %q", got)
	}
	// A subagent's end is looked at, too, and a broken project.yaml lets it end.
	h.write(filepath.Join(h.work, ".reprise", "project.yaml"), "v: 1\nname: [\n")
	if r := h.hook("claude", "SubagentStop", h.payload("SubagentStop", `,"agent_id":"a1","agent_type":"general"`)); r.out != "" {
		t.Errorf("it said %q", r.out)
	}
}

// After a failed tool the quick checks run beside the session, where the project
// asks for it, and the next event tells what they found; once.
func TestChecksAfterAFailure(t *testing.T) {
	linuxOnly(t, "it looks at processes")
	t.Parallel()
	h := newHooked(t)
	h.git("init", "-q", "-b", "main")
	h.must("init", "--yes", "--name", "shop")
	h.write(filepath.Join(h.work, ".reprise", "project.yaml"), "v: 1\nname: shop\nverify:\n  on_failure: true\n  profiles:\n    quick:\n      - name: whole\n        run: \"echo 'error: not whole'; exit 1\"\n")
	h.must("trust", "--yes")
	h.hook("claude", "PostToolUseFailure", h.payload("PostToolUseFailure", aFail))
	var told string
	until(t, within(t, 20*time.Second), "a prompt is told what was found", func() bool {
		told = h.hook("claude", "UserPromptSubmit", h.payload("UserPromptSubmit", aTurn)).out
		return strings.Contains(told, "error: not whole")
	})
	if again := h.hook("claude", "UserPromptSubmit", h.payload("UserPromptSubmit", aTurn)).out; strings.Contains(again, "error: not whole") {
		t.Errorf("told twice: %s", again)
	}
	until(t, within(t, 10*time.Second), "the checks have ended", func() bool { return len(h.mine()) == 0 })
}
