package plugin_test

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"reprise/internal/mdfile"
	"reprise/internal/task"
	"reprise/plugin"
)

// A command is paid for in the session that it is called in.
func TestCommandsAreThin(t *testing.T) {
	list, err := plugin.Commands()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, c := range list {
		names = append(names, c.Name)
		if n := mdfile.CountLines([]byte(c.Text)); n > 40 {
			t.Errorf("/%s has %d lines; 40 are the most", c.Name, n)
		}
		if n := mdfile.Tokens(c.Body); n > 300 || n < 20 {
			t.Errorf("/%s has %d tokens; 300 are the most", c.Name, n)
		}
		if !strings.Contains(c.Body, "$ARGUMENTS") || !strings.Contains(c.Body, "`reprise ") {
			t.Errorf("/%s does not say what was asked for, or calls no command of reprise", c.Name)
		}
		if c.Agent != "" && !slices.Contains(plugin.AgentNames(), c.Agent) {
			t.Errorf("/%s is for %q, and there is no such agent", c.Name, c.Agent)
		}
		if !strings.Contains(c.Text, "\ndisable-model-invocation: true\n") {
			t.Errorf("/%s may be called by a model, so each session pays for its description", c.Name)
		}
	}
	want := []string{"errors", "implement", "meta", "plan", "refresh", "research", "review", "revise", "task", "todo"}
	if !slices.Equal(names, want) {
		t.Errorf("the commands are %q, want %q", names, want)
	}
}

// Front matter that a lenient reader takes and a strict one does not (a colon in a
// description) would make an agent that is not there.
func TestFrontMatters(t *testing.T) {
	files, err := plugin.Installed()
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for name, text := range files {
		if !strings.HasSuffix(name, ".md") {
			continue
		}
		seen++
		m, err := mdfile.Parse([]byte(text))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var head map[string]any
		if err := yaml.UnmarshalWithOptions(m.FrontMatter(), &head, yaml.Strict()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		base := strings.TrimSuffix(strings.TrimPrefix(strings.TrimPrefix(name, "agents/"), "skills/"), ".md")
		base = strings.TrimSuffix(base, "/SKILL")
		if head["name"] != base || head["description"] == nil {
			t.Errorf("%s is called %v, with the description %v", name, head["name"], head["description"])
		}
	}
	if seen < 15 {
		t.Errorf("%d files of commands and agents: the check looks at too little", seen)
	}
}

// Every agent that a route names is there, and so is what it is told of its language.
func TestRoutesHaveTheirAgents(t *testing.T) {
	for lang, r := range task.Routes() {
		if _, ok := plugin.Context("project/" + lang); !ok {
			t.Errorf("there is no context file for %s", lang)
		}
		for op := range r.Agents {
			if !slices.Contains(plugin.AgentNames(), r.Agent(op)) {
				t.Errorf("%s of %s is for %s, and there is no such agent", op, lang, r.Agent(op))
			}
		}
	}
	for _, name := range plugin.AgentNames() {
		text, ok := plugin.AgentText(name)
		if !ok || strings.HasPrefix(text, "---") || !strings.Contains(text, "reprise task context") {
			t.Errorf("agent %s is told %.60q", name, text)
		}
		for _, word := range strings.Fields(text) {
			word = strings.Trim(word, "`.,;:()")
			if strings.HasPrefix(word, "core/") {
				if _, ok := plugin.Context(word); !ok {
					t.Errorf("agent %s is sent to %s, which is not there", name, word)
				}
			}
		}
	}
}

// What setup puts among a person's files has neither hooks nor server: it writes those
// with this machine's paths, and twice would record twice.
func TestInstalledHasNoHooks(t *testing.T) {
	files, err := plugin.Installed()
	if err != nil {
		t.Fatal(err)
	}
	for name := range files {
		if strings.HasPrefix(name, "hooks/") || strings.HasSuffix(name, ".mcp.json") {
			t.Errorf("%s is installed", name)
		}
	}
	if files[".claude-plugin/plugin.json"] == "" {
		t.Error("without its manifest the directory is no plugin")
	}
}

func TestMarketplaceNamesThePlugin(t *testing.T) {
	var market struct {
		Plugins []struct{ Name, Source, Description string }
	}
	var manifest struct{ Name, Description string }
	for file, to := range map[string]any{"../.claude-plugin/marketplace.json": &market, ".claude-plugin/plugin.json": &manifest} {
		data, err := os.ReadFile(file)
		if err == nil {
			err = json.Unmarshal(data, to)
		}
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
	}
	if len(market.Plugins) != 1 || market.Plugins[0].Name != manifest.Name || market.Plugins[0].Description != manifest.Description || market.Plugins[0].Source != "./plugin" || manifest.Name != plugin.Name {
		t.Errorf("the marketplace offers %+v, the plugin is %+v", market.Plugins, manifest)
	}
}
