package tree

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// vandal does in a copy what checks may do, and worse: links into the original,
// kinds swapped, times set back, directories that cannot be read.
func vandal(t *testing.T, r *rand.Rand, top, original string) {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil && !errors.Is(err, fs.ErrExist) && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
	}
	var paths []string
	must(filepath.WalkDir(top, func(p string, d fs.DirEntry, err error) error {
		if err == nil && p != top {
			paths = append(paths, p)
		}
		return err
	}))
	for _, p := range paths {
		fi, err := os.Lstat(p)
		if err != nil || r.IntN(3) > 0 {
			continue
		}
		rel, err := filepath.Rel(top, p)
		must(err)
		if real, err := filepath.EvalSymlinks(filepath.Dir(p)); err != nil || real != filepath.Dir(p) {
			continue // it would be the original by now
		}
		twin := filepath.Join(original, rel)
		switch r.IntN(9) {
		case 0:
			must(os.RemoveAll(p))
		case 1: // leads into the original
			must(os.RemoveAll(p))
			must(os.Symlink(twin, p))
		case 2: // is the original
			must(os.RemoveAll(p))
			if o, err := os.Lstat(twin); err == nil && o.Mode().IsRegular() {
				must(os.Link(twin, p))
			}
		case 3: // other content of the same size, time and mode
			if fi.Mode().IsRegular() && fi.Size() > 0 && alone(fi) {
				must(os.Chmod(p, 0o600))
				must(os.WriteFile(p, []byte(strings.Repeat("!", int(fi.Size()))), 0o600))
				must(os.Chtimes(p, fi.ModTime(), fi.ModTime()))
				must(os.Chmod(p, fi.Mode().Perm()))
			}
		case 4:
			must(os.RemoveAll(p))
			must(os.MkdirAll(filepath.Join(p, "in", "its", "place"), 0o700))
		case 5:
			if fi.IsDir() || fi.Mode().IsRegular() && alone(fi) {
				must(os.Chmod(p, 0))
			}
		case 6:
			if fi.IsDir() {
				must(os.RemoveAll(p))
				must(os.WriteFile(p, []byte("was a directory"), 0o600))
			}
		case 7:
			if fi.IsDir() {
				put(t, p, "built/out.ignored", "built", 0o600)
				put(t, p, "left.txt", "left", 0o600)
			}
		case 8: // another name of it, through which it could be changed later
			if fi.Mode().IsRegular() {
				must(os.Link(p, filepath.Join(filepath.Dir(top), fmt.Sprint("other-", r.Uint64()))))
			}
		}
	}
}

