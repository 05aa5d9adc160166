package durable_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"reprise/internal/durable"
)

func TestWriteFileKeepsPermissions(t *testing.T) {
	for _, perm := range []fs.FileMode{0o600, 0o640, 0o666, 0o755, 0o444} {
		path := filepath.Join(t.TempDir(), "f")
		put(t, path, oldText)
		if err := os.Chmod(path, perm); err != nil {
			t.Fatal(err)
		}
		before, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := durable.WriteFile(path, []byte(newText), 0o700); err != nil {
			t.Fatal(err)
		}
		after, err := os.Stat(path)
		if err != nil || after.Mode() != before.Mode() || get(t, path) != newText {
			t.Errorf("mode %v became %v (%v)", before.Mode(), after.Mode(), err)
		}
	}
}

func TestLongNames(t *testing.T) {
	for _, name := range []string{strings.Repeat("n", 255), strings.Repeat("ü", 127), "..x", ".hidden", "a.tmp"} {
		path := filepath.Join(t.TempDir(), name)
		if err := durable.WriteFile(path, []byte(newText), 0o600); err != nil || get(t, path) != newText {
			t.Errorf("%.20s: %v", name, err)
		}
		if durable.IsTemp(name) {
			t.Errorf("%.20s is taken for a temporary file", name)
		}
	}
}

func TestRemoveStale(t *testing.T) {
	dir := t.TempDir()
	keep := []string{"a.tmp", ".a.tmp", ".a.b.tmp", ".a.abcdefghijk1.tmp", "file", ".x.ABCDEFGHIJKL.tmp"}
	for _, name := range append(keep, ".a.md.abcdefghij27.tmp", ".new.abcdefghij27.tmp") {
		put(t, filepath.Join(dir, name), "x")
	}
	cut := time.Now().Add(-time.Hour)
	old := cut.Add(-time.Minute)
	for _, name := range append(keep, ".a.md.abcdefghij27.tmp") {
		if err := os.Chtimes(filepath.Join(dir, name), old, old); err != nil {
			t.Fatal(err)
		}
	}
	got, err := durable.RemoveStale(dir, cut)
	if d := cmp.Diff([]string{".a.md.abcdefghij27.tmp"}, got); d != "" || err != nil {
		t.Errorf("%s %v", d, err)
	}
	for _, name := range append(keep, ".new.abcdefghij27.tmp") {
		if get(t, filepath.Join(dir, name)) != "x" {
			t.Errorf("%s was removed", name)
		}
	}
}

func TestAppendNeedsWholeLines(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	if err := durable.Append(path, []byte("no newline"), 0o600); err == nil || !strings.Contains(err.Error(), "newline") {
		t.Errorf("error %v", err)
	}
	if err := durable.Append(path, nil, 0o600); err != nil || get(t, path) != "-" {
		t.Errorf("nothing to append: %v, %q", err, get(t, path))
	}
}

