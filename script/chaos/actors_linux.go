package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// patience is how long anything may take before it counts as hanging. The longest is a
// sync of the state whose remote does not answer: git's fetch and its push are given two
// minutes each, and processes stand still beside that.
const patience = 5 * time.Minute

// promise is something that was acknowledged, and so has to be there at the end.
type promise struct {
	of   string // what keeps it: an invariant's name
	mark string // a text that nothing else has
	soft bool   // the disk was read-only or files could not be opened meanwhile
}

// actor uses one part of reprise, one call after the other.
type actor struct {
	w    *world
	name string
	rand *rand.Rand
	env  []string // beside the world's
	step func(context.Context, *actor) error
	rest func(*actor) // at the end

	n     int // of the next mark
	mu    sync.Mutex
	kept  []promise
	wrong []string
}

func (w *world) actor(name string, step func(context.Context, *actor) error) *actor {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name)) // it never fails
	a := &actor{w: w, name: name, step: step, rand: rand.New(rand.NewPCG(w.opt.seed, h.Sum64()))}
	w.actors = append(w.actors, a)
	return a
}

// makeActors makes whoever uses the parts that were chosen.
func (w *world) makeActors() error {
	on := w.opt.parts
	if on["hooks"] {
		if err := w.makeHooks(); err != nil {
			return err
		}
	}
	if on["mcp"] {
		w.makeMCP()
	}
	if on["web"] {
		w.makeWeb()
	}
	if on["memory"] {
		w.makeMemory()
	}
	if on["state"] {
		return w.makeState()
	}
	return nil
}

// work makes steps until ctx ends.
func (a *actor) work(ctx context.Context) {
	if a.rest != nil {
		defer a.rest(a)
	}
	for wait(ctx, time.Duration((0.2+a.rand.ExpFloat64())*float64(150*time.Millisecond))) {
		if err := a.step(ctx, a); err != nil {
			a.bad("%v", err)
		}
	}
}

// mark is a word that occurs nowhere else.
func (a *actor) mark() string {
	a.n++
	return fmt.Sprintf("mark%s%05dz", a.name, a.n)
}

// keep notes that something was acknowledged.
func (a *actor) keep(of, mark string, soft bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.kept = append(a.kept, promise{of, mark, soft})
}

func (a *actor) bad(format string, args ...any) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.wrong = append(a.wrong, a.name+": "+fmt.Sprintf(format, args...))
}

// outcome is how a program ended.
type outcome struct {
	out, err string
	code     int    // -1 where a signal ended it
	hit      string // what was done to it: killed, stood still, few files
	began    time.Time
}

// done reports whether the program says that it did what it was asked.
func (o outcome) done() bool { return o.code == 0 && o.hit != "killed" }

// call runs a program of reprise, to which something may happen. Where it refuses, it has
// to say so plainly.
func (a *actor) call(ctx context.Context, stdin []byte, args ...string) outcome {
	w := a.w
	o := outcome{began: time.Now()}
	kill, stop, few := a.rand.IntN(100) < 8, a.rand.IntN(100) < 4, a.rand.IntN(100) < 4
	after, still, files := time.Duration(a.rand.Int64N(int64(80*time.Millisecond))), time.Duration(a.rand.Int64N(int64(1500*time.Millisecond))), 4+a.rand.IntN(16)
	cmd := w.command(args...)
	if few && w.opt.faults["fds"] {
		o.hit = "few files"
		cmd.Args = append([]string{"sh", "-c", fmt.Sprintf(`ulimit -n %d; exec "$0" "$@"`, files), cmd.Path}, cmd.Args[1:]...)
		cmd.Path = "/bin/sh"
	}
	cmd.Env = append(cmd.Env, a.env...)
	var out, said bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(stdin), &out, &said
	cmd.WaitDelay = patience // what it leaves running may hold its output
	if err := cmd.Start(); err != nil {
		a.bad("%s: %v", strings.Join(args, " "), err)
		o.code = 1
		return o
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	o.hit = cmpOr(a.strike(ctx, cmd.Process.Pid, ended, kill, stop, after, still), o.hit)
	var err error
	select {
	case err = <-ended:
	case <-time.After(patience + 10*time.Second):
		a.bad("%s: has not ended after %s", strings.Join(args, " "), patience)
		_ = cmd.Process.Kill()
		err = <-ended
	}
	o.out, o.err = out.String(), said.String()
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		o.code = exit.ExitCode()
	case err != nil:
		o.code = 1
	}
	a.note(args, o)
	return o
}

