package transcript

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFindMemory(t *testing.T) {
	home, project := t.TempDir(), t.TempDir()
	places := placesIn(home)
	write := func(path, text string) {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(filepath.Join(home, ".claude", "CLAUDE.md"), "\ufeffI am Ann.\r\n")
	write(filepath.Join(home, ".codex", "AGENTS.md"), "I am Ann.\n") // the same text: one block
	write(filepath.Join(home, ".gemini", "GEMINI.md"), " \n")        // empty
	write(filepath.Join(project, "AGENTS.md"), "Use tabs.")
	write(filepath.Join(project, ".github", "copilot-instructions.md"), "Use spaces.")
	if err := os.Symlink("AGENTS.md", filepath.Join(project, "CLAUDE.md")); err != nil {
		t.Skipf("no symbolic links here: %v", err)
	}
	write(filepath.Join(project, "GEMINI.md"), strings.Repeat("x", 2<<20))
	notes := filepath.Join(home, ".claude", "projects", claudeSlug(project), "memory")
	write(filepath.Join(notes, "MEMORY.md"), "- [a](user_likes.md)")
	write(filepath.Join(notes, "user_likes tea!.md"), "---\nname: tea\n---\nAnn likes tea.")
	write(filepath.Join(notes, "お茶.md"), "お茶が好き。")
	files, bad := FindMemory(places, project)
	var got []string
	for _, f := range files {
		scope := "user"
		if f.Project {
			scope = "project"
		}
		got = append(got, scope+" "+f.Client+" "+f.Block+": "+f.Text)
	}
	want := []string{
		"project codex reference-codex-instructions: Use tabs.",
		"project copilot reference-copilot-instructions: Use spaces.",
		"project claude reference-claude-note-user-likes-tea: ---\nname: tea\n---\nAnn likes tea.",
		"project claude reference-claude-note-d56d29df: お茶が好き。",
		"user claude reference-claude-instructions: I am Ann.",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if len(bad) != 1 || !strings.Contains(bad[0].Error(), "GEMINI.md is longer than 1048576 bytes") {
		t.Errorf("problems %v", bad)
	}
	if files, bad := FindMemory(placesIn(filepath.Join(home, "none")), ""); len(files)+len(bad) > 0 {
		t.Errorf("%v %v", files, bad)
	}
}
