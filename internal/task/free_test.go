package task

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Four processes change tasks and are killed, while a person edits TODO.md in every way
// that an editor allows: lines of all kinds, code, other line ends, sections moved, copied,
// retitled and cut out, words that are no status, and a file saved over what a command has
// just written. What the person wrote is there in the end, in the list, in what was put
// beside it, or in the archive; no number was given twice; every task that was made is
// there; and after --fix the files agree, or the check says where they do not.
func TestFreeHand(t *testing.T) {
	rounds, steps, most := 2, 20, time.Hour
	if os.Getenv("REPRISE_LONG_TESTS") != "" {
		rounds, steps, most = 60, 40, 5*time.Minute
	}
	began := time.Now()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for round := range rounds {
		if time.Since(began) > most {
			t.Logf("%d rounds", round)
			break
		}
		f := &freeHand{t: t, s: storeIn(t.TempDir(), unsynced()), r: rand.New(rand.NewPCG(uint64(round), 11)), made: map[string]string{}, said: make(chan string, 10_000)}
		f.round(self, round, steps)
		if t.Failed() {
			t.Fatalf("round %d, after\n%s\nTODO.md:\n%s", round, strings.Join(f.did, "\n"), text(t, f.s, "TODO.md"))
		}
	}
}

type freeHand struct {
	t    *testing.T
	s    *Store
	r    *rand.Rand
	said chan string
	made map[string]string // by number
	did  []string
	mine []string // what the person wrote and has not taken away
	n    int
}

func (f *freeHand) round(self string, round, steps int) {
	t := f.t
	change(t, f.s, add("First", "Second"))
	var stops []func()
	begin := func(name string) func() { return worker(t, self, filepath.Dir(f.s.dir), name, f.said) }
	for i := range 4 {
		stops = append(stops, begin(fmt.Sprintf("free%d", i)))
	}
	for step := range steps {
		time.Sleep(time.Duration(10+f.r.IntN(40)) * time.Millisecond) // time for them to be in the middle of something
		if i := f.r.IntN(4); f.r.IntN(4) == 0 {
			stops[i]()
			stops[i] = begin(fmt.Sprintf("free%d-%d", i, step))
		} else {
			f.edit()
		}
		f.drain()
	}
	for _, stop := range stops {
		stop()
	}
	f.drain()
	f.settle()
	f.look(round)
}

func (f *freeHand) drain() {
	for len(f.said) > 0 {
		words := strings.Fields(<-f.said)
		if words[0] == "wrong" {
			f.t.Errorf("%v", words)
			continue
		}
		if other := f.made[words[1]]; other != "" && other != words[2] {
			f.t.Errorf("number %s was given to %s and to %s", words[1], other, words[2])
		}
		f.made[words[1]] = words[2]
	}
}

// edit saves TODO.md as an editor does; half of the time without a thought for who else
// writes it.
func (f *freeHand) edit() {
	d, err := f.s.o.Disk.OpenDir(f.s.dir)
	if err != nil {
		f.t.Fatal(err)
	}
	defer d.Close()
	if f.r.IntN(2) == 0 {
		c, err := d.Begin(context.Background())
		if err != nil {
			f.t.Fatal(err)
		}
		defer c.Abort()
	}
	old, err := os.ReadFile(filepath.Join(f.s.Dir(), "TODO.md"))
	if errors.Is(err, os.ErrNotExist) {
		return // it is being put in its place
	}
	if err != nil {
		f.t.Fatal(err)
	}
	save(f.t, f.s, f.anyhow(string(old)))
}

// line is something that a person writes into a line.
func (f *freeHand) line() string {
	f.n++
	word := fmt.Sprintf("By hand no. %d.", f.n)
	f.mine = append(f.mine, word)
	forms := []string{"%s", "- %s", "  * %s", "\t%s", "- [ ] %s", "> %s", "1. %s", "— ünï ☃ %s", "<!-- %s -->", "| a | %s |", "- Done: %s", "#### 7. %s", "    %s", "**%s**", "- **Note**: %s\t"}
	return fmt.Sprintf(forms[f.r.IntN(len(forms))], word)
}

var (
	ofATask  = regexp.MustCompile(`(?m)^#{1,6} \d+\. `)
	itsWord  = regexp.MustCompile(`\[(NOT STARTED|IN PROGRESS|RESEARCHED|PLANNED|PARTIAL|BLOCKED|COMPLETED|ABANDONED)\]`)
	handMark = regexp.MustCompile(`By hand no\. \d+\.`)
)

const openFence = "\n~~~~ left open\n"

