package durable_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"reprise/internal/durable"
)

// operations are all that a Dir does with a name.
func operations(d *durable.Dir, name string) map[string]error {
	ops := map[string]error{}
	_, ops["ReadFile"] = d.ReadFile(name)
	_, ops["Stat"] = d.Stat(name)
	_, ops["Lstat"] = d.Lstat(name)
	_, ops["ReadDir"] = d.ReadDir(name)
	_, ops["RemoveStale"] = d.RemoveStale(name, time.Time{})
	ops["WriteFile"] = d.WriteFile(name, []byte("x"), 0o600)
	ops["AppendText"] = d.AppendText(name, []byte("x"), 0o600)
	ops["MkdirAll"] = d.MkdirAll(name, 0o755)
	ops["Remove"] = d.Remove(name)
	ops["RemoveAll"] = d.RemoveAll(name)
	c, err := d.Begin(context.Background())
	if err == nil {
		c.Write(name, []byte("x"), 0o600)
		err = c.Commit()
	}
	ops["Change.Write"] = err
	c, err = d.Begin(context.Background())
	if err == nil {
		c.Remove(name)
		err = c.Commit()
	}
	ops["Change.Remove"] = err
	return ops
}

// tree is every file beneath a directory with its content.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if e.Name() == ".reprise-journal" {
			return fs.SkipDir
		}
		out[path] = e.Type().String()
		if e.Type().IsRegular() {
			out[path] = get(t, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestNamesThatAreRefused(t *testing.T) {
	base := t.TempDir()
	dir := filepath.Join(base, "dir")
	put(t, filepath.Join(dir, "victim"), oldText)
	put(t, filepath.Join(dir, "sub", "f"), oldText)
	put(t, filepath.Join(base, "outside"), oldText)
	put(t, filepath.Join(base, "dir-evil", "f"), oldText)
	d, err := durable.OpenDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	before := tree(t, base)
	for _, name := range []string{
		"", "..", "../outside", "../dir-evil/f", "sub/../../outside", "sub/..", "sub/../victim", "./victim", "sub//f", "sub/",
		"/etc/passwd", filepath.Join(base, "outside"), "//server/share", "/",
		`..\outside`, `sub\..\..\outside`, `C:\x`, "C:x", "C:/x", "c:", `\\?\C:\x`, `\\.\NUL`, `\\server\share\x`, `\x`, "victim:stream", "victim::$DATA",
		"NUL", "nul", "CON", "con.txt", "sub/aux.md", "COM1", "lpt9.log", "COM¹", "CONIN$", "nul .txt",
		"a\x00b", "victim\x00", "a\nb", "tab\t", "esc\x1b[0m", "del\x7f",
		"victim.", "victim ", "sub./f", "sub /f", "...",
		"bad\xffutf8", strings.Repeat("n", 300), strings.Repeat("a/", 3000) + "a",
	} {
		for op, err := range operations(d, name) {
			if !errors.Is(err, durable.ErrName) {
				t.Errorf("%s of %.60q: %v", op, name, err)
			} else if len(err.Error()) > 1000 || strings.ContainsAny(err.Error(), "\x00\x1b") {
				t.Errorf("%s of %.60q: an error not fit to be shown: %q", op, name, err)
			}
		}
	}
	if d := cmp.Diff(before, tree(t, base)); d != "" {
		t.Errorf("something changed:\n%s", d)
	}
}

func TestNamesThatAreTaken(t *testing.T) {
	d, err := durable.OpenDir(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if err := d.MkdirAll("blocks/deep", 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{
		"core.md", "blocks/project-x.md", "blocks/deep/ü 日本.md", ".hidden", "..x", "a..b", "com10", "console", "null.md", "aux-notes.md", "a b", "$x&%#@!+,;=[]{}~'`^()",
	} {
		if err := d.WriteFile(name, []byte(newText), 0o600); err != nil {
			t.Errorf("%q: %v", name, err)
		}
		if got, err := d.ReadFile(name); err != nil || string(got) != newText {
			t.Errorf("%q: %q, %v", name, got, err)
		}
	}
}

func TestLinksDoNotLeadOut(t *testing.T) {
	base := t.TempDir()
	dir := filepath.Join(base, "dir")
	put(t, filepath.Join(dir, "victim"), oldText)
	put(t, filepath.Join(dir, "real", "f"), oldText)
	put(t, filepath.Join(base, "out", "f"), oldText)
	for name, to := range map[string]string{
		"abs": filepath.Join(base, "out"), "rel": "../out", "file": filepath.Join(base, "out", "f"), "relfile": "../out/f",
		"dangling": filepath.Join(base, "out", "new"), "chain": "rel", "self": "self", "back": "real/../../out",
	} {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("real", filepath.Join(dir, "inside")); err != nil {
		t.Fatal(err)
	}
	d, err := durable.OpenDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	before := tree(t, base)
	for _, name := range []string{"abs/f", "abs/new", "rel/f", "rel/new", "chain/f", "back/f", "back/new", "self/f"} {
		for op, err := range operations(d, name) {
			if err == nil && op != "RemoveAll" {
				t.Errorf("%s of %s went through", op, name)
			}
		}
	}
	for _, name := range []string{"file", "relfile", "dangling", "self", "abs"} {
		ops := operations2(d, name)
		for op, err := range ops {
			if err == nil {
				t.Errorf("%s of %s went through", op, name)
			}
		}
	}
	if d := cmp.Diff(before, tree(t, base)); d != "" {
		t.Errorf("something changed:\n%s", d)
	}
	if err := d.WriteFile("inside/f", []byte(newText), 0o600); err != nil || get(t, filepath.Join(dir, "real", "f")) != newText {
		t.Errorf("a link that stays inside: %v", err)
	}
	if err := d.Remove("abs"); err != nil {
		t.Errorf("removing a link itself: %v", err)
	}
	if got := get(t, filepath.Join(base, "out", "f")); got != oldText {
		t.Errorf("%q", got)
	}
}

// operations2 are those that must not follow or replace a link itself.
func operations2(d *durable.Dir, name string) map[string]error {
	_, rerr := d.ReadFile(name)
	_, lerr := d.ReadDir(name)
	return map[string]error{
		"ReadFile": rerr, "ReadDir": lerr,
		"WriteFile":  d.WriteFile(name, []byte("x"), 0o600),
		"AppendText": d.AppendText(name, []byte("x"), 0o600),
		"MkdirAll":   d.MkdirAll(name+"/sub", 0o755),
	}
}

func TestJournalIsOutOfReach(t *testing.T) {
	d, err := durable.OpenDir(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	c, err := d.Begin(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	c.Write("f", nil, 0o600)
	if err := c.Commit(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{".reprise-journal/journal.json", ".reprise-journal", ".Reprise-JOURNAL/x"} {
		if err := d.WriteFile(name, nil, 0o600); !errors.Is(err, durable.ErrName) {
			t.Errorf("%s: %v", name, err)
		}
		if err := d.RemoveAll(name); !errors.Is(err, durable.ErrName) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := d.AppendText("log", []byte("x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	list, err := d.ReadDir(".")
	var names []string
	for _, e := range list {
		names = append(names, e.Name())
	}
	if d := cmp.Diff([]string{"f", "log"}, names); d != "" || err != nil {
		t.Errorf("%s %v", d, err)
	}
}

func TestOpenDir(t *testing.T) {
	dir := t.TempDir()
	put(t, filepath.Join(dir, "f"), "x")
	for _, path := range []string{filepath.Join(dir, "none"), filepath.Join(dir, "f"), ""} {
		if _, err := durable.OpenDir(path); err == nil {
			t.Errorf("%q was opened", path)
		}
	}
	d, err := durable.OpenDir(dir)
	if err != nil || d.Path() != dir {
		t.Fatal(err)
	}
	d.Close()
	if list, err := os.ReadDir(dir); len(list) != 1 {
		t.Errorf("opening made something: %v %v", list, err)
	}
}
