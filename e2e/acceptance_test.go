//go:build unix

package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"reprise/internal/fakemodel"
)

// The acceptance criteria AC1 to AC12 of the first design. The client is the
// real Claude Code, and so are the agents it spawns through our server; only the
// model behind both is scripted. Rules for the conversation have a Task that
// begins with "Conversation", those for agents one that begins with "Agent".

const tool = "mcp__reprise__"

// outer and inner make conditions on the conversation and on its agents.
func outer(result string) fakemodel.When {
	return fakemodel.When{Task: "Conversation", Result: result}
}

func inner(result string) fakemodel.When {
	return fakemodel.When{Task: "^Agent|\nAgent", Result: result}
}

// final is the conversation's last answer, with what the tool answered in it.
func final(name, result, text string) fakemodel.Rule { return rule(name, outer(result), say(text)) }

func wants(t *testing.T, s session, text string) {
	t.Helper()
	if !strings.Contains(s.text, text) {
		t.Errorf("the conversation ended with %q, want %q in it\nevents: %s", s.text, text, s.short())
	}
}

// short is what happened, for failures.
func (s session) short() string {
	var b strings.Builder
	for _, e := range s.events {
		if e["type"] == "assistant" || e["type"] == "user" {
			data, _ := json.Marshal(e["message"])
			b.WriteString("\n  ")
			b.Write(data[:min(len(data), 1500)])
		}
	}
	return b.String()
}

func allUsed(t *testing.T, m *fakemodel.Server) {
	t.Helper()
	if u := m.Unused(); len(u) > 0 {
		var seen []string
		for _, q := range m.Requests() {
			seen = append(seen, q.Rule)
		}
		t.Errorf("the model was never asked for %q; it was asked for %q", u, seen)
	}
}

// AC1, AC2, §8.3.1, with the client's tool search on, as users have it.
func TestAC1AC2FastTask(t *testing.T) {
	inItsOwnStep(t)
	t.Parallel()
	m := model(t,
		rule("load the tool", fakemodel.When{Task: "Conversation"}, call("ToolSearch", map[string]any{"query": "select:" + tool + "spawn_agent"})),
		rule("spawn", fakemodel.When{Task: `Conversation.*dir=(?P<dir>\S+)`, Offers: []string{tool + "spawn_agent"}, Turn: 2}, call(tool+"spawn_agent", map[string]any{
			"task": "Agent: list all .go files in the current directory and report the total count.", "working_directory": "${dir}",
		})),
		rule("list", fakemodel.When{Task: "Agent: list", Turn: 1}, call("Bash", map[string]any{"command": "ls *.go | wc -l", "description": "count"})),
		rule("report", inner(`(?P<n>\d+)`), say("There are ${n} Go files.")),
		final("answer", `"status":\s*"complete".*There are (?P<n>\d+) Go files`, "The agent found ${n}."),
	)
	h := newClaudeHome(t, m, sub(map[string]any{"sync_window_seconds": 29}))
	for _, f := range []string{"a.go", "b.go", "c.go", "d.txt"} {
		h.write(filepath.Join(h.work, f), "package x\n")
	}
	s := h.claude("Conversation: how many Go files are there? dir="+h.work, sessionOptions{search: true})
	t.Run("AC1 registers all three tools with the client", func(t *testing.T) {
		names := s.toolNames()
		for _, want := range []string{"spawn_agent", "check_agent", "append_file"} {
			if !slices.Contains(names, tool+want) {
				t.Errorf("no %s in %q", want, names)
			}
		}
		servers, _ := json.Marshal(s.init()["mcp_servers"])
		if !strings.Contains(string(servers), `"connected"`) {
			t.Errorf("servers: %s", servers)
		}
		if len(m.Matching(func(q *fakemodel.Request) bool { return strings.Contains(q.SystemText()+q.Task(), "reprise") })) == 0 {
			t.Error("the server's instructions did not reach the model")
		}
	})
	t.Run("AC2 completes a fast task synchronously", func(t *testing.T) {
		wants(t, s, "The agent found 3.")
		allUsed(t, m)
	})
}

