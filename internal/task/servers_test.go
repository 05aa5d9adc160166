package task

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"reprise/internal/agent"
	"reprise/internal/run"
)

// Each client gets the servers of a route in its own form, beside what its home holds
// already, and the home that other runs share is not touched.
func TestServersOfOtherClients(t *testing.T) {
	defs := map[string]json.RawMessage{
		"lean-lsp": json.RawMessage(`{"type":"stdio","command":"uvx","args":["lean \"lsp\""],"env":{"B":"2","A":"1"}}`),
		"far":      json.RawMessage(`{"type":"http","url":"https://example.org/mcp","headers":{"X-A":"b"}}`),
	}
	for client, c := range map[string]struct {
		file, had string
		want      []string
	}{
		agent.KindCodex: {".codex/config.toml", "model = \"m\"\n", []string{
			"model = \"m\"\n\n[mcp_servers.\"far\"]\nurl = \"https://example.org/mcp\"\nhttp_headers = {\"X-A\" = \"b\"}\n\n[mcp_servers.\"lean-lsp\"]\ncommand = \"uvx\"\nargs = [\"lean \\\"lsp\\\"\"]\nenv = {\"A\" = \"1\", \"B\" = \"2\"}\n",
		}},
		agent.KindGemini: {".gemini/settings.json", `{"mcp":{"allowed":["none"]},"privacy":{"x":true}}`, []string{
			`"command": "uvx"`, `"httpUrl": "https://example.org/mcp"`, `"privacy": {`, "\"allowed\": [\n      \"far\",\n      \"lean-lsp\"\n    ]",
		}},
		agent.KindCopilot: {".copilot/mcp-config.json", "", []string{`"type": "local"`, `"type": "http"`, "\"tools\": [\n        \"*\"\n      ]", `"A": "1"`}},
	} {
		shared := map[string][]byte{filepath.FromSlash(c.file): []byte(c.had)}
		f := &Flow{
			Routes: map[string]Route{DefaultLanguage: {Language: DefaultLanguage}},
			Server: func(name string) (json.RawMessage, error) { return defs[name], nil },
			Say:    func(format string, args ...any) { t.Errorf(format, args...) },
		}
		req := run.Request{Client: client, Work: &run.Work{}}
		req.Work.HomeFiles = shared
		f.Equip(&req, Brief{Servers: []string{"lean-lsp", "far"}})
		got := string(req.Work.HomeFiles[filepath.FromSlash(c.file)])
		for _, want := range c.want {
			if !strings.Contains(got, want) {
				t.Errorf("%s: no %q in\n%s", client, want, got)
			}
		}
		if client != agent.KindCodex && !json.Valid([]byte(got)) {
			t.Errorf("%s: %s", client, got)
		}
		if string(shared[filepath.FromSlash(c.file)]) != c.had {
			t.Errorf("%s: the home of others became %s", client, shared[filepath.FromSlash(c.file)])
		}
	}
}

// Claude Code waits for the servers of a route, unless a person has said otherwise.
func TestServersAreWaitedFor(t *testing.T) {
	got := string(withServers(json.RawMessage(`{"mcpServers":{"own":{"command":"a"}}}`), map[string]json.RawMessage{
		"b": json.RawMessage(`{"command":"b","later":{"x":1}}`), "c": json.RawMessage(`{"command":"c","alwaysLoad":false}`),
	}))
	want := `{"mcpServers":{"b":{"alwaysLoad":true,"command":"b","later":{"x":1}},"c":{"command":"c","alwaysLoad":false},"own":{"command":"a"}}}`
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
