package cli_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"reprise/internal/cli"
	"reprise/internal/config"
)

// brokenOutput is an output whose writes fail, as on a full disk.
type brokenOutput struct{ err error }

func (b brokenOutput) Write([]byte) (int, error) { return 0, b.err }

// What cannot be printed is an error, said once, of every command: a script takes an empty
// file with exit code 0 for an answer. A reader that went away is none.
func TestOutputThatCannotBeWritten(t *testing.T) {
	home := t.TempDir()
	run := func(err error, args ...string) (int, string) {
		var errs bytes.Buffer
		environ := []string{"HOME=" + home, "REPRISE_HOME=" + filepath.Join(home, "r")}
		code := cli.Main(t.Context(), args, &cli.App{
			In: strings.NewReader(""), Out: brokenOutput{err}, Err: &errs,
			Env:     config.Env{Vars: config.ParseVars(environ, "linux"), Dir: home, GOOS: "linux", Now: time.Now},
			Environ: environ, Program: filepath.Join(home, "reprise"), Hostname: "h", PID: os.Getpid(), Guest: true,
		})
		return code, errs.String()
	}
	for _, line := range []string{
		"", "--help", "--version", "version", "help runs", "loop --help", "paths", "paths --json", "config show", "config show --json",
		"doctor --quick", "doctor --quick --json", "memory learn something", "memory list", "status --json", "guard rules",
		"guard check ls", "runs list --json", "events list", "completion bash", "queue add something", "queue list", "queue list --json",
		"recall something", "recall something --json", "policy show", "qa list --json", "index status",
	} {
		code, errs := run(syscall.ENOSPC, strings.Fields(line)...)
		if n := strings.Count(errs, "the output could not be written"); code == 0 || n != 1 {
			t.Errorf("reprise %s: exit code %d, and it is said %d times:\n%s", line, code, n, errs)
		}
	}
	if code, errs := run(syscall.EPIPE, "paths"); code != 0 || errs != "" {
		t.Errorf("the reader went away: exit code %d, %q", code, errs)
	}
}
