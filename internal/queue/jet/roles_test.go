package jet_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"

	"reprise/internal/config"
	"reprise/internal/fleet"
	"reprise/internal/fleet/fleettest"
	"reprise/internal/queue"
	"reprise/internal/queue/jet"
)

// The configuration in docs/fleet.md gives each role what it needs, and the reader no
// more.
func TestDocumentedRoles(t *testing.T) {
	t.Parallel()
	doc, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "fleet.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, conf, ok := strings.Cut(string(doc), "```conf\n")
	conf, _, ok2 := strings.Cut(conf, "```")
	if !ok || !ok2 {
		t.Fatal("docs/fleet.md has no configuration")
	}
	dir := t.TempDir()
	seeds := map[string]string{}
	for _, role := range []string{"UADMIN", "UWORKER", "UREADER"} {
		key, err := nkeys.CreateUser()
		if err != nil {
			t.Fatal(err)
		}
		public, _ := key.PublicKey()
		seed, _ := key.Seed()
		conf = strings.ReplaceAll(conf, `"`+role+`"`, `"`+public+`"`)
		seeds[role] = filepath.Join(dir, role)
		if err := os.WriteFile(seeds[role], seed, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(dir, "nats.conf")
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(conf, "/var/lib/nats", filepath.ToSlash(dir))), 0o600); err != nil {
		t.Fatal(err)
	}
	s := fleettest.Server(t, func(o *server.Options) {
		from, err := server.ProcessConfigFile(file)
		if err != nil {
			t.Fatal(err)
		}
		o.Nkeys, o.Users = from.Nkeys, from.Users
	})
	with := func(role string) jet.Options {
		t.Helper()
		c, err := fleet.Connect(t.Context(), fleet.Options{Servers: s.ClientURL(), Settings: config.Fleet{Namespace: "reprise", NKey: seeds[role]}, Name: role, Now: time.Now})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return jet.Options{Conn: c, Project: "shop", Patience: time.Minute}
	}
	as := func(role string) *jet.Queue { t.Helper(); return open(t, with(role)) }
	ctx := t.Context()
	as("UADMIN")
	worker, reader := as("UWORKER"), as("UREADER")
	if _, err := worker.Add(ctx, queue.Item{ID: "a", Title: "x", Body: strings.Repeat("long ", 200_000)}, queue.Item{ID: "b", Title: "x", DependsOn: []string{"a"}}); err != nil {
		t.Fatal(err)
	}
	c, err := worker.Claim(ctx, queue.ClaimOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := worker.Done(ctx, c.Token, queue.Outcome{}); err != nil {
		t.Fatal(err)
	}
	if _, err := worker.Check(ctx, true); err != nil {
		t.Fatal(err)
	}
	l, err := reader.List(ctx, queue.Filter{})
	if err != nil || len(l.Items) != 2 || len(l.Trouble) != 0 || l.Items[0].ID != "b" || l.Items[0].State != queue.Ready {
		t.Fatalf("%+v %v", l, err)
	}
	if err := refused(t, with("UREADER"), func(q *jet.Queue) error { _, err := q.Drop(ctx, "b", ""); return err }); !errors.Is(err, fleet.ErrRefused) {
		t.Fatalf("a reader's change: %v", err)
	}
	if _, err := worker.Drop(ctx, "b", ""); err != nil {
		t.Fatal(err)
	}
	if gone, err := worker.GC(ctx, queue.Retention{DoneAfter: time.Nanosecond, DeadAfter: time.Nanosecond}); err != nil || len(gone) != 2 {
		t.Fatalf("%v %v", gone, err)
	}
}
