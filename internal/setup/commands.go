package setup

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"reprise/internal/proc"
	"reprise/plugin"
)

// commandsWord is what of reprise the files of commands are, in a [Change].
const commandsWord = "commands and agents"

// CommandFiles are the slash commands (and for Claude Code the agents) of the list of
// tasks in a client's own form: the directory that they are in, and their text by
// name below it. dir is "" for a client that has none.
//
// Seen with the real programs: Claude Code 2.1 loads a directory below ~/.claude/skills
// with a plugin's manifest as that plugin; Gemini CLI 0.61 reads commands as TOML;
// Codex 0.171 and Copilot CLI 1.0 have skills of their own that a person calls by name,
// and that cost nothing until then when the model may not call them itself.
func (w Where) CommandFiles(client string) (dir string, files map[string]string, err error) {
	base, err := w.Env.ClientDir(client)
	if err != nil {
		return "", nil, err
	}
	if client == "claude-code" {
		files, err = plugin.Installed()
		return filepath.Join(base, "skills", plugin.Name), files, err
	}
	list, err := plugin.Commands()
	if err != nil {
		return "", nil, err
	}
	files = map[string]string{}
	switch client {
	case "codex":
		dir = filepath.Join(base, "skills")
		for _, c := range list {
			files[skillDir(c)+"/SKILL.md"] = commandSkill(c, false)
			files[skillDir(c)+"/agents/openai.yaml"] = "policy:\n  allow_implicit_invocation: false\n"
		}
	case "copilot":
		dir = filepath.Join(base, "skills")
		for _, c := range list {
			files[skillDir(c)+"/SKILL.md"] = commandSkill(c, true)
		}
	case "gemini":
		dir = filepath.Join(base, "commands", plugin.Name)
		for _, c := range list {
			files[c.Name+".toml"] = "description = " + tomlText(c.Description) + "\nprompt = " + tomlText(commandBody(c, "{{args}}")) + "\n"
		}
	default:
		return "", nil, nil
	}
	return dir, files, nil
}

// skillDir is the name of a command where names are not divided by plugin.
func skillDir(c plugin.Command) string { return plugin.Name + "-" + c.Name }

// commandBody is a command's text for a client that has no agents of ours: it is told
// who does it, and does it itself. args stands for what was said after the command.
func commandBody(c plugin.Command, args string) string {
	body := strings.ReplaceAll(c.Body, "$ARGUMENTS", args)
	if c.Agent != "" {
		body += fmt.Sprintf("\nBefore you begin, run `reprise task context agent/%s` and work as it says.\n", c.Agent)
	}
	return body
}

func commandSkill(c plugin.Command, hidden bool) string {
	var b strings.Builder
	fmt.Fprintf(&b, "---\nname: %s\ndescription: %s\n", skillDir(c), yamlText(c.Description))
	if hidden {
		b.WriteString("disable-model-invocation: true\n")
	}
	b.WriteString("---\n\n" + commandBody(c, "(what stands after the name of this skill in the user's message)"))
	return b.String()
}

// yamlText and tomlText quote a text: JSON's strings are YAML's and TOML's, too, where
// nothing is escaped that they do not know (HTML's characters, which are left as they are).
func yamlText(s string) string { return tomlText(s) }

func tomlText(s string) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		return `""`
	}
	return strings.TrimSpace(b.String())
}

// installCommands puts the commands in. What is done to their files is told as one
// change of their directory, and apart only where one is left alone.
func (s Setup) installCommands(ctx context.Context, a All) ([]Change, error) {
	out, err := s.eachCommand(ctx, a, false, func(file, text string) (*Change, error) {
		return s.installFile(ctx, a, file, text, commandsWord)
	})
	if len(out) > 0 {
		// They call the program by its name: a path in them would be another file on
		// each machine, and more to read for a model.
		if _, err := proc.LookPath(Name, s.Env.Vars, s.Env.GOOS); err != nil {
			out[0].Warnings = append(out[0].Warnings, "the commands call "+Name+", which is not in PATH: put the directory of "+a.Program+" there")
		}
	}
	return out, err
}

func (s Setup) removeCommands(ctx context.Context, a All) ([]Change, error) {
	return s.eachCommand(ctx, a, true, func(file, text string) (*Change, error) {
		return s.removeFile(ctx, a, file, text, commandsWord)
	})
}

// eachCommand does something with each file. The removal goes backwards: who made a
// directory notes it, and it is empty when that file's turn comes.
func (s Setup) eachCommand(ctx context.Context, a All, remove bool, do func(file, text string) (*Change, error)) ([]Change, error) {
	if !remove && !a.Commands || a.scope() == Project { // commands are a person's; a project has its own
		return nil, nil
	}
	dir, files, err := s.CommandFiles(a.Client)
	if err != nil || dir == "" {
		return nil, err
	}
	whole := Change{File: dir, What: commandsWord, Action: "unchanged"}
	var apart []Change
	var failed error
	names := slices.Sorted(maps.Keys(files))
	if remove {
		slices.Reverse(names)
	}
	for _, name := range names {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		ch, err := do(filepath.Join(dir, filepath.FromSlash(name)), files[name])
		failed = errors.Join(failed, err)
		switch {
		case ch == nil:
		case len(ch.Warnings) > 0 || ch.Backup != "":
			apart = append(apart, *ch)
		case ch.Action != "unchanged":
			if whole.Action != "unchanged" && whole.Action != ch.Action {
				whole.Action = "changed"
			} else {
				whole.Action = ch.Action
			}
			whole.Diff += ch.Diff
		}
	}
	var out []Change
	if whole.Action != "unchanged" || !remove && len(apart) == 0 {
		out = append(out, whole)
	}
	return append(out, apart...), failed
}

// pluginThere reports whether Claude Code has our plugin from a marketplace: it brings
// hooks, server and commands itself, and both together would record and judge twice.
func (s Setup) pluginThere(a All) []Change {
	name, file := s.Plugin(a.Client)
	if name == "" {
		return nil
	}
	return []Change{{File: file, What: "plugin", Action: "unchanged", Warnings: []string{fmt.Sprintf(
		"the plugin %s is installed and brings hooks, server and commands: nothing was added to them; `claude plugin uninstall %s` and this again for those with this machine's paths", name, name)}}}
}

// Plugin is the name of our plugin where a client has it from a marketplace and it is on,
// and the file that says so; "" where it has none. What is wrong with that file says whoever
// edits it.
func (s Setup) Plugin(client string) (name, file string) {
	if client != "claude-code" {
		return "", ""
	}
	file, err := s.HookFile(client, User)
	if err != nil {
		return "", ""
	}
	raw, exists, err := readSettings(file)
	if err != nil || !exists || len(bytes.TrimSpace(raw)) == 0 {
		return "", ""
	}
	f, err := parseJSONFile(bytes.TrimPrefix(raw, bom))
	if err != nil {
		return "", ""
	}
	v, ok, err := f.get([]string{"enabledPlugins"})
	list, is := v.(map[string]any)
	if err != nil || !ok || !is {
		return "", ""
	}
	for _, name := range slices.Sorted(maps.Keys(list)) {
		if base, from, _ := strings.Cut(name, "@"); base == plugin.Name && from != "skills-dir" && list[name] == true {
			return name, file
		}
	}
	return "", ""
}

// PluginHooks is the hooks file of the plugin: the same hooks as setup writes, run from
// wherever PATH leads.
func PluginHooks() ([]byte, error) {
	return Setup{}.setHooks(nil, HookProgram, "claude-code", map[string]made{})
}
