package config

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// Route is how the loop's runs of some items differ from the others: those that have
// the label of the route's name, such as a language or an area. What is empty or zero
// is as it is for all.
type Route struct {
	Label          string
	Client         string
	Model          string
	Tools          []string // that need no approval, as the client spells them
	Turns          int
	BudgetUSD      float64
	TimeoutSeconds int
	Work           RouteWork // of the tasks of that language
}

// routeClients are those that can work in a loop.
var routeClients = [...]string{"claude", "codex", "gemini", "copilot", "script"}

// RouteClients are the clients that a route can name.
func RouteClients() []string { return routeClients[:] }

// maxRoutes bounds how many there are.
const maxRoutes = 100

func routeKeys() []key {
	return []key{{
		"routes", "by label of an item: client, model, tools, turns, budget_usd and timeout_seconds of its runs; the first that fits an item counts",
		func(l *loader, n ast.Node) { l.out.Routes = l.routes(n) },
		func(s Settings) any { return routeMap(s.Routes) }, nil,
	}}
}

// routeMap are routes as the settings have them, in their order, as JSON.
type routeMap []Route

// MarshalJSON implements json.Marshaler.
func (m routeMap) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, r := range m {
		if i > 0 {
			b.WriteByte(',')
		}
		label, err := json.Marshal(r.Label)
		if err != nil {
			return nil, err
		}
		fields, err := json.Marshal(struct {
			Client  string   `json:"client,omitempty"`
			Model   string   `json:"model,omitempty"`
			Tools   []string `json:"tools,omitempty"`
			Turns   int      `json:"turns,omitempty"`
			USD     float64  `json:"budget_usd,omitempty"`
			Timeout int      `json:"timeout_seconds,omitempty"`
			workDoc
		}{r.Client, r.Model, r.Tools, r.Turns, r.BudgetUSD, r.TimeoutSeconds, r.Work.doc()})
		if err != nil {
			return nil, err
		}
		b.Write(label)
		b.WriteByte(':')
		b.Write(fields)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// workDoc is how a route's tasks go, as the settings have it.
type workDoc struct {
	Agents     map[string]string `json:"agents,omitempty"`
	Prompt     string            `json:"prompt,omitempty"`
	Servers    any               `json:"servers,omitempty"`
	Verify     string            `json:"verify,omitempty"`
	Concurrent int               `json:"concurrent,omitempty"`
	Prebuild   any               `json:"prebuild,omitempty"`
	Env        []string          `json:"env,omitempty"`
}

func (w RouteWork) doc() workDoc {
	d := workDoc{Agents: w.Agents, Prompt: w.Prompt, Verify: w.Verify, Concurrent: w.Concurrent, Env: w.Env}
	switch {
	case w.Prebuild.Shell != "":
		d.Prebuild = w.Prebuild.Shell
	case len(w.Prebuild.Argv) > 0:
		d.Prebuild = w.Prebuild.Argv
	}
	if len(w.Servers) == 0 {
		return d
	}
	names, started := []string{}, map[string]any{}
	for _, s := range w.Servers {
		names, started[s.Name] = append(names, s.Name), nil
		if len(s.Command) > 0 {
			started[s.Name] = struct {
				Command []string `json:"command"`
				Env     []string `json:"env,omitempty"`
			}{s.Command, s.Env}
		}
	}
	d.Servers = names
	if slices.ContainsFunc(w.Servers, func(s Server) bool { return len(s.Command) > 0 }) {
		d.Servers = started
	}
	return d
}

// routes reads a section of routes, of the user's settings or of a project's file.
func (d *document) routes(n ast.Node) []Route {
	entries, ok := d.mapping("routes", n)
	if !ok {
		return nil
	}
	if len(entries) > maxRoutes {
		d.add(n, "routes", fmt.Sprintf("has %d routes, the most is %d", len(entries), maxRoutes), "remove some")
		return nil
	}
	var out []Route
	for _, e := range entries {
		r := Route{Label: strings.TrimPrefix(e.key, "routes.")}
		if r.Label == "" || len(r.Label) > 100 || strings.ContainsFunc(r.Label, func(c rune) bool { return c <= ' ' || c == ',' }) {
			d.add(e.node, e.key, fmt.Sprintf("%q is no label", shown(r.Label)), "write a label as items have it, without spaces and commas")
			continue
		}
		fields, ok := d.mapping(e.key, e.value)
		if !ok {
			continue
		}
		for _, f := range fields {
			d.routeField(&r, e.key, f)
		}
		out = append(out, r)
	}
	return out
}

func (d *document) routeField(r *Route, route string, f entry) {
	switch strings.TrimPrefix(f.key, route+".") {
	case "client":
		r.Client = d.word(f, routeClients[:])
	case "model":
		if text, ok := d.str(f.key, f.value); ok {
			value, problem, remedy := checkWord(Env{}, text)
			if problem != "" {
				d.add(f.value, f.key, problem, remedy)
			}
			r.Model = value
		}
	case "tools":
		items, nodes, ok := d.list(f.key, f.value)
		for i, item := range items {
			if _, problem, remedy := checkWord(Env{}, item); problem != "" && ok {
				d.add(nodes[i], fmt.Sprintf("%s[%d]", f.key, i), problem, remedy)
			}
		}
		r.Tools = items
	case "turns":
		r.Turns, _ = d.integer(f.key, f.value, 1, 10_000)
	case "budget_usd":
		r.BudgetUSD, _ = d.usd(f.key, f.value, 10_000)
	case "timeout_seconds":
		r.TimeoutSeconds, _ = d.integer(f.key, f.value, 1, week)
	default:
		if !d.routeWork(&r.Work, route, f) {
			d.add(f.node, f.key, "is not a setting of a route", RemoveIt+"there are client, model, tools, turns, budget_usd and timeout_seconds, and for tasks agents, prompt, servers, verify, concurrent, prebuild and env")
		}
	}
}

// RouteOf is how a run of an item with these labels goes: what holds for all, then the
// first of the user's routes that fits, then the project's that fits, which can only
// lower what is there: it names client and model where the user's route does not, and
// tools, turns, money and time are the fewer of both. The project's routes are for the
// caller to leave out where its file was not approved.
func RouteOf(all Route, user, project []Route, labels []string) Route {
	out := all
	fits := func(r Route) bool { return slices.Contains(labels, r.Label) }
	if i := slices.IndexFunc(user, fits); i >= 0 {
		r := user[i]
		out.Label, out.Client, out.Model = r.Label, cmp.Or(r.Client, out.Client), cmp.Or(r.Model, out.Model)
		out.Turns, out.BudgetUSD, out.TimeoutSeconds = cmp.Or(r.Turns, out.Turns), cmp.Or(r.BudgetUSD, out.BudgetUSD), cmp.Or(r.TimeoutSeconds, out.TimeoutSeconds)
		if r.Tools != nil {
			out.Tools = r.Tools
		}
		out.Work = r.Work.over(out.Work)
	}
	if i := slices.IndexFunc(project, fits); i >= 0 {
		out = out.narrowed(project[i])
	}
	out.Tools = slices.Clone(out.Tools)
	return out
}

func (r Route) narrowed(by Route) Route {
	r.Label = cmp.Or(r.Label, by.Label)
	if r.Client == "" && r.Model == "" {
		r.Client, r.Model = by.Client, by.Model
	}
	if by.Tools != nil {
		r.Tools = slices.DeleteFunc(slices.Clone(r.Tools), func(t string) bool { return !slices.Contains(by.Tools, t) })
	}
	r.Turns = lower(r.Turns, by.Turns)
	r.BudgetUSD = lower(r.BudgetUSD, by.BudgetUSD)
	r.TimeoutSeconds = lower(r.TimeoutSeconds, by.TimeoutSeconds)
	r.Work = r.Work.over(by.Work)
	return r
}

// lower is the lower of two bounds of which 0 is none.
func lower[T int | float64](a, b T) T {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}
