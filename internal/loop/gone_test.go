package loop

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"reprise/internal/durable"
	"reprise/internal/loop/core"
	"reprise/internal/queue"
)

// An agent has asked, and somebody sees to its item beside the loop: that ends the question,
// and the loop goes on with the rest by itself.
func TestSeenToBesideTheLoop(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		do     func(n *night) error
		states string
		says   string
	}{
		"dropped":  {func(n *night) error { _, err := n.queue.Drop(context.Background(), "a", "not wanted"); return err }, "a dead, b done", "it was dropped"},
		"parked":   {func(n *night) error { _, err := n.queue.Park(context.Background(), "a", "", "tomorrow"); return err }, "a blocked, b done", "a person has set it aside: tomorrow"},
		"put back": {func(n *night) error { _, err := n.queue.Unpark(context.Background(), "a", ""); return err }, "a done, b done", "it was put back by hand"},
		"vanished": {func(n *night) error {
			found, err := filepath.Glob(filepath.Join(n.dir, "queue", "blocked", "*a.json"))
			if err != nil || len(found) != 1 {
				return errors.Join(err, errors.New(strings.Join(found, " ")))
			}
			return durable.Remove(found[0])
		}, "b done", "the queue has it no more"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newNight(t, play{hang: true, do: asks("INTERRUPT_FILE", "which of the two?"), change: true})
			n.add("a", "b")
			n.begin()
			n.waits(core.ByAgent, "a")
			if err := test.do(n); err != nil {
				t.Fatal(err)
			}
			s := n.end()
			n.want(test.states)
			if s.Phase != core.Finished || s.Interrupt != nil {
				t.Errorf("%s, %+v", s.Phase, s.Interrupt)
			}
			lines, _, err := Audit(n.opt.Dir, s.Loop)
			if err != nil {
				t.Fatal(err)
			}
			told := ""
			for _, l := range lines {
				if l.Op == "seen to" {
					told += l.Item + ": " + l.Text + "\n"
				}
			}
			if told != "a: "+test.says+"\n" {
				t.Errorf("told: %q", told)
			}
			if list, err := Questions(t.Context(), n.opt.Dir, &s, n.queue); err != nil || len(list) > 0 {
				t.Errorf("questions: %+v, %v", list, err)
			}
		})
	}
}

// A lease that cannot be renewed because its item was settled meanwhile was not lost.
func TestSettledIsNotLost(t *testing.T) {
	n := newNight(t, play{change: true})
	n.add("a")
	late := &lateQueue{Queue: n.queue}
	n.opt.Queue = late
	n.loop, n.done = New(n.opt), make(chan error, 1)
	late.loop = n.loop
	go func() {
		_, err := n.loop.Run(context.Background(), n.stop)
		n.done <- err
	}()
	s := n.end()
	n.want("a done")
	lines, _, err := Audit(n.opt.Dir, s.Loop)
	if err != nil || !late.asked {
		t.Fatalf("%v, asked: %v", err, late.asked)
	}
	for _, l := range lines {
		if l.Op == "lease lost" {
			t.Errorf("it tells %+v", l)
		}
	}
}

// lateQueue has the loop renew its leases when an item is done and the loop does not know yet.
type lateQueue struct {
	queue.Queue
	loop  *Loop
	asked bool
}

func (q *lateQueue) Done(ctx context.Context, t queue.Token, o queue.Outcome) (queue.Item, error) {
	it, err := q.Queue.Done(ctx, t, o)
	q.loop.renewAll(ctx)
	q.asked = true
	return it, err
}

