package web

import (
	"context"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"reprise/internal/learn"
	"reprise/internal/learn/scopes"
	"reprise/internal/mdfile"
	"reprise/internal/memory"
	"reprise/internal/recall"
)

// knowing answers as the scopes do, and keeps what was asked of it.
type knowing struct {
	asked     []string
	far       bool // what says the same is told elsewhere
	forgotten bool
}

func (k *knowing) Why(_ context.Context, id string) (scopes.Account, error) {
	if id != "e-1" {
		return scopes.Account{}, fmt.Errorf("%s: %w", id, memory.ErrNotFound)
	}
	return scopes.Account{Status: "active", Reasons: learn.Reasons{Forgotten: k.forgotten, Doc: recall.Doc{ID: "e-1", Title: hostile, Text: hostile, Source: hostile, Project: "shop"},
		Signals: []learn.Signal{{Name: "recency", Value: 0.5, Weight: 0.25, Because: hostile}}}}, nil
}

func (k *knowing) Correct(_ context.Context, id, part, text string) (scopes.Change, error) {
	k.asked = append(k.asked, "correct "+id+" "+part+text)
	return scopes.Change{ID: "e-1"}, nil
}

func (k *knowing) Forget(_ context.Context, id string, o scopes.Forgetting) (scopes.Change, error) {
	k.asked = append(k.asked, fmt.Sprintf("forget %s %s only %v", id, o.Reason, o.Only))
	return scopes.Change{ID: id}, nil
}

func (k *knowing) Would(_ context.Context, id string, o scopes.Forgetting) (scopes.Change, error) {
	return scopes.Change{ID: id, Items: []scopes.Going{{ID: id, Title: "itself"}, {ID: "pt-2", Title: "the same elsewhere " + hostile, Project: "other", Beyond: k.far}}}, nil
}

func (k *knowing) Unforget(_ context.Context, id, reason string) (scopes.Change, error) {
	k.asked = append(k.asked, "unforget "+id)
	return scopes.Change{ID: id}, nil
}

func (k *knowing) PromoteItem(_ context.Context, id, to string) (scopes.Change, error) {
	k.asked = append(k.asked, "promote "+id+" "+to)
	return scopes.Change{ID: id}, nil
}

func (k *knowing) Demote(_ context.Context, id, reason string) (scopes.Change, error) {
	k.asked = append(k.asked, "demote "+id)
	return scopes.Change{}, fmt.Errorf("%s: %w", id, memory.ErrNotFound)
}

// remembering is a house with a memory in which there is one block.
func remembering(t *testing.T) (*house, *knowing, string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "memory")
	store := memory.New(memory.Options{Dir: dir, Now: testNow, Git: memory.GitOptions{Off: true}})
	if _, err := store.Create(context.Background(), memory.CreateBlock{Name: "reference-deploy", Content: "# Deploy\n\nThe port is **5432**.\n", Summary: "How to deploy"}); err != nil {
		t.Fatal(err)
	}
	k := &knowing{}
	asked := []recall.Question{}
	h := open(t, func(d *Deps) {
		d.Memory = &Remembering{Files: memory.Layers{{Store: store}}, Knowledge: k, Dirs: []string{dir, filepath.Join(dir, "blocks")},
			Recall: func(_ context.Context, q recall.Question) (recall.Answer, error) {
				asked = append(asked, q)
				if !q.AsOf.IsZero() && q.AsOf.Before(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)) {
					return recall.Answer{}, nil
				}
				return recall.Answer{Results: []recall.Result{{Doc: recall.Doc{ID: "e-1", Title: hostile, Class: "learning"}, Snippet: hostile, Score: 0.75, Signals: map[string]float64{"words": 0.5}}},
					Dropped: map[string]string{"x": "threshold"}, Policy: "default"}, nil
			}}
	})
	return h, k, filepath.Join(dir, "blocks", "reference-deploy.md")
}

