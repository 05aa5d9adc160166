package mcpserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Core is an SDK server behind everything that the SDK leaves to its user, and
// nothing of reprise: the fixture for the conformance suite is built on it as
// much as the real server.
type Core struct {
	SDK *mcp.Server

	impl *mcp.Implementation
	opts *mcp.ServerOptions
	log  *slog.Logger

	mu      sync.Mutex
	serving bool
}

// NewCore makes an SDK server with our middleware in front of it.
func NewCore(impl *mcp.Implementation, opts *mcp.ServerOptions, log *slog.Logger) *Core {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	c := &Core{impl: impl, opts: opts, log: log}
	c.SDK = mcp.NewServer(impl, opts)
	c.SDK.AddReceivingMiddleware(c.recoverPanics, c.answerLateInitialize)
	return c
}

// recoverPanics turns a panic in any handler into an error of that one
// request. The SDK lets it end the process.
func (c *Core) recoverPanics(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (res mcp.Result, err error) {
		defer func() {
			if p := recover(); p != nil {
				c.log.LogAttrs(ctx, slog.LevelError, LogError, slog.String("method", method),
					slog.String("error", fmt.Sprint("panic: ", p)), slog.String("stack", string(debug.Stack())))
				res, err = nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: fmt.Sprintf("internal error in %s: %v", method, p)}
			}
		}()
		return next(ctx, method, req)
	}
}

// answerLateInitialize answers initialize on a connection that has used
// server/discover, or initialize, before. Real clients probe with discover and
// then shake hands; the SDK calls that a duplicate.
func (c *Core) answerLateInitialize(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		ss, ok := req.GetSession().(*mcp.ServerSession)
		if method != "initialize" || !ok || ss.InitializeParams() == nil {
			return next(ctx, method, req)
		}
		params, ok := req.GetParams().(*mcp.InitializeParams)
		if !ok || params == nil {
			return next(ctx, method, req)
		}
		return &mcp.InitializeResult{
			ProtocolVersion: c.negotiate(params.ProtocolVersion),
			Capabilities:    c.capabilities(),
			Instructions:    c.opts.Instructions,
			ServerInfo:      c.impl,
		}, nil
	}
}

// negotiate is the SDK's rule for the handshake: the client's revision if it
// is one of those with a handshake, else the newest of them.
func (c *Core) negotiate(asked string) string {
	var newest string
	for _, v := range mcp.SupportedProtocolVersions() {
		if v >= stateless {
			continue
		}
		if v == asked {
			return v
		}
		if newest == "" {
			newest = v
		}
	}
	return newest
}

// capabilities are what the SDK would announce.
func (c *Core) capabilities() *mcp.ServerCapabilities {
	caps := mcp.ServerCapabilities{}
	if c.opts.Capabilities != nil {
		caps = *c.opts.Capabilities
	}
	if c.opts.CompletionHandler != nil && caps.Completions == nil {
		caps.Completions = &mcp.CompletionCapabilities{}
	}
	return &caps
}

// knownMethod reports whether a client may call a method. Others are refused by the
// guard, at once and in every state of the session.
func knownMethod(method string) bool {
	switch method {
	case "initialize", "ping", "server/discover",
		"tools/list", "tools/call",
		"resources/list", "resources/templates/list", "resources/read", "resources/subscribe", "resources/unsubscribe",
		"prompts/list", "prompts/get", "completion/complete",
		"logging/setLevel", "subscriptions/listen":
		return true
	}
	return false
}

// knownNotification reports whether a client may tell the server that. Others are dropped.
func knownNotification(method string) bool {
	switch method {
	case "notifications/initialized", "notifications/cancelled", "notifications/progress", "notifications/roots/list_changed":
		return true
	}
	return false
}

// needsParams reports whether a call makes no sense without parameters.
func needsParams(method string) bool {
	switch method {
	case "ping", "server/discover", "tools/list", "resources/list", "resources/templates/list", "prompts/list":
		return false
	}
	return true
}

// leaveTime bounds the end of a session: whatever hangs by then is left to the
// end of the process.
const leaveTime = 300 * time.Millisecond

// serveStdio serves one client over in and out until in ends or ctx does.
func (c *Core) serveStdio(ctx context.Context, in io.Reader, out io.Writer) error {
	c.mu.Lock()
	if c.serving {
		c.mu.Unlock()
		return errors.New("serve MCP over stdio: this server has a client already")
	}
	c.serving = true
	c.mu.Unlock()

	guard := &stdioGuard{in: in, out: out, limit: maxMessage, drain: drainTime, most: maxCalls, known: knownMethod}
	session, err := c.SDK.Connect(context.WithoutCancel(ctx), guard, nil)
	if err != nil {
		return fmt.Errorf("serve MCP over stdio: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- session.Wait() }()
	select {
	case err = <-ended:
		return stdioError(err)
	case <-ctx.Done():
	case <-guard.conn.over:
		// A client that closes its end and reads no answer leaves writers
		// behind that nothing can wake; they must not keep the server.
		select {
		case err = <-ended:
			return stdioError(err)
		case <-time.After(leaveTime):
			return nil
		}
	}
	// Closing the guard is the end of input to the SDK, and that cancels the
	// calls under way, which its own Close would wait for.
	guard.conn.Close()
	select {
	case <-ended:
	case <-time.After(leaveTime):
	}
	return nil
}

// stdioError drops what is no fault: the client closed its end.
func stdioError(err error) error {
	if err == nil || errors.Is(err, io.EOF) || errors.Is(err, mcp.ErrConnectionClosed) {
		return nil
	}
	return fmt.Errorf("serve MCP over stdio: %w", err)
}

// ServeStdio serves one client over in and out. It returns when in ends or
// ctx does (a signal, the death of the parent: the caller's to watch), within
// a second in every case, and cuts the lifelines of the runs before.
func (s *Server) ServeStdio(ctx context.Context, in io.Reader, out io.Writer) error {
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	s.background(inner)
	err := s.serveStdio(inner, in, out)
	return s.ended(ctx, "end of input", err)
}

// ended closes the server down, for the reason that is nearest to the truth,
// and hands err on.
func (s *Server) ended(ctx context.Context, why string, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		why = cause.Error()
	}
	if err != nil {
		why = err.Error()
	}
	s.shutdown(why)
	return err
}

// ServeStdio serves the bare core over in and out.
func (c *Core) ServeStdio(ctx context.Context, in io.Reader, out io.Writer) error {
	return c.serveStdio(ctx, in, out)
}
