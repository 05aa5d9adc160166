package loop

import (
	"context"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"reprise/internal/durable"
	"reprise/internal/durable/durabletest"
	"reprise/internal/loop/core"
	"reprise/internal/proc"
	"reprise/internal/queue"
	"reprise/internal/run"
)

// theAnswer is what a person answers; nothing else that a session is told has it in it.
const theAnswer = "take-the-second-one"

// asking is what the runs do: that of a asks in its first session, the rest is done at once.
func asking() play {
	return play{hang: true, do: asks("INTERRUPT_FILE", "which of the two?"), change: true}
}

// answering is a way in which an answer comes to a loop.
type answering struct {
	name string
	on   core.OnInterrupt
	// given runs the loop to its end, with the answer given before or while it runs.
	given func(n *night) error
}

var answerings = []answering{
	{"before the loop begins", core.Skip, func(n *night) error {
		if err := n.answered(); err != nil {
			return err
		}
		return n.lived()
	}},
	{"while the loop waits", core.Wait, func(n *night) error {
		said := make(chan error, 1)
		n.loop, n.done = New(n.opt), make(chan error, 1)
		go func() {
			for n.loop.State().Phase != core.Waiting {
				time.Sleep(time.Millisecond) // it begins beside this
			}
			said <- n.answered()
		}()
		_, err := n.loop.Run(context.Background(), n.stop)
		return errors.Join(err, <-said)
	}},
}

// night is one of which the claims end with the process, as those of a loop do.
func (how answering) night(t *testing.T, dir string, disk durable.Disk, plays ...play) *night {
	t.Helper()
	n := nightIn(t, dir, disk, plays...)
	self, err := proc.Self()
	if err != nil {
		t.Fatal(err)
	}
	n.queue = queue.Open(queue.Options{Dir: filepath.Join(dir, "queue"), Now: time.Now, Disk: disk, Host: "vm", Process: self, Boot: self.Boot})
	n.opt.Queue, n.runs.queue, n.opt.Limits.OnInterrupt = n.queue, n.queue, how.on
	return n
}

// answered is the person: what is noted as said was acknowledged.
func (n *night) answered() error {
	if err := Ask(n.opt.Disk, n.opt.Dir, Request{Kind: "resume", Answer: theAnswer, Items: []string{"a"}, At: time.Now()}); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(n.dir, "said"), nil, 0o600)
}

// lived is the loop from its beginning to its end.
func (n *night) lived() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	_, err := New(n.opt).Run(ctx, n.stop)
	return err
}

// TestAnswerKilledAtEachStep: a loop is killed at each of its steps on the disk, from when a
// person answers to its end. What was acknowledged reaches the session that asked, once, and
// no other; nothing of it is left over for a later question.
func TestAnswerKilledAtEachStep(t *testing.T) {
	t.Parallel()
	for _, how := range answerings {
		t.Run(how.name, func(t *testing.T) {
			t.Parallel()
			s := durabletest.Scenario{
				Sample: 16,
				Prepare: func(t *testing.T, dir string) {
					n := how.night(t, dir, durable.Disk{}, asking())
					n.add("a", "b")
					ctx, leave := context.WithCancel(t.Context())
					defer leave()
					n.loop, n.done = New(n.opt), make(chan error, 1)
					go func() {
						_, err := n.loop.Run(ctx, n.stop)
						n.done <- err
					}()
					if how.on == core.Skip {
						n.end()
						return
					}
					n.waits(core.ByAgent, "a")
					leave() // as it is
					if err := <-n.done; !errors.Is(err, context.Canceled) {
						t.Fatalf("the loop that should wait has ended: %v", err)
					}
				},
				Act: func(disk durable.Disk, dir string) error {
					n := how.night(t, dir, disk)
					err := how.given(n)
					for err == nil && flag.NArg() > 0 { // this process is to die, though the loop took fewer steps than once before
						err = disk.Step(durable.OpSync, "after the end")
					}
					return err
				},
				Check: func(t *testing.T, dir string, err error, at string) {
					if err != nil && !errors.Is(err, durabletest.ErrDied) {
						t.Fatalf("%s: %v", at, err)
					}
					checkAnswered(t, dir, how, at)
				},
			}
			if os.Getenv("REPRISE_LONG_TESTS") != "" {
				s.Sample = 0
			}
			s.CrashAtEachStep(t)
		})
	}
}

// checkAnswered has the next loops do what is left, and looks at what became of the answer.
func checkAnswered(t *testing.T, dir string, how answering, at string) {
	t.Helper()
	n := how.night(t, dir, durable.Disk{})
	s, err := ReadState(n.opt.Dir)
	if err != nil {
		t.Fatalf("%s: %v", at, err)
	}
	_, said := os.Stat(filepath.Join(dir, "said"))
	if said != nil { // nobody told the person that it was taken: so it is said again
		list, err := Questions(t.Context(), n.opt.Dir, s, n.queue)
		if err != nil {
			t.Fatalf("%s: %v", at, err)
		}
		if len(list) > 0 {
			if err := n.answered(); err != nil {
				t.Fatalf("%s: %v", at, err)
			}
		}
	}
	if err := n.lived(); err != nil {
		st, _ := ReadState(n.opt.Dir)
		data, _ := encode(st)
		text, _ := os.ReadFile(filepath.Join(n.opt.Dir, auditFile))
		t.Fatalf("%s: %v, said %v; the queue has %s; the loop is\n%s\n%s", at, err, said, n.states(), data, text)
	}
	if got := n.states(); got != "a done, b done" {
		t.Errorf("%s: the queue has %q", at, got)
	}
	told := 0
	for i, req := range n.runs.requests() {
		r, err := n.runs.Get(n.runs.id(i))
		if err != nil {
			continue // it died before it was on record, and was begun again
		}
		words := req.Task + req.SystemPrompt
		has := strings.Contains(words, theAnswer)
		if has && (!strings.HasPrefix(r.Key, "loop:a:") || strings.Count(req.Task, theAnswer) != 1 || !strings.Contains(words, "which of the two?")) {
			t.Errorf("%s: run %d (%s) is told\n%s", at, i, r.Key, words)
		}
		if has && r.Status == run.Completed {
			told++
		}
	}
	if told != 1 {
		t.Errorf("%s: %d sessions were told the answer and did the work, want one", at, told)
	}
	if left, err := pending(n.opt.Dir); err != nil || len(left) > 0 {
		t.Errorf("%s: left of it are %+v, %v", at, left, err)
	}
	if s, err = ReadState(n.opt.Dir); err != nil || s.Phase != core.Finished || len(s.Items) > 0 {
		t.Errorf("%s: the loop is %+v, %v", at, s, err)
	}
	if _, err := os.Stat(filepath.Join(n.opt.Dir, interruptFile)); err == nil {
		t.Errorf("%s: a person is still waited for", at)
	}
}