// AC3, §8.3.4.
func TestAC3SlowTask(t *testing.T) {
	inItsOwnStep(t)
	t.Parallel()
	m := model(t,
		rule("spawn", fakemodel.When{Task: "Conversation", Turn: 1}, call(tool+"spawn_agent", map[string]any{
			"task": "Agent: run the full test suite in this directory and report all results.", "timeout_seconds": 120, "working_directory": "WORK",
		})),
		rule("run", fakemodel.When{Task: "Agent: run", Turn: 1}, call("Bash", map[string]any{"command": "sh suite.sh", "description": "tests"})),
		rule("report", inner(`(?P<what>\d+ passed, \d+ failed)`), say("The suite says ${what}.")),
		final("answer", `"status":\s*"complete".*\D(?P<what>\d+ passed, \d+ failed)`, "Collected: ${what}."),
		fakemodel.Rule{Name: "poll", Uses: -1, When: outer(`"job_id":\s*"(?P<id>run-\w+)"`), Say: call(tool+"check_agent", map[string]any{"job_id": "${id}", "wait_seconds": 5})},
	)
	h := newClaudeHome(t, m, sub(map[string]any{"sync_window_seconds": 1}))
	fill(t, m, "WORK", h.work)
	// The suite ends when the conversation has been told that it runs.
	h.write(filepath.Join(h.work, "suite.sh"), "while [ ! -e polled ]; do sleep 0.05; done\necho 41 passed, 1 failed\n")
	go func() {
		if _, err := m.Await(t.Context(), func(q *fakemodel.Request) bool { return q.Rule == "poll" }); err == nil {
			_ = os.WriteFile(filepath.Join(h.work, "polled"), nil, 0o600) // its absence fails the test
		}
	}()
	s := h.claude("Conversation: run the tests", sessionOptions{})
	wants(t, s, "Collected: 41 passed, 1 failed.")
	allUsed(t, m)
	polls := m.Matching(func(q *fakemodel.Request) bool { return q.Rule == "poll" })
	if first := polls[0].Results(); !regexp.MustCompile(`"status":\s*"running"`).MatchString(first) {
		t.Errorf("spawn_agent answered %s", first)
	}
}

// AC4: what check_agent says of jobs that went wrong, as the model sees it.
func TestAC4CheckAgent(t *testing.T) {
	inItsOwnStep(t)
	t.Parallel()
	m := model(t,
		rule("spawn", fakemodel.When{Task: "Conversation", Turn: 1}, fakemodel.Answer{Calls: []fakemodel.Call{
			{Tool: tool + "spawn_agent", Input: map[string]any{"task": "Agent: fail"}},
			{Tool: tool + "spawn_agent", Input: map[string]any{"task": "Agent: hang", "timeout_seconds": 6}},
			{Tool: tool + "check_agent", Input: map[string]any{"job_id": "run-aaaaaaaaaa"}},
		}}),
		fakemodel.Rule{Name: "fail", Uses: -1, When: fakemodel.When{Task: "Agent: fail"}, Say: fakemodel.Answer{Fail: &fakemodel.Failure{Status: 400, Message: "no such thing"}}},
		fakemodel.Rule{Name: "hang", Uses: -1, When: fakemodel.When{Task: "Agent: hang"}, Say: fakemodel.Answer{Hang: true}},
		fakemodel.Rule{
			Name: "poll", When: fakemodel.When{Task: "Conversation", Turn: 2},
			Reply: func(q *fakemodel.Request) fakemodel.Answer {
				var a fakemodel.Answer
				for _, id := range regexp.MustCompile(`"job_id":\s*"(run-\w+)"`).FindAllStringSubmatch(q.Results(), -1) {
					a.Calls = append(a.Calls, fakemodel.Call{Tool: tool + "check_agent", Input: map[string]any{"job_id": id[1], "wait_seconds": 20}})
				}
				return a
			},
		},
		rule("end", fakemodel.When{Task: "Conversation", Turn: 3}, say("done")),
	)
	h := newClaudeHome(t, m, sub(map[string]any{"sync_window_seconds": 1}))
	// An agent that hangs may run out of time before it has asked its model.
	wants(t, h.claude("Conversation: see what fails", sessionOptions{}), "done")
	first := results(t, m, "poll")
	if len(first) != 3 || !strings.Contains(first[2], "Unknown job_id") {
		t.Fatalf("first answers: %q", first)
	}
	last := results(t, m, "end")
	if len(last) != 2 {
		t.Fatalf("second answers: %q, after %q", last, first)
	}
	all := strings.Join(last, "\n")
	if !strings.Contains(all, `"failed"`) || !strings.Contains(all, "400") || !strings.Contains(all, `"timed_out"`) {
		t.Errorf("polled: %q", last)
	}
}

