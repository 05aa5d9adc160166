package config

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"reprise/internal/durable"
)

// renamedWorld is a project in a home of its own, with something kept of it.
type renamedWorld struct {
	env   Env
	paths Paths
	root  string
}

func newRenamed(t *testing.T) renamedWorld {
	t.Helper()
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := renamedWorld{root: filepath.Join(top, "work")}
	w.env = Env{Vars: map[string]string{"REPRISE_HOME": filepath.Join(top, "home"), "HOME": top}, Dir: w.root, GOOS: "linux", Now: time.Now}
	if w.paths, err = FindPaths(w.env); err != nil {
		t.Fatal(err)
	}
	mkdir(t, filepath.Join(w.root, ".git"))
	p, err := InitProject(w.root, "shop")
	if err != nil {
		t.Fatal(err)
	}
	if err := w.paths.Claim(t.Context(), p, "", time.Now()); err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(w.paths.ProjectMemory("shop"), "a.md"), "kept")
	put(t, filepath.Join(w.paths.Events("shop"), "2026-11.here.jsonl"), "{}\n")
	return w
}

func (w renamedWorld) project(t *testing.T, dir string) *Project {
	t.Helper()
	p, err := FindProject(w.env, dir)
	if err != nil || p == nil {
		t.Fatalf("%+v, %v", p, err)
	}
	return p
}

// kept reads what is kept of the project that is found in its directory.
func (w renamedWorld) kept(t *testing.T) (name, text string) {
	t.Helper()
	p := w.project(t, w.root)
	if err := CheckName(w.paths, p); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(w.paths.ProjectMemory(p.Name), "a.md"))
	if err != nil {
		t.Fatal(err)
	}
	return p.Name, string(data)
}

var errKilled = errors.New("killed")

// Wherever a renaming is killed, what is kept is found, and the next one of the same name
// ends it. The file's own name is changed last, so that each state is found by the old one.
func TestMoveKilledAtEachStep(t *testing.T) {
	for step := 0; ; step++ {
		w := newRenamed(t)
		put(t, filepath.Join(w.paths.Events("bakery"), "2026-11.here.jsonl"), "{\"b\":1}\n")
		n := 0
		disk := durable.NewDisk(func(durable.Step) *durable.Fault {
			if n++; n > step {
				return &durable.Fault{Err: errKilled}
			}
			return nil
		})
		err := w.paths.Move(t.Context(), disk, w.project(t, w.root), "bakery")
		if name, text := w.kept(t); text != "kept" || name != "shop" && name != "bakery" {
			t.Fatalf("step %d: %s, %q", step, name, text)
		}
		if again := w.project(t, w.root); again.Name != "bakery" {
			if err := w.paths.Move(t.Context(), durable.Disk{}, again, "bakery"); err != nil {
				t.Fatalf("step %d: %v", step, err)
			}
		}
		if name, text := w.kept(t); name != "bakery" || text != "kept" {
			t.Fatalf("step %d: %s, %q", step, name, text)
		}
		if logs, err := os.ReadDir(w.paths.Events("bakery")); err != nil || len(logs) != 2 {
			t.Fatalf("step %d: %v, %v", step, logs, err)
		}
		if got := w.paths.NamesOf("bakery"); strings.Join(got, " ") != "shop bakery" {
			t.Errorf("step %d: %q", step, got)
		}
		if w.paths.NameNow("shop") != "bakery" {
			t.Errorf("step %d: the old name leads to %s", step, w.paths.NameNow("shop"))
		}
		if err == nil {
			if step < 4 {
				t.Fatalf("it was killed at no step: %d", n)
			}
			return
		}
	}
}

// Renaming back, and to a third name and back again, is nothing else than renaming.
func TestMoveThereAndBack(t *testing.T) {
	w := newRenamed(t)
	for _, to := range []string{"bakery", "shop", "oven", "bakery", "shop"} {
		p := w.project(t, w.root)
		if err := w.paths.Move(t.Context(), durable.Disk{}, p, to); err != nil {
			t.Fatalf("%s: %v", to, err)
		}
		if name, text := w.kept(t); name != to || text != "kept" {
			t.Fatalf("%s: %s, %q", to, name, text)
		}
	}
	if got := w.paths.NamesOf("shop"); got[0] != "shop" || len(got) != 3 {
		t.Errorf("%q", got)
	}
}

