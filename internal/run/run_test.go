//go:build unix

package run_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"reprise/internal/agent"
	"reprise/internal/durable"
	"reprise/internal/event"
	"reprise/internal/proc"
	"reprise/internal/proc/confine"
	"reprise/internal/run"
)

// shell writes a program that runs text with sh.
func shell(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "agent.sh")
	// A process that is started just now would hold the file open for writing, and
	// until it has become another program nobody could run it (ETXTBSY).
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func newManager(t *testing.T, change func(*run.Options)) *run.Manager {
	t.Helper()
	opt := options(t.TempDir())
	if change != nil {
		change(&opt)
	}
	m := run.New(opt)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if _, err := m.StopAll(ctx); err != nil {
			t.Errorf("stop all: %v", err)
		}
	})
	return m
}

func ctx(t *testing.T) context.Context {
	c, cancel := context.WithTimeout(t.Context(), 3*time.Minute) // for what hangs
	t.Cleanup(cancel)
	return c
}

func start(t *testing.T, m *run.Manager, req run.Request) run.Record {
	t.Helper()
	if req.Task == "" {
		req.Task = "do it"
	}
	r, err := m.Start(ctx(t), req)
	if err != nil {
		t.Fatalf("start: %v", err)
	}
	if req.Detach {
		// No StopAll waits for it, and whoever sees its supervisor's end writes
		// to a directory that the test is about to remove.
		t.Cleanup(func() {
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			if _, err := m.Wait(ctx, r.ID); errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s goes on after the test: %v", r.ID, err)
			}
		})
	}
	return r
}

func wait(t *testing.T, m *run.Manager, id string) run.Record {
	t.Helper()
	r, err := m.Wait(ctx(t), id)
	if err != nil {
		t.Fatalf("wait: %v", err)
	}
	return r
}

// mustBeGone fails if any process still carries the run's id.
func mustBeGone(t *testing.T, id string) {
	t.Helper()
	left, err := proc.Sweep(id)
	if err != nil {
		t.Fatal(err)
	}
	if len(left) > 0 {
		t.Errorf("processes of %s are left: %v", id, left)
	}
}

// until polls observable state; it fails after a minute.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("waited a minute for: %s", what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func TestRunCompletes(t *testing.T) {
	m := newManager(t, nil)
	prog := shell(t, `echo "task: $(cat)"; echo "in $(pwd)"; echo "id $REPRISE_RUN_ID"`)
	dir := t.TempDir()
	r := wait(t, m, start(t, m, run.Request{Task: "count ünïcode", Program: prog, WorkDir: dir}).ID)
	if r.Status != run.Completed || r.MCPStatus() != "complete" || r.ExitCode == nil || *r.ExitCode != 0 || r.EndedAt == nil {
		t.Fatalf("record: %+v", r)
	}
	if r.V != 1 || r.StartEpoch != r.StartedAt.Unix() || r.Supervisor == nil || r.Child == nil || r.PID == 0 || r.Heartbeat.LastCheck.IsZero() {
		t.Errorf("fields of the record are missing: %+v", r)
	}
	out, err := m.Output(r.ID, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"task: count ünïcode", "in " + dir, "id " + r.ID} {
		if !strings.Contains(out.Text, want) {
			t.Errorf("output %q lacks %q", out.Text, want)
		}
	}
	report, err := event.Verify(filepath.Join(filepath.Dir(m.Dir()), "events"))
	if err != nil || len(report.Problems) > 0 {
		t.Errorf("event log: %v %v", report, err)
	}
}

