package mcpserver

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	jose "github.com/go-jose/go-jose/v4"
	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"github.com/zitadel/oidc/v3/example/server/storage"
	"github.com/zitadel/oidc/v3/pkg/oidc"
	"github.com/zitadel/oidc/v3/pkg/op"

	"reprise/internal/config"
	"reprise/internal/mcpserver/issuer"
)

// provider is an identity provider: zitadel's, which is certified for OpenID
// Connect, with a store that knows resource indicators (RFC 8707) and scopes of
// ours, and that can change its signing key.
type provider struct {
	*httptest.Server
	*storage.Storage

	mu        sync.Mutex
	key       *rsa.PrivateKey
	kid       int
	resources map[string]string // by authorization request
	deny      []string          // scopes that it never grants
	logins    int
	keysAsked int
}

const (
	providerClient   = "mcp-client"
	providerRedirect = "http://127.0.0.1/callback"
)

type resourceKey struct{}

func newProvider(t *testing.T) *provider {
	t.Helper()
	p := &provider{resources: map[string]string{}}
	p.rotate(t)
	p.Server = httptest.NewUnstartedServer(nil)
	issuer := "http://" + p.Listener.Addr().String()
	p.Storage = storage.NewStorageWithClients(storage.NewUserStore(issuer), map[string]*storage.Client{
		providerClient: storage.NativeClient(providerClient, providerRedirect),
	})
	server, err := op.NewProvider(&op.Config{CryptoKey: [32]byte{1}, CryptoKeyId: "k", CodeMethodS256: true}, p, op.StaticIssuer(issuer), op.WithAllowInsecure())
	if err != nil {
		t.Fatal(err)
	}
	p.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// Who signs in is the one user there is, at once.
		if id := r.URL.Query().Get("authRequestID"); strings.HasPrefix(r.URL.Path, "/login") {
			if err := p.CheckUsernamePassword("test-user@127.0.0.1", "verysecure", id); err != nil {
				http.Error(w, err.Error(), http.StatusForbidden)
				return
			}
			p.mu.Lock()
			p.logins++
			p.mu.Unlock()
			http.Redirect(w, r, op.AuthCallbackURL(server)(op.ContextWithIssuer(r.Context(), issuer), id), http.StatusFound)
			return
		}
		server.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), resourceKey{}, r.FormValue("resource"))))
	})
	p.Start()
	t.Cleanup(p.Close)
	return p
}

// rotate gives the provider a new signing key in the place of its old one.
func (p *provider) rotate(t *testing.T) {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.key, p.kid = key, p.kid+1
}

type signing struct {
	key any
	kid string
}

func (s signing) ID() string                                { return s.kid }
func (s signing) Key() any                                  { return s.key }
func (signing) SignatureAlgorithm() jose.SignatureAlgorithm { return jose.RS256 }
func (signing) Algorithm() jose.SignatureAlgorithm          { return jose.RS256 }
func (signing) Use() string                                 { return "sig" }

func (p *provider) SigningKey(context.Context) (op.SigningKey, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return signing{p.key, fmt.Sprint("key-", p.kid)}, nil
}

func (p *provider) KeySet(context.Context) ([]op.Key, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.keysAsked++
	return []op.Key{signing{&p.key.PublicKey, fmt.Sprint("key-", p.kid)}}, nil
}

// ourClient gets tokens that are JWTs, with scopes of ours.
type ourClient struct {
	op.Client
	deny []string
}

func (ourClient) AccessTokenType() op.AccessTokenType { return op.AccessTokenTypeJWT }
func (c ourClient) IsScopeAllowed(scope string) bool {
	return slices.Contains(Scopes(), scope) && !slices.Contains(c.deny, scope)
}
func (ourClient) LoginURL(id string) string { return "/login?authRequestID=" + id }

func (p *provider) GetClientByClientID(ctx context.Context, id string) (op.Client, error) {
	c, err := p.Storage.GetClientByClientID(ctx, id)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return ourClient{c, p.deny}, nil
}

func (p *provider) GetPrivateClaimsFromScopes(_ context.Context, _, _ string, scopes []string) (map[string]any, error) {
	return map[string]any{"scope": strings.Join(scopes, " ")}, nil
}

func (p *provider) CreateAuthRequest(ctx context.Context, r *oidc.AuthRequest, user string) (op.AuthRequest, error) {
	made, err := p.Storage.CreateAuthRequest(ctx, r, user)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.resources[made.GetID()], _ = ctx.Value(resourceKey{}).(string)
	return made, nil
}