// The answer to a question whose item cannot be read any more is in nobody's way: it is told,
// and the loop goes on with the rest and ends.
func TestAnsweredItemIsDamaged(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{"damaged": `{"v":1,"id":"a`, "newer": `{"v":99,"id":"a"}`} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newNight(t, play{hang: true, do: asks("INTERRUPT_FILE", "which of the two?"), change: true})
			n.add("a", "b")
			n.begin()
			n.waits(core.ByAgent, "a")
			found, err := filepath.Glob(filepath.Join(n.dir, "queue", "blocked", "*a.json"))
			if err != nil || len(found) != 1 {
				t.Fatalf("%v, %v", found, err)
			}
			if err := os.WriteFile(found[0], []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			n.ask(Request{Kind: "resume", Answer: "the second"})
			if s := n.end(); s.Phase != core.Finished || s.Tally.Done != 1 {
				t.Errorf("%s, %+v", s.Phase, s.Tally)
			}
			told := strings.Join(n.lines("put off"), "\n")
			if !strings.Contains(told, "stays set aside") || strings.Contains(told, "--take-out a") != (name == "damaged") {
				t.Errorf("told: %q", told)
			}
			if kinds := n.told(); !slices.Contains(kinds, "damaged") {
				t.Errorf("a person is told %q", kinds)
			}
			if now, err := os.ReadFile(found[0]); err != nil || string(now) != text {
				t.Errorf("its file is now %q, %v", now, err)
			}
		})
	}
}

// What became of an item whose claim is the loop's no more is told, in the line, in the iteration
// and to the run that is stopped: "lost" alone sends a person looking.
func TestToldWhereItWent(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		do   func(t *testing.T, n *night, token queue.Token)
		says string
	}{
		"removed by hand": {func(t *testing.T, n *night, _ queue.Token) {
			t.Helper()
			found, err := filepath.Glob(filepath.Join(n.dir, "queue", "claimed", "*a.json"))
			if err != nil || len(found) != 1 {
				t.Fatalf("%v, %v", found, err)
			}
			if err := os.Remove(found[0]); err != nil {
				t.Fatal(err)
			}
		}, "the queue has the item no more: a hand took it out"},
		"put back": {func(t *testing.T, n *night, token queue.Token) {
			t.Helper()
			if _, err := n.queue.Release(t.Context(), token, "later"); err != nil {
				t.Fatal(err)
			}
			if _, err := n.queue.Park(t.Context(), "a", "", "not today"); err != nil {
				t.Fatal(err)
			}
		}, "somebody has set the item aside; not today"},
		"done": {func(t *testing.T, n *night, token queue.Token) {
			t.Helper()
			if _, err := n.queue.Done(t.Context(), token, queue.Outcome{Summary: "by hand"}); err != nil {
				t.Fatal(err)
			}
		}, "the item was called done by somebody else; by hand"},
		"taken": {func(t *testing.T, n *night, token queue.Token) {
			t.Helper()
			if _, err := n.queue.Release(t.Context(), token, "mine"); err != nil {
				t.Fatal(err)
			}
			if _, err := n.queue.Claim(t.Context(), queue.ClaimOptions{ID: "a", Worker: "other"}); err != nil {
				t.Fatal(err)
			}
		}, "somebody has put the item back; mine"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newNight(t, play{hang: true})
			n.add("a")
			n.begin()
			s := n.until("running", func(s core.State) bool { return len(s.Slots) > 0 && s.Slots[0].Step == core.Running })
			test.do(t, n, queue.Token(s.Slots[0].Claim.Token))
			n.loop.renewAll(t.Context())
			s = n.until("rid of it", func(s core.State) bool { return s.Tally.Lost == 1 && s.Busy() == 0 })
			n.over()
			if told := strings.Join(n.lines("lease lost"), "\n"); !strings.Contains(told, test.says) {
				t.Errorf("told: %q", told)
			}
			its, _, err := Iterations(n.opt.Dir, s.Loop)
			if err != nil || len(its) != 1 || its[0].Reason != test.says {
				t.Errorf("%+v, %v", its, err)
			}
			if len(n.runs.stops) != 1 || !strings.Contains(n.runs.stops[0], test.says) {
				t.Errorf("stopped: %q", n.runs.stops)
			}
		})
	}
}
