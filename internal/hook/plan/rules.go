package plan

import (
	"slices"
	"strings"

	"reprise/internal/delegation"
)

// Rules say which hooks are on. They come from the settings; what a repository
// says in its project file counts only once its user trusts it, because a hook
// that is switched off sees nothing.
type Rules struct {
	Record bool // events are recorded
	Recall bool // memory is put into sessions
	Jobs   bool // bounded work at the end of turns and sessions
	// DeadlineMS bounds a hook, in milliseconds; 0 leaves it to the event.
	DeadlineMS int
	// Off are the kinds of events that are not looked at, alone ("prompt"), of
	// one client ("codex:prompt") or in one role ("musician:prompt").
	Off []string
	// Tools are kinds of tools whose calls are recorded otherwise than in full:
	// "read:failures" keeps only those that failed, "read:off" none.
	Tools []string
	// RepoOff are the kinds that the project file switches off, Trusted says
	// that they count.
	RepoOff []string
	Trusted bool
	// GateKinds are the kinds of events that a gate has something to do with, none
	// where there is no gate; GateMS is how long it may take at the end of a turn,
	// in milliseconds.
	GateKinds []string
	GateMS    int
	// Guard are the guard's rules, in the lines that package guard makes of them.
	Guard []string
	// Delegation says how much sessions of a role may do themselves. Its free
	// paths are those beside the built-in ones.
	Delegation delegation.Rules
}

// Gates reports whether a gate has something to do with a kind of event. Then
// the full program has to be asked, and no smaller one.
func (r *Rules) Gates(kind string) bool { return slices.Contains(r.GateKinds, kind) }

// named is a number of the rules with its name in the plan.
type named struct {
	name string
	at   *int
}

// counts are the numbers of delegation.
func (r *Rules) counts() [5]named {
	d := &r.Delegation
	return [...]named{
		{"tiers", &d.Tiers}, {"conductor-warn", &d.Conductor.Warn}, {"conductor-block", &d.Conductor.Block},
		{"leader-warn", &d.SectionLeader.Warn}, {"leader-block", &d.SectionLeader.Block},
	}
}

func (r *Rules) encode(w *writer) {
	for _, f := range [...]struct {
		name string
		on   bool
	}{{"record", r.Record}, {"recall", r.Recall}, {"jobs", r.Jobs}, {"trusted", r.Trusted}} {
		v := "off"
		if f.on {
			v = "on"
		}
		w.line(f.name, v)
	}
	w.line("deadline", decimal(r.DeadlineMS))
	if r.GateMS > 0 {
		w.line("gate", decimal(r.GateMS))
	}
	for _, f := range r.counts() {
		w.line(f.name, decimal(*f.at))
	}
	for _, f := range [...]struct {
		name string
		list []string
	}{{"off", r.Off}, {"tool", r.Tools}, {"repo-off", r.RepoOff}, {"gate-kind", r.GateKinds}, {"guard", r.Guard}, {"free", r.Delegation.Free}} {
		for _, v := range f.list {
			w.line(f.name, v)
		}
	}
}

func (r *Rules) set(name, value string) bool {
	flag := func(into *bool) bool {
		*into = value == "on"
		return value == "on" || value == "off"
	}
	count := func(into *int) bool {
		n, ok := number(value)
		*into = int(n)
		return ok && n >= 0 && n < 1<<31
	}
	for _, f := range r.counts() {
		if f.name == name {
			return count(f.at)
		}
	}
	switch name {
	case "record":
		return flag(&r.Record)
	case "recall":
		return flag(&r.Recall)
	case "jobs":
		return flag(&r.Jobs)
	case "trusted":
		return flag(&r.Trusted)
	case "gate":
		return count(&r.GateMS)
	case "gate-kind":
		r.GateKinds = append(r.GateKinds, value)
	case "guard":
		r.Guard = append(r.Guard, value)
	case "deadline":
		return count(&r.DeadlineMS)
	case "free":
		r.Delegation.Free = append(r.Delegation.Free, value)
	case "off":
		r.Off = append(r.Off, value)
	case "tool":
		r.Tools = append(r.Tools, value)
	case "repo-off":
		r.RepoOff = append(r.RepoOff, value)
	default:
		return false
	}
	return true
}

// On reports whether a kind of event is looked at at all, for this client and
// role.
func (r *Rules) On(kind, client, role string) bool {
	off := func(list []string) bool {
		return slices.Contains(list, kind) || slices.Contains(list, client+":"+kind) ||
			role != "" && slices.Contains(list, role+":"+kind)
	}
	return !off(r.Off) && !(r.Trusted && off(r.RepoOff))
}

// Records reports whether a tool's event is recorded; tool is the kind of tool,
// "" for what is no tool's event.
func (r *Rules) Records(tool string, failed bool) bool {
	if !r.Record {
		return false
	}
	for _, t := range r.Tools {
		name, how, _ := strings.Cut(t, ":")
		if name == tool && tool != "" {
			return how == "failures" && failed
		}
	}
	return true
}
