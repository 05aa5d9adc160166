package durable_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"reprise/internal/durable"
	"reprise/internal/durable/durabletest"
)

// The scenarios: each is run with a kill -9 before each of its steps and in the
// middle of each write, and with each step failing.

const (
	oldText = "the old content\n"
	newText = "the new content, which is longer\n"
)

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// get is a file's content; a file that is not there is "-".
func get(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "-"
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// noTemps fails when temporary files are left that are younger than they may
// be, after removing those that a killed process may leave.
func noTemps(t *testing.T, dir string, err error, at string) {
	t.Helper()
	if err == durabletest.ErrDied {
		if _, err := durable.RemoveStale(dir, time.Now().Add(time.Hour)); err != nil {
			t.Errorf("%s: %v", at, err)
		}
	}
	list, rerr := os.ReadDir(dir)
	if rerr != nil {
		t.Fatal(rerr)
	}
	for _, e := range list {
		if durable.IsTemp(e.Name()) {
			t.Errorf("%s: %s is left", at, e.Name())
		}
	}
}

func writeScenario(old string, write func(durable.Disk, string) error) durabletest.Scenario {
	return durabletest.Scenario{
		Prepare: func(t *testing.T, dir string) {
			if old != "-" {
				put(t, filepath.Join(dir, "file"), old)
			}
		},
		Act: func(disk durable.Disk, dir string) error { return write(disk, filepath.Join(dir, "file")) },
		Check: func(t *testing.T, dir string, err error, at string) {
			t.Helper()
			got := get(t, filepath.Join(dir, "file"))
			if got != old && got != newText || err == nil && got != newText {
				t.Errorf("%s: error %v, content %q", at, err, got)
			}
			noTemps(t, dir, err, at)
		},
	}
}

func writeFile(disk durable.Disk, path string) error {
	return disk.WriteFile(path, []byte(newText), 0o644)
}

func writeFileHot(disk durable.Disk, path string) error {
	return disk.WriteFileHot(path, []byte(newText), 0o644)
}

// appendScenario appends to a log that has a torn tail.
func appendScenario(old, torn string) durabletest.Scenario {
	const line = "the new line\n"
	return durabletest.Scenario{
		Prepare: func(t *testing.T, dir string) {
			if old+torn != "" {
				put(t, filepath.Join(dir, "log"), old+torn)
			}
		},
		Act: func(disk durable.Disk, dir string) error {
			return disk.Append(context.Background(), filepath.Join(dir, "log"), []byte(line), 0o600)
		},
		Check: func(t *testing.T, dir string, err error, at string) {
			t.Helper()
			path := filepath.Join(dir, "log")
			before := get(t, path)
			if err == nil && before != old+line {
				t.Errorf("%s: %q", at, before)
			}
			if err := durable.Append(path, []byte("after\n"), 0o600); err != nil {
				t.Errorf("%s: append afterwards: %v", at, err)
			}
			got := get(t, path)
			if got != old+"after\n" && got != old+line+"after\n" {
				t.Errorf("%s: error %v, then %q", at, err, got)
			}
			if kept := get(t, path+".torn"); torn != "" && !strings.Contains(kept, torn+"\n") {
				t.Errorf("%s: torn bytes are lost: %q", at, kept)
			}
			// What was there before the next append is either in the log or set aside.
			for l := range strings.SplitAfterSeq(before, "\n") {
				if l != "" && !strings.Contains(got, l) && !strings.Contains(get(t, path+".torn"), l) {
					t.Errorf("%s: %q is gone", at, l)
				}
			}
			if err != nil && err != durabletest.ErrDied && strings.Contains(got, line) && !strings.Contains(err.Error(), "added, but") {
				t.Errorf("%s: said to have failed (%v), and is there", at, err)
			}
		},
	}
}

func textScenario() durabletest.Scenario {
	return durabletest.Scenario{
		Prepare: func(t *testing.T, dir string) { put(t, filepath.Join(dir, "text"), oldText+"no newline") },
		Act: func(disk durable.Disk, dir string) error {
			return disk.AppendText(context.Background(), filepath.Join(dir, "text"), []byte(newText), 0o600)
		},
		Check: func(t *testing.T, dir string, err error, at string) {
			t.Helper()
			got, old := get(t, filepath.Join(dir, "text")), oldText+"no newline"
			switch {
			case err == nil && got != old+newText,
				err != nil && err != durabletest.ErrDied && got != old,
				!strings.HasPrefix(old+newText, got) || len(got) < len(old):
				t.Errorf("%s: error %v, %q", at, err, got)
			}
		},
	}
}

// changeScenario changes a file, makes two (one in a new directory) and removes
// one, at once.
func changeScenario() durabletest.Scenario {
	return changesScenario(map[string]string{"a.md": oldText, "sub/b.md": "-", "new/dir/c.md": "-", "d.md": oldText},
		map[string]string{"a.md": newText, "sub/b.md": newText, "new/dir/c.md": "", "d.md": "-"})
}

func changesScenario(before, after map[string]string) durabletest.Scenario {
	is := func(t *testing.T, dir string, want map[string]string) bool {
		for name, text := range want {
			if get(t, filepath.Join(dir, filepath.FromSlash(name))) != text {
				return false
			}
		}
		return true
	}
	return durabletest.Scenario{
		Prepare: func(t *testing.T, dir string) {
			for name, text := range before {
				if text != "-" {
					put(t, filepath.Join(dir, filepath.FromSlash(name)), text)
				}
			}
		},
		Act: func(disk durable.Disk, dir string) error {
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
			for name, text := range after {
				if text == "-" {
					c.Remove(name)
				} else {
					c.Write(name, []byte(text), 0o644)
				}
			}
			if len(after) > 1 {
				c.Remove("never-there.md")
			}
			return c.Commit()
		},
		Check: func(t *testing.T, dir string, err error, at string) {
			t.Helper()
			if err == nil && !is(t, dir, after) {
				t.Errorf("%s: success, and not all is new", at)
			}
			if err != nil && err != durabletest.ErrDied && !errors.Is(err, durable.ErrPending) && !is(t, dir, before) {
				t.Errorf("%s: failed (%v), and not all is old", at, err)
			}
			d, oerr := durable.OpenDir(dir)
			if oerr != nil {
				t.Fatalf("%s: open again: %v", at, oerr)
			}
			defer d.Close()
			old, all := is(t, dir, before), is(t, dir, after)
			if !old && !all {
				t.Errorf("%s: error %v: neither all old nor all new after recovery", at, err)
			}
			if errors.Is(err, durable.ErrPending) && !all {
				t.Errorf("%s: pending, and not done by the next open", at)
			}
			c, berr := d.Begin(context.Background())
			if berr != nil {
				t.Fatalf("%s: begin again: %v", at, berr)
			}
			c.Write("a.md", []byte("later\n"), 0o644)
			c.Write("other.md", nil, 0o644)
			if err := c.Commit(); err != nil {
				t.Errorf("%s: a change afterwards: %v", at, err)
			}
			if got := get(t, filepath.Join(dir, "a.md")); got != "later\n" {
				t.Errorf("%s: %q after a later change", at, got)
			}
			list, rerr := os.ReadDir(filepath.Join(dir, ".reprise-journal"))
			if rerr != nil || len(list) != 1 || list[0].Name() != "lock" {
				t.Errorf("%s: in the journal directory: %v %v", at, list, rerr)
			}
		},
	}
}

func moveScenario() durabletest.Scenario {
	return durabletest.Scenario{
		Prepare: func(t *testing.T, dir string) { put(t, filepath.Join(dir, "a", "f"), oldText) },
		Act: func(disk durable.Disk, dir string) error {
			return errors.Join(disk.MkdirAll(filepath.Join(dir, "b", "c"), 0o755),
				disk.Rename(filepath.Join(dir, "a", "f"), filepath.Join(dir, "b", "c", "g")))
		},
		Check: func(t *testing.T, dir string, err error, at string) {
			t.Helper()
			from, to := get(t, filepath.Join(dir, "a", "f")), get(t, filepath.Join(dir, "b", "c", "g"))
			if from+to != oldText+"-" && from+to != "-"+oldText || err == nil && to != oldText {
				t.Errorf("%s: error %v, %q and %q", at, err, from, to)
			}
		},
	}
}

func removeScenario() durabletest.Scenario {
	return durabletest.Scenario{
		Prepare: func(t *testing.T, dir string) {
			put(t, filepath.Join(dir, "f"), oldText)
			put(t, filepath.Join(dir, "d", "e", "f"), oldText)
		},
		Act: func(disk durable.Disk, dir string) error {
			return errors.Join(disk.Remove(filepath.Join(dir, "f")), disk.RemoveAll(filepath.Join(dir, "d")))
		},
		Check: func(t *testing.T, dir string, err error, at string) {
			t.Helper()
			f, d := get(t, filepath.Join(dir, "f")), get(t, filepath.Join(dir, "d", "e", "f"))
			if err == nil && f+d != "--" || f != "-" && f != oldText || d != "-" && d != oldText {
				t.Errorf("%s: error %v, %q and %q", at, err, f, d)
			}
		},
	}
}

// severalScenario replaces a file, makes one in a new directory, and a directory.
func severalScenario() durabletest.Scenario {
	return durabletest.Scenario{
		Prepare: func(t *testing.T, dir string) { put(t, filepath.Join(dir, "a"), oldText) },
		Act: func(disk durable.Disk, dir string) error {
			return disk.WriteSeveral([]durable.File{
				{Path: filepath.Join(dir, "a"), Data: []byte(newText), Perm: 0o644},
				{Path: filepath.Join(dir, "new", "b"), Data: []byte(newText), Perm: 0o600},
			}, 0o700, filepath.Join(dir, "d", "e"))
		},
		Check: func(t *testing.T, dir string, err error, at string) {
			t.Helper()
			a, b := get(t, filepath.Join(dir, "a")), get(t, filepath.Join(dir, "new", "b"))
			made, _ := os.Stat(filepath.Join(dir, "d", "e"))
			if a != oldText && a != newText || b != "-" && b != newText || err == nil && (a+b != newText+newText || made == nil) {
				t.Errorf("%s: error %v, %q and %q, directory %v", at, err, a, b, made)
			}
			if fi, serr := os.Stat(filepath.Join(dir, "a")); serr != nil || fi.Mode().Perm() != 0o600 {
				t.Errorf("%s: %v, %v", at, fi, serr)
			}
			noTemps(t, dir, err, at)
		},
	}
}

func crash(t *testing.T, s durabletest.Scenario) {
	t.Parallel()
	s.CrashAtEachStep(t)
}

func TestKilledWritingNewFile(t *testing.T)  { crash(t, writeScenario("-", writeFile)) }
func TestKilledReplacingFile(t *testing.T)   { crash(t, writeScenario(oldText, writeFile)) }
func TestKilledWritingHotFile(t *testing.T)  { crash(t, writeScenario(oldText, writeFileHot)) }
func TestKilledAppendingFirst(t *testing.T)  { crash(t, appendScenario("", "")) }
func TestKilledAppending(t *testing.T)       { crash(t, appendScenario("a\nb\n", "")) }
func TestKilledRepairing(t *testing.T)       { crash(t, appendScenario("a\nb\n", "to\x00rn")) }
func TestKilledRepairingFirst(t *testing.T)  { crash(t, appendScenario("", "torn")) }
func TestKilledAppendingText(t *testing.T)   { crash(t, textScenario()) }
func TestKilledWritingSeveral(t *testing.T)  { crash(t, severalScenario()) }
func TestKilledChangingSeveral(t *testing.T) { crash(t, changeScenario()) }
func TestKilledChangingOne(t *testing.T) {
	crash(t, changesScenario(map[string]string{"sub/a.md": "-"}, map[string]string{"sub/a.md": newText}))
}
func TestKilledRemovingOne(t *testing.T) {
	crash(t, changesScenario(map[string]string{"a.md": oldText}, map[string]string{"a.md": "-"}))
}
func TestKilledMoving(t *testing.T)   { crash(t, moveScenario()) }
func TestKilledRemoving(t *testing.T) { crash(t, removeScenario()) }

func TestFailingDisk(t *testing.T) {
	for name, s := range map[string]durabletest.Scenario{
		"write new": writeScenario("-", writeFile), "replace": writeScenario(oldText, writeFile),
		"hot": writeScenario(oldText, writeFileHot), "append first": appendScenario("", ""),
		"append": appendScenario("a\nb\n", ""), "repair": appendScenario("a\n", "torn"),
		"text": textScenario(), "change": changeScenario(),
		"change one": changesScenario(map[string]string{"a.md": oldText}, map[string]string{"a.md": newText}),
		"remove one": changesScenario(map[string]string{"a.md": oldText}, map[string]string{"a.md": "-"}),
		"several":    severalScenario(),
		"move":       moveScenario(), "remove": removeScenario(),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s.FailAtEachStep(t, syscall.ENOSPC, syscall.EIO)
		})
	}
}

func TestFullDisk(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	line := bytes.Repeat([]byte("x"), 99)
	line = append(line, '\n')
	disk, _ := durabletest.Full(1050, syscall.ENOSPC)
	var acked int
	for range 20 {
		err := disk.Append(context.Background(), path, line, 0o600)
		if err == nil {
			acked++
		} else if !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), path) {
			t.Errorf("error %v", err)
		}
	}
	if got := get(t, path); acked != 10 || got != strings.Repeat(string(line), 10) {
		t.Errorf("%d acknowledged, %d bytes", acked, len(got))
	}
	err := disk.WriteFile(path, []byte("y"), 0o600)
	if !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "not changed") || !strings.HasPrefix(get(t, path), "xxx") {
		t.Errorf("error %v", err)
	}
}
