package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// addItems puts the items into the queue.
func (w *world) addItems() error {
	if err := os.WriteFile(filepath.Join(w.dir, "steps.yaml"), []byte(steps), 0o600); err != nil {
		return err
	}
	w.items = someItems(w.rand, w.opt.items)
	var list bytes.Buffer
	enc := json.NewEncoder(&list)
	for _, it := range w.items {
		if err := enc.Encode(it); err != nil {
			return err
		}
	}
	if err := os.WriteFile(filepath.Join(w.dir, "items.jsonl"), list.Bytes(), 0o600); err != nil {
		return err
	}
	if out, err := w.run("reprise", "queue", "add", "--from", filepath.Join(w.dir, "items.jsonl")); err != nil {
		return fmt.Errorf("add the items: %w\n%s", err, out)
	}
	return nil
}

// start begins the loop, whose clock may be wrong.
func (w *world) start() error {
	cmd := w.command("reprise", "loop", "run", "--agent-script", filepath.Join(w.dir, "steps.yaml"), "--workers", fmt.Sprint(w.opt.workers), "--until-empty",
		"--delay", "0s", "--timeout", "6s", "--on-interrupt", "skip", "--backoff-unit", "20ms", "--max-iterations", "100000")
	cmd.Stdout, cmd.Stderr = w.log, w.log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	w.loop, w.ended, w.began = cmd, ended, time.Now()
	w.blows.add("loop begun", 1)
	return nil
}

// stands reports whether the loop ended by itself, and with what.
func (w *world) over() (bool, error) {
	select {
	case err := <-w.ended:
		w.loop = nil
		return true, err
	default:
		return false, nil
	}
}

// kill ends the loop at once.
func (w *world) kill() {
	if w.loop != nil {
		_ = w.loop.Process.Kill()
		<-w.ended
		w.loop = nil
	}
}

// hit deals blows until the time is over, or the loop has nothing left to do.
func (w *world) hit(until time.Time) error {
	if err := w.start(); err != nil {
		return err
	}
	for time.Now().Before(until) {
		time.Sleep(time.Duration(w.rand.ExpFloat64() * float64(w.opt.every)))
		if over, err := w.over(); over {
			if err != nil && !w.excused(w.began) {
				return fmt.Errorf("the loop ended with %w: see %s", err, w.log.Name())
			}
			if err != nil {
				w.blows.add("loop gave up", 1)
			}
			left, err := w.left()
			if err != nil {
				return err
			}
			if left == 0 {
				return nil
			}
			if err := w.resume(); err != nil {
				return err
			}
		}
		if err := w.blow(); err != nil {
			return err
		}
	}
	return nil
}

// blow is one thing that happens.
func (w *world) blow() error {
	n := w.rand.IntN(100)
	live, err := w.live()
	if err != nil {
		return err
	}
	var one process
	if len(live) > 0 {
		one = live[w.rand.IntN(len(live))]
	}
	kill, stop := w.opt.faults["kill"], w.opt.faults["stop"]
	switch {
	case n < 72 && !kill, n >= 72 && n < 86 && !stop:
	case n < 14:
		w.blows.add("loop killed", 1)
		w.kill()
		return w.again()
	case n < 36:
		w.strike("supervisor killed", syscall.SIGKILL, one.supervisor)
	case n < 58:
		w.strike("agent killed", syscall.SIGKILL, one.agent)
	case n < 68:
		w.strike("supervisor and agent killed", syscall.SIGKILL, one.supervisor, one.agent)
	case n < 72:
		w.blows.add("everything killed", 1)
		w.kill()
		for _, p := range live {
			w.strike("", syscall.SIGKILL, p.supervisor, p.agent)
		}
		return w.again()
	case n < 78:
		return w.stand("supervisor stood still", one.supervisor)
	case n < 82:
		return w.stand("agent stood still", one.agent)
	case n < 86 && w.loop != nil:
		return w.stand("loop stood still", w.loop.Process.Pid)
	case n < 93:
		looks := [][]string{{"runs", "list"}, {"queue", "list", "--all"}, {"loop", "status"}, {"loop", "report"}, {"queue", "check", "--repair"}, {"workspace", "list"}}
		args := append([]string{"reprise"}, looks[w.rand.IntN(len(looks))]...)
		w.blows.add("somebody looked", 1)
		_, err := w.must(args...)
		return err
	default:
		return w.resume()
	}
	return nil
}

