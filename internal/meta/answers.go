package meta

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
)

// Stages of the interview, in their order.
var stages = []string{
	"DetectExistingProject", "InitiateInterview", "GatherDomainInfo", "DetectDomainType", "IdentifyUseCases",
	"AssessComplexity", "IdentifyIntegrations", "ReviewAndConfirm", "GenerateSystem", "DeliverSystem",
}

// What to do about a system that is there already.
const (
	Extend   = "extend"   // add to it
	Separate = "separate" // beside it, all names with the domain's before them
	Replace  = "replace"  // take away what was generated before, and only that
	Cancel   = "cancel"
)

// Bounds of what a person may say. Texts go into prompts, so they are kept short.
const (
	minCases, maxCases = 3, 5
	maxText            = 300 // runes of a sentence
	maxName            = 60
	maxAgents          = 7
)

// User is somebody that the system is for.
type User struct {
	Name      string `json:"name" yaml:"name"`
	Expertise string `json:"expertise,omitempty" yaml:"expertise"`
}

// UseCase is one thing that the system does.
type UseCase struct {
	Name       string `json:"name" yaml:"name"`
	What       string `json:"what" yaml:"what"`
	Complexity string `json:"complexity" yaml:"complexity"` // simple, moderate, complex
	// Needs are names of use cases that come before it.
	Needs []string `json:"needs,omitempty" yaml:"needs"`
}

// Integration is a tool or platform outside.
type Integration struct {
	Name string `json:"name" yaml:"name"`
	Kind string `json:"kind,omitempty" yaml:"kind"` // cli, mcp or api
	What string `json:"what,omitempty" yaml:"what"`
}

// Command is a slash command.
type Command struct {
	Name    string `json:"name" yaml:"name"`
	UseCase string `json:"use_case" yaml:"use_case"`
}

// Answers are what the interview asks for, as a file of answers holds them.
type Answers struct {
	Existing string `json:"existing,omitempty" yaml:"existing"`
	Domain   struct {
		Name     string `json:"name" yaml:"name"`
		Industry string `json:"industry,omitempty" yaml:"industry"`
		Purpose  string `json:"purpose" yaml:"purpose"`
		Users    []User `json:"users,omitempty" yaml:"users"`
	} `json:"domain" yaml:"domain"`
	Type         string        `json:"type,omitempty" yaml:"type"`
	UseCases     []UseCase     `json:"use_cases" yaml:"use_cases"`
	Agents       Agents        `json:"agents,omitempty" yaml:"agents"`
	Knowledge    []string      `json:"knowledge,omitempty" yaml:"knowledge"`
	State        string        `json:"state,omitempty" yaml:"state"`
	Integrations []Integration `json:"integrations,omitempty" yaml:"integrations"`
	Files        string        `json:"files,omitempty" yaml:"files"`
	Commands     []Command     `json:"commands,omitempty" yaml:"commands"`
	Confirm      *YesNo        `json:"confirm,omitempty" yaml:"confirm"`
}

// Agents is how many agents there are to be, 0 where it was not said.
type Agents int

// UnmarshalYAML says which number it is that cannot be.
func (n *Agents) UnmarshalYAML(data []byte) error {
	said := scalar(data)
	v, err := strconv.Atoi(said)
	if err != nil {
		return fmt.Errorf("agents: %q is no whole number; 1 to %d can be kept in view", said, maxAgents)
	}
	*n = Agents(v)
	return n.check()
}

func (n Agents) check() error {
	if n < 1 || n > maxAgents {
		return fmt.Errorf("agents: %d; 1 to %d can be kept in view", n, maxAgents)
	}
	return nil
}

// YesNo is an answer that people write as yes or as true.
type YesNo bool

// UnmarshalYAML takes both.
func (b *YesNo) UnmarshalYAML(data []byte) error {
	switch said := scalar(data); strings.ToLower(said) {
	case "yes", "true", "y":
		*b = true
	case "no", "false", "n":
		*b = false
	default:
		return fmt.Errorf("confirm: %q is neither yes nor no", said)
	}
	return nil
}

// scalar is a value of YAML that is a word or number, as a person reads it.
func scalar(data []byte) string {
	text := strings.TrimSpace(string(data))
	if len(text) > 1 && (text[0] == '"' || text[0] == '\'') && text[len(text)-1] == text[0] {
		return text[1 : len(text)-1]
	}
	return text
}

var (
	domainTypes  = []string{"development", "business", "hybrid", "other"}
	complexities = []string{"simple", "moderate", "complex"}
	knowledge    = []string{"domain", "processes", "standards", "templates"}
	states       = []string{"none", "files", "tasks"}
	fileUses     = []string{"read", "write"}
	kinds        = []string{"cli", "mcp", "api"}
)

