//go:build unix

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// The tests of this file carry the names of the rows of the first design's
// tables 8.1.1 to 8.1.5. They run against the built server, with a mock in place
// of the agent program. Times are shorter than in the tables, by settings.

// TestAppendFile is table 8.1.1.
func TestAppendFile(t *testing.T) {
	t.Parallel()
	h := newHome(t, nil)
	s := h.serve()
	blocks := filepath.Join(h.memory, "blocks")
	put := func(path, text string) answer {
		t.Helper()
		return s.tool("append_file", map[string]any{"path": path, "text": text})
	}
	written := func(t *testing.T, a answer, n int) {
		t.Helper()
		if a.isError || a.data["success"] != true || a.data["bytes_written"] != float64(n) {
			t.Errorf("got %+v, want success and %d bytes", a, n)
		}
	}
	episodic := filepath.Join(blocks, "episodic-2026-11.md")

	t.Run("Append to new file", func(t *testing.T) {
		written(t, put(episodic, "# November\n"), 11)
		if got := h.read(episodic); got != "# November\n" {
			t.Errorf("the file holds %q", got)
		}
	})
	t.Run("Append to existing file", func(t *testing.T) {
		written(t, put(episodic, "\n## Entry\nå\n"), 13)
		if got := h.read(episodic); got != "# November\n\n## Entry\nå\n" {
			t.Errorf("the file holds %q", got)
		}
	})
	t.Run("Path outside memory dir", func(t *testing.T) {
		outside := filepath.Join(h.work, "x.md")
		for _, path := range []string{outside, h.memory + "-beside/x.md", "/etc/reprise-test.md", h.dir + "/x.md"} {
			if a := put(path, "x"); !a.isError || !strings.Contains(a.text, "restricted to the memory directory") || !strings.Contains(a.text, h.memory) {
				t.Errorf("%s: got %+v", path, a)
			}
			if _, err := os.Lstat(path); err == nil {
				t.Errorf("%s was made", path)
			}
		}
	})
	t.Run("Path traversal attempt", func(t *testing.T) {
		link := filepath.Join(blocks, "way-out")
		if err := os.Symlink(h.work, link); err != nil {
			t.Fatal(err)
		}
		defer os.Remove(link)
		for _, path := range []string{
			h.memory + "/../work-x.md", blocks + "/../../x.md", "../x.md", filepath.Join(link, "x.md"), h.memory + "/blocks/../../../x.md",
		} {
			if a := put(path, "x"); !a.isError {
				t.Errorf("%s: got %+v, want it refused", path, a)
			}
		}
		for _, d := range []string{h.work, h.dir, filepath.Dir(h.dir)} {
			if found, _ := filepath.Glob(filepath.Join(d, "*x.md")); len(found) > 0 {
				t.Errorf("made: %q", found)
			}
		}
	})
	t.Run("Empty text", func(t *testing.T) {
		before := h.read(episodic)
		written(t, put(episodic, ""), 0)
		if got := h.read(episodic); got != before {
			t.Errorf("the file changed to %q", got)
		}
	})
	t.Run("Parent dir creation", func(t *testing.T) {
		deep := filepath.Join(h.memory, "notes", "2026", "november.md")
		written(t, put(deep, "deep\n"), 5)
		if got := h.read(deep); got != "deep\n" {
			t.Errorf("the file holds %q", got)
		}
	})
}

