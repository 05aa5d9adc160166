package event_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"reprise/internal/durable"
	"reprise/internal/durable/durabletest"
	"reprise/internal/event"
)

// legacy is a log as programs before ours kept it; the token is made of parts.
var legacy = strings.Join([]string{
	`{"v":0,"id":"old-1","timestamp":"2026-10-01T10:00:00Z","agent_id":"anna","session_id":"s1","agent_role":"Section Leader","event_type":"UserPromptSubmit","data":{"prompt":"fix the test"},"importance_score":1.7}`,
	`{"schema_version":"0.3.1","timestamp":"2026-10-01 10:00:01.5","agent_id":"anna","session_id":"s1","event":"PostToolUseFailure","payload":{"tool_name":"Bash","tool_input":{"command":"go test"},"error":"exit 1","exit_code":"1"},"evidence":["x"],"acl":["agent:anna"],"confidence":0.5}`,
	`{"schema_version":1,"timestamp":1790848802250,"agent_id":7,"scope":"user","event":"policy_update","content":"weights"}`,
	`{"schema_version":0,"timestamp":"2026-10-01T10:00:03Z","event":"something.else"}`,
	`{"schema_version":0,"event":"stop"}`,
	`not JSON`,
	`{"schema_version":0,"timestamp":"2026-10-01T10:00:04Z","event":"PostToolUse","session_id":"s1","payload":{"tool_response":"key ` + "gh" + `p_aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5"}}`,
}, "\n") + "\n"

func migrate(t *testing.T, disk durable.Disk, dir string, dry bool) (event.Audit, error) {
	t.Helper()
	return event.Migrate(context.Background(), event.MigrateOptions{Dir: dir, Host: "h", Now: clock(time.Second), Disk: disk, DryRun: dry})
}

func TestMigrate(t *testing.T) {
	dir := t.TempDir()
	l := event.Open(dir, "h", clock(time.Second))
	add(t, l, event.Event{}) // a file of this version stays as it is
	file := filepath.Join(dir, "2026-10.h.jsonl")
	if err := os.WriteFile(file, []byte(legacy), 0o600); err != nil {
		t.Fatal(err)
	}
	before := tree(t, dir)
	dry, err := migrate(t, durable.Disk{}, dir, true)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(before, tree(t, dir)); d != "" {
		t.Errorf("a dry run changed something:\n%s", d)
	}
	got, err := migrate(t, durable.Disk{}, dir, false)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(dry.Files, got.Files); d != "" {
		t.Errorf("a dry run says something else:\n%s", d)
	}
	if len(got.Files) != 2 || got.Files[1].Changed || !got.Changed() || got.Refused() != 3 {
		t.Fatalf("%+v", got)
	}
	f := got.Files[0]
	if f.Events != 4 || f.Steps["0 → 1"] != 4 || f.Redacted != 1 || f.Types["tool.failed"] != 1 || f.OldChain == f.NewChain || len(f.Refused) != 3 || f.Refused[0].Line != 4 {
		t.Errorf("%+v", f)
	}
	aside, err := os.ReadFile(filepath.Join(got.Aside, "2026-10.h.jsonl"))
	if err != nil || string(aside) != legacy {
		t.Errorf("what was there is not aside: %v", err)
	}
	if _, err := os.Stat(filepath.Join(got.Aside, "audit.json")); err != nil {
		t.Error(err)
	}
	raw, err := os.ReadFile(file)
	if err != nil || strings.Contains(string(raw), "gh"+"p_") || strings.Count(string(raw), "\n") != 7 || !strings.Contains(string(raw), "not JSON\n") {
		t.Errorf("%s %v", raw, err)
	}
	events, errs := read(dir)
	if len(events) != 5 || len(errs) != 3 {
		t.Fatalf("%d events, %v", len(events), errs)
	}
	prompt, failed, policy := events[0], events[1], events[2]
	if prompt.ID != "old-1" || prompt.Agent != "anna" || prompt.Session != "s1" || prompt.Role != "section-leader" || prompt.Scope != event.ScopeSession || prompt.Importance != 1 || string(prompt.Data) != `{"text":"fix the test"}` {
		t.Errorf("%+v %s", prompt, prompt.Data)
	}
	var data event.ToolData
	if err := json.Unmarshal(failed.Data, &data); err != nil || data.Name != "Bash" || data.Error != "exit 1" || data.Tool != "other" || !strings.Contains(string(failed.Data), `"legacy_exit_code":"1"`) || !strings.Contains(string(failed.Data), `"confidence":0.5`) {
		t.Errorf("%v %s", err, failed.Data)
	}
	if !failed.TS.Equal(time.Date(2026, 10, 1, 10, 0, 1, 5e8, time.UTC)) || len(failed.ACL) != 1 || len(failed.ID) != 36 {
		t.Errorf("%+v", failed)
	}
	if policy.Scope != event.ScopeGlobal || policy.Agent != "7" || policy.TS.UnixMilli() != 1790848802250 || string(policy.Data) != `{"text":"weights"}` {
		t.Errorf("%+v %s", policy, policy.Data)
	}
	for _, p := range verify(t, dir).Problems {
		if strings.Contains(p.What, "before it") {
			t.Errorf("the new chain: %v", p)
		}
	}
	again, err := migrate(t, durable.Disk{}, dir, false)
	if err != nil || again.Changed() || again.Aside != "" {
		t.Errorf("again: %+v %v", again, err)
	}
	add(t, event.Open(dir, "h", func() time.Time { return time.Date(2026, 10, 2, 0, 0, 0, 0, time.UTC) }), event.Event{})
	if n := len(verify(t, dir).Problems); n != 3 {
		t.Errorf("%d problems after another event", n)
	}
}

