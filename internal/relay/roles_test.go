package relay_test

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"reprise/internal/config"
	"reprise/internal/fleet"
	"reprise/internal/fleet/fleettest"
	"reprise/internal/relay"
)

// With the permissions that docs/fleet.md gives each role, a worker can tell and be asked
// all that it has to once an administrator has made what it needs there, and a reader sees
// it and changes nothing.
func TestDocumentedRoles(t *testing.T) {
	t.Parallel()
	s, seeds := fleettest.Documented(t)
	as := func(role string) *fleet.Conn {
		c, err := fleet.Connect(t.Context(), fleet.Options{Servers: s.ClientURL(), Settings: config.Fleet{Namespace: "reprise", NKey: seeds[role]}, Name: role, Now: time.Now})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c
	}
	ctx := t.Context()
	admin, worker, reader := as("UADMIN"), as("UWORKER"), as("UREADER")

	// Before that, a worker is told what is missing and who makes it.
	if err := relay.Beat(ctx, worker, relay.Worker{Name: "w"}); !errors.Is(err, fleet.ErrRefused) || !strings.Contains(err.Error(), "worker prepare --servers") {
		t.Fatalf("a worker where nothing is made: %v", err)
	}
	if err := relay.Open(admin, "shop").Prepare(ctx); err != nil {
		t.Fatal(err)
	}

	// What a worker tells.
	w := relay.Open(worker, "shop")
	if err := relay.Beat(ctx, worker, relay.Worker{Name: "w", Projects: []string{"shop"}}); err != nil {
		t.Fatal(err)
	}
	if err := w.PutState(ctx, "w", []byte(`{"v":1}`)); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "stdout.jsonl")
	add(t, file, "one\ntwo\n")
	if err := w.Mirror(ctx, "run-aaaaaaaaaa", file, func() []byte { return []byte(`{}`) }); err != nil {
		t.Fatal(err)
	}
	if err := w.PutFile(ctx, "run-aaaaaaaaaa", "result.json", file); err != nil {
		t.Fatal(err)
	}

	// What it is asked, by another of its kind: a person at a command line is one.
	if err := relay.Open(as("UWORKER"), "shop").Ask(ctx, "w", "req", []byte("please")); err != nil {
		t.Fatal(err)
	}
	asked, stop := context.WithCancel(ctx)
	var heard string
	err := w.Asked(asked, "w", func(name string, request []byte) error {
		heard = name + ": " + string(request)
		stop()
		return nil
	})
	if heard != "req: please" || !errors.Is(err, context.Canceled) {
		t.Fatalf("asked %q: %v", heard, err)
	}

	// A reader sees all of it.
	r := relay.Open(reader, "shop")
	if list, err := relay.Workers(ctx, reader); err != nil || len(list) != 1 || list[0].Name != "w" {
		t.Fatalf("%+v %v", list, err)
	}
	if states, err := r.States(ctx); err != nil || string(states["w"]) != `{"v":1}` {
		t.Fatalf("%q %v", states, err)
	}
	var said bytes.Buffer
	end, err := r.Follow(ctx, "run-aaaaaaaaaa", true, &said, func(string) {}, func() error { return nil })
	if err != nil || !end.Over || said.String() != "one\ntwo\n" {
		t.Fatalf("%q %+v %v", said.String(), end, err)
	}
	if ended, err := r.EndedRuns(ctx); err != nil || len(ended) != 1 {
		t.Fatalf("%+v %v", ended, err)
	}
	if files, err := r.Files(ctx, "run-aaaaaaaaaa"); err != nil || len(files) != 1 {
		t.Fatalf("%+v %v", files, err)
	}
	var got bytes.Buffer
	if err := r.GetFile(ctx, "run-aaaaaaaaaa", "result.json", &got); err != nil || got.String() != "one\ntwo\n" {
		t.Fatalf("%q %v", got.String(), err)
	}

	// And changes nothing.
	for what, err := range map[string]error{
		"say that it works":    relay.Beat(ctx, reader, relay.Worker{Name: "r"}),
		"say how a loop does":  r.PutState(ctx, "r", []byte(`{"v":1}`)),
		"ask a worker":         r.Ask(ctx, "w", "no", []byte("please")),
		"send a file of a run": r.PutFile(ctx, "run-aaaaaaaaaa", "more", file),
	} {
		if !errors.Is(err, fleet.ErrRefused) {
			t.Errorf("a reader may %s: %v", what, err)
		}
	}
	if list, err := relay.Workers(ctx, admin); err != nil || len(list) != 1 {
		t.Errorf("%+v %v", list, err)
	}
}