// TestSpawnAgent is table 8.1.2.
func TestSpawnAgent(t *testing.T) {
	t.Parallel()
	h := newHome(t, sub(map[string]any{"sync_window_seconds": 1, "max_concurrent_agents": 5}))
	s := h.serve()
	// Rows about what ends within the window have one that a busy machine keeps
	// to; the server answers as soon as the agent has ended.
	roomy := newHome(t, sub(map[string]any{"sync_window_seconds": 29}))
	r := roomy.serve()

	t.Run("Sync completion (fast task)", func(t *testing.T) {
		a := r.spawn("count the files")
		if a.str("status") != "complete" || a.data["job_id"] != nil || !strings.Contains(a.str("result"), "Mock sub-agent received task: count the files") {
			t.Errorf("got %s", a.text)
		}
		if _, err := time.Parse(time.RFC3339, a.str("started_at")); err != nil {
			t.Errorf("started_at: %v", err)
		}
	})

	gate := filepath.Join(h.work, "gate")
	var job string
	t.Run("Async handoff (slow task)", func(t *testing.T) {
		a := s.spawn("gate " + gate)
		job = a.str("job_id")
		if a.str("status") != "running" || job == "" || a.data["result"] != nil {
			t.Errorf("got %s", a.text)
		}
	})
	t.Run("Async completion via check_agent", func(t *testing.T) {
		if a := s.good("check_agent", map[string]any{"job_id": job}); a.str("status") != "running" {
			t.Fatalf("before its end: %s", a.text)
		}
		h.write(gate, "")
		if a := s.settle(job); a.str("status") != "complete" || !strings.Contains(a.str("result"), "Mock sub-agent received task") {
			t.Errorf("got %s", a.text)
		}
	})
	t.Run("Subprocess timeout", func(t *testing.T) {
		a := s.spawn("for ever", map[string]any{"timeout_seconds": 2})
		if a.str("status") != "running" {
			t.Fatalf("got %s", a.text)
		}
		if a = s.settle(a.str("job_id")); a.str("status") != "timed_out" || !strings.Contains(a.str("error"), "2") || !strings.Contains(a.str("result"), "started") {
			t.Errorf("got %s", a.text)
		}
	})
	t.Run("Subprocess crash", func(t *testing.T) {
		a := r.spawn("crash now")
		if a.str("status") != "failed" || a.str("job_id") == "" || !strings.Contains(a.str("error"), "1") ||
			!strings.Contains(a.str("result"), "crash now") || !strings.Contains(a.text, "the mock breaks") {
			t.Errorf("want failed with its output, exit code and standard error, got %s", a.text)
		}
		if a := r.settle(a.str("job_id")); a.str("status") != "failed" {
			t.Errorf("the job of a failed run can be collected too: %s", a.text)
		}
	})
	t.Run("Concurrent agent cap", func(t *testing.T) {
		var begun []<-chan message
		for range 5 {
			begun = append(begun, s.beginTool("spawn_agent", map[string]any{"task": "for ever"}))
		}
		var jobs []string
		for _, c := range begun {
			jobs = append(jobs, toAnswer(t, s.await("spawn_agent", c)).str("job_id"))
		}
		s.refused("Maximum concurrent sub-agents reached (5)", "spawn_agent", map[string]any{"task": "one too many"})
		begun = nil
		for _, j := range jobs {
			begun = append(begun, s.beginTool("cancel_agent", map[string]any{"job_id": j}))
		}
		for i, c := range begun {
			if a := toAnswer(t, s.await("cancel_agent", c)); a.isError {
				t.Errorf("cancel %s: %s", jobs[i], a.text)
			}
		}
		for _, j := range jobs {
			until(t, 10*time.Second, j+" has ended", func() bool { r, _ := h.record(j); return r.done() })
		}
		a := s.spawn("there is room again")
		if a.str("status") == "running" {
			a = s.settle(a.str("job_id"))
		}
		if a.str("status") != "complete" {
			t.Errorf("after the cancels: %s", a.text)
		}
	})
	t.Run("Output truncation", func(t *testing.T) {
		a := r.spawn("flood", map[string]any{"max_output_tokens": 100})
		got := a.str("result")
		if a.str("status") != "complete" || len(got) > 1500 || !strings.Contains(got, "truncated") || !strings.HasPrefix(got, "line 0 of a hundred bytes") {
			t.Fatalf("%d bytes: %.600s", len(got), got)
		}
		path := a.str("output_path")
		if !strings.Contains(got, path) || path == "" {
			t.Errorf("the marker does not say where the whole is (%q): %s", path, got)
		}
		if whole := roomy.read(path); len(whole) < 100_000 || !strings.Contains(whole, "line 999 ") {
			t.Errorf("the whole output has %d bytes", len(whole))
		}
	})
	t.Run("Working directory", func(t *testing.T) {
		dir := filepath.Join(roomy.work, "a dir with spaces å")
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		a := r.spawn("where", map[string]any{"working_directory": dir})
		if !strings.Contains(a.str("result"), "Working directory: "+dir+"\n") {
			t.Errorf("got %s", a.text)
		}
	})
	t.Run("System prompt (6.3)", func(t *testing.T) {
		a := r.spawn("prompt", map[string]any{"system_prompt": "Answer as a list."})
		preamble, memory, own := strings.Index(a.str("result"), "You were started by another agent"), strings.Index(a.str("result"), roomy.memory), strings.Index(a.str("result"), "\n\nAnswer as a list.")
		if preamble < 0 || memory < preamble || own < memory {
			t.Errorf("want the preamble, the rule about memory and the caller's own text, in that order: %s", a.text)
		}
	})
	t.Run("Invalid command", func(t *testing.T) {
		h := newHome(t, settings{"claude_cli": map[string]any{"path": "/nonexistent"}})
		s := h.serve()
		a := s.refused("failed to start", "spawn_agent", map[string]any{"task": "x"})
		if !strings.Contains(a.text, "/nonexistent") {
			t.Errorf("the error does not name the program: %s", a.text)
		}
		s.good("list_agents", map[string]any{}) // and the server lives on
	})
}

