package mcpserver

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"reprise/internal/config"
	"reprise/internal/memory"
	"reprise/internal/run"
)

// Toolsets and read-only.
func TestToolsets(t *testing.T) {
	for _, c := range []struct {
		sets   string
		read   bool
		access memory.Access
		want   string
	}{
		{"", false, memory.FullAccess, "spawn_agent check_agent cancel_agent list_agents memory_search memory_read append_file create_memory_block update_memory_block append_episodic_log"},
		{"default", true, memory.FullAccess, "check_agent list_agents memory_search memory_read"},
		{"runs", false, memory.FullAccess, "spawn_agent check_agent cancel_agent list_agents"},
		{"memory", true, memory.FullAccess, "memory_search memory_read"},
		{"memory,runs", true, memory.FullAccess, "check_agent list_agents memory_search memory_read"},
		{"all", false, memory.ReadAccess, "spawn_agent check_agent cancel_agent list_agents memory_search memory_read"},
		{"all", false, memory.NoAccess, "spawn_agent check_agent cancel_agent list_agents"},
		{"all", false, memory.FullAccess, "spawn_agent check_agent cancel_agent list_agents memory_search memory_read append_file create_memory_block update_memory_block append_episodic_log"},
	} {
		tools, err := choose(Deps{Toolsets: ParseToolsets(c.sets), ReadOnly: c.read, MemoryAccess: c.access, StateAccess: memory.NoAccess, TaskAccess: memory.NoAccess})
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, tl := range tools {
			names = append(names, tl.name)
		}
		if got := strings.Join(names, " "); got != c.want {
			t.Errorf("%s read-only=%v: %s", c.sets, c.read, got)
		}
		for _, n := range regexp.MustCompile(`[a-z]+_[a-z_]+`).FindAllString(instructions(tools), -1) {
			known := slices.Contains(names, n)
			for _, tl := range inventory() {
				if tl.name == n && !known {
					t.Errorf("%s read-only=%v: the instructions speak of %s", c.sets, c.read, n)
				}
			}
		}
	}
	if _, err := New(Deps{Runs: newFakeRuns(time.Now), Memory: newFakeMemory(), Search: fakeSearch{}, Now: time.Now, Settings: config.Settings{}, Toolsets: []string{"nope"}}); err == nil || !strings.Contains(err.Error(), "runs, memory") {
		t.Errorf("unknown toolset: %v", err)
	}
}

// The log: every event of the first design's table, with its fields, without
// secrets and without long values.
func TestLogEvents(t *testing.T) {
	inTime(t, nil, func(t *testing.T, w *world) {
		ctx := t.Context()
		w.good(ctx, "spawn_agent", map[string]any{"task": "now the password is hunter2 " + strings.Repeat("x", 500), "model": "sonnet"})
		id := w.good(ctx, "spawn_agent", map[string]any{"task": "long"})["job_id"].(string)
		w.good(ctx, "check_agent", map[string]any{"job_id": id})
		w.runs.finish(t, id, run.Completed, "", "out")
		w.good(ctx, "check_agent", map[string]any{"job_id": id})
		w.good(ctx, "append_file", map[string]any{"path": "notes.md", "text": "x"})
		w.bad(ctx, "check_agent", map[string]any{"job_id": id})
		w.server.shutdown("end of input")
		for msg, want := range map[string]struct {
			level  string
			n      int
			fields []string
		}{
			LogStarted:   {"INFO", 1, []string{"config", "version"}},
			LogToolCall:  {"INFO", 6, []string{"tool", "params"}},
			LogLaunched:  {"INFO", 2, []string{"job_id", "model", "working_dir"}},
			LogSync:      {"INFO", 1, []string{"elapsed", "output_size"}},
			LogHandoff:   {"INFO", 1, []string{"job_id", "elapsed"}},
			LogPoll:      {"DEBUG", 1, []string{"job_id", "status", "elapsed"}},
			LogCollected: {"INFO", 1, []string{"job_id", "status", "elapsed", "output_size"}},
			LogAppend:    {"INFO", 1, []string{"path", "bytes_written"}},
			LogError:     {"ERROR", 1, []string{"tool", "error"}},
			LogShutdown:  {"INFO", 1, []string{"active_jobs_killed"}},
		} {
			got := w.log.find(t, msg)
			if len(got) != want.n {
				t.Errorf("%s: %d entries, want %d", msg, len(got), want.n)
				continue
			}
			for _, e := range got {
				if e["level"] != want.level {
					t.Errorf("%s: level %v", msg, e["level"])
				}
				for _, f := range want.fields {
					if _, ok := e[f]; !ok {
						t.Errorf("%s has no %s: %v", msg, f, e)
					}
				}
			}
		}
		all := w.log.String()
		if strings.Contains(all, "hunter2") || !strings.Contains(all, "[secret]") {
			t.Error("a secret is in the log, or was not looked for")
		}
		if strings.Contains(all, strings.Repeat("x", 100)) {
			t.Error("a long parameter is in the log")
		}
	})
}

