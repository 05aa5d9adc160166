package guard

import (
	"strconv"
	"strings"
)

// Lines are the rules as lines "NAME VALUE", for the hooks' plan; values that
// hold a line end are left out by the plan itself.
func (r *Rules) Lines() []string {
	var out []string
	flag := func(name string, on bool) {
		if on {
			out = append(out, name+" on")
		}
	}
	list := func(name string, values []string) {
		for _, v := range values {
			out = append(out, name+" "+v)
		}
	}
	flag("off", r.Off)
	flag("warn", r.Warn)
	flag("unattended", r.Unattended)
	flag("attended", r.Attended)
	flag("project-code", r.ProjectCode)
	flag("writes", r.Writes)
	flag("mcp", r.MCP)
	flag("full", r.Full)
	if r.WaitMS > 0 {
		out = append(out, "wait "+strconv.Itoa(r.WaitMS))
	}
	if r.Home != "" {
		out = append(out, "home "+r.Home)
	}
	list("root", r.Roots)
	list("host", r.Hosts)
	list("branch", r.Branches)
	list("own", r.Own)
	list("loose", r.Loose)
	for _, rule := range r.List {
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
		case "off":
			r.Off = v == "on"
		case "warn":
			r.Warn = v == "on"
		case "unattended":
			r.Unattended = v == "on"
		case "attended":
			r.Attended = v == "on"
		case "project-code":
			r.ProjectCode = v == "on"
		case "writes":
			r.Writes = v == "on"
		case "mcp":
			r.MCP = v == "on"
		case "full":
			r.Full = v == "on"
		case "wait":
			n, err := strconv.Atoi(v)
			if err != nil || n < 0 {
				return Rules{}, false
			}
			r.WaitMS = n
		case "home":
			r.Home = v
		case "root":
			r.Roots = append(r.Roots, v)
		case "host":
			r.Hosts = append(r.Hosts, v)
		case "branch":
			r.Branches = append(r.Branches, v)
		case "own":
			r.Own = append(r.Own, v)
		case "loose":
			r.Loose = append(r.Loose, v)
		case string(Allow), string(Ask), string(Deny):
			parts := strings.SplitN(v, "\t", 3)
			if len(parts) != 3 {
				return Rules{}, false
			}
			r.List = append(r.List, Rule{Decision: Decision(name), Shape: parts[0], From: parts[1], Why: parts[2]})
		default:
			return Rules{}, false
		}
	}
	return r, true
}
