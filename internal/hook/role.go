package hook

import (
	"path/filepath"
	"slices"

	"reprise/internal/agent/dialect"
	"reprise/internal/durable"
	"reprise/internal/event/quick"
	"reprise/internal/hook/plan"
	"reprise/internal/redact/suspect"
)

// Role is the role of an event's session: what the environment says, else what
// it said when the session began (a session that is resumed from another shell
// has lost the variable). Beginnings are noted in <state>/sessions, one small
// file a session that had a role; the file's lock orders two beginnings.
func Role(state string, ev *dialect.Event, get func(string) string, warn func(string, error)) string {
	role := quick.Role(get(RoleVar))
	if !slices.Contains(Roles(), role) {
		role = ""
	}
	if state == "" || ev.Session == "" {
		return role
	}
	file := filepath.Join(state, "sessions", plan.Key{Dir: ev.Client, Vars: ev.Session}.Name()+".role")
	note := ev.Client + "\n" + ev.Session + "\n"
	if role == "" {
		return noted(file, note)
	}
	if ev.Kind == dialect.SessionStart && noted(file, note) != role && !suspect.String(note) {
		if err := writeNote(file, note+role+"\n"); err != nil {
			warn("the session's role could not be noted", err)
		}
	}
	return role
}

// noted is the role in a note that begins with head, "" where there is none.
func noted(file, head string) string {
	data, err := plan.ReadFile(file, 4096)
	if err != nil || len(data) <= len(head) || string(data[:len(head)]) != head || data[len(data)-1] != '\n' {
		return ""
	}
	role := string(data[len(head) : len(data)-1])
	if !slices.Contains(Roles(), role) {
		return ""
	}
	return role
}

func writeNote(file, text string) error {
	if err := durable.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	unlock, err := durable.TryLock(file + ".lock")
	if err != nil {
		return err
	}
	werr := durable.WriteFile(file, []byte(text), 0o600)
	if err := unlock(); werr == nil {
		werr = err
	}
	return werr
}
