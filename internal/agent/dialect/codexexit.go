package dialect

import (
	"bytes"
	"strconv"

	"reprise/internal/event/quick"
)

// CodexTail is how much of the end of Codex' transcript is worth reading for
// [CodexExit], in bytes.
const CodexTail = 64 << 10

// CodexExit looks for how a shell call ended in the end of Codex' own transcript.
// Its hooks get a command's output and nothing of its end; but by the time of
// PostToolUse the transcript (transcript_path of the payload) holds a line that
// says it: the completed item CommandExecution with the call's id. tail are its
// last bytes, cut anywhere.
func CodexExit(tail []byte, callID string) (code int, ok bool) {
	if callID == "" {
		return 0, false
	}
	id := quick.AppendString([]byte(`"id":`), callID)
	for len(tail) > 0 {
		i := bytes.LastIndexByte(tail[:len(tail)-1], '\n')
		line := tail[i+1:]
		tail = tail[:i+1]
		// Quotes inside a string are escaped: these can only be names.
		if !bytes.Contains(line, []byte(`"type":"CommandExecution"`)) || !bytes.Contains(line, id) {
			continue
		}
		_, rest, found := bytes.Cut(line, []byte(`"exit_code":`))
		if !found {
			continue
		}
		end := 0
		for end < len(rest) && (rest[end] == '-' || rest[end] >= '0' && rest[end] <= '9') {
			end++
		}
		if n, err := strconv.Atoi(string(rest[:end])); err == nil {
			return n, true
		}
	}
	return 0, false
}

// Exited takes down how a shell call ended, where the payload did not say: a
// code other than 0 makes the event one of a failure.
func (e *Event) Exited(code int) {
	if e.ExitCode == nil && (e.Kind == ToolAfter || e.Kind == ToolFailed) {
		if code == 0 { // what the output was taken for is known better now
			e.Kind, e.Error = ToolAfter, ""
		}
		e.exit(code)
	}
}
