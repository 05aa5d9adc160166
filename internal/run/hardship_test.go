//go:build unix

package run_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"reprise/internal/durable"
	"reprise/internal/durable/durabletest"
	"reprise/internal/proc"
	"reprise/internal/run"
)

const failFromVar, failAtVar = "REPRISE_TEST_FAIL_FROM", "REPRISE_TEST_FAIL_AT"

// live starts a run that says "up" and then lives until it is stopped.
func live(t *testing.T, m *run.Manager, req run.Request) run.Record {
	t.Helper()
	if req.Program == "" {
		req.Program = shell(t, `echo up; while :; do sleep 0.05; done`)
	}
	r := start(t, m, req)
	until(t, "running with output", func() bool {
		got, err := m.Get(r.ID)
		out, outErr := m.Output(r.ID, 0)
		r = got
		return err == nil && outErr == nil && got.Status == run.Running && strings.Contains(out.Text, "up")
	})
	return r
}

// The disk goes bad at each step of a supervisor's start and stays so. When the
// supervisor has given up nothing of the run may be left: of a detached run
// nobody would stop it.
func TestSupervisorOnABadDiskLeavesNoAgent(t *testing.T) {
	t.Parallel()
	for n := 0; ; n++ {
		if n > 100 {
			t.Fatal("a start takes more steps than it can have")
		}
		// The manager does not see the end of the supervisor, and so cannot
		// clear up after it.
		helper := shell(t, fmt.Sprintf(`%s=%d '%s' "$@"; touch "$2/gone"; cat`, failFromVar, n, self()))
		m := newManager(t, func(o *run.Options) { o.Helper = helper })
		r := start(t, m, run.Request{Program: shell(t, `while :; do sleep 0.05; done`)})
		gone := false
		until(t, "the run to live or the supervisor to give up", func() bool {
			_, err := os.Stat(filepath.Join(r.Dir(), "gone"))
			got, getErr := m.Get(r.ID)
			gone = err == nil
			return gone || getErr == nil && got.Status == run.Running
		})
		if !gone {
			break
		}
		mustBeGone(t, r.ID)
	}
}

// One step of a supervisor fails. Whatever it is, the run ends and is told
// truly: above all, that it went well where it did.
func TestSupervisorWithOneFailure(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	quick(t, dir)
	m := run.New(options(dir))
	well, kept := 0, 0
	for n := 0; well < 4; n++ {
		if n > 200 {
			t.Fatal("the supervisor takes more steps than a run can have")
		}
		r := start(t, m, run.Request{Program: filepath.Join(dir, "agent"), Env: append(os.Environ(), fmt.Sprintf("%s=%d", failAtVar, n))})
		r = wait(t, m, r.ID)
		mustBeGone(t, r.ID)
		out, err := m.Output(r.ID, 0)
		if err != nil || r.Status == run.Completed && strings.TrimSpace(out.Text) != "done" {
			t.Errorf("step %d: %s with output %q, %v", n, r.Status, out.Text, err)
		}
		if strings.Contains(r.StatusReason, "could not be kept") {
			kept++
			if r.Status != run.Completed || r.ExitCode == nil || *r.ExitCode != 0 {
				t.Errorf("step %d: the run is %s %q, and its agent had done it", n, r.Status, r.StatusReason)
			}
		}
		if r.Status == run.Completed && r.StatusReason == "" {
			well++
		} else {
			well = 0
		}
	}
	if kept == 0 {
		t.Error("no step was the writing of the result")
	}
}

// On a disk that the agent has filled the record can still be written: its space
// was set aside.
func TestSpaceIsSetAside(t *testing.T) {
	t.Parallel()
	m := newManager(t, nil)
	r := live(t, m, run.Request{})
	info, err := os.Stat(filepath.Join(r.Dir(), "reserve"))
	record, recErr := os.Stat(r.Path())
	if err != nil || recErr != nil || info.Size() < 2*record.Size() {
		t.Fatalf("set aside: %v, %v; %v", info, err, recErr)
	}
	if _, err := m.Cancel(ctx(t), r.ID, ""); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(r.Dir(), "reserve")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("after the end: %v", err)
	}
}

