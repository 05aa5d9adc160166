package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"reprise/internal/meta"
	"reprise/internal/proc"
	"reprise/internal/term"
)

// checkerTime is how long the client's own checker may take.
const checkerTime = time.Minute

// checkSystem has Claude Code's own checker (`claude plugin validate`) look at what is
// to be written, in a place of its own and with no settings of the user's. What it
// finds wrong is an error; that the client is not here is said.
func (m *interviewing) checkSystem(ctx context.Context, files []meta.File) (said string, err error) {
	home, err := m.app.Home()
	if err != nil {
		return "", err
	}
	name := home.Settings.ClaudeCLI.Path
	if name == "" {
		name = "claude"
	}
	program, err := proc.LookPath(name, m.app.Env.Vars, m.app.Env.GOOS)
	if err != nil {
		return "not looked at by Claude Code's own checker: it is not on this machine", nil
	}
	dir, done, err := m.b.Stage(files)
	if err != nil {
		return "", err
	}
	defer func() {
		if derr := done(); err == nil {
			err = derr
		}
	}()
	env := slices.DeleteFunc(slices.Clone(m.app.Environ), func(v string) bool { return strings.HasPrefix(v, "CLAUDE_CONFIG_DIR=") })
	env = append(env, "CLAUDE_CONFIG_DIR="+filepath.Join(dir, "settings"), "DISABLE_AUTOUPDATER=1", "DISABLE_TELEMETRY=1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1")
	ctx, cancel := context.WithTimeout(ctx, checkerTime)
	defer cancel()
	out, err := proc.Run(ctx, proc.Cmd{Path: program, Args: []string{"plugin", "validate", "--json", filepath.Join(dir, ".claude")}, Env: env, Dir: dir}, 1<<20)
	if err != nil {
		return "", fmt.Errorf("run Claude Code's own checker: %w", err)
	}
	var verdict any
	if json.Unmarshal(out.Stdout, &verdict) != nil {
		// An older client has no such command, or says it otherwise.
		return "not looked at by Claude Code's own checker: it did not answer (" + clipText(term.SafeLine(string(out.Stderr)), 200) + ")", nil
	}
	if out.Exit.Code != 0 {
		return "", fmt.Errorf("nothing was written; Claude Code's own checker found faults:\n%s", term.SafeText(string(out.Stdout)))
	}
	return "Claude Code's own checker found no fault", nil
}
