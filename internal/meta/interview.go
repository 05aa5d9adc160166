package meta

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Question is what is asked next.
type Question struct {
	Key     string   `json:"key"`
	Stage   string   `json:"stage"`
	Ask     string   `json:"ask"`
	Choices []string `json:"choices,omitempty"`
	// Usual is taken when nothing is said; "" = something must be.
	Usual string `json:"usual,omitempty"`
}

// Existing is what is in a project already.
type Existing struct {
	Agents, Commands, Skills, Context, Workflows []string
	// Ours says that some of it was generated before.
	Ours bool
}

// Any reports whether there is anything.
func (e Existing) Any() bool {
	return len(e.Agents)+len(e.Commands)+len(e.Skills)+len(e.Context)+len(e.Workflows) > 0
}

// Next is the next question, nil when all is answered. It is a function of the
// answers, so an interview goes on wherever it was left.
func Next(raw map[string]string, have Existing) *Question {
	for _, q := range questions(raw, have) {
		if raw[q.Key] == "" {
			return &q
		}
	}
	return nil
}

// questions are all that are to be asked by what was answered so far.
func questions(raw map[string]string, have Existing) []Question {
	var out []Question
	add := func(stage int, key, ask, usual string, choices ...string) {
		out = append(out, Question{Key: key, Stage: stages[stage], Ask: ask, Usual: usual, Choices: choices})
	}
	if have.Any() {
		add(0, "existing", "There are agents, commands or context files here already. What shall become of them?", Extend, Extend, Separate, Replace, Cancel)
		if raw["existing"] == Cancel {
			return out
		}
	}
	add(2, "domain.name", "What is the domain called? Two or three words.", "")
	add(2, "domain.industry", "In which field or industry is it?", "software")
	add(2, "domain.purpose", "What is the system for? One sentence.", "")
	add(2, "domain.users", "Who uses it, and how much do they know? (`name: expertise; name: expertise`)", "everybody: some experience")
	add(3, "type", "Which kind of domain is it?", DetectType(raw), domainTypes...)
	for i := range maxCases {
		if i >= minCases {
			add(4, moreKey(i), fmt.Sprintf("Is there a use case %d?", i+1), "no", "yes", "no")
			if raw[moreKey(i)] != "yes" {
				break
			}
		}
		k := caseKey(i)
		add(4, k+"name", fmt.Sprintf("Use case %d: what is it called? A verb and a thing.", i+1), "")
		add(4, k+"what", "What has come about when it is done? One sentence.", "")
		add(4, k+"complexity", "How hard is it?", "moderate", complexities...)
		if i > 0 {
			add(4, k+"needs", "Which use cases come before it? (names with ; between them, or none)", "none")
		}
	}
	a, _ := Build(raw)
	add(5, "agents", "How many agents shall work at it, beside the one that hands out the work?", strconv.Itoa(recommended(a)))
	add(5, "knowledge", "Which kinds of knowledge do they need?", strings.Join(knowledge, ", "), knowledge...)
	add(5, "state", "What do they keep between sessions: nothing, files, or the project's list of tasks?", "tasks", states...)
	add(6, "integrations", "Which tools outside do they use? (`name (cli|mcp|api): what for; …`, or none)", "none")
	add(6, "files", "Do they write files of the project, or only read them?", "write", fileUses...)
	add(6, "commands", "Which slash commands? (`name: use case; …`)", usualCommands(a))
	add(7, "confirm", "Shall it be generated?", "", "yes", "no")
	return out
}

// Answer checks what was said to a question and puts it with the others.
func Answer(raw map[string]string, q Question, said string) error {
	said = clean(said)
	if said == "" {
		said = q.Usual
	}
	if said == "" {
		return errEmpty
	}
	limit := maxText
	if strings.HasSuffix(q.Key, "name") {
		limit = maxName
	} else if strings.HasSuffix(q.Key, "users") || q.Key == "integrations" || q.Key == "commands" {
		limit = 4 * maxText
	}
	if n := utf8.RuneCountInString(said); n > limit {
		return fmt.Errorf("that is %d characters; %d are the most", n, limit)
	}
	if len(q.Choices) > 0 && q.Key != "knowledge" {
		low := strings.ToLower(said)
		if at := slices.IndexFunc(q.Choices, func(c string) bool { return c == low || len(low) > 0 && strings.HasPrefix(c, low) }); at >= 0 {
			said = q.Choices[at]
		} else {
			return fmt.Errorf("%q is none of %s", said, strings.Join(q.Choices, ", "))
		}
	}
	next := map[string]string{}
	for k, v := range raw {
		next[k] = v
	}
	next[q.Key] = said
	if err := check(next, q.Key); err != nil {
		return err
	}
	raw[q.Key] = said
	return nil
}

