package hookmain

import (
	"reprise/internal/agent/dialect"
	"reprise/internal/hook"
)

// role is the session's role: from the environment, else the one that the
// session was started with.
func (p *program) role(ev *dialect.Event) string {
	return hook.Role(p.dirs.State, ev, p.env.Get, p.warn)
}
