//go:build unix

package e2e

import (
	"archive/zip"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"reprise/internal/fakemodel"
)

// installSkill packs the skill and puts it where the client looks for a user's
// skills.
func (h *home) installSkill() string {
	h.t.Helper()
	path := filepath.Join(filepath.Dir(h.dir), "memory-skill.zip")
	h.must("memory", "pack-skill", "--output", path)
	z, err := zip.OpenReader(path)
	if err != nil {
		h.t.Fatal(err)
	}
	defer z.Close()
	var text string
	for _, f := range z.File {
		r, err := f.Open()
		if err != nil {
			h.t.Fatal(err)
		}
		data, err := io.ReadAll(r)
		if err != nil {
			h.t.Fatal(err)
		}
		r.Close()
		if filepath.Base(f.Name) == "SKILL.md" {
			text = string(data)
		}
	}
	name := regexp.MustCompile(`(?m)^name: (\S+)$`).FindStringSubmatch(text)
	if name == nil {
		h.t.Fatalf("the skill has no name:\n%s", text)
	}
	h.write(filepath.Join(h.dir, ".claude", "skills", name[1], "SKILL.md"), text)
	return name[1]
}

// TestSkill is §8.2 and AC6 to AC9 and AC12, as far as a scripted model goes: it
// shows that the skill loads in the real client and is on offer to the model,
// that what it says to call is there and can be called, and that the files then
// hold what they should, over two conversations. That a model follows the
// skill's words needs a model.
func TestSkill(t *testing.T) {
	inItsOwnStep(t)
	t.Parallel()
	const one, two = "Conversation one", "Conversation two"
	at := func(conversation string, turn int) fakemodel.When {
		return fakemodel.When{Task: conversation, Turn: turn}
	}
	read := func(names ...string) fakemodel.Answer {
		var a fakemodel.Answer
		for _, n := range names {
			a.Calls = append(a.Calls, fakemodel.Call{Tool: tool + "memory_read", Input: map[string]any{"name": n}})
		}
		return a
	}
	m := model(t,
		rule("one: skill", at(one, 1), call("Skill", map[string]any{"skill": "SKILL"})),
		rule("one: read", at(one, 2), read("core", "index")),
		rule("one: write", at(one, 3), fakemodel.Answer{Calls: []fakemodel.Call{
			{Tool: tool + "update_memory_block", Input: map[string]any{"block": "core", "content": "# Core\n\nAnn. Begins dashboard-v2.\n"}},
			{Tool: tool + "create_memory_block", Input: map[string]any{
				"name": "project-dashboard-v2", "content": "# dashboard-v2\n\nStatus: planned. React.\n", "summary": "Analytics dashboard, rebuilt",
			}},
		}}),
		rule("one: log", at(one, 4), call(tool+"append_episodic_log", map[string]any{"title": "dashboard-v2 begins", "entry": "Goals and stack were settled."})),
		rule("one: end", at(one, 5), say("Noted.")),

		rule("two: skill", at(two, 1), call("Skill", map[string]any{"skill": "SKILL"})),
		rule("two: read", at(two, 2), read("core", "index")),
		rule("two: block", fakemodel.When{Task: two, Result: `(?s)Begins dashboard-v2.*project-dashboard-v2|project-dashboard-v2.*Begins dashboard-v2`}, read("project-dashboard-v2")),
		rule("two: update", fakemodel.When{Task: two, Result: `"hash":\s*"(?P<hash>sha256:[0-9a-f]{64})"`}, call(tool+"update_memory_block", map[string]any{
			"block": "project-dashboard-v2", "old_text": "Status: planned.", "new_text": "Status: feature-complete.", "if_hash": "${hash}",
		})),
		rule("two: end", fakemodel.When{Task: two, Result: `"success":\s*true`}, say("You are Ann, and dashboard-v2 is feature-complete now.")),
	)
	h := newClaudeHome(t, m, nil)
	fill(t, m, "SKILL", h.installSkill())
	core, index := filepath.Join(h.memory, "core.md"), filepath.Join(h.memory, "index.md")
	block := filepath.Join(h.memory, "blocks", "project-dashboard-v2.md")
	if exists(core) {
		t.Fatal("packing the skill made core.md")
	}

	wants(t, h.claude(one+": I'm starting a new project called dashboard-v2", sessionOptions{}), "Noted.")
	t.Run("8.2.2 Cold start", func(t *testing.T) {
		if got := h.read(core); got != "# Core\n\nAnn. Begins dashboard-v2.\n" {
			t.Errorf("core.md holds %q", got)
		}
		if first := results(t, m, "one: write"); len(first) != 2 || !strings.Contains(first[0], `"content"`) || !strings.Contains(first[1], "| Block | Summary | Updated |") {
			t.Errorf("the first reads of a memory that is not there yet: %q", first)
		}
	})
	t.Run("8.2.5 Block Creation", func(t *testing.T) {
		if got := h.read(block); !strings.Contains(got, "Status: planned. React.") || !strings.HasPrefix(got, "---\n") {
			t.Errorf("the block holds %q", got)
		}
		if got := h.read(index); !strings.Contains(got, "project-dashboard-v2") || !strings.Contains(got, "Analytics dashboard, rebuilt") {
			t.Errorf("index.md holds %q", got)
		}
	})
	t.Run("AC8 8.2.4 Episodic Log Entry", func(t *testing.T) {
		now := time.Now()
		var text string
		for _, day := range []time.Time{now, now.AddDate(0, 0, -1)} { // midnight may have passed
			data, err := os.ReadFile(filepath.Join(h.memory, "blocks", "episodic-"+day.Format("2006-01")+".md"))
			if err == nil && strings.Contains(string(data), day.Format("2006-01-02")) {
				text = string(data)
			}
		}
		if !strings.Contains(text, "dashboard-v2 begins") || !strings.Contains(text, "Goals and stack were settled.") {
			t.Errorf("the month's log holds %q", text)
		}
	})

	s := h.claude(two+": what do you know about me? dashboard-v2 is feature-complete.", sessionOptions{})
	t.Run("AC6 8.2.1 Session Start Compliance", func(t *testing.T) {
		first := m.Matching(func(q *fakemodel.Request) bool { return q.Rule == "two: skill" })[0]
		if !strings.Contains(string(first.Body), "reprise-memory") {
			t.Error("the skill is not on offer to the model")
		}
		loaded := m.Matching(func(q *fakemodel.Request) bool { return q.Rule == "two: read" })[0]
		if !strings.Contains(string(loaded.Body), "When a session starts") {
			t.Error("the skill's text did not reach the model")
		}
		if got := results(t, m, "two: block"); len(got) != 2 || !strings.Contains(got[0], "Ann. Begins") || !strings.Contains(got[1], "project-dashboard-v2") {
			t.Errorf("core and index as read: %q", got)
		}
	})
	t.Run("AC7 8.2.3 Memory Write — Project Update", func(t *testing.T) {
		if got := h.read(block); !strings.Contains(got, "Status: feature-complete. React.") {
			t.Errorf("the block holds %q", got)
		}
	})
	t.Run("AC9 8.4.1 Memory persists across conversations", func(t *testing.T) {
		wants(t, s, "You are Ann, and dashboard-v2 is feature-complete now.")
		allUsed(t, m)
	})
	t.Run("AC12 8.2.6 8.2.7 Correct Tool Usage and compliance", func(t *testing.T) {
		if r := h.reprise("compliance"); r.code != 0 {
			t.Errorf("compliance: exit %d\n%s%s", r.code, r.out, r.err)
		}
		// Every file of the memory was written by one of our tools: each has an
		// event that names it.
		events, _ := filepath.Glob(filepath.Join(h.dir, ".local", "share", "reprise", "events", "*.jsonl"))
		var log strings.Builder
		for _, e := range events {
			log.WriteString(h.read(e))
		}
		for _, name := range []string{"core.md", "project-dashboard-v2.md", "episodic-"} {
			if !strings.Contains(log.String(), name) {
				t.Errorf("no event of a write to %s in:\n%s", name, log.String())
			}
		}
		for _, q := range m.Requests() {
			for _, b := range slices.Concat(blocksOf(q)...) {
				if b.Type == "tool_use" && b.Tool != "Skill" && !strings.HasPrefix(b.Tool, tool) {
					t.Errorf("memory was handled by %s", b.Tool)
				}
			}
		}
	})
}

func blocksOf(q *fakemodel.Request) [][]fakemodel.Block {
	var out [][]fakemodel.Block
	for _, m := range q.Messages {
		out = append(out, m.Blocks)
	}
	return out
}
