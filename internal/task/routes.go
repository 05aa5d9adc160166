package task

import "cmp"

// Route is who works at tasks of a language.
type Route struct {
	Language string
	Client   string            // "" = the settings' default
	Model    string            // "" = the client's own
	Agents   map[string]string // operation → name of the agent
	Verify   string            // profile of the checks after a phase; "" = by the change
	Servers  []string          // MCP servers that it should have, such as lean-lsp
	// Guidance is what an agent of that language is told beside its step.
	Guidance string
}

// Routes are those that are shipped. Any other language is worked at as "general".
func Routes() map[string]Route {
	general := map[string]string{OpResearch: "researcher", OpPlan: "planner", OpRevise: "planner", OpImplement: "implementer", "review": "reviewer", "errors": "error-analyst"}
	named := func(prefix string) map[string]string {
		return map[string]string{OpResearch: prefix + "-research-agent", OpPlan: "planner", OpRevise: "planner", OpImplement: prefix + "-implementation-agent", "review": "reviewer", "errors": "error-analyst"}
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
		{Language: "lean", Agents: named("lean"), Servers: []string{"lean-lsp"}, Guidance: "Ask lean-lsp for goals and diagnostics after each step; leave no sorry behind. Without that server build with lake and say so."},
	} {
		out[r.Language] = r
	}
	return out
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
