package durable_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"reprise/internal/durable"
)

// What is no file, no directory, or a longer file than is taken, is an error that says so, and
// nobody waits at a pipe.
func TestReadFile(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	for name, text := range map[string]string{"empty": "", "four": "four", "five": "fives"} {
		if err := os.WriteFile(at(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(at("directory"), 0o700); err != nil {
		t.Fatal(err)
	}
	makeFIFO(t, at("pipe"))
	for name, to := range map[string]string{"link": "four", "dangling": "nothing", "round": "round", "to a pipe": "pipe"} {
		if err := os.Symlink(to, at(name)); err != nil {
			t.Skip("no symbolic links here: ", err)
		}
	}
	for name, open := range map[string]func(path string) error{
		"ReadDir": func(path string) error { _, err := durable.ReadDir(path); return err },
		"OpenDir": func(path string) error {
			d, err := durable.OpenDir(path)
			if err == nil {
				err = d.Close()
			}
			return err
		},
		"RemoveStale": func(path string) error { _, err := durable.RemoveStale(path, time.Time{}); return err },
		"MkdirAll":    func(path string) error { return durable.MkdirAll(path, 0o700) },
	} {
		if err := open(at("directory")); err != nil {
			t.Errorf("%s of a directory: %v", name, err)
		}
		for _, other := range []string{"pipe", "to a pipe", "four", "four/x"} {
			if err := open(at(other)); runtime.GOOS != "windows" && !errors.Is(err, syscall.ENOTDIR) || err == nil && !strings.Contains(other, "pipe") {
				t.Errorf("%s of %s: %v", name, other, err)
			}
		}
	}
	for name, want := range map[string]string{"empty": "", "four": "four", "link": "four"} {
		if got, err := durable.ReadFile(at(name), 4); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	for name, want := range map[string]error{
		"five": durable.ErrTooLong, "directory": durable.ErrNotRegular, "pipe": durable.ErrNotRegular,
		"to a pipe": durable.ErrNotRegular, "missing": fs.ErrNotExist, "dangling": fs.ErrNotExist, "round": nil, "four/x": nil,
	} {
		if runtime.GOOS == "windows" && strings.Contains(name, "pipe") {
			continue // a pipe has no name in a directory there
		}
		got, err := durable.ReadFile(at(name), 4)
		if err == nil || want != nil && !errors.Is(err, want) || !strings.Contains(err.Error(), at(name)) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

// A file that says that it is longer than anything reprise keeps is not read, in a directory
// as by its path.
func TestGiantIsNotRead(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a file that is all hole takes its length on the disk there")
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "giant")
	if err := errors.Join(os.WriteFile(path, nil, 0o600), os.Truncate(path, 64*durable.MostRead)); err != nil {
		t.Fatal(err)
	}
	d, err := durable.OpenDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	for how, read := range map[string]func() ([]byte, error){
		"in a directory": func() ([]byte, error) { return d.ReadFile("giant") },
		"by its path":    func() ([]byte, error) { return durable.Read(path) },
	} {
		if data, err := read(); !errors.Is(err, durable.ErrTooLong) || data != nil {
			t.Errorf("%s: %d bytes, %v", how, len(data), err)
		}
	}
}
