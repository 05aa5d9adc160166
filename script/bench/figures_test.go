package main

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// What a machine cannot measure stays as it was recorded, a part or the rows of one program,
// with the day; what fails stays, too, and is an error; what was measured is written at once.
func TestRecordKeepsWhatIsAway(t *testing.T) {
	t.Chdir(t.TempDir())
	doc := ""
	for _, name := range []string{"peers-all", "peers-some", "broken", "well"} {
		doc += strings.Replace(figuresFrom, "%s", name, 1) + figuresTo
	}
	for _, name := range append([]string{figuresFile}, figureDocs...) {
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(doc), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	fig := func(name, what string, v float64) figure {
		return figure{Name: name, What: what, Of: "found, %", Value: v, Noise: noiseCount}
	}
	was := func(name string, f ...figure) section {
		return section{Name: name, At: "2026-01-02", Machine: "m", Figures: f}
	}
	c := &comparison{record: true, out: io.Discard, now: kept{V: 2, Parts: []section{
		was("peers-all", fig("peers.all.bd.5", "bd", 1)), was("peers-some", fig("peers.some.bd-words.5", "bd's words", 2), fig("peers.some.us.5", "us", 3)), was("broken", fig("x", "x", 4)), was("well", fig("y", "y", 5)),
	}}}
	for _, m := range []measure{
		{"peers-all", "", func(*rig) ([]figure, error) { return nil, &away{why: "npm is away"} }},
		{"peers-some", "", func(*rig) ([]figure, error) {
			return []figure{fig("peers.some.us.5", "us", 6)}, &away{why: "no module", programs: []string{"bd"}}
		}},
		{"broken", "", func(*rig) ([]figure, error) { return nil, errors.New("it broke") }},
		{"well", "", func(*rig) ([]figure, error) { return []figure{fig("y", "y", 7)}, nil }},
	} {
		if err := c.one(&rig{n: 1}, m); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.end(); err == nil || !strings.Contains(err.Error(), "something failed: broken") || strings.Contains(err.Error(), "peers") {
		t.Errorf("it ends with %v", err)
	}
	if !slices.Equal(c.left, []string{"peers-all", "peers-some"}) {
		t.Errorf("left: %q", c.left)
	}
	k, err := readKept("")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]float64{"peers-all": 1, "broken": 4, "well": 7} {
		if p := k.part(name); p == nil || p.Figures[0].Value != want || (p.At == "2026-01-02") != (name != "well") {
			t.Errorf("%s: %+v", name, p)
		}
	}
	text, err := os.ReadFile(figureDocs[0])
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"| part | found, % |\n|---|---|\n| us | 6 |\n| bd's words (of 2026-01-02) | 2 |\n| noise | ± 10 % |\n"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("it lacks %q:\n%s", want, text)
		}
	}
}

// A part is chosen by its name or by what names begin with.
func TestChosen(t *testing.T) {
	if list, err := chosen("peers,queue"); err != nil || len(list) != 6 {
		t.Errorf("%d, %v", len(list), err)
	}
	if list, err := chosen(""); err != nil || len(list) != len(measures) {
		t.Errorf("%d, %v", len(list), err)
	}
	if _, err := chosen("peer"); err == nil {
		t.Error("there is no part peer")
	}
}
