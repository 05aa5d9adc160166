//go:build unix

package guard

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// A pipe in the place of a file that the guard looks into keeps who opens it waiting,
// and a client runs the tool whose guard does not answer: whatever else stands in the
// command would run with it.
func TestPipesKeepNobodyWaiting(t *testing.T) {
	for name, c := range map[string]struct{ pipe, command string }{
		"a pattern":              {"sub/p", "ls sub/p/*"},
		"a pattern in between":   {"sub/p", "cat sub/*/x"},
		"settings of git":        {"bare/config", "git -C bare status"},
		"settings of a worktree": {"bare/config.worktree", "git -C bare status"},
		"the repository":         {"sub/.git", "git -C sub status"},
		"the index":              {".git/index", "git ls-files | xargs cat"},
		"where it leads":         {"bare/commondir", "git -C bare log"},
		"the head":               {"bare/HEAD", "git -C bare push"},
		"links are looked for":   {"sub/p", "grep -R x ."},
		"what is read":           {"sub/p", "cat sub/p"},
		"a program":              {"sub/p.py", "python3 sub/p.py"},
		"a toolchain":            {"rust-toolchain", "cargo --version"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newProject(t)
			p.put(t, map[string]string{"bare/HEAD": "ref: refs/heads/main\n", "bare/config": "", "bare/objects/x": "", "bare/refs/x": ""})
			pipe := filepath.Join(p.dir, c.pipe)
			_ = os.Remove(pipe) // mostly there is none
			if err := syscall.Mkfifo(pipe, 0o600); err != nil {
				t.Fatal(err)
			}
			for _, r := range []*Rules{p.rules(), within(p)} {
				done := make(chan Verdict, 1)
				go func() { done <- r.Command(c.command+"; rm -rf /", p.dir) }()
				select {
				case v := <-done:
					if v.Decision != Deny {
						t.Errorf("%s: %s", c.command, v.Decision)
					}
				case <-time.After(time.Minute):
					w, err := os.OpenFile(pipe, os.O_RDWR, 0) // so that whoever waits goes on
					if err == nil {
						defer w.Close()
					}
					t.Fatalf("%s: no answer", c.command)
				}
			}
		})
	}
}

// within are the rules of a session in a workspace, which looks at more of git's files.
func within(p project) *Rules {
	r := p.rules().In(p.dir)
	return &r
}
