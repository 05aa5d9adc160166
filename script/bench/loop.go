package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// shop is a project with a queue and a loop.
type shop struct {
	r    *rig
	dir  string // its checkout
	home string
	env  []string
}

func (r *rig) newShop(name string) (*shop, error) {
	s := &shop{r: r, dir: filepath.Join(r.dir, name, "shop"), home: filepath.Join(r.dir, name, "data")}
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return nil, err
	}
	s.env = []string{
		"HOME=" + filepath.Join(r.dir, name), "PATH=" + os.Getenv("PATH"), "LANG=C.UTF-8", "REPRISE_HOME=" + s.home,
		"GIT_AUTHOR_NAME=b", "GIT_AUTHOR_EMAIL=b@example.org", "GIT_COMMITTER_NAME=b", "GIT_COMMITTER_EMAIL=b@example.org",
	}
	for _, args := range [][]string{{"git", "init", "-q", "-b", "trunk"}, {r.reprise, "init", "--yes", "--name", "shop"}, {"git", "add", "-A"}, {"git", "commit", "-q", "-m", "first"}} {
		if _, err := s.run(args...); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (s *shop) command(args ...string) *exec.Cmd {
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir, cmd.Env = s.dir, s.env
	return cmd
}

func (s *shop) run(args ...string) (string, error) {
	out, err := s.command(args...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return string(out), nil
}

// add adds n items.
func (s *shop) add(prefix string, n int) error {
	var list bytes.Buffer
	for i := range n {
		fmt.Fprintf(&list, "{\"id\":\"%s%d\",\"title\":\"say hello\"}\n", prefix, i)
	}
	cmd := s.command(s.r.reprise, "queue", "add", "--from", "-")
	cmd.Stdin = &list
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("queue add: %w\n%s", err, out)
	}
	return nil
}

// done wants n items to be done.
func (s *shop) done(n int) error {
	out, err := s.run(s.r.reprise, "queue", "list", "--state", "done", "--json")
	if err != nil {
		return err
	}
	var l struct{ Total int }
	if err := json.Unmarshal([]byte(out), &l); err != nil {
		return err
	}
	if l.Total != n {
		return fmt.Errorf("%d items are done, want %d", l.Total, n)
	}
	return nil
}

// loopItems is what the loop costs an item, over the agent itself.
func (r *rig) loopItems() ([]row, error) {
	var rows []row
	for _, mode := range []struct {
		what string
		args []string
	}{{"in place", []string{"--in-place"}}, {"each in a worktree", nil}} {
		s, err := r.newShop("items-" + strconv.Itoa(len(rows)))
		if err != nil {
			return nil, err
		}
		var ours, bare []time.Duration
		rounds := max(r.n/10, 2)
		for round := range rounds {
			if err := s.add(fmt.Sprintf("r%d-", round), r.n); err != nil {
				return nil, err
			}
			began := time.Now()
			if _, err := s.run(append([]string{r.reprise, "loop", "run", "--agent", "script", "--until-empty", "--delay", "0s", "-q"}, mode.args...)...); err != nil {
				return nil, err
			}
			whole := time.Since(began)
			// What it takes to begin and end a loop is not an item's.
			began = time.Now()
			if _, err := s.run(append([]string{r.reprise, "loop", "run", "--agent", "script", "--until-empty", "--delay", "0s", "-q"}, mode.args...)...); err != nil {
				return nil, err
			}
			ours = append(ours, (whole-time.Since(began))/time.Duration(r.n))
			began = time.Now()
			for i := range r.n {
				cmd := s.command(r.reprise, "script-agent")
				cmd.Env, cmd.Dir = append(cmd.Env[:len(cmd.Env):len(cmd.Env)], fmt.Sprintf("REPRISE_RUN_ID=run-bare%d", i)), filepath.Dir(s.dir)
				cmd.Stdin = strings.NewReader("say hello")
				if out, err := cmd.CombinedOutput(); err != nil {
					return nil, fmt.Errorf("script-agent: %w\n%s", err, out)
				}
			}
			bare = append(bare, time.Since(began)/time.Duration(r.n))
		}
		if err := s.done(r.n * rounds); err != nil {
			return nil, err
		}
		a, b := median(ours), median(bare)
		rows = append(rows, row{"an item of the loop, " + mode.what, ms(a), "the script agent bare: " + ms(b) + ", so " + ms(a-b) + " more", "≤ 100 ms more"})
	}
	return rows, nil
}

// idleFor is how long an idle loop is watched.
const idleFor = 30 * time.Second

// loopIdle is the processor time that a loop takes while there is nothing to do.
func (r *rig) loopIdle() ([]row, error) {
	if runtime.GOOS != "linux" {
		return []row{{"processor time of an idle loop", "not measured here", "", "≤ 0.1 %"}}, nil
	}
	share, err := r.idleShare(idleFor)
	return []row{{"processor time of an idle loop with 8 workers, over " + idleFor.String(), fmt.Sprintf("%.3f %% of a core", 100*share), "", "≤ 0.1 %"}}, err
}

// idleShare is the part of a core that a loop with 8 workers takes while there is nothing to
// do.
func (r *rig) idleShare(long time.Duration) (float64, error) {
	s, err := r.newShop("idle")
	if err != nil {
		return 0, err
	}
	cmd := s.command(r.reprise, "loop", "run", "--agent", "script", "--workers", "8", "--delay", "0s", "-q")
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	// Idle is a loop that has done something, and since then has had nothing to do.
	if err := s.add("first", 1); err != nil {
		return 0, err
	}
	for deadline := time.Now().Add(time.Minute); s.done(1) != nil; time.Sleep(100 * time.Millisecond) {
		if time.Now().After(deadline) {
			return 0, errors.New("the loop did not do its first item within a minute")
		}
	}
	time.Sleep(2 * time.Second)
	before, err := cpuOf(cmd.Process.Pid)
	if err != nil {
		return 0, err
	}
	began := time.Now()
	time.Sleep(long)
	after, err := cpuOf(cmd.Process.Pid)
	if err != nil {
		return 0, err
	}
	share := float64(after-before) / float64(time.Since(began))
	if _, err := s.run(r.reprise, "loop", "stop"); err != nil {
		return 0, err
	}
	return share, cmd.Wait()
}

// cpuOf is the processor time that a process has had, to the nanosecond: the kernel's
// other figure counts in hundredths of a second.
func cpuOf(pid int) (time.Duration, error) {
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	if err != nil || len(tasks) == 0 {
		return 0, fmt.Errorf("process %d has no schedstat", pid)
	}
	var sum time.Duration
	for _, t := range tasks {
		data, err := os.ReadFile(t)
		if err != nil {
			return 0, err
		}
		ns, _, _ := strings.Cut(string(data), " ")
		n, err := strconv.ParseInt(ns, 10, 64)
		if err != nil {
			return 0, err
		}
		sum += time.Duration(n)
	}
	return sum, nil
}

// many is how fifty runs side by side went: until all ran, until all were done, and the
// megabytes that the loop had meanwhile.
type many struct {
	all, whole time.Duration
	mb         float64
}

func (r *rig) loopMany() ([]row, error) {
	m, err := r.manyRuns()
	return []row{{fmt.Sprintf("%d runs side by side, each in a worktree", sideBySide), fmt.Sprintf("all run after %.1f s, all done after %.1f s", m.all.Seconds(), m.whole.Seconds()), fmt.Sprintf("memory of the loop: %.1f MB", m.mb), "50 on 2 cores"}}, err
}

const sideBySide = 50

func (r *rig) manyRuns() (m many, err error) {
	s, err := r.newShop("many")
	if err != nil {
		return m, err
	}
	if err := s.add("m", sideBySide); err != nil {
		return m, err
	}
	steps := filepath.Join(r.dir, "many.yaml")
	open := filepath.Join(r.dir, "many.go")
	text := fmt.Sprintf("steps:\n  - wait_for: {file: %q, timeout: 300s}\n  - write: {path: hello.txt, content: \"hello\\n\"}\n", open)
	if err := os.WriteFile(steps, []byte(text), 0o600); err != nil {
		return m, err
	}
	cmd := s.command(r.reprise, "loop", "run", "--agent-script", steps, "--workers", strconv.Itoa(sideBySide), "--until-empty", "--delay", "0s", "-q",
		"--item-usd", "1") // which is set aside for each run, of 50 in all
	cmd.Stderr = os.Stderr
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return m, err
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	for deadline := time.Now().Add(5 * time.Minute); ; time.Sleep(50 * time.Millisecond) {
		n, err := s.running()
		if err != nil {
			return m, err
		}
		if n == sideBySide {
			break
		}
		if time.Now().After(deadline) {
			return m, fmt.Errorf("%d of %d runs are there after five minutes", n, sideBySide)
		}
	}
	m.all = time.Since(began)
	if m.mb, err = rssOf(cmd.Process.Pid); err != nil {
		return m, err
	}
	if err := os.WriteFile(open, nil, 0o600); err != nil {
		return m, err
	}
	if err := cmd.Wait(); err != nil {
		return m, err
	}
	m.whole = time.Since(began)
	return m, s.done(sideBySide)
}

// running is how many runs go on at this moment.
func (s *shop) running() (int, error) {
	records, err := filepath.Glob(filepath.Join(s.home, "projects", "shop", "runs", "run-*", "run.json"))
	if err != nil {
		return 0, err
	}
	n := 0
	for _, path := range records {
		data, err := os.ReadFile(path)
		if err != nil {
			return 0, err
		}
		var r struct {
			Status string
			PID    int
		}
		if err := json.Unmarshal(data, &r); err != nil {
			return 0, fmt.Errorf("%s: %w", path, err)
		}
		if r.Status == "running" && r.PID > 0 {
			n++
		}
	}
	return n, nil
}

// rssOf is the resident memory of a process in megabytes; 0 where the system does not tell.
func rssOf(pid int) (float64, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	return statusField(string(data), "VmRSS"), err
}
