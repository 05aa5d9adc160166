package task

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"reprise/internal/agent"
)

// serverDef is how an MCP server is started or reached, as Claude Code's settings have it.
type serverDef struct {
	Type    string            `json:"type"`
	Command string            `json:"command"`
	Args    []string          `json:"args"`
	Env     map[string]string `json:"env"`
	URL     string            `json:"url"`
	Headers map[string]string `json:"headers"`
}

// serverFiles adds MCP servers to the files of the home that a client other than Claude
// Code is given for a run, each in that client's own form. files stays as it is.
func serverFiles(client string, files map[string][]byte, servers map[string]json.RawMessage) (map[string][]byte, error) {
	defs := map[string]serverDef{}
	for name, raw := range servers {
		var d serverDef
		if err := json.Unmarshal(raw, &d); err != nil {
			return nil, fmt.Errorf("MCP server %s: how it is started cannot be read: %w", name, err)
		}
		defs[name] = d
	}
	if files = maps.Clone(files); files == nil {
		files = map[string][]byte{}
	}
	var file string
	var err error
	switch client {
	case agent.KindCodex:
		file = filepath.FromSlash(".codex/config.toml")
		files[file] = codexServers(files[file], defs)
	case agent.KindGemini:
		file = filepath.FromSlash(".gemini/settings.json")
		files[file], err = geminiServers(files[file], defs)
	case agent.KindCopilot:
		file = filepath.FromSlash(".copilot/mcp-config.json")
		files[file], err = copilotServers(files[file], defs)
	}
	if err != nil {
		return nil, fmt.Errorf("give %s its MCP servers: %w", client, err)
	}
	return files, nil
}

// codexServers puts a table a server behind the settings. JSON's strings and lists of
// strings are TOML's, too.
func codexServers(settings []byte, defs map[string]serverDef) []byte {
	var b bytes.Buffer
	b.Write(settings)
	text := func(v any) string {
		data, _ := json.Marshal(v) // strings and lists of them
		return string(data)
	}
	words := func(name string, m map[string]string) {
		if len(m) == 0 {
			return
		}
		fmt.Fprintf(&b, "%s = {", name)
		for i, k := range slices.Sorted(maps.Keys(m)) {
			if i > 0 {
				b.WriteString(", ")
			}
			fmt.Fprintf(&b, "%s = %s", text(k), text(m[k]))
		}
		b.WriteString("}\n")
	}
	for _, name := range slices.Sorted(maps.Keys(defs)) {
		d := defs[name]
		fmt.Fprintf(&b, "\n[mcp_servers.%s]\n", text(name))
		if d.Command == "" {
			fmt.Fprintf(&b, "url = %s\n", text(d.URL))
			words("http_headers", d.Headers)
			continue
		}
		fmt.Fprintf(&b, "command = %s\nargs = %s\n", text(d.Command), text(append([]string{}, d.Args...)))
		words("env", d.Env)
	}
	return b.Bytes()
}

// geminiServers adds servers to the settings, and to those that it may start.
func geminiServers(settings []byte, defs map[string]serverDef) ([]byte, error) {
	all := map[string]any{}
	if len(bytes.TrimSpace(settings)) > 0 {
		if err := json.Unmarshal(settings, &all); err != nil {
			return nil, err
		}
	}
	servers := map[string]any{}
	for name, d := range defs {
		s := map[string]any{}
		switch {
		case d.Command != "":
			s["command"], s["args"] = d.Command, append([]string{}, d.Args...)
			if len(d.Env) > 0 {
				s["env"] = d.Env
			}
		case d.Type == "sse":
			s["url"] = d.URL
		default:
			s["httpUrl"] = d.URL
		}
		if len(d.Headers) > 0 {
			s["headers"] = d.Headers
		}
		servers[name] = s
	}
	all["mcpServers"] = servers
	may, _ := all["mcp"].(map[string]any)
	if may == nil {
		may = map[string]any{}
	}
	may["allowed"] = slices.Sorted(maps.Keys(defs))
	all["mcp"] = may
	return json.MarshalIndent(all, "", "  ")
}

func copilotServers(settings []byte, defs map[string]serverDef) ([]byte, error) {
	var all struct {
		Servers map[string]any `json:"mcpServers"`
	}
	if len(bytes.TrimSpace(settings)) > 0 {
		if err := json.Unmarshal(settings, &all); err != nil {
			return nil, err
		}
	}
	if all.Servers == nil {
		all.Servers = map[string]any{}
	}
	for name, d := range defs {
		s := map[string]any{"tools": []string{"*"}}
		if d.Command != "" {
			s["type"], s["command"], s["args"] = "local", d.Command, append([]string{}, d.Args...)
			if len(d.Env) > 0 {
				s["env"] = d.Env
			}
		} else {
			s["type"], s["url"] = "http", d.URL
			if d.Type == "sse" {
				s["type"] = "sse"
			}
			if len(d.Headers) > 0 {
				s["headers"] = d.Headers
			}
		}
		all.Servers[name] = s
	}
	return json.MarshalIndent(all, "", "  ")
}
