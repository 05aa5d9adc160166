package web

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"reprise/internal/loop"
	"reprise/internal/loop/report"
	"reprise/internal/queue"
)

// Who looks at the dashboard alone learns where the work is that is done, and how it comes to
// where a person works: on the overview, and on the item's page.
func TestDoneWorkSaysWhereItIs(t *testing.T) {
	var done []loop.Iteration
	h := open(t, func(d *Deps) {
		d.Unmerged = func(context.Context) ([]loop.Iteration, error) { return done, nil }
	})
	ctx := t.Context()
	for _, id := range []string{"quick", "owed", "other"} {
		h.add(queue.Item{ID: id, Title: "The item " + id})
		c, err := h.deps.Queue.Claim(ctx, queue.ClaimOptions{ID: id})
		if err == nil {
			_, err = h.deps.Queue.Done(ctx, c.Token, queue.Outcome{Summary: "done"})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	const line = "Work that is done is in "
	if body := h.page("/"); strings.Contains(body, line) {
		t.Error("the overview tells of branches where there are none")
	}
	done = []loop.Iteration{{Item: "quick", Branch: "loop-quick"}}
	if body := h.page("/"); !strings.Contains(body, line+"a branch, not merged: loop-quick") || !strings.Contains(body, "<code>git merge loop-quick</code>") || !strings.Contains(body, `/work/items/quick"`) {
		t.Errorf("the overview does not say where the work is:\n%s", body)
	}
	if body := h.page("/work/items/quick"); !strings.Contains(body, "in the branch loop-quick, and nowhere else until it is merged: <code>git merge loop-quick</code>") {
		t.Errorf("the item does not say where its work is:\n%s", body)
	}
	if body := h.page("/work/items/other"); strings.Contains(body, "in the branch") {
		t.Error("the page of another item names a branch")
	}
	// What a loop could not merge, git could not either: nobody is told to just merge it.
	for _, id := range []string{"owed", "a", "b", "c"} {
		done = append(done, loop.Iteration{Item: id, Branch: "loop-" + id, Put: report.Owed})
	}
	if body := h.page("/"); !strings.Contains(body, line+"5 branches, not merged: loop-quick, loop-owed, loop-a, loop-b, and 1 more") || !strings.Contains(body, "<code>reprise loop report</code>") {
		t.Errorf("several branches:\n%s", body)
	}
	if body := h.page("/work/items/owed"); !strings.Contains(body, "a loop has tried that, and could not") || strings.Contains(body, "git merge") {
		t.Errorf("what could not be merged:\n%s", body)
	}
}

// An item that an agent has asked about cannot be put back unanswered: its rows and its page
// lead to the box for the answer, and have no button that would be refused.
func TestAskedItemIsAnsweredNotPutBack(t *testing.T) {
	h := open(t, nil)
	h.asks("colour")
	h.add(queue.Item{ID: "aside", Title: "Set aside by hand"})
	if _, err := h.deps.Queue.Park(t.Context(), "aside", "", "later"); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/work", "/work/items?state=blocked", "/work/items/colour", "/work/items/aside"} {
		body := h.page(path)
		answer, back := strings.Contains(body, `/work#reply-colour"`), strings.Contains(body, "/work/items/colour/unpark")
		if want := !strings.HasSuffix(path, "aside"); answer != want || back {
			t.Errorf("%s: a way to the answer %v, a button that is refused %v", path, answer, back)
		}
		if want := !strings.HasSuffix(path, "colour"); strings.Contains(body, "/work/items/aside/unpark") != want {
			t.Errorf("%s: what a person has set aside is put back there: %v", path, !want)
		}
	}
	if code, _ := h.send("/work/items/colour/unpark", url.Values{}); code != http.StatusConflict {
		t.Errorf("put back unanswered: %d", code)
	}
}