// Without a question the page lists what was remembered last, of a kind where one is
// chosen, and as of a day.
func TestMemoryListsTheLatest(t *testing.T) {
	var asked []recall.Question
	some := true
	h := open(t, func(d *Deps) {
		store := memory.New(memory.Options{Dir: filepath.Join(t.TempDir(), "memory"), Now: testNow, Git: memory.GitOptions{Off: true}})
		d.Memory = &Remembering{Files: memory.Layers{{Store: store}}, Classes: []recall.Class{"episode", "anti_pattern"},
			Latest: func(_ context.Context, q recall.Question) (recall.Answer, bool, error) {
				asked = append(asked, q)
				if !some {
					return recall.Answer{}, false, nil
				}
				return recall.Answer{Results: []recall.Result{{Doc: recall.Doc{ID: "ep-1", Title: hostile, Class: "anti_pattern", Time: testNow()}}}}, true, nil
			}}
	})
	body := h.page("/memory")
	checkHarmless(t, "/memory", body)
	for _, want := range []string{"Remembered last", "/memory/item/ep-1", ">anti pattern<", "/memory?many=yes"} {
		if !strings.Contains(body, want) {
			t.Errorf("the page lacks %q:\n%s", want, body)
		}
	}
	body = h.page("/memory?class=anti_pattern&as-of=2026-09-01&all=yes&many=yes")
	if !strings.Contains(body, `<option value="anti_pattern" selected>`) || !strings.Contains(body, "There is more: choose a kind") {
		t.Errorf("the choice is not shown:\n%s", body)
	}
	if q := asked[1]; len(asked) != 2 || q.Max <= asked[0].Max || !q.All || q.AsOf.Format(time.DateOnly) != "2026-09-01" || fmt.Sprint(q.Classes) != "[anti_pattern]" {
		t.Errorf("asked: %+v", asked)
	}
	// What is no kind is none that could be asked for; a day that is none is said to be so.
	if body = h.page("/memory?class=<script>&as-of=yesterday"); !strings.Contains(body, "is no date") || len(asked) != 2 {
		t.Errorf("a wrong day: %d questions\n%s", len(asked), body)
	}
	some = false
	if body = h.page("/memory"); !strings.Contains(body, "reprise import transcripts") {
		t.Error("an empty list does not say how something comes into it")
	}
	if body = h.page("/memory?class=episode"); !strings.Contains(body, "Nothing of this kind") {
		t.Error("an empty kind is not said to be one")
	}
}

// A file of entries is shown entry by entry, the last one first, and not as the markdown
// that their front matter would be. What was never written has no link.
func TestFileOfEntries(t *testing.T) {
	dir := t.TempDir()
	entries := memory.NewEntries(memory.EntriesOptions{Dir: dir, Now: testNow})
	for _, text := range []string{"The till opens at nine", hostile} {
		if _, err := entries.Add(t.Context(), mdfile.Entry{Type: mdfile.TypeLearning, Agent: "user", Confidence: 0.95, Text: text}); err != nil {
			t.Fatal(err)
		}
	}
	h := open(t, func(d *Deps) {
		store := memory.New(memory.Options{Dir: filepath.Join(t.TempDir(), "memory"), Now: testNow, Git: memory.GitOptions{Off: true}})
		part := memory.New(memory.Options{Dir: filepath.Join(dir, "memory"), Now: testNow, Git: memory.GitOptions{Off: true}, Part: true})
		d.Memory = &Remembering{Files: memory.Layers{{Project: "shop", Store: part, Entries: entries}, {Store: store}}}
	})
	if body := h.page("/memory"); strings.Contains(body, "/block/global/core") {
		t.Error("there is a link to a file that is not there")
	}
	body := h.page("/memory/block/project/learnings.md")
	checkHarmless(t, "learnings.md", body)
	if !strings.Contains(body, "The till opens at nine") || strings.Count(body, "confidence 0.95") != 2 || strings.Contains(body, "timestamp:") || strings.Count(body, "/memory/item/") != 2 {
		t.Errorf("the entries are not shown as such:\n%s", body)
	}
}

var (
	hashValue = regexp.MustCompile(`name="hash" value="([^"]+)"`)
	textValue = regexp.MustCompile(`(?s)<textarea id="text"[^>]*>\n(.*?)</textarea>`)
)

// form is the hash and the text that an edit form holds.
func form(t *testing.T, body string) (hash, text string) {
	t.Helper()
	h, x := hashValue.FindStringSubmatch(body), textValue.FindStringSubmatch(body)
	if h == nil || x == nil {
		t.Fatalf("there is no form in\n%s", body)
	}
	return html.UnescapeString(h[1]), html.UnescapeString(x[1])
}

