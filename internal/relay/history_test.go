package relay_test

import (
	"errors"
	"strings"
	"testing"

	"reprise/internal/fleet/fleettest"
	"reprise/internal/relay"
)

// A project is known by the commits with which its history begins: another one of its name is
// refused, until somebody says that the history was written anew.
func TestProjectsOfOneName(t *testing.T) {
	t.Parallel()
	conn := machine(t, fleettest.Server(t).ClientURL())
	r := relay.Open(conn, "shop")
	a, b := strings.Repeat("a", 40), strings.Repeat("b", 40)
	for n, c := range []struct {
		roots   []string
		anew    bool
		refused bool
	}{
		{roots: []string{a}}, {roots: []string{a}}, {roots: []string{b}, refused: true}, {roots: []string{b, a}}, {roots: []string{b}, refused: true},
		{roots: []string{b}, anew: true}, {roots: []string{a}, refused: true},
	} {
		err := r.SameHistory(t.Context(), relay.History{Roots: c.roots, By: "one"}, c.anew)
		if errors.Is(err, relay.ErrOtherHistory) != c.refused || !c.refused && err != nil {
			t.Errorf("%d: %v", n, err)
		}
	}
	if err := relay.Open(conn, "other").SameHistory(t.Context(), relay.History{Roots: []string{a}, By: "one"}, false); err != nil {
		t.Errorf("a project of another name: %v", err)
	}
}
