package queue_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"reprise/internal/durable"
	"reprise/internal/durable/durabletest"
	"reprise/internal/queue"
)

var night = time.Date(2026, 3, 1, 22, 0, 0, 0, time.UTC)

func at(d time.Duration) func() time.Time {
	return func() time.Time { return night.Add(d) }
}

func files(disk durable.Disk, dir string, now func() time.Time) *queue.Files {
	return queue.Open(queue.Options{Dir: filepath.Join(dir, "queue"), Now: now, Disk: disk, Host: "vm", Actor: "test"})
}

// crash is one change of a queue. Before it there are the items a, b that waits for a,
// c, and what prepare did.
type crash struct {
	name    string
	prepare func(ctx context.Context, q *queue.Files) error
	act     func(ctx context.Context, q *queue.Files) error
	// acked is what holds of item a once act has returned nil.
	acked func(it queue.Item) bool
	fresh int // items that act adds
	gone  bool
	// spared is tried at some of its steps only, unless the tests may take long.
	spared bool
}

func claimA(ctx context.Context, q *queue.Files) error {
	_, err := q.Claim(ctx, queue.ClaimOptions{ID: "a", Worker: "w"})
	return err
}

func doneA(ctx context.Context, q *queue.Files) error {
	_, err := q.Done(ctx, "a@1", queue.Outcome{Summary: "yes"})
	return err
}

func nothing(context.Context, *queue.Files) error { return nil }

func then(fs ...func(context.Context, *queue.Files) error) func(context.Context, *queue.Files) error {
	return func(ctx context.Context, q *queue.Files) error {
		for _, f := range fs {
			if err := f(ctx, q); err != nil {
				return err
			}
		}
		return nil
	}
}

func is(s queue.State) func(queue.Item) bool {
	return func(it queue.Item) bool { return it.State == s }
}

func failA(permanent bool) func(context.Context, *queue.Files) error {
	return func(ctx context.Context, q *queue.Files) error {
		_, err := q.Fail(ctx, "a@1", queue.Failure{Error: "no", Permanent: permanent})
		return err
	}
}

func parkA(ctx context.Context, q *queue.Files) error {
	_, err := q.Park(ctx, "a", "", "why")
	return err
}

// waitA lets a wait for c.
func waitA(ctx context.Context, q *queue.Files) error {
	_, err := q.Edit(ctx, "a", queue.Edit{DependsOn: &[]string{"c"}})
	return err
}

