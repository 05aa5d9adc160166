package memory

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"reprise/internal/durable"
)

// TestClosingFenceWithoutLineEnd: the new text must not be glued to the fence,
// which would make text of the front matter.
func TestClosingFenceWithoutLineEnd(t *testing.T) {
	for _, nl := range []string{"\n", "\r\n"} {
		s := newStore(t)
		put(t, s, "blocks/project-a.md", strings.ReplaceAll("---\ncreated: 2026-01-01\n---", "\n", nl))
		if _, err := s.Update(t.Context(), UpdateBlock{Name: "project-a", Content: "# A\ntext\n"}); err != nil {
			t.Fatal(err)
		}
		want := strings.ReplaceAll("---\ncreated: 2026-01-01\nupdated: 2026-02-21\n---\n# A\ntext\n", "\n", nl)
		if got := get(t, s, "blocks/project-a.md"); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// TestHugeFrontMatterHoldsNobodyUp: one file put by hand must not make every
// list, check and write wait for the YAML parser.
func TestHugeFrontMatterHoldsNobodyUp(t *testing.T) {
	s := newStore(t)
	for name, head := range map[string]string{
		"project-keys": strings.Repeat("k: v\n", 200_000), "project-deep": "x: " + strings.Repeat("[", 100_000) + "\n",
	} {
		put(t, s, "blocks/"+name+".md", "---\n"+head+"---\n# A\none\n")
	}
	start := time.Now()
	if _, err := s.List(t.Context()); err != nil {
		t.Error(err)
	}
	r, err := s.Check(t.Context())
	if err != nil || len(r.Findings) < 2 || !strings.Contains(r.Findings[0].Problem, "more than is read") {
		t.Errorf("%+v %v", r.Findings, err)
	}
	if _, err := s.Update(t.Context(), UpdateBlock{Name: "project-keys", OldText: "one", NewText: "two"}); err != nil {
		t.Error(err)
	}
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("it took %s", took)
	}
}

// TestLinkOutOfMemoryIsNamed: the error says what it is and not only what the
// system calls it.
func TestLinkOutOfMemoryIsNamed(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("making a link needs a privilege there")
	}
	s := newStore(t)
	out := filepath.Join(t.TempDir(), "x.md")
	if err := os.WriteFile(out, []byte("outside"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(out, filepath.Join(s.Dir(), "blocks", "project-a.md")); err != nil {
		t.Fatal(err)
	}
	_, _, err := s.Read(t.Context(), "project-a", 0, 0)
	if err == nil || !strings.Contains(err.Error(), "a symbolic link leads out of it") {
		t.Errorf("%v", err)
	}
}

// TestTemporaryFilesOfTheKilledGo: each kill in a write leaves one, for ever if
// nobody removes it.
func TestTemporaryFilesOfTheKilledGo(t *testing.T) {
	s := newStore(t)
	old, young := ".core.md.abcdefghijkl.tmp", "blocks/.project-a.md.abcdefghijkl.tmp"
	for name, age := range map[string]time.Duration{old: 2 * time.Hour, young: time.Minute} {
		put(t, s, name, "half")
		when := day.Add(-age)
		if err := os.Chtimes(filepath.Join(s.Dir(), name), when, when); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := at(s.Dir(), durable.Disk{}).AppendEpisode(t.Context(), Episode{Title: "T", Entry: "E"}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(s.Dir(), old)); err == nil {
		t.Error("it is still there")
	}
	if get(t, s, young) != "half" {
		t.Error("it may still be written")
	}
}

// TestConflictMarksAreFound: nothing else says that a memory is read with both
// sides of a merge in it.
func TestConflictMarksAreFound(t *testing.T) {
	s := newStore(t)
	marks := "<<<<<<< HEAD\na\n=======\nb\n>>>>>>> x\n"
	put(t, s, "core.md", "# Core\n"+marks)
	put(t, s, "index.md", seedIndex+marks)
	put(t, s, "blocks/project-a.md", "# A\n"+marks)
	r, err := s.Check(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]int{}
	for _, f := range r.Findings {
		if f.Code == "conflict" {
			found[f.File] = f.Line
		}
	}
	if found["core.md"] != 2 || found["index.md"] != 5 || found["blocks/project-a.md"] != 2 {
		t.Errorf("%v", found)
	}
}

// TestMadeSummaryHasNoSecret: the index row of a block that came without a
// summary is made of its text, and is loaded in every session.
func TestMadeSummaryHasNoSecret(t *testing.T) {
	s := newStore(t)
	secret := "ghp" + "_aB3dE5gH7jK9mN1pQ3rS5tU7vW9xY1zA3bC5"
	if _, err := s.Create(t.Context(), CreateBlock{Name: "project-a", Content: "# A\n\nThe token is " + secret + ".\n"}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.AppendFile(t.Context(), "blocks/project-b.md", secret+"\n"); err != nil {
		t.Fatal(err)
	}
	if got := get(t, s, "index.md"); strings.Contains(got, secret) || !strings.Contains(got, "redacted") {
		t.Error(got)
	}
	// Nor has the block itself, which is read, indexed and pushed; what is around
	// the secret stays.
	for _, name := range []string{"a", "b"} {
		if got := get(t, s, "blocks/project-"+name+".md"); strings.Contains(got, secret) || !strings.Contains(got, "redacted") {
			t.Error(got)
		}
	}
	w, err := s.Update(t.Context(), UpdateBlock{Name: "project-a", OldText: "The token is", NewText: "The other is " + secret + " and it is"})
	if err != nil || len(w.Warnings) == 0 || !strings.Contains(w.Warnings[0], "secret") || strings.Contains(get(t, s, "blocks/project-a.md"), secret) {
		t.Errorf("%+v %v", w, err)
	}
	w, err = s.AppendEpisode(t.Context(), Episode{Entry: "It said " + secret, Title: secret})
	if err != nil || len(w.Warnings) == 0 || strings.Contains(get(t, s, "blocks/"+w.Name), secret) {
		t.Errorf("%+v %v", w, err)
	}
}
