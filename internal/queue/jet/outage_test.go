package jet_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"reprise/internal/config"
	"reprise/internal/fleet"
	"reprise/internal/fleet/fleettest"
	"reprise/internal/queue"
	"reprise/internal/queue/jet"
)

// wire is a connection between a client and a server that can be held up in each
// direction. What is held up when it is let go again is lost, with the connection.
type wire struct {
	l  net.Listener
	to string

	mu       sync.Mutex
	cond     *sync.Cond
	up, down bool // held up: to the server, from it
	conns    map[net.Conn]bool
}

func newWire(t testing.TB, to string) *wire {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{l: l, to: strings.TrimPrefix(to, "nats://"), conns: map[net.Conn]bool{}}
	w.cond = sync.NewCond(&w.mu)
	go w.accept()
	t.Cleanup(func() {
		l.Close()
		w.set(false, false)
	})
	return w
}

func (w *wire) url() string { return "nats://" + w.l.Addr().String() }

func (w *wire) accept() {
	for {
		a, err := w.l.Accept()
		if err != nil {
			return
		}
		go func() {
			b, err := net.Dial("tcp", w.to)
			if err != nil {
				a.Close()
				return
			}
			w.mu.Lock()
			w.conns[a], w.conns[b] = true, true
			w.mu.Unlock()
			go w.carry(a, b, &w.up)
			w.carry(b, a, &w.down)
		}()
	}
}

func (w *wire) carry(from, to net.Conn, held *bool) {
	defer from.Close()
	defer to.Close()
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		w.mu.Lock()
		for *held && w.conns[from] {
			w.cond.Wait()
		}
		gone := !w.conns[from]
		w.mu.Unlock()
		if gone || err != nil {
			return
		}
		if _, err := to.Write(buf[:n]); err != nil {
			return
		}
	}
}

// set holds up or lets go. Letting go ends what there is.
func (w *wire) set(up, down bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.up, w.down = up, down
	if !up && !down {
		for c := range w.conns {
			c.Close()
		}
		w.conns = map[net.Conn]bool{}
	}
	w.cond.Broadcast()
}

func behind(t *testing.T, w *wire, project string) *jet.Queue {
	t.Helper()
	return open(t, jet.Options{Conn: connect(t, w.url()), Project: project, Host: "vm", Patience: time.Minute})
}

// hasty is a queue behind a wire that gives up soon. Only what is not to be answered has
// little time; opening is to be.
func hasty(t testing.TB, w *wire, o jet.Options) *jet.Queue {
	t.Helper()
	o.Conn, o.Patience, o.Now = connect(t, w.url()), 300*time.Millisecond, time.Now
	q, err := jet.Open(t.Context(), o)
	for end := time.Now().Add(time.Minute); errors.Is(err, fleet.ErrUnreachable) && time.Now().Before(end); {
		q, err = jet.Open(t.Context(), o)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { q.Close() })
	return q
}

// Without the network nothing is claimed, and it is said why. What is in hand goes on, and
// is settled when the network is back within the lease; what the servers were told and
// did not answer counts once.
func TestLostNetwork(t *testing.T) {
	t.Parallel()
	s := fleettest.Server(t)
	for _, way := range []struct {
		name     string
		up, down bool
	}{{"nothing arrives", true, true}, {"no answer comes back", false, true}} {
		t.Run(way.name, func(t *testing.T) {
			t.Parallel()
			ctx := t.Context()
			project := strings.ReplaceAll(way.name, " ", "-")
			w := newWire(t, s.ClientURL())
			q, safe := behind(t, w, project), open(t, jet.Options{Conn: connect(t, s.ClientURL()), Project: project, Host: "other"})
			if _, err := q.Add(ctx, queue.Item{ID: "held", Title: "x", Priority: new(0)}, queue.Item{ID: "free", Title: "x"}); err != nil {
				t.Fatal(err)
			}
			c, err := q.Claim(ctx, queue.ClaimOptions{Lease: 10 * time.Minute})
			if err != nil {
				t.Fatal(err)
			}
			hasty := hasty(t, w, jet.Options{Project: project, Host: "vm"})
			w.set(way.up, way.down)
			for what, ask := range map[string]func() error{
				"claim":  func() error { _, err := hasty.Claim(ctx, queue.ClaimOptions{}); return err },
				"extend": func() error { _, err := hasty.Extend(ctx, c.Token, 0); return err },
				"done":   func() error { _, err := hasty.Done(ctx, c.Token, queue.Outcome{Summary: "in time"}); return err },
				"list":   func() error { _, err := hasty.List(ctx, queue.Filter{}); return err },
			} {
				if err := ask(); !errors.Is(err, fleet.ErrUnreachable) || what == "claim" && !strings.Contains(err.Error(), w.url()) {
					t.Errorf("%s: %v", what, err)
				}
			}
			if it, err := safe.Get(ctx, "free"); err != nil || it.Fence != 0 {
				t.Errorf("something was claimed: %+v %v", it, err)
			}
			w.set(false, false)
			for deadline := time.Now().Add(time.Minute); ; {
				if _, err = q.Done(ctx, c.Token, queue.Outcome{Summary: "in time"}); !errors.Is(err, fleet.ErrUnreachable) || time.Now().After(deadline) {
					break
				}
			}
			it, gerr := safe.Get(ctx, "held")
			if err != nil || gerr != nil || it.State != queue.Done || len(it.History) != 3 {
				t.Fatalf("%v %v %+v", err, gerr, it)
			}
			if c, err = q.Claim(ctx, queue.ClaimOptions{}); err != nil || c.Item.ID != "free" {
				t.Fatalf("%+v %v", c, err)
			}
		})
	}
}

