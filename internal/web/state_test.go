package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"reprise/internal/git"
	"reprise/internal/learn/scopes"
	"reprise/internal/mdfile"
	"reprise/internal/memory"
	"reprise/internal/staterepo"
)

// peopled is a house whose project has agents, with what was kept and promoted there.
func peopled(t *testing.T) (h *house, repo *staterepo.Repo, one, two *staterepo.Tree, asked *[]string) {
	t.Helper()
	asked = &[]string{}
	h = open(t, func(d *Deps) {
		dir := filepath.Join(t.TempDir(), "shop")
		vars := map[string]string{"PATH": os.Getenv("PATH"), "HOME": t.TempDir()}
		repo = staterepo.New(staterepo.Options{Dir: dir, Project: "shop", Now: testNow, Git: git.Options{Vars: vars}})
		if _, err := repo.Ensure(t.Context()); err != nil {
			t.Fatal(err)
		}
		d.State = &State{Repo: repo, Shared: filepath.Join(dir, "global"),
			Keep: func(_ context.Context, n scopes.Note) (scopes.Change, error) {
				*asked = append(*asked, fmt.Sprintf("%s|%s|%s|%s|%s", n.Type, n.Text, n.Decision, n.Rationale, strings.Join(n.Alternatives, "+")))
				return scopes.Change{ID: "e-new"}, nil
			},
			Promote: func(_ context.Context, agent, id string) (scopes.Change, error) {
				if agent != "one" {
					return scopes.Change{}, fmt.Errorf("%w: %s", staterepo.ErrUnknown, id)
				}
				*asked = append(*asked, "promote "+agent+" "+id)
				return scopes.Change{ID: id}, nil
			}}
	})
	tree := func(name string) *staterepo.Tree {
		place := filepath.Join(t.TempDir(), name, ".reprise", "agent")
		tr, err := repo.CreateAgent(t.Context(), name, place, false)
		if err != nil {
			t.Fatal(err)
		}
		return tr
	}
	return h, repo, tree("one"), tree("two"), asked
}

