//go:build unix

package run_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"reprise/internal/delegation"
	"reprise/internal/proc"
	"reprise/internal/run"
)

// within is the environment of a run's agent.
func within(r run.Record, more ...string) []string {
	return append(append(os.Environ(), proc.RunIDVar+"="+r.ID), more...)
}

// A run that a run starts knows the whole chain it came from; three may stand
// below one another, and a fourth is refused and leaves nothing.
func TestDepthOfDelegation(t *testing.T) {
	m := newManager(t, nil)
	env := os.Environ()
	var chain []string
	for i := range 3 {
		r := start(t, m, run.Request{Task: fmt.Sprint("part ", i), Program: shell(t, "true"), Env: env})
		if !slices.Equal(r.DelegationPath, chain) {
			t.Errorf("path %v, want %v", r.DelegationPath, chain)
		}
		wait(t, m, r.ID)
		chain = append(chain, r.ID)
		env = within(r)
	}
	_, err := m.Start(t.Context(), run.Request{Task: "part 4", Program: shell(t, "true"), Env: env})
	if !errors.Is(err, run.ErrRefused) || !strings.Contains(err.Error(), strings.Join(chain, " → ")) {
		t.Fatalf("the fourth level: %v, want a refusal that names %v", err, chain)
	}
	list, err := m.List(t.Context())
	if err != nil || len(list) != 3 {
		t.Fatalf("%d runs, %v; want 3", len(list), err)
	}
}

// The depth is known where the records are not: in another home, or when they
// were removed.
func TestDepthWithoutRecords(t *testing.T) {
	out := filepath.Join(t.TempDir(), "env")
	agent := fmt.Sprintf(`echo "$REPRISE_RUN_ID $REPRISE_RUN_PATH" > %s`, out)
	env := os.Environ()
	for i := range 4 {
		m := newManager(t, nil) // a home of its own each time
		r, err := m.Start(t.Context(), run.Request{Task: fmt.Sprint("part ", i), Program: shell(t, agent), Env: env})
		if i == 3 {
			if !errors.Is(err, run.ErrRefused) {
				t.Fatalf("the fourth level: %v, want a refusal", err)
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		wait(t, m, r.ID)
		data, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		id, path, _ := strings.Cut(strings.TrimSpace(string(data)), " ")
		if id != r.ID || path != strings.Join(r.DelegationPath, ",") || len(r.DelegationPath) != i {
			t.Fatalf("level %d: the agent has %q, the record %s %v", i, data, r.ID, r.DelegationPath)
		}
		env = append(os.Environ(), proc.RunIDVar+"="+id, "REPRISE_RUN_PATH="+path)
	}
}

func TestCircleOfDelegation(t *testing.T) {
	m := newManager(t, nil)
	a := start(t, m, run.Request{Task: "mend the parser", Program: shell(t, "true")})
	b := start(t, m, run.Request{Task: "write its tests", Program: shell(t, "true"), Env: within(a)})
	for _, id := range []string{a.ID, b.ID} {
		wait(t, m, id)
	}
	for task, ok := range map[string]bool{"mend the parser": false, " mend  the\nparser\n": false, "write its tests": false, "mend the lexer": true} {
		r, err := m.Start(t.Context(), run.Request{Task: task, Program: shell(t, "true"), Env: within(b)})
		switch {
		case ok && err != nil:
			t.Errorf("%q: %v", task, err)
		case ok:
			wait(t, m, r.ID)
		case !errors.Is(err, run.ErrRefused) || !strings.Contains(err.Error(), "circle"):
			t.Errorf("%q: %v, want a refusal", task, err)
		}
	}
}

func TestRolesGoDown(t *testing.T) {
	for _, c := range []struct {
		tiers      int
		has, wants string
	}{
		{2, "conductor", "musician"}, {3, "conductor", "section-leader"}, {3, "section-leader", "musician"},
		{2, "musician", "musician"}, {2, "no such role", "musician"}, {2, "", ""},
	} {
		m := newManager(t, func(o *run.Options) { o.RoleBelow = delegation.Rules{Tiers: c.tiers}.Below })
		env := slices.DeleteFunc(os.Environ(), func(kv string) bool { return strings.HasPrefix(kv, "AGENT_ROLE=") })
		if c.has != "" {
			env = append(env, "AGENT_ROLE="+c.has)
		}
		r := start(t, m, run.Request{Task: "say it", Program: shell(t, `echo "role=$AGENT_ROLE."`), Env: env})
		wait(t, m, r.ID)
		out, err := m.Output(r.ID, 0)
		if err != nil || strings.TrimSpace(out.Text) != "role="+c.wants+"." {
			t.Errorf("%d tiers, %q started %q, %v; want %q", c.tiers, c.has, out.Text, err, c.wants)
		}
	}
}
