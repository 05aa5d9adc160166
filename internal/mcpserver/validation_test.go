package mcpserver

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"reprise/internal/memory"
	"reprise/internal/task"
)

// A call that each tool takes, as it is on the wire.
func validCalls(dir string) map[string]map[string]any {
	return map[string]map[string]any{
		"spawn_agent": {
			"task": "now x", "system_prompt": "s", "model": "sonnet", "working_directory": dir, "additional_dirs": []string{dir},
			"timeout_seconds": 10, "max_output_tokens": 100, "allow_memory_read": true, "agent": "script", "idempotency_key": "k", "resume": "run-aaaaaaaaab",
		},
		"check_agent":         {"job_id": "run-aaaaaaaaab", "wait_seconds": 0},
		"cancel_agent":        {"job_id": "run-aaaaaaaaab", "reason": "r"},
		"list_agents":         {"status": "all", "limit": 5, "cursor": "run-aaaaaaaaab"},
		"memory_search":       {"query": "q", "max_results": 3},
		"memory_read":         {"name": "core", "scope": "global", "offset": 0, "limit": 10},
		"append_file":         {"path": "/memory/notes.md", "text": "x"},
		"create_memory_block": {"name": "project-x", "content": "# X", "summary": "s", "tags": []string{"t"}},
		"update_memory_block": {"block": "project-site", "content": "# X", "summary": "s", "if_hash": hashOf("a")},
		"append_episodic_log": {"entry": "e", "title": "t", "date": "2026-02-21"},
		"state_context":       {},
		"state_log":           {"message": "m", "type": "plan", "status": "pending", "depends_on": []string{"e-1"}},
		"state_learn":         {"insight": "Always run the linter first.", "context": "c", "keep": true},
		"state_decide":        {"decision": "d", "over": []string{"o"}, "because": "b"},
		"state_handoff":       {"text": "t", "to": "ben"},
		"state_search":        {"query": "q", "type": "plan", "since": "2026-02-21", "max_results": 3},
		"state_scratch":       {"text": "t", "append": true},
		"state_focus":         {"text": "t"},
		"state_checkpoint":    {"name": "n", "message": "m"},
		"state_note":          {"name": "n", "text": "t"},
		"state_artifact":      {"name": "n.md", "text": "t"},
		"loop_ask":            {"question": "q", "broken": true},
		"loop_progress":       {"steps_completed": 1, "steps_total": 2, "current_step": "s"},
		"task_list":           {"status": []string{"planned"}, "all": true},
		"task_show":           {"number": 1},
		"task_new":            {"title": "t", "body": "b", "priority": "high", "language": "go", "effort": "1 h", "depends_on": []string{"1"}},
		"task_set":            {"number": 1, "status": "blocked", "reason": "r"},
		"task_begin":          {"operation": "research", "number": 1, "focus": "f"},
		"task_finish":         {"session_id": "sess_1_abcdef", "answer": "a"},
		"task_cancel":         {"session_id": "sess_1_abcdef", "reason": "r", "status": "failed"},
		"task_todo":           {"numbers": []string{"1"}},
		"task_errors":         {"types": []string{"timeout"}, "fix": true},
	}
}

// fakeLoop stands in for the loop that started a session.
type fakeLoop struct{}

func (fakeLoop) Ask(string, bool) error          { return nil }
func (fakeLoop) Progress(int, int, string) error { return nil }

// replacement is the second form of update_memory_block.
func replacement() map[string]any {
	return map[string]any{"block": "project-site", "old_text": "a", "new_text": "b"}
}

