package web

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
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
	if !strings.Contains(h.page("/"), "1 call of an agent waits") {
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
