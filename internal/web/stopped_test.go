package web

import (
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"reprise/internal/loop"
	"reprise/internal/loop/core"
)

// What a person has stopped is no question: no box for an answer, and one button. What an agent
// asks, and checks that failed, are told apart in words.
func TestStoppedIsNoQuestion(t *testing.T) {
	h := open(t, nil)
	h.asks("colour", "halted", "tested")
	file := filepath.Join(h.deps.LoopDir, "loop.json")
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var s core.State
	if err := json.Unmarshal(data, &s); err != nil {
		t.Fatal(err)
	}
	s.Items["halted"] = core.Memory{Parked: true, Kind: core.ByCancel, Asked: "cancelled"}
	s.Items["tested"] = core.Memory{Parked: true, Kind: core.ByGate, Asked: "TestLogin fails", Number: 3}
	if data, err = json.Marshal(s); err == nil {
		err = os.WriteFile(file, data, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	page := h.page("/work")
	for _, want := range []string{"an agent asks", "checks failed", "Stopped by a person:", `id="reply-colour"`, `id="reply-tested"`, "Let it go on</button>"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if strings.Contains(page, `id="reply-halted"`) {
		t.Error("an answer is asked for, where nobody asks anything")
	}
	if home := h.page("/"); !strings.Contains(home, "halted was stopped by a person: cancelled") || strings.Contains(home, "your answer about halted") {
		t.Error("the overview takes what a person has stopped for a question")
	}
	if code, _ := h.send("/work/loop/resume", url.Values{"item": {"halted"}, "no_answer": {"yes"}}); code != http.StatusSeeOther {
		t.Fatal(code)
	}
	found, err := filepath.Glob(filepath.Join(h.deps.LoopDir, "requests", "*"))
	if err != nil || len(found) != 1 {
		t.Fatalf("%q (%v)", found, err)
	}
	var r loop.Request
	if data, err = os.ReadFile(found[0]); err == nil {
		err = json.Unmarshal(data, &r)
	}
	if err != nil || len(r.Items) != 1 || r.Items[0] != "halted" || r.Answer != "" {
		t.Errorf("%s (%v)", data, err)
	}
}
