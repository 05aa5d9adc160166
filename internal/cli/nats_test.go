package cli_test

import (
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/rogpeppe/go-internal/testscript"

	"reprise/internal/fleet/fleettest"
)

// natsServer runs a server until the script ends; its address is in NATS.
func natsServer(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) > 0 {
		ts.Fatalf("usage: natsserver")
	}
	s, err := server.NewServer(fleettest.Options(ts.MkAbs("nats")))
	ts.Check(err)
	s.Start()
	ts.Defer(func() {
		s.Shutdown()
		s.WaitForShutdown()
	})
	if !s.ReadyForConnections(time.Minute) {
		ts.Fatalf("the server does not come up")
	}
	ts.Setenv("NATS", s.ClientURL())
}