// results are the tool results that the rule's request carried, in the order of
// the calls: the client runs some calls at once and hands them in as they end.
func results(t *testing.T, m *fakemodel.Server, name string) []string {
	t.Helper()
	var out []string
	for _, q := range m.Matching(func(q *fakemodel.Request) bool { return q.Rule == name }) {
		blocks := q.ResultBlocks()
		slices.SortFunc(blocks, func(a, b fakemodel.Block) int { return strings.Compare(a.ToolID, b.ToolID) })
		for _, b := range blocks {
			out = append(out, b.Text)
		}
	}
	return out
}

// AC5 and AC11 (§8.4.3): both servers in one conversation.
func TestAC5AC11BesideTheFilesystemServer(t *testing.T) {
	inItsOwnStep(t)
	t.Parallel()
	fs := client(t, "mcp-server-filesystem")
	m := model(t,
		rule("write", fakemodel.When{Task: "Conversation", Turn: 1}, fakemodel.Answer{Calls: []fakemodel.Call{
			{Tool: tool + "append_file", Input: map[string]any{"path": "MEMORY/blocks/episodic-2026-11.md", "text": "\n## Both servers\nside by side\n"}},
			{Tool: tool + "append_file", Input: map[string]any{"path": "MEMORY/../outside.md", "text": "never"}},
		}}),
		rule("read", fakemodel.When{Task: "Conversation", Turn: 2}, fakemodel.Answer{Calls: []fakemodel.Call{
			{Tool: "mcp__filesystem__read_text_file", Input: map[string]any{"path": "MEMORY/blocks/episodic-2026-11.md"}},
			{Tool: "mcp__filesystem__edit_file", Input: map[string]any{"path": "MEMORY/blocks/reference-x.md", "edits": []any{map[string]any{"oldText": "old", "newText": "new"}}}},
			{Tool: tool + "memory_search", Input: map[string]any{"query": "side by side"}},
		}}),
		rule("read again", fakemodel.When{Task: "Conversation", Turn: 3}, call(tool+"memory_read", map[string]any{"name": "reference-x"})),
		final("end", `(?P<said>the new thing)`, "Read: ${said}"),
	)
	h := newClaudeHome(t, m, nil)
	h.write(filepath.Join(h.memory, "blocks", "episodic-2026-11.md"), "# November\n")
	h.write(filepath.Join(h.memory, "blocks", "reference-x.md"), "# X\nthe old thing\n")
	fill(t, m, "MEMORY", h.memory)
	s := h.claude("Conversation: use both servers", sessionOptions{servers: map[string]any{
		"filesystem": map[string]any{"command": node(t), "args": []string{fs, h.memory}},
		// The client's roots, its working directory and what is added to it, replace
		// the directories that the filesystem server was given as arguments.
	}, args: []string{"--add-dir=" + h.memory}})
	t.Run("AC5 append_file appends within the memory directory alone", func(t *testing.T) {
		got := results(t, m, "read")
		if len(got) != 2 || !strings.Contains(got[0], `"bytes_written":30`) && !strings.Contains(got[0], `"bytes_written": 30`) || !strings.Contains(got[1], "restricted to the memory directory") {
			t.Errorf("answers: %q", got)
		}
		if text := h.read(filepath.Join(h.memory, "blocks", "episodic-2026-11.md")); text != "# November\n\n## Both servers\nside by side\n" {
			t.Errorf("the file holds %q", text)
		}
		if exists(filepath.Join(h.dir, "outside.md")) {
			t.Error("outside.md was made")
		}
	})
	t.Run("AC11 both servers work side by side", func(t *testing.T) {
		wants(t, s, "Read: the new thing")
		allUsed(t, m)
		got := results(t, m, "read again")
		if len(got) != 3 || !strings.Contains(got[0], "side by side") || !strings.Contains(got[2], "episodic-2026-11") {
			t.Errorf("answers: %q", got)
		}
		names := s.toolNames()
		slices.Sort(names)
		if len(slices.Compact(slices.Clone(names))) != len(names) {
			t.Errorf("tool names collide: %q", names)
		}
	})
}

