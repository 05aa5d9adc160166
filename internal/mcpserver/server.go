package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"reprise/internal/session"
)

// Server is one MCP server. It may serve stdio once, or HTTP to many.
type Server struct {
	*Core
	deps  Deps
	log   *slog.Logger
	jobs  *jobTable
	tools []tool

	startLog sync.Once

	ensureMu sync.Mutex
	ensured  bool // the memory directory has been prepared

	bgOnce sync.Once

	spawning sync.Mutex // runs of those who have limits are started one at a time
}

// New makes a server. It writes nothing, takes no lock and opens no port. The
// error is about Toolsets.
func New(d Deps) (*Server, error) {
	if d.Runs == nil || d.Memory == nil || d.Search == nil || d.Now == nil {
		return nil, errors.New("make MCP server: Runs, Memory, Search and Now are required")
	}
	d = d.withDefaults()
	tools, err := choose(d)
	if err != nil {
		return nil, err
	}
	s := &Server{deps: d, log: d.Log, tools: tools, jobs: newJobTable(d)}
	s.Core = NewCore(&mcp.Implementation{Name: "reprise", Title: "reprise", Version: d.Version}, &mcp.ServerOptions{
		Instructions: instructions(tools),
		// No list of ours changes while a server lives, and logging is a part
		// of the protocol that is on its way out.
		Capabilities: &mcp.ServerCapabilities{
			Tools: &mcp.ToolCapabilities{}, Resources: &mcp.ResourceCapabilities{}, Prompts: &mcp.PromptCapabilities{},
		},
		CompletionHandler: s.complete,
		SetCacheable: func(_ context.Context, _ mcp.Request, c *mcp.Cacheable) {
			// What is in memory is nobody else's, and may change at any time.
			c.CacheScope, c.TTLMs = "private", 0
		},
		SupportedProtocolVersions: versions(d.LegacyOnly),
		PageSize:                  200,
	}, d.Log)
	s.SDK.AddReceivingMiddleware(s.checkScope, s.listSchemas)
	for _, t := range tools {
		s.SDK.AddTool(&mcp.Tool{Name: t.name, InputSchema: noSchema}, s.handler(t))
	}
	s.addResources()
	s.addPrompts()
	return s, nil
}

// noSchema stands for the schema of each tool in the SDK's own list. The SDK reads a schema
// twice when a tool is added, for a type and for names of headers that ours have not, and calls
// are checked by [parseArgs]: so schemas are made when they are asked for.
var noSchema = json.RawMessage(`{"type":"object"}`)

// listSchemas puts the tools as clients see them into the list of tools.
func (s *Server) listSchemas(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		res, err := next(ctx, method, req)
		list, ok := res.(*mcp.ListToolsResult)
		if err != nil || !ok {
			return res, err
		}
		for i, listed := range list.Tools {
			if n := slices.IndexFunc(s.tools, func(t tool) bool { return t.name == listed.Name }); n >= 0 {
				list.Tools[i] = s.tools[n].definition()
			}
		}
		return list, nil
	}
}

// versions narrows the protocol revisions, nil meaning all.
func versions(legacyOnly bool) []string {
	if !legacyOnly {
		return nil
	}
	var out []string
	for _, v := range mcp.SupportedProtocolVersions() {
		if v < stateless {
			out = append(out, v)
		}
	}
	return out
}

// stateless is the first protocol revision without a handshake.
const stateless = "2026-07-28"

// call is one call of a tool.
type call struct {
	ctx    context.Context // ends when the client cancels the call or goes
	args   args
	req    *mcp.CallToolRequest
	server *Server
}

// handler checks a call's arguments, runs the tool and bounds the answer. All
// that goes wrong is an error of the tool, which the model can read and act
// on, never one of the protocol.
func (s *Server) handler(t tool) mcp.ToolHandler {
	return func(ctx context.Context, req *mcp.CallToolRequest) (res *mcp.CallToolResult, _ error) {
		defer func() {
			if p := recover(); p != nil {
				s.log.LogAttrs(ctx, slog.LevelError, LogError, slog.String("tool", t.name),
					slog.String("error", fmt.Sprint("panic: ", p)), slog.String("stack", string(debug.Stack())))
				res = failure(fmt.Errorf("%s: internal error, which is a fault of reprise: %v. Nothing else is affected; the log has the details", t.name, p))
			}
		}()
		s.logCall(ctx, t.name, req.Params.Arguments)
		a, err := parseArgs(t.name, t.params, req.Params.Arguments)
		if err != nil {
			s.logError(ctx, t.name, err)
			return failure(err), nil
		}
		ctx = session.WithCaller(ctx, callerOf(req))
		v, err := t.do(s, &call{ctx: ctx, args: a, req: req, server: s})
		if err == nil {
			res, err = success(v)
		}
		if err != nil {
			if ctx.Err() == nil {
				s.logError(ctx, t.name, err)
			}
			return failure(err), nil
		}
		return res, nil
	}
}

