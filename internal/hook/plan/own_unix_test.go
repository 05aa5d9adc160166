//go:build unix

package plan

import (
	"os"
	"path/filepath"
	"testing"
)

// A plan that others may write is none: it names the program that is run.
func TestReadFileOfOthers(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x.plan")
	if err := os.WriteFile(file, []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		perm os.FileMode
		ok   bool
	}{{0o600, true}, {0o644, true}, {0o666, false}, {0o620, false}, {0o602, false}} {
		if err := os.Chmod(file, tc.perm); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadFile(file, 100); (err == nil) != tc.ok {
			t.Errorf("%v: %v", tc.perm, err)
		}
	}
	if os.Geteuid() == 0 {
		if err := os.Chmod(file, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(file, 65534, 65534); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadFile(file, 100); err == nil {
			t.Error("another user's file was read")
		}
	}
}