var crashes = []crash{
	{"add", nothing, func(ctx context.Context, q *queue.Files) error {
		_, err := q.Add(ctx, queue.Item{ID: "d", Title: "d", DependsOn: []string{"e"}}, queue.Item{ID: "e", Title: "e"}, queue.Item{ID: "f", Title: "f"})
		return err
	}, is(queue.Ready), 3, false, false},
	{"claim", nothing, claimA, is(queue.Claimed), 0, false, false},
	{"done", claimA, doneA, func(it queue.Item) bool { return it.State == queue.Done && it.Result.Summary == "yes" }, 0, false, false},
	{"fail", claimA, failA(false), func(it queue.Item) bool { return it.State == queue.Ready && it.Attempts == 1 && it.LastError == "no" }, 0, false, false},
	{"die", claimA, failA(true), is(queue.Dead), 0, false, true},
	{"release", claimA, func(ctx context.Context, q *queue.Files) error { _, err := q.Release(ctx, "a@1", ""); return err }, is(queue.Ready), 0, false, true},
	{"extend", claimA, func(ctx context.Context, q *queue.Files) error {
		_, err := q.Extend(ctx, "a@1", 2*time.Hour)
		return err
	}, func(it queue.Item) bool {
		return it.State == queue.Claimed && it.Claim.Until.After(night.Add(time.Hour))
	}, 0, false, true},
	{"progress", claimA, func(ctx context.Context, q *queue.Files) error {
		return q.Progress(ctx, "a@1", queue.Progress{StepsCompleted: 1, StepsTotal: 2})
	}, func(it queue.Item) bool { return it.Progress != nil && it.Progress.StepsTotal == 2 }, 0, false, true},
	{"park", nothing, parkA, is(queue.Blocked), 0, false, true},
	{"park claimed", claimA, func(ctx context.Context, q *queue.Files) error { _, err := q.Park(ctx, "a", "a@1", "why"); return err }, is(queue.Blocked), 0, false, true},
	{"unpark", parkA, func(ctx context.Context, q *queue.Files) error { _, err := q.Unpark(ctx, "a", ""); return err }, is(queue.Ready), 0, false, true},
	{"retry", then(claimA, failA(true)), func(ctx context.Context, q *queue.Files) error { _, err := q.Retry(ctx, "a", ""); return err }, func(it queue.Item) bool { return it.State == queue.Ready && it.Attempts == 0 }, 0, false, true},
	{"drop", nothing, func(ctx context.Context, q *queue.Files) error { _, err := q.Drop(ctx, "a", ""); return err }, is(queue.Dead), 0, false, true},
	{"edit", nothing, func(ctx context.Context, q *queue.Files) error {
		nine := 9
		_, err := q.Edit(ctx, "a", queue.Edit{Priority: &nine})
		return err
	}, func(it queue.Item) bool { return it.State == queue.Ready && it.Urgency() == 9 }, 0, false, true},
	{"edit to wait", nothing, func(ctx context.Context, q *queue.Files) error {
		_, err := q.Edit(ctx, "a", queue.Edit{DependsOn: &[]string{"c"}})
		return err
	}, is(queue.Blocked), 0, false, true},
	{"park waiting", waitA, parkA, is(queue.Blocked), 0, false, true},
	{"edit waiting", waitA, func(ctx context.Context, q *queue.Files) error {
		_, err := q.Edit(ctx, "a", queue.Edit{DependsOn: &[]string{}})
		return err
	}, is(queue.Ready), 0, false, true},
	{"drop waiting", waitA, func(ctx context.Context, q *queue.Files) error { _, err := q.Drop(ctx, "a", ""); return err }, is(queue.Dead), 0, false, true},
	{"gc", then(claimA, doneA, func(ctx context.Context, q *queue.Files) error {
		if _, err := q.Claim(ctx, queue.ClaimOptions{ID: "b"}); err != nil {
			return err
		}
		_, err := q.Done(ctx, "b@1", queue.Outcome{})
		return err
	}), func(ctx context.Context, _ *queue.Files) error { return nil }, is(queue.Done), 0, true, true},
}

func (c *crash) scenario() durabletest.Scenario {
	sample := 0
	if c.spared && os.Getenv("REPRISE_LONG_TESTS") == "" {
		sample = 4
	}
	return durabletest.Scenario{
		Sample: sample,
		Prepare: func(t *testing.T, dir string) {
			q := files(unsynced(), dir, at(0))
			if _, err := q.Add(t.Context(), queue.Item{ID: "a", Title: "a"}, queue.Item{ID: "b", Title: "b", DependsOn: []string{"a"}}, queue.Item{ID: "c", Title: "c"}); err != nil {
				t.Fatal(err)
			}
			if err := c.prepare(t.Context(), q); err != nil {
				t.Fatal(err)
			}
		},
		Act: func(disk durable.Disk, dir string) error {
			if c.gone {
				_, err := files(disk, dir, at(time.Hour)).GC(context.Background(), queue.Retention{DoneAfter: time.Minute})
				return err
			}
			return c.act(context.Background(), files(disk, dir, at(time.Minute/2)))
		},
		Check: func(t *testing.T, dir string, err error, where string) { c.check(t, dir, err, where) },
	}
}

