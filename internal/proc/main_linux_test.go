//go:build linux

package proc

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// The test binary plays several parts: processes that have to be subreapers,
// be killed or be watched from outside.
const partVar = "PROC_TEST_PART"

func TestMain(m *testing.M) {
	switch os.Getenv(partVar) {
	case "":
		os.Exit(m.Run())
	case "supervisor":
		os.Exit(partSupervisor())
	case "reaper":
		os.Exit(partReaper())
	case "owner":
		os.Exit(partOwner())
	case "watcher":
		<-WatchLifeline(0)
		fmt.Println("cut")
		os.Exit(0)
	case "fds":
		os.Exit(partFDs())
	}
	os.Exit(99)
}

// partSupervisor is a subreaper that starts the shell script in argv[1], says
// "root <ID as JSON>" and, told "stop" on standard input, stops the tree and
// prints what StopTree said. It ignores SIGTERM.
func partSupervisor() int {
	signal.Ignore(syscall.SIGTERM)
	if err := BecomeSubreaper(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	marker := os.Args[2]
	env := append(os.Environ(), RunIDVar+"="+marker)
	for i, e := range env {
		if strings.HasPrefix(e, partVar+"=") {
			env[i] = partVar + "_WAS=1"
		}
	}
	p, err := Start(Cmd{Path: "/bin/sh", Args: []string{"-c", os.Args[1]}, Env: env, Stdout: os.NewFile(3, "ready"), NewSession: true})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	b, _ := json.Marshal(p.ID())
	fmt.Printf("root %s\n", b)
	if line, _ := bufio.NewReader(os.Stdin).ReadString('\n'); line != "stop\n" {
		return 1
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	st, err := StopTree(ctx, p.ID(), marker, 50*time.Millisecond)
	exit, werr := p.Wait()
	kids, kerr := children()
	fmt.Printf("%+v err=%v exit=%+v werr=%v children=%d %v\n", st, err, exit, werr, len(kids), kerr)
	return 0
}

// partReaper starts many short children and makes many orphans while it reaps
// in a tight loop; no status of its own children may be lost.
func partReaper() int {
	if err := BecomeSubreaper(); err != nil {
		fmt.Println(err)
		return 1
	}
	stop := make(chan struct{})
	var reaped int
	var reaper sync.WaitGroup
	reaper.Go(func() {
		for {
			n, err := ReapOrphans()
			if err != nil {
				fmt.Println(err)
				return
			}
			reaped += n
			select {
			case <-stop:
				return
			default:
			}
		}
	})
	const each, workers = 25, 4
	var bad sync.Map
	var all sync.WaitGroup
	for w := range workers {
		all.Go(func() {
			for i := range each {
				// Leaves one orphan that ends at once and one zombie-to-be.
				p, err := Start(Cmd{Path: "/bin/sh", Args: []string{"-c", "(true &) ; exit 7"}})
				if err != nil {
					bad.Store([2]int{w, i}, err)
					continue
				}
				if e, err := p.Wait(); err != nil || e.Code != 7 {
					bad.Store([2]int{w, i}, fmt.Sprint(e, err))
				}
			}
		})
	}
	all.Wait()
	// All orphans have ended or will in a moment; the loop must get them all.
	for {
		kids, err := children()
		if err != nil || len(kids) == 0 {
			break
		}
	}
	close(stop)
	reaper.Wait()
	n := 0
	bad.Range(func(_, v any) bool { n++; fmt.Println(v); return true })
	fmt.Printf("bad=%d orphans=%v\n", n, reaped > 0)
	return 0
}

// partOwner holds a lifeline to a watcher and sleeps.
func partOwner() int {
	r, w, err := Lifeline()
	if err != nil {
		return 1
	}
	self, err := os.Executable()
	if err != nil {
		return 1
	}
	p, err := Start(Cmd{Path: self, Env: []string{partVar + "=watcher"}, Stdin: r, Stdout: os.Stdout, NewSession: true})
	if err != nil {
		return 1
	}
	_ = r.Close()
	// A sibling must not keep the line open.
	if _, err := Start(Cmd{Path: "/bin/sh", Args: []string{"-c", "exec sleep 1000"}, Env: []string{RunIDVar + "=" + os.Args[1]}, NewSession: true}); err != nil {
		return 1
	}
	fmt.Println("watcher", p.ID().PID)
	select {
	case <-p.Done(): // not before this process is killed
	case <-time.After(time.Minute):
	}
	_ = w.Close()
	return 0
}

// partFDs prints the numbers of the open descriptors.
func partFDs() int {
	var open []int
	for fd := range 200 {
		to, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd))
		if err == nil && !strings.HasPrefix(to, "anon_inode:") && !strings.HasPrefix(to, "/sys/fs/cgroup") { // the Go runtime's own
			open = append(open, fd)
		}
	}
	fmt.Println(open)
	return 0
}
