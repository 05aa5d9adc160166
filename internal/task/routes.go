package task

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"reprise/internal/config"
)

// Route is who works at tasks of a language, and how.
type Route struct {
	Language string
	Client   string            // "" = the settings' default
	Model    string            // "" = the client's own
	Agents   map[string]string // operation → name of the agent
	Verify   string            // profile of the checks after a phase; "" = by the change
	Servers  []string          // MCP servers that it should have, such as lean-lsp
	// Guidance is what an agent of that language is told beside its step.
	Guidance string
	Tools    []string // that need no approval; nil = the flow's
	Env      []string // NAME=value
	// Concurrent is how many phases may be worked at at once, Turns and BudgetUSD bound
	// one run; 0 is no limit.
	Concurrent, Turns int
	BudgetUSD         float64
	Prebuild          config.Check // what runs before the work at a phase
}

// Routes are those that are shipped. Any other language is worked at as "general".
func Routes() map[string]Route {
	general := map[string]string{OpResearch: "researcher", OpPlan: "planner", OpRevise: "planner", OpImplement: "implementer", OpReview: "reviewer", "errors": "error-analyst"}
	named := func(prefix string) map[string]string {
		own := maps.Clone(general)
		own[OpResearch], own[OpImplement] = prefix+"-research-agent", prefix+"-implementation-agent"
		return own
	}
	out := map[string]Route{}
	for _, r := range []Route{
		{Language: "general", Agents: general},
		{Language: "markdown", Agents: general, Guidance: "Check that links lead somewhere and that what the text claims is so."},
		{Language: "go", Agents: general, Guidance: "Format with gofmt, and run go vet and the tests of the packages you touch."},
		{Language: "python", Agents: general, Guidance: "Use the project's own environment and test runner; add no dependency that the task does not name."},
		{Language: "typescript", Agents: general, Guidance: "Use the scripts of package.json to check types, lint and test; keep the lockfile as it is."},
		{Language: "rust", Agents: general, Guidance: "Run cargo fmt, clippy and the tests of the crates you touch."},
		{Language: "latex", Agents: named("latex"), Guidance: "Build the document twice and read the log: no undefined reference, no overfull box that was not there."},
		{Language: "lean", Agents: named("lean"), Servers: []string{"lean-lsp"}, Guidance: "Ask lean-lsp for goals and diagnostics after each step; leave no sorry behind. For what the library has, use its search tools (local search, Loogle, LeanSearch), and the web where they find nothing."},
	} {
		out[r.Language] = r
	}
	return out
}

// Routed are the shipped routes with what the user's settings and an approved project
// say of them. What neither says stays. A label that is no shipped language is a
// language of its own, worked at as general where it says nothing.
// tools are those that need no approval where nothing is said of them.
func Routed(tools []string, user, project []config.Route) map[string]Route {
	out := Routes()
	for _, list := range [][]config.Route{user, project} {
		for _, r := range list {
			name := strings.ToLower(r.Label)
			if _, known := out[name]; !known {
				own := out[DefaultLanguage]
				own.Language = name
				out[name] = own
			}
		}
	}
	for name, r := range out {
		said := config.RouteOf(config.Route{Tools: tools}, user, project, []string{name})
		out[name] = r.with(said)
	}
	return out
}

// with is the route with what settings say of it.
func (r Route) with(said config.Route) Route {
	r.Client, r.Model = cmp.Or(said.Client, r.Client), cmp.Or(said.Model, r.Model)
	r.Turns, r.BudgetUSD, r.Tools = said.Turns, said.BudgetUSD, said.Tools
	w := said.Work
	if len(w.Agents) > 0 {
		r.Agents = maps.Clone(r.Agents)
		maps.Copy(r.Agents, w.Agents)
	}
	if w.Servers != nil {
		r.Servers = nil
		for _, s := range w.Servers {
			r.Servers = append(r.Servers, s.Name)
		}
	}
	if w.Prompt != "" {
		r.Guidance = strings.TrimSpace(r.Guidance + "\n\n" + w.Prompt)
	}
	r.Verify, r.Concurrent, r.Prebuild, r.Env = w.Verify, w.Concurrent, w.Prebuild, slices.Clone(w.Env)
	if r.Verify == "auto" {
		r.Verify = ""
	}
	return r
}

// RouteOf is the route of a language among routes.
func RouteOf(routes map[string]Route, language string) Route {
	if r, ok := routes[cmp.Or(language, DefaultLanguage)]; ok {
		return r
	}
	return routes[DefaultLanguage]
}

// Agent is the name of the agent for an operation.
func (r Route) Agent(op string) string { return cmp.Or(r.Agents[op], op) }
