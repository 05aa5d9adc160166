//go:build unix

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"reprise/internal/fakemodel"
)

// as runs the client as an agent of that name.
func (h *home) as(agent, prompt string, o sessionOptions) session {
	h.t.Helper()
	env := h.env
	defer func() { h.env = env }()
	h.env = append(slices.Clone(env), "REPRISE_AGENT="+agent)
	return h.claude(prompt, o)
}

// gitIn runs git in a directory as the user does.
func (h *home) gitIn(dir string, args ...string) string {
	h.t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir, cmd.Env = dir, append(slices.Clone(h.env), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_AUTHOR_NAME=u", "GIT_AUTHOR_EMAIL=u@example.org", "GIT_COMMITTER_NAME=u", "GIT_COMMITTER_EMAIL=u@example.org")
	out, err := cmd.CombinedOutput()
	if err != nil {
		h.t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// The real client works with the state of a project: what one session logs, learns,
// decides and hands over is in its files and commits, and a session of another
// agent, in a worktree of its own, is told of it at its start, takes the handoff and
// finds the learning once a person promoted it.
func TestStateTools(t *testing.T) {
	inItsOwnStep(t)
	t.Parallel()
	one := func(turn int) fakemodel.When { return fakemodel.When{Task: "Conversation one", Turn: turn} }
	two := func(turn int, result string) fakemodel.When {
		return fakemodel.When{Task: "Conversation two", Turn: turn, Result: result}
	}
	m := model(t,
		rule("context", one(1), call(tool+"state_context", map[string]any{})),
		rule("log", one(2), call(tool+"state_log", map[string]any{"message": "Validate the expiry of tokens.", "type": "implement", "status": "completed"})),
		rule("work as a learning", one(3), call(tool+"state_learn", map[string]any{"insight": "Added function ValidateToken"})),
		rule("learn", fakemodel.When{Task: "Conversation one", Turn: 4, Result: "call state_log with it"}, call(tool+"state_learn", map[string]any{"insight": "Tokens need both checks, expiry and signature.", "context": "the bug in the login"})),
		rule("decide", one(5), call(tool+"state_decide", map[string]any{"decision": "Use RS256", "over": []any{"HS256", "sessions"}, "because": "the public key is enough to check it"})),
		rule("hand over", one(6), call(tool+"state_handoff", map[string]any{"text": "Write the API tests; the fixtures are done."})),
		rule("end", one(7), say("All is noted.")),

		rule("second context", two(1, ""), call(tool+"state_context", map[string]any{})),
		rule("take", two(2, `"handoffs_waiting":\[\{"id":"(?P<id>e-[0-9a-f]+)"`), call(tool+"state_handoff", map[string]any{"accept": "${id}"})),
		rule("take again", two(3, "the fixtures are done"), call(tool+"state_search", map[string]any{"query": "token signature", "type": "learning"})),
		rule("scratch", two(4, "Tokens need both checks"), call(tool+"state_scratch", map[string]any{"text": "Look at the fixtures first."})),
		rule("focus", two(5, ""), call(tool+"state_focus", map[string]any{"text": "The API tests."})),
		rule("note", two(6, ""), call(tool+"state_note", map[string]any{"name": "flaky", "text": "The login test fails now and then."})),
		rule("artifact", two(7, ""), call(tool+"state_artifact", map[string]any{"name": "coverage.md", "text": "# Coverage\n\n80 of 100"})),
		rule("checkpoint", two(8, ""), call(tool+"state_checkpoint", map[string]any{"name": "before-the-rewrite", "message": "All tests pass."})),
		rule("all of it", two(9, ""), call(tool+"state_context", map[string]any{})),
		rule("second end", two(10, "The API tests"), say("Found: both checks.")),
	)
	h := newClaudeHome(t, m, nil)
	h.gitIn(h.work, "init", "-q", "-b", "ann/auth")
	h.must("init", "--yes", "--name", "shop")
	h.gitIn(h.work, "add", "-A")
	h.gitIn(h.work, "commit", "-qm", "begin")
	h.must("setup", "--yes", "claude-code")

	s := h.as("ann", "Conversation one: note what was done.", sessionOptions{})
	wants(t, s, "All is noted.")
	var ours []string
	for _, n := range s.toolNames() {
		if name, ok := strings.CutPrefix(n, tool); ok {
			ours = append(ours, name)
		}
	}
	if len(ours) > 12 || !slices.Contains(ours, "state_decide") || slices.Contains(ours, "create_memory_block") {
		t.Errorf("tools by default: %q", ours)
	}

	// Its own repository, with what was said as files and a commit for each.
	desk := filepath.Join(h.work, ".reprise", "agent")
	for file, words := range map[string][]string{
		"changelog.md": {"type: implement", "status: completed", "Validate the expiry of tokens.", "type: handoff", "Write the API tests"},
		"learnings.md": {"Tokens need both checks, expiry and signature.", "Context: the bug in the login", "branch:ann/auth", "session:"},
		"decisions.md": {"decision: Use RS256", `alternatives: ["HS256","sessions"]`, "the public key is enough"},
	} {
		text := h.read(filepath.Join(desk, file))
		for _, w := range words {
			if !strings.Contains(text, w) {
				t.Errorf("%s has no %q:\n%s", file, w, text)
			}
		}
		if strings.Contains(text, "ValidateToken") {
			t.Errorf("%s has what was refused", file)
		}
	}
	log := h.gitIn(desk, "log", "--format=%an: %s")
	for _, want := range []string{"ann: implement: Validate the expiry of tokens.", "ann: learning: e-", "ann: decision: e-", "ann: handoff: Write the API tests"} {
		if !strings.Contains(log, want) {
			t.Errorf("no commit %q in\n%s", want, log)
		}
	}
	if strings.Contains(log, "Tokens need both checks") { // which a purge could not take out of it
		t.Errorf("the words of a learning are in\n%s", log)
	}
	if branch := strings.TrimSpace(h.gitIn(desk, "rev-parse", "--abbrev-ref", "HEAD")); branch != "agent-ann" {
		t.Errorf("the state is on branch %q", branch)
	}
	if status := h.gitIn(h.work, "status", "--porcelain"); status != "" {
		t.Errorf("the code's git sees\n%s", status)
	}
	if got := h.must("context", "suggestions"); !strings.Contains(got, "Tokens need both checks") || !strings.Contains(got, "context promote e-") {
		t.Errorf("suggestions:\n%s", got)
	}

	// A person promotes; another agent works elsewhere.
	h.must("context", "promote", "--all")
	h.gitIn(h.work, "worktree", "add", "-q", "-b", "ben/tests", filepath.Join(filepath.Dir(h.work), "ben"))
	h.work = filepath.Join(filepath.Dir(h.work), "ben")
	before := len(m.Requests())
	s = h.as("ben", "Conversation two: go on with what waits.", sessionOptions{
		servers: map[string]any{"reprise": map[string]any{"command": program("reprise"), "args": []string{"mcp", "--toolsets", "default,state"}}},
	})
	wants(t, s, "Found: both checks.")
	allUsed(t, m)
	// Every tool that there is for state was called, in one session or the other.
	for _, n := range s.toolNames() {
		name, ok := strings.CutPrefix(n, tool+"state_")
		if ok && !slices.Contains([]string{"context", "log", "learn", "decide", "handoff", "search", "scratch", "focus", "note", "artifact", "checkpoint"}, name) {
			t.Errorf("state_%s is offered and not called here", name)
		}
	}
	theirs := filepath.Join(h.work, ".reprise", "agent")
	for file, want := range map[string]string{
		"scratch.md": "Look at the fixtures first.", "context.md": "The API tests.", "notes/flaky.md": "The login test fails now and then.",
		"artifacts/coverage.md": "80 of 100", "checkpoints/before-the-rewrite.md": "All tests pass.",
	} {
		if text := h.read(filepath.Join(theirs, filepath.FromSlash(file))); !strings.Contains(text, want) {
			t.Errorf("%s has no %q:\n%s", file, want, text)
		}
	}
	if got := h.gitIn(theirs, "status", "--porcelain") + h.gitIn(theirs, "log", "-1", "--format=%an"); got != "ben\n" {
		t.Errorf("not all is committed as ben's: %s", got)
	}
	if text := h.read(filepath.Join(theirs, "checkpoints", "before-the-rewrite.md")); !strings.Contains(text, "Look at the fixtures first.") {
		t.Errorf("the checkpoint has not what was noted:\n%s", text)
	}
	told := ""
	for _, q := range m.Requests()[before:] {
		told += q.Text()
	}
	if !strings.Contains(told, "handoff from ann waits") {
		t.Error("the second session's start did not tell of the handoff")
	}
	if got := h.must("handoff"); got != "" {
		t.Errorf("the handoff still waits: %s", got)
	}
	if text := h.read(filepath.Join(h.work, ".reprise", "agent", "changelog.md")); !strings.Contains(text, "Accepted: Write the API tests") {
		t.Errorf("ben's log:\n%s", text)
	}
}

// What an agent of each client logs, by the tool and by the command, says in which of
// the client's sessions that was.
func TestStateSaysTheSession(t *testing.T) {
	inItsOwnStep(t)
	t.Parallel()
	tools := map[string]string{"codex": "mcp__reprise__state_log", "gemini": "mcp_reprise_state_log", "copilot": "reprise-state_log"}
	for name, tool := range tools {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ours := "reprise"
			if name == "codex" { // its shell is a login shell, with the system's PATH
				ours = program(ours)
			}
			h := newHome(t, nil)
			h.gitIn(h.work, "init", "-q")
			h.must("init", "--yes", "--name", "shop")
			h.must("setup", "--yes", name)
			r := h.agent(name, "Note it.", nil,
				rule("tool", fakemodel.When{Turn: 1}, call(tool, map[string]any{"message": "By the tool."})),
				rule("command", fakemodel.When{Turn: 2}, shell(ours+" log add 'By the command.'")),
				rule("end", fakemodel.When{Turn: 3}, say("Noted.")))
			text := h.read(filepath.Join(h.work, ".reprise", "agent", "changelog.md"))
			if r.id == "" || strings.Count(text, "session:"+r.id) != 2 || !strings.Contains(text, "By the tool.") || !strings.Contains(text, "By the command.") {
				t.Errorf("session %s:\n%s\n%s", r.id, text, r.out)
			}
		})
	}
}
