package guard

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// everyday are commands as agents run them all day, one a line; ⏎ stands for a
// line's end in one.
func everyday(t testing.TB) []string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "everyday.txt"))
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
	p := newProject(t)
	wrong := 0
	list := everyday(t)
	if len(list) < 300 {
		t.Fatalf("%d commands", len(list))
	}
	for _, c := range list {
		if v := p.judge(c); v.Decision != Allow {
			wrong++
			t.Logf("%s: %s\n\t%s", v.Decision, c, v.Reason)
		}
	}
	t.Logf("%d of %d", wrong, len(list))
	if wrong*50 > len(list) {
		t.Errorf("%d of %d everyday commands are not allowed", wrong, len(list))
	}
}
