package jet_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"reprise/internal/config"
	"reprise/internal/fleet"
	"reprise/internal/fleet/fleettest"
	"reprise/internal/queue"
	"reprise/internal/queue/jet"
)

const patience = 2 * time.Minute

// The configuration in docs/fleet.md gives each role what it needs, and the reader no
// more.
func TestDocumentedRoles(t *testing.T) {
	t.Parallel()
	s, seeds := fleettest.Documented(t)
	with := func(role string) jet.Options {
		t.Helper()
		c, err := fleet.Connect(t.Context(), fleet.Options{Servers: s.ClientURL(), Settings: config.Fleet{Namespace: "reprise", NKey: seeds[role]}, Name: role, Now: time.Now})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return jet.Options{Conn: c, Project: "shop", Patience: patience}
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
	// What is refused is said when the servers say it, and not when patience is at its end.
	began := time.Now()
	if _, err := reader.Drop(ctx, "b", ""); !errors.Is(err, fleet.ErrRefused) || !strings.Contains(err.Error(), "$KV.reprise-queue-shop.item.b") {
		t.Fatalf("a reader's change: %v", err)
	}
	if took := time.Since(began); took > patience/2 {
		t.Fatalf("it took %s until a reader was told that it may not", took)
	}
	if _, err := worker.Drop(ctx, "b", ""); err != nil {
		t.Fatal(err)
	}
	if gone, err := worker.GC(ctx, queue.Retention{DoneAfter: time.Nanosecond, DeadAfter: time.Nanosecond}); err != nil || len(gone) != 2 {
		t.Fatalf("%v %v", gone, err)
	}
}
