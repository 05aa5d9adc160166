//go:build unix

package event

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"reprise/internal/event/quick"
)

// A pipe where a file of the outbox belongs, or the outbox itself, keeps nobody
// waiting: a client would wait with it.
func TestPipesInTheOutbox(t *testing.T) {
	for name, at := range map[string]string{"the reserve": "outbox/reserve", "the outbox": "outbox"} {
		dir := t.TempDir()
		path := filepath.Join(dir, filepath.FromSlash(at))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Mkfifo(path, 0o600); err != nil {
			t.Fatal(err)
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			q := &quick.Broker{Outbox: filepath.Join(dir, "outbox"), Now: time.Now}
			if q.Pending() {
				t.Errorf("%s: something waits", name)
			}
			b := NewBroker(BrokerOptions{Outbox: q.Outbox, Now: time.Now})
			if _, err := b.Lost(); err == nil && name == "the reserve" {
				t.Errorf("%s: read", name)
			}
		}()
		select {
		case <-done:
		case <-time.After(time.Minute):
			t.Fatalf("%s: waited for", name)
		}
	}
}
