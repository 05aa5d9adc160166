//go:build unix

package run_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"reprise/internal/durable"
	"reprise/internal/durable/durabletest"
	"reprise/internal/event"
	"reprise/internal/run"
)

// laterOptions is the world of a command that comes ten seconds later, when
// nobody can still be starting a run.
func laterOptions(dir string) run.Options {
	o := options(dir)
	o.Now = func() time.Time { return time.Now().Add(10 * time.Second) }
	return o
}

// quick is an agent for tests that start many.
func quick(t *testing.T, dir string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, "agent"), []byte("#!/bin/sh\necho done\n"), 0o755); err != nil {
		t.Fatal(err)
	}
}

// starting is one start of a run with a key, on a disk that may fail.
var starting = durabletest.Scenario{
	Prepare: quick,
	Act: func(disk durable.Disk, dir string) error {
		o := options(dir)
		o.Disk = disk
		m := run.New(o)
		r, err := m.Start(context.Background(), run.Request{Task: "x", Program: filepath.Join(dir, "agent"), Detach: true, IdempotencyKey: "k"})
		if err != nil {
			return err
		}
		_, err = m.Wait(context.Background(), r.ID)
		return err
	},
	Check: func(t *testing.T, dir string, err error, at string) {
		t.Helper()
		m := run.New(laterOptions(dir))
		// The key is good for one run, whatever became of the first try.
		r, again := m.Start(ctx(t), run.Request{Task: "x", Program: filepath.Join(dir, "agent"), Detach: true, IdempotencyKey: "k"})
		if again != nil {
			t.Fatalf("%s: start again: %v", at, again)
		}
		r = wait(t, m, r.ID)
		list, listErr := m.List(ctx(t))
		if listErr != nil || len(list) != 1 || list[0].ID != r.ID || !r.Status.Done() {
			t.Errorf("%s (%v): %d runs, %v; the run is %s %q", at, err, len(list), listErr, r.Status, r.StatusReason)
		}
		if err == nil && r.Status != run.Completed {
			t.Errorf("%s: acknowledged, but it %s: %q", at, r.Status, r.StatusReason)
		}
		mustBeGone(t, r.ID)
		if _, gcErr := m.GC(ctx(t), 0); gcErr != nil {
			t.Errorf("%s: gc: %v", at, gcErr)
		}
	},
}

func TestStarterDiesAtEachStep(t *testing.T) {
	t.Parallel()
	starting.CrashAtEachStep(t)
}

func TestStarterOnAFailingDisk(t *testing.T) {
	t.Parallel()
	starting.FailAtEachStep(t, syscall.ENOSPC)
}

const killStepVar = "REPRISE_TEST_KILL_STEP"

// replaceVar has an agent's output replaced as soon as the file is there, which
// is as early as any agent can.
const replaceVar = "REPRISE_TEST_REPLACE_OUTPUT"

func replaceByPipe(path string) {
	if err := errors.Join(os.Remove(path), syscall.Mkfifo(path, 0o600)); err != nil {
		panic(err)
	}
}

// supervisorDisk is the disk of this test binary as a supervisor: the machine's,
// or one on which it dies, or a step fails, or all do from one on, as the
// environment says.
func supervisorDisk() durable.Disk {
	if os.Getenv(replaceVar) != "" {
		return durable.NewDisk(func(s durable.Step) *durable.Fault {
			if s.Op == durable.OpCreate && filepath.Base(s.Path) == "stderr.log" {
				replaceByPipe(filepath.Join(filepath.Dir(s.Path), "stdout.jsonl"))
			}
			return nil
		})
	}
	step := -1
	for name, fault := range map[string]func(n int) *durable.Fault{
		killStepVar: func(n int) *durable.Fault {
			if step != n {
				return nil
			}
			return &durable.Fault{Err: errors.New("dead"), Then: func() {
				_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
				select {}
			}}
		},
		failAtVar: func(n int) *durable.Fault {
			if step != n {
				return nil
			}
			return &durable.Fault{Err: syscall.ENOSPC}
		},
		failFromVar: func(n int) *durable.Fault {
			if step < n {
				return nil
			}
			return &durable.Fault{Err: syscall.ENOSPC}
		},
	} {
		if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
			return durable.NewDisk(func(durable.Step) *durable.Fault { step++; return fault(n) })
		}
	}
	return durable.Disk{}
}

func TestSupervisorDiesAtEachStep(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	quick(t, dir)
	m := run.New(options(dir))
	outlived := 0
	for n := 0; outlived < 2; n++ {
		if n > 200 {
			t.Fatal("the supervisor takes more steps than a run can have")
		}
		r := start(t, m, run.Request{Program: filepath.Join(dir, "agent"), Env: append(os.Environ(), fmt.Sprintf("%s=%d", killStepVar, n))})
		r = wait(t, m, r.ID)
		if !r.Status.Done() || r.EndedAt == nil {
			t.Fatalf("step %d: the run is %s", n, r.Status)
		}
		mustBeGone(t, r.ID)
		if r.Status == run.Completed && !strings.Contains(r.StatusReason, "supervisor ended") {
			outlived++
			out, err := m.Output(r.ID, 0)
			if err != nil || strings.TrimSpace(out.Text) != "done" {
				t.Errorf("step %d: output %q, %v", n, out.Text, err)
			}
		} else {
			outlived = 0
		}
	}
	report, err := event.Verify(filepath.Join(dir, "events"))
	if err != nil || len(report.Problems) > 0 {
		t.Errorf("event log: %+v, %v", report, err)
	}
}
