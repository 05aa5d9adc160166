package mcpserver

import (
	"fmt"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"reprise/internal/memory"
)

// Toolsets. A toolset is what --toolsets takes.
const (
	ToolsetRuns   = "runs"
	ToolsetMemory = "memory"
	ToolsetState  = "state"
	ToolsetTasks  = "tasks"
	ToolsetLoop   = "loop" // only in a session that the loop started
)

// Toolsets are the names that --toolsets takes, beside default and all.
func Toolsets() []string {
	return []string{ToolsetRuns, ToolsetMemory, ToolsetState, ToolsetLoop, ToolsetTasks}
}

// tool is one line of the inventory: what clients see, which toolset it
// belongs to, and what it does.
type tool struct {
	name    string
	title   string
	about   string // under 600 characters, with the reason to call it first
	toolset string
	more    bool // only with --toolsets, not by default
	outside bool // inside a project only with --toolsets: the state tools are in its place

	reads       bool // changes nothing that outlives the server
	destructive bool // may undo or replace something
	repeatable  bool // calling it twice is the same as once
	open        bool // reaches beyond reprise's own files

	params []param
	do     func(*Server, *call) (any, error)
}

// inventory is every tool there is. The order is the order of the list.
func inventory() []tool {
	return slices.Concat(mainTools(), stateTools(), loopTools(), taskTools())
}

func mainTools() []tool {
	return []tool{
		{
			name: "spawn_agent", title: "Spawn an agent", toolset: ToolsetRuns, open: true, destructive: true,
			about: "Delegate a focused task to a background agent (Claude Code, or another client by agent) that works on this machine in the directory you name. " +
				"Answers within 25 seconds: status complete with the result, failed or timed_out with the reason, or running with a job_id for check_agent. " +
				"Start several to work in parallel. The agent sees only the task text, cannot write memory, and is stopped when this server ends.",
			params: spawnParams(), do: (*Server).spawnAgent,
		},
		{
			name: "check_agent", title: "Check an agent", toolset: ToolsetRuns, reads: true,
			about: "Get the status or the result of an agent that spawn_agent left running. Set wait_seconds (up to 50) to wait for its end instead of polling. " +
				"Statuses: running, complete, failed, timed_out, interrupted, cancelled. A result is handed out once; its record stays on disk.",
			params: checkParams(), do: (*Server).checkAgent,
		},
		{
			name: "cancel_agent", title: "Cancel an agent", toolset: ToolsetRuns, destructive: true, repeatable: true,
			about:  "Stop an agent that spawn_agent started, and every process it started. Returns what it had said so far.",
			params: cancelParams(), do: (*Server).cancelAgent,
		},
		{
			name: "list_agents", title: "List agents", toolset: ToolsetRuns, reads: true, repeatable: true,
			about:  "Find a lost job_id or see what is running: the agent runs of this project, newest first, with status, task and record path.",
			params: listParams(), do: (*Server).listAgents,
		},
		{
			name: "memory_search", title: "Search memory", toolset: ToolsetMemory, reads: true, repeatable: true,
			about:  "Look up what earlier sessions learned: notes, decisions, what failed and how it was fixed. Use it before asking the user something they may have told you already, and when something fails. Returns what matches best with heading, snippet, date and id, and for a file its name and line; read more of a file with memory_read.",
			params: searchParams(), do: (*Server).memorySearch,
		},
		{
			name: "memory_read", title: "Read memory", toolset: ToolsetMemory, reads: true, repeatable: true,
			about:  "Read a memory file: core and index at the start of a session, then the blocks that the index names for the topic. Long files come in pages (offset). Returns the hash that update_memory_block takes.",
			params: readParams(), do: (*Server).memoryRead,
		},
		{
			name: "append_file", title: "Append to a file", toolset: ToolsetMemory,
			about:  "Append text to a file in the memory directory, atomically, creating it if need be. For session notes prefer append_episodic_log, which keeps the form and the index. Other directories are refused.",
			params: appendParams(), do: (*Server).appendFile,
		},
		{
			name: "create_memory_block", title: "Create a memory block", toolset: ToolsetMemory, outside: true, repeatable: true,
			about:  "Start a new memory block when a project or topic begins that deserves its own file. Checks the name, writes front matter and adds the index row. For one-off matters use append_episodic_log.",
			params: createParams(), do: (*Server).createBlock,
		},
		{
			name: "update_memory_block", title: "Update a memory block", toolset: ToolsetMemory, outside: true, destructive: true, repeatable: true,
			about:  "Keep a memory block true when something it says has changed: replace its whole content, or one passage (old_text, new_text). Keeps front matter, updates date and index row. Pass if_hash from memory_read so that nobody's change is lost.",
			params: updateParams(), do: (*Server).updateBlock,
		},
		{
			name: "append_episodic_log", title: "Append to the episodic log", toolset: ToolsetMemory, outside: true,
			about:  "Note what happened in this session: every 30 to 60 minutes of work and before it ends. Adds a dated entry to this month's episodic block and creates that if need be.",
			params: episodeParams(), do: (*Server).appendEpisode,
		},
	}
}

// definition is the tool as clients see it. It has no output schema: results
// hold null where there is nothing yet, which the plain form of a schema
// cannot say, and clients check results against it to the letter.
func (t tool) definition() *mcp.Tool {
	yes := func(b bool) *bool { return &b }
	return &mcp.Tool{
		Name: t.name, Title: t.title, Description: t.about, InputSchema: schema(t.params),
		Annotations: &mcp.ToolAnnotations{
			ReadOnlyHint: t.reads, IdempotentHint: t.repeatable,
			DestructiveHint: yes(t.destructive), OpenWorldHint: yes(t.open),
		},
	}
}

// allowed reports whether the tool keeps to what the program may do with the memory
// and the state.
func (t tool) allowed(d Deps) bool {
	access := memory.FullAccess
	switch t.toolset {
	case ToolsetMemory:
		access = d.MemoryAccess
	case ToolsetState:
		access = d.StateAccess
	case ToolsetTasks:
		access = d.TaskAccess
	case ToolsetLoop:
		if d.Loop == nil {
			access = memory.NoAccess
		}
	}
	return access == memory.FullAccess || access == memory.ReadAccess && t.reads
}

// usual reports whether the tool is offered where nobody asked for others.
func (t tool) usual(d Deps) bool {
	if t.toolset == ToolsetState && !d.InProject || t.outside && d.InProject {
		return false
	}
	return !t.more
}

// ParseToolsets splits the value of --toolsets.
func ParseToolsets(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return r == ',' || r == ' ' })
}

// choose picks the tools that are asked for and allowed, in the inventory's
// order.
func choose(d Deps) ([]tool, error) {
	names := d.Toolsets
	if len(names) == 0 {
		names = []string{"default"}
	}
	all := inventory()
	want := map[string]bool{}
	for _, name := range names {
		switch {
		case name == "all":
			for _, t := range all {
				want[t.name] = true
			}
		case name == "default":
			for _, t := range all {
				want[t.name] = want[t.name] || t.usual(d)
			}
		case slices.Contains(Toolsets(), name):
			for _, t := range all {
				want[t.name] = want[t.name] || t.toolset == name
			}
		default:
			return nil, fmt.Errorf("unknown toolset %q: use default, all or some of %s, with commas between them", shorten(name, 40), strings.Join(Toolsets(), ", "))
		}
	}
	var out []tool
	for _, t := range all {
		if want[t.name] && (t.reads || !d.ReadOnly) && t.allowed(d) {
			out = append(out, t)
		}
	}
	return out, nil
}