// TestSeedMockScript runs the table's own kind of mock: a script that knows no
// --version and waits for as long as MOCK_DELAY says.
func TestSeedMockScript(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "mock-claude.sh")
	h := newHome(t, settings{"claude_cli": map[string]any{"path": path}})
	h.write(path, "#!/bin/sh\nsleep ${MOCK_DELAY:-0}\necho \"received: $(cat)\"\necho \"in: $(pwd)\"\n")
	if err := os.Chmod(path, 0o700); err != nil {
		t.Fatal(err)
	}
	a := h.with("MOCK_DELAY=1").serve().spawn("hello mock", map[string]any{"working_directory": h.work})
	if a.str("status") != "complete" || a.str("result") != "received: hello mock\nin: "+h.work+"\n" && a.str("result") != "received: hello mock\nin: "+h.work {
		t.Errorf("got %s", a.text)
	}
}

// TestCheckAgent is table 8.1.3.
func TestCheckAgent(t *testing.T) {
	t.Parallel()
	h := newHome(t, sub(map[string]any{"sync_window_seconds": 1, "job_expiry_seconds": 2}))
	s := h.serve()
	check := func(job string) map[string]any { return map[string]any{"job_id": job} }
	gate := filepath.Join(h.work, "gate")
	slow := func() string {
		t.Helper()
		a := s.spawn("gate " + gate)
		if a.str("status") != "running" {
			t.Fatalf("got %s", a.text)
		}
		return a.str("job_id")
	}

	t.Run("Unknown job_id", func(t *testing.T) {
		for _, id := range []string{"run-aaaaaaaaaa", "job-a1b2c3", "../../etc/passwd", "x"} {
			s.refused("Unknown job_id", "check_agent", check(id))
		}
	})
	job := slow()
	t.Run("Running job", func(t *testing.T) {
		a := s.good("check_agent", check(job))
		elapsed, _ := a.data["elapsed_seconds"].(float64)
		if a.str("status") != "running" || elapsed <= 0 || a.data["result"] != nil || a.data["error"] != nil {
			t.Errorf("got %s", a.text)
		}
	})
	t.Run("Completed job", func(t *testing.T) {
		h.write(gate, "")
		if a := s.settle(job); a.str("status") != "complete" || !strings.Contains(a.str("result"), "Mock sub-agent") || a.data["error"] != nil {
			t.Errorf("got %s", a.text)
		}
	})
	t.Run("Already collected", func(t *testing.T) {
		a := s.refused("Unknown job_id", "check_agent", check(job))
		record := filepath.Join(h.dir, ".local", "share", "reprise", "runs", job)
		if !strings.Contains(a.text, record) {
			t.Errorf("the error does not name the run's record under %s: %s", record, a.text)
		}
		var r map[string]any
		if err := json.Unmarshal([]byte(h.must("runs", "show", "--json", job)), &r); err != nil {
			t.Fatal(err)
		}
		if out, _ := r["output"].(string); r["status"] != "completed" || !strings.Contains(out, "Mock sub-agent") {
			t.Errorf("the record is not whole: %v", r)
		}
	})
	t.Run("Expired job", func(t *testing.T) {
		if err := os.Remove(gate); err != nil {
			t.Fatal(err)
		}
		job := slow()
		until(t, 10*time.Second, "longer than job_expiry_seconds since its start", func() bool {
			a := s.good("list_agents", map[string]any{})
			return strings.Contains(a.text, job) && elapsedOf(a, job) > 2.5
		})
		if a := s.good("check_agent", check(job)); a.str("status") != "running" {
			t.Fatalf("a running job is older than the expiry, which counts from the end: %s", a.text)
		}
		h.write(gate, "")
		until(t, 10*time.Second, "the uncollected job has left the table", func() bool {
			return !collectable(s.good("list_agents", map[string]any{}), job)
		})
		s.refused("Unknown job_id", "check_agent", check(job))
		if r, _ := h.record(job); r.Status != "completed" {
			t.Errorf("the run's record: %+v", r)
		}
	})
}

