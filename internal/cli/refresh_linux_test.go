package cli_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"reprise/internal/cli"
	"reprise/internal/config"
	"reprise/internal/proc"
)

// answers are what a person types: it depends on what was asked last.
type answers struct {
	out  *bytes.Buffer
	says func(asked string) string
	rest []byte
}

func (a *answers) Read(p []byte) (int, error) {
	if len(a.rest) == 0 {
		asked := a.out.String()
		a.rest = []byte(a.says(asked[max(0, len(asked)-400):]) + "\n")
	}
	n := copy(p, a.rest)
	a.rest = a.rest[n:]
	return n, nil
}

// orphan starts a process that calls itself claude and loses its parent.
func orphan(t *testing.T) proc.ID {
	t.Helper()
	program := filepath.Join(t.TempDir(), "claude")
	if err := os.Symlink(os.Args[0], program); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/bin/sh", "-c", `"$0" -test.run='^TestOrphanChild$' </dev/null >/dev/null 2>&1 &`, program)
	cmd.Env = []string{"REPRISE_ORPHAN_CHILD=1"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		all, err := proc.List()
		if err != nil {
			t.Fatal(err)
		}
		if i := slices.IndexFunc(all, func(e proc.Entry) bool { return len(e.Args) > 1 && e.Args[0] == program }); i >= 0 {
			t.Cleanup(func() { _ = all[i].ID.Signal(syscall.SIGKILL) }) // gone already where all is well
			if !all[i].Orphan || all[i].Terminal {
				t.Skip("whoever adopts orphans here cannot be told from a parent")
			}
			return all[i].ID
		}
	}
	t.Fatal("the child did not come up")
	return proc.ID{}
}

// TestOrphanChild is the child.
func TestOrphanChild(t *testing.T) {
	if os.Getenv("REPRISE_ORPHAN_CHILD") == "" {
		t.Skip("for TestRefreshAsks")
	}
	time.Sleep(5 * time.Minute) // it is killed before
}

// A process that nobody owns is stopped when a person says so, and only that one;
// where nobody is asked it stays. Files go by the age that is chosen.
func TestRefreshAsks(t *testing.T) {
	id := orphan(t)
	home, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(home, ".codex", "log", "old.log")
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(file, time.Now(), time.Now().Add(-10*time.Hour)); err != nil {
		t.Fatal(err)
	}
	run := func(args []string, says func(asked string) string) (string, int) {
		var out bytes.Buffer
		vars := map[string]string{"HOME": home, "REPRISE_HOME": filepath.Join(home, "reprise"), "PATH": os.Getenv("PATH")}
		// By this clock the process is two hours old, as nobody could wait for.
		later := func() time.Time { return time.Now().Add(2 * time.Hour) }
		code := cli.Main(context.Background(), args, &cli.App{
			In: &answers{out: &out, says: says}, Out: &out, Err: &out, InIsTerminal: true, OutIsTerminal: true,
			Env: config.Env{Vars: vars, Dir: home, GOOS: "linux", Now: later}, Program: "/bin/reprise", Hostname: "here", PID: os.Getpid(), Guest: true,
		})
		return out.String(), code
	}
	line := fmt.Sprintf("process %s (claude-code), without a terminal", id)
	if out, code := run([]string{"refresh", "--force", "--client", "copilot"}, nil); code != 0 || !strings.Contains(out, line) || !id.Alive() {
		t.Errorf("unasked: exit %d, alive %v\n%s", code, id.Alive(), out)
	}
	asked := 0
	says := func(stop, age string) func(string) string {
		return func(text string) string {
			if strings.HasSuffix(text, "Which? [1]: ") {
				return age
			}
			asks := strings.Split(text, "\n")
			if !strings.Contains(asks[max(0, len(asks)-3)], id.String()+": claude-code") {
				return "" // somebody else's
			}
			asked++
			return stop
		}
	}
	if out, code := run([]string{"refresh"}, says("n", "n")); code != cli.ExitConflict || !id.Alive() || asked != 1 {
		t.Errorf("no: exit %d, asked %d times, alive %v\n%s", code, asked, id.Alive(), out)
	}
	if _, err := os.Stat(file); err != nil {
		t.Error(err)
	}
	if out, code := run([]string{"refresh"}, says("y", "2")); code != 0 || id.Alive() || !strings.Contains(out, "stopped: process "+id.String()) || !strings.Contains(out, "freed: 0 B") {
		t.Errorf("yes: exit %d, alive %v\n%s", code, id.Alive(), out)
	}
	if out, code := run([]string{"refresh"}, says("", "")); code != 0 || !strings.Contains(out, "freed: 1 B in 1 file") {
		t.Errorf("files: exit %d\n%s", code, out)
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("the old file is left")
	}
}
