package cli

import (
	"bytes"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"reprise/internal/config"
	"reprise/internal/fleet"
	"reprise/internal/fleet/fleettest"
	"reprise/internal/relay"
	"reprise/internal/run"
)

// Files of a run that the servers have no room for are kept, whatever becomes of where they
// lay, and sent once there is room; what was not kept whole is not sent.
func TestFilesAreSentLater(t *testing.T) {
	dir := t.TempDir()
	start := func(o *server.Options) *server.Server {
		s, err := server.NewServer(o)
		if err != nil {
			t.Fatal(err)
		}
		s.Start()
		t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
		if !s.ReadyForConnections(time.Minute) {
			t.Fatal("the server does not come up")
		}
		return s
	}
	o := fleettest.Options(filepath.Join(dir, "nats"))
	o.JetStreamMaxStore = 8 << 20
	small := start(o)
	conn, err := fleet.Connect(t.Context(), fleet.Options{Servers: small.ClientURL(), Settings: config.Fleet{Namespace: "t"}, Name: t.Name(), Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	var said bytes.Buffer
	l := telling{app: &App{Err: &said, Env: config.Env{Now: time.Now}}, dir: filepath.Join(dir, "loop"), relay: relay.Open(conn, "shop")}

	r := run.Record{ID: "run-abcdefghij"}
	place := filepath.Join(dir, "summary.md")
	if err := os.WriteFile(place, []byte("what was done\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	why := l.relay.PutFile(t.Context(), r.ID, "summary.md", place)
	if !serversFail(why) || !bytes.Contains(fmt.Append(nil, why), []byte("servers have no room")) {
		t.Fatalf("a store of 8 MB takes it, or says %v", why)
	}
	if err := l.keepUnsent(r.ID, "artifacts/summary.md", place, why); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(place); err != nil {
		t.Fatal(err)
	}
	part := filepath.Join(l.unsent(), r.ID, "artifacts", ".other.md.abcdefghijkl.tmp")
	if err := os.WriteFile(part, []byte("hal"), 0o600); err != nil {
		t.Fatal(err)
	}
	l.sendUnsent(t.Context())
	if _, err := os.Stat(filepath.Join(l.unsent(), r.ID, "artifacts", "summary.md")); err != nil {
		t.Fatalf("what was not sent is not kept: %v", err)
	}

	o = fleettest.Options(o.StoreDir)
	o.Port = small.Addr().(*net.TCPAddr).Port
	small.Shutdown()
	small.WaitForShutdown()
	start(o)
	for deadline := time.Now().Add(time.Minute); ; { // until the connection is there again
		l.sendUnsent(t.Context())
		if _, err := os.Stat(filepath.Join(l.unsent(), r.ID, "artifacts", "summary.md")); os.IsNotExist(err) {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("it is not sent within a minute")
		}
	}
	files, err := l.relay.Files(t.Context(), r.ID)
	if err != nil || len(files) != 1 || files[0].Name != "artifacts/summary.md" {
		t.Fatalf("the servers have %v, %v", files, err)
	}
	var got bytes.Buffer
	if err := l.relay.GetFile(t.Context(), r.ID, files[0].Name, &got); err != nil || got.String() != "what was done\n" {
		t.Fatalf("%q, %v", got.String(), err)
	}

	long := time.Now().Add(-2 * time.Hour)
	if err := os.Chtimes(part, long, long); err != nil {
		t.Fatal(err)
	}
	l.sendUnsent(t.Context())
	if _, err := os.Stat(filepath.Join(l.unsent(), r.ID)); !os.IsNotExist(err) {
		_ = filepath.WalkDir(l.unsent(), func(path string, _ fs.DirEntry, _ error) error { t.Log(path); return nil })
		t.Errorf("something is left: %v", err)
	}
}
