package mcpserver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"reprise/internal/mcpserver/issuer"
)

// gate is what a request passes before the SDK sees it: Host, Origin, token,
// limits, size, scope.
type gate struct {
	o        HTTPOptions
	issuer   *issuer.Issuer
	quotas   *quotas
	local    bool
	hosts    []string // allowed in Host, lower case, without port
	origins  []string // allowed in Origin, lower case
	resource string   // this server's address, as in tokens
	public   *url.URL // as clients see it behind a proxy; nil: as it listens
}

func newGate(o HTTPOptions, iss *issuer.Issuer, addr net.Addr) *gate {
	host, _, _ := net.SplitHostPort(addr.String())
	g := &gate{o: o, issuer: iss, quotas: newQuotas(o.Limits, o.Now), local: issuer.Loopback(host), resource: o.OAuth.Resource}
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
	for _, address := range []string{o.PublicURL, o.OAuth.Resource} {
		u, err := url.Parse(address)
		if err != nil || u.Host == "" {
			continue
		}
		g.hosts = append(g.hosts, strings.ToLower(u.Hostname()))
		if address == o.PublicURL {
			g.public = u
			// A page of that very server; the proxy may have put another Host.
			g.origins = append(g.origins, strings.ToLower(u.Scheme+"://"+u.Host))
		}
	}
	if g.resource == "" {
		g.resource = "http://" + addr.String() + EndpointPath
	}
	return g
}

func (g *gate) wrap(handler http.Handler) http.Handler {
	protected := g.authenticate(g.count(g.readBody(g.countBatch(g.checkScope(handler)))))
	at := map[string]http.Handler{EndpointPath: protected}
	prefix := ""
	if g.public != nil {
		// A proxy may hand a path on as it came, or without what leads to us.
		path := "/" + strings.Trim(g.public.Path, "/")
		at[path] = protected
		prefix = strings.TrimSuffix(strings.TrimSuffix(path, EndpointPath), "/")
	}
	if g.issuer != nil {
		meta := auth.ProtectedResourceMetadataHandler(g.metadata())
		for _, path := range []string{metadataPath, metadataPath + EndpointPath, prefix + metadataPath, prefix + metadataPath + EndpointPath, g.metadataPath()} {
			at[path] = meta
		}
	}
	mux := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if h := at[r.URL.Path]; h != nil {
			h.ServeHTTP(w, r)
			return
		}
		http.NotFound(w, r)
	})
	// The standard library's check knows more signs of a foreign page than
	// Origin alone; ours below covers reading requests as well.
	cross := http.NewCrossOriginProtection()
	for _, origin := range g.origins {
		// What cannot be an origin was refused with the settings.
		_ = cross.AddTrustedOrigin(origin)
	}
	return g.checkProxy(g.checkHost(g.checkOrigin(cross.Handler(mux))))
}

func (g *gate) metadata() *oauthex.ProtectedResourceMetadata {
	return &oauthex.ProtectedResourceMetadata{
		Resource: g.resource, AuthorizationServers: []string{g.o.OAuth.Issuer},
		ScopesSupported: Scopes(), BearerMethodsSupported: []string{"header"}, ResourceName: "reprise",
	}
}

// metadataPath is where the metadata of the resource is, by RFC 9728: the
// well-known part stands between host and path.
func (g *gate) metadataPath() string {
	u, err := url.Parse(g.resource)
	if err != nil {
		return metadataPath
	}
	return metadataPath + strings.TrimSuffix(u.Path, "/")
}

func (g *gate) metadataURL() string {
	u, err := url.Parse(g.resource)
	if err != nil || g.issuer == nil {
		return ""
	}
	return u.Scheme + "://" + u.Host + metadataPath + strings.TrimSuffix(u.EscapedPath(), "/")
}

