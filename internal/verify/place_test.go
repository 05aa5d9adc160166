package verify

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
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

// What is carried is the check's own: a link to a directory elsewhere is copied, and what
// links in it lead to cannot be changed, or it is said that it can.
func TestCarriedLinksLeadNowhere(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sh("writes", `echo more >> deps/a.js; echo more >> deps/pkg/b.js; echo new > deps/pkg/new.js; cat deps/a.js deps/pkg/b.js deps/in/c.js; true`))
	w.put(".gitignore", "deps\nloop\n")
	outside := filepath.Join(filepath.Dir(filepath.Dir(w.work)), "outside")
	for _, name := range []string{"ext/a.js", "ext/real/c.js", "pkg/b.js"} {
		name = filepath.Join(outside, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte("original\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for at, to := range map[string]string{filepath.Join(w.work, "deps"): filepath.Join(outside, "ext"), filepath.Join(outside, "ext", "pkg"): filepath.Join(outside, "pkg"),
		filepath.Join(outside, "ext", "in"): "real", filepath.Join(w.work, "loop"): filepath.Dir(filepath.Dir(w.work))} {
		if err := os.Symlink(to, at); err != nil {
			t.Fatal(err)
		}
	}
	w.commit()
	w.o.Checks.Carry = []string{"deps", "loop"}
	original := func(name string) bool {
		data, err := os.ReadFile(filepath.Join(outside, name))
		return err == nil && string(data) == "original\n"
	}
	r := w.run(Request{Trigger: Manual})
	if r.Status != Passed || !strings.Contains(r.Checks[0].Output, "original\nmore\noriginal\n") || !strings.HasSuffix(r.Checks[0].Output, "original\n") {
		t.Errorf("%s %q %+v", r.Status, r.Checks[0].Output, r.Issues)
	}
	if !original("ext/a.js") {
		t.Error("what the carried link leads to was changed")
	}
	says := func(r *Result, what string) bool {
		return slices.ContainsFunc(r.Issues, func(i Issue) bool { return i.Level == advisory && strings.Contains(i.Message, what) })
	}
	if !says(r, "to where the copy itself is") {
		t.Errorf("nothing is said of the link to a directory that holds the tree: %+v", r.Issues)
	}
	w.o.Checks.Carry = []string{"deps"}
	v, err := New(context.Background(), w.o)
	if err != nil {
		t.Fatal(err)
	}
	if !v.confinement(nil).Empty() {
		if _, err := os.Lstat(filepath.Join(outside, "pkg", "new.js")); err == nil || !original("pkg/b.js") {
			t.Error("what a link in it leads to was changed")
		}
		if r := w.run(Request{Trigger: Manual}); says(r, "leads") {
			t.Errorf("%+v", r.Issues)
		}
	}
	w.o.Sandbox = "off"
	if r := w.run(Request{Trigger: Manual}); !says(r, "a check can change what is there: "+filepath.Join(outside, "pkg")) {
		t.Errorf("nothing is said: %+v", r.Issues)
	}
}

// What checks make of files that are derived from others is thrown away.
func TestDerivedFilesAreMadeAnew(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sh("plants", `echo off > "$HOME/derived/a.plan"; echo off > "$HOME/derived/new.plan"; cat "$HOME/derived/b.plan"`))
	dir := filepath.Join(filepath.Dir(w.work), "derived")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a.plan", "b.plan"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("on\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	w.o.Derived = []string{dir, filepath.Join(dir, "none")}
	if r := w.run(Request{Trigger: Manual}); r.Status != Passed {
		t.Errorf("%s %+v", r.Status, r.Checks)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 || entries[0].Name() != "b.plan" {
		t.Errorf("%v %v", entries, err)
	}
}

// Where nothing keeps a check from the real repository, what it leaves there is told: a hook or
// a setting is run by git later, outside of any check.
func TestWhatChecksLeaveInTheRepository(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ line, want string }{
		"a hook":             {`echo x > "$REAL/.git/hooks/post-commit"`, "the hook post-commit (new)"},
		"a tag":              {`git -C "$REAL" tag v9`, "the tag v9 (new)"},
		"a branch":           {`git -C "$REAL" branch evil/x`, "the branch evil/x (new)"},
		"a branch moved":     {`git -C "$REAL" -c user.name=a -c user.email=a@b commit -q --allow-empty -m x`, "(changed)"},
		"a branch removed":   {`git -C "$REAL" branch -D old`, "the branch old (removed)"},
		"a setting":          {`git -C "$REAL" config core.hooksPath /x`, "settings in "},
		"attributes":         {`mkdir -p "$REAL/.git/info" && echo "* filter=x" > "$REAL/.git/info/attributes"`, "what info/attributes says (new)"},
		"in a repository":    {`echo x > "$REAL/sub/.git/hooks/post-commit"`, "the hook post-commit of sub (new)"},
		"another checkout":   {`git -C "$REAL" checkout -q --detach`, "what is checked out (changed)"},
		"packed refs":        {`git -C "$REAL" pack-refs --all`, ""},
		"what was fetched":   {`git -C "$REAL" update-ref refs/remotes/origin/x HEAD`, ""},
		"its own repository": {`git tag v9 && git config core.hooksPath /x && mkdir .git/hooks && echo x > .git/hooks/post-commit`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, sh("x", tc.line))
			w.o.Checks.Env = []string{"REAL=" + w.work}
			w.o.Sandbox = "off"
			w.commit()
			if out, err := exec.Command("git", "-C", w.work, "branch", "old").CombinedOutput(); err != nil {
				t.Fatal(err, string(out))
			}
			if out, err := exec.Command("git", "init", "-q", filepath.Join(w.work, "sub")).CombinedOutput(); err != nil {
				t.Fatal(err, string(out))
			}
			v, err := New(context.Background(), w.o) // w.run would have it that nothing changed
			if err != nil {
				t.Fatal(err)
			}
			r, err := v.Run(context.Background(), Request{Trigger: Manual})
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			for _, i := range r.Issues {
				if strings.Contains(i.Message, "the real repository changed") {
					got = i.Message
				}
			}
			if r.Status != Passed || (got != "") != (tc.want != "") || !strings.Contains(got, tc.want) {
				t.Errorf("%s %q, want %q; %+v", r.Status, got, tc.want, r.Checks)
			}
		})
	}
}
