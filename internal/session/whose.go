package session

import (
	"context"
	"strings"
	"time"

	"reprise/internal/hook"
)

// Caller is what the protocol says of the client that calls a tool. Both may be "".
type Caller struct {
	Client  string // as hooks name it; "" = another one, or not known
	Session string
}

type callerKey struct{}

// WithCaller is a context of a call by that client.
func WithCaller(ctx context.Context, c Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, c)
}

// ClientNamed is the client that calls itself so when it opens a connection, "" for
// others. Measured with Claude Code 2.1, Codex 0.171, Gemini CLI 0.61, Copilot CLI 1.0.
func ClientNamed(name string) string {
	for prefix, client := range map[string]string{"claude-code": "claude", "codex": "codex", "gemini-cli": "gemini", "copilot": "copilot"} {
		if strings.HasPrefix(strings.ToLower(name), prefix) {
			return client
		}
	}
	return ""
}

// sessionVars are the variables in which clients tell what they start which session it
// is of: servers and commands, but Codex commands alone. Gemini CLI tells its hooks only.
var sessionVars = [...][2]string{{"claude", "CLAUDE_CODE_SESSION_ID"}, {"codex", "CODEX_THREAD_ID"}, {"copilot", "COPILOT_AGENT_SESSION_ID"}}

const geminiVar = "GEMINI_CLI" // set for all that Gemini CLI starts

// ClientSession is the id of the client's session that a call or a command is of, ""
// where that cannot be told for sure: a client that was started by another one has the
// other's variables, too. state is the directory of what is known of sessions, since
// when the client must have been there.
func ClientSession(ctx context.Context, get func(string) string, state string, since time.Time) string {
	c, _ := ctx.Value(callerKey{}).(Caller)
	if c.Session != "" {
		return c.Session
	}
	found, several := "", false
	for _, v := range sessionVars {
		id := get(v[1])
		if id != "" && v[0] == c.Client {
			return id
		}
		several = several || id != "" && found != ""
		if id != "" {
			found = id
		}
	}
	switch {
	case c.Client == "gemini", c.Client == "" && found == "" && get(geminiVar) != "":
		return hook.OnlySession(state, "gemini", since)
	case several, c.Client != "":
		return ""
	}
	return found
}
