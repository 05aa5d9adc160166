package guard

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// printedAsked print numbers that are not known, printedAllowed such as are, or text.
var (
	printedAsked = []string{
		`printf %d "$(head -1 f)"`, `printf '%s %d\n' x "$(head -1 f)"`, `printf '%s %5.2f\n' x "$(cat f)"`, `read -r n < f; printf '%x' "$n"`, `n=$(head -1 f); printf '%i\n' "$n"`, `printf '%*s' "$(cat f)" x`, `printf '%.*s' "$(cat f)" x`,
		`while read -r n; do printf '%d\n' "$n"; done < f`, `for n in $(cat f); do printf '%03d\n' "$n"; done`, `printf '%d %s\n' 1 a "$(cat f)"`, `printf '%2$s %1$d' "$(cat f)" x`, `printf "$(cat f)" "$(cat f)"`, `printf -- '%d' "$(cat f)"`,
		`printf '%s %d' $(cat f) 1`, `printf '%(%F)T' "$(cat f)"`, `printf '%d' "1$(cat f)"`, `x=$(cat f); printf %d x`, `printf '%d' 'path[$(touch PWNED)]'`, `exit "$(cat f)"`, `f() { return "$(cat f)"; }; f`, `shift "$(cat f)"`,
		`[ 'path[$(touch PWNED)]' -eq 1 ]`,
	}
	printedAllowed = []string{
		`printf '%s\n' "$(head -1 f)"`, `printf '%s %d\n' "$(head -1 f)" 3`, `printf '%d\n' "$(wc -l < f)"`, `printf '%d %d\n' $# $?`, `n=0; n=$((n+1)); printf '%03d\n' "$n"`, `printf '%d' "'$(head -c1 f)"`, `printf '%d%%\n' 50`, `printf '100%% %s\n' "$(cat f)"`, `for i in 1 2 3; do printf '%02d ' $i; done`,
		`printf '%-20s|%s\n' "$(cat f)" "$(cat f)"`, `printf '%b %q %c\n' "$(cat f)" "$(cat f)" "$(cat f)"`, `printf '%d %s\n' 1 "$(cat f)" 2 "$(cat f)"`, `rc=$?; exit $rc`, `exit 1`, `for f in *.go; do printf '%s: %d\n' "$f" "$(wc -l < "$f")"; done`, `printf '%x\n' 255`, `printf "%d\n" "$(grep -c x f)"`, `printf '%.1f\n' 3.14`, `printf %d x`, `printf '%'`, `printf '%5'`, `printf`, `printf --`,
	}
)

// What printf takes for a number by its format zsh evaluates, whatever shell it is that
// the guard reads for; what is not known is no milder than what is.
func TestPrintedNumbers(t *testing.T) {
	p := newProject(t)
	list := map[string]Decision{}
	for _, c := range printedAsked {
		list[c] = Ask
	}
	for _, c := range printedAllowed {
		list[c] = Allow
	}
	p.wants(t, list)
}

// zsh itself, where it is installed, runs what a number is said to be; where the guard
// allows a command, nothing is.
func TestPrintedNumbersInZsh(t *testing.T) {
	zsh, err := exec.LookPath("zsh")
	if err != nil {
		t.Skip("zsh is not installed")
	}
	ran := 0
	for _, c := range []string{`printf %d "$(head -1 f)"`, `read -r n < f; printf %x "$n"`, `printf '%s %d' x "$(head -1 f)"`, `printf '%*s' "$(head -1 f)" x`, `printf %s "$(head -1 f)"`, `printf '%s %d' "$(head -1 f)" 3`, `x=$(cat f); printf %d x`, `exit "$(cat f)"`, `printf '%q %b %c' "$(cat f)" "$(cat f)" "$(cat f)"`} {
		p := newProject(t)
		p.put(t, map[string]string{"f": "path[$(touch PWNED)]\n"})
		cmd := exec.Command(zsh, "-f", "-c", c)
		cmd.Dir, cmd.Env = p.dir, []string{"PATH=/usr/bin:/bin", "HOME=" + p.home}
		out, _ := cmd.CombinedOutput() // many end with an error
		if isThere(filepath.Join(p.dir, "PWNED")) {
			ran++
			if v := p.judge(c); v.Decision == Allow {
				t.Errorf("allowed, and zsh ran it: %s\n%s", c, strings.TrimSpace(string(out)))
			}
		}
	}
	if ran == 0 {
		t.Error("zsh ran nothing of it")
	}
}
