package guard

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// everyday are commands as agents run them all day, one a line; ⏎ stands for a
// line's end in one.
func everyday(t testing.TB) []string { return everydayOf(t, "everyday.txt") }

func everydayOf(t testing.TB, name string) []string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	list := strings.Split(strings.TrimRight(string(data), "\n"), "\n")
	for i := range list {
		list[i] = strings.ReplaceAll(list[i], "⏎", "\n")
	}
	return list
}

func TestEveryday(t *testing.T) {
	list := everyday(t)
	if len(list) < 300 {
		t.Fatalf("%d commands", len(list))
	}
	fewAsked(t, "everyday", list)
}

// A second list was written down before anybody looked what is said of its commands: see
// docs/guard.md for what was asked about then.
func TestEverydayFresh(t *testing.T) {
	list := everydayOf(t, "everyday2.txt")
	if len(list) < 400 {
		t.Fatalf("%d commands", len(list))
	}
	fewAsked(t, "fresh", list)
}

// fewAsked fails where more than two of a hundred commands are not allowed.
func fewAsked(t *testing.T, name string, list []string) {
	t.Helper()
	p := newProject(t)
	if name != "everyday" {
		// Few projects have a link that leads out of them, of which much is asked.
		if err := os.Remove(filepath.Join(p.dir, "out")); err != nil {
			t.Fatal(err)
		}
	}
	wrong := 0
	for _, c := range list {
		if v := p.judge(c); v.Decision != Allow {
			wrong++
			t.Logf("%s: %s: %s\n\t%s", name, v.Decision, c, v.Reason)
		}
	}
	t.Logf("%s: %d of %d", name, wrong, len(list))
	if wrong*50 > len(list) {
		t.Errorf("%s: %d of %d everyday commands are not allowed", name, wrong, len(list))
	}
}
