package guard

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"reprise/internal/guard/know"
)

// aloneCase is a case that one rule of the analyser settles and no other, with what is
// right.
type aloneCase struct {
	mutationCase
	want string
}

// Where one rule alone settles a case it is told by that case when the rule is gone.
func TestRulesThatStandAlone(t *testing.T) {
	for _, c := range aloneCases(t) {
		if got := c.say(); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

func aloneCases(t *testing.T) (out []aloneCase) {
	add := func(name, want string, say func() string) {
		out = append(out, aloneCase{mutationCase{name, say}, want})
	}
	decided := func(p project, want Decision, command string) {
		add(command, string(want), func() string { return string(p.judge(command).Decision) })
	}
	// A link that leads nowhere else does not end the look, whichever comes first.
	for _, way := range [][2]string{{"../../f", "OUT/secret"}, {"OUT/secret", "../../f"}} {
		p := linked(t, map[string]string{"src/a/one": way[0], "src/a/two": way[1]})
		decided(p, Ask, "grep -R x src")
	}
	// Each directory counts that the command may be in.
	for _, in := range []string{"src", "vendor"} {
		p := linked(t, map[string]string{in + "/link": "OUT/secret"})
		decided(p, Ask, "cd src; [ -f f ] && cd ../vendor; grep -R x")
		decided(p, Ask, "cd vendor; [ -f f ] && cd ../src; grep -R x")
	}
	// A name that is used as it was listed is one thing, with something behind it another.
	p := linked(t, map[string]string{"src/a/link": "OUT/secret"})
	decided(p, Allow, `find . -type f -print0 | while IFS= read -r -d '' f; do ls -R "$f"; done`)
	decided(p, Ask, `find . -type f -print0 | while IFS= read -r -d '' f; do ls -R "$f"; cat "$f.x"; done`)
	// What find writes at length it gives to nobody, and goes on.
	decided(p, Allow, "find . -type l -ls -o -type f -exec cat {} +")
	decided(p, Allow, "find . -ls -o -type l -exec cat {} +")
	decided(p, Ask, "find . -type f -ls , -type l -exec cat {} +")
	// A secret deep below is one of the names that ** stands for in some shells.
	deep := linked(t, nil)
	deep.put(t, map[string]string{"src/a/b/id_rsa": "x"})
	decided(deep, Ask, "cat **/id_rsa")
	decided(deep, Allow, "cat **/id_rsa.pub")
	// The names in a tree are not what its files hold.
	decided(deep, Allow, "git ls-tree -r HEAD src")
	// A repository without a working tree has no links in one.
	bare := linked(t, nil)
	link := strings.TrimPrefix(filepath.ToSlash(filepath.Join(bare.outside, "secret")), "/")
	bare.put(t, map[string]string{"bare/HEAD": "ref: refs/heads/main\n", "bare/objects/x": "", "bare/refs/x": "", "bare/index": string(indexBytes(2, 20, indexEntry{link, modeLink, false}))})
	decided(bare, Allow, "cd bare && git ls-files | xargs cat")
	// No kernel takes a longer path, and it is outside as a short one is.
	long := strings.Repeat("x/", maxPath)
	decided(bare, Ask, "cat /home/nobody/"+long)
	decided(bare, Allow, "cat sub/"+long)
	for path, want := range map[string]string{"/x/" + long: "/x/x", "x/" + long: "/in/x"} {
		add("a long path from a directory: "+path[:2], want, func() string { return newAnalysis(bare.rules()).physical("/in", path)[:len(want)] })
	}
	add("the worst that an option may stand for", "true false", func() string {
		never, runs := &know.Opt{Effect: know.Deny}, &know.Opt{Effect: know.Exec}
		return fmt.Sprint(worse(never, runs), worse(runs, never))
	})
	for pattern, want := range map[string]string{"/etc/s?adow": "shadow", "/etc/?shadow": "gshadow", "/etc/sudoer?": "sudoers"} {
		add("in a directory that is too large: "+pattern, want, func() string {
			defer func(old int) { maxWalk = old }(maxWalk)
			maxWalk = 0
			return newAnalysis(bare.rules()).secretFor(pattern, bare.dir, false, false)
		})
	}
	return append(append(out, aloneInWorkspaces(t)...), aloneInRuns(t)...)
}

// aloneInWorkspaces are of sessions in one of two places whose .git says the same, and
// is of no repository, or of another one each.
func aloneInWorkspaces(t *testing.T) (out []aloneCase) {
	top := Resolve(t.TempDir())
	for name, git := range map[string][2]string{
		"no place": {"x\n", "x\n"}, "a place that is none": {"../same\n", "../same\n"}, "an empty place": {"gitdir: \n", "gitdir: \n"}, "a repository elsewhere": {"gitdir: TOP/1.git\n", "gitdir: TOP/2.git\n"},
	} {
		dir := filepath.Join(top, strings.ReplaceAll(name, " ", "-"))
		for i, text := range git {
			place := filepath.Join(dir, fmt.Sprint(i))
			if err := os.MkdirAll(place, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(place, ".git"), []byte(strings.ReplaceAll(text, "TOP", dir)), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		one, two := filepath.Join(dir, "0"), filepath.Join(dir, "1")
		out = append(out, aloneCase{mutationCase{"beside another one: " + name, func() string {
			r := Rules{Roots: []string{one, two}, Writes: true, Env: func(string) string { return "" }}.In(one)
			return string(r.Command("touch "+filepath.Join(two, "f"), one).Decision)
		}}, string(Allow)})
	}
	return out
}

// aloneInRuns are of runs that may not read a directory.
func aloneInRuns(t *testing.T) (out []aloneCase) {
	top := Resolve(t.TempDir())
	work, closed := filepath.Join(top, "work"), filepath.Join(top, "closed")
	for _, dir := range []string{work, filepath.Join(closed, "a", "b")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(closed, filepath.Join(work, "l1")); err != nil {
		t.Fatal(err)
	}
	add := func(want Decision, denied, command string) {
		out = append(out, aloneCase{mutationCase{"closed is " + filepath.Base(denied) + ": " + command, func() string {
			return string(Memory(Policy{WorkDir: work, DenyAll: []string{denied}}, bash(command)).Decision)
		}}, string(want)})
	}
	add(Deny, closed, "cat l?/a")
	add(Deny, closed, "cat l?/?/?/?")
	add(Deny, closed, "cat l?/?/?/?/*.md")
	add(None, closed, "cat w?/?/?/?/*.md")
	add(None, "", "echo .")
	return out
}
