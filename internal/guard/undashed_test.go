package guard

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// A name that begins with a dash is an option for who takes it from a list.
func TestListedOptions(t *testing.T) {
	p := newProject(t)
	if err := os.Remove(filepath.Join(p.dir, "out")); err != nil {
		t.Fatal(err)
	}
	p.wants(t, map[string]Decision{"ls | xargs sort": Allow, "rg -l x | xargs sort": Allow, "git ls-files -o src | xargs sort": Allow, "cd src; ls | xargs sort": Allow})
	p.put(t, map[string]string{"sub/-oPWNED": ""})
	p.wants(t, map[string]Decision{"rg -l x | xargs sort": Ask, "git ls-files -o | xargs sort": Ask, "cd sub; ls | xargs sort": Ask, "cd src; ls | xargs sort": Allow, "ls -R | xargs sort": Ask})
}

// Names that are in git's index only count, too, and an index that says that there is
// another one is not known in full.
func TestIndexedOptions(t *testing.T) {
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("git is not installed")
	}
	p := newProject(t)
	dir := filepath.Join(p.dir, "src", "repo")
	run := func(args ...string) {
		t.Helper()
		cmd := exec.Command(git, args...)
		cmd.Dir, cmd.Env = dir, []string{"PATH=" + os.Getenv("PATH"), "HOME=" + p.home, "GIT_CONFIG_NOSYSTEM=1"}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %q: %v: %s", args, err, out)
		}
	}
	p.put(t, map[string]string{"src/repo/a.go": "", "src/repo/-oPWNED": ""})
	run("init", "-q")
	run("add", "--", "a.go", "-oPWNED")
	if err := os.Remove(filepath.Join(dir, "-oPWNED")); err != nil {
		t.Fatal(err)
	}
	p.wants(t, map[string]Decision{"cd src/repo; git ls-files | xargs sort": Ask, "cd src/repo; git diff --name-only | xargs sort": Ask, "cd src/repo; ls | xargs sort": Allow})
	run("rm", "-q", "--cached", "--", "-oPWNED")
	p.wants(t, map[string]Decision{"cd src/repo; git ls-files | xargs sort": Allow, "cd src/repo; git ls-files | xargs sort; git ls-files | xargs sort": Allow})
	run("update-index", "--split-index")
	p.wants(t, map[string]Decision{"cd src/repo; git ls-files | xargs sort": Ask})
}

// Packages of modules that the project requires are not looked for anywhere.
func TestRequiredPackages(t *testing.T) {
	p := newProject(t)
	p.put(t, map[string]string{"go.mod": "module x.test/y\n\nrequire (\n\tgithub.com/a/b v1.0.0\n)\n"})
	p.wants(t, map[string]Decision{
		"go doc github.com/a/b": Allow, "go doc github.com/a/b/c.D": Allow, "go doc github.com/a/b.C": Allow, "cd sub; go list github.com/a/b": Allow, "go list x.test/y/z": Allow, "go list /usr/lib/x": Allow, "for d in $(find . -type d); do go vet \"$d\"; done": Allow,
		"go doc github.com/a/bc": Ask, "go doc github.com/a": Ask, "go doc v1.0.0/x": Ask, "cd \"$x\"; go doc github.com/a/b": Ask, "cd ..; go doc github.com/a/b": Ask, "go list github.com/a/b@v2": Ask,
	})
}

// pip that is started as a module is pip where no other module could be taken for one
// that it tries for.
func TestPipAsModule(t *testing.T) {
	for file, want := range map[string]Decision{
		"x.txt": Allow, "setup.py": Allow, "conftest.py": Allow, "manage.py": Allow, "noxfile.py": Allow, "tests/__init__.py": Allow, "test/__init__.py": Allow, "data/x.py": Allow,
		"pip.py": Ask, "simplejson.py": Ask, "x.pyc": Ask, "x.cpython-312.so": Ask, "x.pyd": Ask, "pip/__init__.py": Ask,
	} {
		p := newProject(t)
		p.put(t, map[string]string{file: ""})
		p.wants(t, map[string]Decision{"python3 -m pip list": want})
	}
	newProject(t).wants(t, map[string]Decision{"python3 -m pip install x": Ask, "cd \"$x\"; python3 -m pip list": Ask, "python3 -m pip": Allow})
}
