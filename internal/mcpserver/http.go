package mcpserver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"reprise/internal/config"
	"reprise/internal/mcpserver/issuer"
	"reprise/internal/mcpserver/replay"
)

const (
	// EndpointPath is where HTTP clients find the server.
	EndpointPath = "/mcp"

	metadataPath = "/.well-known/oauth-protected-resource"

	headerTime  = 10 * time.Second
	bodyTime    = 30 * time.Second
	idleTime    = 2 * time.Minute
	maxHeaders  = 64 << 10
	httpGrace   = 300 * time.Millisecond
	corsHeaders = "Authorization, Content-Type, Accept, Mcp-Protocol-Version, Mcp-Session-Id, Last-Event-ID, Mcp-Method, Mcp-Name"
)

// HTTPOptions say how ServeHTTP listens and whom it lets in.
type HTTPOptions struct {
	Addr           string       // host:port; port 0 takes a free one
	AllowedOrigins []string     // scheme://host[:port] of web pages, beside this server's own
	OAuth          config.OAuth // authorization server, if any
	Tokens         *TokenStore  // static tokens; nil means none
	NoAuth         bool         // let everybody on this machine in; loopback only
	Now            func() time.Time

	// PublicURL is the endpoint's address as clients see it, where a proxy stands
	// before it. Addresses are never made of what a request says (Host,
	// X-Forwarded-*): whoever sends one could put its own there.
	PublicURL string
	Limits    config.HTTPLimits

	// Ready is called once, when requests are accepted.
	Ready func(net.Addr)

	scopeFor func(method, tool string) string // nil: any scope of ours will do
}

// ServeHTTP serves the bare core over Streamable HTTP until ctx ends.
//
// It refuses to listen where others than this machine could reach it without
// authentication, and on loopback too unless NoAuth says so: any program and,
// over DNS rebinding, any web page can reach a loopback port.
func (c *Core) ServeHTTP(ctx context.Context, o HTTPOptions) error {
	if o.Now == nil {
		return errors.New("serve MCP over HTTP: HTTPOptions.Now is required")
	}
	host, _, err := net.SplitHostPort(o.Addr)
	if err != nil {
		return fmt.Errorf("serve MCP over HTTP: address %q: %w: give host:port, as in 127.0.0.1:8765", o.Addr, err)
	}
	if o.OAuth.Resource == "" {
		o.OAuth.Resource = o.PublicURL
	}
	if o.PublicURL == "" {
		o.PublicURL = o.OAuth.Resource
	}
	iss, err := issuer.New(o.OAuth, o.Now, func(err error) {
		c.log.LogAttrs(context.Background(), slog.LevelError, LogError, slog.String("tool", "http"), slog.String("error", err.Error()))
	})
	if err != nil {
		return fmt.Errorf("serve MCP over HTTP: %w", err)
	}
	if err := o.checkAccess(host, iss != nil); err != nil {
		return fmt.Errorf("serve MCP over HTTP: %w", err)
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, network(host), o.Addr)
	if err != nil {
		return fmt.Errorf("serve MCP over HTTP: %w: stop what uses the port, or choose another with --http", err)
	}
	life, cancel := context.WithCancel(ctx)
	defer cancel()
	front := newGate(o, iss, listener.Addr())
	server := &http.Server{
		Handler:           front.wrap(c.httpHandler(o)),
		ReadHeaderTimeout: headerTime, IdleTimeout: idleTime, MaxHeaderBytes: maxHeaders,
		ErrorLog:    slog.NewLogLogger(c.log.Handler(), slog.LevelWarn),
		BaseContext: func(net.Listener) context.Context { return life },
	}
	if o.Ready != nil {
		o.Ready(listener.Addr())
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	select {
	case err := <-ended:
		return fmt.Errorf("serve MCP over HTTP: %w", err)
	case <-ctx.Done():
	}
	cancel() // calls that wait end now
	grace, stop := context.WithTimeout(context.Background(), httpGrace)
	defer stop()
	if err := server.Shutdown(grace); err != nil {
		server.Close() // streams that clients keep open
	}
	<-ended
	return nil
}

// network is what an address is listened on: 0.0.0.0 is every IPv4 address, of which "tcp"
// makes every IPv6 one, too, and who wrote it may have a firewall for the one alone.
func network(host string) string {
	if ip := net.ParseIP(host); ip != nil && ip.To4() != nil {
		return "tcp4"
	}
	return "tcp"
}

// sessionIdle is how long a session lives in which nothing happens.
const sessionIdle = 30 * time.Minute

// eras serves both forms of the protocol: a client that shakes hands gets a
// session, which it can go on with when its connection breaks, and one of the
// form without a handshake gets an answer to each request by itself. The SDK has
// a handler for either, and neither takes the other's clients.
type eras struct {
	sessions, single http.Handler
	store            *replay.Store
	most             int // sessions of one owner
}

func (c *Core) httpHandler(o HTTPOptions) *eras {
	server := func(*http.Request) *mcp.Server { return c.SDK }
	options := mcp.StreamableHTTPOptions{
		MaxRequestBodyBytes: maxMessage,
		// The gate checks Host, and knows the names that the settings allow.
		DisableLocalhostProtection: true,
	}
	e := &eras{store: replay.New(o.Now), most: max(1, o.Limits.Sessions)}
	single, sessions := options, options
	single.Stateless, single.PropagateRequestCancellation = true, true
	sessions.SessionTimeout, sessions.EventStore = sessionIdle, e.store
	e.single = mcp.NewStreamableHTTPHandler(server, &single)
	e.sessions = mcp.NewStreamableHTTPHandler(server, &sessions)
	return e
}

func (e *eras) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	// Proxies that gather an answer before they pass it on would hold back what
	// is streamed; this is how several are told.
	w.Header().Set("X-Accel-Buffering", "no")
	id := r.Header.Get("Mcp-Session-Id")
	if id != "" {
		defer e.store.Enter(id)()
		e.sessions.ServeHTTP(w, r)
		return
	}
	if r.Header.Get("Mcp-Protocol-Version") >= stateless || !begins(r) {
		e.single.ServeHTTP(w, r)
		return
	}
	owner := ""
	if info := auth.TokenInfoFromContext(r.Context()); info != nil {
		owner = info.UserID
	}
	end, ok := e.store.Room(owner, e.most)
	if !ok {
		answerOver(w, &overQuota{time.Minute, fmt.Sprintf("%d sessions are in use, which is the most (http.limits.sessions): end one", e.most)})
		return
	}
	for _, old := range end {
		e.end(r, old)
	}
	e.sessions.ServeHTTP(w, r)
}

