package queue_test

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"reprise/internal/durable"
	"reprise/internal/proc"
	"reprise/internal/queue"
)

// The children of these tests are the test binary again: with arguments after its
// flags, the test of that name plays the child.

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
	cmd := exec.Command(self, append([]string{"-test.run=^" + t.Name() + "$", "-test.count=1", "child"}, args...)...)
	cmd.Stderr = os.Stderr
	return cmd
}

// worker is a queue as a process of its own has it.
func worker(t *testing.T, dir string, disk durable.Disk) *queue.Files {
	t.Helper()
	self, err := proc.Self()
	if err != nil {
		t.Fatal(err)
	}
	return queue.Open(queue.Options{Dir: filepath.Join(dir, "queue"), Now: time.Now, Disk: disk, Host: "vm", Process: self})
}

// Processes that work off one queue together do each item once. Some are killed in the
// middle: what they had is there again at once, and goes to others.
func TestProcessesTogether(t *testing.T) {
	if args := child(); args != nil {
		workOff(t, args[0], args[1])
		return
	}
	items, workers, victims := 160, 8, 3
	if os.Getenv("REPRISE_LONG_TESTS") != "" {
		items = 2000
	}
	dir := t.TempDir()
	q := worker(t, dir, unsynced())
	var all []queue.Item
	for i := range items {
		it := queue.Item{ID: fmt.Sprintf("i%d", i), Title: "x"}
		if i%5 == 4 {
			it.DependsOn = []string{fmt.Sprintf("i%d", i-1)}
		}
		all = append(all, it)
	}
	if _, err := q.Add(t.Context(), all...); err != nil {
		t.Fatal(err)
	}
	type word struct{ what, id string }
	words := make(chan word)
	var begin []io.Writer // they begin together
	for w := range workers {
		name := fmt.Sprint("w", w)
		if w < victims {
			name = "victim" + name
		}
		cmd := spawn(t, dir, name)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		begin = append(begin, in)
		go func() {
			defer in.Close()
			s := bufio.NewScanner(out)
			for s.Scan() {
				if what, id, ok := strings.Cut(s.Text(), " "); ok && (what == "ready" || what == "done" || what == "hold") {
					words <- word{what, id}
					if what == "hold" { // it waits to be killed with a claim in hand
						_ = cmd.Process.Kill()
					}
				}
			}
			_ = cmd.Wait()
			words <- word{"end", name}
		}()
	}
	done := map[string]int{}
	held := map[string]int{} // times: what one victim had may have gone to another
	kills, ready := 0, 0
	for ended := 0; ended < workers; {
		switch w := <-words; w.what {
		case "ready":
			if ready++; ready == workers {
				for _, in := range begin {
					if _, err := in.Write([]byte{1}); err != nil {
						t.Error(err)
					}
				}
			}
		case "done":
			done[w.id]++
		case "hold":
			held[w.id]++
			if kills++; kills == victims { // the others have waited for that, or some would find nothing left
				for _, in := range begin[victims:] {
					if _, err := in.Write([]byte{1}); err != nil {
						t.Error(err)
					}
				}
			}
		case "end":
			ended++
		}
	}
	if kills != victims {
		t.Errorf("%d workers were killed with a claim in hand, want %d", kills, victims)
	}
	l, err := q.List(t.Context(), queue.Filter{})
	if err != nil || len(l.Trouble) > 0 {
		t.Fatal(err, l.Trouble)
	}
	for _, it := range l.Items {
		if it.State != queue.Done || done[it.ID] != 1 {
			t.Errorf("%s is %s and was done %d times", it.ID, it.State, done[it.ID])
		}
		if n := held[it.ID]; it.Lost != n || int(it.Fence) != n+1 {
			t.Errorf("%s: killed %d times, lost %d times, number %d", it.ID, n, it.Lost, it.Fence)
		}
	}
	if len(l.Items) != items {
		t.Errorf("%d items, want %d", len(l.Items), items)
	}
}