// check says what of an answer does not go with the others.
func check(raw map[string]string, key string) error {
	a, err := Build(raw)
	if err != nil {
		return err
	}
	switch {
	case key == "domain.name" && Slug(raw[key]) == "":
		return errors.New("it has no letter or digit to make a file's name of")
	case strings.HasPrefix(key, "use_cases.") && strings.HasSuffix(key, ".name"):
		return checkNames(a)
	case strings.HasPrefix(key, "use_cases.") && strings.HasSuffix(key, ".needs"):
		return checkNeeds(a)
	case key == "agents":
		return a.Agents.check()
	case key == "knowledge":
		for _, k := range a.Knowledge {
			if !slices.Contains(knowledge, k) {
				return fmt.Errorf("%q is none of %s", k, strings.Join(knowledge, ", "))
			}
		}
	case key == "integrations":
		for _, in := range a.Integrations {
			if Slug(in.Name) == "" {
				return fmt.Errorf("%q has no name", in.What)
			}
			if in.Kind != "" && !slices.Contains(kinds, in.Kind) {
				return fmt.Errorf("%s is %q; it may be %s", in.Name, in.Kind, strings.Join(kinds, ", "))
			}
		}
	case key == "commands":
		return checkCommands(a)
	}
	return nil
}

func checkNames(a Answers) error {
	seen := map[string]string{}
	for _, u := range a.UseCases {
		s := Slug(u.Name)
		switch {
		case s == "":
			return fmt.Errorf("%q has no letter or digit to make a file's name of", u.Name)
		case seen[s] != "":
			return fmt.Errorf("%q and %q would have the same file's name; call one otherwise", seen[s], u.Name)
		}
		seen[s] = u.Name
	}
	return nil
}

// checkNeeds wants use cases that come before others to be there, and no circle.
func checkNeeds(a Answers) error {
	at := map[string]int{}
	for i, u := range a.UseCases {
		at[Slug(u.Name)] = i
	}
	var visit func(i int, path []int) error
	visit = func(i int, path []int) error {
		if slices.Contains(path, i) {
			return fmt.Errorf("%q would come before itself", a.UseCases[i].Name)
		}
		for _, n := range a.UseCases[i].Needs {
			j, ok := at[Slug(n)]
			if !ok {
				return fmt.Errorf("%q is no use case that was named so far", n)
			}
			if err := visit(j, append(path[:len(path):len(path)], i)); err != nil {
				return err
			}
		}
		return nil
	}
	for i := range a.UseCases {
		if err := visit(i, nil); err != nil {
			return err
		}
	}
	return nil
}

func checkCommands(a Answers) error {
	seen := map[string]bool{}
	for _, c := range a.Commands {
		name := Slug(c.Name)
		if name == "" {
			return fmt.Errorf("a command for %q has no name", c.UseCase)
		}
		if seen[name] {
			return fmt.Errorf("there are two commands /%s", name)
		}
		seen[name] = true
		if !slices.ContainsFunc(a.UseCases, func(u UseCase) bool { return Slug(u.Name) == Slug(c.UseCase) }) {
			return fmt.Errorf("/%s is for %q, which is no use case", name, c.UseCase)
		}
	}
	if len(a.Commands) == 0 {
		return errors.New("name one command at least")
	}
	return nil
}

func usualCommands(a Answers) string {
	var out []string
	for _, u := range a.UseCases {
		out = append(out, Slug(u.Name)+": "+u.Name)
	}
	return strings.Join(out, "; ")
}

// recommended is how many agents a set of use cases wants: one for each that is not
// simple, and one for all that are.
func recommended(a Answers) int {
	n, simple := 0, 0
	for _, u := range a.UseCases {
		if u.Complexity == "simple" {
			simple = 1
		} else {
			n++
		}
	}
	return max(1, n+simple)
}

// DetectType guesses the kind of a domain by the words that were used of it.
func DetectType(raw map[string]string) string {
	text := " " + strings.ToLower(raw["domain.name"]+" "+raw["domain.industry"]+" "+raw["domain.purpose"]) + " "
	hits := func(list ...string) (n int) {
		for _, w := range list {
			n += strings.Count(text, w)
		}
		return n
	}
	dev := hits("software", "code", " api", "test", "deploy", "compil", "program", "library", "database", "backend", "frontend", "developer", "proof", "engineer")
	business := hits("customer", "market", "sales", "invoice", "contract", "financ", "content", "legal", "support", "hr ", "commerce", "account", "client", "campaign")
	switch {
	case dev > 0 && business > 0:
		return "hybrid"
	case dev > 0:
		return "development"
	case business > 0:
		return "business"
	}
	return "other"
}

// Missing are the keys that are not answered.
func Missing(raw map[string]string, have Existing) []string {
	var out []string
	for _, q := range questions(raw, have) {
		if raw[q.Key] == "" && q.Usual == "" {
			out = append(out, q.Key)
		}
	}
	return out
}

// Fill checks answers from a file as if they were given one by one, and takes what is
// usual for those that may be left out.
func Fill(given map[string]string, have Existing) (map[string]string, error) {
	raw := map[string]string{}
	for q := Next(raw, have); q != nil; q = Next(raw, have) {
		said := given[q.Key]
		if said == "" && q.Usual == "" {
			return raw, nil // to be asked
		}
		if err := Answer(raw, *q, said); err != nil {
			return raw, fmt.Errorf("%s: %w", q.Key, err)
		}
	}
	return raw, nil
}
