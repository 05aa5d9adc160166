package hook

import (
	"path/filepath"
	"strings"

	"reprise/internal/agent/dialect"
	"reprise/internal/durable"
	"reprise/internal/hook/plan"
	"reprise/internal/redact/suspect"
)

// DirExt ends the names of the notes, in <state>/sessions, of where a session began: one
// small file each, replaced as a whole.
const DirExt = ".dir"

// SessionDir is [StartDir] of an event's session where its client does not say that in the
// environment: an agent that went elsewhere takes neither its session's events with it, nor
// the rules by which its calls are judged and its turns may end. Where a session began, or had
// its first prompt, is noted in <state>/sessions; one that is resumed elsewhere begins there.
func SessionDir(state string, ev *dialect.Event, get func(string) string, processDir string, warn func(string, error)) string {
	here := StartDir(ev, get, processDir)
	if state == "" || ev.Session == "" || isAbs(projectDir(ev.Client, get)) || strings.ContainsAny(ev.Session, "\r\n") {
		return here
	}
	file := filepath.Join(state, "sessions", plan.Key{Dir: ev.Client, Vars: ev.Session}.Name()+DirExt)
	head := ev.Client + "\n" + ev.Session + "\n"
	known := notedDir(file, head)
	begins := ev.Kind == dialect.SessionStart && ev.Source != "compact"
	if known != "" && !begins {
		return known
	}
	if !begins && ev.Kind != dialect.Prompt || known == here || !isAbs(here) || strings.ContainsAny(here, "\r\n") || suspect.String(head+here) {
		return here
	}
	err := durable.MkdirAll(filepath.Dir(file), 0o700)
	if err == nil {
		err = durable.WriteFileHot(file, []byte(head+here+"\n"), 0o600)
	}
	if err != nil {
		warn("where the session began could not be noted", err)
	}
	return here
}

// notedDir is the directory in a note that begins with head, "" where there is none.
func notedDir(file, head string) string {
	data, err := plan.ReadFile(file, 16<<10)
	if err != nil {
		return ""
	}
	dir, ok := strings.CutPrefix(string(data), head)
	if !ok || !strings.HasSuffix(dir, "\n") || !isAbs(dir) {
		return ""
	}
	return dir[:len(dir)-1]
}

// isAbs reports whether a path is absolute on this system or another one.
func isAbs(d string) bool { return strings.HasPrefix(d, "/") || len(d) > 2 && d[1] == ':' }
