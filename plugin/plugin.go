// Package plugin holds the Claude Code plugin: commands, agents, hooks and server, and
// the context files that agents ask for. Everything that reprise puts into clients
// beside its hooks and its server is made from these files, so that there is one text
// of each. It writes no file and takes no lock.
package plugin

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"reprise/internal/mdfile"
)

//go:embed all:.claude-plugin .mcp.json README.md agents context hooks skills
var files embed.FS

// Name is the plugin's name, which stands before the names of its commands.
const Name = "reprise"

// Command is a slash command.
type Command struct {
	Name        string
	Description string
	Hint        string // what is said after it
	Agent       string // that it is given to in a context of its own; "" = the session's own
	Body        string
	Text        string // the whole file
}

// Commands are the slash commands, by name.
func Commands() ([]Command, error) {
	list, err := fs.ReadDir(files, "skills")
	if err != nil {
		return nil, err
	}
	var out []Command
	for _, e := range list {
		text, err := files.ReadFile("skills/" + e.Name() + "/SKILL.md")
		if err != nil {
			return nil, err
		}
		m, err := mdfile.Parse(text)
		if err != nil {
			return nil, fmt.Errorf("command %s: %w", e.Name(), err)
		}
		out = append(out, Command{
			Name: m.Value("name"), Description: m.Value("description"), Hint: strings.Trim(m.Value("argument-hint"), `"`), Agent: strings.TrimPrefix(m.Value("agent"), Name+":"),
			Body: strings.TrimSpace(string(m.Body())) + "\n", Text: string(text),
		})
	}
	return out, nil
}

// Agent is a subagent.
type Agent struct {
	Name, Description, Text string
}

// Agents are the subagents, by name.
func Agents() ([]Agent, error) {
	list, err := fs.ReadDir(files, "agents")
	if err != nil {
		return nil, err
	}
	var out []Agent
	for _, e := range list {
		text, err := files.ReadFile("agents/" + e.Name())
		if err != nil {
			return nil, err
		}
		m, err := mdfile.Parse(text)
		if err != nil {
			return nil, fmt.Errorf("agent %s: %w", e.Name(), err)
		}
		out = append(out, Agent{m.Value("name"), m.Value("description"), string(text)})
	}
	return out, nil
}

// AgentNames are the names of the agents.
func AgentNames() []string {
	list, err := Agents()
	if err != nil {
		return nil
	}
	var out []string
	for _, a := range list {
		out = append(out, a.Name)
	}
	return out
}

// AgentText is how an agent works, without its front matter.
func AgentText(name string) (string, bool) {
	list, err := Agents()
	i := slices.IndexFunc(list, func(a Agent) bool { return a.Name == name })
	if err != nil || i < 0 {
		return "", false
	}
	m, err := mdfile.Parse([]byte(list[i].Text))
	if err != nil {
		return "", false
	}
	return strings.TrimLeft(string(m.Body()), "\n"), true
}

// ContextNames are the names of the context files: core/return, project/go, ….
func ContextNames() []string {
	var out []string
	_ = fs.WalkDir(files, "context", func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			out = append(out, strings.TrimSuffix(strings.TrimPrefix(name, "context/"), ".md"))
		}
		return err
	})
	return out
}

// Context is the text of a context file.
func Context(name string) (string, bool) {
	if !slices.Contains(ContextNames(), name) {
		return "", false
	}
	text, err := files.ReadFile("context/" + name + ".md")
	return string(text), err == nil
}

// Installed are the files of the plugin as `reprise setup` puts it among a person's
// own: without hooks and server, which setup writes with this machine's paths.
func Installed() (map[string]string, error) {
	out := map[string]string{}
	err := fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		switch top, _, _ := strings.Cut(name, "/"); top {
		case "hooks", ".mcp.json", "context", "README.md":
			return nil
		}
		if path.Base(name) == "marketplace.json" {
			return nil
		}
		text, err := files.ReadFile(name)
		out[name] = string(text)
		return err
	})
	return out, err
}
