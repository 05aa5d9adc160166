package jet_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"reprise/internal/config"
	"reprise/internal/fleet"
	"reprise/internal/fleet/fleettest"
	"reprise/internal/queue"
	"reprise/internal/queue/jet"
	"reprise/internal/queue/queuetest"
)

var _ queue.Queue = (*jet.Queue)(nil)

// connect is a connection of its own, as another process has it.
func connect(t testing.TB, servers string) *fleet.Conn {
	t.Helper()
	c, err := fleet.Connect(context.Background(), fleet.Options{Servers: servers, Settings: config.Fleet{Namespace: "test"}, Name: t.Name(), Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func open(t testing.TB, opt jet.Options) *jet.Queue {
	t.Helper()
	opt.Now = time.Now
	q, err := jet.Open(context.Background(), opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { q.Close() })
	return q
}

// The queue of a fleet passes what the queue of files does. Of the tests' clock it is told
// as of the servers'.
func TestConformance(t *testing.T) {
	s := fleettest.Server(t, func(o *server.Options) { o.SyncInterval = time.Hour })
	var n atomic.Int64
	queuetest.Run(t, func(t testing.TB) queuetest.Store {
		project := fmt.Sprint("p", n.Add(1))
		return queuetest.Store{Open: func(t testing.TB, now func() time.Time, record func(context.Context, queue.Change)) queue.Queue {
			return open(t, jet.Options{Conn: connect(t, s.ClientURL()), Project: project, ServersTime: now, Host: "vm", Actor: "test", Record: record})
		}, Vanish: func(t testing.TB, id string) {
			c := connect(t, s.ClientURL())
			kv, err := c.JS.KeyValue(t.Context(), c.Names(project).Queue)
			if err == nil {
				err = kv.Purge(t.Context(), "item."+id)
			}
			if err != nil {
				t.Fatal(err)
			}
		}, Damage: func(t testing.TB, id string, data []byte) {
			c := connect(t, s.ClientURL())
			if _, err := c.JS.Publish(t.Context(), "$KV."+c.Names(project).Queue+".item."+id, data); err != nil {
				t.Fatal(err)
			}
		}, Away: func(t testing.TB, now func() time.Time) queue.Queue {
			w := newWire(t, s.ClientURL())
			q := hasty(t, w, jet.Options{Project: project, ServersTime: now, Host: "vm", Actor: "test"})
			w.set(true, true)
			return q
		}}
	})
}

// One server alone has nobody who could know better: a word under a number that the item
// never had is refused at once, however patient one is with a cluster.
func TestOneServerKnowsBest(t *testing.T) {
	t.Parallel()
	s := fleettest.Server(t, func(o *server.Options) { o.SyncInterval = time.Hour })
	q := open(t, jet.Options{Conn: connect(t, s.ClientURL()), Project: "shop", Host: "test", Patience: time.Hour})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := q.Add(ctx, queue.Item{ID: "a", Title: "x"}); err != nil {
		t.Fatal(err)
	}
	c, err := q.Claim(ctx, queue.ClaimOptions{Worker: "w", Lease: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	for what, say := range map[string]func(queue.Token) error{
		"done":    func(t queue.Token) error { _, err := q.Done(ctx, t, queue.Outcome{}); return err },
		"extend":  func(t queue.Token) error { _, err := q.Extend(ctx, t, time.Minute); return err },
		"release": func(t queue.Token) error { _, err := q.Release(ctx, t, "x"); return err },
	} {
		if err := say(queue.NewToken("a", c.Fence+5)); !errors.Is(err, queue.ErrLost) || strings.Contains(err.Error(), "behind") {
			t.Errorf("%s under a number that is to come: %v", what, err)
		}
	}
	if _, err := q.Done(ctx, c.Token, queue.Outcome{}); err != nil {
		t.Errorf("the claim that there is: %v", err)
	}
}
