package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A repository can bring a project file along that is a link to any file of the user's.
// Nothing of that one's text is repeated: what is wrong with it would be in every log.
func TestLinkedProjectFileIsNotQuoted(t *testing.T) {
	for text, near := range map[string]string{
		"root:x:0:0:root:/root:/bin/sh\n": "root:x",
		"key = hunter2\n":                 "hunter2",
		"v: 1\nname: Hunter 2\n":          "Hunter",
		"hunter2: [\n":                    "hunter2",
	} {
		for how, link := range map[string]func(root, secret string) error{
			"file": func(root, secret string) error {
				mkdir(t, root, ".reprise")
				return os.Symlink(secret, ProjectFile(root))
			},
			"directory": func(root, secret string) error {
				return os.Symlink(filepath.Dir(secret), filepath.Join(root, ".reprise"))
			},
			"two links": func(root, secret string) error {
				mkdir(t, root, ".reprise")
				if err := os.Symlink(secret, filepath.Join(root, "between")); err != nil {
					return err
				}
				return os.Symlink(filepath.Join("..", "between"), ProjectFile(root))
			},
			"of its git directory": func(root, _ string) error {
				mkdir(t, root, ".reprise")
				mkdir(t, root, ".git")
				write(t, filepath.Join(root, ".git", "config"), text)
				return os.Symlink(filepath.Join("..", ".git", "config"), ProjectFile(root))
			},
		} {
			dir := t.TempDir()
			root, secret := mkdir(t, dir, "root"), filepath.Join(mkdir(t, dir, "secret"), "project.yaml")
			write(t, secret, text)
			if err := link(root, secret); err != nil {
				t.Skip(err)
			}
			_, err := FindProject(Env{}, root)
			if err == nil || strings.Contains(err.Error(), near) || !strings.Contains(err.Error(), "is a link to") || !strings.Contains(err.Error(), ProjectFile(root)) {
				t.Errorf("%s, %q: %v", how, text, err)
			}
		}
	}
	// One within the project says where it is wrong, as any; and a good one elsewhere counts.
	root := t.TempDir()
	mkdir(t, root, ".reprise")
	write(t, filepath.Join(root, "shared.yaml"), "v: 1\nname: Bad Name\n")
	if err := os.Symlink(filepath.Join("..", "shared.yaml"), ProjectFile(root)); err != nil {
		t.Skip(err)
	}
	if _, err := FindProject(Env{}, root); err == nil || !strings.Contains(err.Error(), "Bad Name") {
		t.Error(err)
	}
	elsewhere := filepath.Join(t.TempDir(), "mine.yaml")
	write(t, elsewhere, "v: 1\nname: mine\n")
	if err := os.Remove(ProjectFile(root)); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(elsewhere, ProjectFile(root)); err != nil {
		t.Fatal(err)
	}
	if p, err := FindProject(Env{}, root); err != nil || p == nil || p.Name != "mine" {
		t.Errorf("%+v %v", p, err)
	}
}
