package staterepo

import (
	"context"
	"slices"
	"strings"

	"reprise/internal/mdfile"
)

// names tell who wrote what, where agents have other names than they had.
type names struct {
	writer map[string]string // entry → the agent that wrote it, under a former name
	now    map[string]string // former name, of no agent any more → the agent
}

// renamedIn is who was called what before, by the entries that say so.
func renamedIn[E any](list []E, entry func(*E) *mdfile.Entry) map[string][]string {
	out := map[string][]string{}
	for i := range list {
		e := entry(&list[i])
		if old, ok := strings.CutPrefix(e.Source, renamedSource); ok && e.Agent != old && !slices.Contains(out[e.Agent], old) {
			out[e.Agent] = append(out[e.Agent], old)
		}
	}
	return out
}

// names looks through the logs of agents that were renamed. What another agent of that
// name wrote stays its own, for it does not stand in the log of the one that was renamed.
func (r *Repo) names(ctx context.Context, agents []AgentInfo, all []LogEntry) (names, error) {
	n := names{writer: map[string]string{}, now: map[string]string{}}
	before := renamedIn(all, func(e *LogEntry) *mdfile.Entry { return &e.Entry })
	if len(before) == 0 {
		return n, nil
	}
	there := map[string]bool{}
	for _, a := range agents {
		there[a.Name] = true
	}
	for _, a := range agents {
		former := slices.Clone(before[a.Name])
		for i := 0; i < len(former); i++ { // one that was renamed before it was renamed
			for _, older := range before[former[i]] {
				if older != a.Name && !slices.Contains(former, older) {
					former = append(former, older)
				}
			}
		}
		if len(former) == 0 {
			continue
		}
		own, err := r.agentLog(ctx, a)
		if err != nil {
			return n, err
		}
		for _, e := range own {
			if slices.Contains(former, e.Agent) {
				n.writer[e.ID] = a.Name
			}
		}
		for _, old := range former {
			if !there[old] {
				n.now[old] = a.Name
			}
		}
	}
	return n, nil
}

// of is the agent that wrote an entry, by the name that it has now.
func (n names) of(e *LogEntry) string {
	if name := n.writer[e.ID]; name != "" {
		return name
	}
	return e.Agent
}

// called is the name that an agent has now.
func (n names) called(name string) string {
	if now := n.now[name]; now != "" {
		return now
	}
	return name
}
