package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// hooks are what a client waits for at its events, and what a session is told at its start.
func (p *peers) hooks() ([]figure, error) {
	home, env, err := p.home("hooks")
	if err != nil {
		return nil, err
	}
	work := filepath.Join(home, "work")
	if err := os.Mkdir(work, 0o700); err != nil {
		return nil, err
	}
	ours := append(env, "REPRISE_HOME="+filepath.Join(home, "data"))
	payload := func(event string) []byte {
		return fmt.Appendf(nil, `{"session_id":"5a13438d-5a8e-41c4-808c-4bfdd26a2a8d","transcript_path":%q,"cwd":%q,"source":"startup","prompt":"fix the test","hook_event_name":%q,"tool_name":"Bash","tool_input":{"command":"go test ./..."},"tool_response":{"stdout":"ok","stderr":"","interrupted":false},"tool_use_id":"toolu_1"}`,
			filepath.Join(home, "none.jsonl"), work, event)
	}
	for end := time.Now().Add(time.Minute); ; time.Sleep(200 * time.Millisecond) { // until there is a plan for hooks
		if _, _, _, err := p.hook(work, ours, payload("PreToolUse"), p.r.hook, "claude", "PreToolUse"); err != nil {
			return nil, err
		}
		if plans, _ := filepath.Glob(filepath.Join(home, "data", "cache", "hooks", "*.plan")); len(plans) > 0 { // the pattern is right
			break
		}
		if time.Now().After(end) {
			return nil, errors.New("no plan for hooks was made within a minute")
		}
	}
	mem, memEnv, stop, err := p.claudeMem()
	if err != nil {
		return nil, err
	}
	defer stop()
	version := p.version("claude-mem")
	list := []struct {
		key, shown, event string
		env               []string
		args              []string
	}{
		{"empty", "an empty Go program", "", env, []string{p.r.empty}},
		{"node", "node that does nothing", "", env, []string{p.node, "-e", "0"}},
		{"reprise-before", "reprise, before a tool (judged, recorded)", "PreToolUse", ours, []string{p.r.hook, "claude", "PreToolUse"}},
		{"reprise-after", "reprise, after a tool", "PostToolUse", ours, []string{p.r.hook, "claude", "PostToolUse"}},
		{"claude-mem-after", version + ", after a tool (`observation`; its client does not wait for it)", "PostToolUse", memEnv, append(mem, "observation")},
		{"reprise-prompt", "reprise, at a prompt", "UserPromptSubmit", ours, []string{p.r.hook, "claude", "UserPromptSubmit"}},
		{"claude-mem-prompt", version + ", at a prompt (`session-init`)", "UserPromptSubmit", memEnv, append(mem, "session-init")},
		{"reprise-start", "reprise, at a session's start, nothing remembered", "SessionStart", ours, []string{p.r.hook, "claude", "SessionStart"}},
		{"claude-mem-start", version + ", at a session's start (`context`), nothing remembered", "SessionStart", memEnv, append(mem, "context")},
	}
	times, cpus, told := make([][]time.Duration, len(list)), make([][]time.Duration, len(list)), make([]int, len(list))
	for i := range p.r.n + 1 {
		for k, one := range list {
			took, cpu, out, err := p.hook(work, one.env, payload(one.event), one.args...)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", one.shown, err)
			}
			if i > 0 {
				times[k], cpus[k], told[k] = append(times[k], took), append(cpus[k], cpu), len(out)
			}
		}
	}
	for k, one := range list {
		clock, cpu := median(times[k]), median(cpus[k])
		p.add("hooks", one.key, one.shown, "clock", "by the clock, × an empty Go program", float64(clock)/float64(median(times[0])), noiseClock, ms(clock))
		p.add("hooks", one.key, one.shown, "cpu", "processor time, × an empty Go program", float64(cpu)/float64(median(cpus[0])), noiseCPU, ms(cpu))
		if one.event == "SessionStart" {
			p.add("hooks", one.key, one.shown, "told", "bytes told", float64(told[k]), noiseCount, "")
		}
	}
	return p.all, nil
}

// hook runs a hook and gives what it took, by the clock and of processor time with what it
// waited for, and what it said.
func (p *peers) hook(dir string, env []string, in []byte, args ...string) (took, cpu time.Duration, out []byte, err error) {
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir, cmd.Env, cmd.Stdin = dir, env, bytes.NewReader(in)
	began := time.Now()
	out, err = cmd.Output()
	took = time.Since(began)
	if cmd.ProcessState != nil {
		cpu = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	}
	return took, cpu, out, err
}

// claudeMem starts the worker that claude-mem's hooks talk to, in a home of its own; mem is
// the beginning of the words that run one of its hooks. What its plugin has a shell do
// before is left out: looking for the plugin's directory.
func (p *peers) claudeMem() (mem, env []string, stop func(), err error) {
	home, env, err := p.home("claude-mem")
	if err != nil {
		return nil, nil, nil, err
	}
	scripts := filepath.Join(p.pkgs, "claude-mem/plugin/scripts")
	env = append(env, "CLAUDE_PLUGIN_ROOT="+filepath.Dir(scripts))
	start := []string{p.node, filepath.Join(scripts, "bun-runner.js"), filepath.Join(scripts, "worker-service.cjs")}
	if _, _, out, err := p.hook(home, env, nil, append(start, "start")...); err != nil {
		return nil, nil, nil, fmt.Errorf("start claude-mem's worker: %w: %s", err, out)
	}
	return append(start[:3:3], "hook", "claude-code"), env, func() { killWorkers(p.pkgs) }, nil
}

// killWorkers ends the workers of claude-mem: those of this measurement, for it is in a
// space of processes of its own.
func killWorkers(pkgs string) (killed int) {
	procs, _ := filepath.Glob("/proc/[0-9]*") // the pattern is right
	for _, dir := range procs {
		line, err := os.ReadFile(filepath.Join(dir, "cmdline"))
		words := strings.Split(string(line), "\x00")
		if err != nil || len(words) < 3 || words[1] != filepath.Join(pkgs, "claude-mem/plugin/scripts/worker-service.cjs") || words[2] != "--daemon" {
			continue
		}
		var pid int
		if _, err := fmt.Sscan(filepath.Base(dir), &pid); err != nil {
			continue
		}
		if proc, err := os.FindProcess(pid); err == nil && proc.Kill() == nil {
			killed++
		}
	}
	return killed
}
