//go:build unix

package recall

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
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
