//go:build unix

package queue_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// dropsRoot runs the calling test again as another user, for root may write anywhere.
// It returns false when that has been done.
func dropsRoot(t *testing.T) bool {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := ""
	for _, base := range []string{os.TempDir(), "/dev/shm", "/tmp", "/var/tmp"} {
		if open(base) {
			if dir, err = os.MkdirTemp(base, "reprise-queue-test-"); err == nil {
				break
			}
		}
	}
	if dir == "" {
		t.Skip("there is no temporary directory that another user may enter")
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	program := dir + "/test"
	if err := os.WriteFile(program, data, 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "-test.run=^"+t.Name()+"$", "-test.count=1")
	cmd.Dir, cmd.Env = dir, []string{"TMPDIR=" + dir}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("as another user: %v\n%s", err, out)
	}
	return false
}

// open says whether every user may enter a directory.
func open(dir string) bool {
	for d := filepath.Clean(dir); ; d = filepath.Dir(d) {
		fi, err := os.Stat(d)
		if err != nil || fi.Mode()&0o001 == 0 {
			return false
		}
		if d == filepath.Dir(d) {
			return true
		}
	}
}
