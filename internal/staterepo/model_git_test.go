package staterepo

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"reprise/internal/git"
)

// gitClone is a clone of the model on real git: files on disk, and a repository.
type gitClone struct {
	t    *testing.T
	repo *Repo
}

func (c *gitClone) path(name string) string { return filepath.Join(c.repo.Global().Dir, name) }

func (c *gitClone) read(name string) string {
	data, err := os.ReadFile(c.path(name))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		c.t.Fatal(err)
	}
	return string(data)
}

func (c *gitClone) write(name, text string) {
	if err := os.WriteFile(c.path(name), []byte(text), 0o600); err != nil {
		c.t.Fatal(err)
	}
}

// TestModelOnGit does what TestModel does with files, git and a remote. Some
// exchanges are given up in the middle, as by a lost connection.
func TestModelOnGit(t *testing.T) {
	t.Parallel()
	clones, ops := 2, 10
	if seeds0(0, 1) == 1 {
		clones, ops = 3, 60
	}
	for seed := range seeds0(1, 30) {
		dir, err := os.MkdirTemp("/dev/shm", "staterepo model")
		if err != nil {
			dir = t.TempDir()
		}
		t.Cleanup(func() { _ = os.RemoveAll(dir) })
		o := Options{Project: "shop", Git: git.Options{Vars: map[string]string{"PATH": os.Getenv("PATH"), "HOME": dir}}}
		remote := filepath.Join(dir, "remote.git")
		if err := os.Mkdir(remote, 0o700); err != nil {
			t.Fatal(err)
		}
		g := git.NewBare(remote, o.Git)
		if !g.Installed() {
			t.Skip("git is not here")
		}
		if err := g.InitBare(t.Context(), "trunk"); err != nil {
			t.Fatal(err)
		}
		m := newModel(t, uint64(seed), 0)
		o.Now = m.tick
		var list []*gitClone
		for n := range clones {
			o.Dir = filepath.Join(dir, fmt.Sprint(n))
			c := &gitClone{t, New(o)}
			if _, err := c.repo.Ensure(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := c.repo.SetRemote(t.Context(), remote); err != nil {
				t.Fatal(err)
			}
			list = append(list, c)
		}
		sync := func(c *gitClone) {
			if _, err := c.repo.Sync(t.Context(), Both); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
		}
		for range ops {
			c := list[m.r.IntN(len(list))]
			switch m.r.IntN(10) {
			case 0:
				sync(c)
			case 1:
				ctx, cancel := context.WithTimeout(t.Context(), 1) // given up
				_, _ = c.repo.Sync(ctx, Both)
				cancel()
			default:
				m.step(c, fmt.Sprintf("agent%d", m.r.IntN(5)))
				if _, err := c.repo.Global().Save(t.Context(), "", ""); err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
			}
		}
		for range 2 {
			for _, c := range list {
				sync(c)
			}
		}
		for i, c := range list {
			m.check(fmt.Sprintf("seed %d, clone %d", seed, i), c)
			for _, name := range append(entryFiles(), "plan.md") {
				if c.read(name) != list[0].read(name) {
					t.Errorf("seed %d: clone %d has another %s than the first", seed, i, name)
				}
			}
		}
		if t.Failed() {
			return
		}
	}
}
