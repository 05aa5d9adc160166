package config

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/goccy/go-yaml/ast"
)

// StateHooks say what hooks do with the state of an agent, each "on" or "off".
// What a project says of one counts in place of the user's once its file is
// approved.
type StateHooks struct {
	SessionStart string // tell at a session's start where the work stands
	PreCompact   string // after a compaction, ask for what was learnt
	PostCommit   string // after a commit of the code, offer an entry of the log
	OnError      string // ask whether a failure that was fixed is worth a learning
	SessionEnd   string // propose what an ended session left to promote or to hand on
	BranchSwitch string // tell what is known of the code's branch when it changes
	// Edits is how many edits without an entry of the log the agent is reminded
	// after; 0 = never.
	Edits int
}

func defaultStateHooks() StateHooks {
	return StateHooks{SessionStart: "on", PreCompact: "on", PostCommit: "off", OnError: "on", SessionEnd: "on", BranchSwitch: "on", Edits: 15}
}

const (
	hookEdits = "edits"
	mostEdits = 10_000
)

// stateSwitch is one of those that are on or off, with its name in both files.
type stateSwitch struct {
	name, doc string
	of        func(*StateHooks) *string
}

func stateSwitches() []stateSwitch {
	return []stateSwitch{
		{"session_start", "tell a session at its start where the agent's work stands", func(s *StateHooks) *string { return &s.SessionStart }},
		{"pre_compact", "ask for what was learnt once a client has compacted its context", func(s *StateHooks) *string { return &s.PreCompact }},
		{"post_commit", "offer an entry of the log after a commit of the code", func(s *StateHooks) *string { return &s.PostCommit }},
		{"on_error", "ask whether a failure that was fixed is worth a learning", func(s *StateHooks) *string { return &s.OnError }},
		{"session_end", "propose what an ended session left to promote or to hand on", func(s *StateHooks) *string { return &s.SessionEnd }},
		{"branch_switch", "tell what is known of the code's branch when it changes", func(s *StateHooks) *string { return &s.BranchSwitch }},
	}
}

// stateHookKeys are the user's settings of them.
func stateHookKeys() []key {
	var list []key
	for _, w := range stateSwitches() {
		list = append(list, onOff("hooks."+w.name, w.doc, func(s *Settings) *string { return w.of(&s.Hooks.State) }))
	}
	return append(list, intKey("hooks."+hookEdits, "edits without an entry of the log after which an agent is reminded of one; 0 never",
		func(s *Settings) *int { return &s.Hooks.State.Edits }, 0, mostEdits))
}

// projectStateHook reads one of them in a project's file, where true and false
// will do for on and off; ok is false where the name is another one.
func (d *document) projectStateHook(e entry, into map[string]string) (ok bool) {
	name := e.key[len("hooks."):]
	if name == hookEdits {
		if n, ok := d.integer(e.key, e.value, 0, mostEdits); ok {
			into[name] = strconv.Itoa(n)
		}
		return true
	}
	if !slices.ContainsFunc(stateSwitches(), func(w stateSwitch) bool { return w.name == name }) {
		return false
	}
	if b, yes := e.value.(*ast.BoolNode); yes {
		into[name] = "off"
		if b.Value {
			into[name] = "on"
		}
		return true
	}
	switch how, read := d.str(e.key, e.value); {
	case !read:
	case how == "on" || how == "off":
		into[name] = how
	default:
		d.add(e.value, e.key, fmt.Sprintf("%q is neither", shown(how)), "write on or off")
	}
	return true
}

// with are the hooks as a project has them.
func (s StateHooks) with(project map[string]string) StateHooks {
	for _, w := range stateSwitches() {
		if v := project[w.name]; v != "" {
			*w.of(&s) = v
		}
	}
	if n, err := strconv.Atoi(project[hookEdits]); err == nil {
		s.Edits = n
	}
	return s
}

// StateHooks are those in force: the user's, and in their place what the project
// says once its file is approved.
func (h *Home) StateHooks() StateHooks {
	s := h.Settings.Hooks.State
	if h.Project == nil || len(h.Project.StateHooks) == 0 {
		return s
	}
	t, err := h.Paths.Trust(h.Project)
	if err != nil || !t.Approved {
		return s // what cannot be read is not approved
	}
	return s.with(t.Says.StateHooks)
}
