//go:build unix

package e2e

import (
	"bytes"
	"context"
	"encoding/json"

	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"reprise/internal/fakemodel"
)

// model starts a fake model for the test.
func model(t *testing.T, rules ...fakemodel.Rule) *fakemodel.Server {
	t.Helper()
	srv, err := fakemodel.Start(fakemodel.Script{Rules: rules}, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := srv.Close(); err != nil {
			t.Error(err)
		}
	})
	return srv
}

// rule answers a turn once.
func rule(name string, when fakemodel.When, say fakemodel.Answer) fakemodel.Rule {
	return fakemodel.Rule{Name: name, When: when, Say: say}
}

// call is an answer that is one tool call.
func call(tool string, input map[string]any) fakemodel.Answer {
	return fakemodel.Answer{Calls: []fakemodel.Call{{Tool: tool, Input: input}}}
}

func say(text string) fakemodel.Answer { return fakemodel.Answer{Text: text} }

// newClaudeHome is a user whose sub-agents are the real Claude Code against the
// model.
func newClaudeHome(t *testing.T, m *fakemodel.Server, extra settings) *home {
	t.Helper()
	if extra == nil {
		extra = settings{}
	}
	extra["claude_cli"] = map[string]any{"path": client(t, "claude")}
	h := newHome(t, extra)
	h.env = append(h.env, m.Env()...)
	h.env = append(h.env, "CLAUDE_CODE_MAX_RETRIES=1")
	// A sub-agent loads its user's settings and no others: they let it work.
	h.write(filepath.Join(h.dir, ".claude", "settings.json"), `{"permissions":{"allow":["Bash","Read","Edit","Write","Glob","Grep"]}}`)
	return h
}

// session is one conversation of the real client with our server beside it.
type session struct {
	text   string // the final answer
	events []map[string]any
	stderr string
	code   int
}

// sessionOptions say what a conversation has besides the prompt.
type sessionOptions struct {
	servers map[string]any // more MCP servers
	args    []string
	// search leaves the client's tool search on, as users have it: the model is
	// then offered a search in place of our tools, and has to load them first.
	search bool
}

// claude runs the real client on a prompt with reprise as its MCP server. Unless
// the search is on, tools are offered directly (ENABLE_TOOL_SEARCH=false).
func (h *home) claude(prompt string, o sessionOptions) session {
	h.t.Helper()
	path := client(h.t, "claude")
	servers := map[string]any{"reprise": map[string]any{"command": program("reprise"), "args": []string{"mcp"}}}
	for name, s := range o.servers {
		servers[name] = s
	}
	data, err := json.Marshal(map[string]any{"mcpServers": servers})
	if err != nil {
		h.t.Fatal(err)
	}
	config := filepath.Join(filepath.Dir(h.dir), "mcp.json")
	h.write(config, string(data))
	var allowed []string
	for name := range servers {
		allowed = append(allowed, "mcp__"+name)
	}
	args := append([]string{
		"-p", "--output-format=stream-json", "--verbose", "--strict-mcp-config",
		"--mcp-config=" + config, "--allowedTools=" + strings.Join(allowed, ","),
	}, o.args...)

	free := turn(h.t)
	defer free()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 5 * time.Second
	cmd.Dir = h.work
	cmd.Env = append([]string{}, h.env...)
	if !o.search {
		cmd.Env = append(cmd.Env, "ENABLE_TOOL_SEARCH=false")
	}
	cmd.Stdin = strings.NewReader(prompt)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	_ = cmd.Run() // judged by its exit code and result
	s := session{stderr: errs.String(), code: cmd.ProcessState.ExitCode()}
	for _, line := range lines(out.String()) {
		var e map[string]any
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			h.t.Fatalf("claude's output line %q: %v", line, err)
		}
		s.events = append(s.events, e)
		if e["type"] == "result" {
			s.text, _ = e["result"].(string)
		}
	}
	if s.code != 0 {
		h.t.Fatalf("claude: exit %d\n%s%s", s.code, out.String(), s.stderr)
	}
	return s
}

// init is the first event, which says what is connected.
func (s session) init() map[string]any {
	for _, e := range s.events {
		if e["subtype"] == "init" {
			return e
		}
	}
	return nil
}

// toolNames are the tools that the session offered to the model.
func (s session) toolNames() []string {
	list, _ := s.init()["tools"].([]any)
	var out []string
	for _, v := range list {
		name, _ := v.(string)
		out = append(out, name)
	}
	return out
}
