package guard

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// oddSettings are pieces of which texts of settings are made: what ends a line or does
// not, begins a comment, quotes, escapes, and names that decide.
var oddSettings = []string{
	"[core]", "[core]\n", "[Core \"A.b\"]\n", "[x]\n\t", "[x \"a\\\"b]\"]", "[x  \"\\\\\"]\n", "[ x ]\n", "[x.Y]\n", "[x \"y\" ]\n", "[x \"", "[", "]", "\"]\n",
	"fsmonitor", "y = ", "y=", "Y-1 =\t", "= ", "a b = c\n", "1 = c\n", "_ = c\n", "./evil.sh", "v w", "  v\t\tw  ", "x=y",
	"\\", "\\\\", "\\\n", "\\\r\n", "\\n", "\\t", "\\b", "\\\"", "\\x", "\\ ", "\"", "\"\"", "\"a # b\"", "# c", "# c \\\n", "; c\n", "#", ";",
	"\n", "\n\t", "\n", "\r\n", "\r", "\v", "\f", " ", "\t", "\ufeff", "\xef\xbb", "é", "\xff", "%", "~",
}

// oddText is a text of such pieces, mostly one that git can read.
func oddText(r *rand.Rand) string {
	var b strings.Builder
	if r.IntN(4) == 0 {
		b.WriteString("\ufeff")
	}
	if r.IntN(5) > 0 {
		b.WriteString("[x]\n")
	}
	for range 1 + r.IntN(7) {
		if r.IntN(2) == 0 {
			b.WriteString("y = ")
		}
		for range 1 + r.IntN(4) {
			b.WriteString(oddSettings[r.IntN(len(oddSettings))])
		}
		if r.IntN(3) > 0 {
			b.WriteString("\n")
		}
	}
	return b.String()
}

// gitReads is what git itself makes of a file of settings, one a line; ok is false where
// it gives up.
func gitReads(t *testing.T, file string, more ...string) (list []string, ok bool) {
	t.Helper()
	cmd := exec.Command("git", append([]string{"config", "-z", "--list", "--file", file}, more...)...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + filepath.Dir(file), "LC_ALL=C"}
	cmd.Dir = filepath.Dir(file)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	if err != nil && stderr.Len() == 0 {
		t.Fatalf("%v without a word", err)
	}
	for _, l := range bytes.Split(out, []byte{0}) {
		if len(l) > 0 {
			list = append(list, string(l))
		}
	}
	return list, err == nil
}

// asGit is a setting as git config -z --list has it.
func (s gitSetting) asGit() string {
	if s.alone {
		return s.key
	}
	return s.key + "\n" + s.value
}

// sameSettings reports whether two lists are the same; a blank of a value that is
// blurred may be another.
func sameSettings(git []string, ours []gitSetting) bool {
	if len(git) != len(ours) {
		return false
	}
	blanks := strings.NewReplacer("\t", " ", "\r", " ")
	for i, s := range ours {
		g, o := git[i], s.asGit()
		if s.blurred {
			g, o = blanks.Replace(g), blanks.Replace(o)
		}
		if g != o {
			return false
		}
	}
	return true
}

// Settings are read as git reads them, in texts of every oddity, and what git gives up
// at is not sound here, either.
func TestSettingsAsGitReadsThem(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	file := filepath.Join(t.TempDir(), "config")
	texts := []string{
		"[x]\n\ty = \\\\\n[core]\n\tfsmonitor = ./evil.sh\n", "[x]\n# a comment \\\n[core]\n\tfsmonitor = ./evil.sh\n", "[x]\n\ty = \\\\\\\n[core]\n\tfsmonitor = ./evil.sh\n",
		"[x]\n\ty = a ; b \\\n[core]\nfsmonitor = x\n", "[x]\ny = \"a\\\nb\"\n", "[x]\ny = a\\", "[x] y = 1 # \\\r\n z", "[x]\ny\\\n = 1\n", "y = 1\n", "", "\n", "\ufeff", "[x", "[x]y", "[x]y=", "[x]y=\"", "[core]\r\nfsmonitor = true\r\n", "[x]\ny = a\rb\n", "[x]\ny = a\vb\v\n", "[x]\n\v y = 1\n",
	}
	r := rand.New(rand.NewPCG(1, 2))
	n := 700
	if testing.Short() {
		n = 100
	}
	for range n {
		texts = append(texts, oddText(r))
	}
	sound, settings := 0, 0
	for _, text := range texts {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		git, ok := gitReads(t, file)
		ours, oursOK := gitSettingsOf(text)
		if ok != oursOK || ok && !sameSettings(git, ours) {
			t.Errorf("%q:\ngit has %q (%v)\nhere    %+v (%v)", text, git, ok, ours, oursOK)
		}
		if ok {
			sound++
			settings += len(ours)
		}
	}
	t.Logf("%d texts, %d that git reads, with %d settings", len(texts), sound, settings)
	if sound < len(texts)/5 || sound > len(texts)*4/5 || settings < sound {
		t.Error("the texts are too even to tell anything")
	}
}

var _ = fmt.Sprint
