package pathname

import (
	"os"
	"path/filepath"
	"testing"
)

func TestBelow(t *testing.T) {
	for _, c := range []struct {
		dir, path, rel string
		ok             bool
	}{
		{"/a/b", "/a/b", ".", true}, {"/a/b", "/a/b/", ".", true}, {"/a/b", "/a/b/c/d", "c/d", true}, {"/", "/a", "a", true},
		{"/a/b", "/a/bc", "../bc", false}, {"/a/b", "/a", "..", false}, {"/a/b", "/a/b/../c", "../c", false},
		{"/a/b", "/a/b/..c", "..c", true}, {"/a/b", "b", "", false}, {"a", "a/b", "b", true},
	} {
		rel, ok := Below(filepath.FromSlash(c.dir), filepath.FromSlash(c.path))
		if filepath.ToSlash(rel) != c.rel || ok != c.ok {
			t.Errorf("Below(%q, %q) is %q, %v", c.dir, c.path, rel, ok)
		}
		if Within(filepath.FromSlash(c.dir), filepath.FromSlash(c.path)) != c.ok {
			t.Errorf("Within(%q, %q) is not %v", c.dir, c.path, c.ok)
		}
	}
}

func TestSame(t *testing.T) {
	dir := t.TempDir()
	file, link := filepath.Join(dir, "file"), filepath.Join(dir, "link")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(file, link); err != nil {
		t.Skip(err)
	}
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{file, link, true}, {file, dir + "/./file", true}, {file, dir, false},
		{file, file + ".gone", false}, {file + ".gone", file, false}, {file + ".gone", dir + "/x/../file.gone", true},
	} {
		if Same(c.a, c.b) != c.want {
			t.Errorf("Same(%q, %q) is not %v", c.a, c.b, c.want)
		}
	}
}
