package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

func main() {
	var o options
	flag.DurationVar(&o.length, "for", time.Minute, "how long there are blows; the whole takes up to -rest longer")
	flag.DurationVar(&o.rest, "rest", 10*time.Minute, "how long the loop may take to come to its end after that")
	flag.IntVar(&o.items, "items", 0, "items (default: 100 a minute)")
	flag.IntVar(&o.workers, "workers", 8, "workers of the loop")
	flag.Uint64Var(&o.seed, "seed", 0, "of what happens (default: by chance)")
	flag.DurationVar(&o.every, "every", 700*time.Millisecond, "the mean time between two blows")
	flag.BoolVar(&o.keep, "keep", false, "leave the temporary directory, to look at it")
	flag.Parse()
	if err := chaos(o, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "chaos:", err)
		os.Exit(1)
	}
}

type options struct {
	length, rest, every time.Duration
	items, workers      int
	seed                uint64
	keep                bool
}

// world is one project with a loop that is being hit.
type world struct {
	opt            options
	dir, shop, bin string
	data           string // of the project
	env            []string
	rand           *rand.Rand
	items          []item
	log            *os.File

	loop  *exec.Cmd
	ended chan error // of the loop
	blows map[string]int
	ahead time.Duration // what the loop's clock is wrong by
}

func chaos(o options, out io.Writer) (err error) {
	if o.seed == 0 {
		o.seed = rand.Uint64()
	}
	if o.items == 0 {
		o.items = max(20, int(o.length.Minutes()*100))
	}
	dir, err := os.MkdirTemp("", "reprise-chaos-")
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "seed %d, %d items, %d workers, blows for %s; in %s\n", o.seed, o.items, o.workers, o.length, dir)
	w := &world{opt: o, dir: dir, rand: rand.New(rand.NewPCG(o.seed, 1)), blows: map[string]int{}}
	defer func() {
		switch left := w.killAll(); {
		case err == nil && left > 0:
			err = fmt.Errorf("%d processes were left", left)
		case err == nil && !o.keep:
			err = os.RemoveAll(dir)
		}
		if err != nil {
			err = fmt.Errorf("%w\nseed %d; look at %s", err, o.seed, dir)
		}
	}()
	if err := w.make(); err != nil {
		return err
	}
	began := time.Now()
	if err := w.hit(began.Add(o.length)); err != nil {
		return err
	}
	hit := time.Since(began)
	if err := w.finish(time.Now().Add(o.rest)); err != nil {
		return err
	}
	rep, err := w.judge()
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "blows for %s, over after %s\n%s", hit.Round(time.Second), time.Since(began).Round(time.Second), rep.text(w.blows))
	if len(rep.wrong) > 0 {
		return fmt.Errorf("%d things are wrong:\n  %s", len(rep.wrong), strings.Join(rep.wrong, "\n  "))
	}
	return nil
}

// make builds the programs and makes a project whose queue has the items.
func (w *world) make() error {
	w.bin, w.shop = filepath.Join(w.dir, "bin"), filepath.Join(w.dir, "shop")
	home := filepath.Join(w.dir, "home")
	for _, d := range []string{w.bin, w.shop, home} {
		if err := os.Mkdir(d, 0o700); err != nil {
			return err
		}
	}
	build := exec.Command("go", "build", "-o", w.bin+"/", "./cmd/reprise-hook", "./cmd/reprise-recall", "./cmd/reprise-supervise", "./script/chaos/reprise")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build (run this from the root of the repository): %w\n%s", err, out)
	}
	var err error
	if w.log, err = os.Create(filepath.Join(w.dir, "loop.log")); err != nil {
		return err
	}
	w.data = filepath.Join(w.dir, "data", "projects", "shop")
	w.env = []string{
		"HOME=" + home, "PATH=" + w.bin + ":" + os.Getenv("PATH"), "LANG=C.UTF-8", "NO_COLOR=1", "REPRISE_HOME=" + filepath.Join(w.dir, "data"),
		"GIT_AUTHOR_NAME=c", "GIT_AUTHOR_EMAIL=c@example.org", "GIT_COMMITTER_NAME=c", "GIT_COMMITTER_EMAIL=c@example.org",
	}
	for _, args := range [][]string{{"git", "init", "-q", "-b", "trunk"}, {"reprise", "init", "--yes", "--name", "shop"}, {"git", "add", "-A"}, {"git", "commit", "-q", "-m", "first"}} {
		if out, err := w.run(args...); err != nil {
			return fmt.Errorf("%s: %w\n%s", strings.Join(args, " "), err, out)
		}
	}
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

