package web

import (
	"context"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"reprise/internal/durable"
	"reprise/internal/event"
	"reprise/internal/loop/core"
	"reprise/internal/memory"
	"reprise/internal/queue"
	"reprise/internal/run"
	"reprise/internal/term"
)

// looping lets a loop run, which stands as change makes it.
func (h *house) looping(change func(*core.State)) {
	h.t.Helper()
	limits := core.DefaultLimits()
	limits.Workers = 2
	s := core.New("loop-1", limits, core.Time{Wall: testNow()})
	change(&s)
	if err := os.WriteFile(filepath.Join(h.deps.LoopDir, "loop.json"), data(s), 0o600); err != nil {
		h.t.Fatal(err)
	}
	unlock, err := durable.Disk{}.TryLock(filepath.Join(h.deps.LoopDir, "loop.lock"))
	if err == nil { // else it runs already
		h.t.Cleanup(func() { _ = unlock() })
	}
}

// The ceiling at which a loop waits is raised in the box that says so: its field is open, and
// the form is not sent without it. It is called what the meter calls it.
func TestACeilingIsRaisedWhereItIsTold(t *testing.T) {
	h := open(t, nil)
	needed := regexp.MustCompile(`name="(\w+)" type="number" min="[0-9.]+" max="\d+" step="\w+" inputmode="\w+" required`)
	for tokens, want := range map[int64]string{5: "usd", 10: "tokens", 2010: "tokens"} {
		h.looping(func(s *core.State) {
			s.Limits.MaxTokens, s.Tokens, s.Phase = 10, tokens, core.Waiting
			s.Interrupt = &core.Interrupt{Kind: core.ByBudget, Why: "all of it is used"}
		})
		page := h.page("/work")
		box := page[strings.Index(page, `id="answer"`):]
		head, _, _ := strings.Cut(box, "<details>")
		if m := needed.FindAllStringSubmatch(page, -1); len(m) != 1 || m[0][1] != want || !strings.Contains(head, "required") {
			t.Errorf("%d of 10 tokens: what is needed is %q, and the box begins so:\n%s", tokens, m, head)
		}
		if few := strings.Contains(page, "More tokens, "+term.Num(2001)+" at least</label>") && strings.Contains(page, `min="2001"`); few != (tokens == 2010) {
			t.Errorf("%d of 10 tokens: the least that helps is told: %v", tokens, few)
		}
		if strings.Contains(page, "<summary>Raise the ceilings</summary>") || strings.Contains(page, ">Go on</button>") {
			t.Error("there is a second form for the same, or a button that does nothing")
		}
		if !strings.Contains(page, "More attempts") || !strings.Contains(page, "Attempts begun") {
			t.Error("the meter and the form call one ceiling differently")
		}
	}
	h.looping(func(s *core.State) {
		s.Phase, s.Interrupt = core.Waiting, &core.Interrupt{Kind: core.ByAuth, Why: "not logged in"}
	})
	if page := h.page("/work"); needed.MatchString(page) || !strings.Contains(page, ">Go on</button>") {
		t.Error("a ceiling must be raised where the loop waits for something else")
	}
}

// A loop that finds nothing to do says so, in the words of `reprise loop status`.
func TestALoopWithoutWorkSaysSo(t *testing.T) {
	h := open(t, nil)
	h.looping(func(s *core.State) { s.Left = "1 item is set aside" })
	for _, path := range []string{"/", "/work"} {
		if body := h.page(path); !strings.Contains(body, "Nothing is ready: 1 item is set aside") || !strings.Contains(body, `<span class="tag ">idle</span>`) {
			t.Errorf("GET %s does not say that nothing is ready", path)
		}
	}
	h.looping(func(s *core.State) { s.Left, s.Slots[0].Step = "1 item is set aside", core.Running })
	for _, path := range []string{"/", "/work"} {
		if body := h.page(path); strings.Contains(body, "Nothing is ready: ") || !strings.Contains(body, `<span class="tag busy">working</span>`) {
			t.Errorf("GET %s says that nothing is ready while somebody works", path)
		}
	}
}