// anyhow is a text after one edit of any kind.
func (f *freeHand) anyhow(text string) string {
	if strings.Contains(text, openFence) {
		f.did = append(f.did, "the fence is closed again")
		return strings.ReplaceAll(text, openFence, "\n")
	}
	eol := "\n"
	if strings.Contains(text, "\r\n") {
		eol = "\r\n"
	}
	lines := strings.SplitAfter(text, "\n")
	at := f.r.IntN(len(lines))
	put := func(more string) string {
		return strings.Join(lines[:at], "") + strings.ReplaceAll(more, "\n", eol) + strings.Join(lines[at:], "")
	}
	parts := sectionsOf(text)
	i, j := f.r.IntN(len(parts)), f.r.IntN(len(parts))
	what, out := "", text
	switch f.r.IntN(14) {
	case 0:
		what, out = "appends", text+eol+f.line()+eol
	case 1, 2, 3:
		what, out = "inserts", put(f.line()+"\n")
	case 4:
		what, out = "code", text+strings.ReplaceAll("\n```go\n### 99. "+f.line()+"\n- **Status**: [DONE]\n```\n", "\n", eol)
	case 5:
		what, out = "an open fence", text+openFence
	case 6:
		what = "moves"
		if i > 0 && j > 0 {
			parts[i], parts[j] = parts[j], parts[i]
			out = strings.Join(parts, "")
		}
	case 7:
		what = "retitles"
		if i > 0 {
			number, _, _ := strings.Cut(parts[i], ". ")
			_, rest, _ := strings.Cut(parts[i], "\n")
			parts[i] = number + ". " + f.line() + eol + rest
			out = strings.Join(parts, "")
		}
	case 8:
		what = "takes a line away"
		if !handMark.MatchString(lines[at]) {
			lines[at] = ""
			out = strings.Join(lines, "")
		}
	case 9:
		what = "cuts a section out"
		if i > 0 && !handMark.MatchString(parts[i]) {
			parts[i] = ""
			out = strings.Join(parts, "")
		}
	case 10:
		what = "a status"
		if spots := itsWord.FindAllStringIndex(text, -1); len(spots) > 0 {
			s := spots[f.r.IntN(len(spots))]
			words := []string{"done", "[BOGUS]", "wip", "[ABANDONED]", "", "in progress", "[PLANNED] nearly"}
			out = text[:s[0]] + words[f.r.IntN(len(words))] + text[s[1]:]
		}
	case 11:
		what, out = "other line ends", strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\n", map[string]string{"\n": "\r\n", "\r\n": "\n"}[eol])
	case 12:
		f.n++
		word := fmt.Sprintf("By hand no. %d.", f.n)
		f.mine = append(f.mine, word)
		what, out = "a new task", text+strings.ReplaceAll("\n### "+word+"\n- Status: todo\n", "\n", eol)
	case 13:
		what = "copies a section"
		if i > 0 {
			parts[i] += parts[i]
			out = strings.Join(parts, "")
		}
	}
	f.did = append(f.did, fmt.Sprintf("%s (line %d, sections %d and %d)", what, at, i, j))
	// What the person has written over, by a title that is another one since.
	for _, word := range handMark.FindAllString(text, -1) {
		if !strings.Contains(out, word) {
			f.mine = slices.DeleteFunc(f.mine, func(m string) bool { return m == word })
		}
	}
	return out
}

// sectionsOf are the tasks' sections of a text behind what comes before them.
func sectionsOf(text string) []string {
	var out []string
	from := 0
	for _, at := range ofATask.FindAllStringIndex(text, -1) {
		out = append(out, text[from:at[0]])
		from = at[0]
	}
	return append(out, text[from:])
}

// settle is what the person does in the end: the fence is closed, and the check mends.
func (f *freeHand) settle() {
	if d, err := f.s.o.Disk.OpenDir(f.s.dir); err != nil { // what a kill left is put in place
		f.t.Fatal(err)
	} else {
		d.Close()
	}
	save(f.t, f.s, strings.ReplaceAll(text(f.t, f.s, "TODO.md"), openFence, "\n"))
	for tries := 0; ; tries++ {
		r, err := f.s.Fix(context.Background())
		f.did = append(f.did, fmt.Sprintf("--fix: %+v", r))
		if err == nil {
			return
		}
		// Sections that change places tear a block of code with a heading in it in two: the
		// line that is named is taken away, as a person would.
		named := openNamed.FindStringSubmatch(err.Error())
		if named == nil || tries == 5 {
			f.t.Errorf("--fix: %v", err)
			return
		}
		at, _ := strconv.Atoi(named[1])
		lines := strings.SplitAfter(text(f.t, f.s, "TODO.md"), "\n")
		f.did = append(f.did, fmt.Sprintf("takes away what --fix names, line %d: %q", at, lines[at-1]))
		lines[at-1] = ""
		save(f.t, f.s, strings.Join(lines, ""))
	}
}

var openNamed = regexp.MustCompile(`the fence or comment that begins in line (\d+) is not closed`)

func (f *freeHand) look(round int) {
	t := f.t
	rep, err := f.s.Check(context.Background())
	if err != nil {
		t.Fatalf("round %d: %v\n%s", round, err, text(t, f.s, "TODO.md"))
	}
	for _, found := range rep.Left {
		if !strings.Contains(found.What, "in the very moment of a command") {
			t.Errorf("after --fix: %s", found)
		}
	}
	b, err := f.s.Load(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	shelf, err := b.Shelf()
	if err != nil {
		t.Fatal(err)
	}
	for n, title := range f.made {
		known := slices.ContainsFunc(slices.Concat(b.State.Numbers(), shelf.State.Numbers()), func(m int) bool { return itoa(m) == n })
		if !known {
			t.Errorf("task %s, %s, was said to be made and is not there", n, title)
		}
	}
	for _, n := range b.State.Numbers() {
		if shelf.State.Tasks[n] != nil {
			t.Errorf("task %d is in the list and in the archive", n)
		}
	}
	all := text(t, f.s, "TODO.md")
	more, err := filepath.Glob(filepath.Join(f.s.dir, "TODO.md.*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range append(more, filepath.Join(f.s.dir, archiveDir, todoFile)) {
		if data, err := os.ReadFile(file); err == nil {
			all += string(data)
		} else if !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
	}
	for _, word := range f.mine {
		if !strings.Contains(all, word) {
			t.Errorf("%q is lost", word)
		}
	}
	if len(f.made) == 0 || f.n == 0 {
		t.Errorf("%d made, %d by hand: nothing was tried", len(f.made), f.n)
	}
}
