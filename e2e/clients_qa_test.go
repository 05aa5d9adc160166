//go:build unix

package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"reprise/internal/fakemodel"
)

// A question that the user has answered in one session is answered in the next
// from memory: Claude Code does not ask, and its model is told the answer and
// where it comes from.
func TestClaudeIsAnsweredFromMemory(t *testing.T) {
	inItsOwnStep(t)
	t.Parallel()
	client(t, "claude")
	h := newHooked(t)
	h.must("init", "--yes", "--name", "shop")
	const asked = `"questions":[{"question":"Which package manager do you prefer?","header":"PM","multiSelect":false,"options":[{"label":"pnpm","description":"x"},{"label":"npm","description":"y"}]}]`
	ask := `,"tool_name":"AskUserQuestion","tool_use_id":"tu9","tool_input":{` + asked + `}`
	h.hook("claude", "SessionStart", h.payload("SessionStart", `,"source":"startup"`))
	h.hook("claude", "PreToolUse", h.payload("PreToolUse", ask))
	h.hook("claude", "PostToolUse", h.payload("PostToolUse", ask+`,"tool_response":{`+asked+`,"answers":{"Which package manager do you prefer?":"pnpm"}}`))
	h.hook("claude", "Stop", h.payload("Stop", `,"last_assistant_message":"pnpm it is."`))
	if out := h.must("qa", "list"); !strings.Contains(out, "pnpm") {
		t.Fatalf("what was answered is not remembered:\n%s", out)
	}
	h.must("setup", "--yes", "claude-code")

	var input map[string]any
	if err := json.Unmarshal([]byte("{"+asked+"}"), &input); err != nil {
		t.Fatal(err)
	}
	srv := model(t,
		rule("ask", fakemodel.When{Turn: 1}, fakemodel.Answer{Calls: []fakemodel.Call{{Tool: "AskUserQuestion", Input: input}}}),
		rule("end", fakemodel.When{Turn: 2}, say("pnpm, then.")))
	out := h.talk(srv, "Set the project up.")
	if strings.Contains(out, "can_use_tool") {
		t.Errorf("the user was asked:\n%s", out)
	}
	told := ""
	for _, q := range srv.Requests() {
		told += q.Text()
	}
	for _, want := range []string{`"Which package manager do you prefer?"="pnpm"`, "reprise answers this from its memory"} {
		if !strings.Contains(told, want) {
			t.Errorf("the model was not told %q:\n%s", want, tail(told, 3000))
		}
	}
	if out := h.must("events", "list", "--type", "question.answered", "--json"); !strings.Contains(out, `"by": "memory"`) {
		t.Errorf("the log does not say who answered:\n%s", out)
	}
	// What memory answered is no second word of the user.
	if out := h.must("qa", "list", "--json"); !strings.Contains(out, `"times": 1`) || !strings.Contains(out, `"memory": 1`) {
		t.Errorf("%s", out)
	}
}

// talk runs a session of Claude Code in which somebody is there to be asked, to
// the end of its first turn or until it asks.
func (h *hooked) talk(srv *fakemodel.Server, prompt string) string {
	h.t.Helper()
	path := client(h.t, "claude")
	trial, err := srv.Trial("claude", h.work)
	if err != nil {
		h.t.Fatal(err)
	}
	free := turn(h.t)
	defer free()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, "-p", "--input-format", "stream-json", "--output-format", "stream-json", "--verbose", "--permission-prompt-tool", "stdio")
	cmd.Dir = h.work
	cmd.Env = append(append([]string{}, h.env...), trial.Env...)
	cmd.Env = append(cmd.Env, "PATH="+strings.Join([]string{programs, filepath.Dir(path), os.Getenv("PATH")}, string(os.PathListSeparator)))
	in, err := cmd.StdinPipe()
	if err != nil {
		h.t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		h.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		h.t.Fatal(err)
	}
	message, _ := json.Marshal(map[string]any{"type": "user", "message": map[string]string{"role": "user", "content": prompt}})
	if _, err := in.Write(append(message, '\n')); err != nil {
		h.t.Fatal(err)
	}
	var all strings.Builder
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		all.WriteString(lines.Text() + "\n")
		if strings.Contains(lines.Text(), `"type":"result"`) || strings.Contains(lines.Text(), "can_use_tool") {
			break
		}
	}
	in.Close()
	_ = cmd.Wait() // judged by what it said
	return all.String()
}
