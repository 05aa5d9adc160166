//go:build unix

package cli_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"reprise/internal/cli"
	"reprise/internal/setup"
)

// Every block of commands in the documents runs: a ```sh block is a script, in a world
// that has what it speaks of. A block that cannot be run here says so: ```sh norun.
// README.md is another test's, which also installs what it says.
func TestDocumentCommands(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not here")
	}
	files, err := filepath.Glob(filepath.Join("..", "..", "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	w, ran := newExampleWorld(t), 0
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var script []string
		for i, part := range strings.Split(string(data), "\n```") {
			info, body, _ := strings.Cut(part, "\n")
			if i > 0 && strings.TrimSpace(info) == "sh" {
				script = append(script, body)
			}
		}
		if len(script) == 0 {
			continue
		}
		t.Run(filepath.Base(file), func(t *testing.T) {
			ran++
			w.reset(t)
			defer w.stop(t)
			w.vars["PROJECT"] = "shop"
			if out, err := w.line(t, "set -v\n"+strings.Join(script, "\n")); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
	if ran < 2 {
		t.Errorf("%d documents have commands: the test looks at too little", ran)
	}
}

// What docs say of codes is what the program has: the exit codes, and each check of the
// doctor has its part in troubleshooting.md, in the doctor's order.
func TestDocumentedCodes(t *testing.T) {
	read := func(name string) string {
		data, err := os.ReadFile(filepath.Join("..", "..", "docs", name))
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	codes := read("exit-codes.md")
	for code, name := range map[int]string{cli.ExitOK: "ok", cli.ExitFailure: "failure", cli.ExitUsage: "usage",
		cli.ExitNotFound: "not found", cli.ExitConflict: "conflict", cli.ExitTimeout: "timeout"} {
		if !strings.Contains(codes, fmt.Sprintf("\n| %d | %s | ", code, name)) {
			t.Errorf("exit-codes.md lacks code %d, %s", code, name)
		}
	}
	var want []string
	for _, c := range (setup.Doctor{}).Checks() {
		want = append(want, c.Name)
	}
	want = append(want, "judge", "fleet", "event logs", "what was learnt", "guard", "gates", "delegation") // cli's own, as doctor.go adds them
	var got []string
	for line := range strings.Lines(read("troubleshooting.md")) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "## doctor: "); ok {
			got = append(got, name)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("troubleshooting.md has parts for %q,\nthe doctor checks %q", got, want)
	}
}