func TestAppendNext(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	var seen []string
	add := func(text string, err error) error {
		return durable.AppendNext(context.Background(), path, 0o600, func(last func() ([]byte, error)) ([]byte, error) {
			l, lerr := last()
			seen = append(seen, fmt.Sprintf("%q %t", l, l == nil))
			return []byte(text), errors.Join(err, lerr)
		})
	}
	long := strings.Repeat("l", 200_000)
	no := errors.New("no")
	for _, text := range []string{"one\n", "\n", long + "\n", "x\n"} {
		if err := add(text, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := add("y\n", no); !errors.Is(err, no) {
		t.Errorf("error %v", err)
	}
	if err := add("unfinished", nil); err == nil {
		t.Error("a line without newline was taken")
	}
	want := []string{`"" true`, `"one" false`, `"" false`, fmt.Sprintf("%q false", long), `"x" false`, `"x" false`}
	if d := cmp.Diff(want, seen); d != "" {
		t.Error(d)
	}
	if got := get(t, path); got != "one\n\n"+long+"\nx\n" {
		t.Errorf("%d bytes", len(got))
	}
}

func TestTornTails(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	var want string
	for i, torn := range []string{"first", strings.Repeat("second", 200_000), "\x00\x00\x00"} {
		line := fmt.Sprintf("line %d\n", i)
		if err := durable.Append(path, []byte(line), 0o600); err != nil {
			t.Fatal(err)
		}
		want += torn + "\n"
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteString(torn); err != nil {
			t.Fatal(err)
		}
		f.Close()
	}
	if err := durable.Append(path, []byte("end\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := get(t, path); got != "line 0\nline 1\nline 2\nend\n" {
		t.Errorf("%.100q", got)
	}
	if got := get(t, path+".torn"); got != want {
		t.Errorf("torn: %d bytes, want %d", len(got), len(want))
	}
}

func TestOnlyRegularFilesAreWritten(t *testing.T) {
	dir := t.TempDir()
	outside := filepath.Join(t.TempDir(), "outside")
	put(t, outside, oldText)
	put(t, filepath.Join(dir, "file"), oldText)
	if err := os.Mkdir(filepath.Join(dir, "directory"), 0o755); err != nil {
		t.Fatal(err)
	}
	links := map[string]string{"link out": outside, "link in": "file", "dangling": filepath.Join(dir, "nowhere"), "to directory": "directory"}
	for name, to := range links {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	makeFIFO(t, filepath.Join(dir, "pipe"))
	d, err := durable.OpenDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	data := []byte(newText)
	for _, name := range []string{"link out", "link in", "dangling", "to directory", "directory", "pipe"} {
		path := filepath.Join(dir, name)
		if _, err := os.Lstat(path); err != nil {
			continue // no pipes on this system
		}
		for op, err := range map[string]error{
			"WriteFile":      durable.WriteFile(path, data, 0o600),
			"WriteFileHot":   durable.WriteFileHot(path, data, 0o600),
			"Append":         durable.Append(path, data, 0o600),
			"AppendText":     durable.AppendText(path, data, 0o600),
			"Rename":         durable.Rename(filepath.Join(dir, "file"), path),
			"Dir.WriteFile":  d.WriteFile(name, data, 0o600),
			"Dir.AppendText": d.AppendText(name, data, 0o600),
			"Change": func() error {
				c, err := d.Begin(context.Background())
				if err != nil {
					return err
				}
				c.Write("other", data, 0o600)
				c.Write(name, data, 0o600)
				return c.Commit()
			}(),
		} {
			if !errors.Is(err, durable.ErrNotRegular) || !strings.Contains(err.Error(), name) {
				t.Errorf("%s of %s: %v", op, name, err)
			}
		}
	}
	for name, to := range links {
		if got, err := os.Readlink(filepath.Join(dir, name)); err != nil || got != to {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	if get(t, outside) != oldText || get(t, filepath.Join(dir, "file")) != oldText || get(t, filepath.Join(dir, "other")) != "-" {
		t.Error("a file was changed")
	}
	if _, err := d.ReadFile("directory"); !errors.Is(err, durable.ErrNotRegular) {
		t.Errorf("reading a directory: %v", err)
	}
	if got, err := d.ReadFile("link in"); err != nil || string(got) != oldText {
		t.Errorf("a link within the directory can be read: %q, %v", got, err)
	}
}

func TestMkdirAll(t *testing.T) {
	dir := t.TempDir()
	put(t, filepath.Join(dir, "file"), "x")
	for range 2 {
		if err := durable.MkdirAll(filepath.Join(dir, "a", "b", "..", "c"), 0o755); err != nil {
			t.Error(err)
		}
	}
	for _, path := range []string{"", filepath.Join(dir, "file"), filepath.Join(dir, "file", "sub")} {
		if err := durable.MkdirAll(path, 0o755); err == nil {
			t.Errorf("%q was made", path)
		}
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if err := durable.MkdirAll(filepath.Join(dir, "many", "at", "once"), 0o755); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

func TestRemoveAllRefusesTheWhole(t *testing.T) {
	for _, path := range []string{"", ".", "..", string(filepath.Separator), "./", "a/.."} {
		if err := durable.RemoveAll(path); err == nil {
			t.Errorf("%q was accepted", path)
		}
	}
}

func TestCreateIsExclusive(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	f, err := durable.Create(path, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString("stream"); err != nil {
		t.Fatal(err)
	}
	f.Close()
	if _, err := durable.Create(path, 0o600); !errors.Is(err, fs.ErrExist) || get(t, path) != "stream" {
		t.Errorf("error %v, %q", err, get(t, path))
	}
}

func TestReadersSeeWholeFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	text := func(i int) []byte { return bytes.Repeat([]byte{byte('a' + i%26)}, 50_000+i) }
	if err := durable.WriteFileHot(path, text(0), 0o600); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for {
				b, err := os.ReadFile(path)
				if err != nil || len(b) < 50_000 || bytes.Count(b, b[:1]) != len(b) {
					t.Errorf("%d bytes, %v", len(b), err)
					return
				}
				select {
				case <-done:
					return
				default:
				}
			}
		})
	}
	var writers sync.WaitGroup
	for range 4 {
		writers.Go(func() {
			for i := range 40 {
				if err := durable.WriteFileHot(path, text(i), 0o600); err != nil {
					t.Error(err)
				}
			}
		})
	}
	writers.Wait()
	close(done)
	wg.Wait()
}

// TestWriteFileKeepsOwner: root editing a user's file does not take it away.
func TestWriteFileKeepsOwner(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	put(t, path, oldText)
	if err := os.Chown(path, 4321, 4321); err != nil {
		t.Skipf("only root can give a file away: %v", err)
	}
	if err := durable.WriteFile(path, []byte(newText), 0o600); err != nil {
		t.Fatal(err)
	}
	fi, err := os.Stat(path)
	if err != nil || !strings.Contains(fmt.Sprintf("%+v", fi.Sys()), "Uid:4321 Gid:4321") {
		t.Errorf("owner: %+v, %v", fi.Sys(), err)
	}
}
