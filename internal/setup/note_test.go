package setup

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// TestNoteComesFirst: a change whose note is not written cannot be undone to the
// byte, so it must not be made. Killed between the two, the file is as it was.
func TestNoteComesFirst(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("making a link needs a privilege there")
	}
	s := newSetup(t)
	target, err := Locate(s.Where, "gemini", User)
	if err != nil {
		t.Fatal(err)
	}
	const text = "{\"a\": 1}"
	put(t, target.File, text)
	note := s.changer(target, false).noteFile(target.File)
	if err := os.MkdirAll(filepath.Dir(note), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(t.TempDir(), "none"), note); err != nil { // a link is never written through
		t.Fatal(err)
	}
	if _, err := s.Install(t.Context(), Request{Client: "gemini", Program: program}); err == nil {
		t.Error("no error")
	}
	if got := get(t, target.File); got != text {
		t.Errorf("it was changed without a note: %s", got)
	}
}

// TestNoteOfAnEditThatNeverCame: the process was killed after the note.
func TestNoteOfAnEditThatNeverCame(t *testing.T) {
	s := newSetup(t)
	target, err := Locate(s.Where, "gemini", User)
	if err != nil {
		t.Fatal(err)
	}
	const text = "{\"a\": 1,\n\"mcpServers\": {}}"
	put(t, target.File, text)
	req := Request{Client: "gemini", Program: program}
	if _, err := s.Install(t.Context(), req); err != nil {
		t.Fatal(err)
	}
	const edited = "{\"a\": 2}"
	put(t, target.File, edited)
	if _, err := s.Uninstall(t.Context(), req); err != nil || get(t, target.File) != edited {
		t.Errorf("uninstall of nothing: %v %s", err, get(t, target.File))
	}
	for _, do := range []func() error{
		func() error { _, err := s.Install(t.Context(), req); return err },
		func() error { _, err := s.Uninstall(t.Context(), req); return err },
	} {
		if err := do(); err != nil {
			t.Fatal(err)
		}
	}
	if got := get(t, target.File); got != edited {
		t.Errorf("got %s", got)
	}
}
