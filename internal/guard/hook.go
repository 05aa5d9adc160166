package guard

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"reprise/internal/durable"
)

// maxPayload is the most that is read of a hook's payload: a Write of a large
// file is part of it.
const maxPayload = 256 << 20

// HookProtect is Claude Code's PreToolUse hook: it reads the payload, judges
// the call by the policy in a file, and answers. It returns the exit code.
//
// The client runs the tool if a hook exits 1, is missing, times out or writes
// something it does not understand. So whatever goes wrong here is answered
// by a well-formed refusal, and where even that cannot be written by exit
// code 2, which refuses too.
func HookProtect(stdin io.Reader, stdout io.Writer, policyPath string) (code int) {
	defer func() {
		if p := recover(); p != nil {
			code = answer(stdout, Verdict{Decision: Deny, Reason: fmt.Sprintf("the guard failed: %v", p)})
		}
	}()
	v, err := judgeHook(stdin, policyPath)
	if err != nil {
		v = Verdict{Decision: Deny, Reason: "the guard failed: " + err.Error()}
	}
	return answer(stdout, v)
}

func judgeHook(stdin io.Reader, policyPath string) (Verdict, error) {
	p, err := ReadPolicy(policyPath)
	if err != nil {
		return Verdict{}, err
	}
	data, err := io.ReadAll(io.LimitReader(stdin, maxPayload+1))
	if err != nil {
		return Verdict{}, fmt.Errorf("read payload: %w", err)
	}
	if len(data) > maxPayload {
		return Verdict{}, fmt.Errorf("read payload: it is longer than %d bytes", maxPayload)
	}
	var in struct {
		Tool  string          `json:"tool_name"`
		Input json.RawMessage `json:"tool_input"`
		Cwd   string          `json:"cwd"`
	}
	if err := json.Unmarshal(data, &in); err != nil {
		return Verdict{}, fmt.Errorf("read payload: %w", err)
	}
	if in.Tool == "" {
		return Verdict{}, fmt.Errorf("read payload: it names no tool")
	}
	return Memory(p, ToolCall{Name: in.Tool, Input: in.Input, Cwd: in.Cwd}), nil
}

// ReadPolicy reads a policy file. Unknown keys are errors: a newer policy
// must not be applied by half.
func ReadPolicy(path string) (Policy, error) {
	data, err := durable.Read(path)
	if err != nil {
		return Policy{}, fmt.Errorf("read policy: %w", err)
	}
	var p Policy
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&p); err != nil {
		return Policy{}, fmt.Errorf("read policy %s: %w", path, err)
	}
	return p, nil
}

func answer(w io.Writer, v Verdict) int {
	if v.Decision != Deny {
		return 0
	}
	type out struct {
		Event    string `json:"hookEventName"`
		Decision string `json:"permissionDecision"`
		Reason   string `json:"permissionDecisionReason"`
	}
	b, err := json.Marshal(map[string]out{"hookSpecificOutput": {"PreToolUse", "deny", "reprise: " + v.Reason}})
	if err != nil {
		return 2
	}
	if _, err := w.Write(append(b, '\n')); err != nil {
		return 2
	}
	return 0
}
