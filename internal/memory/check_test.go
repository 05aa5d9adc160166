package memory

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A remedy that names a command must be one that works: the tools do not take
// a name that a person made up by hand.
func TestCheckRemedyForAHandMadeName(t *testing.T) {
	s := newStore(t)
	for _, name := range []string{"My Notes.md", "project-fine.md"} {
		if err := os.WriteFile(filepath.Join(s.Dir(), "blocks", name), []byte("# Notes\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	report, err := s.Check(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	remedies := map[string]string{}
	for _, f := range report.Findings {
		if f.Code == "index.unlisted" {
			remedies[strings.Fields(strings.TrimPrefix(f.Problem, "blocks/"))[0]] = f.Remedy
		}
	}
	if r := remedies["My"]; !strings.Contains(r, "rename") || strings.Contains(r, "memory update") {
		t.Errorf("a name with a space: %q", r)
	}
	if r := remedies["project-fine.md"]; !strings.Contains(r, "memory update project-fine ") {
		t.Errorf("a good name: %q", r)
	}
}