// Of what is being done the list says since when, and not when it was added.
func TestWhatIsDoneSaysSinceWhen(t *testing.T) {
	now := time.Now().Truncate(time.Second) // a claim is told to the millisecond
	h := open(t, func(d *Deps) { d.Now = func() time.Time { return now } })
	q := queue.Open(queue.Options{Dir: filepath.Join(h.dir, "queue"), Now: func() time.Time { return now.Add(-9 * time.Minute) }, Host: "host", Actor: "user"})
	if _, err := q.Add(context.Background(), queue.Item{ID: "rotate", Title: "Rotate"}); err != nil {
		t.Fatal(err)
	}
	q = queue.Open(queue.Options{Dir: filepath.Join(h.dir, "queue"), Now: func() time.Time { return now.Add(-31 * time.Second) }, Host: "host", Actor: "user"})
	if _, err := q.Claim(context.Background(), queue.ClaimOptions{Worker: "loop-1", Lease: time.Hour}); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/work", "/work/items?state=claimed"} {
		if body := h.page(path); !strings.Contains(body, ">31 s ago</time>") || strings.Contains(body, ">9 min ago</time>") || !strings.Contains(body, `<th scope="col">Taken</th>`) {
			t.Errorf("GET %s does not say since when it is being done:\n%s", path, body[strings.Index(body, "<th scope"):])
		}
	}
}

// Outside any project no page advises what is refused there.
func TestOutsideAProjectNoLoopIsAdvised(t *testing.T) {
	h := open(t, func(d *Deps) { d.Project, d.LoopDir, d.Tasks = "", "", nil })
	for _, path := range []string{"/", "/work"} {
		if body := h.page(path); strings.Contains(body, "reprise loop") || !strings.Contains(body, "reprise init") {
			t.Errorf("GET %s advises a loop, or does not say where one works", path)
		}
	}
}

// A run whose work the loop did not take is not shown as if all were well.
func TestARefusedRunIsNotGreen(t *testing.T) {
	h, add, _ := logging(t)
	h.runRecord("run-aaaaaaaaaa", func(r *run.Record) { r.Origin = "loop" }, "")
	h.runRecord("run-bbbbbbbbbb", func(r *run.Record) { r.Origin = "loop" }, "")
	add(event.Event{Type: event.WorkChanged, Data: data(event.WorkData{Op: queue.OpFail, Run: "run-aaaaaaaaaa"})},
		event.Event{Type: event.WorkChanged, Data: data(event.WorkData{Op: queue.OpDone, Run: "run-bbbbbbbbbb"})})
	for _, path := range []string{"/", "/runs"} {
		body := h.page(path)
		if strings.Count(body, `<span class="tag good">completed</span>`) != 1 || strings.Count(body, `<span class="tag warn">completed</span><span class="why">work not taken</span>`) != 1 {
			t.Errorf("GET %s does not tell the two runs apart:\n%s", path, body)
		}
	}
	if !strings.Contains(h.page("/runs/run-aaaaaaaaaa"), "its work was not taken") || strings.Contains(h.page("/runs/run-bbbbbbbbbb"), "its work was not taken") {
		t.Error("the runs' own pages do not tell them apart")
	}
}