// forwarded are headers that proxies add and other clients have no use for.
func forwarded() []string {
	return []string{
		"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Forwarded-Server", "X-Forwarded-Port",
		"X-Real-Ip", "Via", "X-Client-Ip", "X-Cluster-Client-Ip", "X-Original-Host", "X-Original-Url", "X-Envoy-External-Address",
		"Cf-Connecting-Ip", "Cf-Ray", "True-Client-Ip", "Fastly-Client-Ip", "Fly-Client-Ip", "X-Appengine-User-Ip",
		"X-Azure-Clientip", "X-Azure-Fdid", "Tailscale-User-Login",
	}
}

// checkProxy refuses what came through a proxy where no token is asked for: to
// a server on loopback every client of the proxy would be this machine's.
func (g *gate) checkProxy(next http.Handler) http.Handler {
	if !g.o.NoAuth {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for _, name := range forwarded() {
			if r.Header.Get(name) != "" {
				http.Error(w, fmt.Sprintf("Forbidden: the request came through a proxy (%s), and --no-auth is for programs on this machine: start the server without it and make a token with `reprise mcp token create NAME`", name), http.StatusForbidden)
				return
			}
		}
		next.ServeHTTP(w, r)
	})
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
		ok := host != "" && slices.Contains(g.hosts, host) // an origin such as file:// has no name
		if !ok && !g.local {
			// Off loopback an address is no name that could be rebound.
			ok = net.ParseIP(host) != nil
		}
		if !ok {
			http.Error(w, fmt.Sprintf("Forbidden: the host %q is not one of this server's: set http.public_url to the address that clients use, or add its origin to http.allowed_origins", shorten(host, 100)), http.StatusForbidden)
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
		public := strings.Contains(r.URL.Path, metadataPath)
		if origin == "" || public {
			next.ServeHTTP(w, r)
			return
		}
		if len(r.Header.Values("Origin")) > 1 || !g.allowedOrigin(origin, r.Host) {
			http.Error(w, fmt.Sprintf("Forbidden: the origin %q is not allowed: add it to http.allowed_origins", shorten(origin, 100)), http.StatusForbidden)
			return
		}
		h := w.Header()
		h.Set("Access-Control-Allow-Origin", origin)
		h.Add("Vary", "Origin")
		h.Set("Access-Control-Expose-Headers", "Mcp-Session-Id, WWW-Authenticate, Retry-After")
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

// allowedOrigin takes the configured origins, and on loopback pages that come from this very
// host and port, which only this machine can have: a name that a proxy hands on is also that
// of unencrypted pages, which whoever is on the way can make.
func (g *gate) allowedOrigin(origin, host string) bool {
	if slices.Contains(g.origins, strings.ToLower(origin)) {
		return true
	}
	u, err := url.Parse(origin)
	return err == nil && g.local && u.Scheme == "http" && strings.EqualFold(u.Host, host) && issuer.Loopback(u.Hostname())
}

// authenticate lets in who has a token of ours or of the issuer's, with any
// scope of this server.
func (g *gate) authenticate(next http.Handler) http.Handler {
	if g.o.NoAuth {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token, ok := bearerToken(r)
		if !ok {
			// RFC 6750, 3.1: who sent none is told nothing but where to get one.
			g.challenge(w, http.StatusUnauthorized, "", "no bearer token", g.firstScopes())
			return
		}
		info, err := g.verify(r.Context(), token)
		switch {
		case errors.Is(err, auth.ErrInvalidToken):
			g.challenge(w, http.StatusUnauthorized, "invalid_token", err.Error(), g.firstScopes())
		case errors.Is(err, issuer.ErrNoKeys):
			w.Header().Set("Retry-After", strconv.Itoa(int(issuer.KeyPause.Seconds())))
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		case err != nil:
			http.Error(w, err.Error(), http.StatusInternalServerError)
		case !grants(info.Scopes, ""):
			g.challenge(w, http.StatusForbidden, "insufficient_scope", "the token has no scope of this server", g.firstScopes())
		default:
			// The SDK's middleware, because it alone can put the token where the
			// SDK looks for it. It finds again what was found.
			found := func(context.Context, string, *http.Request) (*auth.TokenInfo, error) { return info, nil }
			auth.RequireBearerToken(found, &auth.RequireBearerTokenOptions{
				// A token of ours may live until it is revoked; an issuer's has an
				// expiry, which verify insists on, with the same skew.
				AllowMissingExpiration: true, ClockSkew: issuer.ClockSkew,
			})(next).ServeHTTP(w, r)
		}
	})
}