// forResource is a request for a token that is for one resource.
type forResource struct {
	op.AuthRequest
	resource string
}

func (f forResource) GetAudience() []string {
	return append(f.AuthRequest.GetAudience(), f.resource)
}

func (p *provider) AuthRequestByCode(ctx context.Context, code string) (op.AuthRequest, error) {
	r, err := p.Storage.AuthRequestByCode(ctx, code)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.resources[r.GetID()] == "" {
		return nil, errors.New("the client named no resource")
	}
	return forResource{r, p.resources[r.GetID()]}, nil
}

// browse is the browser and the person of the flow: it follows the redirects
// to where the client waits for the code.
func browse(ctx context.Context, a *auth.AuthorizationArgs) (*auth.AuthorizationResult, error) {
	client := &http.Client{CheckRedirect: func(req *http.Request, _ []*http.Request) error {
		if strings.HasPrefix(req.URL.String(), providerRedirect) {
			return http.ErrUseLastResponse
		}
		return nil
	}}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, a.URL, nil)
	if err != nil {
		return nil, err
	}
	res, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	back, err := url.Parse(res.Header.Get("Location"))
	if err != nil || back.Query().Get("code") == "" {
		return nil, fmt.Errorf("no code: %s, location %q", res.Status, res.Header.Get("Location"))
	}
	q := back.Query()
	return &auth.AuthorizationResult{Code: q.Get("code"), State: q.Get("state"), Iss: q.Get("iss")}, nil
}

func oauthClient(t *testing.T) *auth.AuthorizationCodeHandler {
	t.Helper()
	h, err := auth.NewAuthorizationCodeHandler(&auth.AuthorizationCodeHandlerConfig{
		PreregisteredClient: &oauthex.ClientCredentials{ClientID: providerClient},
		RedirectURL:         providerRedirect, AuthorizationCodeFetcher: browse, AcceptUnadvertisedIss: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func (p *provider) count() (logins, keys int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.logins, p.keysAsked
}

// A client that knows nothing but the address behind a proxy: it is told where
// the metadata is, finds the identity provider, has its user sign in, and asks
// for more when a tool needs more.
func TestOAuthFromNothing(t *testing.T) {
	idp := newProvider(t)
	front := newFront(t, "/team")
	w := newWorld(t, nil)
	inner := listen(t, w, HTTPOptions{
		PublicURL: front.public, OAuth: config.OAuth{Issuer: idp.URL, Scopes: []string{ScopeRead}},
	})
	front.to(t, inner, true)

	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "0"}, nil)
	session, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: front.public, OAuthHandler: oauthClient(t)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	if tools, err := session.ListTools(t.Context(), nil); err != nil || len(tools.Tools) != 10 {
		t.Fatalf("%v, %v", tools, err)
	}
	if logins, _ := idp.count(); logins != 1 {
		t.Errorf("%d sign-ins for reading", logins)
	}
	res, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "memory_search", Arguments: map[string]any{"query": "port"}})
	if err != nil || res.IsError {
		t.Errorf("a tool that reads: %+v %v", res, err)
	}
	if logins, _ := idp.count(); logins != 1 {
		t.Errorf("%d sign-ins for a tool that reads", logins)
	}
	res, err = session.CallTool(t.Context(), &mcp.CallToolParams{Name: "spawn_agent", Arguments: map[string]any{"task": "now done"}})
	if err != nil || res.IsError || !strings.Contains(textOf(t, res), "done") {
		t.Fatalf("a tool that needs more: %+v %v", res, err)
	}
	if logins, _ := idp.count(); logins != 2 {
		t.Errorf("%d sign-ins after a tool that needs more", logins)
	}
	recs, err := w.runs.List(t.Context())
	if err != nil || len(w.runs.started) != 1 || w.runs.started[0].Principal == "" || !strings.HasPrefix(w.runs.started[0].Principal, idp.URL+"#") {
		t.Errorf("whose run it was is not known: %+v %v", recs, err)
	}
	// What the provider does not grant is not done.
	idp.mu.Lock()
	idp.deny = []string{ScopeWrite}
	idp.mu.Unlock()
	if res, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "append_file", Arguments: map[string]any{"path": "notes.md", "text": "x"}}); err == nil && !res.IsError {
		t.Errorf("written without the scope for it: %+v", res)
	}
	if w.memory.changes() != 0 {
		t.Error("memory was written without the scope for it")
	}
}

