package memory

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"reprise/internal/durable"
	"reprise/internal/durable/durabletest"
	"reprise/internal/mdfile"
)

func clock() time.Time { return time.Date(2026, 11, 28, 9, 0, 0, 0, time.UTC) }

func testEntries(t *testing.T, disk durable.Disk, dir string) *Entries {
	if dir == "" {
		dir = filepath.Join(t.TempDir(), "global")
	}
	return NewEntries(EntriesOptions{Dir: dir, Now: clock, Disk: disk})
}

func addEntry(t *testing.T, e *Entries, text string, more ...func(*mdfile.Entry)) Added {
	t.Helper()
	n := mdfile.Entry{Type: mdfile.TypeLearning, Agent: "user", Source: "hand", Text: text}
	for _, m := range more {
		m(&n)
	}
	a, err := e.Add(context.Background(), n)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func activeTexts(t *testing.T, e *Entries) []string {
	t.Helper()
	list, err := e.List(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, i := range list {
		if i.Active() {
			out = append(out, i.Text)
		}
	}
	slices.Sort(out)
	return out
}

func TestEntriesLife(t *testing.T) {
	ctx := context.Background()
	for name, e := range map[string]*Entries{
		"project": testEntries(t, durable.Disk{}, ""),
		"global":  New(Options{Dir: filepath.Join(t.TempDir(), "memory"), Now: clock, Git: GitOptions{Off: true}}).Entries(),
	} {
		t.Run(name, func(t *testing.T) {
			if list, err := e.List(ctx); err != nil || len(list) != 0 {
				t.Fatalf("%v %v", list, err)
			}
			a := addEntry(t, e, "The port is 5432.")
			if again := addEntry(t, e, "The port is 5432."); !again.Existing || again.ID != a.ID {
				t.Errorf("again: %+v", again)
			}
			b, err := e.Correct(ctx, a.ID, mdfile.Entry{Text: "The port is 6543.", Source: "hand"})
			if err != nil {
				t.Fatal(err)
			}
			if got := activeTexts(t, e); !slices.Equal(got, []string{"The port is 6543."}) {
				t.Errorf("active %q", got)
			}
			old, err := e.Get(ctx, a.ID)
			if err != nil || old.Active() || old.State.By != b.ID || old.Text != "The port is 5432." {
				t.Errorf("the old one: %+v %v", old, err)
			}
			// A second correction of the old one corrects the correction.
			c, err := e.Correct(ctx, a.ID, mdfile.Entry{Text: "The port is 7654.", Source: "hand"})
			if err != nil || c.Supersedes != b.ID {
				t.Errorf("%+v %v", c, err)
			}
			if got := activeTexts(t, e); !slices.Equal(got, []string{"The port is 7654."}) {
				t.Errorf("active %q", got)
			}
			r, err := e.Retire(ctx, c.ID, "user", "no more")
			if err != nil || r.Entry.Text != "The port is 7654." {
				t.Fatalf("%+v %v", r, err)
			}
			if got := activeTexts(t, e); len(got) != 0 {
				t.Errorf("a forgotten correction brought back %q", got)
			}
			if r, err := e.Retire(ctx, c.ID, "user", ""); err != nil || !r.Existing {
				t.Errorf("again: %+v %v", r, err)
			}
			data, err := os.ReadFile(e.Path(a.File))
			if err != nil || bytes.Contains(data, []byte("7654")) || !bytes.Contains(data, []byte("5432")) {
				t.Errorf("%v\n%s", err, data)
			}
			if _, err := e.Retire(ctx, "e-nothere", "user", ""); !errors.Is(err, ErrNotFound) {
				t.Errorf("unknown id: %v", err)
			}
			if _, err := e.Correct(ctx, c.ID, mdfile.Entry{Text: "x"}); !errors.Is(err, ErrRetired) {
				t.Errorf("correcting what is gone: %v", err)
			}
		})
	}
}

func TestEntryMadeFromOneThingOnce(t *testing.T) {
	ctx := context.Background()
	e := testEntries(t, durable.Disk{}, "")
	from := func(n *mdfile.Entry) { n.Source = "pattern:p-1" }
	a := addEntry(t, e, "First wording.", from)
	if b := addEntry(t, e, "Other wording.", from); b.ID != a.ID || !b.Existing {
		t.Errorf("%+v", b)
	}
	if _, err := e.Retire(ctx, a.ID, "user", ""); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Add(ctx, mdfile.Entry{Text: "Third wording.", Source: "pattern:p-1"}); !errors.Is(err, ErrRetired) {
		t.Errorf("what was forgotten came back: %v", err)
	}
	if b := addEntry(t, e, "First wording."); b.Existing { // by hand it does
		t.Errorf("%+v", b)
	}
}

func TestEntriesKeepWhatPeopleWrite(t *testing.T) {
	ctx := context.Background()
	e := testEntries(t, durable.Disk{}, "")
	if err := os.MkdirAll(e.Dir(), 0o700); err != nil {
		t.Fatal(err)
	}
	hand := "\ufeff# Mine\r\n\r\nFirst   \r\n\r\n---\r\nid: e-0000000000000000\r\nbroken: [\r\n\r\nNot closed.\r\n"
	if err := os.WriteFile(e.Path("learnings.md"), []byte(hand), 0o600); err != nil {
		t.Fatal(err)
	}
	a := addEntry(t, e, "One.\n\nTwo.")
	b := addEntry(t, e, "Three.")
	data, _ := os.ReadFile(e.Path("learnings.md"))
	if !bytes.HasPrefix(data, []byte(hand)) || bytes.Contains(data[len(hand):], []byte("\n\n")) {
		t.Errorf("%q", data)
	}
	data = bytes.Replace(data, []byte("\r\n---\r\nid: "+b.ID), []byte("\r\nBetween, by hand.\r\n\r\n---\r\nid: "+b.ID), 1)
	if err := os.WriteFile(e.Path("learnings.md"), data, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Retire(ctx, a.ID, "user", ""); err != nil {
		t.Fatal(err)
	}
	data, _ = os.ReadFile(e.Path("learnings.md"))
	for _, want := range []string{"\ufeff# Mine\r\n\r\nFirst   \r\n", "Not closed.", "Between, by hand.", "Three."} {
		if !bytes.Contains(data, []byte(want)) {
			t.Errorf("%q is lost from %q", want, data)
		}
	}
	if bytes.Contains(data, []byte("One.")) {
		t.Error("what was retired is there")
	}
	// The text between moved before the entry that has no end: line 5 became 7.
	p, err := e.Problems(ctx)
	if err != nil || len(p) != 1 || p[0].ID != "e-0000000000000000" || p[0].Line != 7 {
		t.Errorf("%+v %v", p, err)
	}
}

func TestEntriesRefuse(t *testing.T) {
	ctx := context.Background()
	e := testEntries(t, durable.Disk{}, "")
	for name, n := range map[string]mdfile.Entry{
		"empty": {Text: " \n"}, "NUL": {Text: "a\x00b"}, "no UTF-8": {Text: "\xff"}, "long": {Text: strings.Repeat("x", MaxEntry+1)},
		"acl": {Text: "x", ACL: []string{"me"}}, "two lines": {Text: "x", Agent: "a\nstatus: retired"},
	} {
		if _, err := e.Add(ctx, n); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if _, err := os.Stat(e.Dir()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a refused entry left something: %v", err)
	}
	secret := "ghp_" + "0123456789abcdefghijABCDEFGHIJ012345"
	if a := addEntry(t, e, "The token is "+secret); strings.Contains(a.Text, secret) {
		t.Error("a secret is in an entry")
	}
	read := NewEntries(EntriesOptions{Dir: e.Dir(), Now: clock, Access: ReadAccess})
	if _, err := read.Add(ctx, mdfile.Entry{Text: "x"}); !errors.Is(err, ErrDenied) {
		t.Errorf("a run wrote memory: %v", err)
	}
	if _, err := e.Merge(ctx, "core.md", nil); !errors.Is(err, ErrName) {
		t.Errorf("%v", err)
	}
}

// Two machines' files come together in any order, and what one has forgotten
// the other does not bring back.
func TestEntriesMerge(t *testing.T) {
	ctx := context.Background()
	a, b := testEntries(t, durable.Disk{}, ""), testEntries(t, durable.Disk{}, "")
	both := addEntry(t, a, "Both.")
	addEntry(t, b, "Both.")
	addEntry(t, a, "Only a.")
	addEntry(t, b, "Only b.")
	if _, err := a.Retire(ctx, both.ID, "user", ""); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		for _, m := range [][2]*Entries{{a, b}, {b, a}} {
			data, err := os.ReadFile(m[1].Path("learnings.md"))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := m[0].Merge(ctx, "learnings.md", data); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, e := range []*Entries{a, b} {
		if got := activeTexts(t, e); !slices.Equal(got, []string{"Only a.", "Only b."}) {
			t.Errorf("%q", got)
		}
	}
	x, _ := os.ReadFile(a.Path("learnings.md"))
	y, _ := os.ReadFile(b.Path("learnings.md"))
	if !bytes.Equal(x, y) {
		t.Errorf("%s\n=====\n%s", x, y)
	}
}

func TestEntriesManyWriters(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "global")
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			e := testEntries(t, durable.Disk{}, dir)
			for i := range 6 {
				addEntry(t, e, fmt.Sprintf("Writer %d, %d.", w, i))
				addEntry(t, e, fmt.Sprintf("Shared %d.", i), func(n *mdfile.Entry) { n.Source = fmt.Sprintf("pattern:%d", i); n.Confidence = float64(w) / 10 })
			}
		})
	}
	wg.Wait()
	if got := activeTexts(t, testEntries(t, durable.Disk{}, dir)); len(got) != 4*6+6 {
		t.Errorf("%d entries: %q", len(got), got)
	}
}

// entriesScenario corrects one entry and retires another, in a file with text
// by hand.
func entriesScenario(act func(e *Entries, a, b string) error, check func(t *testing.T, e *Entries, err error, at, a, b string)) durabletest.Scenario {
	ids := func() (string, string) {
		a, _ := mdfile.Entry{Type: mdfile.TypeLearning, Agent: "user", Source: "hand", Time: clock(), Text: "First."}.Render()
		b, _ := mdfile.Entry{Type: mdfile.TypeLearning, Agent: "user", Source: "hand", Time: clock(), Text: "Second."}.Render()
		return a.ID, b.ID
	}
	return durabletest.Scenario{
		Prepare: func(t *testing.T, dir string) {
			e := testEntries(t, durable.Disk{}, dir)
			addEntry(t, e, "First.")
			addEntry(t, e, "Second.")
			if err := (durable.Disk{}).WriteFile(e.Path("decisions.md"), []byte("By hand.\n"), 0o600); err != nil {
				t.Fatal(err)
			}
		},
		Act: func(disk durable.Disk, dir string) error {
			a, b := ids()
			return act(NewEntries(EntriesOptions{Dir: dir, Now: clock, Disk: disk}), a, b)
		},
		Check: func(t *testing.T, dir string, err error, at string) {
			a, b := ids()
			check(t, testEntries(t, durable.Disk{}, dir), err, at, a, b)
		},
	}
}

func retireBoth(e *Entries, a, b string) error {
	ctx := context.Background()
	if _, err := e.Correct(ctx, a, mdfile.Entry{Text: "Corrected.", Source: "hand"}); err != nil {
		return err
	}
	_, err := e.Retire(ctx, b, "user", "")
	return err
}

func checkBoth(t *testing.T, e *Entries, err error, at, _, _ string) {
	got := strings.Join(activeTexts(t, e), " ")
	switch got {
	case "Corrected.":
	case "First. Second.", "Corrected. Second.":
		if err == nil {
			t.Errorf("%s: acknowledged and not there: %s", at, got)
		}
	default:
		t.Errorf("%s: %q", at, got)
	}
	if data, err := os.ReadFile(e.Path("decisions.md")); err != nil || string(data) != "By hand.\n" {
		t.Errorf("%s: %q %v", at, data, err)
	}
	// Doing it again ends where it should have.
	a, _ := mdfile.Entry{Type: mdfile.TypeLearning, Agent: "user", Source: "hand", Time: clock(), Text: "First."}.Render()
	b, _ := mdfile.Entry{Type: mdfile.TypeLearning, Agent: "user", Source: "hand", Time: clock(), Text: "Second."}.Render()
	if err := retireBoth(e, a.ID, b.ID); err != nil {
		t.Errorf("%s: again: %v", at, err)
	}
	if got := activeTexts(t, e); !slices.Equal(got, []string{"Corrected."}) {
		t.Errorf("%s: again: %q", at, got)
	}
}

func TestEntriesCrashAtEachStep(t *testing.T) {
	entriesScenario(retireBoth, checkBoth).CrashAtEachStep(t)
}

func TestEntriesFailAtEachStep(t *testing.T) {
	entriesScenario(retireBoth, checkBoth).FailAtEachStep(t, syscall.ENOSPC, syscall.EIO)
}
