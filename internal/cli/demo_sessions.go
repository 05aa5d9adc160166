package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"reprise/internal/config"
)

// demoPlay is an event of a session, as the client's hook gives it to reprise.
type demoPlay struct {
	client, event string
	payload       map[string]any
}

const demoFailure = "--- FAIL: TestOrders (0.00s)\n    orders_test.go:14: dial tcp 127.0.0.1:5432: connect: connection refused\nFAIL\tshop/orders\t0.012s"

// sessions plays two sessions of two clients, event by event: in the first a
// command fails and something helps, and the second is told.
func (d *demo) sessions(ctx context.Context) error {
	d.steps.Step("What one session learnt, the next one is told, in another client")
	bash := func(event, id, command string, more map[string]any) demoPlay {
		p := map[string]any{"session_id": "demo-1", "cwd": d.path("project"), "hook_event_name": event, "tool_name": "Bash",
			"tool_use_id": id, "tool_input": map[string]any{"command": command}}
		for k, v := range more {
			p[k] = v
		}
		return demoPlay{"claude", event, p}
	}
	first := func(event string, more map[string]any) demoPlay {
		p := map[string]any{"session_id": "demo-1", "cwd": d.path("project"), "hook_event_name": event}
		for k, v := range more {
			p[k] = v
		}
		return demoPlay{"claude", event, p}
	}
	worked := func(out string) map[string]any {
		return map[string]any{"tool_response": map[string]any{"stdout": out, "stderr": ""}}
	}
	if _, err := d.hooks(ctx,
		first("SessionStart", map[string]any{"source": "startup"}),
		first("UserPromptSubmit", map[string]any{"prompt": "Run the tests of the orders package."}),
		bash("PreToolUse", "t1", "go test ./orders", nil),
		bash("PostToolUseFailure", "t1", "go test ./orders", map[string]any{"error": "Exit code 1\n" + demoFailure}),
		bash("PreToolUse", "t2", "docker compose up -d db", nil),
		bash("PostToolUse", "t2", "docker compose up -d db", worked("Container shop-db-1  Started")),
		bash("PreToolUse", "t3", "go test ./orders", nil),
		bash("PostToolUse", "t3", "go test ./orders", worked("ok  \tshop/orders\t0.210s")),
		first("Stop", map[string]any{"last_assistant_message": "The tests pass now that the database runs."}),
		first("SessionEnd", map[string]any{"reason": "other"}),
	); err != nil {
		return err
	}
	d.steps.OK("a session of Claude Code: go test failed, docker compose up -d db helped")
	second := func(event string, more map[string]any) demoPlay {
		p := map[string]any{"sessionId": "demo-2", "cwd": d.path("project"), "timestamp": d.app.Now().UnixMilli()}
		for k, v := range more {
			p[k] = v
		}
		return demoPlay{"copilot", event, p}
	}
	said, err := d.hooks(ctx,
		second("sessionStart", map[string]any{"source": "new"}),
		second("userPromptSubmitted", map[string]any{"prompt": "Check the orders."}),
		second("postToolUse", map[string]any{"toolName": "bash", "toolArgs": map[string]any{"command": "go test ./orders"},
			"toolResult": map[string]any{"resultType": "success", "textResultForLlm": demoFailure + "\n<shellId: 0 completed with exit code 1>"}}),
	)
	if err != nil {
		return err
	}
	for _, line := range strings.Split(said, "\n") {
		if strings.HasPrefix(line, "- ") && strings.Contains(line, "docker compose up -d db") && strings.Contains(line, "failed with the same error") {
			d.steps.OK("a session of Copilot CLI: the same test fails, and it is told:")
			d.steps.Quote(strings.TrimPrefix(line, "- "))
			return nil
		}
	}
	return fmt.Errorf("the second session was not told of the fix: %q", said)
}

// hooks gives events to reprise, each as a process of its own would get it, and
// returns what the last one was answered.
func (d *demo) hooks(ctx context.Context, events ...demoPlay) (said string, err error) {
	for _, e := range events {
		payload, err := json.Marshal(e.payload)
		if err != nil {
			return "", err
		}
		var out bytes.Buffer
		sub := d.installation()
		sub.In, sub.Out = bytes.NewReader(payload), &out
		sub.Env.Vars = config.ParseVars(d.environ(), sub.Env.GOOS)
		runHook(ctx, sub, hookCall{client: e.client, event: e.event, dir: d.path("project")})
		sub.Close()
		said = ""
		var answer struct {
			Context string `json:"additionalContext"`
		}
		if out.Len() > 0 && json.Unmarshal(out.Bytes(), &answer) == nil {
			said = answer.Context
		}
	}
	return said, nil
}