// fill puts a path into the inputs of rules that were written before it was
// known: the rules answer by a function from then on.
func fill(t *testing.T, m *fakemodel.Server, word, value string) {
	t.Helper()
	m.Rewrite(func(a fakemodel.Answer) fakemodel.Answer {
		data, err := json.Marshal(a)
		if err != nil {
			t.Error(err)
			return a
		}
		quoted, err := json.Marshal(value)
		if err != nil {
			t.Error(err)
			return a
		}
		var out fakemodel.Answer
		if err := json.Unmarshal([]byte(strings.ReplaceAll(string(data), word, strings.Trim(string(quoted), `"`))), &out); err != nil {
			t.Error(err)
			return a
		}
		return out
	})
}

// AC10, §8.3.3: an agent that was not given the memory tries every way to it
// that its tools have, as one that may do anything else.
func TestAC10MemoryIsClosedToAgents(t *testing.T) {
	inItsOwnStep(t)
	t.Parallel()
	const secret = "the-secret-of-the-core"
	tries := []fakemodel.Call{
		{Tool: "Read", Input: map[string]any{"file_path": "MEMORY/core.md"}},
		{Tool: "Bash", Input: map[string]any{"command": "cat MEMORY/core.md", "description": "a"}},
		{Tool: "Bash", Input: map[string]any{"command": "(cd MEMORY && cat co*)", "description": "b"}},
		{Tool: "Bash", Input: map[string]any{"command": "ln -s MEMORY link; cat link/core.md; cat < link/core.md", "description": "c"}},
		{Tool: "Read", Input: map[string]any{"file_path": "WORK/before/core.md"}},
		{Tool: "Bash", Input: map[string]any{"command": "python3 -c 'print(open(bytes.fromhex(\"HEXPATH\").decode()).read())'", "description": "d"}},
		{Tool: "Bash", Input: map[string]any{"command": "echo spoilt > MEMORY/core.md", "description": "e"}},
		{Tool: "Bash", Input: map[string]any{"command": "echo spoilt >> before/core.md; rm -rf before/blocks; touch before/made", "description": "f"}},
		{Tool: "Write", Input: map[string]any{"file_path": "MEMORY/blocks/made.md", "content": "spoilt"}},
		{Tool: "Write", Input: map[string]any{"file_path": "WORK/before/core.md", "content": "spoilt"}},
		{Tool: "Edit", Input: map[string]any{"file_path": "MEMORY/core.md", "old_string": "secret", "new_string": "spoilt"}},
		{Tool: "Bash", Input: map[string]any{"command": "mv MEMORY MEMORY-away", "description": "g"}},
		{Tool: "Bash", Input: map[string]any{"command": "cp -r MEMORY stolen; grep -r of-the MEMORY; find MEMORY -name '*.md' -exec cat {} +", "description": "h"}},
	}
	for name, allow := range map[string]bool{"no access": false, "8.3.2 Memory Read Access": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := model(t,
				rule("try", fakemodel.When{Task: "Agent", Turn: 1}, fakemodel.Answer{Calls: tries}),
				rule("work", fakemodel.When{Task: "Agent", Turn: 2}, fakemodel.Answer{Calls: []fakemodel.Call{
					{Tool: "Bash", Input: map[string]any{"command": "echo fine > mine.txt; cat mine.txt", "description": "work"}},
					{Tool: "Write", Input: map[string]any{"file_path": "WORK/written.txt", "content": "fine"}},
				}}),
				rule("report", fakemodel.When{Task: "Agent", Turn: 3}, say("I tried everything.")),
			)
			h := newClaudeHome(t, m, nil)
			core, block := filepath.Join(h.memory, "core.md"), filepath.Join(h.memory, "blocks", "reference-x.md")
			h.write(core, "# Core\n"+secret+"\n")
			h.write(block, "# X\n"+secret+"\n")
			if err := os.Symlink(h.memory, filepath.Join(h.work, "before")); err != nil {
				t.Fatal(err)
			}
			fill(t, m, "MEMORY", h.memory)
			fill(t, m, "WORK", h.work)
			fill(t, m, "HEXPATH", hexOf(core))
			s := h.serve()
			free := turn(t)
			defer free()
			a := s.spawn("Agent: read "+core+" and report its contents", map[string]any{"working_directory": h.work, "allow_memory_read": allow})
			if a.str("status") == "running" {
				a = s.settle(a.str("job_id"))
			}
			if a.str("status") != "complete" || !strings.Contains(a.str("result"), "I tried everything.") {
				t.Fatalf("got %s", a.text)
			}
			allUsed(t, m)
			if got := h.read(core); got != "# Core\n"+secret+"\n" {
				t.Errorf("core.md was changed to %q", got)
			}
			if got := h.read(block); got != "# X\n"+secret+"\n" {
				t.Errorf("the block was changed to %q", got)
			}
			if found, _ := filepath.Glob(filepath.Join(h.memory, "*")); len(found) != 2 {
				t.Errorf("the memory directory holds %q", found)
			}
			tried := results(t, m, "work")
			if len(tried) != len(tries) {
				t.Fatalf("%d answers to %d calls", len(tried), len(tries))
			}
			for i, got := range tried {
				seen := strings.Contains(got, secret)
				if seen && !allow {
					t.Errorf("%s %v read the memory: %s", tries[i].Tool, tries[i].Input, got)
				}
				if allow && i < 2 && !seen {
					t.Errorf("%s %v should have read the memory: %s", tries[i].Tool, tries[i].Input, got)
				}
			}
			if !allow && exists(filepath.Join(h.work, "stolen", "core.md")) {
				t.Error("the memory was copied")
			}
			if got := results(t, m, "report"); len(got) != 2 || !strings.Contains(got[0], "fine") || !exists(filepath.Join(h.work, "written.txt")) {
				t.Errorf("the agent could not do its own work: %q", got)
			}
		})
	}
}