// check looks at what a crash left, says again what was said, and then works off the
// whole queue.
func (c *crash) check(t *testing.T, dir string, err error, where string) {
	t.Helper()
	ctx := t.Context()
	if err == nil && !c.gone {
		it, gerr := files(durable.Disk{}, dir, at(time.Minute/2)).Get(ctx, "a")
		if gerr != nil || !c.acked(it) {
			t.Fatalf("%s: acknowledged, and a is %+v (%v)", where, it, gerr)
		}
	}
	q := files(unsynced(), dir, at(3*time.Hour))
	if _, rerr := q.Reclaim(ctx); rerr != nil {
		t.Fatalf("%s: reclaim: %v", where, rerr)
	}
	l, lerr := q.List(ctx, queue.Filter{})
	if lerr != nil || len(l.Trouble) > 0 {
		t.Fatalf("%s: %v %v", where, lerr, l.Trouble)
	}
	if rep, cerr := q.Check(ctx, false); cerr != nil || len(rep.Problems) > 0 {
		t.Fatalf("%s: check: %v %+v", where, cerr, rep.Problems)
	}
	if c.gone {
		if len(l.Items) < 1 || len(l.Items) > 3 {
			t.Fatalf("%s: %d items", where, len(l.Items))
		}
		return
	}
	if n := len(l.Items); n < 3 || n > 3+c.fresh || err == nil && n != 3+c.fresh {
		t.Fatalf("%s: %d items (%v)", where, n, err)
	}
	for _, it := range l.Items {
		switch {
		case it.State == queue.Dead:
			_, err = q.Retry(ctx, it.ID, "")
		case it.State == queue.Blocked && it.Waits == "":
			_, err = q.Unpark(ctx, it.ID, "")
		case it.State == queue.Claimed:
			t.Fatalf("%s: %s is still claimed until %s", where, it.ID, it.Claim.Until)
		default:
			err = nil
		}
		if err != nil {
			t.Fatalf("%s: %s: %v", where, it.ID, err)
		}
	}
	done := map[string]bool{}
	for {
		cl, err := q.Claim(ctx, queue.ClaimOptions{})
		if errors.Is(err, queue.ErrEmpty) {
			break
		}
		if err != nil || done[cl.Item.ID] {
			t.Fatalf("%s: claim: %s again, %v", where, cl.Item.ID, err)
		}
		done[cl.Item.ID] = true
		if _, err := q.Done(ctx, cl.Token, queue.Outcome{}); err != nil {
			t.Fatalf("%s: %v", where, err)
		}
	}
	end, err := q.List(ctx, queue.Filter{States: []queue.State{queue.Done}})
	if err != nil || len(end.Items) != len(l.Items) {
		t.Fatalf("%s: %d of %d items done in the end (%v)", where, len(end.Items), len(l.Items), err)
	}
}

// Whatever is killed at any of its steps leaves a queue in which everything is there
// once, and can be worked off.
func TestKilledAtEachStep(t *testing.T) {
	for _, c := range crashes {
		t.Run(c.name, func(t *testing.T) { c.scenario().CrashAtEachStep(t) })
	}
}

// The same where the disk is full, fails or writes less than it says, and stays so.
func TestDiskFailsAtEachStep(t *testing.T) {
	for _, c := range crashes {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			errs := []error{syscall.ENOSPC}
			if os.Getenv("REPRISE_LONG_TESTS") != "" {
				errs = append(errs, syscall.EIO)
			}
			c.scenario().FailAtEachStep(t, errs...)
		})
	}
}

