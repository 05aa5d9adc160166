package task

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"reprise/internal/durable"
)

// The first changes of a project, several at once, on which a list is made: each is
// made, and none takes from another what it is writing.
func TestFirstChangesAtOnce(t *testing.T) {
	for range 40 {
		dir := t.TempDir()
		begin := make(chan struct{})
		said := make(chan error, 6)
		for i := range cap(said) {
			s := storeIn(dir, unsynced())
			go func() {
				<-begin
				_, err := s.Change(context.Background(), add(fmt.Sprint("Task ", i)))
				said <- err
			}()
		}
		close(begin)
		for range cap(said) {
			if err := <-said; err != nil {
				t.Fatal(err)
			}
		}
		b, err := storeIn(dir, unsynced()).Load(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		if n := len(b.State.Tasks); n != cap(said) {
			t.Fatalf("%d tasks were made and %d are there", cap(said), n)
		}
	}
}

// Four processes change tasks at once, each is killed without warning and begun anew,
// and a person edits the list meanwhile: the files agree or the check says where they do
// not, no number is given twice, and no line of the person is lost.
func TestProcessesAtOnce(t *testing.T) {
	if args := flag.Args(); len(args) == 3 && args[0] == "child" {
		work(t, args[1], args[2])
		return
	}
	rounds := 2
	if os.Getenv("REPRISE_LONG_TESTS") != "" {
		rounds = 40
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for round := range rounds {
		dir := t.TempDir()
		s := storeIn(dir, unsynced())
		change(t, s, add("First"))
		r := rand.New(rand.NewPCG(uint64(round), 7))
		said := make(chan string, 1000)
		begin := func(name string) func() { return worker(t, self, dir, name, said) }
		var stops []func()
		for i := range 4 {
			stops = append(stops, begin(fmt.Sprint(i)))
		}
		made := map[string]string{} // by number
		drain := func() {
			for len(said) > 0 {
				words := strings.Fields(<-said)
				if words[0] == "wrong" {
					t.Errorf("round %d: %v", round, words)
					continue
				}
				if other := made[words[1]]; other != "" && other != words[2] {
					t.Errorf("round %d: number %s was given to %s and to %s", round, words[1], other, words[2])
				}
				made[words[1]] = words[2]
			}
		}
		var hand []string
		for step := range 12 {
			time.Sleep(time.Duration(20+r.IntN(60)) * time.Millisecond) // time for them to be in the middle of something
			switch i := r.IntN(4); r.IntN(3) {
			case 0:
				stops[i]()
				stops[i] = begin(fmt.Sprintf("%d-%d", i, step))
			default:
				line := fmt.Sprintf("By hand %d in round %d.", step, round)
				saveByHand(t, s, line)
				hand = append(hand, line)
			}
			drain()
		}
		for _, stop := range stops {
			stop()
		}
		drain()
		if _, err := s.Fix(context.Background()); err != nil {
			t.Fatal(err)
		}
		if rep, err := s.Check(context.Background()); err != nil || !rep.Agrees() {
			t.Errorf("round %d: %+v, %v", round, rep, err)
		}
		b, err := s.Load(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		for n, title := range made {
			if at := slices.IndexFunc(b.Todo.Sections, func(s *Section) bool { return itoa(s.Number) == n }); at < 0 || !strings.HasSuffix(b.Todo.Sections[at].Title, title) {
				t.Errorf("round %d: task %s, %s, was said to be made and is not there", round, n, title)
			}
		}
		got := text(t, s, "TODO.md")
		for _, line := range hand {
			if strings.Count(got, line) != 1 {
				t.Errorf("round %d: %q stands there %d times", round, line, strings.Count(got, line))
			}
		}
		if len(made) == 0 || len(hand) == 0 {
			t.Errorf("round %d: %d made, %d by hand: nothing was tried", round, len(made), len(hand))
		}
	}
}

// worker is a process that changes the tasks in dir until it is stopped, without warning,
// and says which it made.
func worker(t *testing.T, self, dir, name string, said chan<- string) (stop func()) {
	t.Helper()
	cmd := exec.Command(self, "-test.run=^TestProcessesAtOnce$", "-test.count=1", "child", dir, name)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for in := bufio.NewScanner(out); in.Scan(); {
			if strings.HasPrefix(in.Text(), "made ") || strings.HasPrefix(in.Text(), "wrong ") {
				said <- in.Text()
			}
		}
	}()
	return func() {
		_ = cmd.Process.Kill() // it may have ended
		<-ended
		_ = cmd.Wait()
	}
}

// saveByHand adds a line at the end, as an editor saves: by a rename. It takes the lock
// of the list for that, so that the line is not put into a text that a program replaces
// in the same instant: what an editor may do there is not what is tried here.
func saveByHand(t *testing.T, s *Store, line string) {
	t.Helper()
	d, err := s.o.Disk.OpenDir(s.dir)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	c, err := d.Begin(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Abort()
	file := filepath.Join(s.Dir(), "TODO.md")
	old, err := os.ReadFile(file)
	if err == nil {
		err = os.WriteFile(file+".editor", []byte(string(old)+"\n"+line+"\n"), 0o644)
	}
	if err == nil {
		err = os.Rename(file+".editor", file)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// unsynced waits for no disk: a process that is killed loses nothing that it wrote.
func unsynced() durable.Disk {
	return durable.NewDisk(func(s durable.Step) *durable.Fault {
		if s.Op == durable.OpSync || s.Op == durable.OpSyncDir {
			return &durable.Fault{Skip: true}
		}
		return nil
	})
}

// work changes tasks until it is killed.
func work(t *testing.T, dir, name string) {
	s := storeIn(dir, unsynced())
	r := rand.New(rand.NewPCG(uint64(os.Getpid()), 3))
	free := strings.HasPrefix(name, "free") // a person writes whatever they like
	most := 5                               // statuses that are given
	if free {
		most = 8
	}
	for i := 0; ; i++ {
		title := fmt.Sprintf("By-%s-%d", name, i)
		n := 0
		_, err := s.Change(context.Background(), func(b *Board) error {
			list := b.State.Numbers()
			pick := 0
			if len(list) > 0 {
				pick = list[r.IntN(len(list))]
			}
			if i%3 > 0 {
				_ = b.SetStatus(pick, Statuses()[r.IntN(most)], "") // it may be refused
				return nil
			}
			if free && i%21 == 0 {
				_, err := b.Archive()
				return err
			}
			task, err := b.Add(Draft{Title: &title})
			if err == nil {
				n = task.Number
			}
			return err
		})
		switch {
		case errors.Is(err, ErrBusy):
		case free && (errors.Is(err, ErrReadBack) || errors.Is(err, ErrTwice) || errors.Is(err, ErrNoTask)): // what the person has to settle
		case err != nil:
			fmt.Println("wrong", err)
			return
		case n > 0:
			fmt.Println("made", n, title)
		}
	}
}
