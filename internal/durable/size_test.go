package durable_test

import (
	"os"
	"path/filepath"
	"testing"

	"reprise/internal/durable"
)

// TestSize: files count, links and what is not there do not.
func TestSize(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "a", "b"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, n := range map[string]int{"one": 10, "a/two": 200, "a/b/three": 3000} {
		if err := os.WriteFile(filepath.Join(dir, filepath.FromSlash(name)), make([]byte, n), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	_ = os.Symlink(filepath.Join(dir, "one"), filepath.Join(dir, "link")) // where there are links
	if files, size, err := durable.Size(dir); files != 3 || size != 3210 || err != nil {
		t.Errorf("%d files, %d bytes, %v", files, size, err)
	}
	if files, size, err := durable.Size(filepath.Join(dir, "none")); files != 0 || size != 0 || err != nil {
		t.Errorf("of nothing: %d files, %d bytes, %v", files, size, err)
	}
}
