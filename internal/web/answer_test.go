package web

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"reprise/internal/loop"
	"reprise/internal/loop/core"
	"reprise/internal/queue"
)

// asks lets a loop that has ended be there, in which agents ask about items.
func (h *house) asks(items ...string) {
	h.t.Helper()
	s := core.New("loop-1", core.DefaultLimits(), core.Time{Wall: testNow()})
	s.Phase = core.Finished
	for n, id := range items {
		h.add(queue.Item{ID: id, Title: "The item " + id})
		if _, err := h.deps.Queue.Park(context.Background(), id, "", "asks"); err != nil {
			h.t.Fatal(err)
		}
		s.Items[id] = core.Memory{Parked: true, Kind: core.ByAgent, Asked: "Which of " + id + "?", Number: int64(n + 7)}
	}
	data, err := json.Marshal(s)
	if err == nil {
		err = os.MkdirAll(h.deps.LoopDir, 0o700)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(h.deps.LoopDir, "loop.json"), data, 0o600)
	}
	if err != nil {
		h.t.Fatal(err)
	}
}

// The head of the loop's panel does not pick one of several questions, and no box is empty:
// also where the loop waits for them, which is one interrupt.
func TestHeadPicksNoQuestion(t *testing.T) {
	h := open(t, nil)
	h.asks("colour", "db")
	file := filepath.Join(h.deps.LoopDir, "loop.json")
	s, err := loop.ReadState(h.deps.LoopDir)
	if err != nil {
		t.Fatal(err)
	}
	s.Phase, s.Reason = core.Waiting, "agent: Which of db?"
	s.Interrupt = &core.Interrupt{Kind: core.ByAgent, Why: "Which of db?", Items: []string{"colour", "db"}}
	if err := os.WriteFile(file, data(s), 0o600); err != nil {
		t.Fatal(err)
	}
	page := h.page("/work")
	head, _, ok := strings.Cut(page[strings.Index(page, `id="loop"`):], `class="ask"`)
	if !ok || !strings.Contains(head, "It waits for you") || strings.Contains(head, "Which of") {
		t.Errorf("above the questions:\n%s", head)
	}
	if n := strings.Count(page, `class="ask"`); n != 2 {
		t.Errorf("%d boxes for two questions", n)
	}
}

// Each question has its own box, and what is written there is for that question alone: an
// answer that does not say which, and silence, are refused.
func TestEachQuestionHasItsBox(t *testing.T) {
	h := open(t, nil)
	h.asks("colour", "db")
	page := h.page("/work")
	for _, want := range []string{"Which of colour?", "Which of db?", `name="item" value="colour"`, `name="item" value="db"`, "rows=\"3\" required"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	for _, q := range []string{"Which of colour?", "Which of db?"} {
		if !strings.Contains(h.page("/"), q) {
			t.Errorf("the overview lacks %q", q)
		}
	}
	requests := func() []string {
		found, err := filepath.Glob(filepath.Join(h.deps.LoopDir, "requests", "*"))
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	for _, bad := range []url.Values{{"answer": {"yes"}}, {"answer": {" "}}, {"item": {"db"}, "answer": {""}}, {"item": {"other"}, "answer": {"yes"}}} {
		if code, _ := h.send("/work/loop/resume", bad); code != http.StatusConflict || len(requests()) != 0 {
			t.Fatalf("%v: %d, %q", bad, code, requests())
		}
	}
	if code, _ := h.send("/work/loop/resume", url.Values{"item": {"db"}, "answer": {"no"}}); code != http.StatusSeeOther {
		t.Fatal(code)
	}
	data, err := os.ReadFile(requests()[0])
	var r loop.Request
	if err == nil {
		err = json.Unmarshal(data, &r)
	}
	if err != nil || r.Answer != "no" || len(r.Items) != 1 || r.Items[0] != "db" || r.Number != 8 {
		t.Fatalf("%s (%v)", data, err)
	}
	if page = h.page("/work"); strings.Contains(page, `id="answer-db"`) || !strings.Contains(page, `id="answer-colour"`) || !strings.Contains(page, "is answered") {
		t.Error("the page does not tell what is answered from what is open")
	}
}

// A loop that has ended because nothing was left says how what came later is begun, and
// says nothing of that where nothing came.
func TestEndedLoopSaysWhatIsReady(t *testing.T) {
	h := open(t, nil)
	h.asks()
	const want = "For what is ready now: <code>reprise loop run</code>"
	if page := h.page("/work"); !strings.Contains(page, "it has ended") || strings.Contains(page, want) {
		t.Errorf("with nothing ready:\n%s", page)
	}
	h.add(queue.Item{Title: "More"})
	if page := h.page("/work"); !strings.Contains(page, want) {
		t.Errorf("with an item that is ready:\n%s", page)
	}
}
