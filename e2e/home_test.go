//go:build unix

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// home is a user of its own: a home directory, an environment that holds nothing
// else, and a settings file.
type home struct {
	t      *testing.T
	dir    string // HOME
	work   string // where commands run
	memory string
	config string
	env    []string
}

// settings are written to the settings file as JSON, which is YAML too.
type settings map[string]any

// newHome makes a user. What extra names replaces the defaults, key by key in
// each section.
func newHome(t *testing.T, extra settings) *home {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	h := &home{
		t: t, dir: filepath.Join(root, "home"), work: filepath.Join(root, "work"),
		memory: filepath.Join(root, "home", "memory"), config: filepath.Join(root, "config.yaml"),
	}
	// Not one of the directories above the memory: a sandboxed run may make
	// nothing in those.
	tmp := filepath.Join(root, "tmp")
	for _, d := range []string{h.dir, h.work, tmp} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	h.env = []string{
		"HOME=" + h.dir, "USERPROFILE=" + h.dir, "LANG=C.UTF-8", "TERM=dumb", "NO_COLOR=1",
		"PATH=" + programs + string(os.PathListSeparator) + os.Getenv("PATH"),
		"TMPDIR=" + tmp,
		"GIT_CONFIG_NOSYSTEM=1",
		"REPRISE_CONFIG=" + h.config,
	}
	s := settings{
		"memory":     map[string]any{"directory": h.memory},
		"sub_agent":  map[string]any{"sync_window_seconds": 20},
		"claude_cli": map[string]any{"path": h.mock()},
		// One session in twenty would be told nothing, by its id.
		"recall": map[string]any{"hold_out_percent": 0},
		// What a user says whose agents build and change things unasked.
		"guard": map[string]any{"project_code": "allow", "writes": "allow", "allow": []string{"rm broken"}},
	}
	for section, v := range extra {
		old, _ := s[section].(map[string]any)
		if old == nil {
			old = map[string]any{}
		}
		for k, e := range v.(map[string]any) {
			old[k] = e
		}
		s[section] = old
	}
	data, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	h.write(h.config, string(data))
	t.Cleanup(h.noneLeft)
	return h
}

// sub is settings for sub_agent alone.
func sub(kv map[string]any) settings { return settings{"sub_agent": kv} }

func (h *home) write(path, text string) {
	h.t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		h.t.Fatal(err)
	}
	// A process that is started just now would hold the file open for writing, and
	// until it has become another program nobody could run it (ETXTBSY).
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		h.t.Fatal(err)
	}
}

func (h *home) read(path string) string {
	h.t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		h.t.Fatal(err)
	}
	return string(data)
}

// mock is the seed's stand-in for a sub-agent: a program that reads a task on
// standard input and answers in plain text. What it does besides is said by the
// task, so that one server can be given agents of every kind.
func (h *home) mock() string {
	path := filepath.Join(filepath.Dir(h.dir), "mock-agent.sh")
	h.write(path, `#!/bin/sh
case "$1" in --version) echo "mock-agent 1.0"; exit 0;; esac
task=$(cat)
say() { echo "Mock sub-agent received task: $task"; echo "Working directory: $(pwd)"; }
case "$task" in
  "gate "*) set -- $task; while [ ! -e "$2" ]; do sleep 0.02; done; say;;
  "for ever"*) echo started; while :; do sleep 60; done;;
  "escape"*) setsid sh -c 'trap "" TERM HUP; while :; do sleep 60; done' </dev/null >/dev/null 2>&1 & echo escaped; while :; do sleep 60; done;;
  "crash"*) say; echo "the mock breaks" >&2; exit 1;;
  "flood"*) i=0; while [ $i -lt 1000 ]; do echo "line $i of a hundred bytes, more or less, so that a thousand of them make about a hundred kilobytes...."; i=$((i+1)); done;;
  "prompt"*) say; echo "System prompt:"; cat "$REPRISE_SYSTEM_PROMPT_FILE";;
  *) say;;
esac
`)
	if err := os.Chmod(path, 0o700); err != nil {
		h.t.Fatal(err)
	}
	return path
}

// result is what a command did.
type result struct {
	out, err string
	code     int
}

// reprise runs one command in the work directory, within three minutes: what hangs has to end.
func (h *home) reprise(args ...string) result {
	h.t.Helper()
	return h.run(program("reprise"), args...)
}

func (h *home) run(path string, args ...string) result {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	return h.runFor(ctx, path, args...)
}

// runFor is run for as long as ctx says.
func (h *home) runFor(ctx context.Context, path string, args ...string) result {
	h.t.Helper()
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Dir, cmd.Env = h.work, h.env
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) || ctx.Err() != nil {
		h.t.Fatalf("%s %q: %v\n%s%s", path, args, err, out.String(), errs.String())
	}
	return result{out.String(), errs.String(), cmd.ProcessState.ExitCode()}
}

