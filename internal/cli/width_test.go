package cli

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"reprise/internal/config"
	"reprise/internal/delegation"
	"reprise/internal/guard"
	"reprise/internal/run"
	"reprise/internal/term"
	"reprise/internal/verify"
)

// Lists are as wide as a terminal of 80 columns at most, whatever stands in them.
func TestListsFit80Columns(t *testing.T) {
	const session = "0b9c2f51-2c55-4a38-9d39-0a6f0f6f2f11"
	for name, show := range map[string]func(app *App) error{
		"delegation status": func(app *App) error {
			rules := delegation.Default()
			v := delegationView{Tiers: 3, Depth: run.MaxDepth, Free: append(rules.Free, "~/notes", "docs/adr", "a/very/long/directory/of/documents"),
				Sessions: []delegationSession{{"claude-code", session, "section-leader", 100, 100, 1000, 1000, 1000}}}
			for _, role := range config.Roles() {
				l, _ := rules.Of(role)
				v.Roles = append(v.Roles, delegationRole{role, l.Warn, l.Block, rules.Below(role)})
			}
			return showDelegation(app, v)
		},
		"guard rules": func(app *App) error {
			return printRules(app, guardRulesView{Mode: "enforce", Profile: "auto", ProjectCode: "ask", Writes: "ask", Roots: []string{"/home/somebody/work/project", "/home/somebody/work/another/project", "/tmp/x"},
				Branches: guard.UsualBranches(), Hosts: []string{"*.example.org", "*.example.net", "*.example.com", "localhost.localdomain"},
				Rules: []guardRule{{"deny", "docker run --privileged ...", "guard.deny[10] in /home/somebody/work/another/project/.reprise/project.yaml"}},
				Inert: []string{"guard.allow"}, BuiltIn: guard.BuiltIn()})
		},
		"verify list": func(app *App) error {
			list := []*verify.Result{{ID: "ver-20261128t204401z-abcdefgh", Trigger: verify.TaskPhase, Profile: "standard", Status: verify.Skipped, Client: "claude-code", Blocked: true, Started: time.Date(2026, 11, 28, 20, 44, 1, 0, time.UTC)}}
			return listVerifications(app, list)
		},
		"gates status": func(app *App) error {
			printGates(app, gatesView{Works: "off: the project defines no checks (verify.profiles in .reprise/project.yaml)", Stop: "on", Subagent: "on", When: "claimed", Timeout: 300, Off: []string{"regressions (off by default)", "review (the project does not ask for it)"},
				Latest:   &verify.Result{ID: "ver-20261128t204401z-abcdefgh", Status: verify.Failed},
				Sessions: []verify.GateState{{Client: "claude-code", Session: session, Total: 12, Blocks: 2}}})
			return nil
		},
	} {
		var out bytes.Buffer
		app := &App{Out: &out, Err: &out, Columns: 80}
		if err := show(app); err != nil {
			t.Fatal(name, err)
		}
		for _, l := range strings.Split(out.String(), "\n") {
			if w := term.Width(l); w > 80 {
				t.Errorf("%s: %d columns: %s", name, w, l)
			}
		}
		if out.Len() < 200 && name != "verify list" {
			t.Errorf("%s: only %q", name, out.String())
		}
	}
}
