//go:build unix

package cli_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"

	"reprise/internal/cli"
	"reprise/internal/config"
)

// Each testdata/formats/vN.txtar is what programs wrote at version N of the formats. The
// program of today opens all of them. A new version adds a file and leaves those before
// it alone.
func TestEveryFormatIsOpened(t *testing.T) {
	archives, err := filepath.Glob(filepath.Join("testdata", "formats", "v*.txtar"))
	if err != nil || len(archives) == 0 {
		t.Fatalf("no fixtures: %v", err)
	}
	for _, archive := range archives {
		t.Run(filepath.Base(archive), func(t *testing.T) {
			run, _ := openFormats(t, archive)
			for _, test := range []struct{ args, want string }{
				{"trust --show", "asks for"},
				{"task list --all", "Task 14"},
				{"task show 14", "implementation-001.md"},
				{"queue list --all", "Fix the login"},
				{"queue show login --json", `"state": "ready"`},
				{"queue list --state dead", "Deploy"},
				{"runs list", "completed"},
				{"memory read project-shop", "Billing listens"},
				{"recall --all billing port", "billing is 5432"},
				{"events verify", " 0 problems"},
				{"events list", "memory.written"},
			} {
				out, code := run(test.args)
				if code != 0 || !strings.Contains(out, test.want) {
					t.Errorf("reprise %s: exit code %d, and it lacks %q:\n%s", test.args, code, test.want, out)
				}
			}
		})
	}
}

// A program that meets a format newer than it knows says so, names the file, and leaves
// it to the byte as it is: nothing is lost by going back and forth.
func TestNewerFormatsAreRefused(t *testing.T) {
	for part, test := range map[string]struct {
		file   string // a pattern, below the world
		change [2]string
		args   []string // each says it
	}{
		"project":  {"shop/.reprise/project.yaml", [2]string{"v: 1", "v: 9"}, []string{"runs list", "init --yes"}},
		"tasks":    {"shop/specs/state.json", [2]string{`"v": 1`, `"v": 9`}, []string{"task list", `task new another`}},
		"an item":  {"home/.local/share/reprise/projects/shop/queue/ready/*.json", [2]string{`"v": 1`, `"v": 9`}, []string{"queue list", "queue show login", "queue claim login"}},
		"a run":    {"home/.local/share/reprise/projects/shop/runs/*/run.json", [2]string{`"v": 1`, `"v": 9`}, []string{"runs list"}},
		"an event": {"home/.local/share/reprise/projects/shop/events/*.jsonl", [2]string{`{"v":1,`, `{"v":9,`}, []string{"events verify"}},
	} {
		t.Run(part, func(t *testing.T) {
			run, root := openFormats(t, filepath.Join("testdata", "formats", "v1.txtar"))
			found, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(test.file)))
			if err != nil || len(found) == 0 {
				t.Fatalf("%s is not there: %v", test.file, err)
			}
			data, err := os.ReadFile(found[0])
			if err != nil {
				t.Fatal(err)
			}
			newer := strings.Replace(string(data), test.change[0], test.change[1], 1)
			if newer == string(data) {
				t.Fatalf("%s has no %q", found[0], test.change[0])
			}
			if err := os.WriteFile(found[0], []byte(newer), 0o644); err != nil {
				t.Fatal(err)
			}
			for _, args := range test.args {
				out, code := run(args)
				if low := strings.ToLower(out); !strings.Contains(low, "newer") && !strings.Contains(low, "version 9") {
					t.Errorf("reprise %s: exit code %d, and nothing of a newer version:\n%s", args, code, out)
				}
			}
			if after, err := os.ReadFile(found[0]); err != nil || string(after) != newer {
				t.Errorf("the file was changed, or is gone: %v", err)
			}
		})
	}
}

// openFormats writes the files of an archive, and gives what runs reprise among them.
func openFormats(t *testing.T, archive string) (run func(args string) (string, int), root string) {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	a, err := txtar.ParseFile(archive)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range a.Files {
		path := filepath.Join(root, filepath.FromSlash(f.Name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, bytes.ReplaceAll(f.Data, []byte("@ROOT@"), []byte(root)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	dir := filepath.Join(root, "shop")
	environ := []string{"HOME=" + filepath.Join(root, "home"), "PWD=" + dir, "NO_COLOR=1", "PATH=" + os.Getenv("PATH")}
	return func(args string) (string, int) {
		var out bytes.Buffer
		env := config.Env{Vars: config.ParseVars(environ, "linux"), Dir: dir, GOOS: "linux", Now: time.Now}
		code := cli.Main(t.Context(), strings.Fields(args), &cli.App{
			In: strings.NewReader(""), Out: &out, Err: &out, Env: env, Environ: environ, Program: program, Hostname: "machine", PID: os.Getpid(), Guest: true,
		})
		return out.String(), code
	}, root
}
