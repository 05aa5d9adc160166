package durable_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"reprise/internal/durable"
)

// The children of these tests are the test binary again: with arguments after
// its flags, the test of that name plays the child.

// child returns the arguments of a child, or nil in the test itself.
func child() []string {
	if args := flag.Args(); len(args) > 1 && args[0] == "child" {
		return args[1:]
	}
	return nil
}

func spawn(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return exec.Command(self, append([]string{"-test.run=^" + t.Name() + "$", "-test.count=1", "child"}, args...)...)
}

// numbered is a line of about that size which says who wrote it and which it
// is, and shows when it is not whole.
func numbered(writer, n, size int) []byte {
	head := fmt.Sprintf("%d %d %d ", writer, n, size)
	fill := byte('a' + (writer+n)%26)
	return append(append([]byte(head), bytes.Repeat([]byte{fill}, max(size-len(head)-2, 1))...), '.', '\n')
}

// lineSize spreads sizes from 1 KB to 1 MB, small ones mostly.
func lineSize(writer, n, largest int) int {
	r := rand.New(rand.NewPCG(uint64(writer), uint64(n)))
	size := 1 << (10 + r.IntN(11))
	if r.IntN(8) > 0 {
		size = 1 << 10
	}
	return min(size, largest)
}

// checkNumbered reads a log and returns which lines each writer has in it. A
// line that is not whole fails the test.
func checkNumbered(t *testing.T, path string) map[int][]int {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	seen := map[int][]int{}
	r := bufio.NewReaderSize(f, 1<<20)
	for {
		line, err := r.ReadBytes('\n')
		if err == io.EOF && len(line) == 0 {
			return seen
		}
		var writer, n, size int
		if _, serr := fmt.Sscanf(string(line[:min(len(line), 60)]), "%d %d %d ", &writer, &n, &size); err != nil || serr != nil {
			t.Fatalf("torn: %.60q (%v, %v)", line, err, serr)
		}
		if !bytes.Equal(line, numbered(writer, n, size)) {
			t.Fatalf("mixed up: %.60q, %d bytes", line, len(line))
		}
		seen[writer] = append(seen[writer], n)
	}
}

// TestManyProcessesAppend: all lines of 16 processes are there, in each one's
// order, none torn. The long version is 1,000 lines a process of 1 KB to 64 KB
// and 60 of 1 MB.
func TestManyProcessesAppend(t *testing.T) {
	if args := child(); args != nil {
		writer, _ := strconv.Atoi(args[1])
		lines, _ := strconv.Atoi(args[2])
		largest, _ := strconv.Atoi(args[3])
		for n := range lines {
			if err := durable.Append(args[0], numbered(writer, n, lineSize(writer, n, largest)), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		return
	}
	type load struct{ lines, largest int }
	loads := []load{{10, 1 << 14}, {2, 1 << 20}}
	if os.Getenv("REPRISE_LONG_TESTS") == "1" {
		loads = []load{{1000, 1 << 16}, {60, 1 << 20}}
	}
	const processes = 16
	for _, l := range loads {
		path := filepath.Join(t.TempDir(), "log")
		var cmds []*exec.Cmd
		var outs [processes]bytes.Buffer
		for p := range processes {
			cmd := spawn(t, path, strconv.Itoa(p), strconv.Itoa(l.lines), strconv.Itoa(l.largest))
			cmd.Stdout, cmd.Stderr = &outs[p], &outs[p]
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			cmds = append(cmds, cmd)
		}
		for p, cmd := range cmds {
			if err := cmd.Wait(); err != nil {
				t.Errorf("%v: %s", err, outs[p].String())
			}
		}
		seen := checkNumbered(t, path)
		for p := range processes {
			if len(seen[p]) != l.lines {
				t.Errorf("process %d: %d lines of %d", p, len(seen[p]), l.lines)
			}
			for i, n := range seen[p] {
				if i != n {
					t.Fatalf("process %d: line %d at place %d", p, n, i)
				}
			}
		}
		if torn := get(t, path+".torn"); torn != "-" {
			t.Errorf("%d bytes were taken for torn", len(torn))
		}
	}
}

// TestKilledInTheMiddle: a writer of lines of 64 KB to 4 MB is killed while it
// writes; whatever it had acknowledged is there, and the next append makes the
// log whole.
func TestKilledInTheMiddle(t *testing.T) {
	if args := child(); args != nil {
		from, _ := strconv.Atoi(args[1])
		for n := from; ; n++ {
			size := 64 << (10 + rand.IntN(7))
			if err := durable.Append(args[0], numbered(0, n, size), 0o600); err != nil {
				t.Fatal(err)
			}
			fmt.Println("acknowledged", n)
		}
	}
	logs, rounds, torn := 1, 4, 0
	if os.Getenv("REPRISE_LONG_TESTS") == "1" {
		logs, rounds = 15, 6
	}
	for range logs {
		torn += killWriters(t, filepath.Join(t.TempDir(), "log"), rounds)
	}
	t.Logf("%d of %d kills tore a line", torn, logs*rounds)
}

// killWriters starts and kills a writer that often, and returns how often that
// tore a line.
func killWriters(t *testing.T, path string, rounds int) (torn int) {
	next := 0
	for round := range rounds {
		cmd := spawn(t, path, strconv.Itoa(next))
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		acked := next - 1
		sc := bufio.NewScanner(out)
		for range 1 + round%3 {
			if !sc.Scan() {
				t.Fatal("the writer ended by itself")
			}
			if _, err := fmt.Sscanf(sc.Text(), "acknowledged %d", &acked); err != nil {
				t.Fatalf("%q: %v", sc.Text(), err)
			}
		}
		// Wait, without a clock, until the next line is on its way.
		size := fileSize(t, path)
		for i := 0; i < 1000 && fileSize(t, path) == size; i++ {
			runtime.Gosched()
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		for sc.Scan() { // what it still got to say counts, too
			_, _ = fmt.Sscanf(sc.Text(), "acknowledged %d", &acked)
		}
		_ = cmd.Wait()
		if b := get(t, path); !strings.HasSuffix(b, "\n") {
			torn++
		}
		if err := durable.Append(path, numbered(1, round, 100), 0o600); err != nil {
			t.Fatal(err)
		}
		seen := checkNumbered(t, path)
		if got := seen[0]; len(got) < acked+1 || len(got) > acked+2 {
			t.Fatalf("round %d: %d lines are there, %d were acknowledged", round, len(got), acked+1)
		}
		if len(seen[1]) != round+1 {
			t.Fatalf("round %d: %v", round, seen[1])
		}
		next = len(seen[0])
	}
	return torn
}

func fileSize(t *testing.T, path string) int64 {
	t.Helper()
	fi, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return fi.Size()
}

func TestLocksEndWithTheirProcess(t *testing.T) {
	if args := child(); args != nil {
		if _, err := durable.Lock(context.Background(), args[0]); err != nil {
			t.Fatal(err)
		}
		fmt.Println("locked")
		_, _ = io.ReadAll(os.Stdin) // until killed
		return
	}
	path := filepath.Join(t.TempDir(), "lock")
	cmd := spawn(t, path)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "locked\n" {
		t.Fatalf("%q, %v", line, err)
	}
	if _, err := durable.TryLock(path); !errors.Is(err, durable.ErrLocked) {
		t.Errorf("error %v", err)
	}
	if l, err := durable.IsLocked(path); !l || err != nil {
		t.Errorf("locked: %t, %v", l, err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	unlock, err := durable.Lock(ctx, path)
	if err != nil {
		t.Fatal(err)
	}
	if err := unlock(); err != nil {
		t.Error(err)
	}
}