// begins reports whether a request shakes hands. The gate has read its body.
func begins(r *http.Request) bool {
	body, ok := r.Body.(*wholeBody)
	if !ok {
		return false
	}
	for _, c := range body.calls {
		if c.method == "initialize" {
			return true
		}
	}
	return false
}

// end ends a session of whoever makes r, as its client could.
func (e *eras) end(r *http.Request, id string) {
	del := r.Clone(r.Context())
	del.Method, del.Body = http.MethodDelete, http.NoBody
	del.Header.Set("Mcp-Session-Id", id)
	e.sessions.ServeHTTP(nowhere{}, del)
}

// nowhere takes an answer that nobody waits for.
type nowhere struct{}

func (nowhere) Header() http.Header         { return http.Header{} }
func (nowhere) Write(p []byte) (int, error) { return len(p), nil }
func (nowhere) WriteHeader(int)             {}

// ServeHTTP serves clients over Streamable HTTP until ctx ends. All share one
// job table.
func (s *Server) ServeHTTP(ctx context.Context, o HTTPOptions) error {
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	s.background(inner)
	if o.Now == nil {
		o.Now = s.deps.Now
	}
	o.scopeFor = s.scopeFor
	err := s.Core.ServeHTTP(inner, o)
	return s.ended(ctx, "stopped", err)
}

// checkAccess refuses what would let in whom nobody meant to.
func (o HTTPOptions) checkAccess(host string, hasIssuer bool) error {
	local := issuer.Loopback(host)
	if o.NoAuth {
		if o.PublicURL != "" {
			return fmt.Errorf("--no-auth is for this machine only, and http.public_url says that clients come through %s: leave it out and make a token with `reprise mcp token create NAME`", o.PublicURL)
		}
		if !local {
			return fmt.Errorf("--no-auth is for loopback only, and %s can be reached from other machines: leave it out and make a token with `reprise mcp token create NAME`", o.Addr)
		}
		return nil
	}
	if hasIssuer {
		return nil
	}
	if o.Tokens != nil {
		have, err := o.Tokens.List()
		if err != nil {
			return err
		}
		if len(have) > 0 {
			return nil
		}
	}
	if local {
		return errors.New("there is no token yet, so nobody could connect: make one with `reprise mcp token create NAME`, configure http.oauth, or let every program on this machine in with --no-auth")
	}
	return fmt.Errorf("refused to listen on %s, which other machines can reach, without authentication: make a token with `reprise mcp token create NAME`, or configure http.oauth", o.Addr)
}
