package setup

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

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