// command is a program in the project.
func (w *world) command(args ...string) *exec.Cmd {
	name := args[0]
	if name == "reprise" {
		name = filepath.Join(w.bin, name)
	}
	cmd := exec.Command(name, args[1:]...)
	cmd.Dir, cmd.Env = w.shop, w.env
	return cmd
}

func (w *world) run(args ...string) (string, error) {
	cmd := w.command(args...)
	if cmd.Err != nil {
		return "", cmd.Err
	}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// start begins the loop, whose clock may be wrong.
func (w *world) start() error {
	cmd := w.command("reprise", "loop", "run", "--agent-script", filepath.Join(w.dir, "steps.yaml"), "--workers", fmt.Sprint(w.opt.workers), "--until-empty",
		"--delay", "0s", "--timeout", "6s", "--on-interrupt", "skip", "--backoff-unit", "20ms", "--max-iterations", "100000")
	cmd.Env = append(cmd.Env[:len(cmd.Env):len(cmd.Env)], "REPRISE_CHAOS_CLOCK="+w.ahead.String())
	cmd.Stdout, cmd.Stderr = w.log, w.log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	w.loop, w.ended = cmd, ended
	w.blows["loop begun"]++
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
			if err != nil {
				return fmt.Errorf("the loop ended with %w: see %s", err, w.log.Name())
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
	switch {
	case n < 14:
		w.blows["loop killed"]++
		w.kill()
		return w.again()
	case n < 36:
		w.strike("supervisor killed", syscall.SIGKILL, one.supervisor)
	case n < 58:
		w.strike("agent killed", syscall.SIGKILL, one.agent)
	case n < 68:
		w.strike("supervisor and agent killed", syscall.SIGKILL, one.supervisor, one.agent)
	case n < 72:
		w.blows["everything killed"]++
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
		w.blows["somebody looked"]++
		out, err := w.run(args...)
		if err != nil {
			return fmt.Errorf("%s: %w\n%s", strings.Join(args, " "), err, out)
		}
	default:
		return w.resume()
	}
	return nil
}

// again begins the loop once more, after a while, and now and then with a clock that was
// set meanwhile.
func (w *world) again() error {
	time.Sleep(time.Duration(w.rand.Int64N(int64(1200 * time.Millisecond))))
	if w.rand.IntN(2) == 0 {
		// Forward by more than a lease, and back by a little: what is to wait until a time
		// waits longer by as much as the clock goes back.
		w.ahead += time.Duration(w.rand.Int64N(int64(110*time.Second))) - 20*time.Second
		w.blows["clock set"]++
	}
	return w.start()
}

func (w *world) strike(what string, sig syscall.Signal, pids ...int) {
	hit := false
	for _, pid := range pids {
		hit = pid > 1 && syscall.Kill(pid, sig) == nil || hit
	}
	if hit && what != "" {
		w.blows[what]++
	}
}

// stand lets a process stand still for a while.
func (w *world) stand(what string, pid int) error {
	if pid <= 1 || syscall.Kill(pid, syscall.SIGSTOP) != nil {
		return nil
	}
	w.blows[what]++
	time.Sleep(time.Duration(w.rand.Int64N(int64(3 * time.Second))))
	_ = syscall.Kill(pid, syscall.SIGCONT)
	return nil
}

// resume answers what the loop has set aside, and begins it where it does not run.
func (w *world) resume() error {
	if w.loop == nil {
		return w.unpark()
	}
	w.blows["a person answered"]++
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
			if out, err := w.run("reprise", "queue", "unpark", it.ID); err != nil {
				return fmt.Errorf("unpark %s: %w\n%s", it.ID, err, out)
			}
		}
	}
	return w.start()
}

// finish lets the loop come to its end, answering as often as it asks.
func (w *world) finish(until time.Time) error {
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
		ctx, cancel := context.WithDeadline(context.Background(), until)
		select {
		case err := <-w.ended:
			cancel()
			w.loop = nil
			if err != nil {
				return fmt.Errorf("the loop ended with %w: see %s", err, w.log.Name())
			}
		case <-ctx.Done():
			cancel()
			left, _ := w.left()
			return fmt.Errorf("%d items are neither done nor dead after %s of peace", left, w.opt.rest)
		}
	}
}
