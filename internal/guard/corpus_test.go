package guard

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// project is a throwaway project as the corpus supposes one: a few files, a
// directory, a repository, and a link that leads out.
type project struct{ dir, outside, home string }

func newProject(t testing.TB) project {
	t.Helper()
	root := Resolve(t.TempDir())
	p := project{filepath.Join(root, "work", "project"), filepath.Join(root, "outside"), filepath.Join(root, "home")}
	for _, d := range []string{p.dir, p.outside, p.home, filepath.Join(p.dir, "sub"), filepath.Join(p.dir, "m"), filepath.Join(p.dir, ".git", "hooks"), filepath.Join(p.dir, ".git", "objects"), filepath.Join(p.dir, ".git", "refs"), filepath.Join(p.dir, ".claude"), filepath.Join(p.dir, "src")} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{
		"f": "x\n", "big": "x\n", "a.tar": "", "a.zip": "", "victim": "", "evil.sh": "#!/bin/sh\ntouch PWNED\n", ".env": "TOKEN=x\n",
		".git/HEAD": "ref: refs/heads/main\n", ".git/config": "", "sub/g": "", "src/main.go": "package main\n", "go.mod": "module x\n", "README.md": "# x\n", "package.json": "{}\n",
	} {
		if err := os.WriteFile(filepath.Join(p.dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(p.outside, filepath.Join(p.dir, "out")); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p project) rules() *Rules {
	return &Rules{Roots: []string{p.dir}, Home: p.home, Env: func(string) string { return "" }}
}

func (p project) judge(c string) Verdict { return p.rules().Command(c, p.dir) }

type corpusCase struct {
	ID      string   `json:"id"`
	Command string   `json:"command"`
	Want    Decision `json:"want"`
}

func readCorpus(t testing.TB, name string) []corpusCase {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var out []corpusCase
	for s := bufio.NewScanner(f); s.Scan(); {
		if strings.TrimSpace(s.Text()) == "" {
			continue
		}
		var c corpusCase
		if err := json.Unmarshal(s.Bytes(), &c); err != nil {
			t.Fatalf("%s: %v in %s", name, err, s.Text())
		}
		out = append(out, c)
	}
	return out
}

func TestCorpus(t *testing.T) {
	p := newProject(t)
	for _, c := range readCorpus(t, "bypasses.jsonl") {
		if v := p.judge(c.Command); v.Decision != c.Want {
			t.Errorf("%s: %s, want %s: %s\n\t%s", c.ID, v.Decision, c.Want, c.Command, v.Reason)
		}
	}
}
