package guard

import (
	"strconv"
	"strings"
)

// field is a switch or a list of the rules with its name in a line.
type field[T any] struct {
	name string
	at   *T
}

func (r *Rules) switches() [8]field[bool] {
	return [...]field[bool]{
		{"off", &r.Off}, {"warn", &r.Warn}, {"unattended", &r.Unattended}, {"attended", &r.Attended},
		{"project-code", &r.ProjectCode}, {"writes", &r.Writes}, {"mcp", &r.MCP}, {"full", &r.Full},
	}
}

func (r *Rules) lists() [5]field[[]string] {
	return [...]field[[]string]{{"root", &r.Roots}, {"host", &r.Hosts}, {"branch", &r.Branches}, {"own", &r.Own}, {"loose", &r.Loose}}
}

// set reads a switch or a list; it reports false where the name is neither's.
func (r *Rules) set(name, value string) bool {
	for _, s := range r.switches() {
		if s.name == name {
			*s.at = value == "on"
			return true
		}
	}
	for _, l := range r.lists() {
		if l.name == name {
			*l.at = append(*l.at, value)
			return true
		}
	}
	return false
}

// Of rules that are meant word by word, which only allow.
const (
	exactly = "exactly"
	between = "\x1f" // stands between words; none of them holds it
)

// Lines are the rules as lines "NAME VALUE", for the hooks' plan; values that
// hold a line end are left out by the plan itself.
func (r *Rules) Lines() []string {
	var out []string
	for _, s := range r.switches() {
		if *s.at {
			out = append(out, s.name+" on")
		}
	}
	if r.WaitMS > 0 {
		out = append(out, "wait "+strconv.Itoa(r.WaitMS))
	}
	if r.Home != "" {
		out = append(out, "home "+r.Home)
	}
	if r.Workspace != "" {
		out = append(out, "workspace "+r.Workspace)
	}
	for _, l := range r.lists() {
		for _, v := range *l.at {
			out = append(out, l.name+" "+v)
		}
	}
	for _, rule := range r.List {
		if len(rule.Words) > 0 {
			out = append(out, exactly+" "+string(rule.Decision)+"\t"+rule.From+"\t"+rule.Shape+"\t"+strings.Join(rule.Words, between))
			continue
		}
		out = append(out, string(rule.Decision)+" "+rule.Shape+"\t"+rule.From+"\t"+rule.Why)
	}
	return out
}

// ParseLines reads what [Rules.Lines] made; ok is false where it holds anything
// else, which is then no rules at all.
func ParseLines(lines []string) (r Rules, ok bool) {
	for _, l := range lines {
		name, v, found := strings.Cut(l, " ")
		if !found {
			return Rules{}, false
		}
		switch name {
		case "wait":
			n, err := strconv.Atoi(v)
			if err != nil || n < 0 {
				return Rules{}, false
			}
			r.WaitMS = n
		case "home":
			r.Home = v
		case "workspace":
			r.Workspace = v
		case exactly:
			parts := strings.SplitN(v, "\t", 4)
			if len(parts) != 4 || Decision(parts[0]) != Allow || parts[3] == "" {
				return Rules{}, false
			}
			r.List = append(r.List, Rule{Decision: Allow, From: parts[1], Shape: parts[2], Words: strings.Split(parts[3], between)})
		case string(Allow), string(Ask), string(Deny):
			parts := strings.SplitN(v, "\t", 3)
			if len(parts) != 3 {
				return Rules{}, false
			}
			r.List = append(r.List, Rule{Decision: Decision(name), Shape: parts[0], From: parts[1], Why: parts[2]})
		default:
			if !r.set(name, v) {
				return Rules{}, false
			}
		}
	}
	return r, true
}
