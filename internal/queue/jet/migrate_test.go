//go:build unix

package jet_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"reprise/internal/config"
	"reprise/internal/durable"
	"reprise/internal/fleet"
	"reprise/internal/fleet/fleettest"
	"reprise/internal/queue"
	"reprise/internal/queue/jet"
)

// unsynced does not wait for the disk: a killed process is no power cut.
func unsynced() durable.Disk {
	return durable.NewDisk(func(s durable.Step) *durable.Fault {
		if s.Op == durable.OpSync || s.Op == durable.OpSyncDir {
			return &durable.Fault{Skip: true}
		}
		return nil
	})
}

func filesIn(dir string) *queue.Files {
	return queue.Open(queue.Options{Dir: filepath.Join(dir, "queue"), Now: time.Now, Disk: unsynced(), Host: "vm", Actor: "test"})
}

// migrateAndDie is the process that is killed: by itself, so that the moment is certain.
// where is SERVERS and PROJECT.
func migrateAndDieAt(where, dir, to string, step int) error {
	servers, project, _ := strings.Cut(where, " ")
	conn, err := fleet.Connect(context.Background(), fleet.Options{Servers: servers, Settings: config.Fleet{Namespace: "test"}, Name: "migrate", Now: time.Now})
	if err != nil {
		return err
	}
	q, err := jet.Open(context.Background(), jet.Options{Conn: conn, Project: project, Now: time.Now, Host: "vm"})
	if err != nil {
		return err
	}
	var from, into queue.Mover = filesIn(dir), q
	if to == "files" {
		from, into = into, from
	}
	n := 0
	_, err = queue.Migrate(context.Background(), from, into, false, func(what string) {
		if n++; n > step {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	})
	fmt.Println("steps", n)
	return err
}

// stock fills a queue with an item in each state, and gives what is to be found of it.
func stock(t *testing.T, q queue.Queue) {
	t.Helper()
	ctx := t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	_, err := q.Add(ctx, queue.Item{ID: "past", Title: "past", Priority: new(0)})
	must(err)
	c, err := q.Claim(ctx, queue.ClaimOptions{Worker: "w"})
	must(err)
	_, err = q.Done(ctx, c.Token, queue.Outcome{Summary: "was done"})
	must(err)
	_, err = q.Add(ctx, queue.Item{ID: "ready", Title: "ready", Body: strings.Repeat("long ", 100_000), Labels: []string{"big"}}, queue.Item{ID: "waits", Title: "waits", DependsOn: []string{"ready"}},
		queue.Item{Key: "key of parked", Title: "parked", Parked: true})
	must(err)
	c, err = q.Claim(ctx, queue.ClaimOptions{ID: "ready", Worker: "w"})
	must(err)
	_, err = q.Fail(ctx, c.Token, queue.Failure{Error: "once", RetryAfter: time.Nanosecond})
	must(err)
}

// picture is all that there is to say of a queue.
func picture(t *testing.T, q queue.Queue) []string {
	t.Helper()
	l, err := q.List(t.Context(), queue.Filter{})
	if err != nil || len(l.Trouble) > 0 {
		t.Fatal(err, l.Trouble)
	}
	var out []string
	for _, it := range l.Items {
		var ops []string
		for _, e := range it.History {
			ops = append(ops, fmt.Sprint(e.Op, e.Fence, e.Note))
		}
		out = append(out, fmt.Sprint(it.ID, it.State, it.Fence, it.Attempts, it.Waits, len(it.Body), it.Key, it.Labels, it.LastError, it.Created, it.Updated, it.Result != nil, ops))
	}
	slices.Sort(out)
	return out
}

// claimable claims all that a queue gives, and puts it back.
func claimable(t *testing.T, q queue.Queue) []string {
	t.Helper()
	var ids []string
	var tokens []queue.Token
	for {
		c, err := q.Claim(t.Context(), queue.ClaimOptions{})
		if errors.Is(err, queue.ErrEmpty) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		ids, tokens = append(ids, c.Item.ID), append(tokens, c.Token)
	}
	for _, token := range tokens {
		if _, err := q.Release(t.Context(), token, ""); err != nil {
			t.Fatal(err)
		}
	}
	return ids
}

// A move that is killed with SIGKILL before each of its changes loses nothing, and at no
// moment would both queues give an item to somebody; the next one goes on with it, and once
// more changes nothing. There and back, an item is what it was.
func TestMigrateKilledAtEachStep(t *testing.T) {
	t.Parallel()
	s := fleettest.Server(t, func(o *server.Options) { o.SyncInterval = time.Hour })
	conn := connect(t, s.ClientURL())
	for _, to := range []string{"fleet", "files"} {
		for step, over := 0, false; !over; step++ {
			project, dir := fmt.Sprintf("m-%s-%d", to, step), t.TempDir()
			q := open(t, jet.Options{Conn: conn, Project: project, Host: "vm", Actor: "test"})
			files := filesIn(dir)
			var from, into queue.Queue = files, q
			if to == "files" {
				from, into = q, files
			}
			stock(t, from)
			want := picture(t, from)
			cmd := spawn(t, "migrate", s.ClientURL()+" "+project, dir, to, strconv.Itoa(step))
			out, err := cmd.Output()
			over = err == nil
			if over && !strings.HasPrefix(string(out), "steps ") || !over && cmd.ProcessState.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
				t.Fatalf("to %s, step %d: %v %s", to, step, err, out)
			}
			for _, id := range claimable(t, from) {
				if slices.Contains(claimable(t, into), id) {
					t.Errorf("to %s, killed at step %d: both queues give %s", to, step, id)
				}
			}
			for again := range 2 {
				m, err := queue.Migrate(t.Context(), from.(queue.Mover), into.(queue.Mover), false, nil)
				if err != nil || !m.Whole() || again == 1 && len(m.Moved) != 0 {
					t.Fatalf("to %s, step %d: %+v %v", to, step, m, err)
				}
			}
			if left := picture(t, from); len(left) != 0 {
				t.Errorf("to %s, step %d: left behind: %v", to, step, left)
			}
			got := picture(t, into)
			if len(got) != len(want) {
				t.Fatalf("to %s, step %d: %d items, want %d", to, step, len(got), len(want))
			}
			if over { // nobody has claimed anything between
				if !slices.Equal(got, want) {
					t.Errorf("to %s: %s\nwant %s", to, strings.Join(got, "\n"), strings.Join(want, "\n"))
				}
				if step < 8 {
					t.Errorf("to %s: %d steps only", to, step)
				}
			}
		}
	}
}

