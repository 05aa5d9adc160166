package tree

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"reprise/internal/proc"
)

// vars is an environment in which git has no settings of anybody.
func vars(t testing.TB) map[string]string {
	return map[string]string{"PATH": os.Getenv("PATH"), "HOME": t.TempDir()}
}

func runGit(t testing.TB, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=t", "-c", "user.email=t@t", "-c", "commit.gpgSign=false", "-c", "protocol.file.allow=always"}, args...)...)
	cmd.Dir, cmd.Env = dir, []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "GIT_CONFIG_NOSYSTEM=1", "LC_ALL=C"}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %q in %s: %v\n%s", args, dir, err, out)
	}
	return string(out)
}

func put(t testing.TB, dir, name, text string, mode fs.FileMode) {
	t.Helper()
	p := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(p, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(p, mode); err != nil {
		t.Fatal(err)
	}
}

// picture is everything that is in a directory, .git of a repository included
// where git is, down to the content and to the times of the files.
func picture(t *testing.T, dir string, withGit bool) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(dir, p)
		if d.Name() == ".git" && !withGit {
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		fi, err := d.Info()
		if err != nil {
			return err
		}
		desc := fi.Mode().String()
		switch {
		case fi.Mode()&fs.ModeSymlink != 0:
			link, err := os.Readlink(p)
			if err != nil {
				return err
			}
			desc = "-> " + link
		case fi.Mode().IsRegular():
			data, err := os.ReadFile(p)
			if err != nil {
				return err
			}
			at := fi.ModTime().UnixNano()
			if strings.Contains(rel, ".git/") && strings.Contains(rel, "objects/") {
				at = 0 // git dates an object anew that somebody makes again
			}
			desc += fmt.Sprintf(" %d %q", at, data)
		}
		out[rel] = desc
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func options(t *testing.T, id string) SnapshotOptions {
	return SnapshotOptions{Dir: t.TempDir(), ID: id, Host: "h", Now: time.Now}
}

func find(t testing.TB, dir string) Tree {
	t.Helper()
	tr, err := Find(context.Background(), dir, "", Options{Vars: vars(t)})
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

// names are made of what file systems take and programs trip over.
var parts = []string{"a", "b", "src", "with space", "-dash", "ümlaut", "日本", "quo\"te", "new\nline", "tab\t", "back\\slash", "star*", "$HOME", "x.go", "#hash", "%s", "..dots", "'", "\xff\xfe", "COM1", "deep"}

// randomTree makes a tree of odd names, modes and links below dir; what it calls
// ignored has "ignored" in its name.
func randomTree(t *testing.T, r *rand.Rand, dir string, files int) {
	t.Helper()
	taken := []string{}
	for i := range files {
		depth := 1 + r.IntN(3)
		var name []string
		for range depth {
			name = append(name, parts[r.IntN(len(parts))])
		}
		name[depth-1] += fmt.Sprint(i)
		if r.IntN(6) == 0 {
			name[depth-1] += ".ignored"
		}
		p := filepath.Join(name...)
		switch r.IntN(8) {
		case 0:
			target := []string{"../x", "/etc/hostname", "nowhere", ".", strings.Repeat("l", 200)}[r.IntN(5)]
			if len(taken) > 0 && r.IntN(2) == 0 {
				target = taken[r.IntN(len(taken))]
			}
			if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(p)), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(target, filepath.Join(dir, p)); err != nil {
				t.Fatal(err)
			}
		case 1:
			if err := os.MkdirAll(filepath.Join(dir, p), 0o750); err != nil {
				t.Fatal(err)
			}
		default:
			size := r.IntN(200)
			if r.IntN(20) == 0 {
				size = small + r.IntN(1000)
			}
			put(t, dir, p, strings.Repeat("0123456789", size/10+1)[:size], []fs.FileMode{0o644, 0o755, 0o600, 0o444, 0o640}[r.IntN(5)])
			taken = append(taken, p)
		}
	}
}

// A snapshot is the tree, less what git ignores; and making one, and doing
// anything in it, leaves the tree, its index, refs and all else of git as it was.
func TestSnapshotIsTheTree(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the names are not possible there")
	}
	for seed := range uint64(3) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(seed, 1))
			dir := filepath.Join(t.TempDir(), "work tree")
			if err := os.MkdirAll(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			isGit := seed%3 != 2
			randomTree(t, r, dir, 50)
			if isGit {
				runGit(t, dir, "init", "-q", "-b", "main")
				put(t, dir, ".gitignore", "*.ignored\nnode_modules/\n", 0o644)
				runGit(t, dir, "add", "-A")
				runGit(t, dir, "commit", "-q", "-m", "one")
				changeSome(t, r, dir)
				put(t, dir, ".gitignore", "*.ignored\nnode_modules/\n", 0o644)
				submodule(t, dir)
				if seed == 0 {
					linked := filepath.Join(t.TempDir(), "linked")
					runGit(t, dir, "worktree", "add", "-q", "-b", "other", linked)
					randomTree(t, r, linked, 20)
					dir = linked
				}
			}
			put(t, dir, "node_modules/p/index.js", "1", 0o644)
			before := picture(t, dir, true)
			tr := find(t, dir)
			if tr.Git != isGit {
				t.Fatalf("git: %v", tr.Git)
			}
			o := options(t, "ver-test")
			o.Carry = []string{"node_modules"}
			s, err := tr.Snapshot(context.Background(), o)
			if err != nil {
				t.Fatal(err)
			}
			want := picture(t, dir, false)
			if isGit {
				withoutIgnored(want, strings.Split(runGit(t, dir, "ls-files", "-z"), "\x00"))
			}
			if d := cmp.Diff(want, picture(t, s.Tree.Top, false)); d != "" {
				t.Errorf("the snapshot is not the tree (-tree +snapshot):\n%s", d)
			}
			l, err := tr.List(context.Background(), time.Now())
			if err != nil {
				t.Fatal(err)
			}
			if h, err := tr.Hash(context.Background(), l); err != nil || h != s.Hash {
				t.Errorf("hash of the tree %s, of the snapshot %s, %v", h, s.Hash, err)
			}
			ls, err := s.Tree.List(context.Background(), time.Now())
			if err != nil {
				t.Fatal(err)
			}
			if h, err := s.Tree.Hash(context.Background(), ls); err != nil || isGit && h != s.Hash {
				t.Errorf("the copy's own hash is %s, want %s, %v", h, s.Hash, err)
			}
			if n, all, err := s.Changed(context.Background(), time.Now()); err != nil || all != 0 {
				t.Errorf("nothing was done, and %d paths changed: %q %v", all, n, err)
			}
			if isGit {
				if a, b := runGit(t, dir, "status", "--porcelain", "-z", "--untracked-files=all"), runGit(t, s.Tree.Top, "status", "--porcelain", "-z", "--untracked-files=all"); a != b {
					t.Errorf("git status\n%q\nin the copy\n%q", a, b)
				}
				before[".git"] = picture(t, dir, true)[".git"]
				before = refreshed(t, dir, before)
				work(t, s.Tree.Top)
			}
			if d := cmp.Diff(before, picture(t, dir, true)); d != "" {
				t.Errorf("the tree was touched:\n%s", d)
			}
			if err := s.Remove(); err != nil {
				t.Error(err)
			}
			if left, _ := os.ReadDir(o.Dir); len(left) != 0 {
				t.Errorf("left: %v", left)
			}
		})
	}
}

