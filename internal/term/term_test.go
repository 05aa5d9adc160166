package term

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func TestWantColour(t *testing.T) {
	for _, tc := range []struct {
		name string
		vars map[string]string
		tty  bool
		want bool
	}{
		{"terminal", nil, true, true},
		{"pipe", nil, false, false},
		{"NO_COLOR on a terminal", map[string]string{"NO_COLOR": "1"}, true, false},
		{"empty NO_COLOR counts as unset", map[string]string{"NO_COLOR": ""}, true, true},
		{"NO_COLOR beats FORCE_COLOR", map[string]string{"NO_COLOR": "1", "FORCE_COLOR": "1"}, true, false},
		{"FORCE_COLOR in a pipe", map[string]string{"FORCE_COLOR": "1"}, false, true},
		{"FORCE_COLOR=0 on a terminal", map[string]string{"FORCE_COLOR": "0"}, true, false},
		{"FORCE_COLOR beats dumb", map[string]string{"FORCE_COLOR": "1", "TERM": "dumb"}, false, true},
		{"CLICOLOR_FORCE", map[string]string{"CLICOLOR_FORCE": "1"}, false, true},
		{"dumb terminal", map[string]string{"TERM": "dumb"}, true, false},
		{"CLICOLOR=0", map[string]string{"CLICOLOR": "0"}, true, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := WantColour(func(k string) string { return tc.vars[k] }, tc.tty); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}

func TestSafeText(t *testing.T) {
	for _, tc := range []struct{ name, in, text, line string }{
		{"plain", "abc äöü 漢字", "abc äöü 漢字", "abc äöü 漢字"},
		{"lines stay", "a\n\tb\n", "a\n\tb\n", `a\n\tb\n`},
		{"carriage returns", "a\r\nb\rc", "a\nb\\rc", `a\r\nb\rc`},
		{"colour", "\x1b[31mred", `\x1b[31mred`, `\x1b[31mred`},
		{"title change", "\x1b]0;owned\x07", `\x1b]0;owned\x07`, `\x1b]0;owned\x07`},
		{"eight-bit control", "a\u009b31m", `a\x9b31m`, `a\x9b31m`},
		{"not UTF-8", "a\xffb", `a\xffb`, `a\xffb`},
		{"cut rune at the end", "a\xe6\xbc", `a\xe6\xbc`, `a\xe6\xbc`},
		{"zero width", "re\u200bprise", `re\u{200b}prise`, `re\u{200b}prise`},
		{"right to left override", "a\u202egpj.exe", `a\u{202e}gpj.exe`, `a\u{202e}gpj.exe`},
		{"byte order mark", "\ufeffx", `\u{feff}x`, `\u{feff}x`},
		{"tag characters", "x\U000e0041", `x\u{e0041}`, `x\u{e0041}`},
		{"soft hyphen", "a\u00adb", `a\xadb`, `a\xadb`},
		{"NUL and DEL", "a\x00b\x7f", `a\x00b\x7f`, `a\x00b\x7f`},
		{"line separator", "a\u2028b", `a\u{2028}b`, `a\u{2028}b`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := SafeText(tc.in); got != tc.text {
				t.Errorf("SafeText(%q) = %q, want %q", tc.in, got, tc.text)
			}
			if got := SafeLine(tc.in); got != tc.line {
				t.Errorf("SafeLine(%q) = %q, want %q", tc.in, got, tc.line)
			}
		})
	}
}

func FuzzSafeText(f *testing.F) {
	for _, s := range []string{"", "a\x1b[0mb", "\xff\u200b\r\n", "漢字\x9b"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, got := range []string{SafeText(s), SafeLine(s)} {
			if !utf8.ValidString(got) {
				t.Errorf("%q: result is not UTF-8: %q", s, got)
			}
			for _, r := range got {
				if hidden(r) && r != '\n' && r != '\t' {
					t.Errorf("%q: %U is left in %q", s, r, got)
				}
			}
		}
		if strings.ContainsAny(SafeLine(s), "\n\t") {
			t.Errorf("%q: SafeLine has more than one line", s)
		}
		if once := SafeText(s); SafeText(once) != once {
			t.Errorf("%q: not the same when done twice", s)
		}
		if w := Width(s); w < 0 || Width(Cut(s, 5)) > 5 {
			t.Errorf("%q: width %d, cut to 5 has %d", s, w, Width(Cut(s, 5)))
		}
		for _, styled := range []bool{false, true} {
			if c := safeCell(s, styled); strings.ContainsAny(c, "\n\r\t") || !styled && strings.Contains(c, "\x1b") || strings.Contains(c, "\x1b[8m") {
				t.Errorf("%q: cell %q breaks the line, or what is around it", s, c)
			}
		}
	})
}