// TestEveryParameterIsChecked gives every parameter of every tool values that
// are missing, of the wrong type, huge, not UTF-8, with a NUL, and escaping:
// each is an error of the tool that names the parameter and what to do, and
// nothing is changed.
func TestEveryParameterIsChecked(t *testing.T) {
	t.Parallel()
	f := &fakeState{}
	w := newWorld(t, func(d *Deps) { inProject(f)(d); d.Toolsets, d.Loop = []string{"all"}, fakeLoop{} })
	dir := t.TempDir()
	calls := validCalls(dir)
	checked := 0
	for _, tl := range inventory() {
		for _, p := range tl.params {
			base := calls[tl.name]
			if p.name == "phase" {
				base = mapWith(base, "phase")
			}
			if _, ok := base[p.name]; !ok && tl.name == "state_handoff" {
				base = map[string]any{"accept": "e-1"}
			} else if !ok {
				base = replacement()
			}
			if _, ok := base[p.name]; !ok {
				t.Fatalf("no valid value for %s.%s: add it to the test", tl.name, p.name)
			}
			for what, raw := range wrongValues(p) {
				arguments := encodeWith(t, base, p.name, raw)
				before := [3]int{w.runs.count(), w.memory.changes(), f.changes()}
				msg := w.bad(t.Context(), tl.name, arguments)
				checked++
				if !strings.Contains(msg, fmt.Sprintf("%q", p.name)) || !strings.HasPrefix(msg, tl.name+": ") {
					t.Errorf("%s.%s %s: the error does not name it: %s", tl.name, p.name, what, msg)
				}
				if !strings.Contains(msg, p.remedy) {
					t.Errorf("%s.%s %s: the error does not say what to do: %s", tl.name, p.name, what, msg)
				}
				if len(msg) > 1000 || !utf8.ValidString(msg) || strings.ContainsRune(msg, 0) {
					t.Errorf("%s.%s %s: the error is unfit to be shown: %.200q", tl.name, p.name, what, msg)
				}
				if after := [3]int{w.runs.count(), w.memory.changes(), f.changes()}; after != before {
					t.Errorf("%s.%s %s: something was changed", tl.name, p.name, what)
				}
			}
		}
	}
	if checked < 200 {
		t.Errorf("only %d cases", checked)
	}
}

// wrongValues are raw JSON values that a parameter must not take; the empty
// one means that the parameter is left out.
func wrongValues(p param) map[string]string {
	out := map[string]string{"object": `{"a":1}`}
	if p.required {
		out["missing"], out["null"] = "", "null"
	}
	inText := map[string]string{
		"NUL": `"a\u0000b"`, "not UTF-8": "\"a\xffb\"", "half a pair": `"a\ud800b"`, "other half": `"\udc00"`, "pair turned round": `"\udc00\ud800"`,
	}
	if p.bytes > 0 {
		inText["huge"] = `"` + strings.Repeat("a", p.bytes+1) + `"`
	}
	if !p.lines {
		inText["line break"], inText["escape"] = `"a\nb"`, `"a\u001bb"`
	}
	if !p.blank {
		inText["empty"], inText["blank"] = `""`, `"  "`
	}
	switch p.kind {
	case text:
		out["number"], out["boolean"], out["list"] = "7", "true", `["a"]`
		if p.enum != nil {
			inText["not of the set"] = `"other"`
		}
		for k, v := range inText {
			out[k] = v
		}
		for k, v := range escapes(p.name) {
			out[k] = v
		}
	case integer:
		out["string"], out["fraction"], out["boolean"], out["list"] = `"5"`, "1.5", "true", "[1]"
		out["huge"], out["beyond any float"], out["below"], out["above"] = "1e30", "1e400", fmt.Sprint(p.min-1), fmt.Sprint(p.max+1)
	case boolean:
		out["string"], out["number"], out["list"] = `"true"`, "1", "[true]"
	case list:
		out["string"], out["number"], out["mixed"], out["nested"], out["with null"] = `"a"`, "1", `["a",1]`, `[["a"]]`, `["a",null]`
		out["too many"] = "[" + strings.TrimSuffix(strings.Repeat(`"/a",`, p.entries+1), ",") + "]"
		for k, v := range inText {
			out[k] = "[" + v + "]"
		}
		for k, v := range escapes(p.name) {
			out[k] = "[" + v + "]"
		}
	}
	return out
}

