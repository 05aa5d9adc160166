package event_test

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"reprise/internal/event"
	"reprise/internal/event/quick"
)

// TestEightProcesses: eight processes write one log, by both ways, with clocks
// that jump; two are killed in the middle. What a process was told is written is
// there, once, and the chain holds.
func TestEightProcesses(t *testing.T) {
	const child = "writer-child"
	if args := flag.Args(); len(args) == 3 && args[0] == child {
		writeEvents(t, args[1], args[2])
		return
	}
	data, self := t.TempDir(), executable(t)
	var mu sync.Mutex
	told := map[string]bool{}
	var wg sync.WaitGroup
	for w := range 8 {
		r, out, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		p, err := os.StartProcess(self, []string{self, "-test.run=^TestEightProcesses$", "-test.timeout=60s", child, data, fmt.Sprint(w)},
			&os.ProcAttr{Files: []*os.File{nil, out, os.Stderr}})
		if err != nil {
			t.Fatal(err)
		}
		out.Close()
		wg.Go(func() {
			defer r.Close()
			n := 0
			for in := bufio.NewScanner(r); in.Scan(); {
				id, ok := strings.CutPrefix(in.Text(), "wrote ")
				if !ok {
					continue
				}
				mu.Lock()
				if told[id] {
					t.Errorf("%s was given twice", id)
				}
				told[id] = true
				mu.Unlock()
				if n++; w < 2 && n == 5 { // killed while it writes the next
					_ = p.Kill()
				}
			}
			if state, err := p.Wait(); err != nil || w >= 2 && !state.Success() {
				t.Errorf("writer %d: %v %v", w, state, err)
			}
		})
	}
	wg.Wait()
	dir := filepath.Join(data, "events")
	there := map[string]int{}
	events, errs := read(dir)
	for _, e := range events {
		there[e.ID]++
	}
	if len(errs) > 0 {
		t.Error(errs)
	}
	for id := range told {
		if there[id] != 1 {
			t.Errorf("%s is there %d times", id, there[id])
		}
	}
	if len(told) < 6*30 || len(events) > len(told)+2 {
		t.Errorf("%d events, %d were told of", len(events), len(told))
	}
	add(t, event.Open(dir, "h", func() time.Time { return start }), event.Event{}) // sets a torn tail aside
	if r := verify(t, dir); !r.OK() || len(r.Unfinished) > 0 {
		t.Errorf("%v %v", r.Problems, r.Unfinished)
	}
}

func executable(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return self
}

// writeEvents is one of the writers. Its clock steps back at every seventh look.
func writeEvents(t *testing.T, data, name string) {
	looks := 0
	opt := options(data)
	opt.Now = func() time.Time {
		looks++
		return start.Add(-time.Hour + time.Duration(looks-looks%7*3)*time.Millisecond)
	}
	full := event.NewBroker(opt)
	fast := &quick.Broker{Events: opt.Events, Outbox: opt.Outbox, Host: "h", Now: opt.Now}
	for i := range 30 {
		payload := fmt.Sprintf(`{"tool":"shell","name":"Bash","output":%q}`, strings.Repeat(name, i*i*20%9000))
		var id string
		if i%3 == 0 {
			e, err := full.Record(context.Background(), event.Event{Type: event.ToolSucceeded, Data: json.RawMessage(payload)})
			if err != nil || e.Prev == "" && i > 0 {
				t.Fatal(e.ID, err)
			}
			id = e.ID
		} else {
			e := quick.Event{Type: "tool.succeeded", Data: []byte(payload)}
			if pending, err := fast.Record(context.Background(), &e, false); err != nil || pending {
				t.Fatal(pending, err)
			}
			id = e.ID
		}
		fmt.Println("wrote", id)
	}
}