func TestRunEnds(t *testing.T) {
	tests := []struct {
		name   string
		script string
		req    run.Request
		status run.Status
		mcp    string
		reason string
		code   int
	}{
		{"crash", `echo partial; echo "no such table" >&2; exit 7`, run.Request{}, run.Failed, "failed", "7", 7},
		{"killed by a signal", `kill -9 $$`, run.Request{}, run.Failed, "failed", "SIGKILL", 137},
		{"timeout", `echo started; while :; do sleep 0.05; done`, run.Request{Timeout: 300 * time.Millisecond}, run.TimedOut, "timed_out", "exceeded timeout of 300ms", 143},
		{"timeout ignoring TERM", `trap '' TERM; while :; do sleep 0.05; done`, run.Request{Timeout: 500 * time.Millisecond}, run.TimedOut, "timed_out", "exceeded timeout", 137},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			m := newManager(t, func(o *run.Options) {
				if tt.code == 143 {
					o.Grace = time.Minute // its end is the first signal's, however late it gets to it
				}
			})
			tt.req.Program = shell(t, tt.script)
			r := wait(t, m, start(t, m, tt.req).ID)
			for tt.code == 137 && r.ExitCode != nil && *r.ExitCode == 143 && tt.req.Timeout < 30*time.Second {
				tt.req.Timeout *= 4 // it had not got to its trap yet
				r = wait(t, m, start(t, m, tt.req).ID)
			}
			if r.Status != tt.status || r.MCPStatus() != tt.mcp || !strings.Contains(r.StatusReason, tt.reason) {
				t.Errorf("got %s (%s) %q, want %s (%s) with %q", r.Status, r.MCPStatus(), r.StatusReason, tt.status, tt.mcp, tt.reason)
			}
			if r.ExitCode == nil || *r.ExitCode != tt.code {
				t.Errorf("exit code %v, want %d", r.ExitCode, tt.code)
			}
			mustBeGone(t, r.ID)
		})
	}
}

func TestProgramThatCannotStart(t *testing.T) {
	m := newManager(t, nil)
	_, err := m.Start(ctx(t), run.Request{Task: "x", Program: "/nonexistent/claude"})
	if err == nil || !strings.Contains(err.Error(), "failed to start") || !strings.Contains(err.Error(), "claude_cli.path") {
		t.Errorf("error %v does not say what failed and what to do", err)
	}
	bad := filepath.Join(t.TempDir(), "not-a-program")
	if err := os.WriteFile(bad, []byte("\x00\x01\x02"), 0o755); err != nil {
		t.Fatal(err)
	}
	r := wait(t, m, start(t, m, run.Request{Program: bad}).ID)
	if r.Status != run.Failed || !strings.Contains(r.StatusReason, "failed to start") {
		t.Errorf("got %s %q", r.Status, r.StatusReason)
	}
}

func TestBadRequests(t *testing.T) {
	m := newManager(t, nil)
	file := shell(t, "true")
	tests := []struct {
		name string
		req  run.Request
		want string
	}{
		{"empty task", run.Request{Task: " \n"}, "task is empty"},
		{"NUL in task", run.Request{Task: "a\x00b"}, "task contains a NUL"},
		{"huge task", run.Request{Task: strings.Repeat("x", 9<<20)}, "the most is"},
		{"relative directory", run.Request{Task: "x", WorkDir: "here"}, "not an absolute path"},
		{"missing directory", run.Request{Task: "x", WorkDir: "/nonexistent/dir"}, "does not exist"},
		{"file as directory", run.Request{Task: "x", WorkDir: file}, "not a directory"},
		{"NUL in directory", run.Request{Task: "x", WorkDir: "/tmp\x00"}, "NUL"},
		{"bad extra directory", run.Request{Task: "x", AddDirs: []string{"x"}}, "additional_dirs"},
		{"NUL in extra directory", run.Request{Task: "x", AddDirs: []string{"/a\x00"}}, "additional_dirs contains a NUL"},
		{"timeout over the most", run.Request{Task: "x", Timeout: 31 * 24 * time.Hour}, "timeout"},
		{"negative tokens", run.Request{Task: "x", MaxOutputTokens: -1}, "max_output_tokens"},
		{"unknown client", run.Request{Task: "x", Client: "nobody"}, "nobody"},
		{"long key", run.Request{Task: "x", IdempotencyKey: strings.Repeat("k", 300)}, "idempotency_key"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := m.Start(ctx(t), tt.req)
			if err == nil || !errors.Is(err, run.ErrBadRequest) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want a bad request with %q", err, tt.want)
			}
		})
	}
	if entries, err := os.ReadDir(m.Dir()); err == nil && len(entries) > 0 {
		t.Errorf("refused requests left %v", entries)
	}
}