// escapes are values that try to get out of where they belong.
func escapes(name string) map[string]string {
	switch name {
	case "working_directory", "additional_dirs":
		return map[string]string{"relative": `"some/dir"`, "dots": `"/tmp/../etc"`, "home": `"~/x"`, "dots only": `".."`}
	case "name", "block":
		return map[string]string{
			"absolute": `"/etc/passwd"`, "dots": `"../core"`, "inner dots": `"blocks/../../x"`, "Windows": `"..\\..\\x"`,
			"drive": `"C:x"`, "home": `"~root"`, "double slash": `"blocks//x"`, "dot": `"."`,
		}
	case "path":
		return map[string]string{"outside": `"/etc/passwd"`, "dots": `"/memory/../etc/passwd"`, "beside": `"/memory-not/x"`}
	case "model":
		return map[string]string{"flag": `"--dangerously-skip-permissions"`, "shell": `"a;b"`}
	case "if_hash":
		return map[string]string{"not a hash": `"abc"`}
	case "date":
		return map[string]string{"not a date": `"2026-13-40"`, "words": `"tomorrow"`}
	}
	return nil
}

func encodeWith(t *testing.T, base map[string]any, name, raw string) json.RawMessage {
	t.Helper()
	var b strings.Builder
	b.WriteString("{")
	n := 0
	for k, v := range base {
		data, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		if k == name {
			if raw == "" {
				continue
			}
			data = []byte(raw)
		}
		if n++; n > 1 {
			b.WriteString(",")
		}
		fmt.Fprintf(&b, "%q:%s", k, data)
	}
	b.WriteString("}")
	return json.RawMessage(b.String())
}

// The valid calls are valid, so that the test above tests one thing at a time.
func TestValidCallsAreTaken(t *testing.T) {
	t.Parallel()
	for name, c := range validCalls(t.TempDir()) {
		if name == "task_finish" || name == "task_cancel" || name == "task_todo" {
			continue // they need a step that was begun, or a task that has ended: TestTaskTools
		}
		tasks := newDesk(t)
		if _, err := tasks.Store.Change(t.Context(), func(b *task.Board) error {
			title := "First"
			_, err := b.Add(task.Draft{Title: &title})
			return err
		}); err != nil {
			t.Fatal(err)
		}
		w := newWorld(t, func(d *Deps) {
			inProject(&fakeState{})(d)
			withTasks(tasks)(d)
			d.Toolsets, d.Loop = []string{"all"}, fakeLoop{}
		})
		w.good(t.Context(), "spawn_agent", map[string]any{"task": "fail first"}) // run-aaaaaaaaab
		w.good(t.Context(), name, c)
	}
	w := newWorld(t, nil)
	w.good(t.Context(), "update_memory_block", replacement())
	// What is optional may also be null.
	w.good(t.Context(), "spawn_agent", map[string]any{"task": "now x", "model": nil, "additional_dirs": nil, "timeout_seconds": nil, "allow_memory_read": nil})
	// Text may be anything that is text.
	for _, s := range []string{"é 漢字 🎼 \u202e", "a\tb\r\nc\n", "'; DROP TABLE runs; --", strings.Repeat("x", 512<<10-4)} {
		w.good(t.Context(), "spawn_agent", map[string]any{"task": "now " + s})
	}
	w.good(t.Context(), "append_file", map[string]any{"path": "notes.md", "text": ""})
}

// Arguments that are no object, and parameters that do not exist.
func TestArgumentsAsAWhole(t *testing.T) {
	f := &fakeState{}
	w := newWorld(t, func(d *Deps) { inProject(f)(d); d.Toolsets, d.Loop = []string{"all"}, fakeLoop{} })
	for _, tl := range inventory() {
		for _, raw := range []string{`[]`, `"x"`, `7`, `true`} {
			if msg := w.bad(t.Context(), tl.name, json.RawMessage(raw)); !strings.Contains(msg, "object") {
				t.Errorf("%s(%s): %s", tl.name, raw, msg)
			}
		}
		base := validCalls(t.TempDir())[tl.name]
		msg := w.bad(t.Context(), tl.name, encodeWith(t, mapWith(base, "no_such_parameter"), "no_such_parameter", `1`))
		if !strings.Contains(msg, `"no_such_parameter"`) || len(tl.params) > 0 && !strings.Contains(msg, tl.params[0].name) {
			t.Errorf("%s: %s", tl.name, msg)
		}
	}
	if n := w.runs.count() + w.memory.changes() + f.changes(); n != 0 {
		t.Errorf("%d changes", n)
	}
	if a := w.good(t.Context(), "list_agents", nil); a["agents"] == nil {
		t.Errorf("no arguments at all: %v", a)
	}
}

