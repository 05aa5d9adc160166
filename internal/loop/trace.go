package loop

import (
	"context"
	"crypto/sha256"
	"strings"
	"time"

	"reprise/internal/agent"
	"reprise/internal/loop/core"
	"reprise/internal/loop/said"
	"reprise/internal/loop/tell"
	"reprise/internal/queue"
	"reprise/internal/run"
)

// trace tells of an iteration. It is made of what was recorded, so that a loop that took
// over tells the same.
func (l *Loop) trace(ctx context.Context, it Iteration, item queue.Item, r *run.Record, out *said.Stream) {
	if l.opt.Trace == nil {
		return
	}
	if err := l.opt.Trace(ctx, spansOf(l.opt.Project, it, item, r, out)); err != nil {
		l.warn("tell of "+it.Item+" by OpenTelemetry", err)
	}
}

// spansOf are the spans of an iteration; r is nil where no run was started.
func spansOf(project string, it Iteration, item queue.Item, r *run.Record, out *said.Stream) []tell.Span {
	began, settled := it.Started, it.Ended
	for _, e := range item.History {
		if e.Fence != uint64(it.Fence) {
			continue
		}
		if e.Op == queue.OpClaim {
			began = e.At
		} else {
			settled = e.At
		}
	}
	if began.IsZero() {
		began = settled
	}
	claim := core.Claim{Item: core.Item{ID: it.Item}, Fence: it.Fence}
	trace := sha256.Sum256([]byte(it.Loop + "\x00" + runKey(claim)))
	t := tracer{trace: [16]byte(trace[:16])}
	root := t.add([8]byte{}, "iteration "+it.Item, began, it.Ended, failureOf(it),
		"reprise.project", project, "reprise.loop.id", it.Loop, "reprise.iteration", int64(it.N), "reprise.worker", int64(it.Worker),
		"reprise.item.id", it.Item, "reprise.item.fence", it.Fence, "reprise.item.attempts", int64(item.Attempts), "reprise.fate", string(it.Fate),
		"reprise.completed", it.Completed, "reprise.succeeded", it.Succeeded, "reprise.verified", string(it.Verified), "reprise.branch", it.Branch)
	if r == nil {
		return t.spans
	}
	ended := it.Ended
	if r.EndedAt != nil {
		ended = *r.EndedAt
	}
	t.add(root, "prepare", began, r.StartedAt, "")
	name := orElse(r.Client, "agent")
	attrs := []any{
		"gen_ai.operation.name", "invoke_agent", "gen_ai.agent.name", name, "gen_ai.agent.id", r.ID, "gen_ai.provider.name", provider(r.Client),
		"gen_ai.request.model", r.Model, "gen_ai.conversation.id", it.Session, "reprise.turns", int64(it.Turns), "reprise.tool_calls", int64(it.ToolCalls),
		"reprise.cost_usd", it.CostUSD, "reprise.run.status", string(r.Status),
	}
	if res := r.Result; res != nil {
		u := res.Usage
		attrs = append(attrs, "gen_ai.usage.input_tokens", u.InputTokens+u.CacheCreationTokens+u.CacheReadTokens, "gen_ai.usage.output_tokens", u.OutputTokens,
			"gen_ai.usage.cache_read.input_tokens", u.CacheReadTokens, "gen_ai.usage.cache_creation.input_tokens", u.CacheCreationTokens)
	}
	class := ""
	if !it.Completed || it.Class != "" && it.Class != string(core.GateFail) {
		class = orElse(it.Class, "_OTHER")
	}
	work := t.add(root, "invoke_agent "+name, r.StartedAt, ended, class, attrs...)
	t.tools(work, out, r.StartedAt, ended)
	if it.Verified != core.NotLooked {
		class = ""
		if it.Verified == core.GateFailed {
			class = string(core.GateFail)
		}
		t.add(root, "verify", ended, settled, class, "reprise.verified", string(it.Verified))
	}
	t.add(root, "archive", settled, it.Ended, "")
	return t.spans
}

// failureOf is the class of an iteration that did not succeed.
func failureOf(it Iteration) string {
	if it.Fate == core.Done {
		return ""
	}
	return orElse(it.Class, string(it.Fate))
}

// provider is whose models a client asks.
func provider(client string) string {
	switch client {
	case agent.KindClaude:
		return "anthropic"
	case agent.KindCodex, agent.KindCopilot:
		return "openai"
	case agent.KindGemini:
		return "gcp.gemini"
	}
	return orElse(client, "_OTHER")
}

// tracer numbers the spans of one trace.
type tracer struct {
	trace [16]byte
	spans []tell.Span
}

// add adds a span; what is empty of its attributes is left out.
func (t *tracer) add(parent [8]byte, name string, start, end time.Time, class string, attrs ...any) [8]byte {
	sum := sha256.Sum256(append(t.trace[:], byte(len(t.spans)>>8), byte(len(t.spans))))
	s := tell.Span{Trace: t.trace, ID: [8]byte(sum[:8]), Parent: parent, Name: name, Start: start, End: end, Error: class}
	if end.Before(start) { // two processes' clocks, or one that was set
		s.End = start
	}
	for i := 0; i < len(attrs); i += 2 {
		if attrs[i+1] != "" {
			s.Attributes = append(s.Attributes, tell.Attribute{Name: attrs[i].(string), Value: attrs[i+1]})
		}
	}
	if class != "" {
		s.Attributes = append(s.Attributes, tell.Attribute{Name: "error.type", Value: class})
	}
	t.spans = append(t.spans, s)
	return s.ID
}

// tools adds the calls of a run that say when they were made, with the time of their
// result where there is one.
func (t *tracer) tools(work [8]byte, out *said.Stream, began, ended time.Time) {
	if out == nil {
		return
	}
	for _, c := range out.Calls {
		at, err := time.Parse(time.RFC3339Nano, c.At)
		if err != nil || at.Before(began.Add(-time.Minute)) || at.After(ended.Add(time.Minute)) {
			continue // a client without times
		}
		over, class := at, ""
		if res, ok := out.Results[c.ID]; ok {
			if done, err := time.Parse(time.RFC3339Nano, res.At); err == nil {
				over = done
			}
			if res.Failed {
				class = "tool_error"
			}
		}
		kind := "function"
		if strings.HasPrefix(c.Name, "mcp__") {
			kind = "extension"
		}
		t.add(work, "execute_tool "+c.Name, at, over, class, "gen_ai.operation.name", "execute_tool", "gen_ai.tool.name", c.Name, "gen_ai.tool.call.id", c.ID, "gen_ai.tool.type", kind)
	}
}
