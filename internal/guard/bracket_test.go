package guard

import (
	"os"
	"path/filepath"
	"testing"
)

// Go's patterns have no [!…], no classes and no bracket that begins with a closing one:
// what they do not know, they take for a pattern that fits nothing. A shell opens what
// such a pattern stands for: secrets, links that lead out, and names that are options.
func TestPatternsInBracketsAreFollowed(t *testing.T) {
	p := newProject(t)
	p.put(t, map[string]string{"-oout": "", ".git/hooks/pre-commit": "", ".claude/settings.json": "{}"})
	for name, to := range map[string]string{"link": "/etc/passwd", "sub/lnk": "/etc/shadow"} {
		if err := os.Symlink(to, filepath.Join(p.dir, name)); err != nil {
			t.Skipf("no links here: %v", err)
		}
	}
	for _, c := range []string{
		`cat .[!.]*`, `grep . .[!.]*`, `head -1 .[!.]?*`, `for f in .[!.]*; do cat "$f"; done`, `cat .[[:alpha:]]*`, `cat .[!x]nv`, `cat .[^.]*`, `cat .[[=e=]]nv`, `cat .[[.e.]]nv`, `cat .[]e]nv`, `cat .[d-[:alpha:]]*`, `awk 1 .[!.]*`,
		`cat l[!x]nk`, `cat l[[:alpha:]]nk`, `cat [[.l.]]ink`, `cat [[=l=]]ink`, `cat l[]i]nk`, `head sub/[!.]*`, `cat s[!x]b/l*`, `cat **/[!x]nk`,
		`sort [!a]*`, `sort [[:punct:]]*`, `sort [!a-z]o*`, `sort []-]*`,
	} {
		if v := p.judge(c); v.Decision == Allow {
			t.Errorf("let through: %s", c)
		}
	}
	r := p.rules()
	r.Writes = true
	for _, c := range []string{`tee .[!a]it/config < f`, `cp f .[!a]it/config`, `cp f .gi[!x]/hooks/pre-commit`, `tee .cl[!x]ude/settings.json < f`, `echo x > .[!x]it/config`, `tee .claude/[!x]ettings.json < f`, `tee .[[:alpha:]]it/config < f`} {
		if v := r.Command(c, p.dir); v.Decision == Allow {
			t.Errorf("let through: %s", c)
		}
	}
	for _, c := range []string{`cat src/[!x]*.go`, `ls src/[!.]*`, `cat src/[[:alpha:]]*.go`, `ls -d .[!.]*`, `wc -l src/[a-m]*.go`} {
		if v := p.judge(c); v.Decision != Allow {
			t.Errorf("%s: %s: %s", v.Decision, c, v.Reason)
		}
	}
}
