package guard

import (
	"maps"
	"path/filepath"
	"slices"
	"testing"
)

// strictProject has programs that rules are about.
func strictProject(t testing.TB) project {
	p := newProject(t)
	p.put(t, map[string]string{"script/x.sh": "#!/bin/sh\n"})
	return p
}

// strictCase is a command, judged where some rules are the user's.
type strictCase struct {
	command string
	code    bool // the project's code may run
	without bool // there is no project
	rules   []Rule
	want    Decision
}

func (c strictCase) judge(p project) Verdict {
	r := p.rules()
	r.ProjectCode, r.List = c.code, c.rules
	if c.without {
		r.Roots = nil
	}
	return r.Command(c.command, p.dir)
}

// strictCases are all of them, in a project.
func strictCases(p project) (out []strictCase) {
	add := func(code bool, rules []Rule, commands map[string]Decision) {
		for _, c := range slices.Sorted(maps.Keys(commands)) {
			out = append(out, strictCase{c, code, false, rules, commands[c]})
		}
	}
	add(true, []Rule{
		{Decision: Deny, Shape: "cat ..."}, {Decision: Deny, Shape: "git log ..."}, {Decision: Ask, Shape: "ls ..."}, {Decision: Deny, Shape: "./script/x.sh ..."},
		{Decision: Deny, Shape: "git show"}, {Decision: Deny, Shape: filepath.Join(p.dir, "script/y.sh") + " ..."}, {Decision: Deny, Shape: "head -n ..."}, {Decision: Deny, Shape: "rg x f"},
	}, map[string]Decision{
		"cat README.md": Deny, "/bin/cat README.md": Deny, "/usr/bin/cat README.md": Deny, "env /bin/cat README.md": Deny,
		"git log": Deny, "/usr/bin/git log": Deny, "git --no-pager log": Deny, "git -C sub log -3": Deny, "git -P -C sub log": Deny,
		"git status": Allow, "git -C sub status": Allow, "git --no-pager diff": Allow, "git --no-pager show": Deny, "git diff --stat log": Allow,
		"/bin/ls": Ask, "ls sub": Ask, "head README.md": Allow, "head -n 3 README.md": Deny, "head -q -n 3 README.md": Allow, "rg x f": Deny, "rg -i x f": Deny, "rg y f": Allow,
		"script/x.sh": Deny, "./script/x.sh": Deny, "cd script && ./x.sh": Deny, filepath.Join(p.dir, "script", "x.sh"): Deny, "./script/y.sh a": Deny, "cd sub && ../script/y.sh a": Deny, "$X log": Deny, "=": Ask,
	})
	add(false, []Rule{{Decision: Allow, Shape: "./script/x.sh"}, {Decision: Allow, Shape: filepath.Join(p.dir, "evil.sh")}, {Decision: Allow, Shape: "script/y.sh ..."}}, map[string]Decision{
		"./script/x.sh": Allow, "script/x.sh": Allow, "cd script && ./x.sh": Allow, "cd sub && ../script/x.sh": Allow, filepath.Join(p.dir, "script", "x.sh"): Allow, "./script/x.sh a": Ask, "x.sh": Ask, "cd sub && ./script/x.sh": Ask, "cd script && x.sh": Ask,
		"./evil.sh": Allow, "cd sub && ../evil.sh": Allow, "cd sub && ./evil.sh": Ask, "./script/y.sh a b": Allow, "cd $X; script/x.sh": Ask, "if ls; then cd sub; fi; ./script/x.sh": Ask, "./out/../script/x.sh": Ask,
	})
	add(false, []Rule{{Decision: Allow, Shape: "./two words.sh", Words: []string{"./two words.sh"}}}, map[string]Decision{"'./two words.sh'": Allow, "cd sub; '../two words.sh'": Allow, "./two": Ask})
	add(false, []Rule{{Decision: Allow, Shape: "./script/x.sh */../../../x", Words: []string{"./script/x.sh", "*/../../../x"}}}, map[string]Decision{"./script/x.sh '*/../../../x'": Allow})
	add(false, []Rule{{Decision: Allow, Shape: "frobnicate ..."}, {Decision: Deny, Shape: ""}}, map[string]Decision{"/usr/bin/frobnicate --all": Ask, "ls": Allow})
	out = append(out, strictCase{"./evil.sh", false, true, []Rule{{Decision: Deny, Shape: filepath.Join(p.dir, "evil.sh")}}, Deny})
	return out
}

// What the user refuses is refused by each name that it has: by the place of the program, and with
// options before its subcommand. A rule that allows stays for the words as they are written.
func TestStrictRules(t *testing.T) {
	p := strictProject(t)
	for _, c := range strictCases(p) {
		if v := c.judge(p); v.Decision != c.want {
			t.Errorf("%s: %s (%s), want %s", c.command, v.Decision, v.Reason, c.want)
		}
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