// bearerToken is the token of a request that has exactly one.
func bearerToken(r *http.Request) (string, bool) {
	headers := r.Header.Values("Authorization")
	if len(headers) != 1 {
		return "", false
	}
	fields := strings.Fields(headers[0])
	if len(fields) != 2 || !strings.EqualFold(fields[0], "bearer") {
		return "", false
	}
	return fields[1], true
}

// firstScopes are what a client should ask for that has nothing yet.
func (g *gate) firstScopes() []string {
	if len(g.o.OAuth.Scopes) > 0 {
		return g.o.OAuth.Scopes
	}
	return []string{Scope}
}

// challenge refuses and says what a token would have to be, by RFC 6750 and
// RFC 9728. code is "" where no token was sent.
func (g *gate) challenge(w http.ResponseWriter, status int, code, text string, scopes []string) {
	var params []string
	add := func(name, value string) {
		if value != "" {
			params = append(params, name+`="`+quotable(value)+`"`)
		}
	}
	add("error", code)
	if code != "" {
		add("error_description", text)
	}
	add("scope", strings.Join(scopes, " "))
	add("resource_metadata", g.metadataURL())
	w.Header().Set("WWW-Authenticate", "Bearer "+strings.Join(params, ", "))
	http.Error(w, text, status)
}

// quotable is s with only what RFC 6750 has in a quoted value.
func quotable(s string) string {
	return strings.Map(func(r rune) rune {
		if r < 0x20 || r > 0x7e || r == '"' || r == '\\' {
			return '\''
		}
		return r
	}, s)
}

func (g *gate) verify(ctx context.Context, token string) (*auth.TokenInfo, error) {
	if g.o.Tokens != nil && strings.HasPrefix(token, tokenPrefix) {
		t, ok, err := g.o.Tokens.Verify(token)
		if err != nil {
			return nil, errors.New("the tokens of this server cannot be read; its log has the reason")
		}
		if ok {
			return &auth.TokenInfo{Scopes: t.Grants(), UserID: staticUser + t.Name}, nil
		}
	}
	if g.issuer == nil || strings.HasPrefix(token, tokenPrefix) {
		return nil, fmt.Errorf("%w: not one of this server's, or revoked or expired", auth.ErrInvalidToken)
	}
	return g.issuer.Verify(ctx, token)
}

// count keeps a token to its limits. Where no token is needed the one program
// that is everybody has them.
func (g *gate) count(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		leave, over := g.quotas.enter(userOf(r), r.Method == http.MethodGet)
		if over != nil {
			answerOver(w, over)
			return
		}
		defer leave()
		next.ServeHTTP(w, r)
	})
}

// mostBatch is how many messages a batch may have. The protocol has had none since its
// revision of June 2025, and each of them is a request as any.
const mostBatch = 32

