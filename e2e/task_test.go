//go:build unix

package e2e

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"reprise/internal/fakemodel"
)

// What the agents of the task do, as a shell would: a report, a plan of two phases, a
// mended script, and a test of it.
const (
	taskReport = `mkdir -p specs/001_mend_add/reports && printf '# Found\n\nadd.sh subtracts.\n' > specs/001_mend_add/reports/research-001.md`
	taskPlan   = `mkdir -p specs/001_mend_add/plans && printf '# Plan\n\n### Phase 1: Mend the sum [NOT STARTED]\n\n- **Files**: add.sh\n\n### Phase 2: Test it [NOT STARTED]\n\n- **Files**: test.sh\n' > specs/001_mend_add/plans/implementation-001.md`
	taskPhase1 = `printf 'expr "$1" + "$2"\n' > add.sh`
	taskPhase2 = `printf 'test "$(sh add.sh 1 2)" = 3\n' > test.sh`
)

// answerOf is an agent's last words.
func answerOf(files ...string) string {
	for i := range files {
		files[i] = fmt.Sprintf("%q", files[i])
	}
	return `{"status":"completed","summary":"Done.","artifacts":[` + strings.Join(files, ",") + `],"metadata":{"session_id":"${sid}"}}`
}

// structuredAnswer is an agent's last words where its client holds it to a form.
func structuredAnswer(files ...string) fakemodel.Answer {
	return call("StructuredOutput", map[string]any{
		"status": "completed", "summary": "Done.", "artifacts": files, "errors": []any{}, "next_steps": "",
		"metadata": map[string]any{"session_id": "${sid}", "agent_type": "a", "delegation_depth": 1, "delegation_path": []any{}},
	})
}

// stepRules are the turns of the runs that do the steps, two each.
func stepRules(uses int) []fakemodel.Rule {
	var out []fakemodel.Rule
	for _, s := range []struct{ about, does, file string }{
		{`Find out what has to be known`, taskReport, "specs/001_mend_add/reports/research-001.md"},
		{`Write the plan of this task`, taskPlan, "specs/001_mend_add/plans/implementation-001.md"},
		{`Carry out phase 1 of`, taskPhase1, "add.sh"},
		{`Carry out phase 2 of`, taskPhase2, "test.sh"},
	} {
		task := `(?s)Session: (?P<sid>sess_\d+_[a-z0-9]{6}).*` + s.about
		out = append(out,
			fakemodel.Rule{Name: s.about, When: fakemodel.When{Task: task, Turn: 1}, Uses: uses, Say: shell(s.does)},
			fakemodel.Rule{Name: s.about + ", said in the form", When: fakemodel.When{Task: task, Offers: []string{"StructuredOutput"}}, Uses: uses, Say: structuredAnswer(s.file)},
			fakemodel.Rule{Name: s.about + ", said", When: fakemodel.When{Task: task}, Uses: uses, Say: say(answerOf(s.file))})
	}
	return out
}

// withTask is a project with a script that is wrong and a task to mend it.
func withTask(t *testing.T, client string, rules ...fakemodel.Rule) (*home, *fakemodel.Server) {
	t.Helper()
	h, m := looped(t, client, settings{"sub_agent": map[string]any{"agent": client}, "guard": map[string]any{"mcp": "allow", "allow": []string{"reprise task ..."}}}, rules...)
	h.write(filepath.Join(h.work, "add.sh"), "expr \"$1\" - \"$2\"\n")
	h.git("add", "-A")
	h.git("commit", "-q", "-m", "two")
	h.must("task", "new", "Mend add", "--body", "It subtracts.")
	return h, m
}

var taskTimes = regexp.MustCompile(`\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}Z`)

// taskOutcome is what a task came to: the list and the plan, the files in git, what is
// not committed, and the subjects of commits, without merges and twins.
func (h *home) taskOutcome() string {
	h.t.Helper()
	var b strings.Builder
	for _, f := range []string{"specs/TODO.md", "specs/001_mend_add/plans/implementation-001.md", "specs/001_mend_add/reports/research-001.md", "add.sh", "test.sh"} {
		fmt.Fprintf(&b, "== %s\n%s", f, taskTimes.ReplaceAllString(h.read(filepath.Join(h.work, f)), "TIME"))
	}
	files := lines(h.gitIn(h.work, "ls-files"))
	files = slices.DeleteFunc(files, func(f string) bool { return f == "specs/errors.json" })
	fmt.Fprintf(&b, "== files\n%s\n== status\n%s== log\n", strings.Join(files, "\n"), h.gitIn(h.work, "status", "--porcelain"))
	var said []string
	for _, s := range lines(h.gitIn(h.work, "log", "--format=%s", "--reverse", "--no-merges", "--author-date-order")) {
		if s = strings.TrimSuffix(s, ", on record"); !slices.Contains(said, s) {
			said = append(said, s)
		}
	}
	b.WriteString(strings.Join(said, "\n"))
	return b.String()
}

