package mcpserver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"reprise/internal/config"
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
	AllowedOrigins []string     // scheme://host[:port] of web pages, beyond loopback ones
	OAuth          config.OAuth // authorization server, if any
	Tokens         *TokenStore  // static tokens; nil means none
	NoAuth         bool         // let everybody on this machine in; loopback only
	Now            func() time.Time

	// Ready is called once, when requests are accepted.
	Ready func(net.Addr)

	// Stateful keeps sessions. The protocol without a handshake cannot be
	// spoken then, so only the conformance fixture, which has to send requests
	// to the client, uses it.
	Stateful bool
	Events   mcp.EventStore // stateful only
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
	life, cancel := context.WithCancel(ctx)
	defer cancel()
	iss, err := newIssuer(life, o.OAuth, o.Now, c.log)
	if err != nil {
		return fmt.Errorf("serve MCP over HTTP: %w", err)
	}
	if err := o.checkAccess(host, iss != nil); err != nil {
		return fmt.Errorf("serve MCP over HTTP: %w", err)
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", o.Addr)
	if err != nil {
		return fmt.Errorf("serve MCP over HTTP: %w: stop what uses the port, or choose another with --http", err)
	}
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

func (c *Core) httpHandler(o HTTPOptions) http.Handler {
	return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return c.SDK }, &mcp.StreamableHTTPOptions{
		Stateless: !o.Stateful, EventStore: o.Events, MaxRequestBodyBytes: maxMessage,
		SessionTimeout: 30 * time.Minute, PropagateRequestCancellation: true,
		// The gate checks Host, and knows the names that the settings allow.
		DisableLocalhostProtection: true,
	})
}

// ServeHTTP serves clients over Streamable HTTP until ctx ends. All share one
// job table.
func (s *Server) ServeHTTP(ctx context.Context, o HTTPOptions) error {
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	s.background(inner)
	if o.Now == nil {
		o.Now = s.deps.Now
	}
	err := s.Core.ServeHTTP(inner, o)
	return s.ended(ctx, "stopped", err)
}