// What was refused comes back in a form, as it was written, and can be sent once more from
// there. What a form would change unseen is there to be copied.
func TestARefusedFormComesBackFilledIn(t *testing.T) {
	here := memory.New(memory.Options{Dir: filepath.Join(t.TempDir(), "memory"), Now: testNow, Git: memory.GitOptions{Off: true}})
	all := memory.New(memory.Options{Dir: filepath.Join(t.TempDir(), "memory"), Now: testNow, Git: memory.GitOptions{Off: true}})
	h := open(t, func(d *Deps) {
		d.Memory = &Remembering{Files: memory.Layers{{Store: here, Project: "shop"}, {Store: all}}, CreateHere: here.Create}
	})
	if body := h.page("/memory"); !strings.Contains(body, "this project: shop") || !strings.Contains(body, "told to every session") {
		t.Error("the form does not say for which projects a block is")
	}
	form := func() url.Values {
		return url.Values{"for": {"project"}, "name": {"no such name"}, "summary": {"How to <deploy>"}, "text": {"\r\n# Deploy\r\n"}}
	}
	code, body := h.send("/memory/create", form())
	checkHarmless(t, "a refused form", body)
	if code != http.StatusBadRequest {
		t.Errorf("a name that cannot be: %d", code)
	}
	for _, want := range []string{`/memory/create" class="stack"`, `type="hidden" name="for" value="project"`, `name="name" value="no such name"`, `>Line in the index</label>`, `value="How to &lt;deploy&gt;"`, "name=\"text\" rows=\"8\">\n\n# Deploy\n</textarea>"} {
		if !strings.Contains(body, want) {
			t.Errorf("the form that comes back lacks %s:\n%s", want, body)
		}
	}
	if strings.Count(body, `name="csrf"`) != 1 {
		t.Error("the form's token does not stand there once")
	}
	f := form()
	f.Set("name", "reference-deploy")
	if code, to := h.send("/memory/create", f); code != http.StatusSeeOther || !strings.Contains(to, "/memory/block/project/") {
		t.Errorf("a block of the project: %d %s", code, to)
	}
	f.Set("for", "global")
	if code, to := h.send("/memory/create", f); code != http.StatusSeeOther || !strings.Contains(to, "/memory/block/global/") {
		t.Errorf("a block for all: %d %s", code, to)
	}
	f = form()
	f.Set("text", "a turn \u202e in it")
	if _, body := h.send("/memory/create", f); strings.Contains(body, "Send it again") || !strings.Contains(body, `a turn \u{202e} in it`) {
		t.Errorf("what cannot be seen is offered to be sent again:\n%s", body)
	}
}

// An answer is told as one, and what was let go on without is not called an answer.
func TestABannerSaysWhatWasSent(t *testing.T) {
	h := open(t, nil)
	h.asks("colour", "size")
	send := func(form url.Values) string {
		code, to := h.send("/work/loop/resume", form)
		if code != http.StatusSeeOther {
			t.Fatalf("%v: %d %s", form, code, to)
		}
		return to[strings.Index(to, "done="):]
	}
	if got := send(url.Values{"item": {"colour"}, "no_answer": {"yes"}}); got != "done=waits-so" {
		t.Errorf("without an answer, and no loop: %s", got)
	}
	unlock, err := durable.Disk{}.TryLock(filepath.Join(h.deps.LoopDir, "loop.lock"))
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	if got := send(url.Values{"item": {"size"}, "answer": {"large"}}); got != "done=answered" {
		t.Errorf("with an answer: %s", got)
	}
	for note := range map[string]bool{"answered": true, "waits-so": true} {
		if notes[note] == "" {
			t.Errorf("nothing is said of %s", note)
		}
	}
}

// After something was forgotten its page says so, where it is brought back.
func TestForgettingLeadsToBringItBack(t *testing.T) {
	h, k, _ := remembering(t)
	k.forgotten = true // as it is then
	code, to := h.send("/memory/item/e-1/forget", url.Values{})
	if code != http.StatusSeeOther || !strings.HasSuffix(to, "/memory/item/e-1?done=forgotten") {
		t.Fatalf("%d %s", code, to)
	}
	if body := h.page("/memory/item/e-1?done=forgotten"); !strings.Contains(body, "Forgotten: nothing serves it any more") || !strings.Contains(body, "Bring it back") {
		t.Error("the page after forgetting does not offer to bring it back")
	}
}

// Where no client is, none is advised to be started.
func TestOverviewSaysThatNoClientIsThere(t *testing.T) {
	there := false
	h := open(t, func(d *Deps) { d.Client = func() bool { return there } })
	if body := h.page("/"); !strings.Contains(body, "no coding agent was found") || strings.Contains(body, "reprise spawn") {
		t.Error("the overview advises to start what is not there")
	}
	there = true
	if body := h.page("/"); strings.Contains(body, "no coding agent was found") || !strings.Contains(body, "reprise spawn") {
		t.Error("the overview does not say how an agent is started")
	}
}