// token has somebody sign in and returns the token for a resource.
func (p *provider) token(t *testing.T, resource string, scopes ...string) (access, id string) {
	t.Helper()
	verifier := strings.Repeat("v", 50)
	q := url.Values{
		"client_id": {providerClient}, "redirect_uri": {providerRedirect}, "response_type": {"code"}, "state": {"s"}, "resource": {resource},
		"scope": {strings.Join(append([]string{"openid"}, scopes...), " ")}, "code_challenge": {oidc.NewSHACodeChallenge(verifier)}, "code_challenge_method": {"S256"},
	}
	got, err := browse(t.Context(), &auth.AuthorizationArgs{URL: p.URL + "/authorize?" + q.Encode()})
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.PostForm(p.URL+"/oauth/token", url.Values{
		"grant_type": {"authorization_code"}, "code": {got.Code}, "redirect_uri": {providerRedirect}, "client_id": {providerClient}, "code_verifier": {verifier},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var out struct {
		Access string `json:"access_token"`
		ID     string `json:"id_token"`
	}
	if err := json.NewDecoder(res.Body).Decode(&out); err != nil || out.Access == "" {
		t.Fatalf("%s: %v", res.Status, err)
	}
	return out.Access, out.ID
}

// Tokens as a real provider makes them: for this server and for others, access
// tokens and the others that come with them, before and after its key changed.
func TestOAuthTokensOfARealProvider(t *testing.T) {
	idp := newProvider(t)
	const resource = "https://memory.example.com/mcp"
	clock := newClock()
	w := newWorld(t, func(d *Deps) { d.Now = clock.now })
	url := listen(t, w, HTTPOptions{PublicURL: resource, OAuth: config.OAuth{Issuer: idp.URL}, Now: clock.now})
	status := func(token string) int {
		res, _ := post(t, url, shake, "Authorization", "Bearer "+token)
		return res.StatusCode
	}
	good, identity := idp.token(t, resource, Scope)
	elsewhere, _ := idp.token(t, "https://other.example.com/mcp", Scope)
	none, _ := idp.token(t, resource)
	for _, c := range []struct {
		name, token string
		want        int
	}{{"access", good, 200}, {"identity", identity, 403}, {"for another resource", elsewhere, 401}, {"without a scope", none, 403}} {
		if got := status(c.token); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
	// The key changes: what the new one signed is good as soon as it may be asked
	// about, and the old one's tokens are not, once the keys were fetched again.
	idp.rotate(t)
	clock.add(issuer.KeyPause)
	fresh, _ := idp.token(t, resource, Scope)
	if got := status(fresh); got != 200 {
		t.Errorf("signed with the new key: %d", got)
	}
	if got := status(good); got != 401 {
		t.Errorf("signed with a key that the provider has withdrawn: %d", got)
	}
	_, before := idp.count()
	for range 20 {
		status(good)
	}
	if _, after := idp.count(); after != before {
		t.Errorf("asked for keys %d times more within %s", after-before, issuer.KeyPause)
	}
}

// newFront is a reverse proxy that hands on what is below prefix.
type front struct {
	*httptest.Server
	public string // address of the endpoint
	mu     sync.Mutex
	target *httputil.ReverseProxy
	hits   int
}

func newFront(t *testing.T, prefix string) *front {
	t.Helper()
	f := &front{}
	f.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		target := f.target
		f.hits++
		f.mu.Unlock()
		if target == nil {
			http.Error(w, "nobody there", http.StatusBadGateway)
			return
		}
		target.ServeHTTP(w, r)
	}))
	t.Cleanup(f.Close)
	f.public = f.URL + prefix + EndpointPath
	return f
}

// to has the proxy hand on to the server at endpoint, as proxies do it:
// with the Host of the server or the client's, with or without the prefix.
func (f *front) to(t *testing.T, endpoint string, strip bool) {
	t.Helper()
	target, err := url.Parse(endpoint)
	if err != nil {
		t.Fatal(err)
	}
	prefix := strings.TrimSuffix(strings.TrimPrefix(f.public, f.URL), EndpointPath)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.target = &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetXForwarded()
		r.Out.URL.Scheme, r.Out.URL.Host = target.Scheme, target.Host
		if strip {
			r.Out.URL.Path = strings.TrimPrefix(r.In.URL.Path, prefix)
			r.Out.Host = target.Host
		} else {
			r.Out.Host = r.In.Host
		}
	}}
}

// handClock is a clock that a test moves.
type handClock struct {
	mu sync.Mutex
	at time.Time
}

// newClock stands at the present: what the SDK and the provider check goes by
// the machine's.
func newClock() *handClock { return &handClock{at: time.Now()} }

func (h *handClock) now() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.at
}

func (h *handClock) add(d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.at = h.at.Add(d)
}
