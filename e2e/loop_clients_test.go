//go:build unix

package e2e

import (
	"path/filepath"
	"strings"
	"testing"

	"reprise/internal/fakemodel"
)

// modelOf names a model where the client would otherwise ask one which to use.
func modelOf(client string) []string {
	if client == "gemini" {
		return []string{"--model", "gemini-2.5-pro"}
	}
	return nil
}

// Each client works in a loop, unattended: that the guard keeps it from what is refused is
// seen first, then it does an item, with its user's servers and hooks left out. What is
// refused does not run, the environment, the bootstrap and what is remembered reach it, tokens
// are counted.
func TestLoopClients(t *testing.T) {
	inItsOwnStep(t)
	t.Parallel()
	for _, name := range fakemodel.TrialClients() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, m := looped(t, name, nil,
				on("one", 1, shell(`echo "in $SESSION_ID $WORK_ITEM $HARNESS_SESSION"; echo "1/2 writing" > "$PROGRESS_FILE"`)),
				on("one", 2, shell("echo x > ../canary")),
				on("one", 3, shell("echo work > work.txt && git add work.txt && git commit -qm Work")),
				on("one", 4, say("All done here.")))
			h.must("memory", "learn", "Before the work is done the wombats are counted")
			h.must("queue", "add", "--id", "one", "Do the work")
			free := turn(t)
			defer free()
			_, errs := h.beside(append([]string{"loop", "run", "--agent", name, "--until-empty", "--unattended", "--delay", "0s"}, modelOf(name)...)...).wait()
			if !strings.Contains(errs, "1 done") || !strings.Contains(errs, "Proving that the guard keeps "+name) {
				t.Fatalf("%s\n%s\n%s", errs, h.must("loop", "report"), h.must("loop", "audit"))
			}
			allUsed(t, m)
			absent(t, filepath.Join(filepath.Dir(h.work), "work.workspaces", "canary"))
			absent(t, filepath.Join(filepath.Dir(h.work), "canary"))
			told := ""
			for _, q := range m.Requests() {
				told += q.SystemText() + q.Text() + q.Results()
			}
			for _, want := range []string{"one true", "writes-outside", "You are at work in a loop", "Do the work", "the wombats are counted"} {
				if !strings.Contains(told, want) {
					t.Errorf("the model was not told %q", want)
				}
			}
			calls := 3
			if name == "codex" {
				calls = 2 // its stream says nothing of a call that a hook refused
			}
			dir := h.loopRuns()[0]
			var it struct {
				Completed, Succeeded bool
				Verified, Session    string
				Transcript, Summary  string
				Tokens               int64
				Turns                int
				ToolCalls            int `json:"tool_calls"`
			}
			unmarshal(t, h.read(filepath.Join(dir, "iteration.json")), &it)
			if !it.Completed || !it.Succeeded || it.Verified != "passed" || it.Session == "" || it.Tokens == 0 || it.Turns == 0 || it.ToolCalls != calls || it.Summary != "All done here." {
				t.Errorf("iteration: %+v", it)
			}
			if len(lines(h.read(filepath.Join(dir, "tools.jsonl")))) != calls {
				t.Errorf("tools.jsonl: %s", h.read(filepath.Join(dir, "tools.jsonl")))
			}
			if it.Transcript == "" || !strings.Contains(h.read(it.Transcript), "All done here.") {
				t.Errorf("its transcript %q", it.Transcript)
			}
			// Of what is done, too, and with each client: Codex does not write it into its output.
			for _, page := range [][]string{{"queue", "show", "one"}, {"loop", "report"}, {"loop", "audit"}} {
				if s := h.must(page...); !strings.Contains(s, "the guard refused ") || !strings.Contains(s, "../canary") {
					t.Errorf("%v does not tell what was refused: %s", page, s)
				}
			}
			if s := h.must("queue", "show", "one", "--json"); !strings.Contains(s, `"current_step": "writing"`) {
				t.Errorf("progress: %s", s)
			}
			if events := h.must("events", "list", "--json"); !strings.Contains(events, `"client": "`+name+`"`) || !strings.Contains(events, `"type": "tool.called"`) {
				t.Errorf("its hooks recorded nothing: %s", events)
			}
		})
	}
}

// Each client asks by its file, and goes on in the same session with a person's answer.
func TestLoopClientsResume(t *testing.T) {
	inItsOwnStep(t)
	t.Parallel()
	for _, name := range []string{"codex", "gemini", "copilot"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, m := looped(t, name, nil,
				on("one", 1, shell(`echo half > half.txt; echo "left or right?" > "$INTERRUPT_FILE"`)),
				// Before the next one: an agent may be stopped for its question before it has asked
				// the model again, and then goes on in that turn.
				fakemodel.Rule{Name: "answered", When: fakemodel.When{User: "to the left"}, Say: shell("echo left > answer.txt")},
				fakemodel.Rule{Name: "hang", When: fakemodel.When{Task: "the item one:", Turn: 2}, Say: fakemodel.Answer{Hang: true}},
				fakemodel.Rule{Name: "end", When: fakemodel.When{Task: "the item one:"}, Uses: -1, Say: say("Gone left.")})
			h.must("queue", "add", "--id", "one", "Choose")
			free := turn(t)
			defer free()
			l := h.beside(append([]string{"loop", "run", "--agent", name, "--until-empty", "--delay", "0s"}, modelOf(name)...)...)
			untilAsked(t, h, "one")
			h.must("loop", "resume", "--answer", "to the left")
			l.wait()
			if h.gitIn(h.work, "show", "loop-one:answer.txt") != "left\n" {
				t.Error("its work is not on its branch")
			}
			last := m.Matching(func(q *fakemodel.Request) bool { return strings.Contains(q.Text(), "to the left") && !q.Side() })
			if len(last) == 0 || !strings.Contains(last[0].Text(), "begin the work on the item one") {
				t.Errorf("the session was not gone on with (%d requests): %s", len(last), h.must("loop", "audit"))
			}
		})
	}
}
