// Package durabletest is for tests of packages that write through package
// durable: disks that are full, that fail, or on which the process dies at a
// given step.
//
// It owns no file: it writes in the directories that a test gives it. It takes
// no lock. No program links it.
package durabletest

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"reprise/internal/durable"
)

// Steps records the steps that go over a disk.
type Steps struct {
	mu   sync.Mutex
	list []durable.Step
}

// List returns the steps so far.
func (s *Steps) List() []durable.Step {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]durable.Step(nil), s.list...)
}

// add records a step and returns its number, from 0.
func (s *Steps) add(step durable.Step) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = append(s.list, step)
	return len(s.list) - 1
}

// Record is a disk on which everything goes well.
func Record() (durable.Disk, *Steps) {
	return at(func(int, durable.Step) *durable.Fault { return nil })
}

func at(hook func(int, durable.Step) *durable.Fault) (durable.Disk, *Steps) {
	s := &Steps{}
	return durable.NewDisk(func(step durable.Step) *durable.Fault { return hook(s.add(step), step) }), s
}

// FailAt is a disk on which the step of that number, from 0, returns err. A
// write has by then written half.
func FailAt(n int, err error) (durable.Disk, *Steps) {
	return at(func(i int, step durable.Step) *durable.Fault {
		if i != n {
			return nil
		}
		return &durable.Fault{Err: err, Write: step.Size / 2}
	})
}

// FailFrom is a disk on which every step from that number on returns err; it
// does not recover.
func FailFrom(n int, err error) (durable.Disk, *Steps) {
	return at(func(i int, step durable.Step) *durable.Fault {
		if i < n {
			return nil
		}
		return &durable.Fault{Err: err, Write: step.Size / 2}
	})
}

// ShortAt is a disk on which the write of that number writes half and claims
// that nothing is wrong.
func ShortAt(n int) (durable.Disk, *Steps) {
	return at(func(i int, step durable.Step) *durable.Fault {
		if i != n || step.Op != durable.OpWrite {
			return nil
		}
		return &durable.Fault{Write: step.Size / 2}
	})
}

// Full is a disk with room for that many bytes more; err is what a write that
// does not fit returns, such as syscall.ENOSPC.
func Full(room int, err error) (durable.Disk, *Steps) {
	var mu sync.Mutex
	return at(func(_ int, step durable.Step) *durable.Fault {
		mu.Lock()
		defer mu.Unlock()
		if room -= step.Size; room >= 0 || step.Op != durable.OpWrite {
			return nil
		}
		fits := max(room+step.Size, 0)
		room = 0
		return &durable.Fault{Err: err, Write: fits}
	})
}

// killAt is a disk on which the process kills itself before the step of that
// number or, when half is set, once half of that write was written.
func killAt(n int, half bool) durable.Disk {
	disk, _ := at(func(i int, step durable.Step) *durable.Fault {
		if i != n {
			return nil
		}
		f := &durable.Fault{Err: errors.New("this process should be dead"), Then: killSelf}
		if half {
			f.Write = step.Size / 2
		}
		return f
	})
	return disk
}

func killSelf() {
	if p, err := os.FindProcess(os.Getpid()); err == nil {
		_ = p.Kill()
	}
	select {} // the signal may take a moment, during which nothing may happen
}

// Scenario is one change of a store, tested by [Scenario.CrashAtEachStep] and
// [Scenario.FailAtEachStep]. Its functions get a directory of their own each
// time.
type Scenario struct {
	// Sample is how many of the steps are tried, spread evenly; 0 is all. It is
	// for changes that start programs, where all of them take minutes.
	Sample  int
	Prepare func(t *testing.T, dir string)                       // makes the old state
	Act     func(disk durable.Disk, dir string) error            // makes the new one
	Check   func(t *testing.T, dir string, err error, at string) // reopens and checks; err is what Act returned, and ErrDied after a crash
}

// ErrDied is what Check gets in place of Act's error when the process was killed.
var ErrDied = errors.New("killed")

const childArg = "durabletest-child"