// countBatch counts the messages of a batch behind its first one, which count has counted.
func (g *gate) countBatch(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if body, ok := r.Body.(*wholeBody); ok && len(body.calls) > 1 {
			if over := g.quotas.more(userOf(r), len(body.calls)-1); over != nil {
				answerOver(w, over)
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}

// userOf is whose request it is, for the limits.
func userOf(r *http.Request) string {
	if info := auth.TokenInfoFromContext(r.Context()); info != nil {
		return info.UserID
	}
	return "this machine"
}

// wholeBody is a request's body that was read, and what it calls.
type wholeBody struct {
	io.Reader
	calls []struct{ method, tool string }
}

func (*wholeBody) Close() error { return nil }

// checkScope has a client ask for more where its token is not for what it
// calls.
func (g *gate) checkScope(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		info := auth.TokenInfoFromContext(r.Context())
		body, ok := r.Body.(*wholeBody)
		if info == nil || !ok || g.o.scopeFor == nil {
			next.ServeHTTP(w, r)
			return
		}
		for _, c := range body.calls {
			if need := g.o.scopeFor(c.method, c.tool); !grants(info.Scopes, need) {
				g.challenge(w, http.StatusForbidden, "insufficient_scope", fmt.Sprintf("the token lacks the scope %s: %s", need, moreScope(info, need)), wanted(info.Scopes, need))
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}

// unheard is the refusal of a notification that this server does not know: JSON-RPC has it
// dropped, for there is nobody to answer.
var unheard = &refusal{}

// checkBody refuses what is no message to this server, as the guard of standard input does:
// the SDK answers that in words, which clients take for a broken transport. It also refuses
// what the SDK would take for another message than it is: one with something behind it, and
// an id that it cannot give back as it came. Batches are the SDK's to judge, for revisions of
// the protocol have them; what is in them is not.
func checkBody(body []byte) *refusal {
	data := bytes.TrimSpace(body)
	if len(data) == 0 || !json.Valid(data) {
		return refuse(nil, jsonrpc.CodeParseError, "not a JSON text: the body must be one whole JSON-RPC message")
	}
	if data[0] != '[' {
		return checkOne(data)
	}
	var many []json.RawMessage
	if err := json.Unmarshal(data, &many); err != nil || len(many) == 0 {
		return refuse(nil, jsonrpc.CodeInvalidRequest, "a batch without a message")
	}
	if len(many) > mostBatch {
		return refuse(nil, jsonrpc.CodeInvalidRequest, "a batch has at most %d messages, and this one has %d: send them one by one", mostBatch, len(many))
	}
	for _, one := range many {
		refused := checkOne(one)
		if refused == unheard || refused != nil && refused.code == jsonrpc.CodeMethodNotFound {
			return refuse(refused.id, jsonrpc.CodeInvalidRequest, "nothing of the batch was done: it has a method that this server does not know")
		}
		if refused != nil {
			return refused
		}
	}
	return nil
}

func checkOne(data []byte) *refusal {
	env, _, refused := parseMessage(data, knownMethod)
	switch {
	case refused != nil || env.method == "":
		return refused
	case !env.isCall && knownMethod(env.method):
		return refuse(nil, jsonrpc.CodeInvalidRequest, `%s is a call, which needs an "id"`, env.method)
	case !env.isCall && !knownNotification(env.method):
		return unheard
	case env.isCall && env.bare && needsParams(env.method):
		return refuse(env.id, jsonrpc.CodeInvalidParams, `%s needs "params"`, env.method)
	}
	return nil
}

// refusalStatus is the HTTP status of a refusal. An answer to a call is one, whatever it says;
// revisions without a handshake want methods that there are not to be told by the status.
func refusalStatus(r *http.Request, refused *refusal) int {
	switch {
	case refused == unheard:
		return http.StatusAccepted
	case refused.code != jsonrpc.CodeMethodNotFound:
		return http.StatusBadRequest
	case r.Header.Get("Mcp-Protocol-Version") >= stateless:
		return http.StatusNotFound
	}
	return http.StatusOK
}

// answerWith answers with an error of the protocol.
func answerWith(w http.ResponseWriter, status int, r *refusal) {
	if r == unheard {
		w.WriteHeader(status)
		return
	}
	data, err := r.encode()
	if err != nil {
		http.Error(w, r.text, status)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(data) // the client has gone, if it cannot be written
}

// readBody reads a request's body whole, within a size and a time, before
// anything else happens. A deadline for the whole request would cut the
// answers that are streamed for longer.
func (g *gate) readBody(next http.Handler) http.Handler {
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
			answerWith(w, refusalStatus(r, refused), refused)
			return
		}
		r.Body = &wholeBody{bytes.NewReader(body), calls(body)}
		r.ContentLength = int64(len(body))
		next.ServeHTTP(w, r)
	})
}
