package workspace

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"reprise/internal/pathname"
	"reprise/internal/proc"
)

// ErrTmux says that there is no tmux, or that it did not do what it was asked.
var ErrTmux = errors.New("tmux")

// TmuxName is the session's name: tmux allows neither dots nor colons in it.
func (w *Workspace) TmuxName() string {
	return strings.NewReplacer(".", "_", ":", "_").Replace(w.Project + "-" + w.Name)
}

// FindTmux finds the program; ErrTmux where there is none.
func (m *Manager) FindTmux() (string, error) {
	path, err := proc.LookPath("tmux", m.o.Env.Vars, m.o.Env.GOOS)
	if err != nil {
		return "", fmt.Errorf("%w: %w; install it, or do without --tmux", ErrTmux, err)
	}
	return path, nil
}

// Tmux makes a tmux session in a workspace, with its variables, unless it is there;
// environ is the environment to start from. What runs in its first pane holds the
// workspace until it ends.
func (m *Manager) Tmux(ctx context.Context, w Workspace, environ []string) (made bool, err error) {
	path, err := m.FindTmux()
	if err != nil {
		return false, err
	}
	run := func(args ...string) (proc.Output, error) {
		bound, cancel := context.WithTimeout(ctx, 20*time.Second)
		defer cancel()
		// The first session brings the server of all with it, which stays where it was
		// started: not in a workspace, or that could not be taken away.
		return proc.Run(bound, proc.Cmd{Path: path, Args: args, Env: environ, Dir: "/"}, 64<<10)
	}
	name := w.TmuxName()
	out, err := run("has-session", "-t", "="+name)
	if err != nil {
		return false, fmt.Errorf("%w: %w", ErrTmux, err)
	}
	if out.Exit.Code == 0 {
		where, err := run("display-message", "-p", "-t", "="+name+":", "#{session_path}")
		if err != nil {
			return false, fmt.Errorf("%w: %w", ErrTmux, err)
		}
		if at := strings.TrimSpace(string(where.Stdout)); !pathname.Same(at, w.Root()) {
			return false, fmt.Errorf("%w: there is a session %s already, in %s; rename it first (`tmux rename-session -t =%s NAME`)", ErrTmux, name, at, name)
		}
		return false, nil
	}
	args := []string{"new-session", "-d", "-P", "-F", "#{pane_pid}", "-s", name, "-c", w.Root()}
	for _, v := range w.Vars() {
		args = append(args, "-e", v[0]+"="+v[1]) // tmux 3.2 and newer
	}
	if out, err = run(args...); err != nil {
		return false, fmt.Errorf("%w: %w", ErrTmux, err)
	}
	if out.Exit.Code != 0 {
		return false, fmt.Errorf("%w: %s", ErrTmux, strings.TrimSpace(string(out.Stderr)))
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(out.Stdout)))
	if err != nil {
		return true, fmt.Errorf("%w: it gave no process: %q", ErrTmux, out.Stdout)
	}
	id, err := proc.Identify(pid)
	if errors.Is(err, proc.ErrGone) {
		return true, fmt.Errorf("%w: the shell in session %s ended at once", ErrTmux, name)
	}
	if err != nil {
		return true, err
	}
	_, err = m.Lease(ctx, w.Name, Holder{Process: id, What: "tmux " + name, Shared: true})
	return true, err
}
