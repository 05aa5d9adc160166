package verify

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

const fullDiskVar = "VERIFY_TEST_FULL_DISK"

// A disk that has no room left while the copy is made: at whichever file that
// happens, the verification ends soon with what is wrong and where, the tree is as it
// was, nothing of the copy is left, and with room it works again. The disk is one in
// memory that can hold so many files, in a mount namespace of the test's own.
func TestFullDiskDuringSnapshot(t *testing.T) {
	if os.Getenv(fullDiskVar) == "" {
		cmd := exec.Command(os.Args[0], "-test.run=^TestFullDiskDuringSnapshot$", "-test.v")
		cmd.Env = append(os.Environ(), fullDiskVar+"=1")
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
		if os.Getuid() != 0 {
			cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
			cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
			cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
		}
		out, err := cmd.CombinedOutput()
		if cmd.ProcessState == nil || strings.Contains(string(out), "--- SKIP") {
			t.Skipf("no disk of a test's own can be made here: %v %s", err, out)
		}
		if err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	w := newWorld(t, sh("x", "cat a.txt d/b.txt"))
	w.commit()
	w.put("new/c.txt", "c\n")
	disk := filepath.Join(filepath.Dir(w.o.Snapshots), "disk")
	if err := os.MkdirAll(disk, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		t.Skip(err)
	}
	if err := unix.Mount("test", disk, "tmpfs", 0, "size=1g,nr_inodes=3"); err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(disk, unix.MNT_DETACH) })
	w.o.Snapshots, w.o.Sandbox = filepath.Join(disk, "verify"), "off"
	failed := 0
	for n := 3; ; n++ {
		if err := unix.Mount("test", disk, "tmpfs", unix.MS_REMOUNT, "nr_inodes="+strconv.Itoa(n)); err != nil {
			t.Fatal(err)
		}
		before := w.treeHash()
		v, err := New(t.Context(), w.o)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		r, err := v.Run(ctx, Request{Trigger: Manual})
		if ctx.Err() != nil {
			t.Fatalf("with %d files it does not end", n)
		}
		cancel()
		if w.treeHash() != before {
			t.Fatalf("with %d files the tree was changed", n)
		}
		if err == nil && r.Status == Passed {
			t.Logf("it fits into %d files", n)
			break
		}
		failed++
		said := ""
		switch {
		case err != nil:
			said = err.Error()
		case r.Status == Passed || r.Status == Failed:
			t.Errorf("with %d files: %s, which tells of the work", n, r.Status)
		default:
			said = fmt.Sprint(r.Issues)
			for _, c := range r.Checks {
				said += "\n" + c.Problem
			}
		}
		if !strings.Contains(said, "no space left on device") || !strings.Contains(said, disk) && !strings.Contains(said, w.work) {
			t.Errorf("with %d files it is not said what is wrong and where: %s", n, said)
		}
		if left := w.left(); len(left) > 0 {
			t.Errorf("with %d files there is left: %v", n, left)
		}
		if n > 400 {
			t.Fatal("it never fits")
		}
	}
	if failed < 10 {
		t.Errorf("only %d places at which it did not fit", failed)
	}
}
