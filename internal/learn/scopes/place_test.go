package scopes

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"reprise/internal/memory"
	"reprise/internal/recall"
)

// A directory outside any project has no entries: what proved itself there waits
// until a project has the directory, and rises there then.
func TestPlacesRiseOnlyWhenClaimed(t *testing.T) {
	ctx := context.Background()
	e := newEstate(t)
	for _, session := range []string{"m1", "m2", "m3"} {
		e.at = e.at.Add(24 * time.Hour)
		e.fails("", session) // the story's sessions say that they are in /w/shop
	}
	e.served()
	s := e.person("site")
	p := must[Promotion](t)(s.Promote(ctx, 0))
	if len(p.Promoted) != 0 || len(p.Held) != 1 || !strings.Contains(p.Held[0].Reason, "`reprise init` in /w/shop") {
		t.Fatalf("%+v", p)
	}
	if _, err := e.person("").PromoteItem(ctx, p.Held[0].ID, ""); !errors.Is(err, memory.ErrContent) {
		t.Errorf("by hand, outside: %v", err)
	}
	if _, err := e.scopesFor(recall.Reader{Project: "site"}).Find(ctx, p.Held[0].ID); !errors.Is(err, memory.ErrNotFound) {
		t.Errorf("an agent elsewhere finds it: %v", err)
	}
	must[Found](t)(e.scopesFor(recall.Reader{Places: []string{"dir:/w/shop"}}).Find(ctx, p.Held[0].ID))
	s.o.Claims = func(dir string) string { return map[string]string{"/w/shop": "shop"}[dir] }
	p = must[Promotion](t)(s.Promote(ctx, 0))
	if len(p.Promoted) != 1 || p.Promoted[0].Project != "shop" || len(p.Held) != 0 {
		t.Fatalf("after init: %+v", p)
	}
	// Forgetting is an event of the log that has the place now.
	c := must[Change](t)(s.Forget(ctx, p.Promoted[0].Old, Forgetting{Reason: "no longer"}))
	if c.Project != "shop" {
		t.Errorf("%+v", c)
	}
}
