package durable_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"reprise/internal/durable"
	"reprise/internal/durable/durabletest"
)

const byHand = "what a person saved\n"

// guarded changes two files, of which a.md is expected to hold its old text.
func guarded(disk durable.Disk, dir, old string) error {
	d, err := disk.OpenDir(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	c, err := d.Begin(context.Background())
	if err != nil {
		return err
	}
	defer c.Abort()
	c.Write("b.md", []byte(newText), 0o644)
	c.Write("a.md", []byte(newText), 0o644)
	if old == "-" {
		c.Expect("a.md", nil)
	} else {
		c.Expect("a.md", []byte(old))
	}
	return c.Commit()
}

// save is what an editor does: another file in the place of the old one.
func save(t *testing.T, path, text string) {
	t.Helper()
	put(t, path+".swp", text)
	if err := os.Rename(path+".swp", path); err != nil {
		t.Fatal(err)
	}
}

func prepared(t *testing.T, dir, old string) {
	put(t, filepath.Join(dir, "b.md"), oldText)
	if old != "-" {
		put(t, filepath.Join(dir, "a.md"), old)
	}
}

// kept are the contents that were put beside a.md.
func kept(t *testing.T, dir string) (out []string) {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		if durable.IsKept(e.Name(), "a.md") {
			out = append(out, get(t, filepath.Join(dir, e.Name())))
		}
	}
	return out
}

// The old rules hold for a guarded change, too: all or nothing, whenever it is killed or
// the disk fails.
func TestKilledChangingGuarded(t *testing.T) { crash(t, guardedScenario(oldText)) }
func TestKilledMakingGuarded(t *testing.T)   { crash(t, guardedScenario("-")) }

func guardedScenario(old string) durabletest.Scenario {
	s := changesScenario(map[string]string{"a.md": old, "b.md": oldText}, map[string]string{"a.md": newText, "b.md": newText})
	s.Act = func(disk durable.Disk, dir string) error { return guarded(disk, dir, old) }
	check := s.Check
	s.Check = func(t *testing.T, dir string, err error, at string) {
		t.Helper()
		check(t, dir, err, at)
		if got := kept(t, dir); got != nil {
			t.Errorf("%s: kept %q, which nobody saved", at, got)
		}
	}
	return s
}

func TestFailingGuarded(t *testing.T) {
	guardedScenario(oldText).FailAtEachStep(t, os.ErrPermission)
}

// Who saves the file in the middle of a change, at whichever step, is not overwritten:
// either the change is refused and nothing of it is there, or what was saved came after
// it. An editor that writes into the file that it has open is in no other position.
func TestSavedAtEachStep(t *testing.T) {
	for _, old := range []string{oldText, "-"} {
		for n, refusals := 0, 0; ; n++ {
			dir := t.TempDir()
			prepared(t, dir, old)
			a, b := filepath.Join(dir, "a.md"), filepath.Join(dir, "b.md")
			at, saved := 0, false
			disk := durable.NewDisk(func(durable.Step) *durable.Fault {
				if at++; at == n+1 {
					saved = true
					save(t, a, byHand)
				}
				return nil
			})
			err := guarded(disk, dir, old)
			if !saved {
				if refusals == 0 || n < 5 {
					t.Errorf("from %q: refused at %d of %d steps", old, refusals, n)
				}
				break
			}
			if get(t, a) != byHand || kept(t, dir) != nil {
				t.Errorf("from %q, saved before step %d: %q, kept %q, %v", old, n, get(t, a), kept(t, dir), err)
			}
			switch {
			case err == nil && get(t, b) == newText:
			case errors.Is(err, durable.ErrChanged) && get(t, b) == oldText:
				refusals++
			default:
				t.Errorf("from %q, saved before step %d: %v, the other file %q", old, n, err, get(t, b))
			}
			if list, err := os.ReadDir(filepath.Join(dir, ".reprise-journal")); err != nil || len(list) != 1 {
				t.Errorf("saved before step %d: left in the journal %v, %v", n, list, err)
			}
		}
	}
}

// An editor that had the file open and writes into it after it was put aside: what it
// wrote is kept beside.
func TestWrittenIntoAside(t *testing.T) {
	dir := t.TempDir()
	prepared(t, dir, oldText)
	f, err := os.OpenFile(filepath.Join(dir, "a.md"), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	disk := durable.NewDisk(func(s durable.Step) *durable.Fault {
		if s.Op == durable.OpRename && strings.HasSuffix(s.Path, "b.md") {
			if _, err := f.WriteString(byHand); err != nil {
				t.Error(err)
			}
		}
		return nil
	})
	if err := guarded(disk, dir, oldText); err != nil {
		t.Fatal(err)
	}
	if got := kept(t, dir); get(t, filepath.Join(dir, "a.md")) != newText || len(got) != 1 || got[0] != oldText+byHand {
		t.Skipf("files cannot change places here: kept %q", got)
	}
}

// Who saves the file after a crash, before the next command, keeps what was saved.
func TestSavedAfterKill(t *testing.T) {
	dropped := 0
	s := durabletest.Scenario{
		Prepare: func(t *testing.T, dir string) { prepared(t, dir, oldText) },
		Act:     func(disk durable.Disk, dir string) error { return guarded(disk, dir, oldText) },
		Check: func(t *testing.T, dir string, err error, at string) {
			t.Helper()
			a, b := filepath.Join(dir, "a.md"), filepath.Join(dir, "b.md")
			save(t, a, byHand)
			d := open(t, dir)
			if get(t, a) != byHand || kept(t, dir) != nil {
				t.Errorf("%s: lost what was saved: %q, kept %q", at, get(t, a), kept(t, dir))
			}
			names, derr := d.Dropped()
			if derr != nil {
				t.Fatal(derr)
			}
			if len(names) > 0 {
				if dropped++; get(t, b) != oldText {
					t.Errorf("%s: dropped, and part of it done", at)
				}
			}
			if err := d.ForgetDropped(); err != nil {
				t.Fatal(err)
			}
			if names, err := d.Dropped(); err != nil || names != nil {
				t.Errorf("%s: not forgotten: %v, %v", at, names, err)
			}
		},
	}
	s.CrashAtEachStep(t)
	if dropped == 0 {
		t.Error("no change was dropped")
	}
}

// A journal of an older program, without what files held before, is carried out as ever.
func TestOlderJournal(t *testing.T) {
	dir := t.TempDir()
	put(t, filepath.Join(dir, "f"), oldText)
	put(t, filepath.Join(dir, ".reprise-journal", "a.new"), newText)
	put(t, filepath.Join(dir, ".reprise-journal", "journal.json"),
		`{"v":1,"id":"a","edits":[{"name":"f","staged":"a.new","sha256":"`+sum(newText)+`"}]}`)
	open(t, dir)
	if got := get(t, filepath.Join(dir, "f")); got != newText {
		t.Errorf("%q", got)
	}
}

func sum(text string) string {
	h := sha256.Sum256([]byte(text))
	return hex.EncodeToString(h[:])
}
