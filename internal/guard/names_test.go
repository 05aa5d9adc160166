package guard

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// put writes files into the project, with the directories that they are in.
func (p project) put(t testing.TB, files map[string]string) {
	t.Helper()
	for name, text := range files {
		name = filepath.Join(p.dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func (p project) wants(t *testing.T, list map[string]Decision) {
	t.Helper()
	for c, want := range list {
		if v := p.judge(c); v.Decision != want {
			t.Errorf("%s, want %s: %s\n\t%s", v.Decision, want, c, v.Reason)
		}
	}
}

// optionNames are commands in which a pattern may stand for an option.
var optionNames = []string{"sort *", "sort -u *", "sort ?*", "git diff *", "git log *", "git grep x *", "rg x *", "find * -name x", `for f in *; do sort "$f"; done`, "for f in *; do rg x $f; done", `for f in *; do git diff "$f"; done`, `for f in *; do find "$f" -name x; done`}

// Where a name begins with a dash, a pattern that stands for it may give a program an
// option; where none does, nothing is said, for patterns are used all day.
func TestNamesThatAreOptions(t *testing.T) {
	p := newProject(t)
	list := optionNames
	fine := map[string]Decision{"sort -- *": Allow, "sort ./*": Allow, "sort src/*": Allow, "sort *.md": Allow, "git diff -- *": Allow, "cat *": Allow, "grep -n x *.md": Allow, `for f in ./*; do sort "$f"; done`: Allow, `for f in *; do sort -- "$f"; done`: Allow}
	if err := os.Remove(filepath.Join(p.dir, "out")); err != nil {
		t.Fatal(err)
	}
	want := func(d Decision) map[string]Decision {
		m := map[string]Decision{}
		for _, c := range list {
			m[c] = d
		}
		return m
	}
	p.wants(t, want(Allow))
	p.wants(t, fine)
	p.put(t, map[string]string{"-oPWNED": "", "--pre=evil": ""})
	p.wants(t, want(Ask))
	p.wants(t, fine)
	// What the command itself may write counts like what is there.
	p = newProject(t)
	r := p.rules()
	r.Writes = true
	for c, want := range map[string]Decision{"sort *.md": Allow, "touch x; sort *": Ask} {
		if v := r.Command(c, p.dir); v.Decision != want {
			t.Errorf("%s, want %s: %s: %s", v.Decision, want, c, v.Reason)
		}
	}
}

// Repositories in a repository have settings of their own, which git follows when it
// looks into them from outside.
func TestNestedRepositories(t *testing.T) {
	for name, tt := range nested() {
		t.Run(name, func(t *testing.T) {
			p := newProject(t)
			p.put(t, tt.files)
			p.wants(t, map[string]Decision{"git status": tt.want, "cd src && git diff": tt.want, "git describe --dirty": tt.want, "git --version": Allow})
			if strings.Contains(name, "has not") {
				p.wants(t, map[string]Decision{"git add sub/mod": Ask, "git add f": Allow})
			}
		})
	}
}

// repositories are files of a project, and what is said of looking into them.
type repositories struct {
	files map[string]string
	want  Decision
}

func nested() map[string]repositories {
	const evil = "[core]\n\tfsmonitor = ./x\n"
	index := func(mode string) string {
		var b strings.Builder
		for _, e := range []struct{ mode, name string }{{"\x00\x00\x81\xa4", "f"}, {mode, "sub/mod"}} {
			b.WriteString(strings.Repeat("\x00", 24) + e.mode + strings.Repeat("\x00", 32) + "\x00" + string(rune(len(e.name))) + e.name)
			for n := 62 + len(e.name); ; {
				b.WriteByte(0)
				if n++; n%8 == 0 {
					break
				}
			}
		}
		return "DIRC\x00\x00\x00\x02\x00\x00\x00\x02" + b.String() + strings.Repeat("x", 20)
	}
	return map[string]repositories{
		"a submodule":          {map[string]string{".git/index": index("\x00\x00\xe0\x00"), "sub/mod/.git": "gitdir: ../../.git/modules/m", ".git/modules/m/HEAD": "x", ".git/modules/m/config": evil}, Ask},
		"a nested repository":  {map[string]string{".git/index": index("\x00\x00\xe0\x00"), "sub/mod/.git/HEAD": "x", "sub/mod/.git/config": evil}, Ask},
		"a harmless one":       {map[string]string{".git/index": index("\x00\x00\xe0\x00"), "sub/mod/.git/HEAD": "x", "sub/mod/.git/config": "[core]\n"}, Allow},
		"one that git has not": {map[string]string{".git/index": index("\x00\x00\x81\xa4"), "sub/mod/.git/HEAD": "x", "sub/mod/.git/config": evil}, Allow},
		"no index":             {map[string]string{".git/index": "DIRC"}, Allow},
		"an index cut off":     {map[string]string{".git/index": index("\x00\x00\xe0\x00")[:100]}, Allow},
	}
}

// A project's files may say which compiler or package manager it is.
func TestToolchainsOfTheProject(t *testing.T) {
	p := newProject(t)
	p.wants(t, map[string]Decision{"cargo --version": Allow, "cargo tree": Allow, "rustc -V": Allow, "yarn --version": Allow})
	p.wants(t, map[string]Decision{"pnpm ls": Allow})
	q := newProject(t)
	q.put(t, map[string]string{".corepack.env": "", "package.json": `{"packageManager": "pnpm@9.0.0"}`})
	q.wants(t, map[string]Decision{"pnpm ls": Ask, "pnpm --version": Ask, "npm --version": Allow})
	p.put(t, map[string]string{".cargo/config.toml": "", ".yarnrc.yml": "", ".pnpmfile.cjs": ""})
	p.wants(t, map[string]Decision{"pnpm ls": Ask, "pnpm --version": Ask})
	p.wants(t, map[string]Decision{"cargo --version": Ask, "cd src && cargo tree": Ask, "cargo metadata --no-deps": Ask, "yarn --version": Ask, "yarn list": Ask})
	for file, c := range turningFiles() {
		q := newProject(t)
		q.wants(t, map[string]Decision{c: Allow})
		q.put(t, map[string]string{file: ""})
		q.wants(t, map[string]Decision{c: Ask, "cd src && " + c: Ask, "cat f": Allow})
	}
}

// turningFiles are files by which a program runs the project's code although it is
// asked for its version only, as each program's own documents tell. rustup, for one,
// starts the compiler that it would use; flake8 loads its plugins to say their versions.
func turningFiles() map[string]string {
	return map[string]string{
		"rust-toolchain.toml": "rustup --version", "rust-toolchain": "rustfmt --version", ".cargo/config": "rustc --version", ".yarnrc": "yarn -v", "pnpm-workspace.yaml": "pnpm -v", ".corepack.env": "yarn --version",
		"tools/bazel": "bazel --version", ".bazelversion": "bazelisk --help", ".bazeliskrc": "bazel --help", ".mvn/jvm.config": "mvn --version", ".sbtopts": "sbt --version", "project/build.sbt": "sbt --help",
		"project.clj": "lein --version", "profiles.clj": "lein --help", "global.json": "dotnet --version", "toxfile.py": "tox --version", ".flake8": "flake8 --version", "setup.cfg": "flake8 --help", ".tflint.hcl": "tflint --version",
		".rubocop": "rubocop --version", ".poetry/plugins/x": "poetry --version", ".pdm-plugins/x": "pdm --version", "vendor/composer/installed.json": "composer --version", ".bundle/config": "bundle --version",
		"node_modules/webpack-cli/x": "webpack --version", "node_modules/stylelint/x": "stylelint --version", "node_modules/serverless/x": "serverless --help", "node_modules/wrangler/x": "wrangler --version",
		"mix.exs": "mix --help", "Vagrantfile": "vagrant --help", "rebar.config": "rebar3 --version", "rebar.config.script": "rebar3 --help", ".shellcheckrc": "shellcheck f",
		"ansible.cfg": "ansible --version", ".erlang": "elixir --version", ".iex.exs": "iex --version",
	}
}

// A manager of versions stands in for programs by files of their names, and a file of
// the project may tell it a directory in which the real one is.
func TestManagedPrograms(t *testing.T) {
	p, r := managedProject(t)
	want := func(list map[string]Decision) {
		t.Helper()
		for c, d := range list {
			if v := r.Command(c, p.dir); v.Decision != d {
				t.Errorf("%s, want %s: %s: %s", v.Decision, d, c, v.Reason)
			}
		}
	}
	want(map[string]Decision{"node --version": Allow, "jq . f": Allow, "cat f": Allow})
	p.put(t, map[string]string{".tool-versions": "nodejs 22.1.0\njq 1.7\n"})
	want(map[string]Decision{"node --version": Allow, "jq . f": Allow})
	p.put(t, map[string]string{".tool-versions": "nodejs path:./evil\n"})
	want(map[string]Decision{"node --version": Ask, "cd sub && jq . g": Ask, "cat f": Allow})
	p.put(t, map[string]string{".tool-versions": "", "mise.toml": "[tools]\njq = \"path:./evil\"\n"})
	want(map[string]Decision{"node --version": Ask, "jq . f": Ask, "cat f": Allow})
	p.put(t, map[string]string{"mise.toml": strings.Repeat("#", maxSmall+1)})
	want(map[string]Decision{"jq . f": Ask})
	// Without shims nothing stands in for a program.
	p.wants(t, map[string]Decision{"node --version": Allow, "jq . f": Allow})
}

// managedProject is a project where a manager of versions stands in for node and jq.
func managedProject(t *testing.T) (project, *Rules) {
	t.Helper()
	p := newProject(t)
	shims := filepath.Join(p.home, ".asdf", "shims")
	for _, name := range []string{"node", "jq"} {
		if err := os.MkdirAll(shims, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(shims, name), nil, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	r := p.rules()
	r.Env = func(n string) string {
		return map[string]string{"PATH": strings.Join([]string{shims, "/usr/bin"}, string(filepath.ListSeparator))}[n]
	}
	return p, r
}

// judgeBy is what is said of a command by these rules.
func (p project) judgeBy(r *Rules, c string) string {
	v := r.Command(c, p.dir)
	return string(v.Decision) + " " + v.Reason
}

// A name with blanks or quotes in it is other words for who takes lists of names apart.
// That is asked about where such words would lead elsewhere or be options, and where
// nothing keeps the names whole.
func TestNamesThatBreak(t *testing.T) {
	lists := []string{"find . -type f | xargs cat", "find . -name '*' -type f | xargs -n1 wc -l", "for f in $(find . -type f); do cat $f; done", "find . -type f | while read -r f; do cat \"$f\"; done", "fd -t f . | xargs cat", "ls -R | xargs cat", "find . -type f -print0 | xargs cat", "for f in $(find . -type f -print0); do cat $f; done", "find . -name zz -print0 -o -type f -print | xargs cat", "fd -0 . | xargs cat"}
	whole := []string{"find . -type f -exec cat {} +", "find . -type f -exec cat {} \\;", "find . -type f -print0 | xargs -0 cat", "find . -type f -print0 | while read -r -d '' f; do cat \"$f\"; done", "fd -0 -t f . | xargs -0 cat", "grep -r x .", "cat *", "ls -la"}
	want := func(d Decision, list []string) map[string]Decision {
		m := map[string]Decision{}
		for _, c := range list {
			m[c] = d
		}
		return m
	}
	for name, d := range map[string]Decision{
		"a b/c d.md": Allow, "it's.md": Allow, "x y": Allow, "a- b": Allow,
		"a /etc/passwd": Ask, "x -oPWNED": Ask, "a ../x": Ask, `\../x`: Ask, "'..'/x": Ask, `"."./x`: Ask, "a\n/x": Ask, "a\t~/x": Ask,
	} {
		p := newProject(t)
		for _, name := range []string{"out", ".env"} {
			if err := os.RemoveAll(filepath.Join(p.dir, name)); err != nil {
				t.Fatal(err)
			}
		}
		p.put(t, map[string]string{name: "x"})
		for _, c := range lists[:3] {
			if v := p.judge(c); v.Decision != d {
				t.Errorf("%q: %s, want %s: %s: %s", name, v.Decision, d, c, v.Reason)
			}
		}
		p.wants(t, want(Allow, whole))
		if d == Ask {
			p.wants(t, want(Ask, lists))
		}
	}
}
