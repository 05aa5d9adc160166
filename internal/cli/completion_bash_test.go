package cli

import (
	"bytes"
	"os/exec"
	"strings"
	"testing"

	"reprise/internal/config"
)

// The script for bash completes in a shell that has nothing but bash: many machines lack
// the package bash-completion, and its functions are not there then.
func TestBashAlone(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("there is no bash")
	}
	var script bytes.Buffer
	if code := Main(t.Context(), []string{"completion", "bash"}, &App{Out: &script, Err: &script, In: strings.NewReader(""), Env: config.Env{Vars: map[string]string{"HOME": t.TempDir()}, GOOS: "linux"}}); code != 0 {
		t.Fatalf("exit code %d: %s", code, script.String())
	}
	for _, c := range []struct{ line, words, answer, want string }{
		// The program is a function here that says what it is asked for, and answers.
		{"runs sh", "reprise runs sh", "show", "asked: __complete runs sh\nshow"},
		{"a value behind =", "reprise runs list --status = run", "running", "asked: __complete runs list --status=run\nrunning"},
		{"nothing yet", "reprise runs ''", "show", "asked: __complete runs \nshow"},
	} {
		words := strings.ReplaceAll(c.words, " = ", " '=' ")
		run := script.String() + `
exec 9>&1
reprise() { echo "asked: $*" >&9; printf '` + c.answer + `\tone of them\n:4\n'; }
COMP_WORDS=(` + words + `); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); COMP_TYPE=9; COLUMNS=80
COMP_LINE="${COMP_WORDS[*]}"; COMP_POINT=${#COMP_LINE}
compopt() { :; }
__start_reprise
printf '%s\n' "${COMPREPLY[@]%% *}"
cur=/et; COMPREPLY=(); __reprise_files -d; printf '%s\n' "${COMPREPLY[@]}"
`
		cmd := exec.Command(bash, "--norc", "--noprofile", "-c", run)
		cmd.Env = []string{"PATH=/usr/bin:/bin", "LC_ALL=C"}
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(out), c.want+"\n/etc") || strings.Contains(string(out), "not found") {
			t.Errorf("%s: %v\n%s", c.line, err, out)
		}
	}
}
