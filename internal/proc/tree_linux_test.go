package proc

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// nine is a shell tree of nine processes that ignore TERM: plain children, one
// in its own session, one forked twice, one forked twice into its own session.
// Each holds standard output and says "up".
const nine = `
trap '' TERM HUP
leaf='trap "" TERM HUP; echo up; exec sleep 1000'
sh -c "$leaf" &
sh -c "$leaf" &
setsid sh -c "$leaf" &
setsid sh -c "sh -c '$leaf' & $leaf" &
(sh -c "$leaf" &)
(setsid sh -c "$leaf" &)
sh -c "(setsid sh -c '$leaf' &) ; $leaf" &
echo up
wait
`

// wiped is a process that also starts without the marker: out of reach of all
// but a subreaper.
const wiped = `(setsid env -i PATH="$PATH" sh -c 'trap "" TERM HUP; echo up; exec sleep 1000' &)
`

// crowd is a started tree. Its output pipe is held by every process of it, so
// the end of file there proves, without asking the code under test, that none
// is left.
type crowd struct {
	out *bufio.Reader
	r   *os.File
}

func newPipe(t *testing.T) (crowd, *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return crowd{bufio.NewReader(r), r}, w
}

// up waits until n processes said they run.
func (c crowd) up(t *testing.T, n int) {
	t.Helper()
	if err := c.r.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	for i := range n {
		if line, err := c.out.ReadString('\n'); line != "up\n" {
			t.Fatalf("%d of %d processes are up; then %q, %v", i, n, line, err)
		}
	}
}

// gone fails if any process still holds the pipe.
func (c crowd) gone(t *testing.T) {
	t.Helper()
	if err := c.r.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(c.out)
	if err != nil {
		t.Errorf("a process is left: %v (said %q)", err, rest)
	}
}

func newMarker(t *testing.T) string {
	return fmt.Sprintf("run-%s-%d-%d", t.Name(), os.Getpid(), time.Now().UnixNano())
}

// swept makes sure that a failing test leaves nothing behind.
func swept(t *testing.T, marker string) {
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if _, err := StopTree(ctx, ID{}, marker, 0); err != nil {
			t.Errorf("clean up: %v", err)
		}
	})
}

func deadline(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func startSh(t *testing.T, script, marker string, out *os.File, change func(*Cmd)) *Process {
	t.Helper()
	c := Cmd{Path: "/bin/sh", Args: []string{"-c", script}, Env: []string{"PATH=" + os.Getenv("PATH")}, Stdout: out, NewSession: true}
	if marker != "" {
		c.Env = append(c.Env, RunIDVar+"="+marker)
		swept(t, marker)
	}
	if change != nil {
		change(&c)
	}
	p, err := Start(c)
	if err != nil {
		t.Fatal(err)
	}
	if out != nil {
		out.Close()
	}
	return p
}

func TestStopTreeLeavesNone(t *testing.T) {
	marker := newMarker(t)
	c, w := newPipe(t)
	p := startSh(t, nine, marker, w, nil)
	c.up(t, 10)
	st, err := StopTree(deadline(t), p.ID(), marker, 20*time.Millisecond)
	if err != nil || st.Left != 0 {
		t.Errorf("StopTree: %+v, %v", st, err)
	}
	// Ten say "up"; the shells that wait for one of them are processes too.
	if st.Asked < 10 || st.Killed < 10 {
		t.Errorf("StopTree: %+v, want 10 asked and killed at least", st)
	}
	c.gone(t)
	if e, err := p.Wait(); err != nil || e.Signal != "SIGKILL" || e.Code != 137 {
		t.Errorf("root ended with %+v, %v", e, err)
	}
}

// Without the marker the tree is found by group, session and parents alone,
// which misses what was forked twice into a session of its own.
func TestStopTreeByKinshipAlone(t *testing.T) {
	c, w := newPipe(t)
	p := startSh(t, `leaf='trap "" TERM; echo up; exec sleep 1000'
		sh -c "$leaf" & setsid sh -c "$leaf" & (sh -c "$leaf" &)
		echo up; wait`, "", w, nil)
	c.up(t, 4)
	if st, err := StopTree(deadline(t), p.ID(), "", 0); err != nil || st.Left != 0 || st.Asked != 0 {
		t.Errorf("StopTree: %+v, %v", st, err)
	}
	c.gone(t)
}

func TestStopTreeIsPoliteFirst(t *testing.T) {
	marker := newMarker(t)
	c, w := newPipe(t)
	p := startSh(t, `trap 'echo bye; exit 3' TERM; echo up; while :; do read x <&3; done`, marker, w, func(c *Cmd) {
		r, w, err := os.Pipe() // something to block on without a child
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { r.Close(); w.Close() })
		c.ExtraFiles = []*os.File{r}
	})
	c.up(t, 1)
	st, err := StopTree(deadline(t), p.ID(), marker, 10*time.Second)
	if err != nil || st != (Stopped{Asked: 1}) {
		t.Errorf("StopTree: %+v, %v", st, err)
	}
	if e, err := p.Wait(); err != nil || e.Code != 3 || e.Signal != "" {
		t.Errorf("ended with %+v, %v", e, err)
	}
	if line, _ := c.out.ReadString('\n'); line != "bye\n" {
		t.Errorf("said %q, want bye", line)
	}
}

