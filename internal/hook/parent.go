package hook

import (
	"path/filepath"
	"strings"
	"time"

	"reprise/internal/agent/dialect"
	"reprise/internal/durable"
	"reprise/internal/hook/plan"
	"reprise/internal/redact/suspect"
)

// TurnExt ends the names of the notes, in <state>/sessions, by which an event finds
// the one that it belongs to: of a session its beginning and its last prompt, of
// a subagent its beginning. One small file each, replaced as a whole; without it
// an event has no parent, and nothing else is lost.
const TurnExt = ".turn"

func turnFile(state, client, session, agent string) string {
	if agent != "" {
		session += "\x00" + agent
	}
	return filepath.Join(state, "sessions", plan.Key{Dir: client, Vars: session}.Name()+TurnExt)
}

func turnHead(client, session, agent string) string {
	return client + "\n" + session + "\n" + agent + "\n"
}

// readTurn is what a note says: of a session (no agent) the ids of its beginning
// and of its last prompt, of a subagent that of its beginning.
func readTurn(state, client, session, agent string) (began, prompt string) {
	data, err := plan.ReadFile(turnFile(state, client, session, agent), 4096)
	if err != nil {
		return "", ""
	}
	rest, ok := strings.CutPrefix(string(data), turnHead(client, session, agent))
	if !ok || !strings.HasSuffix(rest, "\n") {
		return "", ""
	}
	began, prompt, _ = strings.Cut(rest[:len(rest)-1], "\n")
	return idOrNone(began), idOrNone(prompt)
}

// OnlySession is the session of a client that has had a prompt, or begun, since a time,
// where that is only one; else "". By that a client's session is known to what the
// client starts without saying so.
func OnlySession(state, client string, since time.Time) string {
	list, err := durable.ReadDir(filepath.Join(state, "sessions"))
	if err != nil {
		return ""
	}
	found := ""
	for _, e := range list {
		info, err := e.Info()
		if filepath.Ext(e.Name()) != TurnExt || err != nil || info.ModTime().Before(since) {
			continue
		}
		data, err := plan.ReadFile(filepath.Join(state, "sessions", e.Name()), 4096)
		head := strings.SplitN(string(data), "\n", 4)
		if err != nil || len(head) < 4 || head[0] != client || head[2] != "" {
			continue
		}
		if found != "" && found != head[1] {
			return ""
		}
		found = head[1]
	}
	return found
}

// idOrNone is a text if it has the form of an event's id.
func idOrNone(s string) string {
	if len(s) != 36 {
		return ""
	}
	for i := range len(s) {
		switch c := s[i]; {
		case c >= '0' && c <= '9', c >= 'a' && c <= 'f', c == '-':
		default:
			return ""
		}
	}
	return s
}

// Parent is the id of the event that an event of a session belongs to: a prompt,
// the session's end and a compaction to the session's beginning; what happens in a
// turn to its prompt, and in a subagent to that one's beginning, which belongs to
// the prompt. It is empty where that was not seen.
func Parent(state string, ev *dialect.Event) string {
	if state == "" || ev.Session == "" || ev.Kind == dialect.SessionStart {
		return ""
	}
	if ev.Agent != "" && ev.Kind != dialect.SubagentStarted {
		if began, _ := readTurn(state, ev.Client, ev.Session, ev.Agent); began != "" {
			return began
		}
	}
	began, prompt := readTurn(state, ev.Client, ev.Session, "")
	switch ev.Kind {
	case dialect.Prompt, dialect.SessionEnd, dialect.CompactBefore, dialect.CompactAfter:
		return began
	}
	if prompt != "" {
		return prompt
	}
	return began
}

// noteTurn notes an event that others will belong to.
func noteTurn(state string, ev *dialect.Event, id string) error {
	if state == "" || ev.Session == "" || id == "" || strings.ContainsAny(ev.Session+ev.Agent, "\r\n") {
		return nil
	}
	agent, text := "", ""
	switch ev.Kind {
	case dialect.SessionStart:
		if ev.Source == "compact" {
			return nil // it goes on
		}
		text = id + "\n\n"
	case dialect.Prompt:
		if ev.Agent != "" {
			return nil
		}
		began, _ := readTurn(state, ev.Client, ev.Session, "")
		text = began + "\n" + id + "\n"
	case dialect.SubagentStarted:
		if agent = ev.Agent; agent == "" {
			return nil
		}
		text = id + "\n"
	default:
		return nil
	}
	head := turnHead(ev.Client, ev.Session, agent)
	if suspect.String(head) {
		return nil
	}
	file := turnFile(state, ev.Client, ev.Session, agent)
	if err := durable.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	return durable.WriteFileHot(file, []byte(head+text), 0o600)
}
