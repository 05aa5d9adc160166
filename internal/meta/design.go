package meta

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Agent is an agent of a design.
type Agent struct {
	Name  string    `json:"name"`
	Cases []UseCase `json:"use_cases"`
	Tools []string  `json:"tools"`
}

// Design is what is to be generated.
type Design struct {
	Answers      Answers   `json:"answers"`
	Slug         string    `json:"slug"` // of the domain
	Orchestrator string    `json:"orchestrator"`
	Agents       []Agent   `json:"agents"`
	Commands     []Command `json:"commands"`
	Skill        string    `json:"skill"`
	prefix       string    // before the names of agents and commands
	context      string    // directory of the context files, below .claude
	workflows    string
	docs         string
}

// NewDesign turns answers into a design.
func NewDesign(a Answers) Design {
	d := Design{Answers: a, Slug: Slug(a.Domain.Name)}
	if a.Existing == Separate {
		d.prefix = d.Slug + "-"
	}
	d.Orchestrator = d.Slug + "-orchestrator"
	d.Skill = d.Slug + "-knowledge"
	d.context, d.workflows, d.docs = "context/project/"+d.Slug, "workflows/"+d.Slug, "docs/"+d.Slug
	d.Agents = divide(a, d.prefix)
	for _, c := range a.Commands {
		d.Commands = append(d.Commands, Command{Name: d.prefix + Slug(c.Name), UseCase: c.UseCase})
	}
	return d
}

// divide gives the use cases to agents: the hardest have one of their own, and what is
// left shares the rest, the simple ones together.
func divide(a Answers, prefix string) []Agent {
	order := slices.Clone(a.UseCases)
	slices.SortStableFunc(order, func(x, y UseCase) int {
		return slices.Index(complexities, y.Complexity) - slices.Index(complexities, x.Complexity)
	})
	n := min(max(1, int(a.Agents)), len(order))
	groups := make([][]UseCase, n)
	for i, u := range order {
		groups[min(i, n-1)] = append(groups[min(i, n-1)], u)
	}
	tools := []string{"Read", "Grep", "Glob", "Bash"}
	if a.Files == "write" {
		tools = append(tools, "Write", "Edit")
	}
	for _, in := range a.Integrations {
		if in.Kind == "mcp" {
			tools = append(tools, "mcp__"+strings.ReplaceAll(Slug(in.Name), "-", "_"))
		}
	}
	var out []Agent
	for _, g := range groups {
		name := Slug(g[0].Name)
		if len(g) > 1 {
			name += "-and-more"
		}
		out = append(out, Agent{Name: prefix + name + "-agent", Cases: g, Tools: tools})
	}
	return out
}

// agentOf is who does a use case.
func (d Design) agentOf(name string) Agent {
	for _, a := range d.Agents {
		for _, u := range a.Cases {
			if Slug(u.Name) == Slug(name) {
				return a
			}
		}
	}
	return d.Agents[0]
}

// ordered are the use cases such that each stands after those it needs.
func (d Design) ordered() []UseCase {
	var out []UseCase
	done := map[string]bool{}
	var visit func(u UseCase)
	visit = func(u UseCase) {
		if done[Slug(u.Name)] {
			return
		}
		done[Slug(u.Name)] = true
		for _, n := range u.Needs {
			for _, v := range d.Answers.UseCases {
				if Slug(v.Name) == Slug(n) {
					visit(v)
				}
			}
		}
		out = append(out, u)
	}
	for _, u := range d.Answers.UseCases {
		visit(u)
	}
	return out
}

// contextFiles are the context files by their kind of knowledge: name and what of it
// is worth reading when.
func (d Design) contextFiles() []contextFile {
	all := []contextFile{
		{"domain", "domain/concepts.md", "what the words of the domain mean", "before anything is said about the domain"},
		{"processes", "processes/procedures.md", "how each use case is gone about, step by step", "when a use case begins"},
		{"standards", "standards/quality.md", "what a good result is, and how it is measured", "before a result is handed back"},
		{"templates", "templates/results.md", "forms for results", "when a result is written down"},
	}
	return slices.DeleteFunc(all, func(f contextFile) bool { return !slices.Contains(d.Answers.Knowledge, f.kind) })
}

type contextFile struct{ kind, name, what, when string }

func (d Design) contextPath(f contextFile) string { return ".claude/" + d.context + "/" + f.name }

// level is how much context a use case needs: 1 the task alone, 2 with the context
// files of its kind, 3 all of them and what was done before.
func level(u UseCase) int { return 1 + max(0, slices.Index(complexities, u.Complexity)) }

func (d Design) people() string {
	var out []string
	for _, u := range d.Answers.Domain.Users {
		if u.Expertise == "" {
			out = append(out, u.Name)
		} else {
			out = append(out, u.Name+" ("+u.Expertise+")")
		}
	}
	return cmp.Or(strings.Join(out, ", "), "everybody")
}

func (d Design) tools() string {
	var out []string
	for _, in := range d.Answers.Integrations {
		s := in.Name
		if in.Kind != "" {
			s += " (" + in.Kind + ")"
		}
		if in.What != "" {
			s += " for " + in.What
		}
		out = append(out, s)
	}
	return cmp.Or(strings.Join(out, "; "), "none beside the client's own tools")
}

// Summary is the design for whoever has to say yes to it.
func (d Design) Summary(files []File) string {
	var b strings.Builder
	a := d.Answers
	fmt.Fprintf(&b, "%s: %s\nkind: %s; for %s; tools outside: %s\n\n", a.Domain.Name, sentence(a.Domain.Purpose), a.Type, d.people(), d.tools())
	fmt.Fprintf(&b, "agents\n  %-36s hands out the work\n", d.Orchestrator)
	for _, ag := range d.Agents {
		var names []string
		for _, u := range ag.Cases {
			names = append(names, fmt.Sprintf("%s (%s)", u.Name, u.Complexity))
		}
		fmt.Fprintf(&b, "  %-36s %s\n", ag.Name, strings.Join(names, ", "))
	}
	b.WriteString("commands\n")
	for _, c := range d.Commands {
		fmt.Fprintf(&b, "  /%-35s %s, by %s\n", c.Name, c.UseCase, d.agentOf(c.UseCase).Name)
	}
	b.WriteString("files\n")
	for _, f := range files {
		fmt.Fprintf(&b, "  %s\n", f.Name)
	}
	return b.String()
}

// sentence ends a text with a full stop and begins it with a capital letter.
func sentence(s string) string {
	s = strings.TrimSpace(s)
	if s == "" {
		return s
	}
	r := []rune(s)
	s = strings.ToUpper(string(r[:1])) + string(r[1:])
	if !strings.ContainsAny(s[len(s)-1:], ".!?") {
		s += "."
	}
	return s
}

// phrase is a text within a sentence: without its full stop.
func phrase(s string) string { return strings.TrimRight(strings.TrimSpace(s), ".!? ") }
