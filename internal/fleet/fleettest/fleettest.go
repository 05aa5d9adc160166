// Package fleettest starts NATS servers with JetStream for tests. The server's code is
// linked by tests alone: no program of ours does. It writes into the directories that
// it is given, and takes no lock.
package fleettest

import (
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// ready is the longest that a server may take until it answers.
const ready = time.Minute

// Options are those of one server on the loopback, at a free port, that keeps what it
// keeps in dir.
func Options(dir string) *server.Options {
	return &server.Options{
		Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: dir, NoLog: true, NoSigs: true,
		MaxPayload:        server.MAX_PAYLOAD_SIZE, // 1 MiB, what servers have unless they are told
		JetStreamMaxStore: 32 << 30,                // what is promised, and not what is used: else it is a part of what this machine has free
	}
}

// Server runs one server until the test ends.
func Server(t testing.TB, change ...func(*server.Options)) *server.Server {
	t.Helper()
	o := Options(t.TempDir())
	for _, c := range change {
		c(o)
	}
	s, err := server.NewServer(o)
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	if !s.ReadyForConnections(ready) {
		t.Fatal("the server does not come up")
	}
	t.Cleanup(func() {
		s.Shutdown()
		s.WaitForShutdown()
	})
	return s
}