func mapWith(m map[string]any, key string) map[string]any {
	out := map[string]any{key: 1}
	for k, v := range m {
		out[k] = v
	}
	return out
}

// Directories are looked at before anything starts.
func TestSpawnDirectories(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	mem := filepath.Join(dir, "memory")
	link := filepath.Join(dir, "link")
	for _, err := range []error{os.WriteFile(file, nil, 0o600), os.MkdirAll(filepath.Join(mem, "blocks"), 0o700), os.Symlink(mem, link)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	w := newWorld(t, nil)
	w.memory.dir = mem
	for _, c := range []struct{ name, value, want string }{
		{"working_directory", filepath.Join(dir, "none"), "existing directory"},
		{"working_directory", file, "not a directory"},
		{"additional_dirs", filepath.Join(dir, "none"), "existing directory"},
		{"additional_dirs", mem, "allow_memory_read"},
		{"additional_dirs", filepath.Join(mem, "blocks"), "allow_memory_read"},
		{"additional_dirs", link, "allow_memory_read"},
	} {
		var v any = c.value
		if c.name == "additional_dirs" {
			v = []string{c.value}
		}
		msg := w.bad(t.Context(), "spawn_agent", map[string]any{"task": "now x", c.name: v})
		if !strings.Contains(msg, fmt.Sprintf("%q", c.name)) || !strings.Contains(msg, c.want) {
			t.Errorf("%s %s: %s", c.name, c.value, msg)
		}
	}
	if w.runs.count() != 0 {
		t.Error("something was started")
	}
	w.good(t.Context(), "spawn_agent", map[string]any{"task": "now x", "working_directory": dir, "additional_dirs": []string{dir}})
}

// Combinations of parameters of update_memory_block.
func TestUpdateForms(t *testing.T) {
	w := newWorld(t, nil)
	for _, args := range []map[string]any{
		{"block": "b"}, {"block": "b", "content": "c", "old_text": "o", "new_text": "n"}, {"block": "b", "old_text": "o"},
		{"block": "b", "new_text": "n"}, {"block": "b", "old_text": "", "new_text": "n"}, {"block": "b", "content": ""},
	} {
		if msg := w.bad(t.Context(), "update_memory_block", args); !strings.Contains(msg, `parameter`) {
			t.Errorf("%v: %s", args, msg)
		}
	}
	if w.memory.changes() != 0 {
		t.Error("something was written")
	}
	w.good(t.Context(), "update_memory_block", map[string]any{"block": "b", "old_text": "o", "new_text": ""})
}

// The same against the real store: what it refuses names the parameter too or
// says what to do, and the files stay as they are.
func TestMemoryToolsOnTheRealStore(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "memory")
	store := memory.New(memory.Options{Dir: dir, Now: time.Now, Git: memory.GitOptions{Off: true}})
	w := newWorld(t, func(d *Deps) { d.Memory = memory.Layers{{Store: store}} })
	ctx := t.Context()
	if a := w.good(ctx, "memory_read", map[string]any{"name": "core"}); a["content"] == "" {
		t.Errorf("first use: %v", a)
	}
	made := w.good(ctx, "create_memory_block", map[string]any{"name": "project-site", "content": "# Site\n\nold fact\n", "summary": "The site", "tags": []string{"web"}})
	got := w.good(ctx, "memory_read", map[string]any{"name": "project-site"})
	if got["hash"] != made["hash"] || !strings.Contains(got["content"].(string), "old fact") || !strings.Contains(got["content"].(string), "web") {
		t.Errorf("made %v, read %v", made, got)
	}
	if a := w.good(ctx, "memory_read", map[string]any{"name": "index"}); !strings.Contains(a["content"].(string), "The site") {
		t.Errorf("index: %v", a)
	}
	w.good(ctx, "update_memory_block", map[string]any{"block": "project-site", "old_text": "old fact", "new_text": "new fact", "if_hash": got["hash"]})
	stale := w.bad(ctx, "update_memory_block", map[string]any{"block": "project-site", "content": "# lost", "if_hash": got["hash"]})
	if !strings.Contains(stale, "new fact") || !strings.Contains(stale, "if_hash") {
		t.Errorf("stale: %s", stale)
	}
	w.good(ctx, "append_episodic_log", map[string]any{"entry": "Tried the tools. They work.", "date": "2026-02-21"})
	if a := w.good(ctx, "memory_read", map[string]any{"name": "episodic-2026-02"}); !strings.Contains(a["content"].(string), "2026-02-21 — Tried the tools") {
		t.Errorf("episodes: %v", a)
	}
	if a := w.good(ctx, "append_file", map[string]any{"path": filepath.Join(dir, "notes", "x.md"), "text": "é\n"}); a["bytes_written"] != 3.0 {
		t.Errorf("append: %v", a)
	}
	before := tree(t, dir)
	outside := w.bad(ctx, "append_file", map[string]any{"path": filepath.Join(dir, "..", "x.md"), "text": "x"})
	if !strings.Contains(outside, `"path"`) || !strings.Contains(outside, "restricted to the memory directory") || !strings.Contains(outside, dir) {
		t.Errorf("outside: %s", outside)
	}
	w.bad(ctx, "create_memory_block", map[string]any{"name": "Not A Name", "content": "x"})
	w.bad(ctx, "memory_read", map[string]any{"name": "project-none"})
	w.bad(ctx, "update_memory_block", map[string]any{"block": "project-none", "content": "x"})
	if after := tree(t, dir); !slices.Equal(before, after) {
		t.Errorf("refused calls changed %q to %q", before, after)
	}
}

