package config

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// A directory is named as it was reached and as it is, so that what a client
// called it by is found; a project has its root, and what is beside it is not told.
func TestPlaces(t *testing.T) {
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	real := mkdir(t, base, "real", "app", "sub")
	link := filepath.Join(base, "link")
	if err := os.Symlink(filepath.Join(base, "real"), link); err != nil {
		t.Skip("no symbolic links here: ", err)
	}
	paths := Paths{Data: filepath.Join(base, "data")}
	app := filepath.Dir(real)
	for _, c := range []struct {
		p    *Project
		dir  string
		want []string
	}{
		{nil, real, []string{real}},
		{nil, filepath.Join(link, "app", "sub"), []string{real, filepath.Join(link, "app", "sub")}},
		{&Project{Name: "app", Root: app, Main: app}, filepath.Join(link, "app", "sub"), []string{real, filepath.Join(link, "app", "sub"), app, filepath.Join(link, "app")}},
	} {
		if got := Places(paths, c.p, c.dir); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.dir, got, c.want)
		}
	}
	project(t, app, "app")
	env := Env{Vars: map[string]string{"HOME": base}, Dir: base}
	for dir, want := range map[string]string{real: "app", base: "", filepath.Join(base, "gone"): ""} {
		if got := ProjectOf(env, paths, dir); got != want {
			t.Errorf("%s is of %q, want %q", dir, got, want)
		}
	}
}
