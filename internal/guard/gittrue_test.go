package guard

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// trueSetting is a repository in which git is really run.
type trueSetting struct {
	name, config string
	files        map[string]string // with what is executable beside the settings
	command      string
	runs         bool // git runs a program of the repository's, of any age
}

// lazy is a repository that lacks an object, which is fetched when it is looked at.
const lazy = "[extensions]\n\tpartialClone = o\n"

func trueSettings(server string) []trueSetting {
	hook := map[string]string{"h/post-index-change": "", "h/pre-commit": ""}
	fetch := func(name, config string, runs bool) trueSetting {
		return trueSetting{name, strings.ReplaceAll(config, "SERVER", server), nil, "git show HEAD:b.py", runs}
	}
	return []trueSetting{
		{"nothing", "", nil, "git status", false},
		{"a monitor", "[core]\n\tfsmonitor = ./evil.sh\n", nil, "git status", true},
		{"behind a backslash that is escaped", "[x]\n\ty = \\\\\n[core]\n\tfsmonitor = ./evil.sh\n", nil, "git status", true},
		{"behind a comment with a backslash", "[x]\n# a comment \\\n[core]\n\tfsmonitor = ./evil.sh\n", nil, "git status", true},
		{"behind a value's comment with a backslash", "[x]\n\ty = 1 ; c \\\n[core]\n\tfsmonitor = ./evil.sh\n", nil, "git status", true},
		{"behind a name without a value", "[x]\n\ty\n[core] fsmonitor = ./evil.sh\n", nil, "git status", true},
		{"in a value that goes on", "[x]\n\ty = \\\n[core]fsmonitor = ./evil.sh\n", nil, "git status", false},
		{"in quotes, with lines' ends of another system", "[core]\r\n\tfsmonitor = \"./evil\"\\\r\n.sh\r\n", nil, "git status", true},
		{"behind a mark", "\ufeff[core]\n\tfsmonitor = ./evil.sh\n", nil, "git status", true},
		{"included", "[include]\n\tpath = ../inc\\\n.cfg\n", nil, "git status", true},
		{"included from another user's home", "[include]\n\tpath = ~root/..DIR/inc.cfg\n", nil, "git status", false},
		{"included from where git is installed", "[include]\n\tpath = %(prefix)/..DIR/inc.cfg\n", nil, "git status", true},
		{"textconv in a list of stashes", "[diff \"x\"]\n\ttextconv = ./evil.sh\n", map[string]string{".gitattributes": "*.txt diff=x\n"}, "git stash list -p", true},
		{"external diff", "[diff]\n\texternal = ./evil.sh\n", nil, "git diff", true},
		{"a filter", "[filter \"x\"]\n\tclean = ./evil.sh\n", map[string]string{".gitattributes": "*.txt filter=x\n"}, "git status", true},
		{"hooks of reading", "[core]\n\thooksPath = h\n", hook, "git status", true},
		{"hooks of looking for changes", "[core]\n\thooksPath = h\n", hook, "git diff", true},
		{"hooks of a description", "[core]\n\thooksPath = h\n", hook, "git describe --dirty --always", true},
		{"hooks of git's own directory", "", map[string]string{".git/hooks/post-index-change": ""}, "git status", true},
		{"an alias for no command of git", "[alias]\n\tlast-modified = !./evil.sh\n", nil, "git last-modified", false},
		fetch("ssh", lazy+"[core]\n\tsshCommand = ./evil.sh\n[remote \"o\"]\n\turl = ssh://a/b\n", true),
		fetch("ssh of a remote with a filter alone", "[core]\n\tsshCommand = ./evil.sh\n[remote \"o\"]\n\turl = ssh://a/b\n\tpartialclonefilter = blob:none\n", true),
		fetch("ssh of a remote that later is none", "[core]\n\tsshCommand = ./evil.sh\n[remote \"o\"]\n\turl = ssh://a/b\n\tpromisor = true\n[remote \"p\"]\n\tpromisor = false\n[remote \"o\"]\n\tpromisor = false\n", true),
		fetch("ssh, and a proxy that is none", lazy+"[core]\n\tsshCommand = ./evil.sh\n[remote \"o\"]\n\turl = ssh://a/b\n[remote \"p\"]\n\tproxy =\n", true),
		fetch("the other side's program", lazy+"[remote \"o\"]\n\turl = .\n\tuploadpack = ./evil.sh\n", true),
		fetch("a proxy of git's protocol", lazy+"[core]\n\tgitProxy = ./evil.sh\n[remote \"o\"]\n\turl = git://a/b\n", true),
		fetch("an address turned to ssh", lazy+"[core]\n\tsshCommand = ./evil.sh\n[remote \"o\"]\n\turl = https://a/b\n[url \"ssh://a/\"]\n\tinsteadOf = https://a/\n", true),
		fetch("an address that is a command", lazy+"[protocol \"ext\"]\n\tallow = always\n[remote \"o\"]\n\turl = ext::./evil.sh\n", true),
		fetch("an address turned to a command", lazy+"[protocol]\n\tallow = always\n[remote \"o\"]\n\turl = x:y\n[url \"EXT::./evil.sh \"]\n\tinsteadOf = x:\n", false),
		fetch("a helper for passwords", lazy+"[remote \"o\"]\n\turl = SERVER/x\n[credential]\n\thelper = !./evil.sh\n", true),
		fetch("a helper for one address", lazy+"[remote \"o\"]\n\turl = SERVER/x\n[credential \"SERVER\"]\n\thelper = !./evil.sh\n", true),
		fetch("one that asks for passwords", lazy+"[remote \"o\"]\n\turl = SERVER/x\n[core]\n\taskPass = ./evil.sh\n", true),
		fetch("another repository with settings of its own", lazy+"[remote \"o\"]\n\turl = ./bare\n", false),
		fetch("a usual partial clone", "[remote \"o\"]\n\turl = SERVER/x\n\tpromisor = true\n\tpartialclonefilter = blob:none\n", false),
		fetch("a remote that promises nothing", "[core]\n\tsshCommand = ./evil.sh\n[remote \"o\"]\n\turl = ssh://a/b\n", false),
	}
}

