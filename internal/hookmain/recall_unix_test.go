//go:build unix

package hookmain

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"reprise/internal/config"
	"reprise/internal/hook"
	"reprise/internal/hook/compile"
)

// A recall program that is damaged, of another version or not executable is no
// reason to say nothing: the full program answers, while there is time.
func TestBrokenRecallProgramIsReplaced(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	bin, shop, data := filepath.Join(root, "bin"), filepath.Join(root, "shop"), filepath.Join(root, "data")
	put := func(path, text string, mode os.FileMode) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.RemoveAll(path); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	const full = `{"hookSpecificOutput":{"additionalContext":"full"}}`
	put(filepath.Join(bin, "reprise"), "#!/bin/sh\ncat >/dev/null\necho '"+full+"'\n", 0o700)
	put(filepath.Join(shop, ".reprise", "project.yaml"), "v: 1\nname: shop\n", 0o600)
	put(filepath.Join(data, "config.yaml"), "", 0o600)
	self, err := os.Open(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	defer self.Close()
	hookProgram, err := os.OpenFile(filepath.Join(bin, "reprise-hook"), os.O_CREATE|os.O_WRONLY, 0o700)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(hookProgram, self); err != nil {
		t.Fatal(err)
	}
	if err := hookProgram.Close(); err != nil {
		t.Fatal(err)
	}
	vars := map[string]string{"HOME": root, "PATH": "/usr/bin:/bin", "REPRISE_HOME": data}
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	made, err := compile.Make(compile.Options{
		Env:  config.Env{Vars: vars, GOOS: "linux", Dir: shop, Now: func() time.Time { return time.Now().Add(time.Minute) }}, // by which all files are old
		Host: host, Program: filepath.Join(bin, "reprise"), Hand: []string{"prompt"}, Tell: []string{"prompt"},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := made.Write(made.Home.Paths.Cache, time.Now()); err != nil {
		t.Fatal(err)
	}
	const own = `{"hookSpecificOutput":{"additionalContext":"recall"}}`
	for name, tc := range map[string]struct {
		text, want string
		mode       os.FileMode
		warned     bool
	}{
		"works":           {"#!/bin/sh\ncat >/dev/null\necho '" + own + "'\n", own, 0o700, false},
		"says nothing":    {"#!/bin/sh\ncat >/dev/null\n", "", 0o700, false},
		"hands back":      {"#!/bin/sh\nexit 76\n", full, 0o700, false},
		"not executable":  {"#!/bin/sh\necho '" + own + "'\n", full, 0o600, true},
		"no program":      {"\x7fELF", full, 0o700, true},
		"other arguments": {"#!/bin/sh\necho usage >&2\nexit 64\n", full, 0o700, true},
		"a crash":         {"#!/bin/sh\nkill -ABRT $$\n", full, 0o700, true},
		"no JSON":         {"#!/bin/sh\necho '{'\n", full, 0o700, true},
	} {
		log := filepath.Join(data, "state", "log", "reprise.log")
		if err := os.RemoveAll(log); err != nil {
			t.Fatal(err)
		}
		put(filepath.Join(bin, "reprise-recall"), tc.text, tc.mode)
		cmd := exec.Command(filepath.Join(bin, "reprise-hook"), "claude", "UserPromptSubmit")
		cmd.Dir, cmd.Env = shop, []string{asHook + "=1", hook.DepthVar + "=0"}
		for k, v := range vars {
			cmd.Env = append(cmd.Env, k+"="+v)
		}
		cmd.Stdin = strings.NewReader(`{"session_id":"s","cwd":"` + shop + `","hook_event_name":"UserPromptSubmit","prompt":"why"}`)
		out, err := cmd.Output()
		if err != nil || strings.TrimSpace(string(out)) != tc.want {
			t.Errorf("%s: %v, %q", name, err, out)
		}
		said, _ := os.ReadFile(log) // absent where nothing was said
		if got := strings.Contains(string(said), "reprise-recall failed"); got != tc.warned {
			t.Errorf("%s: warned is %v: %s", name, got, said)
		}
	}
}