func TestMigrateDividesOneFile(t *testing.T) {
	dir := t.TempDir()
	text := strings.ReplaceAll(legacy, `2026-10-01 10:00:01.5`, `2026-09-30 10:00:01.5`)
	if err := os.WriteFile(filepath.Join(dir, "events.jsonl"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := migrate(t, durable.Disk{}, dir, false)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"2026-09.h-legacy.jsonl", "2026-10.h-legacy.jsonl"}, got.Files[0].Into); d != "" {
		t.Error(d)
	}
	if r := verify(t, dir); !r.OK() || r.Events != 4 {
		t.Errorf("%+v", r)
	}
	if _, err := os.Stat(filepath.Join(dir, "events.jsonl")); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	if kept, err := os.ReadFile(filepath.Join(got.Aside, "events.jsonl")); err != nil || string(kept) != text {
		t.Error("what was there is not aside", err)
	}
}

var migrating = durabletest.Scenario{
	Prepare: func(t *testing.T, dir string) {
		for _, name := range []string{"2026-10.h.jsonl", "2026-10.i.jsonl", "events.jsonl"} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(legacy), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	},
	Act: func(disk durable.Disk, dir string) error {
		_, err := event.Migrate(context.Background(), event.MigrateOptions{Dir: dir, Host: "h", Now: clock(time.Second), Disk: disk})
		return err
	},
	Check: func(t *testing.T, dir string, err error, at string) {
		t.Helper()
		if _, err := migrate(t, durable.Disk{}, dir, false); err != nil {
			t.Errorf("%s: again: %v", at, err)
		}
		r := verify(t, dir)
		for _, p := range r.Problems {
			if strings.Contains(p.What, "before it") {
				t.Errorf("%s: %v", at, p)
			}
		}
		if r.Events != 12 || len(r.Problems) != 6 {
			t.Errorf("%s: migrate said %v, then %d events: %v", at, err, r.Events, r.Problems)
		}
	},
}

func TestMigrateKilledAtEachStep(t *testing.T) { migrating.CrashAtEachStep(t) }

func TestMigrateFailsAtEachStep(t *testing.T) { migrating.FailAtEachStep(t, syscall.EIO) }
