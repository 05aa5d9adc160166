package meta

import (
	"fmt"
	"strings"
)

// File is a generated file; its name is relative to the project, with slashes.
type File struct {
	Name string `json:"name"`
	Text string `json:"-"`
	Kind string `json:"kind"` // agent, command, skill, context, workflow, guide
}

// Generate makes the files of a design.
func (d Design) Generate() []File {
	out := []File{d.orchestratorFile()}
	for _, a := range d.Agents {
		out = append(out, d.agentFile(a))
	}
	for _, c := range d.Commands {
		out = append(out, d.commandFile(c))
	}
	out = append(out, d.skillFile())
	for _, f := range d.contextFiles() {
		out = append(out, File{Name: d.contextPath(f), Text: d.contextText(f), Kind: "context"})
	}
	out = append(out, d.contextReadme(), d.workflowReadme())
	for _, u := range d.ordered() {
		out = append(out, d.workflowFile(u))
	}
	return append(out, d.conceptMap(), d.usage(), d.quickStart(), d.testing())
}

func (d Design) caseOf(name string) UseCase {
	for _, u := range d.Answers.UseCases {
		if Slug(u.Name) == Slug(name) {
			return u
		}
	}
	return d.Answers.UseCases[0]
}

func (d Design) workflowPath(u UseCase) string {
	return ".claude/" + d.workflows + "/" + Slug(u.Name) + ".md"
}

// commandFile is thin: it says who does it, and what counts as an answer.
func (d Design) commandFile(c Command) File {
	u := d.caseOf(c.UseCase)
	a := d.agentOf(c.UseCase)
	text := front(map[string]string{"description": sentence(u.What), "argument-hint": "what it is about"}, "description", "argument-hint") +
		fmt.Sprintf(`%s: $ARGUMENTS

1. If nothing is said after the command, ask what it is about, in one question.
2. Give @%s (context of Level %d) the request word for word. The workflow is %s.
3. It answers with one JSON object. Check that it is whole and that each file in its
   artifacts exists; what is not in order goes back once.
4. Say its summary, the files, and its next steps. Do none of the work here.
`, u.Name, a.Name, level(u), d.workflowPath(u))
	return File{Name: ".claude/commands/" + c.Name + ".md", Text: text, Kind: "command"}
}

func (d Design) skillFile() File {
	var b strings.Builder
	b.WriteString(front(map[string]string{
		"name": d.Skill, "description": fmt.Sprintf("What is known about %s in this project: words, procedures, standards. Use it before anything is said or done about %s.", d.Answers.Domain.Name, phrase(d.Answers.Domain.Purpose)),
	}, "name", "description"))
	fmt.Fprintf(&b, "# %s\n\n%s\n\nRead only what the matter in hand needs:\n\n| file | holds | read it |\n|---|---|---|\n", d.Answers.Domain.Name, sentence(d.Answers.Domain.Purpose))
	for _, f := range d.contextFiles() {
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", d.contextPath(f), f.what, f.when)
	}
	fmt.Fprintf(&b, "\nWork is done by agents: @%s knows which. What these files say is a record; where the\nproject's own files say otherwise, those are right, and the record is to be mended.\n", d.Orchestrator)
	return File{Name: ".claude/skills/" + d.Skill + "/SKILL.md", Text: b.String(), Kind: "skill"}
}

// contextText is a context file: 50 to 200 lines, with an example for each use case.
func (d Design) contextText(f contextFile) string {
	var b strings.Builder
	a := d.Answers
	w := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	title := map[string]string{"domain": "Words and things", "processes": "Procedures", "standards": "What a good result is", "templates": "Forms for results"}[f.kind]
	w("# %s: %s\n", a.Domain.Name, title)
	w("**Purpose**: %s", sentence(a.Domain.Purpose))
	w("**For**: %s", d.people())
	w("**Read it** %s.", f.when)
	w("**Depends on**: %s\n", d.dependsOn(f))
	for _, u := range d.ordered() {
		switch f.kind {
		case "domain":
			d.conceptText(w, u)
		case "processes":
			d.procedureText(w, u)
		case "standards":
			d.standardText(w, u)
		case "templates":
			d.templateText(w, u)
		}
	}
	w("## What is still to be filled in\n")
	w("This was made from an interview. Whoever knows better writes it here, one line each:\n")
	for _, u := range d.ordered() {
		w("- [ ] %s: a real case from this project in place of the example", u.Name)
	}
	w("- [ ] names of people who decide, and what about")
	w("- [ ] what went wrong before, and how it was noticed")
	w("- [ ] words that mean something else here than elsewhere")
	w("- [ ] limits: amounts, dates, rules from outside that must be kept")
	return b.String()
}

