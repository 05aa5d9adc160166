package mcpserver

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"unicode/utf8"
)

// Messages of the log. They are part of its format: `reprise compliance` and
// people's own scripts look for them.
const (
	LogStarted   = "Bridge started"
	LogToolCall  = "Tool call received"
	LogResource  = "Resource read"
	LogLaunched  = "spawn_agent: subprocess launched"
	LogSync      = "spawn_agent: sync completion"
	LogHandoff   = "spawn_agent: async handoff"
	LogPoll      = "check_agent: status poll"
	LogCollected = "check_agent: result collected"
	LogAppend    = "append_file: write"
	LogExpired   = "Job expired"
	LogTimeout   = "Sub-agent killed (timeout)"
	LogError     = "Error"
	LogShutdown  = "Bridge shutdown"
)

// logParam is the most runes of one parameter's value in the log.
const logParam = 80

// logCall notes a tool call. The values are cut and go through the redactor
// first, whole, so that no half of a secret is left at the cut.
func (s *Server) logCall(ctx context.Context, tool string, raw json.RawMessage) {
	s.logStart(ctx)
	if !s.log.Enabled(ctx, slog.LevelInfo) {
		return
	}
	s.log.LogAttrs(ctx, slog.LevelInfo, LogToolCall, slog.String("tool", tool), slog.Any("params", s.shortParams(raw)))
}

// logStart notes the start, once and before the first line of anything else.
// Not at the start itself: clients start copies of a server only to look at
// it, and the first line makes the log file.
func (s *Server) logStart(ctx context.Context) {
	s.startLog.Do(func() {
		s.log.LogAttrs(ctx, slog.LevelInfo, LogStarted, slog.String("config", s.deps.Source), slog.String("version", s.deps.Version))
	})
}

// logResource notes that a client read a resource.
func (s *Server) logResource(ctx context.Context, uri string) {
	s.logStart(ctx)
	s.log.LogAttrs(ctx, slog.LevelInfo, LogResource, slog.String("uri", shorten(uri, 200)))
}

func (s *Server) shortParams(raw json.RawMessage) map[string]any {
	var given map[string]json.RawMessage
	if json.Unmarshal(raw, &given) != nil {
		return map[string]any{"bytes": len(raw)}
	}
	out := map[string]any{}
	for name, value := range given {
		if len(out) == 20 {
			break
		}
		out[shorten(name, 40)] = s.shortValue(value)
	}
	return out
}

func (s *Server) shortValue(raw json.RawMessage) any {
	var v any
	if json.Unmarshal(raw, &v) != nil {
		return fmt.Sprintf("(%d bytes)", len(raw))
	}
	switch v := v.(type) {
	case float64, bool, nil:
		return v
	case string:
		return s.short(v)
	}
	return s.short(string(raw))
}

func (s *Server) short(v string) string {
	if s.deps.Redact == nil {
		return fmt.Sprintf("(%d characters)", utf8.RuneCountInString(v))
	}
	// A redactor's time grows with the text, and this one is only for a log
	// line: a long value is looked at only as far as a secret may reach.
	const far = 4096
	if len(v) > far {
		clean, _ := s.deps.Redact(v[:far])
		return fmt.Sprintf("%s… (%d bytes)", string([]rune(shorten(clean, logParam))[:min(logParam, utf8.RuneCountInString(clean))]), len(v))
	}
	clean, _ := s.deps.Redact(v)
	return shorten(clean, logParam)
}

// logError notes an error of a tool call, which the client is told of too.
func (s *Server) logError(ctx context.Context, tool string, err error) {
	s.log.LogAttrs(ctx, slog.LevelError, LogError, slog.String("tool", tool), slog.String("error", s.clean(err.Error())))
}

func (s *Server) clean(v string) string {
	if s.deps.Redact != nil {
		v, _ = s.deps.Redact(v)
	}
	return shorten(v, 1000)
}
