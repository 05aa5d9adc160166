package config

import (
	"os"
	"path/filepath"
	"testing"
)

func TestCodeBranch(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	write := func(name, text string) {
		t.Helper()
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	is := func(at, want string) {
		t.Helper()
		if got := CodeBranch(filepath.Join(dir, filepath.FromSlash(at))); got != want {
			t.Errorf("in %s: %q, not %q", at, got, want)
		}
	}
	write("plain/file", "")
	write("main/.git/HEAD", "ref: refs/heads/ann/add-auth\n")
	write("main/a/b/file", "")
	// What an agent keeps there is a checkout of another repository.
	write("main/.reprise/agent/.git", "gitdir: /elsewhere\n")
	write("main/.git/worktrees/wt/HEAD", "ref: refs/heads/other\n")
	write("main/.git/worktrees/wt/commondir", "../..\n")
	write("main/.git/worktrees/wt/gitdir", filepath.Join(dir, "wt", ".git")+"\n")
	write("wt/.git", "gitdir: "+filepath.Join(dir, "main", ".git", "worktrees", "wt")+"\n")
	write("detached/.git/HEAD", "0123456789012345678901234567890123456789\n")
	write("reftable/.git/HEAD", "ref: refs/heads/.invalid\n")
	write("empty/.git/config", "")
	is("main", "ann/add-auth")
	is("main/a/b", "ann/add-auth")
	is("main/.reprise/agent", "ann/add-auth")
	is("wt", "other")
	for _, none := range []string{"plain", "detached", "reftable", "empty", "missing"} {
		is(none, "")
	}

	const loose, packed, detached = "1111111111111111111111111111111111111111", "2222222222222222222222222222222222222222", "0123456789012345678901234567890123456789"
	write("main/.git/refs/heads/ann/add-auth", loose+"\n")
	write("main/.git/packed-refs", "# pack-refs with: peeled fully-peeled sorted\n"+detached+" refs/heads/ann/add-auth\n"+packed+" refs/heads/other\n^"+loose+"\n")
	for at, want := range map[string][2]string{
		"main/a": {"ann/add-auth", loose}, "wt": {"other", packed}, "detached": {"", detached}, "plain": {}, "reftable": {}, "empty": {},
	} {
		if branch, commit := CodeHead(filepath.Join(dir, filepath.FromSlash(at))); branch != want[0] || commit != want[1] {
			t.Errorf("in %s: %q %q, not %q", at, branch, commit, want)
		}
	}
}