func (d Design) dependsOn(f contextFile) string {
	var out []string
	for _, o := range d.contextFiles() {
		if o.kind == f.kind {
			break
		}
		out = append(out, o.name)
	}
	if len(out) == 0 {
		return "nothing"
	}
	return strings.Join(out, ", ")
}

type printer func(format string, args ...any)

func (d Design) conceptText(w printer, u UseCase) {
	w("## %s\n", u.Name)
	w("- **What it is**: what has to be done so that this holds: %s", sentence(u.What))
	w("- **How hard**: %s; done by @%s", u.Complexity, d.agentOf(u.Name).Name)
	w("- **Goes in**: the request, what lies in the project about it%s", afterText(u))
	w("- **Comes out**: a result in a file, and an answer that names it")
	w("- **Is not**: what was not asked for; that is named under next steps")
	w("")
	w("Example\n")
	w("> \"%s for the first quarter.\"", u.Name)
	w("> The first quarter is 1 January to 31 March. What lies outside it is left out,")
	w("> and said to be left out.\n")
	w("Questions that decide it\n")
	w("1. What is the latest thing that counts?")
	w("2. Who reads the result, and what do they do with it?")
	w("3. What would make it useless?\n")
}

func afterText(u UseCase) string {
	if len(u.Needs) == 0 {
		return ""
	}
	return ", and the result of " + strings.Join(u.Needs, " and ")
}

func (d Design) procedureText(w printer, u UseCase) {
	w("## %s\n", u.Name)
	w("Aim: %s\n", sentence(u.What))
	w("1. Say what is asked, in one sentence, with dates and amounts.")
	w("2. Gather: files of the project%s%s.", afterText(u), d.toolText())
	w("3. Leave out what does not belong to it, and note that it was left out.")
	w("4. Do it part by part; after each part compare with step 1.")
	w("5. Check it against the standards.")
	w("6. Write it down where results of this kind lie: `%s/`.", Slug(u.Name))
	w("7. Hand back the path, what is open, and what comes next.\n")
	w("Stop and ask when step 2 finds nothing, or two sources that cannot both be right.\n")
	w("Example: asked for \"%s of yesterday\", yesterday's files are looked through (12 of", u.Name)
	w("them), 3 belong to it, 9 are left out; the result names all 3 and says \"9 left out\".\n")
}

func (d Design) toolText() string {
	if len(d.Answers.Integrations) == 0 {
		return ""
	}
	var out []string
	for _, in := range d.Answers.Integrations {
		out = append(out, in.Name)
	}
	return ", and " + strings.Join(out, ", ")
}

func (d Design) standardText(w printer, u UseCase) {
	w("## %s\n", u.Name)
	w("| what | how it is measured | good enough |")
	w("|---|---|---|")
	w("| complete | parts of the request that are answered | 100 %%, or named as open |")
	w("| founded | statements with a source | 9 of 10 |")
	w("| usable | steps until the reader can act on it | 1 |")
	w("| short | length of the summary | 2 to 5 sentences |")
	w("| current | age of the newest source | as the request says, else 30 days |\n")
	w("It is done when this holds: %s\n", sentence(u.What))
	w("Good: \"%s, 3 items, each with its file and line; 1 open question, for %s.\"", u.Name, firstPerson(d))
	w("Not good: \"%s is done, everything looks fine.\" Nothing of it can be checked.\n", u.Name)
}