// A name that has another project, or something of one, is not taken; what only was recorded
// under the new name goes along.
func TestMoveIsRefused(t *testing.T) {
	w := newRenamed(t)
	p := w.project(t, w.root)
	other := filepath.Join(filepath.Dir(w.root), "other")
	mkdir(t, filepath.Join(other, ".git"))
	q, err := InitProject(other, "bakery")
	if err != nil {
		t.Fatal(err)
	}
	if err := w.paths.Claim(t.Context(), q, "", time.Now()); err != nil {
		t.Fatal(err)
	}
	var taken *NameTakenError
	if err := w.paths.Move(t.Context(), durable.Disk{}, p, "bakery"); !errors.As(err, &taken) {
		t.Errorf("%v", err)
	}
	put(t, filepath.Join(w.paths.Queue("oven"), "ready", "x.json"), "{}")
	if err := w.paths.Move(t.Context(), durable.Disk{}, p, "oven"); err == nil || !strings.Contains(err.Error(), "work items") {
		t.Errorf("%v", err)
	}
	put(t, filepath.Join(w.paths.Events("mill"), "2026-11.here.jsonl"), "{\"b\":1}\n")
	if err := w.paths.Move(t.Context(), durable.Disk{}, p, "mill"); err != nil {
		t.Fatal(err)
	}
	logs, err := os.ReadDir(w.paths.Events("mill"))
	if err != nil || len(logs) != 2 {
		t.Errorf("%v, %v", logs, err)
	}
	// A stranger whose file has the old name is not led to it.
	third := filepath.Join(filepath.Dir(w.root), "third")
	mkdir(t, filepath.Join(third, ".git"))
	put(t, filepath.Join(third, ".reprise", "project.yaml"), "v: 1\nname: shop\n")
	s := w.project(t, third)
	if err := CheckName(w.paths, s); s.Name != "shop" || !errors.As(err, &taken) {
		t.Errorf("%+v, %v", s, err)
	}
	put(t, filepath.Join(third, ".reprise", "project.yaml"), "v: 1\nname: new\naliases: [mill, shop]\n")
	if s := w.project(t, third); s.Name != "new" {
		t.Errorf("%+v", s)
	}
}

// Whoever removes what is known of a renamed project by hand has its old name free, too.
func TestRenamedAndRemoved(t *testing.T) {
	w := newRenamed(t)
	if err := w.paths.Move(t.Context(), durable.Disk{}, w.project(t, w.root), "bakery"); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(w.paths.ProjectDir("bakery")); err != nil {
		t.Fatal(err)
	}
	p := w.project(t, w.root)
	if err := w.paths.Claim(t.Context(), p, "", time.Now()); err != nil || p.Name != "shop" {
		t.Fatalf("%+v, %v", p, err)
	}
	if names := w.paths.NamesOf("shop"); len(names) != 1 {
		t.Errorf("%q", names)
	}
}

// A file keeps all else that is in it; one that cannot be edited says what to write.
func TestRenameEdit(t *testing.T) {
	w := newRenamed(t)
	p := w.project(t, w.root)
	for text, want := range map[string]string{
		"v: 1\nname: shop # ours\n# end\n":             "v: 1\nname: bakery # ours\naliases: [shop]\n# end\n",
		"v: 1\nname: \"shop\"\naliases:\n  - bakery\n": "v: 1\nname: bakery\naliases: [shop]\n",
		"v: 1\nname: bakery\naliases:\n  - shop\n":     "v: 1\nname: bakery\naliases:\n  - shop\n",
	} {
		put(t, p.File(), text)
		e, err := RenameEdit(p, "bakery")
		if err != nil || e.After != want {
			t.Errorf("%q: %q, %v", text, e.After, err)
		}
	}
	put(t, p.File(), "{v: 1, name: shop}\n")
	if _, err := RenameEdit(p, "bakery"); err == nil || !strings.Contains(err.Error(), "name: bakery") {
		t.Errorf("%v", err)
	}
}
