package workspace_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"reprise/internal/workspace"
)

// With a real tmux: the session has the workspace's variables, holds the workspace as
// long as its shell runs, is made once, and is not mixed with another of its name.
func TestTmux(t *testing.T) {
	t.Parallel()
	program, err := exec.LookPath("tmux")
	if err != nil {
		t.Skip("tmux is not here")
	}
	p := newPlace(t)
	// A server of its own, in a directory of its own; a socket's path has to be short.
	sockets, err := os.MkdirTemp("", "tmux")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(sockets) })
	environ := []string{"PATH=" + p.vars["PATH"], "HOME=" + p.dir, "TMUX_TMPDIR=" + sockets, "SHELL=/bin/sh", "TERM=xterm", "LANG=C.UTF-8", "REPRISE_AGENT=other"}
	tmux := func(args ...string) string {
		t.Helper()
		cmd := exec.Command(program, args...)
		cmd.Env = environ
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("tmux %v: %v: %s", args, err, out)
		}
		return string(out)
	}
	ctx := t.Context()
	m := p.manager()
	c := p.create(workspace.CreateOptions{Name: "v1.auth"})
	if got := c.TmuxName(); got != "shop-v1_auth" {
		t.Errorf("%q", got)
	}
	made, err := m.Tmux(ctx, c.Workspace, environ)
	if err != nil || !made {
		t.Fatal(made, err)
	}
	t.Cleanup(func() {
		cmd := exec.Command(program, "kill-server")
		cmd.Env = environ
		_ = cmd.Run() // it has ended with its last session, where all went well
	})
	if made, err := m.Tmux(ctx, c.Workspace, environ); err != nil || made {
		t.Errorf("a second one: %v %v", made, err)
	}
	said := filepath.Join(p.dir, "said")
	tmux("send-keys", "-t", "=shop-v1_auth:", `echo "$REPRISE_AGENT $REPRISE_WORKSPACE $PWD" >'`+said+`.part'; mv '`+said+`.part' '`+said+"'", "Enter")
	until(t, "the shell in the session has said where it is", func() bool { _, err := os.Stat(said); return err == nil })
	if got, want := p.read(p.dir, "said"), "v1.auth "+c.Dir+" "+c.Dir+"\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if i := m.Look(must(m.Get("v1.auth"))); i.Status != "live" || len(i.Live) != 1 || !strings.HasPrefix(i.Live[0].What, "tmux shop-v1_auth") {
		t.Errorf("%+v", i)
	}
	if _, err := m.Remove(ctx, "v1.auth", workspace.RemoveOptions{Save: true}); !errors.Is(err, workspace.ErrLive) {
		t.Error(err)
	}
	// Another session has the name of another workspace's.
	o := p.create(workspace.CreateOptions{Name: "other"})
	tmux("new-session", "-d", "-s", o.TmuxName(), "-c", p.dir)
	if _, err := m.Tmux(ctx, o.Workspace, environ); !errors.Is(err, workspace.ErrTmux) || !strings.Contains(err.Error(), "rename") {
		t.Error(err)
	}
	tmux("kill-session", "-t", "=shop-v1_auth")
	until(t, "the workspace is nobody's", func() bool { return m.Look(must(m.Get("v1.auth"))).Status == "ready" })
	if _, err := m.Remove(ctx, "v1.auth", workspace.RemoveOptions{Save: true}); err != nil {
		t.Error(err)
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// until polls for what has to come.
func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !is(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within 30 s: %s", what)
		}
	}
}
