package cli_test

import (
	"strconv"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/rogpeppe/go-internal/testscript"

	"reprise/internal/fleet/fleettest"
)

// natsServer runs a server until the script ends, with a store of so many bytes where that is
// said; its address is in NATS.
func natsServer(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) > 1 {
		ts.Fatalf("usage: natsserver [BYTES]")
	}
	o := fleettest.Options(ts.MkAbs("nats"))
	if len(args) == 1 {
		var err error
		o.JetStreamMaxStore, err = strconv.ParseInt(args[0], 10, 64)
		ts.Check(err)
	}
	s, err := server.NewServer(o)
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
