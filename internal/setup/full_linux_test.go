package setup

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"reprise/internal/durable/durabletest"
)

// On a full disk a name can still be made, and nothing be kept: the doctor says so, and
// leaves nothing there.
func TestDoctorOnFullDisk(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "disk")
	fill := durabletest.SmallDisk(t, dir, 300)
	if found := writable("data", dir); found[0].Status != OK {
		t.Fatalf("on an empty disk: %+v", found)
	}
	fill(0)
	found := writable("data", dir)
	if len(found) != 1 || found[0].Status != Fail || !strings.Contains(found[0].Message, "no space left") || !strings.Contains(found[0].Remedy, "make room") {
		t.Errorf("on a full disk: %+v", found)
	}
	if left, err := filepath.Glob(filepath.Join(dir, ".reprise*")); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
	fill(-1)
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		t.Errorf("left: %v, %v", entries, err)
	}
}

// On a full disk no backup is left that holds less than what it is a backup of.
func TestBackupOnFullDisk(t *testing.T) {
	s := newSetup(t)
	target, err := Locate(s.Where, "gemini", User)
	if err != nil {
		t.Fatal(err)
	}
	fill := durabletest.SmallDisk(t, filepath.Dir(target.File), 64)
	text := "{\"a\": \"" + strings.Repeat("x", 9000) + "\"}"
	put(t, target.File, text)
	for _, left := range []int{0, 4, 8} {
		fill(left)
		if _, err := s.Install(t.Context(), Request{Client: "gemini", Program: program}); err == nil || !strings.Contains(err.Error(), "no space left") {
			t.Errorf("%d KiB left: %v", left, err)
		}
		if copies, err := filepath.Glob(target.File + ".bak-*"); err != nil || len(copies) > 0 {
			t.Errorf("%d KiB left: there are %v, %v", left, copies, err)
		}
		if got := get(t, target.File); got != text {
			t.Errorf("%d KiB left: it is %d bytes long now", left, len(got))
		}
	}
}

// Settings that somebody made read-only stay as they are, and are named: also by a dry run
// and where ours would be taken out.
func TestReadOnlySettings(t *testing.T) {
	withoutRights(t)
	s := newSetup(t)
	target, err := Locate(s.Where, "gemini", User)
	if err != nil {
		t.Fatal(err)
	}
	refused := func(what string, err error) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), "read-only (mode 0444)") || !strings.Contains(err.Error(), target.File) {
			t.Errorf("%s: %v", what, err)
		}
	}
	const text = "{\"a\": 1}"
	put(t, target.File, text)
	must(t, os.Chmod(target.File, 0o444))
	for _, dry := range []bool{true, false} {
		_, err := s.Install(t.Context(), Request{Client: "gemini", Program: program, DryRun: dry})
		refused("install", err)
	}
	if copies, _ := filepath.Glob(target.File + ".bak-*"); len(copies) > 0 || get(t, target.File) != text {
		t.Errorf("it was changed, or backed up: %v", copies)
	}
	must(t, os.Chmod(target.File, 0o644))
	install := func() error {
		_, err := s.Install(t.Context(), Request{Client: "gemini", Program: program})
		return err
	}
	must(t, install())
	must(t, os.Chmod(target.File, 0o444))
	if err := install(); err != nil {
		t.Errorf("nothing is to be changed: %v", err)
	}
	with := get(t, target.File)
	_, err = s.Uninstall(t.Context(), Request{Client: "gemini"})
	refused("uninstall", err)
	if get(t, target.File) != with {
		t.Error("it was changed")
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// withoutRights takes from the test, and nobody else, what lets root write anywhere.
func withoutRights(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		return
	}
	runtime.LockOSThread() // and never unlocked: the thread ends with the test
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var caps [2]unix.CapUserData
	must(t, unix.Capget(&head, &caps[0]))
	const dac = 1 << unix.CAP_DAC_OVERRIDE
	caps[0].Effective, caps[0].Permitted, caps[0].Inheritable = caps[0].Effective&^dac, caps[0].Permitted&^dac, caps[0].Inheritable&^dac
	must(t, unix.Capset(&head, &caps[0]))
}
