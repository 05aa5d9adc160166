package shellword

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

func TestWordsAreWhatAShellReads(t *testing.T) {
	words := []string{"sh", "-c", "! grep -q BUG README", "", "it's", `"a" \ $HOME $(x) ` + "`y`", "*", "~", "a=b", "日本", "two\nlines", "-x", "#", "a/b.c:1@2,3%4+5"}
	line := Join(words)
	if want := `sh -c '! grep -q BUG README' '' 'it'\''s' `; !strings.HasPrefix(line, want) || !strings.HasSuffix(line, " a/b.c:1@2,3%4+5") {
		t.Errorf("%s", line)
	}
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("there is no shell here")
	}
	out, err := exec.Command(sh, "-c", `for w in `+line+` `+Quoted("plain")+`; do printf '%s\0' "$w"; done`).Output()
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00"); !slices.Equal(got, append(words, "plain")) {
		t.Errorf("a shell reads %q", got)
	}
}
