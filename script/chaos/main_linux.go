package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// parts are what is used while it is hit, in the order of the report.
var parts = []string{"loop", "hooks", "mcp", "web", "memory", "state"}

// faults are what is done to it.
var faults = []string{"kill", "stop", "clock", "full", "slow", "readonly", "network", "fds"}

func main() {
	var o options
	var only, some string
	flag.DurationVar(&o.length, "for", time.Minute, "how long there are blows; the whole takes up to -rest longer")
	flag.DurationVar(&o.rest, "rest", 10*time.Minute, "how long it may take to come to its end after that")
	flag.IntVar(&o.items, "items", 0, "items (default: 100 a minute)")
	flag.IntVar(&o.workers, "workers", 8, "workers of the loop")
	flag.Uint64Var(&o.seed, "seed", 0, "of what happens (default: by chance)")
	flag.DurationVar(&o.every, "every", 700*time.Millisecond, "the mean time between two blows to the loop")
	flag.StringVar(&only, "only", "", "use these parts alone, with commas between: "+strings.Join(parts, ", "))
	flag.StringVar(&some, "faults", "", "do this alone, with commas between, or none: "+strings.Join(faults, ", "))
	flag.BoolVar(&o.keep, "keep", false, "leave the temporary directory, to look at it")
	flag.Parse()
	var err error
	if o.parts, err = chosen("-only", only, parts); err == nil {
		o.faults, err = chosen("-faults", some, faults)
	}
	if err == nil {
		err = chaos(o, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "chaos:", err)
		os.Exit(1)
	}
}

// chosen are the names in a list with commas: all of them where it is empty.
func chosen(flag, list string, all []string) (map[string]bool, error) {
	out := map[string]bool{}
	names := strings.Split(list, ",")
	switch list {
	case "":
		names = all
	case "none":
		names = nil
	}
	for _, n := range names {
		if n = strings.TrimSpace(n); !slices.Contains(all, n) {
			return nil, fmt.Errorf("%s %s: there is no %q; there are %s", flag, list, n, strings.Join(all, ", "))
		}
		out[n] = true
	}
	return out, nil
}

type options struct {
	length, rest, every time.Duration
	items, workers      int
	seed                uint64
	keep                bool
	parts, faults       map[string]bool
}

// world is one project whose programs are being hit.
type world struct {
	opt            options
	dir, shop, bin string
	home           string // REPRISE_HOME
	data           string // of the project
	remote         string // of the state
	env            []string
	rand           *rand.Rand // of the items and of the blows to the loop
	items          []item
	log            *os.File

	loop  *exec.Cmd
	ended chan error // of the loop
	began time.Time  // when the loop that there is was begun

	start0  time.Time   // when all began
	advised atomic.Bool // somebody was told to mend the state by a command

	blows  counts
	ahead  atomic.Int64 // what the clocks are wrong by
	spells spells
	disk   disk
	net    network
	actors []*actor
	board  board
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
	w := &world{opt: o, dir: dir, start0: time.Now(), rand: rand.New(rand.NewPCG(o.seed, 1))}
	fmt.Fprintf(out, "seed %d, %d items, %d workers, blows for %s to %s; in %s\n", o.seed, o.items, o.workers, o.length, strings.Join(w.parts(), ", "), dir)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	defer func() {
		w.net.close()
		left := w.killAll()
		if e := w.disk.close(); err == nil {
			err = e
		}
		switch {
		case err == nil && left > 0:
			err = fmt.Errorf("%d processes were left", left)
		case err == nil && !o.keep:
			err = os.RemoveAll(dir)
		}
		if err != nil {
			err = fmt.Errorf("%w\nseed %d; look at %s%s", err, o.seed, dir, w.disk.look())
		}
	}()
	if err := w.make(); err != nil {
		return err
	}
	for _, s := range append(slices.Clone(w.disk.missing), w.net.missing...) {
		fmt.Fprintln(out, "left out:", s)
	}
	began := time.Now()
	if err := w.hitAll(ctx, began.Add(o.length)); err != nil {
		return err
	}
	hit := time.Since(began)
	if err := w.finish(ctx, time.Now().Add(o.rest)); err != nil {
		return err
	}
	rep, err := w.judge()
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "blows for %s, over after %s\n%s", hit.Round(time.Second), time.Since(began).Round(time.Second), rep.text(w))
	if wrong := rep.wrong(); len(wrong) > 0 {
		return fmt.Errorf("%d things are wrong:\n  %s", len(wrong), strings.Join(wrong, "\n  "))
	}
	return nil
}

