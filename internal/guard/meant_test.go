package guard

import (
	"os"
	"path/filepath"
	"testing"
)

// meantRules are rules that allow, and commands with what is to be said of them.
var meantRules = []struct {
	shape, command string
	want           Decision
}{
	{"python3 *.py", "python3 x.py", Allow},
	{"python3 *.py", "python3 sub/x.py", Allow},
	{"python3 *.py", `python3 "-cimport os;os.remove(1)#.py"`, Ask},
	{"python3 *.py", "python3 -mx.py", Ask},
	{"python3 *.py", "python3 ../x.py", Ask},
	{"python3 *.py", "python3 sub/../../x.py", Ask},
	{"python3 *.py", "python3 /tmp/x.py", Ask},
	{"python3 tools/*.py", "python3 tools/a/x.py", Allow},
	{"python3 tools/*.py", "python3 tools/../x.py", Ask},
	{"python3 ../tools/*.py", "python3 ../tools/x.py", Allow},
	{"npm run *", "npm run lint", Allow},
	{"npm run *", "npm run --prefix=/tmp", Ask},
	{"./build.sh", "./build.sh", Allow},
	{"./build.sh ...", "./build.sh -v", Allow},
	{"./build.sh", "cd sub && cd .. && ./build.sh", Allow},
	{"./build.sh", "cd sub; ./build.sh", Ask},
	{"./build.sh", "cd /tmp && ./build.sh", Ask},
	{"./build.sh", "cd ..; ./build.sh", Ask},
	{"./build.sh", "cd $x; ./build.sh", Ask},
	{"python3 sub/*.py", "python3 sub/l.py", Ask}, // it leads out
	{"python3 sub/*.py", "python3 sub/x.py", Allow},
	{"python3 /opt/*.py", "python3 /opt/x.py", Allow},
	{"python3 *.py", "cd sub && python3 x.py", Allow},
	{"make lint", "cd /tmp && make lint", Ask},
	{"make lint", "cd sub && make lint", Allow},
	{"/opt/tool x", "/opt/tool x", Allow},
}

// newMeant is a project with the files that meantRules are about.
func newMeant(t *testing.T) project {
	t.Helper()
	p := newProject(t)
	p.put(t, map[string]string{"build.sh": "", "sub/build.sh": "", "x.py": "", "sub/x.py": ""})
	if err := os.Symlink(filepath.Join(p.outside, "l.py"), filepath.Join(p.dir, "sub", "l.py")); err != nil {
		t.Fatal(err)
	}
	return p
}

// A rule that allows says what its user meant: a star is no option and no way out, and a
// program with a place in its name is the one of that place. What refuses and asks is
// taken as widely as it can be.
func TestRulesAllowWhatWasMeant(t *testing.T) {
	p := newMeant(t)
	for _, tt := range meantRules {
		r := p.rules()
		r.List = []Rule{{Shape: tt.shape, Decision: Allow}}
		if v := r.Command(tt.command, p.dir); v.Decision != tt.want {
			t.Errorf("%s, allowed is %s: %s, want %s: %s", tt.command, tt.shape, v.Decision, tt.want, v.Reason)
		}
	}
	r := p.rules()
	r.List = []Rule{{Shape: "echo *", Decision: Deny}, {Shape: "./build.sh", Decision: Deny}}
	for _, c := range []string{"echo -n", "echo ../x", "cd sub; ./build.sh"} {
		if v := r.Command(c, p.dir); v.Decision != Deny {
			t.Errorf("%s: %s, want deny", c, v.Decision)
		}
	}
}

var drives = []string{"cat env:GITHUB_TOKEN", "type env:X", "ls env:", "dir env:", "cat Env::X", "ls HKLM:", "ls cert:", "cat variable:x", "ls Microsoft.PowerShell.Core/Registry::HKLM", "cat c:/x", "ls C:/", "ls C:", "cat a.txt,C:/x", "cat FileSystem::x", "git log env:X", "rg x c:/y", "git diff a,b"}

// PowerShell has drives where other shells have names of files, and lists of them.
func TestDrivesOfPowerShellAreNotFiles(t *testing.T) {
	p := newProject(t)
	for _, c := range drives {
		if v := p.rules().Judge(toolCall{kind: "shell", name: "PowerShell", texts: texts("command", c)}.call(p.dir)); v.Decision == Allow {
			t.Errorf("let through: %s", c)
		}
	}
	for _, c := range []string{"cat f", "ls sub", "git status", "git log --oneline"} {
		if v := p.rules().Judge(toolCall{kind: "shell", name: "PowerShell", texts: texts("command", c)}.call(p.dir)); v.Decision != Allow {
			t.Errorf("%s: %s: %s", v.Decision, c, v.Reason)
		}
	}
}

// gitSecretsIn are settings of a repository, and what tells them or not.
var gitSecretsIn = map[string]struct {
	config string
	asked  []string
	passed []string
}{
	"a header":   {"[http \"https://github.com/\"]\n\textraheader = AUTHORIZATION: basic x\n", []string{"git config -l", "git config --get-regexp .", "cat .git/config", "head .git/config", "git config list", "cd sub && git config --list", "git config --local --get-urlmatch http https://github.com/"}, []string{"git config -l --name-only", "git config user.name", "ls -l .git/config", "git status", "git remote -v"}},
	"an address": {"[remote \"origin\"]\n\turl = https://me:tok@example.org/a/b\n", []string{"git config --get remote.origin.url", "git remote -v", "git config -l", "cat .git/config"}, []string{"git config --get user.email", "git branch -vv"}},
	"a token":    {"[remote \"origin\"]\n\turl = https://ghp_0123456789abcdefghij@example.org/a/b\n", []string{"git remote -v", "git remote get-url origin", "cat .git/config"}, nil},
	"in a key":   {"[url \"https://me:tok@example.org/\"]\n\tinsteadOf = gh:\n", []string{"git config -l", "cat .git/config"}, []string{"git remote -v"}},
	"none":       {"[remote \"origin\"]\n\turl = https://git@example.org/a/b\n[user]\n\tname = x\n", nil, []string{"git remote -v", "git config -l", "cat .git/config", "git config --get remote.origin.url"}},
	"over ssh":   {"[remote \"origin\"]\n\turl = git@example.org:a/b.git\n", nil, []string{"git remote -v", "git config -l"}},
}

// The settings of a repository may hold a token, as an action that checks out leaves it,
// or an address with a password.
func TestSecretsInSettingsOfGit(t *testing.T) {
	for name, tt := range gitSecretsIn {
		p := newProject(t)
		p.put(t, map[string]string{".git/config": tt.config})
		for _, c := range tt.asked {
			if v := p.judge(c); v.Decision == Allow {
				t.Errorf("%s: let through: %s", name, c)
			}
		}
		for _, c := range tt.passed {
			if v := p.judge(c); v.Decision != Allow {
				t.Errorf("%s: %s: %s: %s", name, v.Decision, c, v.Reason)
			}
		}
	}
	// To list the settings shows the user's own with them.
	for _, file := range []string{".gitconfig", ".config/git/config"} {
		p := newProject(t)
		p.put(t, map[string]string{"../../home/" + file: "[http]\n\textraheader = x\n"})
		for c, want := range map[string]Decision{"git config -l": Ask, "git config --global -l": Ask, "git config --local -l": Allow, "git config http.extraheader": Ask, "git config user.name": Allow, "git remote -v": Allow} {
			if v := p.judge(c); v.Decision != want {
				t.Errorf("%s: %s: %s: %s", file, v.Decision, c, v.Reason)
			}
		}
	}
}
