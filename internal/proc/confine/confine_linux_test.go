package confine

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"reprise/internal/proc"
)

func TestMain(m *testing.M) {
	if len(os.Args) == 4 && os.Args[1] == "start-confined" {
		os.Exit(startConfined(os.Args[2], os.Args[3]))
	}
	os.Exit(m.Run())
}

// startConfined is the body of this binary as another user: it runs a shell
// script under a Spec in JSON and returns its exit code.
func startConfined(spec, script string) int {
	var s Spec
	if err := json.Unmarshal([]byte(spec), &s); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 126
	}
	p, err := Start(s, proc.Cmd{Path: "/bin/sh", Args: []string{"-c", script}, Env: os.Environ(), Stdout: os.Stdout, Stderr: os.Stderr})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 126
	}
	exit, err := p.Wait()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 126
	}
	return exit.Code
}

// place is a home directory with a memory directory some levels below, under
// /var/tmp so that /tmp is not on the way to it.
func place(t *testing.T) (home, memory string) {
	t.Helper()
	base, err := os.MkdirTemp("/var/tmp", "confine-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(base) })
	home = filepath.Join(base, "home")
	memory = filepath.Join(home, "data", "memory")
	for _, d := range []string{"data/memory/blocks", "data/runs", "work/sub"} {
		if err := os.MkdirAll(filepath.Join(home, d), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	for f, text := range map[string]string{"data/memory/core.md": "secret", "data/memory/blocks/b.md": "secret", "file": "old", "data/file": "old", "work/w": "w"} {
		if err := os.WriteFile(filepath.Join(home, f), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	// A plain user must be able to do everything here, were it not confined.
	err = filepath.WalkDir(base, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		mode := fs.FileMode(0o666)
		if d.IsDir() {
			mode = 0o777
		}
		return os.Chmod(p, mode)
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("data", filepath.Join(home, "link")); err != nil {
		t.Fatal(err)
	}
	return home, memory
}

// What a program tries; M is the memory directory, H the home, T a directory in
// /tmp, the working directory is H/work. all and write say whether it may succeed when M is
// DenyAll or DenyWrite. Unconfined, everything must succeed, or the row says
// nothing.
var actions = []struct {
	name, sh   string
	all, write bool
}{
	{"read", `cat $M/core.md`, false, true},
	{"read deeper", `cat $M/blocks/b.md`, false, true},
	{"read through link", `cat $H/link/memory/core.md`, false, true},
	{"read through dots", `cat ../work/../data/memory/core.md`, false, true},
	{"read through /proc", `cat /proc/self/root$M/core.md`, false, true},
	{"list", `ls $M`, false, true},
	{"copy out", `cp $M/core.md ./copy`, false, true},
	{"change into and read", `cd $M && cat core.md`, false, true},
	{"copy a program and run it", `cp /bin/true $H/work/t && cp $H/work/t ./t2 && ./t2`, true, true},
	{"overwrite", `echo x > $M/core.md`, false, false},
	{"append", `echo x >> $M/core.md`, false, false},
	{"truncate", `truncate -s 0 $M/core.md`, false, false},
	{"create", `echo x > $M/new`, false, false},
	{"create deeper", `echo x > $M/blocks/new`, false, false},
	{"make directory", `mkdir $M/d`, false, false},
	{"make link", `ln -s /etc $M/l`, false, false},
	{"make fifo", `mkfifo $M/p`, false, false},
	{"hard link out", `ln $M/core.md ./hard`, false, false},
	{"hard link in", `ln ./w $M/hard`, false, false},
	{"move in", `cp w w2 && mv w2 $M/`, false, false},
	{"move out", `mv $M/blocks/b.md ./b`, false, false},
	{"move within", `mv $M/core.md $M/core2.md`, false, false},
	{"remove", `rm $M/core.md`, false, false},
	{"remove all", `rm -r $M/blocks`, false, false},
	{"move the directory", `mv $M $H/data/elsewhere`, false, false},
	{"move its parent", `mv $H/data $H/data2`, false, false},
	{"interpreter reads", `$PY -c 'import sys; open(sys.argv[1]).read()' $M/core.md`, false, true},
	{"interpreter writes", `$PY -c 'import sys; open(sys.argv[1],"w").write("x")' $M/core.md`, false, false},
	{"grandchild in its own session", `setsid -w sh -c 'echo x > $M/core.md'`, false, false},

	{"write here", `echo x > f && cat f && rm f`, true, true},
	{"work tree", `mkdir -p a/b && echo x > a/b/c && mv a/b sub/b && ln sub/b/c hl && ln -s c sl && rm -r a sub/b hl sl`, true, true},
	{"list here", `ls . sub`, true, true},
	{"move between directories", `echo x > m && mv m ../data/runs/m && rm ../data/runs/m`, true, true},
	{"beside it", `echo x > $H/data/runs/r && cat $H/data/runs/r && rm $H/data/runs/r`, true, true},
	{"write an existing file in an ancestor", `echo new > $H/file && cat $H/file`, true, true},
	{"look up in an ancestor", `test -f $H/file && test -d $M`, true, true},
	{"tmp", `f=$(mktemp -p $T) && echo x > $f && cat $f && rm $f`, true, true},
	{"null", `echo x > /dev/null && head -c 3 /dev/zero > z && rm z`, true, true},
	{"pty", `: <> /dev/ptmx`, true, true},
	{"proc", `cat /proc/self/status /proc/meminfo && ls /proc`, true, true},
	{"run", `/bin/sh -c 'exec true' && ls /usr/bin`, true, true},
	{"script with interpreter line", `printf '#!/bin/sh\nexit 0\n' > s && chmod +x s && ./s && rm s`, true, true},
	{"signal others in the tree", `sh -c 'exec sleep 1000' & kill $! && ! wait $!`, true, true},

	// The price, held here so that a change of it is seen.
	{"create in an ancestor", `echo x > $H/new && rm $H/new`, false, false},
	{"remove in an ancestor", `rm $H/data/file && echo old > $H/data/file`, false, false},
	{"replace by rename in an ancestor", `echo x > ../work/n && mv n $H/file`, false, false},
	{"list an ancestor", `ls $H`, false, true},
	{"list the root", `ls /`, false, true},
}

// script is one shell script that tries everything and says how it went. With
// nothing confined, what an action did to the memory is undone after it.
func script(unconfined bool) string {
	var b strings.Builder
	if unconfined {
		b.WriteString("cp -a $H $H.was\n")
	}
	for _, a := range actions {
		fmt.Fprintf(&b, "( %s ) >/dev/null 2>&1 && echo '%s: ok' || echo '%s: no'\n", a.sh, a.name, a.name)
		if unconfined && !a.write {
			b.WriteString("cd /; rm -rf $H; cp -a $H.was $H; cd $H/work\n")
		}
	}
	return b.String()
}

// environ is the environment of the script. It names a directory of its own in /tmp that
// everybody may write to: /tmp itself is, on some machines, root's alone.
func environ(t *testing.T, home, memory string) []string {
	t.Helper()
	tmp, err := os.MkdirTemp("/tmp", "confine-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(tmp) })
	if err := os.Chmod(tmp, 0o777|fs.ModeSticky); err != nil {
		t.Fatal(err)
	}
	py := "/usr/bin/python3"
	if _, err := os.Stat(py); err != nil {
		// The same by perl, which Debian always has.
		py = home + "/work/py"
		text := "#!/bin/sh\ncase $2 in *'\"w\"'*) exec perl -e 'open F, \">\", $ARGV[0] or exit 1' $3;; *) exec perl -e 'open F, \"<\", $ARGV[0] or exit 1; <F>' $3;; esac\n"
		if err := os.WriteFile(py, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return []string{"PATH=/usr/bin:/bin", "T=" + tmp, "M=" + memory, "H=" + home, "PY=" + py + " -I"}
}

// results reads what script printed.
func results(t *testing.T, out string) map[string]bool {
	t.Helper()
	got := map[string]bool{}
	for line := range strings.Lines(out) {
		name, how, ok := strings.Cut(strings.TrimSpace(line), ": ")
		if !ok {
			t.Fatalf("unexpected output %q", line)
		}
		got[name] = how == "ok"
	}
	return got
}

func want(f func(i int) bool) map[string]bool {
	m := map[string]bool{}
	for i, a := range actions {
		m[a.name] = f(i)
	}
	return m
}

// snapshot is what is in the protected directory.
func snapshot(t *testing.T, dir string) map[string]string {
	t.Helper()
	m := map[string]string{}
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			m[p] = "directory"
			return err
		}
		b, err := os.ReadFile(p)
		m[p] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func needLandlock(t *testing.T) {
	t.Helper()
	if abi, why := Supported(); abi == 0 {
		t.Skipf("this kernel cannot confine: %s", why)
	}
}

func TestActionsSucceedUnconfined(t *testing.T) {
	home, memory := place(t)
	got := runStart(t, Spec{}, home, memory, script(true))
	if d := cmp.Diff(want(func(int) bool { return true }), got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}

func TestStart(t *testing.T) {
	needLandlock(t)
	for name, deny := range specs() {
		t.Run(name, func(t *testing.T) {
			home, memory := place(t)
			before := snapshot(t, memory)
			got := runStart(t, deny.spec(memory), home, memory, script(false))
			if d := cmp.Diff(want(deny.ok), got); d != "" {
				t.Errorf("(-want +got)\n%s", d)
			}
			if d := cmp.Diff(before, snapshot(t, memory)); d != "" {
				t.Errorf("the protected directory changed\n%s", d)
			}
			// This process is as free as before, on every thread.
			if err := os.WriteFile(filepath.Join(memory, "mine"), nil, 0o600); err != nil {
				t.Error(err)
			}
		})
	}
}

type denial struct {
	spec func(memory string) Spec
	ok   func(i int) bool
}

func specs() map[string]denial {
	return map[string]denial{
		"all": {
			func(m string) Spec { return Spec{DenyAll: []string{m}} },
			func(i int) bool { return actions[i].all },
		},
		"write": {
			func(m string) Spec { return Spec{DenyWrite: []string{m}} },
			func(i int) bool { return actions[i].write },
		},
		"both, and named through a link": {
			func(m string) Spec {
				link := filepath.Join(filepath.Dir(filepath.Dir(m)), "link", "memory")
				return Spec{DenyWrite: []string{m}, DenyAll: []string{link}}
			},
			func(i int) bool { return actions[i].all },
		},
	}
}

func runStart(t *testing.T, s Spec, home, memory, sh string) map[string]bool {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	p, err := Start(s, proc.Cmd{
		Path: "/bin/sh", Args: []string{"-c", sh}, Dir: filepath.Join(home, "work"),
		Env: environ(t, home, memory), Stdout: w, Stderr: os.Stderr, NewSession: true,
	})
	w.Close()
	if err != nil {
		t.Fatal(err)
	}
	out := make([]byte, 0, 8<<10)
	buf := make([]byte, 4<<10)
	for {
		n, err := r.Read(buf)
		out = append(out, buf[:n]...)
		if err != nil {
			break
		}
	}
	if _, err := p.Wait(); err != nil {
		t.Fatal(err)
	}
	return results(t, string(out))
}

// The same as a plain user, who computes the grants with a plain user's rights.
func TestStartAsPlainUser(t *testing.T) {
	needLandlock(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"all"} { // TestStart has the others; each costs some 200 processes
		deny := specs()[name]
		t.Run(name, func(t *testing.T) {
			home, memory := place(t)
			before := snapshot(t, memory)
			// The test binary lies where only its owner may go.
			shim := filepath.Join(filepath.Dir(home), "shim")
			copyFile(t, self, shim)
			spec, err := json.Marshal(deny.spec(memory))
			if err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command(shim, "start-confined", string(spec), script(false))
			cmd.Dir, cmd.Env, cmd.Stderr = filepath.Join(home, "work"), environ(t, home, memory), os.Stderr
			if os.Getuid() == 0 {
				cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
				// Not the owner: chmod and hard links of others' files are not
				// its own to make.
				chown(t, home)
			}
			out, err := cmd.Output()
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(want(deny.ok), results(t, string(out))); d != "" {
				t.Errorf("(-want +got)\n%s", d)
			}
			if d := cmp.Diff(before, snapshot(t, memory)); d != "" {
				t.Errorf("the protected directory changed\n%s", d)
			}
		})
	}
}

func chown(t *testing.T, dir string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(p string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(p, 65534, 65534)
	})
	if err != nil {
		t.Fatal(err)
	}
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	b, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, b, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Dir(to), 0o755); err != nil {
		t.Fatal(err)
	}
}

// What does not exist yet cannot be made; a link that leads to what is
// protected cannot be replaced.
func TestMissingAndLinks(t *testing.T) {
	needLandlock(t)
	home, memory := place(t)
	if err := os.Symlink(memory, filepath.Join(home, "work", "mem")); err != nil {
		t.Fatal(err)
	}
	viaLink := filepath.Join(home, "work", "mem")
	for name, tc := range map[string]struct {
		spec Spec
		sh   string
		want bool
	}{
		"make what is missing":      {Spec{DenyWrite: []string{home + "/data/none"}}, `mkdir $H/data/none`, false},
		"make its missing parent":   {Spec{DenyAll: []string{home + "/data/none/deeper"}}, `mkdir -p $H/data/none/deeper`, false},
		"beside what is missing":    {Spec{DenyAll: []string{home + "/data/none/deeper"}}, `echo x > $H/data/runs/x`, true},
		"replace a link":            {Spec{DenyWrite: []string{viaLink}}, `rm $H/work/mem`, false},
		"write through a link":      {Spec{DenyWrite: []string{viaLink}}, `echo x > $H/work/mem/core.md`, false},
		"write to where it leads":   {Spec{DenyWrite: []string{viaLink}}, `echo x > $M/core.md`, false},
		"read through a link":       {Spec{DenyWrite: []string{viaLink}}, `cat $H/work/mem/core.md`, true},
		"one file only":             {Spec{DenyAll: []string{memory + "/core.md"}}, `cat $M/core.md`, false},
		"beside one file":           {Spec{DenyAll: []string{memory + "/core.md"}}, `cat $M/blocks/b.md && echo x > $M/blocks/b.md`, true},
		"one below the other":       {Spec{DenyWrite: []string{memory}, DenyAll: []string{memory + "/blocks"}}, `cat $M/blocks/b.md`, false},
		"above one below the other": {Spec{DenyWrite: []string{memory}, DenyAll: []string{memory + "/blocks"}}, `cat $M/core.md && ! echo x > $M/core.md`, true},
		"two places":                {Spec{DenyAll: []string{memory, home + "/data/runs"}}, `cat $M/core.md || ls $H/data/runs`, false},
	} {
		t.Run(name, func(t *testing.T) {
			got := runStart(t, tc.spec, home, memory, "( "+tc.sh+" ) >/dev/null 2>&1 && echo 'x: ok' || echo 'x: no'")
			if got["x"] != tc.want {
				t.Errorf("%s: succeeded %v, want %v", tc.sh, got["x"], tc.want)
			}
		})
	}
}

func TestLocations(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(dir, "real/sub"), 0o755); err != nil {
		t.Fatal(err)
	}
	for link, to := range map[string]string{"abs": dir + "/real", "rel": "real", "up": "../" + filepath.Base(dir) + "/rel", "loop": "loop", "dangling": "none/x"} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	for in, want := range map[string][]string{
		"real":         {"real"},
		"real/sub/":    {"real/sub"},
		"abs/sub":      {"abs", "real/sub"},
		"rel/sub":      {"real/sub", "rel"},
		"up/sub":       {"real/sub", "rel", "up"},
		"none/a/b":     {"none/a/b"},
		"real/none":    {"real/none"},
		"dangling":     {"dangling", "none/x"},
		"rel/../other": {"other"}, // cleaned first, as a person would mean it
	} {
		for i := range want {
			want[i] = filepath.Join(dir, want[i])
		}
		got, err := locations([]string{dir + "/" + in})
		if err != nil {
			t.Errorf("%s: %v", in, err)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s (-want +got)\n%s", in, d)
		}
	}
	for _, bad := range []string{"", "relative", "/", "/../", dir + "/loop", "/a\x00b"} {
		if got, err := locations([]string{bad}); err == nil {
			t.Errorf("%q: %v, no error", bad, got)
		}
	}
}

func TestBadCommands(t *testing.T) {
	if _, err := Start(Spec{DenyAll: []string{"relative"}}, proc.Cmd{Path: "/bin/true"}); err == nil {
		t.Error("Start with a relative path: no error")
	}
	if _, err := Start(Spec{DenyAll: []string{"/nonexistent/x"}}, proc.Cmd{Path: "/bin/none"}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Start of a missing program: %v", err)
	}
}

// Names of actions are keys of what the script prints.
func TestActionNamesAreUnique(t *testing.T) {
	names := map[string]bool{}
	for _, a := range actions {
		names[a.name] = true
	}
	if len(names) != len(actions) {
		t.Errorf("%d names for %d actions: %v", len(names), len(actions), slices.Sorted(maps.Keys(names)))
	}
}

func BenchmarkStart(b *testing.B) {
	for name, s := range map[string]Spec{"bare": {}, "deny write": {DenyWrite: []string{"/var/tmp/none/memory"}}, "deny all": {DenyAll: []string{"/var/tmp/none/memory"}}} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				p, err := Start(s, proc.Cmd{Path: "/bin/true"})
				if err != nil {
					b.Fatal(err)
				}
				if e, err := p.Wait(); err != nil || e.Code != 0 {
					b.Fatal(e, err)
				}
			}
		})
	}
}

// What a confined program starts can be confined in its turn: by the same Spec,
// which holds already, or by more where it can see what to grant. Where it
// cannot, nothing is started.
func TestConfinedWithin(t *testing.T) {
	if _, why := Supported(); why != "" {
		t.Skip(why)
	}
	home, memory := place(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	work := filepath.Join(home, "work")
	for _, tc := range []struct {
		name         string
		outer, inner Spec
		want         string
	}{
		{"the same", Spec{DenyAll: []string{memory}}, Spec{DenyAll: []string{memory}}, "free closed"},
		{"less", Spec{DenyAll: []string{memory}}, Spec{DenyWrite: []string{memory}}, "free closed"},
		{"more", Spec{DenyWrite: []string{memory}}, Spec{DenyAll: []string{memory}}, "free closed"},
		{"both, again", Spec{DenyAll: []string{memory}, DenyWrite: []string{work}}, Spec{DenyAll: []string{memory}, DenyWrite: []string{work}}, "kept closed"},
		{"what is not there", Spec{DenyAll: []string{home + "/none/m"}}, Spec{DenyAll: []string{home + "/none/m"}}, "free written"},
		{"something else", Spec{DenyWrite: []string{memory}}, Spec{DenyWrite: []string{work}}, "kept open"},
		{"something that cannot be", Spec{DenyAll: []string{memory}}, Spec{DenyAll: []string{memory}, DenyWrite: []string{work}}, ErrWithin.Error()},
	} {
		t.Run(tc.name, func(t *testing.T) {
			script := `(echo x > ` + work + `/made) && w=free || w=kept; cat ` + memory + `/core.md >/dev/null && m=open || m=closed; (echo x > ` + memory + `/x) && m=written; echo $w $m`
			inner, err := json.Marshal(tc.inner)
			if err != nil {
				t.Fatal(err)
			}
			outer, err := json.Marshal(tc.outer)
			if err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command(self, "start-confined", string(outer), fmt.Sprintf("exec %s start-confined '%s' '%s'", self, inner, script))
			out, _ := cmd.CombinedOutput() // its words say how it went
			if !strings.Contains(string(out), tc.want) {
				t.Errorf("%s", out)
			}
			if left, err := os.ReadDir(memory); tc.name == "what is not there" {
				if err := os.Remove(filepath.Join(memory, "x")); err != nil {
					t.Error("nothing there was denied, but it cannot be written", err)
				}
			} else if err != nil || len(left) != 2 {
				t.Errorf("the memory holds %v, %v", left, err)
			}
		})
	}
}

// With OwnSignals a program cannot end who waits for it, nor anybody else; what it started
// itself it can.
func TestOwnSignals(t *testing.T) {
	needLandlock(t)
	home, memory := place(t)
	const sh = `
kill -0 $PPID 2>/dev/null && echo 'parent: ok' || echo 'parent: no'
sh -c 'kill -0 '$PPID 2>/dev/null && echo 'parent of a child: ok' || echo 'parent of a child: no'
sleep 1000 & kill $! && ! wait $! && echo 'child: ok' || echo 'child: no'
`
	for _, own := range []bool{false, true} {
		free := !own || !scopesSignals()
		got := runStart(t, Spec{DenyWrite: []string{memory}, OwnSignals: own}, home, memory, sh)
		if d := cmp.Diff(map[string]bool{"parent": free, "parent of a child": free, "child": true}, got); d != "" {
			t.Errorf("own signals %v (-want +got)\n%s", own, d)
		}
	}
	if !scopesSignals() {
		t.Skip("this kernel keeps no signals within")
	}
}
