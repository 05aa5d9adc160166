package staterepo_test

import (
	"path"
	"path/filepath"
	"strings"
	"testing"

	"reprise/internal/staterepo"
)

// Whatever somebody gives for the name of a branch has a file of its own, below the directory.
func FuzzBranchFile(f *testing.F) {
	for _, names := range [][2]string{{"main", "a/b"}, {"/x", "x"}, {"x//y", "x/y"}, {"", "/"}, {".", ".."}, {"..", "a/../b"}, {"x.md/y", "x/y"}, {"%", "%25"}, {"nul", "NUL./x "}} {
		f.Add(names[0], names[1])
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		one, other := staterepo.BranchFile(a), staterepo.BranchFile(b)
		if !filepath.IsLocal(one) || path.Clean(one) != one || !strings.HasPrefix(one, "branches/") || !strings.HasSuffix(one, ".md") {
			t.Errorf("%q: %q", a, one)
		}
		if one == other && a != b {
			t.Errorf("%q and %q: %q", a, b, one)
		}
	})
}
