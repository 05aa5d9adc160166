//go:build !windows

package config

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A project file that another user put into a directory above, where others may write to, is
// passed over; whoever works in that user's own directory has chosen to.
func TestForeignProjectsArePassedOver(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can make files of another user")
	}
	const nobody, other = 65534, 65533
	shared := t.TempDir()
	mine := mkdir(t, shared, "mine")
	mkdir(t, shared, ".reprise")
	write(t, ProjectFile(shared), "v: 1\nname: evil\n")
	own := func(path string, uid int) {
		t.Helper()
		if err := os.Lchown(path, uid, uid); err != nil {
			t.Fatal(err)
		}
	}
	for name, tt := range map[string]struct {
		file, dir, start int
		want             string
	}{
		"of the user":                 {0, 0, 0, "evil"},
		"all of another":              {nobody, nobody, 0, ""},
		"the file":                    {nobody, 0, 0, ""},
		"the directory":               {0, nobody, 0, ""},
		"in a directory of that user": {nobody, nobody, nobody, "evil"},
		"in a directory of a third":   {nobody, nobody, other, ""},
	} {
		own(ProjectFile(shared), tt.file)
		own(filepath.Dir(ProjectFile(shared)), tt.dir)
		own(mine, tt.start)
		p, err := FindProject(Env{}, mine)
		got := ""
		if p != nil {
			got = p.Name
		}
		if got != tt.want || err != nil {
			t.Errorf("%s: project %q, %v; want %q", name, got, err, tt.want)
		}
		if file, _ := ForeignProject(Env{}, mine); (file != "") != (tt.want == "") {
			t.Errorf("%s: passed over is %q", name, file)
		}
	}
	// One that is broken stands in nobody's way either.
	write(t, ProjectFile(shared), "name: [\n")
	own(ProjectFile(shared), nobody)
	own(mine, 0)
	if p, err := FindProject(Env{}, mine); p != nil || err != nil {
		t.Errorf("%v, %v", p, err)
	}
}

// A project is not made through a link that leads elsewhere.
func TestProjectIsNotMadeThroughALink(t *testing.T) {
	for name, target := range map[string]func(dir string) string{
		"a directory": func(dir string) string { return mkdir(t, dir, "victim") },
		"nothing":     func(dir string) string { return filepath.Join(dir, "gone") },
	} {
		dir := t.TempDir()
		root, to := mkdir(t, dir, "root"), target(dir)
		if err := os.Symlink(to, filepath.Join(root, ".reprise")); err != nil {
			t.Fatal(err)
		}
		p, err := InitProject(root, "shop")
		if said := (*Error)(nil); p != nil || !errors.As(err, &said) || !strings.Contains(said.Problem, "is a link to") {
			t.Errorf("%s: %+v, %v", name, p, err)
		}
		if _, err := os.Lstat(filepath.Join(to, "project.yaml")); err == nil {
			t.Errorf("%s: it was written through", name)
		}
	}
}
