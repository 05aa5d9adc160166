package cli

import (
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"reprise/internal/config"
	"reprise/internal/run"
)

// Whoever adds a command says whether a run may call it: what bounds a run, and what others
// have begun, is a person's to decide.
func TestEachCommandSaysWhetherRunsMay(t *testing.T) {
	t.Parallel()
	there := map[string]bool{"help": true}
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		if name := commandName(cmd); cmd.HasParent() && (cmd.Run != nil || cmd.RunE != nil) {
			there[name] = true
			if inRuns[name] == 0 && !cmd.HasSubCommands() && !strings.HasPrefix(name, "completion") && !strings.HasPrefix(name, "hook ") {
				t.Errorf("inRuns says nothing of `reprise %s`", name)
			}
		}
		for _, c := range cmd.Commands() {
			walk(c)
		}
	}
	walk(newRoot(&App{}, commands()))
	for name, rule := range inRuns {
		if rule >= runsToken && !there[name] {
			t.Errorf("inRuns has `reprise %s`, and there is no such command", name)
		}
		if (rule == runsNeverSay) != (len(personsFlags[name]) > 0) {
			t.Errorf("personsFlags and inRuns differ about `reprise %s`", name)
		}
	}
}

// What a run may call, with which arguments.
func TestWhatRunsMay(t *testing.T) {
	t.Parallel()
	const own, child, grandchild, other = "run-aaaaaaaaaa", "run-bbbbbbbbbb", "run-cccccccccc", "run-dddddddddd"
	dir := t.TempDir()
	vars := map[string]string{"HOME": dir, "REPRISE_HOME": dir, "REPRISE_RUN_ID": own}
	home, err := config.Open(config.Env{Vars: vars, Dir: dir, GOOS: runtime.GOOS, Now: time.Now}, "")
	if err != nil {
		t.Fatal(err)
	}
	for id, path := range map[string][]string{own: {}, child: {own}, grandchild: {own, child}, other: {"run-eeeeeeeeee"}} {
		rec := run.Record{V: 1, ID: id, Status: run.Completed, Client: "script", DelegationPath: path}
		data, err := json.Marshal(rec)
		if err != nil {
			t.Fatal(err)
		}
		at := filepath.Join(home.RunsDir(), id)
		if err := os.MkdirAll(at, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(at, "run.json"), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for line, may := range map[string]bool{
		"runs cancel " + child: true, "runs cancel " + grandchild: true, "runs cancel " + child + " " + grandchild: true,
		"runs cancel " + own: false, "runs cancel " + other: false, "runs cancel " + child + " " + other: false, "runs cancel run-ffffffffff": false, "runs cancel x": false,
		"runs extend " + child + " 10m": true, "runs extend " + own + " 10m": false, "runs extend " + other + " 10m": false,
		"runs resume " + child + " more": true, "runs resume " + other: false,
		"runs list": true, "runs show " + other: true, "runs wait " + other: true, "runs gc --dry-run": true, "runs gc": false, "runs gc --all": false, "runs gc --dry-run=false": false,
		"refresh": true, "refresh --dry-run": true, "refresh --force": false, "refresh --install-aliases": false,
		"mcp": true, "mcp --http": false, "mcp --http 127.0.0.1:1": false, "mcp --http --no-auth": false,
		"trust": true, "trust --yes": false, "trust --revoke": false,
		"queue gc": false, "queue gc --dry-run": true, "queue drop a": false, "queue done a": false, "queue done a@1": true, "queue add x": true,
		"gates reset s": false, "gates status": true, "verify": true, "delegation reset s": false, "upgrade": false, "setup": false, "loop stop": false, "loop ask x": true,
	} {
		a := &App{Env: config.Env{Vars: maps.Clone(vars), Dir: dir, GOOS: runtime.GOOS, Now: time.Now}, Out: io.Discard, Err: io.Discard, Guest: true}
		root := newRoot(a, commands())
		cmd, args, err := root.Find(strings.Fields(line))
		if err != nil {
			t.Fatal(line, err)
		}
		if err := cmd.ParseFlags(args); err != nil {
			t.Fatal(line, err)
		}
		if err := a.mayCall(cmd, cmd.Flags().Args()); (err == nil) != may {
			t.Errorf("reprise %s: %v, may it: %v", line, err, may)
		} else if err != nil {
			if exit, ok := errors.AsType[*ExitError](err); !ok || exit.Code != ExitConflict {
				t.Errorf("reprise %s: %v", line, err)
			}
		}
		a.Env.Vars["REPRISE_RUN_ID"] = ""
		if err := a.mayCall(cmd, cmd.Flags().Args()); err != nil {
			t.Errorf("a person may not: reprise %s: %v", line, err)
		}
	}
}
