package verify

import (
	"os"
	"path/filepath"
	"testing"
)

// A project may be a part of its repository, and a session may work in a linked
// worktree of it, which has no project file of its own: the checks run in the
// copy of what the session sees, at the project's place in it.
func TestWhereChecksRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sh("here", "test -e main.txt && test ! -e ../elsewhere && test -e ../../a.txt && cat main.txt"))
	w.put("services/api/main.txt", "main\n")
	w.commit()
	w.o.Root = filepath.Join(w.work, "services", "api")
	if r := w.run(Request{Trigger: Manual}); r.Status != Passed || r.Checks[0].Output != "main\n" {
		t.Errorf("a part: %s %+v", r.Status, r.Checks)
	}
	linked := filepath.Join(filepath.Dir(w.work), "linked")
	w.git("worktree", "add", "-q", "-b", "other", linked)
	if err := os.WriteFile(filepath.Join(linked, "services", "api", "main.txt"), []byte("linked\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{linked, filepath.Join(linked, "services", "api")} {
		w.o.Env.Dir = dir
		r := w.run(Request{Trigger: Manual})
		if r.Status != Passed || r.Checks[0].Output != "linked\n" || r.Dir != linked || r.Risk.Files != 1 {
			t.Errorf("in %s: %s %s %+v %+v", dir, r.Status, r.Dir, r.Risk, r.Checks)
		}
	}
	w.o.Env.Dir = filepath.Join(w.work, "gone")
	if _, err := New(t.Context(), w.o); err == nil {
		t.Error("a directory that is not there")
	}
}

// What git ignores is not copied, but for what is carried; and a check finds
// programs of the tree in the copy.
func TestWhatIsCarried(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sh("tool", `tool && test ! -e out && test "$(command -v tool)" != "$HOME/work/deps/bin/tool"`))
	w.put(".gitignore", "deps/\nout/\n")
	w.put("out/x", "x")
	w.put("deps/bin/tool", "#!/bin/sh\necho tool\n")
	if err := os.Chmod(filepath.Join(w.work, "deps", "bin", "tool"), 0o700); err != nil {
		t.Fatal(err)
	}
	w.commit()
	w.o.Env.Vars["PATH"] = filepath.Join(w.work, "deps", "bin") + string(os.PathListSeparator) + w.o.Env.Vars["PATH"]
	if r := w.run(Request{Trigger: Manual}); r.Status != Failed {
		t.Errorf("it is not carried: %s %+v", r.Status, r.Checks)
	}
	w.o.Checks.Carry = []string{"deps"}
	if r := w.run(Request{Trigger: Manual}); r.Status != Passed || r.Checks[0].Output != "tool\n" {
		t.Errorf("it is carried: %s %+v", r.Status, r.Checks)
	}
}
