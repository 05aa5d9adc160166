package dialect

import (
	"strconv"
	"strings"
)

// What a client says of a tool that has run is different in each client, and
// in some it has to be read out of the text that was made for the model.

// failed makes the event one of a tool that failed.
func (e *Event) failed(reason string) {
	e.Kind = ToolFailed
	if e.Error == "" {
		e.Error = reason
	}
}

// exit takes down an exit code; all but 0 make the event one of a failure.
func (e *Event) exit(code int) {
	e.ExitCode = &code
	if code != 0 {
		e.failed("exit code " + strconv.Itoa(code))
	}
}

// claudeFailure reads the text that Claude Code has for a tool that failed:
// "Exit code 7" and then the output, or just a message.
func (e *Event) claudeFailure(text string) {
	line, rest, _ := strings.Cut(text, "\n")
	if code, ok := number(line, "Exit code "); ok {
		e.Output = rest
		e.exit(code)
	}
	e.failed(text)
}

// number is the integer that follows the prefix, if nothing else does.
func number(line, prefix string) (int, bool) {
	s, ok := strings.CutPrefix(line, prefix)
	if !ok {
		return 0, false
	}
	n, err := strconv.Atoi(strings.TrimSpace(s))
	return n, err == nil
}

// response reads a tool's response in the forms that Claude Code, Codex and
// MCP servers have: a text, a list of content, or an object with either, with
// streams or with a mark of failure.
func (e *Event) response(v value) {
	if !v.is('{') {
		e.Output = contentText(v)
		return
	}
	o := v.object()
	switch {
	case o.get("stdout").is('"') || o.get("stderr").is('"'):
		e.Output = join(o.text("stdout"), o.text("stderr"))
	case o.get("content") != nil:
		e.Output = contentText(o.get("content"))
	case o.get("file").is('{'):
		e.Output = o.get("file").object().text("content")
	case o.get("filenames").is('['): // what a search found
		e.Output = contentText(o.get("filenames"))
	default:
		e.Output = o.first("output", "aggregated_output", "text", "result", "message")
		if e.Output == "" && (e.Tool == "mcp" || e.Tool == "other" || e.Tool == "ask") {
			e.Output = string(v.compact())
		}
	}
	for _, name := range [...]string{"exit_code", "exitCode"} {
		for _, in := range [...]object{o, o.get("metadata").object()} {
			if n, ok := in.get(name).integer(); ok && n == int64(int32(n)) {
				e.exit(int(n))
			}
		}
	}
	if o.get("isError").isTrue() || o.get("is_error").isTrue() || o.get("success") != nil && string(o.get("success")) == "false" {
		e.failed(join(o.text("error"), firstLine(e.Output)))
	}
}

// contentText is the text of a string, of a list of content blocks, or of one
// block.
func contentText(v value) string {
	switch {
	case v.is('"'):
		return unquote(v)
	case v.is('{'):
		return v.object().text("text")
	}
	var out string
	for _, item := range v.items() {
		out = join(out, contentText(item))
	}
	return out
}

// join puts two texts below each other.
func join(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	if strings.HasSuffix(a, "\n") {
		return a + b
	}
	return a + "\n" + b
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return line
}

// lastLine splits off the last line that is not empty.
func lastLine(s string) (before, line string) {
	s = strings.TrimRight(s, "\r\n \t")
	i := strings.LastIndexByte(s, '\n')
	return s[:i+1], s[i+1:]
}

// codexText reads Codex' text about a tool. Some of its tools put a head
// before the output; the shell tool, called Bash, gives the output alone, and
// then nothing but the output itself can show that the command failed.
func (e *Event) codexText(command string) {
	rest := e.Output
	code, known := 0, false
	for {
		line, after, more := strings.Cut(rest, "\n")
		line = strings.TrimRight(line, "\r")
		switch {
		case line == "Output:":
			if known {
				e.Output = after
				e.exit(code)
			}
			return
		case strings.HasPrefix(line, "Wall time: "), strings.HasPrefix(line, "Chunk ID: "),
			strings.HasPrefix(line, "Total output lines: "), strings.HasPrefix(line, "Original token count: "):
		default:
			n, ok := number(line, "Exit code: ")
			if !ok {
				n, ok = number(line, "Process exited with code ")
			}
			if !ok {
				if e.Kind == ToolAfter && e.Tool == "shell" {
					if why := shellComplains(command, e.Output); why != "" {
						e.failed(why)
					}
				}
				return
			}
			code, known = n, true
		}
		if !more {
			return
		}
		rest = after
	}
}

