package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"reprise/internal/run"
)

// A dashboard lists the runs of every project, and says of each whose it is: what counts
// as this project's, and what is drawn of it, is of this project alone.
func TestRunsSayWhoseTheyAre(t *testing.T) {
	h := open(t, nil)
	h.runRecord("run-aaaaaaaaaa", nil, "")
	if body := h.page("/runs"); strings.Contains(body, "Project</th>") || strings.Contains(body, "Every project") {
		t.Error("runs of one project alone need no column and no filter")
	}
	h.runRecord("run-bbbbbbbbbb", func(r *run.Record) { r.Project = "bakery" }, "")
	h.runRecord("run-cccccccccc", func(r *run.Record) { r.Project, r.Status, r.StatusReason = "", run.Interrupted, "which one?" }, "")
	ids := regexp.MustCompile(`class="id"> ?(run-\w+)`)
	listed := func(path string) string {
		var out []string
		for _, m := range ids.FindAllStringSubmatch(h.page(path), -1) {
			out = append(out, m[1][4:5])
		}
		if len(out) == 3 {
			return "all"
		}
		return strings.Join(out, " ")
	}
	for path, want := range map[string]string{
		"/runs": "all", "/runs?project=shop": "a", "/runs?project=bakery": "b", "/runs?project=%28none%29": "c", "/runs?project=other": "",
		"/runs?project=shop&status=interrupted": "", "/runs?project=%28none%29&status=interrupted": "c",
	} {
		if got := listed(path); got != want {
			t.Errorf("GET %s lists %q, want %q", path, got, want)
		}
	}
	if body := h.page("/runs?status=completed"); !strings.Contains(body, `href="`+h.base[strings.LastIndex(h.base, "/"):]+`/runs?status=completed&amp;project=bakery"`) || !strings.Contains(body, "<td>bakery</td>") {
		t.Error("the list lacks the filter, or the project of a run:\n" + body)
	}
	// What a loop's run asked is the loop's to tell, once, and only until it is answered.
	h.runRecord("run-dddddddddd", func(r *run.Record) { r.Origin, r.Status, r.StatusReason = "loop", run.Interrupted, "the agent asks" }, "")
	body := h.page("/")
	if strings.Contains(body, "Run run-dddddddddd was interrupted") {
		t.Error("a question of the loop is shown as a run's, too")
	}
	for _, want := range []string{"2 runs on record, 2 <a", "<td>bakery</td>", "Run run-cccccccccc outside any project was interrupted"} {
		if !strings.Contains(body, want) {
			t.Errorf("the overview lacks %q:\n%s", want, body)
		}
	}
	// Another project's loop is none that this dashboard could answer.
	if body := h.page("/runs/run-cccccccccc"); strings.Contains(body, "Answer at the loop") || !strings.Contains(body, "<dt>Project</dt><dd>(none)</dd>") {
		t.Error("a run from elsewhere:\n" + body)
	}
	s, err := New(h.deps)
	if err != nil {
		t.Fatal(err)
	}
	list, _, trouble := s.measures(t.Context(), "client", spansOf(testNow(), 7))
	n := 0
	for _, g := range list[0].cells.groups {
		n += g[len(g)-1].n
	}
	if n != 1 /* interrupted is no end */ || len(trouble) > 0 {
		t.Errorf("%d runs are counted as this project's, %v", n, trouble)
	}
}

// What settings wait for is on the overview, with its command.
func TestOverviewSaysWhatSettingsWaitFor(t *testing.T) {
	h := open(t, func(d *Deps) {
		d.Waits = func(context.Context) ([]Wait, error) {
			return []Wait{{hostile, "reprise trust"}}, errors.New("the settings of codex cannot be read")
		}
	})
	body := h.page("/")
	checkHarmless(t, "/", body)
	if !strings.Contains(body, "<code>reprise trust</code>") || !strings.Contains(body, "cannot be read") {
		t.Errorf("the overview does not say it:\n%s", body)
	}
}

// goesOn is a manager that would go on with any run but one.
type goesOn struct {
	*run.Manager
	asked []run.Request
}

func (g *goesOn) WhyNotResume(r run.Record) string {
	if r.ID == "run-bbbbbbbbbb" {
		return "its client has kept nothing; begin anew with `reprise spawn`"
	}
	return ""
}

func (g *goesOn) Start(_ context.Context, req run.Request) (run.Record, error) {
	if len(g.asked) > 0 {
		return run.Record{}, fmt.Errorf("go on: %w: run-cccccccccc has gone on with it already", run.ErrRefused)
	}
	g.asked = append(g.asked, req)
	return run.Record{ID: "run-cccccccccc"}, nil
}

