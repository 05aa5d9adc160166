package guard

import (
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// linked is a project with these links in it, by where they lead.
func linked(t testing.TB, links map[string]string) project {
	t.Helper()
	p := newProject(t)
	for _, name := range []string{"out", ".env"} { // a secret among the names is another matter
		if err := os.Remove(filepath.Join(p.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range []string{"src/a/b/x.go", "vendor/y.go", "../../outside/secret"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(p.dir, f)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(p.dir, f), []byte("x\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for name, to := range links {
		if err := os.Symlink(strings.ReplaceAll(to, "OUT", p.outside), filepath.Join(p.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

// following are commands that follow links on their way down, or open what another
// command listed; each reads what lies outside where a link in src leads there.
var following = []string{
	"grep -R x .", "grep -Rn x src", "grep -inR x", "egrep -R x src", "grep --dereference-recursive x src", "grep --deref x src", "grep x -R -- src", "grep -rS x src",
	"rg -L x", "rg --follow x src", "rg -nL x .", "ag -f x src", "ag --follow x",
	"find -L . -name x", "find -L src", "find src -follow -type f", "find . -L", "find -L . -exec cat {} +",
	"fd -L x", "fd --follow . src", "fd -HL x",
	"ls -LR", "ls -R -L src", "ls -lRL .", "ls -R --dereference src", "ls -L src/a",
	"tree -l", "tree -al src", "du -L", "du -sLh src", "du --dereference .",
	"diff -r src vendor", "diff -qr vendor src", "diff --recursive . vendor", "colordiff -r src vendor", "diff src/a vendor",
	"lsd -L --tree", "eza -T --follow-symlinks", "eza -TX src",
	"cat src/**/*", "cat **/l*", "head src/**", "cat ***/x", "wc -l **/link",
	"find . | xargs cat", "find . -name 'l*' | xargs cat", "find src -exec cat {} +", "find . ! -type d -exec cat {} \\;", "find . -name '*.go' -o -name 'lin?' | xargs head",
	"find . -iname LINK -print0 | xargs -0 cat", "for f in $(find src); do cat \"$f\"; done", "find src | while read -r f; do cat \"$f\"; done", "cat $(find . -name link)",
	"find . -not -name '*.go' | xargs cat", "find . -path '*/a/*' | xargs cat", "find . -maxdepth 9 | xargs cat", "find . -newer f | xargs cat", "find . -regex '.*k' | xargs cat",
	"find . -type f,l | xargs cat", "find . \\( -name node_modules -prune \\) -o -print | xargs cat", "find . ! -type d -name src -prune -o -name link -print | xargs cat",
	"find . -name vendor -prune -o -name link -exec cat {} +", "find . -exec cat {} \\; -exec echo -maxdepth 1 \\;", "find . -depth -name a -prune -o -name link -print | xargs cat", "find . -maxdepth 1 -maxdepth 9 | xargs cat", "find . ! -print | xargs cat", "find . ! -exec cat {} \\;", "find . -name src -prune -o -name link -depth -print | xargs cat", "find . -name link -exec false {} \\; -o -false | xargs cat", "find . -print , -false | xargs cat",
	"ls src/a | xargs cat", "ls -R | xargs cat", "cd src/a && ls | xargs -n1 cat", "fd . | xargs cat", "fd . -x cat", "fd . src -X head", "echo src/a/* | xargs cat", "printf '%s\\n' src/a/* | xargs cat", "cat $(ls src/a)",
	"find -files0-from x", "chmod -R -L go-r src", "cp -rL src copy", "tar -chf x.tar src", "zip -r x.zip src",
}

// notFollowing does neither, or can meet no such link there.
var notFollowing = []string{
	"grep -r x .", "grep -rn x src", "rg x", "find . -name x", "fd x", "ls -R", "ls -L vendor", "tree", "du -sh .", "diff -r --no-dereference src vendor", "diff -r vendor sub", "grep -R x vendor", "find -L vendor",
	"find . -type f | xargs cat", "find . -type f -exec cat {} +", "find . -name '*.go' | xargs wc -l", "find . -name '*.go' -not -path './vendor/*' | xargs wc -l", "find . \\( -name '*.go' -o -name '*.md' \\) | xargs cat",
	"find . -type d -exec ls {} +", "find vendor | xargs cat", "find . -path ./src -prune -o -name 'l*' -print | xargs cat", "find . -not -path './src/*' | xargs cat", "find . -maxdepth 2 | xargs cat", "find . -name link -o -name '*.go' -print | xargs cat", "find . -name src -prune -o -print | xargs cat",
	"rg --files | xargs wc -l", "grep -rl x . | xargs head", "fd -t f . | xargs cat", "ls vendor | xargs echo", "cat **/*.go", "ls **/*.go", "wc -l src/**/*.go", "for f in $(find . -type f); do cat \"$f\"; done", "git ls-files | xargs wc -l",
}

// Programs that follow links on their way down, and those that open what others
// list, are asked about where a link leads out of the project, and not where none
// does.
func TestLinksThatLeadOut(t *testing.T) {
	bad := linked(t, map[string]string{"src/a/link": "OUT/secret", "src/a/l2": "OUT"})
	good := linked(t, map[string]string{"src/a/link": "../../f", "src/up": "..", "src/tool": "/usr/bin/env"})
	rules := func(p project) *Rules { r := p.rules(); r.Writes = true; return r }
	for _, c := range following {
		if v := rules(bad).Command(c, bad.dir); let(v) {
			t.Errorf("%q is allowed", c)
		}
		switch {
		case strings.HasPrefix(c, "tar"), strings.HasPrefix(c, "find -files0-from"): // asked about in any case
			continue
		}
		if v := rules(good).Command(c, good.dir); !let(v) {
			t.Errorf("%q: %s", c, v.Reason)
		}
	}
	// The same with a link that is only reached through another one.
	hidden := linked(t, map[string]string{"src/a/in": "../../vendor", "vendor/link": "OUT/secret"})
	for _, c := range []string{"grep -R x src", "rg -L x src", "find -L src", "diff -r src/a sub", "tree -l src", "cat src/***/link"} {
		if v := hidden.judge(c); let(v) {
			t.Errorf("through a link: %q is allowed", c)
		}
	}
}

// What does not follow links, or cannot meet one, is not asked about for links.
func TestLinksThatAreNotFollowed(t *testing.T) {
	p := linked(t, map[string]string{"src/a/link": "OUT/secret", "src/a/l2": "OUT"})
	for _, c := range notFollowing {
		if v := p.judge(c); !let(v) {
			t.Errorf("%q: %s", c, v.Reason)
		}
	}
}

// Changing what links lead to is refused, as changing it by its name is.
func TestLinksThatAreWrittenThrough(t *testing.T) {
	p := linked(t, map[string]string{"src/a/l2": "OUT"})
	r := p.rules()
	r.Writes = true
	for _, c := range []string{"chown -R -L me src", "chmod -RL go-r .", "find -L src -name x -delete"} {
		if v := r.Command(c, p.dir); v.Decision != Deny {
			t.Errorf("%q: %s", c, v.Decision)
		}
	}
}

// A tree that is larger than is looked through is asked about.
func TestLinksInALargeTree(t *testing.T) {
	p := linked(t, nil)
	defer func(old int) { maxWalk = old }(maxWalk)
	maxWalk = 400
	for i := range maxWalk / walkDir {
		if err := os.Mkdir(filepath.Join(p.dir, "vendor", fmt.Sprint(i)), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for c, want := range map[string]Decision{"grep -R x .": Ask, "grep -R x src": Allow, "find . | xargs cat": Ask, "find . -type f | xargs cat": Ask, "find . -type f -print0 | xargs -0 cat": Allow, "find . -type f -exec cat {} +": Allow, "find . -not -path './vendor/*' | xargs cat": Allow,
		"find . -name vendor -prune -o -name '*.go' -print | xargs cat": Allow, "cat **/*.go": Ask, "grep -r x .": Allow} {
		if v := p.judge(c); v.Decision != want {
			t.Errorf("%s: %s, want %s: %s", c, v.Decision, want, v.Reason)
		}
	}
}

// More names than a pattern was once looked at for are all looked at.
func TestPatternsOfManyNames(t *testing.T) {
	p := linked(t, nil)
	for i := range 400 {
		if err := os.WriteFile(filepath.Join(p.dir, "vendor", fmt.Sprintf("f%03d", i)), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if v := p.judge("cat vendor/*"); v.Decision != Allow {
		t.Errorf("%s: %s", v.Decision, v.Reason)
	}
	if err := os.Symlink(p.outside+"/secret", filepath.Join(p.dir, "vendor", "z")); err != nil {
		t.Fatal(err)
	}
	if v := p.judge("cat vendor/*"); v.Decision != Ask {
		t.Errorf("a link after 400 names: %s", v.Decision)
	}
}

// What git has of links and of other repositories is read from its index in each of
// its versions and with each of its ids.
func TestIndexVersions(t *testing.T) {
	found := indexes(t)
	if len(found) == 0 {
		t.Skip("no git")
	}
	for index, version := range found {
		if data, err := os.ReadFile(index); err != nil || fmt.Sprint(binary.BigEndian.Uint32(data[4:])) != version {
			t.Fatalf("the index is not of version %s: %v", version, err)
		}
		if got := indexed(index, modeLink, 9); !slices.Equal(got, []string{"src/a/link", "src/a/other"}) {
			t.Errorf("%s: links: %q", index, got)
		}
		if got := indexed(index, modeRepository, 9); !slices.Equal(got, []string{"nested"}) {
			t.Errorf("%s: repositories: %q", index, got)
		}
		p := project{dir: filepath.Dir(filepath.Dir(index))}
		for _, c := range []string{"git ls-files | xargs cat", "git diff --name-only | xargs cat", "for f in $(git ls-files); do head \"$f\"; done"} {
			if v := p.judge(c); let(v) {
				t.Errorf("%q is allowed", c)
			}
		}
		if err := os.WriteFile(filepath.Join(p.dir, "nested", ".git", "config"), []byte("[core]\nfsmonitor = ./x\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		if v := p.judge("git status"); v.Decision != Ask {
			t.Errorf("a program in the settings of a repository inside: %s", v.Decision)
		}
	}
}

// tracked is a project in whose index are files of these names, and none of which lies
// in the tree any more; false where there is no git.
func tracked(t *testing.T, files ...string) (asked, bool) {
	t.Helper()
	p := linked(t, nil)
	o := asked{project: p, short: strings.NewReplacer(p.dir, "PROJECT")}
	git, err := exec.LookPath("git")
	if err != nil {
		return o, false
	}
	if err := os.RemoveAll(filepath.Join(p.dir, ".git")); err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		p.put(t, map[string]string{"src/" + name: ""})
	}
	for _, args := range [][]string{{"init", "-q"}, {"add", "src"}} {
		cmd := exec.Command(git, args...)
		cmd.Dir, cmd.Env = p.dir, []string{"PATH=" + os.Getenv("PATH"), "HOME=" + p.home, "GIT_CONFIG_NOSYSTEM=1"}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %q: %v\n%s", args, err, out)
		}
	}
	for _, name := range files {
		if err := os.Remove(filepath.Join(p.dir, "src", name)); err != nil {
			t.Fatal(err)
		}
	}
	return o, true
}

// indexes are indexes of git of each version, with each kind of ids, each of a
// project with two links and a repository in it; empty where there is no git.
func indexes(t testing.TB) map[string]string {
	t.Helper()
	git, err := exec.LookPath("git")
	if err != nil {
		return nil
	}
	out := map[string]string{}
	for _, format := range []string{"sha1", "sha256"} {
		for _, version := range []string{"2", "3", "4"} {
			p := linked(t, map[string]string{"src/a/link": "OUT/secret", "src/a/other": "../../f"})
			if err := os.RemoveAll(filepath.Join(p.dir, ".git")); err != nil {
				t.Fatal(err)
			}
			run := func(dir string, args ...string) {
				t.Helper()
				cmd := exec.Command(git, append([]string{"-c", "user.name=t", "-c", "user.email=t@t", "-c", "commit.gpgsign=false"}, args...)...)
				cmd.Dir, cmd.Env = dir, []string{"PATH=" + os.Getenv("PATH"), "HOME=" + p.home, "GIT_CONFIG_NOSYSTEM=1"}
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Fatalf("git %q: %v\n%s", args, err, out)
				}
			}
			run(p.dir, "init", "-q", "--object-format="+format)
			nested := filepath.Join(p.dir, "nested")
			if err := os.Mkdir(nested, 0o755); err != nil {
				t.Fatal(err)
			}
			run(nested, "init", "-q", "--object-format="+format)
			run(nested, "commit", "-q", "--allow-empty", "-m", "x")
			run(p.dir, "add", "-A")
			if version == "3" {
				if err := os.WriteFile(filepath.Join(p.dir, "late"), nil, 0o644); err != nil {
					t.Fatal(err)
				}
				run(p.dir, "add", "-N", "late") // what is only meant to be added needs version 3
			}
			run(p.dir, "update-index", "--index-version", version)
			out[filepath.Join(p.dir, ".git", "index")] = version
		}
	}
	return out
}

// Where git passes over a .git that is no repository, the one above counts.
func TestGitDirThatIsNone(t *testing.T) {
	for name, files := range map[string]map[string]string{
		"empty":      {"sub/.git/x": ""},
		"no HEAD":    {"sub/.git/objects/x": "", "sub/.git/refs/x": "", "sub/.git/config": ""},
		"odd HEAD":   {"sub/.git/objects/x": "", "sub/.git/refs/x": "", "sub/.git/HEAD": "x\n"},
		"no objects": {"sub/.git/HEAD": "ref: refs/heads/x\n", "sub/.git/refs/x": ""},
	} {
		p := newProject(t)
		files[".git/config"] = "[core]\nfsmonitor = ./x\n"
		for path, text := range files {
			path = filepath.Join(p.dir, path)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		for _, c := range []string{"cd sub && git status", "git -C sub diff"} {
			if v := p.judge(c); v.Decision != Ask {
				t.Errorf("%s: %s: %s", name, c, v.Decision)
			}
		}
		if v := p.judge("cd sub && git push --force"); v.Decision != Deny {
			t.Errorf("%s: a push over main: %s", name, v.Decision)
		}
	}
	p := newProject(t)
	for path, text := range map[string]string{".git/config": "[core]\nfsmonitor = ./x\n", "sub/.git/HEAD": "ref: refs/heads/x\n", "sub/.git/objects/x": "", "sub/.git/refs/x": ""} {
		path = filepath.Join(p.dir, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if v := p.judge("cd sub && git status"); v.Decision != Allow {
		t.Errorf("a repository of its own: %s: %s", v.Decision, v.Reason)
	}
}