// ParseAnswers reads a file of answers, YAML with the names of [Answers]; a name that
// is not known is an error that says where. What is missing stays to be asked.
func ParseAnswers(data []byte) (map[string]string, error) {
	var a Answers
	if err := yaml.UnmarshalWithOptions(data, &a, yaml.Strict()); err != nil {
		return nil, fmt.Errorf("read answers: %w", err)
	}
	raw := map[string]string{}
	put := func(key, value string) {
		if value != "" {
			raw[key] = value
		}
	}
	put("existing", a.Existing)
	put("domain.name", a.Domain.Name)
	put("domain.industry", a.Domain.Industry)
	put("domain.purpose", a.Domain.Purpose)
	var list []string
	for _, u := range a.Domain.Users {
		list = append(list, join2(u.Name, u.Expertise))
	}
	put("domain.users", strings.Join(list, "; "))
	put("type", a.Type)
	for i, u := range a.UseCases {
		k := caseKey(i)
		put(k+"name", u.Name)
		put(k+"what", u.What)
		put(k+"complexity", u.Complexity)
		put(k+"needs", strings.Join(u.Needs, "; "))
		if len(u.Needs) == 0 && u.Name != "" {
			raw[k+"needs"] = "none"
		}
	}
	if n := len(a.UseCases); n >= minCases {
		for i := minCases; i < maxCases; i++ {
			raw[moreKey(i)] = yesNo(i < n)
		}
		if n > maxCases {
			return nil, fmt.Errorf("read answers: %d use cases; %d to %d make a system that can be kept in view", n, minCases, maxCases)
		}
	}
	if a.Agents != 0 {
		put("agents", strconv.Itoa(int(a.Agents)))
	}
	put("knowledge", strings.Join(a.Knowledge, ", "))
	put("state", a.State)
	list = nil
	for _, in := range a.Integrations {
		name := in.Name
		if in.Kind != "" {
			name += " (" + in.Kind + ")"
		}
		list = append(list, join2(name, in.What))
	}
	put("integrations", strings.Join(list, "; "))
	put("files", a.Files)
	list = nil
	for _, c := range a.Commands {
		list = append(list, join2(c.Name, c.UseCase))
	}
	put("commands", strings.Join(list, "; "))
	if a.Confirm != nil {
		put("confirm", yesNo(bool(*a.Confirm)))
	}
	return raw, nil
}

func join2(a, b string) string {
	if b == "" {
		return a
	}
	return a + ": " + b
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

func caseKey(i int) string { return fmt.Sprintf("use_cases.%d.", i+1) }
func moreKey(i int) string { return fmt.Sprintf("use_cases.%d?", i+1) }

// list divides an answer of several parts.
func list(s string) []string {
	var out []string
	for _, p := range strings.FieldsFunc(s, func(r rune) bool { return r == ';' || r == '\n' }) {
		if p = strings.TrimSpace(p); p != "" && !strings.EqualFold(p, "none") {
			out = append(out, p)
		}
	}
	return out
}

// words divides an answer of single words.
func words(s string) []string {
	return strings.FieldsFunc(strings.ToLower(s), func(r rune) bool { return r == ',' || r == ';' || unicode.IsSpace(r) })
}

// Build makes answers of what was said, as far as it was.
func Build(raw map[string]string) (Answers, error) {
	var a Answers
	a.Existing = raw["existing"]
	a.Domain.Name, a.Domain.Industry, a.Domain.Purpose = raw["domain.name"], raw["domain.industry"], raw["domain.purpose"]
	for _, p := range list(raw["domain.users"]) {
		name, level, _ := strings.Cut(p, ":")
		a.Domain.Users = append(a.Domain.Users, User{strings.TrimSpace(name), strings.TrimSpace(level)})
	}
	a.Type, a.State, a.Files = raw["type"], raw["state"], raw["files"]
	for i := range maxCases {
		k := caseKey(i)
		if raw[k+"name"] == "" {
			break
		}
		a.UseCases = append(a.UseCases, UseCase{Name: raw[k+"name"], What: raw[k+"what"], Complexity: raw[k+"complexity"], Needs: list(raw[k+"needs"])})
	}
	if s := raw["agents"]; s != "" {
		n, err := strconv.Atoi(s)
		if err != nil {
			return a, fmt.Errorf("agents: %q is no number", s)
		}
		a.Agents = Agents(n)
	}
	a.Knowledge = words(raw["knowledge"])
	for _, p := range list(raw["integrations"]) {
		name, what, _ := strings.Cut(p, ":")
		in := Integration{Name: strings.TrimSpace(name), What: strings.TrimSpace(what)}
		if m := inBrackets().FindStringSubmatch(in.Name); m != nil {
			in.Name, in.Kind = strings.TrimSpace(m[1]), m[2]
		}
		a.Integrations = append(a.Integrations, in)
	}
	for _, p := range list(raw["commands"]) {
		name, of, _ := strings.Cut(p, ":")
		a.Commands = append(a.Commands, Command{strings.TrimPrefix(strings.TrimSpace(name), "/"), strings.TrimSpace(of)})
	}
	if s := raw["confirm"]; s != "" {
		yes := YesNo(s == "yes")
		a.Confirm = &yes
	}
	return a, nil
}

var inBrackets = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(.*)\((\w+)\)$`) })

// clean makes one line of what was said, without what could end a section of a
// prompt or a front matter.
func clean(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case r == '<' || r == '>' || r == '`' || r == utf8.RuneError:
			return -1
		case unicode.IsControl(r) && !unicode.IsSpace(r):
			return -1
		case unicode.IsSpace(r):
			return ' '
		}
		return r
	}, s)
	// @name at the start of a word would call an agent, or put a file into a prompt.
	return wordAt().ReplaceAllString(strings.Join(strings.Fields(s), " "), "$1")
}

var wordAt = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(^|[^A-Za-z0-9._-])@+`) })

// Slug makes a name of files and commands from words.
func Slug(s string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(s) {
		switch {
		case r >= 'a' && r <= 'z' || r >= '0' && r <= '9':
			b.WriteRune(r)
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "-"):
			b.WriteByte('-')
		}
	}
	out := strings.Trim(b.String(), "-")
	if len(out) > 40 {
		out = strings.Trim(out[:40], "-")
	}
	return out
}

// errEmpty says that something has to be said.
var errEmpty = errors.New("this needs an answer")
