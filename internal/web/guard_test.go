package web

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"reprise/internal/event"
)

func TestGuardIsAnswered(t *testing.T) {
	var told []string
	waits := []Waiting{{ID: "0123abcd", Client: "claude", Tool: hostile, Input: hostile, Reason: hostile, Cwd: hostile, Since: testNow(), Until: testNow().Add(time.Minute)}}
	h := open(t, func(d *Deps) {
		d.Guard = &Guard{Mode: "enforce", Dir: t.TempDir(), Waiting: func() ([]Waiting, error) { return waits, nil }, Answer: func(id string, allow bool, why string) error {
			if len(waits) == 0 || id != waits[0].ID {
				return errors.New("this call does not wait any more")
			}
			told, waits = append(told, fmt.Sprint(id, allow, why)), nil
			return nil
		}}
	})
	body := h.page("/guard")
	checkHarmless(t, "/guard", body)
	if !strings.Contains(body, "&lt;/textarea&gt;") {
		t.Error("the call's input is not shown whole")
	}
	if !strings.Contains(h.page("/"), "A call of an agent waits for your word") {
		t.Error("the overview does not say that a call waits")
	}
	if code, _ := h.send("/guard/0123abcd/perhaps", url.Values{}); code != http.StatusNotFound || told != nil {
		t.Errorf("neither yes nor no: %d, %v", code, told)
	}
	if code, to := h.send("/guard/0123abcd/deny", url.Values{"why": {"not here"}}); code != http.StatusSeeOther || !strings.Contains(to, "done=denied") || len(told) != 1 || told[0] != "0123abcdfalsenot here" {
		t.Errorf("refused: %d %s, told %q", code, to, told)
	}
	if code, _ := h.send("/guard/0123abcd/approve", url.Values{}); code != http.StatusConflict || len(told) != 1 {
		t.Errorf("a call that waits no more: %d, told %q", code, told)
	}
}

// A command is shown as it is, and whatever stands beside it, too.
func TestACallIsShownWhole(t *testing.T) {
	for input, want := range map[string]string{
		`{"command":"make deploy && echo \"<ok>\""}`: `make deploy && echo "<ok>"`,
		`{"command":"ls"} `:                          `ls`,
		`{"command":"ls","command":"rm -rf ."}`:      `{"command":"ls","command":"rm -rf ."}`,
		`{"command":"ls","timeout":5}`:               `{"command":"ls","timeout":5}`,
		`{"command":["ls"]}`:                         `{"command":["ls"]}`,
		`{"command":""}`:                             `{"command":""}`,
		`{"command":"ls"}{"command":"rm -rf ."}`:     `{"command":"ls"}{"command":"rm -rf ."}`,
		`{"command":"ls"} rm -rf .`:                  `{"command":"ls"} rm -rf .`,
		`{"file_path":"a"}`:                          `{"file_path":"a"}`,
		`no JSON at all`:                             `no JSON at all`,
	} {
		got := asRead(Waiting{Input: input, Rule: "project-code", Reason: "make: it is code [project-code]"})
		if got.Input != want || got.Rule != "" {
			t.Errorf("%s is shown as %q, with the rule %q once more; want %q", input, got.Input, got.Rule, want)
		}
	}
	if got := asRead(Waiting{Rule: "project-code", Reason: "it is code"}); got.Rule == "" {
		t.Error("a rule that no reason names is not told")
	}
}

// A block's day is told in days, and a moment by the minute.
func TestDaysAreToldInDays(t *testing.T) {
	now := time.Date(2026, 11, 29, 22, 5, 0, 0, time.UTC)
	for _, c := range []struct {
		t    time.Time
		want string
	}{
		{time.Date(2026, 11, 29, 0, 0, 0, 0, time.UTC), "today"}, {time.Date(2026, 11, 28, 0, 0, 0, 0, time.UTC), "yesterday"},
		{time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC), "9 days ago"}, {now.Add(-3 * time.Minute), "3 min ago"}, {time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC), "in 1 h 55 min"},
	} {
		if got := ago(c.t, now); got != c.want {
			t.Errorf("%s is told as %q, want %q", c.t, got, c.want)
		}
	}
}

