package jet_test

import (
	"context"
	"fmt"
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
		}, Away: func(t testing.TB, now func() time.Time) queue.Queue {
			w := newWire(t, s.ClientURL())
			q := hasty(t, w, jet.Options{Project: project, ServersTime: now, Host: "vm", Actor: "test"})
			w.set(true, true)
			return q
		}}
	})
}
