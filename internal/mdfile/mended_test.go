package mdfile

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"
)

// What can be read is read, what is wrong is named with its line, and the number
// of lines stays.
func TestMended(t *testing.T) {
	utf16le := []byte{0xff, 0xfe}
	for _, r := range "# A\nb\n" {
		utf16le = append(utf16le, byte(r), 0)
	}
	for _, c := range []struct {
		name, in, want string
		found          []Damage
	}{
		{"good", "a\nb\n", "a\nb\n", nil},
		{"good, with a mark", "\ufeffa\n", "\ufeffa\n", nil},
		{"NUL", "a\nb\x00c\nd\n", "a\nb\uFFFDc\nd\n", []Damage{{2, "a NUL at byte 2 of the line"}}},
		{"what a power cut leaves", "a\n" + strings.Repeat("\x00", 4096), "a\n\uFFFD", []Damage{{2, "a NUL at byte 1 of the line"}}},
		{"a bad byte", "a\ncaf\xe9 au lait\n", "a\ncaf\uFFFD au lait\n", []Damage{{2, "the byte 0xe9 at byte 4 of the line is not UTF-8"}}},
		{"a character cut in two", "\xe6\x97", "\uFFFD", []Damage{{1, "the byte 0xe6 at byte 1 of the line is not UTF-8"}}},
		{"CR alone", "a\rb\r", "a\nb\n", []Damage{{1, "its lines end in CR alone; save it with LF"}}},
		{"a CR within a line", "a\rb\n", "a\rb\n", nil},
		{"a mark in the middle", "a\n\ufeff---\n", "a\n---\n", []Damage{{2, "a byte order mark in the middle of the file"}}},
		{"UTF-16", string(utf16le), "# A\nb\n", []Damage{{1, "the file is UTF-16; save it as UTF-8"}}},
		{"U+FFFD by hand", "a\uFFFD\n", "a\uFFFD\n", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			was := bytes.Clone([]byte(c.in))
			text, found := Mended([]byte(c.in))
			if string(text) != c.want || len(found) != len(c.found) {
				t.Fatalf("%q, %v; want %q, %v", text, found, c.want, c.found)
			}
			for i := range found {
				if found[i] != c.found[i] {
					t.Errorf("%v; want %v", found[i], c.found[i])
				}
			}
			if !bytes.Equal(was, []byte(c.in)) {
				t.Error("the bytes given changed")
			}
		})
	}
	if _, found := Mended([]byte(strings.Repeat("\xff\n", 50))); len(found) != maxDamage || !strings.Contains(found[maxDamage-1].Problem, "and 30 more lines") {
		t.Errorf("of fifty bad lines: %v", found)
	}
}

