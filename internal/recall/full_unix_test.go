//go:build unix

package recall

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const fullVar = "RECALL_TEST_FULL" // memory dir and index file of TestFullDisk's child

// TestFullDisk: without room for the index, a search is answered from one in
// memory and leaves no half of a file behind. A process of its own has a limit
// on what it may write, which SQLite meets as it meets a full disk.
func TestFullDisk(t *testing.T) {
	if v := os.Getenv(fullVar); v != "" {
		dir, file, _ := strings.Cut(v, "\n")
		signal.Ignore(syscall.SIGXFSZ)
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: 16 << 10, Max: 16 << 10}); err != nil {
			t.Fatal(err)
		}
		x := Open(Options{MemoryDir: dir, IndexFile: file})
		defer x.Close()
		for range 2 {
			if got := first(search(t, x, "sourdough")); got != "core.md|Core > Key facts|5" {
				t.Error(got)
			}
		}
		return
	}
	x, dir := newIndex(t)
	for i := range 40 {
		write(t, dir, fmt.Sprintf("blocks/project-n%d.md", i), fmt.Sprintf("# N%d\n\n%s\n", i, strings.Repeat("okapi zebra ", 100)))
	}
	for _, state := range []string{"no index", "an old index"} {
		if state == "an old index" {
			search(t, x, "sourdough")
			x.Close()
			for i := range 40 {
				write(t, dir, fmt.Sprintf("blocks/project-m%d.md", i), fmt.Sprintf("# N%d\n\n%s\n", i, strings.Repeat("gnu emu ", 100)))
			}
		}
		cmd := exec.Command(os.Args[0], "-test.run=^TestFullDisk$")
		cmd.Env = append(os.Environ(), fullVar+"="+dir+"\n"+x.o.IndexFile)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v: %s", state, err, out)
		}
		if left, _ := filepath.Glob(x.o.IndexFile + ".new"); len(left) > 0 {
			t.Errorf("%s: %v is left", state, left)
		}
	}
}

// TestNoFilesLeft: what cannot be read while the process has no descriptor to open it with
// is found as soon as it has one, by this process and by others, and what was known of it
// is found meanwhile. The limit is a process's own, so it is met in one of its own.
func TestNoFilesLeft(t *testing.T) {
	const childVar = "RECALL_TEST_NOFILE"
	dir := os.Getenv(childVar)
	if dir == "" {
		_, dir = newIndex(t)
		cmd := exec.Command(os.Args[0], "-test.run=^TestNoFilesLeft$", "-test.v")
		cmd.Env = append(os.Environ(), childVar+"="+dir)
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "refused") {
			t.Errorf("%v: %s", err, out)
		}
		return
	}
	index := filepath.Join(t.TempDir(), "index.db")
	refused := 0
	for more := range 8 { // how many can still be opened
		name := fmt.Sprintf("blocks/project-n%d.md", more)
		write(t, dir, name, "# N\n\nokapi\n")
		x := Open(Options{MemoryDir: dir, IndexFile: index})
		search(t, x, "okapi")
		write(t, dir, name, fmt.Sprintf("# N\n\nokapi zebra%d\n", more))
		limited(t, more, func() {
			if hits, err := x.Search(t.Context(), Query{Text: fmt.Sprintf("zebra%d", more)}); err != nil || len(hits) == 0 {
				refused++
			}
			if more == 1 { // SQLite has none for its journal, and the index is made anew in memory
				return
			}
			hits, err := x.Search(t.Context(), Query{Text: "okapi", Max: MaxHits})
			if err == nil && !slices.ContainsFunc(hits, func(h Hit) bool { return h.File == name }) {
				t.Errorf("%d more: what was known of %s is not found", more, name)
			}
		})
		other := Open(Options{MemoryDir: dir, IndexFile: index})
		for _, x := range []*Index{other, x} {
			if got := first(search(t, x, fmt.Sprintf("zebra%d", more))); !strings.HasPrefix(got, name) {
				t.Errorf("%d more: found %q, want %s", more, got, name)
			}
			x.Close()
		}
	}
	if refused == 0 {
		t.Error("each file could be read: the test looks at nothing")
	}
	t.Logf("refused %d times", refused)
}

// limited does something while no more than that many files can be opened.
func limited(t *testing.T, more int, do func()) {
	t.Helper()
	var was syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &was); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	free := uint64(f.Fd())
	f.Close()
	now := was
	now.Cur = free + uint64(more)
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &now); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &was); err != nil {
			t.Fatal(err)
		}
	}()
	do()
}

// SQLite waits at a pipe for somebody to write: what stands in the index's place
// and is no file is replaced, not opened.
func TestPipeInTheIndexsPlace(t *testing.T) {
	x, _ := newIndex(t)
	want := search(t, x, "sourdough starter go")
	x.Close()
	if err := os.Remove(x.o.IndexFile); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(x.o.IndexFile, 0o600); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, search(t, x, "sourdough starter go")); diff != "" {
		t.Error(diff)
	}
	if fi, err := os.Lstat(x.o.IndexFile); err != nil || !fi.Mode().IsRegular() {
		t.Errorf("%v, %v", fi.Mode(), err)
	}
}