func cmpOr(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// strike lets a process stand still for a while, or kills it, and says what it did.
func (a *actor) strike(ctx context.Context, pid int, ended chan error, kill, stop bool, after, still time.Duration) string {
	kill, stop = kill && a.w.opt.faults["kill"], stop && a.w.opt.faults["stop"]
	if !kill && !stop {
		return ""
	}
	t := time.NewTimer(after)
	defer t.Stop()
	select {
	case err := <-ended:
		ended <- err
		return ""
	case <-t.C:
	}
	if kill {
		if syscall.Kill(pid, syscall.SIGKILL) != nil {
			return ""
		}
		a.w.blows.add(a.name+" killed", 1)
		return "killed"
	}
	if syscall.Kill(pid, syscall.SIGSTOP) != nil {
		return ""
	}
	a.w.blows.add(a.name+" stood still", 1)
	wait(ctx, still)
	_ = syscall.Kill(pid, syscall.SIGCONT)
	return "stood still"
}

// note counts a call, and looks at what was said where it was refused.
func (a *actor) note(args []string, o outcome) {
	switch {
	case o.hit == "killed":
	case o.code == 0:
		a.w.blows.add(a.name+" calls done", 1)
	default:
		a.w.blows.add(a.name+" calls refused", 1)
		if o.code == 3 && o.err != "" {
			return // there is nothing of the name, or with the words
		}
		if a.w.opt.faults["fds"] && starved(o.err) {
			a.w.blows.add("ended by the language's runtime, which had no file left to begin with", 1)
			return
		}
		if strings.Contains(o.err, advice) && a.w.excused(a.w.start0) {
			a.w.advised.Store(true)
			return
		}
		if problem := plain(o.err); problem != "" {
			a.bad("%s: refused with %d, and %s: %q", strings.Join(args, " "), o.code, problem, o.err)
		} else if o.hit == "" && !a.w.excused(o.began) && o.code != 4 && o.code != 5 && !a.w.spells.since(o.began, "network", "slow") {
			a.bad("%s: refused with %d although nothing was wrong: %q", strings.Join(args, " "), o.code, o.err)
		}
	}
}

// advice is what the state says where something was left half made, which a person is to
// mend by a command.
const advice = "state fsck --repair"

// starved reports whether it is Go's runtime that speaks, which opens files of its own and
// ends the program where it cannot, mostly before any line of ours.
func starved(said string) bool {
	return strings.Contains(said, "runtime: epollcreate failed with 24\n") || strings.Contains(said, "runtime: eventfd failed with 24\n")
}

// plain says what is amiss with an error as a person reads it; "" is nothing.
func plain(said string) string {
	switch {
	case strings.TrimSpace(said) == "":
		return "says nothing"
	case strings.Contains(said, "panic:") || strings.Contains(said, "goroutine ") || strings.Contains(said, "fatal error:"):
		return "shows its insides"
	case !strings.Contains(said, "reprise"):
		return "does not say who speaks"
	}
	return ""
}

// board is a page that several write on at the same time, each with the version that they
// have read.
type board struct {
	mu sync.Mutex
	n  int // lines that were acknowledged
}

// page is the name of the page that is written on now: a new one after a hundred lines, so
// that none becomes too long.
func (b *board) page() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return fmt.Sprintf("reference-board-%d", b.n/60)
}

func (b *board) added() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.n++
}

// promises are those of all actors that an invariant is to keep.
func (w *world) promises(of string) []promise {
	var out []promise
	for _, a := range w.actors {
		for _, p := range a.kept {
			if p.of == of {
				out = append(out, p)
			}
		}
	}
	return out
}

// place is a directory of an agent's own, with the variables that name both.
func (w *world) place(agent string) []string {
	dir := filepath.Join(w.dir, "places", agent)
	_ = os.MkdirAll(dir, 0o700) // what needs it says so
	return []string{"REPRISE_AGENT=" + agent, "REPRISE_AGENT_DIR=" + filepath.Join(dir, ".reprise", "agent")}
}

// oneOf is one of the things that can be done, by chance.
func oneOf[T any](a *actor, all ...T) T { return all[a.rand.IntN(len(all))] }

// with is the arguments of a command.
func with(args ...string) []string { return slices.Concat([]string{"reprise"}, args) }