func put(t *testing.T, tr *staterepo.Tree, e mdfile.Entry) staterepo.Added {
	t.Helper()
	a, err := tr.Add(t.Context(), memory.FullAccess, e)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestStateShowsWhoDoesWhat(t *testing.T) {
	h, _, one, two, _ := peopled(t)
	at := testNow().Add(-time.Hour)
	left := put(t, one, mdfile.Entry{Type: mdfile.TypeHandoff, To: "two", Text: "Go on with the API", Time: at})
	learnt := put(t, one, mdfile.Entry{Type: mdfile.TypeLearning, Text: hostile, Time: at.Add(time.Minute)})
	next := put(t, two, mdfile.Entry{Type: mdfile.TypeImplement, Status: "in_progress", Text: "The second half", DependsOn: []string{learnt.ID}, Time: at.Add(2 * time.Minute)})
	body := h.page("/state")
	checkHarmless(t, "/state", body)
	for _, want := range []string{"Go on with the API", "one → two", "The second half", "in progress", "needs <a", `class="lane0 needs"`} {
		if !strings.Contains(body, want) {
			t.Errorf("/state does not show %q", want)
		}
	}
	if n := strings.Count(body, "<circle"); n != 3 {
		t.Errorf("the graph has %d entries, want 3", n)
	}
	for query, want := range map[string]int{"?agent=one": 2, "?type=learning": 1, "?agent=two&type=learning": 0} {
		if n := strings.Count(h.page("/state"+query), "<circle"); n != want {
			t.Errorf("/state%s has %d entries, want %d", query, n, want)
		}
	}
	// What is taken waits no more.
	if _, err := two.Accept(t.Context(), memory.FullAccess, left.ID); err != nil {
		t.Fatal(err)
	}
	if body := h.page("/state"); strings.Contains(body, "Waits to be taken") || !strings.Contains(body, "taken by two") {
		t.Error("a handoff that was taken is shown as waiting")
	}
	body = h.page("/state/entries/" + learnt.ID)
	checkHarmless(t, "an entry", body)
	if !strings.Contains(body, "needed by") || !strings.Contains(body, "Give it to the project") {
		t.Error("an entry does not say what needs it, or is not offered to be promoted")
	}
	if body := h.page("/state/entries/" + next.ID); !strings.Contains(body, learnt.ID) || strings.Contains(body, "Give it to the project") {
		t.Error("an entry of the log is offered to be promoted, or does not name what it needs")
	}
	if code, _ := h.get("/state/entries/e-nothing"); code != http.StatusNotFound {
		t.Errorf("no such entry: %d", code)
	}
}

func TestStateShowsWhatChanged(t *testing.T) {
	h, _, one, _, _ := peopled(t)
	for i := range stepsPerPage + 3 {
		put(t, one, mdfile.Entry{Type: mdfile.TypeLearning, Text: fmt.Sprintf("%s number %d.", hostile, i)})
	}
	body := h.page("/state/history?agent=one")
	checkHarmless(t, "a history", body)
	link := regexp.MustCompile(`/state/commits/[0-9a-f]{40}`).FindString(body)
	older := regexp.MustCompile(`href="(\?agent=one&amp;from=[0-9a-f]{40})"`).FindStringSubmatch(body)
	if link == "" || older == nil {
		t.Fatalf("no commit, or no older page, in\n%s", body)
	}
	if rest := h.page("/state/history" + strings.ReplaceAll(older[1], "&amp;", "&")); strings.Contains(rest, link) || !strings.Contains(rest, "State of agent one") {
		t.Error("the page of the older changes does not go to the beginning")
	}
	body = h.page(link)
	checkHarmless(t, "a diff", body)
	if !strings.Contains(body, "<ins>+") || !strings.Contains(body, "learnings.md</h2>") || !strings.Contains(body, "number 52.") {
		t.Errorf("the diff does not show what was added:\n%s", body)
	}
	for _, bad := range []string{"/state/commits/" + strings.Repeat("0", 40), "/state/commits/HEAD", "/state/history?agent=nobody", "/state/history?agent=one&from=--all"} {
		if code, _ := h.get(bad); code != http.StatusNotFound {
			t.Errorf("%s: %d", bad, code)
		}
	}
}

func TestStateIsAddedTo(t *testing.T) {
	h, _, _, _, asked := peopled(t)
	if code, to := h.send("/state/learn", url.Values{"text": {" Both\r\nlines "}}); code != http.StatusSeeOther || !strings.Contains(to, "done=learnt") {
		t.Errorf("learn: %d %s", code, to)
	}
	if code, _ := h.send("/state/decide", url.Values{"text": {"RS256"}, "because": {"the key"}, "over": {"HS256\r\n\r\nsessions"}}); code != http.StatusSeeOther {
		t.Errorf("decide: %d", code)
	}
	if code, _ := h.send("/state/promote", url.Values{"agent": {"one"}, "id": {"e-1"}}); code != http.StatusSeeOther {
		t.Errorf("promote: %d", code)
	}
	want := "learning|Both\nlines|||, decision||RS256|the key|HS256+sessions, promote one e-1"
	if got := strings.Join(*asked, ", "); got != want {
		t.Errorf("asked for\n%s\nwant\n%s", got, want)
	}
	for path, form := range map[string]url.Values{"/state/learn": {"text": {"  "}}, "/state/forget": {"text": {"x"}}, "/state/promote": {"agent": {"two"}, "id": {"e-1"}}} {
		if code, _ := h.send(path, form); code < 400 || len(*asked) != 3 {
			t.Errorf("%s %v: %d, asked %q", path, form, code, *asked)
		}
	}
}

// What is kept of the state between pages is what is on disk: a write by another
// program is seen by the next page.
func TestStateIsReadAgainWhenItChanged(t *testing.T) {
	h, _, one, _, _ := peopled(t)
	h.page("/state")
	for i := range 3 {
		text := fmt.Sprintf("Entry %d of those that came later", i)
		put(t, one, mdfile.Entry{Type: mdfile.TypeImplement, Text: text})
		if !strings.Contains(h.page("/state"), text) {
			t.Errorf("%q is not shown", text)
		}
	}
	// A person edits a file by hand.
	file := filepath.Join(one.Dir, "learnings.md")
	old, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, append(old, "\n## 2026-11-28 10:00 - learning\n\nBy hand.\n"...), 0o600); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(h.page("/state"), "By hand.") {
		t.Error("what was written by hand is not shown")
	}
}