// shellComplains is the line of an output by which a command shows that it
// failed where the client does not say how it ended, "" where there is none.
// It is a guess, and made so that it rather misses a failure than invents one:
// only the shell's own complaints, and the last words of programs that have
// such words for a failure, where that program was run.
func shellComplains(command, output string) string {
	before, last := lastLine(output)
	if last == "" {
		return ""
	}
	for _, sh := range [...]string{"bash: ", "/bin/bash: ", "/usr/bin/bash: ", "sh: ", "/bin/sh: ", "zsh:", "/bin/zsh:"} {
		if strings.HasPrefix(last, sh) {
			for _, what := range [...]string{"not found", "No such file or directory", "Permission denied", "syntax error", "unexpected"} {
				if strings.Contains(last, what) {
					return last
				}
			}
		}
	}
	for _, sign := range failureSigns {
		if !runs(command, sign.program) {
			continue
		}
		if sign.last && strings.HasPrefix(last, sign.text) {
			return last
		}
		if !sign.last && (strings.HasPrefix(before, sign.text) || strings.Contains(before, "\n"+sign.text)) {
			return last
		}
	}
	return ""
}

type failureSign struct {
	program, text string
	last          bool // the text begins the last line; else any line before it
}

var failureSigns = [...]failureSign{
	{"go", "FAIL", true},
	{"git", "fatal: ", true},
	{"cargo", "error: could not compile", true},
	{"cargo", "error: test failed", true},
	{"npm", "npm error ", true},
	{"npm", "npm ERR! ", true},
	{"make", "make: *** ", true},
	{"make", "gmake: *** ", true},
	{"python", "Traceback (most recent call last):", false},
	{"python3", "Traceback (most recent call last):", false},
	{"pytest", "FAILED ", false},
	{"pytest", "ERROR ", false},
}

// runs reports whether the command line starts this program, as far as a look
// at its words can tell.
func runs(command, program string) bool {
	start := true
	for _, word := range strings.Fields(command) {
		if start && (word == program || strings.HasSuffix(word, "/"+program)) {
			return true
		}
		start = word == "&&" || word == "||" || word == ";" || word == "|" || word == "sudo" || word == "time" || word == "env" ||
			strings.HasSuffix(word, ";") || start && strings.Contains(word, "=")
	}
	return false
}

// geminiText reads what Gemini CLI wrote for its model, and for a person: a
// wrapper that labels it as untrusted, and for the shell a form with labels.
// What a program printed may look like a label. So the output is known by its
// being repeated in display where that is so, and else the labels below it are
// read from the end.
func (e *Event) geminiText(text, display string) {
	if s, ok := strings.CutPrefix(text, "<untrusted_context>\n"); ok {
		text = strings.TrimSuffix(strings.TrimSuffix(s, "</untrusted_context>"), "\n")
	}
	if e.Tool != "shell" {
		e.Output = text
		return
	}
	if strings.HasPrefix(text, "Command was ") { // cancelled, by a person or a time limit
		e.Output = text
		e.failed(firstLine(text))
		return
	}
	old := strings.HasPrefix(text, "Command: ")
	if display != "" && !old {
		if labels, ok := strings.CutPrefix(text, "Output: "+display); ok && (labels == "" || labels[0] == '\n') {
			e.geminiLabels(labels, false)
			e.Output = display
			return
		}
	}
	body := strings.TrimRight(e.geminiLabels(text, old), "\n")
	if s, ok := strings.CutPrefix(body, "Output: "); ok {
		body = s
	} else if i := strings.Index(body, "\nStdout: "); old && i >= 0 {
		body = body[i+len("\nStdout: "):]
		if i := strings.LastIndex(body, "\nStderr: "); i >= 0 {
			body = join(notEmpty(body[:i]), notEmpty(body[i+len("\nStderr: "):]))
		}
	}
	e.Output = notEmpty(body)
}

// geminiLabels reads the labelled lines at the end of the text and returns what
// stands before them. Older versions have an error's line there always.
func (e *Event) geminiLabels(text string, old bool) string {
	for {
		before, line := lastLine(text)
		label, val, ok := strings.Cut(line, ": ")
		if !ok {
			return text
		}
		switch {
		case label == "Process Group PGID", label == "Background PIDs", val == "(none)" && old:
		case label == "Signal":
			e.failed("signal " + val)
		case label == "Exit Code":
			if code, err := strconv.Atoi(val); err == nil {
				e.exit(code)
			}
		case label == "Error" && old:
			e.failed(val)
		default:
			return text
		}
		text = before
	}
}

// notEmpty is the text, but for the word that stands for none.
func notEmpty(s string) string {
	if s == "(empty)" {
		return ""
	}
	return s
}

// copilotText reads what Copilot CLI wrote for its model: the output, and for
// the shell a last line such as "<shellId: 0 completed with exit code 7>".
func (e *Event) copilotText(text string) {
	e.Output = text
	before, line := lastLine(text)
	if !strings.HasPrefix(line, "<") || !strings.HasSuffix(line, ">") {
		return
	}
	i := strings.LastIndex(line, "exit code ")
	if i < 0 {
		return
	}
	if code, err := strconv.Atoi(line[i+len("exit code ") : len(line)-1]); err == nil {
		e.Output = strings.TrimSuffix(before, "\n")
		e.exit(code)
	}
}