// An item that somebody has stays, and so does one whose id is there already; what another
// machine is moving is left to it.
func TestMigrateLeaves(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	conn := connect(t, fleettest.Server(t).ClientURL())
	q := open(t, jet.Options{Conn: conn, Project: "shop", Host: "vm", Actor: "test"})
	here, there := filesIn(t.TempDir()), filesIn(t.TempDir())
	for _, f := range []*queue.Files{here, there} {
		if _, err := f.Add(ctx, queue.Item{ID: "both", Title: "both"}, queue.Item{ID: "mine", Title: "mine"}); err != nil {
			t.Fatal(err)
		}
	}
	c, err := here.Claim(ctx, queue.ClaimOptions{ID: "mine"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := q.Add(ctx, queue.Item{ID: "both", Title: "on the servers"}); err != nil {
		t.Fatal(err)
	}
	dry, err := queue.Migrate(ctx, here, q, true, nil)
	if err != nil || len(dry.Moved) != 1 || len(dry.Claimed) != 1 {
		t.Fatalf("%+v %v", dry, err)
	}
	if ids := claimable(t, q); !slices.Equal(ids, []string{"both"}) {
		t.Fatalf("a dry run has moved %v", ids)
	}
	m, err := queue.Migrate(ctx, here, q, false, nil)
	if err != nil || len(m.Moved) != 0 || len(m.Claimed) != 1 || len(m.There) != 1 || m.Whole() {
		t.Fatalf("%+v %v", m, err)
	}
	// Another machine has got as far as receiving.
	s, _, err := there.Stock(ctx)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(s, func(s queue.Stocked) bool { return s.Record.ID == "mine" })
	if err := q.Receive(ctx, there.Origin(), s[i].Record); err != nil {
		t.Fatal(err)
	}
	if _, err := q.Get(ctx, "mine"); !errors.Is(err, queue.ErrNotFound) {
		t.Fatalf("what is being moved is there: %v", err)
	}
	if _, err := here.Release(ctx, c.Token, ""); err != nil {
		t.Fatal(err)
	}
	if m, err = queue.Migrate(ctx, here, q, false, nil); err != nil || len(m.Moved) != 0 || len(m.There) != 2 {
		t.Fatalf("%+v %v", m, err)
	}
	rep, err := q.Check(ctx, true)
	if err != nil || len(rep.Problems) != 1 || !strings.Contains(rep.Problems[0].What, "queue migrate") {
		t.Fatalf("%+v %v", rep, err)
	}
	if m, err = queue.Migrate(ctx, there, q, false, nil); err != nil || len(m.Moved) != 1 {
		t.Fatalf("%+v %v", m, err)
	}
}

// What waits for an item that comes later, and is done by then, waits no more.
func TestMigrateUnblocks(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	q := open(t, jet.Options{Conn: connect(t, fleettest.Server(t).ClientURL()), Project: "shop", Host: "vm", Actor: "test"})
	here := filesIn(t.TempDir())
	if _, err := here.Add(ctx, queue.Item{ID: "x", Title: "x"}, queue.Item{ID: "y", Title: "y", DependsOn: []string{"x"}}); err != nil {
		t.Fatal(err)
	}
	c, err := here.Claim(ctx, queue.ClaimOptions{ID: "x"})
	if err == nil {
		_, err = queue.Migrate(ctx, here, q, false, nil)
	}
	if err == nil {
		_, err = here.Done(ctx, c.Token, queue.Outcome{})
	}
	if err == nil {
		_, err = queue.Migrate(ctx, here, q, false, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	if y, err := q.Get(ctx, "y"); err != nil || y.State != queue.Ready {
		t.Errorf("%+v %v", y, err)
	}
	if it, err := q.Next(ctx, queue.ClaimOptions{}); err != nil || it.ID != "y" {
		t.Errorf("next is %+v, %v", it, err)
	}
}