func TestMemoryIsEdited(t *testing.T) {
	h, _, file := remembering(t)
	if body := h.page("/memory"); !strings.Contains(body, "How to deploy") {
		t.Error("the block is not listed")
	}
	if body := h.page("/memory/block/global/reference-deploy.md"); !strings.Contains(body, "<strong>5432</strong>") || !strings.Contains(body, "created:") {
		t.Error("the block is not rendered with its front matter")
	}
	before, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	hash, text := form(t, h.page("/memory/edit/reference-deploy.md"))
	if text != string(before) {
		t.Errorf("the form holds %q, the file %q", text, before)
	}
	// Saved as it came, as a browser sends it, the file stays as it was.
	code, to := h.send("/memory/edit/reference-deploy.md", url.Values{"hash": {hash}, "text": {strings.ReplaceAll(text, "\n", "\r\n")}})
	if after, _ := os.ReadFile(file); code != http.StatusSeeOther || !strings.Contains(to, "done=unchanged") || string(after) != string(before) {
		t.Errorf("saving what came: %d %s, the file is %q", code, to, after)
	}
	code, to = h.send("/memory/edit/reference-deploy.md", url.Values{"hash": {hash}, "text": {strings.Replace(text, "5432", "6543", 1)}})
	if after, _ := os.ReadFile(file); code != http.StatusSeeOther || !strings.Contains(to, "done=saved") || !strings.Contains(string(after), "6543") {
		t.Errorf("saving a change: %d %s, the file is %q", code, to, after)
	}
}

