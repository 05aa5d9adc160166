//go:build unix

package e2e

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
)

// programs are the built binaries: a directory with reprise and its two small programs in it.
var programs string

// repo is the root of the source tree.
var repo string

func TestMain(m *testing.M) { os.Exit(testMain(m)) }

func testMain(m *testing.M) int {
	flag.Parse()
	wd, err := os.Getwd()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	repo = filepath.Dir(wd)
	dir, err := os.MkdirTemp("", "reprise-e2e-bin-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	build := exec.Command("go", "build", "-o", dir+string(filepath.Separator), "./cmd/...")
	build.Dir = repo
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "building the programs: %v\n%s", err, out)
		return 1
	}
	programs = dir
	// The tests wait more than they work: for agents, for windows to pass, for
	// processes to end. What does cost is bounded by realClients.
	if f := flag.Lookup("test.parallel"); f.Value.String() == f.DefValue {
		if err := f.Value.Set("12"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	return m.Run()
}

// program is the path of a built binary.
func program(name string) string {
	return filepath.Join(programs, name)
}

// client finds an installed npm program, or skips the test, or fails it where
// the clients have to be there.
func client(t *testing.T, name string) string {
	t.Helper()
	path := filepath.Join(repo, "script", "clients", "node_modules", ".bin", name)
	if _, err := os.Stat(path); err != nil {
		if os.Getenv("REPRISE_REQUIRE_CLIENTS") != "" {
			t.Fatalf("%s is not installed, and REPRISE_REQUIRE_CLIENTS is set: run script/test, which installs it", name)
		}
		t.Skipf("%s is not installed: script/test installs it (npm, about 1.4 GB), and then runs this test", name)
	}
	return path
}

// node is a node of at least version 22: the pinned one, or the one on the path.
func node(t *testing.T) string {
	t.Helper()
	path := filepath.Join(repo, "script", "clients", "node_modules", ".bin", "node")
	if _, err := os.Stat(path); err == nil {
		return path
	}
	client(t, "mcp-server-filesystem")
	path, err := exec.LookPath("node")
	if err != nil {
		t.Fatalf("no node for this platform in script/clients and none on the path: %v", err)
	}
	return path
}

// realClients bounds how many real agent sessions run at once: each is a program
// of 400 MB whose start takes a core for a second.
var realClients = make(chan struct{}, max(2, runtime.NumCPU()))

// turn waits for a place among the real clients and gives it back.
func turn(t *testing.T) (free func()) {
	t.Helper()
	realClients <- struct{}{}
	return sync.OnceFunc(func() { <-realClients })
}

func linuxOnly(t *testing.T, why string) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("needs Linux: " + why)
	}
}

func lines(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return r == '\n' })
}

// inItsOwnStep is for tests that keep both cores busy for half a minute or more
// by building programs, or driving a foreign test suite or real clients: script/test runs them
// in a step of its own, so that a plain `go test ./...` stays within a minute
// and a half.
func inItsOwnStep(t *testing.T) {
	t.Helper()
	if os.Getenv("REPRISE_SUITES") == "" {
		t.Skip("builds programs, or drives a foreign suite or four clients, for half a minute: script/test runs it in a step of its own; REPRISE_SUITES=1 runs it here")
	}
}