func TestCancel(t *testing.T) {
	m := newManager(t, nil)
	// A grandchild in a session of its own that ignores TERM.
	prog := shell(t, `setsid sh -c 'trap "" TERM; while :; do sleep 0.05; done' & echo up; while :; do sleep 0.05; done`)
	r := start(t, m, run.Request{Program: prog})
	until(t, "output", func() bool {
		out, err := m.Output(r.ID, 0)
		return err == nil && strings.Contains(out.Text, "up")
	})
	r, err := m.Cancel(ctx(t), r.ID, "not needed any more")
	if err != nil || r.Status != run.Killed || r.StatusReason != "not needed any more" || r.MCPStatus() != "cancelled" {
		t.Fatalf("got %s %q, %v", r.Status, r.StatusReason, err)
	}
	mustBeGone(t, r.ID)
	again, err := m.Cancel(ctx(t), r.ID, "again")
	if err != nil || again.Status != run.Killed || again.StatusReason != "not needed any more" {
		t.Errorf("cancelling twice changed the record: %q %v", again.StatusReason, err)
	}
	if _, err := m.Cancel(ctx(t), "run-aaaaaaaaaa", ""); !errors.Is(err, run.ErrNotFound) {
		t.Errorf("cancel of an unknown run: %v", err)
	}
	if _, err := m.Cancel(ctx(t), "../../etc", ""); !errors.Is(err, run.ErrNotFound) {
		t.Errorf("cancel of a path: %v", err)
	}
}

func TestInterruptAndExtend(t *testing.T) {
	m := newManager(t, nil)
	r := start(t, m, run.Request{Program: shell(t, `while :; do sleep 0.05; done`), Timeout: 20 * time.Second})
	until(t, "running", func() bool { got, err := m.Get(r.ID); return err == nil && got.Status == run.Running })
	if err := m.Extend(ctx(t), r.ID, time.Hour); err != nil {
		t.Fatal(err)
	}
	until(t, "extension", func() bool { got, err := m.Get(r.ID); return err == nil && got.TimeoutSeconds == 3620 })
	r, err := m.Interrupt(ctx(t), r.ID, "which database?")
	if err != nil || r.Status != run.Interrupted || !r.Interrupt.Requested || r.Interrupt.Reason == nil || *r.Interrupt.Reason != "which database?" || r.Interrupt.Timestamp == nil {
		t.Fatalf("got %+v, %v", r.Interrupt, err)
	}
	mustBeGone(t, r.ID)
	if err := m.Extend(ctx(t), r.ID, time.Hour); err == nil {
		t.Error("an interrupted run was extended")
	}
}

// The agent has ended, but something it started lives on in another session.
func TestLeftoversAreCollected(t *testing.T) {
	m := newManager(t, nil)
	r := wait(t, m, start(t, m, run.Request{Program: shell(t, `setsid sh -c 'while :; do sleep 0.05; done' </dev/null >/dev/null 2>&1 & echo done`)}).ID)
	if r.Status != run.Completed || r.Collected == 0 {
		t.Errorf("status %s, %d collected", r.Status, r.Collected)
	}
	mustBeGone(t, r.ID)
}

func TestOutputIsCutOnARune(t *testing.T) {
	m := newManager(t, nil)
	r := wait(t, m, start(t, m, run.Request{Program: shell(t, `i=0; while [ $i -lt 2000 ]; do printf 'aä€😀'; i=$((i+1)); done`)}).ID)
	for tokens := 1; tokens < 40; tokens++ {
		out, err := m.Output(r.ID, tokens)
		if err != nil {
			t.Fatal(err)
		}
		head, marker, ok := strings.Cut(out.Text, "\n\n[output truncated: ")
		if !ok || !out.Truncated || out.TotalBytes != 20000 || strings.ContainsRune(out.Text, '\uFFFD') {
			t.Fatalf("%d tokens: %+v", tokens, out)
		}
		if len(head) > 4*tokens || len(head) < 4*tokens-3 || !strings.Contains(marker, fmt.Sprintf("%d of 20000 bytes", 20000-len(head))) || !strings.Contains(marker, out.Path) {
			t.Errorf("%d tokens: head of %d bytes, marker %q", tokens, len(head), marker)
		}
	}
	if whole, err := m.Output(r.ID, 100000); err != nil || whole.Truncated || len(whole.Text) != 20000 {
		t.Errorf("whole: %v, %d bytes, %v", whole.Truncated, len(whole.Text), err)
	}
}