// An answer that is lost on its way has the same sent again under the same id; it is done
// once, whichever of the two came first.
func TestLostAnswer(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s := fleettest.Server(t)
	w := newWire(t, s.ClientURL())
	q, safe := behind(t, w, "shop"), open(t, jet.Options{Conn: connect(t, s.ClientURL()), Project: "shop", Host: "other"})
	if _, err := q.Add(ctx, queue.Item{ID: "a", Title: "x"}); err != nil {
		t.Fatal(err)
	}
	c, err := q.Claim(ctx, queue.ClaimOptions{Lease: 10 * time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	said := make(chan error, 1)
	go func() { said <- q.Progress(ctx, c.Token, queue.Progress{StepsCompleted: 1}) }()
	if err := <-said; err != nil {
		t.Fatal(err)
	}
	// The publication of the next word is let through, and its answer is not.
	added := make(chan error, 1)
	w.set(false, true)
	go func() {
		_, err := q.Add(ctx, queue.Item{ID: "b", Title: "x"}) // it needs no answer before it
		added <- err
	}()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		if it, err := safe.Get(ctx, "b"); err == nil && it.State == queue.Ready {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("it never came")
		}
	}
	w.set(false, false)
	if err := <-added; err != nil {
		t.Fatal(err)
	}
	it, err := safe.Get(ctx, "b")
	if err != nil || len(it.History) != 1 {
		t.Fatalf("%+v %v", it, err)
	}
}

// Leases are by the servers' clock: machines whose clocks are hours apart agree on when
// one is over.
func TestClocksApart(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s := fleettest.Server(t)
	at := func(off time.Duration) *jet.Queue {
		now := func() time.Time { return time.Now().Add(off) }
		conn, err := fleet.Connect(ctx, fleet.Options{Servers: s.ClientURL(), Settings: config.Fleet{Namespace: "test"}, Name: "x", Now: now})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		q, err := jet.Open(ctx, jet.Options{Conn: conn, Project: "shop", Now: now, Host: fmt.Sprint(off)})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { q.Close() })
		return q
	}
	late, early := at(-5*time.Hour), at(7*time.Hour)
	if _, err := late.Add(ctx, queue.Item{ID: "a", Title: "x"}); err != nil {
		t.Fatal(err)
	}
	c, err := late.Claim(ctx, queue.ClaimOptions{Lease: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	if off := time.Until(c.Until) - time.Hour; off.Abs() > time.Minute {
		t.Errorf("the lease ends %s off the servers' time", off)
	}
	if it, err := early.Get(ctx, "a"); err != nil || time.Since(it.Created).Abs() > time.Minute {
		t.Errorf("added at %s, %v", it.Created, err)
	}
	if got, err := early.Reclaim(ctx); err != nil || len(got) != 0 {
		t.Fatalf("a clock that is ahead took a claim that holds: %v %v", got, err)
	}
	until, err := late.Extend(ctx, c.Token, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	wait, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if err := early.Wait(wait, queue.ClaimOptions{}); err != nil {
		t.Fatal(err)
	}
	again, err := early.Claim(ctx, queue.ClaimOptions{Lease: time.Hour})
	// Here the servers have this process's clock. What a machine has of it is behind by as
	// long as an answer was under way, never ahead: so the lease may have been shorter than
	// was asked for, and nobody has it before the end that was told.
	if now := time.Now(); err != nil || again.Fence != 2 || now.Before(until) {
		t.Fatalf("%+v at %s, of a lease until %s: %v", again, now, until, err)
	}
	if got, err := late.Reclaim(ctx); err != nil || len(got) != 0 {
		t.Fatalf("%v %v", got, err)
	}
	if _, err := late.Done(ctx, c.Token, queue.Outcome{}); !errors.Is(err, queue.ErrLost) {
		t.Fatal(err)
	}
}

// What a role may not do is said, with what was refused.
func TestPermissions(t *testing.T) {
	t.Parallel()
	s := fleettest.Server(t, func(o *server.Options) {
		o.NoAuthUser = "reader"
		o.Users = []*server.User{
			{Username: "reader", Permissions: &server.Permissions{
				Publish:   &server.SubjectPermission{Allow: []string{"$JS.API.STREAM.INFO.>", "$JS.API.STREAM.MSG.GET.KV_test-queue-shop", "$JS.API.CONSUMER.*.KV_test-queue-shop.>", "$JS.API.CONSUMER.MSG.NEXT.KV_test-queue-shop.>"}},
				Subscribe: &server.SubjectPermission{Allow: []string{"_INBOX.>"}},
			}},
			{Username: "admin", Password: "x"},
		}
	})
	ctx := t.Context()
	admin := open(t, jet.Options{Conn: connect(t, strings.Replace(s.ClientURL(), "nats://", "nats://admin:x@", 1)), Project: "shop"})
	if _, err := admin.Add(ctx, queue.Item{ID: "a", Title: "x"}); err != nil {
		t.Fatal(err)
	}
	conn := connect(t, s.ClientURL())
	q := open(t, jet.Options{Conn: conn, Project: "shop", Patience: time.Minute})
	if l, err := q.List(ctx, queue.Filter{}); err != nil || len(l.Items) != 1 {
		t.Fatalf("%+v %v", l, err)
	}
	err := refused(t, jet.Options{Conn: conn, Project: "shop"}, func(q *jet.Queue) error {
		_, err := q.Claim(ctx, queue.ClaimOptions{})
		return err
	})
	if !errors.Is(err, fleet.ErrRefused) || !strings.Contains(err.Error(), "$KV.test-queue-shop.item.a") {
		t.Fatalf("error %v", err)
	}
}

// What stands in the way is told by the setting that it is about.
func TestSetupIsTold(t *testing.T) {
	t.Parallel()
	plain := fleettest.Server(t, func(o *server.Options) { o.JetStream = false })
	alone := fleettest.Server(t)
	for _, c := range []struct {
		url  string
		set  config.Fleet
		says string
	}{
		{plain.ClientURL(), config.Fleet{Namespace: "test"}, "has no JetStream"},
		{alone.ClientURL(), config.Fleet{Namespace: "test", Replicas: 3}, "fleet.replicas is 3"},
	} {
		conn, err := fleet.Connect(t.Context(), fleet.Options{Servers: c.url, Settings: c.set, Name: t.Name(), Now: time.Now})
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err = jet.Open(t.Context(), jet.Options{Conn: conn, Project: "shop", Now: time.Now, Patience: time.Second}); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("error %v, which does not say %q", err, c.says)
		}
	}
}

// An item that a hand has changed on the servers, and that nobody is given for it, is named,
// until it is written anew.
func TestChangedByHand(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	conn := connect(t, fleettest.Server(t).ClientURL())
	q := open(t, jet.Options{Conn: conn, Project: "shop"})
	if _, err := q.Add(ctx, queue.Item{ID: "a", Title: "x"}); err != nil {
		t.Fatal(err)
	}
	kv, err := conn.JS.KeyValue(ctx, conn.Names("shop").Queue)
	if err != nil {
		t.Fatal(err)
	}
	e, err := kv.Get(ctx, "item.a")
	if err == nil {
		_, err = kv.Put(ctx, "item.a", e.Value())
	}
	if err != nil {
		t.Fatal(err)
	}
	l, err := q.List(ctx, queue.Filter{})
	rep, cerr := q.Check(ctx, false)
	if err != nil || cerr != nil || len(l.Items) != 0 || len(l.Trouble) != 1 || len(rep.Problems) != 1 || !strings.Contains(rep.Problems[0].What, "queue edit") {
		t.Fatalf("%+v %v\n%+v %v", l, err, rep, cerr)
	}
	title := "y"
	if _, err := q.Edit(ctx, "a", queue.Edit{Title: &title}); err != nil {
		t.Fatal(err)
	}
	if l, err = q.List(ctx, queue.Filter{}); err != nil || len(l.Items) != 1 || len(l.Trouble) != 0 {
		t.Fatalf("%+v %v", l, err)
	}
}

// A machine that may not read the answers to what it asks is told so, and waits for none.
func TestNoInbox(t *testing.T) {
	t.Parallel()
	s := fleettest.Server(t, func(o *server.Options) {
		o.NoAuthUser = "worker"
		o.Users = []*server.User{
			{Username: "worker", Permissions: &server.Permissions{
				Publish:   &server.SubjectPermission{Allow: []string{">"}},
				Subscribe: &server.SubjectPermission{Allow: []string{"_INBOX.>"}},
			}},
		}
	})
	conn, err := fleet.Connect(t.Context(), fleet.Options{Servers: s.ClientURL(), Settings: config.Fleet{Namespace: "test", Inbox: "_INBOX_one"}, Name: t.Name(), Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for range 2 { // the servers say it once
		_, err = jet.Open(t.Context(), jet.Options{Conn: conn, Project: "shop", Now: time.Now, Patience: 10 * time.Minute})
		if !errors.Is(err, fleet.ErrRefused) || !strings.Contains(err.Error(), "fleet.inbox") || !strings.Contains(err.Error(), "_INBOX_one") {
			t.Fatalf("error %v", err)
		}
	}
}

// refused is what comes of something that the servers refuse. They just do not answer what
// they refuse, so it takes all the patience that there is: little is tried first, and more
// where the machine needs that to get as far.
func refused(t *testing.T, o jet.Options, do func(*jet.Queue) error) (err error) {
	t.Helper()
	o.Now = time.Now
	for o.Patience = time.Second; o.Patience < 2*time.Minute; o.Patience *= 5 {
		var q *jet.Queue
		if q, err = jet.Open(t.Context(), o); err != nil {
			continue
		}
		err = do(q)
		q.Close()
		if errors.Is(err, fleet.ErrRefused) {
			break
		}
	}
	return err
}

// Items that are too long for one message are kept all the same, and what nobody needs any
// more is found.
func TestLongItems(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s := fleettest.Server(t)
	conn := connect(t, s.ClientURL())
	q := open(t, jet.Options{Conn: conn, Project: "shop"})
	body := strings.Repeat("long ", 600_000)
	if _, err := q.Add(ctx, queue.Item{ID: "a", Title: "x", Body: body}); err != nil {
		t.Fatal(err)
	}
	store, err := conn.JS.ObjectStore(ctx, conn.Names("shop").Large)
	if err != nil {
		t.Fatal(err)
	}
	objects := func() int {
		t.Helper()
		st, err := store.List(ctx)
		if err != nil && !strings.Contains(err.Error(), "no objects") {
			t.Fatal(err)
		}
		return len(st)
	}
	c, err := q.Claim(ctx, queue.ClaimOptions{})
	if err != nil || c.Item.Body != body || objects() != 1 {
		t.Fatalf("%d bytes, %d objects, %v", len(c.Item.Body), objects(), err)
	}
	if it, err := q.Done(ctx, c.Token, queue.Outcome{Summary: "yes"}); err != nil || it.Body != body || objects() != 1 {
		t.Fatalf("%d objects, %v", objects(), err)
	}
	ahead := open(t, jet.Options{Conn: conn, Project: "shop", ServersTime: func() time.Time { return time.Now().Add(48 * time.Hour) }})
	if _, err := store.PutString(ctx, "nobody~s", "x"); err != nil {
		t.Fatal(err)
	}
	rep, err := ahead.Check(ctx, true)
	if err != nil || len(rep.Problems) != 1 || !rep.Problems[0].Mended || objects() != 1 {
		t.Fatalf("%+v %v", rep, err)
	}
	if gone, err := ahead.GC(ctx, queue.Retention{DoneAfter: time.Hour}); err != nil || len(gone) != 1 || objects() != 0 {
		t.Fatalf("%v %d %v", gone, objects(), err)
	}
}
