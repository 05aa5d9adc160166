//go:build unix

package jet_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"reprise/internal/config"
	"reprise/internal/fleet"
	"reprise/internal/fleet/fleettest"
	"reprise/internal/queue"
	"reprise/internal/queue/jet"
)

// The children of these tests are the test binary again.
func TestMain(m *testing.M) {
	fleettest.Main()
	if len(os.Args) > 2 && os.Args[1] == "child" {
		os.Exit(child(os.Args[2], os.Args[3:]))
	}
	os.Exit(m.Run())
}

func child(what string, args []string) int {
	var err error
	switch what {
	case "work":
		err = work(args[0], args[1], args[2], args[3])
	case "migrate":
		var step int
		if step, err = strconv.Atoi(args[3]); err == nil {
			err = migrateAndDieAt(args[0], args[1], args[2], step)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, what, args, err)
		return 1
	}
	return 0
}

func spawn(t testing.TB, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, append([]string{"child"}, args...)...)
	cmd.Stderr = os.Stderr
	return cmd
}

// work is a worker: it takes items until all are settled, and says which it settled. An
// outage lets it wait; what it has in hand it goes on with, and settles when the servers
// are back.
func work(servers, name, lease, each string) error {
	ctx := context.Background()
	length, err := time.ParseDuration(lease)
	if err != nil {
		return err
	}
	takes, err := time.ParseDuration(each)
	if err != nil {
		return err
	}
	var c *fleet.Conn
	for c == nil {
		if c, err = fleet.Connect(ctx, fleet.Options{Servers: servers, Settings: config.Fleet{Namespace: "test"}, Name: name, Now: time.Now}); err != nil {
			time.Sleep(50 * time.Millisecond)
		}
	}
	defer c.Close()
	var q *jet.Queue
	for q == nil {
		if q, err = jet.Open(ctx, jet.Options{Conn: c, Project: "shop", Now: time.Now, Host: name}); err != nil && !errors.Is(err, fleet.ErrUnreachable) {
			return err
		}
	}
	for {
		cl, err := q.Claim(ctx, queue.ClaimOptions{Worker: name, Lease: length})
		if errors.Is(err, queue.ErrEmpty) {
			n, err := q.Count(ctx)
			if err == nil && n[queue.Ready]+n[queue.Claimed]+n[queue.Blocked] == 0 {
				return nil
			}
			some, cancel := context.WithTimeout(ctx, time.Second)
			_ = q.Wait(some, queue.ClaimOptions{})
			cancel()
			continue
		}
		if errors.Is(err, fleet.ErrUnreachable) {
			continue
		}
		if err != nil {
			return err
		}
		fmt.Println("has", cl.Token)
		time.Sleep(takes) // this is the work
		for {
			if _, err = q.Done(ctx, cl.Token, queue.Outcome{Summary: name}); !errors.Is(err, fleet.ErrUnreachable) {
				break
			}
		}
		switch {
		case errors.Is(err, queue.ErrLost):
			fmt.Println("lost", cl.Token)
		case err != nil:
			return err
		default:
			fmt.Println("done", cl.Token)
		}
	}
}

// crew are worker processes; one that was killed is replaced.
type crew struct {
	t       *testing.T
	servers string
	lease   string
	each    string

	mu    sync.Mutex
	alive map[string]*exec.Cmd
	done  map[string]int // by token
	lost  int
	next  int
	ended chan string
	moved chan struct{} // one item further
}

func newCrew(t *testing.T, servers string, lease, each time.Duration, n int) *crew {
	c := &crew{t: t, servers: servers, lease: lease.String(), each: each.String(), alive: map[string]*exec.Cmd{}, done: map[string]int{}, ended: make(chan string, 1000), moved: make(chan struct{}, 1)}
	t.Cleanup(func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, cmd := range c.alive {
			_ = cmd.Process.Kill()
		}
	})
	for range n {
		c.hire()
	}
	return c
}

func (c *crew) hire() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.next++
	name := fmt.Sprint("w", c.next)
	cmd := spawn(c.t, "work", c.servers, name, c.lease, c.each)
	out, err := cmd.StdoutPipe()
	if err != nil {
		c.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	c.alive[name] = cmd
	go func() {
		s := bufio.NewScanner(out)
		for s.Scan() {
			what, token, _ := strings.Cut(s.Text(), " ")
			c.mu.Lock()
			switch what {
			case "done":
				c.done[token]++
			case "lost":
				c.lost++
			}
			c.mu.Unlock()
			select {
			case c.moved <- struct{}{}:
			default:
			}
		}
		_, _ = io.Copy(io.Discard, out)
		err := cmd.Wait()
		c.mu.Lock()
		_, known := c.alive[name]
		delete(c.alive, name)
		c.mu.Unlock()
		if known && err != nil {
			c.t.Errorf("%s: %v", name, err)
		}
		if known {
			c.ended <- name
		}
	}()
}

