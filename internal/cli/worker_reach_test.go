package cli

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"reprise/internal/config"
	"reprise/internal/fleet/fleettest"
)

// said is what was written so far.
type said struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (s *said) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buf.Write(p)
}

func (s *said) has(text string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Contains(s.buf.String(), text)
}

// A worker that starts before its servers waits for them, and says so; one that is to end
// when nothing is left does not.
func TestWorkerWaitsForServers(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	l.Close()
	file := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(file, fmt.Appendf(nil, "queue: nats://127.0.0.1:%d\n", port), 0o600); err != nil {
		t.Fatal(err)
	}
	var notes said
	begin := func(untilEmpty bool) (*fleetWorker, chan bool) {
		app := &App{Out: &notes, Err: &notes, Env: config.Env{Dir: t.TempDir(), Now: time.Now, Vars: map[string]string{"HOME": t.TempDir()}}, ConfigFlag: file, Hostname: "here"}
		w := &fleetWorker{app: app, flags: &workerFlags{loopFlags: loopFlags{untilEmpty: untilEmpty}}, out: &notes, notes: &notes}
		over := make(chan bool)
		go func() { w.reach(t.Context(), 10*time.Millisecond); close(over) }()
		return w, over
	}
	_, over := begin(true)
	<-over
	if notes.has("again in") {
		t.Errorf("with --until-empty: %s", notes.buf.String())
	}
	w, over := begin(false)
	for deadline := time.Now().Add(time.Minute); !notes.has("again in"); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("nothing is said of servers that are away")
		}
	}
	fleettest.Server(t, func(o *server.Options) { o.Port = port })
	<-over
	defer w.disconnect()
	if w.net.servers.conn == nil {
		t.Error("the worker did not connect")
	}
}
