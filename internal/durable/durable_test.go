package durable_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"reprise/internal/durable"
)

func TestSmoke(t *testing.T) {
	dir := t.TempDir()
	p := filepath.Join(dir, "a")
	if err := durable.WriteFile(p, []byte("x\n"), 0o640); err != nil {
		t.Fatal(err)
	}
	if err := durable.Append(p, []byte("y\n"), 0o640); err != nil {
		t.Fatal(err)
	}
	d, err := durable.OpenDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if err := d.Append("a", []byte("z\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := d.AppendText("sub/../a", []byte("z\n"), 0o600); !errors.Is(err, durable.ErrName) {
		t.Fatal(err)
	}
	c, err := d.Begin()
	if err != nil {
		t.Fatal(err)
	}
	c.Write("b/c.md", []byte("new"), 0o644)
	c.Remove("a")
	if err := c.Commit(); err != nil {
		t.Fatal(err)
	}
	if _, err := d.ReadFile("a"); !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	if b, err := d.ReadFile("b/c.md"); err != nil || string(b) != "new" {
		t.Fatal(string(b), err)
	}
	u, err := durable.Lock(context.Background(), p+".lock")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := durable.TryLock(p + ".lock"); !errors.Is(err, durable.ErrLocked) {
		t.Fatal(err)
	}
	if l, err := durable.IsLocked(p + ".lock"); !l || err != nil {
		t.Fatal(l, err)
	}
	if err := errors.Join(u(), u()); err != nil {
		t.Fatal(err)
	}
	if l, err := durable.IsLocked(p + ".lock"); l || err != nil {
		t.Fatal(l, err)
	}
	if err := os.Symlink("b/c.md", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	err = d.WriteFile("link", nil, 0o600)
	if !errors.Is(err, durable.ErrNotRegular) || !strings.Contains(err.Error(), "symbolic link") {
		t.Fatal(err)
	}
}
