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

// soundSettings are those of them after which git mostly can go on.
var soundSettings = []string{
	"v w", "  v\t\tw  ", "x=y", "./evil.sh", "\\\\", "\\\n", "\\\r\n", "\\n", "\\t", "\\\"", "\"\"", "\"a # b\"", " # c", " # c \\", "; c \\\\", "\n[core]\n fsmonitor = ", "\n[x \"a\\\"B\"] y=", "\r", "\v", "é", "\xff", "\n\ty-1 = ", "\n# c \\\n y = ", "\r\ny = ",
}

// oddText is a text of such pieces; of two in three git can make something.
func oddText(r *rand.Rand) string {
	var b strings.Builder
	if r.IntN(3) > 0 {
		b.WriteString("[x]\ny = ")
		for range 2 + r.IntN(9) {
			b.WriteString(soundSettings[r.IntN(len(soundSettings))])
		}
		return b.String()
	}
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

// Files that others include are read in the order in which git reads them, and what
// only git can find is said to be unread.
func TestIncludesAsGitFollowsThem(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	paths := []string{"b", "./b", "sub/../b", "sub/c", "~/b", "~/sub/c", "none", "\"b\"", "\"sub/c\" # x", "su\\\nb/c", "b ; c", "DIR/sub/c", "sub//c", "\\\"b\\\"", "b\\\\", "é"}
	unknown := []string{"~root/b", "%(prefix)/b", "b\tc"}
	r := rand.New(rand.NewPCG(3, 4))
	followed := 0
	for range 60 {
		dir := Resolve(t.TempDir())
		text := func(n int) string {
			var b strings.Builder
			for range n {
				fmt.Fprintf(&b, "[x]\n\ty = %d\n[include]\n\tpath = %s\n", r.IntN(9), strings.ReplaceAll(paths[r.IntN(len(paths))], "DIR", dir))
			}
			return b.String()
		}
		if err := os.Mkdir(filepath.Join(dir, "sub"), 0o755); err != nil {
			t.Fatal(err)
		}
		for name, content := range map[string]string{"config": text(1 + r.IntN(3)), "b": "[b]\n\tz = b\n", "sub/c": "[c]\n\tz\n[include]\npath=d\npath = ../b\n", "sub/d": "[d \"e\"] z = \"d\"\n", "\"b\"": "[q]\nz = q\n", "b\\": "[s]\nz = s\n", "é": "[e]z=1"} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		file := filepath.Join(dir, "config")
		git, ok := gitReads(t, file, "--includes")
		var found gitFound
		var ours []gitSetting
		reader := configReader{a: &analysis{r: &Rules{Roots: []string{dir}, Home: dir}}, found: &found, see: func(s gitSetting) { ours = append(ours, s) }}
		reader.file(file)
		if !ok {
			t.Fatalf("git gave up: %q", git)
		}
		if reader.read > maxIncludes {
			continue
		}
		if !sameSettings(git, ours) || found.unread != "" {
			data, _ := os.ReadFile(file)
			t.Errorf("%q:\ngit has %q\nhere    %+v %s", data, git, ours, found.unread)
		}
		followed += reader.read - 1
	}
	if followed < 60 {
		t.Errorf("only %d files were included", followed)
	}
	for _, u := range unknown {
		p := newProject(t)
		p.put(t, map[string]string{".git/config": "[include]\n\tpath = " + u + "\n"})
		if v := p.judge("git status"); v.Decision != Ask || !strings.Contains(v.Reason, "cannot be followed") {
			t.Errorf("%s: %s %s", u, v.Decision, v.Reason)
		}
	}
}
