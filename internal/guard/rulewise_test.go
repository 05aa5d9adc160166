package guard

import (
	"strings"
	"testing"
)

// Each rule counts: without what it alone says, some command that our cases hold would
// be judged more mildly. Rules are taken away from verdicts here, one name at a time;
// script/mutate takes the places in the code away.
func TestEachRuleCounts(t *testing.T) {
	p := newProject(t)
	var commands []string
	for _, c := range append(append(classes(t), hard(t)...), readCorpus(t, "bypasses.jsonl")...) {
		commands = append(commands, c.Command)
	}
	// What these rules are for takes more than a command in this project.
	commands = append(commands, strings.Repeat("ls; ", maxText), "echo "+strings.Repeat("{a,b}", 18), strings.Repeat("$(", 300)+strings.Repeat(")", 300), "ls \xff", "cd $X; cat f", "f() { f; }; f")
	alone := map[string]int{}
	note := func(v Verdict) {
		for _, of := range v.Parts {
			if of.Decision.rank() <= Allow.rank() {
				continue
			}
			milder := Allow
			for _, other := range v.Parts {
				if other.Rule != of.Rule && other.Decision.rank() > milder.rank() {
					milder = other.Decision
				}
			}
			if milder.rank() < v.Decision.rank() && of.Decision == v.Decision {
				alone[of.Rule]++
			}
		}
	}
	r := p.rules()
	r.List = []Rule{{Decision: Deny, Shape: "frob ..."}}
	for _, c := range append(commands, "frob x", "f/g() { ls; }; f/g") {
		note(r.Command(c, p.dir))
	}
	for _, c := range []string{"grep --colo x f", "cd src"} {
		r := p.rules()
		r.Env = func(n string) string { return map[string]string{"CDPATH": "/x"}[n] }
		note(r.Command(c, p.dir))
	}
	for _, c := range []toolCall{{kind: "shell", name: "PowerShell", texts: texts("command", "ls | %{ $_ }")}, {kind: "write", name: "frob"}} {
		note(p.rules().Judge(c.call(p.dir)))
	}
	watched := newProject(t)
	watched.put(t, map[string]string{".git/config": "[core]\nfsmonitor = ./x\n"})
	note(watched.judge("git status"))
	for _, n := range BuiltIn() {
		test, other := metElsewhere[n.Name]
		switch {
		case alone[n.Name] == 0 && !other:
			t.Errorf("%s: nothing is refused or asked about by it alone", n.Name)
		case alone[n.Name] > 0 && other:
			t.Errorf("%s: it need not be listed as one that is met in %s only", n.Name, test)
		}
	}
}

// metElsewhere are the rules that take another world than this project, with the test
// that would miss them.
var metElsewhere = map[string]string{
	"guard-failed":       "TestBrokenSettings",
	"memory":             "TestShellRefusesEveryWayToMemory",
	"too-much":           "TestBombs",
	"types-into-program": "TestTools",
	"workspace-gone":     "TestWorkspaceKeepsToItself",
	"wrong-checkout":     "TestWorkspaceKeepsToItself",
}