func agentLine(a answer, job string) map[string]any {
	list, _ := a.data["agents"].([]any)
	for _, e := range list {
		if m, _ := e.(map[string]any); m["job_id"] == job {
			return m
		}
	}
	return nil
}

func elapsedOf(a answer, job string) float64 {
	n, _ := agentLine(a, job)["elapsed_seconds"].(float64)
	return n
}

func collectable(a answer, job string) bool { return agentLine(a, job)["collectable"] == true }

// TestJobLifecycle is table 8.1.4.
func TestJobLifecycle(t *testing.T) {
	t.Parallel()
	t.Run("Cleanup goroutine runs", func(t *testing.T) {
		t.Parallel()
		log := filepath.Join(t.TempDir(), "reprise.log")
		h := newHome(t, settings{
			"sub_agent": map[string]any{"sync_window_seconds": 1, "job_expiry_seconds": 1},
			"logging":   map[string]any{"file": log},
		})
		s := h.serve()
		gate := filepath.Join(h.work, "gate")
		job := s.spawn("gate " + gate).str("job_id")
		h.write(gate, "")
		// Nobody asks for the job: only the sweep, every 30 s, can find it.
		until(t, 40*time.Second, "the log says that "+job+" expired", func() bool {
			data, _ := os.ReadFile(log)
			for _, l := range lines(string(data)) {
				if strings.Contains(l, job) && strings.Contains(l, "expired") && strings.Contains(l, `"warn"`) {
					return true
				}
			}
			return false
		})
	})
	t.Run("Graceful shutdown", func(t *testing.T) {
		t.Parallel()
		h := newHome(t, sub(map[string]any{"sync_window_seconds": 1}))
		s := h.serve()
		job := s.spawn("for ever").str("job_id")
		// The window is over sooner than a busy machine starts a process.
		until(t, 10*time.Second, "the run has a process", func() bool { return len(ofRun(t, job)) > 0 })
		if err := s.in.Close(); err != nil {
			t.Fatal(err)
		}
		s.ends(7*time.Second, "its input ended")
		if c := s.exitCode(); c != 0 {
			t.Errorf("exit code %d", c)
		}
		until(t, 7*time.Second, "the run is stopped", func() bool {
			r, _ := h.record(job)
			return r.done() && len(ofRun(t, job)) == 0
		})
		if r, _ := h.record(job); r.Status != "killed" || r.Reason == "" {
			t.Errorf("record: %+v", r)
		}
	})
	t.Run("Job ID uniqueness", func(t *testing.T) {
		t.Parallel()
		// A hundred at once here; a thousand in the run package, without processes.
		seen := map[string]bool{}
		for _, r := range hundredRuns(t) {
			if seen[r.ID] {
				t.Errorf("%s twice", r.ID)
			}
			seen[r.ID] = true
		}
		if len(seen) != 100 {
			t.Errorf("%d ids, want 100", len(seen))
		}
	})
}