// A small change from an idea to the end, by the real client: as runs of their own, as
// items of the queue, and inside a session through the tools. It comes to the same.
func TestTaskThreeWays(t *testing.T) {
	inItsOwnStep(t)
	t.Parallel()
	outcome := map[string]string{}

	h, m := withTask(t, "claude", stepRules(1)...)
	free := turn(t)
	if out := h.must("task", "research", "1"); !strings.Contains(out, "research completed") {
		t.Error(out)
	}
	h.must("task", "plan", "1")
	out := h.must("task", "implement", "1", "--all-phases")
	free()
	if strings.Count(out, "completed") != 2 {
		t.Error(out)
	}
	outcome["runs"] = h.taskOutcome()
	if n := len(m.Matching(func(q *fakemodel.Request) bool { return q.Offers("StructuredOutput") })); n == 0 {
		t.Error("no run was held to the form of the answer")
	}
	for _, want := range []string{"### 1. Mend add", "[COMPLETED]", "Phase 2: Test it [COMPLETED]", "specs/001_mend_add/summaries/implementation-summary-001.md",
		"task 1: create Mend add\ntask 1: complete research\ntask 1: create implementation plan\ntask 1 phase 1: mend the sum\ntask 1 phase 2: test it\ntask 1: mend add"} {
		if !strings.Contains(outcome["runs"], want) {
			t.Errorf("no %q in\n%s", want, outcome["runs"])
		}
	}

	h, _ = withTask(t, "claude", stepRules(1)...)
	free = turn(t)
	out = h.must("task", "run", "1", "--loop", "--delay", "0s")
	free()
	if !strings.Contains(out, "task 1 is completed") {
		t.Error(out)
	}
	outcome["loop"] = h.taskOutcome()

	outcome["session"] = sessionOutcome(t)
	for _, way := range []string{"loop", "session"} {
		if outcome[way] != outcome["runs"] {
			t.Errorf("by %s it came to\n%s\nand by runs to\n%s", way, outcome[way], outcome["runs"])
		}
	}
}

// sessionOutcome has the task done inside one session.
func sessionOutcome(t *testing.T) string {
	t.Helper()
	var rules []fakemodel.Rule
	turnNo := 0
	add := func(a fakemodel.Answer) {
		turnNo++
		w := fakemodel.When{Task: "from the beginning to the end", Turn: turnNo}
		if len(a.Calls) > 0 && strings.HasSuffix(a.Calls[0].Tool, "task_finish") {
			w.Body = `(?s).*(?P<sid>sess_\d+_[a-z0-9]{6})` // the last one
		}
		rules = append(rules, rule(fmt.Sprint("turn ", turnNo), w, a))
	}
	for _, s := range []struct{ op, does, file string }{
		{"research", taskReport, "specs/001_mend_add/reports/research-001.md"}, {"plan", taskPlan, "specs/001_mend_add/plans/implementation-001.md"},
		{"implement", taskPhase1, "add.sh"}, {"implement", taskPhase2, "test.sh"},
	} {
		add(call("mcp__reprise__task_begin", map[string]any{"operation": s.op, "number": 1}))
		add(bash(s.does))
		add(call("mcp__reprise__task_finish", map[string]any{"session_id": "${sid}", "answer": answerOf(s.file)}))
	}
	add(say("All done."))
	h, _ := withTask(t, "claude", rules...)
	h.write(filepath.Join(h.dir, ".claude", "settings.json"), `{"permissions":{"allow":["Bash"]}}`)
	s := h.claude("Do task 1 from the beginning to the end.", sessionOptions{servers: map[string]any{
		"reprise": map[string]any{"command": program("reprise"), "args": []string{"mcp", "--toolsets", "default,tasks"}},
	}})
	if s.text != "All done." {
		t.Errorf("the session said %q\n%v", s.text, s.events)
	}
	return h.taskOutcome()
}