// What a full disk refused can be said again when there is space, with the same token.
func TestFullDiskThenSaidAgain(t *testing.T) {
	for _, room := range []int{0, 1, 300} {
		dir := t.TempDir()
		(&crash{prepare: claimA}).scenario().Prepare(t, dir)
		disk, _ := durabletest.Full(room, syscall.ENOSPC)
		full := files(disk, dir, at(time.Second))
		if err := doneA(t.Context(), full); !errors.Is(err, syscall.ENOSPC) {
			t.Fatalf("done on a full disk: %v", err)
		}
		if _, err := full.Extend(t.Context(), "a@1", time.Hour); err != nil {
			t.Fatalf("a lease is extended without space: %v", err)
		}
		if _, err := full.Claim(t.Context(), queue.ClaimOptions{ID: "c"}); err != nil {
			t.Fatalf("a claim needs no space: %v", err)
		}
		if _, err := full.Add(t.Context(), queue.Item{Title: "x"}); !errors.Is(err, syscall.ENOSPC) {
			t.Fatalf("add on a full disk: %v", err)
		}
		q := files(unsynced(), dir, at(2*time.Second))
		if err := doneA(t.Context(), q); err != nil {
			t.Fatal(err)
		}
		it, err := q.Get(t.Context(), "b")
		if err != nil || it.State != queue.Ready {
			t.Fatalf("b is %s (%v)", it.State, err)
		}
		left, err := filepath.Glob(filepath.Join(dir, "queue", "*", ".*"))
		if err != nil || len(left) > 0 {
			t.Fatalf("left behind: %v %v", left, err)
		}
	}
}

// A settling whose move failed is told again by another word, and counts once.
func TestSettledOtherwiseAfterFailure(t *testing.T) {
	dir := t.TempDir()
	(&crash{prepare: claimA}).scenario().Prepare(t, dir)
	broken := durable.NewDisk(func(s durable.Step) *durable.Fault {
		if s.Op == durable.OpRename && filepath.Base(filepath.Dir(s.Path)) != "claimed" {
			return &durable.Fault{Err: syscall.EIO}
		}
		return nil
	})
	for range 3 {
		if err := failA(false)(t.Context(), files(broken, dir, at(0))); !errors.Is(err, syscall.EIO) {
			t.Fatal(err)
		}
	}
	q := files(unsynced(), dir, at(0))
	it, err := q.Get(t.Context(), "a")
	if err != nil || it.State != queue.Claimed || it.Attempts != 1 {
		t.Fatalf("%+v %v", it, err)
	}
	if err := doneA(t.Context(), q); err != nil {
		t.Fatal(err)
	}
	it, err = q.Get(t.Context(), "a")
	var ops []string
	for _, e := range it.History {
		ops = append(ops, e.Op)
	}
	if err != nil || fmt.Sprint(ops) != "[added claimed done]" {
		t.Fatalf("history %v (%v)", ops, err)
	}
}

// Reading needs no right to write, and a queue that cannot be written says so and
// stays as it is.
func TestReadOnlyDirectory(t *testing.T) {
	if os.Getuid() == 0 && !dropsRoot(t) {
		return
	}
	dir := t.TempDir()
	(&crash{prepare: nothing}).scenario().Prepare(t, dir)
	var all []string
	err := filepath.WalkDir(dir, func(p string, d os.DirEntry, err error) error {
		if d.IsDir() {
			all = append(all, p)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range all {
		if err := os.Chmod(d, 0o500); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.Chmod(d, 0o700) })
	}
	q := files(durable.Disk{}, dir, at(0))
	ctx := t.Context()
	if l, err := q.List(ctx, queue.Filter{}); err != nil || len(l.Items) != 3 {
		t.Fatal(l, err)
	}
	if it, err := q.Next(ctx, queue.ClaimOptions{}); err != nil || it.ID != "a" {
		t.Fatal(it, err)
	}
	if _, err := q.Check(ctx, false); err != nil {
		t.Fatal(err)
	}
	if _, err := q.GC(ctx, queue.Retention{DoneAfter: 1, DryRun: true}); err != nil {
		t.Fatal(err)
	}
	for what, err := range map[string]error{
		"claim": claimA(ctx, q), "park": parkA(ctx, q),
		"add": func() error { _, err := q.Add(ctx, queue.Item{Title: "x"}); return err }(),
	} {
		if !errors.Is(err, os.ErrPermission) {
			t.Errorf("%s: %v", what, err)
		}
	}
}