// Whatever happened in a slot, the next snapshot in it is the tree as it is then,
// and the tree was not touched.
func TestSlotIsTheTreeAgain(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the names are not possible there")
	}
	for seed := range uint64(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(seed, 7))
			top, err := filepath.EvalSymlinks(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			dir := filepath.Join(top, "work")
			randomTree(t, r, dir, 40)
			put(t, dir, ".gitignore", "*.ignored\nnode_modules/\n", 0o644)
			if seed%2 == 0 {
				commitAll(t, dir)
			}
			put(t, dir, "node_modules/p/index.js", "1", 0o644)
			o := options(t, "ver-one")
			o.Slot, o.Carry = SlotOf(dir, "x"), []string{"node_modules"}
			for round := range 3 {
				tr := find(t, dir)
				before := picture(t, dir, true)
				o.ID = fmt.Sprint("ver-", round)
				s, err := tr.Snapshot(context.Background(), o)
				if err != nil {
					t.Fatal(err)
				}
				if s.Root != filepath.Join(o.Dir, o.Slot) {
					t.Fatalf("round %d: made in %s", round, s.Root)
				}
				want := picture(t, dir, false)
				if tr.Git {
					withoutIgnored(want, strings.Split(runGit(t, dir, "ls-files", "-z"), "\x00"))
				}
				if d := cmp.Diff(want, picture(t, s.Tree.Top, false)); d != "" {
					t.Fatalf("round %d: the snapshot is not the tree (-tree +snapshot):\n%s", round, d)
				}
				if tr.Git {
					if a, b := runGit(t, dir, "status", "--porcelain", "-z", "--untracked-files=all"), runGit(t, s.Tree.Top, "status", "--porcelain", "-z", "--untracked-files=all"); a != b {
						t.Errorf("git status\n%q\nin the copy\n%q", a, b)
					}
					before = refreshed(t, dir, before)
				}
				vandal(t, r, s.Tree.Top, dir)
				if err := s.Release(); err != nil {
					t.Fatal(err)
				}
				left := picture(t, filepath.Join(o.Dir, o.Slot), true)
				for p := range left {
					if strings.HasSuffix(p, "left.txt") || strings.HasSuffix(p, "out.ignored") || strings.HasPrefix(p, "other-") || strings.HasPrefix(p, "tmp") {
						t.Errorf("kept: %s", p)
					}
				}
				if d := cmp.Diff(before, picture(t, dir, true)); d != "" {
					t.Fatalf("the tree was touched:\n%s", d)
				}
				randomTree(t, r, filepath.Join(dir, fmt.Sprint("new", round)), 5)
				if err := os.RemoveAll(filepath.Join(dir, parts[round])); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

func commitAll(t *testing.T, dir string) {
	t.Helper()
	runGit(t, dir, "init", "-q", "-b", "main")
	runGit(t, dir, "add", "-A")
	runGit(t, dir, "commit", "-q", "-m", "one")
}

// What did not change keeps its file, so that nothing is built anew for it.
func TestSlotKeepsWhatIsTheSame(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	put(t, dir, "a", "a", 0o644)
	put(t, dir, "b", "b", 0o644)
	put(t, dir, "large", strings.Repeat("x", small+1), 0o644)
	commitAll(t, dir)
	o := options(t, "ver-one")
	o.Slot = SlotOf(dir)
	inode := map[string]uint64{}
	for round := range 2 {
		s, err := find(t, dir).Snapshot(context.Background(), o)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range s.Listing.Entries {
			if round == 0 {
				inode[e.Path] = e.seen.inode
			} else if e.Path != "b" && e.seen.inode != inode[e.Path] {
				t.Errorf("%s was made anew", e.Path)
			}
		}
		if got, err := os.ReadFile(filepath.Join(s.Tree.Top, "b")); err != nil || string(got) != []string{"b", "B"}[round] {
			t.Errorf("round %d: b is %q, %v", round, got, err)
		}
		if err := s.Release(); err != nil {
			t.Fatal(err)
		}
		put(t, dir, "b", "B", 0o644)
	}
}

// A slot is one process's at a time; others make do without it. One that was
// left by a process that died is swept, one that nobody used for days too.
func TestSlotsAreNotShared(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	put(t, dir, "a", "a", 0o644)
	tr := find(t, dir)
	o := options(t, "ver-one")
	o.Slot = SlotOf(dir)
	snap := func(id string) *Snapshot {
		o.ID = id
		s, err := tr.Snapshot(context.Background(), o)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	one, two := snap("ver-one"), snap("ver-two")
	if filepath.Base(one.Root) != o.Slot || filepath.Base(two.Root) != "ver-two" {
		t.Fatalf("%s, %s", one.Root, two.Root)
	}
	if err := errors.Join(two.Release(), one.Release()); err != nil {
		t.Fatal(err)
	}
	names := func() []string {
		t.Helper()
		n, err := readNames(o.Dir)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	if got := names(); !slices.Equal(got, []string{o.Slot}) {
		t.Fatalf("left: %q", got)
	}
	sweep := func(after time.Duration, want ...string) {
		t.Helper()
		if ids, err := Sweep(context.Background(), o.Dir, "h", time.Now().Add(after)); err != nil || !slices.Equal(ids, want) {
			t.Fatalf("swept %q, %v; want %q", ids, err, want)
		}
	}
	sweep(2 * time.Hour)
	if len(names()) != 1 {
		t.Fatal("a slot that is not old was swept")
	}
	three := snap("ver-three")
	put(t, o.Dir, o.Slot+"/owner.json", `{"v":1,"id":"ver-three","process":{"pid":1073741823,"start":1},"host":"h"}`, 0o600)
	sweep(0, "ver-three")
	if len(names()) != 0 {
		t.Fatal("a dead process's slot was kept")
	}
	if err := three.Remove(); err != nil {
		t.Fatal(err)
	}
	if err := snap("ver-four").Release(); err != nil {
		t.Fatal(err)
	}
	sweep(keepSlot + time.Hour)
	if len(names()) != 0 {
		t.Fatal("an old slot was kept")
	}
}

// What cannot be put in order is done without.
func TestSlotThatCannotBeUsed(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("it needs a pipe")
	}
	t.Parallel()
	dir := t.TempDir()
	put(t, dir, "a", "a", 0o644)
	o := options(t, "ver-one")
	o.Slot = SlotOf(dir)
	// The copy is somewhere else: nothing there is this program's to remove.
	elsewhere := t.TempDir()
	put(t, elsewhere, "precious", "x", 0o644)
	if err := os.MkdirAll(filepath.Join(o.Dir, o.Slot), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(elsewhere, filepath.Join(o.Dir, o.Slot, "tree")); err != nil {
		t.Fatal(err)
	}
	s, err := find(t, dir).Snapshot(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(map[string]bool{".": true, "a": true}, keys(picture(t, s.Tree.Top, false))); d != "" {
		t.Error(d)
	}
	if err := s.Remove(); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(filepath.Join(elsewhere, "precious")); err != nil {
		t.Errorf("what a link led to: %v", err)
	}
}
