package cli_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// living are the processes with this home, or one below it: by pid their command lines, as
// far as the system has /proc to ask. Those that have ended count no more.
func living(home string) map[int]string {
	alive := map[int]string{}
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		env, err := os.ReadFile(filepath.Join(dir, "environ"))
		_, at, found := strings.Cut("\x00"+string(env), "\x00HOME="+home)
		if err != nil || !found || at == "" || at[0] != 0 && at[0] != filepath.Separator {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(dir))
		args, argsErr := os.ReadFile(filepath.Join(dir, "cmdline"))
		if err != nil || argsErr != nil || len(args) == 0 {
			continue // it has ended, and nobody has asked how
		}
		alive[pid] = strings.TrimSpace(strings.ReplaceAll(string(args), "\x00", " "))
	}
	return alive
}

// outlived waits until no process with this home lives: some write a last file after the
// command that they belong to has ended, and a directory that is written to cannot be
// removed. What does not end is ended, and is an error.
func outlived(home string) error {
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		left := living(home)
		if len(left) == 0 {
			return nil
		}
		if time.Now().Before(deadline) {
			continue
		}
		for pid := range left {
			if p, err := os.FindProcess(pid); err == nil {
				_ = p.Kill()
			}
		}
		return fmt.Errorf("still there a minute after the test: %v", left)
	}
}

// outlivedBy is outlived for a script.
func outlivedBy(env *testscript.Env, home string) func() {
	return func() {
		if err := outlived(home); err != nil {
			t, ok := env.T().(interface{ Errorf(string, ...any) })
			if !ok {
				panic(err)
			}
			t.Errorf("%v", err)
		}
	}
}

func TestOutlived(t *testing.T) {
	home := t.TempDir()
	if left := living(home); len(left) > 0 {
		t.Errorf("nobody lives there, and there are %v", left)
	}
	if _, err := os.Stat("/proc/self/environ"); err != nil {
		t.Skip("no /proc")
	}
	in, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	p, err := os.StartProcess("/bin/sh", []string{"sh", "-c", "read x"}, &os.ProcAttr{Env: []string{"A=B", "HOME=" + home}, Files: []*os.File{in}})
	in.Close()
	if err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		if left := living(home); left[p.Pid] == "sh -c read x" {
			break
		} else if time.Now().After(deadline) {
			t.Fatalf("%d lives there; found are %v", p.Pid, left)
		}
	}
	for _, other := range []string{home + "/below", home[:len(home)-1]} {
		if left := living(other); len(left) > 0 {
			t.Errorf("of another home, %s: %v", other, left)
		}
	}
	if left := living(filepath.Dir(home)); left[p.Pid] == "" {
		t.Errorf("it is not among those below %s: %v", filepath.Dir(home), left)
	}
	out.Close()
	if err := outlived(home); err != nil {
		t.Error(err)
	}
	if _, err := p.Wait(); err != nil {
		t.Error(err)
	}
}