func TestStopTreeOfNothing(t *testing.T) {
	p := startSh(t, "exit 0", "", nil, nil)
	if _, err := p.Wait(); err != nil {
		t.Fatal(err)
	}
	for name, root := range map[string]ID{"ended": p.ID(), "zero": {}} {
		if st, err := StopTree(deadline(t), root, newMarker(t), time.Hour); err != nil || st != (Stopped{}) {
			t.Errorf("%s: %+v, %v", name, st, err)
		}
	}
}

// When ctx ends in the grace time, everything is killed all the same.
func TestStopTreeKillsWhenContextEnds(t *testing.T) {
	marker := newMarker(t)
	c, w := newPipe(t)
	p := startSh(t, nine, marker, w, nil)
	c.up(t, 10)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	st, err := StopTree(ctx, p.ID(), marker, time.Hour)
	if err != nil && !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("StopTree: %+v, %v", st, err)
	}
	c.gone(t)
}

// A process that forks a new session and ends, over and over, is a moving
// target.
func TestStopTreeCatchesOneThatKeepsForking(t *testing.T) {
	marker := newMarker(t)
	c, w := newPipe(t)
	script := t.TempDir() + "/comet"
	if err := os.WriteFile(script, []byte("setsid sh "+script+" & \nexit 0\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := startSh(t, "echo up; exec sh "+script, marker, w, nil)
	c.up(t, 1)
	st, err := StopTree(deadline(t), p.ID(), marker, 0)
	if err != nil || st.Left != 0 {
		t.Errorf("StopTree: %+v, %v", st, err)
	}
	c.gone(t)
}

// supervisor runs partSupervisor with a script.
func supervisor(t *testing.T, script, marker string, ready *os.File) (p *Process, in io.Writer, out *bufio.Reader, root ID) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	inR, inW, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	outR, outW, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { inW.Close(); outR.Close() })
	swept(t, marker)
	p, err = Start(Cmd{
		Path: self, Args: []string{script, marker}, Env: []string{partVar + "=supervisor", "PATH=" + os.Getenv("PATH")},
		Stdin: inR, Stdout: outW, Stderr: os.Stderr, ExtraFiles: []*os.File{ready}, NewSession: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	_, _, _ = inR.Close(), outW.Close(), ready.Close()
	out = bufio.NewReader(outR)
	line, err := out.ReadString('\n')
	if err != nil {
		t.Fatalf("supervisor: %v", err)
	}
	if err := json.Unmarshal([]byte(strings.TrimPrefix(line, "root ")), &root); err != nil {
		t.Fatalf("supervisor said %q: %v", line, err)
	}
	return p, inW, out, root
}

// A subreaper leaves none, not even what wiped its environment, left its
// session and lost its parent; it collects the orphans and still learns how
// its own child ended.
func TestSubreaperLeavesNone(t *testing.T) {
	marker := newMarker(t)
	c, w := newPipe(t)
	p, in, out, root := supervisor(t, wiped+wiped+nine, marker, w)
	c.up(t, 12)
	if !root.Alive() {
		t.Error("root is not alive")
	}
	if _, err := io.WriteString(in, "stop\n"); err != nil {
		t.Fatal(err)
	}
	line, err := out.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{" Left:0}", "err=<nil>", "Code:137 Signal:SIGKILL", "werr=<nil>", "children=0 "} {
		if !strings.Contains(line, want) {
			t.Errorf("supervisor said %q, lacks %q", line, want)
		}
	}
	c.gone(t)
	if e, err := p.Wait(); err != nil || e.Code != 0 {
		t.Errorf("supervisor ended with %+v, %v", e, err)
	}
}

// The supervisor and its child are killed with kill -9; the next program that
// comes along finds what is left by the marker alone.
func TestSweepAfterSupervisorWasKilled(t *testing.T) {
	marker := newMarker(t)
	c, w := newPipe(t)
	p, _, _, root := supervisor(t, nine, marker, w)
	c.up(t, 10)
	for _, id := range []ID{p.ID(), root} {
		if err := id.Signal(os.Kill); err != nil {
			t.Fatal(err)
		}
	}
	if e, err := p.Wait(); err != nil || e.Signal != "SIGKILL" {
		t.Fatalf("supervisor ended with %+v, %v", e, err)
	}
	ids, err := Sweep(marker)
	if err != nil || len(ids) < 9 {
		t.Errorf("Sweep found %d, %v; want 9 at least", len(ids), err)
	}
	all, err := Marked()
	if err != nil || len(all[marker]) < 9 {
		t.Errorf("Marked found %d, %v; want 9 at least", len(all[marker]), err)
	}
	if st, err := StopTree(deadline(t), ID{}, marker, 0); err != nil || st.Left != 0 || st.Killed < 9 {
		t.Errorf("StopTree: %+v, %v", st, err)
	}
	c.gone(t)
	if ids, err := Sweep(marker); err != nil || len(ids) != 0 {
		t.Errorf("Sweep afterwards: %v, %v", ids, err)
	}
}

// A process that has the marker's text somewhere, but not as exactly this
// variable's value, is a stranger.
func TestStrangersAreLeftAlone(t *testing.T) {
	marker := newMarker(t)
	for name, env := range map[string]string{
		"longer value":       RunIDVar + "=" + marker + "2",
		"shorter value":      RunIDVar + "=" + marker[:len(marker)-1],
		"longer name":        "X_" + RunIDVar + "=" + marker,
		"in another's value": "NOTE=x " + RunIDVar + "=" + marker,
		"after a newline":    "NOTE=x\n" + RunIDVar + "=" + marker,
		"empty value":        RunIDVar + "=",
		"other case":         strings.ToLower(RunIDVar) + "=" + marker,
	} {
		t.Run(name, func(t *testing.T) {
			c, w := newPipe(t)
			p := startSh(t, "echo up; exec sleep 1000 # "+RunIDVar+"="+marker, "", w, func(c *Cmd) { c.Env = append(c.Env, env) })
			t.Cleanup(func() { _ = p.ID().Signal(os.Kill); <-p.Done() })
			c.up(t, 1)
			if ids, err := Sweep(marker); err != nil || len(ids) != 0 {
				t.Errorf("Sweep: %v, %v", ids, err)
			}
			if st, err := StopTree(deadline(t), ID{}, marker, time.Millisecond); err != nil || st != (Stopped{}) {
				t.Errorf("StopTree: %+v, %v", st, err)
			}
			if !p.ID().Alive() {
				t.Error("the stranger was ended")
			}
		})
	}
}

// A number that belongs to another process by now is never signalled: not as a
// process, not as the root of a tree.
func TestReusedPIDIsLeftAlone(t *testing.T) {
	c, w := newPipe(t)
	p := startSh(t, "echo up; exec sleep 1000", "", w, nil)
	t.Cleanup(func() { _ = p.ID().Signal(os.Kill); <-p.Done() })
	c.up(t, 1)
	earlier := p.ID()
	earlier.Start--
	otherBoot := p.ID()
	otherBoot.Boot = "another"
	for name, id := range map[string]ID{"earlier process": earlier, "earlier boot": otherBoot, "nobody": {PID: 1 << 30}, "zero": {}, "negative": {PID: -p.ID().PID, Start: p.ID().Start, Boot: p.ID().Boot}} {
		if id.Alive() {
			t.Errorf("%s: alive", name)
		}
		if err := id.Signal(os.Kill); !errors.Is(err, ErrGone) {
			t.Errorf("%s: Signal: %v, want ErrGone", name, err)
		}
		if st, err := StopTree(deadline(t), id, "", 0); err != nil || st != (Stopped{}) {
			t.Errorf("%s: StopTree: %+v, %v", name, st, err)
		}
		if id.Boot == p.ID().Boot && id.PID > 0 {
			if err := signalChecked(id, syscall.SIGKILL); !errors.Is(err, ErrGone) {
				t.Errorf("%s: without pidfd: %v, want ErrGone", name, err)
			}
		}
		if !p.ID().Alive() {
			t.Fatalf("%s: the wrong process was ended", name)
		}
	}
	if err := p.ID().Signal(syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	if e, _ := p.Wait(); e.Signal != "SIGTERM" {
		t.Errorf("ended with %+v", e)
	}
	if err := p.ID().Signal(syscall.SIGTERM); !errors.Is(err, ErrGone) {
		t.Errorf("signal after the end: %v", err)
	}
}

func TestZombieIsGone(t *testing.T) {
	// A child started past this package is not collected until asked for.
	osp, err := os.StartProcess("/bin/sh", []string{"sh", "-c", "read x"}, &os.ProcAttr{Env: []string{}, Files: []*os.File{nil, nil, nil}})
	if err != nil {
		t.Fatal(err)
	}
	defer osp.Wait()
	for end := time.Now().Add(time.Minute); ; {
		in, err := lookup(osp.Pid)
		if err != nil {
			t.Fatal(err)
		}
		if in.ended {
			break
		}
		if time.Now().After(end) {
			t.Fatal("the child does not end")
		}
	}
	if _, err := Identify(osp.Pid); !errors.Is(err, ErrGone) {
		t.Errorf("Identify: %v, want ErrGone", err)
	}
}

func TestReapOrphansStealsNothing(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	out, err := Run(ctx, Cmd{Path: self, Env: []string{partVar + "=reaper", "PATH=" + os.Getenv("PATH")}}, 4096)
	if err != nil || out.Exit.Code != 0 || string(out.Stdout) != "bad=0 orphans=true\n" {
		t.Errorf("reaper: %+v, %v\n%s%s", out.Exit, err, out.Stdout, out.Stderr)
	}
}

// The owner of a lifeline is killed with kill -9 and the watcher learns it.
func TestLifeline(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	marker := newMarker(t)
	swept(t, marker)
	c, w := newPipe(t)
	p, err := Start(Cmd{Path: self, Args: []string{marker}, Env: []string{partVar + "=owner"}, Stdout: w})
	if err != nil {
		t.Fatal(err)
	}
	w.Close()
	if err := c.r.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	line, err := c.out.ReadString('\n')
	pid, perr := strconv.Atoi(strings.TrimSpace(strings.TrimPrefix(line, "watcher ")))
	if err != nil || perr != nil {
		t.Fatalf("owner said %q: %v, %v", line, err, perr)
	}
	watcher, err := Identify(pid)
	if err != nil {
		t.Fatalf("the watcher ended while its owner lives: %v", err)
	}
	if err := p.ID().Signal(os.Kill); err != nil {
		t.Fatal(err)
	}
	if line, err := c.out.ReadString('\n'); line != "cut\n" {
		t.Errorf("watcher %s said %q, %v", watcher, line, err)
	}
}

func TestWatchLifelineOfClosedDescriptor(t *testing.T) {
	select {
	case <-WatchLifeline(987):
	case <-time.After(time.Minute):
		t.Error("a descriptor that is not open must count as a cut line")
	}
}

func TestSweepRefusesBadMarkers(t *testing.T) {
	for _, m := range []string{"", "a\x00b"} {
		if _, err := Sweep(m); err == nil {
			t.Errorf("Sweep(%q): no error", m)
		}
	}
}

// A process that becomes another program again and again has no environment for a
// part of the time, and is found all the same.
func TestStopTreeFindsOneBetweenPrograms(t *testing.T) {
	script := t.TempDir() + "/again"
	if err := os.WriteFile(script, []byte("exec sh "+script+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 40 {
		marker := newMarker(t)
		c, w := newPipe(t)
		p := startSh(t, "setsid sh -c 'echo up; exec sh "+script+"' & exit 0", marker, w, nil)
		c.up(t, 1)
		if _, err := p.Wait(); err != nil {
			t.Fatal(err)
		}
		if st, err := StopTree(deadline(t), p.ID(), marker, 0); err != nil || st.Killed != 1 {
			t.Fatalf("StopTree: %+v, %v", st, err)
		}
		c.gone(t)
	}
}
