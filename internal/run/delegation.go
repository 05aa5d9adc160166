package run

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"reprise/internal/proc"
)

// roleVar says how much an agent should delegate; package hook reads it.
const roleVar = "AGENT_ROLE"

// MaxDepth is how many runs may stand below one another: what a person starts,
// what that starts, and what that starts. Whoever needs more has stopped
// dividing work and begun to pass it on.
const MaxDepth = 3

// pathVar hands the chain of runs down beside their records, so that it is known
// to where these are not: in another runs directory, or after they were removed.
const pathVar = "REPRISE_RUN_PATH"

// delegation is the chain of runs that this process is part of: the run in
// whose environment it was started, and the runs that led to that one.
func (m *Manager) delegation(env []string) []string {
	id := proc.EnvValue(env, proc.RunIDVar)
	if !ValidID(id) {
		return []string{}
	}
	path := []string{}
	if parent, err := m.Get(id); err == nil {
		path = append(path, parent.DelegationPath...)
	}
	told := strings.Split(proc.EnvValue(env, pathVar), ",")
	told = slices.DeleteFunc(told, func(id string) bool { return !ValidID(id) })
	if len(told) > len(path) {
		path = told
	}
	return append(path, id)
}

// mayDelegate refuses a run that is too deep, or that is given a task which one
// of those that led to it has: two agents that pass a task to each other would
// go on for ever, each sure that the other does it. A bare question is let
// through, for what answers it can start nothing.
func (m *Manager) mayDelegate(req Request, path []string) error {
	if req.Question != nil {
		return nil
	}
	if len(path) >= MaxDepth {
		return fmt.Errorf("start run: %w: this would be level %d of runs that start runs (%s), and %d is the most; do the task here, or return and let whoever started this run divide it otherwise",
			ErrRefused, len(path)+1, strings.Join(path, " → "), MaxDepth)
	}
	task := words(req.Task)
	for _, id := range path {
		r, err := m.Get(id)
		if err != nil {
			continue // gone, or somebody else's: depth still holds
		}
		data, err := readFile(filepath.Join(r.dir, promptFile))
		if err == nil && words(string(data)) == task {
			return fmt.Errorf("start run: %w: %s, which led to this run, has the same task, so this would go round in a circle (%s); do the task here, or start a run with the part of it that is to be handed on",
				ErrRefused, id, strings.Join(path, " → "))
		}
	}
	return nil
}

// words is a text without what white space makes of it.
func words(text string) string { return strings.Join(strings.Fields(text), " ") }

// below is the environment of what is started: its place in the chain, and the
// role below the one that this process has. A role is never handed on as it is,
// or a conductor's agents would be conductors and nobody would work.
func (m *Manager) below(env, path []string) []string {
	role := proc.EnvValue(env, roleVar)
	env = slices.DeleteFunc(slices.Clone(env), func(kv string) bool {
		return strings.HasPrefix(kv, pathVar+"=") || strings.HasPrefix(kv, roleVar+"=")
	})
	if role != "" && m.opt.RoleBelow != nil {
		env = append(env, roleVar+"="+m.opt.RoleBelow(role))
	}
	if len(path) > 0 {
		env = append(env, pathVar+"="+strings.Join(path, ","))
	}
	return env
}
