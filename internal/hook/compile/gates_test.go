package compile

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"reprise/internal/config"
	"reprise/internal/hook/plan"
)

// Gates are in the plan once the project's checks are approved, the user has
// them on, and not before; the full program is then handed their events.
func TestGatesNeedTrust(t *testing.T) {
	w := newWorld(t)
	w.write("shop/.reprise/project.yaml", "v: 1\nname: shop\nverify:\n  on_failure: true\n  profiles: {quick: [{run: 'true'}]}\n")
	env := w.env
	env.Dir = w.path("shop")
	make := func() *plan.Plan {
		t.Helper()
		m, err := Make(Options{Env: env, Host: "h", Program: w.path("bin/reprise"), Hand: []string{"response"}})
		if err != nil {
			t.Fatal(err)
		}
		data, ok := m.Plan.Encode()
		if !ok {
			t.Fatal("it has no form")
		}
		p, err := plan.Parse(data)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	if p := make(); len(p.Rules.GateKinds) != 0 || p.Rules.GateMS != 0 || len(p.Hand) != 1 {
		t.Errorf("not approved, and there are gates: %+v %q", p.Rules, p.Hand)
	}
	home, err := config.Open(env, "")
	if err != nil {
		t.Fatal(err)
	}
	trust, err := home.Paths.Trust(home.Project)
	if err != nil {
		t.Fatal(err)
	}
	if err := home.Paths.Approve(context.Background(), home.Project, trust, env.Now()); err != nil {
		t.Fatal(err)
	}
	p := make()
	for _, k := range []string{"session_start", "response", "subagent_started", "subagent_finished", "tool_failed", "prompt"} {
		if !p.Rules.Gates(k) || !slices.Contains(p.Hand, k) {
			t.Errorf("%s: gates %q, handed over %q", k, p.Rules.GateKinds, p.Hand)
		}
	}
	if p.Rules.GateMS != 315_000 || p.Rules.Gates("tool_before") {
		t.Errorf("%+v", p.Rules)
	}
	// A text that is another one is not approved, and whoever counts on gates is told; so
	// they are where it has no checks any more.
	approved := "v: 1\nname: shop\nverify:\n  on_failure: true\n  profiles: {quick: [{run: 'true'}]}\n"
	for _, text := range []string{approved + "# more\n", "v: 1\nname: shop\n"} {
		w.write("shop/.reprise/project.yaml", text)
		if p := make(); !slices.Equal(p.Rules.GateKinds, []string{"session_start", "prompt", "response"}) || p.Rules.GateMS != 15_000 {
			t.Errorf("%q: %+v", text, p.Rules)
		}
	}
	// So it is where there is no text any more, until there is one again.
	file := filepath.Join(w.path("shop"), ".reprise/project.yaml")
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if p := make(); p.Project != "" || !slices.Equal(p.Rules.GateKinds, []string{"session_start", "prompt", "response"}) {
		t.Errorf("gone: %q %+v", p.Project, p.Rules)
	}
	w.write("shop/.reprise/project.yaml", approved)
	w.write("data/config.yaml", "gates: {stop: off, timeout_seconds: 10}\n")
	if p := make(); p.Rules.Gates("response") || !p.Rules.Gates("subagent_finished") || p.Rules.GateMS != 25_000 {
		t.Errorf("the end of turns is off: %+v", p.Rules)
	}
	w.write("data/config.yaml", "gates: {stop: off, subagent: off}\n")
	if p := make(); len(p.Rules.GateKinds) != 0 {
		t.Errorf("both are off: %+v", p.Rules)
	}
}
