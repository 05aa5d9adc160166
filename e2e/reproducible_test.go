//go:build unix

package e2e

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

// Two builds of the same files are equal byte for byte, wherever they are built and by
// whom: as a release builds it, once in this tree, and once in a copy elsewhere, with a
// home of its own and nothing compiled before. It is the small program, for it is made of
// the same parts by the same flags; all of a release takes minutes (script/release/run
// twice, and its checksums compared).
func TestBuildIsReproducible(t *testing.T) {
	inItsOwnStep(t)
	t.Parallel()
	var release struct {
		Builds []struct {
			ID      string   `yaml:"id"`
			Flags   []string `yaml:"flags"`
			LDFlags []string `yaml:"ldflags"`
		} `yaml:"builds"`
	}
	data, err := os.ReadFile(filepath.Join(repo, ".goreleaser.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	// What a build writes beside what it takes over with << counts as twice for this parser.
	if err := yaml.UnmarshalWithOptions(data, &release, yaml.AllowDuplicateMapKey()); err != nil {
		t.Fatal(err)
	}
	if len(release.Builds) == 0 || len(release.Builds[0].LDFlags) != 1 {
		t.Fatalf("how a release is built: %+v", release.Builds)
	}
	args := append([]string{"build"}, release.Builds[0].Flags...)
	args = append(args, "-ldflags="+strings.ReplaceAll(release.Builds[0].LDFlags[0], "{{ .Version }}", "1.2.3"))

	elsewhere := filepath.Join(t.TempDir(), "a directory of another name")
	list, err := exec.Command("git", "-C", repo, "ls-files", "-z", "--", "go.mod", "go.sum", "cmd", "internal", "plugin").Output()
	if err != nil {
		t.Fatal(err)
	}
	for name := range strings.SplitSeq(strings.TrimRight(string(list), "\x00"), "\x00") {
		if strings.Contains(name, "/testdata/") || strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(repo, name))
		if err != nil {
			t.Fatal(err)
		}
		to := filepath.Join(elsewhere, name)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(to, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	modules, err := exec.Command("go", "env", "GOMODCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	build := func(dir string, env ...string) []byte {
		out := filepath.Join(t.TempDir(), "built")
		c := exec.Command("go", append(args, "-o", out, "./cmd/reprise-hook")...)
		c.Dir, c.Env = dir, append(os.Environ(), append(env, "CGO_ENABLED=0", "GOFLAGS=", "GOWORK=off")...)
		if said, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%q in %s: %v\n%s", c.Args, dir, err, said)
		}
		data, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	here := build(repo)
	home := t.TempDir()
	there := build(elsewhere, "GOCACHE="+filepath.Join(home, "cache"), "GOMODCACHE="+strings.TrimSpace(string(modules)), "HOME="+home, "USER=somebody", "TZ=Asia/Tokyo")
	if !bytes.Equal(here, there) {
		t.Errorf("two builds of the same files differ: %d and %d bytes", len(here), len(there))
	}
	for _, dir := range []string{repo, elsewhere, home} {
		if bytes.Contains(there, []byte(dir)) || bytes.Contains(here, []byte(dir)) {
			t.Errorf("the program names %s, where it was built", dir)
		}
	}
}
