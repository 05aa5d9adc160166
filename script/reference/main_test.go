package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"reprise/internal/cli"
)

// What docs/commands says is what the program says.
func TestCommandPagesAreUpToDate(t *testing.T) {
	pages, err := markdown(cli.Tree())
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join("..", "..", "docs", "commands")
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var there []string
	for _, e := range entries {
		there = append(there, e.Name())
	}
	if want := names(pages); !slices.Equal(there, want) {
		t.Errorf("docs/commands holds %v, the program has %v: run `go run ./script/reference`", there, want)
	}
	for name, want := range pages {
		got, err := os.ReadFile(filepath.Join(dir, name))
		if err == nil && string(got) != string(want) {
			t.Errorf("docs/commands/%s is not what the program's help says: run `go run ./script/reference`", name)
		}
	}
}

func TestManualPages(t *testing.T) {
	date := time.Date(2026, 2, 3, 4, 5, 6, 0, time.UTC)
	pages, err := manual(cli.Tree(), date)
	if err != nil {
		t.Fatal(err)
	}
	page := string(pages["reprise-queue-add.1"])
	for _, want := range []string{`.TH "REPRISE-QUEUE-ADD" "1" "Feb 2026"`, "--depends-on", "reprise queue add \"Fix the login\""} {
		if !strings.Contains(strings.ReplaceAll(page, `\-`, "-"), want) {
			t.Errorf("the page of `reprise queue add` lacks %q:\n%.1500s", want, page)
		}
	}
	again, err := manual(cli.Tree(), date)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range pages {
		if string(again[name]) != string(text) {
			t.Errorf("%s: two makings differ", name)
		}
	}
}

func TestCompletions(t *testing.T) {
	files, err := shells(cli.Tree())
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"reprise.bash": "__start_reprise", "_reprise": "#compdef reprise", "reprise.fish": "complete -c reprise"} {
		if !strings.Contains(string(files[name]), want) {
			t.Errorf("%s lacks %q", name, want)
		}
	}
}

func TestSourceDate(t *testing.T) {
	for _, bad := range []string{"", "soon", "1.5"} {
		if _, err := sourceDate(bad); err == nil || !strings.Contains(err.Error(), "SOURCE_DATE_EPOCH") {
			t.Errorf("%q: %v", bad, err)
		}
	}
	got, err := sourceDate("1770091506")
	if want := time.Date(2026, 2, 3, 4, 5, 6, 0, time.UTC); err != nil || !got.Equal(want) {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
}
