//go:build unix

package e2e

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"reprise/internal/fakemodel"
)

// gated is a user with a project whose one check is that there is no file named
// broken, approved, with the hooks of a client put in by `reprise setup`.
func gated(t *testing.T, client string) *home {
	t.Helper()
	h := newHome(t, nil)
	h.git("init", "-q", "-b", "main")
	h.must("init", "--yes", "--name", "shop")
	h.write(filepath.Join(h.work, ".reprise", "project.yaml"), `v: 1
name: shop
verify:
  profiles:
    quick:
      - name: whole
        run: |
          if test -e broken; then echo "error: the file broken is there" >&2; exit 4; fi
`)
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
