//go:build unix

package e2e

import (
	"path/filepath"
	"strings"
	"testing"

	"reprise/internal/fakemodel"
)

// The guard of a real client's session asks a judge that is the real client, too. What
// the judge says counts, as far as the user's settings let it; an answer in words,
// silence and a failing model are asking, and after three of these nobody is asked for
// a while. With "-p" there is no person, so that what is asked about does not run.
// None of the judge's runs starts a hook or has a tool but that for its answer.
func TestGuardAsksAJudge(t *testing.T) {
	inItsOwnStep(t)
	t.Parallel()
	verdict := func(v, why string) fakemodel.Answer {
		return call("StructuredOutput", map[string]any{"verdict": v, "reason": why})
	}
	cases := []struct {
		name  string
		says  fakemodel.Answer
		runs  bool
		asked bool // the judge's model
	}{
		{"lets-pass", verdict("allow", "an empty file"), true, true},
		{"refuses", verdict("deny", "that file is sacred"), false, true},
		{"unsure", verdict("unsure", "who knows"), false, true},
		{"words", say("I allow it."), false, true},
		{"hangs", fakemodel.Answer{Hang: true}, false, true},
		{"overloaded", fakemodel.Answer{Fail: &fakemodel.Failure{Status: 529}}, false, true},
		// The circuit is open by now: this answer is never asked for.
		{"open", verdict("allow", "an empty file"), false, false},
	}
	var rules []fakemodel.Rule
	for i, c := range cases {
		rules = append(rules,
			fakemodel.Rule{Name: "judge " + c.name, When: fakemodel.When{Task: "touch file-" + c.name, Offers: []string{"StructuredOutput"}}, Uses: -1, Say: c.says},
			rule(c.name, fakemodel.When{Task: "Make the files.", Turn: i + 1}, shell("touch file-"+c.name)))
	}
	rules = append(rules, rule("end", fakemodel.When{Task: "Make the files.", Turn: len(cases) + 1}, say("I see.")))

	h := newHome(t, settings{
		"claude_cli": map[string]any{"path": client(t, "claude")},
		"judge":      map[string]any{"client": "claude", "purposes": []string{"guard"}, "timeout_seconds": 25},
		"guard":      map[string]any{"judge": "both", "writes": "ask"},
	})
	h.env = append(h.env, "CLAUDE_CODE_MAX_RETRIES=1")
	h.write(filepath.Join(h.dir, ".claude", "settings.json"), `{"permissions":{"allow":["Bash"]}}`)
	h.must("init", "--yes", "--name", "shop")
	h.must("setup", "--yes", "claude-code")
	r := h.agent("claude", "Make the files.", nil, rules...)

	for _, c := range cases {
		if made := exists(filepath.Join(h.work, "file-"+c.name)); made != c.runs {
			t.Errorf("%s: the tool ran: %v", c.name, made)
		}
		asked := 0
		for _, q := range r.requests {
			if !q.Offers("StructuredOutput") || !strings.Contains(string(q.Body), "touch file-"+c.name) {
				continue
			}
			asked++
			for _, tool := range q.Tools { // the first is the client's own stand-in for tools that it has none of
				if tool != "DeferredToolPlaceholder" && tool != "StructuredOutput" {
					t.Errorf("%s: the judge has the tools %v", c.name, q.Tools)
				}
			}
		}
		if asked > 0 != c.asked {
			t.Errorf("%s: the judge's model was asked %d times", c.name, asked)
		}
	}
	if !r.told("refused it: that file is sacred") {
		t.Error("the model was not told why it was refused")
	}
	// One session, the person's: nothing was recorded of those of the judge.
	count := map[string]int{}
	for _, typ := range h.types(t) {
		count[typ]++
	}
	if count["prompt.submitted"] != 1 || count["session.started"] != 1 || count["tool.called"] != len(cases) {
		t.Errorf("recorded %v", count)
	}
	// Each decision is an event that says who made it.
	decided := h.must("events", "list", "--type", "permission.decided", "--json")
	if strings.Count(decided, `"by": "judge"`) != 2 || strings.Count(decided, "that file is sacred") == 0 {
		t.Errorf("decided: %s", decided)
	}
}
