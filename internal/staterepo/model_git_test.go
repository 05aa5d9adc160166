package staterepo

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"reprise/internal/git"
	"reprise/internal/mdfile"
	"reprise/internal/memory"
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

// gitDesk is an agent of the model on real git. It works on one clone at a time.
type gitDesk struct {
	name  string
	on    int
	tree  *Tree             // nil while it works nowhere
	wrote map[string]string // id of each acknowledged entry → its type
	n     int
}

// gitModel is the agents of the model on real git.
type gitModel struct {
	*model
	dir    string
	clones []*gitClone
	desks  []*gitDesk
}

// do is one operation of an agent's: it writes, ends, goes on here or elsewhere, is
// promoted, or its branch is taken away. Some are given up in the middle.
func (g *gitModel) do(d *gitDesk) {
	t, c := g.t, g.clones[d.on]
	ctx := t.Context()
	if g.r.IntN(6) == 0 {
		cut, cancel := context.WithTimeout(ctx, time.Duration(g.r.IntN(4000))*time.Microsecond)
		defer cancel()
		ctx = cut
		defer g.minutePasses(c)
	}
	op := g.r.IntN(10)
	switch {
	case d.tree == nil && op < 6:
		g.attach(d, g.r.IntN(len(g.clones)))
	case d.tree != nil && op < 5:
		g.n++
		typ := [...]string{mdfile.TypeImplement, mdfile.TypeLearning, mdfile.TypeDecision}[g.r.IntN(3)]
		if a, err := d.tree.Add(ctx, memory.FullAccess, mdfile.Entry{Type: typ, Agent: d.name, Time: g.tick(), Text: fmt.Sprintf("Of %s, number %d.", d.name, g.n)}); err == nil {
			d.wrote[a.ID] = typ
		}
	case d.tree != nil && op < 7:
		if _, err := d.tree.Save(t.Context(), "", ""); err != nil { // as the removal of a workspace does
			t.Fatal(err)
		}
		if err := os.RemoveAll(filepath.Dir(d.tree.Dir)); err != nil {
			t.Fatal(err)
		}
		if err := c.repo.Detach(t.Context(), d.name, d.tree.Dir); err != nil {
			t.Fatal(err)
		}
		d.tree = nil
		_, _ = c.repo.Conclude(ctx, d.name)
	case op < 9:
		g.promoteOn(ctx, d, c)
	default:
		_, _ = c.repo.GC(ctx, true)
	}
}

// minutePasses makes the locks old that a git left which was killed just now: the next
// command at each removes it.
func (g *gitModel) minutePasses(c *gitClone) {
	locks, err := c.repo.git.Locks()
	if err != nil {
		g.t.Fatal(err)
	}
	for _, l := range locks {
		then := g.now.Add(-time.Hour)
		if err := os.Chtimes(l.Path, then, then); err != nil && !errors.Is(err, fs.ErrNotExist) {
			g.t.Fatal(err)
		}
	}
}

// attach lets an agent work on a clone: where it was, or where its branch came to. Where
// it is not to be had there it begins on no other, as a person would be refused.
func (g *gitModel) attach(d *gitDesk, on int) {
	d.n++
	at := filepath.Join(g.dir, fmt.Sprint("code", on), fmt.Sprint(d.name, d.n), "agent")
	tree, err := g.clones[on].repo.CreateAgent(g.t.Context(), d.name, at, true)
	if err != nil {
		g.t.Fatal(err)
	}
	d.tree, d.on = tree, on
}

// promoteOn gives some of what is left to all, and marks the branch where nothing is.
func (g *gitModel) promoteOn(ctx context.Context, d *gitDesk, c *gitClone) {
	left, err := c.repo.Unpromoted(ctx, d.name)
	if err != nil {
		return
	}
	for i, e := range left {
		if i > 0 && g.r.IntN(3) == 0 {
			return
		}
		shared := e.Entry
		shared.Source, shared.Time, shared.Parent = "entry:"+e.ID, g.tick(), ""
		shared, raw := shared.Render()
		c.write(e.File, string(mdfile.ParseEntries([]byte(c.read(e.File))).WithEntry(raw)))
		if _, err := c.repo.Global().Save(g.t.Context(), "", ""); err != nil {
			g.t.Fatal(err)
		}
		g.entries[shared.ID] = shared.Title()
	}
	_ = c.repo.Consolidate(ctx, d.name)
}

// checkDesks: what an agent wrote is in some branch of its clone's, or in one that is
// kept, and what is to last is on global or is left.
func (g *gitModel) checkDesks(what string) {
	g.t.Helper()
	for _, d := range g.desks {
		have, open := map[string]bool{}, map[string]bool{}
		for _, c := range g.clones {
			refs, err := c.repo.git.Refs(g.t.Context(), heads, tracking, keptRefs)
			if err != nil {
				g.t.Fatal(err)
			}
			for ref, id := range refs {
				if !strings.Contains(ref, agentPrefix+d.name) {
					continue
				}
				list, err := c.repo.git.Objects(g.t.Context(), id+":"+logFile, id+":decisions.md", id+":learnings.md")
				if err != nil {
					g.t.Fatal(err)
				}
				for _, o := range list {
					for _, e := range mdfile.ParseEntries(o.Data).Entries {
						have[e.ID] = true
					}
				}
			}
			if left, err := c.repo.Unpromoted(g.t.Context(), d.name); err == nil {
				for _, e := range left {
					open[e.ID] = true
				}
			}
		}
		shared, err := g.clones[0].repo.Global().withTombstones()
		if err != nil {
			g.t.Fatal(err)
		}
		p := promotedIn(shared)
		for id, typ := range d.wrote {
			if !have[id] {
				g.t.Errorf("%s: %s %s of %s is in no branch", what, typ, id, d.name)
			}
			if !p.there[id] && !p.gone[id] && !open[id] {
				g.t.Errorf("%s: %s %s of %s is neither on global nor left to be promoted", what, typ, id, d.name)
			}
		}
	}
}

// TestModelOnGit does what TestModel does with files, git and a remote. Some
// exchanges and operations are given up in the middle, as by a lost connection.
func TestModelOnGit(t *testing.T) {
	t.Parallel()
	clones, ops := 2, 24
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
		if testing.Verbose() {
			t.Logf("seed %d", seed)
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
		all := &gitModel{model: m, dir: dir, clones: list}
		for i := range 5 {
			d := &gitDesk{name: fmt.Sprintf("desk%d", i), wrote: map[string]string{}}
			all.attach(d, i%len(list))
			all.desks = append(all.desks, d)
		}
		sync := func(c *gitClone) {
			if _, err := c.repo.Sync(t.Context(), Both); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
		}
		for range ops {
			c := list[m.r.IntN(len(list))]
			switch m.r.IntN(18) {
			case 0:
				sync(c)
			case 2, 3, 4, 5, 6, 7, 8, 9, 10:
				all.do(all.desks[m.r.IntN(len(all.desks))])
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
		all.checkDesks(fmt.Sprintf("seed %d", seed))
		if t.Failed() {
			return
		}
	}
}