// A run that has ended is gone on with from its page; where it cannot be, the page says why.
func TestRunIsGoneOnWith(t *testing.T) {
	var g *goesOn
	h := open(t, func(d *Deps) { g = &goesOn{Manager: d.Runs.(*run.Manager)}; d.Runs = g })
	h.runRecord("run-aaaaaaaaaa", func(r *run.Record) { r.Status, r.StatusReason = run.Killed, "stopped" }, "")
	h.runRecord("run-bbbbbbbbbb", func(r *run.Record) { r.Status, r.StatusReason = run.Failed, "stopped" }, "")
	h.runRecord("run-cccccccccc", func(r *run.Record) { r.Resumes = "run-aaaaaaaaaa" }, "")
	h.runRecord("run-dddddddddd", func(r *run.Record) { r.Status = run.Running }, "")
	if page := h.page("/runs/run-aaaaaaaaaa"); !strings.Contains(page, "/runs/run-aaaaaaaaaa/resume") || !strings.Contains(page, "it does the rest of its work") {
		t.Errorf("no way to go on: %s", page)
	}
	if page := h.page("/runs/run-bbbbbbbbbb"); strings.Contains(page, "/resume") || !strings.Contains(page, "It cannot be gone on with: its client has kept nothing; begin anew with <code>reprise spawn</code>") {
		t.Errorf("no word of why: %s", page)
	}
	if page := h.page("/runs/run-cccccccccc"); !strings.Contains(page, "<dt>Goes on from</dt>") || !strings.Contains(page, "What is to be done further?") {
		t.Errorf("not told what it goes on with: %s", page)
	}
	code, to := h.send("/runs/run-aaaaaaaaaa/resume", url.Values{"say": {" the second\r\n"}})
	if code != http.StatusSeeOther || !strings.HasSuffix(to, "/runs/run-cccccccccc?done=gone-on") {
		t.Errorf("%d %s", code, to)
	}
	if len(g.asked) != 1 || g.asked[0].Resume != "run-aaaaaaaaaa" || g.asked[0].Task != "the second" || !g.asked[0].Detach {
		t.Errorf("asked for %+v", g.asked)
	}
	if code, body := h.send("/runs/run-aaaaaaaaaa/resume", url.Values{}); code != http.StatusConflict || !strings.Contains(body, "has gone on with it already") {
		t.Errorf("a second time: %d %s", code, body)
	}
}

// asWritten is a manager by which runs go on whose records say so.
type asWritten struct{ *run.Manager }

func (a asWritten) Settle(_ context.Context, id string) (run.Record, error) { return a.Get(id) }

// A run of the loop leads to the answer only as long as its item waits for what it has asked, and
// the two runs of one session name each other, though the record of the first does not.
func TestLoopsRunLeadsToItsAnswer(t *testing.T) {
	h := open(t, nil)
	h.asks("colour")
	of := func(item, fence string, status run.Status) func(*run.Record) {
		return func(r *run.Record) {
			r.Origin, r.Key, r.Status = "loop", "loop:"+item+":"+fence, status
		}
	}
	h.runRecord("run-aaaaaaaaaa", of("colour", "7", run.Interrupted), "")
	const answer, over = "Answer at the loop", "nothing waits for your answer any more"
	if body := h.page("/runs/run-aaaaaaaaaa"); !strings.Contains(body, answer) || !strings.Contains(body, "/work#answer-colour") || !strings.Contains(body, `/work/items/colour"`) || strings.Contains(body, over) {
		t.Errorf("while it waits:\n%s", body)
	}
	h.runRecord("run-bbbbbbbbbb", of("dropped", "3", run.Interrupted), "")
	if body := h.page("/runs/run-bbbbbbbbbb"); strings.Contains(body, answer) || !strings.Contains(body, over) || strings.Contains(body, "cannot be gone on with") {
		t.Errorf("of an item that waits for nobody:\n%s", body)
	}
	h.runRecord("run-cccccccccc", func(r *run.Record) {
		of("colour", "8", run.Interrupted)(r)
		r.StartedAt, r.Resumes = r.StartedAt.Add(time.Second), "run-aaaaaaaaaa"
	}, "")
	if body := h.page("/runs/run-aaaaaaaaaa"); strings.Contains(body, answer) || !strings.Contains(body, over) || !strings.Contains(body, "<dt>Gone on with by</dt>") || !strings.Contains(body, `/runs/run-cccccccccc"`) {
		t.Errorf("gone on with by a run that asks again:\n%s", body)
	}
	if body := h.page("/runs/run-cccccccccc"); !strings.Contains(body, answer) || !strings.Contains(body, "<dt>Goes on from</dt>") {
		t.Errorf("the run that asks now:\n%s", body)
	}
	// Who stops one is told before what becomes of its item, and after where that goes on.
	other := open(t, func(d *Deps) { d.Runs = asWritten{d.Runs.(*run.Manager)} })
	other.runRecord("run-dddddddddd", of("long", "7", run.Running), "")
	if body := other.page("/runs/run-dddddddddd"); !strings.Contains(body, "Its item is set aside then, until you let it go on.") {
		t.Errorf("beside the button:\n%s", body)
	}
	h.asks("long")
	h.runRecord("run-dddddddddd", of("long", "7", run.Killed), "")
	if body := h.page("/runs/run-dddddddddd"); !strings.Contains(body, "waits for you: <a") || !strings.Contains(body, "/work#answer-long") || strings.Contains(body, "cannot be gone on with") {
		t.Errorf("one that was stopped:\n%s", body)
	}
}

// Of a tool that takes nothing the name alone is shown: an empty object tells nobody anything.
func TestToolWithoutInput(t *testing.T) {
	h := open(t, nil)
	h.runRecord("run-aaaaaaaaaa", nil, `{"type":"assistant","message":{"content":[{"type":"tool_use","name":"TaskList","input":{}},{"type":"tool_use","name":"Bash","input":{"command":"ls"}}]}}`+"\n")
	body := h.page("/runs/run-aaaaaaaaaa")
	if !strings.Contains(body, "<p><b>TaskList</b></p>") || strings.Contains(body, "{}") || !strings.Contains(body, "<b>Bash</b> <code>ls</code>") {
		t.Errorf("%s", body)
	}
}
