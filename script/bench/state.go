package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"reprise/internal/mdfile"
)

// stateEntries are how many entries the long log has, and stateFew the short one that
// it is measured beside.
const (
	stateEntries = 10_000
	stateFew     = 10
)

// state is what entries by the thousand cost: where the work stands, told by a tool
// and at a session's start, and a merge of two logs, each beside the same with ten
// entries, in turn.
func (r *rig) state() ([]row, error) {
	long, err := r.stateProject("long", stateEntries)
	if err != nil {
		return nil, err
	}
	short, err := r.stateProject("short", stateFew)
	if err != nil {
		return nil, err
	}
	var rows []row
	for _, m := range []struct {
		what, aim string
		once      func(p stateProject) (time.Duration, error)
	}{
		{"`state_context` from the start of `reprise mcp` on", "≤ 30 ms more", r.stateContext},
		{"a session's start (`reprise-hook claude SessionStart`)", "≤ 30 ms more", r.stateStart},
		{"`reprise merge-driver` of two logs", "≤ 200 ms more", r.stateMerge},
	} {
		var many, few, more []time.Duration
		for range r.n + 1 {
			a, err := m.once(long)
			if err != nil {
				return nil, err
			}
			b, err := m.once(short)
			if err != nil {
				return nil, err
			}
			many, few, more = append(many, a), append(few, b), append(more, a-b)
		}
		rows = append(rows, row{
			fmt.Sprintf("%s, %d entries", m.what, stateEntries), ms(median(many[1:])),
			fmt.Sprintf("%d entries: %s, so %s more", stateFew, ms(median(few[1:])), ms(median(more[1:]))), m.aim,
		})
	}
	return rows, nil
}

// stateProject is a project with an agent's log in it, in a home of its own.
type stateProject struct {
	work string
	env  []string
}

func (r *rig) stateProject(name string, entries int) (stateProject, error) {
	home := filepath.Join(r.dir, "state-"+name)
	p := stateProject{work: filepath.Join(home, "shop"), env: []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "REPRISE_HOME=" + filepath.Join(home, "data"), "REPRISE_AGENT=ann"}}
	if err := os.MkdirAll(p.work, 0o700); err != nil {
		return p, err
	}
	for _, argv := range [][]string{{"git", "init", "-q"}, {r.reprise, "init", "--yes", "--name", "shop"}, {r.reprise, "log", "add", "Begin"}} {
		if err := p.run(argv...); err != nil {
			return p, err
		}
	}
	desk := filepath.Join(p.work, ".reprise", "agent")
	if err := os.WriteFile(filepath.Join(desk, "changelog.md"), stateLog(entries, "ann"), 0o600); err != nil {
		return p, err
	}
	for i, agent := range []string{"ann", "ben"} {
		if err := os.WriteFile(filepath.Join(p.work, fmt.Sprint("side", i)), stateLog(entries, agent), 0o600); err != nil {
			return p, err
		}
	}
	if err := os.WriteFile(filepath.Join(p.work, "base"), nil, 0o600); err != nil {
		return p, err
	}
	// What is new is committed and in the index before it is measured.
	for _, argv := range [][]string{{r.reprise, "state", "sync"}, {r.reprise, "context", "show"}} {
		if err := p.run(argv...); err != nil {
			return p, err
		}
	}
	return p, r.planned(p)
}

func (p stateProject) run(argv ...string) error {
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir, cmd.Env = p.work, p.env
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", strings.Join(argv, " "), err, out)
	}
	return nil
}

// planned starts sessions until hooks have their plan, as the first ones have it made.
func (r *rig) planned(p stateProject) error {
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(200 * time.Millisecond) {
		if _, err := r.stateStart(p); err != nil {
			return err
		}
		if plans, _ := filepath.Glob(filepath.Join(p.work, "..", "data", "cache", "hooks", "*.plan")); len(plans) > 0 { // the pattern is right
			return nil
		}
		if time.Now().After(end) {
			return errors.New("no plan for hooks was made within 20 s")
		}
	}
}

// stateLog is a log of so many entries of one agent.
func stateLog(n int, agent string) []byte {
	var b bytes.Buffer
	b.WriteString("# Changelog\n")
	parent := ""
	for i := range n {
		e, raw := mdfile.Entry{
			Type: mdfile.TypeImplement, Status: "completed", Agent: agent, Parent: parent, Time: time.Date(2026, 1, 1, 0, i, 0, 0, time.UTC),
			Text: fmt.Sprintf("Step %d of the rewrite\n\nThe handler of route %d validates its input now, and says what is wrong with it.", i, i%97),
		}.Render()
		b.WriteString("\n")
		b.Write(raw)
		parent = e.ID
	}
	return b.Bytes()
}

func (r *rig) stateContext(p stateProject) (time.Duration, error) {
	began := time.Now()
	s, err := startIn(p.work, p.env, r.reprise, "mcp")
	if err != nil {
		return 0, err
	}
	if err := s.handshake(); err != nil {
		return 0, err
	}
	got, err := s.tool("state_context", map[string]any{})
	if err != nil {
		return 0, err
	}
	took := time.Since(began)
	if list, ok := got["recent_log"].([]any); !ok || len(list) != 5 {
		return 0, fmt.Errorf("state_context gave %v", got)
	}
	return took, s.end()
}

func (r *rig) stateStart(p stateProject) (time.Duration, error) {
	in := fmt.Appendf(nil, `{"session_id":"5a13438d-5a8e-41c4-808c-000000000001","transcript_path":"/x/y.jsonl","cwd":%q,"hook_event_name":"SessionStart","source":"startup"}`, p.work)
	cmd := exec.Command(r.hook, "claude", "SessionStart")
	cmd.Dir, cmd.Env, cmd.Stdin = p.work, p.env, bytes.NewReader(in)
	began := time.Now()
	out, err := cmd.Output()
	took := time.Since(began)
	if err == nil && !bytes.Contains(out, []byte("of the rewrite")) {
		err = fmt.Errorf("a session's start said %q", out)
	}
	return took, err
}

func (r *rig) stateMerge(p stateProject) (time.Duration, error) {
	ours := filepath.Join(p.work, "ours")
	data, err := os.ReadFile(filepath.Join(p.work, "side0"))
	if err != nil {
		return 0, err
	}
	if err := os.WriteFile(ours, data, 0o600); err != nil {
		return 0, err
	}
	began := time.Now()
	err = p.run(r.reprise, "merge-driver", filepath.Join(p.work, "base"), ours, filepath.Join(p.work, "side1"), "changelog.md")
	return time.Since(began), err
}

// startIn starts a server in a directory, with an environment of its own.
func startIn(dir string, env []string, path string, args ...string) (*peer, error) {
	cmd := exec.Command(path, args...)
	cmd.Dir, cmd.Env, cmd.Stderr = dir, env, os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return &peer{cmd: cmd, in: in, out: bufio.NewReaderSize(out, 1<<20)}, nil
}
