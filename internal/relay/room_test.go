package relay_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"

	"reprise/internal/config"
	"reprise/internal/fleet"
	"reprise/internal/fleet/fleettest"
	"reprise/internal/relay"
)

// account is a connection to an account that may have so many bytes on disk, 0 for no limit.
func account(t *testing.T, s *server.Server, name string, bytes int64) *fleet.Conn {
	t.Helper()
	limits := map[string]server.JetStreamAccountLimits{"": {MaxMemory: -1, MaxStore: bytes, MaxStreams: -1, MaxConsumers: -1}}
	a, err := s.LookupAccount(name)
	if err == nil {
		err = a.EnableJetStream(limits, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	c, err := fleet.Connect(t.Context(), fleet.Options{Servers: "nats://" + name + ":secret@" + s.Addr().String(), Settings: config.Fleet{Namespace: "t"}, Name: t.Name(), Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// What an account has left is enough for both streams of a project, and for another project
// beside it; where an earlier version has given all of it to one of the two, that gives some back.
func TestSmallAccounts(t *testing.T) {
	t.Parallel()
	sizes := map[string]int64{"small": 64 << 20, "large": 1 << 30}
	s := fleettest.Server(t, func(o *server.Options) {
		for name := range sizes {
			for _, name := range []string{name, name + "-before"} {
				a := server.NewAccount(name)
				o.Accounts = append(o.Accounts, a)
				o.Users = append(o.Users, &server.User{Username: name, Password: "secret", Account: a})
			}
		}
	})
	for name, bytes := range sizes {
		c := account(t, s, name, bytes)
		for n := range 2 {
			project := fmt.Sprintf("shop%d", n)
			if bytes < 1<<30 && n > 0 {
				break // which is no more than the least that two projects need
			}
			if err := relay.Open(c, project).Prepare(t.Context()); err != nil {
				t.Fatalf("%s, %s: %v", name, project, err)
			}
		}
		if _, err := c.JS.CreateStream(t.Context(), jetstream.StreamConfig{Name: "another", Subjects: []string{"another"}}); err != nil {
			t.Errorf("%s: nothing else has room: %v", name, err)
		}

		c = account(t, s, name+"-before", bytes)
		names := c.Names("shop")
		if err := relay.Beat(t.Context(), c, relay.Worker{Name: "w"}); err != nil {
			t.Fatal(err)
		}
		if _, err := c.JS.CreateStream(t.Context(), jetstream.StreamConfig{Name: names.Output, Subjects: []string{names.OutputSubject("*")}, MaxBytes: bytes}); err != nil {
			t.Fatal(err)
		}
		if err := relay.Open(c, "shop").Prepare(t.Context()); err != nil {
			t.Errorf("%s, of an earlier version: %v", name, err)
		}
	}
}