func TestIdempotencyKey(t *testing.T) {
	dir := t.TempDir()
	m := run.New(options(dir))
	req := run.Request{Task: "once", Program: shell(t, "echo x"), IdempotencyKey: "key/../1"}
	var mu sync.Mutex
	ids := map[string]bool{}
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			r, err := m.Start(ctx(t), req)
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			ids[r.ID] = true
			mu.Unlock()
		})
	}
	group.Wait()
	if len(ids) != 1 {
		t.Fatalf("one key started %v", ids)
	}
	var id string
	for id = range ids {
	}
	wait(t, m, id)
	// Another process, as after a restart of the server.
	other := run.New(options(dir))
	if r, err := other.Start(ctx(t), req); err != nil || r.ID != id {
		t.Errorf("after a restart: %s, %v", r.ID, err)
	}
	req.Task = "another"
	if _, err := other.Start(ctx(t), req); !errors.Is(err, run.ErrKeyReused) || !strings.Contains(err.Error(), id) {
		t.Errorf("another task under the key: %v", err)
	}
}

func TestIDsAreUnique(t *testing.T) {
	seen := map[string]bool{}
	for range 1000 {
		id := run.NewID()
		if seen[id] || !run.ValidID(id) {
			t.Fatalf("id %q: seen %v", id, seen[id])
		}
		seen[id] = true
	}
	for _, bad := range []string{"", "run-", "run-ABCDEFGHIJ", "run-abcdefghi", "run-abcdefghijk", "run-abcdefgh01", "../run-abcdefghij", "run-abcdefghij/"} {
		if run.ValidID(bad) {
			t.Errorf("%q is taken for an id", bad)
		}
	}
}

// Who dies, and what must be true afterwards.
func TestWhoeverDies(t *testing.T) {
	agent := `setsid sh -c 'trap "" TERM; while :; do sleep 0.05; done' </dev/null >/dev/null 2>&1 & echo up; while :; do sleep 0.05; done`
	running := func(t *testing.T, m *run.Manager, req run.Request) run.Record {
		req.Program = shell(t, agent)
		r := start(t, m, req)
		until(t, "running with output", func() bool {
			got, err := m.Get(r.ID)
			out, outErr := m.Output(r.ID, 0)
			r = got
			return err == nil && outErr == nil && got.Status == run.Running && strings.Contains(out.Text, "up")
		})
		return r
	}
	kill := func(t *testing.T, id *proc.ID) {
		t.Helper()
		// Whoever watches the other end may have been quicker.
		if err := id.Signal(syscall.SIGKILL); err != nil && !errors.Is(err, proc.ErrGone) {
			t.Fatal(err)
		}
	}
	t.Run("the agent", func(t *testing.T) {
		t.Parallel()
		m := newManager(t, nil)
		r := running(t, m, run.Request{})
		kill(t, r.Child)
		r = wait(t, m, r.ID)
		if r.Status != run.Failed || r.Signal != "SIGKILL" {
			t.Errorf("got %s %q %q", r.Status, r.StatusReason, r.Signal)
		}
		mustBeGone(t, r.ID)
	})
	t.Run("the supervisor", func(t *testing.T) {
		t.Parallel()
		m := newManager(t, nil)
		r := running(t, m, run.Request{})
		kill(t, r.Supervisor)
		r = wait(t, m, r.ID)
		if r.Status != run.Failed || !strings.Contains(r.StatusReason, "its supervisor ended before it") {
			t.Errorf("got %s %q", r.Status, r.StatusReason)
		}
		mustBeGone(t, r.ID)
	})
	t.Run("both, found by a later command", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		m := run.New(options(dir))
		r := running(t, m, run.Request{Detach: true})
		later := run.New(options(dir))
		kill(t, r.Supervisor)
		kill(t, r.Child)
		until(t, "the kernel to bury the supervisor", func() bool { return !r.Supervisor.Alive() })
		// Who started it is here still, and may be settling it already, which is not waited
		// for without end: so it may be told as running once more.
		until(t, "it to be settled", func() bool {
			list, err := later.List(ctx(t))
			if err != nil || len(list) != 1 {
				t.Fatalf("list: %+v, %v", list, err)
			}
			return list[0].Status == run.Failed
		})
		mustBeGone(t, r.ID)
	})
	t.Run("the starter of an attached run", func(t *testing.T) {
		t.Parallel()
		r := starterDies(t, shell(t, agent), "attached")
		if r.Status != run.Killed || !strings.Contains(r.StatusReason, "has ended") {
			t.Errorf("got %s %q", r.Status, r.StatusReason)
		}
		mustBeGone(t, r.ID)
	})
	t.Run("the starter of a detached run", func(t *testing.T) {
		t.Parallel()
		r := starterDies(t, shell(t, "sleep 0.3; echo survived"), "detached")
		if r.Status != run.Completed {
			t.Errorf("got %s %q", r.Status, r.StatusReason)
		}
	})
}

