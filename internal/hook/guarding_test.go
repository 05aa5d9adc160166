package hook

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"reprise/internal/agent/dialect"
	"reprise/internal/guard"
)

// A run works in the directories that it was given, too, and only a run does; where
// reprise keeps its own files nothing writes, whoever was given them. A payload that
// does not say where a call runs means where the session lives.
func TestDirectoriesOfRuns(t *testing.T) {
	root := guard.Resolve(t.TempDir())
	work, memory, other := filepath.Join(root, "work"), filepath.Join(root, "memory"), filepath.Join(root, "other")
	for _, d := range []string{work, memory, other} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	run := map[string]string{RunVar: "run-abcdefghij", AddDirsVar: memory + string(os.PathListSeparator) + other + string(os.PathListSeparator) + "."}
	for _, tt := range []struct {
		env     map[string]string
		command string
		want    guard.Decision
	}{
		{run, "cat " + memory + "/core.md", guard.Allow},
		{run, "cat " + other + "/x", guard.Allow},
		{run, "cat " + root + "/x", guard.Deny},
		{run, "echo x > " + other + "/x", guard.Allow},
		{run, "echo x > " + memory + "/core.md", guard.Deny},
		{run, "echo x > x", guard.Allow},
		{map[string]string{RunVar: "run-abcdefghij"}, "cat " + memory + "/core.md", guard.Deny},
		{map[string]string{AddDirsVar: other}, "cat " + other + "/x", guard.Ask},
	} {
		g := &Guarding{Rules: guard.Rules{Roots: []string{work}, Own: []string{memory}, Writes: true}, Dir: work, Get: func(n string) string { return tt.env[n] }}
		input, err := json.Marshal(map[string]string{"command": tt.command})
		if err != nil {
			t.Fatal(err)
		}
		j := g.Judge(t.Context(), dialect.Event{Client: "claude", Kind: dialect.ToolBefore, Tool: "shell", ToolName: "Bash", Input: input})
		if j.Said != tt.want {
			t.Errorf("%v: %s: %s, want %s: %s", tt.env, tt.command, j.Said, tt.want, j.Verdict.Reason)
		}
		if len(g.Rules.Roots) != 1 {
			t.Errorf("the rules were changed: %q", g.Rules.Roots)
		}
	}
}

