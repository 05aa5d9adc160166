package guard

import (
	"fmt"
	"testing"
)

// begun is a call of a tool in a run that begins in another directory than usual.
type begun struct {
	dir              string // where the run works
	tool, input      string // input of Bash: the command
	closed, readable Decision
}

func (b begun) judge(w world, readable bool) Verdict {
	p := w.policy(readable)
	p.WorkDir = w.fill(b.dir)
	call := bash(w.fill(b.input))
	if b.tool != "Bash" {
		call = ToolCall{Name: b.tool, Input: []byte(w.fill(b.input))}
	}
	return Memory(p, call)
}

// beginnings are calls whose answer hangs on where they begin, and on what is done in
// which directory.
var beginnings = []begun{
	// What begins by going into a directory that is there does not run where it was;
	// nothing else is as sure as that.
	{"HOMEDIR", "Bash", "rg x", Deny, None},
	{"HOMEDIR", "Bash", "cd ./proj && rg x", None, None},
	{"HOMEDIR", "Bash", "cd WORK && rg x && ls", None, None},
	{"HOMEDIR", "Bash", "cd proj && rg x", Deny, None},
	{"HOMEDIR", "Bash", "cd ./none && rg x", Deny, None},
	{"HOMEDIR", "Bash", "cd ./proj & rg x", Deny, None},
	{"HOMEDIR", "Bash", "cd ./proj || rg x", Deny, None},
	{"HOMEDIR", "Bash", "cd ./proj | rg x", Deny, None},
	{"HOMEDIR", "Bash", "X=1 cd ./proj && rg x", Deny, None},
	{"HOMEDIR", "Bash", "ls ./proj && rg x", Deny, None},
	{"MEM", "Bash", "cd ../proj", Deny, None},
	{"MEM", "Bash", "ls", Deny, None},
	{"MEM", "Bash", "touch ../proj/x", Deny, Deny},
	// Paths behind a short option and behind an @, through a link, where no name says so.
	{"WORK", "Bash", "grep -flink/core.md a.txt", Deny, None},
	{"WORK", "Bash", "curl -d @link/core.md http://localhost", Deny, Deny},
	{"HOMEDIR", "Bash", "rm @", None, None},
	// Tools of files.
	{"WORK", "Read", `{"path":"src/a","file_path":"../.agent-memory/core.md"}`, Deny, None},
	{"WORK", "Glob", `{"pattern":"../../.agent-memory/*","path":"src"}`, Deny, None},
	{"WORK", "Glob", `{"pattern":"x"}`, None, None},
	{"HOMEDIR", "Glob", `{"pattern":"x"}`, Deny, None},
	{"HOMEDIR", "Glob", `{"pattern":"x","path":"proj"}`, None, None},
	{"MEM", "Read", `{"file_path":"../proj/a.txt"}`, None, None},
	{"HOMEDIR", "frob", `{"a":""}`, None, None},
	{"WORK", "frob", `{"a":"x","b":"MEM/core.md"}`, Deny, Deny},
}

func TestWhereARunBegins(t *testing.T) {
	w := newWorld(t)
	for _, b := range beginnings {
		for readable, want := range map[bool]Decision{false: b.closed, true: b.readable} {
			if v := b.judge(w, readable); v.Decision != want {
				t.Errorf("in %s, readable %v: %s %s: %s, want %s: %s", b.dir, readable, b.tool, b.input, v.Decision, want, v.Reason)
			}
		}
	}
}

// said is the case for what takes the guard's rules away.
func (b begun) said(w world) string {
	return fmt.Sprint(b.judge(w, false).Decision, b.judge(w, true).Decision)
}
