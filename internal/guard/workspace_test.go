package guard

import (
	"os"
	"path/filepath"
	"testing"
)

// A session in a workspace reads other checkouts of the repository and writes in its
// own only, whichever way it gets there; another repository is as always.
func TestWorkspaceKeepsToItself(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	write := func(name, text string) {
		t.Helper()
		name = filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("main/.git/config", "")
	write("main/a.go", "")
	write("main/.reprise/agent/.git", "gitdir: "+dir+"/state.git/worktrees/x\n")
	write("state.git/worktrees/x/commondir", "../..\n")
	for _, ws := range []string{"ws/one", "ws/two", "main/in"} {
		id := filepath.Base(ws)
		write(ws+"/.git", "gitdir: "+dir+"/main/.git/worktrees/"+id+"\n")
		write("main/.git/worktrees/"+id+"/commondir", "../..\n")
		write(ws+"/a.go", "")
	}
	write("other/.git/config", "")
	if err := os.Symlink(dir+"/main", dir+"/ws/one/link"); err != nil {
		t.Skipf("no symbolic links here: %v", err)
	}
	one := dir + "/ws/one"
	rules := Rules{Roots: []string{dir + "/main", dir + "/other"}, Home: dir, Writes: true, ProjectCode: true}.In(one)
	rules.Env = func(string) string { return "" }
	lines, ok := ParseLines(rules.Lines())
	if !ok || lines.Workspace != one || len(lines.Roots) != 2 || lines.Roots[0] != one || lines.Roots[1] != dir+"/other" {
		t.Errorf("%v %+v", ok, lines)
	}
	for _, c := range []struct {
		command, cwd string
		want         Decision
		rule         string
	}{
		{"touch a.go", one, Allow, ""},
		{"cat " + dir + "/main/a.go", one, Allow, ""},
		{"diff a.go ../../main/a.go", one, Allow, ""},
		{"git -C " + dir + "/main log", one, Allow, ""},
		{"touch " + dir + "/main/a.go", one, Deny, "wrong-checkout"},
		{"touch ../two/a.go", one, Deny, "wrong-checkout"},
		{"touch link/a.go", one, Deny, "wrong-checkout"},
		{"touch " + dir + "/main/in/a.go", one, Deny, "wrong-checkout"},
		{"touch " + dir + "/main/.reprise/agent/scratch.md", one, Deny, "wrong-checkout"},
		{"cd ../../main && touch a.go", one, Deny, "wrong-checkout"},
		{"git commit -m x", dir + "/main", Deny, "wrong-checkout"},
		{"cd " + dir + "/main; git commit -m x", one, Deny, "wrong-checkout"},
		{"git -C " + dir + "/ws/two commit -m x", one, Deny, "wrong-checkout"},
		{"rm -r " + dir + "/ws/two", one, Deny, "wrong-checkout"},
		{"echo x > " + dir + "/main/a.go", one, Deny, "wrong-checkout"},
		{"cd " + one + " && touch a.go", dir + "/main", Allow, ""},
		{"touch " + dir + "/other/x", one, Allow, ""},
		{"touch " + dir + "/elsewhere", one, Deny, "writes-outside"},
	} {
		v := rules.Command(c.command, c.cwd)
		if v.Decision != c.want || c.rule != "" && v.Rule != c.rule {
			t.Errorf("%s in %s: %s [%s] %s", c.command, c.cwd, v.Decision, v.Rule, v.Reason)
		}
	}
	for file, want := range map[string]Decision{
		one + "/a.go": None, "a.go": None, dir + "/main/a.go": Deny, dir + "/ws/two/a.go": Deny, dir + "/ws/one/link/a.go": Deny,
		dir + "/main/in/b.go": Deny, dir + "/other/x.go": None,
	} {
		v := rules.Judge(Call{Kind: "edit", Name: "Edit", Texts: []Text{{"file_path", file}}, Cwd: one})
		if v.Decision != want || want == Deny && v.Rule != "wrong-checkout" {
			t.Errorf("%s: %s [%s] %s", file, v.Decision, v.Rule, v.Reason)
		}
		if v := rules.Judge(Call{Kind: "read", Name: "Read", Texts: []Text{{"file_path", file}}, Cwd: one}); v.Decision != None {
			t.Errorf("read %s: %s %s", file, v.Decision, v.Reason)
		}
	}
	// One that lies within the main checkout is a place of its own, too.
	in := Rules{Roots: []string{dir + "/main"}, Writes: true}.In(dir + "/main/in")
	in.Env = rules.Env
	if v := in.Command("touch a.go", dir+"/main/in"); v.Decision != Allow {
		t.Error(v)
	}
	if v := in.Command("touch ../a.go", dir+"/main/in"); v.Rule != "wrong-checkout" {
		t.Error(v)
	}
	if Gone(one) != "" || Gone(dir+"/ws/three") == "" || GoneVerdict("x").Decision != Deny {
		t.Error("what is gone is not seen")
	}
}