// checkAccess refuses what would let in whom nobody meant to.
func (o HTTPOptions) checkAccess(host string, hasIssuer bool) error {
	local := loopbackHost(host)
	if o.NoAuth {
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

// gate is what a request passes before the SDK sees it: Host, Origin, token,
// size.
type gate struct {
	o        HTTPOptions
	issuer   *issuer
	local    bool
	hosts    []string // allowed in Host, lower case, without port
	origins  []string // allowed in Origin, lower case
	resource string   // this server's address, as in tokens
}

func newGate(o HTTPOptions, iss *issuer, addr net.Addr) *gate {
	host, _, _ := net.SplitHostPort(addr.String())
	g := &gate{o: o, issuer: iss, local: loopbackHost(host), resource: o.OAuth.Resource}
	if g.local {
		g.hosts = []string{"localhost", "127.0.0.1", "::1"}
	} else if name, _, err := net.SplitHostPort(o.Addr); err == nil && name != "" {
		g.hosts = append(g.hosts, strings.ToLower(name))
	}
	for _, origin := range o.AllowedOrigins {
		origin = strings.ToLower(strings.TrimSuffix(origin, "/"))
		g.origins = append(g.origins, origin)
		if u, err := url.Parse(origin); err == nil {
			g.hosts = append(g.hosts, u.Hostname())
		}
	}
	if u, err := url.Parse(o.OAuth.Resource); err == nil && u.Host != "" {
		g.hosts = append(g.hosts, strings.ToLower(u.Hostname()))
	}
	if g.resource == "" {
		g.resource = "http://" + addr.String() + EndpointPath
	}
	return g
}

func (g *gate) wrap(handler http.Handler) http.Handler {
	protected := g.authenticate(g.limitBody(handler))
	mux := http.NewServeMux()
	mux.Handle(EndpointPath, protected)
	if g.issuer != nil {
		meta := auth.ProtectedResourceMetadataHandler(g.metadata())
		mux.Handle(metadataPath, meta)
		mux.Handle(metadataPath+EndpointPath, meta)
	}
	// The standard library's check knows more signs of a foreign page than
	// Origin alone; ours below covers reading requests as well.
	cross := http.NewCrossOriginProtection()
	for _, origin := range g.origins {
		// What cannot be an origin was refused with the settings.
		_ = cross.AddTrustedOrigin(origin)
	}
	return g.checkHost(g.checkOrigin(cross.Handler(mux)))
}

func (g *gate) metadata() *oauthex.ProtectedResourceMetadata {
	return &oauthex.ProtectedResourceMetadata{
		Resource: g.resource, AuthorizationServers: []string{g.o.OAuth.Issuer},
		ScopesSupported: []string{Scope}, BearerMethodsSupported: []string{"header"}, ResourceName: "reprise",
	}
}

// metadataURL is where the metadata of a resource is, by RFC 9728: the
// well-known part stands between host and path.
func (g *gate) metadataURL() string {
	if g.issuer == nil {
		return ""
	}
	u, err := url.Parse(g.resource)
	if err != nil {
		return ""
	}
	return u.Scheme + "://" + u.Host + metadataPath + strings.TrimSuffix(u.Path, "/")
}

// checkHost defeats DNS rebinding: a foreign page whose name was made to point
// here still sends that name.
func (g *gate) checkHost(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := r.Host
		if h, _, err := net.SplitHostPort(host); err == nil {
			host = h
		}
		host = strings.ToLower(strings.Trim(host, "[]"))
		ok := slices.Contains(g.hosts, host)
		if !ok && !g.local {
			// Off loopback an address is no name that could be rebound.
			ok = net.ParseIP(host) != nil
		}
		if !ok {
			http.Error(w, fmt.Sprintf("Forbidden: the host %q is not one of this server's: add its origin to http.allowed_origins", clip(host, 100)), http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// checkOrigin refuses pages of other sites, whatever the method, and answers
// the browser's question for those that are allowed.
func (g *gate) checkOrigin(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		origin := r.Header.Get("Origin")
		public := strings.HasPrefix(r.URL.Path, metadataPath)
		if origin == "" || public {
			next.ServeHTTP(w, r)
			return
		}
		if len(r.Header.Values("Origin")) > 1 || !g.allowedOrigin(origin, r.Host) {
			http.Error(w, fmt.Sprintf("Forbidden: the origin %q is not allowed: add it to http.allowed_origins", clip(origin, 100)), http.StatusForbidden)
			return
		}
		h := w.Header()
		h.Set("Access-Control-Allow-Origin", origin)
		h.Add("Vary", "Origin")
		h.Set("Access-Control-Expose-Headers", "Mcp-Session-Id, WWW-Authenticate")
		if r.Method == http.MethodOptions {
			h.Set("Access-Control-Allow-Methods", "GET, POST, DELETE")
			h.Set("Access-Control-Allow-Headers", corsHeaders)
			h.Set("Access-Control-Max-Age", "600")
			w.WriteHeader(http.StatusNoContent)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// allowedOrigin takes the configured origins, and on loopback pages that come
// from this very host and port.
func (g *gate) allowedOrigin(origin, host string) bool {
	if slices.Contains(g.origins, strings.ToLower(origin)) {
		return true
	}
	u, err := url.Parse(origin)
	return err == nil && g.local && u.Scheme == "http" && strings.EqualFold(u.Host, host)
}

func (g *gate) authenticate(next http.Handler) http.Handler {
	if g.o.NoAuth {
		return next
	}
	return auth.RequireBearerToken(g.verify, &auth.RequireBearerTokenOptions{
		ResourceMetadataURL: g.metadataURL(), Scopes: []string{Scope},
		// A token of ours lives until it is revoked; an issuer's must have an
		// expiry, which verify insists on, with the same skew.
		AllowMissingExpiration: true, ClockSkew: clockSkew,
	})(next)
}

func (g *gate) verify(ctx context.Context, token string, _ *http.Request) (*auth.TokenInfo, error) {
	if g.o.Tokens != nil && strings.HasPrefix(token, tokenPrefix) {
		name, ok, err := g.o.Tokens.Verify(token)
		if err != nil {
			return nil, errors.New("the tokens of this server cannot be read; its log has the reason")
		}
		if ok {
			return &auth.TokenInfo{Scopes: []string{Scope}, UserID: "token:" + name}, nil
		}
	}
	if g.issuer == nil || strings.HasPrefix(token, tokenPrefix) {
		return nil, fmt.Errorf("%w: not one of this server's, or revoked", auth.ErrInvalidToken)
	}
	return g.issuer.verify(ctx, token)
}

// checkBody refuses what the SDK would take for another message than it is: one
// with something behind it, and an id that it cannot give back as it came. The
// rest is the SDK's to judge.
func checkBody(body []byte) *refusal {
	if len(body) == 0 {
		return nil
	}
	if !json.Valid(body) {
		return refuse(nil, jsonrpc.CodeParseError, "not a JSON text: the body must be one whole JSON-RPC message")
	}
	var m struct {
		ID json.RawMessage `json:"id"`
	}
	if json.Unmarshal(body, &m) == nil && m.ID != nil && !validID(m.ID) {
		return refuseID()
	}
	return nil
}

func answerRefusal(w http.ResponseWriter, r *refusal) {
	data, err := r.encode()
	if err != nil {
		http.Error(w, r.text, http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusBadRequest)
	_, _ = w.Write(data) // the client has gone, if it cannot be written
}

// limitBody reads a request's body whole, within a size and a time, before
// anything else happens. A deadline for the whole request would cut the
// answers that are streamed for longer.
func (g *gate) limitBody(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			next.ServeHTTP(w, r)
			return
		}
		control := http.NewResponseController(w)
		// A writer without deadlines exists in tests only.
		_ = control.SetReadDeadline(g.o.Now().Add(bodyTime))
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxMessage))
		var large *http.MaxBytesError
		switch {
		case errors.As(err, &large):
			http.Error(w, fmt.Sprintf("the message is over the limit of %d bytes", maxMessage), http.StatusRequestEntityTooLarge)
			return
		case err != nil:
			http.Error(w, "the message did not arrive whole", http.StatusBadRequest)
			return
		}
		_ = control.SetReadDeadline(time.Time{})
		if refused := checkBody(body); refused != nil {
			answerRefusal(w, refused)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		r.ContentLength = int64(len(body))
		next.ServeHTTP(w, r)
	})
}
