package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"reprise/internal/config"
)

// A repository may bring a link in the place of the bootstrap template: what it names outside of
// the project goes into no prompt.
func TestBootstrapIsAFileOfTheProject(t *testing.T) {
	t.Parallel()
	const secret = "the user's own"
	for _, c := range []struct {
		name, want, wrong string
		make              func(root, file string) error
	}{
		{name: "none", make: func(string, string) error { return nil }},
		{name: "a file", want: "do this", make: func(_, file string) error { return os.WriteFile(file, []byte("do this"), 0o600) }},
		{name: "a link in the project", want: "do that", make: func(root, file string) error {
			if err := os.WriteFile(filepath.Join(root, "other.md"), []byte("do that"), 0o600); err != nil {
				return err
			}
			return os.Symlink(filepath.Join("..", "other.md"), file)
		}},
		{name: "a link out", wrong: "is a link that leads out of the project (" + filepath.Join("..", "..", "secret") + "): put the file itself there", make: func(_, file string) error { return os.Symlink(filepath.Join("..", "..", "secret"), file) }},
		{name: "a link to nothing", wrong: "is a link to nowhere, and nothing is there", make: func(_, file string) error { return os.Symlink("nowhere", file) }},
		{name: "a link out to nothing", wrong: "is a link to ../../gone, and nothing is there", make: func(_, file string) error { return os.Symlink("../../gone", file) }},
		{name: "an absolute link", wrong: "is a link that leads out of the project", make: func(root, file string) error {
			return os.Symlink(filepath.Join(filepath.Dir(root), "secret"), file)
		}},
		{name: "its directory is one", wrong: ".reprise is a link that leads out of the project", make: func(root, file string) error {
			if err := os.Remove(filepath.Dir(file)); err != nil {
				return err
			}
			return os.Symlink(filepath.Dir(root), filepath.Dir(file))
		}},
		{name: "no text", wrong: "UTF-8", make: func(_, file string) error { return os.WriteFile(file, []byte("a\xff"), 0o600) }},
		{name: "a directory", wrong: "no file", make: func(_, file string) error { return os.Mkdir(file, 0o700) }},
	} {
		dir := t.TempDir()
		root := filepath.Join(dir, "shop")
		file := filepath.Join(root, ".reprise", "bootstrap.md")
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"secret", "bootstrap.md"} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(secret), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := c.make(root, file); err != nil {
			t.Skip(err) // no links here
		}
		text, err := bootstrapOf(&config.Home{Project: &config.Project{Root: root}})
		switch {
		case strings.Contains(text, secret):
			t.Errorf("%s: it is read", c.name)
		case c.wrong == "" && (err != nil || text != c.want), c.wrong != "" && (err == nil || !strings.Contains(err.Error(), c.wrong) || !strings.Contains(err.Error(), "bootstrap.md")):
			t.Errorf("%s: %q, %v", c.name, text, err)
		}
	}
}