// Resources, templates, completion and prompts, over the wire.
func TestResources(t *testing.T) {
	w := newWorld(t, nil)
	w.good(t.Context(), "spawn_agent", map[string]any{"task": "now what it said"})
	id := firstRun(t, w)
	p := w.serve(t.Context()).hands()
	ask := func(method, params string) reply {
		t.Helper()
		return p.ask(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":%s}`, method, params))
	}
	list := mustJSON(t, ask("resources/list", `{}`).Result)
	for _, uri := range []string{"memory://core", "memory://index", "memory://blocks/project-site", "memory://blocks/reference-notes", "run://" + id + "/log"} {
		if !strings.Contains(list, `"`+uri+`"`) {
			t.Errorf("%s is not listed: %s", uri, list)
		}
		if r := ask("resources/read", fmt.Sprintf(`{"uri":%q}`, uri)); r.Error != nil || !strings.Contains(mustJSON(t, r.Result), `"uri":"`+uri+`"`) {
			t.Errorf("%s: %+v", uri, r)
		}
	}
	if r := ask("resources/read", fmt.Sprintf(`{"uri":"run://%s/log"}`, id)); !strings.Contains(mustJSON(t, r.Result), "what it said") || !strings.Contains(mustJSON(t, r.Result), "status: complete") {
		t.Errorf("log: %+v", r)
	}
	templates := mustJSON(t, ask("resources/templates/list", `{}`).Result)
	if !strings.Contains(templates, uriBlock) || !strings.Contains(templates, uriRunLog) {
		t.Errorf("templates: %s", templates)
	}
	for _, uri := range []string{"memory://blocks/nothing", "memory://blocks/..%2F..%2Fetc%2Fpasswd", "memory://blocks/%00", "run://run-zzzzzzzzzz/log", "file:///etc/passwd", "memory://core/../x", ":", ""} {
		if r := ask("resources/read", fmt.Sprintf(`{"uri":%q}`, uri)); r.Error == nil {
			t.Errorf("%q was read: %+v", uri, r)
		}
	}
	for ref, want := range map[string]string{
		`{"ref":{"type":"ref/resource","uri":"memory://blocks/{name}"},"argument":{"name":"name","value":"proj"}}`: `{"total":1,"values":["project-site"]}`,
		`{"ref":{"type":"ref/resource","uri":"run://{id}/log"},"argument":{"name":"id","value":"run-"}}`:           `{"total":1,"values":["` + id + `"]}`,
		`{"ref":{"type":"ref/prompt","name":"session_start"},"argument":{"name":"topic","value":"ref"}}`:           `{"total":1,"values":["reference-notes"]}`,
		`{"ref":{"type":"ref/resource","uri":"memory://blocks/{name}"},"argument":{"name":"name","value":"zz"}}`:   `{"values":[]}`,
	} {
		if r := ask("completion/complete", ref); mustJSON(t, r.Result["completion"]) != want {
			t.Errorf("%s: %+v", ref, r)
		}
	}
	if err := p.end(); err != nil {
		t.Error(err)
	}
}

func TestPrompts(t *testing.T) {
	w := newWorld(t, nil)
	p := w.serve(t.Context()).hands()
	get := func(params string) (string, reply) {
		t.Helper()
		r := p.ask(`{"jsonrpc":"2.0","id":1,"method":"prompts/get","params":` + params + `}`)
		return mustJSON(t, r.Result), r
	}
	start, _ := get(`{"name":"session_start","arguments":{"topic":"the site"}}`)
	for _, want := range []string{"A tester.", "project-site.md", "the site", "memory_read"} {
		if !strings.Contains(start, want) {
			t.Errorf("session_start lacks %q: %s", want, start)
		}
	}
	rec, _ := get(`{"name":"reconcile_memory"}`)
	for _, want := range []string{"spawn_agent", "allow_memory_read", "sonnet", "/memory", "active projects", "completed projects", "key facts", "recent decisions", "gaps", "contradictions", "stale"} {
		if !strings.Contains(rec, want) {
			t.Errorf("reconcile_memory lacks %q", want)
		}
	}
	for _, bad := range []string{`{"name":"reconcile_memory","arguments":{"model":"; rm -rf /"}}`, `{"name":"session_start","arguments":{"topic":"a\u0000b"}}`, `{"name":"nope"}`} {
		if _, r := get(bad); r.Error == nil || r.Error.Code != -32602 {
			t.Errorf("%s: %+v", bad, r)
		}
	}
	if err := p.end(); err != nil {
		t.Error(err)
	}
	ro := newWorld(t, func(d *Deps) { d.ReadOnly = true }).serve(t.Context()).hands()
	if r := ro.ask(`{"jsonrpc":"2.0","id":1,"method":"prompts/list"}`); strings.Contains(mustJSON(t, r.Result), "reconcile") {
		t.Error("a read-only server offers the prompt that starts an agent")
	}
	if err := ro.end(); err != nil {
		t.Error(err)
	}
}

// A golden file for each tool: a change of what clients see is a change of a
// file, to be looked at. Run with -update after a change that is meant.
func TestToolSnapshots(t *testing.T) {
	dir := filepath.Join("testdata", "tools")
	have := map[string]bool{}
	for _, tl := range inventory() {
		data, err := json.MarshalIndent(tl.definition(), "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(dir, tl.name+".json")
		have[filepath.Base(file)] = true
		golden(t, file, append(data, '\n'))
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !have[e.Name()] {
			t.Errorf("%s is of no tool: remove it", e.Name())
		}
	}
	golden(t, filepath.Join("testdata", "instructions.txt"), []byte(instructions(inventory())+"\n"))
}

// An entry that brings its own heading gets no second one, and one that is longer than a
// block may be is refused before anything is written.
func TestEpisodeKeepsItsHeading(t *testing.T) {
	dir := t.TempDir()
	w := newWorld(t, func(d *Deps) {
		d.Memory = memory.Layers{{Store: memory.New(memory.Options{Dir: dir, Now: d.Now, Git: memory.GitOptions{Off: true}})}}
	})
	const entry = "## 2026-02-21 — Moved the database\nIt is on port 6543 now."
	w.good(t.Context(), "append_episodic_log", map[string]any{"entry": entry, "date": "2026-02-21"})
	got, err := os.ReadFile(filepath.Join(dir, "blocks", "episodic-2026-02.md"))
	if err != nil || strings.Count(string(got), "Moved the database") != 1 || !strings.Contains(string(got), "\n"+entry+"\n") {
		t.Errorf("%v\n%s", err, got)
	}
	if said := w.bad(t.Context(), "append_episodic_log", map[string]any{"entry": strings.Repeat("x", memory.MaxContent+1)}); !strings.Contains(said, `"entry"`) {
		t.Errorf("an entry that is too long: %s", said)
	}
}
