package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// hooks is what a client waits for at each tool call, beside a Go program that
// does nothing, with a log that has just begun and with one of 100 MB.
func (r *rig) hooks() ([]row, error) {
	home := filepath.Join(r.dir, "hooks")
	work := filepath.Join(home, "work")
	if err := os.MkdirAll(work, 0o700); err != nil {
		return nil, err
	}
	env := []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "REPRISE_HOME=" + filepath.Join(home, "data")}
	payload := func(event, more string) []byte {
		return fmt.Appendf(nil, `{"session_id":"5a13438d-5a8e-41c4-808c-4bfdd26a2a8d","transcript_path":"/home/dev/.claude/projects/x/5a13438d.jsonl","cwd":%q,"prompt_id":"6dff36d8","permission_mode":"default","hook_event_name":%q,"tool_name":"Bash","tool_input":{"command":"go test ./..."},"tool_use_id":"toolu_1"%s}`, work, event, more)
	}
	pre := payload("PreToolUse", "")
	// 8 kB of what agents run all day, each part of which is allowed.
	long := bytes.Replace(pre, []byte("go test ./..."), []byte(strings.TrimSuffix(strings.Repeat("ls -la sub | grep -v x && git log --oneline -3; ", 8000/48), "; ")), 1)
	post := payload("PostToolUse", `,"tool_response":{"stdout":"ok  \treprise/internal/hook\t0.3s","stderr":"","interrupted":false},"duration_ms":242`)
	// The first hooks have a plan made, which lasts once the programs that it
	// names are two seconds old.
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(200 * time.Millisecond) {
		if _, err := timed(env, pre, r.hook, "claude", "PreToolUse"); err != nil {
			return nil, err
		}
		if plans, _ := filepath.Glob(filepath.Join(home, "data", "cache", "hooks", "*.plan")); len(plans) > 0 { // the pattern is right
			break
		}
		if time.Now().After(end) {
			return nil, errors.New("no plan for hooks was made within 20 s")
		}
	}
	var rows []row
	for _, size := range []string{"a fresh log", "a log of 100 MB"} {
		if size != "a fresh log" {
			if err := grow(filepath.Join(home, "data", "events"), 100<<20); err != nil {
				return nil, err
			}
		}
		for _, e := range []struct {
			event, of string
			in        []byte
		}{{"PreToolUse", "", pre}, {"PostToolUse", "", post}, {"PreToolUse", " of a command of 8 kB", long}} {
			row, err := r.hookRow(env, e.event, e.in, e.of+", "+size)
			if err != nil {
				return nil, err
			}
			rows = append(rows, row)
		}
	}
	return rows, nil
}

func (r *rig) hookRow(env []string, event string, in []byte, size string) (row, error) {
	var ours, empty []time.Duration
	for range 5*r.n + 1 { // a start is short and noisy
		a, err := timed(env, in, r.hook, "claude", event)
		if err != nil {
			return row{}, err
		}
		b, err := timed(env, in, r.empty)
		if err != nil {
			return row{}, err
		}
		ours, empty = append(ours, a), append(empty, b)
	}
	ours, empty = ours[1:], empty[1:]
	kb := func(args ...string) (float64, error) {
		cmd := exec.Command(r.rss, args...)
		cmd.Env, cmd.Stdin = env, bytes.NewReader(in)
		out, err := cmd.Output()
		if err != nil {
			return 0, fmt.Errorf("%s: %w", r.rss, err)
		}
		n, err := strconv.Atoi(strings.TrimSpace(string(out)))
		return float64(n) / 1024, err
	}
	mine, err := kb(r.hook, "claude", event)
	if err != nil {
		return row{}, err
	}
	base, err := kb(r.empty)
	if err != nil {
		return row{}, err
	}
	a, b := median(ours), median(empty)
	return row{
		"`reprise-hook claude " + event + "`" + size,
		fmt.Sprintf("%s, p95 %s, %.1f MB", ms(a), ms(part(ours, 95)), mine),
		fmt.Sprintf("an empty Go program: %s, p95 %s, %.1f MB, so %s (%s at the quickest tenth of each)",
			ms(b), ms(part(empty, 95)), base, ratio(a, b), ratio(part(ours, 10), part(empty, 10))),
		"≤ 1.5 ×",
	}, nil
}

// part is the time that so many of a hundred did not take longer than.
func part(d []time.Duration, percent int) time.Duration {
	d = slices.Clone(d)
	slices.Sort(d)
	return d[len(d)*percent/100]
}

// timed is how long a program takes from its start to its end.
func timed(env []string, in []byte, path string, args ...string) (time.Duration, error) {
	f, err := os.CreateTemp("", "reprise-bench-in-")
	if err != nil {
		return 0, err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	if _, err := f.Write(in); err != nil {
		return 0, err
	}
	if _, err := f.Seek(0, 0); err != nil {
		return 0, err
	}
	cmd := exec.Command(path, args...)
	cmd.Env, cmd.Stdin = env, f
	began := time.Now()
	err = cmd.Run()
	return time.Since(began), err
}

// grow makes the log in dir as long as that with events of the usual kind. Their
// chain is not kept: nothing that is measured looks at it.
func grow(dir string, size int64) error {
	files, err := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	if err != nil || len(files) != 1 {
		return fmt.Errorf("the log in %s: %q, %w", dir, files, err)
	}
	line, err := json.Marshal(map[string]any{"v": 1, "id": "01a220fd-af94-752b-8556-ab278a9abef5", "ts": time.Now().UTC(), "scope": "session",
		"session": "s", "client": "claude", "type": "tool.called", "data": map[string]any{"tool": "shell", "name": "Bash", "output": strings.Repeat("x", 700)}, "prev": strings.Repeat("0", 64)})
	if err != nil {
		return err
	}
	line = append(line, '\n')
	f, err := os.OpenFile(files[0], os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	block := bytes.Repeat(line, 1000)
	for n := int64(0); n < size; n += int64(len(block)) {
		if _, err := f.Write(block); err != nil {
			f.Close()
			return err
		}
	}
	return f.Close()
}
