package web

import (
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"reprise/internal/run"
	"reprise/internal/term"
)

// What could not be done is said in the dashboard's words, with what was written and the
// way back: nothing is lost that a person has typed.
func TestWhatWasWrittenIsKept(t *testing.T) {
	h := open(t, nil)
	h.asks("colour", "db")
	long := "the first line\r\nand the <b>second</b>"
	for _, c := range []struct {
		path       string
		form       url.Values
		code       int
		want, back string
	}{
		{"/work/loop/resume", url.Values{"answer": {long}}, http.StatusConflict, "answer each in its own box", "/work"},
		{"/work/loop/resume", url.Values{}, http.StatusConflict, "Which of colour?", "/work"},
		{"/work/items/colour/unpark", url.Values{"why": {"it is old"}, "back": {"item"}}, http.StatusConflict, "Which of colour?", "/work/items/colour"},
		{"/work/loop/resume", url.Values{"attempts": {"-1"}, "answer": {long}}, http.StatusBadRequest, term.Num(1e6), "/work"},
		{"/work/add", url.Values{"title": {""}, "body": {long}, "priority": {"5"}}, http.StatusBadRequest, "title", "/work"},
	} {
		code, page := h.send(c.path, c.form)
		if code != c.code || !strings.Contains(page, c.want) || !strings.Contains(page, c.back+`">Back to`) {
			t.Errorf("%s %v: %d\n%s", c.path, c.form, code, page)
		}
		for field, values := range c.form {
			if v := strings.ReplaceAll(values[0], "\r\n", "\n"); field == "csrf" || v == "item" || v == "5" || v == "-1" {
				continue
			} else if !strings.Contains(page, strings.NewReplacer("<", "&lt;", ">", "&gt;").Replace(v)) {
				t.Errorf("%s: what was written is not on the page: %q", c.path, v)
			}
		}
		for _, bad := range []string{"--no-answer", "--item", "reprise loop", "1e+06", "<b>second"} {
			if strings.Contains(page, bad) {
				t.Errorf("%s: the page says %q", c.path, bad)
			}
		}
	}
}

// A list tells of a run that has ended what its own page does.
func TestListHasTokens(t *testing.T) {
	h := open(t, nil)
	dir := h.runRecord("run-aaaaaaaaaa", func(r *run.Record) { r.TimeoutSeconds = 3600 }, "")
	if err := os.WriteFile(filepath.Join(dir, "result.json"), []byte(`{"text":"done","num_turns":1,"usage":{"input_tokens":31000,"output_tokens":17}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/", "/runs"} {
		if body := h.page(path); !strings.Contains(body, `<td class="n">`+term.Num(31017)+`</td>`) {
			t.Errorf("GET %s has no tokens of a run that has ended:\n%s", path, body)
		}
	}
	if body := h.page("/runs/run-aaaaaaaaaa"); !strings.Contains(body, "of 1 h") {
		t.Error("the run's time is not told in the same words as its ceiling")
	}
}