func TestTable(t *testing.T) {
	style := NewStyle(true)
	plain := NewTable(Style{}, "NAME", "N", "WHAT").AlignRight(1)
	plain.Row("漢字", "7", "wide characters take two columns")
	plain.Row("e\u0301", "123", "a combining accent takes none")
	plain.Row("a\nb", "1", "")
	var b bytes.Buffer
	if err := plain.Write(&b); err != nil {
		t.Fatal(err)
	}
	want := "NAME    N  WHAT\n漢字    7  wide characters take two columns\ne\u0301     123  a combining accent takes none\na\\nb    1\n"
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Error(diff)
	}

	// Where the columns before the last are wider than the terminal alone, the line is cut,
	// and does not break in the middle of a word.
	b.Reset()
	narrow := NewTable(style, "RUN", "STATUS", "TASK").MaxWidth(12)
	narrow.Row("run-aaaaaaaaaa", style.Red("failed"), "x")
	if err := narrow.Write(&b); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(b.String()) {
		if w := Width(strings.TrimRight(line, "\n")); w > 12 {
			t.Errorf("%d columns: %q", w, line)
		}
	}

	b.Reset()
	coloured := NewTable(style, "A", "B").MaxWidth(8)
	coloured.Row(style.Red("x"), "1234567890")
	coloured.Row("long", style.Green("1234567890"))
	if err := coloured.Write(&b); err != nil {
		t.Fatal(err)
	}
	want = "\x1b[2mA\x1b[0m     \x1b[2mB\x1b[0m\n\x1b[31mx\x1b[0m     1…\nlong  \x1b[32m1…\x1b[0m\n"
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Error(diff)
	}
}

// A header that does not fit stands for nothing; nor is one broken in its middle.
func TestTableHeadersStayWhole(t *testing.T) {
	for columns := 1; columns < 50; columns++ {
		table := NewTable(NewStyle(true), "RUN", "STATUS", "TOOK", "TASK").AlignRight(2).MaxWidth(columns)
		table.Row("run-aaaaaaaaaa", "completed", "12 s", "a text that is longer than most")
		var b bytes.Buffer
		if err := table.Write(&b); err != nil {
			t.Fatal(err)
		}
		head, _, _ := strings.Cut(b.String(), "\n")
		if w := Width(head); w > columns {
			t.Errorf("%d of %d columns: %q", w, columns, head)
		}
		for word := range strings.FieldsSeq(strings.NewReplacer("\x1b[2m", "", "\x1b[0m", "").Replace(head)) {
			if !slices.Contains([]string{"RUN", "STATUS", "TOOK", "TASK", "…"}, word) {
				t.Errorf("at %d columns a header is %q", columns, word)
			}
		}
	}
}

func TestWrap(t *testing.T) {
	for _, c := range []struct {
		head, text, hang string
		width            int
		want             string
	}{
		{"ok  ", "one two three", "    ", 0, "ok  one two three"},
		{"ok  ", "one two three", "    ", 17, "ok  one two three"},
		{"ok  ", "one two three", "    ", 16, "ok  one two\n    three"},
		{"ok  ", "/a/path/that/is/wide it is", "    ", 12, "ok  /a/path/that/is/wide\n    it is"},
		{"\x1b[32mok\x1b[0m ", "漢字 漢字", " ", 11, "\x1b[32mok\x1b[0m 漢字\n 漢字"},
		{"", "", " ", 5, ""},
		{"", "give `a b c` to go", "", 9, "give\n`a b c`\nto go"},
		{"", "give (`a b`) and `c d`", "  ", 10, "give\n  (`a b`)\n  and\n  `c d`"},
		{"", "give `a b c d e f` to", "", 9, "give `a b\nc d e f`\nto"}, // a line has no room for it
		{"ok ", "漢字漢字漢字 x", "  ", 9, "ok 漢字漢\n  字漢字\n  x"},
		{"", "see漢字漢字漢字", "  ", 6, "see漢\n  字漢\n  字漢\n  字"},
		{"a ", "short 漢字漢字漢字", " ", 8, "a short\n 漢字漢\n 字漢字"},
		{"", "a ` alone is none", "", 9, "a ` alone\nis none"},
	} {
		if got := Wrap(c.head, c.text, c.hang, c.width); got != c.want {
			t.Errorf("%q in %d columns:\n%q, want\n%q", c.text, c.width, got, c.want)
		}
	}
}