// hundredRuns starts a hundred scripted agents at once under a cap of 100 and
// gives their records when all have ended well.
func hundredRuns(t *testing.T) []runRecord {
	t.Helper()
	h := newHome(t, sub(map[string]any{"sync_window_seconds": 29, "max_concurrent_agents": 100, "agent": "script"}))
	s := h.serve()
	var begun []<-chan message
	for i := range 100 {
		begun = append(begun, s.beginTool("spawn_agent", map[string]any{"task": fmt.Sprintf("one of many, %d", i), "working_directory": h.work}))
	}
	for _, c := range begun {
		if a := toAnswer(t, s.await("spawn_agent", c)); a.isError || a.str("status") == "failed" || a.str("status") == "timed_out" {
			t.Errorf("got %s", a.text)
		}
	}
	var all []runRecord
	until(t, 40*time.Second, "all hundred have ended", func() bool {
		all = h.records()
		for _, r := range all {
			if !r.done() {
				return false
			}
		}
		return len(all) == 100
	})
	for _, r := range all {
		if r.Status != "completed" {
			t.Errorf("%+v", r)
		}
	}
	if found, _ := filepath.Glob(filepath.Join(h.work, "reprise-script-*.txt")); len(found) != 100 {
		t.Errorf("%d artefacts, want 100", len(found))
	}
	return all
}

// TestMCPIntegration is table 8.1.5.
func TestMCPIntegration(t *testing.T) {
	t.Parallel()
	h := newHome(t, sub(map[string]any{"sync_window_seconds": 20}))
	s := h.launch()

	t.Run("MCP initialization handshake", func(t *testing.T) {
		var r struct {
			ProtocolVersion string
			Capabilities    map[string]any
			ServerInfo      struct{ Name, Version string }
			Instructions    string
		}
		if err := json.Unmarshal(s.initialize(), &r); err != nil {
			t.Fatal(err)
		}
		if r.ServerInfo.Name != "reprise" || r.ServerInfo.Version == "" || r.Capabilities["tools"] == nil || r.ProtocolVersion != "2025-11-25" {
			t.Errorf("got %+v", r)
		}
		if n := len(r.Instructions); n == 0 || n > 2000 {
			t.Errorf("instructions of %d characters", n)
		}
	})
	t.Run("Tool listing", func(t *testing.T) {
		m := s.request("tools/list", map[string]any{})
		var r struct {
			Tools []struct {
				Name        string
				Description string
				InputSchema map[string]any
			}
		}
		if err := json.Unmarshal(m.Result, &r); err != nil {
			t.Fatal(err)
		}
		names := map[string]bool{}
		for _, tool := range r.Tools {
			names[tool.Name] = true
			if tool.InputSchema["type"] != "object" || tool.InputSchema["properties"] == nil || tool.Description == "" {
				t.Errorf("%s: %+v", tool.Name, tool)
			}
		}
		for _, want := range []string{"spawn_agent", "check_agent", "append_file"} {
			if !names[want] {
				t.Errorf("no tool %s", want)
			}
		}
		if len(names) > 12 || len(m.Result) > 12<<10 {
			t.Errorf("%d tools in %d bytes: at most 12 in 12 KiB, for each is paid for in every conversation", len(names), len(m.Result))
		}
	})
	t.Run("Tool call with valid params", func(t *testing.T) {
		a := s.good("append_file", map[string]any{"path": filepath.Join(h.memory, "blocks", "episodic-2026-11.md"), "text": "x\n"})
		var inText map[string]any
		if err := json.Unmarshal([]byte(a.text), &inText); err != nil || inText["bytes_written"] != float64(2) || a.data["bytes_written"] != float64(2) {
			t.Errorf("the answer is not both text and data: %+v, %v", a, err)
		}
	})
	t.Run("Tool call with missing required param", func(t *testing.T) {
		s.refused(`"task"`, "spawn_agent", map[string]any{})
		s.refused(`"job_id"`, "check_agent", map[string]any{})
		s.refused(`"text"`, "append_file", map[string]any{"path": "x.md"})
	})
	t.Run("Two concurrent tool calls (via pipe)", func(t *testing.T) {
		gate := filepath.Join(h.work, "gate")
		slow := s.beginTool("spawn_agent", map[string]any{"task": "gate " + gate})
		quick := toAnswer(t, s.await("append_file", s.beginTool("append_file", map[string]any{"path": filepath.Join(h.memory, "blocks", "episodic-2026-11.md"), "text": "y\n"})))
		select {
		case m := <-slow:
			t.Errorf("the slow call came first: %+v", m)
		default:
		}
		h.write(gate, "")
		if a := toAnswer(t, s.await("spawn_agent", slow)); a.str("status") != "complete" || quick.isError {
			t.Errorf("slow: %s; quick: %s", a.text, quick.text)
		}
	})
}
