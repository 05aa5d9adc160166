package config

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A project's routes lower what the user's allow and never raise it.
func TestRouteOf(t *testing.T) {
	all := Route{Tools: []string{"Bash", "Read", "Edit"}, Turns: 50}
	user := []Route{{Label: "go", Client: "codex", Turns: 80, BudgetUSD: 5}, {Label: "ui", Model: "opus", Tools: []string{"Read"}, TimeoutSeconds: 60}}
	project := []Route{{Label: "go", Client: "claude", Turns: 100, BudgetUSD: 9, TimeoutSeconds: 30}, {Label: "docs", Client: "gemini", Tools: []string{"Read", "WebFetch"}, Turns: 10},
		{Label: "ui", Client: "codex", Tools: []string{"Bash"}}}
	for _, tt := range []struct {
		name   string
		labels []string
		trust  bool
		want   Route
	}{
		{"no label", nil, true, all},
		{"an unknown label", []string{"x"}, true, all},
		{"the user's", []string{"x", "go"}, false, Route{"go", "codex", "", all.Tools, 80, 5, 0, RouteWork{}}},
		{"the first of the user's counts", []string{"ui", "go"}, false, Route{"go", "codex", "", all.Tools, 80, 5, 0, RouteWork{}}},
		{"the project raises nothing", []string{"go"}, true, Route{"go", "codex", "", all.Tools, 80, 5, 30, RouteWork{}}},
		{"the project names a client where the user names none", []string{"docs"}, true, Route{"docs", "gemini", "", []string{"Read"}, 10, 0, 0, RouteWork{}}},
		{"the project does not change the model's client", []string{"ui"}, true, Route{"ui", "", "opus", []string{}, 50, 0, 60, RouteWork{}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			said := project
			if !tt.trust {
				said = nil
			}
			if diff := cmp.Diff(tt.want, RouteOf(all, user, said, tt.labels)); diff != "" {
				t.Error(diff)
			}
		})
	}
	if all.Tools[0] != "Bash" || user[1].Tools[0] != "Read" {
		t.Error("what was given has changed")
	}
}

// What is shown of routes can be read again.
func TestRoutesShown(t *testing.T) {
	routes := []Route{{Label: "ui", Client: "gemini"},
		{Label: "lean", Work: RouteWork{Agents: map[string]string{"implement": "lean-implementer"}, Prompt: "Mind the proofs.", Servers: []Server{{Name: "lean-lsp"}}, Verify: "deep", Concurrent: 1,
			Prebuild: Check{Shell: "lake build", Dir: ".", TimeoutSeconds: maxCheckSeconds}, Env: []string{"LEAN=1"}}},
		{Label: "rust", Work: RouteWork{Servers: []Server{{Name: "ra", Command: []string{"ra", "--stdio"}, Env: []string{"A=b"}}}, Prebuild: Check{Argv: []string{"cargo", "build"}, Dir: ".", TimeoutSeconds: maxCheckSeconds}}}, {Label: "go", Client: "codex", Model: "m", Tools: []string{"a"}, Turns: 1, BudgetUSD: 0.5, TimeoutSeconds: 2}}
	data, err := json.Marshal(routeMap(routes))
	if err != nil {
		t.Fatal(err)
	}
	env := testEnv(t)
	for _, text := range []string{"routes: " + string(data) + "\n", "routes: {}\n"} {
		s, _, err := Load(env, testPaths(t, env), write(t, filepath.Join(env.Dir, "c.yaml"), text))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(routes, s.Routes); diff != "" && len(s.Routes) > 0 {
			t.Error(diff)
		}
	}
}

func TestRoutesThatAreWrong(t *testing.T) {
	env := testEnv(t)
	for text, want := range map[string]string{
		"go: {client: chatty}":     "routes.go.client",
		"go: {colour: red}":        "routes.go.colour",
		"go: {turns: 0}":           "routes.go.turns",
		"go: {tools: Bash}":        "routes.go.tools",
		"go: {tools: [' x']}":      "routes.go.tools[0]",
		"'a b': {turns: 1}":        "routes.a b",
		"go: 5":                    "routes.go",
		"go: {budget_usd: much}":   "routes.go.budget_usd",
		"go: {timeout_seconds: x}": "routes.go.timeout_seconds",
		"go: {model: ''}":          "routes.go.model",
	} {
		_, _, err := Load(env, testPaths(t, env), write(t, filepath.Join(env.Dir, "c.yaml"), "routes:\n  "+text+"\n"))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want something about %s", text, err, want)
		}
	}
	if _, err := ParseProject("project.yaml", []byte("v: 1\nname: shop\nroutes: {go: {client: codex, turns: 5}}\n")); err != nil {
		t.Error(err)
	}
	if _, err := ParseProject("project.yaml", []byte("v: 1\nname: shop\nroutes: {go: {program: /x}}\n")); err == nil {
		t.Error("a project's route may name a program")
	}
}