// CrashAtEachStep runs Act once for each of its steps in a process of its own,
// which is killed (SIGKILL) just before that step, and for each write once more
// with half of it written; then it runs Check. The process is the test binary
// again, with this test alone, so the call must be reached without side effects
// and be the only one in its test or subtest.
func (s Scenario) CrashAtEachStep(t *testing.T) {
	t.Helper()
	if args := flag.Args(); len(args) == 4 && args[0] == childArg {
		n, err := strconv.Atoi(args[1])
		if err != nil {
			t.Fatal(err)
		}
		err = s.Act(killAt(n, args[2] == "half"), args[3])
		t.Fatalf("outlived step %d: %v", n, err)
	}
	for _, c := range s.cases(t) {
		dir := s.fresh(t)
		s.die(t, c, dir)
		s.Check(t, dir, ErrDied, c.String())
	}
}

// FailAtEachStep runs Act once for each of its steps with that step failing
// with each of the errors, once with only that step failing and once with all
// that follow too, and with each write being short; then it runs Check.
func (s Scenario) FailAtEachStep(t *testing.T, errs ...error) {
	t.Helper()
	for _, c := range s.cases(t) {
		if c.half {
			dir := s.fresh(t)
			disk, _ := ShortAt(c.n)
			s.Check(t, dir, s.Act(disk, dir), c.String()+" short")
			continue
		}
		for _, e := range errs {
			dir := s.fresh(t)
			disk, _ := FailAt(c.n, e)
			s.Check(t, dir, s.Act(disk, dir), fmt.Sprintf("%v: %v", c, e))
			dir = s.fresh(t)
			disk, _ = FailFrom(c.n, e)
			s.Check(t, dir, s.Act(disk, dir), fmt.Sprintf("%v and all after it: %v", c, e))
		}
	}
}

type step struct {
	durable.Step
	n    int
	half bool
}

func (c step) String() string {
	half := ""
	if c.half {
		half = " by half"
	}
	return fmt.Sprintf("step %d, %s %s%s", c.n, c.Op, filepath.Base(c.Path), half)
}

// cases are Act's steps when everything goes well, which it must.
func (s Scenario) cases(t *testing.T) []step {
	t.Helper()
	dir := s.fresh(t)
	disk, steps := Record()
	err := s.Act(disk, dir)
	if err != nil {
		t.Fatalf("without any fault: %v", err)
	}
	s.Check(t, dir, nil, "no fault")
	var list []step
	for i, st := range steps.List() {
		list = append(list, step{Step: st, n: i})
		if st.Op == durable.OpWrite && st.Size > 1 {
			list = append(list, step{Step: st, n: i, half: true})
		}
	}
	if len(list) == 0 {
		t.Fatal("no step was taken on the disk given")
	}
	if s.Sample > 0 && s.Sample < len(list) {
		var some []step
		for i := range s.Sample {
			some = append(some, list[(2*i+1)*len(list)/(2*s.Sample)])
		}
		return some
	}
	return list
}

// fresh makes a directory with the old state, in memory where the system has
// such a place: what is tested is the order of the steps, and hundreds of real
// fsyncs would take seconds.
func (s Scenario) fresh(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "durabletest")
	if err == nil {
		t.Cleanup(func() { _ = os.RemoveAll(dir) })
	} else {
		dir = t.TempDir()
	}
	if s.Prepare != nil {
		s.Prepare(t, dir)
	}
	return dir
}

// die runs Act in a child that is killed at the step.
func (s Scenario) die(t *testing.T, c step, dir string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var pattern []string
	for part := range strings.SplitSeq(t.Name(), "/") {
		pattern = append(pattern, "^"+regexp.QuoteMeta(part)+"$")
	}
	when := "before"
	if c.half {
		when = "half"
	}
	// What the killed process leaves in its temporary directory goes with ours.
	tmp := t.TempDir()
	env := os.Environ()
	for _, name := range []string{"TMPDIR", "TMP", "TEMP"} {
		env = append(env, name+"="+tmp)
	}
	out, err := os.CreateTemp(tmp, "out")
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	p, err := os.StartProcess(self, []string{
		self, "-test.run=" + strings.Join(pattern, "/"), "-test.count=1", "-test.timeout=10m",
		childArg, strconv.Itoa(c.n), when, dir,
	}, &os.ProcAttr{Env: env, Files: []*os.File{nil, out, out}})
	if err != nil {
		t.Fatal(err)
	}
	state, err := p.Wait()
	if err != nil {
		t.Fatal(err)
	}
	if !killed(state) {
		text, _ := os.ReadFile(out.Name())
		t.Fatalf("%v: the process was not killed (%v): %s", c, state, text)
	}
}