// workOff is one of the processes: it ends when everything is settled.
func workOff(t *testing.T, dir, name string) {
	q := worker(t, dir, unsynced())
	ctx := t.Context()
	fmt.Println("ready", name)
	wait := func() {
		if _, err := os.Stdin.Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
	}
	wait()
	for n := 0; ; n++ {
		if n == 8 && !strings.HasPrefix(name, "victim") {
			wait() // until all victims are killed
		}
		c, err := q.Claim(ctx, queue.ClaimOptions{Worker: name, Bound: true})
		if errors.Is(err, queue.ErrEmpty) {
			l, err := q.List(ctx, queue.Filter{States: []queue.State{queue.Ready, queue.Claimed, queue.Blocked}})
			if err != nil {
				t.Fatal(err)
			}
			if len(l.Items) == 0 {
				return
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if n == 2 && strings.HasPrefix(name, "victim") {
			fmt.Println("hold", c.Item.ID)
			_, _ = io.Copy(io.Discard, os.Stdin) // until it is killed
		}
		if _, err := q.Done(ctx, c.Token, queue.Outcome{}); err != nil {
			t.Fatal(err)
		}
		fmt.Println("done", c.Item.ID)
	}
}

// A claim ends with its process, at once where that can be told, and else with its
// lease; a living holder on this machine gets a moment after its lease ran out, for the
// clock may have jumped.
func TestWhoseClaimIsOver(t *testing.T) {
	here := proc.ID{PID: 4711, Start: 99, Boot: "boot"}
	other := proc.ID{PID: 4712, Start: 100, Boot: "boot"}
	far := proc.ID{PID: 4711, Start: 99, Boot: "another boot"}
	for _, test := range []struct {
		name   string
		holder proc.ID // of the claim; zero: not bound
		alive  bool
		after  []time.Duration // looks at the claim, since it was made
		want   []bool          // whether each gives it back
	}{
		{"dead, here", other, false, []time.Duration{0}, []bool{true}},
		{"alive, here", other, true, []time.Duration{0, 59 * time.Second}, []bool{false, false}},
		{"alive, here, lease ran out", other, true, []time.Duration{8 * time.Hour, 8*time.Hour + 29*time.Second, 8*time.Hour + 30*time.Second}, []bool{false, false, true}},
		{"dead, elsewhere", far, false, []time.Duration{0, 59 * time.Second, 60 * time.Second}, []bool{false, false, true}},
		{"not bound", proc.ID{}, false, []time.Duration{0, 59 * time.Second, 60 * time.Second}, []bool{false, false, true}},
		{"the clock went back a day", proc.ID{}, false, []time.Duration{-24 * time.Hour, 59*time.Second - 24*time.Hour, 60*time.Second - 24*time.Hour}, []bool{false, false, true}},
		{"back, and forward again", proc.ID{}, false, []time.Duration{-24 * time.Hour, 0, 59 * time.Second, 60 * time.Second}, []bool{false, false, false, true}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "queue")
			holder := queue.Open(queue.Options{Dir: dir, Now: at(0), Disk: unsynced(), Host: "vm", Process: test.holder})
			if _, err := holder.Add(t.Context(), queue.Item{ID: "a", Title: "a"}); err != nil {
				t.Fatal(err)
			}
			if _, err := holder.Claim(t.Context(), queue.ClaimOptions{Bound: true}); err != nil {
				t.Fatal(err)
			}
			var now time.Duration
			q := queue.Open(queue.Options{
				Dir: dir, Now: func() time.Time { return night.Add(now) }, Disk: unsynced(), Host: "vm", Process: here,
				Alive: func(proc.ID) bool { return test.alive },
			})
			for i, after := range test.after {
				now = after
				got, err := q.Reclaim(t.Context())
				if err != nil || (len(got) == 1) != test.want[i] {
					t.Fatalf("after %s: gave back %v, want %v (%v)", after, len(got) == 1, test.want[i], err)
				}
			}
		})
	}
}

