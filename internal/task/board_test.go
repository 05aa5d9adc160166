package task

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"reprise/internal/durable"
	"reprise/internal/durable/durabletest"
)

func itoa(n int) string { return strconv.Itoa(n) }

func clock() time.Time { return time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC) }

func storeIn(dir string, disk durable.Disk) *Store { return New(dir, Options{Disk: disk, Now: clock}) }

func ptr[T any](v T) *T { return &v }

func change(t *testing.T, s *Store, fn func(*Board) error) *Board {
	t.Helper()
	b, err := s.Change(context.Background(), fn)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func add(titles ...string) func(*Board) error {
	return func(b *Board) error {
		for _, title := range titles {
			if _, err := b.Add(Draft{Title: &title}); err != nil {
				return err
			}
		}
		return nil
	}
}

func status(n int, to Status, reason string) func(*Board) error {
	return func(b *Board) error { return b.SetStatus(n, to, reason) }
}

func text(t *testing.T, s *Store, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(s.Dir(), name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func write(t *testing.T, s *Store, name, text string) {
	t.Helper()
	if err := os.MkdirAll(s.Dir(), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(s.Dir(), name), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestTaskFromBeginToEnd(t *testing.T) {
	s := storeIn(t.TempDir(), unsynced())
	change(t, s, func(b *Board) error {
		_, err := b.Add(Draft{Title: ptr("Fix the login"), Priority: ptr("High"), Language: ptr("Go"), Effort: ptr("3 hours"), Body: "Users are thrown out."})
		return err
	})
	change(t, s, add("Tell the users"))
	change(t, s, func(b *Board) error { return b.Edit(2, Draft{DependsOn: &[]int{1}}) })
	change(t, s, status(1, InProgress, ""))
	change(t, s, status(1, Completed, ""))
	change(t, s, status(2, Blocked, "no list of\nusers"))
	want := `# TODO

### 1. Fix the login

- **Effort**: 3 hours
- **Status**: [COMPLETED]
- **Priority**: high
- **Language**: go
- **Started**: 2026-11-28T12:00:00Z
- **Completed**: 2026-11-28T12:00:00Z

Users are thrown out.

### 2. Tell the users

- **Status**: [BLOCKED]
- **Priority**: medium
- **Language**: general
- **Depends on**: 1
- **Blocked by**: no list of users
`
	if got := text(t, s, "TODO.md"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	state := text(t, s, "state.json")
	for _, part := range []string{`"next_number": 3`, `"slug": "fix_the_login"`, `"effort_hours": 3`, `"completed": "2026-11-28T12:00:00Z"`, `"reason": "no list of users"`, `"status_before": "not_started"`} {
		if !strings.Contains(state, part) {
			t.Errorf("state.json has no %s:\n%s", part, state)
		}
	}
	if r, err := s.Check(context.Background()); err != nil || !r.Agrees() {
		t.Errorf("%+v, %v", r, err)
	}
	if _, err := os.Stat(filepath.Join(s.Dir(), journalDir, ".gitignore")); err != nil {
		t.Error(err)
	}
}

func TestTransitions(t *testing.T) {
	legal := map[[2]Status]bool{}
	for from, to := range next {
		for _, s := range to {
			legal[[2]Status{from, s}] = true
		}
	}
	for _, from := range Statuses() {
		for _, to := range Statuses() {
			s := storeIn(t.TempDir(), unsynced())
			write(t, s, "TODO.md", "### 1. a\n- **Status**: "+from.Marker()+"\n")
			_, err := s.Change(context.Background(), status(1, to, "why"))
			var te *TransitionError
			switch {
			case from == to || legal[[2]Status{from, to}]:
				if err != nil {
					t.Errorf("%s → %s: %v", from, to, err)
				}
				if got := text(t, s, "TODO.md"); !strings.Contains(got, to.Marker()) {
					t.Errorf("%s → %s: %s", from, to, got)
				}
			case !errors.As(err, &te) || !strings.Contains(err.Error(), to.Words()):
				t.Errorf("%s → %s: %v", from, to, err)
			case !strings.Contains(text(t, s, "TODO.md"), from.Marker()):
				t.Errorf("%s → %s was refused and written", from, to)
			}
		}
	}
	for text, want := range map[string]Status{"[IN PROGRESS]": InProgress, "done": Completed, "[x]": Completed, " In-Progress ": InProgress, "[BLOCKED] by them": Blocked, "*planned*": Planned, "not_started": NotStarted, "?": "", "": ""} {
		if got, ok := ParseStatus(text); got != want || ok != (want != "") {
			t.Errorf("%q: %q", text, got)
		}
	}
}

func TestRecover(t *testing.T) {
	for _, c := range []struct {
		path []Status
		want Status
	}{
		{[]Status{Planned, Blocked}, Planned},
		{[]Status{Researched, Abandoned}, Researched},
		{[]Status{Blocked, Abandoned}, NotStarted},
		{[]Status{InProgress, Completed}, Partial},
		{[]Status{InProgress}, NotStarted},
		{[]Status{InProgress, Partial}, Partial},
	} {
		s := storeIn(t.TempDir(), unsynced())
		change(t, s, add("a"))
		for _, to := range c.path {
			change(t, s, status(1, to, "x"))
		}
		b := change(t, s, func(b *Board) error { return b.Recover(1) })
		if got := b.State.Tasks[1].Status; got != c.want || !strings.Contains(text(t, s, "TODO.md"), c.want.Marker()) {
			t.Errorf("%v: %s", c.path, got)
		}
	}
	s := storeIn(t.TempDir(), unsynced())
	change(t, s, add("a"))
	if _, err := s.Change(context.Background(), func(b *Board) error { return b.Recover(1) }); err == nil {
		t.Error("nothing was there to recover")
	}
}

// What a person did to TODO.md is understood, and nothing of theirs is lost.
func TestHandEdits(t *testing.T) {
	begin := func(t *testing.T) *Store {
		s := storeIn(t.TempDir(), unsynced())
		change(t, s, add("One", "Two", "Three"))
		change(t, s, func(b *Board) error { return b.Edit(3, Draft{DependsOn: &[]int{1}}) })
		return s
	}
	for _, c := range []struct {
		name, from, to string
		taken, left    []string
		check          func(b *Board) bool
	}{
		{"a status", "2. Two\n\n- **Status**: [NOT STARTED]", "2. Two\n\n- **Status**: done", []string{"status not started → completed"}, nil,
			func(b *Board) bool { return b.State.Tasks[2].Status == Completed && b.State.Tasks[2].Completed != nil }},
		{"a title", "1. One", "1. Only one", []string{`title "One" → "Only one"`}, nil, func(b *Board) bool { return b.State.Tasks[1].Slug == "one" }},
		{"a priority", "- **Priority**: medium", "- Priority: CRITICAL", []string{"priority medium → critical"}, nil, func(b *Board) bool { return b.State.Tasks[1].Priority == "critical" }},
		{"a new task", "### 2. Two", "### Brand new\n- **Priority**: low\n\nwords\n\n### 2. Two", []string{"new: Brand new"}, nil,
			func(b *Board) bool { return b.State.Tasks[4].Title == "Brand new" && b.State.Next == 5 }},
		{"a new task with its number", "### 2. Two", "### 40. Forty\n\n### 2. Two", []string{"new: Forty"}, nil, func(b *Board) bool { return b.State.Next == 41 }},
		{"another order", "### 1. One", "### 1. One", nil, nil, func(b *Board) bool { return true }},
		{"what it depends on", "- **Depends on**: 1", "- **Depends on**: 1, 2", []string{"depends on 1 → 1, 2"}, nil, func(b *Board) bool { return slices.Equal(b.State.Tasks[3].DependsOn, []int{1, 2}) }},
		{"an unknown status", "2. Two\n\n- **Status**: [NOT STARTED]", "2. Two\n\n- **Status**: [PURPLE]", nil, []string{"none of [NOT STARTED]"}, nil},
		{"an unknown priority", "- **Priority**: medium", "- **Priority**: purple", nil, []string{"none of critical"}, nil},
		{"a number twice", "### 2. Two", "### 2. Copy\n\n### 2. Two", nil, []string{"stands in line"}, func(b *Board) bool { return b.State.Tasks[2].Title == "Two" }},
		{"a task that is gone", "### 2. Two", "#### 2. Two", nil, []string{"does not stand in TODO.md"}, nil},
		{"a circle", "### 1. One\n", "### 1. One\n- **Depends on**: 3\n", nil, []string{"wait for each other: 1 → 3 → 1"}, nil},
	} {
		s := begin(t)
		before := text(t, s, "TODO.md")
		edited := strings.Replace(before, c.from, c.to, 1)
		if c.name == "another order" {
			i, j := strings.Index(before, "### 1"), strings.Index(before, "### 3")
			edited = before[:i] + before[j:] + "\n" + before[i:j]
		} else if edited == before {
			t.Fatalf("%s: nothing was edited", c.name)
		}
		write(t, s, "TODO.md", edited)
		r, err := s.Check(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(r.Left); text(t, s, "TODO.md") != edited || !containsAll(got, slices.Concat(c.taken, c.left)) || len(c.taken)+len(c.left) == 0 != r.Agrees() {
			t.Errorf("%s: check says %s", c.name, got)
		}
		b := change(t, s, func(*Board) error { return nil })
		if c.check != nil && !c.check(b) {
			t.Errorf("%s: %s", c.name, text(t, s, "state.json"))
		}
		lost(t, []byte(edited), []byte(text(t, s, "TODO.md")))
		if r, err = s.Check(context.Background()); err != nil || len(r.Left) != len(c.left) {
			t.Errorf("%s: afterwards %v, %v", c.name, r.Left, err)
		}
		if r, err = s.Fix(context.Background()); err != nil || c.name != "a circle" && len(r.Left) > 0 || len(r.Mended) < len(c.left) && c.name != "a circle" {
			t.Errorf("%s: fixed %+v, %v", c.name, r, err)
		}
		if r, err = s.Check(context.Background()); err != nil || c.name != "a circle" && !r.Agrees() {
			t.Errorf("%s: after the fix %+v, %v", c.name, r, err)
		}
	}
}

func containsAll(text string, parts []string) bool {
	for _, p := range parts {
		if !strings.Contains(text, p) {
			return false
		}
	}
	return true
}

func TestDamagedState(t *testing.T) {
	s := storeIn(t.TempDir(), unsynced())
	change(t, s, add("One", "Two"))
	change(t, s, status(2, Planned, ""))
	write(t, s, "state.json", `{"v":1,"tasks":{"1":{"title":7}}}`)
	if _, err := s.Change(context.Background(), add("x")); !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "line 1, column") {
		t.Fatal(err)
	}
	r, err := s.Fix(context.Background())
	if err != nil || r.Damaged == "" || len(r.Mended) < 2 {
		t.Fatalf("%+v, %v", r, err)
	}
	if data, err := os.ReadFile(r.Damaged); err != nil || !bytes.Contains(data, []byte(`"title":7`)) {
		t.Errorf("%s, %v", data, err)
	}
	if b := change(t, s, add("Three")); b.State.Tasks[2].Status != Planned || b.State.Tasks[3].Title != "Three" {
		t.Error(text(t, s, "state.json"))
	}
	for name, content := range map[string]string{"TODO.md": "### 1. a\n\xff\n", "state.json": `{"v":9}`} {
		old := text(t, s, name)
		write(t, s, name, content)
		if _, err := s.Change(context.Background(), add("x")); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
		if text(t, s, name) != content {
			t.Errorf("%s was written over", name)
		}
		write(t, s, name, old)
	}
}

func TestStateKeepsWhatItDoesNotKnow(t *testing.T) {
	s := storeIn(t.TempDir(), unsynced())
	write(t, s, "TODO.md", "### 2. a\n- **Status**: [PLANNED]\n")
	write(t, s, "state.json", `{"mine":[1,2],"tasks":{"2":{"title":"a","status":"planned","slug":"a","theirs":{"x":1}}}}`)
	change(t, s, status(2, InProgress, ""))
	state := strings.Join(strings.Fields(text(t, s, "state.json")), "")
	if !containsAll(state, []string{`"mine":[1,2]`, `"theirs":{"x":1}`, `"next_number":3`, `"in_progress"`}) {
		t.Error(state)
	}
}

// A person who saves TODO.md in the middle of a change is not overwritten.
func TestSavedInTheMiddle(t *testing.T) {
	s := storeIn(t.TempDir(), unsynced())
	change(t, s, add("One"))
	times := 0
	change(t, s, func(b *Board) error {
		if times++; times == 1 {
			write(t, s, "TODO.md", text(t, s, "TODO.md")+"\nSaved meanwhile.\n")
		}
		return b.SetStatus(1, Planned, "")
	})
	if got := text(t, s, "TODO.md"); !containsAll(got, []string{"Saved meanwhile.", "[PLANNED]"}) || times != 2 {
		t.Errorf("%d times:\n%s", times, got)
	}
	_, err := s.Change(context.Background(), func(b *Board) error {
		write(t, s, "TODO.md", text(t, s, "TODO.md")+".")
		return b.SetStatus(1, InProgress, "")
	})
	if !errors.Is(err, ErrBusy) {
		t.Error(err)
	}
}

var changing = durabletest.Scenario{
	Prepare: func(t *testing.T, dir string) {
		s := storeIn(dir, durable.Disk{})
		change(t, s, add("One", "Two"))
		write(t, s, "TODO.md", text(t, s, "TODO.md")+"\nBy hand.\n\n### Also\n- **Status**: todo\n")
	},
	Act: func(disk durable.Disk, dir string) error {
		_, err := storeIn(dir, disk).Change(context.Background(), func(b *Board) error {
			b.Write("001_one/plans/implementation-001.md", []byte("# Plan\n"))
			if err := add("Four")(b); err != nil {
				return err
			}
			return b.SetStatus(1, Planned, "")
		})
		return err
	},
	Check: func(t *testing.T, dir string, err error, at string) {
		s := storeIn(dir, durable.Disk{})
		r, cerr := s.Check(context.Background())
		if cerr != nil {
			t.Fatalf("%s: %v", at, cerr)
		}
		b, lerr := s.Load(context.Background())
		if lerr != nil {
			t.Fatalf("%s: %v", at, lerr)
		}
		done := b.State.Tasks[1].Status == Planned
		_, perr := os.Stat(filepath.Join(s.Dir(), "001_one/plans/implementation-001.md"))
		if done != (perr == nil) || done != r.Agrees() || done != (b.State.Tasks[4] != nil) || err == nil && !done {
			t.Errorf("%s: in part: planned %v, its plan %v, %v", at, done, perr, r.Left)
		}
		if got := text(t, s, "TODO.md"); !strings.Contains(got, "By hand.") {
			t.Errorf("%s: lost what was written by hand:\n%s", at, got)
		}
	},
}

func TestChangeKilledAtEachStep(t *testing.T) { changing.CrashAtEachStep(t) }

// Four people, programs and editors at once: what the files say agrees in the end,
// no number is given twice, no line of a person is lost.
func TestAnyOrder(t *testing.T) {
	seeds := uint64(4)
	if os.Getenv("REPRISE_LONG_TESTS") != "" {
		seeds = 1000
	}
	for seed := range seeds {
		r := rand.New(rand.NewPCG(seed, 1))
		s := storeIn(t.TempDir(), unsynced())
		hand, given := []string{}, map[int]string{}
		for step := range 40 {
			b, err := s.Load(context.Background())
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			numbers := b.State.Numbers()
			pick := func() int {
				if len(numbers) == 0 {
					return 1
				}
				return numbers[r.IntN(len(numbers))]
			}
			switch r.IntN(5) {
			case 0:
				change(t, s, func(b *Board) error {
					task, err := b.Add(Draft{Title: ptr("Task of step " + itoa(step))})
					if err == nil && given[task.Number] != "" {
						t.Fatalf("seed %d: number %d was given twice: %s and %s", seed, task.Number, given[task.Number], task.Title)
					}
					return err
				})
			case 1:
				n, to := pick(), Statuses()[r.IntN(8)]
				_, _ = s.Change(context.Background(), status(n, to, "w"))
			case 2: // an editor
				old, _ := os.ReadFile(filepath.Join(s.Dir(), "TODO.md"))
				line := "a line of step " + itoa(step)
				hand = append(hand, line)
				lines := strings.SplitAfter(string(old), "\n")
				at := r.IntN(len(lines))
				for at < len(lines) && strings.HasPrefix(strings.TrimSpace(lines[at]), "- **") {
					at++
				}
				write(t, s, "TODO.md", strings.Join(slices.Insert(lines, at, "\n"+line+"\n\n"), ""))
			case 3:
				old, _ := os.ReadFile(filepath.Join(s.Dir(), "TODO.md"))
				write(t, s, "TODO.md", string(old)+"\n### By hand "+itoa(step)+"\n- **Status**: todo\n")
			case 4:
				if _, err := s.Fix(context.Background()); err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
			}
			if b, err = s.Load(context.Background()); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			for n, task := range b.State.Tasks {
				if given[n] == "" {
					given[n] = task.Title
				}
			}
		}
		if _, err := s.Fix(context.Background()); err != nil {
			t.Fatal(err)
		}
		if r, err := s.Check(context.Background()); err != nil || !r.Agrees() {
			t.Errorf("seed %d: %+v, %v", seed, r, err)
		}
		got, _ := os.ReadFile(filepath.Join(s.Dir(), "TODO.md"))
		for _, line := range hand {
			if !bytes.Contains(got, []byte(line+"\n")) {
				t.Errorf("seed %d: lost %q", seed, line)
			}
		}
	}
}

func TestSlugAndHours(t *testing.T) {
	for title, want := range map[string]string{"Fix the Login!": "fix_the_login", "日本語 のテスト": "日本語_のテスト", "???": "task", "../../etc": "etc", strings.Repeat("long ", 30): "long_long_long_long_long_long_long_long_long_long"} {
		if got := Slug(title); got != want {
			t.Errorf("%q: %q, want %q", title, got, want)
		}
	}
	for text, want := range map[string]float64{"3 hours": 3, "90 min": 1.5, "2 days": 16, "1-2 h": 2, "1 week": 40, "14": 14, "some": 0, "": 0, "1.5h": 1.5, "~4 hours": 4} {
		if got := hours(text); got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}

// An edit to what a task is already changes no byte, however much later it comes: there
// would be something to commit.
func TestEditToTheSame(t *testing.T) {
	now := clock()
	s := New(t.TempDir(), Options{Disk: unsynced(), Now: func() time.Time { now = now.Add(time.Hour); return now }})
	change(t, s, add("First"))
	before := text(t, s, "state.json") + text(t, s, "TODO.md")
	title, priority, effort := "First", "medium", "2 h"
	edit := func(d Draft) { change(t, s, func(b *Board) error { return b.Edit(1, d) }) }
	edit(Draft{Title: &title, Priority: &priority})
	if got := text(t, s, "state.json") + text(t, s, "TODO.md"); got != before {
		t.Errorf("it is now\n%s\nand was\n%s", got, before)
	}
	edit(Draft{Effort: &effort})
	if got := text(t, s, "state.json") + text(t, s, "TODO.md"); got == before {
		t.Error("an edit that changes something is not written")
	}
}