// must runs a command that has to succeed and gives its standard output.
func (h *home) must(args ...string) string {
	h.t.Helper()
	r := h.reprise(args...)
	if r.code != 0 {
		h.t.Fatalf("reprise %q: exit %d\n%s%s", args, r.code, r.out, r.err)
	}
	return r.out
}

// runRecord is what a test needs of run.json.
type runRecord struct {
	ID        string     `json:"id"`
	Status    string     `json:"status"`
	Reason    string     `json:"status_reason"`
	EndedAt   *time.Time `json:"ended_at"`
	SessionID string     `json:"session_id"`
	Child     *processID `json:"child"`
	Super     *processID `json:"supervisor"`
}

type processID struct {
	PID int `json:"pid"`
}

func (r runRecord) done() bool {
	return slices.Contains([]string{"completed", "failed", "timeout", "killed"}, r.Status)
}

// record reads a run's file; false when there is none yet. Files are the truth,
// so tests may look at them while the programs work.
func (h *home) record(id string) (runRecord, bool) {
	h.t.Helper()
	found, err := filepath.Glob(filepath.Join(h.dir, ".local", "share", "reprise", "runs", id, "run.json"))
	if err != nil {
		h.t.Fatal(err)
	}
	if len(found) == 0 {
		return runRecord{}, false
	}
	var r runRecord
	if err := json.Unmarshal([]byte(h.read(found[0])), &r); err != nil {
		h.t.Fatalf("%s: %v", found[0], err)
	}
	return r, true
}

// records are all the runs there are on disk.
func (h *home) records() []runRecord {
	h.t.Helper()
	dirs, err := filepath.Glob(filepath.Join(h.dir, ".local", "share", "reprise", "runs", "run-*"))
	if err != nil {
		h.t.Fatal(err)
	}
	var out []runRecord
	for _, d := range dirs {
		if r, ok := h.record(filepath.Base(d)); ok {
			out = append(out, r)
		}
	}
	return out
}

// until waits for something that can be observed; it fails the test with what
// was waited for after the limit.
func until(t *testing.T, limit time.Duration, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(limit)
	for pause := 5 * time.Millisecond; !ok(); pause = min(pause*3/2, 100*time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("after %v still not: %s", limit, what)
		}
		time.Sleep(pause) // looking at every process costs milliseconds
	}
}

// within scales a limit by how slow the machine is at the moment: the limits are
// promises for a machine that starts a program of ours in 30 ms, as an idle one
// does, and these tests run beside others.
func within(t *testing.T, limit time.Duration) time.Duration {
	t.Helper()
	const idle = 30 * time.Millisecond
	began := time.Now()
	if out, err := exec.Command(program("reprise"), "--version").CombinedOutput(); err != nil {
		t.Fatalf("reprise --version: %v: %s", err, out)
	}
	took := time.Since(began)
	if took <= idle {
		return limit
	}
	return time.Duration(float64(limit) * float64(took) / float64(idle))
}

// process is a living process as /proc shows it.
type process struct {
	pid  int
	args string
}

// processes are the living ones whose environment holds the entry exactly.
// Zombies are not alive. Only Linux can be asked; elsewhere there are none.
func processes(t *testing.T, entry string) []process {
	t.Helper()
	if runtime.GOOS != "linux" {
		return nil
	}
	dirs, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	var out []process
	for _, d := range dirs {
		pid, err := strconv.Atoi(d.Name())
		if err != nil {
			continue
		}
		env, err := os.ReadFile(filepath.Join("/proc", d.Name(), "environ"))
		if err != nil || len(env) == 0 {
			continue // gone, a zombie, or another user's
		}
		if slices.Contains(strings.Split(string(env), "\x00"), entry) {
			args, _ := os.ReadFile(filepath.Join("/proc", d.Name(), "cmdline"))
			out = append(out, process{pid, strings.ReplaceAll(string(args), "\x00", " ")})
		}
	}
	return out
}

// ofRun are the living processes that carry a run's id.
func ofRun(t *testing.T, id string) []process {
	t.Helper()
	return processes(t, "REPRISE_RUN_ID="+id)
}

// mine are the living processes that were started with this home.
func (h *home) mine() []process { return processes(h.t, "HOME="+h.dir) }

// noneLeft fails the test if a process of this home outlives it, and ends it. What a session
// leaves to be done after it, as a summary that a judge is asked for, takes as long as a
// client takes, and that is not seconds where the machine is busy.
func (h *home) noneLeft() {
	deadline := time.Now().Add(2 * time.Minute)
	for len(h.mine()) > 0 && time.Now().Before(deadline) {
		time.Sleep(50 * time.Millisecond)
	}
	for _, p := range h.mine() {
		h.t.Errorf("left behind: pid %d, %s", p.pid, p.args)
		_ = syscall.Kill(p.pid, syscall.SIGKILL) // found by this test's own home: nobody else's
	}
}