// Stopping matters most when the disk is full, and then no request can be
// written.
func TestCancelOnAFullDisk(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r := live(t, run.New(options(dir)), run.Request{Detach: true})
	o := options(dir)
	o.Disk, _ = durabletest.FailFrom(0, syscall.ENOSPC)
	r, err := run.New(o).Cancel(ctx(t), r.ID, "")
	if err != nil || r.Status != run.Killed {
		t.Errorf("%s, %v", r.Status, err)
	}
	mustBeGone(t, r.ID)
}

// Somebody has stopped the supervisor: it is woken, and cancels.
func TestCancelWakesASupervisor(t *testing.T) {
	t.Parallel()
	m := newManager(t, func(o *run.Options) { o.AskPatience = 300 * time.Millisecond })
	r := live(t, m, run.Request{})
	if err := r.Supervisor.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	r, err := m.Cancel(ctx(t), r.ID, "enough")
	if err != nil || r.Status != run.Killed || r.StatusReason != "enough" {
		t.Errorf("%s %q, %v", r.Status, r.StatusReason, err)
	}
	mustBeGone(t, r.ID)
}

// A supervisor that dies with a request unread: who settles the run honours it.
func TestRequestOutlivesTheSupervisor(t *testing.T) {
	t.Parallel()
	for kind, want := range map[string]run.Status{"cancel": run.Killed, "interrupt": run.Interrupted} {
		m := newManager(t, nil)
		r := live(t, m, run.Request{})
		if err := r.Supervisor.Signal(syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(r.Dir(), "request-"+kind+".json"), []byte(`{"v":1,"reason":"enough"}`), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := r.Supervisor.Signal(syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		r = wait(t, m, r.ID)
		if r.Status != want || !strings.HasPrefix(r.StatusReason, "enough") {
			t.Errorf("%s: %s %q", kind, r.Status, r.StatusReason)
		}
		mustBeGone(t, r.ID)
	}
}

// The record is damaged and the supervisor dead: nobody knows what the run was,
// but what is left of it is stopped.
func TestDamagedRecordOfADeadSupervisor(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	m := run.New(options(dir))
	r := live(t, m, run.Request{Detach: true})
	if err := os.WriteFile(r.Path(), []byte("{garbage"), 0o600); err != nil {
		t.Fatal(err)
	}
	if list, err := m.List(ctx(t)); err == nil || len(list) != 0 || strings.Contains(err.Error(), "were stopped") {
		t.Errorf("the supervisor lives: %v, %v", list, err)
	}
	if err := r.Supervisor.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	until(t, "the kernel to bury the supervisor", func() bool { return !r.Supervisor.Alive() })
	until(t, "what is left to be stopped", func() bool {
		if _, err := run.New(options(dir)).List(ctx(t)); err == nil || !strings.Contains(err.Error(), r.Path()) {
			t.Fatalf("list: %v", err)
		}
		left, err := proc.Sweep(r.ID)
		return err == nil && len(left) == 0
	})
}

// The agent plays with the files of its run. It must not be able to hang anybody.
func TestAgentThatReplacesItsFiles(t *testing.T) {
	t.Parallel()
	dir := `cd "$(dirname "$REPRISE_SYSTEM_PROMPT_FILE")"; `
	for name, c := range map[string]struct {
		agent  string
		status run.Status
		reason string
	}{
		"emptied output":         {`while :; do echo one; sleep 0.15; : > stdout.jsonl; sleep 0.15; done`, run.Failed, "can no longer be read"},
		"a pipe for its errors":  {`rm stderr.log; mkfifo stderr.log; exit 3`, run.Failed, "exit code 3"},
		"a pipe for a request":   {`mkfifo request-cancel.json; while :; do sleep 0.05; done`, run.Killed, "cancelled"},
		"a pipe for its output":  {`echo one; rm stdout.jsonl; mkfifo stdout.jsonl; sleep 0.3`, run.Completed, ""},
		"a link for its request": {`ln -s /dev/zero request-interrupt.json; while :; do sleep 0.05; done`, run.Interrupted, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newManager(t, nil)
			r := wait(t, m, start(t, m, run.Request{Program: shell(t, dir+c.agent)}).ID)
			if r.Status != c.status || !strings.Contains(r.StatusReason, c.reason) {
				t.Errorf("%s %q", r.Status, r.StatusReason)
			}
			mustBeGone(t, r.ID)
		})
	}
	t.Run("a pipe for its record", func(t *testing.T) {
		t.Parallel()
		m := newManager(t, nil)
		r := wait(t, m, start(t, m, run.Request{Program: shell(t, "echo ok")}).ID)
		if err := errors.Join(os.Remove(r.Path()), syscall.Mkfifo(r.Path(), 0o600)); err != nil {
			t.Fatal(err)
		}
		if _, err := m.List(ctx(t)); err == nil || !strings.Contains(err.Error(), "not a regular file") {
			t.Errorf("list: %v", err)
		}
	})
}

// An agent may be quicker than its supervisor: what it put in its output's place
// before the supervisor looked there is not followed.
func TestOutputIsOpenBeforeTheAgentLives(t *testing.T) {
	t.Parallel()
	m := newManager(t, nil)
	r := wait(t, m, start(t, m, run.Request{Program: shell(t, "echo one"), Env: append(os.Environ(), replaceVar+"=1")}).ID)
	if r.Status != run.Completed || r.StatusReason != "" {
		t.Errorf("%s %q", r.Status, r.StatusReason)
	}
	mustBeGone(t, r.ID)
}

// Each extension that was acknowledged counts, however many come at once, and
// nothing that is no time does.
func TestExtensionsAddUp(t *testing.T) {
	t.Parallel()
	m := newManager(t, nil)
	r := live(t, m, run.Request{Timeout: 50 * time.Second})
	for _, bad := range []string{`{"kind":"extend","seconds":1e308}`, `{"kind":"extend","seconds":-50}`, `{"kind":"extend"}`, `{"kind":"cancel","seconds":5}`, `[`, ``} {
		path := filepath.Join(r.Dir(), "request-extend.json")
		if err := durable.WriteFile(path, []byte(bad), 0o600); err != nil {
			t.Fatal(err)
		}
		until(t, "the request to be read", func() bool { _, err := os.Stat(path); return errors.Is(err, os.ErrNotExist) })
	}
	const many = 8
	var group sync.WaitGroup
	for range many {
		group.Go(func() {
			if err := m.Extend(ctx(t), r.ID, 100*time.Second); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	until(t, "the record", func() bool { r, _ = m.Get(r.ID); return r.TimeoutSeconds == 50+100*many })
	if r.Status != run.Running {
		t.Errorf("the run is %s %q", r.Status, r.StatusReason)
	}
	if err := r.Supervisor.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	impatient := options(filepath.Dir(m.Dir()))
	impatient.AskPatience = 50 * time.Millisecond
	if err := run.New(impatient).Extend(ctx(t), r.ID, time.Second); err == nil || !strings.Contains(err.Error(), "nothing was changed") {
		t.Errorf("a stopped supervisor: %v", err)
	}
	if err := r.Supervisor.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	endless := live(t, m, run.Request{Timeout: -1})
	if err := m.Extend(ctx(t), endless.ID, time.Hour); err == nil || !strings.Contains(err.Error(), "no time limit") {
		t.Errorf("a run without a limit: %v", err)
	}
}

// A run that ended, but whose end cannot be written, is never told as running
// by who waited for it.
func TestWaitSaysThatItCannotSettle(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	quick(t, dir)
	o := options(dir)
	o.Helper = shell(t, "exit 1") // a supervisor that could do nothing
	full := false
	o.Disk = durable.NewDisk(func(s durable.Step) *durable.Fault {
		if full && strings.Contains(s.Path, "run-") {
			return &durable.Fault{Err: syscall.ENOSPC}
		}
		full = full || strings.HasSuffix(s.Path, "supervisor.log")
		return nil
	})
	m := run.New(o)
	r := start(t, m, run.Request{Program: filepath.Join(dir, "agent")})
	if got, err := m.Wait(ctx(t), r.ID); err == nil {
		t.Errorf("wait: %s without an error", got.Status)
	}
	list, err := m.List(ctx(t))
	if err == nil || len(list) != 1 || list[0].ID != r.ID {
		t.Errorf("list: %v, %v", list, err)
	}
}

// The supervisor is killed while the agent has its grace. The run was asked to stop, and for
// what: that is how it ended, and no failure of its own.
func TestSupervisorKilledInTheGrace(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		stop func(m *run.Manager, id string) (run.Record, error)
		want run.Status
	}{
		"cancel": {func(m *run.Manager, id string) (run.Record, error) {
			return m.Cancel(context.Background(), id, "enough")
		}, run.Killed},
		"interrupt": {func(m *run.Manager, id string) (run.Record, error) {
			return m.Interrupt(context.Background(), id, "enough")
		}, run.Interrupted},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			here, stopping := filepath.Join(dir, "here"), filepath.Join(dir, "stopping")
			o := options(dir)
			o.Grace = time.Minute
			m := run.New(o)
			r := start(t, m, run.Request{Detach: true, Program: shell(t, `trap 'touch `+stopping+`' TERM INT
touch `+here+`; while :; do sleep 0.05; done`)})
			there := func(path string) func() bool {
				return func() bool { _, err := os.Lstat(path); return err == nil }
			}
			until(t, "the agent to be there", there(here))
			over := make(chan run.Record, 1)
			go func() {
				r, err := test.stop(m, r.ID)
				if err != nil {
					t.Error(err)
				}
				over <- r
			}()
			until(t, "the agent to be told", there(stopping))
			r, err := m.Get(r.ID)
			if err != nil {
				t.Fatal(err)
			}
			if err := r.Supervisor.Signal(os.Kill); err != nil {
				t.Fatal(err)
			}
			if r := <-over; r.Status != test.want || r.StatusReason != "enough; its supervisor ended before it" {
				t.Errorf("%s %q", r.Status, r.StatusReason)
			}
			mustBeGone(t, r.ID)
		})
	}
}

// Somebody asks for the stop once more while the agent has its grace, as a loop does that was
// begun again: the supervisor reads that, too, and is not taken for one that has to be killed.
func TestAskedAgainWhileItStops(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	here, stopping, goOn := filepath.Join(dir, "here"), filepath.Join(dir, "stopping"), filepath.Join(dir, "go")
	o := options(dir)
	o.Grace = time.Minute
	m := run.New(o)
	r := start(t, m, run.Request{Detach: true, Program: shell(t, `trap 'touch `+stopping+`; while test ! -f `+goOn+`; do sleep 0.05; done; exit 0' TERM INT
touch `+here+`; while :; do sleep 0.05; done`)})
	there := func(path string) func() bool {
		return func() bool { _, err := os.Lstat(path); return err == nil }
	}
	until(t, "the agent to be there", there(here))
	over := make(chan run.Record, 1)
	go func() {
		r, err := m.Interrupt(context.Background(), r.ID, "first")
		if err != nil {
			t.Error(err)
		}
		over <- r
	}()
	until(t, "the agent to be told", there(stopping))
	again := filepath.Join(r.Dir(), "request-interrupt.json")
	if err := os.WriteFile(again, []byte(`{"v":1,"reason":"second"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	until(t, "the second request to be read", func() bool { return !there(again)() })
	if err := os.WriteFile(goOn, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if r := <-over; r.Status != run.Interrupted || r.StatusReason != "first" {
		t.Errorf("%s %q", r.Status, r.StatusReason)
	}
	mustBeGone(t, r.ID)
}
