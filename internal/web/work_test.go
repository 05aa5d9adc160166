package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"reprise/internal/durable"
	"reprise/internal/queue"
)

func TestCeilingsAreRaised(t *testing.T) {
	h := open(t, nil)
	h.asks("one") // which stays open
	for _, bad := range []url.Values{{"usd": {"-1"}}, {"tokens": {"many"}}, {"hours": {"1e9"}}, {"attempts": {"NaN"}}, {"usd": {"Inf"}}} {
		if code, body := h.send("/work/loop/resume", bad); code != http.StatusBadRequest {
			t.Errorf("%v: %d %s", bad, code, body)
		}
	}
	if found, _ := filepath.Glob(filepath.Join(h.deps.LoopDir, "requests", "*")); len(found) != 0 {
		t.Fatalf("a bad form left %q", found)
	}
	if code, _ := h.send("/work/loop/resume", url.Values{"usd": {"12.5"}, "hours": {"0.5"}, "tokens": {"1000"}, "attempts": {""}}); code != http.StatusSeeOther {
		t.Fatal(code)
	}
	found, _ := filepath.Glob(filepath.Join(h.deps.LoopDir, "requests", "*"))
	if len(found) != 1 {
		t.Fatalf("%d requests", len(found))
	}
	data, err := os.ReadFile(found[0])
	if err != nil || !strings.Contains(string(data), `"usd": 12.5`) || !strings.Contains(string(data), `"time_ns": 1800000000000`) || strings.Contains(string(data), "iterations") {
		t.Errorf("%s (%v)", data, err)
	}
}

// A queue of many is shown in parts, and every item can be reached.
func TestManyItemsAreDivided(t *testing.T) {
	h := open(t, nil)
	var items []queue.Item
	for i := range itemsPerPage + 5 {
		items = append(items, queue.Item{ID: fmt.Sprintf("i-%d", i), Title: fmt.Sprintf("Item of many %d.", i)})
	}
	h.add(items...)
	body := h.page("/work")
	if n := strings.Count(body, `data-item="`); n != itemsShown || !strings.Contains(body, "All 105 that are ready") {
		t.Errorf("the page has %d items, want %d and a link to all", n, itemsShown)
	}
	first, second := h.page("/work/items?state=ready"), h.page("/work/items?state=ready&from=100")
	if a, b := strings.Count(first, "Item of many"), strings.Count(second, "Item of many"); a != itemsPerPage || b != 5 {
		t.Errorf("the pages have %d and %d items, want %d and 5", a, b, itemsPerPage)
	}
	if !strings.Contains(h.page("/work/items?state=dead"), "No item is in this state") || !strings.Contains(h.page("/work/items?state=<x>&from=-3"), "Item of many 0.") {
		t.Error("an odd address is no list")
	}
}

// What a person is told after "stop" is what comes: agents that are stopped, or waited for.
func TestStopSaysWhichKind(t *testing.T) {
	h := open(t, nil)
	if err := os.MkdirAll(h.deps.LoopDir, 0o700); err != nil {
		t.Fatal(err)
	}
	unlock, err := durable.Disk{}.TryLock(filepath.Join(h.deps.LoopDir, "loop.lock"))
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	for form, want := range map[string]string{"": "done=stopping", "drain=1": "done=draining"} {
		values, err := url.ParseQuery(form)
		if err != nil {
			t.Fatal(err)
		}
		code, body := h.send("/work/loop/stop", values)
		if code != http.StatusSeeOther || !strings.Contains(body, want) {
			t.Errorf("%q: %d %s", form, code, body)
		}
	}
}

// The page says whether what the loop calls done was checked, and what to do where it was not.
func TestWorkSaysHowChecksStand(t *testing.T) {
	var state CheckState
	var wrong error
	h := open(t, func(d *Deps) {
		d.Checks = &Checks{State: func(context.Context) (CheckState, error) { return state, wrong }}
	})
	for _, c := range []struct {
		state CheckState
		wrong error
		want  string
	}{
		{CheckState{Text: "There are none."}, nil, `<p class="hint">There are none.</p>`},
		{CheckState{Warn: true, Text: "Not approved.", Command: "reprise trust"}, nil, `<p class="note warn">Not approved. <code>reprise trust</code></p>`},
		{CheckState{}, errors.New("the file is damaged"), "is not known: the file is damaged"},
		{CheckState{Text: hostile}, nil, ""},
	} {
		state, wrong = c.state, c.wrong
		body := h.page("/work")
		checkHarmless(t, "/work", body)
		if !strings.Contains(body, c.want) {
			t.Errorf("%+v, %v: the page lacks %s", c.state, c.wrong, c.want)
		}
	}
}

// One call and many are told in words that fit.
func TestOverviewCountsCalls(t *testing.T) {
	calls := []Waiting{{ID: "a"}}
	h := open(t, func(d *Deps) {
		d.Guard = &Guard{Waiting: func() ([]Waiting, error) { return calls, nil }}
	})
	if body := h.page("/"); !strings.Contains(body, "A call of an agent waits for your word") {
		t.Error("one call is not told")
	}
	calls = append(calls, Waiting{ID: "b"})
	if body := h.page("/"); !strings.Contains(body, "2 calls of agents wait for your word") {
		t.Error("two calls are not told")
	}
}
