package transcript

import (
	"encoding/json"
	"strconv"
	"strings"
)

// exitLine takes an exit code out of a line that begins with the prefix.
func exitLine(line, prefix string) *int {
	rest, ok := strings.CutPrefix(line, prefix)
	if !ok {
		return nil
	}
	n, err := strconv.Atoi(strings.TrimRight(strings.TrimSpace(rest), ">"))
	if err != nil {
		return nil
	}
	return &n
}

// claudeOutcome reads a tool_result block of Claude Code.
func claudeOutcome(text string, isError bool) outcome {
	o := outcome{output: text, failed: isError}
	if !isError {
		return o
	}
	line, rest, _ := strings.Cut(text, "\n")
	if code := exitLine(line, "Exit code "); code != nil {
		o.code, o.output = code, rest
		return o
	}
	o.output, o.err = "", text
	for _, denied := range []string{"The user doesn't want to proceed", "Permission to use ", "Claude requested permissions to "} {
		if strings.HasPrefix(text, denied) {
			o.denied = true
		}
	}
	return o
}

// codexOutcome reads the output that Codex gave its model: a head of labels and
// then the output, JSON with both, or the output alone.
func codexOutcome(text string) outcome {
	if strings.HasPrefix(text, "{") {
		var o struct {
			Output   string `json:"output"`
			Metadata struct {
				ExitCode *int `json:"exit_code"`
			} `json:"metadata"`
		}
		if json.Unmarshal([]byte(text), &o) == nil && o.Metadata.ExitCode != nil {
			return outcome{output: o.Output, code: o.Metadata.ExitCode}
		}
	}
	out := outcome{output: text}
	rest := text
	for range 8 { // the head has no more lines than that
		line, after, more := strings.Cut(rest, "\n")
		if line == "Output:" {
			if out.code != nil {
				out.output = after
			}
			return out
		}
		for _, label := range []string{"Process exited with code ", "Exit code: "} {
			if code := exitLine(line, label); code != nil {
				out.code = code
			}
		}
		if !more {
			break
		}
		rest = after
	}
	out.code = nil
	for _, sign := range []string{"unable to ", "failed to ", "unsupported call", "apply_patch verification failed", "aborted"} {
		if strings.HasPrefix(text, sign) {
			out.failed, out.err, out.output = true, text, ""
		}
	}
	return out
}

// geminiOutcome reads a tool's response as Gemini CLI gave it to its model.
func geminiOutcome(text, status string) outcome {
	if in, ok := strings.CutPrefix(text, "<untrusted_context>\n"); ok {
		text = strings.TrimSuffix(strings.TrimSuffix(in, "</untrusted_context>"), "\n")
	}
	o := outcome{output: text}
	body := strings.TrimRight(text, "\n")
	for {
		i := strings.LastIndexByte(body, '\n')
		line := body[i+1:]
		label, _, ok := strings.Cut(line, ": ")
		if !ok || label != "Exit Code" && label != "Process Group PGID" && label != "Background PIDs" && label != "Signal" {
			break
		}
		if code := exitLine(line, "Exit Code: "); code != nil {
			o.code = code
		}
		if i < 0 {
			body = ""
			break
		}
		body = strings.TrimRight(body[:i], "\n")
	}
	if out, ok := strings.CutPrefix(body, "Output: "); ok {
		o.output = out
		if out == "(empty)" {
			o.output = ""
		}
	}
	switch status {
	case "error":
		o.failed, o.err = true, o.output
	case "cancelled":
		o.denied, o.err = true, "cancelled"
	}
	return o
}

// copilotOutcome reads what Copilot CLI gave its model; the exit code stands in
// the last line, and in newer versions beside it.
func copilotOutcome(text string, code *int) outcome {
	o := outcome{output: text, code: code}
	body := strings.TrimRight(text, "\n")
	i := strings.LastIndexByte(body, '\n')
	if line := body[i+1:]; strings.HasPrefix(line, "<") && strings.HasSuffix(line, ">") {
		if at := strings.LastIndex(line, "exit code "); at >= 0 {
			if n := exitLine(line[at:], "exit code "); n != nil {
				o.output = strings.TrimRight(body[:max(i, 0)], "\n")
				if o.code == nil {
					o.code = n
				}
			}
		}
	}
	return o
}
