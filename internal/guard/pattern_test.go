package guard

import (
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"reprise/internal/guard/names"
)

// Whatever bash takes a name for by a pattern, in any of the languages that it knows
// here, the guard must, too: a pattern that it thinks to fit nothing would be let pass.
func TestPatternsFitWhatShellsFit(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("no bash")
	}
	rng := rand.New(rand.NewPCG(7, 11))
	pieces := []string{"*", "?", "[!.]", "[^.]", "[[:alpha:]]", "[![:digit:]]", "[[:punct:]]", "[[.e.]]", "[[=n=]]", "[]e]", "[!]x]", "[a-f]", "[!a-m]", "[A-Z]", "[e-]", "[-e]", `[\e]`, `\.`, "[", "]", "[!", "[[:nope:]]", "[a-", ".", "e", "n", "v", "-", "[.]", "[[:upper:]e]", "[!-~]", "[[.hyphen.]x]", "[b-[:alpha:]]", "[a[:digit:]-x]", "[", "[[:alpha:]", "[^]", "[!]", "[]", "[][]", `[\]x]`, "[é]", "é"}
	texts := []string{".env", "env", "-x", "e", "n", ".", "..", "x.go", "é", "Env", "[", "]", "a]", "-", "^", "!", "e-", ".e", "9", "\\", "[e", "e[n", "~", "_"}
	var script strings.Builder
	type pair struct{ pattern, name string }
	var pairs []pair
	for range 12_000 {
		var p strings.Builder
		for range 1 + rng.IntN(4) {
			p.WriteString(pieces[rng.IntN(len(pieces))])
		}
		n := texts[rng.IntN(len(texts))]
		pairs = append(pairs, pair{p.String(), n})
		quoted := func(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
		script.WriteString("p=" + quoted(p.String()) + "; n=" + quoted(n) + "; case $n in $p) echo y;; *) echo n;; esac\n")
	}
	file := filepath.Join(t.TempDir(), "x.sh")
	if err := os.WriteFile(file, []byte(script.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	fits, says := 0, 0
	for _, language := range []string{"C", "C.UTF-8", "en_US.UTF-8"} {
		cmd := exec.Command(bash, file)
		cmd.Env = []string{"LC_ALL=" + language, "PATH=/usr/bin:/bin"}
		out, err := cmd.Output() // what it says of languages that are not there is no error
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Fields(string(out))
		if len(lines) != len(pairs) {
			t.Fatalf("%s: %d answers to %d patterns", language, len(lines), len(pairs))
		}
		for i, p := range pairs {
			ours := names.Match(p.pattern, p.name)
			plain := !strings.Contains(p.pattern, "[.") && !strings.Contains(p.pattern, "[=") && !strings.Contains(p.pattern, "-[:") && !strings.Contains(p.pattern, ":]-") && p.name != "é"
			if lines[i] == "y" {
				if plain {
					fits++
				}
				if !ours {
					t.Errorf("%s: %q fits %q for bash", language, p.name, p.pattern)
				}
				if !names.Match(names.Widen(p.pattern), p.name) {
					t.Errorf("%s: %q fits %q for bash, and %q does not take it", language, p.name, p.pattern, names.Widen(p.pattern))
				}
			}
			if ours && plain {
				says++
			}
		}
	}
	// To fit anything would be no answer.
	if fits < 500 || says > 2*fits {
		t.Errorf("of the plain ones bash has %d that fit, the guard %d", fits, says)
	}
}