// One bad byte costs its own entry its hash and nothing else: the entries around
// it keep their ids, every byte stays, and an entry can be added and taken out.
func TestDamageSpoilsItsOwnEntryAlone(t *testing.T) {
	one, rawOne := Entry{Type: TypeLearning, Time: at(1), Text: "The port is 5432."}.Render()
	two, rawTwo := Entry{Type: TypeLearning, Time: at(2), Text: "The host is alpha."}.Render()
	three, rawThree := Entry{Type: TypeLearning, Time: at(3), Text: "The door is blue."}.Render()
	whole := "# Learnings\n\n" + string(rawOne) + "\n" + string(rawTwo) + "\n" + string(rawThree)
	utf16le := []byte{0xff, 0xfe}
	for _, r := range whole {
		utf16le = append(utf16le, byte(r), 0)
	}
	for _, c := range []struct {
		name, data string
		twoIs      string // the text of the second entry
		foreign    bool
	}{
		{"NUL in a text", strings.Replace(whole, "is alpha", "is \x00alpha", 1), "The host is \uFFFDalpha.", false},
		{"a byte of Latin-1", strings.Replace(whole, "is alpha", "is alph\xe4", 1), "The host is alph\uFFFD.", false},
		{"NULs behind the last", whole + "\x00\x00\x00\x00", "The host is alpha.", false},
		{"a bad byte between entries", strings.Replace(whole, "# Learnings", "# Learn\xe9", 1), "The host is alpha.", false},
		{"CR alone", strings.ReplaceAll(whole, "\n", "\r"), "The host is alpha.", false},
		{"another file behind it", string(rawOne) + "\ufeff" + string(rawTwo) + "\n" + string(rawThree), "The host is alpha.", false},
		{"UTF-16", string(utf16le), "The host is alpha.", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := ParseEntries([]byte(c.data))
			if len(f.Entries) != 3 || len(f.Damage) == 0 || f.Foreign != c.foreign {
				t.Fatalf("%d entries, damage %v, foreign %v", len(f.Entries), f.Damage, f.Foreign)
			}
			if f.Entries[0].ID != one.ID || f.Entries[0].Edited || f.Entries[2].ID != three.ID || f.Entries[2].Edited {
				t.Errorf("the others: %+v", f.Entries)
			}
			got := f.Entries[1]
			if got.ID != two.ID || got.Text != c.twoIs || got.Edited != (c.twoIs != two.Text) || !utf8.ValidString(got.Text) {
				t.Errorf("the second: %+v", got)
			}
			if c.foreign {
				return
			}
			if string(f.Bytes()) != c.data {
				t.Error("bytes changed")
			}
			four, raw := Entry{Type: TypeLearning, Time: at(4), Text: "New.\nTwo lines."}.Render()
			next := ParseEntries(f.WithEntry(raw))
			if !bytes.HasPrefix(next.Bytes(), []byte(c.data)) || len(next.Entries) != 4 || next.Entries[3].ID != four.ID || next.Entries[3].Edited {
				t.Errorf("with another: %+v\n%q", next.Entries, next.Bytes())
			}
			back := ParseEntries(next.Without(map[string]bool{four.ID: true}))
			if len(back.Entries) != 3 || back.Entries[2].ID != three.ID || back.Entries[1].Text != c.twoIs {
				t.Errorf("without it again: %+v\n%q", back.Entries, back.Bytes())
			}
		})
	}
}

// A front matter with bytes that are no text gives what can be read of it.
func TestDamagedFrontMatter(t *testing.T) {
	_, raw := Entry{Type: TypeLearning, Time: at(1), Agent: "claude", ACL: []string{"agent:bob"}, Text: "x"}.Render()
	for _, c := range []struct{ old, bad string }{{"agent: claude", "agent: cl\xe4ude"}, {"id: e-", "id: \x00e-"}} {
		f := ParseEntries(bytes.Replace(raw, []byte(c.old), []byte(c.bad), 1))
		if len(f.Entries) != 1 {
			t.Fatalf("%q: %+v", c.bad, f.Entries)
		}
		e := f.Entries[0]
		if !strings.HasPrefix(e.ID, "e-") || !utf8.ValidString(e.Agent) || len(e.ACL) != 1 || e.ACL[0] != "agent:bob" || e.Text != "x" {
			t.Errorf("%q: %+v", c.bad, e)
		}
	}
}

// What is cut does not change the bytes that it is cut from.
func TestCutKeepsTheSource(t *testing.T) {
	a, rawA := Entry{Type: TypeLearning, Time: at(1), Text: "a"}.Render()
	_, rawB := Entry{Type: TypeLearning, Time: at(2), Text: "b"}.Render()
	src := []byte("Head.\n\n\n" + string(rawA) + "\n\n" + string(rawB))
	was := bytes.Clone(src)
	rest, cut := ParseEntries(src).Cut(func(e *Entry) bool { return e.ID == a.ID })
	if !bytes.Equal(src, was) {
		t.Errorf("the source changed:\n%s", src)
	}
	if len(cut) != 1 || !bytes.Equal(cut[0], rawA) || bytes.Contains(rest, rawA) || !bytes.Contains(rest, rawB) {
		t.Errorf("rest:\n%s\ncut:\n%s", rest, cut)
	}
}