func (w *world) parts() []string {
	return slices.DeleteFunc(slices.Clone(parts), func(p string) bool { return !w.opt.parts[p] })
}

// hitAll has all parts used and hit until that time, and comes back when everything but
// the loop has ended and nothing is wrong with the machine any more.
func (w *world) hitAll(ctx context.Context, until time.Time) error {
	ctx, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	var all sync.WaitGroup
	for _, a := range w.actors {
		all.Go(func() { a.work(ctx) })
	}
	troubles := make(chan error, 1)
	go func() { troubles <- w.trouble(ctx) }()
	var err error
	if w.opt.parts["loop"] {
		err = w.hit(until)
	} else {
		<-ctx.Done()
	}
	<-ctx.Done() // the loop may have had nothing left to do
	all.Wait()
	if e := <-troubles; err == nil {
		err = e
	}
	if cause := context.Cause(ctx); err == nil && cause != context.DeadlineExceeded {
		err = cause
	}
	return err
}

// make builds the programs and makes a project whose queue has the items.
func (w *world) make() error {
	w.bin, w.shop = filepath.Join(w.dir, "bin"), filepath.Join(w.dir, "shop")
	home, own := filepath.Join(w.dir, "home"), filepath.Join(w.dir, "disk")
	for _, d := range []string{w.bin, w.shop, home, own} {
		if err := os.Mkdir(d, 0o700); err != nil {
			return err
		}
	}
	build := exec.Command("go", "build", "-o", w.bin+"/", "./cmd/reprise-recall", "./cmd/reprise-supervise", "./script/chaos/reprise", "./script/chaos/reprise-hook")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build (run this from the root of the repository): %w\n%s", err, out)
	}
	var err error
	if w.log, err = os.Create(filepath.Join(w.dir, "loop.log")); err != nil {
		return err
	}
	if f := w.opt.faults; f["full"] || f["slow"] || f["readonly"] {
		w.disk.open(own, filepath.Join(w.dir, "image"))
	}
	w.home = filepath.Join(own, "data")
	if err := os.Mkdir(w.home, 0o700); err != nil {
		return err
	}
	w.data = filepath.Join(w.home, "projects", "shop")
	w.env = []string{
		"HOME=" + home, "PATH=" + w.bin + ":" + os.Getenv("PATH"), "LANG=C.UTF-8", "NO_COLOR=1", "REPRISE_HOME=" + w.home,
		"GIT_AUTHOR_NAME=c", "GIT_AUTHOR_EMAIL=c@example.org", "GIT_COMMITTER_NAME=c", "GIT_COMMITTER_EMAIL=c@example.org",
	}
	for _, args := range [][]string{{"git", "init", "-q", "-b", "trunk"}, {"reprise", "init", "--yes", "--name", "shop"}, {"git", "add", "-A"}, {"git", "commit", "-q", "-m", "first"}, {"reprise", "memory", "init"}} {
		if out, err := w.run(args...); err != nil {
			return fmt.Errorf("%s: %w\n%s", strings.Join(args, " "), err, out)
		}
	}
	if w.opt.parts["loop"] {
		if err := w.addItems(); err != nil {
			return err
		}
	}
	return w.makeActors()
}

// command is a program in the project, with the clock that there is.
func (w *world) command(args ...string) *exec.Cmd {
	name := args[0]
	if strings.HasPrefix(name, "reprise") {
		name = filepath.Join(w.bin, name)
	}
	cmd := exec.Command(name, args[1:]...)
	cmd.Dir, cmd.Env = w.shop, append(slices.Clone(w.env), "REPRISE_CHAOS_CLOCK="+time.Duration(w.ahead.Load()).String())
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

// counts are how often things were, safe for several goroutines.
type counts struct {
	mu sync.Mutex
	of map[string]int
}

func (c *counts) add(what string, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of == nil {
		c.of = map[string]int{}
	}
	c.of[what] += n
}

// String is "what n, what n", by name.
func (c *counts) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var list []string
	for _, what := range slices.Sorted(maps.Keys(c.of)) {
		list = append(list, fmt.Sprintf("%s %d", what, c.of[what]))
	}
	return strings.Join(list, ", ")
}