// startAndDie is the body of a process that starts a run and is killed.
func startAndDie(dir, how string) {
	m := run.New(options(dir))
	r, err := m.Start(context.Background(), run.Request{Task: "x", Program: filepath.Join(dir, "agent"), Detach: how == "detached"})
	if err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
	for {
		got, err := m.Get(r.ID)
		if err == nil && got.Status == run.Running {
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	fmt.Println(r.ID)
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
}

func starterDies(t *testing.T, prog, how string) run.Record {
	t.Helper()
	dir := t.TempDir()
	if err := os.Symlink(prog, filepath.Join(dir, "agent")); err != nil {
		t.Fatal(err)
	}
	out, err := proc.Run(ctx(t), proc.Cmd{Path: self(), Args: []string{"start-and-die", dir, how}, Env: os.Environ(), Dir: dir}, 1<<16)
	if err != nil {
		t.Fatalf("start-and-die: %v", err)
	}
	id := strings.TrimSpace(string(out.Stdout))
	m := run.New(options(dir))
	r := wait(t, m, id)
	// It is not our child: it may still be writing its event.
	until(t, "the supervisor to end", func() bool { return !r.Supervisor.Alive() })
	return r
}

// Every record that a reader may find half-way is told, and none is lost.
func TestDamagedRecordDoesNotHideOthers(t *testing.T) {
	m := newManager(t, nil)
	good := wait(t, m, start(t, m, run.Request{Program: shell(t, "echo ok")}).ID)
	bad := filepath.Join(m.Dir(), "run-aaaaaaaaaa")
	if err := durable.MkdirAll(bad, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string]string{"truncated": `{"v":1,"id":"run-a`, "not json": "hello", "newer": `{"v":99,"id":"run-aaaaaaaaaa","status":"running"}`, "unknown status": `{"v":1,"id":"run-aaaaaaaaaa","status":"dancing"}`, "empty": ""} {
		if err := os.WriteFile(filepath.Join(bad, "run.json"), []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
		list, err := m.List(ctx(t))
		if err == nil || !strings.Contains(err.Error(), bad) {
			t.Errorf("%s: error %v does not name the file", name, err)
		}
		if len(list) != 1 || list[0].ID != good.ID {
			t.Errorf("%s: the good run is hidden: %v", name, list)
		}
		if after, _ := os.ReadFile(filepath.Join(bad, "run.json")); string(after) != data {
			t.Errorf("%s: the damaged record was changed", name)
		}
	}
}

func TestGC(t *testing.T) {
	now := time.Now()
	var mu sync.Mutex
	m := newManager(t, func(o *run.Options) { o.Now = func() time.Time { mu.Lock(); defer mu.Unlock(); return now } })
	old := wait(t, m, start(t, m, run.Request{Program: shell(t, "echo old"), IdempotencyKey: "k"}).ID)
	mu.Lock()
	now = now.Add(48 * time.Hour)
	mu.Unlock()
	fresh := wait(t, m, start(t, m, run.Request{Program: shell(t, "echo new")}).ID)
	live := start(t, m, run.Request{Program: shell(t, "while :; do sleep 0.05; done"), Timeout: -1})
	removed, err := m.GC(ctx(t), 24*time.Hour)
	_ = fresh
	if err != nil || !slices.Contains(removed, old.ID) || slices.Contains(removed, live.ID) {
		t.Errorf("removed %v, %v", removed, err)
	}
	if _, err := m.Get(old.ID); !errors.Is(err, run.ErrNotFound) {
		t.Errorf("the old run is still there: %v", err)
	}
	if left, _ := filepath.Glob(filepath.Join(m.Dir(), ".trash-*")); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	if keys, _ := filepath.Glob(filepath.Join(m.Dir(), ".keys", "*.json")); len(keys) > 0 {
		t.Errorf("a key of a removed run is left: %v", keys)
	}
	if r, err := m.Get(live.ID); err != nil || r.Status.Done() {
		t.Errorf("the live run: %s, %v", r.Status, err)
	}
}

// A run of another scope goes whole, too, and not only out of sight.
func TestGCInAnotherScope(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	theirs := run.New(options(other))
	old := wait(t, theirs, start(t, theirs, run.Request{Program: shell(t, "echo old")}).ID)
	o := laterOptions(dir)
	o.Also = func() []string { return []string{theirs.Dir()} }
	removed, err := run.New(o).GC(ctx(t), 0)
	if err != nil || !slices.Equal(removed, []string{old.ID}) {
		t.Errorf("removed %v, %v", removed, err)
	}
	if left, _ := filepath.Glob(filepath.Join(theirs.Dir(), ".trash-*")); len(left) > 0 {
		t.Errorf("its files are still there: %v", left)
	}
}

func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	const many = 40 // e2e has a hundred, over MCP
	m := newManager(t, nil)
	prog := shell(t, "echo ok")
	var group sync.WaitGroup
	for range many {
		group.Go(func() {
			r := start(t, m, run.Request{Program: prog})
			if r = wait(t, m, r.ID); r.Status != run.Completed {
				t.Errorf("%s: %s %q", r.ID, r.Status, r.StatusReason)
			}
		})
	}
	group.Wait()
	list, err := m.List(ctx(t))
	if err != nil || len(list) != many {
		t.Errorf("%d runs, %v", len(list), err)
	}
}

// The sandbox binds whatever the run starts, not only the client's own tools.
func TestSandbox(t *testing.T) {
	abi, why := confine.Supported()
	if abi == 0 {
		t.Skip("no Landlock here: " + why)
	}
	memory := t.TempDir()
	secret := filepath.Join(memory, "core.md")
	if err := os.WriteFile(secret, []byte("the secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	m := newManager(t, func(o *run.Options) {
		o.MemoryDir, o.Sandbox = memory, "required"
		o.SandboxSupport = func() (bool, string) { return true, "" }
	})
	prog := shell(t, `cat "`+secret+`"; echo changed > "`+secret+`"; touch "`+memory+`/new"; rm -f "`+secret+`"; echo fine > here.txt && cat here.txt`)
	for _, allow := range []bool{false, true} {
		r := wait(t, m, start(t, m, run.Request{Program: prog, AllowMemoryRead: allow, WorkDir: t.TempDir()}).ID)
		out, err := m.Output(r.ID, 0)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(out.Text, "the secret"); got != allow {
			t.Errorf("allow_memory_read %v: output %q", allow, out.Text)
		}
		if !strings.Contains(out.Text, "fine") || r.Command.Sandbox != "landlock" {
			t.Errorf("the working directory is not usable: %q (%s)", out.Text, r.Command.Sandbox)
		}
		if data, err := os.ReadFile(secret); err != nil || string(data) != "the secret" {
			t.Fatalf("a run changed the memory: %q, %v", data, err)
		}
		if entries, _ := os.ReadDir(memory); len(entries) != 1 {
			t.Errorf("a run made files in the memory: %v", entries)
		}
	}
}

// Above the memory a sandboxed client can make no directory; without its own it would keep
// no session, and none could be gone on with.
func TestClientsDirectoryIsThere(t *testing.T) {
	if abi, why := confine.Supported(); abi == 0 {
		t.Skip("no Landlock here: " + why)
	}
	home := t.TempDir() // of somebody who has never run the client
	memory := filepath.Join(home, "data", "memory")
	if err := os.MkdirAll(memory, 0o700); err != nil {
		t.Fatal(err)
	}
	m := newManager(t, func(o *run.Options) {
		o.MemoryDir, o.Sandbox = memory, "required"
		o.SandboxSupport = func() (bool, string) { return true, "" }
	})
	prog := shell(t, `test "$1" = --version && { echo "2.1.0 (Claude Code)"; exit; }
mkdir -p "$HOME/.claude/projects/p" && touch "$HOME/.claude/projects/p/s.jsonl"`)
	r := wait(t, m, start(t, m, run.Request{Program: prog, Client: agent.KindClaude, WorkDir: t.TempDir(), Env: []string{"HOME=" + home, "PATH=" + os.Getenv("PATH")}}).ID)
	if r.Client != agent.KindClaude || r.Command.Sandbox != "landlock" {
		t.Fatalf("%s, %s", r.Client, r.Command.Sandbox)
	}
	if _, err := os.Stat(filepath.Join(home, ".claude", "projects", "p", "s.jsonl")); err != nil {
		t.Errorf("the client could keep no session: %v", err)
	}
}

func TestSandboxRequiredButMissing(t *testing.T) {
	m := newManager(t, func(o *run.Options) {
		o.MemoryDir, o.Sandbox = t.TempDir(), "required"
		o.SandboxSupport = func() (bool, string) { return false, "no such thing here" }
	})
	_, err := m.Start(ctx(t), run.Request{Task: "x", Program: shell(t, "true")})
	if err == nil || !strings.Contains(err.Error(), "no such thing here") || !strings.Contains(err.Error(), "sub_agent.sandbox") {
		t.Errorf("error %v", err)
	}
}

// A client that has said its last word but does not go is ended, and its
// answer counts.
func TestLivesOnAfterItsResult(t *testing.T) {
	steps := filepath.Join(t.TempDir(), "steps.yaml")
	if err := os.WriteFile(steps, []byte("steps:\n  - say: the answer\n  - result: {}\n  - hang: true\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	m := newManager(t, func(o *run.Options) { o.ResultPatience = 300 * time.Millisecond })
	r := wait(t, m, start(t, m, run.Request{Client: "script", ScriptFile: steps}).ID)
	if r.Status != run.Completed || !strings.Contains(r.StatusReason, "lived on") || r.Result.Text != "the answer" {
		t.Errorf("got %s %q %+v", r.Status, r.StatusReason, r.Result)
	}
	mustBeGone(t, r.ID)
}

// A run that somebody's editor called ended is still swept of its processes.
func TestSweepStopsWhatEndedRunsLeft(t *testing.T) {
	m := newManager(t, nil)
	r := wait(t, m, start(t, m, run.Request{Program: shell(t, "echo ok")}).ID)
	p, err := proc.Start(proc.Cmd{Path: "/bin/sh", Args: []string{"-c", "while :; do sleep 0.05; done"}, Env: append(os.Environ(), proc.RunIDVar+"="+r.ID), NewSession: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.Sweep(ctx(t)); err != nil {
		t.Fatal(err)
	}
	<-p.Done()
	mustBeGone(t, r.ID)
}
