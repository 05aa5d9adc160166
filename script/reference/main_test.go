package main

import (
	"os"
	"path/filepath"
	"regexp"
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
	first := strings.ReplaceAll(string(pages["reprise.1"]), `\-`, "-")
	for _, want := range []string{"reprise COMMAND\n", ".SH COMMANDS\n", ".TP\n\\fBqueue\\fP\n", "\\fBreprise-queue\\fP(1)\n"} {
		if !strings.Contains(first, want) {
			t.Errorf("the page of reprise lacks %q:\n%.1500s", want, first)
		}
	}
	run := strings.ReplaceAll(string(pages["reprise-loop-run.1"]), `\-`, "-")
	for _, want := range []string{"\\fB--budget-usd float\\fP\n"} {
		if !strings.Contains(run, want) {
			t.Errorf("the page of `reprise loop run` lacks %q:\n%s", want, run)
		}
	}
	// What is shown as a flag's value is its default, or not shown; cobra's pages had =0 and =false.
	falseDefault := regexp.MustCompile(`(?m)^\\fB.*--[a-z-]+=(0|0s|false|\[\]|"")`)
	for name, text := range pages {
		page := strings.ReplaceAll(string(text), `\-`, "-")
		if m := falseDefault.FindString(page); m != "" {
			t.Errorf("%s: %q shows a default that is none", name, m)
		}
		if i := strings.Count(page, ".nf\n") - strings.Count(page, ".fi\n"); i != 0 || !strings.HasPrefix(page, ".TH ") {
			t.Errorf("%s: %d parts are not filled to their end", name, i)
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

// What a page shows is what the help says, whatever characters are in it.
func TestManualText(t *testing.T) {
	for text, want := range map[string]string{
		"a\nlong\nway":                  ".PP\na\nlong\nway\n",
		"So:\n  x --y\n  z\nand on":     ".PP\nSo:\n.PP\n.nf\n  x \\-\\-y\n  z\n.fi\n.PP\nand on\n",
		"- one\n  more\n- two":          ".IP \\(bu 2\none\nmore\n.IP \\(bu 2\ntwo\n",
		".reprise is\n'it' with `x\\y`": ".PP\n\\&.reprise is\n\\(aqit\\(aq with \\fBx\\ey\\fP\n",
	} {
		if got := prose(text); got != want {
			t.Errorf("%q: got\n%q, want\n%q", text, got, want)
		}
	}
}