// callerOf is what a call says of its client: by the handshake or, since there is none,
// by each call. Codex adds its session.
func callerOf(req *mcp.CallToolRequest) session.Caller {
	name := ""
	if req.Session != nil && req.Session.InitializeParams() != nil && req.Session.InitializeParams().ClientInfo != nil {
		name = req.Session.InitializeParams().ClientInfo.Name
	}
	if req.Params == nil {
		return session.Caller{Client: session.ClientNamed(name)}
	}
	if info, ok := req.Params.Meta["io.modelcontextprotocol/clientInfo"].(map[string]any); ok && name == "" {
		name, _ = info["name"].(string)
	}
	c := session.Caller{Client: session.ClientNamed(name)}
	if id, ok := req.Params.Meta["sessionId"].(string); ok && c.Client == "codex" && len(id) <= 100 {
		c.Session = id
	}
	return c
}

// wait waits for done, until ctx ends, and keeps the client informed.
func (c *call) wait(ctx context.Context, done <-chan struct{}, line func() string) {
	select {
	case <-done:
		return
	default:
	}
	stop := c.progress(line)
	defer stop()
	select {
	case <-done:
	case <-ctx.Done():
	}
}

// progress sends a progress notification every little while, if the client
// gave a token, until the function it returns is called. None is sent after
// that function has returned: a notification must not follow its answer.
func (c *call) progress(line func() string) (stop func()) {
	token := c.req.Params.GetProgressToken()
	if token == nil || c.req.Session == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(c.ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer func() {
			if p := recover(); p != nil {
				c.server.log.Error(LogError, "tool", c.req.Params.Name, "error", fmt.Sprint("panic in progress: ", p))
			}
		}()
		every := c.server.deps.ProgressEvery
		ticker := time.NewTicker(every)
		defer ticker.Stop()
		for waited := every; ; waited += every {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
			err := c.req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{
				ProgressToken: token, Progress: waited.Seconds(), Message: line(),
			})
			if err != nil {
				return // the client has gone; the run has not
			}
		}
	}()
	return func() { cancel(); <-ended }
}

// background starts what runs beside the calls: the sweep of expired jobs.
func (s *Server) background(ctx context.Context) {
	s.bgOnce.Do(func() { go s.jobs.serve(ctx, s.deps.SweepEvery) })
}

// stopTime is how long the server itself waits for its runs to end when it
// leaves.
const stopTime = 300 * time.Millisecond

// shutdown stops the runs of this server. An attached run holds a lifeline to
// this process: its supervisor stops it, TERM first and KILL after 5 s, when
// the line is cut, whether by StopAll here or by the end of the process. So
// the server need not stay for it, and is gone within a second while the
// supervisors finish.
func (s *Server) shutdown(why string) {
	active := s.jobs.running()
	ctx, cancel := context.WithTimeout(context.Background(), stopTime)
	defer cancel()
	stopped, err := s.deps.Runs.StopAll(ctx)
	started := true
	s.startLog.Do(func() { started = false }) // a server nobody called leaves no line
	if !started && stopped == 0 {
		return
	}
	attrs := []slog.Attr{slog.Int("active_jobs_killed", max(active, stopped)), slog.String("reason", why)}
	if err != nil && !errors.Is(err, context.DeadlineExceeded) {
		attrs = append(attrs, slog.String("error", err.Error()))
	}
	s.log.LogAttrs(context.Background(), slog.LevelInfo, LogShutdown, attrs...)
}

// Tools are the definitions that a client gets, as JSON, in order. It is for
// documents and tests.
func (s *Server) Tools() ([]json.RawMessage, error) {
	var out []json.RawMessage
	for _, t := range s.tools {
		data, err := encodeJSON(t.definition())
		if err != nil {
			return nil, err
		}
		out = append(out, data)
	}
	return out, nil
}
