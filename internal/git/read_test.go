package git_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"reprise/internal/git"
)

// What is read from files is what the git program says, loose or packed, with
// refs that point at others, are removed, or are broken.
func TestReadsAsGitDoes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	vars := map[string]string{"PATH": os.Getenv("PATH"), "HOME": dir}
	g := git.NewBare(dir, git.Options{Vars: vars})
	if !g.Installed() {
		t.Skip("git is not here")
	}
	ctx := t.Context()
	must := func(out []byte, err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", out, err)
		}
	}
	must(nil, g.InitBare(ctx, "trunk"))
	// A Git that was not given the repository outright asks the program for all.
	asked := git.New(dir, git.Options{Vars: vars})
	r := rand.New(rand.NewPCG(1, 2))
	who := git.Person{Name: "x", Email: "x@x", Time: time.Unix(1, 0)}
	var commits []string
	files := map[string]git.Entry{}
	for n := range 24 {
		id, err := g.Store("blob", fmt.Appendf(nil, "text %d\n", n))
		must(nil, err)
		files[[]string{"a", "dir/b", "dir/deep er/c", "ü"}[r.IntN(4)]] = git.Entry{Mode: git.ModeFile, ID: id}
		tree, err := g.StoreTree(files)
		must(nil, err)
		var parents []string
		for range min(len(commits), 1+r.IntN(2)) {
			parents = append(parents, commits[max(0, len(commits)-1-r.IntN(4))])
		}
		c, err := g.StoreCommit(tree, parents, who, who, fmt.Sprint("commit ", n))
		must(nil, err)
		commits = append(commits, c)
		must(g.Run(ctx, "update-ref", fmt.Sprintf("refs/heads/%s%d", []string{"agent-", "global", "deep/x"}[n%3], n), c))
		if n == 12 {
			must(g.Run(ctx, "pack-refs", "--all"))
			must(g.Run(ctx, "update-ref", "-d", "refs/heads/agent-3"))
			must(g.Run(ctx, "repack", "-adq"))
		}
		if n == 14 {
			must(g.Run(ctx, "symbolic-ref", "refs/remotes/origin/HEAD", "refs/heads/agent-0"))
		}
	}
	must(nil, os.WriteFile(filepath.Join(dir, "refs", "heads", "broken"), nil, 0o600))
	for _, prefixes := range [][]string{nil, {"refs/heads/"}, {"refs/heads"}, {"refs/heads/agent-*"}, {"refs/heads/agent-6", "refs/remotes/origin/"}, {"refs/heads/deep/*"}, {"refs/none/"}} {
		got, err := g.Refs(ctx, prefixes...)
		must(nil, err)
		want, err := asked.Refs(ctx, prefixes...)
		must(nil, err)
		if !maps.Equal(got, want) {
			t.Errorf("%q: %v\nwant %v", prefixes, got, want)
		}
	}
	refs, err := g.Refs(ctx)
	must(nil, err)
	names := []string{"refs/heads/none", "refs/heads/none:a", "refs/heads/deep", "refs/heads/broken", "HEAD", "refs/heads/agent-3", commits[0] + "^{tree}", "0123456789012345678901234567890123456789", "refs/heads/agent-0~0", "refs/remotes/origin/HEAD:a"}
	for ref, c := range refs {
		for _, p := range []string{"", "a", "dir", "dir/b", "dir/deep er/c", "ü", "none", "dir/none", "a/none"} {
			names = append(names, ref+":"+p, c+":"+p)
		}
		names = append(names, ref, ref+"^{tree}", c)
	}
	got, err := g.Objects(ctx, names...)
	must(nil, err)
	want, err := asked.Objects(ctx, names...)
	must(nil, err)
	for i := range names {
		if !reflect.DeepEqual(got[i], want[i]) && !(got[i].ID == want[i].ID && len(got[i].Data)+len(want[i].Data) == 0) {
			t.Errorf("%s: %+v\nwant %+v", names[i], got[i], want[i])
		}
	}
	for _, c := range commits {
		got, err := g.Files(ctx, c)
		must(nil, err)
		want, err := asked.Files(ctx, c)
		must(nil, err)
		if !maps.Equal(got, want) {
			t.Errorf("%s: %v\nwant %v", c, got, want)
		}
		other := commits[r.IntN(len(commits))]
		base, err := g.MergeBase(ctx, c, other)
		must(nil, err)
		if want, err := asked.MergeBase(ctx, c, other); err != nil || base != want {
			// Of several best ones any will do.
			all, aerr := asked.Run(ctx, "merge-base", "--all", c, other)
			must(all, aerr)
			if !slices.Contains(strings.Fields(string(all)), base) {
				t.Errorf("%s, %s: %s, want %s %v", c, other, base, want, err)
			}
		}
	}
	// A damaged object is git's to say.
	must(nil, os.Chmod(filepath.Join(dir, "objects", commits[23][:2], commits[23][2:]), 0o600))
	must(nil, os.WriteFile(filepath.Join(dir, "objects", commits[23][:2], commits[23][2:]), []byte("x"), 0o600))
	if list, err := g.Objects(ctx, commits[23]); err == nil && list[0].Kind != "" {
		t.Errorf("damaged: %+v", list)
	}
}

// Several refs change together or not at all.
func TestMoveRefs(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	g := git.NewBare(dir, git.Options{Vars: map[string]string{"PATH": os.Getenv("PATH"), "HOME": dir}})
	if !g.Installed() {
		t.Skip("git is not here")
	}
	ctx := t.Context()
	if err := g.InitBare(ctx, "trunk"); err != nil {
		t.Fatal(err)
	}
	tree, err := g.StoreTree(nil)
	if err != nil {
		t.Fatal(err)
	}
	who := git.Person{Name: "x", Email: "x@x", Time: time.Unix(1, 0)}
	var c [2]string
	for i := range c {
		if c[i], err = g.StoreCommit(tree, nil, who, who, fmt.Sprint(i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := g.MoveRefs(ctx, "made", git.RefMove{Ref: "refs/heads/a", New: c[0]}, git.RefMove{Ref: "refs/x/b", New: c[0]}); err != nil {
		t.Fatal(err)
	}
	if err := g.MoveRefs(ctx, "moved", git.RefMove{Ref: "refs/heads/a", New: c[1], Old: c[0]}, git.RefMove{Ref: "refs/x/b", Old: c[1]}); err == nil {
		t.Error("a move from what it is not at")
	}
	if refs, err := g.Refs(ctx); err != nil || refs["refs/heads/a"] != c[0] || refs["refs/x/b"] != c[0] {
		t.Error(refs, err)
	}
	if err := g.MoveRefs(ctx, "moved", git.RefMove{Ref: "refs/heads/a", New: c[1], Old: c[0]}, git.RefMove{Ref: "refs/x/b", Old: c[0]}); err != nil {
		t.Fatal(err)
	}
	if refs, err := g.Refs(ctx); err != nil || refs["refs/heads/a"] != c[1] || len(refs) != 1 {
		t.Error(refs, err)
	}
}