func TestGuardReadOnly(t *testing.T) {
	h := open(t, func(d *Deps) {
		d.ReadOnly = true
		d.Guard = &Guard{Mode: "enforce", Dir: t.TempDir(), Waiting: func() ([]Waiting, error) { return []Waiting{{ID: "x", Tool: "Bash"}}, nil }, Answer: func(string, bool, string) error {
			t.Error("a call was answered")
			return nil
		}}
	})
	if strings.Contains(h.page("/guard"), `method="post"`) {
		t.Error("there is a form where nothing may be changed")
	}
}

// Only rules that are proposed can be taken over, and only those that were ticked.
func TestProposedRulesAreTakenOver(t *testing.T) {
	var allowed []string
	h := open(t, func(d *Deps) {
		d.Guard = &Guard{Mode: "enforce", Dir: t.TempDir(), Waiting: func() ([]Waiting, error) { return nil, nil },
			Proposals: func() ([]Proposal, error) {
				return []Proposal{{Shape: "npm test ...", Approved: 4, Example: hostile, Last: testNow()}, {Shape: "make lint", Approved: 2}}, nil
			},
			Allow: func(shapes []string) error { allowed = append(allowed, shapes...); return nil }}
	})
	body := h.page("/guard/rules")
	checkHarmless(t, "/guard/rules", body)
	if strings.Contains(body, "checked") || strings.Count(body, `type="checkbox"`) != 2 {
		t.Error("rules are ticked before a person did, or not offered")
	}
	for _, bad := range []url.Values{{}, {"rule": {"rm ..."}}, {"rule": {"make lint", "*"}}} {
		if code, _ := h.send("/guard/rules", bad); code < 400 || allowed != nil {
			t.Errorf("%v: %d, allowed %q", bad, code, allowed)
		}
	}
	if code, to := h.send("/guard/rules", url.Values{"rule": {"make lint"}}); code != http.StatusSeeOther || !strings.Contains(to, "done=allowed") || strings.Join(allowed, ",") != "make lint" {
		t.Errorf("%d %s, allowed %q", code, to, allowed)
	}
}

// The figures above the list are of calls, too, while the log has all that was said.
func TestDecisionsAreCountedByCall(t *testing.T) {
	h, add, _ := loggingWith(t, func(d *Deps) {
		d.Guard = &Guard{Mode: "enforce", Dir: t.TempDir(), Waiting: func() ([]Waiting, error) { return nil, nil }}
	})
	what := data(map[string]any{"name": "Bash", "verdict": "ask", "by": "guard", "reason": hostile, "commands": []string{"./check.sh"}})
	for _, use := range []string{"u1", "u2"} {
		add(event.Event{Type: event.PermissionDecided, Client: "claude", Session: "s", Evidence: []string{"tool:" + use}, Data: what},
			event.Event{Type: event.PermissionDecided, Client: "claude", Session: "s", Data: what},
			event.Event{Type: event.ToolSucceeded, Client: "claude", Session: "s", Outcome: "success", Evidence: []string{"tool:" + use}, Data: data(map[string]any{"name": "Bash"})})
	}
	body := h.page("/guard")
	checkHarmless(t, "/guard", body)
	if !strings.Contains(body, "<li>ask <b>2</b></li>") || strings.Count(body, "you let it run") != 2 || strings.Count(body, `<span class="tag warn">ask</span>`) != 2 {
		t.Errorf("two calls that were asked about:\n%s", body[strings.Index(body, `id="decided"`):])
	}
	if body := h.page("/events?type=permission.decided"); strings.Count(body, ">permission.decided</a>") != 4 {
		t.Error("the log does not have all that was said")
	}
}