// fire kills one of them, which is replaced.
func (c *crew) fire() {
	c.mu.Lock()
	for name, cmd := range c.alive {
		delete(c.alive, name)
		_ = cmd.Process.Kill()
		break
	}
	c.mu.Unlock()
	c.hire()
}

func (c *crew) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.done)
}

// until waits until so many items were settled.
func (c *crew) until(n int) {
	c.t.Helper()
	limit := time.After(5 * time.Minute)
	for c.count() < n {
		select {
		case <-c.moved:
		case <-limit:
			c.t.Fatalf("%d items are settled, and no more come", c.count())
		}
	}
}

func (c *crew) over(workers int) {
	c.t.Helper()
	limit := time.After(5 * time.Minute)
	for range workers {
		select {
		case <-c.ended:
		case <-limit:
			c.t.Fatalf("%d items are settled, and the workers do not end", c.count())
		}
	}
}

// fill adds the items, and gives their ids.
func fill(t *testing.T, q *jet.Queue, n int) {
	t.Helper()
	items := make([]queue.Item, n)
	for i := range items {
		items[i] = queue.Item{ID: fmt.Sprint("i", i), Title: "x"}
		if i%10 == 9 {
			items[i].DependsOn = []string{fmt.Sprint("i", i-1)}
		}
	}
	if _, err := q.Add(t.Context(), items...); err != nil {
		t.Fatal(err)
	}
}