// What a repository's settings have git run is run by git itself here: where it ran a
// program of the project, the guard had asked.
func TestWhatGitReallyRuns(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil || runtime.GOOS == "windows" {
		t.Skip("there is no git, or no script is run by its name")
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("WWW-Authenticate", `Basic realm="x"`)
		w.WriteHeader(http.StatusUnauthorized)
	}))
	defer server.Close()
	ran := 0
	for _, tt := range trueSettings(server.URL) {
		t.Run(tt.name, func(t *testing.T) {
			root := Resolve(t.TempDir())
			p := project{filepath.Join(root, "p"), filepath.Join(root, "outside"), filepath.Join(root, "home")}
			git := func(command string) (string, error) {
				cmd := exec.Command("sh", "-c", command)
				cmd.Dir = p.dir
				cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + p.home, "GIT_CONFIG_NOSYSTEM=1", "GIT_TERMINAL_PROMPT=0", "LC_ALL=C"}
				out, err := cmd.CombinedOutput()
				return string(out), err
			}
			p.put(t, map[string]string{"evil.sh": "#!/bin/sh\ntouch \"" + p.dir + "/PWNED\"\nexit 1\n", "a.txt": "hi\n", "b.py": "x=1\n", "../home/x": "", "inc.cfg": "[core]\n\tfsmonitor = ./evil.sh\n"})
			if err := os.Chmod(filepath.Join(p.dir, "evil.sh"), 0o755); err != nil {
				t.Fatal(err)
			}
			// The file that is changed has its stash; its times say that the index is old.
			if out, err := git("git init -q -b main && git config user.name a && git config user.email a@b && git add . && git commit -qm init && echo ho > a.txt && git stash -q && echo he > a.txt && touch -d '2001-01-01' evil.sh"); err != nil {
				t.Fatal(out)
			}
			for name, text := range tt.files {
				p.put(t, map[string]string{name: text})
				if text == "" {
					p.put(t, map[string]string{name: "#!/bin/sh\ntouch \"" + p.dir + "/PWNED\"\n"})
					if err := os.Chmod(filepath.Join(p.dir, name), 0o755); err != nil {
						t.Fatal(err)
					}
				}
			}
			file := filepath.Join(p.dir, ".git", "config")
			old, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			text := strings.ReplaceAll(tt.config, "DIR", p.dir)
			if strings.HasPrefix(text, "\ufeff") {
				text += string(old)
			} else {
				text = string(old) + text
			}
			id, err := git("git rev-parse HEAD:b.py")
			if err != nil {
				t.Fatal(id)
			}
			if strings.Contains(tt.command, "b.py") {
				if err := os.Remove(filepath.Join(p.dir, ".git", "objects", id[:2], strings.TrimSpace(id[2:]))); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
			v := p.judge(tt.command)
			out, _ := git(tt.command) // it may well fail: evil.sh does
			pwned := isThere(filepath.Join(p.dir, "PWNED"))
			switch {
			case pwned && v.Decision == Allow:
				t.Errorf("allowed, and git ran it: %s", out)
			case tt.runs && v.Decision == Allow:
				t.Errorf("allowed: %s", out)
			case tt.runs && !pwned:
				t.Logf("git of this age does not run it: %s", out)
			}
			if pwned {
				ran++
			}
		})
	}
	t.Logf("git ran a program in %d repositories", ran)
	if ran < 15 {
		t.Error("too few to tell anything: is git of another kind?")
	}
}
