package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// RouteWork is what a route says of the work at a task of its language, beside what it
// says of a run.
type RouteWork struct {
	Agents map[string]string // operation → name of the agent
	Prompt string            // told beside the step
	// Servers are MCP servers that the work should have, by name.
	Servers []Server
	Verify  string // profile of the checks after a phase
	// Concurrent is how many phases may be worked at at once; 0 is no limit of its own.
	Concurrent int
	// Prebuild runs before the work at a phase, in its checkout.
	Prebuild Check
	Env      []string // NAME=value
}

// Server is an MCP server, by name; with a command where the file says how it is
// started, else the clients' own settings do.
type Server struct {
	Name    string
	Command []string // program and arguments
	Env     []string // NAME=value
}

// None reports whether there is no command.
func (c Check) None() bool { return c.Shell == "" && len(c.Argv) == 0 }

var routeAgents = [...]string{"research", "plan", "revise", "implement", "review", "errors"}

// routeWork reads one field of a route that is about a task's work; false where it is
// about something else.
func (d *document) routeWork(w *RouteWork, route string, f entry) bool {
	switch strings.TrimPrefix(f.key, route+".") {
	case "agents":
		w.Agents = d.routeAgents(f)
	case "prompt":
		w.Prompt, _ = d.str(f.key, f.value)
	case "servers":
		w.Servers = d.routeServers(f)
	case "verify":
		w.Verify = d.word(f, append([]string{"auto"}, verifyProfiles[:]...))
	case "concurrent":
		w.Concurrent, _ = d.integer(f.key, f.value, 1, 100)
	case "prebuild":
		d.checkRun(f, &w.Prebuild)
		w.Prebuild.Dir, w.Prebuild.TimeoutSeconds = ".", maxCheckSeconds
	case "env":
		w.Env = d.words(f, checkAssignment)
	default:
		return false
	}
	return true
}

// over is what w says, and where that says nothing, what by says.
func (w RouteWork) over(by RouteWork) RouteWork {
	if w.Agents == nil {
		w.Agents = by.Agents
	}
	if w.Servers == nil {
		w.Servers = by.Servers
	}
	if w.Prebuild.None() {
		w.Prebuild = by.Prebuild
	}
	if w.Env == nil {
		w.Env = by.Env
	}
	w.Prompt, w.Verify, w.Concurrent = cmp.Or(w.Prompt, by.Prompt), cmp.Or(w.Verify, by.Verify), lower(w.Concurrent, by.Concurrent)
	return w
}

// line is a text without line breaks.
func (d *document) line(e entry) string {
	s, ok := d.str(e.key, e.value)
	if ok && (strings.TrimSpace(s) == "" || strings.ContainsAny(s, "\r\n\x00") || len(s) > 200) {
		d.add(e.value, e.key, "is empty, too long or has more than one line", "write it in one line")
	}
	return s
}

func (d *document) routeAgents(e entry) map[string]string {
	entries, ok := d.mapping(e.key, e.value)
	if !ok {
		return nil
	}
	out := map[string]string{}
	for _, s := range entries {
		op := strings.TrimPrefix(s.key, e.key+".")
		if !slices.Contains(routeAgents[:], op) {
			d.add(s.node, s.key, "is no operation", "write one of "+strings.Join(routeAgents[:], ", "))
			continue
		}
		name := d.line(s)
		if problem := checkName(name); problem != "" || strings.ContainsAny(name, ", ") {
			d.add(s.value, s.key, fmt.Sprintf("%q is no name of an agent", shown(name)), "use one word, such as go-implementer")
			continue
		}
		out[op] = name
	}
	return out
}

// routeServers reads names of servers, or how they are started: a list, or a mapping of
// names to a command, or to nothing.
func (d *document) routeServers(e entry) []Server {
	if _, ok := e.value.(*ast.SequenceNode); ok {
		var out []Server
		for _, name := range d.words(e, checkServer) {
			out = append(out, Server{Name: name})
		}
		return out
	}
	entries, ok := d.mapping(e.key, e.value)
	if !ok {
		return nil
	}
	var out []Server
	for _, s := range entries {
		srv := Server{Name: strings.TrimPrefix(s.key, e.key+".")}
		if problem := checkServer(srv.Name); problem != "" {
			d.add(s.node, s.key, problem, "use letters, digits, '-' and '_'")
			continue
		}
		out = append(out, srv)
		at := &out[len(out)-1]
		if _, null := s.value.(*ast.NullNode); null || s.value == nil {
			continue
		}
		inner, ok := d.mapping(s.key, s.value)
		if !ok {
			continue
		}
		for _, f := range inner {
			switch strings.TrimPrefix(f.key, s.key+".") {
			case "command":
				at.Command = d.words(f, func(w string) string {
					if strings.ContainsRune(w, 0) {
						return "holds a NUL"
					}
					return ""
				})
			case "env":
				at.Env = d.words(f, checkAssignment)
			default:
				d.add(f.node, f.key, "is not a setting of a server", RemoveIt+"there are command, a list of a program and its arguments, and env")
			}
		}
	}
	return out
}

func checkServer(s string) string {
	if s == "" || len(s) > 60 || strings.ContainsFunc(s, func(r rune) bool {
		return r != '-' && r != '_' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	}) {
		return fmt.Sprintf("%q is no name of an MCP server", shown(s))
	}
	return ""
}

// checkAssignment wants NAME=value.
func checkAssignment(s string) string {
	if !strings.Contains(s, "=") {
		return fmt.Sprintf("%q sets no variable", shown(s))
	}
	return checkSetting(s)
}