// The file changes while somebody writes: both texts are shown, neither is lost, and
// what was merged can be saved.
func TestConflictLosesNothing(t *testing.T) {
	h, _, file := remembering(t)
	hash, text := form(t, h.page("/memory/edit/reference-deploy.md"))
	theirs := strings.Replace(text, "5432", "7777", 1) + "\nBy hand: <script>alert(1)</script>\n"
	if err := os.WriteFile(file, []byte(theirs), 0o600); err != nil {
		t.Fatal(err)
	}
	mine := strings.Replace(text, "5432", "6543", 1) + "\nMine.\n"
	code, body := h.send("/memory/edit/reference-deploy.md", url.Values{"hash": {hash}, "text": {mine}})
	if code != http.StatusConflict {
		t.Fatalf("saving over a change: %d, want 409", code)
	}
	if now, _ := os.ReadFile(file); string(now) != theirs {
		t.Fatalf("the file that somebody else wrote is %q now", now)
	}
	checkHarmless(t, "conflict", body)
	fresh, kept := form(t, body)
	if kept != mine {
		t.Errorf("the form holds %q, what was typed is %q", kept, mine)
	}
	if fresh == hash || !strings.Contains(body, "By hand: &lt;script&gt;") || !strings.Contains(body, "<del>-The port is **7777**.</del>") || !strings.Contains(body, "<ins>+Mine.</ins>") {
		t.Error("the page does not show both, compared")
	}
	// It changes once more: refused again.
	if err := os.WriteFile(file, []byte(theirs+"\nMore.\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	code, body = h.send("/memory/edit/reference-deploy.md", url.Values{"hash": {fresh}, "text": {mine}})
	if code != http.StatusConflict {
		t.Fatalf("saving over a second change: %d, want 409", code)
	}
	fresh, _ = form(t, body)
	code, _ = h.send("/memory/edit/reference-deploy.md", url.Values{"hash": {fresh}, "text": {mine + "More.\n"}})
	if now, _ := os.ReadFile(file); code != http.StatusSeeOther || !strings.Contains(string(now), "Mine.") || !strings.Contains(string(now), "More.") {
		t.Errorf("saving what was merged: %d, the file is %q", code, now)
	}
}

func TestEditIsChecked(t *testing.T) {
	h, _, file := remembering(t)
	hash, text := form(t, h.page("/memory/edit/reference-deploy.md"))
	before, _ := os.ReadFile(file)
	for name, row := range map[string]struct {
		form url.Values
		want int
	}{
		"no version":       {url.Values{"text": {text}}, http.StatusBadRequest},
		"no text":          {url.Values{"hash": {hash}, "text": {""}}, http.StatusUnprocessableEntity},
		"bad front matter": {url.Values{"hash": {hash}, "text": {"---\ntags: [a\n---\nkept words\n"}}, http.StatusUnprocessableEntity},
		"too long":         {url.Values{"hash": {hash}, "text": {strings.Repeat("x", memory.MaxContent+1)}}, http.StatusUnprocessableEntity},
	} {
		code, body := h.send("/memory/edit/reference-deploy.md", row.form)
		if after, _ := os.ReadFile(file); code != row.want || string(after) != string(before) {
			t.Errorf("%s: %d, want %d; the file is %.80q", name, code, row.want, after)
		}
		if name == "bad front matter" && !strings.Contains(body, "kept words") {
			t.Error("what was refused is not in the form any more")
		}
	}
	// What a form would change unseen is not offered to be edited.
	for name, text := range map[string]string{"an invisible character": "# A\n\nab\u200bc\n", "other line ends": "# A\r\n\r\nb\r\n", "bytes that are no text": "# A\n\n\xff\n"} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if code, _ := h.get("/memory/edit/reference-deploy.md"); code != http.StatusConflict {
			t.Errorf("a file with %s: %d, want 409", name, code)
		}
		if body := h.page("/memory/block/global/reference-deploy.md"); strings.Contains(body, ">Edit</a>") {
			t.Errorf("a file with %s is offered to be edited", name)
		}
	}
	for _, path := range []string{"/memory/block/global/none", "/memory/edit/none", "/memory/block/global/..%2f..%2fetc", "/memory/item/none"} {
		if code, _ := h.get(path); code == http.StatusOK || code >= 500 {
			t.Errorf("GET %s: %d", path, code)
		}
	}
	code, _ := h.send("/memory/create", url.Values{"name": {"reference-new"}, "text": {"# New\r\n"}})
	if data, err := os.ReadFile(filepath.Join(filepath.Dir(file), "reference-new.md")); code != http.StatusSeeOther || err != nil || !strings.Contains(string(data), "# New\n") {
		t.Errorf("making a block: %d %q %v", code, data, err)
	}
	if code, _ := h.send("/memory/create", url.Values{"name": {"../x"}, "text": {"y"}}); code != http.StatusBadRequest {
		t.Errorf("a block with a name that leads out: %d, want 400", code)
	}
}

// What other projects are told goes only where the person says so, and what was forgotten can
// be brought back.
func TestForgettingIsShownFirst(t *testing.T) {
	h, k, _ := remembering(t)
	if body := h.page("/memory/item/e-1"); !strings.Contains(body, "the same elsewhere") || strings.Contains(body, `name="also"`) || strings.Contains(body, "Bring it back") {
		t.Error("what goes with it is not shown, or it is asked about what is told nowhere else")
	}
	k.far = true
	body := h.page("/memory/item/e-1")
	checkHarmless(t, "what goes with it", body)
	if !strings.Contains(body, `name="also"`) {
		t.Error("it is not asked about what other projects are told")
	}
	for also, want := range map[string]string{"": "forget e-1  only true", "1": "forget e-1  only false"} {
		k.asked = nil
		if code, body := h.send("/memory/item/e-1/forget", url.Values{"also": {also}}); code != http.StatusSeeOther || !slices.Contains(k.asked, want) {
			t.Errorf("also %q: %d, asked %q: %s", also, code, k.asked, body)
		}
	}
	k.forgotten = true
	if body := h.page("/memory/item/e-1"); !strings.Contains(body, "Bring it back") || strings.Contains(body, "Correct it") {
		t.Error("what was forgotten cannot be brought back, or can be changed")
	}
}

func TestMemoryIsAsked(t *testing.T) {
	h, k, _ := remembering(t)
	body := h.page("/memory?q=" + url.QueryEscape("which port "+hostile))
	for _, want := range []string{"0.75", "0.500", "by the default policy", "1 by threshold", "/memory/item/e-1"} {
		if !strings.Contains(body, want) {
			t.Errorf("the answer does not show %q", want)
		}
	}
	checkHarmless(t, "an answer", body)
	if body := h.page("/memory?q=x&as-of=2025-05-05"); !strings.Contains(body, "Nothing that is remembered fits as of 2025-05-05") {
		t.Error("what was known at a day is not asked for")
	}
	if body := h.page("/memory?q=x&as-of=yesterday"); !strings.Contains(body, "is no date") {
		t.Error("a day that is none is not refused")
	}
	why := h.page("/memory/item/e-1")
	checkHarmless(t, "why", why)
	if !strings.Contains(why, "recency") {
		t.Error("the page does not say what the importance is made of")
	}
	if strings.Contains(why, "Take a promotion back") {
		t.Error("a promotion can be taken back, where there was none")
	}
	for path, want := range map[string]int{"correct": http.StatusSeeOther, "forget": http.StatusSeeOther, "unforget": http.StatusSeeOther, "promote": http.StatusSeeOther, "demote": http.StatusNotFound, "x": http.StatusNotFound} {
		if code, body := h.send("/memory/item/e-1/"+path, url.Values{"text": {"words"}, "to": {"global"}}); code != want {
			t.Errorf("%s: %d, want %d: %s", path, code, want, body)
		}
	}
	got := strings.Join(k.asked, ", ")
	for _, want := range []string{"correct e-1 words", "forget e-1 words only false", "unforget e-1", "promote e-1 global", "demote e-1"} {
		if !strings.Contains(got, want) {
			t.Errorf("of the memory was asked %q, which lacks %q", got, want)
		}
	}
	if code, _ := h.send("/memory/item/e-1/correct", url.Values{}); code != http.StatusBadRequest {
		t.Errorf("a correction without words: %d, want 400", code)
	}
}
