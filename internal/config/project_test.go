package config

import (
	"context"
	"errors"
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/quick"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestFindPaths(t *testing.T) {
	for _, tc := range []struct {
		name, goos string
		vars       map[string]string
		want       Paths
		err        string
	}{
		{"linux", "linux", map[string]string{"HOME": "/h"}, Paths{"/h/.config/reprise/config.yaml", "/h/.local/share/reprise", "/h/.local/state/reprise", "/h/.cache/reprise"}, ""},
		{"XDG", "linux", map[string]string{"HOME": "/h", "XDG_DATA_HOME": "/d", "XDG_CONFIG_HOME": "/c", "XDG_STATE_HOME": "/s", "XDG_CACHE_HOME": "/x"}, Paths{"/c/reprise/config.yaml", "/d/reprise", "/s/reprise", "/x/reprise"}, ""},
		{"XDG without home", "linux", map[string]string{"XDG_DATA_HOME": "/d", "XDG_CONFIG_HOME": "/c", "XDG_STATE_HOME": "/s", "XDG_CACHE_HOME": "/x"}, Paths{"/c/reprise/config.yaml", "/d/reprise", "/s/reprise", "/x/reprise"}, ""},
		{"relative XDG is ignored", "linux", map[string]string{"HOME": "/h", "XDG_DATA_HOME": "d"}, Paths{"/h/.config/reprise/config.yaml", "/h/.local/share/reprise", "/h/.local/state/reprise", "/h/.cache/reprise"}, ""},
		{"own home", "linux", map[string]string{"HOME": "/h", "XDG_CACHE_HOME": "/x", "REPRISE_HOME": "/r"}, Paths{"/r/config.yaml", "/r", "/r/state", "/r/cache"}, ""},
		{"own home alone", "linux", map[string]string{"REPRISE_HOME": "/r/"}, Paths{"/r/config.yaml", "/r", "/r/state", "/r/cache"}, ""},
		{"own home below home", "linux", map[string]string{"HOME": "/h", "REPRISE_HOME": "~/r"}, Paths{"/h/r/config.yaml", "/h/r", "/h/r/state", "/h/r/cache"}, ""},
		{"empty own home is unset", "linux", map[string]string{"HOME": "/h", "REPRISE_HOME": ""}, Paths{"/h/.config/reprise/config.yaml", "/h/.local/share/reprise", "/h/.local/state/reprise", "/h/.cache/reprise"}, ""},
		{"relative own home", "linux", map[string]string{"HOME": "/h", "REPRISE_HOME": "r"}, Paths{}, "REPRISE_HOME"},
		{"nothing", "linux", nil, Paths{}, "HOME is not set"},
		{"nothing but data", "linux", map[string]string{"XDG_DATA_HOME": "/d"}, Paths{}, "HOME is not set"},
		{"relative home", "linux", map[string]string{"HOME": "h"}, Paths{}, "not an absolute path"},
		{"mac", "darwin", map[string]string{"HOME": "/h"}, Paths{"/h/Library/Application Support/reprise/config.yaml", "/h/Library/Application Support/reprise", "/h/Library/Application Support/reprise/state", "/h/Library/Caches/reprise"}, ""},
		{"windows", "windows", map[string]string{"USERPROFILE": `C:\u`, "APPDATA": `C:\u\AppData\Roaming`, "LOCALAPPDATA": `C:\u\AppData\Local`}, Paths{`C:\u\AppData\Roaming\reprise\config.yaml`, `C:\u\AppData\Local\reprise`, `C:\u\AppData\Local\reprise\state`, `C:\u\AppData\Local\reprise\cache`}, ""},
		{"windows, names in any case", "windows", map[string]string{"UserProfile": `C:\u`}, Paths{`C:\u\AppData\Roaming\reprise\config.yaml`, `C:\u\AppData\Local\reprise`, `C:\u\AppData\Local\reprise\state`, `C:\u\AppData\Local\reprise\cache`}, ""},
		{"windows, home in two parts", "windows", map[string]string{"HOMEDRIVE": "C:", "HOMEPATH": `\u`}, Paths{`C:\u\AppData\Roaming\reprise\config.yaml`, `C:\u\AppData\Local\reprise`, `C:\u\AppData\Local\reprise\state`, `C:\u\AppData\Local\reprise\cache`}, ""},
		{"windows share", "windows", map[string]string{"REPRISE_HOME": `\\srv\share\r`}, Paths{`\\srv\share\r\config.yaml`, `\\srv\share\r`, `\\srv\share\r\state`, `\\srv\share\r\cache`}, ""},
		{"windows, no drive", "windows", map[string]string{"USERPROFILE": `\u`}, Paths{}, "not an absolute path"},
		{"windows device", "windows", map[string]string{"REPRISE_HOME": `\\.\pipe\x`}, Paths{}, "not an absolute path"},
		{"windows nothing", "windows", nil, Paths{}, "USERPROFILE is not set"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if (tc.goos == "windows") != (runtime.GOOS == "windows") && runtime.GOOS == "windows" {
				t.Skip("separators of another system")
			}
			got, err := FindPaths(Env{Vars: tc.vars, GOOS: tc.goos, Dir: "/w"})
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Fatalf("got %v, want %q", err, tc.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
	if _, err := FindPaths(Env{GOOS: "linux"}); !errors.Is(err, ErrNoHome) {
		t.Errorf("got %v, want ErrNoHome", err)
	}
}

func TestProjectNames(t *testing.T) {
	for name, ok := range map[string]bool{
		"a": true, "abc": true, "a-b_c.d": true, "1": true, strings.Repeat("a", 63): true, "comet": true, "null": true,
		"": false, "A": false, "-a": false, "a-": false, ".a": false, "a.": false, "a..b": false, "a/b": false, `a\b`: false, "a b": false, "ä": false,
		strings.Repeat("a", 64): false, "con": false, "nul": false, "com1": false, "lpt9.txt": false, "aux.a": false, "a.lock": false, "a.git": false, "a\n": false, "..": false, "a:b": false, "a\x00": false,
		"x-ghp_" + strings.Repeat("a1b2", 9): false, // a secret: it would be in every log
	} {
		if err := CheckProjectName(name); (err == nil) != ok {
			t.Errorf("%q: %v, want ok %v", name, err, ok)
		}
	}
	for dir, want := range map[string]string{
		"/x/My Project": "my-project", "/x/foo": "foo", "/x/.hidden": "hidden", "/x/a  b--c": "a-b-c", "/x/日本": "", "/x/日本 a": "a", "/x/con": "con-project",
		"/x/v1.2": "v1.2", "/x/repo.git": "repo", "/x/" + strings.Repeat("z", 100): strings.Repeat("z", 60), "/x/-": "", "/x/a...b": "a.b", "/x/dump-AK" + "IA" + "QYLPMN5HHHFPZAM2": "",
	} {
		if got := NameFrom(dir); got != want {
			t.Errorf("NameFrom(%q) = %q, want %q", dir, got, want)
		}
	}
	// Whatever the directory is called, the name is good or there is none.
	if err := quick.Check(func(s string) bool {
		n := NameFrom("/x/" + strings.ReplaceAll(s, "/", "_"))
		return n == "" || CheckProjectName(n) == nil
	}, &quick.Config{Rand: rand.New(rand.NewSource(1))}); err != nil {
		t.Error(err)
	}
}

func TestProjectFile(t *testing.T) {
	for _, tc := range []struct{ name, text, want string }{
		{"whole", "v: 1\nname: a\naliases: [b, c]\n", ""},
		{"no aliases", "v: 1\nname: a\n", ""},
		{"null aliases", "v: 1\nname: a\naliases:\n", ""},
		{"settings of later", "v: 1\nname: a\nhooks: {off: [prompt]}\nverify:\nroutes:\nguard:\n", ""},
		{"guard", "v: 1\nname: a\nguard: {ask: [\"git commit ...\"], deny: [docker ...], protected_branches: [next], allow: [make]}\n", ""},
		{"unknown of guard", "v: 1\nname: a\nguard: {dney: []}\n", "guard.dney"},
		{"shape of everything", "v: 1\nname: a\nguard: {deny: [\"* ...\"]}\n", "guard.deny[0]"},
		{"no hooks", "v: 1\nname: a\nhooks:\n", ""},
		{"hooks of state", "v: 1\nname: a\nhooks: {session_start: on, pre_compact: true, post_commit: false, edits: 3}\n", ""},
		{"a hook of state that is neither", "v: 1\nname: a\nhooks: {pre_compact: maybe}\n", "write on or off"},
		{"a hook of state without a value", "v: 1\nname: a\nhooks: {pre_compact: }\n", "has no value"},
		{"many edits", "v: 1\nname: a\nhooks: {edits: 10001}\n", "hooks.edits"},
		{"unknown of hooks", "v: 1\nname: a\nhooks: {x: y}\n", "3:9: hooks.x"},
		{"unknown kind of event", "v: 1\nname: a\nhooks: {off: [prompt, all]}\n", "hooks.off[1]"},
		{"hooks as a list", "v: 1\nname: a\nhooks: [prompt]\n", "not a section"},
		{"tools and profiles", "v: 1\nname: a\ntools: {read: {record: off}, shell: }\nprofiles:\n  musician:\n    hooks_off: [prompt]\n  conductor:\n", ""},
		{"unknown tool", "v: 1\nname: a\ntools: {hammer: {record: off}}\n", "tools.hammer"},
		{"unknown of a tool", "v: 1\nname: a\ntools: {read: {rekord: off}}\n", "tools.read.rekord"},
		{"unknown way of recording", "v: 1\nname: a\ntools: {read: {record: some}}\n", "tools.read.record"},
		{"tools as a list", "v: 1\nname: a\ntools: [read]\n", "not a section"},
		{"unknown role", "v: 1\nname: a\nprofiles: {chief: {hooks_off: []}}\n", "profiles.chief"},
		{"unknown kind of event of a role", "v: 1\nname: a\nprofiles: {musician: {hooks_off: [all]}}\n", "profiles.musician.hooks_off[0]"},
		{"number as a quoted name", "v: 1\nname: \"1\"\n", ""},
		{"empty", "", "v: is missing"},
		{"no version", "name: a\n", "v: is missing"},
		{"no name", "v: 1\n", "name: is missing"},
		{"newer", "v: 2\nname: a\n", "newer reprise"},
		{"version as text", "v: one\nname: a\n", "not a whole number"},
		{"bad name", "v: 1\nname: A B\n", "not a project name"},
		{"path as name", "v: 1\nname: ../../etc\n", "not a project name"},
		{"number as name", "v: 1\nname: 12\n", "not text"},
		{"bad alias", "v: 1\nname: a\naliases: [x, /]\n", "aliases[1]"},
		{"aliases as text", "v: 1\nname: a\naliases: b\n", "not a list"},
		{"unknown", "v: 1\nname: a\nnmae: b\n", "3:1: nmae"},
		{"twice", "v: 1\nname: a\nname: b\n", "3:1"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p, err := ParseProject("p.yaml", []byte(tc.text))
			if tc.want == "" {
				if err != nil || p.Name == "" {
					t.Errorf("%+v, %v", p, err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tc.want) || first(t, err).Remedy == "" {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

func mkdir(t *testing.T, elem ...string) string {
	t.Helper()
	dir := filepath.Join(elem...)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

func project(t *testing.T, root, name string) string {
	t.Helper()
	write(t, ProjectFile(root), "v: 1\nname: "+name+"\n")
	return root
}

// linked makes files as git does for a linked worktree of main at dir.
func linked(t *testing.T, main, dir string) {
	t.Helper()
	admin := mkdir(t, main, ".git", "worktrees", filepath.Base(dir))
	write(t, filepath.Join(dir, ".git"), "gitdir: "+admin+"\n")
	write(t, filepath.Join(admin, "commondir"), "../..\n")
	write(t, filepath.Join(admin, "gitdir"), filepath.Join(dir, ".git")+"\n")
}

func TestFindProject(t *testing.T) {
	env := testEnv(t)
	base, err := filepath.EvalSymlinks(env.Dir)
	if err != nil {
		t.Fatal(err)
	}
	main := project(t, mkdir(t, base, "main"), "main")
	mkdir(t, main, ".git")
	deep := mkdir(t, main, "a", "b")
	mono := project(t, mkdir(t, main, "packages", "one"), "one")
	wt := mkdir(t, base, "wt", "x")
	linked(t, main, filepath.Join(base, "wt"))
	monoWT := mkdir(t, base, "wt", "packages", "one", "src")
	own := project(t, mkdir(t, base, "own"), "main")
	linked(t, main, own)
	forged := mkdir(t, base, "forged")
	write(t, filepath.Join(forged, ".git"), "gitdir: "+filepath.Join(main, ".git", "worktrees", "wt")+"\n")
	nested := mkdir(t, main, "vendor", "clone")
	mkdir(t, nested, ".git")
	sub := mkdir(t, main, "sub")
	mkdir(t, main, ".git", "modules", "sub")
	write(t, filepath.Join(sub, ".git"), "gitdir: ../.git/modules/sub\n")
	// A submodule with a project of its own is that one's main checkout, and has linked
	// worktrees of its own; what its superproject's linked worktree has of it is a clone.
	lib := project(t, mkdir(t, main, "lib"), "lib")
	libDeep := mkdir(t, lib, "x")
	modules := mkdir(t, main, ".git", "modules", "lib")
	write(t, filepath.Join(lib, ".git"), "gitdir: ../.git/modules/lib\n")
	write(t, filepath.Join(modules, "config"), "[core]\n\tbare = false\n\tworktree = ../../../lib\n")
	inner := project(t, mkdir(t, lib, "inner"), "inner")
	write(t, filepath.Join(inner, ".git"), "gitdir: ../../.git/modules/lib/modules/inner\n")
	libWT := mkdir(t, base, "libwt")
	libAdmin := mkdir(t, modules, "worktrees", "libwt")
	write(t, filepath.Join(libWT, ".git"), "gitdir: "+libAdmin+"\n")
	write(t, filepath.Join(libAdmin, "commondir"), "../..\n")
	write(t, filepath.Join(libAdmin, "gitdir"), filepath.Join(libWT, ".git")+"\n")
	subWT := mkdir(t, base, "wt", "sub")
	subAdmin := mkdir(t, main, ".git", "worktrees", "wt", "modules", "sub")
	write(t, filepath.Join(main, ".git", "worktrees", "wt", "HEAD"), "ref: refs/heads/wt\n")
	write(t, filepath.Join(subWT, ".git"), "gitdir: "+subAdmin+"\n")
	plain := project(t, mkdir(t, base, "plain"), "plain")
	plainDeep := mkdir(t, plain, "x", "y")
	lonely := mkdir(t, base, "lonely")
	mkdir(t, lonely, ".git")
	bare := mkdir(t, base, "barewt")
	admin := mkdir(t, base, "repo.git", "worktrees", "barewt")
	write(t, filepath.Join(bare, ".git"), "gitdir: "+admin+"\n")
	write(t, filepath.Join(admin, "commondir"), "../..\n")
	write(t, filepath.Join(admin, "gitdir"), filepath.Join(bare, ".git")+"\n")
	garbage := mkdir(t, base, "garbage")
	write(t, filepath.Join(garbage, ".git"), "\x00\xff nonsense")
	loop := mkdir(t, main, "loop")
	if err := os.Symlink(".git", filepath.Join(loop, ".git")); err != nil && runtime.GOOS != "windows" {
		t.Fatal(err)
	}
	link := filepath.Join(base, "link")
	if err := os.Symlink(deep, link); err != nil && runtime.GOOS != "windows" {
		t.Fatal(err)
	}
	// A file above the home directory says nothing about what is in it.
	project(t, filepath.Dir(base), "above")

	for _, tc := range []struct{ name, dir, project, root, main string }{
		{"root", main, "main", main, main},
		{"below", deep, "main", main, main},
		{"nearest", mono, "one", mono, main},
		{"linked worktree", filepath.Join(base, "wt"), "main", main, main},
		{"below a linked worktree", wt, "main", main, main},
		{"project inside, from a linked worktree", monoWT, "one", mono, main},
		{"worktree with its own file", own, "main", own, main},
		{"forged worktree", forged, "", "", ""},
		{"nested clone", nested, "", "", ""},
		{"submodule", sub, "main", main, main},
		{"submodule with its own file", libDeep, "lib", lib, lib},
		{"submodule of a submodule", inner, "inner", inner, inner},
		{"linked worktree of a submodule", libWT, "lib", lib, lib},
		{"submodule in a linked worktree", subWT, "main", main, main},
		{"without git", plainDeep, "plain", plain, plain},
		{"repository without project", lonely, "", "", ""},
		{"worktree of a bare repository", bare, "", "", ""},
		{"garbage", garbage, "", "", ""},
		{"a link to itself", loop, "", "", ""},
		{"home", base, "", "", ""},
		{"through a link", link, "main", main, main},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if (tc.dir == link || tc.dir == loop) && runtime.GOOS == "windows" {
				t.Skip("no links")
			}
			p, err := FindProject(env, tc.dir)
			if err != nil {
				t.Fatal(err)
			}
			if tc.project == "" {
				if p != nil {
					t.Errorf("found %+v", p)
				}
				return
			}
			if p == nil || p.Name != tc.project || p.Root != tc.root || p.Main != tc.main {
				t.Errorf("got %+v, want %+v", p, tc)
			}
		})
	}
	t.Run("broken file is an error", func(t *testing.T) {
		dir := mkdir(t, base, "broken")
		write(t, ProjectFile(dir), "name: [")
		if _, err := FindProject(env, dir); err == nil {
			t.Error("was taken for no project")
		}
	})
	t.Run("directory that is not there", func(t *testing.T) {
		if _, err := FindProject(env, filepath.Join(base, "none")); err == nil {
			t.Error("no error")
		}
		if _, err := FindProject(env, "relative"); err == nil {
			t.Error("no error")
		}
	})
}

// The reading of .git files agrees with what git itself makes.
func TestRealWorktree(t *testing.T) {
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("git is not there")
	}
	env := testEnv(t)
	main := project(t, mkdir(t, env.Dir, "main"), "main")
	run := func(args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), git, append([]string{"-C", main, "-c", "user.name=t", "-c", "user.email=t@example.invalid"}, args...)...)
		cmd.Env = []string{"HOME=" + env.Dir, "PATH=" + os.Getenv("PATH"), "GIT_CONFIG_NOSYSTEM=1"}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	run("init", "-q")
	run("commit", "-q", "--allow-empty", "-m", "x")
	run("worktree", "add", "-q", "../wt")
	run("worktree", "add", "-q", "../rel") // may be made relative by newer versions of git
	for _, dir := range []string{"wt", "rel"} {
		p, err := FindProject(env, filepath.Join(env.Dir, dir))
		if err != nil || p == nil || p.Name != "main" {
			t.Errorf("%s: %+v, %v", dir, p, err)
		}
	}
}

func TestInitProject(t *testing.T) {
	ignore := func(root string) string {
		data, err := os.ReadFile(filepath.Join(root, ".gitignore"))
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	for _, tc := range []struct{ name, before, after string }{
		{"none", "", ".reprise/agent\n"},
		{"lines", "a\nb\n", "a\nb\n.reprise/agent\n"},
		{"no last newline", "a\nb", "a\nb\n.reprise/agent\n"},
		{"CRLF", "a\r\nb\r\n", "a\r\nb\r\n.reprise/agent\r\n"},
		{"CRLF without the last", "a\r\nb", "a\r\nb\r\n.reprise/agent\r\n"},
		{"there", "a\n.reprise/agent\nb", "a\n.reprise/agent\nb"},
		// Such a line leaves a symbolic link of that name to be committed.
		{"directories only", ".reprise/agent/\n", ".reprise/agent/\n.reprise/agent\n"},
		{"there otherwise", "/.reprise/agent\r\n", "/.reprise/agent\r\n"},
		{"commented out", "#.reprise/agent\n", "#.reprise/agent\n.reprise/agent\n"},
		{"bytes that are no text", "\xff\xfe\x00\n", "\xff\xfe\x00\n.reprise/agent\n"},
		{"byte order mark", "\ufeffa\n", "\ufeffa\n.reprise/agent\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			root := mkdir(t, t.TempDir(), "My App")
			if tc.before != "" {
				write(t, filepath.Join(root, ".gitignore"), tc.before)
			}
			p, err := InitProject(root, "")
			if err != nil {
				t.Fatal(err)
			}
			if p.Name != "my-app" || ignore(root) != tc.after {
				t.Errorf("project %+v, ignore %q", p, ignore(root))
			}
			again, err := InitProject(root, "my-app")
			if err != nil || again.Name != "my-app" || ignore(root) != tc.after {
				t.Errorf("again: %+v, %v, %q", again, err, ignore(root))
			}
			if _, err := InitProject(root, "other"); err == nil {
				t.Error("renamed without a word")
			}
		})
	}
	for _, name := range []string{"true", "null", "123", "1e3", "0x1f", "no", "1.5", "2026-11-28", "a"} {
		root := t.TempDir()
		if p, err := InitProject(root, name); err != nil || p.Name != name {
			t.Errorf("%q: %+v, %v", name, p, err)
		}
	}
	for name, prepare := range map[string]func(root string) error{
		"ignore file is a directory":  func(root string) error { return os.Mkdir(filepath.Join(root, ".gitignore"), 0o755) },
		"ignore file is a link":       func(root string) error { return os.Symlink("elsewhere", filepath.Join(root, ".gitignore")) },
		"project directory is a file": func(root string) error { return os.WriteFile(filepath.Join(root, ".reprise"), nil, 0o600) },
		"project file is a directory": func(root string) error { return os.MkdirAll(ProjectFile(root), 0o755) },
		"project file does not parse": func(root string) error {
			return errors.Join(os.Mkdir(filepath.Join(root, ".reprise"), 0o755), os.WriteFile(ProjectFile(root), []byte("v: ["), 0o600))
		},
		"project file is not readable": func(root string) error {
			return errors.Join(os.Mkdir(filepath.Join(root, ".reprise"), 0o755), os.Symlink("gone", ProjectFile(root)))
		},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			if err := prepare(root); err != nil {
				t.Skip(err)
			}
			if p, err := InitProject(root, "a"); err == nil {
				t.Errorf("made %+v", p)
			}
		})
	}
	if _, err := InitProject("relative", "a"); err == nil {
		t.Error("a relative root was taken")
	}
	if _, err := InitProject("/", "a"); err == nil {
		t.Error("the root of the file system was taken")
	}
	// Its files are JSON and YAML, in which such a path would come back as another one.
	if _, err := Prospect("/src/bad\xff", "good"); err == nil || !strings.Contains(err.Error(), "rename it") {
		t.Errorf("a directory whose name is no text: %v", err)
	}
}

func TestClaim(t *testing.T) {
	env := testEnv(t)
	paths := testPaths(t, env)
	now := time.Date(2026, 11, 28, 0, 0, 0, 0, time.UTC)
	claim := func(root, commit string) error {
		t.Helper()
		p, err := projectAt(root)
		if err != nil || p == nil {
			t.Fatal(p, err)
		}
		return paths.Claim(t.Context(), p, commit, now)
	}
	origin := func(root, url string) {
		write(t, filepath.Join(root, ".git", "config"), "[core]\n\tbare = false\n[remote \"origin\"]\n\turl = "+url+"\n")
	}
	one := project(t, mkdir(t, env.Dir, "one"), "app")
	origin(one, "git@Example.org:team/app.git")
	if err := claim(one, "c0ffee"); err != nil {
		t.Fatal(err)
	}
	if err := claim(one, ""); err != nil {
		t.Errorf("again: %v", err)
	}
	stranger := project(t, mkdir(t, env.Dir, "stranger"), "app")
	var taken *NameTakenError
	if err := claim(stranger, "beef"); !errors.As(err, &taken) || taken.By != one {
		t.Errorf("a stranger: %v", err)
	}
	sEnv := env
	sEnv.Dir = stranger
	if _, err := Open(sEnv, ""); !errors.As(err, &taken) {
		t.Errorf("Open: %v", err)
	}
	clone := project(t, mkdir(t, env.Dir, "clone"), "app")
	origin(clone, "https://user@example.org/team/app")
	if err := claim(clone, ""); err != nil {
		t.Errorf("a clone with the same origin: %v", err)
	}
	local := project(t, mkdir(t, env.Dir, "local"), "app")
	if err := claim(local, "c0ffee"); err != nil {
		t.Errorf("a clone with the same first commit: %v", err)
	}
	if err := claim(local, ""); err != nil {
		t.Errorf("known now: %v", err)
	}
	late := project(t, mkdir(t, env.Dir, "late"), "lib")
	write(t, filepath.Join(late, ".git", "config"), "[core]\n\tbare = false\n")
	if err := claim(late, ""); err != nil {
		t.Fatal(err)
	}
	for name, url := range map[string]string{"of it": late, "of its .git": filepath.Join(late, ".git")} {
		p := project(t, mkdir(t, env.Dir, name), "lib")
		origin(p, url)
		if err := claim(p, ""); err != nil {
			t.Errorf("a clone %s: %v", name, err)
		}
	}
	other := project(t, mkdir(t, env.Dir, "other"), "lib")
	origin(other, "https://example.org/lib")
	if err := claim(other, ""); !errors.As(err, &taken) || !strings.Contains(err.Error(), "reprise init --yes") {
		t.Errorf("one with another origin: %v", err)
	}
	origin(late, "git@example.org:lib")
	if err := claim(other, ""); err != nil {
		t.Errorf("the first got its origin after its name: %v", err)
	}
	for _, dir := range []string{one, clone, local} {
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
	}
	if err := claim(stranger, "beef"); err != nil {
		t.Errorf("a name whose projects are gone: %v", err)
	}
	write(t, claimFile(paths, "app"), "{damaged")
	if err := claim(stranger, ""); err == nil || !strings.Contains(err.Error(), "damaged") {
		t.Errorf("a damaged register: %v", err)
	}
	write(t, claimFile(paths, "app"), `{"v":2,"name":"app"}`)
	if err := claim(stranger, ""); err == nil || !strings.Contains(err.Error(), "newer") {
		t.Errorf("a newer register: %v", err)
	}
}

// Of many that ask for one name at once, one project gets it.
func TestClaimAtOnce(t *testing.T) {
	env := testEnv(t)
	paths := testPaths(t, env)
	var wg sync.WaitGroup
	errs := make([]error, 8)
	for i := range errs {
		p, err := projectAt(project(t, mkdir(t, env.Dir, string(rune('a'+i))), "app"))
		if err != nil {
			t.Fatal(err)
		}
		wg.Go(func() { errs[i] = paths.Claim(context.Background(), p, "", time.Now()) })
	}
	wg.Wait()
	oneHasIt(t, errs, func(*NameTakenError) bool { return true })
}

// oneHasIt wants one of those that asked for a name to have it, and the others to be refused
// in the way that is asked for.
func oneHasIt(t *testing.T, errs []error, refused func(*NameTakenError) bool) {
	t.Helper()
	won := 0
	for _, err := range errs {
		var taken *NameTakenError
		switch {
		case err == nil:
			won++
		case !errors.As(err, &taken) || !refused(taken):
			t.Error(err)
		}
	}
	if won != 1 {
		t.Errorf("%d have the name", won)
	}
}

func TestNormaliseRemote(t *testing.T) {
	for in, want := range map[string]string{
		"git@example.org:a/b.git": "example.org/a/b", "ssh://git@Example.org:22/a/b.git": "example.org/a/b", "https://example.org/a/b/": "example.org/a/b",
		"https://u:p@example.org/a/b.git": "example.org/a/b", "file:///srv/a.git": "/srv/a.git", "/srv/a.git": "/srv/a.git", "../a": "../a", `C:\a`: `C:\a`, "": "", "https://": "",
		`"https://example.org/a/b"`: "example.org/a/b",
	} {
		if got := NormaliseRemote(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}
