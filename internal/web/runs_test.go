package web

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"testing"

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