// withoutIgnored takes out what is ignored, and directories that hold nothing
// else: for git they are ignored, too, unless it has a file in them, though that
// be deleted.
func withoutIgnored(want map[string]string, tracked []string) {
	above := map[string]bool{}
	for p := range want {
		if slices.ContainsFunc(strings.Split(p, "/"), func(n string) bool { return strings.HasSuffix(n, ".ignored") }) {
			delete(want, p)
			for d := filepath.Dir(p); d != "."; d = filepath.Dir(d) {
				above[d] = true
			}
		}
	}
	for again := true; again; {
		again = false
		for d := range above {
			below := func(p string) bool { return strings.HasPrefix(p, d+"/") }
			if want[d] != "" && !slices.ContainsFunc(tracked, below) && !slices.ContainsFunc(slices.Collect(maps.Keys(want)), below) {
				delete(want, d)
				again = true
			}
		}
	}
}

// refreshed takes over the index as `git status` of this very test left it.
func refreshed(t *testing.T, dir string, before map[string]string) map[string]string {
	now := picture(t, dir, true)
	for p := range before {
		if strings.HasSuffix(p, "/index") || p == ".git/index" {
			before[p] = now[p]
		}
	}
	for p, v := range now {
		if v[0] == 'd' && strings.HasPrefix(p, ".git") {
			before[p] = v
		}
	}
	return before
}

