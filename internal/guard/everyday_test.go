package guard

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func everyday(t testing.TB) []string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "everyday.txt"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimRight(string(data), "\n"), "\n")
}

func TestEveryday(t *testing.T) {
	p := newProject(t)
	wrong := 0
	list := everyday(t)
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
