//go:build unix

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"reprise/internal/fakemodel"
)

// clientRun is one session of a real client, or one more turn of it.
type clientRun struct {
	id       string // the session's, by the client
	text     string // the last answer
	out, err string
	code     int
	// requests are those for a step of the agent, in their order.
	requests []*fakemodel.Request
}

// told reports whether a request that reached the model held the text.
func (r clientRun) told(text string) bool {
	for _, q := range r.requests {
		if strings.Contains(q.Text(), text) {
			return true
		}
	}
	return false
}

// agent runs one of the four clients on a prompt, as the home's user, in its
// work directory, against a model of its own that follows the rules. The client
// gets no more of this process's environment than the home has, and nothing to
// read. Hooks run without having been trusted by hand. A run that has not ended
// after three minutes is a failure: quiet, it takes as many seconds.
func (h *home) agent(name, prompt string, more []string, rules ...fakemodel.Rule) clientRun {
	h.t.Helper()
	path := client(h.t, name)
	srv := model(h.t, rules...)
	trial, err := srv.Trial(name, h.work)
	if err != nil {
		h.t.Fatal(err)
	}
	for file, text := range trial.Files {
		if _, err := os.Stat(file); err != nil {
			h.write(file, text)
		}
	}
	free := turn(h.t)
	defer free()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, trial.Argv(prompt, append(trial.Trust, more...)...)...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 5 * time.Second
	cmd.Dir = h.work
	// The pinned node is found before any other: the programs' start scripts ask for it.
	cmd.Env = append(append([]string{}, h.env...), trial.Env...)
	cmd.Env = append(cmd.Env, "PATH="+strings.Join([]string{programs, filepath.Dir(path), os.Getenv("PATH")}, string(os.PathListSeparator)))
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	began := time.Now()
	_ = cmd.Run() // judged by its exit code
	r := clientRun{out: out.String(), err: errs.String(), code: cmd.ProcessState.ExitCode()}
	r.requests = srv.Matching(func(q *fakemodel.Request) bool { return q.Wire != "" && !q.Side() })
	if ctx.Err() != nil || r.code != 0 {
		h.t.Fatalf("%s: exit %d after %v, %d requests\n%s%s", name, r.code, time.Since(began).Round(time.Millisecond), len(r.requests), r.out, r.err)
	}
	r.read(name)
	return r
}

// read takes session and answer out of the client's lines.
func (r *clientRun) read(name string) {
	type line struct {
		Type      string `json:"type"`
		SessionID string `json:"session_id"`
		ThreadID  string `json:"thread_id"`
		CopilotID string `json:"sessionId"`
		Result    string `json:"result"`
		Role      string `json:"role"`
		Content   string `json:"content"`
		Item      struct {
			Type string `json:"type"`
			Text string `json:"text"`
		} `json:"item"`
		Data struct {
			Content string `json:"content"`
		} `json:"data"`
	}
	for _, raw := range lines(r.out) {
		var l line
		if json.Unmarshal([]byte(raw), &l) != nil {
			continue // other lines have other shapes
		}
		switch {
		case name == "claude" && l.Type == "result":
			r.id, r.text = l.SessionID, l.Result
		case name == "codex" && l.Type == "thread.started":
			r.id = l.ThreadID
		case name == "codex" && l.Type == "item.completed" && l.Item.Type == "agent_message":
			r.text = l.Item.Text
		case name == "gemini" && l.Type == "init":
			r.id = l.SessionID
		case name == "gemini" && l.Type == "message" && l.Role == "assistant":
			r.text += l.Content
		case name == "copilot" && l.Type == "assistant.message":
			r.text = l.Data.Content
		case name == "copilot" && l.Type == "result":
			r.id = l.CopilotID
		}
	}
}

// failAndFix are the turns of a session in which a command fails and another
// way of it works.
func failAndFix(failing, working string) []fakemodel.Rule {
	return []fakemodel.Rule{
		rule("fail", fakemodel.When{Turn: 1}, shell(failing)),
		rule("fix", fakemodel.When{Turn: 2}, shell(working)),
		rule("end", fakemodel.When{Turn: 3}, say("It works now.")),
	}
}

// shell is an answer that is one call of the client's shell tool.
func shell(command string) fakemodel.Answer {
	return fakemodel.Answer{Calls: []fakemodel.Call{fakemodel.Shell(command)}}
}

// Each client does a turn of work against the fake model: what it was asked and
// what its shell said reach the model.
func TestClientsWork(t *testing.T) {
	inItsOwnStep(t)
	t.Parallel()
	for _, name := range fakemodel.TrialClients() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHome(t, nil)
			h.write(filepath.Join(h.work, "answer.txt"), "forty-two\n")
			r := h.agent(name, "What does the file say?", nil,
				rule("look", fakemodel.When{User: "What does the file say", Turn: 1}, shell("cat answer.txt; exit 3")),
				rule("tell", fakemodel.When{Result: "forty-two", Turn: 2}, say("It says forty-two, I have read it.")))
			if r.text != "It says forty-two, I have read it." || r.id == "" || len(r.requests) != 2 {
				t.Errorf("session %q, answer %q, %d requests\n%s%s", r.id, r.text, len(r.requests), r.out, r.err)
			}
			if !r.told("forty-two") || r.told("forty-three") {
				t.Error("the model was not told what the command printed")
			}
		})
	}
}