// changeSome leaves work that is staged, not staged, deleted, renamed and new.
func changeSome(t *testing.T, r *rand.Rand, dir string) {
	t.Helper()
	for i, name := range strings.Split(strings.TrimRight(runGit(t, dir, "ls-files", "-z"), "\x00"), "\x00") {
		p := filepath.Join(dir, name)
		switch {
		case i%7 == 1:
			if err := os.Remove(p); err != nil {
				t.Fatal(err)
			}
		case i%7 == 2:
			if err := os.Rename(p, p+".renamed"); err != nil {
				t.Fatal(err)
			}
		case i%7 == 3:
			if fi, err := os.Lstat(p); err == nil && fi.Mode().IsRegular() {
				put(t, dir, name, "changed", 0o755)
			}
		}
	}
	put(t, dir, "staged.txt", "staged", 0o644)
	runGit(t, dir, "add", "staged.txt")
	put(t, dir, "staged.txt", "and changed", 0o644)
	randomTree(t, r, filepath.Join(dir, "new"), 20)
}

// submodule puts one in, with work of its own that is not committed.
func submodule(t *testing.T, dir string) {
	t.Helper()
	lib := filepath.Join(t.TempDir(), "lib")
	put(t, lib, "lib.txt", "lib", 0o644)
	runGit(t, lib, "init", "-q", "-b", "main")
	runGit(t, lib, "add", "-A")
	runGit(t, lib, "commit", "-q", "-m", "lib")
	runGit(t, dir, "submodule", "--quiet", "add", lib, "third/lib")
	put(t, dir, "third/lib/new.txt", "not committed", 0o644)
}

// work does in the copy what agents and build tools do.
func work(t *testing.T, dir string) {
	t.Helper()
	put(t, dir, "made.txt", "made", 0o644)
	runGit(t, dir, "add", "made.txt")
	runGit(t, dir, "commit", "-q", "-m", "two", "--no-verify")
	runGit(t, dir, "stash", "-q", "-u")
	runGit(t, dir, "branch", "b1")
	runGit(t, dir, "prune")
}