// A cell has no sequence but those of a style, none at all where nothing is coloured, and
// none that colours what comes after the cell.
func TestCellsOfOthers(t *testing.T) {
	on := NewStyle(true)
	for _, f := range []func(string) string{on.Bold, on.Dim, on.Red, on.Green, on.Yellow, on.Blue, on.Cyan} {
		if got := safeCell(f("x"), true); got != f("x") {
			t.Errorf("a style's own: %q", got)
		}
	}
	for _, c := range []struct{ in, coloured, plain string }{
		{"a\x1b[8mb\x1b[0m", "a\\x1b[8mb\x1b[0m", `a\x1b[8mb\x1b[0m`},
		{"a\x1b[31mb", "a\x1b[31mb\x1b[0m", `a\x1b[31mb`},
		{"\x1b[1;8mb", `\x1b[1;8mb`, `\x1b[1;8mb`},
		{"\x1b[mb\x1b[5mc", `\x1b[mb\x1b[5mc`, `\x1b[mb\x1b[5mc`},
	} {
		if got := safeCell(c.in, true); got != c.coloured {
			t.Errorf("%q coloured: %q", c.in, got)
		}
		if got := safeCell(c.in, false); got != c.plain {
			t.Errorf("%q plain: %q", c.in, got)
		}
	}
}

func TestStyleOffAddsNothing(t *testing.T) {
	var s Style
	for _, f := range []func(string) string{s.Bold, s.Dim, s.Red, s.Green, s.Yellow, s.Blue, s.Cyan, s.Diff} {
		if got := f("+x\n"); got != "+x\n" {
			t.Errorf("got %q", got)
		}
	}
}

func TestDiff(t *testing.T) {
	got := NewStyle(true).Diff("--- a\n+++ b\n@@ -1 +1 @@\n-x\n+y\n z")
	want := "\x1b[1m--- a\x1b[0m\n\x1b[1m+++ b\x1b[0m\n\x1b[36m@@ -1 +1 @@\x1b[0m\n\x1b[31m-x\x1b[0m\n\x1b[32m+y\x1b[0m\n z"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestSteps(t *testing.T) {
	var b bytes.Buffer
	s := NewSteps(&b, Style{})
	s.Step("Make a project")
	s.Command("reprise init\x1b[2J")
	s.OK("made %s", "a\nb")
	s.Step("Run")
	s.Warn("slow")
	s.Fail("gone")
	s.Info("see %d", 3)
	s.Quote("one\ntwo\x07\n")
	want := "1. Make a project\n   $ reprise init\\x1b[2J\n   ✓ made a b\n\n2. Run\n   ! slow\n   ✗ gone\n   · see 3\n     one\n     two\\x07\n"
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Error(diff)
	}
}

// Where a terminal is narrow, what can be done without makes room for what is to be read.
func TestSpareColumnsMakeRoom(t *testing.T) {
	show := func(width int) string {
		table := NewTable(Style{}, "N", "STATE", "LANGUAGE", "TITLE").AlignRight(0).MaxWidth(width).Spare(2, 1)
		table.Row("1", "ready", "go", "A title that is to be read, long as it is")
		table.Row("12", "done", "typescript", "Another")
		var b strings.Builder
		if err := table.Write(&b); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(b.String()) {
			if w := Width(strings.TrimRight(line, "\n")); width > 0 && w > width {
				t.Errorf("%d wide: %q takes %d", width, line, w)
			}
		}
		return b.String()
	}
	for width, want := range map[int]string{
		0:  " N  STATE  LANGUAGE    TITLE\n 1  ready  go          A title that is to be read, long as it is\n12  done   typescript  Another\n",
		53: " N  STATE  LANGUAGE    TITLE\n 1  ready  go          A title that is to be read, l…\n12  done   typescript  Another\n",
		45: " N  STATE  TITLE\n 1  ready  A title that is to be read, long …\n12  done   Another\n",
		38: " N  TITLE\n 1  A title that is to be read, long …\n12  Another\n",
		20: " N  TITLE\n 1  A title that is…\n12  Another\n",
	} {
		if got := show(width); got != want {
			t.Errorf("%d wide:\n%swant\n%s", width, got, want)
		}
	}
}
