//go:build unix

package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"reprise/internal/fakemodel"
)

// stepSubjects are the commits of the small change.
const stepSubjects = "task 1: create Mend add\ntask 1: complete research\ntask 1: create implementation plan\ntask 1 phase 1: mend the sum\ntask 1 phase 2: test it\ntask 1: mend add"

// The small change as items of the queue, by another client, comes to what its runs do.
func TestTaskByLoopWithCodex(t *testing.T) {
	inItsOwnStep(t)
	t.Parallel()
	h, m := withTask(t, "codex", stepRules(1)...)
	free := turn(t)
	defer free()
	out := h.must("task", "run", "1", "--loop", "--delay", "0s", "--agent", "codex")
	if !strings.Contains(out, "task 1 is completed") {
		t.Error(out)
	}
	if got := h.taskOutcome(); !strings.HasSuffix(got, "== status\n== log\none\ntwo\n"+stepSubjects) {
		t.Error(got)
	}
	// Its model is held to the form of the answer.
	if n := len(m.Matching(func(q *fakemodel.Request) bool { return strings.Contains(string(q.Body), `"json_schema"`) })); n == 0 {
		t.Error("no request told the model of the form")
	}
}

// Loop, supervisor and agent are killed together in the middle of phase 2; the next loop
// goes on with that phase, and with no other.
func TestTaskLoopKilledInPhaseTwo(t *testing.T) {
	inItsOwnStep(t)
	linuxOnly(t, "processes are found in /proc")
	t.Parallel()
	hang := fakemodel.Rule{Name: "hang", When: fakemodel.When{Task: `Carry out phase 2 of`, Turn: 1}, Say: fakemodel.Answer{Hang: true}}
	h, m := withTask(t, "claude", append([]fakemodel.Rule{hang}, stepRules(-1)...)...)
	free := turn(t)
	defer free()
	asked := func(about string) int {
		return len(m.Matching(func(q *fakemodel.Request) bool {
			return strings.Contains(q.Task(), about) && q.Turn() == 1 && !q.Side()
		}))
	}
	b := h.beside("task", "run", "1", "--loop", "--delay", "0s")
	until(t, 3*time.Minute, "the agent of phase 2 at work", func() bool { return asked("Carry out phase 2 of") > 0 })
	for _, p := range h.mine() {
		_ = syscall.Kill(p.pid, syscall.SIGKILL) // of this home: started by this test
	}
	<-b.done
	plan := h.read(filepath.Join(h.work, "specs/001_mend_add/plans/implementation-001.md"))
	if !strings.Contains(plan, "Phase 1: Mend the sum [COMPLETED]") || !strings.Contains(plan, "Phase 2: Test it [IN PROGRESS]") {
		t.Error(plan)
	}
	out := h.must("task", "run", "1", "--loop", "--delay", "0s")
	if !strings.Contains(out, "task 1 is completed") {
		t.Error(out)
	}
	if asked("Carry out phase 1 of") != 1 || asked("Find out what has to be known") != 1 || asked("Carry out phase 2 of") != 2 {
		t.Errorf("phase 1 was begun %d times, research %d, phase 2 %d", asked("Carry out phase 1 of"), asked("Find out what has to be known"), asked("Carry out phase 2 of"))
	}
	if got := h.taskOutcome(); !strings.HasSuffix(got, "== status\n== log\none\ntwo\n"+stepSubjects) {
		t.Error(got)
	}
	if out := h.must("task", "check"); !strings.Contains(out, "agree") {
		t.Error(out)
	}
}