func TestSnapshotOfACommit(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	put(t, dir, "a.txt", "one\n", 0o755)
	put(t, dir, "gone.txt", "gone\n", 0o644)
	if err := os.Symlink("a.txt", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	runGit(t, dir, "init", "-q", "-b", "main")
	put(t, dir, ".gitignore", "deps/\n", 0o644)
	runGit(t, dir, "add", "-A")
	runGit(t, dir, "commit", "-q", "-m", "one")
	base := strings.TrimSpace(runGit(t, dir, "rev-parse", "HEAD"))
	put(t, dir, "a.txt", "two\n", 0o644)
	put(t, dir, "deps/d.txt", "dep", 0o644)
	if err := os.Remove(filepath.Join(dir, "gone.txt")); err != nil {
		t.Fatal(err)
	}
	put(t, dir, "b.txt", "b\nb\n", 0o644)
	tr := find(t, dir)
	o := options(t, "ver-base")
	o.Commit, o.Carry = base, []string{"deps"}
	s, err := tr.Snapshot(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Remove()
	for name, want := range map[string]string{"a.txt": "one\n", "gone.txt": "gone\n", "link": "one\n", "deps/d.txt": "dep"} {
		if got, err := os.ReadFile(filepath.Join(s.Tree.Top, name)); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	if _, err := os.Lstat(filepath.Join(s.Tree.Top, "b.txt")); err == nil {
		t.Error("b.txt is not in that commit")
	}
	if out := runGit(t, s.Tree.Top, "status", "--porcelain"); out != "" {
		t.Errorf("git status in the copy: %q", out)
	}
	c, err := tr.ChangeSince(context.Background(), "", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"a.txt", "b.txt", "gone.txt"}; !slices.Equal(c.Paths, want) || c.Lines != 2+1+2 || c.Commit != base {
		t.Errorf("changes %q, %d lines, %s", c.Paths, c.Lines, c.Commit)
	}
	if _, err := tr.ChangeSince(context.Background(), "nonsense", t.TempDir()); err == nil {
		t.Error("there is no such commit")
	}
}

// A repository without a commit, one whose HEAD is detached, an empty directory.
func TestSnapshotOfYoungTrees(t *testing.T) {
	t.Parallel()
	for name, make := range map[string]func(dir string){
		"empty":     func(string) {},
		"no commit": func(dir string) { runGit(t, dir, "init", "-q") },
		"staged only": func(dir string) {
			runGit(t, dir, "init", "-q")
			put(t, dir, "a", "a", 0o644)
			runGit(t, dir, "add", "a")
		},
		"detached":     func(dir string) { commitOne(t, dir); runGit(t, dir, "checkout", "-q", "--detach") },
		"sha256":       func(dir string) { runGit(t, dir, "init", "-q", "--object-format=sha256"); put(t, dir, "a", "a", 0o644) },
		"read-only in": func(dir string) { put(t, dir, "d/a", "a", 0o444); chmod(t, filepath.Join(dir, "d"), 0o555) },
		"a pipe in":    func(dir string) { put(t, dir, "a", "a", 0o644); pipe(t, filepath.Join(dir, "p")) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			make(dir)
			t.Cleanup(func() { _ = os.Chmod(filepath.Join(dir, "d"), 0o755) })
			tr := find(t, dir)
			s, err := tr.Snapshot(context.Background(), options(t, "ver-young"))
			if err != nil {
				t.Fatal(err)
			}
			if name == "a pipe in" != (len(s.Notes) > 0) {
				t.Errorf("notes: %q", s.Notes)
			}
			if err := s.Remove(); err != nil {
				t.Error(err)
			}
			if tr.Git {
				if _, err := tr.ChangeSince(context.Background(), "", t.TempDir()); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

func commitOne(t *testing.T, dir string) {
	t.Helper()
	runGit(t, dir, "init", "-q", "-b", "main")
	put(t, dir, "a", "a", 0o644)
	runGit(t, dir, "add", "-A")
	runGit(t, dir, "commit", "-q", "-m", "a")
}

func chmod(t *testing.T, p string, m fs.FileMode) {
	t.Helper()
	if err := os.Chmod(p, m); err != nil {
		t.Fatal(err)
	}
}

func TestChangesAreSeen(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	commitOne(t, dir)
	put(t, dir, ".gitignore", "out/\n", 0o644)
	s, err := find(t, dir).Snapshot(context.Background(), options(t, "ver-change"))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Remove()
	top := s.Tree.Top
	changed := func(want ...string) {
		t.Helper()
		got, all, err := s.Changed(context.Background(), time.Now())
		if err != nil || !slices.Equal(got, want) || all != len(want) {
			t.Errorf("changed %q (%d), %v, want %q", got, all, err, want)
		}
	}
	put(t, top, "out/x", "built", 0o644)
	changed()
	put(t, top, "a", "a", 0o644) // written anew, the same
	changed()
	put(t, top, "a", "A", 0o644)
	put(t, top, "new", "", 0o644)
	changed("a", "new")
	if err := os.RemoveAll(top); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Changed(context.Background(), time.Now()); err == nil {
		t.Error("the directory is gone")
	}
}

func TestLimitsAndMovingTrees(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	put(t, dir, "a", strings.Repeat("a", 100), 0o644)
	put(t, dir, "b", "b", 0o644)
	for _, l := range []Limits{{Entries: 1}, {Bytes: 50}} {
		tr, err := Find(context.Background(), dir, dir, Options{Vars: vars(t), Limits: l})
		if err != nil {
			t.Fatal(err)
		}
		o := options(t, "ver-large")
		if _, err := tr.Snapshot(context.Background(), o); err == nil || !strings.Contains(err.Error(), "too large") {
			t.Errorf("%+v: %v", l, err)
		}
		if left, _ := os.ReadDir(o.Dir); len(left) != 0 {
			t.Errorf("left: %v", left)
		}
	}
	o := options(t, "ver-moving")
	n := 0
	o.Step = func(s string) {
		if n++; s == "listed" {
			put(t, dir, "a", fmt.Sprint(n), 0o644)
		}
	}
	if _, err := find(t, dir).Snapshot(context.Background(), o); err == nil || !strings.Contains(err.Error(), "kept changing") {
		t.Errorf("a tree that moves: %v", err)
	}
}

// A snapshot's own place is no part of the tree, though it may lie in it.
func TestSnapshotWithinTheTree(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	put(t, dir, "a", "a", 0o644)
	cache := filepath.Join(dir, "home", "cache")
	tr, err := Find(context.Background(), dir, dir, Options{Vars: vars(t), Outside: []string{cache}})
	if err != nil {
		t.Fatal(err)
	}
	o := options(t, "ver-in")
	o.Dir = cache
	s, err := tr.Snapshot(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Remove()
	if d := cmp.Diff(map[string]bool{".": true, "a": true, "home": true}, keys(picture(t, s.Tree.Top, false))); d != "" {
		t.Error(d)
	}
}

func keys(m map[string]string) map[string]bool {
	out := map[string]bool{}
	for k := range m {
		out[k] = true
	}
	return out
}

func TestSweep(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	o := SnapshotOptions{Dir: dir, ID: "ver-mine", Host: "h", Now: time.Now}
	work := t.TempDir()
	put(t, work, "a", "a", 0o644)
	s, err := find(t, work).Snapshot(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	put(t, dir, "ver-dead/tree/ro/a", "a", 0o644)
	chmod(t, filepath.Join(dir, "ver-dead/tree/ro"), 0o555)
	put(t, dir, "ver-dead/owner.json", `{"v":1,"process":{"pid":1073741823,"start":1},"host":"h"}`, 0o600)
	put(t, dir, "ver-elsewhere/owner.json", fmt.Sprintf(`{"v":1,"process":{"pid":1073741823,"start":1},"host":"other","at":%q}`, time.Now().Format(time.RFC3339)), 0o600)
	put(t, dir, "ver-starting/x", "", 0o600)
	put(t, dir, "a-file", "", 0o600)
	ids, err := Sweep(context.Background(), dir, "h", time.Now())
	if err != nil || !slices.Equal(ids, []string{"ver-dead"}) {
		t.Errorf("swept %q, %v", ids, err)
	}
	ids, err = Sweep(context.Background(), dir, "h", time.Now().Add(48*time.Hour))
	if err != nil || !slices.Equal(ids, []string{"ver-elsewhere", "ver-starting"}) {
		t.Errorf("two days later: swept %q, %v", ids, err)
	}
	if self, err := proc.Self(); err != nil || !self.Alive() {
		t.Fatal(err)
	}
	if err := s.Remove(); err != nil {
		t.Error(err)
	}
}

func TestCarried(t *testing.T) {
	for _, tc := range []struct {
		path, sub string
		patterns  []string
		want      bool
	}{
		{"node_modules", "", []string{"node_modules"}, true},
		{"packages/a/node_modules", "", []string{"node_modules"}, true},
		{"app/.venv", "app", []string{".venv"}, true},
		{"app/lib/deps", "app", []string{"lib/deps"}, true},
		{"lib/deps", "app", []string{"app/lib"}, false},
		{"packages/a/deps", "", []string{"packages/*/deps/"}, true},
		{"dist", "", []string{"node_modules"}, false},
	} {
		if got := carried(tc.path, tc.sub, tc.patterns); got != tc.want {
			t.Errorf("%+v: %v", tc, got)
		}
	}
}

// What a package manager links to beside the project (npm, of a "file:../lib") is relative:
// in the copy it leads to the same place, and that is one of those that are told of. What
// leads back into the tree leads to the copy's own.
func TestCarriedLinksLeadWhereTheyLed(t *testing.T) {
	around, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(around, "shop")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	runGit(t, dir, "init", "-q", "-b", "main")
	put(t, dir, ".gitignore", "node_modules\n", 0o644)
	put(t, dir, "a.txt", "original", 0o644)
	put(t, around, "lib/f", "beside", 0o644)
	put(t, around, "store/b/f", "stored", 0o644)
	put(t, dir, "node_modules/p/f", "inner", 0o644)
	put(t, dir, "sub/f", "x", 0o644)
	for name, to := range map[string]string{
		"shop/node_modules/lib": "../../lib", "shop/node_modules/q": "p", "shop/node_modules/self": "../../shop/a.txt", "shop/node_modules/a": "../a.txt",
		"shop/node_modules/none": "../../none", "shop/sub/node_modules": "../../store", "store/a": "b", "store/c": "../lib",
	} {
		if err := os.Symlink(to, filepath.Join(around, name)); err != nil {
			t.Fatal(err)
		}
	}
	o := options(t, "ver-links")
	o.Carry = []string{"node_modules"}
	s, err := find(t, dir).Snapshot(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Remove()
	if err := os.WriteFile(filepath.Join(s.Tree.Top, "a.txt"), []byte("copy"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"lib/f": "beside", "q/f": "inner", "self": "copy", "a": "copy", "../sub/node_modules/a/f": "stored", "../sub/node_modules/c/f": "beside",
	} {
		if got, err := os.ReadFile(filepath.Join(s.Tree.Top, "node_modules", name)); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v, want %q", name, got, err, want)
		}
	}
	if got, err := os.Readlink(filepath.Join(s.Tree.Top, "node_modules/none")); err != nil || got != filepath.Join(around, "none") {
		t.Errorf("what is not there: %q %v", got, err)
	}
	if places, more := s.Outward(); more || !slices.Equal(places, []string{filepath.Join(around, "lib")}) {
		t.Errorf("outward: %q %v", places, more)
	}
}