// A session that was started in a workspace is held to it, by its environment or by
// what the rules know of its directory; where that is gone nothing is done any more,
// and where the guard is off nothing is said.
func TestSessionsOfWorkspaces(t *testing.T) {
	root := guard.Resolve(t.TempDir())
	main, ws := filepath.Join(root, "main"), filepath.Join(root, "ws")
	for name, text := range map[string]string{
		"main/.git/config": "", "main/.git/worktrees/ws/commondir": "../..\n", "ws/.git": "gitdir: " + main + "/.git/worktrees/ws\n",
	} {
		name = filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	gone := filepath.Join(root, "gone")
	for _, tt := range []struct {
		env     map[string]string
		known   string // by the rules
		cwd     string
		command string
		want    guard.Decision
		rule    string
	}{
		{nil, "", main, "echo x > x", guard.Allow, ""},
		{map[string]string{WorkspaceVar: ws}, "", ws, "echo x > x", guard.Allow, ""},
		{map[string]string{WorkspaceVar: ws}, "", main, "echo x > x", guard.Deny, "wrong-checkout"},
		{map[string]string{WorkspaceVar: ws, RunVar: "run-abcdefghij", AddDirsVar: main}, "", ws, "echo x > " + main + "/x", guard.Deny, "wrong-checkout"},
		{nil, ws, ws, "echo x > ../main/x", guard.Deny, "wrong-checkout"},
		{nil, ws, ws, "cat ../main/x", guard.Allow, ""},
		{map[string]string{WorkspaceVar: gone}, ws, main, "cat x", guard.Deny, "workspace-gone"},
		{nil, gone, main, "cat x", guard.Deny, "workspace-gone"},
		{map[string]string{WorkspaceVar: "relative"}, "", main, "echo x > x", guard.Allow, ""},
	} {
		g := &Guarding{Rules: guard.Rules{Roots: []string{main}, Writes: true, Workspace: tt.known}, Dir: main, Get: func(n string) string { return tt.env[n] }}
		input, err := json.Marshal(map[string]string{"command": tt.command})
		if err != nil {
			t.Fatal(err)
		}
		ev := dialect.Event{Client: "claude", Kind: dialect.ToolBefore, Tool: "shell", ToolName: "Bash", Input: input, Cwd: tt.cwd}
		if j := g.Judge(t.Context(), ev); j.Said != tt.want || tt.rule != "" && j.Verdict.Rule != tt.rule {
			t.Errorf("%v %s: %s: %s, want %s: %s", tt.env, tt.known, tt.command, j.Said, tt.want, j.Verdict.Reason)
		}
		if j := g.Failed(ev, "no plan"); (j.Verdict.Rule == "workspace-gone") != (tt.rule == "workspace-gone") {
			t.Errorf("%v: %s", tt.env, j.Verdict.Reason)
		}
		g.Rules.Off = true
		if j := g.Judge(t.Context(), ev); j.Said != guard.None {
			t.Errorf("off: %v", j)
		}
	}
}

// Where the settings cannot be read nobody knows what the user forbids: nothing is
// allowed, not by the rules of before either, and what these refuse stays refused.
func TestBrokenSettings(t *testing.T) {
	rules := guard.Rules{
		Roots: []string{t.TempDir()}, Writes: true, ProjectCode: true, MCP: true,
		List: []guard.Rule{{Decision: guard.Allow, Shape: "make ..."}, {Decision: guard.Deny, Shape: "ls sub"}},
	}
	// Nor does a guard that was off, or that only noted what it found, say what they are now.
	for _, was := range []guard.Rules{{}, {Off: true}, {Warn: true}} {
		rules.Off, rules.Warn = was.Off, was.Warn
		brokenSettings(t, rules)
	}
}

func brokenSettings(t *testing.T, rules guard.Rules) {
	t.Helper()
	for _, unattended := range []bool{false, true} {
		rules.Unattended = unattended
		g := &Guarding{Rules: rules, Dir: rules.Roots[0], Get: func(string) string { return "" }, Broken: "the settings cannot be read (config.yaml:3: x)"}
		g.Unsure = func(context.Context, dialect.Event, guard.Verdict) guard.Verdict {
			t.Error("somebody is asked by settings that are not known")
			return guard.Verdict{}
		}
		for _, kind := range []dialect.Kind{dialect.ToolBefore, dialect.PermissionAsked} {
			for command, want := range map[string]guard.Decision{"wc -l f": guard.Ask, "make x": guard.Ask, "touch f": guard.Ask, "ls sub": guard.Deny, "rm -rf /": guard.Deny} {
				if unattended {
					want = guard.Deny
				}
				input, err := json.Marshal(map[string]string{"command": command})
				if err != nil {
					t.Fatal(err)
				}
				j := g.Judge(t.Context(), dialect.Event{Client: "claude", Kind: kind, Tool: "shell", ToolName: "Bash", Input: input})
				if j.Said != want || kind == dialect.PermissionAsked && j.Decision.Permission == dialect.Allow {
					t.Errorf("%s, %s, unattended %v: %s, %+v", kind, command, unattended, j.Said, j.Decision)
				}
				if want == guard.Ask && !strings.Contains(j.Verdict.Reason, "config.yaml:3") {
					t.Errorf("%s does not say what is broken", j.Verdict.Reason)
				}
			}
			j := g.Judge(t.Context(), dialect.Event{Client: "claude", Kind: kind, Tool: "other", ToolName: "mcp__x__get", Input: []byte(`{}`)})
			if j.Said == guard.Allow || j.Said == guard.None {
				t.Errorf("a tool of MCP: %s", j.Said)
			}
		}
	}
}

// What was decided is recorded with the commands, each once, and with the setting that
// let it where it was allowed.
func TestDecisionsAreRecordedWithTheirCommands(t *testing.T) {
	root := guard.Resolve(t.TempDir())
	g := &Guarding{
		Rules: guard.Rules{Roots: []string{root}, ProjectCode: true, List: []guard.Rule{{Decision: guard.Allow, Shape: "frob x", From: "guard.allow[0] in config.yaml"}}},
		Dir:   root, Get: func(string) string { return "" },
	}
	for _, tt := range []struct {
		kind                  dialect.Kind
		command               string
		verdict, rule, reason string
		commands              []string // nil: nothing is recorded
	}{
		{dialect.PermissionAsked, "go test ./orders", "allow", "project-code", "the settings let it: ", []string{"go test ./orders"}},
		{dialect.PermissionAsked, "ls && go test ./orders && go test ./orders", "allow", "project-code", "the settings let it: ", []string{"go test ./orders"}},
		{dialect.PermissionAsked, "frob x", "allow", "rule", "guard.allow[0] in config.yaml", []string{"frob x"}},
		{dialect.PermissionAsked, "ls", "allow", "", "", []string{"ls"}},
		{dialect.PermissionAsked, "echo " + strings.Repeat("x", 2*maxGiven), "allow", "", "", []string{"echo " + strings.Repeat("x", maxGiven-len("echo …")) + "…"}},
		{dialect.PermissionAsked, "go test ./orders && touch y", "ask", "writes", "it writes", []string{"touch y"}},
		{dialect.ToolBefore, "sed -i 's/a/b/;w /opt/x' f.go ../f", "deny", "", "", []string{"sed -i 's/a/b/;w /opt/x' f.go ../f"}},
		{dialect.ToolBefore, "ls", "", "", "", nil},
	} {
		input, err := json.Marshal(map[string]string{"command": tt.command})
		if err != nil {
			t.Fatal(err)
		}
		ev := dialect.Event{Client: "claude", Kind: tt.kind, Tool: "shell", ToolName: "Bash", Input: input, Cwd: root}
		j := g.Judge(t.Context(), ev)
		e, ok := j.Line(&ev, Who{})
		if ok != (tt.commands != nil) {
			t.Errorf("%s %s: recorded %v: %+v", tt.kind, tt.command, ok, j)
		}
		if !ok {
			continue
		}
		var data struct {
			Verdict, Rule, Reason string
			Commands              []string
		}
		if err := json.Unmarshal(e.Data, &data); err != nil {
			t.Fatal(err)
		}
		if data.Verdict != tt.verdict || tt.rule != "" && data.Rule != tt.rule || tt.rule == "" && tt.verdict == "allow" && data.Rule != "" || !strings.Contains(data.Reason, tt.reason) || !slices.Equal(data.Commands, tt.commands) {
			t.Errorf("%s %s: %s", tt.kind, tt.command, e.Data)
		}
	}
}
