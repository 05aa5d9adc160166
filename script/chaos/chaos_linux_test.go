package main

import (
	"slices"
	"strings"
	"testing"
	"time"
)

func TestChosen(t *testing.T) {
	for list, want := range map[string]int{"": len(parts), "none": 0, "loop": 1, "loop, web": 2} {
		got, err := chosen("-only", list, parts)
		if err != nil || len(got) != want {
			t.Errorf("%q: %v, %v", list, got, err)
		}
	}
	if _, err := chosen("-only", "loop,lop", parts); err == nil || !strings.Contains(err.Error(), `"lop"`) {
		t.Errorf("a name that is none: %v", err)
	}
}

// A refusal is excused only by what was wrong at some time since it began.
func TestSpells(t *testing.T) {
	var s spells
	before := time.Now()
	end := s.begin("full")
	if !s.since(time.Now(), "full") || s.since(before, "fds") {
		t.Error("while it lasts")
	}
	end()
	if !s.since(before, "fds", "full") || s.since(time.Now().Add(time.Millisecond), "full") {
		t.Error("after it")
	}
}

func TestPlain(t *testing.T) {
	for said, want := range map[string]bool{
		"reprise: append: no space left on device; make room": true,
		"": false, "panic: runtime error\n\ngoroutine 1 [running]:\nreprise/…": false, "exit status 1": false,
	} {
		if got := plain(said) == ""; got != want {
			t.Errorf("%q: %v", said, got)
		}
	}
}

// What the runtime says where it cannot begin is told from a panic of ours.
func TestStarved(t *testing.T) {
	for said, want := range map[string]bool{
		"runtime: epollcreate failed with 24\nfatal error: runtime: netpollinit failed\n\ngoroutine 1 gp=0x1": true,
		"reprise: put aside\nruntime: eventfd failed with 24\nfatal error: runtime: eventfd failed\n":         true,
		"fatal error: all goroutines are asleep\n\ngoroutine 1":                                               false, "reprise: too many open files\n": false,
	} {
		if starved(said) != want {
			t.Errorf("%q: %v", said, !want)
		}
	}
}

// What was acknowledged and is not there is named, and nothing else.
func TestKeeps(t *testing.T) {
	c := &check{}
	keeps(c, []promise{{mark: "markmema00001z"}, {mark: "markmema00002z"}}, []byte("we saw markmema00001z and markmema000022z"))
	if c.n != 2 || !slices.Equal(c.wrong, []string{"markmema00002z is missing"}) {
		t.Errorf("%+v", c)
	}
}

func TestBodyOf(t *testing.T) {
	for text, want := range map[string]string{"# A\n": "# A\n", "---\ntags: []\n---\n\n# A\n": "# A\n", "--- no": "--- no"} {
		if got := bodyOf(text); got != want {
			t.Errorf("%q: %q", text, got)
		}
	}
}
