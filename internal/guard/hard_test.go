package guard

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// hard are the cases of testdata/hard.txt: a decision and a command a line, in
// which \n, \t, \\ and \uXXXX are escapes.
func hard(t testing.TB) []corpusCase {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "hard.txt"))
	if err != nil {
		t.Fatal(err)
	}
	unescape := strings.NewReplacer(`\n`, "\n", `\t`, "\t", `\\`, `\`, `\u200b`, "\u200b", `\u202e`, "\u202e", `\u00a0`, "\u00a0")
	var out []corpusCase
	for _, l := range strings.Split(strings.TrimSpace(string(data)), "\n") {
		want, c, _ := strings.Cut(l, " ")
		out = append(out, corpusCase{ID: l, Command: unescape.Replace(c), Want: Decision(want)})
	}
	return out
}

func TestHardCases(t *testing.T) {
	p := newProject(t)
	for _, c := range hard(t) {
		if v := p.judge(c.Command); v.Decision != c.Want {
			t.Errorf("%s, want %s: %s\n\t%s", v.Decision, c.Want, c.Command, v.Reason)
		}
	}
}