// settledOnce checks each item: the servers took one settling of it, under the number of
// its last claim, and whoever was told that theirs was taken had that number.
func (c *crew) settledOnce(q *jet.Queue, n int) {
	c.t.Helper()
	l, err := q.List(c.t.Context(), queue.Filter{})
	if err != nil || len(l.Trouble) > 0 {
		c.t.Fatal(err, l.Trouble)
	}
	if len(l.Items) != n {
		c.t.Errorf("%d items, want %d", len(l.Items), n)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	told := map[string]int{}
	for token := range c.done {
		id, _, err := queue.ParseToken(queue.Token(token))
		if err != nil {
			c.t.Fatal(err)
		}
		told[id]++
	}
	lost := 0
	for _, it := range l.Items {
		var done []uint64
		for _, e := range it.History {
			if e.Op == queue.OpDone {
				done = append(done, e.Fence)
			}
		}
		lost += it.Lost
		if it.State != queue.Done || len(done) != 1 || done[0] != it.Fence || told[it.ID] > 1 {
			c.t.Errorf("%s is %s, done under %v of %d, and %d workers were told so", it.ID, it.State, done, it.Fence, told[it.ID])
		}
		if told[it.ID] == 1 && c.done[string(queue.NewToken(it.ID, it.Fence))] == 0 {
			c.t.Errorf("%s was settled under number %d, and another was told so", it.ID, it.Fence)
		}
	}
	c.t.Logf("%d items, each settled once; claims lost with their workers: %d; words that came too late, and were refused: %d", n, lost, c.lost)
}

func (c *crew) leader(cl *fleettest.Cluster, q *fleet.Conn) *fleettest.Node {
	c.t.Helper()
	for deadline := time.Now().Add(time.Minute); ; {
		ctx, cancel := context.WithTimeout(c.t.Context(), 2*time.Second)
		s, err := q.JS.Stream(ctx, "KV_"+q.Names("shop").Queue)
		cancel()
		if err == nil {
			if i := s.CachedInfo(); i.Cluster != nil && cl.Node(i.Cluster.Leader) != nil {
				return cl.Node(i.Cluster.Leader)
			}
		}
		if time.Now().After(deadline) {
			c.t.Fatalf("the stream has no leader: %v", err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// Three servers, and workers as processes: while workers and the stream's leader are
// killed, and a server is cut from the others, each item is settled once.
//
// With REPRISE_LONG_TESTS there are 1,000 items, six workers, networks of their own where
// root may make them, and a rolling restart; how long that takes is compared with a run
// that nobody disturbs.
func TestCluster(t *testing.T) {
	t.Parallel()
	if os.Getenv("REPRISE_LONG_TESTS") == "" {
		cl := fleettest.StartCluster(t, 3, false)
		cl.Ready()
		q, conn := shopOf(t, cl)
		fill(t, q, 60)
		c := newCrew(t, cl.Servers(), 3*time.Second, 20*time.Millisecond, 3)
		c.until(10)
		c.fire()
		leader := c.leader(cl, conn)
		cl.Kill(leader)
		c.until(30)
		cl.Start(leader)
		c.over(3)
		c.settledOnce(q, 60)
		return
	}
	apart := fleettest.CanBeApart()
	t.Logf("networks of their own: %v %s", apart == "", apart)
	const items, workers = 1000, 6
	const each = time.Second
	took := map[string]time.Duration{}
	for _, how := range []string{"undisturbed", "disturbed"} {
		t.Run(how, func(t *testing.T) {
			cl := fleettest.StartCluster(t, 3, apart == "")
			cl.Ready()
			q, conn := shopOf(t, cl)
			fill(t, q, items)
			began := time.Now()
			c := newCrew(t, cl.Servers(), 15*time.Second, each, workers)
			if how == "disturbed" {
				disturb(t, c, cl, conn, items)
			}
			c.over(workers)
			took[how] = time.Since(began)
			t.Logf("%s: %s, %.1f items/s", how, took[how].Round(time.Millisecond), items/took[how].Seconds())
			c.settledOnce(q, items)
		})
	}
	ratio := took["undisturbed"].Seconds() / took["disturbed"].Seconds()
	t.Logf("throughput of the disturbed run: %.0f %% of the undisturbed one", 100*ratio)
	if ratio < 0.8 {
		t.Errorf("ratio %.2f, want at least 0.80", ratio)
	}
}

// Two of three servers are taken away, so that there is no majority: nothing is claimed and
// nothing settled, and once they are back each item is settled once, those that were in hand
// too.
func TestNoMajority(t *testing.T) {
	t.Parallel()
	apart := fleettest.CanBeApart()
	cl := fleettest.StartCluster(t, 3, apart == "" && os.Getenv("REPRISE_LONG_TESTS") != "")
	cl.Ready()
	q, _ := shopOf(t, cl)
	const items = 40
	fill(t, q, items)
	// The lease is longer than the outage, however slow the machine: what was in hand counts.
	c := newCrew(t, cl.Servers(), time.Minute, 50*time.Millisecond, 2)
	c.until(10)
	cl.Cut(cl.Nodes[1])
	cl.Cut(cl.Nodes[2])
	// What was on its way may still come; then one who asks is told that there is nobody.
	conn := connect(t, cl.Nodes[0].URL())
	alone, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		asked, cancel := context.WithTimeout(alone, 3*time.Second)
		_, err := conn.JS.PublishMsg(asked, &nats.Msg{Subject: "$KV." + conn.Names("shop").Queue + ".probe", Data: []byte("x")})
		cancel()
		if err != nil {
			break
		}
		if alone.Err() != nil {
			t.Fatal("one server of three still takes changes")
		}
	}
	before := c.count()
	if before >= items {
		t.Fatal("all was settled before the servers were away")
	}
	cl.Heal(cl.Nodes[1])
	cl.Heal(cl.Nodes[2])
	cl.Ready()
	c.over(2)
	c.settledOnce(q, items)
	t.Logf("%d of %d were settled before", before, items)
}

func shopOf(t *testing.T, cl *fleettest.Cluster) (*jet.Queue, *fleet.Conn) {
	t.Helper()
	conn := connect(t, cl.Servers())
	return open(t, jet.Options{Conn: conn, Project: "shop", Host: "test", Patience: time.Minute}), conn
}

// disturb is what happens to them, by how far they are.
func disturb(t *testing.T, c *crew, cl *fleettest.Cluster, conn *fleet.Conn, items int) {
	at := func(percent int) { c.until(items * percent / 100) }
	for n := range 4 {
		at(5 + 5*n)
		c.fire()
	}
	at(30)
	leader := c.leader(cl, conn)
	t.Logf("%d: kill -9 of the leader, %s", c.count(), leader.Name())
	cl.Kill(leader)
	at(45)
	cl.Start(leader)
	cl.Ready()
	at(50)
	cut := c.leader(cl, conn)
	if rand.IntN(2) == 0 {
		cut = cl.Nodes[rand.IntN(len(cl.Nodes))]
	}
	t.Logf("%d: %s is cut from all", c.count(), cut.Name())
	cl.Cut(cut)
	at(60)
	cl.Heal(cut)
	cl.Ready()
	if cl.Apart() {
		a := c.leader(cl, conn)
		b := cl.Nodes[0]
		if a == b {
			b = cl.Nodes[1]
		}
		t.Logf("%d: %s, which leads, and %s are parted from each other", c.count(), a.Name(), b.Name())
		cl.Part(a, b)
		at(68)
		cl.Join(a, b)
		cl.Ready()
	}
	for i, n := range cl.Nodes {
		at(70 + 5*i)
		t.Logf("%d: restart of %s", c.count(), n.Name())
		cl.Stop(n)
		cl.Start(n)
		cl.Ready()
	}
	at(90)
	c.fire()
}
