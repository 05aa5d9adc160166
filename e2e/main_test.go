//go:build unix

package e2e

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
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
	// A hook that is late says nothing, and on a busy machine it would be: these
	// have four times as long.
	build := exec.Command("go", "build", "-ldflags=-X=reprise/internal/agent/dialect.stretch=4", "-o", dir+string(filepath.Separator), "./cmd/...")
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
	// Alone, the suites are the tests that nobody else runs.
	if f := flag.Lookup("test.run"); os.Getenv("REPRISE_SUITES") != "" && f.Value.String() == "" {
		pattern, err := ownStep()
		if err == nil {
			err = f.Value.Set(pattern)
		}
		if err != nil {
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
	if os.Getenv("REPRISE_SUITES") == "" {
		t.Fatal("a test with a real client has to begin with inItsOwnStep")
	}
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
// of 400 MB whose start takes a core for a second. One more than there are cores,
// for each of them waits now and then: for its hooks, for the disk, for a window.
var realClients = make(chan struct{}, runtime.NumCPU()+1)

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

// inItsOwnStep is for tests that build programs, drive a foreign test suite or
// real clients: script/test runs them in a step of its own, so that a plain
// `go test ./...` stays within a minute and a half. It is the first thing that
// such a test does.
func inItsOwnStep(t *testing.T) {
	t.Helper()
	if os.Getenv("REPRISE_SUITES") == "" {
		t.Skip("builds programs, or drives a foreign suite or real clients: script/test runs it in a step of its own, as REPRISE_SUITES=1 go test ./e2e does")
	}
}

// ownStep is a pattern for the tests that begin with inItsOwnStep, found in the
// source: a list would be forgotten.
func ownStep() (string, error) {
	files, err := filepath.Glob("*_test.go")
	if err != nil {
		return "", err
	}
	var names []string
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			return "", err
		}
		for _, decl := range file.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if !ok || len(f.Body.List) == 0 {
				continue
			}
			first, ok := f.Body.List[0].(*ast.ExprStmt)
			if !ok {
				continue
			}
			call, ok := first.X.(*ast.CallExpr)
			if !ok {
				continue
			}
			if called, ok := call.Fun.(*ast.Ident); ok && called.Name == "inItsOwnStep" {
				names = append(names, f.Name.Name)
			}
		}
	}
	return "^(" + strings.Join(names, "|") + ")$", nil
}