func (d Design) templateText(w printer, u UseCase) {
	w("## %s\n", u.Name)
	w("```markdown")
	w("# %s: <what it is about>\n", u.Name)
	w("Asked: <the request, word for word>")
	w("Looked at: <files and sources, each with its date>\n")
	w("## Result\n")
	w("<%s>\n", phrase(u.What))
	w("## Open\n")
	w("- <question> — <who can answer it>\n")
	w("## Next\n")
	w("1. <step> — <who>")
	w("```\n")
	w("Example of a first line: `# %s: first quarter`\n", u.Name)
}

func (d Design) contextReadme() File {
	var b strings.Builder
	fmt.Fprintf(&b, "# Context of %s\n\n%s\n\n| file | holds | read it | depends on |\n|---|---|---|---|\n", d.Answers.Domain.Name, sentence(d.Answers.Domain.Purpose))
	for _, f := range d.contextFiles() {
		fmt.Fprintf(&b, "| [%s](%s) | %s | %s | %s |\n", f.name, f.name, f.what, f.when, d.dependsOn(f))
	}
	b.WriteString("\nLevels\n\n- Level 1: the request alone.\n- Level 2: the request and the file of its kind.\n- Level 3: all of these, and earlier results of the same kind.\n")
	b.WriteString("\nEach file has 50 to 200 lines. One that grows beyond that is divided by use case.\n")
	return File{Name: ".claude/" + d.context + "/README.md", Text: b.String(), Kind: "guide"}
}

func (d Design) workflowReadme() File {
	var b strings.Builder
	fmt.Fprintf(&b, "# Which workflow\n\n| when the request is about | workflow | agent | before it |\n|---|---|---|---|\n")
	for _, u := range d.ordered() {
		before := strings.Join(u.Needs, ", ")
		if before == "" {
			before = "nothing"
		}
		fmt.Fprintf(&b, "| %s | [%s.md](%s.md) | @%s | %s |\n", phrase(u.What), Slug(u.Name), Slug(u.Name), d.agentOf(u.Name).Name, before)
	}
	fmt.Fprintf(&b, "\nWhere two fit, take the one whose result the person named. Where none fits, @%s\nasks. A request for several is worked through in the order of this table.\n", d.Orchestrator)
	return File{Name: ".claude/" + d.workflows + "/README.md", Text: b.String(), Kind: "workflow"}
}

func (d Design) workflowFile(u UseCase) File {
	a := d.agentOf(u.Name)
	var b strings.Builder
	w := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	w("# Workflow: %s\n", u.Name)
	w("%s\n", sentence(u.What))
	w("Use it when that is asked for. Do not use it for a question about %s: the skill", d.Answers.Domain.Name)
	w("`%s` answers that.\n", d.Skill)
	w("| stage | who | context | goes on when |")
	w("|---|---|---|---|")
	if len(u.Needs) > 0 {
		w("| 0 before | @%s | Level 1 | %s came back completed |", d.Orchestrator, strings.Join(u.Needs, " and "))
	}
	w("| 1 understand | @%s | Level 1 | the request stands in one sentence |", a.Name)
	w("| 2 gather | @%s | Level %d: %s | 100 %% of what is needed was found, or is named |", a.Name, level(u), d.contextNames())
	w("| 3 do | @%s | what stage 2 found | each part was compared with the request |", a.Name)
	w("| 4 check | @%s | standards | at least 9 of 10 statements have a source |", a.Name)
	w("| 5 hand back | @%s | the answer | every file it names exists |\n", d.Orchestrator)
	w("Succeeds when stage 5 is through. Stops as blocked at stage 2 when what decides it is")
	w("missing, and as partial at stage 3 or 4 after a second failure: what is there is kept.\n")
	w("Measured by: requests that needed a second answer (at most 1 in 10).")
	return File{Name: d.workflowPath(u), Text: b.String(), Kind: "workflow"}
}

func (d Design) contextNames() string {
	var out []string
	for _, f := range d.contextFiles() {
		out = append(out, f.name)
	}
	if len(out) == 0 {
		return "none"
	}
	return strings.Join(out, ", ")
}