// A claim that is bound to a process goes with the process that extends it, as a loop does
// that takes over from one that died; what is bound to none stays so, and a program that
// only extends for somebody else leaves it with him.
func TestTakenOver(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "queue")
	first, second := proc.ID{PID: 70001, Start: 1, Boot: "b"}, proc.ID{PID: 70002, Start: 2, Boot: "b"}
	dead := map[int]bool{}
	open := func(p proc.ID) *queue.Files {
		return queue.Open(queue.Options{Dir: dir, Now: at(0), Disk: unsynced(), Host: "vm", Process: p, Boot: "b", Alive: func(id proc.ID) bool { return !dead[id.PID] }})
	}
	a, b, nobody := open(first), open(second), open(proc.ID{})
	if _, err := a.Add(t.Context(), queue.Item{ID: "bound", Title: "x", Priority: new(1)}, queue.Item{ID: "loose", Title: "x"}); err != nil {
		t.Fatal(err)
	}
	bound, err := a.Claim(t.Context(), queue.ClaimOptions{ID: "bound", Bound: true})
	if err != nil {
		t.Fatal(err)
	}
	loose, err := a.Claim(t.Context(), queue.ClaimOptions{ID: "loose"})
	if err != nil {
		t.Fatal(err)
	}
	has := func(q *queue.Files, c queue.Claim, want int) {
		t.Helper()
		if _, err := q.Extend(t.Context(), c.Token, time.Hour); err != nil {
			t.Fatal(err)
		}
		if it, err := q.Get(t.Context(), c.Item.ID); err != nil || it.Claim.PID != want {
			t.Fatalf("%s is process %d's, want %d (%v)", it.ID, it.Claim.PID, want, err)
		}
	}
	has(nobody, bound, first.PID)
	dead[first.PID] = true
	has(b, bound, second.PID)
	has(b, loose, 0)
	if got, err := nobody.Reclaim(t.Context()); err != nil || len(got) > 0 {
		t.Fatal(got, err)
	}
	dead[second.PID] = true
	if got, err := nobody.Reclaim(t.Context()); err != nil || len(got) != 1 || got[0].ID != "bound" {
		t.Fatal(got, err)
	}
}

// Ten thousand items: a claim lists no directory. A file that a hand has put there, of
// which nothing tells, is seen when the clock has moved on, and not by each claim.
func TestTenThousandItems(t *testing.T) {
	dir := t.TempDir()
	var now time.Duration
	q := queue.Open(queue.Options{Dir: filepath.Join(dir, "queue"), Now: func() time.Time { return night.Add(now) }, Disk: unsynced(), Host: "vm"})
	all := make([]queue.Item, 10_000)
	for i := range all {
		all[i] = queue.Item{Title: strconv.Itoa(i), Priority: new(i % 10)}
	}
	if _, err := q.Add(t.Context(), all...); err != nil {
		t.Fatal(err)
	}
	claim := func(priority int) queue.Item {
		t.Helper()
		c, err := q.Claim(t.Context(), queue.ClaimOptions{})
		if err != nil || c.Item.Urgency() != priority {
			t.Fatal(c.Item, err)
		}
		return c.Item
	}
	if it := claim(0); it.Title != "0" {
		t.Fatal(it)
	}
	put(t, filepath.Join(dir, "queue", "ready", "p0~c0000000000000001~n0~f0~e0~hand.json"), `{"v":1,"id":"hand","title":"hand","priority":0}`)
	for i := 1; i <= 100; i++ {
		if it := claim(0); it.Title != strconv.Itoa(10*i) {
			t.Fatalf("claim %d: %s", i, it.Title)
		}
	}
	now = 2 * time.Second
	if it := claim(0); it.ID != "hand" {
		t.Fatal(it)
	}
}
