package queue_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"reprise/internal/queue"
)

func TestParseJSONL(t *testing.T) {
	items, err := queue.ParseJSONL(strings.NewReader("\ufeff{\"title\":\"one\",\"priority\":0,\"labels\":[\"a\"],\"not_before\":\"2026-03-01T23:00:00Z\",\"data\":{\"n\":1}}\r\n\n{\"key\":\"k\",\"title\":\"two\",\"depends_on\":[\"x\"],\"source\":\"mine\"}"), "in.jsonl")
	if err != nil || len(items) != 2 {
		t.Fatal(items, err)
	}
	one, two := items[0], items[1]
	if one.Title != "one" || one.Urgency() != 0 || one.NotBefore.Hour() != 23 || string(one.Data) != `{"n":1}` || one.Source != "jsonl:in.jsonl" {
		t.Errorf("%+v", one)
	}
	if two.Key != "k" || two.Source != "mine" || two.DependsOn[0] != "x" {
		t.Errorf("%+v", two)
	}
	for _, bad := range []string{`{"title":"a"} {"title":"b"}`, `{"titel":"a"}`, `[]`, `{"title":`, `{"fence":3,"title":"a"}`} {
		if _, err := queue.ParseJSONL(strings.NewReader("{\"title\":\"good\"}\n"+bad), "in.jsonl"); !errors.Is(err, queue.ErrInvalid) || !strings.Contains(err.Error(), "in.jsonl:2") {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

// What is wrong with a line is said in words of the list, and not in those of a library.
func TestParseJSONLErrors(t *testing.T) {
	for bad, want := range map[string]string{
		`{"title":"a","not_before":"tomorrow"}`: `not_before is "tomorrow"; it is a time such as "2026-03-01T22:00:00Z"`,
		`{"title":"a","not_before":5}`:          `not_before is 5; it is a time`,
		`{"title":"a","max_attempts":"three"}`:  `max_attempts is a string; it takes a whole number`,
		`{"title":"a","max_attempts":1.5}`:      `max_attempts is a number 1.5; it takes a whole number`,
		`{"title":"a","max_attempts":1e40}`:     `max_attempts is a number 1e40; it takes a whole number`,
		`{"title":"a","labels":"ui"}`:           `labels is a string; it takes a list of texts`,
		`{"title":"a","labels":[1]}`:            `labels is a number; it takes a text`,
		`{"title":7}`:                           `title is a number; it takes a text`,
		`{"title":"a","no_change_ok":"yes"}`:    `no_change_ok is a string; it takes true or false`,
		`{"title":"a","priority":"soon"}`:       `the priority is "soon"; it is from 0`,
		`{"title":"a","priority":1.5}`:          `the priority is "1.5"; it is from 0`,
		`{"title":"a","priority":{"n":1}}`:      `the priority is "{\"n\":1}"; it is from 0`,
		`[{"title":"a"}]`:                       `it is a JSON array; an item is an object`,
		`"a"`:                                   `it is a JSON string; an item is an object`,
		`{"titel":"a"}`:                         `an item has no field "titel"; it has id, key, title`,
		`{"title":"a"`:                          `it is no JSON: it ends too early`,
		`title: a`:                              `it is no JSON: `,
		`{"title":"a"} x`:                       `more than one JSON value`,
		`{"title":"a","title":"b"}`:             `it has "title" twice`,
		`{"title":"a","key":"k","Title":"a"}`:   `it has "Title" twice`,
	} {
		_, err := queue.ParseJSONL(strings.NewReader(bad), "in.jsonl")
		if !errors.Is(err, queue.ErrInvalid) || !strings.HasPrefix(err.Error(), "invalid item: in.jsonl:1: "+want) && !strings.Contains(err.Error(), "in.jsonl:1: invalid item: "+want) {
			t.Errorf("%s: %v", bad, err)
		}
		if err != nil && (strings.Contains(err.Error(), "json:") || strings.Contains(err.Error(), "parsing time") || strings.Contains(err.Error(), "queue.line")) {
			t.Errorf("%s: %v: words of a library", bad, err)
		}
	}
}

func TestParseMarkdown(t *testing.T) {
	text := strings.ReplaceAll(`# To do

Some words.

- [ ] First thing (P1) #ui #api
  Why it matters.

  - a detail
  |||go
  - not an item
  |||
- [x] Done already
  with a body
* Plain bullet
1. (P0) Numbered
10) Also numbered, see #12
- [ ]
- First thing

A paragraph ends it.

    - code, or a list within nothing
- [ ] Tab
	indented	body
- a fence that nobody closes
  |||
  code
- [-] Given up
-	Tab bullet
2.	Tab number
- First thing (2)
`, "|||", "```")
	got := ""
	for _, it := range queue.ParseMarkdown([]byte(text), "TODO.md") {
		got += fmt.Sprintf("%s|%d|%v|%q\n", it.Key, it.Urgency(), it.Labels, it.Body)
	}
	want := "markdown:TODO.md#First thing|1|[ui api]|\"Why it matters.\\n\\n- a detail\\n```go\\n- not an item\\n```\"\n" +
		"markdown:TODO.md#Plain bullet|5|[]|\"\"\n" +
		"markdown:TODO.md#Numbered|0|[]|\"\"\n" +
		"markdown:TODO.md#Also numbered, see #12|5|[]|\"\"\n" +
		"markdown:TODO.md#First thing (2)|5|[]|\"\"\n" +
		"markdown:TODO.md#Tab|5|[]|\"indented\\tbody\"\n" +
		"markdown:TODO.md#a fence that nobody closes|5|[]|\"```\\ncode\"\n" +
		"markdown:TODO.md#Tab bullet|5|[]|\"\"\n" +
		"markdown:TODO.md#Tab number|5|[]|\"\"\n" +
		"markdown:TODO.md#First thing (2) (2)|5|[]|\"\"\n"
	if got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

// What a list says twice is one item, and what would be lost by that is refused, with its
// place in the list.
func TestTwiceInAList(t *testing.T) {
	add := func(text string) ([]queue.Added, error) {
		items, err := queue.ParseJSONL(strings.NewReader(text), "list.jsonl")
		if err != nil {
			return nil, err
		}
		q := queue.Open(queue.Options{Dir: filepath.Join(t.TempDir(), "queue"), Now: at(0), Disk: unsynced(), Host: "vm"})
		return q.Add(t.Context(), items...)
	}
	added, err := add(`{"title":"x","id":"x"}` + "\n\n" + `{"title":"x","id":"x"}`)
	if err != nil || len(added) != 2 || !added[0].New || added[1].New || added[1].Item.State != queue.Ready || added[1].Item.Title != "x" {
		t.Errorf("the same twice: %+v %v", added, err)
	}
	for text, want := range map[string]string{
		`{"title":"x","id":"x"}` + "\n\n" + `{"title":"x2","id":"x"}`:                                           "list.jsonl:3: the id x is that of list.jsonl:1 too, which is another item (x)",
		`{"title":"x"}` + "\n\n" + `{"title":"y","id":"No good"}`:                                               "list.jsonl:3: ",
		`{"title":"x"}` + "\n" + "{\"title\":\"a\xffb\"}":                                                       "list.jsonl:2: it is not UTF-8",
		`{"title":"x"}` + "\n" + `{"title":"y","body":"` + strings.Repeat("x", queue.MaxItemBytes+1<<16) + `"}`: "bytes, more than 4194304: keep the long part in a file",
	} {
		if _, err := add(text); !errors.Is(err, queue.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

func TestParseGitHub(t *testing.T) {
	items, err := queue.ParseGitHub([]byte(`[{"number":7,"title":"Fix\tit","body":"a\r\nb","labels":[{"name":"bug"},{"name":"P1"}],"url":"https://github.com/o/r/issues/7"},
		{"number":8,"title":"x","url":"https://ghe.example/o/r/issues/8"}]`))
	if err != nil || len(items) != 2 {
		t.Fatal(items, err)
	}
	if it := items[0]; it.Key != "github:o/r#7" || it.Title != "Fix it" || it.Body != "a\nb" || it.Urgency() != 1 || fmt.Sprint(it.Labels) != "[bug P1]" {
		t.Errorf("%+v", it)
	}
	if it := items[1]; it.Key != "github:ghe.example/o/r#8" {
		t.Errorf("%+v", it)
	}
	for _, bad := range []string{"", "{}", `[{"number":1,"title":"x","url":"https://github.com/o"}]`, `[{"title":"x","url":"https://github.com/o/r/issues/1"}]`} {
		if _, err := queue.ParseGitHub([]byte(bad)); !errors.Is(err, queue.ErrInvalid) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// Whatever a list holds, its items can be added, and again without adding any.
func FuzzMarkdownList(f *testing.F) {
	f.Add("- a\n- [ ] b (P3) #x\n\t- c\n```\n- d\n")
	f.Add("1. \xff\x00\n2) (P1) (P2) #a #b\n* #\n")
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 4096 {
			return
		}
		items := queue.ParseMarkdown([]byte(text), "f.md")
		q := queue.Open(queue.Options{Dir: filepath.Join(t.TempDir(), "queue"), Now: at(0), Disk: unsynced(), Host: "vm"})
		for range 2 {
			if _, err := q.Add(t.Context(), items...); err != nil {
				t.Fatalf("%q: %v", text, err)
			}
		}
		l, err := q.List(t.Context(), queue.Filter{})
		if err != nil || len(l.Items) != len(items) {
			t.Fatalf("%q: %d items, want %d (%v)", text, len(l.Items), len(items), err)
		}
	})
}

// Priorities are written in one way wherever people write them.
func TestPriorities(t *testing.T) {
	for text, want := range map[string]int{"0": 0, "9": 9, "P3": 3, "p3": 3, "critical": 0, " High ": 2, "medium": 5, "LOW": 8, "10": -1, "-1": -1, "": -1, "p": -1, "p10": -1, "urgent": -1, "+1": -1} {
		n, err := queue.ParsePriority(text)
		if err != nil {
			n = -1
		}
		if n != want || want < 0 && !errors.Is(err, queue.ErrInvalid) {
			t.Errorf("%q is %d (%v), want %d", text, n, err, want)
		}
	}
	for n, want := range []string{"critical", "critical", "high", "high", "high", "medium", "medium", "medium", "low", "low"} {
		if got := queue.PriorityWord(n); got != want {
			t.Errorf("%d is %s, want %s", n, got, want)
		}
	}
	items, err := queue.ParseJSONL(strings.NewReader(`{"title":"a","priority":"high"}`+"\n"+`{"title":"b","priority":7}`+"\n"+`{"title":"c"}`), "x")
	if err != nil || *items[0].Priority != 2 || *items[1].Priority != 7 || items[2].Priority != nil {
		t.Fatal(items, err)
	}
	if _, err := queue.ParseJSONL(strings.NewReader(`{"title":"a","priority":"soon"}`), "x"); !errors.Is(err, queue.ErrInvalid) {
		t.Fatal(err)
	}
	list := queue.ParseMarkdown([]byte("- (high) one\n- two (low) #x\n- three (5)\n- (see 4) four\n"), "x")
	if *list[0].Priority != 2 || list[0].Title != "one" || *list[1].Priority != 8 || list[2].Priority != nil || list[2].Title != "three (5)" || list[3].Priority != nil {
		t.Fatal(list)
	}
	issues, err := queue.ParseGitHub([]byte(`[{"number":1,"title":"a","labels":[{"name":"priority: high"}],"url":"https://github.com/o/r/issues/1"},
		{"number":2,"title":"b","labels":[{"name":"P0"},{"name":"5"}],"url":"https://github.com/o/r/issues/2"},
		{"number":3,"title":"c","labels":[{"name":"high"},{"name":"42"}],"url":"https://github.com/o/r/issues/3"}]`))
	if err != nil || *issues[0].Priority != 2 || *issues[1].Priority != 0 || issues[2].Priority != nil {
		t.Fatal(issues, err)
	}
}
