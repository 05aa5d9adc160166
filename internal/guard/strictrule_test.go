package guard

import (
	"os"
	"path/filepath"
	"testing"
)

// What the user refuses is refused by each name that it has: by the place of the program, and with
// options before its subcommand. A rule that allows stays for the words as they are written.
func TestStrictRules(t *testing.T) {
	p := newProject(t)
	if err := os.MkdirAll(filepath.Join(p.dir, "script"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(p.dir, "script", "x.sh"), []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	r := p.rules()
	r.ProjectCode = true
	r.List = []Rule{
		{Decision: Deny, Shape: "cat ..."}, {Decision: Deny, Shape: "git log ..."}, {Decision: Ask, Shape: "ls ..."}, {Decision: Deny, Shape: "./script/x.sh ..."},
		{Decision: Deny, Shape: "git show"},
	}
	for command, want := range map[string]Decision{
		"cat README.md": Deny, "/bin/cat README.md": Deny, "/usr/bin/cat README.md": Deny, "env /bin/cat README.md": Deny,
		"git log": Deny, "/usr/bin/git log": Deny, "git --no-pager log": Deny, "git -C sub log -3": Deny, "git -P -C sub log": Deny,
		"git status": Allow, "git -C sub status": Allow, "git --no-pager diff": Allow, "git --no-pager show": Deny, "git diff --stat log": Allow,
		"/bin/ls": Ask, "ls sub": Ask, "head README.md": Allow,
		"script/x.sh": Deny, "./script/x.sh": Deny, "cd script && ./x.sh": Deny, filepath.Join(p.dir, "script", "x.sh"): Deny,
	} {
		if v := r.Command(command, p.dir); v.Decision != want {
			t.Errorf("%s: %s (%s), want %s", command, v.Decision, v.Reason, want)
		}
	}
	r.ProjectCode = false
	r.List = []Rule{{Decision: Allow, Shape: "./script/x.sh"}, {Decision: Allow, Shape: filepath.Join(p.dir, "evil.sh")}, {Decision: Allow, Shape: "script/y.sh ..."}}
	for command, want := range map[string]Decision{
		"./script/x.sh": Allow, "script/x.sh": Allow, "cd script && ./x.sh": Allow, "cd sub && ../script/x.sh": Allow, filepath.Join(p.dir, "script", "x.sh"): Allow, "./script/x.sh a": Ask, "x.sh": Ask, "cd sub && ./script/x.sh": Ask, "cd script && x.sh": Ask,
		"./evil.sh": Allow, "cd sub && ../evil.sh": Allow, "cd sub && ./evil.sh": Ask, "./script/y.sh a b": Allow, "cd $X; script/x.sh": Ask, "if ls; then cd sub; fi; ./script/x.sh": Ask, "./out/../script/x.sh": Ask,
	} {
		if v := r.Command(command, p.dir); v.Decision != want {
			t.Errorf("allowed: %s: %s (%s), want %s", command, v.Decision, v.Reason, want)
		}
	}
	r.List = []Rule{{Decision: Allow, Shape: "frobnicate ..."}}
	if v := r.Command("/usr/bin/frobnicate --all", p.dir); v.Decision != Ask {
		t.Errorf("a rule that allows is of another program: %s", v.Decision)
	}
}

// A rule that allows a tool lifts asking, not refusing, as one for a command does.
func TestToolsAllowedByARule(t *testing.T) {
	p := newProject(t)
	r := p.rules()
	r.Unattended = true
	r.List = []Rule{{Decision: Allow, Shape: "mcp__fs__write"}, {Decision: Allow, Shape: "Bash"}}
	for _, c := range []toolCall{
		{"mcp", "mcp__fs__write", texts("path", "f"), Allow}, {"mcp", "mcp__fs__write", texts("path", "../x"), Allow}, {"mcp", "mcp__fs__write", texts("path", ".claude/settings.json"), Deny}, {"mcp", "mcp__fs__write", texts("command", "rm -rf /"), Deny}, {"mcp", "mcp__fs__other", texts("path", "f"), Ask},
		{"shell", "Bash", texts("command", "touch x"), Allow}, {"shell", "Bash", texts("command", "rm -rf ~"), Deny},
	} {
		if v := r.Judge(c.call(p.dir)); v.Decision != c.want {
			t.Errorf("%s %q: %s, want %s: %s", c.name, c.texts, v.Decision, c.want, v.Reason)
		}
	}
}