// tree lists the files below a directory with their contents.
func tree(t *testing.T, dir string) []string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		out = append(out, path+"\n"+string(data))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// FuzzArguments: whatever a client sends as arguments, a tool answers and
// nothing breaks.
func FuzzArguments(f *testing.F) {
	for name, c := range validCalls("/") {
		data, err := json.Marshal(c)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(name, data)
	}
	f.Add("append_file", []byte("{\"path\":\"\xff\"}"))
	f.Add("spawn_agent", []byte(`{"task":"\ud800\udc00\ud800"}`))
	tools := inventory()
	f.Fuzz(func(t *testing.T, name string, data []byte) {
		for _, tl := range tools {
			if tl.name != name {
				continue
			}
			a, err := parseArgs(tl.name, tl.params, data)
			if err != nil {
				if len(err.Error()) > 2000 {
					t.Errorf("an error of %d bytes", len(err.Error()))
				}
				continue
			}
			for _, p := range tl.params {
				v, ok := a[p.name]
				if p.required && !ok {
					t.Errorf("%s is missing and nobody said so", p.name)
				}
				s, isText := v.(string)
				if isText && (!utf8.ValidString(s) || strings.ContainsRune(s, 0) || p.bytes > 0 && len(s) > p.bytes) {
					t.Errorf("%s: %q was let through", p.name, s)
				}
				if n, isInt := v.(int); isInt && (n < p.min || n > p.max) {
					t.Errorf("%s: %d was let through", p.name, n)
				}
			}
		}
	})
}

// FuzzGuard: whatever comes in as a line is a message, an answer that is one
// line of JSON, or nothing.
func FuzzGuard(f *testing.F) {
	for _, s := range []string{shake, discover, "garbage", "[]", "{}", "\xef\xbb\xbf{}", `{"jsonrpc":"2.0","id":1,"method":"ping"}`, "\x00", `{"id":{}}`, "null"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c := &guardConn{limit: 1 << 16, known: knownMethod}
		msg, refused := c.parse(line{data: data, total: int64(len(data)), over: len(data) > 1<<16})
		if msg != nil && refused != nil {
			t.Error("both a message and its refusal")
		}
		if refused != nil {
			out, err := refused.encode()
			if err != nil || !json.Valid(out) || strings.ContainsAny(string(out), "\n\r") || len(out) > 4096 {
				t.Errorf("refusal %q: %v", out, err)
			}
		}
	})
}