// again begins the loop once more, after a while, and now and then with a clock that was
// set meanwhile.
func (w *world) again() error {
	time.Sleep(time.Duration(w.rand.Int64N(int64(1200 * time.Millisecond))))
	if w.rand.IntN(2) == 0 && w.opt.faults["clock"] {
		// Forward by more than a lease, and back by a little: what is to wait until a time
		// waits longer by as much as the clock goes back.
		w.ahead.Add(w.rand.Int64N(int64(110*time.Second)) - int64(20*time.Second))
		w.blows.add("clock set", 1)
	}
	return w.start()
}

func (w *world) strike(what string, sig syscall.Signal, pids ...int) {
	hit := false
	for _, pid := range pids {
		hit = pid > 1 && syscall.Kill(pid, sig) == nil || hit
	}
	if hit && what != "" {
		w.blows.add(what, 1)
	}
}

// stand lets a process stand still for a while.
func (w *world) stand(what string, pid int) error {
	if pid <= 1 || syscall.Kill(pid, syscall.SIGSTOP) != nil {
		return nil
	}
	w.blows.add(what, 1)
	time.Sleep(time.Duration(w.rand.Int64N(int64(3 * time.Second))))
	_ = syscall.Kill(pid, syscall.SIGCONT)
	return nil
}

// resume answers what the loop has set aside, and begins it where it does not run.
func (w *world) resume() error {
	if w.loop == nil {
		return w.unpark()
	}
	w.blows.add("a person answered", 1)
	out, err := w.run("reprise", "loop", "resume", "--answer", "go on")
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return fmt.Errorf("loop resume: %w\n%s", err, out)
	}
	return nil // it may say that there was nothing to answer
}

// unpark gives back what was set aside by a loop that has ended, and begins another.
func (w *world) unpark() error {
	items, err := w.list()
	if err != nil {
		return err
	}
	for _, it := range items {
		if it.Parked {
			if _, err := w.must("reprise", "queue", "unpark", it.ID); err != nil {
				return err
			}
		}
	}
	return w.start()
}

// must runs a command, again once the disk is well where that was not; otherwise it has
// to go well.
func (w *world) must(args ...string) (string, error) {
	for {
		began := time.Now()
		out, err := w.run(args...)
		if err == nil {
			return out, nil
		}
		if !w.excused(began) {
			return out, fmt.Errorf("%s: %w\n%s", strings.Join(args, " "), err, out)
		}
		if problem := plain(out); problem != "" {
			return out, fmt.Errorf("%s: %w: %s\n%s", strings.Join(args, " "), err, problem, out)
		}
		w.blows.add("refused while the disk was ill", 1)
		time.Sleep(200 * time.Millisecond)
	}
}

// finish lets the loop come to its end, answering as often as it asks.
func (w *world) finish(ctx context.Context, until time.Time) error {
	if !w.opt.parts["loop"] {
		return nil
	}
	rounds := 0
	for {
		if w.loop == nil {
			left, err := w.left()
			if err != nil || left == 0 {
				return err
			}
			if rounds++; rounds > 50 {
				return fmt.Errorf("%d items are neither done nor dead after %d loops", left, rounds)
			}
			if err := w.unpark(); err != nil {
				return err
			}
		}
		ctx, cancel := context.WithDeadline(ctx, until)
		select {
		case err := <-w.ended:
			cancel()
			w.loop = nil
			if err != nil && !w.excused(w.began) {
				return fmt.Errorf("the loop ended with %w: see %s", err, w.log.Name())
			}
		case <-ctx.Done():
			cancel()
			left, _ := w.left()
			return fmt.Errorf("%d items are neither done nor dead after %s of peace", left, w.opt.rest)
		}
	}
}