// The command is killed in the middle of phase 2, and so is nothing else: the agent is
// stopped, what was done is there, and the next command goes on with phase 2.
func TestTaskKilledInPhaseTwo(t *testing.T) {
	inItsOwnStep(t)
	t.Parallel()
	hang := fakemodel.Rule{Name: "hang", When: fakemodel.When{Task: `Carry out phase 2 of`, Turn: 1}, Say: fakemodel.Answer{Hang: true}}
	h, m := withTask(t, "claude", append([]fakemodel.Rule{hang}, stepRules(-1)...)...)
	free := turn(t)
	defer free()
	h.must("task", "research", "1")
	h.must("task", "plan", "1")
	b := h.beside("task", "implement", "1", "--all-phases")
	plan := filepath.Join(h.work, "specs/001_mend_add/plans/implementation-001.md")
	until(t, 2*time.Minute, "the agent of phase 2 at work", func() bool {
		return len(m.Matching(func(q *fakemodel.Request) bool {
			return strings.Contains(q.Task(), "Carry out phase 2 of") && !q.Side()
		})) > 0
	})
	if text := h.read(plan); !strings.Contains(text, "Phase 2: Test it [IN PROGRESS]") {
		t.Error(text)
	}
	if err := b.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-b.done
	if text := h.read(plan); !strings.Contains(text, "Phase 1: Mend the sum [COMPLETED]") {
		t.Error(text)
	}
	out := h.must("task", "implement", "1")
	if !strings.Contains(out, "implement phase 2 completed") || strings.Contains(out, "phase 1") {
		t.Error(out)
	}
	if out := h.must("task", "check"); !strings.Contains(out, "agree") {
		t.Error(out)
	}
	got := h.taskOutcome()
	if !strings.HasSuffix(got, "task 1 phase 1: mend the sum\ntask 1 phase 2: test it\ntask 1: mend add") || !strings.Contains(got, "== status\n== log") {
		t.Error(got)
	}
}

// The same by another client, as runs of their own.
func TestTaskWithCodex(t *testing.T) {
	inItsOwnStep(t)
	t.Parallel()
	h, _ := withTask(t, "codex", stepRules(1)...)
	free := turn(t)
	defer free()
	out := h.must("task", "run", "1", "--agent", "codex")
	if strings.Count(out, "completed") < 4 {
		t.Error(out)
	}
	if got := h.taskOutcome(); !strings.Contains(got, "== status\n== log\none\ntwo\ntask 1: create Mend add\ntask 1: complete research\ntask 1: create implementation plan\ntask 1 phase 1: mend the sum\ntask 1 phase 2: test it\ntask 1: mend add") {
		t.Error(got)
	}
}

// A task in Lean is worked at with the server that its language asks for, by whatever
// answers under that name; where there is none, it is worked at without, and that is noted.
func TestTaskWithLeanServer(t *testing.T) {
	inItsOwnStep(t)
	t.Parallel()
	task := `(?s)Session: (?P<sid>sess_\d+_[a-z0-9]{6}).*Find out what has to be known`
	h, m := withTask(t, "claude",
		fakemodel.Rule{Name: "ask the server", When: fakemodel.When{Task: task, Turn: 1, Offers: []string{"mcp__lean-lsp__state_context"}}, Say: call("mcp__lean-lsp__state_context", map[string]any{})},
		fakemodel.Rule{Name: "write", When: fakemodel.When{Task: task, Turn: 2}, Say: shell(taskReport)},
		fakemodel.Rule{Name: "say", When: fakemodel.When{Task: task, Turn: 3}, Say: structuredAnswer("specs/001_mend_add/reports/research-001.md")})
	h.env = append(h.env, "ENABLE_TOOL_SEARCH=false")
	h.must("task", "edit", "1", "--language", "lean")
	project := h.read(filepath.Join(h.work, ".reprise", "project.yaml"))
	h.write(filepath.Join(h.work, ".reprise", "project.yaml"), project+"routes:\n  lean:\n    servers:\n      lean-lsp: {command: ["+program("reprise")+", mcp, --toolsets, state]}\n")
	h.must("trust", "--yes")
	free := turn(t)
	defer free()
	r := h.reprise("task", "research", "1")
	if r.code != 0 || !strings.Contains(r.out, "research completed") || strings.Contains(r.err, "is not there") || !strings.Contains(r.err, "lean-research-agent") {
		t.Errorf("%s%s", r.out, r.err)
	}
	if n := len(m.Matching(func(q *fakemodel.Request) bool { return q.Turn() == 2 && strings.Contains(q.Results(), "focus") })); n == 0 {
		t.Errorf("the server did not answer\n%s", strings.Join(texts(m), "\n--\n"))
	}
	if out := h.must("task", "errors"); strings.Contains(out, "tool_failure") {
		t.Error(out)
	}
}
