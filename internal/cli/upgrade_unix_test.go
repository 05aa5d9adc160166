//go:build unix

package cli

import (
	"bytes"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"reprise/internal/config"
)

// A pipe or a terminal that nobody writes to is not waited for without end.
func TestUpgradeFromNothing(t *testing.T) {
	old := releaseTime
	releaseTime = 10 * time.Millisecond
	defer func() { releaseTime = old }()
	dir := t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	app := &App{In: strings.NewReader(""), Out: &out, Err: &out, Env: config.Env{Vars: map[string]string{"HOME": dir}, Dir: dir, GOOS: "linux", Now: time.Now}}
	if code := Main(t.Context(), []string{"upgrade", "--check", "pipe"}, app); code != ExitFailure || !strings.Contains(out.String(), "did not come to its end") {
		t.Errorf("exit code %d:\n%s", code, out.String())
	}
}