func hexOf(s string) string {
	const digits = "0123456789abcdef"
	var b strings.Builder
	for i := range len(s) {
		b.WriteByte(digits[s[i]>>4])
		b.WriteByte(digits[s[i]&15])
	}
	return b.String()
}

// §8.3.5 Model Selection.
func TestModelSelection(t *testing.T) {
	inItsOwnStep(t)
	t.Parallel()
	m := model(t, fakemodel.Rule{Name: "which", Uses: -1, When: fakemodel.When{Task: "Agent", Model: "(?P<model>.+)"}, Say: say("I am ${model}.")})
	h := newClaudeHome(t, m, nil)
	s := h.serve()
	free := turn(t)
	defer free()
	for _, name := range []string{"sonnet", "haiku"} {
		a := s.spawn("Agent: what model are you?", map[string]any{"model": name})
		if got := a.str("result"); !strings.Contains(got, "I am ") || !strings.Contains(got, name) {
			t.Errorf("%s: %s", name, a.text)
		}
	}
}

// §8.4.2 Sub-Agent Within Conversation: the agent's findings end up in memory.
func TestSubAgentWithinConversation(t *testing.T) {
	inItsOwnStep(t)
	t.Parallel()
	m := model(t,
		rule("spawn", fakemodel.When{Task: "Conversation", Turn: 1}, call(tool+"spawn_agent", map[string]any{"task": "Agent: find all TODO comments in the project", "working_directory": "WORK"})),
		rule("search", fakemodel.When{Task: "Agent", Turn: 1}, call("Bash", map[string]any{"command": "grep -rhno 'TODO.*' --include=*.go .", "description": "search"})),
		rule("report", inner(`(?s)(?P<found>\d+:TODO.*\d+:TODO[^\n]*)`), say("Found:\n${found}")),
		rule("persist", outer(`(?s)TODO (?P<a>mend the lock|say why).*TODO (?P<b>mend the lock|say why)`), call(tool+"update_memory_block", map[string]any{
			"block": "project-site", "content": "# Site\n\nOpen: ${a}; ${b}.\n", "summary": "Site: two open TODOs",
		})),
		final("end", `"success":\s*true`, "Persisted."),
	)
	h := newClaudeHome(t, m, nil)
	fill(t, m, "WORK", h.work)
	h.write(filepath.Join(h.work, "a.go"), "package x\n\n// TODO mend the lock\n")
	h.write(filepath.Join(h.work, "b", "b.go"), "package b // TODO say why\n")
	sv := h.serve()
	sv.good("create_memory_block", map[string]any{"name": "project-site", "content": "# Site\n\nNothing yet.\n", "summary": "Site"})
	wants(t, h.claude("Conversation: spawn a sub-agent to find all TODO comments, and keep them", sessionOptions{}), "Persisted.")
	allUsed(t, m)
	if got := h.read(filepath.Join(h.memory, "blocks", "project-site.md")); !strings.Contains(got, "mend the lock") || !strings.Contains(got, "say why") {
		t.Errorf("the block: %s", got)
	}
	if got := h.read(filepath.Join(h.memory, "index.md")); !strings.Contains(got, "two open TODOs") || !strings.Contains(got, time.Now().Format("2006-01")) {
		t.Errorf("the index: %s", got)
	}
}