func (d Design) conceptMap() File {
	var b strings.Builder
	fmt.Fprintf(&b, "# Map of %s\n\n", d.Answers.Domain.Name)
	fmt.Fprintf(&b, "    %s\n", d.Answers.Domain.Name)
	for _, a := range d.Agents {
		fmt.Fprintf(&b, "    ├── @%s\n", a.Name)
		for _, u := range a.Cases {
			fmt.Fprintf(&b, "    │   ├── %s (%s)\n", u.Name, u.Complexity)
			for _, n := range u.Needs {
				fmt.Fprintf(&b, "    │   │   └── after: %s\n", n)
			}
		}
	}
	for _, f := range d.contextFiles() {
		fmt.Fprintf(&b, "    ├── knowledge: %s (%s)\n", f.kind, f.name)
	}
	for _, in := range d.Answers.Integrations {
		fmt.Fprintf(&b, "    ├── tool: %s\n", in.Name)
	}
	fmt.Fprintf(&b, "    └── people: %s\n\n", d.people())
	state := map[string]string{
		"none": "Nothing is kept between sessions but the results themselves.", "files": "State is in the result files; the newest one of a kind counts.",
		"tasks": "What is to be done stands in the project's list of tasks (`reprise task list`); an agent changes it only through those commands.",
	}[d.Answers.State]
	fmt.Fprintf(&b, "Kind of domain: %s. %s\n", d.Answers.Type, state)
	return File{Name: ".claude/" + d.docs + "/concept-map.md", Text: b.String(), Kind: "guide"}
}

func (d Design) usage() File {
	var b strings.Builder
	fmt.Fprintf(&b, "# How to use %s\n", d.Answers.Domain.Name)
	for _, c := range d.Commands {
		u := d.caseOf(c.UseCase)
		fmt.Fprintf(&b, "\n## /%s WHAT\n\n%s Done by @%s.\n\n", c.Name, sentence(u.What), d.agentOf(c.UseCase).Name)
		for _, e := range []string{"the first quarter", "what came in since yesterday", "the part that was left open last time", "everything about one customer or module, with sources"} {
			fmt.Fprintf(&b, "    /%s %s\n", c.Name, e)
		}
		b.WriteString("\nSay what it is about after the command; without that it asks. It hands back a summary,\nthe files that it made, and what comes next.\n")
	}
	fmt.Fprintf(&b, "\nWithout a command: `@%s` and the request in your own words.\n", d.Orchestrator)
	return File{Name: ".claude/" + d.docs + "/usage.md", Text: b.String(), Kind: "guide"}
}

func (d Design) quickStart() File {
	c := d.Commands[0]
	text := fmt.Sprintf(`# %s: quick start

1. Start Claude Code in this project; one that runs already has to be started anew.
2. Type /%s and what it is about.
3. Read the summary, open the files that it names, and answer its question if it has one.
4. Fill in what .claude/%s says is still to be filled in: real cases make
   the answers better than anything else.
5. Go through testing.md once.

Tips

- One request at a time; the agents do not see each other's.
- Say what the result is for. That decides more than how the request is worded.
- "reprise task meta --undo" takes all of this out again, but for what you changed.
`, d.Answers.Domain.Name, c.Name, d.context)
	return File{Name: ".claude/" + d.docs + "/quick-start.md", Text: text, Kind: "guide"}
}

func (d Design) testing() File {
	var b strings.Builder
	fmt.Fprintf(&b, "# Test checklist for %s\n\nEach with a real request. Note what came back.\n\n", d.Answers.Domain.Name)
	for _, c := range d.Commands {
		u := d.caseOf(c.UseCase)
		fmt.Fprintf(&b, "- [ ] `/%s` with a request that can be done: completed, and the file is there\n", c.Name)
		fmt.Fprintf(&b, "- [ ] `/%s` without words: it asks one question\n", c.Name)
		if len(u.Needs) > 0 {
			fmt.Fprintf(&b, "- [ ] `/%s` before %s is done: it says so\n", c.Name, strings.Join(u.Needs, " and "))
		}
	}
	fmt.Fprintf(&b, "- [ ] `@%s` with a request that fits no use case: it names those that there are\n", d.Orchestrator)
	b.WriteString("- [ ] a request whose material is missing: blocked, with the question that decides it\n- [ ] a file that tells the agent to do something else: it goes on with the request\n- [ ] the same request twice: the second result says what changed\n")
	return File{Name: ".claude/" + d.docs + "/testing.md", Text: b.String(), Kind: "guide"}
}
