package hook

import (
	"os"

	"reprise/internal/agent/dialect"
	"reprise/internal/durable"
)

// AddExit looks up how a shell call of Codex ended, which its hooks are not
// told, in the end of its transcript. It only reads, and where it finds nothing
// the event stays as it was: taken for a failure if its output looks like one.
func AddExit(ev *dialect.Event) {
	if ev.Client != "codex" || ev.Tool != "shell" || ev.ExitCode != nil || ev.ToolID == "" || ev.Transcript == "" ||
		ev.Kind != dialect.ToolAfter && ev.Kind != dialect.ToolFailed {
		return
	}
	// A pipe of that name would be waited for.
	if info, err := os.Lstat(ev.Transcript); err != nil || !info.Mode().IsRegular() {
		return
	}
	f, err := durable.Open(ev.Transcript)
	if err != nil {
		return
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return
	}
	// The line holds the output, too: after a long one more has to be read.
	for _, n := range [...]int64{dialect.CodexTail, 32 * dialect.CodexTail} {
		n = min(n, info.Size())
		tail := make([]byte, n)
		if _, err := f.ReadAt(tail, info.Size()-n); err != nil {
			return
		}
		if code, ok := dialect.CodexExit(tail, ev.ToolID); ok {
			ev.Exited(code)
			return
		}
		if n == info.Size() {
			return
		}
	}
}