// The commands that are no step of a task, called in a session of the real client, come to
// what the program does without one.
func TestOtherCommandsInSession(t *testing.T) {
	inItsOwnStep(t)
	t.Parallel()
	h, _ := withTask(t, "claude")
	h.must("setup", "claude-code", "--yes")
	calls := func(prompt string, rules ...fakemodel.Rule) {
		t.Helper()
		r := h.agent("claude", prompt, nil, append(rules, rule("said", fakemodel.When{}, say("It is done.")))...)
		if r.text != "It is done." {
			t.Errorf("%s said %q\n%s", prompt, r.text, r.out)
		}
	}

	h.must("task", "new", "Given up")
	h.must("task", "abandon", "2")
	calls("/reprise:todo",
		rule("look", fakemodel.When{Body: "reprise task todo --dry-run", Turn: 1}, shell("reprise task todo --dry-run")),
		rule("do", fakemodel.When{Result: `would be archived: task 2`}, shell("reprise task todo")))
	if text := h.read(filepath.Join(h.work, "specs/archive/TODO.md")); !strings.Contains(text, "### 2. Given up") {
		t.Errorf("archived is %q", text)
	}

	h.must("task", "errors", "add", "timeout", "too late by 5 s", "--task", "1")
	calls("/reprise:errors fix",
		rule("look", fakemodel.When{Body: "reprise task errors --json", Turn: 1}, shell("reprise task errors --json")),
		rule("fix", fakemodel.When{Result: `"type": "timeout"`}, shell("reprise task errors --fix --type timeout")))
	if out := h.must("task", "show", "3"); !strings.Contains(out, "Fix timeout errors") || !strings.Contains(out, "planned") {
		t.Error(out)
	}

	finding := `mkdir -p specs/reviews && printf '# Looked at add.sh\n\n### Finding: It subtracts\n\n- **Severity**: high\n- **Files**: add.sh\n\nRun it.\n' > specs/reviews/review-001.md`
	calls("/reprise:review add.sh",
		rule("begin", fakemodel.When{Body: "reprise task begin review", Turn: 1}, shell("reprise task begin review add.sh")),
		rule("work", fakemodel.When{Result: `Session: (?P<sid>sess_\d+_[a-z0-9]{6})`}, shell(finding+" && reprise task finish ${sid} <<'END'\n"+answerOf("specs/reviews/review-001.md")+"\nEND")))
	if out := h.must("task", "list"); !strings.Contains(out, "It subtracts") {
		t.Error(out)
	}

	answers := map[string]string{
		"domain.name": "Contract desk", "domain.purpose": "keep track of contracts", "case1.name": "Review contracts", "case2.name": "Track deadlines", "case3.name": "Draft letters",
		"confirm": "yes",
	}
	asked := regexp.MustCompile(`"key": "([^"]+)"`)
	put := fakemodel.Rule{Name: "answer", When: fakemodel.When{Result: `"next": \{`}, Uses: 60, Reply: func(q *fakemodel.Request) fakemodel.Answer {
		m := asked.FindStringSubmatch(q.Results())
		if m == nil {
			return say("no question in " + q.Results())
		}
		said := answers[m[1]]
		switch {
		case said == "" && strings.HasSuffix(m[1], "name"):
			said = "Work " + m[1]
		case said == "" && strings.HasSuffix(m[1], "what"):
			said = "it has been seen to"
		case said == "" && strings.Contains(m[1], "more"):
			said = "no"
		}
		return shell(`reprise task meta --answer "` + said + `" --json`)
	}}
	calls("/reprise:meta", rule("look", fakemodel.When{Body: "reprise task meta --status --json", Turn: 1}, shell("reprise task meta --status --json")), put)
	if _, err := os.Stat(filepath.Join(h.work, ".claude", "agents", "contract-desk-orchestrator.md")); err != nil {
		t.Error(err, h.must("task", "meta", "--status"))
	}

	for _, want := range []string{"todo: clean 1 completed task", "errors: create fix plan for 1 timeout errors (task 3)", "review: update registries and create tasks"} {
		if log := h.gitIn(h.work, "log", "--format=%s"); !strings.Contains(log, want) {
			t.Errorf("no %q in\n%s", want, log)
		}
	}
	if out := h.must("task", "check"); !strings.Contains(out, "agree") {
		t.Error(out)
	}
}

// The plugin is installed by the real client from a clone's own marketplace, without a
// network, and its commands, agents, hooks and server are there in the next session.
func TestPluginFromMarketplace(t *testing.T) {
	inItsOwnStep(t)
	t.Parallel()
	h, _ := withTask(t, "claude")
	claude := client(t, "claude")
	free := turn(t)
	for _, args := range [][]string{{"plugin", "marketplace", "add", repo}, {"plugin", "install", "reprise@reprise"}} {
		if r := h.run(claude, args...); r.code != 0 {
			t.Fatalf("%q: exit %d\n%s%s", args, r.code, r.out, r.err)
		}
	}
	free()
	r := h.agent("claude", "/reprise:task list", nil,
		rule("list", fakemodel.When{Body: "Asked for: list", Turn: 1}, fakemodel.Answer{Calls: []fakemodel.Call{fakemodel.Shell("reprise task list")}}),
		rule("said", fakemodel.When{Result: "Mend add"}, say("It is done.")))
	if r.text != "It is done." {
		t.Errorf("it said %q\n%s", r.text, r.out)
	}
	for _, l := range lines(r.out) {
		var init struct {
			Subtype  string   `json:"subtype"`
			Commands []string `json:"slash_commands"`
			Agents   []string `json:"agents"`
			Servers  []struct{ Name, Status string }
		}
		if json.Unmarshal([]byte(l), &init) != nil || init.Subtype != "init" {
			continue
		}
		for _, want := range []string{"reprise:research", "reprise:implement", "reprise:todo"} {
			if !strings.Contains(strings.Join(init.Commands, " "), want) {
				t.Errorf("no command %s: %s", want, l)
			}
		}
		if !strings.Contains(l, `"reprise:researcher"`) || !strings.Contains(l, `"plugin:reprise:reprise","status":"connected"`) {
			t.Errorf("agents or server: %s", l)
		}
	}
	// Its hooks recorded the session.
	events, err := filepath.Glob(h.project("events", "*.jsonl"))
	if err != nil || len(events) == 0 {
		t.Fatalf("%v, %v", events, err)
	}
	if all := h.read(events[0]); !strings.Contains(all, `"session.started"`) || !strings.Contains(all, r.id) {
		t.Errorf("nothing of session %s was recorded", r.id)
	}
}
